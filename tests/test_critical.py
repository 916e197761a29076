"""The critical scale against closed forms and against bisection by the certified solver."""

import numpy as np
import pytest

import phasegrad as pg


def random_tree(n, seed):
    rng = np.random.default_rng(seed)
    parent = np.array([rng.integers(max(0, k - 5), k) for k in range(1, n)])
    edges = np.stack([parent, np.arange(1, n)], axis=1)
    return pg.Network(edges, rng.uniform(0.5, 2.0, n - 1), rng.normal(0, 0.05, n)), parent


@pytest.mark.parametrize("n", [2, 30, 1500])
def test_on_a_tree_it_is_the_edge_whose_flow_first_exceeds_its_coupling(n):
    network, parent = random_tree(n, seed=n)
    flow = network.omega - network.omega.mean()
    for k in range(n - 1, 0, -1):
        flow[parent[k - 1]] += flow[k]
    limits = network.coupling / np.abs(flow[network.edges[:, 1]])
    found = pg.critical_scale(network)
    assert abs(found.scale / limits.min() - 1) < 1e-6
    assert found.edges[0] == np.argmin(limits)
    assert found.locked <= found.scale
    assert found.equilibrium.stable


@pytest.mark.parametrize(
    "network",
    [
        pg.random_network(12, seed=4),
        pg.random_network(12, seed=4, interaction=pg.OddSeries([1.0, 0.2])),
        pg.lattice(20, 20, omega=np.random.default_rng(0).normal(0, 0.1, 400)),
        pg.ring(5, omega=[0.1, 0.3, -0.2, 0, 0], field_strength=0.2),
    ],
)
def test_it_is_where_bisection_loses_the_state(network):
    found = pg.critical_scale(network)
    centre = network.omega.mean() if network.pinned else 0.0
    start = found.equilibrium.phases[0]
    low, high = 0.98 * found.scale, 1.02 * found.scale
    for _ in range(16):
        middle = (low + high) / 2
        state = pg.find_equilibrium(network.replace(omega=middle * (network.omega - centre)), start=start)
        near = np.abs(state.phases - start).max() < np.pi / 2
        low, high = (middle, high) if state.stable and near else (low, middle)
    assert abs(found.scale / low - 1) < 1e-5
    mode = np.linalg.eigh(pg.laplacian(network, start))[1][:, 0]
    expected = np.zeros(network.size)
    expected[network.free] = mode / mode[np.argmax(np.abs(mode))]
    # Near the end the state moves along the mode whose eigenvalue vanishes, and little along the others.
    cosine = abs(found.mode @ expected) / np.linalg.norm(found.mode) / np.linalg.norm(expected)
    assert cosine > 0.98


def test_nothing_to_lose_and_nothing_to_keep():
    assert pg.critical_scale(pg.ring(5)).scale == np.inf
    assert "inf" in str(pg.critical_scale(pg.ring(5)))
    assert "1 edge gives way" in str(pg.critical_scale(pg.ring(5, omega=[1, 0, 0, 0, -1])))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pg.critical_scale(pg.ring(4, inputs=[1]), [[0.1], [0.2]]), "one sample of inputs"),
        (lambda: pg.critical_scale(pg.Network([[0, 1]], 1.0, [0, 1], coupling_reverse=[2.0])), "reciprocal"),
        (lambda: pg.critical_scale(pg.ring(4), precision=1.0), "'precision' parameter of critical_scale"),
    ],
)
def test_wrong_requests_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
