"""Whatever claims to be converged and stable is: checked by eigenvalues of an independently built matrix."""

import networkx as nx
import numpy as np
import pytest
from scipy.linalg import eigvalsh

import phasegrad as pg
from phasegrad.dynamics import build_system
from phasegrad.linearised import stability
from phasegrad.linearised._bounds import meets_angle_condition, surely_stable

BUILDERS = (
    lambda n, _: pg.networks.ring(max(n, 3)),
    lambda n, _: pg.networks.complete(n),
    lambda n, _: pg.networks.lattice(max(1, n // 4), max(2, min(n, 4))),
    lambda n, rng: pg.networks.small_world(max(n, 5), 4, 0.3, seed=int(rng.integers(2**31))),
    lambda n, rng: pg.networks.random_regular(max(4, n + n % 2), 3, seed=int(rng.integers(2**31))),
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
        changes["interaction"] = pg.terms.OddSeries((1.0, *rng.uniform(-0.4, 0.4, 2)))
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


def check_claims(indices: range, solver: str | pg.solvers.Newton = "auto") -> dict[pg.Status, int]:
    counts = dict.fromkeys(pg.Status, 0)
    for index in indices:
        network = random_case(index)
        found = pg.find_equilibrium(network, start="random", seed=index, solver=solver)
        counts[found.status.item()] += 1
        if found.stable:
            assert eigvalsh(reduced_matrix(network, found.phases))[0] > 0, f"network {index}"
            force = pg.dynamics.force(network, found.phases)[network.free]
            assert np.max(np.abs(force), initial=0.0) <= 1e-9, f"network {index}"
    return counts


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in (25, 50, 75))])
def test_100_random_networks_keep_what_they_claim(first):
    """Twenty-five at a time, so that they can run side by side."""
    counts = check_claims(range(first, first + 25))
    assert counts[pg.Status.STABLE] >= 12


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 10_000, 1000))
def test_10000_random_networks_keep_what_they_claim(first):
    """A hundred steps: most of the time would go into networks that settle nowhere and so claim nothing."""
    counts = check_claims(range(first, first + 1000), pg.solvers.Newton(max_steps=100))
    assert counts[pg.Status.STABLE] >= 500


def odd_series() -> pg.Network:
    return pg.networks.random_network(12, seed=3).replace(interaction=pg.terms.OddSeries((1.0, 0.3)))


@pytest.mark.parametrize(("build", "spreads", "factor"), [
    (lambda: pg.networks.random_network(12, seed=3), (0.0, 0.8, 3.0), 2.0**-40),
    (lambda: pg.networks.random_network(12, seed=3), (0.0, 0.8, 3.0), 2.0**40),
    (odd_series, (0.0, 0.8, 3.0), 2.0**-40),
    (odd_series, (0.0, 0.8, 3.0), 2.0**40),
    (lambda: pg.networks.random_regular(1100, 6), (0.0,), 2.0**-40),
])  # fmt: skip
def test_certificates_do_not_depend_on_the_unit_of_the_couplings(build, spreads, factor):
    """A power of two leaves all digits as they are: verdicts stay, eigenvalues and their errors have the unit."""
    network = build()
    other = network.replace(coupling=factor * network.coupling, omega=factor * network.omega)
    stream = np.random.default_rng(0)
    for spread in spreads:
        phases = spread * stream.uniform(-1, 1, (2, network.size))
        mine, theirs = (build_system(each, None)[0].take(np.zeros(2, dtype=np.int64)) for each in (network, other))
        for judge in (meets_angle_condition, surely_stable):
            np.testing.assert_array_equal(judge(mine, phases), judge(theirs, phases))
        one, two = stability(mine, phases, eigenvalue=True), stability(theirs, phases, eigenvalue=True)
        np.testing.assert_array_equal(one.stable, two.stable)
        np.testing.assert_allclose(two.smallest, factor * one.smallest, rtol=1e-6, atol=1e-9 * factor)
        np.testing.assert_allclose(two.error, factor * one.error, rtol=0.1, atol=1e-12 * factor)


@pytest.mark.parametrize("interaction", [pg.terms.Sine(), pg.terms.OddSeries((1.0, 0.3, -0.2))])
def test_the_stiffest_weight_of_an_edge_is_its_coupling_times_the_steepest_slope(interaction):
    """Couplings that are not 1: for those a product and a quotient agree."""
    network = pg.networks.ring(5, coupling=np.array([0.25, 0.5, 2.0, 3.0, 8.0]), interaction=interaction)
    system, _ = build_system(network, None)
    (term,) = [term for term in system.terms if term.stiffest(system.graph, system.values).forward is not None]
    grid = np.linspace(0, 2 * np.pi, 100_001)
    steepest = np.max(np.abs(interaction.derivative(grid)))
    stiffest = term.stiffest(system.graph, system.values)
    np.testing.assert_allclose(stiffest.forward[0], network.coupling * steepest, rtol=1e-4)
    one_way = network.replace(coupling_reverse=network.coupling[::-1])
    stiffest = term.of(one_way.parameters, interaction).stiffest(system.graph, build_system(one_way, None)[0].values)
    np.testing.assert_allclose(stiffest.forward[0], network.coupling * steepest, rtol=1e-4)
    np.testing.assert_allclose(stiffest.backward[0], network.coupling[::-1] * steepest, rtol=1e-4)
    phases = np.random.default_rng(1).uniform(-np.pi, np.pi, (1, 5))
    i, j = network.edges.T
    weights = term.stiffness(system.graph, system.values, phases).forward[0]
    np.testing.assert_allclose(weights, network.coupling * interaction.derivative(phases[0, j] - phases[0, i]))
