r"""Schemes: under which nudges a network is settled, and with which weights their slopes make a derivative.

A scheme is data. With slopes g(b) = dE/dp at the equilibrium under a nudge of strength b, every method is

    dC/dp = sum_k w_k g(b_k) / beta,      b_k = beta s_k

for some strengths s_k and weights w_k whose sum over w_k s_k is 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phasegrad._validation import choice, whole_number

PATTERNS = ("fit", "lock-in")
# Strengths below this are no nudge.
_NONE = 1e-9


@dataclass(frozen=True)
class Scheme:
    """Strengths and weights in units of the nudge, the order of the error in it, and the relative error aimed at."""

    strengths: tuple[complex, ...]
    weights: tuple[complex, ...]
    order: int
    error: float

    def at(self, beta: float) -> list[tuple[complex, complex]]:
        """Return the nudges and their weights."""
        return [(beta * s, w / beta) for s, w in zip(self.strengths, self.weights, strict=True)]

    @property
    def free(self) -> bool:
        """Whether the free state has a weight of its own."""
        return 0 in self.strengths

    @property
    def nudges(self) -> tuple[complex, ...]:
        """The strengths other than zero."""
        return tuple(strength for strength in self.strengths if strength)

    @property
    def contrasts(self) -> bool:
        """Whether it is a difference of two states under real nudges, so that a batch can be settled at once."""
        return len(self.weights) == 2 and not np.any(np.imag(self.strengths)) and sum(self.weights) == 0


ONE_SIDED = Scheme((1.0, 0.0), (1.0, -1.0), 1, 5e-4)
COMPLEX_STEP = Scheme((1j,), (-1j,), 2, 1e-16)


def circle(points: int) -> Scheme:
    """Return complex nudges spread over a circle; the error is of the order of their number."""
    turns = np.exp(2j * np.pi * np.arange(points) / points)
    return Scheme(tuple(turns), tuple(1 / (points * turns)), points, 1e-12)


def symmetric(points: int, pattern: str, owner: str) -> Scheme:
    """Return real nudges of both signs.

    "fit" has the real parts of points on a circle, brought to strength 1 at most, and the slope at zero of the
    polynomial through them: its error is of the order of their number. "lock-in" has the instants of one turn of a
    slow sine and takes the first harmonic of what follows: order 2, and every instant averages the noise of a meter.
    """
    choice("pattern", pattern, PATTERNS, owner)
    points = whole_number("points", points, 2 if pattern == "fit" else 3, owner)
    if pattern == "lock-in":
        sines = np.sin(2 * np.pi * np.arange(points) / points)
        sines = sines[np.abs(sines) > _NONE]
        return Scheme(tuple(sines), tuple(2 * sines / points), 2, 1e-6)
    if points % 2:
        raise ValueError(
            f"The 'points' parameter of {owner} must be even, one half of them for each sign of the nudge. "
            f"Got {points} instead."
        )
    ahead = np.cos(np.pi * (2 * np.arange(points // 2) + 1) / (2 * points))
    ahead = ahead / ahead[0]
    odd = 2 * np.arange(ahead.size) + 1
    weights = 0.5 * np.linalg.solve(ahead[None, :] ** odd[:, None], np.eye(ahead.size)[0])
    return Scheme((*ahead, *-ahead), (*weights, *-weights), points, 1e-6)
