"""What a training engine is: something that holds networks and their samples, trains for epochs, and scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray
from phasegrad.networks import Network
from phasegrad.objectives import ClassObjective, Cost
from phasegrad.training._optimizers import Arrays, Memory
from phasegrad.training._plan import Plan
from phasegrad.training._samples import Samples


class Tallies(NamedTuple):
    """Sums over the samples of epochs or of a part, (R, epochs).

    ``weight`` is that of all samples, ``settled`` that of those with a stable equilibrium, over which ``cost``,
    ``separation`` (first output phase minus last) and ``common`` (mean output phase) are summed; a sample without one
    is never ``correct``. The others are counts: of samples without equilibrium, with an unstable one, without a part in
    an update; of updates that the lock guard shortened, and of all updates.
    """

    weight: FloatArray
    settled: FloatArray
    cost: FloatArray
    correct: FloatArray
    separation: FloatArray
    common: FloatArray
    unsettled: FloatArray
    unstable: FloatArray
    skipped: FloatArray
    shortened: FloatArray
    updates: FloatArray

    @classmethod
    def zeros(cls, *shape: int) -> Tallies:
        """Return sums of nothing."""
        return cls(*np.zeros((len(cls._fields), *shape)))

    def __add__(self, other: Any) -> Tallies:
        """Return the sums of both."""
        return Tallies(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    @classmethod
    def joined(cls, parts: Sequence[Tallies]) -> Tallies:
        """Return the sums of several groups of networks as one."""
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    @classmethod
    def epochs(cls, parts: Sequence[Tallies]) -> Tallies:
        """Return the sums (R,) of several epochs as (R, epochs)."""
        return cls(*(np.stack(columns, axis=1) for columns in zip(*parts, strict=True)))

    def at(self, epoch: int) -> Tallies:
        """Return the sums (R,) of one epoch."""
        return Tallies(*(each[:, epoch] for each in self))

    def over_epochs(self) -> Tallies:
        """Return the sums (R,) over all epochs."""
        return Tallies(*(each.sum(axis=1) for each in self))


def tally(cost: Cost, outputs: FloatArray, ok: BoolArray, unstable: BoolArray, some: Samples) -> Tallies:
    """Return the sums (R,) over samples, from their outputs (R, b, M) and what became of them, (R, b)."""
    every = bool(ok.all())
    seen = outputs if every else np.where(ok[..., None], outputs, 0.0)
    flat = seen.reshape(ok.size, -1)
    costs = cost.cost(flat, some.targets.reshape(ok.size, -1)).reshape(ok.shape)
    right: Any = np.nan
    if isinstance(cost, ClassObjective):
        right = cost.decide(flat).reshape(ok.shape) == some.labels
    counted = some.weights if every else np.where(ok, some.weights, 0.0)
    columns = {
        "weight": some.weights,
        "settled": counted,
        "cost": counted * costs if every else np.where(ok, counted * costs, 0.0),
        "correct": counted * right,
        "separation": counted * (seen[..., 0] - seen[..., -1]),
        "common": counted * (seen.sum(axis=-1) / seen.shape[-1]),
        "unsettled": ~ok & ~unstable,
        "unstable": unstable,
    }
    sums = {name: each.sum(axis=-1, dtype=float) for name, each in columns.items()}
    return Tallies.zeros(len(ok))._replace(**sums)


class Progress(NamedTuple):
    """All that changes in an engine, between two epochs: parameters (R, width), memory, and warm starts (R, N)."""

    parameters: Arrays
    memory: Memory
    phases: FloatArray

    def of(self, rows: Any) -> Progress:
        """Return the progress of some of the networks."""
        parameters = {name: each[rows] for name, each in self.parameters.items()}
        return Progress(parameters, self.memory.of(rows), self.phases[rows])

    @classmethod
    def joined(cls, parts: Sequence[Progress]) -> Progress:
        """Return the progress of several groups of networks as one."""
        if len(parts) == 1:
            return parts[0]
        memories = [part.memory for part in parts]
        memory = Memory(
            np.concatenate([each.steps for each in memories]),
            _joined([each.first for each in memories]),
            _joined([each.second for each in memories]),
        )
        parameters = _joined([part.parameters for part in parts])
        return cls(parameters, memory, np.concatenate([part.phases for part in parts]))


def _joined(parts: Sequence[Arrays]) -> Arrays:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@dataclass(frozen=True, eq=False)
class Problem:
    """What an engine is given: networks of one topology, their samples, the plan, and where to begin.

    ``masks`` (R, width) say which entries of every parameter learn; those without one do not. ``device`` and ``dtype``
    are for engines on tensors.
    """

    networks: Sequence[Network]
    plan: Plan
    parts: Mapping[str, Samples]
    masks: Mapping[str, BoolArray]
    begin: Progress
    threads: int | None = None
    device: str | None = None
    dtype: str | None = None


class Engine(Protocol):
    """Trains R networks of one topology; ``progress`` is where it stands."""

    progress: Progress

    @staticmethod
    def refuses(problem: Problem) -> str:
        """Return why it cannot do this, in a sentence; empty if it can."""

    def train(self, orders: Array, factors: FloatArray, streams: Sequence[np.random.Generator]) -> Tallies:
        """Train for one epoch per column of ``orders`` (R, epochs, n), at these factors of the learning rates."""

    def score(self, part: str) -> Tallies:
        """Return the sums over a part, (R, 1)."""

    def stop(self, chosen: BoolArray) -> None:
        """Let some of the networks (R,) learn no more."""
