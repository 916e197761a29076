r"""The network: oscillators, who is coupled to whom, and how data enters.

The dynamics of oscillator i, in the frame that rotates with the network, are

    d theta_i / dt = omega_i + sum_j K_ij H(theta_j - theta_i) + h_i H(psi_i - theta_i)

with natural frequencies omega, coupling K, an odd interaction H and, optionally, a bias field of strength h
and phase psi. A `Network` is a frozen value over read-only arrays; `Network.replace` makes the next one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse import csgraph

from phasegrad.interactions import Interaction, Sine
from phasegrad.sparsity import Pattern
from phasegrad.validation import (
    BoolArray,
    FloatArray,
    IntArray,
    choice,
    finite_array,
    frozen_array,
    node_numbers,
    node_tuple,
    positive_float,
    shaped_array,
    whole_number,
)

INPUT_MODES = ("frequency", "phase")


@dataclass(frozen=True, eq=False, kw_only=False)
class Network:
    """A network of coupled phase oscillators.

    Parameters
    ----------
    edges : array_like of int, shape (E, 2)
        Coupled pairs. They are stored with i < j and in row-major order, and every per-edge array with them.
    coupling : array_like of float, shape (E,) or scalar
        Strength K_ij with which j acts on i, for each edge (i, j).
    omega : array_like of float, shape (N,)
        Natural frequencies; their number is the number of oscillators.
    coupling_reverse : array_like of float, shape (E,), optional
        Strength K_ji with which i acts on j. Left out, coupling is reciprocal: K_ji = K_ij.
    field_strength, field_phase : array_like of float, shape (N,) or scalar, optional
        Bias field h and its phase psi (zero if left out). A field fixes the gauge: nothing is pinned.
    inputs, outputs : sequence of int
        Nodes that data drives, and nodes that are read out.
    reference : int, default 0
        The node held at phase zero where no field and no clamped input fixes the gauge.
    input_mode : {"frequency", "phase"}
        Data x sets the frequency ``input_scale * x`` of the inputs, or clamps their phase at ``input_scale * x``.
        Clamped oscillators do not move and, like a field, fix the gauge.
    input_scale : float, default 1.5
        The scale (of frequencies) or span (of phases) of the inputs.
    interaction : Interaction
        The odd coupling function H.
    signed : bool, default False
        Whether negative couplings and field strengths are allowed.
    labels : sequence of hashable, optional
        Names of the nodes, for people and for NetworkX. The physics never reads them.
    node_attributes : sequence of mapping, optional
        Anything else known about each node, carried along unread.
    """

    edges: IntArray
    coupling: FloatArray
    omega: FloatArray
    coupling_reverse: FloatArray | None = field(default=None, kw_only=True)
    field_strength: FloatArray | None = field(default=None, kw_only=True)
    field_phase: FloatArray | None = field(default=None, kw_only=True)
    inputs: tuple[int, ...] = field(default=(), kw_only=True)
    outputs: tuple[int, ...] = field(default=(), kw_only=True)
    reference: int = field(default=0, kw_only=True)
    input_mode: str = field(default="frequency", kw_only=True)
    input_scale: float = field(default=1.5, kw_only=True)
    interaction: Interaction = field(default=Sine(), kw_only=True)
    signed: bool = field(default=False, kw_only=True)
    labels: tuple[Hashable, ...] | None = field(default=None, kw_only=True)
    node_attributes: tuple[Mapping[str, Any], ...] | None = field(default=None, kw_only=True)

    if TYPE_CHECKING:

        def __init__(
            self,
            edges: ArrayLike,
            coupling: ArrayLike,
            omega: ArrayLike,
            *,
            coupling_reverse: ArrayLike | None = None,
            field_strength: ArrayLike | None = None,
            field_phase: ArrayLike | None = None,
            inputs: Sequence[int] = (),
            outputs: Sequence[int] = (),
            reference: int = 0,
            input_mode: str = "frequency",
            input_scale: float = 1.5,
            interaction: Interaction = ...,
            signed: bool = False,
            labels: Sequence[Hashable] | None = None,
            node_attributes: Sequence[Mapping[str, Any]] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        omega = np.atleast_1d(finite_array("omega", self.omega, "Network")).copy()
        if omega.ndim != 1 or omega.size == 0:
            raise ValueError(f"The 'omega' parameter of Network must have shape (N,). Got shape {omega.shape}.")
        self._set("omega", frozen_array(omega))
        self._set_edges()
        self._set_field()
        self._set_roles()
        for name in ("labels", "node_attributes"):
            self._set_per_node(name)
        if not isinstance(self.interaction, Interaction):
            raise TypeError(
                "The 'interaction' parameter of Network must be an Interaction, such as Sine() or a subclass of "
                f"your own. Got {self.interaction!r}."
            )
        self.interaction.check()
        self._check_grounded()

    def replace(self, **changes: Any) -> Network:
        """Return a copy with some fields changed, checked as a new network is."""
        unknown = set(changes) - {item.name for item in dataclasses.fields(self)}
        if unknown:
            raise TypeError(f"Network has no field {sorted(unknown)[0]!r}.")
        return dataclasses.replace(self, **changes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        return all(
            np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else bool(mine == theirs)
            for mine, theirs in (
                (getattr(self, item.name), getattr(other, item.name)) for item in dataclasses.fields(self)
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        def counted(number: int, word: str) -> str:
            return f"{number} {word}{'' if number == 1 else 's'}"

        parts = [counted(self.size, "oscillator"), counted(self.n_edges, "edge")]
        if self.inputs:
            kind = "frequencies" if self.input_mode == "frequency" else "clamped phases"
            parts.append(f"{counted(len(self.inputs), 'input')} as {kind}")
        if self.outputs:
            parts.append(counted(len(self.outputs), "output"))
        if not self.reciprocal:
            parts.append("non-reciprocal coupling")
        if self.field_strength is not None:
            parts.append("bias field")
        gauge = f"node {self.reference} held at phase 0" if self.pinned else "gauge fixed from outside"
        return f"Network({', '.join(parts)}, {self.interaction!r}, {gauge})"

    @property
    def size(self) -> int:
        """Number of oscillators N."""
        return int(self.omega.size)

    @property
    def n_edges(self) -> int:
        """Number of edges E."""
        return int(self.edges.shape[0])

    @property
    def reciprocal(self) -> bool:
        """Whether the two ends of every edge act on each other equally, so that an energy exists."""
        return self.coupling_reverse is None

    @property
    def clamps_inputs(self) -> bool:
        """Whether the inputs are clamped phases."""
        return self.input_mode == "phase" and bool(self.inputs)

    @property
    def pinned(self) -> bool:
        """Whether the reference node is held at phase zero because nothing else fixes the gauge."""
        return self.field_strength is None and not self.clamps_inputs

    @cached_property
    def held(self) -> IntArray:
        """The nodes that do not move: the clamped inputs, or the reference, or none."""
        if self.clamps_inputs:
            return np.asarray(self.inputs, dtype=np.int64)
        return np.asarray([self.reference] if self.pinned else [], dtype=np.int64)

    @cached_property
    def free(self) -> IntArray:
        """The nodes that move, in order."""
        mask = np.ones(self.size, dtype=bool)
        mask[self.held] = False
        return np.flatnonzero(mask)

    @cached_property
    def total_coupling(self) -> FloatArray:
        """The most that neighbours and field together can pull each oscillator, before the interaction's bound."""
        reverse = self.coupling if self.coupling_reverse is None else self.coupling_reverse
        total: FloatArray = np.zeros(self.size)
        for end, strength in zip(self.edges.T, (self.coupling, reverse), strict=True):
            total += np.bincount(end, np.abs(strength), self.size)
        if self.field_strength is not None:
            total += np.abs(self.field_strength)
        return total

    @cached_property
    def position(self) -> IntArray:
        """Place of every node among those that move, -1 for held ones."""
        position = np.full(self.size, -1, dtype=np.int64)
        position[self.free] = np.arange(self.free.size)
        return position

    @cached_property
    def inner_edges(self) -> IntArray:
        """Numbers of the edges between two nodes that move."""
        return np.flatnonzero(np.all(self.position[self.edges] >= 0, axis=1))

    @cached_property
    def pattern(self) -> Pattern:
        """Where the entries of the sparse Laplacian lie; reciprocal coupling only."""
        return Pattern.of_graph(self.edges, self.position)

    @cached_property
    def outer_edges(self) -> IntArray:
        """Numbers of the edges that end at a held node."""
        return np.flatnonzero(np.any(self.position[self.edges] < 0, axis=1))

    @cached_property
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

    @cached_property
    def eliminated(self) -> tuple[IntArray, IntArray]:
        """Places, among the nodes that move, of the largest group without outputs and couplings inside; and the rest.

        The group's block of the Laplacian is diagonal, so it can be solved for first.
        """
        groups = [group for group in self.colours if not np.isin(self.free[group], self.outputs).any()]
        first = max(groups, key=len, default=np.zeros(0, dtype=np.int64))
        return first, np.setdiff1d(np.arange(self.free.size), first)

    @cached_property
    def incidence(self) -> tuple[sparse.csr_array, sparse.csr_array]:
        """Two 0/1 matrices (N, E): which edges have each node as their first, and as their second end."""
        each = np.arange(self.n_edges)
        ones = np.ones(self.n_edges)
        first, second = (
            sparse.csr_array((ones, (self.edges[:, end], each)), shape=(self.size, self.n_edges)) for end in (0, 1)
        )
        return first, second

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _set_edges(self) -> None:
        edges = _checked_edges(self.edges, self.size)
        count = (edges.shape[0],)
        coupling = shaped_array("coupling", self.coupling, count, "Network")
        reverse = (
            None
            if self.coupling_reverse is None
            else shaped_array("coupling_reverse", self.coupling_reverse, count, "Network")
        )
        flipped = edges[:, 0] > edges[:, 1]
        if reverse is not None:
            coupling[flipped], reverse[flipped] = reverse[flipped], coupling[flipped]
        edges = np.stack([np.minimum(*edges.T), np.maximum(*edges.T)], axis=1)
        number = edges[:, 0] * self.size + edges[:, 1]
        if np.any(number[1:] < number[:-1]):
            order = np.argsort(number, kind="stable")
            number, edges, coupling = number[order], edges[order], coupling[order]
            reverse = None if reverse is None else reverse[order]
        twice = number[1:] == number[:-1]
        if np.any(twice):
            i, j = (int(node) for node in edges[1:][twice][0])
            raise ValueError(f"The edge ({i}, {j}) is given twice. Give every pair of oscillators once.")
        if not self.signed:
            _check_strengths(edges, coupling, reverse)
        # Column by column: the two ends of all edges are read as arrays of their own.
        self._set("edges", frozen_array(np.asfortranarray(edges)))
        self._set("coupling", frozen_array(coupling))
        self._set("coupling_reverse", None if reverse is None else frozen_array(reverse))

    def _set_field(self) -> None:
        if self.field_strength is None:
            if self.field_phase is not None:
                raise ValueError("The 'field_phase' parameter of Network needs 'field_strength' beside it.")
            return
        strength = shaped_array("field_strength", self.field_strength, (self.size,), "Network")
        phase = shaped_array(
            "field_phase", 0.0 if self.field_phase is None else self.field_phase, (self.size,), "Network"
        )
        if not np.any(strength):
            raise ValueError(
                "The 'field_strength' parameter of Network is zero everywhere. Leave it out to pin the reference."
            )
        if not self.signed and np.any(strength < 0):
            node = int(np.argmax(strength < 0))
            raise ValueError(
                f"The field at node {node} has strength {strength[node]}, but negative strengths need signed=True."
            )
        self._set("field_strength", frozen_array(strength))
        self._set("field_phase", frozen_array(phase))

    def _set_roles(self) -> None:
        choice("input_mode", self.input_mode, INPUT_MODES, "Network")
        self._set("input_scale", positive_float("input_scale", self.input_scale, "Network"))
        self._set("inputs", node_tuple("inputs", self.inputs, self.size, "Network"))
        self._set("outputs", node_tuple("outputs", self.outputs, self.size, "Network"))
        reference = whole_number("reference", self.reference, 0, "Network")
        self._set("reference", node_tuple("reference", [reference], self.size, "Network")[0])
        if not isinstance(self.signed, (bool, np.bool_)):
            raise TypeError(f"The 'signed' parameter of Network must be True or False. Got {self.signed!r}.")
        if self.clamps_inputs and set(self.inputs) & set(self.outputs):
            node = min(set(self.inputs) & set(self.outputs))
            raise ValueError(f"Node {node} is an output and a clamped input. A clamped oscillator cannot answer.")
        if self.pinned and self.reference in self.outputs:
            raise ValueError(
                f"Node {self.reference} is an output and the reference. The reference is held at phase zero and "
                "cannot answer: choose another reference."
            )

    def _set_per_node(self, name: str) -> None:
        given = getattr(self, name)
        if given is None:
            return
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise TypeError(f"The '{name}' parameter of Network must be a list. Got {given!r}.")
        values = tuple(given)
        if len(values) != self.size:
            raise ValueError(
                f"The '{name}' parameter of Network must have one entry per oscillator, {self.size}. Got {len(values)}."
            )
        if name == "labels" and not all(isinstance(value, Hashable) for value in values):
            raise TypeError("The 'labels' parameter of Network must hold hashable names, such as strings or numbers.")
        if name == "labels" and len(set(values)) != self.size:
            raise ValueError("The 'labels' parameter of Network names two oscillators alike.")
        self._set(name, values)

    def _check_grounded(self) -> None:
        """Refuse a graph with a part that nothing ties to the gauge: its Laplacian would be singular."""
        grounded = np.zeros(self.size, dtype=bool)
        grounded[self.held] = True
        if self.field_strength is not None:
            grounded |= self.field_strength != 0
        if np.all(grounded):
            return
        if self.reciprocal:
            _, part = csgraph.connected_components(self._influence(), directed=False)
            tied = np.bincount(part, grounded) > 0
            loose = ~tied[part]
        else:
            loose = ~self._influenced_by(grounded)
            part = loose.astype(np.int64)
        if not np.any(loose):
            return
        if not self.pinned:
            part = loose.astype(np.int64)
        what = "the reference" if self.pinned else "a field or a clamped input"
        sizes = np.bincount(part)
        shown = np.sort(np.argsort(-sizes, kind="stable")[:4])
        named = " and ".join(_name_nodes(np.flatnonzero(part == k)) for k in shown)
        more = f" and {sizes.size - 4} more ({_name_sizes(np.delete(sizes, shown))})" if sizes.size > 4 else ""
        raise ValueError(
            f"The graph is disconnected: it falls into the {sizes.size} parts {named}{more}, and not every part is "
            f"reached from {what}. Join the parts with an edge, or build one network for each."
        )

    def _influence(self) -> sparse.csr_array:
        """Sparse matrix with an entry [j, i] where j acts on i."""
        i, j = self.edges[:, 0], self.edges[:, 1]
        forward = backward = self.coupling != 0
        if self.coupling_reverse is not None:
            backward = self.coupling_reverse != 0
        source = np.concatenate([j[forward], i[backward]])
        sink = np.concatenate([i[forward], j[backward]])
        return sparse.csr_array((np.ones(source.size), (source, sink)), shape=(self.size, self.size))

    def _influenced_by(self, grounded: BoolArray) -> BoolArray:
        """Nodes that a path of influence reaches from the grounded ones."""
        size = self.size
        roots = np.flatnonzero(grounded)
        influence = self._influence().tocoo()
        rows = np.concatenate([influence.row, np.full(roots.size, size)])
        columns = np.concatenate([influence.col, roots])
        graph = sparse.csr_array((np.ones(rows.size), (rows, columns)), shape=(size + 1, size + 1))
        reached = csgraph.breadth_first_order(graph, size, directed=True, return_predecessors=False)
        mask = np.zeros(size + 1, dtype=bool)
        mask[reached] = True
        return mask[:size]


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


def _check_strengths(edges: IntArray, coupling: FloatArray, reverse: FloatArray | None) -> None:
    strengths = (coupling,) if reverse is None else (coupling, reverse)
    least = np.minimum.reduce(strengths)
    bad = (least < 0) | (np.maximum.reduce(strengths) == 0)
    if np.any(bad):
        k = int(np.argmax(bad))
        given = ", ".join(f"{strength[k]:g}" for strength in strengths)
        raise ValueError(
            f"The coupling of edge ({edges[k, 0]}, {edges[k, 1]}) must be positive. Got {given}. Leave absent edges "
            "out; for negative couplings say signed=True."
        )


def _name_sizes(sizes: IntArray) -> str:
    """Return how many parts have how many nodes, the largest first."""
    nodes, times = np.unique(sizes, return_counts=True)
    said = [f"{many} of {size}" for size, many in zip(nodes[::-1].tolist(), times[::-1].tolist(), strict=True)]
    return ", ".join(said[:6]) + (", ..." if len(said) > 6 else "") + " nodes"


def _name_nodes(nodes: IntArray) -> str:
    shown = ", ".join(str(int(node)) for node in nodes[:6])
    return "{" + shown + (f", ... ({nodes.size} nodes)" if nodes.size > 6 else "") + "}"
