r"""The linearised system of a large sparse network: conjugate gradients on edges or compressed rows.

Newton's steps are solved only as accurately as the distance to the equilibrium deserves, so that all of them together
cost little more than one accurate solve. Where conjugate gradients meet a direction of negative curvature the Laplacian
is proved indefinite. Certificates are proofs about the quadratic form, by the pivots of a factorisation or by the
compliance across the few negative weights (`phasegrad.linearised._proofs`); up to a size a dense factorisation is as
quick.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.dynamics import System
from phasegrad.graphs import DENSE_LIMIT, lazy_property
from phasegrad.kernels import COMPILES
from phasegrad.linearised._bounds import meets_angle_condition, nearly_zero
from phasegrad.linearised._dense import FLOOR, DenseLaplacian
from phasegrad.linearised._edge_matrix import EdgeMatrix
from phasegrad.linearised._krylov import (
    LinearSolution,
    Matrix,
    Outer,
    conjugate_gradients,
    outer_of,
    product,
    solve_accurately,
)
from phasegrad.linearised._linearised import Linearised, Stability, Verdict
from phasegrad.linearised._low_rank import Lowered
from phasegrad.linearised._preconditioning import GaussSeidel, Preconditioner, kind_of, preconditioner
from phasegrad.linearised._proofs import Evidence, Form
from phasegrad.linearised._smallest import lowest_quotient, smallest_eigenvalue
from phasegrad.terms import cosines

#: Oscillators from which a network with few edges is solved sparsely.
SPARSE_FROM = 300
#: Share of all pairs that may be coupled in a network that counts as sparse.
SPARSE_DENSITY = 0.1
#: Oscillators up to which a sparse network too is certified by a dense factorisation.
DENSE_CERTIFICATE = 1000
#: Oscillators up to which all eigenvalues tell what a sparse network is that was neither proved stable nor refuted.
DENSE_EXPLANATION = 2000
# How accurately the positive stand-in is solved with: descent needs a direction, not digits.
_STAND_IN = 1e-1
# The share of the force that a step solved in single precision leaves to the next one.
_ENOUGH = 1e-4
# A solve that ends with more than this share of its right-hand side left has not found an answer.
_LOST = 1e-8

Operator = tuple[Matrix, Preconditioner, Outer]


class SparseLaplacian(Linearised):
    """A sparse system with an energy, sample by sample; ``effort`` counts the linear iterations of each."""

    name = "sparse"
    iterates = True

    def __init__(
        self, system: System, moving: Array, kind: str = "auto", effort: list[tuple[int, str]] | None = None
    ) -> None:
        super().__init__(system, moving)
        self.kind = kind
        self.effort = [(0, "")] * system.batch if effort is None else effort
        self._last: tuple[int, Operator] | None = None

    @classmethod
    def of(cls, system: System, phases: Array, preconditioner: str = "auto") -> Self:
        """Return the linearised system at phases (B, N); it must have an energy."""
        if not system.has_energy:
            raise ValueError(
                "The sparse algebra needs reciprocal coupling and a real nudge. Use solver='newton' or 'flow' instead."
            )
        found = super().of(system, phases)
        found.kind = preconditioner
        return found

    @staticmethod
    def fits(system: System) -> bool:
        """Return whether a system is large, has few edges, and a real symmetric Laplacian."""
        graph = system.graph
        if not system.has_energy or graph.size < SPARSE_FROM:
            return False
        return graph.size > DENSE_LIMIT or 2 * graph.n_edges <= SPARSE_DENSITY * graph.size**2

    @staticmethod
    def entries(system: System) -> int:
        """Return what the edges of a sample take."""
        return 4 * (system.graph.n_edges + system.graph.size)

    def at(self, moving: Array) -> SparseLaplacian:
        """Return the same samples at other phases (B, n)."""
        return SparseLaplacian(self.system, moving, self.kind, self.effort)

    def take(self, rows: Array) -> SparseLaplacian:
        """Return some of the samples."""
        chosen = np.arange(self.system.batch)[rows].tolist()
        part = SparseLaplacian(
            self.system.take(rows), self.moving[rows], self.kind, [self.effort[row] for row in chosen]
        )
        self._share(part, rows)
        balanced = self.__dict__.get("_balanced")
        if balanced is not None:
            part.__dict__["_balanced"] = tuple(values[rows] for values in balanced)
        return part

    @lazy_property
    def force(self) -> Array:
        """The force on the oscillators that move, (B, n)."""
        if self._balanced is None:
            return self.system.force(self.phases).take(self.nodes, axis=1)
        return self._balanced[0].take(self.nodes, axis=1)

    @lazy_property
    def _balanced(self) -> tuple[Array, Array, Array] | None:
        """Force (B, N), edge weights (B, E) and diagonal (B, N) of sine coupling, out of one compiled pass."""
        if self._strength is None:
            return None
        from phasegrad.kernels import edges as loops

        system, phases = self.system, self.phases
        force, diagonal = np.zeros_like(phases), np.zeros_like(phases)
        weights = np.empty((phases.shape[0], self._strength.size))
        for term in system.terms:
            if term.phasor_edges(system.values) is None:
                force += term.force(system.graph, system.values, phases)
                own = term.stiffness(system.graph, system.values, phases).diagonal
                diagonal += 0.0 if own is None else own
        for each in zip(*cosines(phases), force, weights, diagonal, strict=True):
            loops.balance(*system.graph.narrow_ends, self._strength, *each)
        return force, weights, diagonal

    @lazy_property
    def _strength(self) -> Array | None:
        """The couplings (E,) of a network whose edges all act as sines; None of any other."""
        edges = [k for term in self.system.terms if (k := term.phasor_edges(self.system.values)) is not None]
        known = all(term.phasor or (term.local and not term.drives) for term in self.system.terms)
        plain = COMPILES and known and self.system.shared and self.system.pull is None and len(edges) == 1
        return edges[0][0] if plain else None

    @property
    def closed(self) -> bool:
        """Whether nothing but frequencies acts beside the coupling."""
        return all(term.drives or term.phasor_edges(self.system.values) is not None for term in self.system.terms)

    def newton(self, accuracy: FloatArray, rests: BoolArray) -> tuple[Array, BoolArray]:
        """Solve L d = F by conjugate gradients; the mask says where no negative curvature was met."""
        del rests
        step, positive = np.zeros_like(self.force), np.zeros(self.force.shape[0], dtype=bool)
        for row in range(step.shape[0]):
            found = self._stepped(row, float(accuracy[row]))
            step[row], positive[row] = found.solution, found.positive
        return step, positive

    def follow(self, rows: IntArray) -> tuple[Array, BoolArray]:
        """Solve L d = F of some samples to rounding, by MINRES."""
        steps = [self._stepped(row, 0.0).solution for row in rows.tolist()]
        return np.array(steps), np.ones(rows.size, dtype=bool)

    def descend(self, rows: IntArray) -> tuple[Array, BoolArray]:
        """Solve roughly with the positive stand-in of some samples' Laplacians."""
        steps = [self._stepped(row, _STAND_IN, FLOOR).solution for row in rows.tolist()]
        return np.array(steps), np.ones(rows.size, dtype=bool)

    def _stepped(self, row: int, accuracy: float, floor: float | None = None) -> LinearSolution:
        matrix, inverse, outer = self.operator(row, floor)
        right = np.ascontiguousarray(self.force[row])
        if accuracy == 0.0:
            found = solve_accurately(matrix, right, inverse, outer=outer)
        else:
            found = conjugate_gradients(matrix, right, inverse, tolerance=accuracy, enough=_ENOUGH, outer=outer)
        self.effort[row] = (self.effort[row][0] + found.iterations, inverse.name)
        return found

    def turn(self, step: Array) -> FloatArray:
        """Return the largest change across an edge or against a field: far ends of a mesh may turn far."""
        from phasegrad.kernels import edges as loops

        whole = np.zeros((step.shape[0], self.system.graph.size))
        whole[:, self.nodes] = step
        largest = (
            self.system.turns(whole)
            if self.system.joins_all
            else np.array([loops.widest(*self.system.graph.narrow_ends, row) for row in whole])
        )
        if any(term.fixes_gauge for term in self.system.terms):
            largest = np.maximum(largest, np.max(np.abs(step), axis=1, initial=0.0))
        return np.asarray(largest)

    def report(self, row: int) -> tuple[int, str]:
        """Return the linear iterations of a sample so far and its preconditioner."""
        return self.effort[row]

    def operator(self, row: int, floor: float | None = None) -> Operator:
        """Return the Laplacian of one sample, or its positive stand-in, its preconditioner and its part of low rank.

        Gauss-Seidel takes the edges as they stand, other preconditioners and nudges compressed rows.
        """
        system, phases = self.system.take(np.array([row])), self.phases[row : row + 1]
        kind = kind_of(system) if self.kind == "auto" else self.kind
        if system.pull is not None or system.low_rank:
            rows = system.sparse_laplacian(phases, floor=floor)
            return rows, preconditioner(system, rows, kind), outer_of(system, phases, floor=floor)
        balanced = self.__dict__.get("_balanced")
        if balanced is not None and floor is None:
            weights, diagonal, closed = balanced[1][row], balanced[2][row], self.closed
        else:
            every_weight, every_diagonal, closed = system.edge_weights(phases, floor=floor)
            weights, diagonal = every_weight[0], every_diagonal[0]
        graph = system.graph
        if kind == "gauss-seidel" and np.all(diagonal > 0):
            matrix = EdgeMatrix(graph.narrow_ends, weights, diagonal, graph.free, closed and graph.held.size == 1)
            return matrix, GaussSeidel(matrix), None
        rows = graph.pattern.fill(weights, diagonal)
        return rows, preconditioner(system, rows, kind), None

    def _solve(self, right: Array, *, transposed: bool, accuracy: float) -> tuple[Array, BoolArray]:
        """Solve L x = b, b (B, n) or (B, n, k), to a share ``accuracy`` of b; L is symmetric."""
        del transposed
        solution, regular = np.zeros_like(right), np.zeros(right.shape[0], dtype=bool)
        for row, (matrix, inverse, outer) in enumerate(self._operators):
            columns = right[row].reshape(right.shape[1], -1)
            answers = solution[row].reshape(columns.shape)
            found = [
                solve_accurately(matrix, np.ascontiguousarray(column), inverse, tolerance=accuracy, outer=outer)
                for column in columns.T
            ]
            for k, answer in enumerate(found):
                answers[:, k] = answer.solution
            regular[row] = all(answer.left <= max(_LOST, 10 * accuracy) for answer in found)
        return solution, regular

    def matvec(self, vectors: Array) -> Array:
        """Return L v of vectors (B, n)."""
        both = zip(self._operators, vectors, strict=True)
        return np.array([product(matrix, vector, outer) for (matrix, _, outer), vector in both])

    @property
    def _operators(self) -> Iterator[Operator]:
        """Every sample's Laplacian, made once for samples in a row whose phases are equal, and kept for the last."""
        for row in range(self.system.batch):
            # Another thread may change what is kept at any time.
            last = self._last
            if last is None or not self._same(row, last[0]):
                last = row, self.operator(row)
                self._last = last
            yield last[1]

    def _same(self, row: int, other: int) -> bool:
        """Return whether two samples have the same Laplacian for sure."""
        shared = self.system.pull is None and self.system.shared
        return row == other or (shared and np.array_equal(self.phases[row], self.phases[other]))

    def definite(self, floor: FloatArray | None = None, *, explain: bool = False) -> IntArray:
        """Return the verdict on every sample; see `Linearised.definite`."""
        if floor is not None:
            return DenseLaplacian.of(self.system, self.phases).definite(floor, explain=explain)
        return self.certificate(explain=explain).verdict

    def smallest(self) -> tuple[FloatArray, FloatArray]:
        """Return an upper end of the smallest eigenvalue of every sample, (B,), and how far below it may lie."""
        found = self.certificate(eigenvalue=True)
        return found.smallest, found.error

    def certificate(self, *, eigenvalue: bool = False, explain: bool = False) -> Stability:
        """Return verdicts and, if asked for, smallest eigenvalues, one sample after the other."""
        batch = self.system.batch
        if self.system.graph.free.size <= DENSE_CERTIFICATE:
            return DenseLaplacian.of(self.system, self.phases).certificate(eigenvalue=eigenvalue, explain=explain)
        found = Stability(np.zeros(batch, dtype=np.int64), np.full(batch, np.nan), np.full(batch, np.nan))
        for row in range(batch):
            judge = _Judge(self.system.take(np.array([row])), self.phases[row : row + 1])
            if eigenvalue:
                found.smallest[row], found.error[row] = judge.smallest
            found.verdict[row] = judge.verdict(explain=explain)
        return found


class _Judge:
    """What can be proved about the Laplacian of one large sparse sample, each step taken when it is first needed."""

    def __init__(self, system: System, phases: Array) -> None:
        self.system, self.phases = system, phases
        self.nearly = float(nearly_zero(system)[0])

    @lazy_property
    def attracts(self) -> bool:
        """Whether no weight is negative, nor the curvature of a nudge."""
        return bool(meets_angle_condition(self.system, self.phases)[0]) and _bends_upward(self.system, self.phases)

    @lazy_property
    def form(self) -> _Plain | Lowered:
        """The quadratic form, with what belongs to a mean field."""
        form, mesh = Form.of(self.system, self.phases), kind_of(self.system) == "multigrid"

        def precondition(matrix: Any) -> Preconditioner:
            return preconditioner(self.system, matrix)

        if self.system.low_rank:
            return Lowered.of(self.system, self.phases, form, precondition, mesh=mesh)
        return _Plain(form, precondition, mesh)

    @lazy_property
    def evidence(self) -> Evidence:
        """What was found out about the form."""
        return self.form.examine()

    @property
    def proved(self) -> bool:
        """Whether it is proved positive definite."""
        return self.attracts or self.evidence.proved

    @lazy_property
    def smallest(self) -> tuple[float, float]:
        """The upper end of the smallest eigenvalue, and how far below it may lie."""
        if self.undecided and self.form.size <= DENSE_EXPLANATION:
            value, error = DenseLaplacian.of(self.system, self.phases).smallest()
            return float(value[0]), float(error[0])
        return self.form.smallest_eigenvalue(self.evidence)

    @lazy_property
    def undecided(self) -> bool:
        """Whether the form is neither proved positive definite nor refuted by its witness."""
        if self.proved:
            return False
        witness = self.evidence.witness
        return witness is None or not self.form.quotient(witness) < -self.nearly

    def verdict(self, *, explain: bool) -> Verdict:
        """Return the verdict; without ``explain`` what is not proved is unproved."""
        if self.proved:
            return Verdict.STABLE
        if not explain:
            return Verdict.UNPROVED
        if not self.undecided:
            return Verdict.UNSTABLE
        if self.form.size <= DENSE_EXPLANATION:
            return Verdict(int(DenseLaplacian.of(self.system, self.phases).definite(explain=True)[0]))
        lifted = self.form.lifted(self.nearly).examine()
        vectors, enough = (self.evidence.witness, lifted.witness), self.nearly if lifted.proved else -self.nearly
        least = self.form.lowest_quotient(vectors, enough, lifted)
        bounded = lifted.proved
        if "smallest" in self.__dict__:
            value, error = self.smallest
            least, bounded = float(np.fmin(least, value)), bounded or value - error >= -self.nearly
        return _told_apart(least, self.nearly, bounded)


class _Plain:
    """The form of one state without a part of low rank, asked as `Lowered` is."""

    def __init__(self, form: Form, precondition: Any, mesh: bool) -> None:
        self.form, self.precondition, self.mesh = form, precondition, mesh
        self.size = form.size

    def lifted(self, by: float) -> _Plain:
        """Return the form of L + by."""
        return _Plain(self.form.lifted(by), self.precondition, self.mesh)

    def examine(self) -> Evidence:
        """Return what can be proved."""
        return self.form.examine(self.precondition, mesh=self.mesh)

    def quotient(self, vector: FloatArray) -> float:
        """Return a number that x^T L x / x^T x surely does not exceed."""
        return self.form.quotient(vector)

    def lowest_quotient(self, vectors: Any, enough: float, proof: Evidence) -> float:
        """Return a number that the smallest eigenvalue does not exceed."""
        del proof
        return lowest_quotient(self.form, vectors, enough, self.precondition, mesh=self.mesh)

    def smallest_eigenvalue(self, evidence: Evidence) -> tuple[float, float]:
        """Return a number that the smallest eigenvalue does not exceed, and by how much it is smaller at most."""
        return smallest_eigenvalue(self.form, evidence, self.precondition, mesh=self.mesh)


def _bends_upward(system: System, phases: Array) -> bool:
    """Return whether the nudge of one sample, if there is one, only adds to its stiffness."""
    if system.pull is None:
        return True
    return float(np.min(np.linalg.eigvalsh(system.pull.hessian(phases)[0]), initial=0.0)) >= 0


def _told_apart(smallest: float, nearly: float, bounded: bool) -> Verdict:
    """Return the verdict on a form that is not proved positive.

    Its smallest eigenvalue is at most ``smallest``; ``bounded`` says whether it is proved to be at least ``-nearly``.
    """
    if smallest < -nearly:
        return Verdict.UNSTABLE
    if smallest <= nearly and bounded:
        return Verdict.MARGINAL
    return Verdict.UNSTABLE if smallest < 0 else Verdict.UNPROVED
