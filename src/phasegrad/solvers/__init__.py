"""Solvers: from a system and a start to phases whose force vanishes, and whether the state found is stable."""

from phasegrad.solvers._choice import (
    BATCHED,
    FOLLOWING,
    SOLVERS,
    STOPPING,
    AlignedNewton,
    branch_solver,
    is_sparse,
    persistent_solver,
    refuse_dense_solve,
    solver_of,
)
from phasegrad.solvers._contract import Solution, Solver, residual
from phasegrad.solvers._elimination import Elimination, Surroundings
from phasegrad.solvers._flow import GradientFlow, flow_steps, reference_runs_free, velocity
from phasegrad.solvers._linear import chunks, is_positive_definite
from phasegrad.solvers._newton import InTurn, Newton, Progress
from phasegrad.solvers._persistence import StiffFlow
from phasegrad.solvers._process import Shared, on_one_blas_thread, one_blas_thread, one_torch_thread
from phasegrad.solvers._products import Couplings, Products
from phasegrad.solvers._response import Responses, respond
from phasegrad.solvers._stability import Stability, Verdict, exceeds, is_positive_with, largest_angles, stability

__all__ = [
    "BATCHED",
    "FOLLOWING",
    "SOLVERS",
    "STOPPING",
    "AlignedNewton",
    "Couplings",
    "Elimination",
    "GradientFlow",
    "InTurn",
    "Newton",
    "Products",
    "Progress",
    "Responses",
    "Shared",
    "Solution",
    "Solver",
    "Stability",
    "StiffFlow",
    "Surroundings",
    "Verdict",
    "branch_solver",
    "chunks",
    "exceeds",
    "flow_steps",
    "is_positive_definite",
    "is_positive_with",
    "is_sparse",
    "largest_angles",
    "on_one_blas_thread",
    "one_blas_thread",
    "one_torch_thread",
    "persistent_solver",
    "reference_runs_free",
    "refuse_dense_solve",
    "residual",
    "respond",
    "solver_of",
    "stability",
    "velocity",
]
