"""Equilibria: found, certified, counted, and followed to where they are lost."""

from phasegrad.equilibria._critical import CriticalScale, critical_scale
from phasegrad.equilibria._equilibrium import (
    Equilibrium,
    Status,
    find_equilibrium,
    random_phases,
    settle,
    settled,
    tolerance_of,
)
from phasegrad.equilibria._settling import Settling
from phasegrad.equilibria._states import Equilibria, find_equilibria

__all__ = [
    "CriticalScale",
    "Equilibria",
    "Equilibrium",
    "Settling",
    "Status",
    "critical_scale",
    "find_equilibria",
    "find_equilibrium",
    "random_phases",
    "settle",
    "settled",
    "tolerance_of",
]
