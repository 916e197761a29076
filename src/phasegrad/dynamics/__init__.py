"""Dynamics: the force balance of a network, with or without a nudge, for batches of phases."""

from phasegrad.dynamics._building import (
    Shape as Shape,
    assemble as assemble,
    build_system as build_system,
    checked_inputs as checked_inputs,
    checked_target as checked_target,
    energy,
    force,
    input_frequencies as input_frequencies,
    laid_flat as laid_flat,
    laplacian,
    pull_of as pull_of,
    with_inputs as with_inputs,
    without_inputs as without_inputs,
    wrapped as wrapped,
)
from phasegrad.dynamics._correction import Correction as Correction
from phasegrad.dynamics._nudges import Nudge, Pull as Pull
from phasegrad.dynamics._system import System as System, Workspace as Workspace

__all__ = [
    "Nudge",
    "energy",
    "force",
    "laplacian",
]
