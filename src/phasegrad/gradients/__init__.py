"""Gradients: six ways behind one signature, and the table that compares them."""

from phasegrad.gradients._accuracy import LIMIT
from phasegrad.gradients._adjoint import adjoint
from phasegrad.gradients._autograd import autograd
from phasegrad.gradients._compare import GradientTable, check_gradients, cosine, relative_error
from phasegrad.gradients._differences import finite_difference
from phasegrad.gradients._means import MeanGradient
from phasegrad.gradients._measured import gradient_from_phases
from phasegrad.gradients._nudged import centred, holomorphic, two_phase
from phasegrad.gradients._planning import Measurement, plan_measurement, suggest_beta
from phasegrad.gradients._question import Gradient, GradientWarning, unwarned

__all__ = [
    "LIMIT",
    "Gradient",
    "GradientTable",
    "GradientWarning",
    "MeanGradient",
    "Measurement",
    "adjoint",
    "autograd",
    "centred",
    "check_gradients",
    "cosine",
    "finite_difference",
    "gradient_from_phases",
    "holomorphic",
    "plan_measurement",
    "relative_error",
    "suggest_beta",
    "two_phase",
    "unwarned",
]
