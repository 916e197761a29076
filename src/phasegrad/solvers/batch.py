r"""Batch Newton: a whole batch of equilibria of one sine-coupled network, by matrix products.

Three pieces, each chosen by what the network is:

- Field alignment. With all others fixed, the energy of an oscillator is lowest where it points along its local field
  (turned by asin(omega / field) if it has a frequency). Oscillators of one colour are not coupled to each other and
  turn together: one product of matrices per colour, and the energy never rises. It brings signed, layered networks near
  a stable state from anywhere.
- Newton by elimination, where one colour holds nearly all oscillators: one small Schur complement per sample, whose
  Cholesky factor also tells whether the Laplacian is positive definite.
- Newton by conjugate gradients otherwise, preconditioned for all samples by the Cholesky factor of the mean Laplacian.

A step must lower the energy or the force. What is not settled in the end goes to `GuardedNewton`, sample by sample.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from phasegrad.dynamics import System
from phasegrad.solvers.contract import Solution
from phasegrad.solvers.dense import DenseSystem, State
from phasegrad.solvers.newton import BranchNewton, GuardedNewton
from phasegrad.validation import BoolArray, FloatArray, positive_float, whole_number

Array = NDArray[Any]

_COLOURS = 4
_ALIGNED = 0.02
_STRAGGLERS = 0.02
_INNER = 1e-3
_INNER_STEPS = 40
_ROUNDS = 3


@dataclass(frozen=True)
class BatchNewton:
    """Newton's method for a batch of samples of one network with reciprocal sine coupling.

    Any other system is handed to `GuardedNewton` (`BranchNewton` if it follows a branch) as it is.

    Parameters
    ----------
    max_steps : int
        Newton steps after which a sample is left to the fallback.
    sweeps : int
        Most sweeps of field alignment before Newton, for networks of few colours.
    max_turn : float
        No oscillator turns by more than this many radians in one Newton step.
    follow : bool
        Stay with the equilibrium near the start: no alignment. Made for nudges and small changes of parameters.
    fallback : bool
        Whether what did not settle is tried again, sample by sample.
    """

    max_steps: int = 20
    sweeps: int = 30
    max_turn: float = 1.0
    follow: bool = False
    fallback: bool = True
    descend: GuardedNewton = field(default_factory=GuardedNewton)
    branch: BranchNewton = field(default_factory=BranchNewton)

    def __post_init__(self) -> None:
        whole_number("max_steps", self.max_steps, 1, "BatchNewton")
        whole_number("sweeps", self.sweeps, 0, "BatchNewton")
        positive_float("max_turn", self.max_turn, "BatchNewton")

    def solve(self, system: System, start: Array, tolerance: FloatArray) -> Solution:
        """Return phases near ``start`` whose residual is at most ``tolerance``, or the best found."""
        slow = self.branch if self.follow else self.descend
        if not DenseSystem.fits(system) or system.batch == 0:
            return slow.solve(system, start, tolerance)
        free = system.network.free
        dense = DenseSystem.of(system)
        moving, left, steps = self.settle(dense, np.take(start, free, axis=1), tolerance)
        phases = start.copy()
        phases[:, free] = moving
        lost = np.flatnonzero(~(left <= tolerance))
        if lost.size and self.fallback:
            again = slow.solve(system.take(lost), start[lost], tolerance[lost])
            phases[lost], left[lost] = again.phases, again.residual
            steps[lost] += again.steps
        return Solution(phases, left, steps)

    def settle(self, dense: DenseSystem, start: FloatArray, tolerance: FloatArray) -> tuple[Array, Array, Array]:
        """Return phases (B, n) of the oscillators that move, their residuals (B,) and the steps taken (B,)."""
        phases = start.copy()
        left = np.full(dense.batch, np.inf)
        steps = np.zeros(dense.batch, dtype=np.int64)
        aligns = (
            not self.follow and self.sweeps > 0 and 0 < len(dense.network.colours) <= _COLOURS and dense.pull is None
        )
        active = np.arange(dense.batch)
        for _ in range(_ROUNDS if aligns else 1):
            part = dense if active.size == dense.batch else dense.take(active)
            first = align(part, phases[active], self.sweeps) if aligns else phases[active]
            found, residual, taken = self._newton(part, first, tolerance[active])
            done = residual <= tolerance[active]
            # What Newton left astray goes on from where alignment had brought it, always downhill.
            phases[active] = np.where(done[:, None], found, first)
            left[active], steps[active] = residual, steps[active] + taken
            active = active[~done]
            if active.size == 0:
                break
        return phases, left, steps

    def _newton(self, dense: DenseSystem, phases: FloatArray, tolerance: FloatArray) -> tuple[Array, Array, Array]:
        count = dense.batch
        result, left = phases.copy(), np.full(count, np.inf)
        steps = np.zeros(count, dtype=np.int64)
        rows, state = np.arange(count), dense.state(phases)
        force = dense.force(state)
        by_elimination = dense.eliminates_cheaply
        inverse = None if by_elimination else _shared_inverse(dense, state)
        left[:] = np.max(np.abs(force), axis=1, initial=0.0)
        for _ in range(self.max_steps):
            going = left[rows] > tolerance[rows]
            if not np.any(going):
                break
            if not np.all(going):
                rows, dense, force = rows[going], dense.take(going), force[going]
                state = State(*(values[going] for values in state))
            if by_elimination:
                step, usable = dense.solve(state, force)
            else:
                assert inverse is not None
                step, usable = _conjugate_gradients(dense, state, force, inverse, tolerance[rows])
            largest = np.max(np.abs(step), axis=1, initial=0.0)
            step *= np.minimum(1.0, self.max_turn / np.maximum(largest, 1e-300))[:, None]
            state, force, kept = _guarded(dense, state, force, step, usable)
            steps[rows] += 1
            left[rows] = np.max(np.abs(force), axis=1, initial=0.0)
            result[rows] = state.phases
            left[rows[~kept]] = np.inf
            if not np.all(kept):
                rows, dense, force = rows[kept], dense.take(kept), force[kept]
                state = State(*(values[kept] for values in state))
        return result, left, steps


def align(dense: DenseSystem, phases: FloatArray, sweeps: int) -> FloatArray:
    """Return phases (B, n) after turning every oscillator along its local field, colour by colour.

    Stops early once nearly all samples have come to rest. An oscillator whose frequency exceeds its local field turns a
    quarter away from it, as far as it can.
    """
    groups = dense.network.colours
    cos = [np.cos(phases[:, group]) for group in groups]
    sin = [np.sin(phases[:, group]) for group in groups]
    outer = [(dense.field_x[:, group], dense.field_y[:, group], dense.omega[:, group]) for group in groups]
    blocks = [
        [(k, block) for k, other in enumerate(groups) if np.any(block := dense.coupling[np.ix_(other, group)])]
        for group in groups
    ]
    driven = bool(np.any(dense.omega))
    smallest = int(np.argmin([group.size for group in groups]))
    for _ in range(sweeps):
        for g, (x, y, omega) in enumerate(outer):
            for k, block in blocks[g]:
                x, y = x + cos[k] @ block, y + sin[k] @ block
            length = np.maximum(np.sqrt(x * x + y * y), 1e-300)
            x, y = x / length, y / length
            if driven:
                lead = np.clip(omega / length, -1.0, 1.0)
                along = np.sqrt(1.0 - lead * lead)
                x, y = x * along - y * lead, y * along + x * lead
            if g == smallest:
                turned = np.max(np.abs(x - cos[g]) + np.abs(y - sin[g]), axis=1, initial=0.0)
            cos[g], sin[g] = x, y
        if np.mean(turned > _ALIGNED) <= _STRAGGLERS:
            break
    result = np.empty_like(phases)
    for g, group in enumerate(groups):
        result[:, group] = np.arctan2(sin[g], cos[g])
    return result


def solve_laplacian(dense: DenseSystem, state: State, right: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Solve L v = right for every sample, to rounding; the mask says where L was found positive definite."""
    if dense.eliminates_cheaply:
        return dense.solve(state, right)
    inverse = _shared_inverse(dense, state)
    solution, usable = _conjugate_gradients(dense, state, right, inverse, np.zeros(dense.batch), 1e-12)
    rest = right - dense.product(state, dense.diagonal(state), solution)
    return solution, usable & (np.max(np.abs(rest), axis=1) <= 1e-6 * (1e-300 + np.max(np.abs(right), axis=1)))


def _guarded(
    dense: DenseSystem, state: State, force: FloatArray, step: FloatArray, usable: BoolArray
) -> tuple[State, FloatArray, BoolArray]:
    """Return state and force after the step, halved where neither force nor energy falls, and where one fell."""
    moved = dense.state(state.phases + step)
    after = dense.force(moved)
    before = np.sum(force**2, axis=1)
    good = usable & (np.sum(after**2, axis=1) < before)
    waiting = np.flatnonzero(usable & ~good)
    if waiting.size == 0:
        return moved, after, good
    phases = moved.phases.copy()
    energy = dense.take(waiting).energy(State(*(values[waiting] for values in state)))
    fraction = 1.0
    for _ in range(6):
        part = dense.take(waiting)
        trial = part.state(phases[waiting])
        lower = part.energy(trial) < energy
        passed = lower | (np.sum(part.force(trial) ** 2, axis=1) < before[waiting])
        good[waiting[passed]] = True
        waiting, energy = waiting[~passed], energy[~passed]
        if waiting.size == 0:
            break
        fraction /= 2
        phases[waiting] = state.phases[waiting] + fraction * step[waiting]
    moved = dense.state(phases)
    return moved, dense.force(moved), good


def _shared_inverse(dense: DenseSystem, state: State) -> FloatArray:
    """Return the inverse of the mean Laplacian, or of a positive definite stand-in: the preconditioner for all."""
    matrix = dense.mean_laplacian(state)
    size = matrix.shape[0]
    factor, failed = lapack.dpotrf(matrix, lower=1)
    if failed:
        weights = np.abs(dense.coupling)
        outer = np.mean(np.hypot(dense.field_x, dense.field_y), axis=0)
        matrix = np.diag(np.sum(weights, axis=1) + outer + 1e-3 * np.max(weights, initial=0.0)) - weights
        factor, failed = lapack.dpotrf(matrix, lower=1)
    if failed:
        return np.eye(size)
    inverse, _ = lapack.dpotri(factor, lower=1)
    return np.tril(inverse) + np.tril(inverse, -1).T


def _conjugate_gradients(
    dense: DenseSystem,
    state: State,
    right: FloatArray,
    inverse: FloatArray,
    tolerance: FloatArray,
    accuracy: float = _INNER,
) -> tuple[FloatArray, BoolArray]:
    """Solve L v = right for every sample, to a share of ``right``; the mask says where no negative curvature was met.

    All samples step together; those that are done take steps of length zero.
    """
    diagonal = dense.diagonal(state)
    target = np.maximum(accuracy * np.max(np.abs(right), axis=1), 0.1 * tolerance)
    solution = np.zeros_like(right)
    rest = right.copy()
    towards = rest @ inverse
    direction = towards.copy()
    gain = np.sum(rest * towards, axis=1)
    usable = np.ones(dense.batch, dtype=bool)
    for _ in range(_INNER_STEPS):
        open_rows = usable & (np.max(np.abs(rest), axis=1) > target)
        if not np.any(open_rows):
            break
        image = dense.product(state, diagonal, direction)
        curvature = np.sum(direction * image, axis=1)
        usable &= ~open_rows | (curvature > 0)
        length = np.where(open_rows & usable, gain / np.where(curvature > 0, curvature, 1.0), 0.0)[:, None]
        solution += length * direction
        rest -= length * image
        towards = rest @ inverse
        new = np.sum(rest * towards, axis=1)
        ratio = new / np.where(gain > 0, gain, 1.0)
        direction = towards + ratio[:, None] * direction
        gain = new
    return solution, usable
