r"""One update of the torch engine: a batch is settled and nudged, slopes are summed, the parameters moved.

On CUDA it is captured once as a graph, with a fixed number of sweeps, and played back for every batch.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from phasegrad._validation import Array, BoolArray, FloatArray
from phasegrad.linearised import Verdict
from phasegrad.objectives import Cost
from phasegrad.tensors import (
    Batch,
    Contrast,
    Schur,
    Settled,
    Weights,
    gathered,
    kept,
    nudge_steps,
    nudge_sweeps,
    settle,
    standing,
    sweeps_and_steps,
    verdicts,
)
from phasegrad.training._descent import guarded

if TYPE_CHECKING:
    from phasegrad.training._torch import Trainer

# Rounds in which the first batch says how many sweeps it needs.
_ROUNDS = 12
# Share of the nudge that a gradient may leave of the force on a nudged state.
_ENOUGH = 1e-3
# Sweeps that nudged states are given at most, where the host may look.
_MOST_NUDGED = 256


class Step:
    """One update: its buffers on the device and, on CUDA, the graph that plays it."""

    def __init__(self, trainer: Trainer, width: int) -> None:
        self.trainer, self.width = trainer, width
        self.graph: Any = None
        self.calibrated = False
        self.cursor = torch.zeros(1, dtype=torch.long, device=trainer.device)
        self.table = torch.zeros(0, 0, dtype=torch.long, device=trainer.device)

    def begin(self, table: Array, there: BoolArray, factor: float, draws: Array | None) -> None:
        """Take the batches of an epoch."""
        trainer, device = self.trainer, self.trainer.device
        if self.table.shape != table.shape:
            self.graph = None
            part, outputs = trainer.parts["train"], len(trainer.cost.nodes(trainer.network))
            flags = (torch.zeros(table.shape, dtype=torch.bool, device=device) for _ in range(3))
            self.settled, self.unstable, self.used = flags
            self.outputs = torch.zeros(*table.shape, outputs, dtype=trainer.dtype, device=device)
            self.table = torch.zeros(table.shape, dtype=torch.long, device=device)
            self.there = torch.zeros(table.shape, dtype=trainer.dtype, device=device)
            self.shortened, self.updates, self.factor = torch.zeros(3, 1, dtype=torch.float64, device=device)
            self.noise = torch.zeros(self.width, part.inputs.shape[1], dtype=trainer.dtype, device=device)
            self.draws = None if draws is None else torch.as_tensor(draws, device=device)
        self.table.copy_(torch.as_tensor(table))
        self.there.copy_(torch.as_tensor(there))
        self.factor.fill_(factor)
        for each in (self.cursor, self.shortened, self.updates):
            each.zero_()
        if self.draws is not None:
            self.draws.copy_(torch.as_tensor(draws))

    def play(self, noise: Tensor | None) -> None:
        """Take the update of one batch, its inputs moved by noise."""
        if noise is not None:
            self.noise[: len(noise)].copy_(noise)
        if self.trainer.device.type == "cuda" and not self.calibrated:
            self._calibrate()
            self.calibrated = True
        if self.trainer.device.type != "cuda" or not self._capturable():
            self._update()
            return
        if self.graph is None:
            self._capture()
        self.graph.replay()

    def _capturable(self) -> bool:
        """Whether an update asks the device for nothing: no guard, no solve by steps, no cost by way of NumPy."""
        plan, kind = self.trainer.plan, type(self.trainer.cost)
        direct = not plan.propagation.exact or self.trainer.structure.hidden is not None
        on_tensors = kind.torch_force is not Cost.torch_force or kind.torch_cost is not Cost.torch_cost
        return plan.lock_floor is None and direct and on_tensors

    def _calibrate(self) -> None:
        """Find out how many sweeps the first batch needs, before a number of them is recorded."""
        part, rows = self.trainer.parts["train"], self.table[0]
        for _ in range(_ROUNDS):
            batch = Batch.of(self.trainer.weights(), self._inputs(rows))
            free, schur, settled, _ = self._free(batch)
            _, found = self._contrast(batch, free, schur, part.goals[rows], settled)
            if not self.trainer.follow((~settled).float().mean().item(), (settled & ~found).float().mean().item()):
                break

    def _capture(self) -> None:
        """Record the update as a graph, with everything as it was before."""
        kept = [each.clone() for each in (*self.trainer.moves.buffers, self.cursor, self.shortened, self.updates)]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                # An epoch may have one batch alone: none may be asked for that is not there.
                self.cursor.zero_()
                self._update()
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with _uncollected(), torch.cuda.graph(self.graph):
            self._update()
        buffers = (*self.trainer.moves.buffers, self.cursor, self.shortened, self.updates)
        for each, before in zip(buffers, kept, strict=True):
            each.copy_(before)

    def _update(self) -> None:
        trainer = self.trainer
        plan, part = trainer.plan, trainer.parts["train"]
        rows = self.table.index_select(0, self.cursor)[0]
        there = self.there.index_select(0, self.cursor)[0]
        inputs = self._inputs(rows)
        batch = Batch.of(trainer.weights(), inputs)
        free, schur, settled, fallen = self._free(batch)
        goals = part.goals.index_select(0, rows)
        contrast, found = self._contrast(batch, free, schur, goals, settled)
        used = settled & found & (there > 0)
        share = torch.where(used, there * part.shares.index_select(0, rows), 0.0)
        total = share.sum()
        share = share / total.clamp_min(torch.finfo(share.dtype).tiny)
        slopes = contrast.slopes(trainer.moves.names, share) if trainer.moves.names else {}
        moves = used.any() & trainer.moves.active
        trainer.moves.propose(slopes, self.factor, moves)
        if plan.lock_floor is None:
            trainer.moves.take(moves)
        else:
            self._guarded(inputs, free, settled & (there > 0), moves)
        trainer.moves.remember(moves)
        phases = phases_of(gathered(trainer.structure.outputs, free.states))
        for buffer, values in (
            (self.outputs, phases), (self.settled, settled), (self.unstable, fallen), (self.used, used)
        ):  # fmt: skip
            buffer.index_copy_(0, self.cursor, values[None])
        self.updates += moves
        self.cursor += 1

    def _inputs(self, rows: Tensor) -> Tensor:
        """Return the inputs of a batch as they are shown: moved, and with noise."""
        plan = self.trainer.plan
        inputs = self.trainer.parts["train"].inputs.index_select(0, rows)
        if self.draws is not None:
            inputs = plan.augmentation.apply(inputs, self.draws.index_select(0, rows))
        return inputs + self.noise if plan.input_noise else inputs

    def _free(self, batch: Batch) -> tuple[Settled, Schur | None, Tensor, Tensor]:
        """Return free states, the factor there, where they have settled, and where they came to rest and would fall."""
        trainer = self.trainer
        free, schur = sweeps_and_steps(batch, trainer.sweeps, trainer.steps)
        if trainer.device.type == "cpu" and not bool((free.residual <= trainer.rests).all()):
            free = settle(batch, trainer.limits(batch.size), start=free.states)
            if schur is not None:
                schur = Schur(batch, free.states, batch.stiffness(free.states, free.fields))
        rests = free.residual <= trainer.rests
        free = free._replace(states=kept(rests, free.states, 1))
        stands = standing(batch, free, schur)
        return free, schur, rests & stands, rests & ~stands

    def _contrast(
        self, batch: Batch, free: Settled, schur: Schur | None, goals: Tensor, settled: Tensor
    ) -> tuple[Contrast, Tensor]:
        """Return what the gradient is read off, and where it was found."""
        trainer, plan = self.trainer, self.trainer.plan
        signs = plan.propagation.record.signs
        if not signs:
            slope = -_Pull(trainer.cost, goals, 1.0)(gathered(trainer.structure.outputs, free.states))
            return Contrast.exact(batch, free, slope)
        times, betas = len(signs), torch.cat([torch.full_like(goals[:, :1], sign * plan.beta) for sign in signs])
        pull = _Pull(trainer.cost, torch.cat([goals] * times), betas)
        if schur is not None:
            nudged = nudge_steps(batch, free, schur, pull, times, trainer.nudged)
        else:
            nudged = nudge_sweeps(batch, free, pull, times, trainer.nudged)
        if trainer.device.type == "cpu":
            most, asked = trainer.nudged, settled.repeat(times)
            while most < _MOST_NUDGED and not bool((nudged.residual <= trainer.rests)[asked].all()):
                most *= 2
                nudged = nudge_sweeps(batch, free, pull, times, most)
        # A gradient needs the shift to a thousandth, and no more than rounding allows.
        enough = (_ENOUGH * plan.beta * self._strength(free, goals)).maximum(trainer.rests)
        found = (nudged.residual.reshape(times, -1) <= enough).all(0)
        return Contrast.nudged(batch, free, nudged.shifts, found, plan.beta), found

    def _strength(self, free: Settled, goals: Tensor) -> Tensor:
        """Return the largest force of the cost on an output, (B,)."""
        states = gathered(self.trainer.structure.outputs, free.states)
        return _Pull(self.trainer.cost, goals, 1.0)(states).abs().amax(1)

    def _guarded(self, inputs: Tensor, free: Settled, settled: Tensor, moves: Tensor) -> None:
        """Take the step, halved until every sample that was locked stays so."""
        trainer, floor = self.trainer, self.trainer.plan.lock_floor
        assert floor is not None
        rows = settled.nonzero()[:, 0]
        start = [each[:, rows] for each in free.states]

        def attempt(fraction: FloatArray) -> Weights:
            share = torch.as_tensor(fraction).to(trainer.moves.values)
            trainer.moves.take(moves & (share > 0), share)
            return trainer.weights()

        def locked(weights: Weights, asked: BoolArray) -> BoolArray:
            del asked
            part = Batch.of(weights, inputs[rows])
            again = settle(part, trainer.limits(rows.numel()), start=start)
            stable = verdicts(part, again, floor) == int(Verdict.STABLE)
            return np.array([bool(((again.residual <= trainer.limit) & stable).all())])

        _, fraction = guarded(moves.cpu().numpy(), attempt, locked)
        self.shortened += float(fraction[0] < 1)


class _Pull:
    """The nudge of a cost, times its strength, on states of the outputs."""

    def __init__(self, cost: Cost, goals: Tensor, beta: Tensor | float) -> None:
        self.cost, self.goals, self.beta = cost, goals, beta

    def __call__(self, states: Tensor) -> Tensor:
        return self.beta * self.cost.torch_force(phases_of(states), self.goals)


def phases_of(states: Tensor) -> Tensor:
    return torch.atan2(states[1], states[0])


@contextmanager
def _uncollected() -> Iterator[None]:
    """Let nothing be collected: giving back an old graph's memory would break the recording of a new one."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
