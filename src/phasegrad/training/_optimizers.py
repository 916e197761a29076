r"""Optimisers and schedules: from the mean gradient of a mini-batch to a step of every parameter.

Each is a frozen value of its own settings. What an optimiser remembers between steps is a `Memory` of plain arrays, so
that training can stop, be stored and go on. All arrays have the shape (R, width): R networks learn side by side. The
arithmetic of a step is that of NumPy arrays and of PyTorch tensors alike.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phasegrad._validation import BoolArray, IntArray, float_between, positive_float, whole_number

Arrays = dict[str, NDArray[Any]]


def functions_for(values: Any) -> Any:
    """Return the module whose functions are for these values: NumPy of arrays, PyTorch of tensors."""
    return np if isinstance(values, np.ndarray) else sys.modules["torch"]


@dataclass(frozen=True, eq=False)
class Memory:
    """How many steps every network took, (R,), and up to two moments of the gradient by every parameter, (R, width)."""

    steps: IntArray
    first: Arrays
    second: Arrays

    def merged(self, later: Memory, chosen: BoolArray) -> Memory:
        """Return the later memory of some of the networks, this one of the others."""
        where, rows = functions_for(chosen).where, chosen[:, None]
        first = {name: where(rows, values, self.first[name]) for name, values in later.first.items()}
        second = {name: where(rows, values, self.second[name]) for name, values in later.second.items()}
        return Memory(where(chosen, later.steps, self.steps), first, second)

    def of(self, rows: Any) -> Memory:
        """Return the memory of some of the networks."""
        first, second = ({name: each[rows] for name, each in part.items()} for part in (self.first, self.second))
        return Memory(self.steps[rows], first, second)


class Optimizer(ABC):
    """Turns gradients into steps."""

    #: How many moments of the gradient it remembers.
    moments = 0

    def start(self, parameters: Mapping[str, NDArray[Any]]) -> Memory:
        """Return the memory before the first step."""
        count = next((values.shape[0] for values in parameters.values()), 1)
        first, second = (
            {name: np.zeros(values.shape) for name, values in parameters.items()} if self.moments > k else {}
            for k in range(2)
        )
        return Memory(np.zeros(count, dtype=np.int64), first, second)

    @abstractmethod
    def step(self, memory: Memory, gradients: Arrays, rates: Mapping[str, float]) -> tuple[Arrays, Memory]:
        """Return what to add to every parameter, and the memory after it."""


@dataclass(frozen=True)
class Momentum(Optimizer):
    """Stochastic gradient descent with momentum: v = momentum v - rate g; 0 is plain descent.

    See Also
    --------
    Adam : The Adam optimiser.
    Plan : How networks are trained.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.Plan(optimizer=pg.optim.Momentum(0.5)).optimizer
    Momentum(momentum=0.5)
    """

    momentum: float = 0.9

    moments = 1

    def __post_init__(self) -> None:
        float_between("momentum", self.momentum, 0, 1 - 1e-9, "Momentum")

    def start(self, parameters: Mapping[str, NDArray[Any]]) -> Memory:
        """Return the memory before the first step; plain descent has none."""
        memory = super().start(parameters)
        return memory if self.momentum else Memory(memory.steps, {}, {})

    def step(self, memory: Memory, gradients: Arrays, rates: Mapping[str, float]) -> tuple[Arrays, Memory]:
        """Return what to add to every parameter, and the memory after it."""
        steps = {name: -rates[name] * slope for name, slope in gradients.items()}
        if self.momentum == 0:
            return steps, Memory(memory.steps + 1, {}, {})
        velocity = {name: self.momentum * memory.first[name] + step for name, step in steps.items()}
        return dict(velocity), Memory(memory.steps + 1, velocity, {})


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam (Kingma and Ba 2015): steps of about the rate, whatever the scale of the gradient.

    See Also
    --------
    Momentum : Descent with momentum.
    Cosine : Half a cosine as the schedule of the rate.
    Plan : How networks are trained.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.Plan(optimizer=pg.optim.Adam(second=0.99)).optimizer
    Adam(first=0.9, second=0.99, epsilon=1e-08)
    """

    first: float = 0.9
    second: float = 0.999
    epsilon: float = 1e-8

    moments = 2

    def __post_init__(self) -> None:
        float_between("first", self.first, 0, 1 - 1e-9, "Adam")
        float_between("second", self.second, 0, 1 - 1e-9, "Adam")
        positive_float("epsilon", self.epsilon, "Adam")

    def step(self, memory: Memory, gradients: Arrays, rates: Mapping[str, float]) -> tuple[Arrays, Memory]:
        """Return what to add to every parameter, and the memory after it."""
        count = memory.steps + 1
        functions = functions_for(count)
        # The bias corrections of both moments, one per network, go into the scale of the step.
        spread = functions.sqrt(1 - self.second**count)[:, None]
        scale = spread / (1 - self.first**count)[:, None]
        means: Arrays = {}
        squares: Arrays = {}
        steps: Arrays = {}
        for name, slope in gradients.items():
            means[name] = mean = _running(memory.first[name], slope, self.first)
            squares[name] = square = _running(memory.second[name], slope * slope, self.second)
            # The corrections are counted in double precision, whatever the numbers are.
            least, most = (functions.asarray(each, dtype=slope.dtype) for each in (self.epsilon * spread, -scale))
            step = functions.sqrt(square)
            step += least
            step = mean / step
            step *= rates[name] * most
            steps[name] = step
        return steps, Memory(count, means, squares)


def _running(mean: Any, value: Any, kept: float) -> Any:
    """Return kept mean + (1 - kept) value, for tensors in one kernel."""
    if not isinstance(mean, np.ndarray):
        return mean.lerp(value, 1 - kept)
    after = kept * mean
    after += (1 - kept) * value
    return after


class Schedule(ABC):
    """How the learning rate changes in the course of training."""

    @abstractmethod
    def factor(self, progress: float) -> float:
        """Return what the learning rate is multiplied by after a share ``progress`` of all epochs, 0 to 1."""


@dataclass(frozen=True)
class Constant(Schedule):
    """The learning rate stays as it is."""

    def factor(self, progress: float) -> float:
        """Return 1."""
        del progress
        return 1.0


@dataclass(frozen=True)
class Cosine(Schedule):
    """Half a cosine from 1 down to ``final``.

    See Also
    --------
    Adam : The Adam optimiser.
    Plan : How networks are trained.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.Plan(schedule=pg.optim.Cosine(final=0.1)).schedule
    Cosine(final=0.1)
    """

    final: float = 0.0

    def __post_init__(self) -> None:
        float_between("final", self.final, 0, 1, "Cosine")

    def factor(self, progress: float) -> float:
        """Return the half cosine."""
        return self.final + (1 - self.final) * 0.5 * (1 + math.cos(math.pi * min(max(progress, 0.0), 1.0)))


@dataclass(frozen=True)
class Staircase(Schedule):
    """Multiplied by ``ratio`` at the end of each of ``stairs`` equal parts of the training but the last."""

    ratio: float = 0.3
    stairs: int = 3

    def __post_init__(self) -> None:
        float_between("ratio", self.ratio, 0, 1, "Staircase")
        whole_number("stairs", self.stairs, 1, "Staircase")

    def factor(self, progress: float) -> float:
        """Return ratio to the power of the stairs gone down."""
        return float(self.ratio ** min(int(progress * self.stairs), self.stairs - 1))


OPTIMIZERS: dict[str, Optimizer] = {"adam": Adam(), "momentum": Momentum(), "sgd": Momentum(0.0)}
SCHEDULES: dict[str, Schedule] = {"constant": Constant(), "cosine": Cosine(), "staircase": Staircase()}
