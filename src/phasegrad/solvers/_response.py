"""How an equilibrium answers small pushes: linear systems with its Laplacian, dense or sparse as the network asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from scipy.linalg import lapack

from phasegrad._validation import Array, BoolArray
from phasegrad.dynamics import System
from phasegrad.solvers._choice import is_sparse, refuse_dense_solve
from phasegrad.solvers._krylov import solve_accurately
from phasegrad.solvers._linear import chunks, solve_general
from phasegrad.solvers._operator import Operator, operator_of

# A sparse solve that ends with more than this share of its right-hand side left has not found an answer.
_LOST = 1e-8


class Responses:
    """Linear systems with the Laplacians L of a batch at its phases (B, N): several in turn, each L made once.

    What `respond` finds for the first right-hand side, it finds too, bit by bit, with less work for the ones that
    follow. All of them are kept: `parts` says how many samples to take at a time.
    """

    def __init__(self, system: System, phases: Array) -> None:
        self.sparse = is_sparse(system)
        self.operators: list[Operator] = []
        self.factors: list[tuple[Array, Array, bool]] = []
        if self.sparse:
            self.operators = list(_operators(system, phases))
        else:
            refuse_dense_solve(system.graph, "A response", reciprocal=system.reciprocal)
            both = zip(system.laplacian(phases), system.eigenvalue_rounding, strict=True)
            self.factors = [_factored(matrix.T, margin) for matrix, margin in both]

    @staticmethod
    def parts(system: System) -> Iterator[slice]:
        """Yield the samples in parts whose Laplacians fit into memory."""
        entries = 2 * system.graph.n_edges + system.graph.size if is_sparse(system) else system.graph.free.size**2
        return iter(chunks(system.batch, entries))

    def solve(self, right: Array, *, transposed: bool = False, accuracy: float = 1e-12) -> tuple[Array, BoolArray]:
        """Solve L x = b (or L^T x = b), b (B, n) or (B, n, k), as `respond` does."""
        if self.sparse:
            return _respond_sparse(self.operators, right, accuracy)
        solution = np.zeros_like(right)
        if right.shape[1] == 0:
            return solution, np.ones(right.shape[0], dtype=bool)
        for b, (factor, pivots, regular) in enumerate(self.factors):
            # The factors are those of L^T.
            if regular:
                column, _ = lapack.dgetrs(factor, pivots, right[b], trans=0 if transposed else 1)
                solution[b] = column.reshape(right.shape[1:])
        return solution, np.array([regular for _, _, regular in self.factors], dtype=bool)


def _factored(matrix: Array, margin: float) -> tuple[Array, Array, bool]:
    """Return the LU factors of a matrix, their pivots, and whether its smallest singular value is above ``margin``."""
    if matrix.shape[0] == 0:
        return matrix, np.zeros(0, dtype=np.int32), True
    factor, pivots, failed = lapack.dgetrf(matrix)
    norm = float(np.max(np.sum(np.abs(matrix), axis=0)))
    return factor, pivots, failed == 0 and bool(lapack.dgecon(factor, norm)[0] * norm > margin)


def respond(
    system: System, phases: Array, right: Array, *, transposed: bool = False, accuracy: float = 1e-12
) -> tuple[Array, BoolArray]:
    """Solve L x = b (or L^T x = b), b (B, n) or (B, n, k), at the phases (B, N) of every sample.

    The mask (B,) says where the Laplacian is regular. On a sparse network a Laplacian is filled once for all right-hand
    sides and for all samples in a row that share their phases, the preconditioner is the network's, and ``accuracy`` is
    the share of the right-hand side that may be left.
    """
    if is_sparse(system):
        return _respond_sparse(_operators(system, phases), right, accuracy)
    solution = np.zeros_like(right)
    regular = np.zeros(system.batch, dtype=bool)
    refuse_dense_solve(system.graph, "A response", reciprocal=system.reciprocal)
    for part in chunks(system.batch, system.graph.free.size**2):
        rows = np.arange(part.start, part.stop)
        some = system.take(rows)
        solution[rows], regular[rows] = solve_general(
            some.laplacian(phases[rows]), right[rows], transposed=transposed, margin=some.eigenvalue_rounding
        )
    return solution, regular


def _operators(system: System, phases: Array) -> Iterator[Operator]:
    """Yield the sparse Laplacian of every sample with its preconditioner, filled once for equal ones in a row."""
    before, operator = None, None
    shared = system.pull is None and system.shared
    for b in range(system.batch):
        if operator is None or not (shared and np.array_equal(phases[b], phases[before])):
            one = system.take(np.array([b]))
            before, operator = b, operator_of(one, phases[b : b + 1])
        yield operator


def _respond_sparse(operators: Iterable[Operator], right: Array, accuracy: float) -> tuple[Array, BoolArray]:
    solution, regular = np.zeros_like(right), np.zeros(right.shape[0], dtype=bool)
    for b, (matrix, inverse, outer) in enumerate(operators):
        columns = right[b].reshape(right.shape[1], -1)
        answers = solution[b].reshape(columns.shape)
        found = [
            solve_accurately(matrix, np.ascontiguousarray(column), inverse, tolerance=accuracy, outer=outer)
            for column in columns.T
        ]
        for k, one_answer in enumerate(found):
            answers[:, k] = one_answer.solution
        regular[b] = all(answer.left <= max(_LOST, 10 * accuracy) for answer in found)
    return solution, regular
