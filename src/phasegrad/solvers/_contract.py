"""What every solver takes and returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from phasegrad._validation import Array, FloatArray, IntArray
from phasegrad.dynamics import System


@dataclass(frozen=True)
class Solution:
    """Phases (B, N) a solver ended at, their residual (B,), the steps it took (B,), and who settled each sample.

    ``solver`` are names, (B,); left out, the sample was settled by the solver that returned it.
    """

    phases: Array
    residual: FloatArray
    steps: IntArray
    solver: NDArray[np.object_] | None = None

    def names(self, solver: Solver) -> NDArray[np.object_]:
        """Return who settled each sample, (B,), a solution of ``solver``."""
        if self.solver is not None:
            return self.solver
        return np.full(self.steps.shape, getattr(solver, "name", type(solver).__name__), dtype=object)


class Solver(Protocol):
    """A small frozen object that holds only its own settings."""

    def solve(self, system: System, start: Array, tolerance: FloatArray) -> Solution:
        """Return phases near ``start`` (B, N) whose residual is at most ``tolerance`` (B,), or the best found."""


def residual(system: System, force: Array) -> FloatArray:
    """Return max |force| over the oscillators that move, (B,)."""
    moving = np.abs(np.take(force, system.graph.free, axis=1))
    return np.asarray(np.max(moving, axis=1, initial=0.0), dtype=np.float64)
