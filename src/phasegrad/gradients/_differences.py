"""The finite-difference gradient: turn every parameter up and down, let the network settle, compare the costs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray, positive_float
from phasegrad.dynamics import System
from phasegrad.equilibria import Equilibrium, tolerance_of
from phasegrad.gradients._question import Gradient, ask
from phasegrad.networks import Network
from phasegrad.objectives import Cost
from phasegrad.solvers import branch_solver, on_one_blas_thread
from phasegrad.terms import Term

_ENTRIES_AT_ONCE = 2**22


@on_one_blas_thread
def finite_difference(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *,
    wrt: str | Iterable[str] = "omega", frequencies: str = "relative", step: float = 1e-5,
) -> Gradient:  # fmt: skip
    """Return the gradient by central differences of the cost, every parameter turned by ``step`` both ways.

    A relative frequency is turned alone, without taking the mean again; a raw one moves the mean with it.

    Parameters
    ----------
    network, equilibrium, objective, target, wrt, frequencies
        As for `adjoint`.
    step : float
        How far each parameter is turned.
    """
    step = positive_float("step", step, "finite_difference")
    question = ask("finite_difference", network, equilibrium, objective, target, wrt, frequencies, turned=True)
    samples, ok = question.solvable, np.ones(question.system.batch, dtype=bool)
    system, values = question.system.take(samples), {}
    for name in question.wrt:
        slopes, found = difference_slopes(
            system, question.phases[samples], objective, question.nodes, question.target[samples],
            (network.term_of(name)[0], name), step=step, raw=frequencies == "raw",
        )  # fmt: skip
        values[name] = np.zeros((question.system.batch, slopes.shape[1]))
        values[name][samples], ok[samples] = slopes, ok[samples] & found
    return question.answer(values, ok=ok)


def difference_slopes(
    system: System, phases: Array, cost: Cost, nodes: IntArray, target: Array, parameter: tuple[Term, str], *,
    step: float, raw: bool,
) -> tuple[FloatArray, BoolArray]:  # fmt: skip
    """Return the central differences of the cost by one array of parameters, (B, P), and where all states were found.

    ``phases`` (B, N) are the equilibria of the samples; a turned one is looked for near its own.
    """
    term, name = parameter
    batch, width = system.batch, system.values[name].shape[1]
    gradient, ok = np.zeros((batch, width)), np.ones(batch, dtype=bool)
    columns = max(1, _ENTRIES_AT_ONCE // (2 * max(batch, 1) * max(width, system.graph.size)))
    for first in range(0, width, columns):
        chosen = np.arange(first, min(first + columns, width))
        rows, which = np.repeat(np.arange(batch), chosen.size), np.tile(chosen, batch)
        part, costs = system.take(rows), []
        values = np.broadcast_to(part.values[name], (rows.size, width))
        for sign in (1.0, -1.0):
            turned = part.with_values({name: term.turned(part.graph, name, values, which, sign * step, raw=raw)})
            limits = tolerance_of(turned, 1e-12, phases[rows])
            solution = branch_solver(turned).solve(turned, phases[rows], limits)
            ok[rows[solution.residual > limits]] = False
            costs.append(cost.cost(np.take(solution.phases, nodes, axis=1), target[rows]))
        gradient[:, chosen] = ((costs[0] - costs[1]) / (2 * step)).reshape(batch, chosen.size)
    return gradient, ok
