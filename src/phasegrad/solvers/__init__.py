"""Solvers: from a system and a start to phases whose force vanishes, each sample for itself."""

from phasegrad.solvers.batch import BatchNewton
from phasegrad.solvers.contract import Solution, Solver
from phasegrad.solvers.flow import GradientFlow
from phasegrad.solvers.newton import BranchNewton, GuardedNewton
from phasegrad.solvers.sparse import Progress, SparseNewton

__all__ = [
    "BatchNewton",
    "BranchNewton",
    "GradientFlow",
    "GuardedNewton",
    "Progress",
    "Solution",
    "Solver",
    "SparseNewton",
]
