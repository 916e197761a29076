"""All stable states: winding starts, cycle bases, chains of cycles, and how sure one may be."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st
from random_networks import connected_edges, make_network
from scipy import stats

import phasegrad as pg
from phasegrad.dynamics import wrapped
from phasegrad.equilibria._winding import CycleBasis


def count_of(n: int) -> int:
    """Return how many stable states a ring of n equal oscillators has."""
    return 2 * -(-n // 4) - 1


@pytest.mark.parametrize("n", range(5, 25))
def test_winding_starts_find_every_state_of_a_ring(n):
    states = pg.find_equilibria(pg.networks.ring(n), starts=1)
    assert len(states) == states.winding_starts == states.winding_total == count_of(n)
    winding = states.winding[:, 0]
    np.testing.assert_allclose(states.energy, -n * np.cos(2 * np.pi * winding / n), atol=1e-10)
    assert states.equilibrium.stable.all()
    np.testing.assert_allclose(wrapped(states.equilibrium.phases - states.phases), 0.0, atol=1e-9)
    ring, cosine = nx.laplacian_matrix(nx.cycle_graph(n)).toarray()[1:, 1:], np.cos(2 * np.pi * winding / n)
    np.testing.assert_allclose(states.equilibrium.smallest_eigenvalue, cosine * np.linalg.eigvalsh(ring)[0], atol=1e-10)


def check_cycle_chain(cycles: int, length: int, winding: int = 100) -> None:
    states = pg.find_equilibria(pg.networks.cycle_chain(cycles, length), starts=1, winding=winding)
    assert len(states) == count_of(length) ** cycles
    assert states.equilibrium.stable.all()
    single = range(-((length - 1) // 4), (length - 1) // 4 + 1)
    assert sorted(map(tuple, states.winding.tolist())) == sorted(itertools.product(single, repeat=cycles))
    energies = -length * np.cos(2 * np.pi * states.winding / length).sum(axis=1)
    np.testing.assert_allclose(states.energy, energies, atol=1e-9)


@pytest.mark.parametrize("length", [5, 6, 7, 8])
def test_a_cycle_chain_of_four_cycles_has_the_81_states_of_the_theorem(length):
    check_cycle_chain(4, length)


@pytest.mark.slow
@pytest.mark.parametrize(("cycles", "length"), [(1, 40), (2, 24), (3, 16), (4, 12), (6, 8), (7, 5)])
def test_a_larger_cycle_chain_has_the_states_of_the_theorem(cycles, length):
    check_cycle_chain(cycles, length, winding=3000)


@pytest.mark.slow
def test_random_starts_meet_no_state_of_a_cycle_chain_that_the_theorem_does_not_know():
    states = pg.find_equilibria(pg.networks.cycle_chain(3, 6), starts=3000)
    assert len(states) == 27
    assert states.unstable == states.unconverged == 0
    assert states.share.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("cycles", "length"), [(1, 3), (2, 3), (3, 6), (4, 7)])
def test_cycles_of_a_cycle_chain_share_single_nodes(cycles, length):
    network = pg.networks.cycle_chain(cycles, length, coupling=np.arange(1.0, cycles * length + 1))
    assert (network.size, network.n_edges) == (cycles * (length - 1) + 1, cycles * length)
    graph = pg.networks.to_networkx(network)
    parts = list(nx.biconnected_components(graph))
    assert sorted(map(len, parts)) == [length] * cycles
    assert all(graph.subgraph(part).number_of_edges() == length for part in parts)
    shared = [node for node, degree in graph.degree if degree == 4]
    assert shared == [c * (length - 1) + length // 2 for c in range(cycles - 1)]
    assert network.coupling.tolist() == list(range(1, cycles * length + 1))


def test_two_pentagons_that_share_an_edge_hold_fewer_states_than_a_cycle_chain():
    """Both winding by +1 leaves four edges of each at a quarter turn: the gluing of the theorem is by nodes."""
    edges = [*[[k, (k + 1) % 5] for k in range(5)], [1, 5], [5, 6], [6, 7], [0, 7]]
    assert len(pg.find_equilibria(pg.Network(edges, 1.0, np.zeros(8)), starts=200)) < 9


@pytest.mark.parametrize(("given", "words"), [((0, 5), "'cycles'"), ((2, 2), "'length'"), ((2, 5.5), "'length'")])
def test_a_cycle_chain_of_nothing_is_refused(given, words):
    with pytest.raises((TypeError, ValueError), match=words):
        pg.networks.cycle_chain(*given)


@given(seed=st.integers(0, 2**31))
def test_a_cycle_basis_spans_all_closed_ways(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 12))
    network = pg.Network(connected_edges(n, rng, 0.3), 1.0, np.zeros(n))
    basis = CycleBasis.of(network.graph)
    dense = basis.matrix.toarray()
    assert len(basis) == network.n_edges - n + 1
    assert not len(basis) or np.linalg.matrix_rank(dense) == len(basis)
    # Differences of phases add up to nothing around a cycle, and full turns of single oscillators change no winding.
    phases = rng.uniform(-9, 9, (3, n))
    np.testing.assert_allclose(dense @ network.graph.angles(phases).T, 0.0, atol=1e-12)
    turned = phases + 2 * np.pi * rng.integers(-3, 3, (3, n))
    np.testing.assert_array_equal(basis.winding(phases), basis.winding(turned))
    shortest = nx.minimum_cycle_basis(pg.networks.to_networkx(network))
    assert sum(cycle.size for cycle in basis.cycles) == sum(map(len, shortest))


def test_winding_is_counted_along_the_cycles_that_are_named():
    states = pg.find_equilibria(pg.networks.cycle_chain(2, 7, omega=np.linspace(-0.05, 0.05, 13)), starts=1)
    assert len(states) == 9
    for cycle, winding in zip(states.cycles, states.winding.T, strict=True):
        around = states.phases[:, cycle]
        steps = wrapped(np.roll(around, -1, axis=1) - around)
        np.testing.assert_allclose(steps.sum(axis=1), 2 * np.pi * winding, atol=1e-12)


def test_a_winding_start_has_the_least_energy_of_the_linearised_network():
    """A ring's angles under unequal couplings: w (angle) is the same everywhere and the angles sum to 2 pi k."""
    coupling = np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 1.0])
    network = pg.networks.ring(7, coupling=coupling)
    basis = CycleBasis.of(network.graph)
    starts, total = basis.starts(network, 100)
    assert total == 3
    matrix = basis.matrix.toarray()[0]
    for phases, k in zip(starts, (0, -1, 1), strict=True):
        across = matrix * wrapped(phases[network.edges[:, 1]] - phases[network.edges[:, 0]])
        np.testing.assert_allclose(across, 2 * np.pi * k / coupling / np.sum(1 / coupling), atol=1e-9)


def test_the_lowest_combinations_come_first_and_no_more_than_asked_for():
    network = pg.networks.cycle_chain(3, 9)
    basis = CycleBasis.of(network.graph)
    starts, total = basis.starts(network, 20)
    assert (len(starts), total) == (20, 125)
    costs = np.sum(basis.winding(starts) ** 2, axis=1)
    assert costs.tolist() == sorted(costs)
    every = [sum(k**2 for k in turns) for turns in itertools.product(range(-2, 3), repeat=3)]
    assert costs.tolist() == sorted(every)[:20]
    states = pg.find_equilibria(network, starts=1, winding=20)
    assert (len(states), states.winding_starts, states.winding_total) == (20, 20, 125)
    assert "20 of 125 winding starts" in str(states)
    assert pg.find_equilibria(network, starts=1, winding=0).winding_starts == 0


def test_negative_couplings_rest_half_a_turn_apart():
    """Three oscillators that repel each other stand a third of a turn apart, in one order or the other."""
    network = pg.Network([[0, 1], [1, 2], [0, 2]], -1.0, np.zeros(3), signed=True)
    states = pg.find_equilibria(network, starts=1)
    assert sorted(states.winding[:, 0].tolist()) == [-1, 1]
    np.testing.assert_allclose(states.energy, -1.5)
    # A balanced ring of eight with one negative edge winds by half turns: |k - 1/2| < 2.
    ring = pg.networks.ring(8, coupling=[-1.0, 1, 1, 1, 1, 1, 1, 1], signed=True)
    angles = np.sort(pg.find_equilibria(ring, starts=1).energy)
    np.testing.assert_allclose(angles, np.sort([-8 * np.cos(np.pi * k / 8) for k in (-3, -1, 1, 3)]), atol=1e-10)


def test_a_state_found_by_winding_alone_has_a_bound_on_its_share():
    states = pg.find_equilibria(pg.networks.ring(12), starts=50)
    assert len(states) == 5
    for share, interval in zip(states.share, states.share_interval, strict=True):
        exact = stats.binomtest(round(50 * share), 50).proportion_ci(0.95, method="exact")
        np.testing.assert_allclose(interval, exact, atol=1e-12)
    assert states.share[-1] == 0.0
    assert states.share_interval[-1].tolist() == pytest.approx([0.0, 1 - 0.025 ** (1 / 50)])
    alone = pg.find_equilibria(pg.networks.complete(4), starts=50)
    assert alone.share_interval[0].tolist() == pytest.approx([0.025 ** (1 / 50), 1.0])


def test_the_chance_to_miss_a_basin_is_said():
    states = pg.find_equilibria(pg.networks.ring(5), starts=7)
    assert states.missed(0.25) == pytest.approx(0.75**7)
    assert (states.missed(0.0), states.missed(1.0)) == (1.0, 0.0)
    assert f"probability {0.99**7:.2g}" in str(states)
    for bad in (-0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="'share' parameter of missed"):
            states.missed(bad)
    with pytest.raises(ValueError, match="'winding' parameter of find_equilibria"):
        pg.find_equilibria(pg.networks.ring(5), winding=-1)


def test_winding_starts_meet_clamped_phases():
    # One clamped oscillator turns all states of a ring and takes none away; each part of a graph has its own.
    ring = pg.networks.ring(9, inputs=[4], input_mode="phase", input_scale=1.0)
    for phase in (0.0, 0.75, 3.0):
        states = pg.find_equilibria(ring, [phase], starts=1)
        assert sorted(states.winding[:, 0].tolist()) == [-2, -1, 0, 1, 2]
        np.testing.assert_allclose(np.exp(1j * states.phases[:, 4]), np.exp(1j * phase), atol=1e-12)
    edges = np.concatenate([ring.edges, ring.edges + 9])
    two = pg.Network(edges, 1.0, np.zeros(18), inputs=[1, 12], input_mode="phase", input_scale=1.0)
    assert len(pg.find_equilibria(two, [2.0, -1.0], starts=1)) == 25


def test_a_loose_tolerance_makes_no_second_copy_of_a_state():
    states = pg.find_equilibria(pg.networks.ring(8), starts=60, tolerance=1e-3)
    assert sorted(states.winding[:, 0].tolist()) == [-1, 0, 1]


def test_states_do_not_depend_on_numbers_of_nodes_the_reference_or_a_constant_frequency():
    rng = np.random.default_rng(3)
    network = pg.networks.cycle_chain(2, 6, omega=0.05 * rng.standard_normal(11))
    order = rng.permutation(11)
    others = (
        pg.Network(np.argsort(order)[network.edges], 1.0, network.omega[order]),
        network.replace(omega=network.omega + 0.7),
        network.replace(reference=4),
    )

    def alignments(network):
        states = pg.find_equilibria(network, starts=1)
        return np.sort(np.cos(network.graph.angles(states.phases)).sum(axis=1))

    expected = alignments(network)
    assert len(np.unique(np.round(expected, 6))) == 9
    for other in others:
        np.testing.assert_allclose(alignments(other), expected, atol=1e-9)


def test_states_without_reciprocity_have_certificates_too():
    states = pg.find_equilibria(make_network(6, 0, kind="non-reciprocal", spread=0.05), starts=5)
    assert states.energy is None
    assert states.equilibrium.stable.all()
    assert np.all(states.equilibrium.smallest_eigenvalue > 0)
