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
def core(indptr, indices, few, tracked):
    """Return how many nodes of a symmetric pattern are left once no node has at most ``few`` neighbours.

    Nodes with more than ``tracked`` neighbours at any time are hubs and are never eliminated.
    """
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
    # Nodes of equal degree wait in a chain each; one whose degree has changed since is put into another one.
    first, following = np.full(tracked + 1, -1, dtype=np.int64), np.full(size, -1, dtype=np.int64)
    before = np.full(size, -1, dtype=np.int64)
    for i in range(size - 1, -1, -1):
        if not hub[i]:
            following[i] = first[count[i]]
            if following[i] >= 0:
                before[following[i]] = i
            first[count[i]] = i
    left = size
    degree = 0
    while degree <= few:
        node = first[degree]
        if node < 0:
            degree += 1
            continue
        first[degree] = following[node]
        if first[degree] >= 0:
            before[first[degree]] = -1
        left -= 1
        least = degree
        for a in range(count[node]):
            i = near[node, a]
            if hub[i]:
                continue
            old = count[i]
            # The node itself is taken out of the list, its other neighbours are put in.
            kept = 0
            for entry in range(old):
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
                    if kept == tracked:
                        hub[i] = True
                        break
                    near[i, kept] = j
                    kept += 1
            if before[i] >= 0:
                following[before[i]] = following[i]
            else:
                first[old] = following[i]
            if following[i] >= 0:
                before[following[i]] = before[i]
            count[i] = kept
            if not hub[i]:
                following[i], before[i] = first[kept], -1
                if first[kept] >= 0:
                    before[first[kept]] = i
                first[kept] = i
                least = min(least, kept)
        degree = least
    return left
