"""The recipe: every number of a training in mini-batches, as one frozen value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from phasegrad.gradients.result import PARAMETERS
from phasegrad.learning.batches import GRADIENTS
from phasegrad.learning.optimizers import OPTIMIZERS, SCHEDULES, Optimizer, Schedule
from phasegrad.objectives import ClassObjective, CosineCrossEntropy
from phasegrad.validation import choice, float_between, positive_float, whole_number


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network learns in mini-batches.

    Parameters
    ----------
    learn : sequence of str
        What changes: any of "omega", "coupling", "field_strength", "field_phase". Couplings and field strengths of a
        network that is not signed stay positive. Empty, nothing learns.
    objective : ClassObjective
        Cost and decision.
    epochs, batch_size : int
        Length of the training, and samples per update.
    learning_rate : float
        Step per gradient, before the schedule; with "adam" the size of a step itself.
    optimizer : {"adam", "momentum", "sgd"} or Optimizer
    schedule : {"cosine", "constant", "staircase"} or Schedule
    gradient : {"centred", "two_phase", "adjoint"}
        From nudges +beta and -beta, from one nudge, or by one linear solve.
    beta : float
        The nudge.
    input_noise : float
        Standard deviation of noise added to the inputs of training samples, anew in every epoch.
    weight_decay : float
        Share of every coupling that is lost per update, times the learning rate.
    validation_fraction : float
        Share of the training samples held back to score; 0 holds none back.
    patience : int or None
        Stop after so many epochs without a lower validation cost, and return the best network; None never stops.
    lock_floor : float
        The lock guard: an update after which the reduced Laplacian of a sample of its batch has an eigenvalue below
        this is shortened, and counted.
    """

    learn: tuple[str, ...] = ("coupling", "field_strength", "field_phase")
    objective: ClassObjective = field(default_factory=CosineCrossEntropy)
    epochs: int = 100
    batch_size: int = 32
    learning_rate: float = 0.01
    optimizer: str | Optimizer = "adam"
    schedule: str | Schedule = "cosine"
    gradient: str = "centred"
    beta: float = 0.01
    input_noise: float = 0.0
    weight_decay: float = 0.0
    validation_fraction: float = 0.0
    patience: int | None = None
    lock_floor: float = 1e-4

    def __post_init__(self) -> None:
        owner = "the recipe"
        given: Any = self.learn
        names = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
        object.__setattr__(self, "learn", tuple(dict.fromkeys(choice("learn", n, PARAMETERS, owner) for n in names)))
        if not isinstance(self.objective, ClassObjective):
            raise TypeError(
                f"The 'objective' of {owner} must be an objective for classes, such as CosineCrossEntropy(). "
                f"Got {self.objective!r}."
            )
        for name, known, kind in (("optimizer", OPTIMIZERS, Optimizer), ("schedule", SCHEDULES, Schedule)):
            if not isinstance(getattr(self, name), kind):
                object.__setattr__(self, name, known[choice(name, getattr(self, name), known, owner)])
        choice("gradient", self.gradient, GRADIENTS, owner)
        whole_number("epochs", self.epochs, 0, owner)
        whole_number("batch_size", self.batch_size, 1, owner)
        for name in ("learning_rate", "beta", "lock_floor"):
            positive_float(name, getattr(self, name), owner)
        for name in ("input_noise", "weight_decay"):
            float_between(name, getattr(self, name), 0, float("inf"), owner)
        float_between("validation_fraction", self.validation_fraction, 0, 0.9, owner)
        if self.patience is not None:
            whole_number("patience", self.patience, 1, owner)
            if self.validation_fraction == 0:
                raise ValueError(f"The 'patience' of {owner} needs a validation_fraction above 0 to watch.")
