"""Free states of a batch, and gradients by parameters and inputs of what was made of its outputs.

Both run inside an operator: nothing here is differentiated or compiled. Whatever a sample without an equilibrium would
hold is replaced by numbers that mean nothing and are finite, so that its share of zero is zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from phasegrad.gradients import METHODS
from phasegrad.tensors import (
    Batch,
    Contrast,
    Eliminated,
    Pull,
    Schur,
    Settled,
    Shifts,
    States,
    Structure,
    Weights,
    aligned,
    compiles,
    gathered,
    nudge_steps,
    nudge_sweeps,
    settle,
    standing,
)

#: Signs of the nudges that each way of equilibrium propagation takes; "implicit" takes none.
SIGNS = {"implicit": ()} | {name: method.signs for name, method in METHODS.items() if method.signs}
_TOLERANCE = 1e-12
# Of a sample that settled, the force as a multiple of what rounding may leave; Newton's steps go on well below that.
_ROUNDINGS = 4.0
# Newton's steps of nudged states by precision, sweeps at first and at most, and the force left as a share of the nudge.
_NUDGED_STEPS = {torch.float32: 3, torch.float64: 8}
_NUDGED_SWEEPS, _MOST_NUDGED, _NUDGED_LEFT = 16, 1024, 1e-4


class Free(NamedTuple):
    """Free states of a batch: where there are any, (B,), and what was reached."""

    batch: Batch
    reached: Settled
    settled: Tensor


def free_states(
    structure: Structure, parameters: Mapping[str, Tensor], inputs: Tensor, tolerance: float, most: int
) -> Free:
    """Let a batch of inputs (B, n_in) settle from phase zero."""
    batch = Batch.of(_weights(structure, parameters), inputs)
    tolerance = tolerance or _TOLERANCE
    rounding = batch.weights.rounding()
    limit = (_ROUNDINGS * rounding).clamp_min(tolerance)
    if compiles(batch):
        aim = max(tolerance, float(rounding) * _finer(rounding.dtype))
        found = Eliminated(batch, batch.base).settle(aim, float(limit), most)
        return Free(batch, found.reached, found.settled)
    reached = settle(batch, limit.expand(batch.size), most=most)
    settled = (reached.residual <= limit) & standing(batch, reached)
    return Free(batch, reached, settled)


def _finer(kind: torch.dtype) -> float:
    """Return the rounding error of double precision over that of a type."""
    return torch.finfo(torch.float64).eps / torch.finfo(kind).eps


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
        self, slope: Tensor, names: Sequence[str], *, gradient: str, beta: float
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
            contrast, found = self._nudged(unit, SIGNS[gradient], beta)
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

    def _nudged(self, unit: Tensor, signs: Sequence[float], beta: float) -> tuple[Contrast, Tensor]:
        """Return the contrast of states under the torques -beta and, if centred, beta times a slope."""
        batch, free = self.batch, self.free
        torques = [-sign * beta * unit for sign in signs]
        if not compiles(batch):
            # States and fields that agree to the last digit do not shift without a torque, whatever force is left.
            pairs = zip(free.fields[1:], batch.omegas[1:], strict=True)
            free = free._replace(states=[free.states[0], *(aligned(field, omega) for field, omega in pairs)])
        if compiles(batch):
            rounding = batch.weights.rounding()
            finer = float(rounding) * _finer(rounding.dtype)
            shifts = Eliminated.around(batch, free).nudged(free.states, torques, finer)
            found = shifts.residual.isfinite()
        else:
            limit = batch.weights.rounding().clamp_min(_TOLERANCE)
            # Differences from the free state are rounded relative to the nudge: much less than the limit may be left.
            aim = torch.maximum(limit.clamp_max(_NUDGED_LEFT * beta), batch.weights.rounding() / 8)
            shifts = self._shifts(free, _Torque(torch.cat(torques)), len(signs), aim, limit)
            found = shifts.residual <= limit
        found = found.reshape(len(signs), -1).all(0)
        return Contrast.nudged(batch, free, shifts.shifts, found, beta), found

    def _shifts(self, free: Settled, pull: Pull, times: int, aim: Tensor, limit: Tensor) -> Shifts:
        """Return how states shift, by more and more sweeps until the force that is left is below the aim.

        Once it is below the limit, it need only be as small as sweeps make it.
        """
        batch, there = self.batch, self.settled.repeat(times)
        if batch.structure.hidden is not None:
            schur = Schur(batch, free.states, batch.stiffness(free.states, free.fields))
            found = nudge_steps(batch, free, schur, pull, times, _NUDGED_STEPS[aim.dtype])
            if bool((found.residual <= aim)[there].all()):
                return found
        sweeps, before = _NUDGED_SWEEPS, torch.full_like(there, torch.inf, dtype=aim.dtype)
        while True:
            found = nudge_sweeps(batch, free, pull, times, sweeps)
            left = found.residual
            done = (left <= aim) | ((left <= limit) & (left > before / 2))
            if sweeps >= _MOST_NUDGED or bool(done[there].all()):
                return found
            sweeps, before = 2 * sweeps, left


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
    """Return the phases of the outputs, (B, M); of samples that did not settle those reached last, or 0 without any."""
    cosine, sine = gathered(structure.outputs, states)
    phases = torch.atan2(sine, cosine)
    return phases if bool(settled.all()) else torch.nan_to_num(phases, nan=0.0)
