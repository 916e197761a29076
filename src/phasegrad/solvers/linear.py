"""Dense linear algebra of a batch, one LAPACK call per sample.

LAPACK is called directly because its ``info`` tells which sample failed without stopping the others, and
because a sample's factor must not depend on its neighbours in the batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from phasegrad.validation import BoolArray, FloatArray

Array = NDArray[Any]


def solve_positive(matrices: Array, right: Array) -> tuple[Array, BoolArray]:
    """Solve symmetric A x = b for every sample by Cholesky; the mask says where A is positive definite.

    Parameters
    ----------
    matrices : ndarray, shape (B, n, n)
        Overwritten.
    right : ndarray, shape (B, n)
    """
    solution = np.zeros_like(right)
    positive = np.zeros(right.shape[0], dtype=bool)
    if right.shape[1] == 0:
        return solution, np.ones_like(positive)
    for b in range(right.shape[0]):
        factor, info = lapack.dpotrf(matrices[b].T, lower=0, clean=0, overwrite_a=1)
        if info == 0:
            solution[b], info = lapack.dpotrs(factor, right[b], lower=0)
        positive[b] = info == 0
    return solution, positive


def solve_general(matrices: Array, right: Array, *, transposed: bool = False) -> tuple[Array, BoolArray]:
    """Solve A x = b (or A^T x = b), b (B, n) or (B, n, k), for every sample by LU; the mask says where A is regular."""
    solution = np.zeros_like(right)
    regular = np.zeros(right.shape[0], dtype=bool)
    if right.shape[1] == 0:
        return solution, np.ones_like(regular)
    solve = lapack.zgesv if np.iscomplexobj(matrices) else lapack.dgesv
    for b in range(right.shape[0]):
        matrix = matrices[b].T if transposed else matrices[b]
        _, _, column, info = solve(matrix, right[b])
        solution[b] = column.reshape(right.shape[1:])
        regular[b] = info == 0
    return solution, regular


def is_positive_definite(matrices: Array) -> BoolArray:
    """Return where a symmetric matrix is positive definite beyond its own rounding error, (B,).

    The matrix is lowered by 4 n eps times its largest row sum, which bounds the backward error of both Cholesky
    and an eigenvalue solver, before it is factored. The matrices are overwritten.
    """
    size = matrices.shape[-1]
    if size == 0:
        return np.ones(matrices.shape[0], dtype=bool)
    norm = np.max(np.sum(np.abs(matrices), axis=2), axis=1)
    each = np.arange(size)
    matrices[:, each, each] -= (4 * size * np.finfo(float).eps * norm)[:, None]
    infos = [lapack.dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)[1] for matrix in matrices]
    return np.asarray(infos, dtype=np.int64) == 0


def smallest_real_part(matrices: Array, *, symmetric: bool) -> FloatArray:
    """Return the smallest eigenvalue, or smallest real part of one, of every matrix, (B,)."""
    if matrices.shape[-1] == 0:
        return np.full(matrices.shape[0], np.inf)
    if symmetric:
        return np.asarray(np.linalg.eigvalsh(matrices)[:, 0])
    return np.asarray(np.linalg.eigvals(matrices).real.min(axis=1))


def chunks(batch: int, size: int) -> list[slice]:
    """Split a batch so that its (n, n) matrices take at most 32 MiB at a time."""
    length = max(1, 2**22 // max(1, size * size))
    return [slice(first, min(first + length, batch)) for first in range(0, batch, length)]
