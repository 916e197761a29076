"""Learning in mini-batches: one network, many samples, momentum or Adam, and a guard that keeps it locked."""

from phasegrad.learning.checkpoint import load_checkpoint, save_checkpoint
from phasegrad.learning.optimizers import Adam, Constant, Cosine, Momentum, Staircase
from phasegrad.learning.recipe import Recipe
from phasegrad.learning.record import Learned, LearningHistory, LearningState
from phasegrad.learning.trainer import learn

__all__ = [
    "Adam",
    "Constant",
    "Cosine",
    "Learned",
    "LearningHistory",
    "LearningState",
    "Momentum",
    "Recipe",
    "Staircase",
    "learn",
    "load_checkpoint",
    "save_checkpoint",
]
