"""Where the entries of a sparse Laplacian lie: found once per network, filled anew for every state.

The reduced Laplacian has an entry for every edge between two oscillators that move, in both triangles, and its
diagonal. Its pattern is laid out once in compressed rows, and beside every entry stands the place of its value in the
list (minus the weight of every edge, then the diagonal of every node), so that filling it is one gather. Dense matrices
are refused from a size on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from phasegrad._validation import FloatArray, IntArray

#: Oscillators above which no (n, n) matrix is made.
DENSE_LIMIT = 12_000


@dataclass(frozen=True, eq=False)
class Pattern:
    """Compressed rows of the reduced Laplacian: ``indptr``, sorted ``indices``, and the ``source`` of every entry."""

    indptr: IntArray
    indices: IntArray
    source: IntArray

    @classmethod
    def of_graph(cls, edges: IntArray, position: IntArray) -> Pattern:
        """Return the pattern of row-major ordered edges; ``position`` is -1 for nodes that are held."""
        place = position.astype(np.int32)
        i, j = place[edges[:, 0]], place[edges[:, 1]]
        inner = np.flatnonzero((i >= 0) & (j >= 0)).astype(np.int32)
        i, j = i[inner], j[inner]
        moving = np.flatnonzero(position >= 0).astype(np.int32)
        each = place[moving]
        # Below the diagonal, the diagonal, above it: counting entries into rows in this order leaves each row sorted.
        row = np.concatenate([j, each, i])
        column = np.concatenate([i, each, j])
        source = np.concatenate([inner, np.int32(len(edges)) + moving, inner])
        size = moving.size
        matrix = sparse.coo_array((source, (row, column)), shape=(size, size)).tocsr()
        return cls(matrix.indptr, matrix.indices, matrix.data)

    def fill(self, weights: FloatArray, diagonal: FloatArray) -> sparse.csr_array:
        """Return the matrix of edge weights (E,) and diagonal entries (N,)."""
        values = np.concatenate([-weights, diagonal])
        size = self.indptr.size - 1
        return sparse.csr_array((values[self.source], self.indices, self.indptr), shape=(size, size))


def refuse_dense(size: int, what: str, alternative: str) -> None:
    """Raise ValueError where a dense matrix would take gigabytes: who asked for one, and what to use instead."""
    if size > DENSE_LIMIT:
        raise ValueError(
            f"{what} would need a dense matrix of {size**2 * 8 / 2**30:.3g} GiB, {size} rows; dense matrices stop at "
            f"{DENSE_LIMIT} rows. {alternative}"
        )
