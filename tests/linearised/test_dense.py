"""Dense networks of twenty kinds: no answer "stable" is false, and none is missing that the dynamics would give.

The judge is `dense_networks.Dynamics`: eigenvalues of its own Jacobian, and its own integration.
"""

import dense_networks as dense
import numpy as np
import pytest

import phasegrad as pg
from phasegrad.dynamics import assemble, build_system
from phasegrad.linearised import DenseLaplacian, linearise
from phasegrad.solvers._guards import EnergyGuard, ForceGuard
from phasegrad.solvers._stiff_flow import _stride

SOLVERS = ("auto", "newton", "sparse", "flow", "batch")
#: Kinds in which solvers give up most often.
HARD = (
    dense.near_critical, dense.spread_scales, dense.frustrated, dense.random, dense.complete, dense.field, dense.tree,
    dense.not_monotone, dense.second_harmonic, dense.nudged, dense.non_reciprocal_field,
)  # fmt: skip


def solvers_of(case: dense.Case) -> tuple[str, ...]:
    """Return the solvers that take a case: the sparse one needs an energy."""
    return SOLVERS if case.network.reciprocal else tuple(word for word in SOLVERS if word != "sparse")


def stable_answers(kind, indices: range, *, most: int, integrated: int) -> int:
    """Check every answer "stable" about networks of a kind, every ``integrated``-th by integration; return how many."""
    count = 0
    for index in indices:
        case, rng = dense.draw(kind, index, most)
        starts, dynamics = dense.starts_of(case, rng, 5), dense.Dynamics(case)
        found = [case.find(starts, word) for word in solvers_of(case)]
        states = np.concatenate([each.phases[each.stable] for each in found])
        if len(states) == 0:
            continue
        where = f"{case.name} {index}"
        # Residuals are at most 1e-12, relative where forces are weak.
        assert np.max(np.abs(dynamics.rate(states))) <= 1e-9 * min(1.0, dynamics.stiffness()), where
        assert np.all(dynamics.slowest(states)[0] > 0), where
        by_integration = (count + np.arange(len(states))) % integrated == 0
        for chosen, integrate in ((by_integration, True), (~by_integration, False)):
            if np.any(chosen):
                assert np.all(dynamics.returns(states[chosen], rng, integrate=integrate)), where
        count += len(states)
    return count


@pytest.mark.parametrize("kind", dense.KINDS, ids=lambda kind: kind.__name__)
def test_1000_stable_answers_are_true(kind):
    """Every tenth by integration, the others in linear response."""
    assert stable_answers(kind, range(3, 6), most=10, integrated=10) >= 25


@pytest.mark.slow
@pytest.mark.parametrize("kind", dense.KINDS, ids=lambda kind: kind.__name__)
def test_10000_stable_answers_are_true(kind):
    """All by integration: 330 to 750 answers about each of 19 kinds, 12,751 in all."""
    assert stable_answers(kind, range(6, 36), most=24, integrated=1) >= 300


def missed(kinds, indices: range, *, most: int) -> tuple[int, list[str]]:
    """Return how many answers are "did not converge", and where the dynamics settle from the same start."""
    count, wrong = 0, []
    for index in indices:
        for kind in kinds:
            case, rng = dense.draw(kind, index, most)
            starts, dynamics, settles = dense.starts_of(case, rng, 5), dense.Dynamics(case), {}
            for word in solvers_of(case):
                found = case.find(starts, word)
                for b in np.flatnonzero(found.status == pg.Status.UNCONVERGED):
                    if b not in settles:
                        settles[b] = dynamics.settles(dynamics.placed(starts[b], found.phases[b])) is not None
                    count += 1
                    if settles[b]:
                        wrong.append(f"{word}: {case.name} {index}, start {b}")
    return count, wrong


def test_where_20_answers_are_did_not_converge_the_dynamics_settle_nowhere():
    count, wrong = missed((dense.random,), range(5, 6), most=24)
    assert count >= 20
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 15, 5))
def test_where_200_answers_are_did_not_converge_the_dynamics_settle_nowhere(first):
    count, wrong = missed(HARD, range(first, first + 5), most=24)
    assert count >= 70
    assert not wrong


@pytest.mark.parametrize(
    ("kind", "index", "start", "words"),
    [
        (dense.near_critical, 0, 2, ("auto", "newton", "batch")),
        (dense.near_critical, 9, 2, ("sparse",)),
        (dense.field, 1, 0, ("sparse",)),
        (dense.not_monotone, 1, 2, ("auto", "newton", "sparse", "batch")),
        (dense.spread_scales, 1, 3, ("auto", "newton", "sparse", "batch")),
        (dense.frustrated, 4, 3, ("flow",)),
        (dense.second_harmonic, 5, 4, ("auto", "newton", "flow", "batch")),
        (dense.non_reciprocal_field, 1, 2, ("newton", "batch")),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_solver_that_gives_up_follows_the_dynamics_to_a_stable_state(kind, index, start, words):
    """Starts that Newton, or the explicit flow, leave without a state, while the network itself finds one."""
    case, rng = dense.draw(kind, index)
    starts = dense.starts_of(case, rng, 5)
    for word in words:
        found = case.find(starts[[start]], word)
        assert found.stable.all(), word
        assert np.all(dense.Dynamics(case).returns(found.phases, rng, integrate=True))


class TestPersistence:
    TORN = pg.Network([[0, 1], [0, 2], [1, 2], [3, 4], [3, 5], [4, 5], [2, 3]], 1.0, [0.9] * 3 + [-0.9] * 3)

    @pytest.mark.parametrize("word", SOLVERS)
    def test_a_network_without_a_locked_state_is_given_up_after_few_steps(self, word):
        """Two halves pull apart. The dynamics are left after four turns, not after all the steps they might take."""
        rng = np.random.default_rng(0)
        starts = rng.uniform(-np.pi, np.pi, (20, 6))
        alone = pg.find_equilibrium(self.TORN, start=starts, solver=pg.solvers.Newton(algebra=DenseLaplacian))
        found = pg.find_equilibrium(self.TORN, start=starts, solver=word)
        assert np.all(found.status == pg.Status.UNCONVERGED)
        assert np.all(np.isfinite(found.phases))
        if word != "flow":
            assert np.median(found.steps) <= 20 * np.median(alone.steps)

    def test_what_converged_at_once_is_left_as_it_is_bitwise(self):
        case, rng = dense.draw(dense.near_critical, 2)
        starts = dense.starts_of(case, rng, 8)
        alone = case.find(starts, pg.solvers.Newton(algebra=DenseLaplacian))
        found = case.find(starts, "newton")
        assert 0 < np.sum(alone.converged) < 8
        assert np.all(found.stable)
        np.testing.assert_array_equal(found.phases[alone.converged], alone.phases[alone.converged])
        np.testing.assert_array_equal(found.steps[alone.converged], alone.steps[alone.converged])

    def test_a_rescued_sample_does_not_depend_on_its_company(self):
        case, rng = dense.draw(dense.near_critical, 2)
        starts = dense.starts_of(case, rng, 5)
        together = case.find(starts, "newton").phases
        alone = np.concatenate([case.find(starts[[b]], "newton").phases for b in range(5)])
        np.testing.assert_array_equal(together, alone)

    def test_a_sample_that_began_at_phase_zero_is_not_begun_there_again(self):
        """The third attempt would be the first again: it costs no step."""
        starts = np.array([np.zeros(6), [0.0, 1e-9, 0.0, 0.0, 0.0, 0.0]])
        found = pg.find_equilibrium(self.TORN, start=starts, solver="newton")
        once = pg.find_equilibrium(self.TORN, solver=pg.solvers.Newton(algebra=DenseLaplacian))
        assert found.steps[1] - found.steps[0] == pytest.approx(once.steps, abs=2)

    def test_a_solver_object_stands_for_itself(self):
        case, rng = dense.draw(dense.near_critical, 2)
        starts = dense.starts_of(case, rng, 5)
        assert case.find(starts, pg.solvers.Newton(algebra=DenseLaplacian)).counts[pg.Status.UNCONVERGED] > 0

    def test_under_a_nudge_no_state_is_looked_for_from_another_start(self):
        """The pull away from the target runs away from this start, but not from phase zero."""
        network = pg.Network([[0, 1]], 1.0, [0.0, 0.0], outputs=[1])
        nudge = pg.Nudge(pg.PhaseTargets(), [0.0], -0.5)
        assert pg.find_equilibrium(network, nudge=nudge).stable
        assert pg.find_equilibrium(network, nudge=nudge, start=[0.0, 3.0]).status == pg.Status.UNCONVERGED


def test_a_step_of_the_stiff_flow_is_ros2_and_its_error_the_distance_to_first_order():
    """One oscillator in a field of strength 2: k = F / (1 + g h L), l = (F' - 2 k) / (1 + g h L)."""
    network = pg.Network([], 1.0, [0.5], field_strength=[2.0], field_phase=[0.0])
    system, _ = build_system(network, None)
    angle, h, gamma = 0.7, 0.2, 1 - 1 / np.sqrt(2)
    phases = np.array([[angle]])
    step, error = _stride(system, phases, system.force(phases), 0.0, np.array([h]))
    first = (0.5 - 2 * np.sin(angle)) / (1 + gamma * h * 2 * np.cos(angle))
    second = (0.5 - 2 * np.sin(angle + h * first) - 2 * first) / (1 + gamma * h * 2 * np.cos(angle))
    assert step.item() == pytest.approx(h * (3 * first + second) / 2, rel=1e-14)
    assert error.item() == pytest.approx(abs(step.item() - h * first), rel=1e-12)


def test_a_singular_laplacian_has_no_response():
    """A pair whose pulls cancel, beside one whose pulls do not."""
    reverse = {"coupling_reverse": np.array([[-1.0], [-0.5]])}
    network = pg.Network([[0, 1]], [1.0], [0.0, 0.0], coupling_reverse=[-1.0], signed=True)
    system = assemble(network, None, 2, reverse)
    phases, right = np.zeros((2, 2)), np.ones((2, 1))
    solution, regular = linearise(system, phases).solve(right)
    assert regular.tolist() == [False, True]
    assert solution[1] == pytest.approx(2.0)


@pytest.mark.parametrize("transposed", [False, True])
def test_a_response_solves_its_own_system_and_not_the_transposed_one(transposed):
    case, rng = dense.draw(dense.non_reciprocal_field, 1)
    system, _ = build_system(case.network, None)
    phases = system.place(0.1 * rng.standard_normal((1, case.network.size)))
    matrix = system.laplacian(phases)[0]
    assert not np.allclose(matrix, matrix.T, rtol=0.01)
    right = rng.standard_normal((1, len(matrix), 2))
    state = linearise(system, phases)
    for _ in range(2):
        solution, regular = state.solve(right, transposed=transposed)
        assert regular.tolist() == [True]
        np.testing.assert_allclose((matrix.T if transposed else matrix) @ solution[0], right[0], atol=1e-10)


class TestGuards:
    class Dear(pg.PhaseTargets):
        """A cost so high that digits of the energy are lost."""

        def cost(self, phases, target):
            return 1e12 + super().cost(phases, target)

    def test_without_an_energy_the_force_must_fall(self):
        system, _ = build_system(pg.Network([[0, 1]], 1.0, [0.0, 0.0], coupling_reverse=[2.0]), None)
        state, down, up = (DenseLaplacian(system, np.array([[angle]])) for angle in (0.5, 0.3, 0.7))
        guard = ForceGuard(state, down.moving - state.moving)
        assert guard.accepts(np.arange(1), down, 1.0).tolist() == [True]
        assert guard.accepts(np.arange(1), up, 1.0).tolist() == [False]
        assert guard.accepts(np.arange(1), state, 1.0).tolist() == [False]

    def test_where_rounding_hides_the_energy_the_force_decides(self):
        """Near rest a step gains less than the last digit: it counts if it weakens the force, and not otherwise."""
        network = pg.Network([[0, 1]], 1.0, [0.0, 0.0], outputs=[1])
        for cost in (pg.PhaseTargets(), self.Dear()):
            system, _ = build_system(network, None, pg.Nudge(cost, [0.0], 1.0))
            state, down, up = (DenseLaplacian(system, np.array([[angle]])) for angle in (1e-9, 0.5e-9, 1.5e-9))
            guard = EnergyGuard(state, np.array([[-1e-9]]))
            assert guard.accepts(np.arange(1), down, 0.5).tolist() == [True]
            assert guard.accepts(np.arange(1), up, 0.5).tolist() == [False]
