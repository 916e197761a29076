"""How an equilibrium answers small pushes: linear systems with its Laplacian, dense or sparse as the network asks."""

from __future__ import annotations

import numpy as np

from phasegrad._validation import Array, BoolArray
from phasegrad.dynamics import System
from phasegrad.solvers._choice import is_sparse, refuse_dense_solve
from phasegrad.solvers._krylov import solve_accurately
from phasegrad.solvers._linear import chunks, solve_general
from phasegrad.solvers._preconditioning import preconditioner

# A sparse solve that ends with more than this share of its right-hand side left has not found an answer.
_LOST = 1e-8


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
