"""Gradients: every way to one behind one signature, and the table that compares them."""

from phasegrad.gradients._accuracy import LIMIT
from phasegrad.gradients._beta import beta_for
from phasegrad.gradients._compare import GradientTable, check_gradients, cosine, relative_error
from phasegrad.gradients._exact import exact_slopes
from phasegrad.gradients._gradient import Gradient, GradientWarning, unwarned
from phasegrad.gradients._local import local_products
from phasegrad.gradients._means import MeanGradient
from phasegrad.gradients._meter import Meter, checked_meter
from phasegrad.gradients._method import Method
from phasegrad.gradients._nudging import NUDGES, NudgedStates, Nudging, settle_nudged
from phasegrad.gradients._problem import Problem, pose
from phasegrad.gradients._propagation import Propagation
from phasegrad.gradients._reading import combined, gradient_from_phases
from phasegrad.gradients._schemes import Scheme
from phasegrad.gradients._suggest_beta import suggest_beta
from phasegrad.gradients.methods import METHODS
from phasegrad.gradients.methods.adjoint import adjoint
from phasegrad.gradients.methods.autograd import autograd
from phasegrad.gradients.methods.centred import centred
from phasegrad.gradients.methods.continuous import continuous
from phasegrad.gradients.methods.dyadic import dyadic
from phasegrad.gradients.methods.finite_difference import TRAINING_STEP, finite_difference
from phasegrad.gradients.methods.holomorphic import holomorphic
from phasegrad.gradients.methods.random_sign import random_sign
from phasegrad.gradients.methods.stochastic import stochastic
from phasegrad.gradients.methods.two_phase import two_phase

__all__ = [
    "LIMIT",
    "METHODS",
    "NUDGES",
    "TRAINING_STEP",
    "Gradient",
    "GradientTable",
    "GradientWarning",
    "MeanGradient",
    "Meter",
    "Method",
    "NudgedStates",
    "Nudging",
    "Problem",
    "Propagation",
    "Scheme",
    "adjoint",
    "autograd",
    "beta_for",
    "centred",
    "check_gradients",
    "checked_meter",
    "combined",
    "continuous",
    "cosine",
    "dyadic",
    "exact_slopes",
    "finite_difference",
    "gradient_from_phases",
    "holomorphic",
    "local_products",
    "pose",
    "random_sign",
    "relative_error",
    "settle_nudged",
    "stochastic",
    "suggest_beta",
    "two_phase",
    "unwarned",
]
