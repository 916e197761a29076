"""Every equilibrium propagation against the exact gradient: orders in the nudge, laws of the error, and refusals."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from random_networks import KINDS, RECIPROCAL, inputs_for, make_network
from scipy.optimize import brentq, root

import phasegrad as pg
from phasegrad.dynamics import build_system
from phasegrad.gradients import Propagation, unwarned
from phasegrad.training import prepare
from phasegrad_paper.studies import ON_REQUEST, STUDIES, Verdict
from phasegrad_paper.studies.reciprocity import STUDY, ReciprocityResults, work
from phasegrad_paper.studies.reciprocity.__main__ import main as runner

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results" / "reciprocity.json"
TARGET = (-0.2, 0.2)
ASYMMETRIC = {"correction": "asymmetric"}
ONE_WAY = ("drifting", "grounded", "field", "second harmonic", "clamped", "driven")


def one_way(kind, seed=0, size=8):
    """A network whose every coupling differs by direction, in one of the frames that there are."""
    base = make_network(size, seed, kind=kind if kind in KINDS else "plain")
    reverse = np.random.default_rng(seed + 99).uniform(0.3, 2.0, base.n_edges)
    options = {name: base.parameters[name] for name in base.parameters if name not in ("coupling", "omega")}
    if kind in ("clamped", "driven"):
        options |= {"inputs": base.inputs, "input_mode": base.input_mode, "input_scale": base.input_scale}
    return pg.Network(
        base.edges,
        base.coupling,
        base.omega,
        coupling_reverse=reverse,
        outputs=base.outputs,
        interaction=base.interaction,
        grounded=kind == "grounded",
        **options,
    )


def asked(network, batch=(2,), seed=0):
    """What a gradient method takes, with inputs where the network has any."""
    equilibrium = pg.find_equilibrium(network, inputs_for(network, batch, seed))
    assert equilibrium.stable.all()
    return network, equilibrium, pg.PhaseTargets(), TARGET


def everything(network):
    return (*network.parameters, *(["inputs"] if network.inputs else []))


def off(gradient, exact):
    """The largest error of an entry by any parameter, as a share of that parameter's largest entry."""
    return max(
        float(np.max(np.abs(gradient[name] - exact[name])) / np.max(np.abs(exact[name]))) for name in exact.values
    )


def order(method, question, sizes, name="beta", **options):
    """The power of the error in what is named, from halving it."""
    wrt = options.pop("wrt", everything(question[0]))
    exact = pg.adjoint(*question, wrt=wrt)
    with unwarned():
        errors = [off(method(*question, wrt=wrt, **{name: size}, **options), exact) for size in sizes]
    return np.log2(np.array(errors[:-1]) / np.array(errors[1:]))


class TestCorrection:
    @pytest.mark.parametrize("kind", ONE_WAY)
    def test_its_laplacian_is_the_slope_of_its_force_and_transposed_at_the_free_state(self, kind):
        network, equilibrium, _, _ = asked(one_way(kind), (1,))
        phases = np.atleast_2d(equilibrium.phases)
        system, _ = build_system(network, equilibrium.inputs)
        corrected, free = system.corrected(phases), network.graph.free
        moved = corrected.place(phases + 0.1 * np.random.default_rng(0).standard_normal(phases.shape))
        step = 1e-6
        units = np.eye(network.size)[free]
        slopes = [(corrected.force(moved - step * u) - corrected.force(moved + step * u))[0, free] for u in units]
        assert np.allclose(corrected.laplacian(moved)[0], np.array(slopes).T / (2 * step), atol=1e-8)
        if not system.drifts:
            assert np.allclose(corrected.laplacian(phases)[0], system.laplacian(phases)[0].T, atol=1e-14)
        assert np.allclose(corrected.force(phases), system.force(phases), atol=1e-15)
        values = [np.sort_complex(np.linalg.eigvals(each.laplacian(phases)[0])) for each in (system, corrected)]
        assert np.allclose(values[0].real, values[1].real, atol=1e-8)

    @pytest.mark.parametrize("kind", ONE_WAY)
    def test_the_error_is_of_the_order_of_the_scheme_without_reciprocity_too(self, kind):
        question = asked(one_way(kind))
        assert order(pg.two_phase, question, (4e-3, 2e-3), **ASYMMETRIC) == pytest.approx(1, abs=0.05)
        assert order(pg.gradients.random_sign, question, (4e-3, 2e-3), **ASYMMETRIC) == pytest.approx(1, abs=0.05)
        assert order(pg.centred, question, (0.04, 0.02), **ASYMMETRIC) == pytest.approx(2, abs=0.05)
        assert order(pg.centred, question, (0.1, 0.05), points=4, **ASYMMETRIC) == pytest.approx(4, abs=0.3)
        wrt = everything(question[0])
        exact = pg.adjoint(*question, wrt=wrt)
        assert off(pg.gradients.holomorphic(*question, wrt=wrt, **ASYMMETRIC), exact) < 1e-10

    @given(seed=st.integers(0, 2**31), size=st.integers(3, 10), grounded=st.booleans())
    @settings(max_examples=8)
    def test_no_network_knows_asymmetry_any_more(self, seed, size, grounded):
        network = make_network(size, seed, kind="non-reciprocal").replace(grounded=grounded)
        equilibrium = pg.find_equilibrium(network)
        target = equilibrium.phases[list(network.outputs)] + 0.2
        question = (network, equilibrium, pg.PhaseTargets(), target)
        wrt = tuple(network.parameters)
        corrected = pg.centred(*question, wrt=wrt, **ASYMMETRIC)
        exact = pg.adjoint(*question, wrt=wrt)
        assert 1 - pg.gradients.cosine(corrected, exact) < 1e-9
        assert 1 - pg.gradients.cosine(pg.gradients.dyadic(*question, wrt=wrt), exact) < 1e-9
        for name in wrt:
            # What a gradient says of itself covers where it is.
            assert np.all(np.abs(corrected[name] - exact[name]) <= corrected.error[name])

    def test_it_warns_no_more_and_the_plain_one_says_what_to_do(self):
        question = asked(one_way("drifting"))
        with pytest.warns(pg.gradients.GradientWarning, match="not reciprocal.*Use correction='asymmetric', or dyadic"):
            pg.centred(*question)
        pg.centred(*question, **ASYMMETRIC)

    def test_reciprocal_coupling_is_not_touched_by_a_bit(self):
        question = asked(make_network(8, 0, kind="all terms"))
        for method in (pg.two_phase, pg.centred, pg.gradients.holomorphic):
            assert np.array_equal(method(*question).omega, method(*question, **ASYMMETRIC).omega)

    def test_a_common_frequency_and_other_labels_change_nothing(self):
        network = one_way("drifting")
        first = pg.centred(*asked(network), beta=0.01, **ASYMMETRIC)
        faster = pg.centred(*asked(network.replace(omega=network.omega + 5.0)), beta=0.01, **ASYMMETRIC)
        assert np.allclose(faster.omega, first.omega, rtol=1e-8, atol=1e-10)
        swap = np.array([0, 2, 1, 3, 4, 5, 6, 7])
        relabelled = pg.Network(
            swap[network.edges],
            network.coupling,
            network.omega[swap],
            outputs=network.outputs,
            coupling_reverse=network.coupling_reverse,
            interaction=network.interaction,
        )
        turned = pg.centred(*asked(relabelled), beta=0.01, **ASYMMETRIC)
        assert np.allclose(turned.omega, first.omega[..., swap], rtol=1e-8, atol=1e-10)

    def test_no_oscillator_is_singled_out_by_the_correction(self):
        """A cost of phase differences knows no reference: neither do gradients at a strong nudge."""
        network = one_way("drifting")
        found = []
        for reference in (0, 3):
            moved = network.replace(reference=reference)
            question = (moved, pg.find_equilibrium(moved), pg.objectives.OutputDifferences(), 0)
            with unwarned():
                found.append(pg.two_phase(*question, beta=0.2, **ASYMMETRIC).omega)
        assert np.allclose(*found, rtol=1e-8, atol=1e-10)

    def test_a_batch_is_its_samples(self):
        network = one_way("driven")
        inputs = inputs_for(network, (4,), 0)
        whole = pg.find_equilibrium(network, inputs)
        both = [pg.centred(network, whole, pg.PhaseTargets(), TARGET, beta=0.01, **ASYMMETRIC).omega[2]]
        alone = pg.find_equilibrium(network, inputs[2])
        both.append(pg.centred(network, alone, pg.PhaseTargets(), TARGET, beta=0.01, **ASYMMETRIC).omega)
        assert np.allclose(*both, rtol=1e-9, atol=1e-12)

    def test_a_meter_reads_a_corrected_network_too(self):
        question = asked(one_way("grounded"), ())
        options = {"nudge": "frozen", "readout": pg.measurement.Readout(1e-5), "beta": 0.5, "frequencies": "raw"}
        measured = pg.centred(*question, **options, **ASYMMETRIC)
        exact = pg.adjoint(*question, frequencies="raw")
        assert pg.gradients.cosine(measured, exact) > 0.999
        assert np.all(np.abs(measured.omega - exact.omega) <= measured.error["omega"])

    def test_another_correction_is_refused(self):
        with pytest.raises(ValueError, match=r"'correction' parameter of two_phase must be .*asymmetric"):
            pg.two_phase(*asked(one_way("drifting")), correction="symmetric")


class TestDyadic:
    @pytest.mark.parametrize("kind", [*KINDS, *ONE_WAY[1:3]])
    def test_the_error_is_of_second_order_whatever_the_coupling(self, kind):
        network = one_way(kind) if kind in ONE_WAY[1:3] else make_network(8, 3, kind=kind)
        assert order(pg.gradients.dyadic, asked(network), (0.1, 0.05)) == pytest.approx(2, abs=0.05)

    @pytest.mark.parametrize("kind", ["plain", "grounded", "drifting"])
    def test_the_copies_rest_where_their_joint_function_is_stationary(self, kind):
        """A second solution, by SciPy, of differences of A = -d . F(m) + beta / 2 [C(theta_+) + C(theta_-)]."""
        network = make_network(5, 3) if kind == "plain" else one_way(kind, 3, 5)
        equilibrium, beta, size = pg.find_equilibrium(network), 0.3, network.graph.free.size
        free, reference = network.graph.free, network.reference

        def whole(moving, *, spread):
            phases = np.zeros(network.size)
            phases[free] = moving
            if spread and kind == "drifting":
                phases[reference] = -np.sum(moving)
            return phases

        def joint(unknown):
            middle, apart = whole(unknown[:size], spread=False), whole(unknown[size:], spread=True)
            copies = [middle + sign * apart / 2 for sign in (1, -1)]
            outputs = [(copy - copy[reference])[list(network.outputs)] for copy in copies]
            costs = [0.5 * np.sum((each - TARGET) ** 2) for each in outputs]
            return -apart @ pg.dynamics.force(network, middle) + beta / 2 * sum(costs)

        def slope(unknown):
            units = 1e-5 * np.eye(2 * size)
            return np.array([joint(unknown + unit) - joint(unknown - unit) for unit in units]) / 2e-5

        start = np.concatenate([equilibrium.phases[free], np.zeros(size)])
        expected = -root(slope, start, tol=1e-12).x[size:] / beta
        with unwarned():
            found = pg.gradients.dyadic(network, equilibrium, pg.PhaseTargets(), TARGET, beta=beta).omega[free]
            weak = pg.adjoint(network, equilibrium, pg.PhaseTargets(), TARGET).omega[free]
        assert np.allclose(found, expected, atol=1e-8)
        assert np.abs(found - weak).max() > 1e-5

    def test_copies_that_find_no_rest_have_no_gradient(self):
        # A cost steeper than everything that holds the copies back.
        question = asked(make_network(6, 1), ())
        with pytest.warns(pg.gradients.GradientWarning, match="1 have no gradient"):
            gradient = pg.gradients.dyadic(*question, beta=1e3)
        assert np.isnan(gradient.omega).all()
        assert not gradient.valid

    def test_a_strong_nudge_is_said(self):
        with pytest.warns(pg.gradients.GradientWarning, match="too strong. Try beta="):
            pg.gradients.dyadic(*asked(make_network(8, 3, kind="clamped")), beta=0.5, wrt="coupling")

    @pytest.mark.parametrize("method", [pg.gradients.dyadic, pg.centred])
    def test_the_nudge_that_is_advised_is_as_strong_as_it_may_be(self, method):
        """Its error is one per cent, as far as errors grow by the square of the nudge and one digit goes."""
        question = asked(make_network(8, 3, kind="clamped"))
        exact = pg.adjoint(*question, wrt="coupling").coupling
        with pytest.warns(pg.gradients.GradientWarning, match="too strong") as caught:
            method(*question, beta=0.5, wrt="coupling")
        (words,) = [str(each.message) for each in caught if "Try beta=" in str(each.message)]
        advised = float(words.split("Try beta=")[1].split(",")[0])
        found = method(*question, beta=advised, wrt="coupling").coupling
        assert 1e-3 < np.linalg.norm(found - exact) / np.linalg.norm(exact) < 3e-2


class TestContinuous:
    def test_the_error_is_of_first_order_in_the_rate_and_in_the_nudge(self):
        for kind in ("plain", "all terms"):
            question = asked(make_network(8, 3, kind=kind))
            wrt = tuple(question[0].parameters)
            orders = order(pg.gradients.continuous, question, (4e-3, 2e-3), "rate", beta=1e-6, wrt=wrt)
            assert orders == pytest.approx(1, abs=0.05)
            orders = order(pg.gradients.continuous, question, (4e-3, 2e-3), rate=1e-7, wrt=wrt)
            assert orders == pytest.approx(1, abs=0.05)

    def test_the_law_in_the_rate_holds_to_all_orders(self):
        question = asked(make_network(8, 3), ())
        network, equilibrium = question[:2]
        inverse = np.linalg.inv(pg.dynamics.laplacian(network, equilibrium.phases))
        fastest, free = np.linalg.eigvalsh(inverse)[-1], network.graph.free
        exact = pg.adjoint(*question).omega[free]
        for share in (0.05, 0.5):
            rate = share / fastest
            with unwarned():
                found = pg.gradients.continuous(*question, rate=rate, beta=1e-6).omega[free]
            expected = np.linalg.solve(np.eye(free.size) - rate * inverse, exact)
            assert np.allclose(found, expected, atol=1e-5 * np.abs(expected).max())
        with pytest.warns(pg.gradients.GradientWarning, match="parameters found no rest: they move faster"):
            assert np.isnan(pg.gradients.continuous(*question, rate=1.2 / fastest, beta=1e-6).omega).all()

    def test_data_does_not_move(self):
        question = asked(make_network(8, 3, kind="driven"))
        with pytest.raises(ValueError, match="continuous has no gradient by 'inputs'"):
            pg.gradients.continuous(*question, wrt="inputs")
        for frequencies in ("raw", "relative"):
            slow = pg.gradients.continuous(*question, rate=1e-7, beta=1e-6, frequencies=frequencies)
            exact = pg.adjoint(*question, frequencies=frequencies)
            assert 1 - pg.gradients.cosine(slow, exact) < 1e-8

    def test_network_and_parameters_rest_together(self):
        """The nudged network with its parameters where they went shows the slopes that took them there."""
        network = make_network(8, 3, kind="driven")
        inputs, beta, rate = np.array([0.7]), 0.05, 0.3
        free = pg.find_equilibrium(network, inputs)
        with unwarned():
            gradient = pg.gradients.continuous(
                network,
                free,
                pg.PhaseTargets(),
                TARGET,
                beta=beta,
                rate=rate,
                wrt=("omega", "coupling"),
                frequencies="raw",
            )
        moved = np.where(np.isin(np.arange(8), network.inputs), 0.0, -rate * beta * gradient.omega)
        after = network.replace(
            omega=network.omega + moved, coupling=network.coupling - rate * beta * gradient.coupling
        )
        nudged = pg.find_equilibrium(after, inputs, nudge=pg.Nudge(pg.PhaseTargets(), TARGET, beta), start=free.phases)
        shown = pg.gradients.gradient_from_phases(
            network, free.phases, nudged.phases, beta, inputs=inputs, frequencies="raw", wrt=("omega", "coupling")
        )
        for name in ("omega", "coupling"):
            assert np.allclose(gradient[name], shown[name], atol=1e-8)


def pair(detuning=0.8):
    network = pg.Network([(0, 1)], [1.0], [0.0, detuning], outputs=(1,))
    return network, pg.find_equilibrium(network), pg.PhaseTargets(), [0.1]


def mean_cost(coupling, drive, temperature):
    """The mean cost of a pair in its well, by quadrature: E = -K cos phi - omega phi."""
    phases = np.linspace(-np.pi - np.arcsin(drive / coupling), np.pi - np.arcsin(drive / coupling), 20001)
    energy = -coupling * np.cos(phases) - drive * phases
    weight = np.where(phases < -2.0, 0.0, np.exp(-(energy - energy.min()) / temperature))
    return np.sum(weight * 0.5 * (phases - 0.1) ** 2) / np.sum(weight)


def thermal_gradient(temperature, step=1e-4):
    by_drive = mean_cost(1.0, 0.4 + step, temperature) - mean_cost(1.0, 0.4 - step, temperature)
    by_coupling = mean_cost(1.0 + step, 0.4, temperature) - mean_cost(1.0 - step, 0.4, temperature)
    return np.array([by_drive, by_coupling]) / (2 * step)


class TestStochastic:
    def test_the_expansion_is_the_gradient_of_the_mean_cost_up_to_the_square_of_the_temperature(self):
        errors = []
        for temperature in (0.01, 0.005):
            with unwarned():
                found = pg.gradients.stochastic(*pair(), temperature=temperature, wrt=("omega", "coupling"))
            errors.append(np.abs([found.omega[1], found.coupling[0]] - thermal_gradient(temperature)))
        assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)

    def test_its_term_of_first_order_is_right_to_a_millionth(self):
        """Of a pair it is in closed form: noise moves the phase by T K sin phi / (2 L^2), L = K cos phi + beta."""
        beta, moved = 1e-3, []
        with unwarned():
            hot, cold = (
                pg.gradients.stochastic(*pair(), temperature=t, beta=beta, wrt=("omega", "coupling"))
                for t in (1.0, 1e-9)
            )
        for nudge in (beta, -beta):
            phase = brentq(lambda phi, b: np.sin(phi) - 0.4 + b * (phi - 0.1), 0.0, 1.0, args=(nudge,), xtol=1e-15)
            stiffness = np.cos(phase) + nudge
            shift = np.sin(phase) / (2 * stiffness**2)
            moved.append([-shift, shift * np.sin(phase) + np.cos(phase) / (2 * stiffness)])
        expected = np.subtract(*moved) / (2 * beta)
        assert hot.omega[1] - cold.omega[1] == pytest.approx(expected[0], rel=1e-6)
        assert hot.coupling[0] - cold.coupling[0] == pytest.approx(expected[1], rel=1e-6)

    @pytest.mark.parametrize("kind", RECIPROCAL)
    def test_it_is_off_the_gradient_at_rest_by_the_temperature(self, kind):
        question = asked(make_network(7, 3, kind=kind))
        orders = order(
            pg.gradients.stochastic, question, (2e-4, 1e-4), "temperature", wrt=tuple(question[0].parameters)
        )
        assert orders == pytest.approx(1, abs=0.05)

    def test_paths_agree_with_it_within_what_they_say_of_themselves(self):
        temperature, options = 0.02, {"averages": "langevin", "beta": 0.1, "walkers": 60, "steps": 700}
        with unwarned():
            found = pg.gradients.stochastic(*pair(), temperature=temperature, wrt=("omega", "coupling"), **options)
            again = pg.gradients.stochastic(*pair(), temperature=temperature, wrt=("omega", "coupling"), **options)
        expected = thermal_gradient(temperature)
        assert abs(found.omega[1] - expected[0]) < 1.5 * found.error["omega"][1] < 0.2
        assert abs(found.coupling[0] - expected[1]) < 1.5 * found.error["coupling"][0] < 0.2
        assert np.array_equal(found.omega, again.omega)

    def test_their_noise_is_that_of_a_langevin_equation(self):
        """A phase's mean over a time t has the variance 2 T / (a^2 t) (1 - (1 - exp(-a t)) / (a t)), a = cos phi."""
        network, equilibrium, cost, target = pair(0.4)
        temperature, beta, walkers, steps = 1e-4, 1e-3, 300, 400
        with unwarned():
            found = pg.gradients.stochastic(
                network,
                equilibrium,
                cost,
                target,
                temperature=temperature,
                beta=beta,
                averages="langevin",
                walkers=walkers,
                steps=steps,
            )
        # Steps of a tenth of the time constant, the first fifth left out.
        stiffness = np.cos(equilibrium.phases[1])
        spans = 0.8 * steps / 10
        variance = 2 * temperature / (stiffness * spans) * (1 - (1 - np.exp(-spans)) / spans)
        expected = 2 * np.sqrt(2 * variance / walkers) / (2 * beta)
        assert found.error["omega"][1] == pytest.approx(expected, rel=0.2)

    def test_a_state_that_noise_leaves_has_no_gradient(self):
        with pytest.warns(pg.gradients.GradientWarning, match="a sample did not stay near a stable state"):
            lost = pg.gradients.stochastic(
                *pair(), temperature=2.0, averages="langevin", beta=0.01, walkers=20, steps=200
            )
        assert not lost.valid

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"temperature": 0.0}, "'temperature' parameter of stochastic"),
            ({"temperature": 0.1, "averages": "exact"}, "'averages' parameter of stochastic"),
            ({"temperature": 0.1, "walkers": 1}, "'walkers' parameter of stochastic"),
            ({"temperature": 0.1, "wrt": "inputs"}, "has no gradient by 'inputs'"),
        ],
    )
    def test_nonsense_is_refused(self, options, words):
        with pytest.raises(ValueError, match=words):
            pg.gradients.stochastic(*asked(make_network(6, 1, kind="driven")), **options)


class TestRandomSign:
    def test_two_signs_are_one_centred_gradient_and_follow_the_seed(self):
        network, equilibrium, cost, target = asked(make_network(8, 2), ())
        many = np.tile(target, (40, 1))
        with unwarned():
            drawn = pg.gradients.random_sign(network, equilibrium, cost, many, beta=0.1, seed=3)
            other = pg.gradients.random_sign(network, equilibrium, cost, many, beta=0.1, seed=4)
            centred = pg.centred(network, equilibrium, cost, target, beta=0.1)
            ahead = pg.two_phase(network, equilibrium, cost, target, beta=0.1)
        up = np.abs(drawn.omega - ahead.omega).max(axis=1) < 1e-10
        assert 5 < up.sum() < 35
        assert np.allclose(0.5 * (drawn.omega[up][0] + drawn.omega[~up][0]), centred.omega, atol=1e-9)
        assert not np.array_equal(drawn.omega, other.omega)

    def test_torques_can_have_either_sign(self):
        network, equilibrium, cost, target = asked(make_network(8, 2), ())
        drawn = pg.gradients.random_sign(network, equilibrium, cost, np.tile(target, (8, 1)), nudge="held")
        assert (
            1 - pg.gradients.cosine(drawn.omega.mean(axis=0), pg.adjoint(network, equilibrium, cost, target).omega)
            < 1e-5
        )


def test_several_points_are_richardson_extrapolation():
    """Of centred gradients at two strengths, the combination whose terms in beta^2 cancel."""
    question, beta = asked(make_network(8, 2), ()), 0.1
    with unwarned():
        four = pg.centred(*question, beta=beta, points=4).omega
        weaker = beta * np.cos(3 * np.pi / 8) / np.cos(np.pi / 8)
        strong, weak = (pg.centred(*question, beta=b).omega for b in (beta, weaker))
    richardson = (beta**2 * weak - weaker**2 * strong) / (beta**2 - weaker**2)
    assert np.allclose(four, richardson, atol=1e-9)
    assert order(pg.centred, question, (0.2, 0.1), points=4) == pytest.approx(4, abs=0.3)


@pytest.mark.parametrize("method", ["continuous", "stochastic"])
def test_a_method_that_needs_an_energy_refuses_coupling_without_one(method):
    options = {"temperature": 0.01} if method == "stochastic" else {}
    with pytest.raises(ValueError, match=f"{method} needs reciprocal coupling: .*Use centred with correction="):
        getattr(pg.gradients, method)(*asked(one_way("drifting")), **options)
    plan = pg.Plan(learn="coupling", objective=pg.PhaseTargets(), gradient=method, gradient_options=options)
    with pytest.raises(ValueError, match=f"gradient='{method}' needs reciprocal coupling"):
        pg.train(one_way("driven"), ([[0.1]], [list(TARGET)]), plan)


def test_the_table_takes_every_method_by_name():
    methods = ["adjoint", "dyadic", "random_sign", "continuous", "stochastic", "centred"]
    table = pg.check_gradients(*asked(make_network(7, 3)), wrt="omega", methods=methods)
    assert table.relative_error["omega"][1:, 0].max() < 1e-3
    methods = ["adjoint", "dyadic", "random_sign", "two_phase", "centred", "holomorphic"]
    table = pg.check_gradients(*asked(one_way("drifting")), methods=methods, **ASYMMETRIC)
    for name in ("omega", "coupling", "coupling_reverse"):
        assert table.relative_error[name][1:, 0].max() < 1e-3


TRAINED = {
    "two_phase": {},
    "centred": {"gradient_options": {"points": 4}},
    "holomorphic": {},
    "random_sign": {},
    "dyadic": {},
    "continuous": {"gradient_options": {"rate": 1e-4}},
    "stochastic": {"gradient_options": {"temperature": 1e-5}},
}
X = np.array([[0.3, -0.5], [-0.4, 0.2], [0.6, 0.1]])
GOALS = np.array([[0.2, -0.1], [-0.2, 0.1], [0.1, 0.0]])


def step_of(network, **options):
    """What one plain step of size 1 takes from every parameter."""
    plan = pg.Plan(
        learn=[name for name in network.parameters if name != "omega"] + ["omega"],
        learning_rate=1e-3,
        objective=pg.PhaseTargets(),
        epochs=1,
        batch_size=3,
        optimizer="sgd",
        schedule="constant",
        lock_floor=None,
        **options,
    )
    after = pg.train(network, (X, GOALS), plan).network
    before = network.parameters
    return np.concatenate([(before[name] - after.parameters[name]) / 1e-3 for name in before])


class TestTraining:
    @pytest.mark.parametrize("gradient", TRAINED)
    def test_every_gradient_is_that_of_the_mean_cost(self, gradient):
        network = pg.layered(2, 3, 2, seed=1)
        exact = step_of(network, gradient="adjoint")
        step = step_of(network, gradient=gradient, beta=1e-4, **TRAINED[gradient])
        assert np.abs(step - exact).max() < 2e-3 * np.abs(exact).max()

    @pytest.mark.parametrize("gradient", ["two_phase", "centred", "holomorphic", "random_sign", "dyadic"])
    @pytest.mark.parametrize("grounded", [False, True])
    def test_without_reciprocity_it_is_too(self, gradient, grounded):
        network = work.one_way_layers(0.5, 1).replace(grounded=grounded)
        exact = step_of(network, gradient="adjoint")
        options = {} if gradient == "dyadic" else ASYMMETRIC
        step = step_of(network, gradient=gradient, beta=1e-4, **options)
        assert np.abs(step - exact).max() < 2e-3 * np.abs(exact).max()
        assert len(np.unique(np.sign(exact))) > 1

    def test_the_lanes_refuse_and_auto_takes_the_batch_engine(self):
        network = pg.layered(2, 3, 2, seed=1)
        plan = pg.Plan.paper("omega", objective=pg.PhaseTargets(), gradient="dyadic", warm_start="none")
        with pytest.raises(ValueError, match="The lanes have the gradients"):
            prepare(network, (X, GOALS), plan, engine="lanes")
        assert type(prepare(network, (X, GOALS), plan)).__name__ == "BatchEngine"
        plain = plan.replace(gradient="two_phase", correction="asymmetric")
        # Reciprocal coupling has nothing to correct.
        assert type(prepare(network, (X, GOALS), plain)).__name__ == "LaneEngine"

    def test_a_state_of_a_training_that_draws_goes_on_as_if_it_had_not_stopped(self, tmp_path):
        networks = [work.one_way_layers(0.5, seed) for seed in range(2)]
        plan = pg.Plan(
            learn=("omega", "coupling"),
            objective=pg.PhaseTargets(),
            epochs=4,
            batch_size=2,
            gradient="random_sign",
            **ASYMMETRIC,
        )
        whole = pg.train(networks, (X, GOALS), plan)
        half = pg.train(networks, (X, GOALS), plan, until=2)
        half.state.save(tmp_path / "half.npz")
        rest = pg.train(networks, (X, GOALS), plan, state=pg.training.TrainingState.load(tmp_path / "half.npz"))
        assert [a == b for a, b in zip(whole.networks, rest.networks, strict=True)] == [True, True]
        alone = pg.train(networks[1], (X, GOALS), plan, seed=1).network
        assert np.allclose(alone.coupling, whole.networks[1].coupling, rtol=1e-9)

    def test_states_of_plans_without_a_correction_are_those_of_older_versions(self):
        from phasegrad.training._history import origin_of
        from phasegrad.training._samples import gather

        network, plan = pg.layered(2, 3, 2, seed=1), pg.Plan(learn="omega", objective=pg.PhaseTargets())
        parts = gather([network], (X, GOALS), plan.objective, None)
        assert origin_of([network], plan, *parts) == OLDER
        assert origin_of([network], plan.replace(correction="asymmetric"), *parts) != OLDER
        assert origin_of([network], plan.replace(gradient_options={"points": 4}), *parts) != OLDER

    def test_networks_without_reciprocity_learn_vowels(self):
        # Warnings are errors here: none says that the gradient is biased.
        found = work.training("asymmetric", 0.5, 10, 0, 1)
        assert found["trained"][0] > 0.95 > found["untrained"][0]

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"gradient": "backprop"}, "'gradient' parameter of the plan"),
            ({"correction": "some"}, "'correction' parameter of the plan"),
            ({"gradient": "adjoint", "correction": "asymmetric"}, "for gradients from nudged equilibria: two_phase"),
            ({"gradient": "dyadic", "gradient_options": {"points": 4}}, "gradient='dyadic' takes none"),
            ({"gradient_options": {"rate": 4}}, "gradient='centred' takes points, pattern"),
            ({"gradient_options": {"points": 3}}, "must be even"),
            ({"gradient": "stochastic"}, "needs a temperature"),
            ({"gradient": "stochastic", "gradient_options": {"temperature": -1}}, "'temperature' parameter"),
            ({"gradient": "continuous", "gradient_options": {"rate": 0}}, "'rate' parameter"),
        ],
    )
    def test_nonsense_in_a_plan_is_refused(self, options, words):
        with pytest.raises(ValueError, match=words):
            pg.Plan(**options)

    def test_options_must_be_a_mapping(self):
        with pytest.raises(TypeError, match="must be a mapping of names to values"):
            pg.Plan(gradient_options=["points"])
        assert hash(Propagation("centred", 0.1, options=(("points", 4),))) is not None


OLDER = "93ce4311e983bdeee871f87986e64cb7346f538b7796a19695c550f561b53c44"


class TestStudy:
    STORED = ReciprocityResults.read(RESULTS) if RESULTS.exists() else ReciprocityResults()

    def test_it_is_on_request_whole_and_decides(self):
        assert STUDY in ON_REQUEST
        assert STUDY not in STUDIES
        assert set(self.STORED.pieces) == set(STUDY.plan(None))
        judged = {each.claim.key: each for each in self.STORED.judged()}
        assert all(each.kept for each in judged.values())
        assert judged["reciprocity-table"].verdict is Verdict.CONTROLLED

    def test_the_stored_gradients_come_out_again(self):
        stored, again = self.STORED.pieces["gradients 0.5 turning"], work.gradients(0.5, 2, False)
        for by in work.BY:
            assert again["plain"][by] == pytest.approx(stored["plain"][by][:2], rel=1e-4)
            assert max(again["centred"][by]) < 1e-8

    @pytest.mark.slow
    @pytest.mark.parametrize("correction", ["plain", "corrected"])
    def test_the_stored_trainings_come_out_again(self, correction):
        word = {"plain": "none", "corrected": "asymmetric"}[correction]
        assert work.training(word, 0.5, 20, 0, 10) == self.STORED.pieces[f"training {correction} 0"]

    def test_the_page_is_made_from_the_file(self, tmp_path, capsys):
        page = tmp_path / "propagation.md"
        text = (ROOT / "docs" / "propagation.md").read_text(encoding="utf-8")
        emptied = re.sub(r"(<!-- table [\w-]+ -->\n).*?(<!-- end)", r"\1\2", text, flags=re.DOTALL)
        assert emptied != text
        page.write_text(emptied, encoding="utf-8")
        assert runner([str(RESULTS), "--stored", "--page", str(page)]) == 0
        assert page.read_text(encoding="utf-8") == text
        assert runner([str(tmp_path / "none.json"), "--stored"]) == 2
        assert "Name a file of results on reciprocity" in capsys.readouterr().err

    def test_a_file_of_something_else_is_refused(self, tmp_path):
        (tmp_path / "other.json").write_text(json.dumps({"kind": "phasegrad circuit", "format": 1, "pieces": {}}))
        with pytest.raises(ValueError, match="is not a file of results on reciprocity"):
            ReciprocityResults.read(tmp_path / "other.json")
        assert {each.verdict for each in ReciprocityResults().judged()} == {Verdict.NOT_MEASURED}
