"""The public `learn`: one network, mini-batches, a lock guard, and a record of every epoch."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad.learning.batches import (
    Settled,
    batch_system,
    mean_gradient,
    parameters_of,
    require_batches,
    settle_batch,
)
from phasegrad.learning.optimizers import Arrays, Memory, Optimizer, Schedule
from phasegrad.learning.recipe import Recipe
from phasegrad.learning.record import EpochRecord, Learned, LearningHistory, LearningState
from phasegrad.network import Network
from phasegrad.seeding import learnable_nodes
from phasegrad.solvers.linear import on_one_blas_thread
from phasegrad.validation import FloatArray, IntArray, last_axis_array, random_stream, whole_number

Array = NDArray[Any]
Progress = Callable[[LearningHistory], None]

_SCORED_AT_ONCE = 512
_HALVINGS = 6
_LEAST = 1e-6


@on_one_blas_thread
def learn(
    network: Network,
    x: ArrayLike,
    y: ArrayLike,
    recipe: Recipe | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    seed: int | None = 0,
    state: LearningState | None = None,
    until: int | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> Learned:
    """Train one network in mini-batches.

    Parameters
    ----------
    network : Network
        With reciprocal sine coupling, one input per feature and one output per class.
    x : array_like, shape (n, n_in)
        Inputs of the network.
    y : array_like of int, shape (n,)
        Class numbers.
    recipe : Recipe, optional
        The default one if left out; ``changes`` replace single fields of it: ``learn(network, x, y, epochs=20)``.
    sample_weight : array_like, shape (n,), optional
        How much each sample counts; 1 if left out.
    seed : int or None
        Seed of the stream that splits off the validation part, shuffles the samples and draws the input noise.
    state : LearningState, optional
        Go on from here, exactly as if training had not stopped; ``seed`` is then not used.
    until : int, optional
        Stop after this epoch, the schedule being that of ``recipe.epochs``.
    progress : callable, optional
        Called with the history so far after every epoch.

    Returns
    -------
    Learned
        The trained ``network``, its ``history`` with the untrained scores in front, and the ``state`` to go on from.

    Examples
    --------
    >>> import phasegrad as pg
    >>> data = pg.datasets.xor()
    >>> network = pg.signed_layers(2, 3, 2, rest=pg.CosineCrossEntropy.undecided)
    >>> learned = pg.learn(network, data.x_train, data.y_train, epochs=100, learning_rate=0.05)
    >>> float(learned.history.train_accuracy[-1])
    1.0
    """
    plan = _plan(recipe, changes)
    inputs, labels, weights = _checked_samples(network, plan, x, y, sample_weight)
    last = plan.epochs if until is None else whole_number("until", until, 0, "learn")
    return _Run(network, plan, inputs, labels, weights, seed, state).go(last, progress)


class _Run:
    """The parts of a training that change: parameters, memory of the optimiser, random stream, records."""

    def __init__(
        self,
        network: Network,
        plan: Recipe,
        inputs: FloatArray,
        labels: IntArray,
        weights: FloatArray,
        seed: int | None,
        state: LearningState | None,
    ) -> None:
        self.network, self.plan = network, plan
        self.inputs, self.labels, self.weights = inputs, labels, weights
        self.targets = plan.objective.check_target(labels, network)
        self.masks = {name: _mask(network, name) for name in plan.learn}
        assert isinstance(plan.optimizer, Optimizer)
        if state is None:
            self.stream = random_stream(seed, "learn")
            self.parameters = parameters_of(network, plan.learn)
            self.memory: Memory = plan.optimizer.start(self.parameters)
            self.epoch, self.shares = 0, _validation_rows(plan, labels, self.stream)
            self.best: tuple[float, Arrays] | None = None
            self.waited = 0
            self.records: list[EpochRecord] = []
        else:
            self.stream = np.random.default_rng()
            self.stream.bit_generator.state = state.stream
            self.parameters = {name: values.copy() for name, values in state.parameters.items()}
            self.memory, self.epoch, self.shares = state.memory, state.epoch, state.held_back
            self.best, self.waited, self.records = state.best, state.waited, list(state.records)
        kept = np.ones(len(labels), dtype=bool)
        kept[self.shares] = False
        self.train_rows = np.flatnonzero(kept)

    def go(self, last: int, progress: Progress | None) -> Learned:
        if not self.records:
            self.records.append(self._untrained())
        stopped = interrupted = False
        try:
            while self.epoch < last and not stopped:
                record = self._run_epoch()
                self.records.append(record)
                stopped = self._watch(record)
                if progress is not None:
                    progress(LearningHistory.of(self.records))
        except KeyboardInterrupt:
            interrupted = True
        state = LearningState(
            self.epoch, self.parameters, self.memory, dict(self.stream.bit_generator.state), self.shares,
            self.best, self.waited, tuple(self.records),
        )  # fmt: skip
        chosen = self.parameters if self.best is None else self.best[1]
        trained = self.network.replace(**chosen)
        return Learned(trained, LearningHistory.of(self.records), state, self.plan, stopped, interrupted)

    def _untrained(self) -> EpochRecord:
        loss, accuracy, lost = self._score(self.train_rows)
        check = self._score(self.shares) if self.shares.size else (math.nan, math.nan, 0)
        return EpochRecord(self.epoch, loss, accuracy, check[0], check[1], lost, 0, 0, 0.0)

    def _run_epoch(self) -> EpochRecord:
        plan = self.plan
        assert isinstance(plan.schedule, Schedule)
        rate = plan.learning_rate * plan.schedule.factor(self.epoch / max(plan.epochs, 1))
        order = self.stream.permutation(self.train_rows)
        noise = plan.input_noise * self.stream.standard_normal(self.inputs.shape) if plan.input_noise else 0.0
        noisy = self.inputs + noise
        sums = np.zeros(3)
        skipped = shortened = 0
        count = max(1, round(order.size / plan.batch_size))
        for rows in np.array_split(order, count):
            settled, scores, used, short = self._update(rows, noisy[rows], rate)
            sums += scores
            skipped += int(np.sum(~settled.locked | ~used))
            shortened += short
        self.epoch += 1
        check = self._score(self.shares) if self.shares.size else (math.nan, math.nan, 0)
        total = max(sums[2], 1e-300)
        loss, accuracy = float(sums[0] / total), float(sums[1] / total)
        return EpochRecord(self.epoch, loss, accuracy, check[0], check[1], skipped, shortened, count, rate)

    def _update(self, rows: Array, inputs: FloatArray, rate: float) -> tuple[Settled, Array, Array, int]:
        """Settle, nudge, step and guard one mini-batch; return its states, sums of scores, and who took part."""
        plan = self.plan
        settled = settle_batch(batch_system(self.network, self.parameters, inputs), plan.lock_floor)
        target, weights = self.targets[rows], self.weights[rows]
        outputs = settled.full[:, list(self.network.outputs)]
        right = plan.objective.decide(outputs) == self.labels[rows]
        costs = plan.objective.cost(outputs, target)
        scores = np.array([weights @ costs, weights @ right, weights.sum()])
        if not plan.learn:
            return settled, scores, settled.locked, 0
        gradient, used = mean_gradient(
            settled, plan.objective, target, weights, wrt=plan.learn, method=plan.gradient, beta=plan.beta
        )
        if not np.any(used):
            return settled, scores, used, 0
        assert isinstance(plan.optimizer, Optimizer)
        masked = {name: slope * self.masks[name] for name, slope in gradient.items()}
        steps, self.memory = plan.optimizer.step(self.memory, masked, rate)
        if plan.weight_decay and "coupling" in steps:
            steps["coupling"] = steps["coupling"] - rate * plan.weight_decay * self.parameters["coupling"]
        short = self._guarded(settled, inputs, steps)
        return settled, scores, used, short

    def _guarded(self, settled: Settled, inputs: FloatArray, steps: Arrays) -> int:
        """Take the step, halved until every sample that was locked stays so; return 1 if it was shortened."""
        fraction = 1.0
        for _ in range(_HALVINGS):
            trial = {
                name: self._bounded(name, values + fraction * steps[name]) for name, values in self.parameters.items()
            }
            after = settle_batch(batch_system(self.network, trial, inputs), self.plan.lock_floor, settled.phases)
            if np.all(after.locked[settled.locked]):
                self.parameters = trial
                return int(fraction < 1.0)
            fraction /= 2
        return 1

    def _bounded(self, name: str, values: Array) -> Array:
        if self.network.signed or name not in ("coupling", "field_strength"):
            return values
        return np.maximum(values, _LEAST if name == "coupling" else 0.0)

    def _score(self, rows: Array) -> tuple[float, float, int]:
        """Return mean cost, accuracy and number of samples that are not locked, on some of the samples."""
        objective = self.plan.objective
        cost = right = total = 0.0
        lost = 0
        for first in range(0, rows.size, _SCORED_AT_ONCE):
            part = rows[first : first + _SCORED_AT_ONCE]
            system = batch_system(self.network, self.parameters, self.inputs[part])
            settled = settle_batch(system, system.eigenvalue_rounding)
            outputs = settled.full[:, list(self.network.outputs)]
            weights = self.weights[part]
            cost += float(weights @ objective.cost(outputs, self.targets[part]))
            right += float(weights @ (objective.decide(outputs) == self.labels[part]))
            total += float(weights.sum())
            lost += int(np.sum(~settled.locked))
        return cost / max(total, 1e-300), right / max(total, 1e-300), lost

    def _watch(self, record: EpochRecord) -> bool:
        """Keep the parameters of lowest validation cost, and say whether patience has run out."""
        if self.plan.patience is None:
            return False
        if self.best is None or record.validation_loss < self.best[0]:
            self.best = record.validation_loss, {name: values.copy() for name, values in self.parameters.items()}
            self.waited = 0
            return False
        self.waited += 1
        return self.waited >= self.plan.patience


def _plan(recipe: Recipe | None, changes: dict[str, Any]) -> Recipe:
    known = [item.name for item in dataclasses.fields(Recipe)]
    for name in changes:
        if name not in known:
            raise TypeError(f"learn has no option {name!r}. Options of the recipe are {', '.join(known)}.")
    return dataclasses.replace(recipe or Recipe(), **changes)


def _checked_samples(
    network: Network, plan: Recipe, x: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[FloatArray, IntArray, FloatArray]:
    require_batches(network)
    for name in plan.learn:
        if name.startswith("field") and network.field_strength is None:
            raise ValueError(f"The recipe lets {name!r} learn, but this network has no field.")
    if not network.inputs:
        raise ValueError("Learning needs a network with input oscillators. This one has none.")
    inputs = last_axis_array("x", x, len(network.inputs), "one value per input", "learn")
    labels = np.asarray(y)
    if inputs.ndim != 2 or labels.shape != inputs.shape[:1] or not labels.size:
        raise ValueError(
            "learn takes samples of shape (n, n_in), at least one, and one class number for each. "
            f"Got shapes {inputs.shape} and {labels.shape}."
        )
    if sample_weight is None:
        return inputs, labels, np.ones(labels.size)
    weights = last_axis_array("sample_weight", sample_weight, labels.size, "one weight per sample", "learn")
    if weights.ndim != 1 or np.any(weights < 0) or not np.any(weights):
        raise ValueError("The 'sample_weight' of learn must be one number per sample, none negative, not all zero.")
    return inputs, labels, weights


def _mask(network: Network, name: str) -> FloatArray:
    """Return 1 where a parameter may change: everywhere but at the inputs, which belong to the data."""
    if name == "coupling":
        return np.ones(network.n_edges)
    mask = np.zeros(network.size)
    mask[learnable_nodes(network)] = 1.0
    return mask


def _validation_rows(plan: Recipe, labels: IntArray, stream: np.random.Generator) -> IntArray:
    """Return the rows held back: the same share of every class, at least one of each, never all of one."""
    if plan.validation_fraction == 0:
        return np.zeros(0, dtype=np.int64)
    chosen = []
    for label in np.unique(labels):
        rows = stream.permutation(np.flatnonzero(labels == label))
        chosen.append(rows[: min(max(1, round(plan.validation_fraction * rows.size)), rows.size - 1)])
    return np.sort(np.concatenate(chosen))
