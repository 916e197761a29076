r"""Batches on a CPU by compiled code: free states, responses and nudged states where one group can be eliminated.

Eight samples at a time settle in double precision, whatever the type of the tensors, each in a lane of its own
(`phasegrad.linearised.Elimination`): no sample depends on the others in its batch, to the last bit. A sample descends
by sweeps, Newton's steps finish it, and a factorisation of the Laplacian says whether it stands there. At a saddle it
is pushed off and descends further.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from phasegrad._validation import BoolArray, FloatArray, IntArray
from phasegrad.kernels import COMPILES
from phasegrad.linearised import Elimination, Surroundings
from phasegrad.tensors._algebra import between
from phasegrad.tensors._batches import Batch, scattered
from phasegrad.tensors._links import States
from phasegrad.tensors._settling import Settled, Shifts, push

# Sweeps before Newton's first steps, and at most before any later ones.
_SWEEPS, _MOST_AT_ONCE = 6, 96
# Newton's steps at once, the most that one turns an oscillator by, and the share of the squared force that it leaves.
_STEPS, _TURN, _SHARE = 12, 1.0, 0.25
# Sweeps before each attempt at a nudged state, and its residual as a share of the nudge.
_NUDGED_SWEEPS, _NUDGED_LEFT = (0, 32, 1024), 1e-9


class Found(NamedTuple):
    """States of a batch, and which of them are equilibria at which the Laplacian is positive definite, (B,)."""

    reached: Settled
    settled: Tensor


def compiles(batch: Batch) -> bool:
    """Whether compiled code takes a batch."""
    return COMPILES and batch.structure.hidden is not None and batch.held.device.type == "cpu"


class Eliminated:
    """A batch as compiled code takes it: its larger group first, the one of a few after it.

    Parameters
    ----------
    batch : Batch
    base : list of tensor
        Of every group, the field (2, B, ...) of all that is held.
    """

    def __init__(self, batch: Batch, base: Sequence[Tensor]) -> None:
        assert batch.structure.hidden is not None
        self.batch, self.groups = batch, batch.structure.hidden
        self.first, self.rest = (batch.structure.groups[k].size for k in self.groups)
        whole = self.first + self.rest
        blocks = ((slice(0, self.first), slice(self.first, whole), _array(between(batch, *self.groups))),)
        self.elimination = Elimination(blocks, np.zeros((0, 2, whole)), self.first, self.rest)
        x, y = (self._joined([part[axis] for part in base[1:]]) for axis in (0, 1))
        self.surroundings = Surroundings(x, y, self._drive())

    @classmethod
    def around(cls, batch: Batch, free: Settled) -> Eliminated:
        """Return the same around states whose local fields are known."""
        own = [batch.field_on(k, free.states, None) for k in batch.structure.moving]
        return cls(batch, [batch.held, *(field - mine for field, mine in zip(free.fields[1:], own, strict=True))])

    def settle(self, aims: float, limits: float, most: int) -> Found:
        """Let every sample settle from phase zero until its largest force is below the aim.

        A sample whose force stops falling, above that and below the limit, has settled too.
        """
        x, y, drive = self.surroundings.x, self.surroundings.y, self.surroundings.drive
        start = np.zeros_like(x)
        phases, left = start.copy(), np.full(len(x), np.inf)
        taken, settled = np.zeros(len(x), dtype=np.int64), np.zeros(len(x), dtype=bool)
        known = np.isfinite(x).all(1) & np.isfinite(y).all(1)
        rows = np.flatnonzero(known if drive is None else known & np.isfinite(drive).all(1))
        sweeps, done = min(_SWEEPS, most), 0
        while rows.size and done < most:
            descended, found, residual, stands = self._descended(rows, start[rows], sweeps, aims)
            done += sweeps
            rests = residual <= limits
            start[rows] = descended
            saddles = rests & ~stands
            if saddles.any():
                start[rows[saddles]] = self._pushed(rows[saddles], found[saddles])
            phases[rows], left[rows], taken[rows], settled[rows] = found, residual, done, rests & stands
            rows = rows[~(rests & stands)]
            sweeps = min(2 * sweeps, _MOST_AT_ONCE, most - done)
        states = self._states(phases)
        fields = self.batch.fields(states)
        kind = self.batch.held.dtype
        reached = Settled(states, fields, torch.from_numpy(left).to(kind), torch.from_numpy(taken))
        return Found(reached, torch.from_numpy(settled))

    def respond(self, states: Sequence[Tensor], right: Sequence[Tensor]) -> tuple[list[Tensor], Tensor]:
        """Return M^-1 of a right-hand side over the groups that move, and where M is positive definite, (B,)."""
        solution, definite = self.elimination.solve(
            self.surroundings, None, self._phases(states), self._joined(right[1:])
        )
        return self._parts(solution), torch.from_numpy(definite & np.isfinite(solution).all(1))

    def nudged(self, states: Sequence[Tensor], torques: Sequence[Tensor], rounding: float) -> Shifts:
        """Return how states shift under constant torques (B, M) on the outputs, one after the other.

        Differences are taken in double precision, and Newton's steps go on until what is left of the force is a
        billionth of the torque, or what rounding leaves.
        """
        free, _, _ = self._strode(self.surroundings, self._phases(states), rounding)
        shifts, residuals = [], []
        for torque in torques:
            goal = np.maximum(rounding, _NUDGED_LEFT * np.abs(_array(torque)).max(1, initial=0.0))
            moved, left = self._under(torque, free, goal)
            half, middle = (moved - free) / 2, (moved + free) / 2
            across = [2 * np.sin(half) * part for part in (-np.sin(middle), np.cos(middle))]
            shifts.append([torch.stack(pair) for pair in zip(*map(self._parts, across), strict=True)])
            residuals.append(np.where(left <= goal, left, np.inf))
        whole = [torch.cat(side, dim=1) for side in zip(*(side[1:] for side in shifts), strict=True)]
        left_over = torch.from_numpy(np.concatenate(residuals)).to(self.batch.held.dtype)
        held = torch.zeros_like(torch.cat([states[0]] * len(torques), dim=1))
        return Shifts([held, *whole], left_over)

    def _descended(
        self, rows: IntArray, start: FloatArray, sweeps: int, aims: float
    ) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
        """Return phases after sweeps, and after Newton's steps, the residuals there, and where the samples stand."""
        part = self._take(rows)
        descended = self.elimination.align(part, start, sweeps, 0.0)
        found, left, _ = self._strode(part, descended, aims)
        stands = self.elimination.exceeds(part, None, found, np.zeros(rows.size))
        return descended, found, left, stands

    def _strode(
        self, part: Surroundings, start: FloatArray, goal: float | FloatArray
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        goals = np.broadcast_to(np.asarray(goal, dtype=float), len(start))
        return self.elimination.stride(part, None, start, goals, _STEPS, _TURN, _SHARE)

    def _under(self, torque: Tensor, free: FloatArray, goal: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return phases under a torque on the outputs, and the largest force left."""
        outputs = self.batch.structure.outputs
        like = [self.batch.base[k][0] for k in self.batch.structure.moving]
        parts = [scattered(outputs, torque, k, part) for k, part in enumerate(like, start=1)]
        drive = self._joined(parts)
        if self.surroundings.drive is not None:
            drive = drive + self.surroundings.drive
        moved, left = free.copy(), np.full(len(free), np.inf)
        rows = np.arange(len(free))
        for sweeps in _NUDGED_SWEEPS:
            part = Surroundings(self.surroundings.x[rows], self.surroundings.y[rows], drive[rows])
            start = self.elimination.align(part, free[rows], sweeps, 0.0) if sweeps else free[rows]
            moved[rows], left[rows], _ = self._strode(part, start, goal[rows])
            rows = rows[~(left[rows] <= goal[rows])]
            if not rows.size:
                break
        return moved, left

    def _pushed(self, rows: IntArray, phases: FloatArray) -> FloatArray:
        """Return phases of some samples turned along a direction in which the energy falls."""
        part = self.batch.take(torch.from_numpy(rows))
        turns = push(part, [part.held, *self._states(phases)[1:]])
        large, few = self.groups
        return phases + np.concatenate([_array(turns[k].flatten(1)) for k in (large, few)], axis=1)

    def _take(self, rows: IntArray) -> Surroundings:
        whole = self.surroundings
        if rows.size == len(whole.x):
            return whole
        return Surroundings(whole.x[rows], whole.y[rows], None if whole.drive is None else whole.drive[rows])

    def _drive(self) -> FloatArray | None:
        """Return the frequencies of all oscillators that move, (B, n)."""
        omegas = [self.batch.omegas[k] for k in self.batch.structure.moving]
        if all(each is None for each in omegas):
            return None
        like = [self.batch.base[k][0] for k in self.batch.structure.moving]
        return self._joined(
            [
                torch.zeros_like(part) if own is None else own.expand_as(part)
                for own, part in zip(omegas, like, strict=True)
            ]
        )

    def _joined(self, parts: Sequence[Tensor]) -> FloatArray:
        """Return numbers (B, ...) of the groups that move side by side in the order of the compiled code, (B, n)."""
        large, few = (parts[k - 1].flatten(1) for k in self.groups)
        return _array(torch.cat((large, few), dim=1))

    def _parts(self, values: FloatArray) -> list[Tensor]:
        """Return such numbers as tensors of the groups, the held one first, which has none."""
        whole = torch.from_numpy(values).to(self.batch.held.dtype)
        parts = [whole.new_zeros(()), whole, whole]
        for k, part in zip(self.groups, torch.split(whole, [self.first, self.rest], dim=1), strict=True):
            parts[k] = part.unflatten(1, self.batch.structure.groups[k].shape)
        return parts

    def _states(self, phases: FloatArray) -> States:
        cosines, sines = self._parts(np.cos(phases)), self._parts(np.sin(phases))
        pairs = zip(cosines[1:], sines[1:], strict=True)
        return [self.batch.held, *(torch.stack(pair) for pair in pairs)]

    def _phases(self, states: Sequence[Tensor]) -> FloatArray:
        """Return phases (B, n) in double precision."""
        return self._joined([torch.atan2(part[1].double(), part[0].double()) for part in states[1:]])


def _array(tensor: Tensor) -> FloatArray:
    return tensor.detach().double().numpy()
