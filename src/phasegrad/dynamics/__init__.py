"""Dynamics: the force balance of a network, with or without a nudge, for batches of phases."""

from phasegrad.dynamics._system import (
    Nudge,
    Pull,
    Shape,
    System,
    Workspace,
    assemble,
    build_system,
    energy,
    force,
    laplacian,
    wrapped,
)

__all__ = [
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
