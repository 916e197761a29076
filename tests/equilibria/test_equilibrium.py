import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from random_networks import ONE_WAY, RECIPROCAL, inputs_for, make_network, networks
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve

import phasegrad as pg
from phasegrad.dynamics import build_system
from phasegrad.equilibria._equilibrium import settle
from phasegrad.solvers import StiffFlow, branch_solver

PAIR = pg.Network([[0, 1]], 2.0, [0.5, -0.5])


def test_two_oscillators_settle_where_the_formula_says():
    """2 sin(theta_0 - theta_1) = 0.5, and the reduced Laplacian is 2 cos of that angle."""
    equilibrium = pg.find_equilibrium(PAIR, eigenvalue=True)
    angle = math.asin(0.5 / 2.0)
    assert equilibrium.phases[1] == pytest.approx(-angle, abs=1e-14)
    assert equilibrium.largest_angle == pytest.approx(angle, abs=1e-14)
    assert equilibrium.smallest_eigenvalue == pytest.approx(2.0 * math.cos(angle), abs=1e-13)
    assert equilibrium.status == pg.Status.STABLE


def test_one_oscillator_is_at_rest():
    equilibrium = pg.find_equilibrium(pg.Network([], 1.0, [3.0]), eigenvalue=True)
    assert equilibrium.phases.tolist() == [0.0]
    assert equilibrium.stable
    assert equilibrium.smallest_eigenvalue == math.inf


@pytest.mark.parametrize("solver", ["newton", "flow", "batch", "sparse", StiffFlow()])
def test_every_solver_leaves_one_oscillator_at_rest(solver):
    equilibrium = pg.find_equilibrium(pg.Network([], 1.0, [3.0]), start=[2.0], solver=solver)
    assert equilibrium.phases.tolist() == [0.0]
    assert equilibrium.stable


@pytest.mark.parametrize("kind", ["plain", "field", "clamped"])
def test_without_a_start_it_is_phase_zero(kind):
    """Also where a field or clamped phases fix the frame, so that one phase for all is not as good as another."""
    network = make_network(10, 3, kind=kind)
    inputs = inputs_for(network, (4,), 0)
    expected = pg.find_equilibrium(network, inputs, start=np.zeros(10))
    for start in (None, "zero"):
        found = pg.find_equilibrium(network, inputs, start=start)
        np.testing.assert_array_equal(found.phases, expected.phases)
        np.testing.assert_array_equal(found.steps, expected.steps)


@given(networks(), st.integers(0, 2**31))
def test_equilibria_agree_with_scipys_root_finder(network, seed):
    inputs = inputs_for(network, (), seed)
    equilibrium = pg.find_equilibrium(network, inputs, eigenvalue=True)
    assert equilibrium.stable
    assert equilibrium.residual <= 1e-12
    held = equilibrium.phases.copy()

    def balance(free_phases):
        held[network.free] = free_phases
        return pg.dynamics.force(network, held, inputs)[network.free]

    root = fsolve(balance, np.zeros(network.free.size), xtol=1e-13)
    slack = 1e-9 / min(1.0, float(equilibrium.smallest_eigenvalue))
    np.testing.assert_allclose(equilibrium.phases[network.free], root, atol=slack)


@given(networks(), st.integers(0, 2**31))
def test_the_smallest_eigenvalue_and_stability_are_those_of_the_jacobian(network, seed):
    inputs = inputs_for(network, (), seed)
    equilibrium = pg.find_equilibrium(network, inputs, eigenvalue=True, start="random", seed=seed)
    if not equilibrium.converged:
        return
    eigenvalues = np.linalg.eigvals(pg.dynamics.laplacian(network, equilibrium.phases, inputs))
    assert equilibrium.smallest_eigenvalue == pytest.approx(eigenvalues.real.min(), abs=1e-10)
    assert equilibrium.stable == (eigenvalues.real.min() > 1e-12)


@pytest.mark.parametrize("kind", ["plain", "non-reciprocal"])
def test_the_error_of_an_eigenvalue_is_rounding(kind):
    """Also where the angles prove stability, so that the eigenvalue is not needed for that."""
    found = pg.find_equilibrium(make_network(8, 2, kind=kind), eigenvalue=True)
    assert found.largest_angle < np.pi / 2
    assert 0 < found.eigenvalue_error < 1e-11 * found.smallest_eigenvalue


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e6])
def test_a_solver_is_asked_for_the_residual_that_is_promised(unit):
    """1e-12, or that share of weaker forces, or the rounding of much stronger ones; unless another one is named."""
    asked = []

    class Asked(pg.solvers.Newton):
        def solve(self, system, start, tolerance):
            asked.append(float(tolerance[0]))
            return super().solve(system, start, tolerance)

    network = pg.networks.ring(5, coupling=unit)
    pg.find_equilibrium(network, solver=Asked())
    settle(build_system(network, None)[0], (1,), np.zeros((1, 5)), Asked())
    pg.find_equilibrium(network, solver=Asked(), tolerance=1e-9)
    rounding = 8 * np.finfo(float).eps * 2 * unit
    least = min(1.0, 2 * unit)
    assert asked == pytest.approx([max(share * least, rounding) for share in (1e-12, 1e-12, 1e-9)], rel=1e-9, abs=0)


@pytest.mark.parametrize("n", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_residual_reaches_1e_12_on_well_conditioned_networks(n):
    """Also from a random start, where the phases make turns that would cost digits."""
    network = pg.networks.random_network(n, seed=1)
    assert pg.find_equilibrium(network).residual <= 1e-12
    assert pg.find_equilibrium(network, start="random", solver="newton").residual <= 1e-12


@pytest.mark.parametrize(
    "solver", ["newton", "flow", pg.solvers.Newton(max_turn=0.3), pg.solvers.GradientFlow(accuracy=1e-4)]
)
@pytest.mark.parametrize("kind", ["plain", "field", "clamped", "non-reciprocal"])
def test_every_solver_reaches_the_same_state_from_zero(kind, solver):
    network = make_network(10, 3, kind=kind)
    inputs = inputs_for(network, (5,), 0)
    expected = pg.find_equilibrium(network, inputs)
    found = pg.find_equilibrium(network, inputs, solver=solver)
    assert np.all(found.stable)
    np.testing.assert_allclose(found.phases, expected.phases, atol=1e-11)


@pytest.mark.parametrize("kind", ["plain", "non-reciprocal"])
def test_the_flow_ends_where_the_integrated_dynamics_end(kind):
    network = make_network(8, 5, kind=kind, spread=0.05)
    start = np.random.default_rng(0).uniform(-np.pi, np.pi, (6, 8))
    found = pg.find_equilibrium(network, start=start, solver="flow")
    for first, last in zip(start, found.phases, strict=True):
        moving = np.zeros(8) if kind == "plain" else np.eye(8)[0]

        def velocity(_, theta, moving=moving):
            return pg.dynamics.force(network, theta) * (1 - moving)

        shifted = first - (first[0] if kind == "non-reciprocal" else 0.0)
        end = solve_ivp(velocity, (0, 500), shifted, rtol=1e-9, atol=1e-9, method="LSODA").y[:, -1]
        np.testing.assert_allclose(np.exp(1j * (end - end[0])), np.exp(1j * last), atol=1e-5)


def test_the_steps_of_the_flow_are_those_of_a_method_of_third_order():
    """An error of h^3 per step: a hundredth of it takes 100^(1/3), about 4.6, times as many steps."""
    network = make_network(8, 5, spread=0.05)
    start = np.random.default_rng(0).uniform(-np.pi, np.pi, (4, 8))
    many, few = (
        pg.find_equilibrium(network, start=start, solver=pg.solvers.GradientFlow(accuracy=accuracy)).steps
        for accuracy in (1e-7, 1e-5)
    )
    assert np.all((many / few > 4.0) & (many / few < 5.0))
    assert np.all(few < 150)


def test_the_flow_keeps_to_the_dynamics_beside_a_much_stronger_coupling():
    """A stiff appendage must not end the integration early: windings are those that LSODA finds."""
    ring = pg.networks.ring(8)
    network = pg.Network(np.vstack([ring.edges, [[0, 8]]]), [*np.ones(8), 50.0], np.zeros(9))
    start = np.random.default_rng(0).uniform(-np.pi, np.pi, (25, 9))
    found = pg.find_equilibrium(network, start=start, solver="flow")
    for first, last in zip(start, found.phases, strict=True):
        end = solve_ivp(
            lambda _, theta: pg.dynamics.force(network, theta), (0, 400), first, method="LSODA", rtol=1e-8
        ).y[:, -1]
        np.testing.assert_allclose(np.exp(1j * (end - end[0])), np.exp(1j * last), atol=1e-3)


class TestBatches:
    @pytest.mark.parametrize("n", [4, 9, 40, 130])
    def test_a_sample_is_bitwise_the_same_whatever_else_is_in_the_batch(self, n):
        network = make_network(n, 1, kind="driven", density=0.3)
        rng = np.random.default_rng(0)
        inputs = rng.uniform(-1, 1, (7, 1))
        inputs[3] = 1e3  # cannot lock
        start = rng.uniform(-3, 3, (7, n))
        for options in ({}, {"solver": "flow"}):
            whole = pg.find_equilibrium(network, inputs, start=start, **options)
            for k in range(7):
                alone = pg.find_equilibrium(network, inputs[k], start=start[k], **options)
                np.testing.assert_array_equal(whole.phases[k], alone.phases)
                assert whole.residual[k] == alone.residual
                assert whole.steps[k] == alone.steps
                assert whole.status[k] is alone.status.item()
            order = rng.permutation(7)
            mixed = pg.find_equilibrium(network, inputs[order], start=start[order], **options)
            np.testing.assert_array_equal(mixed.phases, whole.phases[order])

    @pytest.mark.parametrize(
        "make",
        [
            lambda **o: pg.networks.lattice(60, 60, **o),
            pytest.param(lambda **o: pg.networks.random_regular(3600, 4, **o), marks=pytest.mark.slow),
        ],
    )
    def test_sparse_results_are_bitwise_the_same_in_any_company_and_after_any_call(self, make):
        """Version 0.1 kept a preconditioner of the first sample asked for: they differed at 1e-13."""
        rng = np.random.default_rng(0)
        network = make(omega=0.1 * rng.standard_normal(3600), inputs=(5, 100), outputs=(200, 399))
        inputs, question = rng.uniform(-0.5, 0.5, (4, 2)), (pg.PhaseTargets(), [0.1, -0.2])
        whole = pg.find_equilibrium(network, inputs, eigenvalue=True)
        slopes = pg.adjoint(network, whole, *question).omega
        nudged = pg.two_phase(network, whole, *question, beta=0.01).omega
        for k in (3, 1):
            alone = pg.find_equilibrium(network.replace(omega=network.omega), inputs[k], eigenvalue=True)
            again = pg.find_equilibrium(network, inputs[[k, 0]], eigenvalue=True)
            for phases in (alone.phases, again.phases[0]):
                np.testing.assert_array_equal(phases, whole.phases[k])
            assert alone.smallest_eigenvalue == again.smallest_eigenvalue[0] == whole.smallest_eigenvalue[k]
            np.testing.assert_array_equal(pg.adjoint(network, alone, *question).omega, slopes[k])
            np.testing.assert_array_equal(pg.two_phase(network, alone, *question, beta=0.01).omega, nudged[k])

    @given(networks(), st.integers(1, 9), st.integers(0, 2**31))
    def test_splitting_a_batch_changes_nothing(self, network, cut, seed):
        rng = np.random.default_rng(seed)
        start = rng.uniform(-np.pi, np.pi, (10, network.size))
        inputs = inputs_for(network, (10,), seed)
        whole = pg.find_equilibrium(network, inputs, start=start)
        parts = [
            pg.find_equilibrium(network, None if inputs is None else inputs[part], start=start[part])
            for part in (slice(None, cut), slice(cut, None))
        ]
        np.testing.assert_array_equal(whole.phases, np.concatenate([part.phases for part in parts]))
        np.testing.assert_array_equal(whole.residual, np.concatenate([part.residual for part in parts]))

    @pytest.mark.parametrize("seed", range(6))
    def test_alone_and_in_company_agree_where_the_line_search_works_hardest(self, seed):
        """Weak non-reciprocal coupling from far starts: many halvings, whose guards sum over rows."""
        network = pg.networks.random_network(25, seed=seed + 10, mean_coupling=0.12, spread=1.0)
        network = network.replace(coupling_reverse=network.coupling * 1.1)
        start = np.random.default_rng(seed).uniform(-3, 3, (6, 25))
        whole = pg.find_equilibrium(network, start=start, solver="newton")
        for k in range(6):
            alone = pg.find_equilibrium(network, start=start[k], solver="newton")
            np.testing.assert_array_equal(whole.phases[k], alone.phases)
            assert whole.steps[k] == alone.steps

    @given(networks(kinds=RECIPROCAL), st.integers(0, 2**31))
    def test_energy_and_force_are_bitwise_the_same_in_any_batch(self, network, seed):
        phases = np.random.default_rng(seed).uniform(-3, 3, (6, network.size))
        inputs = inputs_for(network, (), seed)
        for function in (pg.dynamics.energy, pg.dynamics.force, pg.dynamics.laplacian):
            whole = function(network, phases, inputs)
            for k in range(6):
                np.testing.assert_array_equal(whole[k], function(network, phases[k], inputs))

    def test_any_leading_shape_is_kept(self):
        network = pg.layered(2, 5, 2)
        inputs = np.random.default_rng(0).uniform(-1, 1, (2, 3, 4, 2))
        equilibrium = pg.find_equilibrium(network, inputs, eigenvalue=True)
        assert equilibrium.shape == (2, 3, 4)
        assert equilibrium.phases.shape == (2, 3, 4, 9)
        assert equilibrium.status.shape == equilibrium.smallest_eigenvalue.shape == (2, 3, 4)
        flat = pg.find_equilibrium(network, inputs.reshape(-1, 2), eigenvalue=True)
        np.testing.assert_array_equal(equilibrium.phases.reshape(-1, 9), flat.phases)

    def test_an_empty_batch_is_a_valid_empty_result(self):
        network = pg.layered(2, 5, 2)
        equilibrium = pg.find_equilibrium(network, np.zeros((0, 2)), eigenvalue=True)
        assert equilibrium.phases.shape == (0, 9)
        assert sum(equilibrium.counts.values()) == 0
        assert "0 samples" in str(equilibrium)
        gradient = pg.two_phase(network, equilibrium, pg.PhaseTargets(), np.zeros((0, 2)), beta=0.1)
        assert gradient.omega.shape == (0, 9)

    def test_a_warm_start_broadcasts_over_inputs(self):
        network = pg.layered(2, 5, 2)
        inputs = np.random.default_rng(0).uniform(-1, 1, (4, 2))
        first = pg.find_equilibrium(network, inputs)
        again = pg.find_equilibrium(network, inputs, start=first.phases)
        assert np.all(again.steps <= 1)
        np.testing.assert_allclose(again.phases, first.phases, atol=1e-15)
        assert pg.find_equilibrium(network, inputs, start=np.zeros(9)).shape == (4,)


class TestGauge:
    @given(networks(kinds=("plain", "driven", *ONE_WAY)), st.floats(-50, 50))
    def test_a_constant_added_to_all_frequencies_changes_nothing(self, network, constant):
        shifted = network.replace(omega=network.omega + constant, inputs=())
        still = network.replace(inputs=())
        # Centring rounds at eps * constant; the Laplacian's inverse turns that into phases.
        first = pg.find_equilibrium(still, eigenvalue=True)
        slack = 1e-14 * (1 + abs(constant)) * 10 / min(1.0, float(first.smallest_eigenvalue))
        np.testing.assert_allclose(pg.find_equilibrium(shifted).phases, first.phases, atol=slack)

    @given(networks(kinds=("plain", "driven", *ONE_WAY)), st.data())
    def test_another_reference_gives_the_same_phase_differences(self, network, data):
        others = [node for node in range(network.size) if node not in network.outputs]
        reference = data.draw(st.sampled_from(others))
        inputs = inputs_for(network, (), 1)
        first = pg.find_equilibrium(network, inputs, eigenvalue=True)
        second = pg.find_equilibrium(network.replace(reference=reference), inputs, eigenvalue=True)
        assert second.phases[reference] == 0.0
        turned = second.phases - second.phases[network.reference]
        slack = 1e-11 / min(1.0, float(first.smallest_eigenvalue))
        np.testing.assert_allclose(turned, first.phases, atol=slack)
        assert first.largest_angle == pytest.approx(second.largest_angle, abs=1e-9)
        assert first.drift == pytest.approx(second.drift, abs=100 * slack)
        if not network.reciprocal:
            # The spectrum is that of all oscillators but for the common turn; a grounded one depends on the reference.
            assert first.smallest_eigenvalue == pytest.approx(second.smallest_eigenvalue, rel=1e-8)
        else:
            assert first.drift == 0

    @given(networks(), st.integers(0, 2**31))
    def test_relabelling_the_oscillators_relabels_the_result(self, network, seed):
        order = np.random.default_rng(seed).permutation(network.size)  # old node k becomes order[k]
        back = np.argsort(order)
        options = {
            "interaction": network.interaction,
            "inputs": tuple(order[list(network.inputs)]) if network.inputs else (),
            "outputs": tuple(order[list(network.outputs)]),
            "reference": int(order[network.reference]),
            "input_mode": network.input_mode,
            "input_scale": network.input_scale,
        }
        for name, values in network.parameters.items():
            options[name] = values if network.term_of(name)[1].on == "edges" else values[back]
        renamed = pg.Network(order[network.edges], **options)
        inputs = inputs_for(network, (), seed)
        first = pg.find_equilibrium(network, inputs, eigenvalue=True)
        slack = 1e-11 / min(1.0, float(first.smallest_eigenvalue))
        second = pg.find_equilibrium(renamed, inputs)
        np.testing.assert_allclose(second.phases[order], first.phases, atol=slack)
        question, wrt = (pg.PhaseTargets(), [0.2] * len(network.outputs)), tuple(network.parameters)
        before = pg.adjoint(network, first, *question, wrt=wrt)
        after = pg.adjoint(renamed, second, *question, wrt=wrt)
        for name in wrt:
            if network.term_of(name)[1].on == "nodes":
                np.testing.assert_allclose(after[name][order], before[name], atol=100 * slack, err_msg=name)
        assert after.cost == pytest.approx(before.cost, abs=100 * slack)

    def test_a_network_that_is_not_reciprocal_finds_its_own_frequency(self):
        """Two oscillators: 20 sin d - 5 = 5 - 0.01 sin d, so that sin d = 10 / 20.01, and both turn at 20 sin d - 5."""
        network = pg.Network([[0, 1]], [20.0], [0.0, 10.0], coupling_reverse=[0.01])
        found = pg.find_equilibrium(network, eigenvalue=True)
        assert found.stable
        assert found.phases[1] == pytest.approx(np.arcsin(10 / 20.01), abs=1e-14)
        assert found.drift == pytest.approx(200 / 20.01 - 5, abs=1e-12)
        assert found.smallest_eigenvalue == pytest.approx(20.01 * np.cos(found.phases[1]), rel=1e-13)
        assert pg.find_equilibrium(network.replace(grounded=True)).status == pg.Status.CANNOT_LOCK
        assert pg.find_equilibrium(network.replace(omega=[0.0, 20.02])).status == pg.Status.CANNOT_LOCK
        assert pg.find_equilibrium(network.replace(omega=[0.0, 20.0])).stable

    @given(networks(kinds=("non-reciprocal",)), st.integers(0, 2**31))
    def test_the_dynamics_without_any_frame_turn_at_the_common_frequency(self, network, seed):
        """Every oscillator free: integrated from nearby, all end at one speed, the mean frequency plus the drift."""
        found = pg.find_equilibrium(network, eigenvalue=True)
        matrix = pg.networks.to_matrix(network)

        def speed(_, phases):
            angles = phases[None, :] - phases[:, None]
            return network.omega + np.sum(matrix * network.interaction.value(angles), axis=1)

        start = found.phases + 0.01 * np.random.default_rng(seed).standard_normal(network.size)
        time = 30 / float(found.smallest_eigenvalue)
        end = solve_ivp(speed, (0, time), start, rtol=1e-9, atol=1e-9, method="LSODA").y[:, -1]
        np.testing.assert_allclose(end - end[network.reference], found.phases, atol=1e-6)
        np.testing.assert_allclose(speed(0, end), network.omega.mean() + found.drift, atol=1e-6)

    def test_holding_the_reference_takes_no_torque_unless_nudged_or_grounded(self):
        free = make_network(8, 2)
        assert pg.find_equilibrium(free).reference_torque <= 1e-14
        nudge = pg.Nudge(pg.PhaseTargets(), [1.0, 1.0], 0.5)
        assert pg.find_equilibrium(free, nudge=nudge).reference_torque > 1e-3
        one_sided = make_network(8, 2, kind="non-reciprocal")
        assert pg.find_equilibrium(one_sided).reference_torque == 0
        assert pg.find_equilibrium(one_sided.replace(grounded=True)).reference_torque > 1e-6


class TestStatus:
    def test_an_oscillator_that_cannot_lock_is_named(self):
        network = pg.networks.ring(5, omega=[0, 0, 9.0, 0, 0])
        equilibrium = pg.find_equilibrium(network)
        assert equilibrium.status == pg.Status.CANNOT_LOCK
        assert equilibrium.blocking == 2
        assert not equilibrium.stable
        assert "          oscillator 2 cannot lock" in str(equilibrium).splitlines()
        assert "Cannot lock" in pg.Status.CANNOT_LOCK.value

    def test_what_is_absurd_in_one_sample_hides_nothing_in_another(self):
        network = pg.networks.ring(5, inputs=(2,), input_scale=1.0)
        equilibrium = pg.find_equilibrium(network, [[9.0], [1e15], [0.1]])
        assert equilibrium.status.tolist() == [pg.Status.CANNOT_LOCK, pg.Status.CANNOT_LOCK, pg.Status.STABLE]

    def test_the_locking_test_uses_the_interactions_own_bound(self):
        """A third harmonic lowers the peak of H below 1: what the sine could hold, this cannot."""
        weak = pg.terms.OddSeries((0.5,))
        network = pg.Network([[0, 1]], 1.0, [0.35, -0.35])
        assert pg.find_equilibrium(network).stable
        assert pg.find_equilibrium(network.replace(interaction=weak, omega=[0.6, -0.6])).status == pg.Status.CANNOT_LOCK

    def test_a_network_too_spread_to_lock_that_passes_the_node_test_does_not_converge(self):
        """Two halves pull apart: each node could be held, the single edge between the halves cannot hold them all."""
        edges = [[0, 1], [0, 2], [1, 2], [3, 4], [3, 5], [4, 5], [2, 3]]
        network = pg.Network(edges, 1.0, [0.9, 0.9, 0.9, -0.9, -0.9, -0.9])
        for solver in ("newton", "flow"):
            equilibrium = pg.find_equilibrium(network, solver=solver)
            assert equilibrium.status == pg.Status.UNCONVERGED
            assert np.all(np.isfinite(equilibrium.phases))

    def test_an_unstable_equilibrium_is_called_so(self):
        equilibrium = pg.find_equilibrium(PAIR.replace(omega=[0, 0]), start=[0.0, np.pi], eigenvalue=True)
        assert equilibrium.status == pg.Status.UNSTABLE
        assert equilibrium.converged
        assert not equilibrium.stable
        assert equilibrium.smallest_eigenvalue == pytest.approx(-2.0)

    def test_a_degenerate_state_is_not_called_stable(self):
        """At 90 degrees the Laplacian of two oscillators vanishes: nothing certifies stability."""
        network = pg.Network([[0, 1]], 1.0, [1.0, -1.0])
        equilibrium = pg.find_equilibrium(network, start=[0.0, -np.pi / 2])
        assert equilibrium.status == pg.Status.MARGINAL

    def test_a_pair_whose_pulls_cancel_is_marginal_wherever_it_is(self):
        """One runs after the other, which flees as fast: nothing brings back what an angle has changed."""
        network = pg.Network([[0, 1]], [1.0], [0.0, 0.0], coupling_reverse=[-1.0], signed=True)
        equilibrium = pg.find_equilibrium(network, start=[[0.0, 0.0], [0.0, 1.0]], eigenvalue=True)
        assert np.all(equilibrium.status == pg.Status.MARGINAL)
        assert np.all(equilibrium.smallest_eigenvalue == 0)

    @pytest.mark.parametrize("unit", [1e-13, 1e-6, 1.0, 1e6])
    def test_verdicts_do_not_depend_on_the_unit_of_time(self, unit):
        locked = pg.find_equilibrium(pg.Network([[0, 1]], unit, [0.9 * unit, -0.9 * unit]))
        assert locked.status == pg.Status.STABLE
        assert locked.phases[1] == pytest.approx(-math.asin(0.9), abs=1e-11)
        running = pg.find_equilibrium(pg.Network([[0, 1]], unit, [5 * unit, -5 * unit]))
        assert running.status == pg.Status.CANNOT_LOCK

    def test_large_phases_do_not_hide_convergence(self):
        """Far starts and clamps round at eps times the phase; that is not a failure to converge."""
        network = pg.layered(2, 5, 2, input_mode="phase", input_scale=1.0)
        inputs = np.random.default_rng(0).uniform(-1e4, 1e4, (20, 2))
        assert np.all(pg.find_equilibrium(network, inputs).converged)
        start = np.random.default_rng(0).uniform(-1e4, 1e4, (20, 10))
        assert np.all(pg.find_equilibrium(pg.networks.random_network(10), start=start).stable)
        strong = pg.Nudge(pg.PhaseTargets(), [-0.2, 0.2], 1e6)
        assert pg.find_equilibrium(pg.layered(2, 5, 2), [0.1, 0.2], nudge=strong).converged

    def test_without_an_energy_random_starts_still_end_somewhere_stable(self):
        rng = np.random.default_rng(0)
        matrix = rng.uniform(0.5, 1.5, (12, 12)) * (1 - np.eye(12))
        network = pg.networks.from_matrix(matrix, omega=rng.normal(size=12))
        start = rng.uniform(-np.pi, np.pi, (20, 12))
        assert np.all(pg.find_equilibrium(network, start=start).stable)
        assert pg.find_equilibrium(network, start="random", seed=3).stable

    def test_mixed_batches_count_every_sample(self):
        network = pg.Network([[0, 1]], 1.0, [0.0, 0.0], inputs=[0], input_scale=1.0)
        equilibrium = pg.find_equilibrium(network, [[0.1], [5.0], [0.2]])
        assert [status.name for status in equilibrium.status] == ["STABLE", "CANNOT_LOCK", "STABLE"]
        assert sum(equilibrium.counts.values()) == 3
        text = str(equilibrium)
        assert "2  Converged and stable" in text
        assert "1  Cannot lock" in text

    def test_every_status_is_a_sentence(self):
        for status in pg.Status:
            assert status.value[0].isupper()
            assert status.value.endswith(".")


class TestManyStates:
    def test_two_rings_wind_by_themselves(self):
        triangles = [[0, 1], [1, 2], [0, 2], [3, 4], [4, 5], [3, 5]]
        states = pg.find_equilibria(pg.Network(triangles, 1.0, np.zeros(6), field_strength=0.1), starts=5)
        assert [cycle.tolist() for cycle in states.cycles] == [[0, 1, 2], [3, 4, 5]]
        assert states.winding.tolist() == [[0, 0]]

    @pytest.mark.parametrize("n", [5, 8, 12, 20])
    def test_a_ring_has_the_twisted_states_of_theory(self, n):
        """Winding q is stable exactly for |q| < n / 4, with phase q 2 pi / n per step and energy -n cos of it."""
        states = pg.find_equilibria(pg.networks.ring(n), starts=600, seed=1)
        assert states.unstable == states.unconverged == 0
        winding = states.winding[:, 0]
        assert sorted(winding.tolist()) == [q for q in range(-n, n + 1) if abs(q) < n / 4]
        np.testing.assert_allclose(states.energy, -n * np.cos(2 * np.pi * winding / n), atol=1e-10)
        assert states.share.sum() == pytest.approx(1.0)
        assert np.all(np.diff(states.share) <= 0)

    @pytest.mark.parametrize("n", [7, 8, 9, 12, 16])
    def test_stability_of_each_twisted_state_follows_the_theory(self, n):
        for winding in range(n // 2 + 1):
            phases = 2 * np.pi * winding * np.arange(n) / n
            stable = bool(pg.find_equilibrium(pg.networks.ring(n), start=phases).stable)
            assert stable == (winding < n / 4), f"winding {winding} of {n}"

    def test_a_complete_graph_of_identical_oscillators_has_one_state(self):
        states = pg.find_equilibria(pg.networks.complete(6), starts=50)
        assert len(states) == 1
        assert not np.any(states.winding)
        assert states.share.tolist() == [1.0]

    def test_failed_starts_keep_their_place_in_the_denominator(self):
        states = pg.find_equilibria(pg.networks.ring(4, omega=[9, 0, 0, 0]), starts=10)
        assert len(states) == 0
        assert states.unconverged == 10
        assert "0 stable states from 10 random starts" in str(states)

    def test_every_state_has_a_line(self):
        lines = str(pg.find_equilibria(pg.networks.ring(9), starts=60)).splitlines()
        assert lines[0] == (
            "5 stable states from 60 random starts (0 ended unstable, 0 did not converge) and 5 of 5 winding starts"
        )
        assert lines[1] == (
            "  share 0.700 (0.568 to 0.812)  energy    -9.000000  smallest eigenvalue   0.1206  winding +0"
        )
        assert lines[-1] == "  a basin with a share of 0.01 escapes the random starts with probability 0.55"
        assert len(lines) == 7
        one_way = pg.find_equilibria(make_network(6, 0, kind="non-reciprocal", spread=0.05), starts=5, winding=0)
        assert "energy" not in str(one_way)
        assert str(one_way).splitlines()[0].endswith("(0 ended unstable, 0 did not converge)")

    def test_the_same_seed_gives_the_same_states(self):
        first, second = (pg.find_equilibria(pg.networks.ring(12), starts=50, seed=4) for _ in range(2))
        np.testing.assert_array_equal(first.phases, second.phases)

    def test_inputs_are_one_sample(self):
        network = pg.layered(2, 5, 2)
        assert len(pg.find_equilibria(network, [0.3, -0.2], starts=20)) == 1
        with pytest.raises(ValueError, match="one sample of inputs"):
            pg.find_equilibria(network, np.zeros((3, 2)))
        with pytest.raises(ValueError, match="'starts' parameter"):
            pg.find_equilibria(network, [0, 0], starts=0)


class TestBadInput:
    @pytest.mark.parametrize(
        ("inputs", "options", "message"),
        [
            ([0.1, 0.2, 0.3], {}, r"'inputs' parameter of find_equilibrium must have a last axis of length 2"),
            (0.5, {}, "last axis of length 2"),
            ([np.nan, 0.0], {}, "'inputs' parameter of find_equilibrium must be finite"),
            ([np.inf, 0.0], {}, "must be finite"),
            ([0.1, 0.2], {"solver": "magic"}, "'auto', 'newton', 'sparse', 'flow', 'batch'. Got 'magic'"),
            ([0.1, 0.2], {"start": "warm"}, "must be one of 'zero', 'random'"),
            (
                [0.1, 0.2],
                {"start": np.zeros(8)},
                "'start' parameter of find_equilibrium must have a last axis of length 9",
            ),
            ([0.1, 0.2], {"start": np.full(9, np.nan)}, "'start' parameter of find_equilibrium must be finite"),
            ([[0.1, 0.2]] * 3, {"start": np.zeros((2, 9))}, "do not go together"),
            ([0.1, 0.2], {"tolerance": 0}, "'tolerance' parameter"),
            ([0.1, 0.2], {"start": np.zeros(9, complex)}, "'start' parameter .* must be an array of real numbers"),
            ([0.1j, 0.2], {}, "'inputs' parameter .* must be an array of real numbers"),
            (["0.1", "0.2"], {}, "must be an array of real numbers"),
            ([[0.1], [0.2, 0.3]], {}, "must be an array of real numbers"),
            ([0.1, 0.2], {"start": "random", "seed": -1}, "'seed' parameter"),
            ([0.1, 0.2], {"nudge": pg.Nudge(pg.PhaseTargets(), [0, 0], "weak")}, "'beta' parameter of Nudge"),
            ([0.1, 0.2], {"nudge": pg.Nudge(pg.PhaseTargets(), [0, 0], 0.0)}, "'beta' parameter of Nudge"),
            ([0.1, 0.2], {"nudge": pg.Nudge(pg.PhaseTargets(), [0, 0, 0], 0.1)}, "one per output"),
            ([[0.1, 0.2]] * 3, {"nudge": pg.Nudge(pg.PhaseTargets(), [[0, 0]] * 2, 0.1)}, "do not go together"),
        ],
    )
    def test_wrong_arguments_are_refused(self, inputs, options, message):
        with pytest.raises(ValueError, match=message):
            pg.find_equilibrium(pg.layered(2, 5, 2), inputs, **options)

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: pg.find_equilibrium("ring"), "Expected a Network. Got str"),
            (lambda: pg.find_equilibrium(pg.networks.ring(4), solver=5), "'solver' parameter of find_equilibrium"),
            (
                lambda: pg.find_equilibrium(pg.networks.ring(4), solver=pg.solvers.Newton),
                "an object with a solve method",
            ),
            (lambda: pg.find_equilibrium(pg.networks.ring(4), nudge="a"), "must be a Nudge"),
            (lambda: pg.find_equilibrium(pg.networks.ring(4), nudge=pg.Nudge(None, [0], 0.1)), "must be a Nudge"),
            (lambda: pg.adjoint(None, None, None, None), "takes a Network, then an Equilibrium"),
            (lambda: pg.PhaseTargets(3), "'outputs' parameter of PhaseTargets must be a list"),
            (lambda: pg.networks.ring(4, labels=5), "'labels' parameter of Network must be a list"),
            (lambda: pg.networks.ring(4, labels=[[1], [2], [3], [4]]), "hashable"),
            (lambda: pg.networks.ring(4, signed="yes"), "'signed' parameter of Network must be True or False"),
            (lambda: pg.from_networkx(5), "from_networkx takes a NetworkX Graph"),
        ],
    )
    def test_things_of_the_wrong_kind_are_refused(self, call, message):
        with pytest.raises(TypeError, match=message):
            call()

    @pytest.mark.parametrize(
        ("solver", "options"),
        [
            (pg.solvers.Newton, {"max_turn": 0}),
            (pg.solvers.Newton, {"max_steps": -1}),
            (pg.solvers.GradientFlow, {"accuracy": 0}),
            (pg.solvers.GradientFlow, {"rest": math.nan}),
            (pg.solvers.GradientFlow, {"max_steps": 0}),
            (StiffFlow, {"accuracy": 0}),
            (StiffFlow, {"rest": math.nan}),
            (StiffFlow, {"max_steps": 0}),
            (StiffFlow, {"slip": -1.0}),
        ],
    )
    def test_solvers_refuse_settings_that_cannot_work(self, solver, options):
        with pytest.raises(ValueError, match=f"'{next(iter(options))}' parameter of {solver.__name__}"):
            solver(**options)

    def test_inputs_for_a_network_without_any_are_refused(self):
        with pytest.raises(ValueError, match="no input oscillators"):
            pg.find_equilibrium(pg.networks.ring(4), [0.1])

    def test_clamped_inputs_must_be_given(self):
        with pytest.raises(ValueError, match="clamps the phases of its 2 inputs"):
            pg.find_equilibrium(pg.layered(2, 5, 2, input_mode="phase"))

    def test_a_matrix_too_large_for_memory_is_refused_beforehand(self):
        with pytest.raises(ValueError, match="dense matrices stop at 12000"):
            pg.find_equilibrium(pg.networks.ring(20_000), solver="newton")
        system, _ = build_system(pg.networks.ring(12_002, coupling_reverse=np.full(12_002, 2.0)), None)
        with pytest.raises(ValueError, match="The sparse way is for reciprocal coupling only: use a smaller network"):
            branch_solver(system)


def test_an_equilibrium_in_place_of_phases_is_refused_with_what_to_give():
    network = pg.networks.ring(4)
    equilibrium = pg.find_equilibrium(network)
    for call in (
        lambda: pg.find_equilibrium(network, start=equilibrium),
        lambda: pg.dynamics.force(network, equilibrium),
    ):
        with pytest.raises(ValueError, match=r"must be an array of real numbers. Got Equilibrium: give its \.phases"):
            call()


def test_a_critical_scale_counts_one_in_the_singular():
    words = str(pg.critical_scale(pg.Network([[0, 1], [1, 2]], [1.0, 9.0], [0.9, -0.45, -0.45])))
    assert words.endswith(": 1 edge gives way, 1 oscillator breaks away: 0")
