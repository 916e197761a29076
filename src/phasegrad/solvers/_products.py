r"""A batch of samples of one sine-coupled network, by products of matrices.

Only the n oscillators that move appear, group by group (`Graph.blocks`). Held neighbours and fields act on oscillator i
together as one field x_i + i y_i of the sample, and with c = cos theta, s = sin theta and the symmetric coupling K,

    X = x + K c,   Y = y + K s           the local field of every oscillator
    F = omega + c Y - s X                the force: two matrix products instead of n x n sines
    D = c X + s Y                        how far it lies along its local field, the diagonal of the Laplacian
    L v = D v - c K(c v) - s K(s v)      the Laplacian, applied without being built
    E = -omega.theta - (c.(X + x) + s.(Y + y)) / 2

each plus the nudge, and force, diagonal and energy plus what every oscillator feels by its own phase alone
(`phasegrad.solvers._local`). Where one colour holds nearly all oscillators, compiled code eliminates it
(`phasegrad.solvers._elimination`). Otherwise conjugate gradients share one Cholesky factor, that of the mean Laplacian.
Rounding of a matrix product depends on the size of the batch: results agree between batches to the tolerance, not bit
by bit.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.dynamics import Pull, System
from phasegrad.graphs import lazy_property
from phasegrad.kernels import COMPILES
from phasegrad.solvers._elimination import Elimination, Surroundings
from phasegrad.solvers._local import LocalTerms
from phasegrad.terms import cosines

_INNER_STEPS = 40
# What is left after a group may be eliminated as long as the products of its columns fit.
_FEW_PRODUCTS = 2_000_000


class Fields(NamedTuple):
    """A state: phases (B, n), the force on them, their cosine and sine, and the local field they cause."""

    moving: FloatArray
    force: FloatArray
    cos: FloatArray
    sin: FloatArray
    x: FloatArray
    y: FloatArray

    def take(self, rows: Array) -> Fields:
        """Return some of the samples."""
        return Fields(*(values[rows] for values in self))


@dataclass(frozen=True, eq=False)
class Couplings:
    """The couplings of one network as dense blocks, its fields (1, n) each, and its other terms that are local."""

    system: System
    inner: tuple[tuple[slice, slice, FloatArray], ...]
    outer: tuple[tuple[slice, slice, FloatArray], ...]
    fields: tuple[FloatArray, FloatArray]
    local: LocalTerms
    coloured: bool

    @classmethod
    def of(cls, system: System) -> Couplings:
        """Return the couplings of a system that `Products.fits`."""
        strengths = [k for term in system.terms if (k := term.phasor_edges(system.values)) is not None]
        strength = (strengths[0] if len(strengths) == 1 else np.sum(strengths, axis=0))[0]
        blocks = system.graph.blocks

        def dense(group: Any) -> tuple[tuple[slice, slice, FloatArray], ...]:
            return tuple((block.rows, block.columns, block.matrix(strength)) for block in group)

        x, y = np.zeros((2, 1, blocks.order.size))
        for term in system.terms:
            field = term.phasor_field(system.values)
            if field is not None:
                x, y = x + field[0].take(blocks.order, axis=1), y + field[1].take(blocks.order, axis=1)
        local = LocalTerms.of(system, blocks.order)
        return cls(system, dense(blocks.inner), dense(blocks.outer), (x, y), local, blocks.coloured)

    def times(self, vectors: FloatArray) -> FloatArray:
        """Return K v for every sample, (B, n)."""
        if not self.coloured:
            return vectors @ self.inner[0][2]
        result = np.zeros_like(vectors)
        for rows, columns, block in self.inner:
            result[:, columns] += vectors[:, rows] @ block
            result[:, rows] += vectors[:, columns] @ block.T
        return result

    def onto(self, group: slice, vectors: FloatArray) -> FloatArray | None:
        """Return the part of K v on one group of a coloured graph, (B, size); None where nothing acts on it."""
        total = None
        for rows, columns, block in self.inner:
            if group == columns:
                part = vectors[:, rows] @ block
            elif group == rows:
                part = vectors[:, columns] @ block.T
            else:
                continue
            total = part if total is None else total + part
        return total

    @lazy_property
    def harmonics(self) -> FloatArray | None:
        """The force of its local terms as compiled code takes it; see `LocalTerms.harmonics`."""
        return self.local.harmonics() if self.local else np.zeros((0, 2, self.fields[0].shape[1]))

    def matrix(self) -> FloatArray:
        """Return K, (n, n)."""
        size = self.system.graph.free.size
        matrix = np.zeros((size, size))
        for rows, columns, block in self.inner:
            matrix[rows, columns] = block
            matrix[columns, rows] = block.T
        return matrix


@dataclass(frozen=True, eq=False)
class Products:
    """B samples of one network: shared couplings, and per sample what drives it and the field of what is held.

    The samples are ``rows`` of the system ``base``, all of them where that is None.
    """

    base: System
    rows: IntArray | None
    couplings: Couplings
    drive: FloatArray | None
    x: FloatArray
    y: FloatArray
    held: tuple[FloatArray, FloatArray]
    pull: Pull | None = None

    @staticmethod
    def fits(system: System) -> bool:
        """Whether matrix products can stand in for a system: sine coupling, fields, real, one network for all."""
        known = all(term.phasor or (term.local and not term.drives) for term in system.terms)
        return known and system.has_energy and system.shared and system.graph.has_blocks

    @classmethod
    def of(cls, system: System, held: tuple[FloatArray, FloatArray] | None = None) -> Products:
        """Return a system as matrices; see `fits`. ``held`` may hand over cosine and sine of its held phases."""
        blocks, batch = system.graph.blocks, system.batch
        couplings = system.workspace.keep("couplings", lambda: Couplings.of(system))
        cos, sin = cosines(system.held_phases) if held is None else held
        x, y = (part.repeat(batch, axis=0) for part in couplings.fields)
        for rows, columns, block in couplings.outer:
            x[:, columns] += cos[:, rows] @ block
            y[:, columns] += sin[:, rows] @ block
        drive = system.drive.take(blocks.order, axis=1)
        driven = np.broadcast_to(drive, x.shape) if drive.any() else None
        products = cls(system, None, couplings, driven, x, y, (cos, sin))
        return products if system.pull is None else products.nudged(system.pull)

    def nudged(self, pull: Pull) -> Products:
        """Return the same under a nudge whose nodes are numbers of the graph."""
        place = np.empty(self.base.graph.size, dtype=np.int64)
        place[self.nodes] = np.arange(self.nodes.size)
        return dataclasses.replace(self, pull=dataclasses.replace(pull, nodes=place[pull.nodes]))

    @lazy_property
    def system(self) -> System:
        """The force balance it stands for."""
        taken = self.base if self.rows is None else self.base.take(self.rows)
        if self.pull is None:
            return taken
        return taken.replace(pull=dataclasses.replace(self.pull, nodes=self.nodes[self.pull.nodes]))

    @property
    def nodes(self) -> IntArray:
        """The oscillators that move, group by group."""
        return self.base.graph.blocks.order

    @staticmethod
    def entries_of(system: System) -> int:
        """Return how many numbers a sample takes: cosines, fields and the vectors of conjugate gradients."""
        return 2 * int(system.graph.held.size) + 16 * int(system.graph.free.size)

    @property
    def entries(self) -> int:
        """How many numbers a sample takes."""
        return self.entries_of(self.base)

    @property
    def first(self) -> int:
        """How many oscillators the group that can be eliminated has; it is the first."""
        return self.base.graph.blocks.eliminated

    @property
    def eliminates(self) -> bool:
        """Whether elimination of the first group leaves so little that it beats conjugate gradients."""
        first, rest = self.first, int(self.nodes.size) - self.first
        cheap = first * rest**2 + rest**3 / 3 <= 20 * (first + rest) ** 2 and first * rest**2 <= _FEW_PRODUCTS
        inside = self.pull is None or bool((self.pull.nodes >= first).all())
        return COMPILES and cheap and inside and self.couplings.coloured and self.couplings.harmonics is not None

    def take(self, rows: Array) -> Products:
        """Return some of the samples."""
        every = np.arange(self.base.batch) if self.rows is None else self.rows
        return Products(
            self.base,
            every[rows],
            self.couplings,
            None if self.drive is None else self.drive[rows],
            self.x[rows],
            self.y[rows],
            self.held,
            None if self.pull is None else self.pull.take(rows),
        )

    def at(self, moving: FloatArray) -> Fields:
        """Return the state at phases (B, n): two matrix products, of which everything else is made."""
        cos, sin = cosines(moving)
        x, y = self.x + self.couplings.times(cos), self.y + self.couplings.times(sin)
        force = cos * y - sin * x
        if self.drive is not None:
            force += self.drive
        if self.couplings.local:
            force += self.couplings.local.force(moving)
        if self.pull is not None:
            force[:, self.pull.nodes] += self.pull.force(moving)
        return Fields(moving, force, cos, sin, x, y)

    def energy(self, state: Fields) -> FloatArray:
        """Return the energy of every sample, (B,)."""
        bonds = state.cos * (state.x + self.x) + state.sin * (state.y + self.y)
        total = -0.5 * np.sum(bonds, axis=1)
        if self.drive is not None:
            total -= np.sum(self.drive * state.moving, axis=1)
        if self.couplings.local:
            total += self.couplings.local.energy(state.moving)
        return total if self.pull is None else total + self.pull.energy(state.moving)

    def diagonal(self, state: Fields) -> FloatArray:
        """Return the diagonal of the Laplacian without the nudge, (B, n)."""
        diagonal = state.cos * state.x + state.sin * state.y
        if self.couplings.local:
            diagonal += self.couplings.local.stiffness(state.moving)
        return diagonal

    def product(self, state: Fields, diagonal: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the Laplacian of every sample times its vector, (B, n)."""
        result = diagonal * vectors - state.cos * self.couplings.times(state.cos * vectors)
        result -= state.sin * self.couplings.times(state.sin * vectors)
        if self.pull is not None:
            chosen = vectors[:, self.pull.nodes]
            result[:, self.pull.nodes] += np.einsum("bij,bj->bi", self.pull.hessian(state.moving), chosen)
        return result

    def solve(self, state: Fields, right: FloatArray, accuracy: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Solve L v = right to a share ``accuracy`` (B,) of it; the mask says where L was found positive definite."""
        if self.eliminates:
            return self.elimination.solve(self.batch, self.pull, state.moving, right)
        return self._by_gradients(state, right, accuracy)

    def newton(self, state: Fields, accuracy: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Solve L d = F; the mask says where L was found positive definite."""
        return self.solve(state, state.force, accuracy)

    def turn(self, step: FloatArray) -> FloatArray:
        """Return the largest turn of an oscillator."""
        return np.asarray(np.max(np.abs(step), axis=1, initial=0.0))

    def stride(
        self, moving: FloatArray, tolerance: FloatArray, count: int, max_turn: float, share: float
    ) -> tuple[FloatArray, FloatArray, IntArray] | None:
        """Take full Newton steps while each leaves at most ``share`` of the squared force, where compiled code can.

        Return phases, residuals and steps of the last ones that were so; None where it cannot.
        """
        if not self.eliminates:
            return None
        return self.elimination.stride(self.batch, self.pull, moving, tolerance, count, max_turn, share)

    def exceeds(self, moving: FloatArray, floor: FloatArray) -> BoolArray:
        """Return where the smallest eigenvalue of the Laplacian is above ``floor`` (B,), by elimination."""
        return self.elimination.exceeds(self.batch, self.pull, moving, floor)

    @property
    def batch(self) -> Surroundings:
        """Fields and drives."""
        return Surroundings(self.x, self.y, self.drive)

    @property
    def elimination(self) -> Elimination:
        """The compiled way of the network."""
        rest = int(self.nodes.size) - self.first
        couplings = self.couplings
        assert couplings.harmonics is not None
        harmonics = couplings.harmonics
        return self.base.workspace.keep(
            "elimination", lambda: Elimination(couplings.inner, harmonics, self.first, rest)
        )

    def _by_gradients(self, state: Fields, right: FloatArray, accuracy: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Solve by conjugate gradients; all samples step together, those that are done by steps of length zero."""
        inverse, diagonal = self._shared_inverse(state), self.diagonal(state)
        target = accuracy * np.max(np.abs(right), axis=1)
        solution, rest = np.zeros_like(right), right.copy()
        towards = rest @ inverse
        direction, gain = towards.copy(), np.sum(rest * towards, axis=1)
        usable = np.ones(right.shape[0], dtype=bool)
        for _ in range(_INNER_STEPS):
            open_rows = usable & (np.max(np.abs(rest), axis=1) > target)
            if not np.any(open_rows):
                break
            image = self.product(state, diagonal, direction)
            curvature = np.sum(direction * image, axis=1)
            usable &= ~open_rows | (curvature > 0)
            length = np.where(open_rows & usable, gain / np.where(curvature > 0, curvature, 1.0), 0.0)[:, None]
            solution += length * direction
            rest -= length * image
            towards = rest @ inverse
            new = np.sum(rest * towards, axis=1)
            direction = towards + (new / np.where(gain > 0, gain, 1.0))[:, None] * direction
            gain = new
        return solution, usable

    def _shared_inverse(self, state: Fields) -> FloatArray:
        """Return the inverse of the mean Laplacian, or of a positive definite stand-in: the preconditioner for all."""
        coupling = self.base.workspace.keep("matrix", self.couplings.matrix)
        weights = coupling * ((state.cos.T @ state.cos + state.sin.T @ state.sin) / state.cos.shape[0])
        matrix = np.diag(np.mean(self.diagonal(state), axis=0)) - weights
        factor, failed = lapack.dpotrf(matrix, lower=1)
        if failed:
            strength = np.abs(coupling)
            outer = np.mean(np.hypot(self.x, self.y), axis=0)
            if self.couplings.local:
                outer += self.couplings.local.stiffest()[0]
            matrix = np.diag(np.sum(strength, axis=1) + outer + 1e-3 * np.max(strength, initial=0.0)) - strength
            factor, failed = lapack.dpotrf(matrix, lower=1)
        if failed:
            return np.eye(matrix.shape[0])
        inverse, _ = lapack.dpotri(factor, lower=1)
        return np.tril(inverse) + np.tril(inverse, -1).T
