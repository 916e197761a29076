r"""A batch of samples of one sine-coupled network, by products of matrices.

Only the n oscillators that move appear, group by group (`Graph.blocks`). Held neighbours and fields act on oscillator i
together as one field x_i + i y_i of the sample, and with c = cos theta, s = sin theta and the symmetric coupling K,

    X = x + K c,   Y = y + K s           the local field of every oscillator
    F = omega + c Y - s X                the force: two matrix products instead of n x n sines
    D = c X + s Y                        how far it lies along its local field, the diagonal of the Laplacian
    L v = D v - c K(c v) - s K(s v)      the Laplacian, applied without being built
    E = -omega.theta - (c.(X + x) + s.(Y + y)) / 2

each plus the nudge, and force, diagonal and energy plus what every oscillator feels by its own phase alone
(`phasegrad.linearised._local`). Where one colour holds nearly all oscillators, compiled code eliminates it
(`phasegrad.linearised._elimination`). Otherwise conjugate gradients share one Cholesky factor, that of the mean
Laplacian. Rounding of a matrix product depends on the size of the batch: results agree between batches to the
tolerance, not bit by bit.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.dynamics import Pull, System
from phasegrad.graphs import lazy_property
from phasegrad.kernels import COMPILES
from phasegrad.linearised._bounds import surely_stable
from phasegrad.linearised._dense import DenseLaplacian
from phasegrad.linearised._elimination import Elimination, Surroundings
from phasegrad.linearised._factors import Cholesky
from phasegrad.linearised._linearised import Linearised, Strides, Verdict, verdicts
from phasegrad.linearised._local import LocalTerms
from phasegrad.terms import cosines

# Conjugate gradients beyond which a sample is left to a solver that takes it alone.
_INNER_STEPS = 40
# What a solve may leave of its right-hand side and still count as an answer.
_LEFT = 1e-6
# What is left after a group may be eliminated as long as the products of its columns fit.
_FEW_PRODUCTS = 2_000_000


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
        """Return the couplings of a system that `PhasorLaplacian.fits`."""
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
class Phasors:
    """B samples of one network: shared couplings, and per sample what drives it and the field of what is held.

    The samples are ``rows`` of the system ``base``, all of them where that is None; ``held`` are cosine and sine of the
    held phases of ``base``.
    """

    base: System
    rows: IntArray | None
    couplings: Couplings
    drive: FloatArray | None
    x: FloatArray
    y: FloatArray
    held: tuple[FloatArray, FloatArray]
    pull: Pull | None = None

    @classmethod
    def of(cls, system: System, held: tuple[FloatArray, FloatArray] | None = None) -> Phasors:
        """Return the samples of a system; ``held`` may hand over cosine and sine of its held phases."""
        blocks, batch = system.graph.blocks, system.batch
        couplings = system.workspace.keep("couplings", lambda: Couplings.of(system))
        cos, sin = cosines(system.held_phases) if held is None else held
        x, y = (part.repeat(batch, axis=0) for part in couplings.fields)
        for rows, columns, block in couplings.outer:
            x[:, columns] += cos[:, rows] @ block
            y[:, columns] += sin[:, rows] @ block
        drive = system.drive.take(blocks.order, axis=1)
        driven = np.broadcast_to(drive, x.shape) if drive.any() else None
        phasors = cls(system, None, couplings, driven, x, y, (cos, sin))
        return phasors if system.pull is None else phasors.nudged(system.pull)

    def nudged(self, pull: Pull) -> Phasors:
        """Return the same under a nudge whose nodes are numbers of the graph."""
        place = np.empty(self.base.graph.size, dtype=np.int64)
        place[self.nodes] = np.arange(self.nodes.size)
        return dataclasses.replace(self, pull=dataclasses.replace(pull, nodes=place[pull.nodes]))

    def take(self, rows: Array) -> Phasors:
        """Return some of the samples."""
        every = np.arange(self.base.batch) if self.rows is None else self.rows
        return dataclasses.replace(
            self,
            rows=every[rows],
            drive=None if self.drive is None else self.drive[rows],
            x=self.x[rows],
            y=self.y[rows],
            pull=None if self.pull is None else self.pull.take(rows),
        )

    @lazy_property
    def system(self) -> System:
        """The force balance they stand for."""
        taken = self.base if self.rows is None else self.base.take(self.rows)
        if self.pull is None:
            return taken
        return taken.replace(pull=dataclasses.replace(self.pull, nodes=self.nodes[self.pull.nodes]))

    @property
    def nodes(self) -> IntArray:
        """The oscillators that move, group by group."""
        return self.base.graph.blocks.order

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

    @property
    def surroundings(self) -> Surroundings:
        """Fields and drives, as compiled code takes them."""
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


class PhasorLaplacian(Linearised):
    """Samples of one sine-coupled network at some phases, by products of matrices."""

    name = "phasor"
    descends = False

    def __init__(self, phasors: Phasors, moving: Array) -> None:
        self.phasors, self.moving = phasors, moving

    @classmethod
    def of(cls, system: System, phases: Array, preconditioner: str = "auto") -> PhasorLaplacian:
        """Return the linearised system at phases (B, N); see `fits`."""
        del preconditioner
        phasors = Phasors.of(system)
        return cls(phasors, phases.take(phasors.nodes, axis=1))

    @staticmethod
    def fits(system: System) -> bool:
        """Return whether matrix products can stand in for a system: sine coupling, fields, real, one network."""
        known = all(term.phasor or (term.local and not term.drives) for term in system.terms)
        return known and system.has_energy and system.shared and system.graph.has_blocks

    @staticmethod
    def entries(system: System) -> int:
        """Return how many numbers a sample takes: cosines, fields and the vectors of conjugate gradients."""
        return 2 * int(system.graph.held.size) + 16 * int(system.graph.free.size)

    @property
    def system(self) -> System:  # type: ignore[override]
        """The force balance it stands for."""
        return self.phasors.system

    @property
    def nodes(self) -> IntArray:
        """The oscillators that move, group by group."""
        return self.phasors.nodes

    @lazy_property
    def phases(self) -> Array:
        """The phases of all oscillators, (B, N)."""
        phases = np.empty((self.moving.shape[0], self.system.graph.size))
        phases[:, self.system.graph.held], phases[:, self.nodes] = self.system.held_phases, self.moving
        return phases

    def at(self, moving: Array) -> PhasorLaplacian:
        """Return the same samples at other phases (B, n)."""
        return PhasorLaplacian(self.phasors, moving)

    def take(self, rows: Array) -> PhasorLaplacian:
        """Return some of the samples."""
        part = PhasorLaplacian(self.phasors.take(rows), self.moving[rows])
        for name in ("force", "diagonal"):
            if name in self.__dict__:
                part.__dict__[name] = self.__dict__[name][rows]
        if "_fields" in self.__dict__:
            part.__dict__["_fields"] = tuple(values[rows] for values in self._fields)
        return part

    def nudged(self, pull: Pull) -> PhasorLaplacian:
        """Return the same states under a nudge whose nodes are numbers of the graph."""
        return PhasorLaplacian(self.phasors.nudged(pull), self.moving)

    @lazy_property
    def _fields(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Cosine and sine of the phases, and the local field they cause, (B, n) each: two matrix products."""
        cos, sin = cosines(self.moving)
        times = self.phasors.couplings.times
        return cos, sin, self.phasors.x + times(cos), self.phasors.y + times(sin)

    @lazy_property
    def force(self) -> Array:
        """The force on the oscillators that move, (B, n)."""
        cos, sin, x, y = self._fields
        phasors, force = self.phasors, cos * y - sin * x
        if phasors.drive is not None:
            force += phasors.drive
        if phasors.couplings.local:
            force += phasors.couplings.local.force(self.moving)
        if phasors.pull is not None:
            force[:, phasors.pull.nodes] += phasors.pull.force(self.moving)
        return force

    @lazy_property
    def energy(self) -> Array:
        """The energy of every sample, (B,)."""
        (cos, sin, x, y), phasors = self._fields, self.phasors
        bonds = cos * (x + phasors.x) + sin * (y + phasors.y)
        total = -0.5 * np.sum(bonds, axis=1)
        if phasors.drive is not None:
            total -= np.sum(phasors.drive * self.moving, axis=1)
        if phasors.couplings.local:
            total += phasors.couplings.local.energy(self.moving)
        return total if phasors.pull is None else total + phasors.pull.energy(self.moving)

    @lazy_property
    def diagonal(self) -> FloatArray:
        """The diagonal of the Laplacian without the nudge, (B, n)."""
        cos, sin, x, y = self._fields
        diagonal = cos * x + sin * y
        if self.phasors.couplings.local:
            diagonal += self.phasors.couplings.local.stiffness(self.moving)
        return diagonal

    def matvec(self, vectors: Array) -> Array:
        """Return L v of vectors (B, n)."""
        (cos, sin, _, _), times, pull = self._fields, self.phasors.couplings.times, self.phasors.pull
        result = self.diagonal * vectors - cos * times(cos * vectors)
        result -= sin * times(sin * vectors)
        if pull is not None:
            chosen = vectors[:, pull.nodes]
            result[:, pull.nodes] += np.einsum("bij,bj->bi", pull.hessian(self.moving), chosen)
        return np.asarray(result)

    def newton(self, accuracy: FloatArray, rests: BoolArray) -> tuple[Array, BoolArray]:
        """Solve L d = F; the mask says where L was found positive definite."""
        del rests
        return self._solved(self.force, accuracy)

    def _solve(self, right: Array, *, transposed: bool, accuracy: float) -> tuple[Array, BoolArray]:
        """Solve L x = b, b (B, n); the mask says where L was found positive definite and the answer solves it."""
        del transposed
        solution, found = self._solved(right, np.full(right.shape[0], accuracy))
        rest = right - self.matvec(solution)
        found &= np.max(np.abs(rest), axis=1) <= _LEFT * (1e-300 + np.max(np.abs(right), axis=1))
        return solution, found

    def _solved(self, right: FloatArray, accuracy: FloatArray) -> tuple[FloatArray, BoolArray]:
        phasors = self.phasors
        if phasors.eliminates:
            return phasors.elimination.solve(phasors.surroundings, phasors.pull, self.moving, right)
        return self._by_gradients(right, accuracy)

    def stride(
        self, tolerance: FloatArray, count: int, max_turn: float, share: float, *, polish: bool
    ) -> Strides | None:
        """Take full Newton steps where compiled code can, and none to polish; see `Linearised.stride`."""
        phasors = self.phasors
        if polish or not phasors.eliminates:
            return None
        strode = phasors.elimination.stride(
            phasors.surroundings, phasors.pull, self.moving, tolerance, count, max_turn, share
        )
        return Strides(*strode)

    def definite(self, floor: FloatArray | None = None, *, explain: bool = False) -> IntArray:
        """Return the verdict on every sample; see `Linearised.definite`."""
        system, phasors = self.system, self.phasors
        least = system.eigenvalue_rounding if floor is None else floor
        if phasors.eliminates:
            stable = phasors.elimination.exceeds(phasors.surroundings, phasors.pull, self.moving, least)
        else:
            stable = surely_stable(system, self.phases) & (least <= system.eigenvalue_rounding)
            left = np.flatnonzero(~stable)
            dense = DenseLaplacian.of(system.take(left), self.phases[left])
            stable[left] = dense.definite(least[left]) == Verdict.STABLE
        verdict = verdicts(stable)
        if explain:
            left = np.flatnonzero(~stable)
            verdict[left] = DenseLaplacian.of(system.take(left), self.phases[left]).explained()
        return verdict

    def smallest(self) -> tuple[FloatArray, FloatArray]:
        """Return the smallest eigenvalue of every sample and a bound on its error, by dense matrices."""
        return DenseLaplacian.of(self.system, self.phases).smallest()

    def _by_gradients(self, right: FloatArray, accuracy: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Solve by conjugate gradients; all samples step together, those that are done by steps of length zero."""
        inverse = self._shared_inverse()
        target = accuracy * np.max(np.abs(right), axis=1)
        solution, rest = np.zeros_like(right), right.copy()
        towards = rest @ inverse
        direction, gain = towards.copy(), np.sum(rest * towards, axis=1)
        usable = np.ones(right.shape[0], dtype=bool)
        for _ in range(_INNER_STEPS):
            open_rows = usable & (np.max(np.abs(rest), axis=1) > target)
            if not np.any(open_rows):
                break
            image = self.matvec(direction)
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

    def _shared_inverse(self) -> FloatArray:
        """Return the inverse of the mean Laplacian, or of a positive definite stand-in: the preconditioner for all."""
        phasors, (cos, sin, _, _) = self.phasors, self._fields
        coupling = phasors.base.workspace.keep("matrix", phasors.couplings.matrix)
        weights = coupling * ((cos.T @ cos + sin.T @ sin) / cos.shape[0])
        matrix = np.diag(np.mean(self.diagonal, axis=0)) - weights
        factor = Cholesky.of(matrix)
        if factor is None:
            strength = np.abs(coupling)
            outer = np.mean(np.hypot(phasors.x, phasors.y), axis=0)
            if phasors.couplings.local:
                outer += phasors.couplings.local.stiffest()[0]
            matrix = np.diag(np.sum(strength, axis=1) + outer + 1e-3 * np.max(strength, initial=0.0)) - strength
            factor = Cholesky.of(matrix)
        return np.eye(matrix.shape[0]) if factor is None else factor.inverse()
