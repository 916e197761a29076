r"""Proofs about the quadratic form of a large sparse Laplacian: positive definite, or a vector that shows it is not.

    x^T L x = sum over edges w_ij (x_i - x_j)^2 + sum over nodes g_i x_i^2

A form that lies below another one at every x proves it positive definite, so every weight stands at the lower end of
what rounding leaves open, and a vector whose quotient is negative with all weights at their upper ends refutes it. What
can be shown without a factorisation:

- **No weight is negative** and every part of the graph is tied to the ground: positive definite.
- **A part that only negative weights hold** moves as a whole: not positive definite, and that motion is the witness.

Otherwise L = P - B W B^T, with P the positive weights and one column of B per negative one, and

- **the pivots of a factorisation** that is cheap (small, a mesh, or a graph that vanishes when nodes of few neighbours
  are eliminated) are counted. A - t = U^T D U + rounding, so that A is positive definite if all pivots are positive and
  t exceeds the rounding, which the factors themselves bound;
- **the compliance across the negative weights** decides: L is positive definite if and only if the small matrix
  1 - W^1/2 B^T P^-1 B W^1/2 is. P is an M-matrix: a v > 0 with P v > 0 bounds its smallest eigenvalue from below by the
  smallest (P v)_i / v_i, and so the error of every solve by its own residual.

A proof costs a few factorisations at most. Where one is cheap nothing is iterated, since weights over many decades can
make conjugate gradients take thousands of times as long; where none is, iterations stop once they have cost about as
much as one would.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import splu, spsolve_triangular

from phasegrad._validation import Array, FloatArray, IntArray
from phasegrad.dynamics import System
from phasegrad.graphs import Graph, lazy_property
from phasegrad.linearised._factors import is_positive_definite
from phasegrad.linearised._krylov import MAX_ITERATIONS, conjugate_gradients
from phasegrad.linearised._preconditioning import Preconditioner

#: Nodes up to which a graph of few neighbours is factored, whether it is a mesh or not, and a mesh.
FACTORED, FACTORED_MESH = 20_000, 300_000
#: Nodes, of the graph or of its core, up to which that is quick, and up to which one of many neighbours is factored
#: densely.
QUICKLY, DENSELY = 6_000, 6_000
#: Neighbours of a node, on average, up to which a graph has few.
FEW_NEIGHBOURS = 8
#: Products that the compliance across negative weights may take: a share of the cube of the nodes, between two bounds.
COMPLIANCE_SHARE, COMPLIANCE_WORK = 1 / 30, (10**7, 10**10)
#: Most negative weights whose compliance is computed.
COMPLIANCE_MOST = 2000
_EPS = float(np.finfo(float).eps)
_MARGIN, _TRIES = 1e-12, 3
_ACCURATELY, _REFINEMENTS = 1e-10, 2
# A node with this many times the square root of all nodes as neighbours is a hub.
_HUB = 10


Precondition = Callable[[sparse.csr_array], Preconditioner]


class Evidence(NamedTuple):
    """What was found out about a form: whether it is proved positive definite, else a vector that speaks against it.

    Where factors proved it, they come as its inverse.
    """

    proved: bool
    witness: FloatArray | None = None
    inverse: Inverse | None = None


@dataclass(frozen=True, eq=False)
class Form:
    """The form of one state: edges ``first``, ``second`` between the n nodes that move, bounds on weights and ground.

    ``low`` and ``high`` (E,) bound the weights of the edges, ``ground_low`` and ``ground_high`` (n,) what ties each
    node to the frame; ``lift`` is added to all eigenvalues.
    """

    first: IntArray
    second: IntArray
    low: FloatArray
    high: FloatArray
    ground_low: FloatArray
    ground_high: FloatArray
    lift: float = 0.0

    @classmethod
    def of(cls, system: System, phases: Array) -> Form:
        """Return the form of the Laplacian of one sample, reciprocal, its nudge included."""
        graph = system.graph
        (edges, sums), nodes = np.zeros((2, 2, graph.n_edges)), np.zeros((2, graph.size))
        units = float(rounding_units(phases)[0])
        for term in system.terms:
            bounds = term.stiffest(graph, system.values)
            parts = term.stiffness(graph, system.values, phases).beside(bounds)
            for total, (value, bound) in zip((edges, None, nodes, sums), parts, strict=True):
                if total is not None and value is not None:
                    total += np.stack([value[0] - units * bound[0], value[0] + units * bound[0]])
        form = cls.between(graph, edges, nodes, sums)
        return form if system.pull is None else form._bent(system, phases)

    @classmethod
    def between(cls, graph: Graph, edges: FloatArray, nodes: FloatArray, sums: FloatArray) -> Form:
        """Return the form of a graph whose weights of differences and of sums (2, E) and diagonal (2, N) have bounds.

        A sum is a difference of the other sign and two grounds: (x_i + x_j)^2 = 2 x_i^2 + 2 x_j^2 - (x_i - x_j)^2.
        """
        if np.any(sums):
            edges, nodes = edges - sums[::-1], nodes + 2 * graph.at_ends(sums, sums)
        ends = graph.position[graph.edges]
        inner, outer = graph.inner_edges, np.flatnonzero(np.sum(ends >= 0, axis=1) == 1)
        to_frame = np.max(ends[outer], axis=1)
        size = graph.free.size
        ground = [nodes[k, graph.free] + np.bincount(to_frame, edges[k, outer], size) for k in range(2)]
        first, second = ends[inner].T
        return cls(first, second, edges[0, inner], edges[1, inner], ground[0], ground[1])

    def _bent(self, system: System, phases: Array) -> Form:
        """Return the form with the curvature of a nudge: its entries off the diagonal are edges between outputs."""
        assert system.pull is not None
        curvature = system.pull.hessian(phases)[0]
        row, column = np.nonzero(np.triu(curvature, 1))
        where = system.graph.position[system.pull.nodes]
        weight, ground = -curvature[row, column], np.sum(curvature, axis=1)
        slack, own = 8 * _EPS * np.abs(weight), 8 * _EPS * np.sum(np.abs(curvature), axis=1)
        low, high = self.ground_low.copy(), self.ground_high.copy()
        low[where] += ground - own
        high[where] += ground + own
        return Form(
            np.concatenate([self.first, where[row]]),
            np.concatenate([self.second, where[column]]),
            np.concatenate([self.low, weight - slack]),
            np.concatenate([self.high, weight + slack]),
            low,
            high,
        )

    def lifted(self, by: float) -> Form:
        """Return the form of L + by."""
        return replace(self, lift=self.lift + by)

    @property
    def size(self) -> int:
        """Number of nodes n."""
        return int(self.ground_low.size)

    @lazy_property
    def norm(self) -> float:
        """The largest entry of the diagonal, in absolute value: between a half of and the whole norm of L."""
        return float(np.max(np.abs(self._diagonal(self.high, self.ground_high + self.lift)), initial=0.0))

    @lazy_property
    def bottom(self) -> float:
        """No eigenvalue is below this (Gershgorin)."""
        bent = 2 * self._diagonal(np.minimum(self.low, 0.0), 0.0)
        return float(np.min(self.ground_low + bent, initial=np.inf)) + self.lift

    @lazy_property
    def lower(self) -> sparse.csr_array:
        """The matrix with all weights at their lower ends."""
        return self._matrix(self.low, self.ground_low + self.lift)

    @lazy_property
    def positive(self) -> sparse.csr_array:
        """The matrix P of the weights that are positive for sure, lifted."""
        return self._matrix(np.maximum(self.low, 0.0), np.maximum(self.ground_low, 0.0) + self.lift)

    @lazy_property
    def stand_in(self) -> sparse.csr_array:
        """The matrix with all weights made positive: a metric, whatever their signs."""
        return self._matrix(np.abs(self.low), np.abs(self.ground_low) + max(self.lift, 0.0))

    @lazy_property
    def bent_edges(self) -> IntArray:
        """Edges whose weight may be negative."""
        return np.flatnonzero(self.low < 0)

    @lazy_property
    def bent_nodes(self) -> IntArray:
        """Nodes whose ground may be negative."""
        return np.flatnonzero(self.ground_low < 0)

    def quotient(self, vector: FloatArray) -> float:
        """Return a number that x^T L x / x^T x surely does not exceed.

        Differences of two given numbers are exact to one rounding, so that the only error is that of the sum.
        """
        square = float(vector @ vector)
        if not square > 0:
            return np.inf
        terms = self.high * (vector[self.first] - vector[self.second]) ** 2, self.ground_high * vector**2
        total = sum(float(np.sum(each)) for each in terms)
        rounding = 64 * _EPS * sum(float(np.sum(np.abs(each))) for each in terms)
        return (total + rounding) / square + self.lift

    def factors_quickly(self, *, mesh: bool) -> bool:
        """Return whether a factorisation is quick, which no number of iterations can be relied on to be."""
        if not self._has_few_neighbours or self.size > max(QUICKLY, FACTORED_MESH):
            return False
        return self.size <= QUICKLY or mesh or self.core <= QUICKLY

    @lazy_property
    def core(self) -> int:
        """Nodes that are left once those of few neighbours are eliminated; see `phasegrad.kernels._fill`."""
        from phasegrad.kernels import fill

        return int(fill.core(self.lower.indptr, self.lower.indices, fill.FEW, fill.TRACKED))

    @property
    def _has_few_neighbours(self) -> bool:
        return 2 * self.first.size <= FEW_NEIGHBOURS * self.size

    def examine(self, precondition: Precondition, *, mesh: bool) -> Evidence:
        """Return what can be proved; ``precondition`` makes an approximate inverse of P."""
        count = self.bent_edges.size + self.bent_nodes.size
        loose = self._loose_part()
        if loose is not None:
            return Evidence(False, loose)
        if count == 0 and self.lift >= 0:
            return Evidence(True)
        if self.factors_quickly(mesh=mesh):
            return self._by_factors()
        if count <= COMPLIANCE_MOST:
            evidence = self._by_compliance(precondition(self.positive))
            if evidence is not None:
                return evidence
        if self._has_few_neighbours and self.size <= FACTORED:
            return self._by_factors()
        if self.size <= DENSELY:
            matrix = self.lower.toarray()[None]
            return Evidence(bool(is_positive_definite(matrix, 16 * self.size * _EPS * self.norm)[0]))
        return Evidence(False)

    def _loose_part(self) -> FloatArray | None:
        """Return a part that no positive weight ties to the ground, as a vector of zeros and ones; None if none is."""
        held = self.low > 0
        links = sparse.coo_array(
            (np.ones(np.count_nonzero(held)), (self.first[held], self.second[held])), shape=(self.size, self.size)
        )
        number, part = csgraph.connected_components(links, directed=False)
        tied = np.zeros(number, dtype=bool)
        tied[part[self.ground_low + max(self.lift, 0.0) > 0]] = True
        if np.all(tied):
            return None
        # Of several, the one that is pushed hardest per node.
        apart = part[self.first] != part[self.second]
        push = np.bincount(part[self.first[apart]], self.high[apart], number).astype(np.float64)
        push += np.bincount(part[self.second[apart]], self.high[apart], number)
        push += np.bincount(part, self.ground_high + self.lift, number)
        push = np.where(tied, np.inf, push / np.bincount(part))
        return (part == np.argmin(push)).astype(np.float64)

    def _by_factors(self) -> Evidence:
        """Decide by the pivots of a factorisation of the matrix scaled to a unit diagonal."""
        diagonal = self.lower.diagonal()
        if np.any(diagonal <= 0):
            return Evidence(False, (np.arange(self.size) == np.argmin(diagonal)).astype(np.float64))
        scale = 1 / np.sqrt(diagonal)
        lower = self.lower
        row = np.repeat(np.arange(self.size), np.diff(lower.indptr))
        values = lower.data * scale[row] * scale[lower.indices]
        scaled = sparse.csr_array((values, lower.indices, lower.indptr), shape=lower.shape)
        # The row of a hub is a long sum, whose rounding a second try would find out.
        long = np.diff(scaled.indptr) * np.bincount(row, np.abs(values), self.size)
        margin = max(_MARGIN, 8 * _EPS * float(np.max(long, initial=0.0)))
        for _ in range(_TRIES):
            factors = Factors.of(scaled, margin)
            if factors is None:
                return Evidence(False)
            if not np.all(factors.pivots > 0):
                return Evidence(False, scale * factors.descent())
            if factors.rounding < margin:
                return Evidence(True, None, Inverse(self.lower, factors, scale, margin - factors.rounding))
            margin = 2 * factors.rounding
        return Evidence(False)

    def _by_compliance(self, inverse: Preconditioner) -> Evidence | None:
        """Decide by the compliance of the positive weights across the negative ones; None if that is too much work."""
        solver = _Iterations(self.positive, inverse, float(np.clip(COMPLIANCE_SHARE * self.size**3, *COMPLIANCE_WORK)))
        floor = self._floor(solver)
        if floor is None:
            return None
        pull = -np.concatenate([self.low[self.bent_edges], self.ground_low[self.bent_nodes]])
        bent = self._diagonal(np.minimum(self.low, 0.0), np.minimum(self.ground_low, 0.0))
        if floor > -2 * float(np.min(bent)):
            # All negative weights together bend no direction by as much as the positive ones do.
            return Evidence(True)
        root = np.sqrt(pull)
        columns = self._columns()
        compliance, left = np.empty((pull.size, pull.size)), np.empty(pull.size)
        for k in range(pull.size):
            right = columns[:, [k]].toarray().ravel()
            # Every solve is taken to be as long as those before it.
            if not solver.affords(pull.size - k):
                return None
            answer = solver.solve(right)
            compliance[:, k] = columns.T @ answer
            rest = right - self.positive @ answer
            left[k] = np.linalg.norm(rest) + np.linalg.norm(_rounding(self.positive, answer))
        # |error of C_jk| <= |b_j|_{P^-1} |r_k|_{P^-1}, and the second norm is at most |r_k| / sqrt(floor).
        reach = left / np.sqrt(floor)
        own = reach + np.sqrt(reach**2 + np.maximum(np.diagonal(compliance), 0.0))
        error = float(np.linalg.norm(np.outer(root * own, root * reach)))
        matrix = np.eye(pull.size) - root[:, None] * (compliance + compliance.T) / 2 * root[None, :]
        values, vectors = np.linalg.eigh(matrix)
        if values[0] > error + 16 * pull.size * _EPS * float(np.max(np.abs(values))):
            return Evidence(True)
        return Evidence(False, solver.solve(columns @ (root * vectors[:, 0])))

    def _floor(self, solver: _Iterations) -> float | None:
        """Return a number that no eigenvalue of P is below, None if none was found."""
        return self.below(self.positive, solver.once(np.ones(self.size), 0.1 / np.sqrt(self.size)))

    @staticmethod
    def below(matrix: sparse.csr_array, vector: FloatArray) -> float | None:
        """Return the smallest (P v)_i / v_i, less its rounding, of an M-matrix P: no eigenvalue of it is smaller."""
        if not np.all(vector > 0):
            return None
        image = matrix @ vector - 2 * _rounding(matrix, vector)
        smallest = float(np.min(image / vector, initial=np.inf))
        return smallest if smallest > 0 else None

    def _columns(self) -> sparse.csc_array:
        """Return B (n, k): which nodes each negative weight acts across."""
        edges, nodes = self.bent_edges, self.bent_nodes
        each = np.arange(edges.size)
        row = np.concatenate([self.first[edges], self.second[edges], nodes])
        column = np.concatenate([each, each, edges.size + np.arange(nodes.size)])
        value = np.concatenate([np.ones(edges.size), -np.ones(edges.size), np.ones(nodes.size)])
        return sparse.coo_array((value, (row, column)), shape=(self.size, edges.size + nodes.size)).tocsc()

    def _diagonal(self, weight: FloatArray, ground: FloatArray | float) -> FloatArray:
        ends = (np.bincount(end, weight, self.size) for end in (self.first, self.second))
        return np.asarray(sum(ends) + ground)

    def _matrix(self, weight: FloatArray, ground: FloatArray) -> sparse.csr_array:
        """Return the matrix of weights and ground, its diagonal lowered by what its sums may have been rounded up."""
        each = np.arange(self.size)
        largest = self._diagonal(np.abs(weight), np.abs(ground) + abs(self.lift))
        rounding = (self._diagonal(np.ones_like(weight), 0.0) + 4) * _EPS * largest
        row = np.concatenate([self.first, self.second, each])
        column = np.concatenate([self.second, self.first, each])
        value = np.concatenate([-weight, -weight, self._diagonal(weight, ground) - rounding])
        matrix = sparse.coo_array((value, (row, column)), shape=(self.size, self.size)).tocsr()
        matrix.sort_indices()
        return matrix


def rounding_units(phases: Array) -> FloatArray:
    """Return the share of the most it can be by which rounding may change a weight, (B,).

    An angle is as uncertain as the phases that it is the difference of.
    """
    largest = np.maximum(np.max(phases, axis=1, initial=0.0), -np.min(phases, axis=1, initial=0.0))
    return np.asarray((8 + 2 * largest) * _EPS)


def _rounding(matrix: sparse.csr_array | sparse.csc_array, vector: FloatArray) -> FloatArray:
    """Bound the rounding of A x, entry by entry."""
    terms = int(np.max(np.diff(matrix.indptr), initial=0)) + 8
    return np.asarray(terms * _EPS * (abs(matrix) @ np.abs(vector)))


class _Iterations:
    """Solves with one matrix by conjugate gradients, which together may take so many products of two numbers."""

    def __init__(self, matrix: sparse.csr_array, inverse: Preconditioner, work: float) -> None:
        self.matrix, self.inverse = matrix, inverse
        self.most, self.taken, self.solves = int(work / max(matrix.nnz, 1)), 0, 0

    def affords(self, solves: int) -> bool:
        """Return whether so many more can be afforded, if each is as long as those so far."""
        return self.taken + solves * self.taken / max(self.solves, 1) <= self.most

    def once(self, right: FloatArray, tolerance: float) -> FloatArray:
        """Return x with |b - A x| <= tolerance |b|, or as near as can be afforded."""
        most = max(self.most - self.taken, 1)
        found = conjugate_gradients(
            self.matrix, right, self.inverse, tolerance=tolerance, max_iterations=min(most, MAX_ITERATIONS)
        )
        self.taken, self.solves = self.taken + found.iterations, self.solves + 1
        return found.solution

    def solve(self, right: FloatArray) -> FloatArray:
        """Return x with |b - A x| near 1e-10 |b|: what iterations believe is left drifts away from what is."""
        solution, size = self.once(right, _ACCURATELY), float(np.linalg.norm(right))
        for _ in range(_REFINEMENTS):
            left = right - self.matrix @ solution
            if not np.linalg.norm(left) > 3 * _ACCURATELY * size or self.taken >= self.most:
                break
            better = solution + self.once(left, 1e-4)
            if not np.linalg.norm(right - self.matrix @ better) < np.linalg.norm(left):
                break
            solution = better
        return solution


@dataclass(frozen=True, eq=False)
class Factors:
    """A - shift = L D L^T but for rounding, in an order that keeps L sparse: by SuperLU with pivots on the diagonal."""

    found: Any
    matrix: sparse.csr_array

    @classmethod
    def of(cls, matrix: sparse.csr_array, shift: float) -> Factors | None:
        """Factor a symmetric matrix minus a multiple of one; None where a pivot vanishes."""
        rows = matrix - shift * sparse.eye_array(matrix.shape[0], format="csr")
        # The rows of a symmetric matrix are its columns.
        shifted = sparse.csc_array((rows.data, rows.indices, rows.indptr), shape=rows.shape)
        # Minimum degree takes time by the square of the neighbours of a hub.
        hub = np.max(np.diff(matrix.indptr), initial=0) > _HUB * np.sqrt(matrix.shape[0])
        order = "COLAMD" if hub else "MMD_AT_PLUS_A"
        try:
            found = splu(shifted, permc_spec=order, diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        except RuntimeError:
            return None
        return cls(found, shifted) if np.array_equal(found.perm_r, found.perm_c) else None

    @lazy_property
    def pivots(self) -> FloatArray:
        """The diagonal of D: as many are negative as eigenvalues of the matrix are."""
        return np.asarray(self.found.U.diagonal())

    @lazy_property
    def rounding(self) -> float:
        """A bound on the norm of what A - shift and L D L^T differ by.

        Every entry of L U is a sum of at most as many products as its row of L has entries; and U differs from D L^T by
        what can be seen.
        """
        lower, upper = self.found.L, self.found.U
        ones = np.ones(self.matrix.shape[0])
        terms = np.bincount(lower.indices, minlength=ones.size) + 2
        # Turned over and back again, both have their entries in order.
        transposed = lower.T.tocsc()
        transposed.data *= self.pivots[transposed.indices]
        apart = abs(upper.tocsr().tocsc() - transposed)
        lower, upper = abs(lower), abs(upper)
        total = 2 * terms * _EPS * (lower @ (upper @ ones)) + lower @ (apart @ ones)
        return float(np.max(total + _rounding(self.matrix, ones), initial=0.0))

    def descent(self) -> FloatArray:
        """Return the vector along which the first negative pivot curves: L^T x = e."""
        unit = np.zeros(self.matrix.shape[0])
        unit[np.argmax(self.pivots <= 0)] = 1.0
        upper = sparse.csr_array(self.found.L.T)
        return np.asarray(spsolve_triangular(upper, unit, lower=False, unit_diagonal=True))[self.found.perm_c]

    def solve(self, right: FloatArray) -> FloatArray:
        """Return (A - shift)^-1 b."""
        return np.asarray(self.found.solve(np.ascontiguousarray(right)))


@dataclass(frozen=True, eq=False)
class Inverse:
    """The inverse of a matrix A that is proved positive definite, by factors of S A S minus a little.

    No eigenvalue of S A S, with the diagonal S = ``scale``, is below ``floor``.
    """

    matrix: sparse.csr_array
    factors: Factors
    scale: FloatArray
    floor: float

    def solve(self, right: FloatArray) -> FloatArray:
        """Return A^-1 b, refined."""
        answer = np.zeros_like(right)
        for _ in range(1 + _REFINEMENTS):
            left = right - self.matrix @ answer
            answer += self.scale * self.factors.solve(self.scale * left)
        return answer

    def energy_norm(self, right: FloatArray, answer: FloatArray) -> float:
        """Bound the norm |r|_{A^-1} of the residual r = b - A x of an answer x, its rounding included."""
        left = np.abs(right - self.matrix @ answer) + _EPS * np.abs(right) + _rounding(self.matrix, answer)
        return float(np.linalg.norm(self.scale * left) / np.sqrt(self.floor))
