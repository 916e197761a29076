"""Free and nudged states of a batch, by sweeps and, where one group can be eliminated, Newton's steps.

`settle` goes on until every sample has settled or given up; a step that a CUDA graph holds takes a fixed number of
sweeps instead (`sweeps_and_steps`), and what it leaves is counted.

A nudged state is kept as its difference d from the free state z, and its local field as h + W d: rounding is then
relative to the nudge, and products of low precision are good enough for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from phasegrad.tensors._algebra import Schur, Solved, conjugate
from phasegrad.tensors._batches import Batch, aligned, crossed, gathered, largest, scattered, turned
from phasegrad.tensors._links import States

#: The pull of nudges: the torque (times B, M) on outputs in states (2, times B, M), one nudge after the other.
Pull = Callable[[Tensor], Tensor]
# Sweeps between two looks at the residual, and without Newton's help at most.
_AT_ONCE, _MOST = 8, 400
_NEWTON_FROM = 0.3
_MOST_PRODUCTS = 50
_WIDEST = 0.5
# Where a state may fall: the numbers cos(stride k^2) stand for a random direction, products of conjugate gradients at
# most and the share of it that they may leave; and by how much the oscillator turns most that is pushed.
_STRIDE, _MOST_PROBED, _PROBED = 0.7320508, 300, 1e-3
_PUSH = 0.3


class Settled(NamedTuple):
    """States of a batch, their local fields, their largest forces (B,), and sweeps taken (B,)."""

    states: States
    fields: States
    residual: Tensor
    sweeps: Tensor


class Shifts(NamedTuple):
    """Nudged states as differences from free ones, (2, times B, ...), and the largest force left, (times B,)."""

    shifts: States
    residual: Tensor


def settle(batch: Batch, limits: Tensor, *, start: States | None = None, most: int = _MOST) -> Settled:
    """Let every sample settle until its largest force is below its limit (B,), from phase zero or from ``start``.

    A sample that comes to rest where it would fall is pushed off, and descends further. Which steps a sample takes, and
    whether it has settled, depends on the sample alone; residuals are those that this was decided by.
    """
    size = batch.size
    states = batch.cold() if start is None else list(start)
    sweeps = torch.zeros(size, dtype=torch.long, device=limits.device)
    residuals = torch.full_like(limits, torch.inf)
    rows = torch.arange(size, device=limits.device)
    part, mine, done = batch, states, 0
    while rows.numel() and done < most:
        part.sweep(mine, _AT_ONCE)
        done += _AT_ONCE
        fields = part.fields(mine)
        residual = part.residual(mine, fields)
        near = residual < _NEWTON_FROM
        if (part.structure.hidden is not None or done % (4 * _AT_ONCE) == 0) and bool(near.any()):
            mine, fields, residual = _newton(part, mine, fields, near, limits[rows] / 4)
        rests = residual <= limits[rows]
        falls = _falling(part, mine, fields, rests)
        residuals[rows], sweeps[rows] = residual, done
        going = (~rests | falls) & residual.isfinite()
        if bool(falls.any()):
            mine = _turned_where(part, mine, falls)
        for k in batch.structure.moving:
            states[k] = states[k].index_copy(1, rows, mine[k]) if part is not batch else mine[k]
        if not going.any():
            break
        rows = rows[going]
        part = batch.take(rows)
        mine = [each[:, rows] for each in states]
    return Settled(states, batch.fields(states), residuals, sweeps)


def _newton(
    batch: Batch, states: States, fields: States, near: Tensor, aims: Tensor, steps: int = 6
) -> tuple[States, States, Tensor]:
    """Return states after Newton's steps of the samples ``near`` (B,), their fields and largest forces.

    Of a sample no step is kept that does not lower its largest force, and none is taken after that, or below its aim.
    """
    residual = batch.residual(states, fields)
    for _ in range(steps):
        stiffness, forces = batch.stiffness(states, fields), batch.forces(states, fields)
        if batch.structure.hidden is not None:
            schur = Schur(batch, states, stiffness)
            step, found = schur.solve(forces), ~schur.failed
        else:
            step, found, _, _ = conjugate(batch, states, stiffness, forces, most=_MOST_PRODUCTS)
        trial = _moved(batch, states, step)
        ahead = batch.fields(trial)
        after = batch.residual(trial, ahead)
        better = found & near & (after < residual)
        states, fields = ([_chosen(better, a, b) for a, b in zip(*pair, strict=True)]
                          for pair in ((trial, states), (ahead, fields)))  # fmt: skip
        residual = torch.where(better, after, residual)
        near = better & (residual > aims)
        if not bool(near.any()):
            break
    return states, fields, residual


def _falling(batch: Batch, states: States, fields: States, rests: Tensor) -> Tensor:
    """Return which of the samples at rest (B,) would fall: the Laplacian is not positive definite there.

    A group that can be eliminated shows it in the factor of the Schur complement, any other network to conjugate
    gradients.
    """
    rows = rests.nonzero()[:, 0]
    falls = torch.zeros_like(rests)
    if not rows.numel():
        return falls
    part = batch.take(rows)
    mine, around = ([each[:, rows] for each in parts] for parts in (states, fields))
    stiffness = part.stiffness(mine, around)
    if part.structure.hidden is not None:
        falls[rows] = Schur(part, mine, stiffness).failed
    else:
        least = torch.stack([each.reshape(rows.numel(), -1).amin(1) for each in stiffness[1:] if each.numel()]).amin(0)
        falls[rows] = (least <= 0) | _probed(part, mine, stiffness).falls
    return falls


def _probed(batch: Batch, states: States, stiffness: Sequence[Tensor]) -> Solved:
    """Return what conjugate gradients find from a right-hand side that is the same for every sample."""
    right = [stiffness[0]]
    for each in stiffness[1:]:
        numbers = torch.arange(each[0].numel(), dtype=each.dtype, device=each.device)
        right.append(torch.cos(_STRIDE * numbers * numbers).reshape(1, *each.shape[1:]).expand_as(each))
    return conjugate(batch, states, stiffness, right, most=_MOST_PROBED, left=_PROBED)


def push(batch: Batch, states: States) -> list[Tensor]:
    """Return small turns (B, ...) of the groups that move, along which the energy of a state at rest falls.

    Samples for which no such direction is found are not turned.
    """
    fields = batch.fields(states)
    stiffness, forces = batch.stiffness(states, fields), batch.forces(states, fields)
    probed, size = _probed(batch, states, stiffness), batch.size
    length = largest(probed.direction[1:], size)
    downward = torch.stack(
        [(a * b).reshape(size, -1).sum(1) for a, b in zip(forces[1:], probed.direction[1:], strict=True)]
    ).sum(0)
    scale = torch.where(downward < 0, -_PUSH, _PUSH) / length
    scale = torch.where(probed.falls & scale.isfinite(), scale, 0.0)
    return [forces[0]] + [
        torch.nan_to_num(each) * scale.reshape(-1, *(1,) * (each.dim() - 1)) for each in probed.direction[1:]
    ]


def _turned_where(batch: Batch, states: States, falls: Tensor) -> States:
    """Return states, pushed off where they would fall."""
    rows = falls.nonzero()[:, 0]
    part, mine = batch.take(rows), [each[:, rows] for each in states]
    turns = push(part, mine)
    return [states[0]] + [states[k].index_copy(1, rows, turned(mine[k], turns[k])) for k in batch.structure.moving]


def sweeps_and_steps(batch: Batch, sweeps: int, steps: int) -> tuple[Settled, Schur | None]:
    """Return the states after so many sweeps and Newton's steps from phase zero, without waiting for the device.

    All steps share one factor, that of the states after the sweeps. It is handed back: it serves the nudged states too.
    """
    states = batch.cold()
    batch.sweep(states, sweeps)
    fields = batch.fields(states)
    schur = Schur(batch, states, batch.stiffness(states, fields)) if steps else None
    for _ in range(steps):
        assert schur is not None
        states = _moved(batch, states, schur.solve(batch.forces(states, fields)))
        fields = batch.fields(states)
    residual = batch.residual(states, fields)
    if schur is None:
        # One step more, oscillator by oscillator, makes states and fields agree to the last digit: see `nudge_sweeps`.
        states = [states[0]] + [aligned(fields[k], batch.omegas[k]) for k in batch.structure.moving]
    return Settled(states, fields, residual, torch.full_like(residual, sweeps, dtype=torch.long)), schur


def nudge_sweeps(batch: Batch, free: Settled, pull: Pull, times: int, sweeps: int) -> Shifts:
    """Return how states shift under several nudges, one after the other along the batch, after so many sweeps.

    Sweeps begin at the free states: a nudged state on another branch would be no small change.
    """
    doubled = _repeated(batch, free, times)
    shifts = [torch.zeros_like(each) for each in doubled.states]
    for _ in range(sweeps):
        for k in batch.structure.order:
            field = doubled.field(k, shifts)
            if doubled.is_nudged(k):
                field = field + doubled.pull(k, shifts, pull)
            shifts[k] = aligned(field, doubled.omegas[k]) - doubled.states[k]
    return Shifts(shifts, doubled.residual(shifts, pull))


def nudge_steps(batch: Batch, free: Settled, schur: Schur, pull: Pull, times: int, steps: int) -> Shifts:
    """Return the same by Newton's steps with the factor of the free states."""
    doubled = _repeated(batch, free, times)
    shifts = [torch.zeros_like(each) for each in doubled.states]
    moving = batch.structure.moving
    for _ in range(steps):
        step = schur.solve(doubled.forces(shifts, pull))
        for k in moving:
            shifts[k] = turned(doubled.states[k] + shifts[k], step[k]) - doubled.states[k]
    return Shifts(shifts, doubled.residual(shifts, pull))


class _Repeated:
    """Free states and fields, repeated for several nudges."""

    def __init__(self, batch: Batch, states: States, fields: States, omegas: list[Tensor | None], times: int) -> None:
        self.batch, self.states, self.base, self.omegas, self.times = batch, states, fields, omegas, times
        self.structure = batch.structure

    def field(self, group: int, shifts: Sequence[Tensor]) -> Tensor:
        """Return the local field of a group in the shifted state."""
        return self.batch.field_on(group, shifts, self.base[group])

    def is_nudged(self, group: int) -> bool:
        """Whether a group has outputs."""
        return any(k == group for k, _ in self.structure.outputs)

    def pull(self, group: int, shifts: Sequence[Tensor], pull: Pull) -> Tensor:
        """Return the nudge on a group as a field across its states."""
        torque, state = self.torque(group, shifts, pull), self.states[group] + shifts[group]
        return torch.stack((-state[1] * torque, state[0] * torque))

    def torque(self, group: int, shifts: Sequence[Tensor], pull: Pull) -> Tensor:
        """Return the nudge on the oscillators of a group, (times B, ...)."""
        outputs = gathered(self.structure.outputs, self.states) + gathered(self.structure.outputs, shifts)
        return scattered(self.structure.outputs, pull(outputs), group, self.states[group][0])

    def forces(self, shifts: Sequence[Tensor], pull: Pull) -> list[Tensor]:
        """Return the force on every oscillator that moves."""
        total = [self.states[0].new_zeros(())]
        for k in self.structure.moving:
            force = crossed(self.states[k] + shifts[k], self.field(k, shifts), self.omegas[k])
            total.append(force + self.torque(k, shifts, pull) if self.is_nudged(k) else force)
        return total

    def residual(self, shifts: Sequence[Tensor], pull: Pull) -> Tensor:
        """Return the largest force of every sample."""
        return largest(self.forces(shifts, pull)[1:], self.batch.size * self.times)


def _repeated(batch: Batch, free: Settled, times: int) -> _Repeated:
    states, fields = ([torch.cat([each] * times, dim=1) for each in group] for group in (free.states, free.fields))
    omegas = [each if each is None or each.shape[0] == 1 else torch.cat([each] * times, dim=0) for each in batch.omegas]
    return _Repeated(batch, states, fields, omegas, times)


def _moved(batch: Batch, states: Sequence[Tensor], step: Sequence[Tensor]) -> States:
    return [states[0]] + [turned(states[k], step[k].clamp(-_WIDEST, _WIDEST)) for k in batch.structure.moving]


def _chosen(rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
    return torch.where(rows.reshape(1, -1, *(1,) * (first.dim() - 2)), first, second)
