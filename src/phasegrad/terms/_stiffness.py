"""What a term adds to the Laplacian."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from phasegrad._validation import Array


class Stiffness(NamedTuple):
    """What a term adds to the Laplacian L = -dF/dtheta.

    ``forward`` and ``backward`` (b, E) are weights of the edges on their first and second end, of what depends on
    theta_j - theta_i; ``diagonal`` (b, N) is what a node feels on its own; ``sums`` (b, E) are weights of the edges, on
    both ends, of what depends on theta_i + theta_j; ``outer`` are two factors A and B (b, N, k) of a matrix of low
    rank, A B^T, that is taken away: what many oscillators feel of each other through few numbers. None where the term
    has none. Of a term with an energy A B^T must be symmetric: proofs of stability rest on that, and `Network` checks
    it. Where both ends of an edge feel the same

        x.L x = sum over edges [forward (x_i - x_j)^2 + sums (x_i + x_j)^2] + sum over nodes diagonal x_i^2 - x.A B^T x

    See Also
    --------
    Term : The base of every term of the energy.
    laplacian : Minus the derivative of the force.

    Examples
    --------
    >>> import numpy as np
    >>> import phasegrad as pg
    >>> pg.terms.Stiffness(diagonal=np.ones((1, 3)))
    Stiffness(forward=None, backward=None, diagonal=array([[1., 1., 1.]]), sums=None, outer=None)
    """

    forward: Array | None = None
    backward: Array | None = None
    diagonal: Array | None = None
    sums: Array | None = None
    outer: tuple[Array, Array] | None = None

    def lifted(self, most: Stiffness, floor: float) -> Stiffness:
        """Return absolute values, at least ``floor`` times the most that each can be; with a low rank, the most."""
        if self.outer is not None:
            return most
        return Stiffness(*(None if a is None else np.maximum(np.abs(a), floor * b) for a, b in self.beside(most)))

    def beside(self, most: Stiffness) -> Iterator[tuple[Any, Any]]:
        """Yield each part beside its bound, that of low rank left aside."""
        return iter(zip(self[:4], most[:4], strict=True))
