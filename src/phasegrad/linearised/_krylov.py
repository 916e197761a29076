"""Linear systems with a sparse Laplacian: preconditioned conjugate gradients, MINRES where it is indefinite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, minres

from phasegrad._validation import Array, FloatArray
from phasegrad.dynamics import System
from phasegrad.linearised._edge_matrix import EdgeMatrix
from phasegrad.linearised._preconditioning import GaussSeidel, Preconditioner

#: Iterations after which conjugate gradients is given up.
MAX_ITERATIONS = 20_000
_REFINEMENTS, _DRIFT = 6, 3.0
# What one round of refinement leaves, and what single precision must not leave to be of use.
_ROUND, _USEFUL = 1e-5, 0.1

Matrix: TypeAlias = sparse.csr_array | EdgeMatrix
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
    matrix: Matrix,
    right: FloatArray,
    preconditioner: Preconditioner,
    *,
    tolerance: float,
    enough: float = 0.0,
    max_iterations: int = MAX_ITERATIONS,
    outer: Outer = None,
) -> LinearSolution:
    """Solve A x = b until |b - A x| <= tolerance |b|, for a symmetric matrix, less one of low rank if there is one.

    Parameters
    ----------
    matrix : csr_array or EdgeMatrix, shape (n, n)
    right : ndarray, shape (n,)
    preconditioner : Preconditioner
    tolerance : float
        Relative to the right-hand side, in the Euclidean norm.
    enough : float
        What will do in place of the tolerance where single precision reaches it, because the caller goes on from the
        solution: half the memory to read. Single precision stops where its own rounding does not let it go on.
    max_iterations : int
    outer : tuple of ndarray, shape (n, k) each, optional
    """
    from phasegrad.kernels import sparse as loops

    if isinstance(preconditioner, GaussSeidel) and outer is None:
        if enough > 0.0:
            found = _between_sweeps(preconditioner, right, max(tolerance, enough), max_iterations, np.float32)
            if found.positive and found.left <= _USEFUL:
                return found
        return _between_sweeps(preconditioner, right, tolerance, max_iterations, np.float64)
    assert isinstance(matrix, sparse.csr_array)
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


def _between_sweeps(
    swept: GaussSeidel, right: FloatArray, tolerance: float, max_iterations: int, dtype: Any
) -> LinearSolution:
    """Solve by conjugate gradients on (D - W^T)^-1 A (D - W)^-1, which costs no more per iteration than A (Eisenstat).

    What is left is measured as D (D - W^T)^-1 (b - A x), the part of it that the next sweep would see, and cannot fall
    below what rounding makes of a solution of this size.
    """
    from phasegrad.kernels import edges as loops

    matrix = swept.matrix
    largest = float(np.max(np.abs(right), initial=0.0))
    if largest == 0.0:
        return LinearSolution(np.zeros_like(right), 0, 0.0, True)
    factor, weights = matrix.scaled(dtype)
    edges = (*matrix.ends, weights)
    # A power of two near the largest sqrt(D), which changes no bit, keeps squares in the range of single precision.
    roots = np.sqrt(np.maximum(matrix.diagonal, 0.0))
    unit = 2.0 ** np.round(np.log2(np.max(roots)))
    left = (unit * factor * matrix.spread(right / largest)).astype(dtype)
    loops.forward(*edges, left)
    scale = (roots / unit).astype(dtype)
    square, size = float(np.linalg.norm(left)) ** 2, float(np.linalg.norm(scale * left))
    solution, direction, turned, image = np.zeros((4, left.size), dtype)
    share, remaining, positive = 0.0, size, True
    rounding = float(np.finfo(dtype).eps)
    for iteration in range(1, max_iterations + 1):
        curvature = loops.sweep(*edges, dtype(share), left, direction, turned, image)
        if not curvature > 0:
            positive = False
            if iteration == 1:
                solution = turned
            break
        before = square
        square, *squares = loops.advance(dtype(square / curvature), solution, left, turned, image, scale)
        remaining, reached = np.sqrt(squares)
        share = square / before
        if remaining <= max(tolerance * size, rounding * reached):
            remaining = max(remaining, rounding * reached)
            break
    answer = matrix.gathered(largest / unit * factor * solution)
    return LinearSolution(answer, iteration, float(remaining / size), positive)


def solve_accurately(
    matrix: Matrix, right: FloatArray, preconditioner: Preconditioner, *, tolerance: float = 1e-12, outer: Outer = None
) -> LinearSolution:
    """Solve A x = b to rounding: conjugate gradients with refinement, or MINRES where the matrix is indefinite."""

    def solve(left: FloatArray, share: float) -> LinearSolution:
        return conjugate_gradients(matrix, left, preconditioner, tolerance=share, enough=_ROUND, outer=outer)

    def solve_indefinite(left: FloatArray, share: float) -> LinearSolution:
        del share
        return _minres(matrix, left, preconditioner, outer)

    size = float(np.linalg.norm(right))
    if size == 0.0:
        return LinearSolution(np.zeros_like(right), 0, 0.0, True)
    found = solve(right, tolerance)
    iterations, total, refine = found.iterations, found.solution, solve
    if not found.positive:
        total, refine = np.zeros_like(right), solve_indefinite
    left = right - product(matrix, total, outer)
    for _ in range(_REFINEMENTS):
        # What conjugate gradients believes is left drifts away from what is; the difference is solved for again.
        remaining = float(np.linalg.norm(left))
        if not remaining > _DRIFT * tolerance * size:
            break
        correction = refine(left, tolerance * size / remaining)
        iterations += correction.iterations
        better = total + correction.solution
        after = right - product(matrix, better, outer)
        if not np.linalg.norm(after) < remaining:
            break
        total, left = better, after
    return LinearSolution(total, iterations, float(np.linalg.norm(left)) / size, found.positive)


def outer_of(system: System, phases: Array, *, floor: float | None = None) -> Outer:
    """Return the low-rank part of the Laplacian of one sample over the oscillators that move, None without one."""
    outer = system.outer(phases, floor=floor)
    if outer is None:
        return None
    left, right = (np.take(factor[0], system.graph.free, axis=0) for factor in outer)
    return left, right


def product(matrix: Matrix, vector: FloatArray, outer: Outer) -> FloatArray:
    """Return A x, less the part of low rank if there is one."""
    image: FloatArray = matrix @ vector
    return image if outer is None else image - outer[0] @ (vector @ outer[1])


def _minres(matrix: Matrix, right: FloatArray, preconditioner: Preconditioner, outer: Outer) -> LinearSolution:
    image = np.empty_like(right)

    def apply(left: FloatArray) -> FloatArray:
        preconditioner.apply(np.ascontiguousarray(left.ravel()), image)
        return image.copy()

    inverse = LinearOperator(matrix.shape, matvec=apply, dtype=np.float64)
    whole = LinearOperator(matrix.shape, lambda x: product(matrix, x.ravel(), outer), dtype=np.float64)
    solution, _ = minres(whole, right, M=inverse, rtol=1e-12, maxiter=MAX_ITERATIONS)
    left = float(np.linalg.norm(right - product(matrix, solution, outer)) / np.linalg.norm(right))
    return LinearSolution(np.asarray(solution), 0, left, False)
