"""Linear systems with a sparse Laplacian: preconditioned conjugate gradients, MINRES where it is indefinite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, minres

from phasegrad._validation import Array, FloatArray
from phasegrad.dynamics import System
from phasegrad.solvers._preconditioning import GaussSeidel, Preconditioner

#: Iterations after which conjugate gradients is given up.
MAX_ITERATIONS = 20_000
_REFINEMENTS, _DRIFT = 3, 3.0


#: Factors A and B (n, k) of a matrix of low rank: the matrix of a system is then a sparse one minus A B^T.
Outer = tuple[FloatArray, FloatArray] | None


@dataclass(frozen=True, eq=False)
class LinearSolution:
    """Solution (n,) of one linear system, how it went, and whether the matrix showed itself positive definite.

    ``positive`` is False where a direction of negative curvature was met: a proof that the matrix is indefinite. The
    solution is then the last point before it, which is still a descent direction.
    """

    solution: FloatArray
    iterations: int
    left: float
    positive: bool


def conjugate_gradients(
    matrix: sparse.csr_array,
    right: FloatArray,
    preconditioner: Preconditioner,
    *,
    tolerance: float,
    max_iterations: int = MAX_ITERATIONS,
    outer: Outer = None,
) -> LinearSolution:
    """Solve A x = b until |b - A x| <= tolerance |b|, for a symmetric matrix, less one of low rank if there is one.

    Parameters
    ----------
    matrix : csr_array, shape (n, n)
    right : ndarray, shape (n,)
    preconditioner : Preconditioner
    tolerance : float
        Relative to the right-hand side, in the Euclidean norm.
    max_iterations : int
    outer : tuple of ndarray, shape (n, k) each, optional
    """
    from phasegrad.kernels import sparse as loops

    if isinstance(preconditioner, GaussSeidel) and outer is None:
        return _between_sweeps(preconditioner, right, tolerance, max_iterations)
    # Unsigned indices spare the compiled loop a test for negative ones.
    narrow = matrix.indices.dtype == np.int32
    rows = (matrix.indptr, matrix.indices.view(np.uint32) if narrow else matrix.indices, matrix.data)
    solution, left = np.zeros_like(right), right.copy()
    conditioned, image = np.empty_like(right), np.empty_like(right)
    size = float(np.linalg.norm(right))
    if size == 0.0:
        return LinearSolution(solution, 0, 0.0, True)
    product = preconditioner.apply(left, conditioned)
    direction = conditioned.copy()
    remaining = size
    for iteration in range(1, max_iterations + 1):
        curvature = loops.apply(*rows, direction, image)
        if outer is not None:
            image -= outer[0] @ (direction @ outer[1])
            curvature = float(direction @ image)
        if not curvature > 0:
            if iteration == 1:
                solution[:] = conditioned
            return LinearSolution(solution, iteration, remaining / size, False)
        remaining = float(np.sqrt(loops.advance(product / curvature, solution, left, direction, image)))
        if remaining <= tolerance * size:
            break
        before, product = product, preconditioner.apply(left, conditioned)
        loops.turn(product / before, direction, conditioned)
    return LinearSolution(solution, iteration, remaining / size, True)


def _between_sweeps(swept: GaussSeidel, right: FloatArray, tolerance: float, max_iterations: int) -> LinearSolution:
    """Solve by conjugate gradients on (D + L)^-1 A (D + L)^-T, which costs no more per iteration than A (Eisenstat).

    What is left is measured as D (D + L)^-1 (b - A x), the part of it that the next sweep would see.
    """
    from phasegrad.kernels import sparse as loops

    matrix, diagonal, inverse = swept.matrix, swept.diagonal, swept.inverse
    rows = (matrix.indptr, matrix.indices, matrix.data)
    solution, left = np.zeros_like(right), np.empty_like(right)
    turned, image = np.empty_like(right), np.empty_like(right)
    loops.lower_solve(*rows, inverse, right, left)
    direction = diagonal * left
    product, size = float(direction @ left), float(np.linalg.norm(direction))
    if size == 0.0:
        return LinearSolution(solution, 0, 0.0, True)
    remaining = size
    for iteration in range(1, max_iterations + 1):
        curvature = loops.apply_between(*rows, diagonal, inverse, direction, turned, image)
        if not curvature > 0:
            if iteration == 1:
                solution[:] = turned
            return LinearSolution(solution, iteration, remaining / size, False)
        before = product
        product, square = loops.advance_between(product / curvature, solution, left, turned, image, diagonal)
        remaining = float(np.sqrt(square))
        if remaining <= tolerance * size:
            break
        loops.turn_between(product / before, direction, left, diagonal)
    return LinearSolution(solution, iteration, remaining / size, True)


def solve_accurately(
    matrix: sparse.csr_array, right: FloatArray, preconditioner: Preconditioner, *, tolerance: float = 1e-12,
    outer: Outer = None,
) -> LinearSolution:  # fmt: skip
    """Solve A x = b to rounding: conjugate gradients with refinement, or MINRES where the matrix is indefinite."""
    found = conjugate_gradients(matrix, right, preconditioner, tolerance=tolerance, outer=outer)
    solve: Callable[[FloatArray], LinearSolution]
    if found.positive:
        total = found.solution

        def solve(left: FloatArray) -> LinearSolution:
            return conjugate_gradients(matrix, left, preconditioner, tolerance=1e-4, outer=outer)
    else:
        total = np.zeros_like(right)

        def solve(left: FloatArray) -> LinearSolution:
            return _minres(matrix, left, preconditioner, outer)

    size = float(np.linalg.norm(right))
    iterations, left = found.iterations, right - product(matrix, total, outer)
    for _ in range(_REFINEMENTS):
        # What conjugate gradients believes is left drifts away from what is; the difference is solved for again.
        if not np.linalg.norm(left) > _DRIFT * tolerance * size:
            break
        correction = solve(left)
        iterations += correction.iterations
        better = total + correction.solution
        after = right - product(matrix, better, outer)
        if not np.linalg.norm(after) < np.linalg.norm(left):
            break
        total, left = better, after
    remaining = float(np.linalg.norm(left)) / size if size > 0 else 0.0
    return LinearSolution(total, iterations, remaining, found.positive)


def outer_of(system: System, phases: Array, *, floor: float | None = None) -> Outer:
    """Return the low-rank part of the Laplacian of one sample over the oscillators that move, None without one."""
    outer = system.outer(phases, floor=floor)
    if outer is None:
        return None
    left, right = (np.take(factor[0], system.graph.free, axis=0) for factor in outer)
    return left, right


def product(matrix: sparse.csr_array, vector: FloatArray, outer: Outer) -> FloatArray:
    """Return A x, less the part of low rank if there is one."""
    image: FloatArray = matrix @ vector
    return image if outer is None else image - outer[0] @ (vector @ outer[1])


def _minres(
    matrix: sparse.csr_array, right: FloatArray, preconditioner: Preconditioner, outer: Outer
) -> LinearSolution:
    image = np.empty_like(right)

    def apply(left: FloatArray) -> FloatArray:
        preconditioner.apply(np.ascontiguousarray(left.ravel()), image)
        return image.copy()

    inverse = LinearOperator(matrix.shape, matvec=apply, dtype=np.float64)
    whole = matrix if outer is None else LinearOperator(matrix.shape, lambda x: product(matrix, x.ravel(), outer))
    solution, _ = minres(whole, right, M=inverse, rtol=1e-12, maxiter=MAX_ITERATIONS)
    left = float(np.linalg.norm(right - product(matrix, solution, outer)) / np.linalg.norm(right))
    return LinearSolution(np.asarray(solution), 0, left, False)
