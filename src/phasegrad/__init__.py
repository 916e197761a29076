"""phasegrad: learning in networks of coupled oscillators by equilibrium propagation.

Let a network settle, nudge its outputs, let it settle again: the phase shift of every oscillator, divided by
the nudge, is minus the gradient of the cost with respect to its natural frequency.
"""

import os as _os
import signal as _signal
import sys as _sys
from contextlib import suppress as _suppress
from importlib.metadata import PackageNotFoundError as _PackageNotFoundError
from importlib.metadata import version as _version
from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING, Any


def _end(number: int, _frame: object) -> None:
    """End this process at once and without a word."""
    _os._exit(128 + number)


# The imports below take a second, in which the command line can be stopped, too; every other program's signals are its
# own. The command is `phasegrad` or `python -m phasegrad`, of which sys.argv holds what follows that word.
_program = _os.path.basename("".join(_sys.orig_argv[-len(_sys.argv) :][:1]))
if _program.removesuffix(".exe") in ("phasegrad", "-mphasegrad"):
    for _number, _default in ((_signal.SIGINT, _signal.default_int_handler), (_signal.SIGTERM, _signal.SIG_DFL)):
        if _signal.getsignal(_number) is _default:
            _signal.signal(_number, _end)

from phasegrad import circuits, datasets, grids, hardware, ising, memory
from phasegrad.dynamics import Nudge, energy, force, laplacian
from phasegrad.equilibria import (
    CriticalScale,
    Equilibria,
    Equilibrium,
    Settling,
    Status,
    critical_scale,
    find_equilibria,
    find_equilibrium,
)
from phasegrad.gradients import (
    Gradient,
    GradientTable,
    GradientWarning,
    adjoint,
    autograd,
    centred,
    check_gradients,
    continuous,
    cosine,
    dyadic,
    finite_difference,
    gradient_from_phases,
    holomorphic,
    random_sign,
    stochastic,
    suggest_beta,
    two_phase,
)
from phasegrad.graphs import Layout, Link
from phasegrad.initial import multi_start_frequencies, output_frequencies, random_frequencies, spectral_frequencies
from phasegrad.measurement import Measurement, Readout, plan_measurement
from phasegrad.models import Model, Prediction, load_model, save_model
from phasegrad.networks import (
    Convolution,
    Dense,
    Network,
    complete,
    erdos_renyi,
    from_matrix,
    from_networkx,
    honeycomb,
    lattice,
    layered,
    layers,
    mean_field,
    random_network,
    random_regular,
    ring,
    signed_layers,
    small_world,
    to_matrix,
    to_networkx,
)
from phasegrad.objectives import (
    ClassObjective,
    CosineCrossEntropy,
    Cost,
    NearestTarget,
    OneHotPhases,
    OutputDifferences,
    PaperPair,
    PeriodicDistance,
    PhaseTargets,
    Torques,
)
from phasegrad.simulation import (
    AmplitudeTrajectory,
    Trajectory,
    Transition,
    simulate,
    simulate_amplitudes,
    transition,
)
from phasegrad.solvers import GradientFlow, Newton
from phasegrad.terms import Interaction, NodeField, OddSeries, Parameter, Sine, Stiffness, Term
from phasegrad.training import (
    Adam,
    Cosine,
    History,
    Momentum,
    Plan,
    Training,
    TrainingState,
    TrainingWarning,
    classifier_plan,
    image_plan,
    load_state,
    paper_plan,
    save_state,
    train,
)

if TYPE_CHECKING:  # what `__getattr__` imports when it is asked for
    from phasegrad import torch as torch
    from phasegrad.estimators import OscillatorClassifier, OscillatorRegressor
    from phasegrad.laboratory import lab

__version__ = "not installed"  # a tree of sources alone, on a path
with _suppress(_PackageNotFoundError):
    __version__ = _version("phasegrad")

__all__ = [
    "Adam",
    "AmplitudeTrajectory",
    "ClassObjective",
    "Convolution",
    "Cosine",
    "CosineCrossEntropy",
    "Cost",
    "CriticalScale",
    "Dense",
    "Equilibria",
    "Equilibrium",
    "Gradient",
    "GradientFlow",
    "GradientTable",
    "GradientWarning",
    "History",
    "Interaction",
    "Layout",
    "Link",
    "Measurement",
    "Model",
    "Momentum",
    "NearestTarget",
    "Network",
    "Newton",
    "NodeField",
    "Nudge",
    "OddSeries",
    "OneHotPhases",
    "OscillatorClassifier",
    "OscillatorRegressor",
    "OutputDifferences",
    "PaperPair",
    "Parameter",
    "PeriodicDistance",
    "PhaseTargets",
    "Plan",
    "Prediction",
    "Readout",
    "Settling",
    "Sine",
    "Status",
    "Stiffness",
    "Term",
    "Torques",
    "Training",
    "TrainingState",
    "TrainingWarning",
    "Trajectory",
    "Transition",
    "adjoint",
    "autograd",
    "centred",
    "check_gradients",
    "circuits",
    "classifier_plan",
    "complete",
    "continuous",
    "cosine",
    "critical_scale",
    "datasets",
    "dyadic",
    "energy",
    "erdos_renyi",
    "find_equilibria",
    "find_equilibrium",
    "finite_difference",
    "force",
    "from_matrix",
    "from_networkx",
    "gradient_from_phases",
    "grids",
    "hardware",
    "holomorphic",
    "honeycomb",
    "image_plan",
    "ising",
    "lab",
    "laplacian",
    "lattice",
    "layered",
    "layers",
    "load_model",
    "load_state",
    "mean_field",
    "memory",
    "multi_start_frequencies",
    "output_frequencies",
    "paper_plan",
    "plan_measurement",
    "random_frequencies",
    "random_network",
    "random_regular",
    "random_sign",
    "ring",
    "save_model",
    "save_state",
    "signed_layers",
    "simulate",
    "simulate_amplitudes",
    "small_world",
    "spectral_frequencies",
    "stochastic",
    "suggest_beta",
    "to_matrix",
    "to_networkx",
    "train",
    "transition",
    "two_phase",
]

_ESTIMATORS = ("OscillatorClassifier", "OscillatorRegressor")


def __dir__() -> list[str]:
    layer = ["torch"] if _find_spec("torch") is not None else []
    return [name for name in {*globals(), *__all__, *layer} if name not in ("Any", "TYPE_CHECKING")]


if not TYPE_CHECKING:  # a type checker would take every name that there is not for one of these

    def __getattr__(name: str) -> Any:
        """Import the estimators with scikit-learn, `torch` with PyTorch, and the lab, when first asked for."""
        if name in _ESTIMATORS:
            from phasegrad import estimators

            return getattr(estimators, name)
        if name == "lab":
            from phasegrad.laboratory import lab

            return lab
        if name == "torch":
            import phasegrad.torch as layer

            return layer
        raise AttributeError(f"module 'phasegrad' has no attribute {name!r}")
