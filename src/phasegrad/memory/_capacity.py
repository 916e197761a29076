"""How many random patterns a network can keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import FloatArray, IntArray, float_between, frozen_array, random_stream, whole_number
from phasegrad.memory._drawing import plot_capacity
from phasegrad.memory._memory import Memory
from phasegrad.memory._patterns import corrupt
from phasegrad.memory._rules import hebbian

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Capacity:
    """The share of random patterns that are recalled, by how many are stored.

    Attributes
    ----------
    patterns : ndarray of int, shape (L,)
        How many patterns were stored.
    recalled, error : ndarray, shape (L,)
        Share of the cues from which every pixel was recalled, and the standard error of it over sets of patterns, which
        a single set does not show: NaN.
    pixels : ndarray, shape (L,)
        Share of the pixels that were right.
    size : int
        Number of oscillators.
    flips : float
        Share of the pixels of a cue that were flipped.
    rule : str
        Name of the rule.

    See Also
    --------
    memory.capacity : Recall by the number of patterns.

    Examples
    --------
    >>> import phasegrad as pg
    >>> found = pg.memory.capacity(32, [1, 8], sets=1, copies=1)
    >>> found.recalled[0] > found.recalled[1]
    np.True_
    """

    patterns: IntArray
    recalled: FloatArray
    error: FloatArray
    pixels: FloatArray
    size: int
    flips: float
    rule: str

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw both shares by the number of patterns and return the axes: new ones by pyplot where none are given.

        The dotted line is at 0.138 N, where a Hopfield network of two-valued units with Hebb's rule fails.
        """
        return plot_capacity(self, ax)

    def __str__(self) -> str:
        lines = [f"{self.rule}: {self.size} oscillators, {100 * self.flips:.0f} % of the pixels flipped"]
        lines.append(f"{'patterns':>9}  {'recalled':>9}  {'pixels':>9}")
        for number, exact, right in zip(self.patterns, self.recalled, self.pixels, strict=True):
            lines.append(f"{number:9d}  {exact:9.3f}  {right:9.3f}")
        return "\n".join(lines)


def capacity(
    size: int, patterns: ArrayLike, *, rule: Callable[[Any], Memory] = hebbian, flips: float = 0.1, sets: int = 5,
    copies: int = 3, seed: int | None = 0, progress: Callable[[int, float], object] | None = None,
) -> Capacity:  # fmt: skip
    """Store more and more random patterns and recall them.

    Parameters
    ----------
    size : int
        Number of oscillators.
    patterns : array_like of int, shape (L,)
        How many patterns to store, ``size`` at most.
    rule : callable
        What makes a `memory.Memory` of patterns (P, N): `memory.hebbian`, `memory.pseudo_inverse`, `memory.learn` or a
        function of your own.
    flips : float
        Share of the pixels of a cue that are flipped.
    sets, copies : int
        Sets of random patterns for each number, and cues per pattern.
    seed : int or None
    progress : callable, optional
        Called with each number of patterns that is done and the share recalled.

    See Also
    --------
    memory.Memory : Patterns kept by a network, recalled from cues.

    References
    ----------
    Amit, Gutfreund and Sompolinsky 1985, doi:10.1103/PhysRevLett.55.1530, on 0.138 N.

    Examples
    --------
    >>> import phasegrad as pg
    >>> found = pg.memory.capacity(32, [2, 6], rule=pg.memory.pseudo_inverse, sets=2, copies=1)
    >>> found.patterns.tolist(), bool(found.recalled[0] > 0.7)
    ([2, 6], True)
    """
    owner = "capacity"
    size = whole_number("size", size, 2, owner)
    sets, copies = (whole_number(*each, 1, owner) for each in (("sets", sets), ("copies", copies)))
    flips = float_between("flips", flips, 0, 1, owner)
    numbers = [whole_number("patterns", number, 1, owner) for number in np.atleast_1d(np.asarray(patterns)).tolist()]
    if not numbers or max(numbers) > size:
        raise ValueError(
            f"The 'patterns' parameter of capacity must be numbers of patterns from 1 to {size}, one oscillator per "
            f"pixel. Got {numbers}."
        )
    if not callable(rule):
        raise TypeError(f"The 'rule' of capacity must be a function that makes a Memory of patterns. Got {rule!r}.")
    stream, shares = random_stream(seed, owner), []
    for number in numbers:
        shares.append(np.mean([_shares(rule, stream, number, size, flips, copies) for _ in range(sets)], axis=0))
        if progress is not None:
            progress(number, float(shares[-1][0]))
    exact, right, squares = np.array(shares).T
    spread = np.sqrt(np.maximum(squares - exact**2, 0.0) / (sets - 1)) if sets > 1 else np.full_like(exact, np.nan)
    named = getattr(rule, "__name__", type(rule).__name__).replace("_", " ")
    return Capacity(
        patterns=frozen_array(np.array(numbers)),
        recalled=frozen_array(exact),
        error=frozen_array(spread),
        pixels=frozen_array(right),
        size=size,
        flips=flips,
        rule=named,
    )


def _shares(
    rule: Callable[[Any], Memory], stream: np.random.Generator, number: int, size: int, flips: float, copies: int
) -> tuple[float, float, float]:
    """Return the share of cues that are recalled exactly, that of right pixels, and the square of the first."""
    patterns = stream.choice([-1.0, 1.0], (number, size))
    while len(np.unique(patterns, axis=0)) < number:
        patterns = stream.choice([-1.0, 1.0], (number, size))
    cues = corrupt(patterns, flips, copies=copies, seed=int(stream.integers(2**31)))
    memory = rule(patterns)
    if not isinstance(memory, Memory):
        raise TypeError(f"The 'rule' of capacity must return a Memory. Got {memory!r:.80}.")
    found = memory.recall(cues)
    exact = float(np.mean(found.exact & (found.pattern == np.arange(number))))
    return exact, float(np.mean(found.pixels == patterns)), exact**2
