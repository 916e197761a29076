"""Training: one plan, one run, any engine behind one seam."""

from phasegrad.training._descent import HALVINGS
from phasegrad.training._engine import Engine, Problem, Progress, Tallies, tally
from phasegrad.training._files import load_state, save_state
from phasegrad.training._history import DeviceError, History, Training, TrainingState, TrainingWarning
from phasegrad.training._lanes import processors
from phasegrad.training._learner import Learner, missing
from phasegrad.training._optimizers import (
    Adam,
    Arrays,
    Constant,
    Cosine,
    Memory,
    Momentum,
    Optimizer,
    Schedule,
    Staircase,
)
from phasegrad.training._plan import Plan, Shuffle, classifier_plan, image_plan, paper_plan
from phasegrad.training._samples import Samples
from phasegrad.training._tensors import DTYPES
from phasegrad.training._train import ENGINES, Interrupted, Report, check_device, prepare, train, train_whole

__all__ = [
    "DTYPES",
    "ENGINES",
    "HALVINGS",
    "Adam",
    "Arrays",
    "Constant",
    "Cosine",
    "DeviceError",
    "Engine",
    "History",
    "Interrupted",
    "Learner",
    "Memory",
    "Momentum",
    "Optimizer",
    "Plan",
    "Problem",
    "Progress",
    "Report",
    "Samples",
    "Schedule",
    "Shuffle",
    "Staircase",
    "Tallies",
    "Training",
    "TrainingState",
    "TrainingWarning",
    "check_device",
    "classifier_plan",
    "image_plan",
    "load_state",
    "missing",
    "paper_plan",
    "prepare",
    "processors",
    "save_state",
    "tally",
    "train",
    "train_whole",
]
