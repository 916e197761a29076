"""What every solver takes and returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from phasegrad._validation import Array, FloatArray, IntArray
from phasegrad.dynamics import System


@dataclass(frozen=True)
class Solution:
    """Phases (B, N) a solver ended at, their residual (B,) and the steps it took (B,)."""

    phases: Array
    residual: FloatArray
    steps: IntArray


class Solver(Protocol):
    """A small frozen object that holds only its own settings."""

    def solve(self, system: System, start: Array, tolerance: FloatArray) -> Solution:
        """Return phases near ``start`` (B, N) whose residual is at most ``tolerance`` (B,), or the best found."""


def residual(system: System, force: Array) -> FloatArray:
    """Return max |force| over the oscillators that move, (B,)."""
    moving = np.abs(np.take(force, system.graph.free, axis=1))
    return np.asarray(np.max(moving, axis=1, initial=0.0), dtype=np.float64)
