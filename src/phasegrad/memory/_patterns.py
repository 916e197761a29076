"""Patterns: arrays of +1 and -1, as rows or as pictures; letters to store, and cues with some pixels flipped."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import FloatArray, finite_array, float_between, random_stream, whole_number

_LETTERS = {
    "A": "..####.. .##..##. ##....## ##....## ######## ##....## ##....## ##....##",
    "C": ".####### ##...... ##...... ##...... ##...... ##...... ##...... .#######",
    "E": "######## ##...... ##...... ######.. ##...... ##...... ##...... ########",
    "J": "######## ......## ......## ......## ......## ##....## ##....## .######.",
    "L": "##...... ##...... ##...... ##...... ##...... ##...... ######## ########",
    "T": "######## ######## ...##... ...##... ...##... ...##... ...##... ...##...",
    "X": "##....## ##....## .##..##. ..####.. ..####.. .##..##. ##....## ##....##",
}


def letters(word: str) -> FloatArray:
    """Return the letters of a word as pictures of 8 by 8 pixels, +1 for ink, shape (P, 8, 8).

    See Also
    --------
    memory.corrupt : Cues: patterns with some pixels flipped.
    memory.hebbian : Store patterns by Hebb's rule.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.memory.letters("CAT").shape
    (3, 8, 8)
    """
    if not isinstance(word, str) or not word or set(word) - set(_LETTERS):
        raise ValueError(f"letters draws the letters {', '.join(_LETTERS)}. Got {word!r}.")
    ink = [[list(row) for row in _LETTERS[letter].split()] for letter in word]
    return np.where(np.array(ink) == "#", 1.0, -1.0)


def corrupt(patterns: ArrayLike, flips: float = 0.2, *, copies: int = 1, seed: int | None = 0) -> FloatArray:
    """Return cues: copies of every pattern in which a share of the pixels, chosen at random, is flipped.

    Parameters
    ----------
    patterns : array_like of +1 and -1, or of bool, shape (P, N) or (P, height, width)
    flips : float
        Share of the pixels of every cue that are flipped, rounded to a whole number of them.
    copies : int
        How many cues every pattern has.
    seed : int or None

    Returns
    -------
    ndarray, shape (copies, P, N) or (copies, P, height, width)

    See Also
    --------
    memory.Memory : Patterns kept by a network, recalled from cues.
    memory.letters : Letters as pictures.

    Examples
    --------
    >>> import numpy as np, phasegrad as pg
    >>> cues = pg.memory.corrupt(pg.memory.letters("JCA"), 0.2, copies=5)
    >>> cues.shape, int(np.sum(cues[0, 0] != pg.memory.letters("J")[0]))
    ((5, 3, 8, 8), 13)
    """
    rows, shape = checked_patterns(patterns, "corrupt")
    flips = float_between("flips", flips, 0, 1, "corrupt")
    copies = whole_number("copies", copies, 1, "corrupt")
    marks = flipped_pixels(random_stream(seed, "corrupt"), copies * len(rows), rows.shape[1], flips)
    cues = np.where(marks, -1.0, 1.0).reshape(copies, *rows.shape) * rows
    return cues.reshape(copies, len(rows), *shape)


def flipped_pixels(stream: np.random.Generator, count: int, size: int, flips: float) -> Any:
    """Return which pixels of so many patterns are flipped, (count, size) of bool: the same number in each."""
    return stream.permuted(np.tile(np.arange(size) < round(flips * size), (count, 1)), axis=1)


def checked_patterns(given: ArrayLike, owner: str) -> tuple[FloatArray, tuple[int, ...]]:
    """Return patterns as rows (P, N) of +1 and -1, and the shape of one; refuse what no network could keep."""
    values = checked_signs("patterns", given, owner)
    if values.ndim not in (2, 3) or values.shape[0] == 0 or int(np.prod(values.shape[1:])) < 2:
        raise ValueError(
            f"The 'patterns' parameter of {owner} must have shape (P, N), one row per pattern, or (P, height, width), "
            f"with two pixels or more. Got shape {values.shape}."
        )
    shape = values.shape[1:]
    rows = values.reshape(len(values), -1)
    if len(rows) > rows.shape[1]:
        raise ValueError(
            f"The 'patterns' parameter of {owner} holds {len(rows)} patterns of {rows.shape[1]} pixels. A network of "
            f"one oscillator per pixel keeps {rows.shape[1]} at most: store fewer, or larger ones."
        )
    first, inverse = np.unique(rows, axis=0, return_inverse=True)
    if len(first) < len(rows):
        twice = np.flatnonzero(inverse.ravel() == np.argmax(np.bincount(inverse.ravel()) > 1))
        raise ValueError(
            f"The 'patterns' parameter of {owner} holds one pattern twice: {int(twice[0])} and {int(twice[1])} are "
            "equal. Leave one of them out."
        )
    return rows, tuple(int(side) for side in shape)


def checked_signs(name: str, given: ArrayLike, owner: str) -> FloatArray:
    """Return an array of +1 and -1; booleans are taken for these."""
    try:
        array = np.asarray(given)
    except ValueError:
        raise ValueError(
            f"The '{name}' parameter of {owner} must be patterns of one length. Got lists of several."
        ) from None
    if array.dtype == bool:
        return np.where(array, 1.0, -1.0)
    values = finite_array(name, given, owner)
    if np.any(np.abs(values) != 1):
        wrong = float(values[np.abs(values) != 1].flat[0])
        raise ValueError(
            f"The '{name}' parameter of {owner} must hold +1 and -1, or True and False. Got {wrong:g}; make booleans "
            "of 0 and 1 by astype(bool)."
        )
    return values
