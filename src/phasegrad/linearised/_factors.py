"""Dense factorisations of one Laplacian, by LAPACK, and what can be asked of them.

Every sample is factored by a call of its own, so that its answer does not depend on the other samples in the batch.
Callers hold BLAS to one thread (`phasegrad._process`): the rounding of a threaded factorisation depends on the number
of threads, and on a busy machine threads waiting for each other cost more than they give at these sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False, slots=True)
class Cholesky:
    """A symmetric positive definite matrix, factored."""

    factor: Array

    @classmethod
    def of(cls, matrix: Array, lowered: float = 0.0) -> Cholesky | None:
        """Factor a matrix less a multiple of one; None where that is not positive definite."""
        return cls.each(matrix[None], np.array([lowered]))[0]

    @classmethod
    def each(cls, matrices: Array, lowered: FloatArray | None = None) -> list[Cholesky | None]:
        """Factor every matrix (B, n, n) less a multiple of one, (B,); None where it is not positive definite."""
        batch, size = matrices.shape[:2]
        if size == 0:
            return [cls(matrix) for matrix in matrices]
        copies = matrices.copy()
        if lowered is not None:
            copies.reshape(batch, size * size)[:, :: size + 1] -= lowered[:, None]
        factor_of = lapack.dpotrf
        found: list[Cholesky | None] = []
        # The transpose of rows in C order is in Fortran order, and the matrix is symmetric: nothing is copied.
        for matrix in copies.swapaxes(1, 2):
            factor, failed = factor_of(matrix, 1, 0, 1)
            # What is not a number spreads to the last pivot, and LAPACK may let it pass.
            last = factor[-1, -1]
            found.append(None if failed or last != last else cls(factor))
        return found

    @classmethod
    def solved(cls, matrices: Array, right: Array, solution: Array) -> list[Cholesky | None]:
        """Return the factors of every matrix (B, n, n), and write A^-1 b, b (B, n), where there is one.

        One call of LAPACK for both takes half as long as two on a small matrix, and gives the same bits.
        """
        if matrices.shape[1] == 0:
            return cls.each(matrices)
        both = lapack.dposv
        found: list[Cholesky | None] = []
        for row, (matrix, force) in enumerate(zip(matrices.copy().swapaxes(1, 2), right, strict=True)):
            factor, answer, failed = both(matrix, force, 1, 1)
            last = factor[-1, -1]
            if failed or last != last:
                found.append(None)
            else:
                found.append(cls(factor))
                solution[row] = answer
        return found

    def solve(self, right: Array) -> Array:
        """Return A^-1 b, b (n,) or (n, k)."""
        if right.size == 0:
            return right
        solution, _ = lapack.dpotrs(self.factor, right, 1)
        return solution.reshape(right.shape)

    def inverse(self) -> Array:
        """Return A^-1."""
        below, _ = lapack.dpotri(self.factor, lower=1)
        return np.tril(below) + np.tril(below, -1).T

    def floor(self, norm: float) -> float:
        """Return LAPACK's estimate of the smallest eigenvalue of a matrix of a given 1-norm."""
        return float(lapack.dpocon(self.factor, norm, uplo="L")[0]) * norm


@dataclass(frozen=True, eq=False, slots=True)
class LU:
    """A real or complex matrix, factored with pivots; ``singular`` where a pivot vanishes."""

    factor: Array
    pivots: IntArray
    singular: bool

    @classmethod
    def of(cls, matrix: Array) -> LU:
        """Factor a matrix."""
        factor_of = lapack.zgetrf if np.iscomplexobj(matrix) else lapack.dgetrf
        # The factors are those of the transpose, which lies in Fortran order.
        factor, pivots, failed = factor_of(matrix.T)
        return cls(factor, pivots, failed != 0)

    def solve(self, right: Array, *, transposed: bool = False) -> Array:
        """Return A^-1 b or A^-T b, b (n,) or (n, k)."""
        solver = lapack.zgetrs if np.iscomplexobj(self.factor) else lapack.dgetrs
        solution, _ = solver(self.factor, self.pivots, right, trans=0 if transposed else 1)
        return solution.reshape(right.shape)

    def floor(self, norm: float) -> float:
        """Return LAPACK's estimate of the smallest singular value of a matrix whose transpose has this 1-norm."""
        if self.singular:
            return 0.0
        condition = lapack.zgecon if np.iscomplexobj(self.factor) else lapack.dgecon
        return float(condition(self.factor, norm)[0]) * norm


def largest_row(matrix: Array) -> float:
    """Return the largest sum of absolute values in a row: the 1-norm of the transpose."""
    return float(np.abs(matrix).sum(axis=1).max(initial=0.0))


def is_positive_definite(matrices: Array, margin: ArrayLike | None = None) -> BoolArray:
    """Return where a symmetric matrix, minus ``margin`` (B,) on its diagonal, has a Cholesky factor, (B,)."""
    batch, size = matrices.shape[0], matrices.shape[-1]
    if size == 0:
        return np.ones(batch, dtype=bool)
    lowered = np.broadcast_to(0.0 if margin is None else margin, (batch,))
    return np.array([factor is not None for factor in Cholesky.each(matrices, lowered)], dtype=bool)


def condition_bound(values: Array, vectors: Array) -> float:
    """Return a number that the condition of the eigenvectors of a real matrix does not exceed.

    It is the product of the Frobenius norms of the vectors and of their inverse. Conjugate pairs of them are sums and
    differences of two real vectors, so that a real matrix is inverted: a tenth of the work of all singular values.
    Infinite where there is no inverse.
    """
    real = np.where(values.imag >= 0, vectors.real, vectors.imag)
    try:
        rows = np.sum(np.linalg.inv(real) ** 2, axis=1)
    except np.linalg.LinAlgError:
        return np.inf
    square = float(np.sum(np.where(values.imag == 0, rows, rows / 2)))
    bound = float(np.linalg.norm(vectors)) * np.sqrt(square)
    return bound if np.isfinite(bound) else np.inf


def smallest_eigenvalues(matrices: Array) -> FloatArray:
    """Return the smallest eigenvalue of every symmetric matrix, (B,)."""
    if matrices.shape[-1] == 0:
        return np.full(matrices.shape[0], np.inf)
    return np.asarray(np.linalg.eigvalsh(matrices)[:, 0])


#: Numbers that the Laplacians of a batch may take at a time, and that a linearised system keeps: 32 MiB.
MOST_NUMBERS = 2**22


def chunks(batch: int, entries: int) -> list[slice]:
    """Split a batch so that arrays of so many entries per sample take at most `MOST_NUMBERS` at a time."""
    length = max(1, MOST_NUMBERS // max(1, entries))
    return [slice(first, min(first + length, batch)) for first in range(0, batch, length)]
