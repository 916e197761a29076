"""Batches of layered phase networks as PyTorch tensors; the one room, beside `torch`, that needs PyTorch."""

from phasegrad.tensors._algebra import Schur, conjugate
from phasegrad.tensors._batches import Batch, Weights, aligned, gathered, kept, scattered
from phasegrad.tensors._certificates import laplacians, standing, verdicts
from phasegrad.tensors._compiled import Eliminated, compiles
from phasegrad.tensors._links import Coupled, States, weight_of
from phasegrad.tensors._memory import bytes_per_sample, fitting, samples_that_fit
from phasegrad.tensors._settling import (
    Pull,
    Settled,
    Shifts,
    nudge_steps,
    nudge_sweeps,
    settle,
    sweeps_and_steps,
)
from phasegrad.tensors._slopes import Contrast
from phasegrad.tensors._structure import Structure, refuses

__all__ = [
    "Batch",
    "Contrast",
    "Coupled",
    "Eliminated",
    "Pull",
    "Schur",
    "Settled",
    "Shifts",
    "States",
    "Structure",
    "Weights",
    "aligned",
    "bytes_per_sample",
    "compiles",
    "conjugate",
    "fitting",
    "gathered",
    "kept",
    "laplacians",
    "nudge_steps",
    "nudge_sweeps",
    "refuses",
    "samples_that_fit",
    "scattered",
    "settle",
    "standing",
    "sweeps_and_steps",
    "verdicts",
    "weight_of",
]
