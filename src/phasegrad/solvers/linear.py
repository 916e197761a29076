"""Dense linear algebra of a batch, one LAPACK call per sample.

LAPACK is called directly because its ``info`` tells which sample failed without stopping the others, and
because a sample's factor must not depend on its neighbours in the batch. It runs on one thread: the rounding of
a threaded factorisation depends on the number of threads, and on a busy machine threads waiting for each other cost
more than they give at these sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from scipy.linalg import lapack

from phasegrad.validation import BoolArray, FloatArray

Array = NDArray[Any]
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def on_one_blas_thread(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate a function so that the linear algebra inside it runs on one thread."""

    @wraps(function)
    def limited(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        with _blas().limit(limits=1):
            return function(*args, **options)

    return limited


@cache
def _blas() -> threadpoolctl.ThreadpoolController:
    return threadpoolctl.ThreadpoolController().select(user_api="blas")


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


def solve_general(
    matrices: Array, right: Array, *, transposed: bool = False, margin: float = 0.0
) -> tuple[Array, BoolArray]:
    """Solve A x = b (or A^T x = b), b (B, n) or (B, n, k), for every sample by LU.

    The mask says where A is regular: its smallest singular value, by LAPACK's estimate, is above ``margin``.
    """
    solution = np.zeros_like(right)
    regular = np.zeros(right.shape[0], dtype=bool)
    if right.shape[1] == 0:
        return solution, np.ones_like(regular)
    is_complex = np.iscomplexobj(matrices)
    solve, condition = (lapack.zgesv, lapack.zgecon) if is_complex else (lapack.dgesv, lapack.dgecon)
    for b in range(right.shape[0]):
        matrix = matrices[b].T if transposed else matrices[b]
        factor, _, column, info = solve(matrix, right[b])
        if info == 0:
            norm = float(np.max(np.sum(np.abs(matrix), axis=0)))
            regular[b] = condition(factor, norm)[0] * norm > margin
        solution[b] = column.reshape(right.shape[1:])
    return solution, regular


def is_positive_definite(matrices: Array, margin: float) -> BoolArray:
    """Return where a symmetric matrix minus ``margin`` on its diagonal is positive definite, (B,).

    The matrices are overwritten.
    """
    size = matrices.shape[-1]
    if size == 0:
        return np.ones(matrices.shape[0], dtype=bool)
    each = np.arange(size)
    matrices[:, each, each] -= margin
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
