"""How strong a nudge is: one that was left to be chosen is made weaker where its gradient is too far off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

import numpy as np

from phasegrad._validation import Array, BoolArray
from phasegrad.gradients._exact import Exact
from phasegrad.gradients._question import Question

# Weaker nudges that are tried, how much weaker at most, and a relative error that none of them can go below.
_TRIES, _WEAKEST, _ROUNDED = 3, 1e-3, 1e-8
# How many times its own error a gradient must be for another one to be judged by it.
_CLEAR = 100.0


class Measured(Protocol):
    """Slopes from nudged equilibria: the nudge, and how far off the worst sample is by it."""

    @property
    def beta(self) -> float:
        """The nudge."""

    @property
    def off(self) -> float:
        """The relative error of the worst sample."""


Found = TypeVar("Found", bound=Measured)


def shortfall(question: Question, values: Mapping[str, Array], exact: Exact, found: BoolArray) -> float:
    """Return how far slopes (B, width) are from the exact ones, as a share of those, of the worst sample ``found``."""
    off = 0.0
    for name in question.wrt:
        size = np.max(np.abs(exact.values[name]), axis=1, initial=0.0)
        known = exact.regular & found & (size > _CLEAR * np.max(exact.errors[name], axis=1, initial=0.0))
        far = np.max(np.abs(values[name] - exact.values[name]), axis=1, initial=0.0)
        off = max(off, float(np.max(far[known] / size[known], initial=0.0)))
    return off


def weakened(measured: Found, measure: Callable[[float], Found], error: float, order: int) -> Found:
    """Return what weaker nudges show where this one exceeds twice the relative error aimed at, as long as they help."""
    for _ in range(_TRIES):
        if not measured.off > max(2 * error, _ROUNDED):
            break
        other = measure(measured.beta * max(0.5 * (error / measured.off) ** (1 / order), _WEAKEST))
        if not other.off < measured.off:
            break
        measured = other
    return measured
