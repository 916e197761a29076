r"""One large sparse network: its Laplacian in compressed rows, linear systems by conjugate gradients.

Newton's steps are solved only as accurately as the distance to the equilibrium deserves, so that all of them together
cost little more than one accurate solve. Where conjugate gradients meet a direction of negative curvature the Laplacian
is proved indefinite.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.dynamics import System
from phasegrad.solvers._krylov import LinearSolution, conjugate_gradients, outer_of, solve_accurately
from phasegrad.solvers._mechanics import FLOOR, State
from phasegrad.solvers._preconditioning import preconditioner

_STAND_IN = 1e-1


@dataclass(frozen=True, eq=False)
class Rows:
    """A sparse system with an energy, sample by sample; counts the linear iterations of each."""

    system: System
    kind: str = "auto"
    effort: list[tuple[int, str]] = field(default_factory=list)

    @classmethod
    def of(cls, system: System, kind: str) -> Rows:
        """Return the mechanics of a system with an energy."""
        if not system.has_energy:
            raise ValueError(
                "The sparse algebra needs reciprocal coupling and a real nudge. Use solver='newton' or 'flow' instead."
            )
        return cls(system, kind, [(0, "")] * system.batch)

    @property
    def nodes(self) -> IntArray:
        """The oscillators that move."""
        return self.system.graph.free

    @property
    def entries(self) -> int:
        """What the edges of a sample take."""
        return 4 * (self.system.graph.n_edges + self.system.graph.size)

    def take(self, rows: Array) -> Rows:
        """Return the mechanics of some of the samples."""
        chosen = np.arange(self.system.batch)[rows].tolist()
        return Rows(self.system.take(rows), self.kind, [self.effort[row] for row in chosen])

    def at(self, moving: Array) -> State:
        """Return the state at phases (B, n)."""
        return State(moving, np.take(self.system.force(self.system.whole(moving)), self.nodes, axis=1))

    def energy(self, state: State) -> Array:
        """Return the energy of every sample, (B,)."""
        return self.system.energy(self.system.whole(state.moving))

    def newton(self, state: State, accuracy: FloatArray) -> tuple[Array, BoolArray]:
        """Solve L d = F by conjugate gradients; the mask says where no negative curvature was met."""
        step, positive = np.zeros_like(state.force), np.zeros(state.force.shape[0], dtype=bool)
        for b in range(step.shape[0]):
            found = self._solved(state, b, float(accuracy[b]), None)
            step[b], positive[b] = found.solution, found.positive
        return step, positive

    def follow(self, state: State, rows: IntArray) -> tuple[Array, BoolArray]:
        """Solve L d = F of some samples to rounding, by MINRES."""
        steps = [self._solved(state, int(b), 0.0, None).solution for b in rows]
        return np.array(steps), np.ones(rows.size, dtype=bool)

    def descend(self, state: State, rows: IntArray) -> tuple[Array, BoolArray]:
        """Solve roughly with the positive stand-in of some samples' Laplacians."""
        steps = [self._solved(state, int(b), _STAND_IN, FLOOR).solution for b in rows]
        return np.array(steps), np.ones(rows.size, dtype=bool)

    def turn(self, step: Array) -> FloatArray:
        """Return the largest change across an edge or against a field: far ends of a mesh may turn far."""
        whole = np.zeros((step.shape[0], self.system.graph.size))
        whole[:, self.nodes] = step
        largest = self.system.turns(whole)
        if any(term.fixes_gauge for term in self.system.terms):
            largest = np.maximum(largest, np.max(np.abs(step), axis=1, initial=0.0))
        return np.asarray(largest)

    def report(self, row: int) -> tuple[int, str]:
        """Return the linear iterations of a sample so far and its preconditioner."""
        return self.effort[row]

    def _solved(self, state: State, row: int, accuracy: float, floor: float | None) -> LinearSolution:
        one = self.system.take(np.array([row]))
        phases = one.whole(state.moving[row : row + 1])
        matrix, outer = one.sparse_laplacian(phases, floor=floor), outer_of(one, phases, floor=floor)
        inverse = preconditioner(one, matrix, self.kind)
        right = np.ascontiguousarray(state.force[row])
        if accuracy == 0.0:
            found = solve_accurately(matrix, right, inverse, outer=outer)
        else:
            found = conjugate_gradients(matrix, right, inverse, tolerance=accuracy, outer=outer)
        self.effort[row] = (self.effort[row][0] + found.iterations, inverse.name)
        return found
