"""Rules that write patterns into couplings at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from phasegrad.memory._memory import CUE, PULL, Memory, memory_of
from phasegrad.memory._patterns import checked_patterns


def hebbian(patterns: ArrayLike, *, pull: float = PULL, cue: float = CUE) -> Memory:
    """Store patterns by Hebb's rule, K_ij = sum over patterns of xi_i xi_j / N.

    Local, and good for few patterns that are nearly orthogonal; correlated ones disturb one another.

    Parameters
    ----------
    patterns : array_like of +1 and -1, or of bool, shape (P, N) or (P, height, width)
    pull : float
        Second harmonic of every oscillator; a pattern that is stored alone has a local field of one.
    cue : float
        Torque of a cue, below ``pull``.

    See Also
    --------
    memory.pseudo_inverse : Store correlated patterns by their projection.
    memory.learn : Learn patterns by equilibrium propagation.

    References
    ----------
    Hoppensteadt and Izhikevich 1999, doi:10.1103/PhysRevLett.82.2983; Nishikawa, Lai and Hoppensteadt 2004,
    doi:10.1103/PhysRevLett.92.108101, on what a second harmonic is for.

    Examples
    --------
    >>> import phasegrad as pg
    >>> memory = pg.memory.hebbian(pg.memory.letters("CTX"))
    >>> memory.score(0.2, copies=5)
    1.0
    """
    rows = checked_patterns(patterns, "hebbian")[0]
    return memory_of(rows.T @ rows / rows.shape[1], patterns, pull, cue, "hebbian")


def pseudo_inverse(patterns: ArrayLike, *, pull: float = PULL, cue: float = CUE) -> Memory:
    """Store patterns by the projection onto the space they span, K = X^+ X for rows X.

    Correlated patterns do not disturb one another, but every coupling depends on all of them.

    Parameters
    ----------
    patterns : array_like of +1 and -1, or of bool, shape (P, N) or (P, height, width)
    pull, cue : float
        As in `memory.hebbian`.

    See Also
    --------
    memory.hebbian : Store patterns by Hebb's rule.
    memory.learn : Learn patterns by equilibrium propagation.

    References
    ----------
    Personnaz, Guyon and Dreyfus 1985, doi:10.1051/jphyslet:01985004608035900.

    Examples
    --------
    >>> import phasegrad as pg
    >>> letters = pg.memory.letters("JCA")
    >>> pg.memory.pseudo_inverse(letters).score(0.2, copies=5)
    1.0
    """
    rows = checked_patterns(patterns, "pseudo_inverse")[0]
    return memory_of(np.linalg.pinv(rows) @ rows, patterns, pull, cue, "pseudo_inverse")
