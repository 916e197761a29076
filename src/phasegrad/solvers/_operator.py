"""The Laplacian of one sample of a sparse network, with its preconditioner and its part of low rank."""

from __future__ import annotations

import numpy as np

from phasegrad._validation import Array, FloatArray
from phasegrad.dynamics import System
from phasegrad.solvers._edge_matrix import EdgeMatrix
from phasegrad.solvers._krylov import Matrix, Outer, outer_of
from phasegrad.solvers._preconditioning import GaussSeidel, Preconditioner, kind_of, preconditioner

Operator = tuple[Matrix, Preconditioner, Outer]


def operator_of(
    system: System,
    phases: Array,
    kind: str = "auto",
    *,
    floor: float | None = None,
    filled: tuple[FloatArray, FloatArray, bool] | None = None,
) -> Operator:
    """Return the Laplacian at phases (1, N), or its positive stand-in; see `System.laplacian`.

    Gauss-Seidel takes the edges as they stand, other preconditioners and nudges compressed rows. ``filled`` are
    `System.edge_weights`, (E,) and (N,), where they are known already.
    """
    if kind == "auto":
        kind = kind_of(system)
    if system.pull is not None or system.low_rank:
        rows = system.sparse_laplacian(phases, floor=floor)
        return rows, preconditioner(system, rows, kind), outer_of(system, phases, floor=floor)
    if filled is None:
        every_weight, every_diagonal, closed = system.edge_weights(phases, floor=floor)
        filled = every_weight[0], every_diagonal[0], closed
    graph, (weights, diagonal, closed) = system.graph, filled
    if kind == "gauss-seidel" and np.all(diagonal > 0):
        matrix = EdgeMatrix(graph.narrow_ends, weights, diagonal, graph.free, closed and graph.held.size == 1)
        return matrix, GaussSeidel(matrix), None
    rows = graph.pattern.fill(weights, diagonal)
    return rows, preconditioner(system, rows, kind), None
