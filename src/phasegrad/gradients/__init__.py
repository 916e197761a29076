"""Gradients: every way to one behind one signature, and the table that compares them."""

from phasegrad.gradients._accuracy import LIMIT
from phasegrad.gradients._adjoint import adjoint
from phasegrad.gradients._autograd import autograd
from phasegrad.gradients._compare import GradientTable, check_gradients, cosine, relative_error
from phasegrad.gradients._copies import dyadic
from phasegrad.gradients._differences import finite_difference
from phasegrad.gradients._means import MeanGradient
from phasegrad.gradients._measured import gradient_from_phases
from phasegrad.gradients._moving import continuous
from phasegrad.gradients._nudged import centred, holomorphic, random_sign, two_phase
from phasegrad.gradients._planning import Measurement, plan_measurement, suggest_beta
from phasegrad.gradients._propagation import TRAINED, Propagation
from phasegrad.gradients._question import Gradient, GradientWarning, unwarned
from phasegrad.gradients._thermal import stochastic

__all__ = [
    "LIMIT",
    "TRAINED",
    "Gradient",
    "GradientTable",
    "GradientWarning",
    "MeanGradient",
    "Measurement",
    "Propagation",
    "adjoint",
    "autograd",
    "centred",
    "check_gradients",
    "continuous",
    "cosine",
    "dyadic",
    "finite_difference",
    "gradient_from_phases",
    "holomorphic",
    "plan_measurement",
    "random_sign",
    "relative_error",
    "stochastic",
    "suggest_beta",
    "two_phase",
    "unwarned",
]
