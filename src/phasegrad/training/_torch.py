r"""The torch engine: layered and convolutional networks by sweeps on tensors, on a CPU or a GPU.

The samples lie on the device, and all learnable parameters in one flat vector there. A step settles a batch, nudges it,
sums the slopes and moves the vector, and asks the device for nothing: on CUDA it is captured once as a graph and played
back for every batch, with a fixed number of sweeps. What did not settle is counted at the end of the epoch, and the
number of sweeps follows. Where the host may look at no cost, on a CPU, such samples are settled further at once.

While it trains, a sample takes part if it has settled and no oscillator stands where it would fall; where Newton's
steps are taken, if it is stable. Every score rests on certificates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from phasegrad._process import one_torch_thread
from phasegrad._validation import Array, BoolArray, FloatArray
from phasegrad.linearised import Verdict
from phasegrad.objectives import Cost
from phasegrad.tensors import (
    Batch,
    Structure,
    Weights,
    fitting,
    gathered,
    samples_that_fit,
    settle,
    verdicts,
)
from phasegrad.training._engine import Problem, Tallies, tally
from phasegrad.training._moves import Moves
from phasegrad.training._samples import Samples
from phasegrad.training._step import Step, phases_of

# Samples scored at once, fewer where memory is short, and the most sweeps that they are given.
_SCORED_AT_ONCE, _SCORED_SWEEPS = 4096, 160
# Multiplications in one product of matrices from which a second thread pays.
_THREADED = 5e6
# Sweeps of free and of nudged states to begin with; how many are needed shows in training (`Trainer.follow`).
_SWEEPS, _NUDGED = 8, 4
# The same where a group is eliminated: sweeps, then Newton's steps from there; and Newton's steps of nudged states.
_SWEEPS_BEFORE, _STEPS, _NUDGED_STEPS = 4, 2, 3
# Where their number stops growing: samples that need more take no part.
_MOST_SWEEPS = 96
# Sweeps beyond which Newton's steps are cheaper, where a group can be eliminated.
_NEWTON_FROM = 14
# Share of the samples of an epoch that may be left unsettled before the number of sweeps grows.
_LEFT = 1e-3
# Rounding unit of products of numbers of ten bits.
_TF32 = 2.0**-11


class Trainer:
    """Trains one network on one device."""

    def __init__(self, problem: Problem, number: int, device: torch.device) -> None:
        self.plan, self.network = problem.plan, problem.networks[number]
        self.structure = Structure.of(self.network)
        self.coarse = problem.dtype == "tf32"
        self.device, self.dtype = device, torch.float64 if problem.dtype == "float64" else torch.float32
        self.cost: Cost = problem.plan.objective
        self.parts = {name: _Part(samples, number, self.device, self.dtype) for name, samples in problem.parts.items()}
        self.moves = Moves(problem, number, self.device, self.dtype)
        data = self.network.inputs and not self.network.clamps_inputs
        self.turning = bool(np.any(problem.begin.parameters["omega"][number]) or "omega" in self.moves.places or data)
        self.limit, self.rests = torch.zeros(2, dtype=self.dtype, device=self.device)
        hidden = self.structure.hidden is not None
        newton = hidden and self.device.type == "cpu"
        self.sweeps, self.nudged = (_SWEEPS_BEFORE, _NUDGED_STEPS) if newton else (_SWEEPS, _NUDGED)
        self.steps = _STEPS if newton else 0
        self.graph: Any = None

    def train(self, orders: Array, factors: FloatArray, stream: np.random.Generator) -> Tallies:
        """Train for one epoch per row of ``orders`` (epochs, n)."""
        with products(coarse=self.coarse), self._fitting(), self._threads():
            every = zip(orders, factors, strict=True)
            sums = [self._epoch(order.astype(np.int64), float(factor), stream) for order, factor in every]
        return Tallies.epochs(sums)

    def score(self, part: str) -> Tallies:
        """Return the sums over a part, (1, 1)."""
        samples = self.parts[part]
        with products(coarse=False), self._threads():
            return Tallies.epochs([self._scored(samples, self._look())])

    def _scored(self, samples: _Part, weights: Weights) -> Tallies:
        total = Tallies.zeros(1)
        fits = samples_that_fit(self.structure, self.dtype.itemsize, 0, self.device)
        for rows in torch.arange(samples.count, device=self.device).split(min(_SCORED_AT_ONCE, fits)):
            batch = Batch.of(weights, samples.inputs[rows])
            settled = settle(batch, self.limits(rows.numel()), most=_SCORED_SWEEPS)
            converged = settled.residual <= self.limit
            verdict = verdicts(batch, settled)
            stable = converged & (verdict == int(Verdict.STABLE))
            phases = phases_of(gathered(self.structure.outputs, settled.states))
            total += self._tally(samples, rows, phases, _host(stable), _host(converged & ~stable))
        return total

    def _fitting(self) -> AbstractContextManager[None]:
        """Say in words which batch would fit where the plan's does not."""
        size = min(self.plan.batch_size, self.parts["train"].count)
        return fitting(self.structure, size, self.dtype.itemsize, 2, self.device)

    def _threads(self) -> AbstractContextManager[None]:
        """On so little work the threads of a CPU would wait for each other most of the time."""
        small = self.plan.batch_size * self.network.coupling.size < _THREADED
        return one_torch_thread() if small and self.device.type == "cpu" else nullcontext()

    def _look(self) -> Weights:
        """Return the parameters as they are, and set what counts as zero by them."""
        weights = self.weights()
        self.limit.copy_(weights.rounding().clamp_min(self.plan.settling.tolerance))
        self.rests.copy_(weights.rounding(_TF32).maximum(self.limit) if self.coarse else self.limit)
        return weights

    def limits(self, size: int) -> Tensor:
        return self.limit.expand(size)

    def weights(self) -> Weights:
        return Weights(self.structure, self.moves.parameters, turning=self.turning)

    def _epoch(self, order: Array, factor: float, stream: np.random.Generator) -> Tallies:
        plan, part = self.plan, self.parts["train"]
        chunks = np.array_split(order, max(1, round(order.size / plan.batch_size)))
        width = max(chunk.size for chunk in chunks)
        table = np.zeros((len(chunks), width), dtype=np.int64)
        there = np.zeros(table.shape, dtype=bool)
        for k, chunk in enumerate(chunks):
            table[k, : chunk.size], there[k, : chunk.size] = chunk, True
        draws = None if plan.augmentation is None else plan.augmentation.draw(stream, part.count)
        self._look()
        self.moves.begin()
        step = self._step(width)
        step.begin(table, there, factor, draws)
        noise = self._noise(stream) if plan.input_noise else None
        for chunk in chunks:
            step.play(None if noise is None else noise(chunk.size))
        return self._count(step, table[there], there)

    def _noise(self, stream: np.random.Generator) -> Callable[[int], Tensor]:
        """Return what draws the noise of so many samples: on a GPU there, from a seed that the stream gives."""
        wide, scale = self.parts["train"].inputs.shape[1], self.plan.input_noise
        if self.device.type == "cpu":
            return lambda count: torch.as_tensor(scale * stream.standard_normal((count, wide)), dtype=self.dtype)
        source = torch.Generator(self.device).manual_seed(int(stream.integers(2**62)))
        return lambda count: scale * torch.randn(count, wide, generator=source, device=self.device, dtype=self.dtype)

    def _step(self, width: int) -> Step:
        if self.graph is None or self.graph.width != width:
            self.graph = Step(self, width)
        return self.graph

    def _count(self, step: Step, order: Array, there: BoolArray) -> Tallies:
        """Return the sums of an epoch, and let the number of sweeps follow what was left."""
        settled, unstable, used = (_host(flags)[there] for flags in (step.settled, step.unstable, step.used))
        rows = torch.as_tensor(order, device=self.device)
        outputs = step.outputs[torch.as_tensor(there, device=self.device)]
        tallies = self._tally(self.parts["train"], rows, outputs, settled, unstable)
        if self.device.type == "cuda" and self.follow(float(np.mean(~settled)), float(np.mean(settled & ~used))):
            self.graph = None
        return tallies._replace(
            skipped=np.array([np.sum(~used, dtype=float)]), shortened=_host(step.shortened), updates=_host(step.updates)
        )

    def follow(self, unsettled: float, unfound: float) -> bool:
        """Let the numbers of sweeps follow the shares of samples whose free or nudged states they left; say whether."""
        before = self.sweeps, self.nudged
        if unsettled > _LEFT and self.structure.hidden is not None and not self.steps and self.sweeps > _NEWTON_FROM:
            self.sweeps, self.steps, self.nudged = _SWEEPS_BEFORE, _STEPS, _NUDGED_STEPS
        elif unsettled > _LEFT:
            self.sweeps = min(_MOST_SWEEPS, self.sweeps + max(2, self.sweeps // 3))
        if unfound > _LEFT:
            self.nudged = min(_MOST_SWEEPS, self.nudged + max(1, self.nudged // 3))
        return before != (self.sweeps, self.nudged)

    def _tally(self, part: _Part, rows: Tensor, phases: Tensor, ok: BoolArray, unstable: BoolArray) -> Tallies:
        """Return the sums (1,) over some samples."""
        return tally(
            self.cost, _host(phases.double())[None], ok[None], unstable[None], part.samples.rows(_host(rows)[None])
        )


@contextmanager
def products(*, coarse: bool) -> Iterator[None]:
    """Let products of single-precision numbers be rounded to ten bits on the way in, or not."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = coarse
    try:
        with torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=coarse):
            yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


class _Part:
    """A part of the samples of one network: on the host, and inputs, targets and weights on the device."""

    def __init__(self, samples: Samples, number: int, device: torch.device, dtype: torch.dtype) -> None:
        self.inputs = _tensor(samples.inputs[number], dtype, device)
        self.goals = _tensor(samples.targets[number], dtype, device)
        self.shares = _tensor(samples.weights[number], dtype, device)
        mine = slice(number, number + 1)
        labels = None if samples.labels is None else samples.labels[mine]
        # Nothing is counted of the inputs, and copying them for every count would take as long as the updates.
        self.samples = Samples(samples.inputs[mine, :, :0], samples.targets[mine], samples.weights[mine], labels)

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.inputs.shape[0])


def _tensor(values: Array, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return an array, which may be read-only, as a tensor of its own."""
    return torch.tensor(np.ascontiguousarray(values), dtype=dtype, device=device)


def _host(values: Tensor) -> Array:
    return values.cpu().numpy()


def checked_device(given: str | None) -> torch.device:
    """Return the device of a name; ValueError, in words, if there is none."""
    try:
        device = torch.device("cpu" if given is None else given)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        found = [f"cuda:{k}" for k in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"The device {given!r} cannot be used: {reason}. PyTorch has {', '.join(['cpu', *found])} here."
        ) from None
    return device
