"""The dynamics in time, judged by SciPy, closed forms, equilibria and the statistics of noise."""

import json
import re

import numpy as np
import pytest
from own_terms import Tilt
from random_networks import KINDS, inputs_for, make_network
from scipy.integrate import solve_ivp

import phasegrad as pg
from phasegrad.cli.application import app
from phasegrad.graphs._sharing import Sharing
from phasegrad.kernels import motion as loops
from phasegrad.runs import network_in_time
from phasegrad.simulation._compiled import CompiledAdaptive, CompiledSteps, adaptive_steps, fixed_steps
from phasegrad.simulation._motion import Drive, Motion
from phasegrad.simulation._steps import Adaptive, FixedSteps
from phasegrad.terms import LocalField

TIMES = np.linspace(0.0, 100.0, 51)
INPUTS = [0.5, -0.5]


@pytest.fixture(scope="module")
def network():
    return pg.layered(2, 5, 2, seed=0)


@pytest.fixture(scope="module")
def begun():
    return np.random.default_rng(1).uniform(-3, 3, 9)


@pytest.fixture(scope="module")
def by_scipy(network, begun):
    def rate(_time, phases):
        return pg.dynamics.force(network, phases, INPUTS)

    return solve_ivp(rate, (0, 100), begun, method="DOP853", rtol=1e-13, atol=1e-13, t_eval=TIMES).y.T


class TestSteps:
    def test_adaptive_steps_lead_where_scipy_does(self, network, begun, by_scipy):
        run = pg.simulate(network, TIMES, start=begun, inputs=INPUTS, tolerance=1e-10)
        assert np.max(np.abs(run.phases - by_scipy)) < 1e-9
        # The same by SciPy, as the inputs might change; between its steps it interpolates.
        other = pg.simulate(network, TIMES, start=begun, inputs=lambda _time: INPUTS, tolerance=1e-10)
        assert np.max(np.abs(other.phases - by_scipy)) < 1e-8

    def test_steps_of_one_length_keep_the_tolerance_that_they_follow_from(self, network, begun, by_scipy):
        run = pg.simulate(network, TIMES, start=begun, inputs=INPUTS, method="rk4")
        assert np.max(np.abs(run.phases - by_scipy)) < 1e-7

    @pytest.mark.parametrize(("method", "order"), [("rk4", 4), ("heun", 2)])
    def test_methods_have_the_order_they_are_named_for(self, network, begun, method, order):
        exact = pg.simulate(network, [0, 1], start=begun, inputs=INPUTS, tolerance=1e-13).phases[-1]
        errors = [
            np.max(
                np.abs(
                    pg.simulate(network, [0, 1], start=begun, inputs=INPUTS, method=method, step=h).phases[-1] - exact
                )
            )
            for h in (1 / 80, 1 / 160)
        ]
        assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.3)

    @pytest.mark.parametrize("inertia", [None, 0.7])
    @pytest.mark.parametrize("noise", [0.0, 0.1])
    def test_compiled_steps_are_those_of_numpy(self, noise, inertia):
        network = pg.networks.signed_layers(3, 4, 2, input_scale=0.7).replace(global_coupling=0.8)
        options = {"inputs": [0.2, -0.4, 0.9], "noise": noise, "inertia": inertia, "damping": 0.8, "step": 0.01}
        method = "heun" if noise else "rk4"
        start = np.random.default_rng(0).uniform(-2, 2, (3, 9))
        compiled = pg.simulate(network, [0, 0.5, 2], start=start, method=method, **options)
        changing = {**options, "inputs": lambda _time: [0.2, -0.4, 0.9]}  # functions of time are not compiled
        plain = pg.simulate(network, [0, 0.5, 2], start=start, method=method, **changing)
        assert np.max(np.abs(compiled.phases - plain.phases)) < 1e-12
        assert np.max(np.abs(compiled.velocities - plain.velocities)) < 1e-11

    def test_a_phase_is_as_exact_after_a_million_turns_as_after_none(self, network, begun):
        # But for the rounding of phases of this size, some 1e-9.
        far = begun + 2 * np.pi * 10**6
        for options in ({"method": "adaptive"}, {"method": "rk4", "tolerance": 1e-6}):
            near, away = (pg.simulate(network, [0.0, 3.0], start=at, **options).phases[-1] - at for at in (begun, far))
            assert np.max(np.abs(near - away)) < 1e-6

    def test_what_is_compiled_returns_often_enough_to_be_interrupted(self, network, begun, monkeypatch):
        whole = [pg.simulate(network, [0.0, 1.0], start=begun, noise=d, step=0.01) for d in (0.0, 0.1)]
        adaptive = pg.simulate(network, [0.0, 1.0, 30.0], start=begun)
        monkeypatch.setattr("phasegrad.simulation._compiled._LOOKED", 3 * (9 + 48))
        taken, kernel = [], loops.runge_kutta

        def counted(state, steps, *rest):
            taken.append(steps)
            return kernel(state, steps, *rest)

        monkeypatch.setattr(loops, "runge_kutta", counted)
        parts = [pg.simulate(network, [0.0, 1.0], start=begun, noise=d, step=0.01) for d in (0.0, 0.1)]
        assert taken == [3] * 33 + [1]
        assert np.array_equal(pg.simulate(network, [0.0, 1.0, 30.0], start=begun).phases, adaptive.phases)
        assert all(np.array_equal(one.phases, other.phases) for one, other in zip(whole, parts, strict=True))

    def test_steps_are_short_enough_for_what_comes_later(self):
        pair = pg.Network([[0, 1]], 1.0, [0.0, 0.0], inputs=[0], input_scale=1.0)
        options = {"inputs": lambda time: [60.0 * time**2], "start": [0.0, 1.0]}
        adaptive = pg.simulate(pair, [0.0, 1.0], tolerance=1e-8, **options)
        fixed = pg.simulate(pair, [0.0, 1.0], method="rk4", tolerance=1e-7, **options)
        assert fixed.phases[-1] == pytest.approx(adaptive.phases[-1], abs=1e-6)

    def test_sines_are_compiled_and_nothing_else(self, network):
        def kind(given):
            motion = Motion.of(Drive((given,)), 0.0, (), np.ones(given.size), None)
            ((_, steps),) = fixed_steps(motion, np.array([0.1]), "rk4", None, 0).groups
            return type(steps), type(adaptive_steps(motion, 1e-9, np.array([0.0, 1.0]), np.ones(1)))

        assert kind(network) == (CompiledSteps, CompiledAdaptive)
        assert kind(pg.networks.mean_field(5)) == (CompiledSteps, CompiledAdaptive)
        for options in (
            {"lag": 0.3},
            {"anisotropy": 0.4},
            {"coupling_reverse": 0.5},
            {"lag": 0.3, "coupling_reverse": 2},
        ):
            assert kind(pg.networks.ring(5, **options)) == (CompiledSteps, CompiledAdaptive), options
        series = pg.terms.OddSeries((1.0, 0.2))
        for options in ({}, {"lag": 0.3}, {"anisotropy": 0.4}):
            assert kind(pg.networks.ring(5, interaction=series, **options)) == (FixedSteps, Adaptive), options

    @pytest.mark.parametrize("inertia", [None, 0.7])
    @pytest.mark.parametrize("kind", ["lagging", "non-reciprocal", "anisotropic", "lagging one way"])
    def test_what_is_no_plain_sine_is_compiled_as_scipy_has_it(self, kind, inertia):
        network = make_network(9, 5, kind=kind.partition(" ")[0], spread=1.0).replace(interaction=pg.terms.Sine())
        stream = np.random.default_rng(2)
        if kind == "lagging one way":
            network = network.replace(coupling_reverse=stream.uniform(0.5, 2.0, network.n_edges))
        if kind.startswith("lagging"):
            network = network.replace(lag=stream.uniform(-1, 1, network.n_edges))
        start, times = stream.uniform(-3, 3, (2, 9)), [0.0, 0.7, 4.0]

        def rate(_time, state):
            force = pg.dynamics.force(network, state[:9])
            if network.pinned and not network.reciprocal:
                force = sum(term.force(network.graph, in_frame, state[None, :9])[0] for term in network.terms)
            return force if inertia is None else np.concatenate([state[9:], (force - 0.8 * state[9:]) / inertia])

        in_frame = {name: values[None] for name, values in network.parameters.items()}
        in_frame["omega"] = in_frame["omega"] - in_frame["omega"].mean()
        options = {} if inertia is None else {"inertia": inertia, "damping": 0.8}
        run = pg.simulate(network, times, start=start, tolerance=1e-11, **options)
        steps = pg.simulate(network, times, start=start, method="rk4", step=1e-3, **options)
        for k, one in enumerate(start):
            begun = one if inertia is None else np.concatenate([one, np.zeros(9)])
            exact = solve_ivp(rate, (0, 4), begun, method="DOP853", rtol=1e-13, atol=1e-13, t_eval=times).y.T
            assert np.max(np.abs(run.phases[:, k] - exact[:, :9])) < 1e-9
            assert np.max(np.abs(steps.phases[:, k] - exact[:, :9])) < 1e-9
            speeds = [rate(0.0, row)[:9] for row in exact]
            assert np.max(np.abs(run.velocities[:, k] - speeds)) < 1e-8

    def test_many_times_within_a_step_cost_no_steps_and_no_digits(self, network, begun):
        # Coupling lags on the second network, where rows of the compiled code hold maps.
        for each, inputs in ((network, INPUTS), (pg.networks.ring(9, lag=0.4, omega=network.omega), None)):
            times = np.linspace(0.0, 20.0, 1001)
            tight = pg.simulate(each, times, start=begun, inputs=inputs, tolerance=1e-13)
            many = pg.simulate(each, times, start=begun, inputs=inputs)
            few = pg.simulate(each, times[[0, -1]], start=begun, inputs=inputs)
            assert many.steps < 1.2 * few.steps < 200
            assert np.max(np.abs(many.phases - tight.phases)) < 1e-7
            assert np.max(np.abs(many.velocities - tight.velocities)) < 1e-6
            assert np.max(np.abs(many.phases[-1] - few.phases[-1])) < 1e-8

    def test_more_oscillators_than_fit_into_a_block_move_as_scipy_has_it(self):
        network = pg.networks.random_regular(
            1100, 3, omega=np.random.default_rng(3).normal(0, 0.5, 1100), global_coupling=0.7
        )
        start = np.random.default_rng(4).uniform(-3, 3, 1100)
        run = pg.simulate(network, [0.0, 1.0, 2.0], start=start, tolerance=1e-11)
        changing = solve_ivp(
            lambda _time, phases: pg.dynamics.force(network, phases),
            (0, 2),
            start,
            "DOP853",
            [0, 1, 2],
            rtol=1e-12,
            atol=1e-12,
        )
        assert np.max(np.abs(run.phases - changing.y.T)) < 1e-8
        varied = network.replace(coupling=np.full(network.n_edges, 1.0) + 1e-9 * np.arange(network.n_edges))
        near = pg.simulate(varied, [0.0, 1.0, 2.0], start=start, tolerance=1e-11)  # weights that are not all alike
        assert 0 < np.max(np.abs(near.phases - run.phases)) < 1e-3

    def test_compiled_sines_are_exact_wherever_a_phase_is(self):
        far = np.concatenate([np.linspace(-20, 20, 4001), np.random.default_rng(0).uniform(-1e5, 1e5, 4000)])
        network = pg.Network([], 1.0, np.zeros(far.size), field_strength=1.0)
        step = 1e-9
        run = pg.simulate(network, [0.0, step], start=far, method="rk4", step=step)
        # theta' = -sin theta, but for the rounding of phases of this size
        assert np.max(np.abs(run.phases[1] - far + step * np.sin(far))[:4001]) < 1e-14
        slow = pg.simulate(network, [0.0, 1.0], start=far, method="rk4", step=0.05).phases[-1]
        assert np.max(np.abs(np.tan(slow / 2) - np.tan(far / 2) / np.e) / (1 + np.tan(far / 2) ** 2)) < 1e-6


class Crowd(pg.terms.Term):
    """The mean field written out by a user, under another name: F_i = (K / N) sum_j sin(theta_j - theta_i)."""

    every = pg.terms.Parameter("crowd", "network")
    symmetric = False
    has_local_field = True

    def force(self, graph, values, phases):
        sums = np.sum(np.exp(1j * phases), axis=1, keepdims=True)
        return values["crowd"] / graph.size * np.imag(sums * np.exp(-1j * phases))

    def mean_strength(self, graph, values):
        return values["crowd"] / graph.size

    def stiffness(self, graph, values, phases):
        share, both = values["crowd"] / graph.size, np.stack([np.cos(phases), np.sin(phases)], axis=2)
        diagonal = share * np.real(np.sum(np.exp(1j * phases), axis=1, keepdims=True) * np.exp(-1j * phases))
        return pg.terms.Stiffness(diagonal=diagonal, outer=(share[:, :, None] * both, both))

    def stiffest(self, graph, values):
        ones = np.ones((1, graph.size))
        share = np.abs(values["crowd"]) / graph.size * ones
        return pg.terms.Stiffness(diagonal=graph.size * share, outer=(share[:, :, None], ones[:, :, None]))

    def capacity(self, graph, values):
        return np.abs(values["crowd"]) * np.ones((1, graph.size))

    def energy(self, graph, values, phases):
        raise NotImplementedError

    energy_slopes = energy

    def force_slopes(self, graph, values, phases, response):
        slope = self.force(graph, {"crowd": np.ones((1, 1))}, phases)
        return {"crowd": np.sum(response * slope, axis=1, keepdims=True)}


class Across(Crowd):
    """Another law: F_i = sum_j C_ij cos(theta_j - theta_i) along edges, one strength each."""

    every = pg.terms.Parameter("across", "edges")

    def force(self, graph, values, phases):
        pull = values["across"] * np.cos(graph.angles(phases))
        return graph.at_ends(pull, pull)

    def local_field(self, values):
        strength = np.stack([values["across"]] * 2)
        return LocalField(np.zeros_like(strength), across=-strength)

    def mean_strength(self, graph, values):
        return None

    def stiffness(self, graph, values, phases):
        slope = values["across"] * np.sin(graph.angles(phases))
        return pg.terms.Stiffness(-slope, slope)

    def stiffest(self, graph, values):
        return pg.terms.Stiffness(np.abs(values["across"]), np.abs(values["across"]))

    def capacity(self, graph, values):
        return graph.at_ends(np.abs(values["across"]), np.abs(values["across"]))

    def force_slopes(self, graph, values, phases, response):
        first, second = (np.take(response, end, axis=1) for end in (graph.first, graph.second))
        return {"across": (first + second) * np.cos(graph.angles(phases))}


class TestCompiled:
    """What is compiled follows from what terms say of phasors, and a run reports the reason where it is not."""

    START = np.random.default_rng(4).uniform(-3, 3, (2, 6))

    @pytest.mark.parametrize("method", ["adaptive", "rk4"])
    @pytest.mark.parametrize("kinds", [(Crowd,), (Across,), (Crowd, Across)])
    def test_custom_terms_are_compiled_as_numpy_has_them(self, kinds, method):
        strengths = {"crowd": 0.8, "across": np.linspace(-0.4, 0.7, 6)}
        given = {kind.every[0].name: strengths[kind.every[0].name] for kind in kinds}
        silent = [type(kind.__name__, (kind,), {"has_local_field": False}) for kind in kinds]
        runs = []
        for some in (kinds, silent):
            network = pg.networks.ring(6, omega=np.linspace(-1, 1.2, 6), terms=[kind() for kind in some], **given)
            runs.append(pg.simulate(network, [0.0, 1.0, 4.0], start=self.START, method=method, tolerance=1e-10))
        compiled, plain = runs
        assert compiled.uncompiled == ""
        assert plain.uncompiled.startswith(f"The term {kinds[0].__name__} does not say how phasors act")
        assert compiled.phases == pytest.approx(plain.phases, abs=1e-7)
        assert compiled.velocities == pytest.approx(plain.velocities, abs=1e-7)

    def test_a_copy_of_the_mean_field_moves_as_the_mean_field(self):
        mine = pg.networks.ring(6, omega=np.linspace(-1, 1.2, 6), terms=[Crowd()], crowd=0.8)
        known = pg.networks.ring(6, omega=np.linspace(-1, 1.2, 6), global_coupling=0.8)
        runs = [pg.simulate(each, [0.0, 1.0, 4.0], start=self.START) for each in (mine, known)]
        assert np.array_equal(runs[0].phases, runs[1].phases)

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ({}, ""),
            ({"inputs": lambda time: [time]}, "Inputs or nudge are functions of time."),
            ({"nudge": pg.Nudge(pg.PhaseTargets(), [0.1], 0.2)}, "A nudge is an arbitrary function of the phases."),
        ],
    )
    def test_a_run_gives_the_reason(self, options, why):
        assert pg.simulate(pg.networks.ring(4, inputs=[1], outputs=[3]), [0.0, 1.0], **options).uncompiled == why

    def test_a_term_that_is_no_phasor_is_named(self):
        run = pg.simulate(pg.networks.ring(4, terms=[Tilt()], tilt=0.1), [0.0, 1.0])
        assert run.uncompiled == "The term Tilt does not say how phasors act: has_local_field is False."


class TestWhoSetsTheStep:
    """A run that one fast oscillator makes long says so; its trajectory says how many steps it took."""

    def fast(self, number, rate, **options):
        omega = np.random.default_rng(0).normal(0.0, 0.3, number)
        omega[number // 3] = rate
        return pg.networks.mean_field(number, 1.0, omega=omega, **options)

    @pytest.mark.parametrize("options", [{}, {"method": "rk4"}, {"noise": 0.01}])
    def test_a_long_run_names_the_oscillator(self, options, monkeypatch):
        monkeypatch.setattr("phasegrad.simulation._simulate._LONG", 1e4)
        with pytest.warns(UserWarning, match=r"Oscillator 16 sets the step of all") as told:
            run = pg.simulate(self.fast(50, 400.0), [0.0, 2.0], **options)
        assert told[0].filename == __file__
        said = int(re.search(r"about ([\d,]+) steps", str(told[0].message))[1].replace(",", ""))
        assert said / 4 < run.steps < 4 * said
        networks = [self.fast(50, 1.0), self.fast(50, 400.0)]
        with pytest.warns(UserWarning, match="Oscillator 16 in sample 1 sets"):
            pg.simulate(networks, [0.0, 2.0], **options)

    def test_nothing_is_said_where_nothing_is_to_blame(self, monkeypatch):
        pg.simulate(self.fast(50, 400.0), [0.0, 2.0])  # a short run
        monkeypatch.setattr("phasegrad.simulation._simulate._LONG", 1e4)
        pg.simulate(self.fast(50, 5.0), [0.0, 20.0])
        pg.simulate(self.fast(50, 400.0), [0.0, 2.0], method="rk4", step=0.01)  # who gives a step knows it

    def test_steps_are_counted_for_every_sample(self, network, begun):
        starts = np.stack([begun, np.zeros(9)])
        fixed = pg.simulate(network, [0.0, 1.0, 3.5], start=starts, inputs=INPUTS, method="rk4", step=0.1)
        assert fixed.steps.tolist() == [35, 35]
        for inputs in (INPUTS, lambda _time: INPUTS):
            adaptive = pg.simulate(network, [0.0, 50.0], start=starts, inputs=inputs)
            alone = [pg.simulate(network, [0.0, 50.0], start=one, inputs=inputs).steps for one in starts]
            assert adaptive.steps.tolist() == [int(each) for each in alone]
            assert 20 < adaptive.steps.min() < 500


class TestMotion:
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_run_begins_with_the_force_and_rests_where_an_equilibrium_is(self, kind):
        network = make_network(6, 2, kind=kind)
        inputs = inputs_for(network, (), 3)
        state = pg.find_equilibrium(network, inputs)
        assert state.stable
        at = pg.simulate(network, [0.0, 3.0], start=state, inputs=inputs)
        apart = at.phases - at.phases[:, :1] if network.pinned else at.phases
        still = state.phases - state.phases[:1] if network.pinned else state.phases
        assert np.max(np.abs(apart - still)) < 1e-8
        away = np.random.default_rng(0).uniform(-1, 1, 6)
        if network.clamps_inputs:
            away[network.held] = state.phases[network.held]
        run = pg.simulate(network, [0.0], start=away, inputs=inputs)
        moving = np.setdiff1d(np.arange(6), network.held if network.clamps_inputs else [])
        force = pg.dynamics.force(network, away, inputs)
        turned = run.velocities[0] - force
        assert np.ptp(turned[moving]) < 1e-12  # without reciprocity `force` counts from the reference
        assert network.reciprocal is False or np.max(np.abs(turned[moving])) < 1e-12

    def test_terms_of_ones_own_move_too(self):
        network = pg.Network([[0, 1], [1, 2]], 2.0, [0.1, 0.0, -0.1], terms=[Tilt()], tilt=0.3)
        state = pg.find_equilibrium(network)
        run = pg.simulate(network, [0.0, 60.0])
        assert run.phases[-1] - run.phases[-1, 0] == pytest.approx(state.phases, abs=1e-8)

    def test_the_laboratory_turns_with_the_mean_frequency_and_with_nothing_where_the_frame_is_fixed(self, network):
        moved = network.replace(omega=network.omega + 3.0)
        runs = [pg.simulate(moved, [0.0, 2.0, 5.0], frame=frame) for frame in ("rotating", "laboratory")]
        turned = runs[1].phases - runs[0].phases
        assert turned == pytest.approx(np.outer([0.0, 2.0, 5.0], np.full(9, moved.omega.mean())), abs=1e-9)
        assert runs[1].velocities - runs[0].velocities == pytest.approx(np.full((3, 9), moved.omega.mean()), abs=1e-9)
        # A constant added to all frequencies moves nothing in the rotating frame.
        assert runs[0].phases == pytest.approx(pg.simulate(network, [0.0, 2.0, 5.0]).phases, abs=1e-7)
        field = pg.networks.ring(4, omega=[0.3, 0.2, 0.1, 0.4], field_strength=1.0)
        first, second = (pg.simulate(field, [0.0, 9.0], frame=frame).phases for frame in ("rotating", "laboratory"))
        assert np.array_equal(first, second)

    def test_inertia_and_damping_by_node_obey_the_swing_equation(self, begun, network):
        inertia, damping = np.linspace(0.5, 2, 9), np.linspace(0.3, 1.2, 9)
        moments = np.linspace(0.0, 10.0, 21)
        turning = network.replace(omega=network.omega + 0.7)
        coupling = pg.networks.to_matrix(turning)

        def rate(_time, state):
            angles = state[None, :9] - state[:9, None]
            pull = np.sum(coupling * np.sin(angles), axis=1)
            return np.concatenate([state[9:], (turning.omega + pull - damping * state[9:]) / inertia])

        common = turning.omega.sum() / damping.sum()  # at rest in the rotating frame
        first = np.concatenate([begun, np.full(9, common)])
        exact = solve_ivp(rate, (0, 10), first, method="DOP853", rtol=1e-11, atol=1e-11, t_eval=moments).y.T
        options = {"start": begun, "inertia": inertia, "damping": damping, "frame": "laboratory"}
        for method in ("adaptive", "rk4"):
            run = pg.simulate(turning, moments, method=method, tolerance=1e-10, **options)
            assert run.phases == pytest.approx(exact[:, :9], abs=1e-7)
            assert run.velocities == pytest.approx(exact[:, 9:], abs=1e-7)

    def test_a_pair_with_a_lag_follows_its_closed_form(self):
        # phi' = D - 2 K cos(lag) sin phi, and the pair turns K sin(lag) cos phi slower than it would.
        lag, strength, apart = 0.7, 1.3, 0.9
        pair = pg.Network([[0, 1]], strength, [2.0, 2.0 + apart], lag=lag)
        run = pg.simulate(pair, np.linspace(0, 40, 81), frame="laboratory")
        angle = np.arcsin(apart / (2 * strength * np.cos(lag)))
        assert np.diff(run.phases[-1])[0] == pytest.approx(angle, abs=1e-8)
        assert run.velocities[-1] == pytest.approx(2 + apart / 2 - strength * np.sin(lag) * np.cos(angle), abs=1e-8)
        equal = pg.simulate(pair.replace(omega=[2.0, 2.0]), [0.0, 0.5, 1.0], start=[0.0, 2.0])
        decay = np.exp(-2 * strength * np.cos(lag) * equal.times)
        assert np.tan(np.diff(equal.phases)[:, 0] / 2) == pytest.approx(np.tan(1.0) * decay, abs=1e-8)

    @pytest.mark.parametrize("kind", ["non-reciprocal", "lagging"])
    def test_without_reciprocity_a_network_locks_at_the_frequency_of_its_equilibrium(self, kind):
        network = make_network(6, 2, kind=kind)
        network = network.replace(omega=network.omega + 1.0)
        run = pg.simulate(network, np.linspace(0, 60, 61), tolerance=1e-7)
        assert run.locked_frequency == pytest.approx(pg.find_equilibrium(network).drift, abs=1e-6)
        assert abs(run.locked_frequency) > 1e-3

    def test_the_frame_of_unequal_damping_is_the_one_that_comes_to_rest(self, network):
        damping, moved = np.linspace(0.4, 2.0, 9), network.replace(omega=network.omega + 0.7)
        run = pg.simulate(moved, np.linspace(0, 60, 61), inputs=INPUTS, damping=damping, tolerance=1e-7)
        raw = moved.omega.copy()
        raw[list(moved.inputs)] = moved.input_scale * np.array(INPUTS)
        assert run.turning == pytest.approx(raw.sum() / damping.sum())
        assert np.max(np.abs(run.velocities[-1])) < 1e-5

    def test_a_pendulum_without_damping_keeps_its_energy(self):
        pair = pg.Network([[0, 1]], 1.0, [0.0, 0.0])
        run = pg.simulate(pair, np.linspace(0, 30, 61), start=[0.0, 2.0], inertia=1.0, damping=0.0, tolerance=1e-11)
        energy = 0.5 * np.sum(run.velocities**2, axis=1) + pg.dynamics.energy(pair, run.phases)
        assert np.ptp(energy) < 1e-8

    def test_a_nudge_leads_where_the_nudged_equilibrium_is(self, network):
        nudge = pg.Nudge(pg.PhaseTargets(), [0.3, -0.2], 0.2)
        state = pg.find_equilibrium(network, INPUTS, nudge=nudge)
        free = pg.find_equilibrium(network, INPUTS)
        for given in (nudge, lambda time: nudge if time > 1 else None):
            run = pg.simulate(network, [0.0, 20.0], start=free, inputs=INPUTS, nudge=given)
            assert run.phases[-1] - run.phases[-1, 0] == pytest.approx(state.phases, abs=1e-7)
        # What `force` says of a nudge is that of the equations, which the equilibrium balances.
        assert np.max(np.abs(pg.dynamics.force(network, state.phases, INPUTS, nudge=nudge)[network.free])) < 1e-12

    def test_inputs_that_change_are_followed(self):
        # One oscillator at a clamped one that turns: theta' = sin(t - theta), from rest.
        network = pg.Network([[0, 1]], 1.0, [0.0, 0.0], inputs=[0], input_mode="phase", input_scale=1.0)
        moments = np.linspace(0, 8, 17)
        run = pg.simulate(network, moments, inputs=lambda time: [time], tolerance=1e-11)
        exact = solve_ivp(lambda t, y: np.sin(t - y), (0, 8), [0.0], rtol=1e-11, atol=1e-11, t_eval=moments).y[0]
        assert run.phases[:, 1] == pytest.approx(exact, abs=1e-8)
        assert run.phases[:, 0] == pytest.approx(moments)
        # Frequencies that change: two free oscillators, d(theta_0 - theta_1) / dt = sin t - 2 sin(difference)
        pair = pg.Network([[0, 1]], 1.0, [0.0, 0.0], inputs=[0], input_scale=1.0)
        run = pg.simulate(pair, moments, inputs=lambda time: [np.sin(time)], tolerance=1e-11)
        exact = solve_ivp(
            lambda t, y: [np.sin(t) + np.sin(y[1] - y[0]), np.sin(y[0] - y[1])], (0, 8), [0.0, 0.0], rtol=1e-11,
            atol=1e-11, t_eval=moments,
        ).y.T  # fmt: skip
        assert run.phases == pytest.approx(exact, abs=1e-8)

    @pytest.mark.parametrize("method", ["adaptive", "rk4", "heun"])
    def test_what_does_not_depend_on_time_is_built_once(self, method, monkeypatch):
        network, spread, calls = pg.layered(2, 3, 1, seed=0), Sharing.spread, []
        monkeypatch.setattr(Sharing, "spread", lambda *given: calls.append(given[1]) or spread(*given))
        nudge = pg.Nudge(pg.PhaseTargets(), [0.1], 0.3)
        options = {"inputs": lambda time: [np.sin(time), 0.3], "nudge": lambda time: nudge if time > 0.2 else None}
        for end in (0.5, 5.0):
            pg.simulate(network, [0.0, end], method=method, tolerance=1e-4, **options)
        # Parameters, omega and coupling here, are laid out over nodes and edges once for each of the two runs.
        assert sorted(calls) == ["edges"] * 2 + ["nodes"] * 2

    def test_a_batch_is_its_samples(self, network):
        starts = np.random.default_rng(0).uniform(-3, 3, (2, 3, 9))
        for options in ({}, {"method": "rk4"}, {"noise": 0.1}):
            whole = pg.simulate(network, [0.0, 1.0, 3.0], start=starts, inputs=INPUTS, **options)
            assert whole.phases.shape == (3, 2, 3, 9)
            rows = pg.simulate(network, [0.0, 1.0, 3.0], start=starts.reshape(6, 9), inputs=INPUTS, **options)
            assert np.array_equal(whole.phases.reshape(3, 6, 9), rows.phases)
            first = pg.simulate(network, [0.0, 1.0, 3.0], start=starts[0, 0], inputs=INPUTS, **options)
            assert np.array_equal(first.phases, whole.phases[:, 0, 0])

    @pytest.mark.parametrize("frame", ["rotating", "laboratory"])
    @pytest.mark.parametrize("inputs", [INPUTS, lambda time: [1.0 + np.sin(time), 0.3]])
    def test_going_on_in_any_frame_is_the_same_as_not_stopping(self, network, begun, inputs, frame):
        options = {"inputs": inputs, "inertia": 1.0, "damping": np.linspace(0.5, 1.5, 9), "tolerance": 1e-9}
        whole = pg.simulate(network, [0.0, 2.0, 4.0], start=begun, frame="laboratory", **options)
        part = pg.simulate(network, [0.0, 2.0], start=begun, frame=frame, **options)
        rest = pg.simulate(network, [2.0, 4.0], start=part, frame="laboratory", **options)
        assert rest.velocities[-1] == pytest.approx(whole.velocities[-1], abs=1e-7)
        assert np.ptp(rest.phases[-1] - whole.phases[-1]) < 1e-7
        if frame == "laboratory":
            assert rest.phases[-1] == pytest.approx(whole.phases[-1], abs=1e-7)
        # Another frame is that of the drive at its own first time: it takes the same velocities elsewhere.
        turned = pg.simulate(network, [2.0, 4.0], start=part, **options)
        assert turned.velocities[-1] + turned.turning == pytest.approx(whole.velocities[-1], abs=1e-7)

    def test_relabelling_changes_nothing(self):
        rng = np.random.default_rng(0)
        omega, start, order = rng.normal(0, 0.5, 6), rng.uniform(-3, 3, 6), rng.permutation(6)
        pairs = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [0, 3]])
        place = np.argsort(order)
        mine = pg.simulate(pg.Network(pairs, 1.0, omega), [0.0, 4.0], start=start)
        theirs = pg.simulate(pg.Network(place[pairs], 1.0, omega[order], reference=3), [0.0, 4.0], start=start[order])
        assert theirs.phases == pytest.approx(mine.phases[:, order], abs=1e-8)


class TestNoise:
    """Standard errors of a variance of n normal numbers are sqrt(2 / n) of it."""

    RUNS = 2000

    def off(self, values, theory):
        return (np.var(values) / theory - 1) / np.sqrt(2 / self.RUNS)

    def test_phases_diffuse_as_they_should(self):
        noise, network = np.array([0.02, 0.1, 0.0]), pg.Network([[0, 1], [1, 2]], 1e-12, np.zeros(3))
        run = pg.simulate(network, [0.0, 4.0], start=np.zeros((self.RUNS, 3)), noise=noise, damping=2.0, step=0.5)
        for k in range(2):
            assert abs(self.off(run.phases[-1, :, k], 2 * noise[k] * 4.0 / 2.0**2)) < 3
        assert np.all(run.phases[-1, :, 2] == pytest.approx(0.0, abs=1e-10))
        # The noise does not turn anybody: the mean frequency is what it was.
        assert abs(run.phases[-1, :, 1].mean()) < 4 * np.sqrt(2 * 0.1 * 4 / 4 / self.RUNS)

    def test_a_locked_state_varies_as_an_ornstein_uhlenbeck_process(self, network):
        noise, state = 1e-4, pg.find_equilibrium(network, INPUTS)
        start = np.tile(state.phases, (self.RUNS, 1))
        run = pg.simulate(network, [0.0, 4.0], start=start, inputs=INPUTS, noise=noise, step=0.02)
        inverse = np.linalg.inv(pg.dynamics.laplacian(network, state.phases, INPUTS))
        angles = run.phases[-1] - run.phases[-1][:, [0]]
        for k, node in enumerate(network.free):
            assert abs(self.off(angles[:, node], noise * inverse[k, k])) < 3.5

    def test_paths_converge_with_order_one(self, network, begun):
        # The same Brownian path in steps of every length, against one sixteen times finer than the finest.
        finest, runs = 1024, 8
        normals = np.random.default_rng(3).standard_normal((runs, finest, 9))
        motion = Motion.of(Drive((network,), INPUTS), 0.0, (runs,), np.ones(9), None)

        class Coarse:
            def __init__(self, path, count):
                self.steps = path.reshape(count, -1, 9).sum(axis=1) / np.sqrt(finest / count)

            def standard_normal(self, shape):
                assert shape == self.steps.shape
                return self.steps

        def ends(count, kind):
            streams = tuple(Coarse(path, count) for path in normals)
            return kind(motion, 1 / count, "heun", np.full(9, 0.3), streams).between(
                np.tile(begun, (runs, 1)), 0.0, 1.0
            )

        exact = ends(finest, CompiledSteps)
        errors = [np.mean(np.abs(ends(count, CompiledSteps) - exact)) for count in (16, 32, 64)]
        assert np.log2(errors[0] / errors[2]) / 2 == pytest.approx(1.0, abs=0.15)
        assert ends(64, FixedSteps) == pytest.approx(ends(64, CompiledSteps), abs=1e-12)

    def test_inertia_has_the_temperature_of_the_noise(self):
        # Equipartition: m <v^2> = D / d
        network = pg.Network([[0, 1]], 1.0, [0.0, 0.0])
        start = np.zeros((self.RUNS, 2))
        run = pg.simulate(network, [0.0, 12.0], start=start, noise=0.01, inertia=0.5, damping=0.8, step=0.04)
        assert abs(self.off(run.velocities[-1, :, 0], 0.01 / 0.8 / 0.5)) < 3

    def test_seeds_are_runs(self, network):
        first, again, other = (
            pg.simulate(network, [0.0, 0.2], start=np.zeros((2, 9)), noise=0.1, seed=seed) for seed in (0, 0, 1)
        )
        assert np.array_equal(first.phases, again.phases)
        assert not np.any(first.phases[-1] == other.phases[-1])
        assert not np.any(first.phases[-1, 0] == first.phases[-1, 1])


class TestTrajectory:
    def test_partially_locked_states_are_told(self):
        network = pg.Network([[0, 1], [1, 2], [2, 3]], 1.0, [0.0, 0.2, 0.1, 4.0])
        assert pg.find_equilibrium(network).status == pg.Status.CANNOT_LOCK
        run = pg.simulate(network, np.linspace(0, 100, 101), frame="laboratory", method="rk4")
        assert run.locked.tolist() == [True, True, True, False]
        assert "3 of 4 locked" in repr(run)
        assert run.time_to_lock() == np.inf
        # Two oscillators: the drifting one turns at sqrt(w^2 - 4 K^2) relative to the other.
        pair = pg.simulate(pg.Network([[0, 1]], 1.0, [0.0, 3.0]), np.linspace(0, 100, 101), method="rk4")
        assert np.diff(pair.frequencies(1.0))[0] == pytest.approx(np.sqrt(5), abs=2 * np.pi / 100)
        assert not pair.locked.any()
        assert np.isnan(pair.locked_frequency)
        assert "none locked" in repr(pair)

    @pytest.mark.parametrize("count", [2, 3, 9, 201])
    def test_a_slip_on_the_way_and_how_often_one_looks_do_not_hide_that_all_are_locked(self, count):
        # Phases turn against each other until about t = 35, and the ring rests at the end.
        network = network_in_time("ring", 0)
        fine = pg.simulate(network, np.linspace(0, 50, 501), start="random", seed=0)
        apart = fine.phases - fine.phases.mean(axis=1, keepdims=True)
        assert np.max(np.ptp(apart[300:], axis=0)) > 0.5
        assert np.ptp(fine.velocities[-1]) * 50 < 0.5
        run = pg.simulate(network, np.linspace(0, 50, count), start="random", seed=0)
        assert run.locked.all()
        assert run.locked_frequency == pytest.approx(0.0, abs=1e-3)
        assert run.locked.all() == pg.find_equilibrium(network, start=run.phases[-1]).stable

    @pytest.mark.parametrize("time", [1.0, 10.0, 100.0])
    def test_a_pair_that_cannot_lock_is_not_called_locked_however_short_the_run(self, time):
        pair = pg.Network([[0, 1]], 0.1, [-0.5, 0.5])
        for count in (2, 20, 200):
            assert not pg.simulate(pair, np.linspace(0, time, count)).locked.any()

    def test_of_two_clusters_the_larger_is_locked(self):
        # Two rings at frequencies of their own, with a link too weak to hold them together.
        edges = [[0, 1], [1, 2], [0, 2], [3, 4], [4, 5], [5, 6], [3, 6], [2, 3]]
        network = pg.Network(edges, [2.0] * 7 + [0.1], [0.0, 0.1, -0.1, 3.0, 3.1, 2.9, 3.0])
        run = pg.simulate(network, np.linspace(0, 60, 121), method="rk4", tolerance=1e-6, frame="laboratory")
        assert run.locked.tolist() == [False] * 3 + [True] * 4
        assert run.locked_frequency == pytest.approx(3.0, abs=0.02)
        assert run.order_parameter([0, 1, 2])[-1] > 0.99
        # The smaller one is locked among itself, which its frequencies show.
        assert np.ptp(run.frequencies()[:3]) < 0.05

    def test_noise_does_not_hide_who_is_locked(self):
        network = pg.Network([[0, 1], [1, 2], [2, 3]], 1.0, [0.0, 0.2, 0.1, 4.0])
        run = pg.simulate(network, np.linspace(0, 100, 201), noise=0.01)
        assert run.locked.tolist() == [True, True, True, False]
        assert run.time_to_lock() == np.inf

    def test_order_parameters_are_lengths_of_mean_phasors(self):
        phases = np.random.default_rng(0).uniform(-3, 3, (2, 5))
        run = pg.simulate(pg.Network([[0, 1], [0, 2], [1, 3], [3, 4]], 1.0, np.zeros(5)), [0.0], start=phases)
        assert run.order_parameter()[0] == pytest.approx(np.abs(np.exp(1j * phases).mean(axis=1)))
        assert run.order_parameter([1, 4])[0] == pytest.approx(np.abs(np.exp(1j * phases[:, [1, 4]]).mean(axis=1)))
        local = run.local_order()[0]
        assert local[:, 0] == pytest.approx(np.abs(np.exp(1j * phases[:, [1, 2]]).mean(axis=1)))
        assert local[:, 2] == pytest.approx(1.0)
        everyone = pg.simulate(pg.networks.mean_field(5), [0.0], start=phases)
        assert everyone.local_order()[0] == pytest.approx(np.repeat(everyone.order_parameter()[0][:, None], 5, axis=1))

    def test_winding_is_counted_around_rings_and_cycles(self):
        turns = 2 * np.pi * np.arange(9) / 9
        run = pg.simulate(pg.networks.ring(9), [0.0, 5.0], start=[turns, 2 * turns, 0 * turns])
        assert np.abs(run.winding()).tolist() == [[1, 2, 0], [1, 2, 0]]
        assert np.array_equal(run.winding(range(9)), run.winding(range(8, -1, -1)) * -1)
        with pytest.raises(ValueError, match="not a ring: give the nodes of a 'cycle'"):
            pg.simulate(pg.networks.complete(5), [0.0]).winding()
        with pytest.raises(ValueError, match="three nodes at least"):
            run.winding([0, 1])

    def test_times_of_locking_are_when_velocities_agree(self, network, begun):
        run = pg.simulate(network, np.linspace(0, 20, 201), start=begun, inputs=INPUTS)
        since = run.time_to_lock(1e-2)
        apart = np.max(np.abs(run.velocities), axis=1)
        assert np.all(apart[run.times >= since] <= 1e-2)
        assert apart[run.times < since][-1] > 1e-2
        assert run.locked.all()
        assert pg.simulate(network, [0.0, 1.0], start=pg.find_equilibrium(network)).time_to_lock() == 0

    def test_a_trajectory_is_frozen_and_draws_itself(self, network):
        run = pg.simulate(network, np.linspace(0, 9, 10), start="random", inputs=np.zeros((3, 2)), seed=1)
        assert "3 samples of 9 oscillators, 10 times from 0 to 9, rotating frame" in repr(run)
        with pytest.raises(ValueError, match="read-only"):
            run.phases[0, 0, 0] = 1.0
        from matplotlib.figure import Figure

        for kind, lines in (("phases", 9), ("order", 5), ("frequencies", 9)):
            axes = run.plot(Figure().subplots(), kind=kind)
            assert len(axes.lines) == lines
        assert run.plot(Figure().subplots()).get_title(loc="left").endswith("rotating frame, first of 3 samples")
        with pytest.raises(ValueError, match="'kind' parameter of Trajectory"):
            run.plot(kind="circle")

    def test_locked_phases_are_drawn_beside_each_other(self):
        from matplotlib.figure import Figure

        # Full turns apart, which mean nothing; a drifting one is drawn as it is.
        network = pg.Network([[0, 1], [1, 2], [2, 3]], 1.0, [0.0, 0.2, 0.1, 4.0])
        start = 2 * np.pi * np.array([0.0, 1.0, -1.0, 5.0])
        run = pg.simulate(network, np.linspace(0, 40, 81), start=start, method="rk4", tolerance=1e-6)
        lines = [line.get_ydata() for line in run.plot(Figure().subplots()).lines]
        assert np.ptp([line[-1] for line in lines[:3]]) < np.pi
        assert all(np.ptp((line - run.phases[:, k]) / (2 * np.pi)) < 1e-12 for k, line in enumerate(lines))
        assert np.array_equal(lines[3], run.phases[:, 3])


class Runaway(pg.terms.Term):
    """A force that grows faster than any phase: theta' = theta^3."""

    every = pg.terms.Parameter("growth")
    symmetric = False
    fixes_gauge = True

    def grounded(self, graph, values):
        return np.ones(graph.size, dtype=bool)

    def force(self, graph, values, phases):
        return values["growth"] * phases**3

    def energy(self, graph, values, phases):
        raise NotImplementedError

    def stiffness(self, graph, values, phases):
        return pg.terms.Stiffness(diagonal=-3 * values["growth"] * phases**2)

    def stiffest(self, graph, values):
        return pg.terms.Stiffness(diagonal=np.abs(values["growth"]))

    def capacity(self, graph, values):
        return np.abs(values["growth"])

    def energy_slopes(self, graph, values, phases):
        raise NotImplementedError

    def force_slopes(self, graph, values, phases, response):
        return {"growth": response * phases**3}


class TestBadInput:
    @pytest.mark.parametrize("method", ["adaptive", "rk4", "heun"])
    def test_what_blows_up_says_when_and_which_oscillator(self, method):
        network = pg.Network([[0, 1], [1, 2]], 1e-3, np.zeros(3), terms=[Runaway()], growth=[0.0, 1.0, 0.0])
        # theta' = theta^3 from 2 is infinite at t = 1/8; the other samples and networks rest.
        options = {} if method == "adaptive" else {"step": 1e-4}
        start = np.zeros((2, 1, 3))
        start[1, 0, 1] = 2.0
        tame = network.replace(growth=[0.0, 1e-9, 0.0])
        said = r"at time 0\.12\d*, (first that of|where) oscillator 1 in sample \(1, 1\)"
        with pytest.raises(ValueError, match=said):
            pg.simulate([tame, network], [0.0, 1.0], start=start, method=method, **options)

    @pytest.mark.parametrize("method", ["rk4", "heun"])
    def test_compiled_steps_blame_the_oscillator_that_breaks_down(self, method):
        # An inertia of 1e-3 makes an oscillator relax a hundred times in a step; its neighbours follow.
        inertia = [1.0, 1.0, 1e-3, 1.0]
        with (
            pytest.warns(UserWarning, match="longer than"),
            pytest.raises(ValueError, match=r"at time [\d.]+, first that of oscillator 2 in sample 1"),
        ):
            pg.simulate(
                pg.networks.ring(4),
                [0.0, 1e3],
                start=[[0.0] * 4, [0.1, 0, 0, 0]],
                inertia=inertia,
                method=method,
                step=0.1,
            )

    def test_a_step_too_long_for_an_inertia_is_warned_of_and_found_out(self):
        with (
            pytest.warns(UserWarning, match="Steps of 0.1 are longer than 'rk4' can be trusted with here"),
            pytest.raises(
                ValueError, match=r"no longer finite at time [\d.]+, first that of oscillator \d in sample 0"
            ),
        ):
            pg.simulate(pg.networks.ring(4, omega=[0.1, 0, 0, 0]), [0.0, 1e3], inertia=1e-3, method="rk4", step=0.1)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"times": [0, 1, 1]}, "'times' parameter of simulate must increase from one to the next. Got 1 after 1"),
            ({"times": [0, 2, 1]}, "Got 1 after 2"),
            ({"times": [[0, 1]]}, "'times' parameter of simulate must be a list of times. Got shape (1, 2)"),
            ({"times": [0, np.nan]}, "'times' parameter of simulate must be finite"),
            ({"frame": "still"}, "'frame' parameter of simulate must be one of 'rotating', 'laboratory'"),
            ({"method": "euler"}, "'method' parameter of simulate must be one of 'auto'"),
            ({"noise": 0.1, "method": "adaptive"}, "Noise needs method='heun'"),
            ({"noise": 0.1, "method": "rk4"}, "Noise needs method='heun'"),
            ({"damping": -1.0}, "'damping' parameter of simulate must not be negative. Got -1 at [0]"),
            ({"inertia": [1.0, 0.0, 1.0, 1.0]}, "must be positive for every oscillator. Oscillator 1 has none"),
            ({"seed": "a", "start": "random"}, "'seed' parameter of simulate must be a whole number of at least 0"),
            ({"inputs": lambda time: [np.nan if time > 0.5 else 0.1]}, "'inputs' parameter of simulate must be finite"),
            ({"noise": -1.0}, "'noise' parameter of simulate must not be negative. Got -1 at [0]"),
            ({"inertia": [1, 0, 1, 1]}, "must be positive for every oscillator. Oscillator 1 has none"),
            ({"inertia": [1, 1]}, "'inertia' parameter of simulate must have shape (4,), or be one number. Got"),
            ({"damping": 0.0}, "Oscillator 0 has no damping and no inertia"),
            ({"start": [0.0, 1.0]}, "'start' parameter of simulate must have a last axis of length 4"),
            ({"start": "warm"}, "'start' parameter of simulate must be one of 'zero', 'random'"),
            ({"step": 0.1, "method": "adaptive"}, "'step' parameter of simulate is for 'rk4' and 'heun'"),
            ({"step": -1.0}, "'step' parameter of simulate must be a float greater than 0"),
            ({"tolerance": 0.0}, "'tolerance' parameter of simulate must be a float greater than 0"),
            ({"inputs": lambda time: [0.1, 0.2]}, "What acts from outside at time 0 makes no sense"),
            ({"inputs": lambda time: [[0.1]] * (1 + (time > 0.5))}, "must return one shape at all times"),
            ({"nudge": lambda time: pg.Nudge(pg.PhaseTargets(), [[0.1]] * (1 + (time > 0.5)), 0.1)}, "(2,) at time"),
            ({"inputs": [[0.1]] * 3, "start": np.zeros((2, 4))}, "of batch shape (3,) and a start of batch shape (2,)"),
            ({"nudge": pg.Nudge(pg.PhaseTargets(), [0.1], 1j)}, "must have a real strength. Got 1j"),
        ],
    )  # fmt: skip
    def test_wrong_input_is_told_in_words(self, options, words):
        network = pg.networks.ring(4, inputs=[1], outputs=[3])
        times = options.pop("times", [0.0, 1.0])
        with pytest.raises(ValueError, match=re.escape(words)) as caught:
            pg.simulate(network, times, **options)
        assert str(caught.value).count(". ") <= 3

    def test_no_samples_and_a_single_time_are_runs_too(self, network):
        for options in ({"method": "adaptive"}, {"method": "rk4"}, {"noise": 0.1}):
            run = pg.simulate(network, [0.0, 1.0], start=np.zeros((0, 9)), **options)
            assert run.phases.shape == (2, 0, 9)
            assert run.locked.shape == (0, 9)
            assert repr(run) == "Trajectory(0 samples of 9 oscillators, 2 times from 0 to 1, rotating frame; empty)"
        data = pg.simulate(network, [3.0], noise=0.1, seed=None).as_dict()
        assert "locked" not in data
        assert data["times"] == [3.0]

    def test_progress_is_every_time(self, network):
        seen = []
        pg.simulate(network, [0.0, 0.5, 1.0], progress=seen.append)
        assert seen == [0.0, 0.5, 1.0]


class TestTransition:
    """Finite numbers of oscillators at quantiles differ from infinitely many by some 1 / N."""

    @pytest.mark.parametrize("name", ["lorentzian", "gaussian", "uniform"])
    def test_order_parameters_are_those_of_theory(self, name):
        critical = {"lorentzian": 1.0, "gaussian": 0.5 * np.sqrt(8 / np.pi), "uniform": 2 / np.pi}[name]
        found = pg.simulation.transition(name, critical * np.array([0.6, 1.5, 2.5]), size=3000)
        assert found.critical == pytest.approx(critical)
        assert found.theory[0] == 0
        assert found.error < 0.02
        # The theory itself: r = mean of sqrt(1 - (w / K r)^2) over frequencies that are locked
        for coupling, order in zip(found.couplings[1:], found.theory[1:], strict=True):
            chances = (np.arange(400_000) + 0.5) / 400_000
            from phasegrad.simulation._transition import _quantiles

            share = np.clip(1 - (_quantiles(name, chances, 0.5, 0.0) / (coupling * order)) ** 2, 0, None)
            assert np.mean(np.sqrt(share)) == pytest.approx(order, abs=1e-4)

    def test_the_locked_branch_begins_with_the_square_root_of_what_is_above_the_critical_coupling(self):
        """Kuramoto: r^2 = 16 (K - Kc) / (-pi g''(0) Kc^4) to first order, here r = 0.0003."""
        critical, above = 0.5 * np.sqrt(8 / np.pi), 3e-8
        found = pg.simulation.transition("gaussian", [critical * (1 + above)], size=4)
        curvature = 1 / (0.5**3 * np.sqrt(2 * np.pi))
        assert found.theory[0] == pytest.approx(np.sqrt(16 * above / (np.pi * curvature * critical**3)), rel=1e-2)

    def test_frequencies_of_ones_own_have_no_theory(self):
        omega = np.random.default_rng(0).normal(0, 0.5, 200)
        found = pg.simulation.transition(omega, [2.0, 4.0], sweep="up")
        assert (found.theory, found.down, found.hysteresis, found.critical) == (None, None, None, None)
        state = pg.find_equilibrium(pg.networks.mean_field(200, 4.0, omega=omega))
        assert found.order[1] == pytest.approx(np.abs(np.exp(1j * state.phases).mean()), abs=1e-3)
        assert "given frequencies" in str(found)

    @pytest.mark.slow
    def test_two_peaks_remember_where_they_come_from(self):
        found = pg.simulation.transition("bimodal", [1.7, 1.85, 2.2], size=20_000, centre=0.49, sweep="both")
        assert found.hysteresis[1] > 0.3
        assert abs(found.hysteresis[[0, 2]]).max() < 0.05
        assert found.error < 0.05

    @pytest.mark.slow
    def test_a_hundred_thousand_oscillators_follow_theory_closely(self):
        assert pg.simulation.transition("lorentzian", [1.1, 1.5, 2.0, 3.0]).error < 0.005

    @pytest.mark.parametrize(
        ("arguments", "options", "words"),
        [
            (("cauchy",), {}, "'frequencies' parameter of transition must be one of 'lorentzian'"),
            (("lorentzian", [2.0, 1.0]), {}, "must be a list of positive numbers that increase"),
            (("lorentzian",), {"centre": 1.0}, "'centre' of transition is for 'bimodal' frequencies"),
            (("bimodal",), {}, "'centre' of transition is for 'bimodal' frequencies, and above 0"),
            (([0.1, 0.2],), {}, "have no critical coupling to go by: give 'couplings'"),
            (("lorentzian",), {"sweep": "sideways"}, "'sweep' parameter of transition must be one of"),
            (("lorentzian",), {"draw": "lots"}, "'draw' parameter of transition must be one of"),
        ],
    )
    def test_wrong_input_is_told_in_words(self, arguments, options, words):
        with pytest.raises(ValueError, match=words):
            pg.simulation.transition(*arguments, **options)

    def test_a_transition_draws_itself(self):
        from matplotlib.figure import Figure

        found = pg.simulation.transition("lorentzian", [2.0, 4.0], size=100, draw="random", sweep="both")
        axes = found.plot(Figure().subplots())
        assert len(axes.lines) == 5  # two ways, each with theory, and the critical coupling
        assert np.array_equal(axes.lines[1].get_ydata(), found.down)


class TestCommand:
    def test_a_run_is_shown_drawn_and_written(self, tmp_path, monkeypatch):
        from typer.testing import CliRunner

        monkeypatch.chdir(tmp_path)
        words = ["simulate", "ring", "--size", "12", "--spread", "0.1", "--time", "40", "--times", "41"]
        result = CliRunner().invoke(app, [*words, "--plot", "run.svg", "--json", "run.json"])
        assert result.exit_code == 0
        assert "order parameter" in result.output
        data = json.loads((tmp_path / "run.json").read_text())
        assert len(data["phases"]) == 41
        assert data["locked"] == [True] * 12
        assert "12 of 12 locked" in (tmp_path / "run.svg").read_text()
        assert "12 oscillators, rotating frame: all locked" in result.output
        loose = CliRunner().invoke(app, ["simulate", "ring", "--spread", "99", "--time", "5", "--json", "loose.json"])
        assert loose.exit_code == 1
        assert json.loads((tmp_path / "loose.json").read_text())["locked_frequency"] is None

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["rong"], "no network or model file"),
            (["layered", "--spread", "1"], "no effect"),
            (["layered", "--inputs", "1,2,3"], "--inputs must be 2 numbers separated by commas, one for each input"),
            (["layered", "--inputs", "nan,0"], "--inputs must be 2 numbers separated by commas, one for each input"),
            (["ring", "--inputs", "1"], "--inputs has no effect on ring, which has no inputs"),
            (["ring", "--damping", "0"], "--damping must be above 0 without --inertia"),
        ],
    )
    def test_wrong_words_are_told(self, words, said):
        from typer.testing import CliRunner

        assert said in str(CliRunner().invoke(app, ["simulate", *words]).exception)

    def test_a_model_that_clamps_its_inputs_asks_for_them(self, tmp_path):
        from typer.testing import CliRunner

        network = pg.Network([[0, 1]], 1.0, [0.0, 0.0], inputs=[0], outputs=[1], input_mode="phase")
        place = tmp_path / "clamped.npz"
        pg.Model(network, pg.PhaseTargets(), ["out"], ["in"]).save(place)
        missing = CliRunner().invoke(app, ["simulate", str(place)])
        assert "--inputs is missing" in str(missing.exception)
        assert CliRunner().invoke(app, ["simulate", str(place), "--inputs", "0.3", "--time", "20"]).exit_code == 0


class TestStudy:
    def test_the_page_shows_what_the_file_holds_and_every_check_is_kept(self):
        from pathlib import Path

        from phasegrad_paper.studies import ON_REQUEST, Verdict
        from phasegrad_paper.studies.transition import STUDY, TransitionResults

        docs = Path(__file__).parents[2] / "docs"
        results = TransitionResults.read(docs / "results" / "transition.json")
        assert STUDY in ON_REQUEST
        page = (docs / "dynamics.md").read_text(encoding="utf-8")
        assert results.with_tables(page) == page
        assert [each.verdict for each in results.judged()] == [Verdict.REPRODUCED] * len(STUDY.checks)

    def test_pieces_are_what_they_say(self):
        from phasegrad_paper.studies.transition.claims import diffusion, locked_variance, synchrony

        assert synchrony("lorentzian", [2.0], 500, "down", 0.0)["theory"] == [pytest.approx(np.sqrt(0.5))]
        assert abs(diffusion(0.05, 1.0, 200)["errors"]) < 4
        assert abs(locked_variance(1e-4, 2.0, 200)["errors"]) < 4


def test_a_layered_network_has_as_many_oscillators_as_asked_for():
    assert network_in_time("layered", 0, size=7).size == 7
    with pytest.raises(ValueError, match=r"--size must be at least 5.*Got 3"):
        network_in_time("layered", 0, size=3)
