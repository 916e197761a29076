r"""Winding numbers around the cycles of a graph, and starts that wind by given ones.

Around a cycle the phase differences of a state, each in [-pi, pi), add up to 2 pi times an integer, its winding number.
A state whose every coupling pulls (for the sine: every angle across an edge below pi / 2, beyond pi / 2 where a
coupling is negative) is the only one of its kind among those that wind alike, and around a cycle of l positive
couplings it winds by less than l / 4 (Jafarpour, Huang, Smith and Bullo 2022, doi:10.1137/18M1242056). So one start
for every combination of winding numbers of a cycle basis looks for all of them, however small their basins are.

Such a start spreads the turns k over the edges with the least energy of the linearised network,

    min over theta of  sum over edges |K| (theta_j - theta_i + 2 pi a - r)^2,     C a = k

with the signed cycle matrix C, integers a on the edges, and r = pi where a coupling is negative, else 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import splu

from phasegrad._validation import FloatArray, IntArray
from phasegrad.dynamics import wrapped
from phasegrad.graphs import Graph
from phasegrad.networks import Network

# Cycles times oscillators times edges up to which a part of a graph gets a minimum cycle basis: about a second.
_MINIMUM_WORK = 10**6
# The least weight of an edge, as a share of the largest: a coupling of zero leaves its angle open.
_LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class CycleBasis:
    """Cycles of which every closed way of a graph is a sum.

    Attributes
    ----------
    graph : Graph
    cycles : tuple of ndarray of int
        The nodes of each in order around it, from the smallest toward the smaller one of its two neighbours.
    matrix : scipy.sparse.csr_array, shape (C, E)
        1 where a cycle goes along an edge, -1 where it goes against it.
    """

    graph: Graph
    cycles: tuple[IntArray, ...]
    matrix: sparse.csr_array

    @classmethod
    def of(cls, graph: Graph) -> CycleBasis:
        """Return short cycles, part by part: a minimum cycle basis where that is affordable, a fundamental one else."""
        import networkx as nx

        found: list[list[int]] = []
        everything = nx.Graph(graph.edges.tolist())
        for nodes in sorted(map(sorted, nx.biconnected_components(everything))):
            part = nx.Graph(everything.subgraph(nodes).edges)
            number = part.number_of_edges() - len(nodes) + 1
            cheap = number > 1 and number * len(nodes) * part.number_of_edges() <= _MINIMUM_WORK
            found += nx.minimum_cycle_basis(part) if cheap else nx.cycle_basis(part, nodes[0])
        cycles = sorted((_turned(cycle) for cycle in found), key=lambda cycle: (cycle[0], len(cycle), cycle))
        return cls(graph, tuple(np.array(cycle) for cycle in cycles), _cycle_matrix(graph, cycles))

    def __len__(self) -> int:
        return len(self.cycles)

    def winding(self, phases: FloatArray) -> IntArray:
        """Return the winding number of phases (S, N) around every cycle, (S, C)."""
        turns = self.matrix @ wrapped(self.graph.angles(phases)).T / (2 * np.pi)
        return np.rint(turns).T.astype(np.int64).reshape(phases.shape[0], len(self))

    def starts(self, network: Network, most: int) -> tuple[FloatArray, int]:
        """Return phases (W, N) that wind, those of the lowest energy first, and how many combinations there are."""
        coupling = self.graph.sharing.spread("edges", network.coupling)
        against = (coupling < 0).astype(np.int64)
        lengths = np.array([cycle.size for cycle in self.cycles], dtype=np.int64)
        rest = np.asarray(self.matrix @ against).astype(np.int64)
        # |2 pi k - pi s| < l pi / 2, s half turns being the rest of a cycle of length l
        least, last = (2 * rest - lengths) // 4 + 1, -(-(2 * rest + lengths) // 4) - 1
        turns = _lowest(least, last, rest, lengths, most)
        phases = self._spread(turns, np.abs(coupling), np.where(coupling < 0, np.pi, 0.0))
        return phases, math.prod((last - least + 1).tolist())

    def _spread(self, turns: IntArray, weight: FloatArray, rest: FloatArray) -> FloatArray:
        """Return phases (W, N) that turn so often around each cycle, (W, C), with the least energy."""
        graph = self.graph
        jumps = np.zeros((turns.shape[0], graph.n_edges))
        if len(self):
            chords = _chords(graph)
            jumps[:, chords] = splu(self.matrix[:, chords].tocsc()).solve(turns.T.astype(float)).T
        # Not every combination is one of whole turns where a basis is no basis over the integers.
        jumps = jumps[np.all(np.abs(jumps - np.rint(jumps)) < 1e-6, axis=1)]
        weight = np.maximum(weight, _LEAST * np.max(weight, initial=1.0))
        pulls = weight * (rest - 2 * np.pi * np.rint(jumps))
        nodes, edge = np.arange(graph.size), np.arange(graph.n_edges)
        signs = np.concatenate([np.ones(graph.n_edges), -np.ones(graph.n_edges)])
        ends = (np.concatenate([edge, edge]), np.concatenate([graph.second, graph.first]))
        incidence = sparse.csr_array((signs, ends), shape=(graph.n_edges, graph.size))
        moving = np.setdiff1d(nodes, np.unique(graph.components, return_index=True)[1])
        phases = np.zeros((jumps.shape[0], graph.size))
        if moving.size:
            reduced = incidence[:, moving]
            stiffness = (reduced.T @ sparse.diags_array(weight) @ reduced).tocsc()
            phases[:, moving] = splu(stiffness).solve(reduced.T @ pulls.T).T
        return phases


def _turned(cycle: list[int]) -> list[int]:
    """Return a cycle from its smallest node on, toward the smaller neighbour."""
    begin = cycle.index(min(cycle))
    around = cycle[begin:] + cycle[:begin]
    return around if around[1] < around[-1] else [around[0], *around[:0:-1]]


def _cycle_matrix(graph: Graph, cycles: list[list[int]]) -> sparse.csr_array:
    """Return the signed edges of every cycle, (C, E)."""
    number = {edge: k for k, edge in enumerate(map(tuple, graph.edges.tolist()))}
    steps = [(row, i, j) for row, cycle in enumerate(cycles) for i, j in pairwise([*cycle, cycle[0]])]
    rows = [row for row, _, _ in steps]
    columns = [number[min(i, j), max(i, j)] for _, i, j in steps]
    signs = [1.0 if i < j else -1.0 for _, i, j in steps]
    return sparse.csr_array((signs, (rows, columns)), shape=(len(cycles), graph.n_edges))


def _chords(graph: Graph) -> IntArray:
    """Return the edges outside a spanning forest, one for every cycle of a basis."""
    weight = np.arange(1, graph.n_edges + 1, dtype=float)
    # Older versions of SciPy find trees and paths with indices of 32 bits only.
    ends = (graph.first.astype(np.int32), graph.second.astype(np.int32))
    table = sparse.csr_array((weight, ends), shape=(graph.size, graph.size))
    kept = csgraph.minimum_spanning_tree(table).data.astype(np.int64) - 1
    return np.setdiff1d(np.arange(graph.n_edges), kept)


def _lowest(least: IntArray, last: IntArray, rest: IntArray, lengths: IntArray, most: int) -> IntArray:
    """Return at most so many combinations (W, C) of least <= k <= last, those with the smallest (2 k - s)^2 / l first.

    The best combinations of all cycles begin with one of the best of any first few: no others need to be kept.
    """
    turns, cost = np.zeros((1, least.size), dtype=np.int64), np.zeros(1)
    for c in range(least.size):
        options = np.arange(least[c], last[c] + 1)
        total = np.add.outer(cost, (2 * options - rest[c]) ** 2 / lengths[c]).ravel()
        chosen = np.argsort(total, kind="stable")[:most]
        turns, cost = turns[chosen // options.size], total[chosen]
        turns[:, c] = options[chosen % options.size]
    return turns
