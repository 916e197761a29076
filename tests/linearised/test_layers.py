"""The compiled elimination of a mini-batch against LAPACK, the general solver and its own company."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, strategies as st

import phasegrad as pg
from phasegrad.dynamics import build_system
from phasegrad.linearised import PhasorLaplacian, Phasors, Verdict

pytestmark = pytest.mark.internal


class OwnCost(pg.Cost):
    """A cost that compiled code cannot know, with couplings between the outputs."""

    def cost(self, phases, target):
        return np.sum((1 - np.cos(phases - target)) ** 2, axis=-1) + 0.1 * phases[..., 0] * phases[..., -1]

    def force(self, phases, target):
        slope = 2 * (1 - np.cos(phases - target)) * np.sin(phases - target)
        slope[..., 0] += 0.1 * phases[..., -1]
        slope[..., -1] += 0.1 * phases[..., 0]
        return -slope


COSTS = {
    "free": None,
    "quadratic": (pg.PhaseTargets(), 0.3 * np.arange(3)),
    "periodic": (pg.objectives.OneHotPhases(), 1),
    "entropy": (pg.CosineCrossEntropy(sharpness=5.0), 2),
    "of one's own": (OwnCost(), np.array([0.3, -0.2, 0.1])),
}


def network(
    seed: int, *, omega: float = 0.0, inner: bool = False, hidden: int = 10, injection: float = 0.0
) -> pg.Network:
    """Four clamped inputs, a hidden layer, three outputs that may be coupled with each other, and bias fields.

    With injection at twice the frequency, of either sign.
    """
    rng = np.random.default_rng(seed)
    inputs, middle, outputs = range(4), range(4, 4 + hidden), range(4 + hidden, 7 + hidden)
    edges = [(i, h) for i in inputs for h in middle] + [(h, o) for h in middle for o in outputs]
    if inner:
        edges += [(outputs[0], outputs[1]), (outputs[1], outputs[2])]
    size = 7 + hidden
    made = pg.Network(
        edges, rng.standard_normal(len(edges)), omega * rng.standard_normal(size), inputs=inputs, outputs=outputs,
        field_strength=1 + rng.random(size), field_phase=rng.uniform(-1, 1, size), input_mode="phase", signed=True,
    )  # fmt: skip
    if not injection:
        return made
    strength, phase = rng.uniform(-injection, injection, size), rng.uniform(-3, 3, size)
    return made.replace(second_strength=strength, second_phase=phase)


def products(net: pg.Network, count: int, seed: int, cost=None, beta: float = 0.2) -> Phasors:
    inputs = np.random.default_rng(seed).uniform(-1, 1, (count, 4))
    nudge = None if cost is None else pg.Nudge(cost[0], np.broadcast_to(cost[1], (count, *np.shape(cost[1]))), beta)
    made = Phasors.of(build_system(net, inputs, nudge)[0])
    assert made.eliminates
    return made


def whole(made: Phasors, moving: np.ndarray) -> np.ndarray:
    phases = np.empty((moving.shape[0], made.base.graph.size))
    phases[:, made.base.graph.held], phases[:, made.nodes] = made.base.held_phases, moving
    return phases


def laplacian(made: Phasors, moving: np.ndarray) -> np.ndarray:
    """The reduced Laplacian with its nudge, by the edges, in the order of the kernel."""
    place = made.base.graph.position[made.nodes]
    return made.system.laplacian(whole(made, moving))[:, place[:, None], place[None, :]]


def strides(made: Phasors, start: np.ndarray, count: int = 40):
    found = PhasorLaplacian(made, start).stride(np.full(start.shape[0], 1e-12), count, 1.0, 0.25, polish=False)
    assert found is not None
    return found


def exceeds(made: Phasors, moving: np.ndarray, floor: np.ndarray) -> np.ndarray:
    return PhasorLaplacian(made, moving).definite(floor) == Verdict.STABLE


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("cost", list(COSTS))
@given(
    seed=st.integers(0, 10**6), omega=st.sampled_from([0.0, 0.3]), floor=st.floats(-2, 2),
    injection=st.sampled_from([0.0, 1.0]),
)  # fmt: skip
def test_it_solves_and_judges_as_lapack_does(cost, inner, seed, omega, floor, injection):
    made = products(network(seed, omega=omega, inner=inner, injection=injection), 11, seed, COSTS[cost])
    rng = np.random.default_rng(seed)
    moving = rng.uniform(-1, 1, made.x.shape)
    matrices = laplacian(made, moving)
    lowest = np.linalg.eigvalsh(matrices)[:, 0]
    clear = np.abs(lowest - floor) > 1e-9
    np.testing.assert_array_equal(exceeds(made, moving, np.full(11, floor))[clear], (lowest > floor)[clear])
    right = rng.standard_normal(moving.shape)
    solution, definite = made.elimination.solve(made.surroundings, made.pull, moving, right)
    clear = np.abs(lowest) > 1e-9
    np.testing.assert_array_equal(definite[clear], (lowest > 0)[clear])
    for k in np.flatnonzero(definite):
        error = np.max(np.abs(solution[k] - np.linalg.solve(matrices[k], right[k])))
        # The Hessian of a cost of one's own is a central difference, the same in both.
        assert error <= 1e-12 * np.linalg.cond(matrices[k]) * (1 + np.max(np.abs(solution[k])))


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("cost", list(COSTS))
@pytest.mark.parametrize(("omega", "injection"), [(0.0, 0.0), (0.2, 0.0), (0.0, 0.3)])
def test_its_strides_end_where_find_equilibrium_does(cost, inner, omega, injection):
    net = network(3, omega=omega, inner=inner, injection=injection)
    free = products(net, 21, 3)
    start = pg.find_equilibrium(net, np.random.default_rng(3).uniform(-1, 1, (21, 4)))
    made = products(net, 21, 3, COSTS[cost], beta=0.05)
    moving, left, steps = strides(made, start.phases[:, free.nodes])
    settled = left <= 1e-12
    assert np.mean(settled) > 0.9
    nudge = None if COSTS[cost] is None else pg.Nudge(*COSTS[cost], 0.05)
    expected = pg.find_equilibrium(net, start.inputs, nudge=nudge, start=start.phases)
    np.testing.assert_allclose(moving[settled], expected.phases[settled][:, made.nodes], atol=1e-10)
    assert np.all(steps[settled] <= 8)


@pytest.mark.parametrize("sweeps", [1, 5])
@pytest.mark.parametrize(("omega", "injection"), [(0.0, 0.0), (0.2, 0.0), (0.2, 0.3)])
def test_alignment_turns_every_oscillator_toward_its_field(sweeps, omega, injection):
    """Against the same sweeps by matrix products; the kernel's angles are good to 2e-6, Newton does the rest."""
    from phasegrad.solvers._alignment import _OfPhasors, _swept

    made = products(network(5, omega=omega, injection=injection), 19, 5)
    start = np.random.default_rng(0).uniform(-3, 3, made.x.shape)
    fast = made.elimination.align(made.surroundings, start, sweeps, 0.02)
    slow = _swept(_OfPhasors(made), start, sweeps)
    np.testing.assert_allclose(np.exp(1j * fast), np.exp(1j * slow), atol=4e-6)


@pytest.mark.parametrize("cost", list(COSTS))
def test_no_sample_depends_on_its_company_bit_by_bit(cost):
    """Alone, in another order, in a batch that fills no tile, beside samples that are not numbers."""
    made = products(network(7, inner=True), 13, 7, COSTS[cost])
    rng = np.random.default_rng(7)
    moving, floor = rng.uniform(-0.5, 0.5, made.x.shape), np.full(13, 0.1)
    found, left, _ = strides(made, moving)
    judged = exceeds(made, moving, floor)
    order = rng.permutation(13)
    shuffled = made.take(order)
    np.testing.assert_array_equal(strides(shuffled, moving[order])[0], found[order])
    for k in (0, 5, 12):
        alone = made.take(np.array([k]))
        np.testing.assert_array_equal(strides(alone, moving[[k]])[0][0], found[k])
        assert exceeds(alone, moving[[k]], floor[[k]])[0] == judged[k]
    broken = moving.copy()
    broken[4] = np.nan
    again, left_again, _ = strides(made, broken)
    others = np.arange(13) != 4
    np.testing.assert_array_equal(again[others], found[others])
    np.testing.assert_array_equal(left_again[others], left[others])
    assert not left_again[4] <= 1e-12
    assert not exceeds(made, broken, floor)[4]


@pytest.mark.parametrize("hidden", [3, 4, 5, 16, 17])
def test_a_layer_of_any_width_fills_up_without_a_trace(hidden):
    net = network(hidden, hidden=hidden)
    made = products(net, 9, 0)
    start = pg.find_equilibrium(net, np.random.default_rng(0).uniform(-1, 1, (9, 4)))
    moving, left, _ = strides(made, start.phases[:, made.nodes] + 1e-3)
    assert np.all(left <= 1e-12)
    np.testing.assert_allclose(moving, start.phases[:, made.nodes], atol=1e-10)


def test_threads_share_a_network_without_a_trace():
    """The kernel runs outside the interpreter's lock: memory that calls shared would mix their samples up."""
    made = products(network(9), 20_000, 9)
    starts = [np.random.default_rng(seed).uniform(-0.5, 0.5, made.x.shape) for seed in range(8)]
    alone = [strides(made, start)[0] for start in starts]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda start: strides(made, start)[0], starts))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)
