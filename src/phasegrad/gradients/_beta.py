r"""How strong a nudge should be.

The equilibrium under a nudge is theta + beta a + beta^2 b + ...; a and b follow from two solves with the Laplacian. The
rate at which the response bends, |b| / |a|, gives the nudge for a relative error. A nudge that was chosen like that is
made weaker where its gradient turns out to be too far from the exact one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phasegrad._process import on_one_blas_thread
from phasegrad._validation import Array, FloatArray
from phasegrad.gradients._exact import Exact
from phasegrad.gradients._problem import Problem
from phasegrad.gradients._reading import Reading
from phasegrad.gradients._schemes import Scheme
from phasegrad.graphs import refuse_dense

# Outputs up to which the response to each is solved for; of more, so many steps of a power iteration find the largest.
_FEW_OUTPUTS, _POWER_STEPS = 16, 8
# What these solves may leave of their right-hand sides.
_ROUGHLY = 1e-4
# Weaker nudges that are tried, how much weaker at most, and a relative error that none of them can go below.
_TRIES, _WEAKEST, _ROUNDED = 3, 1e-3, 1e-8
# How many times its own error a gradient must be for another one to be judged by it.
_CLEAR = 100.0


def beta_for(problem: Problem, error: float, order: int) -> float:
    """Return the nudge whose gradient, by a method of this order, is within a relative ``error``, 1 at most."""
    rate = np.concatenate([_bending_rate(part) for _, part in problem.parts])
    rate = rate[np.isfinite(rate)]
    fastest = float(np.max(rate, initial=0.0))
    return min(1.0, error ** (1 / order) / fastest) if fastest > 0 else 1.0


@on_one_blas_thread
def _bending_rate(problem: Problem) -> FloatArray:
    """Return per sample how fast the response to a nudge bends with its strength, (B,)."""
    system, phases = problem.responding, problem.phases
    refuse_dense(problem.nodes.size, "The curvature of a cost", "Nudge fewer outputs, or use the adjoint gradient.")
    free, where = problem.network.graph.free, problem.places
    pull = np.zeros((system.batch, free.size))
    pull[:, where] = problem.objective.force(problem.outputs, problem.target)
    first, _ = problem.response.solve(system.reacting(pull), accuracy=_ROUGHLY)
    size = np.linalg.norm(first, axis=1)
    largest = np.max(np.abs(first), axis=1, initial=0.0)
    probe = 1e-3 / np.where(largest > 0, largest, 1.0)
    shift = np.zeros_like(phases)
    shift[:, free] = probe[:, None] * first
    bend = system.force(phases + shift) - 2 * system.force(phases) + system.force(phases - shift)
    hessian = problem.objective.hessian(problem.outputs, problem.target)
    slack = np.zeros_like(pull)
    slack[:, where] = np.einsum("bij,bj->bi", hessian, first[:, where])
    second_force = bend[:, free] / (2 * probe**2)[:, None] - system.reacting(slack)
    second, _ = problem.response.solve(second_force, accuracy=_ROUGHLY)
    ratio = np.linalg.norm(second, axis=1) / np.where(size > 0, size, np.inf)
    return np.maximum(ratio, _compliance(problem, hessian))


def _compliance(problem: Problem, hessian: Array) -> FloatArray:
    """Return the norm of the outputs' response to unit pulls on them, times the curvature of the cost, (B,)."""
    where, size, system = problem.places, problem.network.graph.free.size, problem.responding
    if where.size > _FEW_OUTPUTS:
        return _largest_compliance(problem, hessian)
    unit = np.zeros((problem.system.batch, size, where.size))
    unit[:, where, np.arange(where.size)] = 1.0
    reach, regular = problem.response.solve(system.reacting(unit), accuracy=_ROUGHLY)
    compliance = np.linalg.norm(reach[:, where] @ hessian, ord=2, axis=(1, 2))
    compliance[~regular] = np.inf
    return np.asarray(compliance)


def _largest_compliance(problem: Problem, hessian: Array) -> FloatArray:
    """Return the same for many outputs by a power iteration: a few solves instead of one per output."""
    where, batch, system = problem.places, problem.system.batch, problem.responding
    vector = np.ones((batch, where.size)) / np.sqrt(where.size)
    right, growth = np.zeros((batch, problem.network.graph.free.size)), np.zeros(batch)
    for _ in range(_POWER_STEPS):
        right[:, where] = np.einsum("bij,bj->bi", hessian, vector)
        answer, regular = problem.response.solve(system.reacting(right), accuracy=_ROUGHLY)
        growth = np.linalg.norm(answer[:, where], axis=1)
        vector = answer[:, where] / np.where(growth > 0, growth, 1.0)[:, None]
        growth[~regular] = np.inf
    return growth


def shortfall(problem: Problem, reading: Reading, exact: Exact) -> float:
    """Return how far slopes are from the exact ones, as a share of those, of the worst sample that has both."""
    off = 0.0
    for name in problem.wrt:
        size = np.max(np.abs(exact.values[name]), axis=1, initial=0.0)
        known = exact.regular & reading.found & (size > _CLEAR * np.max(exact.errors[name], axis=1, initial=0.0))
        far = np.max(np.abs(reading.values[name] - exact.values[name]), axis=1, initial=0.0)
        off = max(off, float(np.max(far[known] / size[known], initial=0.0)))
    return off


def weakened(
    problem: Problem, scheme: Scheme, exact: Exact, reading: Reading, read: Callable[[float], Reading]
) -> Reading:
    """Return what weaker nudges show where this one exceeds twice the relative error aimed at, as long as they help."""
    off = shortfall(problem, reading, exact)
    for _ in range(_TRIES):
        if not off > max(2 * scheme.error, _ROUNDED):
            break
        other = read(reading.beta * max(0.5 * (scheme.error / off) ** (1 / scheme.order), _WEAKEST))
        nearer = shortfall(problem, other, exact)
        if not nearer < off:
            break
        reading, off = other, nearer
    return reading
