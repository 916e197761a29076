"""Random graphs: the right number of edges, the right degrees, and statistics of the model they are named after."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, strategies as st

import phasegrad as pg
from phasegrad.graphs._random import joined, parts, regular_pairs, small_world_pairs, uniform_pairs


def assert_simple(pairs, n):
    assert np.all(pairs[:, 0] < pairs[:, 1])
    keys = pairs[:, 0] * n + pairs[:, 1]
    assert np.all(np.diff(keys) > 0)
    assert pairs.size == 0 or (pairs.min() >= 0 and pairs.max() < n)


@given(st.integers(2, 12), st.integers(1, 11), st.integers(0, 2**31))
def test_regular_graphs_are_regular_at_every_density(n, degree, seed):
    if degree >= n or n * degree % 2:
        return
    pairs = regular_pairs(n, degree, np.random.default_rng(seed))
    assert_simple(pairs, n)
    assert np.bincount(pairs.ravel(), minlength=n).tolist() == [degree] * n


@given(st.integers(3, 12), st.integers(2, 11), st.floats(0, 1), st.integers(0, 2**31))
def test_rewiring_keeps_the_number_of_edges_and_makes_no_pair_twice(n, k, p, seed):
    if k >= n:
        return
    pairs = small_world_pairs(n, k, p, np.random.default_rng(seed))
    assert_simple(pairs, n)
    assert len(pairs) == nx.watts_strogatz_graph(n, k, 0.0).number_of_edges()


def test_rewiring_moves_the_stated_share_of_edges():
    n, p = 20_000, 0.1
    pairs = small_world_pairs(n, 6, p, np.random.default_rng(0))
    span = np.minimum(pairs[:, 1] - pairs[:, 0], n - (pairs[:, 1] - pairs[:, 0]))
    # Binomial: three standard deviations of a share of 60,000 edges; rewired edges almost never stay near.
    assert abs(np.mean(span > 3) - p) < 3 * np.sqrt(p * (1 - p) / len(pairs)) + 3 / n


@pytest.mark.parametrize("p", [0.0, 0.001, 0.2, 0.9, 1.0])
def test_every_pair_of_an_erdos_renyi_graph_is_as_likely_as_any_other(p):
    n, draws = 40, 200
    rng = np.random.default_rng(5)
    count = np.zeros((n, n))
    for _ in range(draws):
        pairs = uniform_pairs(n, p, rng)
        assert_simple(pairs, n)
        count[pairs[:, 0], pairs[:, 1]] += 1
    share = count[np.triu_indices(n, k=1)] / draws
    spread = np.sqrt(p * (1 - p))
    # Mean over all pairs within 4 standard errors; no single pair outside 6 of its own.
    assert abs(share.mean() - p) <= 4 * spread / np.sqrt(share.size * draws)
    assert np.max(np.abs(share - p)) <= 6 * spread / np.sqrt(draws) + 0.02 * (0 < p < 0.01)


def test_loose_parts_are_tied_to_the_largest_by_one_edge_each():
    pairs = np.array([[0, 1], [2, 3], [3, 4], [2, 4]])
    tied = joined(pairs, 7, np.random.default_rng(0))
    assert parts(tied, 7)[0] == 1
    assert len(tied) == len(pairs) + 3
    assert {tuple(pair) for pair in pairs} <= {tuple(pair) for pair in tied.tolist()}


def test_seeds_decide_the_graph():
    for build in (
        lambda s: pg.networks.random_regular(50, 4, seed=s),
        lambda s: pg.networks.small_world(50, 4, 0.3, seed=s),
        lambda s: pg.networks.erdos_renyi(50, 4, seed=s),
    ):
        assert build(1) == build(1)
        assert build(1) != build(2)


def test_large_graphs_are_built_and_large_disconnected_ones_are_refused_with_their_sizes():
    # A dense matrix of this size would take 80 GB.
    n = 100_000
    network = pg.networks.erdos_renyi(n, 10, seed=1)
    # The number of edges is binomial with a standard deviation of about 700.
    assert abs(network.n_edges - 5 * n) < 4000
    with pytest.raises(ValueError, match=r"100000 parts? \{0\} and .* and 99996 more \(99996 of 1 nodes\)"):
        pg.Network([], [], np.zeros(n))
    path = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    with pytest.raises(ValueError, match=r"2 parts \{0, 1, 2, 3, 4, 5, \.\.\. \(60000 nodes\)\}"):
        pg.Network(np.delete(path, 59_999, axis=0), 1.0, np.zeros(n))


@pytest.mark.slow
def test_a_ring_that_rewiring_tore_is_named_instead_of_redrawn_for_ever():
    with pytest.raises(ValueError, match="disconnected: it falls into the"):
        pg.networks.small_world(400_000, 2, 0.5, seed=0)


def test_a_probability_in_place_of_a_mean_degree_is_refused_with_what_to_give():
    """Otherwise erdos_renyi(1000, 0.01), as NetworkX means it, would be little more than a tree."""
    with pytest.raises(ValueError, match=r"must be at least 1: .* not a probability\. Got 0\.01\. .* 9\.99 here"):
        pg.networks.erdos_renyi(1000, 0.01)
    assert pg.networks.erdos_renyi(2, 1).n_edges == 1
