"""Training: one plan, one run, any engine behind one seam."""

from phasegrad.equilibria import Settling
from phasegrad.training._descent import HALVINGS as HALVINGS
from phasegrad.training._engine import (
    Engine as Engine,
    Problem as Problem,
    Progress as Progress,
    Tallies as Tallies,
    tally as tally,
)
from phasegrad.training._history import (
    DeviceError as DeviceError,
    History as History,
    Training,
    TrainingState,
    TrainingWarning,
)
from phasegrad.training._lanes import processors as processors
from phasegrad.training._learner import Learner as Learner, missing as missing
from phasegrad.training._optimizers import (
    Adam as Adam,
    Arrays as Arrays,
    Constant as Constant,
    Cosine as Cosine,
    Memory as Memory,
    Momentum as Momentum,
    Optimizer as Optimizer,
    Schedule as Schedule,
    Staircase as Staircase,
)
from phasegrad.training._plan import Plan, Shuffle as Shuffle
from phasegrad.training._samples import Samples as Samples
from phasegrad.training._tensors import DTYPES as DTYPES
from phasegrad.training._train import (
    ENGINES as ENGINES,
    Interrupted as Interrupted,
    Report as Report,
    check_device as check_device,
    prepare as prepare,
    train,
    train_whole as train_whole,
)

__all__ = [
    "Plan",
    "Settling",
    "Training",
    "TrainingState",
    "TrainingWarning",
    "train",
]
