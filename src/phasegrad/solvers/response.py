"""How an equilibrium answers small pushes: linear systems with its Laplacian, dense or sparse as the network asks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from phasegrad.dynamics import System
from phasegrad.solvers.krylov import solve_accurately
from phasegrad.solvers.linear import chunks, solve_general
from phasegrad.solvers.newton import BranchNewton
from phasegrad.solvers.preconditioning import preconditioner
from phasegrad.solvers.regime import is_sparse, refuse_dense_solve
from phasegrad.solvers.sparse import SparseNewton
from phasegrad.validation import BoolArray

Array = NDArray[Any]

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
    refuse_dense_solve(system.network, "A response")
    for part in chunks(system.batch, system.network.free.size):
        rows = np.arange(part.start, part.stop)
        matrices = system.take(rows).laplacian(phases[rows])
        solution[rows], regular[rows] = solve_general(
            matrices, right[rows], transposed=transposed, margin=system.eigenvalue_rounding
        )
    return solution, regular


def branch_solver(system: System) -> BranchNewton:
    """Return the solver that stays on the branch of a known equilibrium, dense or sparse."""
    if is_sparse(system):
        return BranchNewton(SparseNewton(max_steps=50, follow=True), SparseNewton())
    refuse_dense_solve(system.network, "A solve on the branch of an equilibrium")
    return BranchNewton()


def _respond_sparse(
    system: System, phases: Array, right: Array, solution: Array, regular: BoolArray, accuracy: float
) -> None:
    matrix = inverse = before = None
    shared = system.pull is None and system.coupling.shape[0] == 1
    for b in range(system.batch):
        if before is None or not (shared and np.array_equal(phases[b], phases[before])):
            matrix = system.take(np.array([b])).sparse_laplacian(phases[b : b + 1])
            inverse = preconditioner(system, phases[b : b + 1], matrix)
            before = b
        assert matrix is not None
        assert inverse is not None
        columns = right[b].reshape(right.shape[1], -1)
        answers = solution[b].reshape(columns.shape)
        found = [
            solve_accurately(matrix, np.ascontiguousarray(column), inverse, tolerance=accuracy) for column in columns.T
        ]
        for k, one in enumerate(found):
            answers[:, k] = one.solution
        regular[b] = all(one.left <= max(_LOST, 10 * accuracy) for one in found)
