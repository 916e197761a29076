"""Random graphs as arrays of edges, in time and memory of order E.

Every function draws from a NumPy random stream and returns pairs of node numbers i < j, shape (E, 2), each pair once
and in row-major order. None of them ever holds a matrix, so a graph of a million nodes takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from phasegrad._validation import BoolArray, IntArray

_TRIES = 1000
_PATIENCE = 50
# Drawing a graph anew until it is connected pays for small graphs; a large one that is not will hardly ever be.
_EDGES_REDRAWN = 10_000_000


def ordered_pairs(pairs: IntArray, n: int) -> IntArray:
    """Return pairs with i < j, each once, in row-major order."""
    return _from_keys(_distinct(_keys(pairs, n)), n)


def until_connected(draw: Callable[[], IntArray], n: int) -> IntArray:
    """Return the first graph drawn that is connected, or the last one drawn when patience ends."""
    pairs = draw()
    tries = min(_TRIES, _EDGES_REDRAWN // max(1, len(pairs)))
    for _ in range(tries):
        if parts(pairs, n)[0] == 1:
            break
        pairs = draw()
    return pairs


def parts(pairs: IntArray, n: int) -> tuple[int, IntArray]:
    """Return the number of connected parts of a graph and, for every node, the number of its part."""
    graph = sparse.csr_array((np.ones(len(pairs), dtype=np.int8), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    count, part = csgraph.connected_components(graph, directed=False)
    return int(count), part


def regular_pairs(n: int, degree: int, rng: np.random.Generator) -> IntArray:
    """Return a graph in which every node has ``degree`` neighbours.

    The stubs are paired at random; pairs that are loops or occur twice are broken up together with as many random good
    ones and paired again. For degree 2, where that almost never gives one ring, a random ring is drawn.
    """
    if degree > (n - 1) // 2:
        others = regular_pairs(n, n - 1 - degree, rng) if degree < n - 1 else np.empty((0, 2), dtype=np.int64)
        everything = np.stack(np.triu_indices(n, k=1), axis=1)
        return _from_keys(np.setdiff1d(_keys(everything, n), _keys(others, n)), n)
    if degree == 2:
        order = rng.permutation(n)
        return ordered_pairs(np.stack([order, np.roll(order, 1)], axis=1), n)
    pairs = rng.permutation(np.repeat(np.arange(n), degree)).reshape(-1, 2)
    while True:
        keys = _keys(pairs, n)
        bad = _repeated(keys) | (pairs[:, 0] == pairs[:, 1])
        if not np.any(bad):
            return _from_keys(np.sort(keys), n)
        bad[rng.integers(len(pairs), size=4 * int(np.sum(bad)))] = True
        pairs[bad] = rng.permutation(pairs[bad].ravel()).reshape(-1, 2)


def uniform_pairs(n: int, p: float, rng: np.random.Generator) -> IntArray:
    """Return the Erdos-Renyi graph G(n, p): every pair is there with probability p, independently."""
    every = n * (n - 1) // 2
    count = int(rng.binomial(every, p))
    if 4 * count > every:
        chosen = rng.permutation(every)[:count]
        return np.stack(np.triu_indices(n, k=1), axis=1)[np.sort(chosen)]
    keys = np.empty(0, dtype=np.int64)
    while keys.size < count:
        drawn = rng.integers(n, size=(count - keys.size + count // 1000 + 16, 2))
        drawn = drawn[drawn[:, 0] != drawn[:, 1]]
        keys = _distinct(np.concatenate([keys, _keys(drawn, n)]))
    kept = np.ones(keys.size, dtype=bool)
    kept[rng.choice(keys.size, keys.size - count, replace=False)] = False
    return _from_keys(keys[kept], n)


def joined(pairs: IntArray, n: int, rng: np.random.Generator) -> IntArray:
    """Return the graph with every part but the largest tied to a random node of the largest by one edge."""
    count, part = parts(pairs, n)
    if count == 1:
        return pairs
    largest = int(np.argmax(np.bincount(part)))
    _, first = np.unique(part, return_index=True)
    loose = np.delete(first, largest)
    anchors = rng.choice(np.flatnonzero(part == largest), size=loose.size)
    return ordered_pairs(np.concatenate([pairs, np.stack([loose, anchors], axis=1)]), n)


def small_world_pairs(n: int, k: int, p: float, rng: np.random.Generator) -> IntArray:
    """Return the Watts-Strogatz graph: a ring of k nearest neighbours, each edge's far end moved with probability p.

    k is even, and a node that is already joined to all others keeps its edges.
    """
    node = np.arange(n)
    near = np.concatenate([np.stack([node, (node + step) % n], axis=1) for step in range(1, k // 2 + 1)])
    near = near[np.unique(_keys(near, n), return_index=True)[1]]
    if len(near) == n * (n - 1) // 2:
        return ordered_pairs(near, n)
    moved = np.flatnonzero(rng.random(len(near)) < p)
    pairs = near.copy()
    waiting, rounds = moved, 0
    while waiting.size:
        rounds += 1
        if rounds % _PATIENCE == 0:
            # In a nearly complete graph the edges moved first may leave no place for the last: move them all anew.
            waiting = moved
        pairs[waiting, 1] = rng.integers(n, size=waiting.size)
        # An edge keeps its new end if it is no loop and no other edge, moved or not, is the same pair.
        clash = _repeated(_keys(pairs, n))[moved] | (pairs[moved, 0] == pairs[moved, 1])
        waiting = moved[clash]
    return ordered_pairs(pairs, n)


def _keys(pairs: IntArray, n: int) -> IntArray:
    """Return one number per pair, equal for (i, j) and (j, i)."""
    return np.minimum(pairs[:, 0], pairs[:, 1]) * n + np.maximum(pairs[:, 0], pairs[:, 1])


def _distinct(keys: IntArray) -> IntArray:
    """Return the distinct numbers in order; sorting beats the hash table of np.unique on millions of them."""
    keys = keys if np.all(keys[1:] >= keys[:-1]) else np.sort(keys)
    return keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if keys.size else keys


def _repeated(keys: IntArray) -> BoolArray:
    """Return where a number occurs more than once."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    same = np.concatenate([[False], ordered[1:] == ordered[:-1], [False]])
    repeated = np.empty(keys.size, dtype=bool)
    repeated[order] = same[:-1] | same[1:]
    return repeated


def _from_keys(keys: IntArray, n: int) -> IntArray:
    return np.stack(np.divmod(keys, n), axis=1)
