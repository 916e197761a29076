"""Dynamics: the force balance of a network, with or without a nudge, for batches of phases."""

from phasegrad.dynamics._building import Shape, assemble, build_system, energy, force, laplacian, wrapped
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
    "energy",
    "force",
    "laplacian",
    "wrapped",
]
