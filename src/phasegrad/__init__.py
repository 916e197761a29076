"""phasegrad: learning in networks of coupled oscillators by equilibrium propagation.

Let a network settle, nudge its outputs, let it settle again: the phase shift of every oscillator, divided by
the nudge, is minus the gradient of the cost with respect to its natural frequency.

The names of the first hour are here; everything else is in submodules, which are imported when first used.
"""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:  # `__getattr__` imports each of these when it is first used
    from phasegrad import (
        circuits as circuits,
        datasets as datasets,
        dynamics as dynamics,
        gradients as gradients,
        grids as grids,
        hardware as hardware,
        initial as initial,
        ising as ising,
        measurement as measurement,
        memory as memory,
        networks as networks,
        objectives as objectives,
        optim as optim,
        simulation as simulation,
        solvers as solvers,
        terms as terms,
        torch as torch,
        training as training,
    )
    from phasegrad.dynamics import Nudge as Nudge
    from phasegrad.equilibria import (
        Equilibrium as Equilibrium,
        Status as Status,
        critical_scale as critical_scale,
        find_equilibria as find_equilibria,
        find_equilibrium as find_equilibrium,
    )
    from phasegrad.estimators import (
        OscillatorClassifier as OscillatorClassifier,
        OscillatorRegressor as OscillatorRegressor,
    )
    from phasegrad.gradients import (
        Gradient as Gradient,
        adjoint as adjoint,
        centred as centred,
        check_gradients as check_gradients,
        two_phase as two_phase,
    )
    from phasegrad.laboratory import lab as lab
    from phasegrad.models import Model as Model
    from phasegrad.networks import (
        Convolution as Convolution,
        Dense as Dense,
        Network as Network,
        from_networkx as from_networkx,
        layered as layered,
        layers as layers,
    )
    from phasegrad.objectives import (
        CosineCrossEntropy as CosineCrossEntropy,
        Cost as Cost,
        PhaseTargets as PhaseTargets,
    )
    from phasegrad.simulation import Trajectory as Trajectory, simulate as simulate
    from phasegrad.training import Plan as Plan, Training as Training, train as train

#: Where the names of the first hour are defined.
_HOMES = {
    "Nudge": "dynamics",
    "Equilibrium": "equilibria",
    "Status": "equilibria",
    "critical_scale": "equilibria",
    "find_equilibria": "equilibria",
    "find_equilibrium": "equilibria",
    "OscillatorClassifier": "estimators",
    "OscillatorRegressor": "estimators",
    "Gradient": "gradients",
    "adjoint": "gradients",
    "centred": "gradients",
    "check_gradients": "gradients",
    "two_phase": "gradients",
    "lab": "laboratory",
    "Model": "models",
    "Convolution": "networks",
    "Dense": "networks",
    "Network": "networks",
    "from_networkx": "networks",
    "layered": "networks",
    "layers": "networks",
    "CosineCrossEntropy": "objectives",
    "Cost": "objectives",
    "PhaseTargets": "objectives",
    "Trajectory": "simulation",
    "simulate": "simulation",
    "Plan": "training",
    "Training": "training",
    "train": "training",
}
#: Public submodules. `torch` is one more, where PyTorch is installed.
_MODULES = (
    "circuits",
    "datasets",
    "dynamics",
    "gradients",
    "grids",
    "hardware",
    "initial",
    "ising",
    "measurement",
    "memory",
    "networks",
    "objectives",
    "optim",
    "simulation",
    "solvers",
    "terms",
    "training",
)

__all__ = sorted((*_HOMES, *_MODULES))


def __dir__() -> list[str]:
    from importlib.util import find_spec

    layer = ["torch"] if find_spec("torch") is not None else []
    return [*__all__, *layer, "__version__"]


if not _TYPE_CHECKING:  # a type checker would take every missing name for one of these

    def __getattr__(name: str) -> object:
        """Import a public name, or a submodule, when it is first used."""
        if name == "__version__":
            value: object = _version()
        elif name in _HOMES:
            value = getattr(_importlib.import_module(f"phasegrad.{_HOMES[name]}"), name)
        elif name.startswith("__"):
            raise AttributeError(f"module 'phasegrad' has no attribute {name!r}")
        else:
            try:
                return _importlib.import_module(f"phasegrad.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"phasegrad.{name}":
                    raise
                raise AttributeError(f"module 'phasegrad' has no attribute {name!r}") from None
        globals()[name] = value
        return value


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("phasegrad")
    except PackageNotFoundError:  # the sources alone, on a path
        return "not installed"
