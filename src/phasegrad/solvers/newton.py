r"""Guarded Newton: full steps where they are safe, descent everywhere else.

With an energy E (reciprocal coupling), a step solves L d = F and is kept only if it lowers E enough (Armijo,
halving otherwise). Where the Laplacian L is not positive definite, Newton would climb toward saddles; there the
step follows the gradient flow instead, d = P^-1 F with the positive definite stand-in P of
`System.laplacian(floor=...)`, again under the line search. Without an energy (non-reciprocal coupling, complex
nudges) the guard is the norm of the force.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phasegrad.dynamics import System
from phasegrad.solvers.contract import Solution, Solver, residual
from phasegrad.solvers.linear import chunks, solve_general, solve_positive
from phasegrad.validation import BoolArray, FloatArray, positive_float, whole_number

Array = NDArray[Any]

_ARMIJO = 1e-4
_HALVINGS = 40
FLOOR = 0.1
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class GuardedNewton:
    """Newton's method that never leaves descent.

    Parameters
    ----------
    max_steps : int
        Steps after which a sample is given up.
    max_turn : float
        No oscillator turns by more than this many radians in one step.
    follow : bool
        Stay with the equilibrium near the start even if it is unstable: plain Newton, guarded by the norm of the force
        alone. Made for small changes of a known equilibrium.
    """

    max_steps: int = 500
    max_turn: float = 1.0
    follow: bool = False

    def __post_init__(self) -> None:
        whole_number("max_steps", self.max_steps, 1, "GuardedNewton")
        positive_float("max_turn", self.max_turn, "GuardedNewton")

    def solve(self, system: System, start: Array, tolerance: FloatArray) -> Solution:
        """Return phases near ``start`` whose residual is at most ``tolerance``, or the best found."""
        phases = start.copy()
        left = np.zeros(system.batch)
        steps = np.zeros(system.batch, dtype=np.int64)
        for part in chunks(system.batch, system.network.free.size):
            rows = np.arange(part.start, part.stop)
            self._solve_rows(system, rows, phases, left, steps, tolerance)
        return Solution(phases, left, steps)

    def _solve_rows(
        self, system: System, rows: Array, phases: Array, left: Array, steps: Array, tolerance: FloatArray
    ) -> None:
        """Iterate on the samples ``rows``, writing into the arrays of the whole batch."""
        left[rows] = residual(system, system.take(rows).force(phases[rows]))
        polished = np.zeros(system.batch, dtype=bool)
        active = rows
        for _ in range(self.max_steps):
            active = active[~polished[active]]
            if active.size == 0:
                return
            near = left[active] <= tolerance[active]
            part = system.take(active)
            moved, kept = self._step(part, phases[active], near)
            after = residual(part, part.force(moved))
            # A converged sample takes one last step for the digits below the tolerance, if it helps. The imaginary
            # part that a tiny complex nudge causes may hide below the residual of the real one: it always counts.
            kept &= ~near | (after < left[active]) | (system.is_complex & (after <= tolerance[active]))
            phases[active[kept]] = moved[kept]
            left[active[kept]] = after[kept]
            steps[active[kept]] += 1
            polished[active[near]] = True
            polished[active[~kept]] = True

    def _step(self, system: System, phases: Array, near: BoolArray) -> tuple[Array, BoolArray]:
        """Return the phases after one guarded step and where a step was found."""
        force = np.take(system.force(phases), system.network.free, axis=1)
        if system.has_energy:
            step, newton = solve_positive(system.laplacian(phases), force)
            bent = np.flatnonzero(~newton)
            if bent.size and self.follow:
                matrices = system.take(bent).laplacian(phases[bent])
                step[bent], newton[bent] = solve_general(matrices, force[bent])
            elif bent.size:
                stand_in = system.take(bent).laplacian(phases[bent], floor=FLOOR)
                step[bent], newton[bent] = solve_positive(stand_in, force[bent])
        else:
            step, newton = solve_general(system.laplacian(phases), force)
        largest = np.max(np.abs(step), axis=1, initial=0.0)
        step *= np.minimum(1.0, self.max_turn / np.maximum(largest, 1e-300))[:, None]
        guard = EnergyGuard if system.has_energy and not self.follow else ForceGuard
        return line_search(guard(system, phases, force, step), system, phases, step, near, newton)


@dataclass(frozen=True)
class BranchNewton:
    """Newton that stays on the branch of a known equilibrium, and descends only where that fails.

    For nudged networks and turned parameters: they are small changes of an equilibrium whose derivative is asked for.
    """

    follow: Solver = field(default_factory=lambda: GuardedNewton(max_steps=50, follow=True))
    descend: Solver = field(default_factory=GuardedNewton)

    def solve(self, system: System, start: Array, tolerance: FloatArray) -> Solution:
        """Return phases near ``start`` whose residual is at most ``tolerance``, or the best found."""
        found = self.follow.solve(system, start, tolerance)
        lost = np.flatnonzero(found.residual > tolerance)
        if lost.size == 0 or not system.has_energy:
            return found
        again = self.descend.solve(system.take(lost), start[lost], tolerance[lost])
        found.phases[lost], found.residual[lost] = again.phases, again.residual
        found.steps[lost] += again.steps
        return found


def line_search(
    judge: EnergyGuard | ForceGuard, system: System, phases: Array, step: Array, near: BoolArray, usable: BoolArray
) -> tuple[Array, BoolArray]:
    """Halve the step of each sample until its guard accepts; samples ``near`` the zero take it whole."""
    free = system.network.free
    moved = phases.copy()
    moved[:, free] += step
    accepted = near & usable
    waiting = np.flatnonzero(usable & ~near)
    if waiting.size == 0:
        return moved, accepted
    fraction = 1.0
    for _ in range(_HALVINGS):
        part = system.take(waiting)
        passed = judge.accepts(part, waiting, moved[waiting], fraction)
        accepted[waiting[passed]] = True
        waiting = waiting[~passed]
        if waiting.size == 0:
            break
        fraction /= 2
        moved[waiting] = phases[waiting]
        moved[waiting[:, None], free[None, :]] += fraction * step[waiting]
    return moved, accepted


class EnergyGuard:
    """Armijo's rule on the energy, or less force where the energy's own rounding hides its change."""

    def __init__(self, system: System, phases: Array, force: Array, step: Array) -> None:
        self.energy = system.energy(phases)
        self.gain = np.sum(force * step, axis=1)
        self.norm = np.sum(force**2, axis=1)
        bonds = np.sum(np.abs(system.coupling), axis=1) * (1.0 + np.max(np.abs(phases), axis=1))
        magnitude = bonds + np.sum(np.abs(system.omega * phases), axis=1) + np.abs(self.energy)
        self.rounding = 16 * _EPS * magnitude

    def accepts(self, system: System, rows: Array, moved: Array, fraction: float) -> BoolArray:
        """Return which of the samples ``rows`` may go to ``moved``, a fraction of the whole step away."""
        drop = self.energy[rows] - system.energy(moved)
        lower = drop >= _ARMIJO * fraction * self.gain[rows]
        norm = np.sum(np.take(system.force(moved), system.network.free, axis=1) ** 2, axis=1)
        hidden = self.gain[rows] <= 1e3 * self.rounding[rows]
        return np.where(hidden, (norm < self.norm[rows]) & (drop >= -self.rounding[rows]), lower)


class ForceGuard:
    """The norm of the force must fall."""

    def __init__(self, system: System, phases: Array, force: Array, step: Array) -> None:
        del system, phases, step
        self.norm = np.linalg.norm(force, axis=1)

    def accepts(self, system: System, rows: Array, moved: Array, fraction: float) -> BoolArray:
        """Return which of the samples ``rows`` may go to ``moved``, a fraction of the whole step away."""
        norm = np.linalg.norm(np.take(system.force(moved), system.network.free, axis=1), axis=1)
        return norm <= (1 - _ARMIJO * fraction) * self.norm[rows]
