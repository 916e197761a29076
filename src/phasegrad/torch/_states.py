"""Free states of a batch, and gradients by parameters and inputs of what was made of its outputs.

Both run inside an operator: nothing here is differentiated or compiled. Whatever a sample without an equilibrium would
hold is replaced by numbers that mean nothing and are finite, so that its share of zero is zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from phasegrad.tensors import (
    Batch,
    Contrast,
    Pull,
    Schur,
    Settled,
    Shifts,
    States,
    Structure,
    Weights,
    gathered,
    nudge_steps,
    nudge_sweeps,
    settle,
    standing,
    sweeps_and_steps,
)

#: Signs of the nudges that each way of equilibrium propagation takes; "implicit" takes none.
SIGNS = {"implicit": (), "two_phase": (1.0,), "centred": (1.0, -1.0)}
_TOLERANCE = 1e-12
# Sweeps before Newton's steps where a group is eliminated; the steps, also of nudged states, by precision.
_SWEEPS, _STEPS, _NUDGED_STEPS = 4, {torch.float32: 2, torch.float64: 3}, {torch.float32: 3, torch.float64: 8}
_NUDGED_SWEEPS, _MOST_NUDGED = 16, 1024


class Free(NamedTuple):
    """Free states of a batch: where there are any, (B,), and what was reached."""

    batch: Batch
    reached: Settled
    settled: Tensor


def limit_of(weights: Weights, tolerance: float) -> Tensor:
    """Return the largest force of a settled sample: the tolerance, or what rounding alone may leave if that is more."""
    return weights.rounding().clamp_min(tolerance or _TOLERANCE)


def free_states(
    structure: Structure, parameters: Mapping[str, Tensor], inputs: Tensor, tolerance: float, most: int
) -> Free:
    """Let a batch of inputs (B, n_in) settle from phase zero."""
    batch = Batch.of(_weights(structure, parameters), inputs)
    limits = limit_of(batch.weights, tolerance).expand(batch.size)
    if structure.hidden is None:
        reached = settle(batch, limits, most=most)
        return Free(batch, reached, (reached.residual <= limits) & standing(batch, reached))
    # A fixed number of unguarded steps is enough for most samples; the others begin anew, step by step.
    reached, schur = sweeps_and_steps(batch, _SWEEPS, _STEPS[inputs.dtype])
    assert schur is not None
    settled = (reached.residual <= limits) & ~schur.failed
    if bool(settled.all()):
        return Free(batch, reached, settled)
    rows = (~settled).nonzero()[:, 0]
    part = batch.take(rows)
    again = settle(part, limits[rows], most=most)
    factor = Schur(part, again.states, part.stiffness(again.states, again.fields))
    settled = settled.index_copy(0, rows, (again.residual <= limits[rows]) & standing(part, again, factor))
    states, fields = (
        [before[0]] + [first.index_copy(1, rows, second) for first, second in zip(before[1:], after[1:], strict=True)]
        for before, after in ((reached.states, again.states), (reached.fields, again.fields))
    )
    residual, sweeps = reached.residual.index_copy(0, rows, again.residual), reached.sweeps
    sweeps = sweeps.index_copy(0, rows, again.sweeps + _SWEEPS)
    return Free(batch, Settled(states, fields, residual, sweeps), settled)


def flat(parts: Sequence[Tensor], settled: Tensor) -> Tensor:
    """Return all groups that move side by side, (2, B, n); samples that did not settle hold (1, 0)."""
    whole = torch.cat([part.flatten(2) for part in parts[1:]], dim=2)
    if not bool(settled.all()):
        rest = torch.stack((torch.ones_like(whole[0]), torch.zeros_like(whole[0])))
        whole = torch.where(settled[None, :, None], whole, rest)
    return whole


def parts_of(structure: Structure, whole: Tensor, held: Tensor) -> States:
    """Return what `flat` put side by side as groups again, the held one first."""
    groups = structure.groups[1:]
    split = torch.split(whole, [group.size for group in groups], dim=2)
    return [held, *(part.unflatten(2, group.shape) for part, group in zip(split, groups, strict=True))]


class Around:
    """A batch around free states, those of samples that did not settle replaced.

    Parameters
    ----------
    structure : Structure
    parameters : mapping of str to tensor
    inputs : tensor, shape (B, n_in)
    states, fields : tensor, shape (2, B, n)
        As `flat` gave them.
    settled : tensor of bool, shape (B,)
    """

    def __init__(
        self, structure: Structure, parameters: Mapping[str, Tensor], inputs: Tensor, states: Tensor, fields: Tensor,
        settled: Tensor,
    ) -> None:  # fmt: skip
        clean = inputs if bool(settled.all()) else torch.where(settled[:, None], inputs, 0.0)
        known = parts_of(structure, fields, fields[:, :, :0])
        self.batch = Batch.around(_weights(structure, parameters), clean, known)
        self.settled, none = settled, torch.zeros_like(settled)
        split = parts_of(structure, states, self.batch.held)
        self.free = Settled(split, [self.batch.held, *known[1:]], none, none)

    def gradients(
        self, slope: Tensor, names: Sequence[str], *, gradient: str, beta: float, tolerance: float
    ) -> tuple[dict[str, Tensor], int]:
        """Return gradients by parameters and "inputs" from those by the phases of the outputs, (B, M).

        The number is that of settled samples that no gradient was found for; they add nothing.
        """
        slope = torch.where(self.settled[:, None], slope, 0.0)
        scale = slope.abs().amax(1)
        unit = slope / scale.clamp_min(torch.finfo(scale.dtype).tiny)[:, None]
        if gradient == "implicit":
            contrast, found = Contrast.exact(self.batch, self.free, unit)
        else:
            contrast, found = self._nudged(unit, SIGNS[gradient], beta, tolerance)
        used = found & self.settled
        share = torch.where(used, scale, 0.0)
        answer = contrast.slopes([name for name in names if name != "inputs"], share)
        network = self.batch.structure.network
        if "omega" in answer and network.inputs and not network.clamps_inputs:
            # Data stands in for the frequencies of the inputs: their own have no effect.
            index = network.graph.sharing.index("nodes")
            places = list(network.inputs) if index is None else index[list(network.inputs)]
            answer["omega"][torch.as_tensor(places, device=slope.device)] = 0.0
        if "inputs" in names:
            answer["inputs"] = contrast.by_inputs() * share[:, None]
        return answer, int((self.settled & ~found).sum())

    def _nudged(self, unit: Tensor, signs: Sequence[float], beta: float, tolerance: float) -> tuple[Contrast, Tensor]:
        """Return the contrast of states under the torques -beta and, if centred, beta times a slope."""
        batch, free = self.batch, self.free
        limit = limit_of(batch.weights, tolerance)
        shifts = self._shifts(_Torque(torch.cat([-sign * beta * unit for sign in signs])), len(signs), limit)
        found = (shifts.residual <= limit).reshape(len(signs), -1).all(0)
        return Contrast.nudged(batch, free, shifts.shifts, found, beta), found

    def _shifts(self, pull: Pull, times: int, limit: Tensor) -> Shifts:
        """Return how states shift, by more and more steps and sweeps until all samples have settled again."""
        batch, free = self.batch, self.free
        there = self.settled.repeat(times)
        if batch.structure.hidden is not None:
            schur = Schur(batch, free.states, batch.stiffness(free.states, free.fields))
            found = nudge_steps(batch, free, schur, pull, times, _NUDGED_STEPS[limit.dtype])
            if bool((found.residual <= limit)[there].all()):
                return found
        sweeps = _NUDGED_SWEEPS
        while True:
            found = nudge_sweeps(batch, free, pull, times, sweeps)
            if sweeps >= _MOST_NUDGED or bool((found.residual <= limit)[there].all()):
                return found
            sweeps *= 2


class _Torque:
    """Constant torques on the outputs, of several nudges one after the other."""

    def __init__(self, torque: Tensor) -> None:
        self.torque = torque

    def __call__(self, states: Tensor) -> Tensor:
        del states
        return self.torque


def _weights(structure: Structure, parameters: Mapping[str, Tensor]) -> Weights:
    turning = not structure.clamped or bool(parameters["omega"].any())
    return Weights(structure, parameters, turning=turning)


def outputs_of(structure: Structure, states: Sequence[Tensor], settled: Tensor) -> Tensor:
    """Return the phases of the outputs, (B, M), NaN for samples that did not settle."""
    cosine, sine = gathered(structure.outputs, states)
    return torch.where(settled[:, None], torch.atan2(sine, cosine), torch.nan)
