"""Free and nudged states of a batch, by sweeps and, where one group can be eliminated, Newton's steps.

`settle` goes on until every sample has settled or given up; a step that a CUDA graph holds takes a fixed number of
sweeps instead (`sweeps_and_steps`), and what it leaves is counted.

A nudged state is kept as its difference d from the free state z, and its local field as h + W d: rounding is then
relative to the nudge, and products of low precision are good enough for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from phasegrad.tensors._algebra import Schur, conjugate
from phasegrad.tensors._batches import Batch, aligned, crossed, largest, turned
from phasegrad.tensors._links import States

#: The pull of a nudge on the outputs: minus the slope of the cost by their phases, of states (2, B, M) of the outputs.
Pull = Callable[[Tensor], Tensor]
# Sweeps between two looks at the residual, and without Newton's help at most.
_AT_ONCE, _MOST = 8, 4000
_NEWTON_FROM = 0.3
_WIDEST = 0.5


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
    """Let every sample settle until its largest force is below its limit (B,), from phase zero or from ``start``."""
    size = batch.size
    states = batch.cold() if start is None else list(start)
    sweeps = torch.zeros(size, dtype=torch.long, device=limits.device)
    rows = torch.arange(size, device=limits.device)
    part, mine, done = batch, states, 0
    while rows.numel() and done < most:
        part.sweep(mine, _AT_ONCE)
        done += _AT_ONCE
        residual = part.residual(mine, part.fields(mine))
        near = bool((residual < _NEWTON_FROM).any())
        if near and (part.structure.hidden is not None or done >= 4 * _AT_ONCE):
            mine = newton(part, mine, limits[rows])
            residual = part.residual(mine, part.fields(mine))
        sweeps[rows] = done
        going = ~(residual <= limits[rows]) & residual.isfinite()
        for k in batch.structure.moving:
            states[k] = states[k].index_copy(1, rows, mine[k]) if part is not batch else mine[k]
        if not going.any():
            break
        rows = rows[going]
        part = batch.take(rows)
        mine = [each[:, rows] for each in states]
    fields = batch.fields(states)
    return Settled(states, fields, batch.residual(states, fields), sweeps)


def newton(batch: Batch, states: States, limits: Tensor, steps: int = 6) -> States:
    """Return states after Newton's steps; of a sample none is kept that does not lower its largest force."""
    fields = batch.fields(states)
    residual = batch.residual(states, fields)
    for _ in range(steps):
        stiffness, forces = batch.stiffness(states, fields), batch.forces(states, fields)
        if batch.structure.hidden is not None:
            schur = Schur(batch, states, stiffness)
            step, found = schur.solve(forces), ~schur.failed
        else:
            step, found = conjugate(batch, states, stiffness, forces)
        trial = _moved(batch, states, step)
        ahead = batch.fields(trial)
        after = batch.residual(trial, ahead)
        better = found & (after < residual)
        states, fields = ([_chosen(better, a, b) for a, b in zip(*pair, strict=True)]
                          for pair in ((trial, states), (ahead, fields)))  # fmt: skip
        residual = torch.where(better, after, residual)
        if bool((~better | (residual <= limits)).all()):
            break
    return states


def sweeps_and_steps(batch: Batch, sweeps: int, steps: int) -> tuple[Settled, Schur | None]:
    """Return the states after so many sweeps and Newton's steps from phase zero, without waiting for the device.

    The last of Newton's factors is handed back: it serves the nudged states too.
    """
    states = batch.cold()
    batch.sweep(states, sweeps)
    schur = None
    for _ in range(steps):
        fields = batch.fields(states)
        schur = Schur(batch, states, batch.stiffness(states, fields))
        states = _moved(batch, states, schur.solve(batch.forces(states, fields)))
    fields = batch.fields(states)
    residual = batch.residual(states, fields)
    if schur is None:
        # One step more, oscillator by oscillator, makes states and fields agree to the last digit: see `nudge_sweeps`.
        states = [states[0]] + [aligned(fields[k], batch.omegas[k]) for k in batch.structure.moving]
    return Settled(states, fields, residual, torch.full_like(residual, sweeps, dtype=torch.long)), schur


def nudge_sweeps(batch: Batch, free: Settled, pulls: Sequence[Pull], sweeps: int) -> Shifts:
    """Return how states shift under nudges, one after the other along the batch, after so many sweeps.

    Sweeps begin at the free states: a nudged state on another branch would be no small change.
    """
    doubled = _repeated(batch, free, len(pulls))
    shifts = [torch.zeros_like(each) for each in doubled.states]
    for _ in range(sweeps):
        for k in batch.structure.order:
            field = doubled.field(k, shifts) + doubled.pull(k, shifts, pulls)
            shifts[k] = aligned(field, doubled.omegas[k]) - doubled.states[k]
    return Shifts(shifts, doubled.residual(shifts, pulls))


def nudge_steps(batch: Batch, free: Settled, schur: Schur, pulls: Sequence[Pull], steps: int) -> Shifts:
    """Return the same by Newton's steps with the factor of the free states."""
    doubled = _repeated(batch, free, len(pulls))
    shifts = [torch.zeros_like(each) for each in doubled.states]
    moving = batch.structure.moving
    for _ in range(steps):
        step = schur.solve(doubled.forces(shifts, pulls))
        for k in moving:
            shifts[k] = turned(doubled.states[k] + shifts[k], step[k]) - doubled.states[k]
    return Shifts(shifts, doubled.residual(shifts, pulls))


class _Repeated:
    """Free states and fields, repeated for several nudges."""

    def __init__(self, batch: Batch, states: States, fields: States, omegas: list[Tensor | None], times: int) -> None:
        self.batch, self.states, self.base, self.omegas, self.times = batch, states, fields, omegas, times
        self.structure = batch.structure

    def field(self, group: int, shifts: Sequence[Tensor]) -> Tensor:
        """Return the local field of a group in the shifted state."""
        return self.batch.field_on(group, shifts, self.base[group])

    def pull(self, group: int, shifts: Sequence[Tensor], pulls: Sequence[Pull]) -> Tensor:
        """Return the nudge on a group as a field across its states; zero where no output is."""
        places = [where for k, where in self.structure.outputs if k == group]
        if not places:
            return self.base[group].new_zeros(())
        torque, state = self.torque(group, shifts, pulls), self.states[group] + shifts[group]
        return torch.stack((-state[1] * torque, state[0] * torque))

    def torque(self, group: int, shifts: Sequence[Tensor], pulls: Sequence[Pull]) -> Tensor:
        """Return the nudge on the oscillators of a group, (times B, ...)."""
        outputs = gathered(self.structure.outputs, [a + b for a, b in zip(self.states, shifts, strict=True)])
        forces = torch.cat([pull(each) for pull, each in zip(pulls, outputs.chunk(self.times, dim=1), strict=True)])
        return scattered(self.structure.outputs, forces, group, self.states[group][0])

    def forces(self, shifts: Sequence[Tensor], pulls: Sequence[Pull]) -> list[Tensor]:
        """Return the force on every oscillator that moves."""
        total = [self.states[0].new_zeros(())]
        for k in self.structure.moving:
            force = crossed(self.states[k] + shifts[k], self.field(k, shifts), self.omegas[k])
            nudged = any(group == k for group, _ in self.structure.outputs)
            total.append(force + self.torque(k, shifts, pulls) if nudged else force)
        return total

    def residual(self, shifts: Sequence[Tensor], pulls: Sequence[Pull]) -> Tensor:
        """Return the largest force of every sample."""
        return largest(self.forces(shifts, pulls)[1:], self.batch.size * self.times)


def gathered(where: Sequence[tuple[int, object]], states: Sequence[Tensor]) -> Tensor:
    """Return the states (2, B, M) of oscillators given as places in groups."""
    parts = []
    for group, places in where:
        flat = states[group].flatten(2)
        index = torch.as_tensor(places, device=flat.device)
        parts.append(flat if index.numel() == flat.shape[2] and _in_order(places) else flat.index_select(2, index))
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)


def scattered(where: Sequence[tuple[int, object]], values: Tensor, group: int, like: Tensor) -> Tensor:
    """Return values (B, M) of such oscillators in the places that one group has for them, (B, ...), zero elsewhere."""
    flat, done = None, 0
    for k, places in where:
        index = torch.as_tensor(places, device=values.device)
        mine, done = values[:, done : done + index.numel()], done + index.numel()
        if k == group:
            if index.numel() == like[0].numel() and _in_order(places):
                return mine.reshape(like.shape)
            flat = torch.zeros_like(like).flatten(1) if flat is None else flat
            flat = flat.index_copy(1, index, mine)
    return torch.zeros_like(like) if flat is None else flat.reshape(like.shape)


def _in_order(places: Any) -> bool:
    return np.array_equal(places, np.arange(np.size(places)))


def _repeated(batch: Batch, free: Settled, times: int) -> _Repeated:
    states, fields = ([torch.cat([each] * times, dim=1) for each in group] for group in (free.states, free.fields))
    omegas = [
        each if each is None or each.shape[0] == 1 else torch.cat([each] * times, dim=0) for each in batch.omegas
    ]
    return _Repeated(batch, states, fields, omegas, times)


def _moved(batch: Batch, states: Sequence[Tensor], step: Sequence[Tensor]) -> States:
    return [states[0]] + [turned(states[k], step[k].clamp(-_WIDEST, _WIDEST)) for k in batch.structure.moving]


def _chosen(rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
    return torch.where(rows.reshape(1, -1, *(1,) * (first.dim() - 2)), first, second)
