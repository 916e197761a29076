"""Dynamics: the force balance of a network, with or without a nudge, for batches of phases."""

from phasegrad.dynamics._building import (
    Shape,
    assemble,
    build_system,
    checked_inputs,
    checked_target,
    energy,
    force,
    input_frequencies,
    laid_flat,
    laplacian,
    pull_of,
    with_inputs,
    without_inputs,
    wrapped,
)
from phasegrad.dynamics._correction import Correction
from phasegrad.dynamics._nudges import Nudge, Pull
from phasegrad.dynamics._system import System, Workspace

__all__ = [
    "Correction",
    "Nudge",
    "Pull",
    "Shape",
    "System",
    "Workspace",
    "assemble",
    "build_system",
    "checked_inputs",
    "checked_target",
    "energy",
    "force",
    "input_frequencies",
    "laid_flat",
    "laplacian",
    "pull_of",
    "with_inputs",
    "without_inputs",
    "wrapped",
]
