"""Training: the paper's learning protocol, on one network or on many at once."""

from phasegrad.training.history import History, TrainingResult, TrainingState
from phasegrad.training.protocol import Protocol
from phasegrad.training.trainer import leaked, train, train_many

__all__ = ["History", "Protocol", "TrainingResult", "TrainingState", "leaked", "train", "train_many"]
