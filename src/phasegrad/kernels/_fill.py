"""What a sparse factorisation of a graph would cost, foreseen by eliminating nodes of few neighbours.

An oscillator that is eliminated leaves its neighbours coupled to each other. Rings, trees and graphs around a few hubs
vanish like that, and a mesh shrinks; an expander fills up until every node has many neighbours. The nodes that are left
then are its core, and factoring the core densely is the most that the rest of a factorisation can cost.
"""

import numpy as np

from phasegrad.kernels._entrance import entrance

#: Neighbours up to which a node is eliminated, and up to which the neighbours of a node are kept track of.
FEW, TRACKED = 16, 40


@entrance
def _neighbours(indptr, indices, tracked):
    """Return the neighbours (N, tracked) of every node, how many there are, and which nodes have more: the hubs."""
    size = indptr.size - 1
    near = np.empty((size, tracked), dtype=np.int64)
    count = np.zeros(size, dtype=np.int64)
    hub = np.zeros(size, dtype=np.bool_)
    for i in range(size):
        for entry in range(indptr[i], indptr[i + 1]):
            j = indices[entry]
            if j == i:
                continue
            if count[i] == tracked:
                hub[i] = True
                break
            near[i, count[i]] = j
            count[i] += 1
    return near, count, hub


@entrance
def _couple_neighbours(near, count, hub, i, node):
    """Take a node out of the neighbours of ``i`` and put its other neighbours in; too many make ``i`` a hub."""
    kept = 0
    for entry in range(count[i]):
        if near[i, entry] != node:
            near[i, kept] = near[i, entry]
            kept += 1
    for b in range(count[node]):
        j = near[node, b]
        known = j == i
        for entry in range(kept):
            if near[i, entry] == j:
                known = True
                break
        if not known:
            if kept == near.shape[1]:
                hub[i] = True
                break
            near[i, kept] = j
            kept += 1
    count[i] = kept


@entrance
def _put_in(first, following, before, degree, node):
    """Put a node at the beginning of the chain of its degree."""
    following[node], before[node] = first[degree], -1
    if first[degree] >= 0:
        before[first[degree]] = node
    first[degree] = node


@entrance
def _take_out(first, following, before, degree, node):
    """Take a node out of the chain of its degree."""
    if before[node] >= 0:
        following[before[node]] = following[node]
    else:
        first[degree] = following[node]
    if following[node] >= 0:
        before[following[node]] = before[node]


@entrance
def core(indptr, indices, few, tracked):
    """Return how many nodes of a symmetric pattern are left once no node has at most ``few`` neighbours.

    Nodes with more than ``tracked`` neighbours at any time are hubs and are never eliminated.
    """
    near, count, hub = _neighbours(indptr, indices, tracked)
    size = count.size
    # Nodes of equal degree wait in a chain each; one whose degree has changed since is put into another one.
    first, following = np.full(tracked + 1, -1, dtype=np.int64), np.full(size, -1, dtype=np.int64)
    before = np.full(size, -1, dtype=np.int64)
    for i in range(size - 1, -1, -1):
        if not hub[i]:
            _put_in(first, following, before, count[i], i)
    left = size
    degree = 0
    while degree <= few:
        node = first[degree]
        if node < 0:
            degree += 1
            continue
        _take_out(first, following, before, degree, node)
        left -= 1
        least = degree
        for a in range(count[node]):
            i = near[node, a]
            if hub[i]:
                continue
            _take_out(first, following, before, count[i], i)
            _couple_neighbours(near, count, hub, i, node)
            if not hub[i]:
                _put_in(first, following, before, count[i], i)
                least = min(least, count[i])
        degree = least
    return left
