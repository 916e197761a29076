"""What engines that learn in mini-batches share: samples of an epoch, from mean gradients to steps, sums of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from phasegrad._process import one_blas_thread
from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.networks import Network
from phasegrad.objectives import ClassObjective
from phasegrad.training._engine import Problem, Progress, Tallies
from phasegrad.training._norms import Norms
from phasegrad.training._optimizers import Arrays, Memory
from phasegrad.training._plan import Plan
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
        begin = problem.begin
        memory = Memory(begin.memory.steps[rows], *({name: each[rows] for name, each in moments.items()}
                        for moments in (begin.memory.first, begin.memory.second)))  # fmt: skip
        self.progress = Progress({k: each[rows] for k, each in begin.parameters.items()}, memory, begin.phases[rows])
        scales = step_scales(self.network, problem.plan)
        self.rates: dict[str, Any] = {name: rate * scales.get(name, 1.0) for name, rate in problem.plan.rates.items()}
        self.learn = tuple(self.rates)
        self.balanced = {name for name in on_edges(self.network, problem.plan) if problem.plan.balance}
        most = problem.plan.coupling_norm
        self.norms = None if most is None or "coupling" not in self.learn else Norms(self.network, most)
        self.masks = {name: problem.masks[name][rows] for name in self.learn}
        self.masked = {name for name, mask in self.masks.items() if not np.all(mask)}
        self.active = np.ones(rows.size, dtype=bool)
        self.bounds = bounds_of(self.network, problem.plan)
        #: Of what an update draws: the streams of the networks.
        self.streams: Sequence[np.random.Generator] = ()

    def train(self, orders: Array, factors: FloatArray, streams: Sequence[np.random.Generator]) -> Tallies:
        """Train for one epoch per column of the orders of all networks."""
        tallies = [
            self._epoch(orders[self.rows, epoch], float(factor), [streams[int(r)] for r in self.rows])
            for epoch, factor in enumerate(factors)
        ]
        return Tallies(*(np.stack(column, axis=1) for column in zip(*tallies, strict=True)))

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
        if self.norms is not None:
            self.norms.begin(self.progress.parameters["coupling"])
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

    def steps_of(self, gradient: Arrays, factor: float, moves: BoolArray) -> tuple[Arrays, Memory]:
        """Return what to add to every parameter, and the optimiser's memory after it."""
        plan = self.plan
        for name in gradient:
            if plan.clip is not None:
                gradient[name] = np.clip(gradient[name], -plan.clip, plan.clip)
            if name in self.masked:
                gradient[name] = gradient[name] * self.masks[name]
        rates = {name: rate * factor for name, rate in self.rates.items()}
        steps, memory = plan.optimizer.step(self.progress.memory, gradient, rates)
        for name in steps:
            if plan.weight_decay and self.network.term_of(name)[1].decays:
                lost = rates[name] * plan.weight_decay * self.progress.parameters[name]
                steps[name] = steps[name] - lost * self.masks[name]
            if not moves.all():
                steps[name] = steps[name] * moves[:, None]
        return steps, memory

    def moved(self, steps: Arrays, fraction: FloatArray, moves: BoolArray) -> Arrays:
        """Return the parameters after a fraction of the steps, within their bounds, of the networks that move."""
        parameters = dict(self.progress.parameters)
        whole = bool(np.all(fraction == 1.0))
        for name in {**steps, **self.bounds}:
            before = parameters[name]
            after = before
            if name in steps:
                after = before + (steps[name] if whole else fraction[:, None] * steps[name])
            if name in self.balanced:
                layout = self.network.graph.layout
                assert layout is not None
                after = np.concatenate(layout.balanced(after, clamped=self.network.clamps_inputs), axis=-1)
            if name == "coupling" and self.norms is not None:
                after = self.norms.bounded(after)
            if name in self.bounds:
                after = np.clip(after, *self.bounds[name])
            parameters[name] = after if moves.all() else np.where(moves[:, None], after, before)
        return parameters

    def tally(self, phases: FloatArray, settled: BoolArray, unstable: BoolArray, some: Samples) -> Tallies:
        """Return the sums over one batch of every network, (r,), from flat phases (r b, N) and what became of them."""
        shape = some.weights.shape
        outputs = np.take(phases, self.nodes, axis=1)
        weights, ok = some.weights, settled.reshape(shape)
        counted = np.where(ok, weights, 0.0)
        costs = self.cost.cost(outputs, some.targets.reshape(ok.size, -1)).reshape(shape)
        right: Any = np.nan
        if isinstance(self.cost, ClassObjective):
            right = self.cost.decide(outputs).reshape(shape) == some.labels
        apart, common = (outputs[:, 0] - outputs[:, -1]).reshape(shape), outputs.mean(axis=1).reshape(shape)
        columns = np.empty((8, *shape))
        columns[0], columns[1], columns[2] = weights, counted, np.where(ok, counted * costs, 0.0)
        columns[3], columns[4], columns[5] = counted * right, counted * apart, counted * common
        columns[6], columns[7] = ~ok & ~unstable.reshape(shape), unstable.reshape(shape)
        return Tallies(*columns.sum(axis=2), *np.zeros((3, shape[0])))


def missing(used: BoolArray, some: Samples) -> FloatArray:
    """Return how many samples of every network took no part."""
    return np.sum(~used.reshape(some.weights.shape), axis=1, dtype=float)


def bounds_of(network: Network, plan: Plan) -> dict[str, tuple[Any, Any]]:
    """Return lower and upper bounds by name; entries of inputs, which belong to the data, have none."""
    bounds: dict[str, tuple[Any, Any]] = {}
    for term in network.terms:
        for parameter in term.parameters:
            name = parameter.name
            low, high = plan.limits.get(name, (-np.inf, np.inf))
            if not network.signed and name in plan.rates:
                low = max(low, parameter.least)
            if np.isfinite(low) or np.isfinite(high):
                free = ~parameter.learnable(network.graph)
                bounds[name] = (np.where(free, -np.inf, low), np.where(free, np.inf, high))
    return bounds


def step_scales(network: Network, plan: Plan) -> dict[str, FloatArray]:
    """Return what the rates of couplings are multiplied by, (width,), where the plan goes by the number of inputs."""
    if plan.fan_in is None:
        return {}
    scale = np.minimum(1.0, plan.fan_in / network.graph.fan_in)
    return dict.fromkeys(on_edges(network, plan), scale)


def on_edges(network: Network, plan: Plan) -> list[str]:
    """Return what learns on edges."""
    return [name for name in plan.rates if network.term_of(name)[1].on == "edges"]
