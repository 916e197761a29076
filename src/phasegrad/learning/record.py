"""What learning in mini-batches leaves behind: a record of every epoch, the network, and the state to go on from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from phasegrad.learning.optimizers import Arrays, Memory
from phasegrad.learning.recipe import Recipe
from phasegrad.network import Network
from phasegrad.validation import FloatArray, IntArray


class EpochRecord(NamedTuple):
    """Scores and counts of one epoch."""

    epoch: int
    train_loss: float
    train_accuracy: float
    validation_loss: float
    validation_accuracy: float
    skipped: int
    shortened: int
    updates: int
    learning_rate: float


@dataclass(frozen=True, eq=False)
class LearningHistory:
    """One entry per epoch, the first before any training.

    Attributes
    ----------
    epoch : ndarray of int, shape (T,)
    train_loss, train_accuracy : ndarray, shape (T,)
        Running means over the epoch, taken while the parameters moved; at epoch 0 those of the untrained network.
    validation_loss, validation_accuracy : ndarray, shape (T,)
        On the part that was held back, after the epoch; NaN where there is none.
    skipped : ndarray of int, shape (T,)
        Training samples that took no part in an update because they had no stable locked state.
    shortened, updates : ndarray of int, shape (T,)
        Updates that the lock guard shortened, of how many.
    learning_rate : ndarray, shape (T,)
    """

    epoch: IntArray
    train_loss: FloatArray
    train_accuracy: FloatArray
    validation_loss: FloatArray
    validation_accuracy: FloatArray
    skipped: IntArray
    shortened: IntArray
    updates: IntArray
    learning_rate: FloatArray

    @classmethod
    def of(cls, records: Sequence[EpochRecord]) -> LearningHistory:
        """Return the history of a list of records."""
        return cls(*(np.array(column) for column in zip(*records, strict=True)))


@dataclass(frozen=True, eq=False)
class LearningState:
    """All that is needed to go on exactly where learning stopped, between two epochs."""

    epoch: int
    parameters: Arrays
    memory: Memory
    stream: dict[str, Any]
    held_back: IntArray
    best: tuple[float, Arrays] | None
    waited: int
    records: tuple[EpochRecord, ...]


@dataclass(frozen=True, eq=False)
class Learned:
    """A trained network, its history and the state to go on from.

    Attributes
    ----------
    network : Network
        Of the last epoch; with patience, of the epoch with the lowest validation cost.
    history : LearningHistory
    state : LearningState
    recipe : Recipe
    stopped_early, interrupted : bool
        Whether patience ran out, or somebody stopped it.
    """

    network: Network
    history: LearningHistory
    state: LearningState
    recipe: Recipe
    stopped_early: bool = False
    interrupted: bool = False

    def __str__(self) -> str:
        history = self.history
        text = (
            f"{self.state.epoch} epochs: train accuracy {history.train_accuracy[0]:.1%} untrained, "
            f"{history.train_accuracy[-1]:.1%} trained"
        )
        if np.isfinite(history.validation_accuracy[-1]):
            text += f"; validation {history.validation_accuracy[0]:.1%}, {history.validation_accuracy[-1]:.1%}"
        return (
            f"{text}; {int(history.skipped[1:].sum())} samples skipped, "
            f"{int(history.shortened.sum())} of {int(history.updates.sum())} updates shortened by the lock guard"
        )
