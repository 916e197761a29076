"""Whatever claims to be converged and stable is: checked by eigenvalues of an independently built matrix."""

import networkx as nx
import numpy as np
import pytest
from scipy.linalg import eigvalsh

import phasegrad as pg

BUILDERS = (
    lambda n, _: pg.ring(max(n, 3)),
    lambda n, _: pg.complete(n),
    lambda n, _: pg.lattice(max(1, n // 4), max(2, min(n, 4))),
    lambda n, rng: pg.small_world(max(n, 5), 4, 0.3, seed=int(rng.integers(2**31))),
    lambda n, rng: pg.random_regular(max(4, n + n % 2), 3, seed=int(rng.integers(2**31))),
    lambda n, rng: pg.from_networkx(nx.random_labeled_tree(n, seed=int(rng.integers(2**31)))),
)


def random_case(index: int) -> pg.Network:
    """Return network number ``index``: its graph, couplings, frequencies and interaction are drawn from it."""
    rng = np.random.default_rng(index)
    network = BUILDERS[index % len(BUILDERS)](int(rng.integers(2, 61)), rng)
    coupling = rng.uniform(0.2, 3.0, network.n_edges)
    changes = {}
    kind = rng.integers(5)
    if kind == 1:
        coupling *= rng.choice([-1.0, 1.0], network.n_edges, p=[0.2, 0.8])
        changes["signed"] = True
    if kind == 2:
        changes["interaction"] = pg.OddSeries((1.0, *rng.uniform(-0.4, 0.4, 2)))
    if kind == 3:
        changes["field_strength"] = rng.uniform(0.01, 1.0, network.size)
        changes["field_phase"] = rng.uniform(-np.pi, np.pi, network.size)
    if kind == 4:
        changes["second_strength"] = rng.uniform(0.01, 1.0, network.size)
        changes["second_phase"] = rng.uniform(-np.pi, np.pi, network.size)
    spread = rng.choice([0.0, 0.1, 0.5, 2.0])
    omega = spread * rng.standard_normal(network.size)
    return network.replace(coupling=coupling, omega=omega, **changes)


def reduced_matrix(network: pg.Network, phases: np.ndarray) -> np.ndarray:
    """Build the reduced Laplacian edge by edge."""
    matrix = np.zeros((network.size, network.size))
    for (i, j), strength in zip(network.edges, network.coupling, strict=True):
        weight = strength * float(network.interaction.derivative(np.array(phases[j] - phases[i])))
        matrix[i, j] -= weight
        matrix[j, i] -= weight
        matrix[i, i] += weight
        matrix[j, j] += weight
    diagonal = np.diag_indices(network.size)
    if network.field_strength is not None:
        matrix[diagonal] += network.field_strength * network.interaction.derivative(network.field_phase - phases)
    if network.second_strength is not None:
        matrix[diagonal] += 2 * network.second_strength * np.cos(2 * (network.second_phase - phases))
    if not network.pinned:
        return matrix
    return np.delete(np.delete(matrix, network.reference, 0), network.reference, 1)


def check_claims(indices: range) -> dict[pg.Status, int]:
    counts = dict.fromkeys(pg.Status, 0)
    for index in indices:
        network = random_case(index)
        found = pg.find_equilibrium(network, start="random", seed=index)
        counts[found.status.item()] += 1
        if found.stable:
            assert eigvalsh(reduced_matrix(network, found.phases))[0] > 0, f"network {index}"
            force = pg.force(network, found.phases)[network.free]
            assert np.max(np.abs(force), initial=0.0) <= 1e-9, f"network {index}"
    return counts


@pytest.mark.parametrize("first", range(0, 500, 50))
def test_500_random_networks_keep_what_they_claim(first):
    """Fifty at a time, so that they can run side by side."""
    counts = check_claims(range(first, first + 50))
    assert counts[pg.Status.STABLE] >= 25


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 10_000, 1000))
def test_10000_random_networks_keep_what_they_claim(first):
    counts = check_claims(range(first, first + 1000))
    assert counts[pg.Status.STABLE] >= 500
