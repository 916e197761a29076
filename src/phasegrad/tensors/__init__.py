"""Batches of layered phase networks as PyTorch tensors; the one room, beside `torch`, that needs PyTorch."""

from phasegrad.tensors._algebra import Schur, applied, conjugate
from phasegrad.tensors._batches import Batch, Weights
from phasegrad.tensors._certificates import laplacians, verdicts
from phasegrad.tensors._links import States
from phasegrad.tensors._memory import bytes_per_sample, fitting, samples_that_fit
from phasegrad.tensors._settling import (
    Pull,
    Settled,
    Shifts,
    gathered,
    nudge_steps,
    nudge_sweeps,
    scattered,
    settle,
    sweeps_and_steps,
)
from phasegrad.tensors._slopes import Contrast
from phasegrad.tensors._structure import Structure, refuses

__all__ = [
    "Batch",
    "Contrast",
    "Pull",
    "Schur",
    "Settled",
    "Shifts",
    "States",
    "Structure",
    "Weights",
    "applied",
    "bytes_per_sample",
    "conjugate",
    "fitting",
    "gathered",
    "laplacians",
    "nudge_steps",
    "nudge_sweeps",
    "refuses",
    "samples_that_fit",
    "scattered",
    "settle",
    "sweeps_and_steps",
    "verdicts",
]
