"""What a training engine is: something that trains for an epoch and scores, whatever it is made of."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from phasegrad.validation import FloatArray

Array = NDArray[Any]


class Tallies(NamedTuple):
    """Sums over the samples of an epoch or a part, (R, epochs); over those that settled, except ``skipped``."""

    loss: FloatArray
    correct: FloatArray
    skipped: FloatArray
    unstable: FloatArray
    separation: FloatArray
    common: FloatArray


class Rates(NamedTuple):
    """Learning rate of every frequency (R, N) and coupling (R, E) of every network; 0 where it does not learn."""

    omega: FloatArray
    coupling: FloatArray


class Engine(Protocol):
    """Holds R networks and their data."""

    def train(self, orders: Array) -> Tallies:
        """Train for one epoch per row of ``orders`` (R, epochs, n)."""

    def evaluate(self, part: str) -> Tallies:
        """Return the sums over the "train" or "test" part, (R, 1)."""

    def parameters(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return frequencies (R, N), couplings (R, E) and phases (R, N) as they are now."""
