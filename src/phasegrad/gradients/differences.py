"""The finite-difference gradient: turn every parameter up and down, let the network settle, compare the costs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad.dynamics import Cost, System
from phasegrad.equilibrium import Equilibrium, tolerance_of
from phasegrad.gradients.result import Gradient, Question, ask
from phasegrad.network import Network
from phasegrad.solvers.linear import on_one_blas_thread
from phasegrad.solvers.response import branch_solver
from phasegrad.validation import BoolArray, FloatArray, positive_float

Array = NDArray[Any]

_ENTRIES_AT_ONCE = 2**22


@on_one_blas_thread
def finite_difference(
    network: Network,
    equilibrium: Equilibrium,
    objective: Cost,
    target: ArrayLike,
    *,
    wrt: str | Iterable[str] = "omega",
    frequencies: str = "centred",
    step: float = 1e-5,
) -> Gradient:
    """Return the gradient by central differences of the cost, every parameter turned by ``step`` both ways.

    A centred frequency is turned alone, without centring again; a raw one moves the mean with it.

    Parameters
    ----------
    network : Network
    equilibrium : Equilibrium
        The free equilibrium of that network, any batch shape.
    objective : Cost
        For example `PhaseTargets`.
    target : array_like, shape (..., M)
        One target per sample, or one for all.
    wrt : str or sequence of str
        Any of "omega", "coupling", "field_strength", "field_phase".
    frequencies : {"centred", "raw"}
        Whether the gradient by omega is by the centred or by the raw frequencies.
    step : float
        How far each parameter is turned.
    """
    step = positive_float("step", step, "finite_difference")
    question = ask("finite_difference", network, equilibrium, objective, target, wrt, frequencies)
    names = list(question.wrt)
    if "coupling" in names and not network.reciprocal:
        names.append("coupling_reverse")
    ok = np.ones(question.system.batch, dtype=bool)
    values = {name: _differences(question, name, step, ok) for name in names}
    return question.answer(values, ok=ok)


def _differences(question: Question, name: str, step: float, ok: BoolArray) -> FloatArray:
    """Return the central differences by one array of parameters, (B, P), and mark samples that failed."""
    samples = question.solvable
    system = question.system.take(samples)
    batch = system.batch
    width = getattr(system, name).shape[1]
    gradient = np.zeros((question.system.batch, width))
    columns = max(1, _ENTRIES_AT_ONCE // (2 * max(batch, 1) * max(width, question.network.size)))
    for first in range(0, width, columns):
        chosen = np.arange(first, min(first + columns, width))
        costs = []
        for sign in (1.0, -1.0):
            rows = np.repeat(np.arange(batch), chosen.size)
            turned = _turned(question, system.take(rows), name, np.tile(chosen, batch), sign * step)
            start = question.phases[samples[rows]]
            limits = tolerance_of(turned, 1e-12, start)
            solution = branch_solver(turned).solve(turned, start, limits)
            ok[samples[rows[solution.residual > limits]]] = False
            outputs = np.take(solution.phases, question.nodes, axis=1)
            costs.append(question.objective.cost(outputs, question.target[samples[rows]]))
        slopes = (costs[0] - costs[1]) / (2 * step)
        gradient[samples[:, None], chosen] = slopes.reshape(batch, chosen.size)
    return gradient


def _turned(question: Question, system: System, name: str, which: Array, by: float) -> System:
    """Return a system in which each row has one entry of one parameter turned."""
    values = np.broadcast_to(getattr(system, name), (system.batch, getattr(system, name).shape[1])).copy()
    values[np.arange(system.batch), which] += by
    if name == "omega" and question.frequencies == "raw" and question.network.pinned:
        values -= by / question.network.size
    return system.replace(**{name: values})
