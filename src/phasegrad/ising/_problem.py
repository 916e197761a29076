r"""Ising problems: the energy to make small, and where it comes from.

    E(s) = -sum_{i<j} J_ij s_i s_j - sum_i h_i s_i,   s_i = +-1

The cut of a graph with weights w is sum_{i<j} w_ij (1 - s_i s_j) / 2: with J = -w and no fields it is largest where the
energy is smallest.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse import csgraph

from phasegrad._files import TEXT_ENCODING, open_plain, printable
from phasegrad._validation import (
    FloatArray,
    IntArray,
    counted,
    finite_array,
    float_between,
    frozen_array,
    parse_float,
    parse_int,
    positive_float,
    shaped_array,
)
from phasegrad.networks import Network

if TYPE_CHECKING:
    import networkx as nx

# A file of more nodes or edges than this is taken for a slip.
_MOST = 10_000_000
_MOST_BYTES = 1 << 30
# What all couplings and fields may add up to, so that no energy or rate is beyond the largest float.
_LARGEST = 1e307


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """An Ising problem: couplings J and fields h of N spins. `from_matrix` and its like make one.

    Parameters
    ----------
    edges : ndarray of int, shape (E, 2)
        Coupled pairs i < j, each once.
    couplings : ndarray, shape (E,)
        J of every edge.
    fields : ndarray, shape (N,)
        h of every spin.
    labels : tuple of hashable, optional
        Names of the nodes.

    See Also
    --------
    ising.solve : Many runs of an oscillator Ising machine.

    Examples
    --------
    >>> import phasegrad as pg
    >>> triangle = pg.ising.Problem.max_cut([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    >>> triangle
    Problem(3 spins, 3 couplings, no fields)
    >>> float(triangle.energy([1, -1, 1])), float(triangle.cut([1, -1, 1]))
    (-1.0, 2.0)
    """

    edges: IntArray
    couplings: FloatArray
    fields: FloatArray
    labels: tuple[Hashable, ...] | None = field(default=None)

    def __post_init__(self) -> None:
        owner = "ising.Problem"
        fields = finite_array("fields", self.fields, owner, largest=np.inf)
        if fields.ndim != 1 or not fields.size:
            raise ValueError(
                f"The 'fields' parameter of {owner} must have shape (N,), N > 0. Got shape {fields.shape}."
            )
        edges = _checked_edges(self.edges, fields.size, owner)
        couplings = shaped_array("couplings", self.couplings, (len(edges),), owner, largest=np.inf)
        for name, value in (("edges", edges), ("couplings", couplings), ("fields", fields)):
            object.__setattr__(self, name, frozen_array(value))
        if not np.any(couplings) and not np.any(fields):
            raise ValueError("An Ising problem needs a coupling or a field that is not 0: all states are alike here.")
        with np.errstate(over="ignore"):
            most = np.sum(np.abs(couplings)) + np.sum(np.abs(fields))
        if not most <= _LARGEST:
            raise ValueError(f"The couplings and fields of {owner} add up to more than {_LARGEST:g}. Scale them down.")
        if self.labels is not None and not len(self.labels) == len(set(self.labels)) == fields.size:
            raise ValueError(
                f"The 'labels' parameter of {owner} must name every spin, {fields.size} of them, and no two alike. "
                f"Got {len(self.labels)}, {len(set(self.labels))} of them different."
            )

    @classmethod
    def from_matrix(cls, couplings: Any, fields: ArrayLike | None = None) -> Self:
        """Return the problem of a symmetric matrix J (N, N) with an empty diagonal, dense or sparse, and fields h."""
        edges, values, size = _entries(couplings, "couplings", "ising.Problem.from_matrix")
        own: ArrayLike = 0.0 if fields is None else fields
        return cls(edges, values, shaped_array("fields", own, (size,), "ising.Problem.from_matrix", largest=np.inf))

    @classmethod
    def max_cut(cls, weights: Any) -> Self:
        """Return the problem of the largest cut of a symmetric matrix (N, N) of weights, dense or sparse."""
        edges, values, size = _entries(weights, "weights", "ising.Problem.max_cut")
        return cls(edges, -values, np.zeros(size))

    @classmethod
    def from_networkx(cls, graph: nx.Graph) -> Self:
        """Return the problem of the largest cut of an undirected NetworkX graph.

        An edge weighs what its attribute "weight" says, 1 without one.
        """
        if not callable(getattr(graph, "is_multigraph", None)):
            raise TypeError(f"ising.Problem.from_networkx takes a NetworkX Graph. Got {type(graph).__name__}.")
        if graph.is_multigraph() or graph.is_directed():
            raise ValueError("The largest cut is that of an undirected graph without parallel edges. Merge them first.")
        names = list(graph.nodes)
        number = {name: k for k, name in enumerate(names)}
        pairs = [(number[a], number[b]) for a, b in graph.edges]
        given = [weight for *_, weight in graph.edges(data="weight", default=1.0)]
        weights = finite_array("weight", given, "the graph's edges", largest=np.inf)
        plain = names == list(range(len(names)))
        edges = np.sort(np.array(pairs, dtype=np.int64).reshape(-1, 2), axis=1)
        return cls(edges, -weights, np.zeros(len(names)), None if plain else tuple(names))

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Return the problem of the largest cut of a file in the format of G-set.

        The first line has the numbers of nodes and edges, each other line an edge: two nodes, counted from 1, and its
        weight.
        """
        place = Path(path)
        with open_plain(place) as (file, size):
            if size > _MOST_BYTES:
                raise ValueError(f"{printable(place)} is larger than {_MOST_BYTES >> 20} MB. Name another file.")
            content = file.read()
        try:
            lines = [line.split() for line in content.decode(TEXT_ENCODING).splitlines()]
            return cls._of_lines(lines)
        except UnicodeDecodeError:
            raise ValueError(f"{printable(place)} is no file of G-set: it is not plain text.") from None
        except _FileError as error:
            raise ValueError(f"{printable(place)} is no file of G-set: {error}") from None

    @classmethod
    def _of_lines(cls, lines: list[list[str]]) -> Self:
        nodes, count = _header(lines[0] if lines else [])
        rows = [(number, words) for number, words in enumerate(lines[1:], 2) if words]
        if len(rows) != count:
            raise _FileError(f"line 1 promises {counted(count, 'edge')}, and {len(rows)} follow.")
        edges, weights = np.empty((count, 2), dtype=np.int64), np.empty(count)
        seen: dict[tuple[int, int], int] = {}
        for k, (number, words) in enumerate(rows):
            first, second, weights[k] = _edge(number, words, nodes)
            pair = (min(first, second), max(first, second))
            if pair in seen:
                raise _FileError(f"line {number} repeats the edge of line {seen[pair]}. Give every edge once.")
            seen[pair] = number
            edges[k] = pair[0] - 1, pair[1] - 1
        return cls(edges, -weights, np.zeros(nodes))

    @property
    def size(self) -> int:
        """Number of spins."""
        return self.fields.size

    @property
    def scale(self) -> float:
        """The root mean square of the local field of random spins: the machine's unit of coupling."""
        most = max(float(np.max(np.abs(each), initial=0.0)) for each in (self.couplings, self.fields))
        squares = 2 * np.sum((self.couplings / most) ** 2) + np.sum((self.fields / most) ** 2)
        return most * float(np.sqrt(squares / self.size))

    @property
    def matrix(self) -> sparse.csr_array:
        """The couplings as a symmetric sparse matrix (N, N)."""
        first, second = self.edges.T
        places = np.concatenate([first, second]), np.concatenate([second, first])
        return sparse.csr_array((np.tile(self.couplings, 2), places), shape=(self.size, self.size))

    def energy(self, spins: ArrayLike) -> Any:
        """Return the energy of spins +-1 of shape (..., N)."""
        given = self._checked(spins)
        return -_aligned(given, self.edges) @ self.couplings - given @ self.fields

    def cut(self, spins: ArrayLike) -> Any:
        """Return the cut of spins +-1 of shape (..., N), for weights -J; a problem with fields has none."""
        if np.any(self.fields):
            raise ValueError("A problem with fields has no cut: its energy alone says how good a state is.")
        return (_aligned(self._checked(spins), self.edges) - 1) @ self.couplings / 2

    def network(self, coupling: float = 1.0, injection: float = 0.0) -> Network:
        """Return the machine as a network: couplings and fields over `scale`, times ``coupling``, and the injection."""
        unit = positive_float("coupling", coupling, "ising.Problem.network")
        pull = float_between("injection", injection, 0.0, np.inf, "ising.Problem.network")
        if not pull and self._is_loose():
            raise ValueError(
                "This problem falls into parts that nothing ties to one another or to a field, so that without an "
                "injection their phases have no common zero. Let the injection be above 0, at the end of a schedule."
            )
        terms: dict[str, Any] = {"field_strength": unit * (self.fields / self.scale)} if np.any(self.fields) else {}
        terms |= {"second_strength": np.full(self.size, pull)} if pull else {}
        couplings = unit * (self.couplings / self.scale)
        return Network(self.edges, couplings, np.zeros(self.size), signed=True, labels=self.labels, **terms)

    def _is_loose(self) -> bool:
        """Return whether some part of several, or of one beside a field, has no field."""
        coupled = self.matrix
        coupled.eliminate_zeros()
        parts, part_of = csgraph.connected_components(coupled, directed=False)
        tied = np.unique(part_of[self.fields != 0]).size
        return bool(tied < parts if tied else parts > 1)

    def __repr__(self) -> str:
        fields = counted(int(np.sum(self.fields != 0)), "field") if np.any(self.fields) else "no fields"
        return f"Problem({counted(self.size, 'spin')}, {counted(len(self.edges), 'coupling')}, {fields})"

    def _checked(self, spins: ArrayLike) -> FloatArray:
        given = finite_array("spins", spins, "ising.Problem")
        if given.ndim == 0 or given.shape[-1] != self.size or np.any(np.abs(given) != 1):
            raise ValueError(
                f"Spins must be 1 or -1, {self.size} of them along the last axis. Got shape {given.shape}."
            )
        return given


class _FileError(ValueError):
    """What is wrong with a file."""


def _aligned(spins: FloatArray, edges: IntArray) -> FloatArray:
    return spins[..., edges[:, 0]] * spins[..., edges[:, 1]]


def _checked_edges(given: Any, size: int, owner: str) -> IntArray:
    edges = np.asarray(given)
    if edges.ndim != 2 or edges.shape[1] != 2 or (edges.size and edges.dtype.kind not in "iu"):
        raise ValueError(f"The 'edges' parameter of {owner} must be pairs of node numbers, shape (E, 2).")
    edges = np.sort(edges.astype(np.int64), axis=1)
    if edges.size and not (edges.min() >= 0 and edges.max() < size):
        raise ValueError(f"The 'edges' parameter of {owner} must name nodes 0 to {size - 1}.")
    if np.any(edges[:, 0] == edges[:, 1]):
        raise ValueError("A spin cannot be coupled to itself: its square is 1 in every state. Leave self-loops out.")
    if len(np.unique(edges[:, 0] * size + edges[:, 1])) != len(edges):
        raise ValueError("Every pair of spins may be coupled once. Add up the couplings of repeated edges.")
    return edges


def _entries(given: Any, name: str, owner: str) -> tuple[IntArray, FloatArray, int]:
    """Return edges, values and size of a symmetric matrix."""
    if sparse.issparse(given):
        matrix: Any = sparse.csr_array(given).astype(float)
    else:
        matrix = finite_array(name, given, owner, largest=np.inf)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"The '{name}' parameter of {owner} must be a square matrix. Got shape {matrix.shape}.")
    table = sparse.coo_array(matrix)
    table.sum_duplicates()
    if not np.all(np.isfinite(table.data)):
        raise ValueError(f"The '{name}' parameter of {owner} must be finite.")
    if np.any(table.data[table.coords[0] == table.coords[1]]):
        raise ValueError(f"The '{name}' parameter of {owner} must be 0 on the diagonal: no spin is coupled to itself.")
    if abs(table - table.T).sum() > 0:
        raise ValueError(f"The '{name}' parameter of {owner} must be symmetric. Give (A + A.T) / 2.")
    upper = sparse.coo_array(sparse.triu(table, k=1))
    upper.eliminate_zeros()
    edges = np.stack(upper.coords, axis=1).astype(np.int64)
    return edges, np.asarray(upper.data, dtype=float), int(matrix.shape[0])


def _header(words: list[str]) -> tuple[int, int]:
    try:
        nodes, count = (parse_int(word) for word in words)
    except ValueError:
        raise _FileError("line 1 must have two whole numbers, of nodes and of edges.") from None
    if not (1 <= nodes <= _MOST and 1 <= count <= _MOST):
        raise _FileError(f"line 1 must name 1 to {_MOST} nodes and edges. Got {nodes} and {count}.")
    return nodes, count


def _edge(number: int, words: list[str], nodes: int) -> tuple[int, int, float]:
    if len(words) == 2:
        raise _FileError(f"line {number} has no weight. Give two nodes and a weight, such as '1 2 1'.")
    try:
        first, second, weight = parse_int(words[0]), parse_int(words[1]), parse_float(words[2])
        if len(words) != 3 or not np.isfinite(weight):
            raise ValueError
    except (ValueError, IndexError):
        raise _FileError(f"line {number} must have two nodes and a weight, such as '1 2 1'.") from None
    if not (1 <= first <= nodes and 1 <= second <= nodes):
        raise _FileError(f"line {number} names a node that is not one of 1 to {nodes}.")
    if first == second:
        raise _FileError(f"line {number} is a self-loop, from node {first} to itself, which no cut can cut.")
    return first, second, weight
