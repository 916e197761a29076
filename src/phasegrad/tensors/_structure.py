"""What a network is to tensors: groups of oscillators that are not coupled among themselves, and links between them.

The groups are the layers of a layout; of any other graph the levels counted from the outputs if no edge lies within
one, else its colours. The held oscillators are a group of their own, the first one. A link knows which of the
network's couplings it has and in which shape: a matrix, or the kernel of a convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from phasegrad._validation import IntArray
from phasegrad.graphs import Graph, Layout
from phasegrad.networks import Network
from phasegrad.terms import Coupling, Field, Frequencies, Sine

# Entries of a link's matrix, as a multiple of its couplings and at all, beyond which a graph is too sparse for it.
_SPARSEST, _SMALL = 64, 2**22


class Index:
    """Places along an axis: a stretch of it where they follow each other, else a tensor kept on every device used.

    A step that is recorded as a graph may not send numbers to the device, so each is sent once.
    """

    def __init__(self, numbers: IntArray | slice) -> None:
        if isinstance(numbers, slice):
            numbers = np.arange(numbers.start, numbers.stop)
        self.numbers = np.asarray(numbers, dtype=np.int64)
        first = int(self.numbers[0]) if self.numbers.size else 0
        follows = np.array_equal(self.numbers, np.arange(first, first + self.numbers.size))
        self.run = slice(first, first + self.numbers.size) if follows else None
        self._kept: dict[Any, Any] = {}

    @property
    def size(self) -> int:
        """How many places there are."""
        return int(self.numbers.size)

    def on(self, device: Any) -> Any:
        """Return the places as a tensor on a device."""
        import torch

        if device not in self._kept:
            self._kept[device] = torch.as_tensor(self.numbers.copy(), device=device)
        return self._kept[device]

    def take(self, values: Any) -> Any:
        """Return what a tensor has in these places of its last axis."""
        if self.run is not None:
            whole = self.run.start == 0 and self.run.stop == values.shape[-1]
            return values if whole else values[..., self.run]
        return values.index_select(-1, self.on(values.device))

    def put(self, total: Any, values: Any) -> None:
        """Write values into these places of the last axis of a tensor."""
        if self.run is not None:
            total[..., self.run] = values
        else:
            total.index_copy_(-1, self.on(total.device), values)

    def __reduce__(self) -> tuple[Any, ...]:
        return Index, (self.numbers,)


class Group(NamedTuple):
    """Oscillators that are not coupled to each other: their numbers, in the order of ``shape``, and their values.

    ``values`` are the numbers of the values that node parameters have for them: one each, or one per channel.
    """

    shape: tuple[int, ...]
    nodes: IntArray
    values: Index

    @property
    def size(self) -> int:
        """How many oscillators it has."""
        return int(self.nodes.size)


class Link(NamedTuple):
    """Couplings between two groups.

    ``couplings`` are the numbers of the network's couplings, in the order of ``places`` in the flattened weight, or in
    its own order where that is None. ``stride`` and ``padding`` are those of a convolution, None for a matrix.
    """

    first: int
    second: int
    shape: tuple[int, ...]
    couplings: Index
    places: Index | None = None
    stride: int | None = None
    padding: int = 0


#: Oscillators as runs of places in groups.
Places = tuple[tuple[int, Index], ...]


@dataclass(frozen=True, eq=False)
class Structure:
    """Groups, the held one first (it may be empty), and links, each from a lower to a higher group.

    ``order`` is that of a sweep over the groups that move: those of odd number, then those of even number. ``outputs``
    says in which group each output is and where; ``inputs`` the same of the inputs.
    """

    network: Network
    groups: tuple[Group, ...]
    links: tuple[Link, ...]
    outputs: Places
    inputs: Places

    @classmethod
    def of(cls, network: Network) -> Structure:
        """Return the structure of a network; ValueError, in words, where tensors cannot stand for it."""
        refusal = refuses(network)
        if refusal:
            raise ValueError(refusal)
        layout = network.graph.layout
        groups, links = _of_graph(network.graph) if layout is None else _of_layout(layout, network.clamps_inputs)
        return cls(network, groups, links, _places(groups, network.outputs), _places(groups, network.inputs))

    @property
    def moving(self) -> range:
        """The groups that move."""
        return range(1, len(self.groups))

    @property
    def order(self) -> tuple[int, ...]:
        """The groups that move, in the order of a sweep."""
        return (*self.moving[::2], *self.moving[1::2])

    @property
    def clamped(self) -> bool:
        """Whether data sets the phases of the held group."""
        return self.network.clamps_inputs

    def links_of(self, group: int) -> list[tuple[int, Link]]:
        """Return numbers and links that a group has with others that move."""
        return [(k, link) for k, link in enumerate(self.links) if link.first and group in (link.first, link.second)]

    @property
    def hidden(self) -> tuple[int, int] | None:
        """Of two groups that move, joined by a matrix, the larger one and the one of a few; None of other networks."""
        if len(self.groups) != 3 or min(group.size for group in self.groups[1:]) > 64:
            return None
        if any(link.stride is not None for _, link in self.links_of(1)):
            return None
        return (1, 2) if self.groups[1].size >= self.groups[2].size else (2, 1)


def refuses(network: Network) -> str:
    """Return why tensors cannot stand for a network, in a sentence; empty if they can."""
    for term in network.terms:
        known = isinstance(term, (Coupling, Field, Frequencies))
        if not known or not term.phasor or not term.symmetric:
            words = term.describe() or type(term).__name__
            if known and type(network.interaction) is not Sine:
                words = f"the interaction {network.interaction!r}"
            return (
                f"PyTorch takes networks of sine coupling, sine fields and frequencies, and this one has {words}. "
                "The NumPy functions take every network."
            )
    if type(network.interaction) is not Sine:
        return f"PyTorch takes networks of sine coupling, and this one has the interaction {network.interaction!r}."
    if network.graph.layout is not None and network.pinned:
        return (
            "PyTorch takes layers whose phases fields or clamped inputs hold, and this network has neither. Give it "
            "fields (field_strength), or input_mode='phase'."
        )
    return ""


def _of_layout(layout: Layout, clamped: bool) -> tuple[tuple[Group, ...], tuple[Link, ...]]:
    # Where data drives the inputs they move as all others do, and nobody is held.
    none = np.empty(0, dtype=np.int64)
    groups = [] if clamped else [Group((0,), none, Index(none))]
    ahead = len(groups)
    for shape, nodes, values in zip(layout.shapes, layout.nodes, layout.node_values, strict=True):
        groups.append(Group(tuple(shape), np.arange(nodes.start, nodes.stop), Index(values)))
    links = []
    for link, couplings in zip(layout.links, layout.couplings, strict=True):
        stride = None if link.kernel is None else link.stride
        first, second, shape = link.first + ahead, link.second + ahead, layout.weight_shape(link)
        links.append(Link(first, second, shape, Index(couplings), None, stride, link.padding))
    return tuple(groups), tuple(links)


def _of_graph(graph: Graph) -> tuple[tuple[Group, ...], tuple[Link, ...]]:
    members = [graph.held, *(graph.free[level] for level in _levels(graph))]
    groups = tuple(Group((nodes.size,), nodes, Index(nodes)) for nodes in members)
    group_of, place = np.empty((2, graph.size), dtype=np.int64)
    for number, nodes in enumerate(members):
        group_of[nodes], place[nodes] = number, np.arange(nodes.size)
    ends = graph.edges if np.size(graph.edges) else np.empty((0, 2), dtype=np.int64)
    turned = group_of[ends[:, 0]] > group_of[ends[:, 1]]
    low, high = np.where(turned, ends[:, 1], ends[:, 0]), np.where(turned, ends[:, 0], ends[:, 1])
    pair = group_of[low] * len(members) + group_of[high]
    links = []
    for number in np.unique(pair):
        first, second = divmod(int(number), len(members))
        if first == second:
            continue
        numbers = np.flatnonzero(pair == number)
        shape = groups[first].size, groups[second].size
        if shape[0] * shape[1] > max(_SMALL, _SPARSEST * numbers.size):
            raise ValueError(
                f"PyTorch takes dense layers and convolutions. Between two groups of {shape[0]} and {shape[1]} "
                f"oscillators this network has only {numbers.size} couplings: use the NumPy functions."
            )
        places = place[low[numbers]] * shape[1] + place[high[numbers]]
        in_order = places.size == shape[0] * shape[1] and np.array_equal(places, np.arange(places.size))
        links.append(Link(first, second, shape, Index(numbers), None if in_order else Index(places)))
    return groups, tuple(links)


def _levels(graph: Graph) -> Sequence[IntArray]:
    """Return places among the free nodes of groups without edges inside, from the inputs to the outputs."""
    size = graph.free.size
    ends = graph.position[graph.edges[graph.inner_edges]]
    # Older versions of SciPy find trees and paths with indices of 32 bits only.
    first, second = ends.T.astype(np.int32)
    links = sparse.csr_array((np.ones(len(ends)), (first, second)), shape=(size, size))
    starts = graph.position[list(graph.outputs)]
    if not starts.size or not size:
        return graph.colours
    distance = csgraph.dijkstra(links, directed=False, indices=starts, unweighted=True, min_only=True)
    alone = ~np.isfinite(distance)
    if np.any(distance[ends[:, 0]] == distance[ends[:, 1]]) or np.any(alone[ends]):
        return graph.colours
    distance[alone] = np.max(distance[~alone]) + 1
    return [np.flatnonzero(distance == level) for level in np.unique(distance)[::-1]]


def _places(groups: Sequence[Group], nodes: Sequence[int]) -> Places:
    """Return, for the nodes in their order, runs of places in one group."""
    size = sum(group.size for group in groups)
    group_of, place = np.empty((2, size), dtype=np.int64)
    for number, group in enumerate(groups):
        group_of[group.nodes], place[group.nodes] = number, np.arange(group.size)
    asked = np.asarray(nodes, dtype=np.int64)
    ends = np.flatnonzero(np.diff(group_of[asked])) + 1
    return tuple((int(group_of[run[0]]), Index(place[run])) for run in np.split(asked, ends) if run.size)
