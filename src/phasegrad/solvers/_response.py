"""How an equilibrium answers small pushes: linear systems with its Laplacian, dense or sparse as the network asks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import lapack

from phasegrad._validation import Array, BoolArray, FloatArray
from phasegrad.dynamics import System
from phasegrad.solvers._choice import is_sparse, refuse_dense_solve
from phasegrad.solvers._krylov import solve_accurately
from phasegrad.solvers._linear import chunks, solve_general
from phasegrad.solvers._preconditioning import preconditioner

# A sparse solve that ends with more than this share of its right-hand side left has not found an answer.
_LOST = 1e-8


class Responses:
    """Linear systems with the Laplacians L of a batch at its phases (B, N): several in turn, each L factored once.

    What `respond` finds for the first right-hand side, it finds too, bit by bit, with less work for the ones that
    follow. All factors are kept: `parts` says how many samples to take at a time.
    """

    def __init__(self, system: System, phases: Array) -> None:
        self.system, self.phases, self.sparse = system, phases, is_sparse(system)
        self.matrices = np.zeros((0, 0, 0))
        self.factors: list[tuple[Array, Array, bool]] = []
        if not self.sparse:
            refuse_dense_solve(system.graph, "A response", reciprocal=system.reciprocal)
            self.matrices = system.laplacian(phases)
            self.factors = [_factored(each.T, limit) for each, limit in zip(self.matrices, self._margins, strict=True)]

    @staticmethod
    def parts(system: System) -> Iterator[slice]:
        """Yield the samples in parts whose factors fit into memory."""
        entries = system.graph.size if is_sparse(system) else system.graph.free.size**2
        return iter(chunks(system.batch, entries))

    @property
    def _margins(self) -> FloatArray:
        return self.system.eigenvalue_rounding

    def solve(self, right: Array, *, transposed: bool = False, accuracy: float = 1e-12) -> tuple[Array, BoolArray]:
        """Solve L x = b (or L^T x = b), b (B, n) or (B, n, k), as `respond` does."""
        if self.sparse:
            return respond(self.system, self.phases, right, transposed=transposed, accuracy=accuracy)
        solution = np.zeros_like(right)
        if right.shape[1] == 0:
            return solution, np.ones(right.shape[0], dtype=bool)
        for b, (factor, pivots, regular) in enumerate(self.factors):
            # The factors are those of L^T.
            if regular:
                column, _ = lapack.dgetrs(factor, pivots, right[b], trans=0 if transposed else 1)
                solution[b] = column.reshape(right.shape[1:])
        return solution, np.array([regular for _, _, regular in self.factors], dtype=bool)

    def transposed_product(self, phases: Array, vector: Array) -> tuple[Array, Array]:
        """Return L^T x at other phases (B, N), and |L|^T |x| at its own: what its rounding is a share of."""
        if not self.sparse:
            return _transposed(self.system.laplacian(phases), vector), _transposed(
                np.abs(self.matrices), np.abs(vector)
            )
        product, size = np.zeros_like(vector), np.zeros_like(vector)
        for b in range(self.system.batch):
            # A sparse Laplacian is symmetric.
            matrix = self.system.take(np.array([b])).sparse_laplacian(phases[b : b + 1])
            product[b] = matrix @ vector[b]
            matrix.data = np.abs(matrix.data)
            size[b] = matrix @ np.abs(vector[b])
        return product, size


def _factored(matrix: Array, margin: float) -> tuple[Array, Array, bool]:
    """Return the LU factors of a matrix, their pivots, and whether its smallest singular value is above ``margin``."""
    if matrix.shape[0] == 0:
        return matrix, np.zeros(0, dtype=np.int32), True
    factor, pivots, failed = lapack.dgetrf(matrix)
    norm = float(np.max(np.sum(np.abs(matrix), axis=0)))
    return factor, pivots, failed == 0 and bool(lapack.dgecon(factor, norm)[0] * norm > margin)


def _transposed(matrices: Array, vectors: Array) -> Array:
    return np.asarray(np.einsum("bij,bi->bj", matrices, vectors))


def respond(
    system: System, phases: Array, right: Array, *, transposed: bool = False, accuracy: float = 1e-12
) -> tuple[Array, BoolArray]:
    """Solve L x = b (or L^T x = b), b (B, n) or (B, n, k), at the phases (B, N) of every sample.

    The mask (B,) says where the Laplacian is regular. On a sparse network a Laplacian is filled once for all right-hand
    sides and for all samples in a row that share their phases, the preconditioner is the network's, and ``accuracy`` is
    the share of the right-hand side that may be left.
    """
    solution = np.zeros_like(right)
    regular = np.zeros(system.batch, dtype=bool)
    if is_sparse(system):
        _respond_sparse(system, phases, right, solution, regular, accuracy)
        return solution, regular
    refuse_dense_solve(system.graph, "A response", reciprocal=system.reciprocal)
    for part in chunks(system.batch, system.graph.free.size**2):
        rows = np.arange(part.start, part.stop)
        some = system.take(rows)
        solution[rows], regular[rows] = solve_general(
            some.laplacian(phases[rows]), right[rows], transposed=transposed, margin=some.eigenvalue_rounding
        )
    return solution, regular


def _respond_sparse(
    system: System, phases: Array, right: Array, solution: Array, regular: BoolArray, accuracy: float
) -> None:
    matrix = inverse = before = None
    shared = system.pull is None and system.shared
    for b in range(system.batch):
        if before is None or not (shared and np.array_equal(phases[b], phases[before])):
            one = system.take(np.array([b]))
            matrix = one.sparse_laplacian(phases[b : b + 1])
            inverse = preconditioner(one, matrix)
            before = b
        assert matrix is not None
        assert inverse is not None
        columns = right[b].reshape(right.shape[1], -1)
        answers = solution[b].reshape(columns.shape)
        found = [
            solve_accurately(matrix, np.ascontiguousarray(column), inverse, tolerance=accuracy) for column in columns.T
        ]
        for k, one_answer in enumerate(found):
            answers[:, k] = one_answer.solution
        regular[b] = all(answer.left <= max(_LOST, 10 * accuracy) for answer in found)
