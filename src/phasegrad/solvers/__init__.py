"""Solvers: from a system and a start to phases whose force vanishes."""

from phasegrad.solvers._alignment import BATCHED, AlignedNewton, can_align
from phasegrad.solvers._choice import FOLLOWING, SOLVERS, STOPPING, branch_solver, persistent_solver, solver_of
from phasegrad.solvers._contract import Solution, Solver, residual
from phasegrad.solvers._fallback import Fallback
from phasegrad.solvers._flow import GradientFlow, flow_steps, reference_runs_free, velocity
from phasegrad.solvers._newton import Newton, Progress
from phasegrad.solvers._stiff_flow import StiffFlow

__all__ = [
    "BATCHED",
    "FOLLOWING",
    "SOLVERS",
    "STOPPING",
    "AlignedNewton",
    "Fallback",
    "GradientFlow",
    "Newton",
    "Progress",
    "Solution",
    "Solver",
    "StiffFlow",
    "branch_solver",
    "can_align",
    "flow_steps",
    "persistent_solver",
    "reference_runs_free",
    "residual",
    "solver_of",
    "velocity",
]
