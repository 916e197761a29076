"""Dense linear algebra of a batch, every sample for itself.

NumPy's stacked routines call LAPACK once per matrix, so that a sample's answer does not depend on its neighbours in the
batch; where one of them fails, the others are done again one by one, by the same routine. Whoever calls them holds BLAS
to one thread (`phasegrad.solvers._process`): the rounding of a threaded factorisation depends on the number of threads,
and on a busy machine threads waiting for each other cost more than they give at these sizes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from phasegrad._validation import Array, BoolArray, FloatArray


def solve_positive(matrices: Array, right: Array) -> tuple[Array, BoolArray]:
    """Solve symmetric A x = b, b (B, n), for every sample; the mask says where A is positive definite."""
    positive = is_positive_definite(matrices)
    rows = np.flatnonzero(positive)
    try:
        if rows.size == positive.size:
            return _solved(matrices, right), positive
        solution = np.zeros_like(right)
        solution[rows] = _solved(matrices[rows], right[rows])
    except np.linalg.LinAlgError:
        # Rounding may lend a singular matrix a Cholesky factor: parts that nothing ties together.
        if positive.size == 1:
            return np.zeros_like(right), np.zeros_like(positive)
        halves = zip(np.array_split(matrices, 2), np.array_split(right, 2), strict=True)
        solutions, masks = zip(*(solve_positive(*half) for half in halves), strict=True)
        return np.concatenate(solutions), np.concatenate(masks)
    return solution, positive


def solve_general(
    matrices: Array, right: Array, *, transposed: bool = False, margin: ArrayLike = 0.0
) -> tuple[Array, BoolArray]:
    """Solve A x = b (or A^T x = b), b (B, n) or (B, n, k), for every sample by LU.

    The mask says where A is regular: its smallest singular value, by LAPACK's estimate, is above ``margin`` (B,).
    """
    solution = np.zeros_like(right)
    regular = np.zeros(right.shape[0], dtype=bool)
    if right.shape[1] == 0:
        return solution, np.ones_like(regular)
    is_complex = np.iscomplexobj(matrices)
    solve, condition = (lapack.zgesv, lapack.zgecon) if is_complex else (lapack.dgesv, lapack.dgecon)
    margins = np.broadcast_to(margin, regular.shape)
    for b in range(right.shape[0]):
        matrix = matrices[b].T if transposed else matrices[b]
        factor, _, column, info = solve(matrix, right[b])
        if info == 0:
            norm = float(np.max(np.sum(np.abs(matrix), axis=0)))
            regular[b] = condition(factor, norm)[0] * norm > margins[b]
        solution[b] = column.reshape(right.shape[1:])
    return solution, regular


def is_positive_definite(matrices: Array, margin: ArrayLike | None = None) -> BoolArray:
    """Return where a symmetric matrix, minus ``margin`` (B,) on its diagonal, has a Cholesky factor, (B,)."""
    batch, size = matrices.shape[0], matrices.shape[-1]
    if size == 0 or batch == 0:
        return np.ones(batch, dtype=bool)
    if margin is not None:
        matrices = matrices.copy()
        each = np.arange(size)
        matrices[:, each, each] -= np.broadcast_to(margin, (batch,))[:, None]
    try:
        np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        if batch == 1:
            return np.zeros(1, dtype=bool)
        # One of them failed: which one is found by halving, since most batches have few that do.
        return np.concatenate([is_positive_definite(half) for half in np.array_split(matrices, 2)])
    return np.ones(batch, dtype=bool)


def smallest_eigenvalues(matrices: Array) -> FloatArray:
    """Return the smallest eigenvalue of every symmetric matrix, (B,)."""
    if matrices.shape[-1] == 0:
        return np.full(matrices.shape[0], np.inf)
    return np.asarray(np.linalg.eigvalsh(matrices)[:, 0])


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


def chunks(batch: int, entries: int) -> list[slice]:
    """Split a batch so that arrays of so many entries per sample take at most 32 MiB at a time."""
    length = max(1, 2**22 // max(1, entries))
    return [slice(first, min(first + length, batch)) for first in range(0, batch, length)]


def _solved(matrices: Array, right: Array) -> Array:
    return np.linalg.solve(matrices, right[:, :, None])[:, :, 0]
