"""What engines that learn in mini-batches share: samples of an epoch, from mean gradients to steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from phasegrad._process import one_blas_thread
from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.training._descent import Couplings, Descent, bounds_of, decays_of, guarded, on_edges, rates_of
from phasegrad.training._engine import Problem, Tallies
from phasegrad.training._norms import norms_of
from phasegrad.training._optimizers import Arrays
from phasegrad.training._samples import Samples


class Learner:
    """Networks that learn in lock-step, a mini-batch of each at a time; a subclass says what an update is."""

    #: Whether an epoch may use several BLAS threads.
    threaded = True

    def __init__(self, problem: Problem, rows: IntArray) -> None:
        self.rows, self.plan, self.parts = rows, problem.plan, problem.parts
        self.network = problem.networks[int(rows[0])]
        self.cost = problem.plan.objective
        self.nodes = np.asarray(self.cost.nodes(self.network), dtype=np.int64)
        self.progress = problem.begin.of(rows)
        self.learn = tuple(problem.plan.rates)
        self.descent = self._descent(problem)
        self.active = np.ones(rows.size, dtype=bool)
        #: Of what an update draws: the streams of the networks.
        self.streams: Sequence[np.random.Generator] = ()

    def train(self, orders: Array, factors: FloatArray, streams: Sequence[np.random.Generator]) -> Tallies:
        """Train for one epoch per column of the orders of all networks."""
        tallies = [
            self._epoch(orders[self.rows, epoch], float(factor), [streams[int(r)] for r in self.rows])
            for epoch, factor in enumerate(factors)
        ]
        return Tallies.epochs(tallies)

    def update(self, some: Samples, inputs: FloatArray, factor: float) -> Tallies:
        """Learn from one batch of every network, of samples whose inputs may have been changed; return its sums."""
        raise NotImplementedError

    def samples_of(self, samples: Samples, rows: IntArray) -> Samples:
        """Return some samples, numbers (r, b), of this group's networks."""
        mine = self.rows[:, None]
        labels = None if samples.labels is None else samples.labels[mine, rows]
        inputs = samples.inputs[mine, rows].astype(np.float64, copy=False)
        return Samples(inputs, samples.targets[mine, rows], samples.weights[mine, rows], labels)

    def _epoch(self, order: IntArray, factor: float, streams: list[np.random.Generator]) -> Tallies:
        plan, samples, self.streams = self.plan, self.parts["train"], streams
        if plan.warm_start == "epoch":
            self.progress = self.progress._replace(phases=np.zeros_like(self.progress.phases))
        draws: Any = None
        if plan.augmentation is not None:
            draws = np.stack([np.asarray(plan.augmentation.draw(stream, samples.count)) for stream in streams])
        self.descent.begin(self.progress.parameters)
        total = Tallies.zeros(self.rows.size)
        with nullcontext() if self.threaded else one_blas_thread():
            for rows in np.array_split(order, max(1, round(order.shape[1] / plan.batch_size)), axis=1):
                some = self.samples_of(samples, rows)
                inputs = some.inputs
                if draws is not None:
                    inputs = self._augmented(inputs, draws[np.arange(self.rows.size)[:, None], rows])
                if plan.input_noise:
                    noise = [stream.standard_normal(inputs.shape[1:]) for stream in streams]
                    inputs = inputs + plan.input_noise * np.stack(noise)
                total += self.update(some, inputs, factor)
        return total

    def _augmented(self, inputs: FloatArray, draws: Array) -> FloatArray:
        """Return inputs (r, b, d) after the changes drawn for each, (r, b, ...)."""
        flat = inputs.reshape(-1, inputs.shape[-1])
        changed = self.plan.augmentation.apply(flat, draws.reshape(len(flat), *draws.shape[2:]))
        return np.asarray(changed, dtype=np.float64).reshape(inputs.shape)

    def step(
        self, gradient: Arrays, factor: float, moves: BoolArray, locked: Callable[[Arrays, BoolArray], BoolArray]
    ) -> BoolArray:
        """Move the networks that do, under the lock guard as far as ``locked`` allows; return where it shortened."""
        before, descent = self.progress, self.descent
        steps, memory = descent.propose(before.parameters, before.memory, gradient, factor, moves)
        if self.plan.lock_floor is None:
            fraction, parameters = np.ones(moves.size), descent.moved(before.parameters, steps, None, moves)
        else:

            def attempt(fraction: FloatArray) -> Arrays:
                return descent.moved(before.parameters, steps, fraction, moves & (fraction > 0))

            parameters, fraction = guarded(moves, attempt, locked)
        descent.conclude()
        memory = memory if moves.all() else before.memory.merged(memory, moves)
        self.progress = before._replace(parameters=parameters, memory=memory)
        return fraction < 1.0

    def _descent(self, problem: Problem) -> Descent:
        plan, network = problem.plan, self.network
        masks = {name: problem.masks[name][self.rows] for name in self.learn}
        masks = {name: mask for name, mask in masks.items() if not np.all(mask)}
        couplings = {}
        for name in on_edges(network, plan):
            most = plan.coupling_norm if name == "coupling" else None
            norms = None if most is None else norms_of(network, most)
            if norms is not None or plan.balance:
                couplings[name] = Couplings(network, plan, norms, {name: slice(None)})
        bounds = bounds_of(network, plan)
        return Descent(plan, rates_of(network, plan), masks, decays_of(network, plan), bounds, couplings)


def missing(used: BoolArray, some: Samples) -> FloatArray:
    """Return how many samples of every network took no part."""
    return (~used.reshape(some.weights.shape)).sum(axis=1, dtype=float)
