"""phasegrad: learning in networks of coupled oscillators by equilibrium propagation.

Let a network settle, nudge its outputs, let it settle again: the phase shift of every oscillator, divided by
the nudge, is minus the gradient of the cost with respect to its natural frequency.
"""

from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

from phasegrad import datasets
from phasegrad.critical import CriticalScale, critical_scale
from phasegrad.dynamics import Nudge, energy, force, laplacian
from phasegrad.equilibria import Equilibria, find_equilibria
from phasegrad.equilibrium import Equilibrium, Status, find_equilibrium
from phasegrad.gradients import (
    Gradient,
    GradientTable,
    GradientWarning,
    adjoint,
    autograd,
    centred,
    check_gradients,
    finite_difference,
    holomorphic,
    suggest_beta,
    two_phase,
)
from phasegrad.interactions import Interaction, OddSeries, Sine
from phasegrad.learning import Adam, Cosine, Learned, LearningHistory, LearningState, Momentum, Recipe, learn
from phasegrad.models import Model, Prediction, load_model, save_model
from phasegrad.network import Network
from phasegrad.objectives import (
    ClassObjective,
    ClassTargets,
    CosineCrossEntropy,
    NearestTarget,
    OneHotPhases,
    OutputDifferences,
    PaperPair,
    PeriodicDistance,
    PhaseTargets,
)
from phasegrad.seeding import multi_start_seed, output_seed, random_seed, spectral_seed
from phasegrad.solvers import GradientFlow, GuardedNewton, SparseNewton
from phasegrad.topologies import (
    complete,
    erdos_renyi,
    from_matrix,
    from_networkx,
    grid,
    layered,
    random_network,
    random_regular,
    ring,
    signed_layers,
    small_world,
    to_networkx,
)
from phasegrad.training import History, Protocol, TrainingResult, TrainingState, train, train_many

if TYPE_CHECKING:
    from phasegrad.estimators import OscillatorClassifier

__version__ = _version("phasegrad")

__all__ = [
    "Adam",
    "ClassObjective",
    "ClassTargets",
    "Cosine",
    "CosineCrossEntropy",
    "CriticalScale",
    "Equilibria",
    "Equilibrium",
    "Gradient",
    "GradientFlow",
    "GradientTable",
    "GradientWarning",
    "GuardedNewton",
    "History",
    "Interaction",
    "Learned",
    "LearningHistory",
    "LearningState",
    "Model",
    "Momentum",
    "NearestTarget",
    "Network",
    "Nudge",
    "OddSeries",
    "OneHotPhases",
    "OscillatorClassifier",
    "OutputDifferences",
    "PaperPair",
    "PeriodicDistance",
    "PhaseTargets",
    "Prediction",
    "Protocol",
    "Recipe",
    "Sine",
    "SparseNewton",
    "Status",
    "TrainingResult",
    "TrainingState",
    "adjoint",
    "autograd",
    "centred",
    "check_gradients",
    "complete",
    "critical_scale",
    "datasets",
    "energy",
    "erdos_renyi",
    "find_equilibria",
    "find_equilibrium",
    "finite_difference",
    "force",
    "from_matrix",
    "from_networkx",
    "grid",
    "holomorphic",
    "laplacian",
    "layered",
    "learn",
    "load_model",
    "multi_start_seed",
    "output_seed",
    "random_network",
    "random_regular",
    "random_seed",
    "ring",
    "save_model",
    "signed_layers",
    "small_world",
    "spectral_seed",
    "suggest_beta",
    "to_networkx",
    "train",
    "train_many",
    "two_phase",
]


def __getattr__(name: str) -> Any:
    """Import the classifier, and scikit-learn with it, when it is first asked for."""
    if name == "OscillatorClassifier":
        from phasegrad.estimators import OscillatorClassifier

        return OscillatorClassifier
    raise AttributeError(f"module 'phasegrad' has no attribute {name!r}")
