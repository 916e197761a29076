"""Solvers: from a system and a start to phases whose force vanishes."""

from phasegrad.solvers._alignment import BATCHED as BATCHED, AlignedNewton as AlignedNewton, can_align as can_align
from phasegrad.solvers._choice import (
    FOLLOWING as FOLLOWING,
    SOLVERS as SOLVERS,
    STOPPING as STOPPING,
    branch_solver as branch_solver,
    persistent_solver as persistent_solver,
    solver_of as solver_of,
)
from phasegrad.solvers._contract import Solution as Solution, Solver as Solver, residual as residual
from phasegrad.solvers._fallback import Fallback as Fallback
from phasegrad.solvers._flow import (
    GradientFlow,
    flow_steps as flow_steps,
    reference_runs_free as reference_runs_free,
    velocity as velocity,
)
from phasegrad.solvers._newton import Newton, Progress as Progress
from phasegrad.solvers._stiff_flow import StiffFlow as StiffFlow

__all__ = [
    "GradientFlow",
    "Newton",
]
