"""Solvers made of solvers: one after the other on what is left, from phase zero, or without full turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray
from phasegrad.dynamics import System, wrapped
from phasegrad.linearised import stability
from phasegrad.solvers._contract import Solution, Solver


@dataclass(frozen=True)
class Fallback:
    """Several solvers: what the first leaves unsettled the next one tries, from the same start.

    What none of them settles is left where the force is weakest.

    Parameters
    ----------
    solvers : sequence of Solver
    stable : bool
        Whether a state must be stable to count as settled; an unstable one is kept where no later solver does better.
    energetic : bool
        Whether the later ones are for systems with an energy only.
    """

    solvers: Sequence[Solver]
    stable: bool = False
    energetic: bool = False

    def solve(self, system: System, start: Array, tolerance: FloatArray) -> Solution:
        """Return phases near ``start`` whose residual is at most ``tolerance``, or the best found."""
        found = self.solvers[0].solve(system, start, tolerance)
        names = found.names(self.solvers[0])
        for solver in self.solvers[1:] if system.has_energy or not self.energetic else ():
            rows = np.flatnonzero(~self._settled(system, found, tolerance))
            if rows.size == 0:
                break
            part, limits = system.take(rows), tolerance[rows]
            again = solver.solve(part, start[rows], limits)
            nearer = ~(found.residual[rows] <= limits) & (again.residual < found.residual[rows])
            better = self._settled(part, again, limits) | nearer
            found.phases[rows[better]], found.residual[rows[better]] = again.phases[better], again.residual[better]
            found.steps[rows] += again.steps
            names[rows[better]] = again.names(solver)[better]
        return Solution(found.phases, found.residual, found.steps, names)

    def _settled(self, system: System, solution: Solution, tolerance: FloatArray) -> BoolArray:
        converged = np.asarray(solution.residual <= tolerance)
        if not self.stable:
            return converged
        return converged & stability(system, solution.phases).stable


@dataclass(frozen=True)
class ColdStart:
    """A solver that begins at phase zero instead of the given start; a sample that began there is left alone."""

    solver: Solver

    def solve(self, system: System, start: Array, tolerance: FloatArray) -> Solution:
        """Return phases whose residual is at most ``tolerance``, or the best found."""
        phases, left = system.place(np.zeros_like(start)), np.full(system.batch, np.inf)
        steps = np.zeros(system.batch, dtype=np.int64)
        rows = np.flatnonzero(np.any(start != phases, axis=1))
        if rows.size:
            found = self.solver.solve(system.take(rows), phases[rows], tolerance[rows])
            phases[rows], left[rows], steps[rows] = found.phases, found.residual, found.steps
        names = np.full(system.batch, "cold start", dtype=object)
        return Solution(phases, left, steps, names)


@dataclass(frozen=True)
class Unwinding:
    """A solver that removes full turns from the phases on the way: after a random start they only cost digits."""

    solver: Solver

    def solve(self, system: System, start: Array, tolerance: FloatArray) -> Solution:
        """Return phases near ``start``, full turns aside, of a residual of at most ``tolerance``, or the best found."""
        solution = self.solver.solve(system, start, tolerance)
        again = self.solver.solve(system, system.place(wrapped(solution.phases)), tolerance)
        return Solution(again.phases, again.residual, solution.steps + again.steps, solution.names(self.solver))
