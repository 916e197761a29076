r"""How much a nudge may be for its gradient to be right, as far as the network decides that.

The equilibrium under a nudge is theta + beta a + beta^2 b + ...; a and b follow from two solves with the Laplacian.
"""

from __future__ import annotations

import numpy as np

from phasegrad._process import on_one_blas_thread
from phasegrad._validation import Array, FloatArray
from phasegrad.gradients._question import Question
from phasegrad.graphs import refuse_dense
from phasegrad.linearised import Linearised, linearise

_FEW_OUTPUTS, _POWER_STEPS, _ROUGHLY = 16, 8, 1e-4


def beta_for(question: Question, error: float, order: int) -> float:
    """Return the nudge whose gradient, by a method of this order, is within a relative ``error``, 1 at most."""
    rate = _bending_rate(question)
    rate = rate[np.isfinite(rate)]
    fastest = float(np.max(rate, initial=0.0))
    return min(1.0, error ** (1 / order) / fastest) if fastest > 0 else 1.0


@on_one_blas_thread
def _bending_rate(question: Question) -> FloatArray:
    """Return per sample how fast the response to a nudge bends with its strength, (B,)."""
    system, phases = question.responding, question.phases
    refuse_dense(question.nodes.size, "The curvature of a cost", "Nudge fewer outputs, or use the adjoint gradient.")
    free, where = question.network.graph.free, question.places
    pull = np.zeros((system.batch, free.size))
    pull[:, where] = question.objective.force(question.outputs, question.target)
    state = linearise(system, phases)
    first, _ = state.solve(system.reacting(pull), accuracy=_ROUGHLY)
    size = np.linalg.norm(first, axis=1)
    largest = np.max(np.abs(first), axis=1, initial=0.0)
    probe = 1e-3 / np.where(largest > 0, largest, 1.0)
    shift = np.zeros_like(phases)
    shift[:, free] = probe[:, None] * first
    bend = system.force(phases + shift) - 2 * system.force(phases) + system.force(phases - shift)
    hessian = question.objective.hessian(question.outputs, question.target)
    slack = np.zeros_like(pull)
    slack[:, where] = np.einsum("bij,bj->bi", hessian, first[:, where])
    second_force = bend[:, free] / (2 * probe**2)[:, None] - system.reacting(slack)
    second, _ = state.solve(second_force, accuracy=_ROUGHLY)
    ratio = np.linalg.norm(second, axis=1) / np.where(size > 0, size, np.inf)
    return np.maximum(ratio, _compliance(question, state, hessian))


def _compliance(question: Question, state: Linearised, hessian: Array) -> FloatArray:
    """Return the norm of the outputs' response to unit pulls on them, times the curvature of the cost, (B,)."""
    where, size, system = question.places, question.network.graph.free.size, question.responding
    if where.size > _FEW_OUTPUTS:
        return _largest_compliance(question, state, hessian)
    unit = np.zeros((question.system.batch, size, where.size))
    unit[:, where, np.arange(where.size)] = 1.0
    reach, regular = state.solve(system.reacting(unit), accuracy=_ROUGHLY)
    compliance = np.linalg.norm(reach[:, where] @ hessian, ord=2, axis=(1, 2))
    compliance[~regular] = np.inf
    return np.asarray(compliance)


def _largest_compliance(question: Question, state: Linearised, hessian: Array) -> FloatArray:
    """Return the same for many outputs by a power iteration: a few solves instead of one per output."""
    where, batch, system = question.places, question.system.batch, question.responding
    vector = np.ones((batch, where.size)) / np.sqrt(where.size)
    right, growth = np.zeros((batch, question.network.graph.free.size)), np.zeros(batch)
    for _ in range(_POWER_STEPS):
        right[:, where] = np.einsum("bij,bj->bi", hessian, vector)
        answer, regular = state.solve(system.reacting(right), accuracy=_ROUGHLY)
        growth = np.linalg.norm(answer[:, where], axis=1)
        vector = answer[:, where] / np.where(growth > 0, growth, 1.0)[:, None]
        growth[~regular] = np.inf
    return growth
