"""phasegrad: learning in networks of coupled oscillators by equilibrium propagation.

Let a network settle, nudge its outputs, let it settle again: the phase shift of every oscillator, divided by
the nudge, is minus the gradient of the cost with respect to its natural frequency.
"""

from importlib.metadata import version as _version

from phasegrad.dynamics import Nudge, energy, force, laplacian
from phasegrad.equilibrium import Equilibria, Equilibrium, Status, find_equilibria, find_equilibrium
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
from phasegrad.network import Network
from phasegrad.objectives import PhaseTargets
from phasegrad.solvers import GradientFlow, GuardedNewton
from phasegrad.topologies import (
    complete,
    from_matrix,
    from_networkx,
    grid,
    layered,
    random_network,
    random_regular,
    ring,
    small_world,
    to_networkx,
)

__version__ = _version("phasegrad")

__all__ = [
    "Equilibria",
    "Equilibrium",
    "Gradient",
    "GradientFlow",
    "GradientTable",
    "GradientWarning",
    "GuardedNewton",
    "Interaction",
    "Network",
    "Nudge",
    "OddSeries",
    "PhaseTargets",
    "Sine",
    "Status",
    "adjoint",
    "autograd",
    "centred",
    "check_gradients",
    "complete",
    "energy",
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
    "random_network",
    "random_regular",
    "ring",
    "small_world",
    "suggest_beta",
    "to_networkx",
    "two_phase",
]
