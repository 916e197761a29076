"""The guards of Newton's line search: which of several samples may take a step, or a fraction of it."""

from __future__ import annotations

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.linearised import Linearised

# The share of the decrease that the slope promises which a step must bring (Armijo).
_ARMIJO = 1e-4
_EPS = float(np.finfo(float).eps)


class EnergyGuard:
    """Armijo's rule on the energy, or less force where the energy's own rounding hides its change."""

    def __init__(self, state: Linearised, step: Array) -> None:
        self.energy = state.energy
        self.gain = np.sum(state.force * step, axis=1)
        self.norm = squared(state.force)
        system = state.system
        reach = 1.0 + np.max(np.abs(state.moving), axis=1)
        magnitude = np.sum(system.capacity + np.abs(system.drive), axis=1) * reach + np.abs(self.energy)
        self.rounding = 16 * _EPS * magnitude

    def accepts(self, rows: IntArray, moved: Linearised, fraction: float) -> BoolArray:
        """Return which of the samples ``rows`` may go to ``moved``, a fraction of the whole step away."""
        drop = self.energy[rows] - moved.energy
        lower = drop >= _ARMIJO * fraction * self.gain[rows]
        # Where the gain is not a thousand times the rounding of the energy, its change says nothing.
        hidden = self.gain[rows] <= 1e3 * self.rounding[rows]
        weaker = (squared(moved.force) < self.norm[rows]) & (drop >= -self.rounding[rows])
        return np.where(hidden, weaker, lower)


class ForceGuard:
    """The norm of the force must fall."""

    def __init__(self, state: Linearised, step: Array) -> None:
        del step
        self.norm = np.sqrt(squared(state.force))

    def accepts(self, rows: IntArray, moved: Linearised, fraction: float) -> BoolArray:
        """Return which of the samples ``rows`` may go to ``moved``, a fraction of the whole step away."""
        return np.sqrt(squared(moved.force)) <= (1 - _ARMIJO * fraction) * self.norm[rows]


def squared(force: Array) -> FloatArray:
    """Return the squared norm of the force on every sample, (B,)."""
    return np.asarray((np.abs(force) ** 2 if np.iscomplexobj(force) else force * force).sum(axis=1))
