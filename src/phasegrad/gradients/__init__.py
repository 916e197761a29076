"""Gradients: six independent ways behind one signature, and the table that compares them."""

from phasegrad.gradients.compare import GradientTable, check_gradients
from phasegrad.gradients.differences import finite_difference
from phasegrad.gradients.implicit import adjoint
from phasegrad.gradients.nudged import centred, holomorphic, suggest_beta, two_phase
from phasegrad.gradients.result import Gradient, GradientWarning
from phasegrad.gradients.torch_autograd import autograd

__all__ = [
    "Gradient",
    "GradientTable",
    "GradientWarning",
    "adjoint",
    "autograd",
    "centred",
    "check_gradients",
    "finite_difference",
    "holomorphic",
    "suggest_beta",
    "two_phase",
]
