r"""One large sparse network: linear systems with its Laplacian by conjugate gradients.

Newton's steps are solved only as accurately as the distance to the equilibrium deserves, so that all of them together
cost little more than one accurate solve. Where conjugate gradients meet a direction of negative curvature the Laplacian
is proved indefinite.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.dynamics import System
from phasegrad.graphs import lazy_property
from phasegrad.kernels import COMPILES
from phasegrad.solvers._krylov import LinearSolution, conjugate_gradients, solve_accurately
from phasegrad.solvers._mechanics import FLOOR, State
from phasegrad.solvers._operator import operator_of
from phasegrad.terms import cosines

_STAND_IN = 1e-1
# The share of the force that a step solved in single precision leaves to the next one.
_ENOUGH = 1e-4


class Balance(NamedTuple):
    """Phases (B, n) of the oscillators that move, the force on them, and the edge weights (B, E), diagonal (B, N)."""

    moving: Array
    force: Array
    weights: Array
    diagonal: Array

    def take(self, rows: Array) -> Balance:
        """Return some of the samples."""
        return Balance(*(values[rows] for values in self))


@dataclass(frozen=True, eq=False)
class Rows:
    """A sparse system with an energy, sample by sample; counts the linear iterations of each."""

    system: System
    kind: str = "auto"
    effort: list[tuple[int, str]] = field(default_factory=list)
    iterates = True

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

    def at(self, moving: Array) -> State | Balance:
        """Return the state at phases (B, n); force and Laplacian of sine coupling come out of one compiled pass."""
        phases = self.system.whole(moving)
        if self.strength is None:
            return State(moving, np.take(self.system.force(phases), self.nodes, axis=1))
        return self._balanced(moving, phases, self.strength)

    def energy(self, state: State | Balance) -> Array:
        """Return the energy of every sample, (B,)."""
        return self.system.energy(self.system.whole(state.moving))

    @lazy_property
    def strength(self) -> Array | None:
        """The couplings (E,) of a network whose edges all act as sines; None of any other."""
        edges = [k for term in self.system.terms if (k := term.phasor_edges(self.system.values)) is not None]
        known = all(term.phasor or (term.local and not term.drives) for term in self.system.terms)
        plain = COMPILES and known and self.system.shared and self.system.pull is None and len(edges) == 1
        return edges[0][0] if plain else None

    @property
    def closed(self) -> bool:
        """Whether nothing but frequencies acts beside the coupling."""
        return all(term.drives or term.phasor_edges(self.system.values) is not None for term in self.system.terms)

    def _balanced(self, moving: Array, phases: Array, strength: Array) -> Balance:
        from phasegrad.kernels import edges as loops

        system = self.system
        force, diagonal = np.zeros_like(phases), np.zeros_like(phases)
        weights = np.empty((phases.shape[0], strength.size))
        for term in system.terms:
            if term.phasor_edges(system.values) is None:
                force += term.force(system.graph, system.values, phases)
                own = term.stiffness(system.graph, system.values, phases).diagonal
                diagonal += 0.0 if own is None else own
        for each in zip(*cosines(phases), force, weights, diagonal, strict=True):
            loops.balance(*system.graph.narrow_ends, strength, *each)
        return Balance(moving, np.take(force, self.nodes, axis=1), weights, diagonal)

    def newton(self, state: State | Balance, accuracy: FloatArray) -> tuple[Array, BoolArray]:
        """Solve L d = F by conjugate gradients; the mask says where no negative curvature was met."""
        step, positive = np.zeros_like(state.force), np.zeros(state.force.shape[0], dtype=bool)
        for b in range(step.shape[0]):
            found = self._solved(state, b, float(accuracy[b]), None)
            step[b], positive[b] = found.solution, found.positive
        return step, positive

    def follow(self, state: State | Balance, rows: IntArray) -> tuple[Array, BoolArray]:
        """Solve L d = F of some samples to rounding, by MINRES."""
        steps = [self._solved(state, int(b), 0.0, None).solution for b in rows]
        return np.array(steps), np.ones(rows.size, dtype=bool)

    def descend(self, state: State | Balance, rows: IntArray) -> tuple[Array, BoolArray]:
        """Solve roughly with the positive stand-in of some samples' Laplacians."""
        steps = [self._solved(state, int(b), _STAND_IN, FLOOR).solution for b in rows]
        return np.array(steps), np.ones(rows.size, dtype=bool)

    def turn(self, step: Array) -> FloatArray:
        """Return the largest change across an edge or against a field: far ends of a mesh may turn far."""
        from phasegrad.kernels import edges as loops

        whole = np.zeros((step.shape[0], self.system.graph.size))
        whole[:, self.nodes] = step
        largest = (
            self.system.turns(whole)
            if self.system.joins_all
            else np.array([loops.widest(*self.system.graph.narrow_ends, row) for row in whole])
        )
        if any(term.fixes_gauge for term in self.system.terms):
            largest = np.maximum(largest, np.max(np.abs(step), axis=1, initial=0.0))
        return np.asarray(largest)

    def report(self, row: int) -> tuple[int, str]:
        """Return the linear iterations of a sample so far and its preconditioner."""
        return self.effort[row]

    def _solved(self, state: State | Balance, row: int, accuracy: float, floor: float | None) -> LinearSolution:
        one = self.system.take(np.array([row]))
        filled = (state.weights[row], state.diagonal[row], self.closed) if isinstance(state, Balance) else None
        phases = one.whole(state.moving[row : row + 1])
        matrix, inverse, outer = operator_of(
            one, phases, self.kind, floor=floor, filled=filled if floor is None else None
        )
        right = np.ascontiguousarray(state.force[row])
        if accuracy == 0.0:
            found = solve_accurately(matrix, right, inverse, outer=outer)
        else:
            found = conjugate_gradients(matrix, right, inverse, tolerance=accuracy, enough=_ENOUGH, outer=outer)
        self.effort[row] = (self.effort[row][0] + found.iterations, inverse.name)
        return found
