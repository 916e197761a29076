r"""What the noise of a meter does to a gradient, and which cosine is left.

A gradient is a sum over states of weight * dE/dp, so that a change v of what is read of one state changes it by weight
times -(dF/dp . v): the same local products that make the adjoint gradient. The error of a frozen nudge is read off the
free state, whose noise therefore also moves the nudged states, by beta L^-1 times the change of the error.

Where slopes are curved, as those by couplings are, the square of the noise adds its own variance: half the sum of the
squares of their second derivatives.

The gradient is then taken as normal, with mean mu and a covariance of eigenvalues s_i^2. Its cosine with the exact
direction g has the mean

    E cos = 2 / sqrt(pi) int_0^inf du  prod_i q_i^(1/2)  exp(-u^2 sum_i q_i mu_i^2)  sum_i g_i q_i mu_i,
    q_i = 1 / (1 + 2 u^2 s_i^2)

from 1 / |x| = 2 / sqrt(pi) int_0^inf exp(-u^2 |x|^2) du. Where all s_i are alike this is Kummer's function 1F1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from phasegrad._process import on_one_blas_thread
from phasegrad._validation import Array, FloatArray
from phasegrad.gradients import NudgedStates, Problem, combined, local_products
from phasegrad.linearised import linearise

# Oscillators up to which the noise of each is followed; of more, so many random combinations stand for all.
_FEW = 64
# The same for products of the noise of two of them.
_FEWER, _DRAWS = 16, 64
# The step of second differences, and what of them is rounding.
_BENT, _STRAIGHT = 1e-3, 1e-6
# The logarithm of u: how far it goes beyond the scales of the integrand, and its step.
_REACH, _STEP = 36.0, 0.125


def changes(problem: Problem, states: NudgedStates, *, frozen: bool) -> Iterator[dict[str, FloatArray]]:
    """Yield what unit noise, of one oscillator in one state at a time, changes in a gradient, (B, width) by name."""
    probes = _probes(problem)
    for weight, other in zip(states.weights, states.others, strict=True):
        if other is not None:
            for probe in probes:
                yield _change(problem, weight, other.phases, probe)
    if None in states.others or frozen:
        moved = [_moved(problem, states, k, probes) if frozen else None for k in range(len(states.others))]
        for row, probe in enumerate(probes):
            parts = []
            for weight, other, shift in zip(states.weights, states.others, moved, strict=True):
                if other is None:
                    parts.append(_change(problem, weight, problem.phases, probe))
                elif shift is not None:
                    parts.append(_change(problem, weight, other.phases, shift[:, :, row]))
            yield {name: np.sum([part[name] for part in parts], axis=0) for name in problem.wrt}


def bends(problem: Problem, states: NudgedStates) -> Iterator[dict[str, FloatArray]]:
    """Yield what products of two unit noises in one state change in a gradient, as columns of a covariance.

    Of few oscillators all products are followed, of many random ones stand for them.
    """
    if not problem.network.reciprocal:
        return
    size, pinned, reference = problem.network.size, problem.network.pinned, problem.network.reference
    drawn = np.random.default_rng(size).standard_normal((_DRAWS, size))
    drawn = drawn - drawn[:, [reference]] if pinned else drawn
    if all(float(np.max(np.abs(each))) < _STRAIGHT for each in _bend(problem, 1.0, problem.phases, drawn[0]).values()):
        return
    probes = _probes(problem)
    for weight, phases in zip(states.weights, states.phases(problem.phases), strict=True):
        if size > _FEWER:
            each = [_bend(problem, weight, phases, probe) for probe in drawn]
            mean = {name: np.mean([bend[name] for bend in each], axis=0) for name in problem.wrt}
            for bend in each:
                yield {name: (bend[name] - mean[name]) / (2 * math.sqrt(_DRAWS - 1)) for name in problem.wrt}
            continue
        alone = [_bend(problem, weight, phases, probe) for probe in probes]
        for i, first in enumerate(probes):
            yield {name: alone[i][name] / math.sqrt(2) for name in problem.wrt}
            for j in range(i):
                both = _bend(problem, weight, phases, first + probes[j])
                yield {name: (both[name] - alone[i][name] - alone[j][name]) / 2 for name in problem.wrt}


def deviations(problem: Problem, states: NudgedStates, deviation: float, *, frozen: bool) -> dict[str, FloatArray]:
    """Return the standard deviation of every entry of a gradient read with that of a meter, (B, width)."""
    total = {name: np.zeros((problem.system.batch, problem.width(name))) for name in problem.wrt}
    for change in changes(problem, states, frozen=frozen):
        for name in problem.wrt:
            total[name] += change[name] ** 2
    for bend in bends(problem, states):
        for name in problem.wrt:
            total[name] += (deviation * bend[name]) ** 2
    return {name: deviation * np.sqrt(each) for name, each in total.items()}


def expected_cosine(mean: FloatArray, exact: FloatArray, factor: FloatArray) -> float:
    """Return the mean cosine of ``exact`` (P,) with a normal vector of mean (P,) and covariance F F^T, F (P, C)."""
    axes, spread, _ = np.linalg.svd(factor, full_matrices=False)
    spread, direction = spread**2, exact / np.linalg.norm(exact)
    along, aim = axes.T @ mean, axes.T @ direction
    # What no noise reaches is one more axis.
    rest, left = mean - axes @ along, direction - axes @ aim
    length = float(np.linalg.norm(rest))
    along, spread = np.append(along, length), np.append(spread, 0.0)
    aim = np.append(aim, rest @ left / length if length > 0 else 0.0)
    size = float(np.sum(along**2) + np.sum(spread))
    if not size > 0:
        return 0.0
    scale = np.log(size) / 2
    logarithm = np.arange(-_REACH, _REACH, _STEP)
    u = np.exp(logarithm - scale)[:, None]
    shrunk = 1 / (1 + 2 * u**2 * spread)
    exponent = 0.5 * np.sum(np.log(shrunk), axis=1) - np.sum(u**2 * shrunk * along**2, axis=1)
    integrand = np.exp(exponent) * (shrunk @ (aim * along)) * u[:, 0]
    return float(2 / np.sqrt(np.pi) * _STEP * np.sum(integrand))


def factors(problem: Problem, states: NudgedStates, *, frozen: bool) -> tuple[FloatArray, FloatArray]:
    """Return all that unit noise changes, and its products, as columns, (B, P, C) each, one parameter after the other.

    The covariance under noise of variance v is v F F^T + v^2 G G^T.
    """
    first = [_joined(problem, change) for change in changes(problem, states, frozen=frozen)]
    second = [_joined(problem, bend) for bend in bends(problem, states)]
    return np.stack(first, axis=2), np.stack(second or [np.zeros_like(first[0])], axis=2)


def joined(problem: Problem, slopes: dict[str, Array]) -> FloatArray:
    """Return slopes as one array (B, P), in the units that were asked for."""
    return _joined(problem, {name: problem.in_units(name, slopes[name]) for name in problem.wrt})


def _joined(problem: Problem, slopes: dict[str, FloatArray]) -> FloatArray:
    return np.concatenate([slopes[name] for name in problem.wrt], axis=1)


def _probes(problem: Problem) -> FloatArray:
    """Return changes of what is read, (K, N), whose squares sum to the identity, counted as phases are."""
    size, network = problem.network.size, problem.network
    few = size <= _FEW
    each = np.eye(size) if few else np.random.default_rng(size).standard_normal((_FEW, size)) / np.sqrt(_FEW)
    return each - each[:, [network.reference]] if network.pinned else each


def _change(problem: Problem, weight: Array | complex, phases: Array, shift: FloatArray) -> dict[str, FloatArray]:
    response = np.broadcast_to(-np.asarray(weight).real * shift, phases.shape)
    at = phases if problem.network.reciprocal else problem.phases
    products = local_products(problem.network, problem.system, problem.wrt, at, response)
    return {name: problem.in_units(name, slope) for name, slope in problem.collected(products).items()}


def _bend(problem: Problem, weight: Array | complex, phases: Array, shift: FloatArray) -> dict[str, FloatArray]:
    """Return the second derivative of weight * dE/dp along a change of the phases, (B, width) by name."""
    states = [(1.0, phases + _BENT * shift), (1.0, phases - _BENT * shift), (-2.0, phases)]
    slopes = combined(problem.network, problem.system, problem.wrt, problem.phases, states)
    return {name: np.asarray(weight).real / _BENT**2 * problem.in_units(name, slope) for name, slope in slopes.items()}


@on_one_blas_thread
def _moved(problem: Problem, states: NudgedStates, which: int, probes: FloatArray) -> FloatArray | None:
    """Return how a state under a frozen nudge moves where the outputs are read off by the probes, (B, N, K)."""
    other, graph = states.others[which], problem.network.graph
    if other is None:
        return None
    hessian = problem.objective.hessian(problem.outputs, problem.target)
    pull = np.zeros((problem.system.batch, graph.free.size, len(probes)))
    pull[:, problem.places] = -np.real(states.strengths[which]) * np.einsum(
        "bij,kj->bik", hessian, probes[:, problem.nodes]
    )
    moved = np.zeros((problem.system.batch, graph.size, len(probes)))
    for rows, part in problem.parts:
        laplacian = linearise(part.responding, other.phases[rows])
        moved[rows[:, None], graph.free], _ = laplacian.solve(part.responding.reacting(pull[rows]))
    return moved
