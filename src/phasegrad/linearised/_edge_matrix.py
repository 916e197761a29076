r"""A symmetric matrix as the edges of its graph, and as Gauss-Seidel sweeps see it.

    A = D - W - W^T = D^1/2 (1 - V - V^T) D^1/2

W holds the weights above the diagonal, V the same over the roots of both diagonal entries. Held nodes keep their
numbers, so that the edges of a network stay as they are.

A Laplacian in which one node is held has a small eigenvalue: all others may turn together against that one node, which
only its few neighbours resist. Conjugate gradients would spend a third to a half of their iterations on it. But where
the whole matrix has rows that sum to zero, the held node may be let go: A x = b with x zero there has the same solution
as the singular system over all nodes, whose right-hand side at the held node is minus the sum of all others, turned
back by what that node has turned. Such a matrix *floats*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from phasegrad._validation import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class EdgeMatrix:
    """A matrix over the nodes ``free`` (n,): weights (E,) of the edges between all N nodes, and the diagonal (N,)."""

    ends: tuple[NDArray[np.uint32], NDArray[np.uint32]]
    weights: FloatArray
    diagonal: FloatArray
    free: IntArray
    floats: bool = False

    @classmethod
    def of(cls, matrix: sparse.csr_array) -> EdgeMatrix:
        """Return a matrix of compressed rows as edges."""
        first = np.repeat(np.arange(matrix.shape[0], dtype=np.uint32), np.diff(matrix.indptr))
        second = matrix.indices.astype(np.uint32)
        above = np.flatnonzero(second > first)
        ends = first[above], second[above]
        return cls(ends, -matrix.data[above], matrix.diagonal(), np.arange(matrix.shape[0]))

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (n, n)."""
        return self.free.size, self.free.size

    def __matmul__(self, vector: FloatArray) -> FloatArray:
        """Return A x, (n,)."""
        from phasegrad.kernels import edges as loops

        whole = np.zeros_like(self.diagonal)
        whole[self.free] = vector
        image = np.empty_like(whole)
        loops.apply(*self.ends, self.weights, self.diagonal, whole, image)
        return image[self.free]

    def spread(self, right: FloatArray) -> FloatArray:
        """Return a right-hand side (n,) over all nodes, (N,): balanced where the matrix floats, else zero if held."""
        whole = np.full(self.diagonal.size, -np.sum(right) if self.floats else 0.0)
        whole[self.free] = right
        return whole

    def gathered(self, solution: FloatArray) -> FloatArray:
        """Return a solution over all nodes (N,) for those that are free, (n,), turned back where the matrix floats."""
        found = solution[self.free]
        return found - np.delete(solution, self.free)[0] if self.floats else found

    def scaled(self, dtype: Any) -> tuple[FloatArray, NDArray[Any]]:
        """Return 1 / sqrt(D), (N,), zero at nodes that are held, and V, (E,), in a given precision."""
        from phasegrad.kernels import edges as loops

        factor = np.zeros_like(self.diagonal)
        places = slice(None) if self.floats else self.free
        factor[places] = 1.0 / np.sqrt(self.diagonal[places])
        scaled = np.empty(self.weights.size, dtype)
        loops.scale(*self.ends, self.weights, factor, scaled)
        return factor, scaled
