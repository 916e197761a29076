"""The door to the torch engine: says what it refuses, and imports PyTorch when it is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, require
from phasegrad.gradients import METHODS
from phasegrad.training._engine import Problem, Progress, Tallies
from phasegrad.training._optimizers import Adam, Momentum

#: "tf32" are single-precision numbers whose products are rounded to ten bits on the way in, on devices that have them.
DTYPES = ("float32", "float64", "tf32")


class TorchEngine:
    """Trains layered networks on tensors; see `phasegrad.training._engine.Engine`."""

    def __init__(self, problem: Problem) -> None:
        from phasegrad.training._torch import Trainer, checked_device

        device = checked_device(problem.device)
        self.trainers = [Trainer(problem, number, device) for number in range(len(problem.networks))]

    @staticmethod
    def refuses(problem: Problem) -> str:
        """Return why it cannot do this, in a sentence; empty if it can."""
        try:
            require(["torch"], "torch", "The torch engine")
        except ImportError as error:
            return str(error)
        from phasegrad.tensors import refuses

        plan = problem.plan
        if plan.warm_start != "none" or plan.accept is not None:
            return "The torch engine settles every sample from phase zero and takes stable states alone."
        if plan.frequencies == "relative" and "omega" in plan.rates and problem.networks[0].pinned:
            return "The torch engine descends along frequencies as they are, not relative to their mean."
        known = [name for name, method in METHODS.items() if method.signs is not None]
        if plan.gradient not in known or plan.gradient_options:
            return (
                f"The torch engine has the gradients {', '.join(known)}, without options, and none by finite "
                "differences or of another kind."
            )
        if tuple(plan.objective.nodes(problem.networks[0])) != problem.networks[0].outputs:
            return "The torch engine nudges the outputs of a network, and nothing else."
        if type(plan.optimizer) not in (Adam, Momentum):
            return f"The torch engine knows the optimisers Adam and Momentum, not {plan.optimizer!r}."
        return refuses(problem.networks[0])

    @property
    def progress(self) -> Progress:
        """Where it stands."""
        return Progress.joined([trainer.moves.progress() for trainer in self.trainers])

    def train(self, orders: Array, factors: FloatArray, streams: Sequence[np.random.Generator]) -> Tallies:
        """Train for one epoch per column of ``orders`` (R, epochs, n)."""
        every: list[Any] = zip(self.trainers, orders, streams, strict=True)  # type: ignore[assignment]
        return Tallies.joined([trainer.train(order, factors, stream) for trainer, order, stream in every])

    def score(self, part: str) -> Tallies:
        """Return the sums over a part, (R, 1)."""
        return Tallies.joined([trainer.score(part) for trainer in self.trainers])

    def stop(self, chosen: BoolArray) -> None:
        """Let some of the networks learn no more."""
        for trainer, over in zip(self.trainers, chosen, strict=True):
            if over:
                trainer.moves.active.fill_(False)
