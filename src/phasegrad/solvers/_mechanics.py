r"""A batch of samples as Newton's method sees it: forces on the oscillators that move, and systems with the Laplacian.

`Dense` factors the Laplacian of every sample by LAPACK. `Rows` (`phasegrad.solvers._rows`) keeps one large sparse
Laplacian as edges or compressed rows and solves by conjugate gradients; `Products` (`phasegrad.solvers._products`)
shares matrix products between the samples of one sine-coupled network. Newton's loop is the same for all three.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.dynamics import System
from phasegrad.solvers._linear import solve_general, solve_positive

#: Share of the most it can be below which no weight of the positive stand-in of a Laplacian falls.
FLOOR = 0.1
#: Share of the largest eigenvalue below which none is taken where a saddle is left.
LEAST = 1e-4


class State(NamedTuple):
    """Phases (B, n) of the oscillators that move and the force on them."""

    moving: Array
    force: Array

    def take(self, rows: Array) -> State:
        """Return some of the samples."""
        return type(self)(*(values[rows] for values in self))


class Mechanics(Protocol):
    """What Newton's loop needs; columns of phases and forces are the oscillators ``nodes``."""

    @property
    def system(self) -> System:
        """The force balance it stands for."""

    @property
    def nodes(self) -> IntArray:
        """The oscillators that move, in the order of the columns."""

    @property
    def entries(self) -> int:
        """How many numbers a sample takes at most."""

    def take(self, rows: Array) -> Self:
        """Return the mechanics of some of the samples."""

    def at(self, moving: Array) -> Any:
        """Return the state at phases (B, n)."""

    def energy(self, state: Any) -> Array:
        """Return the energy of every sample, (B,), up to a constant."""

    def newton(self, state: Any, accuracy: FloatArray) -> tuple[Array, BoolArray]:
        """Solve L d = F to a share ``accuracy`` (B,) of F; the mask says where L is positive definite."""

    def turn(self, step: Array) -> FloatArray:
        """Return how far a step turns a sample, (B,), in radians."""


class Descending(Mechanics, Protocol):
    """What it needs where the Laplacian may be indefinite."""

    def follow(self, state: Any, rows: IntArray) -> tuple[Array, BoolArray]:
        """Solve L d = F of some samples whose L is not positive definite; the mask says where it is regular."""

    def descend(self, state: Any, rows: IntArray) -> tuple[Array, BoolArray]:
        """Return descent directions of some samples, in a positive definite stand-in metric."""


@dataclass(frozen=True, eq=False)
class Dense:
    """Any system, every sample's Laplacian factored by LAPACK."""

    system: System

    @property
    def nodes(self) -> IntArray:
        """The oscillators that move."""
        return self.system.graph.free

    @property
    def entries(self) -> int:
        """The entries of a Laplacian."""
        return int(self.nodes.size) ** 2

    def take(self, rows: Array) -> Dense:
        """Return the mechanics of some of the samples."""
        return Dense(self.system.take(rows))

    def at(self, moving: Array) -> State:
        """Return the state at phases (B, n)."""
        return State(moving, np.take(self.system.force(self.system.whole(moving)), self.nodes, axis=1))

    def energy(self, state: State) -> Array:
        """Return the energy of every sample, (B,)."""
        return self.system.energy(self.system.whole(state.moving))

    def newton(self, state: State, accuracy: FloatArray) -> tuple[Array, BoolArray]:
        """Solve L d = F; the mask says where L is positive definite, or just regular where it is not symmetric."""
        del accuracy
        matrices = self.system.laplacian(self.system.whole(state.moving))
        solve = solve_positive if self.system.has_energy else solve_general
        return solve(matrices, state.force)

    def follow(self, state: State, rows: IntArray) -> tuple[Array, BoolArray]:
        """Solve L d = F of some samples by LU."""
        part = self.system.take(rows)
        return solve_general(part.laplacian(part.whole(state.moving[rows])), state.force[rows])

    def descend(self, state: State, rows: IntArray) -> tuple[Array, BoolArray]:
        """Solve with the positive stand-in of some samples' Laplacians."""
        part = self.system.take(rows)
        return solve_positive(part.laplacian(part.whole(state.moving[rows]), floor=FLOOR), state.force[rows])

    def leave(self, state: State, rows: IntArray) -> Array:
        """Return steps by the Laplacians of some samples with all eigenvalues made positive: away from saddles."""
        part = self.system.take(rows)
        values, vectors = np.linalg.eigh(part.laplacian(part.whole(state.moving[rows])))
        stiffness = np.maximum(np.abs(values), LEAST * np.max(np.abs(values), axis=1, keepdims=True))
        along = np.einsum("bij,bi->bj", vectors, state.force[rows])
        return np.einsum("bij,bj->bi", vectors, along / stiffness)

    def turn(self, step: Array) -> FloatArray:
        """Return the largest turn of an oscillator."""
        return np.asarray(np.max(np.abs(step), axis=1, initial=0.0))
