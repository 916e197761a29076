"""Gradients: every way to one behind one signature, and the table that compares them."""

from phasegrad.gradients._accuracy import LIMIT as LIMIT
from phasegrad.gradients._beta import beta_for as beta_for
from phasegrad.gradients._compare import (
    GradientTable as GradientTable,
    check_gradients,
    cosine,
    relative_error as relative_error,
)
from phasegrad.gradients._exact import exact_slopes as exact_slopes
from phasegrad.gradients._gradient import Gradient, GradientWarning, unwarned as unwarned
from phasegrad.gradients._local import local_products as local_products
from phasegrad.gradients._means import MeanGradient as MeanGradient
from phasegrad.gradients._meter import Meter as Meter, checked_meter as checked_meter
from phasegrad.gradients._method import Method as Method
from phasegrad.gradients._nudging import (
    NUDGES as NUDGES,
    NudgedStates as NudgedStates,
    Nudging as Nudging,
    settle_nudged as settle_nudged,
)
from phasegrad.gradients._problem import Problem as Problem, pose as pose
from phasegrad.gradients._propagation import Propagation as Propagation
from phasegrad.gradients._reading import combined as combined, gradient_from_phases
from phasegrad.gradients._schemes import Scheme as Scheme
from phasegrad.gradients._suggest_beta import suggest_beta
from phasegrad.gradients.methods import METHODS as METHODS
from phasegrad.gradients.methods.adjoint import adjoint
from phasegrad.gradients.methods.autograd import autograd
from phasegrad.gradients.methods.centred import centred
from phasegrad.gradients.methods.continuous import continuous
from phasegrad.gradients.methods.dyadic import dyadic
from phasegrad.gradients.methods.finite_difference import TRAINING_STEP as TRAINING_STEP, finite_difference
from phasegrad.gradients.methods.holomorphic import holomorphic
from phasegrad.gradients.methods.random_sign import random_sign
from phasegrad.gradients.methods.stochastic import stochastic
from phasegrad.gradients.methods.two_phase import two_phase

__all__ = [
    "Gradient",
    "GradientWarning",
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
    "random_sign",
    "stochastic",
    "suggest_beta",
    "two_phase",
]
