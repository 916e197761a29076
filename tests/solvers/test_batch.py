"""The batch engine against the solvers that take one sample at a time, and against its own equations."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import threadpoolctl
from hypothesis import given, strategies as st
from random_networks import make_network

import phasegrad as pg
from phasegrad.dynamics import build_system
from phasegrad.linearised import PhasorLaplacian, Phasors, Verdict
from phasegrad.linearised._bounds import surely_stable
from phasegrad.solvers import AlignedNewton, Newton, _choice
from phasegrad.solvers._alignment import _OfEdges, _OfPhasors, _swept, align
from phasegrad_bench._batch import batch


def signed_layers(seed: int = 0, *, omega: float = 0.0) -> pg.Network:
    """Clamped inputs, a hidden layer, three outputs, couplings of both signs and bias fields."""
    rng = np.random.default_rng(seed)
    sizes = (4, 12, 3)
    inputs, hidden, outputs = np.split(np.arange(19), np.cumsum(sizes)[:-1])
    edges = [(i, h) for i in inputs for h in hidden] + [(h, o) for h in hidden for o in outputs]
    return pg.Network(
        edges,
        rng.standard_normal(len(edges)),
        omega * rng.standard_normal(19),
        field_strength=rng.standard_normal(19),
        field_phase=rng.uniform(-1, 1, 19),
        inputs=inputs,
        outputs=outputs,
        input_mode="phase",
        signed=True,
    )


class Steep(pg.terms.Interaction):
    """A second harmonic that is not told to be one."""

    def value(self, phi):
        return np.sin(2 * phi)

    def derivative(self, phi):
        return 2 * np.cos(2 * phi)

    def potential(self, phi):
        return -np.cos(2 * phi) / 2


class Own(pg.terms.NodeField):
    """A field of one's own, that compiled code cannot know."""

    every = (pg.terms.Parameter("own_strength"), pg.terms.Parameter("own_phase", default=0.0))
    interaction = Steep()


def pumped(network: pg.Network, seed: int, most: float, own: bool = False) -> pg.Network:
    """The same with second-harmonic injection of either sign and any phase, of one's own or the library's."""
    rng = np.random.default_rng(seed + 1000)
    strength, phase = rng.uniform(-most, most, network.size), rng.uniform(-3, 3, network.size)
    if own:
        return network.replace(terms=[Own()], own_strength=strength, own_phase=phase)
    return network.replace(second_strength=strength, second_phase=phase)


CASES = {
    "paper": (pg.layered(3, 8, 2, seed=1), 3),
    "signed layers": (signed_layers(), 4),
    "signed layers that turn": (signed_layers(1, omega=0.05), 4),
    "dense": (make_network(20, 3, kind="driven").replace(interaction=pg.terms.Sine()), 1),
    "field": (make_network(15, 2, kind="field").replace(interaction=pg.terms.Sine()), 0),
    "pumped layers": (pumped(signed_layers(2), 2, 0.4), 4),
    "own layers": (pumped(signed_layers(2), 2, 0.4, own=True), 4),
    "pumped dense": (make_network(20, 3, kind="driven").replace(interaction=pg.terms.Sine(), second_strength=0.3), 1),
    "odd series": (make_network(9, 4, kind="driven").replace(interaction=pg.terms.OddSeries((1.0, 0.2))), 1),
    "non-reciprocal": (make_network(9, 4, kind="non-reciprocal"), 0),
}


def samples(width: int, count: int = 30, seed: int = 0):
    return np.random.default_rng(seed).uniform(-1, 1, (count, width)) if width else None


def dense_of(network, inputs, nudge=None):
    system, _ = build_system(network, inputs, nudge)
    return system, PhasorLaplacian.of(system, system.place(np.zeros((system.batch, network.size))))


def in_order(matrices, dense):
    """Return reduced Laplacians with rows and columns in the order of the products."""
    place = dense.system.graph.position[dense.nodes]
    return matrices[:, place[:, None], place[None, :]]


@pytest.mark.parametrize(
    "name", ["paper", "signed layers", "dense", "field", "pumped layers", "own layers", "pumped dense"]
)
@pytest.mark.parametrize("nudged", [False, True])
def test_matrix_products_give_the_forces_energies_and_laplacians_of_the_edges(name, nudged):
    network, width = CASES[name]
    inputs = samples(width, 5)
    nudge = pg.Nudge(pg.CosineCrossEntropy(), 1, 0.3) if nudged else None
    system, dense = dense_of(network, inputs, nudge)
    rng = np.random.default_rng(1)
    phases = system.place(rng.uniform(-3, 3, (system.batch, network.size)))
    state = dense.at(phases[:, dense.nodes])
    np.testing.assert_allclose(state.force, system.force(phases)[:, dense.nodes], atol=1e-12)
    matrices = in_order(system.laplacian(phases), dense)
    vectors = rng.standard_normal((system.batch, network.free.size))
    products = np.einsum("bij,bj->bi", matrices, vectors)
    np.testing.assert_allclose(state.matvec(vectors), products, atol=1e-12)
    # Energies differ by what does not move: couplings among held oscillators, and omega at them.
    other = system.place(rng.uniform(-3, 3, (system.batch, network.size)))
    change = dense.at(other[:, dense.nodes]).energy - state.energy
    np.testing.assert_allclose(change, system.energy(other) - system.energy(phases), atol=1e-11)


@pytest.mark.parametrize("nudged", [False, True])
@given(seed=st.integers(0, 1000), floor=st.floats(-2, 2), injection=st.sampled_from([0.0, 1.5]))
def test_elimination_solves_and_judges_as_eigenvalues_do(nudged, seed, floor, injection):
    network = pumped(signed_layers(seed), seed, injection) if injection else signed_layers(seed)
    nudge = pg.Nudge(pg.objectives.OutputDifferences(), 2, 0.4) if nudged else None
    system, dense = dense_of(network, samples(4, 6, seed), nudge)
    phases = system.place(np.random.default_rng(seed).uniform(-1, 1, (6, network.size)))
    state = dense.at(align(dense.phasors, phases[:, dense.nodes], 10))
    phases[:, dense.nodes] = state.moving
    matrices = in_order(system.laplacian(phases), dense)
    lowest = np.linalg.eigvalsh(matrices)[:, 0]
    clear = np.abs(lowest - floor) > 1e-9
    np.testing.assert_array_equal((state.definite(np.full(6, floor)) == Verdict.STABLE)[clear], (lowest > floor)[clear])
    right = np.random.default_rng(seed).standard_normal((6, network.free.size))
    solution, positive = state.solve(right, accuracy=0.0)
    np.testing.assert_array_equal(positive, lowest > 0)
    back = np.einsum("bij,bj->bi", matrices, solution)[positive]
    np.testing.assert_allclose(back, right[positive], atol=1e-8 * (1 + 1 / max(lowest[positive].min(initial=1), 1e-3)))


@pytest.mark.parametrize(("omega", "injection"), [(0.0, 0.0), (0.05, 0.0), (0.0, 0.1)])
def test_alignment_never_raises_the_energy_and_comes_to_rest(omega, injection):
    network = signed_layers(3, omega=omega)
    network = pumped(network, 3, injection) if injection else network
    _, dense = dense_of(network, samples(4, 40))
    phases = np.random.default_rng(0).uniform(-3, 3, (40, network.free.size))
    before = dense.at(phases).energy
    for _ in range(8):
        phases = align(dense.phasors, phases, 1)
        after = dense.at(phases).energy
        if omega == 0:  # with frequencies a full turn changes the energy, and phases come back wrapped
            assert np.all(after <= before + 1e-12)
        before = after
    rest = align(dense.phasors, phases, 300)
    assert np.median(np.max(np.abs(dense.at(rest).force), axis=1)) < 0.05


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("nudged", [False, True])
def test_the_batch_solver_finds_certified_equilibria_of_every_kind_of_network(name, nudged):
    network, width = CASES[name]
    inputs = samples(width)
    free = pg.find_equilibrium(network, inputs, solver="batch")
    assert np.all(free.stable)
    batch = free
    nudge = pg.Nudge(pg.PhaseTargets(), np.full(len(network.outputs), 0.2), 0.05)
    if nudged:
        batch = pg.find_equilibrium(network, inputs, nudge=nudge, start=free.phases, solver="batch")
    one = pg.find_equilibrium(
        network, inputs, nudge=nudge if nudged else None, start=batch.phases, solver="newton", eigenvalue=True
    )
    np.testing.assert_allclose(batch.phases, one.phases, atol=1e-9)
    np.testing.assert_allclose(batch.largest_angle, one.largest_angle, atol=1e-9)
    np.testing.assert_allclose(batch.reference_torque, one.reference_torque, atol=1e-9)
    assert np.all(one.smallest_eigenvalue > 0)
    assert np.all(batch.stable)
    assert np.max(batch.residual) < 1e-11


def test_from_zero_it_finds_what_guarded_newton_finds_where_there_is_one_state():
    network = pg.layered(3, 8, 2, seed=1)
    inputs = samples(3, 50)
    one, batch = (pg.find_equilibrium(network, inputs, solver=solver) for solver in ("newton", "batch"))
    np.testing.assert_allclose(batch.phases, one.phases, atol=1e-10)


def test_a_sample_that_cannot_lock_is_said_and_leaves_the_others_alone():
    network = pg.layered(2, 4, 2, seed=3)
    inputs = np.array([[0.5, -0.5], [400.0, -400.0], [0.1, 0.9]])
    found = pg.find_equilibrium(network, inputs, solver="batch")
    assert [status.name for status in found.status] == ["STABLE", "CANNOT_LOCK", "STABLE"]
    good = pg.find_equilibrium(network, inputs[[0, 2]], solver="newton")
    np.testing.assert_allclose(found.phases[[0, 2]], good.phases, atol=1e-11)


def test_samples_the_batch_cannot_settle_are_handed_on(monkeypatch):
    """One step is too few for Newton: the dense algebra must finish, and without it the residual must say so."""
    network = pg.layered(3, 8, 2, seed=1).replace(input_scale=9.0)
    inputs = samples(3)
    impatient = AlignedNewton(Newton(max_steps=1, algebra=PhasorLaplacian, polish=False), sweeps=0)
    assert not np.any(pg.find_equilibrium(network, inputs, solver=impatient).converged)
    monkeypatch.setattr(_choice, "AlignedNewton", lambda: impatient)
    assert np.all(pg.find_equilibrium(network, inputs, solver="batch").stable)


@given(st.sampled_from(["plain", "field", "driven"]), st.integers(0, 1000), st.floats(0, 2), st.floats(0, 3))
def test_what_the_angle_bound_proves_stable_is_stable(kind, seed, spread, injection):
    network = make_network(7, seed, kind=kind, spread=0.3).replace(interaction=pg.terms.Sine())
    pumps = seed % 3 == 0 and injection > 0
    network = network.replace(second_strength=injection, second_phase=spread) if pumps else network
    inputs = samples(len(network.inputs), 6) if network.inputs else None
    system, _ = build_system(network, inputs, pg.Nudge(pg.PhaseTargets(), [0.3, 0.4], 0.2) if seed % 2 else None)
    system = system.take(np.arange(6) % system.batch)
    phases = system.place(np.random.default_rng(seed).uniform(-spread, spread, (6, 7)))
    proven = surely_stable(system, phases)
    lowest = np.linalg.eigvalsh(system.laplacian(phases))[:, 0]
    assert np.all(lowest[proven] > 0)
    if spread < 0.5 and not pumps:
        assert np.all(proven)


def test_where_nothing_can_be_aligned_newton_settles_it_alone():
    """Too many colours, or no sweeps."""
    network = pg.networks.complete(9, omega=0.1 * np.random.default_rng(0).standard_normal(9), inputs=(0, 1))
    inputs = samples(2, 6)
    expected = pg.find_equilibrium(network, inputs).phases
    for solver in (AlignedNewton(), AlignedNewton(sweeps=0)):
        found = pg.find_equilibrium(network, inputs, solver=solver)
        assert np.all(found.stable)
        np.testing.assert_allclose(found.phases, expected, atol=1e-11)


def test_alignment_stops_where_a_sample_rests():
    """Sweeps beyond that change nothing, whatever the other samples do; both ways of finding fields agree on it."""
    system, _ = build_system(signed_layers(omega=0.3), np.random.default_rng(0).uniform(-1, 1, (5, 4)))
    start = system.place(np.random.default_rng(1).uniform(-np.pi, np.pi, (5, 19)))
    moving = np.take(start, system.graph.blocks.order, axis=1)
    once, more, few = (_swept(_OfEdges(system), moving, sweeps) for sweeps in (40, 80, 10))
    np.testing.assert_array_equal(once, more)
    early = [np.array_equal(few[b], once[b]) for b in range(5)]
    assert 0 < sum(early) < 5
    phasors = Phasors.of(system)
    turned = np.exp(1j * _swept(_OfPhasors(phasors), np.take(start, phasors.nodes, axis=1), 40))
    np.testing.assert_allclose(turned, np.exp(1j * once), atol=1e-12)


def test_alignment_balances_fields_that_are_no_sines():
    """A hidden oscillator comes to rest where the forces of its neighbours, field and second harmonic cancel."""
    network = pg.networks.signed_layers(4, 12, 3, seed=1, second_strength=np.r_[np.zeros(4), np.full(15, 0.15)])
    system, _ = build_system(network, np.random.default_rng(0).uniform(-1, 1, (6, 4)))
    start = system.place(np.zeros((6, 19)))
    order = system.graph.blocks.order
    both = _OfPhasors(Phasors.of(system)), _OfEdges(system)
    ways = [_swept(fields, np.take(start, order, axis=1), 60) for fields in both]
    np.testing.assert_allclose(np.exp(1j * ways[0]), np.exp(1j * ways[1]), atol=1e-9)
    phases = start.copy()
    phases[:, order] = ways[0]
    assert np.max(np.abs(system.force(phases)[:, order])) < 0.1  # the last sweep turned none by more than 0.02
    assert np.max(np.abs(system.force(start)[:, order])) > 1


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="'sweeps' parameter of AlignedNewton"):
        AlignedNewton(sweeps=-1)
    with pytest.raises(ValueError, match="'max_turn' parameter of Newton"):
        Newton(max_turn=0.0)


def test_colours_are_groups_without_edges_and_keep_outputs_apart():
    for network in (
        pg.layered(3, 6, 2),
        pg.networks.complete(5),
        pg.networks.lattice(4, 4, outputs=[15]),
        signed_layers(),
    ):
        assert sorted(np.concatenate(network.graph.colours).tolist()) == list(range(network.free.size))
        for group in network.graph.colours:
            members = network.free[group]
            assert not np.any(np.all(np.isin(network.edges, members), axis=1))
            assert np.isin(members, network.outputs).all() or not np.isin(members, network.outputs).any()


def test_threads_that_settle_at_once_leave_blas_as_it_was():
    """Each holds BLAS to one thread while it works; the last one out restores what was before the first came in."""
    network, inputs = CASES["signed layers"]
    before = [(lib["internal_api"], lib["num_threads"]) for lib in threadpoolctl.threadpool_info()]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda seed: pg.find_equilibrium(network, samples(inputs, 20, seed)), range(16)))
    assert all(each.stable.all() for each in found)
    assert [(lib["internal_api"], lib["num_threads"]) for lib in threadpoolctl.threadpool_info()] == before


@pytest.mark.slow
def test_the_batch_engine_keeps_its_promised_ratios():
    """CPU time within one run; the plain way alone takes seconds per sample."""
    figures = batch(rounds=3)
    assert figures["ratio_plain"] >= 300
    assert figures["ratio_lapack"] >= 10


def test_descent_does_not_crawl_along_saddles():
    """Without frequencies there always is a stable state; couplings of both signs put saddles in the way to it."""
    most = 0
    for seed in range(8):
        found = pg.find_equilibrium(signed_layers(seed), samples(4, 40, seed), start="random", seed=seed)
        assert found.stable.all()
        most = max(most, int(found.steps.max()))
    assert most < 100  # 304 where the stand-in metric alone leads down


def test_a_field_that_points_away_is_no_proof_of_stability():
    """Half a turn from its field an oscillator is pushed on by it, however well it agrees with the others."""
    network = pg.networks.ring(4, coupling=0.1, field_strength=np.full(4, 2.0), inputs=(1,), outputs=(3,))
    system, _ = build_system(network, np.zeros((3, 1)))
    for phase, expected in ((0.0, True), (np.pi, False)):
        phases = np.full((3, 4), phase)
        assert np.all(np.linalg.eigvalsh(system.laplacian(phases))[:, 0] > 0) == expected
        assert np.all(surely_stable(system, phases)) == np.any(surely_stable(system, phases)) == expected


def test_phases_a_full_turn_apart_prove_nothing_and_hide_nothing():
    """Whatever lies between them: a chain of three whose ends agree, the middle one with them or nearly opposite."""
    system, _ = build_system(pg.Network([[0, 1], [1, 2]], 1.0, np.zeros(3)), None)
    phases = np.array([[0.0, 0.1, 2 * np.pi], [0.0, 2.5, 2 * np.pi]])
    np.testing.assert_array_equal(surely_stable(system.take(np.zeros(2, dtype=int)), phases), [True, False])


def test_a_bound_that_needs_couplings_of_one_sign_says_nothing_of_others():
    """All phases equal: one strong repulsion among attractions makes that unstable."""
    for last, expected in ((1.0, True), (-5.0, False)):
        system, _ = build_system(pg.Network([[0, 1], [0, 2], [1, 2]], [1.0, 1.0, last], np.zeros(3), signed=True), None)
        phases = np.zeros((2, 3))
        assert np.all(np.linalg.eigvalsh(system.laplacian(phases))[:, 0] > 0) == expected
        assert surely_stable(system.take(np.zeros(2, dtype=int)), phases).tolist() == [expected] * 2
