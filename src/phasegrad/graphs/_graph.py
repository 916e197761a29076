"""A graph with roles: edges, who is driven, read out or held, and what follows from these alone.

A `Graph` is frozen and shared: every network that differs from another only in its parameters has the same one, so that
whatever is found out about a topology (which nodes move, where the entries of a Laplacian lie, which groups of nodes
are not coupled among themselves) is found out once.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray, frozen_array, node_numbers
from phasegrad.graphs._layout import Layout
from phasegrad.graphs._lazy import lazy_property
from phasegrad.graphs._random import parts
from phasegrad.graphs._sharing import Sharing
from phasegrad.graphs._sparsity import DENSE_LIMIT, Pattern

# Above this size sums at nodes are counted sample by sample, without an index over the whole batch.
_COUNTED_FROM = 300
#: Groups of uncoupled nodes beyond which the moving nodes count as one group.
MOST_COLOURS = 4


@dataclass(frozen=True, eq=False)
class Graph:
    """Edges between nodes, and the nodes' roles.

    Parameters
    ----------
    pairs : ndarray of int, shape (E, 2), or Layout
        Edges with i < j, in row-major order, each once: see `ordered_edges`. Or the layers that they follow from; they
        are then listed when somebody asks for ``edges``.
    size : int
        Number of nodes N.
    inputs, outputs : tuple of int
        Nodes that data drives, and nodes that are read out.
    reference : int
        The node that is held at phase zero where nothing else fixes the gauge.
    clamped : bool
        Whether the inputs are held, at phases that data gives.
    pinned : bool
        Whether the reference is held.
    grounded : bool
        Whether holding it may take a torque: its own force balance is dropped.
    """

    pairs: IntArray | Layout
    size: int
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    reference: int = 0
    clamped: bool = False
    pinned: bool = True
    grounded: bool = False

    @property
    def layout(self) -> Layout | None:
        """The layers, where the graph is given by them."""
        return self.pairs if isinstance(self.pairs, Layout) else None

    @property
    def edges(self) -> IntArray:
        """Coupled pairs (E, 2); those of a layout are listed when first asked for."""
        return self.pairs.edges if isinstance(self.pairs, Layout) else self.pairs

    @property
    def n_edges(self) -> int:
        """Number of edges E."""
        return self.pairs.n_edges if isinstance(self.pairs, Layout) else int(self.pairs.shape[0])

    @lazy_property
    def sharing(self) -> Sharing:
        """Which values of parameters the nodes and edges have."""
        return Sharing(self.pairs, self.size)

    @lazy_property
    def fan_in(self) -> FloatArray:
        """For every coupling, how many there are into the later one of the oscillators that it joins."""
        layout = self.layout
        if layout is None:
            return np.bincount(self.second, minlength=self.size)[self.second].astype(float)
        total = np.zeros(len(layout.shapes))
        for link in layout.links:
            total[link.second] += layout.fan_in(link)
        parts = zip(layout.links, layout.couplings, strict=True)
        return np.concatenate([np.full(part.stop - part.start, total[link.second]) for link, part in parts])

    def alike(self, other: Graph) -> bool:
        """Whether both have the same edges and roles."""
        if self is other:
            return True
        names = [item.name for item in fields(self) if item.name != "pairs"]
        if self.layout != other.layout or any(getattr(self, name) != getattr(other, name) for name in names):
            return False
        return self.layout is not None or np.array_equal(self.edges, other.edges)

    @lazy_property
    def first(self) -> IntArray:
        """The first end of every edge."""
        return np.ascontiguousarray(self.edges[:, 0])

    @lazy_property
    def second(self) -> IntArray:
        """The second end of every edge."""
        return np.ascontiguousarray(self.edges[:, 1])

    @lazy_property
    def roles(self) -> tuple[str, ...]:
        """What every node is for: "input", "hidden" or "output"."""
        inputs, outputs = set(self.inputs), set(self.outputs)
        return tuple("input" if k in inputs else "output" if k in outputs else "hidden" for k in range(self.size))

    @lazy_property
    def held(self) -> IntArray:
        """The nodes that do not move: the clamped inputs, or the reference, or none."""
        nodes = self.inputs if self.clamped else (self.reference,) if self.pinned else ()
        return np.asarray(nodes, dtype=np.int64)

    @lazy_property
    def free(self) -> IntArray:
        """The nodes that move, in order."""
        mask = np.ones(self.size, dtype=bool)
        mask[self.held] = False
        return np.flatnonzero(mask)

    @lazy_property
    def learnable(self) -> IntArray:
        """The nodes whose own parameters may be learned: all but the inputs, which belong to the data."""
        return np.setdiff1d(np.arange(self.size), self.inputs)

    @lazy_property
    def position(self) -> IntArray:
        """Place of every node among those that move, -1 for held ones."""
        position = np.full(self.size, -1, dtype=np.int64)
        position[self.free] = np.arange(self.free.size)
        return position

    @lazy_property
    def inner_edges(self) -> IntArray:
        """Numbers of the edges between two nodes that move."""
        return np.flatnonzero(np.all(self.position[self.edges] >= 0, axis=1))

    @lazy_property
    def pattern(self) -> Pattern:
        """Where the entries of the sparse reduced Laplacian lie."""
        return Pattern.of_graph(self.edges, self.position)

    @lazy_property
    def narrow_ends(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Both ends of every edge as compiled loops read them: half the memory, and no test for negative numbers."""
        return self.edges[:, 0].astype(np.uint32), self.edges[:, 1].astype(np.uint32)

    @lazy_property
    def dense_places(self) -> tuple[IntArray, IntArray]:
        """Flat places in the reduced (n, n) matrix, and which of (forward, backward, diagonal) values belong there."""
        inner, size = self.inner_edges, self.free.size
        row, column = self.position[self.edges[inner]].T
        places = np.concatenate([row * size + column, column * size + row, np.arange(size) * (size + 1)])
        return places, np.concatenate([inner, self.n_edges + inner, 2 * self.n_edges + self.free])

    @lazy_property
    def reference_places(self) -> tuple[IntArray, IntArray]:
        """Places of the reference's neighbours among the nodes that move, and which of (forward, backward) acts on it.

        The second are numbers of edges, those of the backward direction counted from E on.
        """
        first, second = (np.flatnonzero(ends == self.reference) for ends in (self.first, self.second))
        neighbours = np.concatenate([self.second[first], self.first[second]])
        return self.position[neighbours], np.concatenate([first, self.n_edges + second])

    @lazy_property
    def components(self) -> IntArray:
        """The number of its connected part, for every node."""
        return self.components_of(np.ones(self.n_edges, dtype=bool))

    def components_of(self, kept: BoolArray) -> IntArray:
        """Return the same with only some of the edges."""
        return parts(self.edges[kept], self.size)[1]

    def angles(self, phases: Array) -> Array:
        """Return theta_j - theta_i of every edge, (B, E), of phases (B, N)."""
        # take keeps each sample's row contiguous, so that sums over it round alike in every batch.
        return phases.take(self.second, axis=1) - phases.take(self.first, axis=1)

    def at_ends(self, on_first: Array, on_second: Array) -> Array:
        """Sum per-edge values (B, E) into the nodes they act on, (B, N).

        Counted one by one, in the order of the edges, so that a sample's sums round alike in every batch.
        """
        if on_first.shape != on_second.shape:
            on_first, on_second = np.broadcast_arrays(on_first, on_second)
        values = np.concatenate((on_first, on_second), axis=1)
        if np.iscomplexobj(values):
            parts = (self.at_ends(*np.split(part, 2, axis=1)) for part in (values.real, values.imag))
            return next(parts) + 1j * next(parts)
        batch, size = values.shape[0], self.size
        if size > _COUNTED_FROM:
            return np.stack([np.bincount(self._ends, row, size) for row in values]) if batch else np.zeros((0, size))
        index = self._ends if batch == 1 else np.add.outer(size * np.arange(batch), self._ends).ravel()
        return np.bincount(index, values.ravel(), batch * size).reshape(batch, size)

    @lazy_property
    def _ends(self) -> IntArray:
        """First ends of all edges, then second ends."""
        return np.concatenate([self.first, self.second])

    @lazy_property
    def colours(self) -> tuple[IntArray, ...]:
        """Places, among the nodes that move, of groups whose members are not coupled to each other.

        Greedy, from the nodes with the fewest neighbours on; outputs come in groups of their own, the last ones.
        """
        size = self.free.size
        pairs = self.position[self.edges[self.inner_edges]]
        links = sparse.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(size, size))
        links = sparse.csr_array(links + links.T)
        is_output = np.isin(self.free, self.outputs)
        group = np.full(size, -1, dtype=np.int64)
        first = 0
        for kind in (False, True):
            members = np.flatnonzero(is_output == kind)
            for node in members[np.argsort(np.diff(links.indptr)[members], kind="stable")]:
                taken = set(group[links.indices[links.indptr[node] : links.indptr[node + 1]]].tolist())
                group[node] = next(colour for colour in range(first, size) if colour not in taken)
            first = int(group.max(initial=-1)) + 1
        return tuple(np.flatnonzero(group == colour) for colour in range(first))

    @lazy_property
    def blocks(self) -> Blocks:
        """Couplings as dense blocks between groups of nodes that move, and from held nodes to them."""
        return Blocks.of(self)

    @property
    def has_blocks(self) -> bool:
        """Whether dense blocks fit into memory."""
        return self.size * self.free.size <= DENSE_LIMIT**2 // 4


class Block(NamedTuple):
    """Edges between two groups: slices of the moving nodes in group order, and the number of each pair's edge.

    ``edges`` (rows, columns) holds the number of edges E where a pair is not coupled; ``run`` is the part of all edges
    that the block is, where that is one stretch in this order. ``there`` are the places of coupled pairs in the
    flattened block, each edge once.
    """

    rows: slice
    columns: slice
    edges: IntArray
    run: slice | None
    there: IntArray

    def matrix(self, strength: Array) -> Array:
        """Return the couplings (rows, columns) of per-edge strengths (E,)."""
        if self.run is not None:
            return strength[self.run].reshape(self.edges.shape)
        return np.append(strength, 0.0)[self.edges]

    def collect(self, matrix: Array, total: Array) -> None:
        """Add the entries (rows, columns) to per-edge values (E,)."""
        if self.run is not None:
            total[self.run] += matrix.ravel()
        else:
            total[self.edges.ravel()[self.there]] += matrix.ravel()[self.there]


@dataclass(frozen=True, eq=False)
class Blocks:
    """The graph as dense blocks.

    The moving nodes are put in the order of their groups: colours where a few of them hold all nodes, so that no edge
    lies within a group, the largest one without outputs first; else one group of all.

    Attributes
    ----------
    order : ndarray of int, shape (n,)
        The moving nodes, group by group.
    groups : tuple of slice
        Of that order.
    inner : tuple of Block
        Between two groups, or within the only one, where every edge then stands twice.
    outer : tuple of Block
        From held nodes (rows) to groups (columns).
    eliminated : int
        How many nodes the first group has, if it is a colour without outputs; else 0.
    """

    order: IntArray
    groups: tuple[slice, ...]
    inner: tuple[Block, ...]
    outer: tuple[Block, ...]
    eliminated: int

    @classmethod
    def of(cls, graph: Graph) -> Blocks:
        """Return the blocks of a graph."""
        coloured = len(graph.colours) <= MOST_COLOURS
        members = list(graph.colours) if coloured else [np.arange(graph.free.size)]
        hidden = [0 if np.isin(graph.free[group], graph.outputs).any() else group.size for group in members]
        largest = max(hidden, default=0)
        if largest:
            members.insert(0, members.pop(hidden.index(largest)))
        order = np.concatenate([graph.free[:0], *(graph.free[group] for group in members)])
        ends = np.cumsum([0, *(group.size for group in members)])
        groups = tuple(slice(int(a), int(b)) for a, b in pairwise(ends))
        number = sparse.csr_array(
            (np.arange(1, graph.n_edges + 1), (graph.first, graph.second)), shape=(graph.size, graph.size)
        )
        number = sparse.csr_array(number + number.T)
        inner = []
        for a, rows in enumerate(groups):
            for columns in groups[a + 1 :] if coloured else groups:
                block = _block(number, order[rows], order[columns], rows, columns, graph.n_edges)
                inner += [] if block is None else [block]
        held = [
            _block(number, graph.held, order[columns], slice(0, graph.held.size), columns, graph.n_edges)
            for columns in groups
        ]
        eliminated = largest if coloured else 0
        return cls(order, groups, tuple(inner), tuple(block for block in held if block is not None), eliminated)

    @property
    def coloured(self) -> bool:
        """Whether no edge lies within a group."""
        return len(self.groups) != 1 or not self.inner


def ordered_edges(given: ArrayLike, size: int) -> tuple[IntArray, IntArray | None, BoolArray]:
    """Return checked edges with i < j in row-major order, how they were put in order, and which were turned around.

    The order is None where the edges were in it already.
    """
    edges = _checked_edges(given, size)
    turned = edges[:, 0] > edges[:, 1]
    edges = np.stack([np.minimum(*edges.T), np.maximum(*edges.T)], axis=1)
    number = edges[:, 0] * size + edges[:, 1]
    order = None
    if np.any(number[1:] < number[:-1]):
        order = np.argsort(number, kind="stable")
        number, edges = number[order], edges[order]
    twice = number[1:] == number[:-1]
    if np.any(twice):
        i, j = (int(node) for node in edges[1:][twice][0])
        raise ValueError(f"The edge ({i}, {j}) is given twice. Give every pair of oscillators once.")
    # Column by column: the two ends of all edges are read as arrays of their own.
    return frozen_array(np.asfortranarray(edges)), order, turned


def _block(number: Any, a: IntArray, b: IntArray, rows: slice, columns: slice, n_edges: int) -> Block | None:
    """Return the block of two lists of nodes, None where no edge joins them."""
    part = number[a][:, b]
    if part.nnz == 0:
        return None
    edges = part.toarray() - 1
    edges[edges < 0] = n_edges
    flat = edges.ravel()
    consecutive = flat[-1] < n_edges and np.array_equal(flat, np.arange(flat[0], flat[0] + flat.size))
    run = slice(int(flat[0]), int(flat[-1]) + 1) if consecutive else None
    # Where a group is coupled to itself every edge stands there twice.
    once = np.triu(edges < n_edges) if a is b or np.array_equal(a, b) else edges < n_edges
    return Block(rows, columns, edges, run, np.flatnonzero(once))


def _checked_edges(value: ArrayLike, size: int) -> IntArray:
    edges = node_numbers(value)
    if edges.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if edges.ndim != 2 or edges.shape[1] != 2 or not np.issubdtype(edges.dtype, np.integer):
        raise ValueError(
            "The 'edges' parameter of Network must be an array of node numbers with shape (E, 2). "
            f"Got shape {edges.shape} of {edges.dtype}."
        )
    outside = (edges < 0) | (edges >= size)
    if np.any(outside):
        node = int(edges[outside][0])
        raise ValueError(f"An edge names node {node}, but the network has nodes 0 to {size - 1}.")
    loops = edges[:, 0] == edges[:, 1]
    if np.any(loops):
        raise ValueError(
            f"Oscillator {int(edges[loops][0, 0])} is coupled to itself. Self-loops exert no force: remove them."
        )
    return edges.astype(np.int64)
