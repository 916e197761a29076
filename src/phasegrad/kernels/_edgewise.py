r"""Newton steps of small networks with any interaction H, sample by sample.

    F_i = drive_i + sum_j K_ij H(theta_j - theta_i),      L_ij = -K_ij H'(theta_j - theta_i)

Nodes are numbered with those that move first, then those that are held; a field is an edge to a held node. Edges from
``starts[g]`` on have the interaction at the address ``functions[g]`` (`_interaction.Compiled`). Arrays have one row per
sample, or a single row that all samples share.
"""

from __future__ import annotations

import math

import numpy as np

from phasegrad.kernels._elementary import compiled
from phasegrad.kernels._entrance import entrance
from phasegrad.kernels._interaction import evaluate
from phasegrad.kernels._nudge import ENTROPY, FREE, PERIODIC

#: What becomes of a sample: it takes another step, or it does not.
GOES_ON, ENDS = 0, 1


@compiled
def _row(array, sample):
    return array[min(sample, array.shape[0] - 1)]


@compiled
def _largest(values):
    """Return the largest absolute value; not a number where one of them is not."""
    largest = 0.0
    for value in values:
        if largest == largest and not abs(value) <= largest:
            largest = abs(value)
    return largest


@compiled
def _across(functions, starts, first, second, phases, across):
    """Set angle, H and H' of every edge, the rows of ``across``."""
    for e in range(first.size):
        across[0, e] = phases[second[e]] - phases[first[e]]
    row = across.strides[0]
    for g in range(functions.size):
        start = across.ctypes.data + starts[g] * across.itemsize
        evaluate(functions[g], start, start + row, start + 2 * row, starts[g + 1] - starts[g])


@compiled
def _force(first, second, strength, pulls, drive, force):
    """Set the force on the nodes that move, of pulls H."""
    many = force.size
    for i in range(many):
        force[i] = drive[i]
    for e in range(first.size):
        i, j = first[e], second[e]
        pull = strength[e] * pulls[e]
        if i < many:
            force[i] += pull
        if j < many:
            force[j] -= pull


@compiled
def _laplacian(first, second, strength, slopes, given, sample, matrix):
    """Set the Laplacian of slopes H', and what is given besides."""
    many = matrix.shape[0]
    for i in range(many):
        for j in range(many):
            matrix[i, j] = given[sample, i, j] if given.shape[0] else 0.0
    for e in range(first.size):
        i, j = first[e], second[e]
        weight = strength[e] * slopes[e]
        if i < many:
            matrix[i, i] += weight
        if j < many:
            matrix[j, j] += weight
        if i < many and j < many:
            matrix[i, j] -= weight
            matrix[j, i] -= weight


@compiled
def _exponents(kind, sharpness, places, phases):
    """Return the largest exponent of a cross-entropy, and the sum of exponentials over that of the largest."""
    highest, total = -np.inf, 0.0
    if kind == ENTROPY:
        for place in places:
            highest = max(highest, sharpness * math.cos(phases[place]))
        for place in places:
            total += math.exp(sharpness * math.cos(phases[place]) - highest)
    return highest, total


@compiled
def _pull(kind, sharpness, places, beta, target, phases, force):
    """Add the force of a nudge."""
    highest, total = _exponents(kind, sharpness, places, phases)
    for m in range(places.size):
        phase = phases[places[m]]
        away = target[m] - phase
        if kind == PERIODIC:
            away = math.sin(away)
        elif kind == ENTROPY:
            share = math.exp(sharpness * math.cos(phase) - highest) / total
            away = sharpness * math.sin(phase) * (share - target[m])
        force[places[m]] += beta * away


@compiled
def _bend(kind, sharpness, places, beta, target, phases, matrix):
    """Add the Hessian of a nudge."""
    highest, total = _exponents(kind, sharpness, places, phases)
    for m in range(places.size):
        place, phase = places[m], phases[places[m]]
        curvature = 1.0
        if kind == PERIODIC:
            curvature = math.cos(target[m] - phase)
        elif kind == ENTROPY:
            share = math.exp(sharpness * math.cos(phase) - highest) / total
            slope = sharpness * math.sin(phase)
            curvature = slope * slope * share - sharpness * math.cos(phase) * (share - target[m])
            for other in places:
                theirs = math.exp(sharpness * math.cos(phases[other]) - highest) / total
                matrix[place, other] -= beta * slope * share * sharpness * math.sin(phases[other]) * theirs
        matrix[place, place] += beta * curvature


@compiled
def _factorise(matrix, lowered):
    """Replace the lower triangle by the Cholesky factor of the matrix less a multiple of one; whether there is one."""
    for i in range(matrix.shape[0]):
        for j in range(i + 1):
            value = matrix[i, j]
            if i == j:
                value -= lowered
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            if i != j:
                matrix[i, j] = value / matrix[j, j]
            elif value > 0.0:
                matrix[i, i] = math.sqrt(value)
            else:
                return False
    return True


@compiled
def _solve(factor, vector):
    """Replace a vector by the solution with a matrix that was factorised."""
    many = vector.size
    for i in range(many):
        for k in range(i):
            vector[i] -= factor[i, k] * vector[k]
        vector[i] /= factor[i, i]
    for back in range(many):
        i = many - 1 - back
        for k in range(i + 1, many):
            vector[i] -= factor[k, i] * vector[k]
        vector[i] /= factor[i, i]


@entrance
def stride(
    functions, starts, first, second, strength, drive, outside, given, nudge, settings, tolerance, margin, moving,
    last, left, square, fate, steps, proved,
):  # fmt: skip
    """Take full Newton steps of every sample that goes on, until it ends or forces must be given anew.

    ``moving`` are the phases to look at, ``last`` those accepted before, of squared force ``square``, residual
    ``left`` and ``proved`` to have a Laplacian above ``margin``. A sample at its start has an infinite ``square``.
    """
    kind, sharpness, places, beta, target = nudge
    evaluations, count, max_turn, share, polish = settings
    many, edges = moving.shape[1], first.size
    across, matrix = np.empty((3, edges)), np.empty((many, many))
    phases, force = np.empty(many + outside.shape[1]), np.empty(many)
    for sample in range(moving.shape[0]):
        strengths, driven = _row(strength, sample), _row(drive, sample)
        phases[many:] = _row(outside, sample)
        for _ in range(evaluations):
            if fate[sample] != GOES_ON:
                break
            phases[:many] = moving[sample]
            _across(functions, starts, first, second, phases, across)
            _force(first, second, strengths, across[1], driven, force)
            if kind != FREE:
                _pull(kind, sharpness, places, beta[sample], target[sample], phases, force)
            reached, now = _largest(force), 0.0
            for value in force:
                now += value * value
            near = left[sample] <= tolerance[sample]
            fate[sample] = ENDS
            if not (reached < left[sample] if near else now <= share * square[sample]):
                break
            if square[sample] < np.inf:
                steps[sample] += 1
            last[sample], left[sample], square[sample] = moving[sample], reached, now
            done = reached <= tolerance[sample]
            if done or steps[sample] < count:
                _laplacian(first, second, strengths, across[2], given, sample, matrix)
                if kind != FREE:
                    _bend(kind, sharpness, places, beta[sample], target[sample], phases, matrix)
            if done:
                # What the factor for a proof would leave of the matrix is not enough for a step.
                proved[sample] = _factorise(matrix.copy(), margin[sample])
            if near or (done and not polish) or steps[sample] >= count or not _factorise(matrix, 0.0):
                break
            _solve(matrix, force)
            if not _largest(force) <= max_turn:
                break
            moving[sample] += force
            fate[sample] = GOES_ON


@entrance
def definite(functions, starts, first, second, strength, outside, given, nudge, floor, moving, answer):
    """Say of every sample whether all eigenvalues of its Laplacian are above a floor."""
    kind, sharpness, places, beta, target = nudge
    many = moving.shape[1]
    across, matrix = np.empty((3, first.size)), np.empty((many, many))
    phases = np.empty(many + outside.shape[1])
    for sample in range(moving.shape[0]):
        phases[:many], phases[many:] = moving[sample], _row(outside, sample)
        _across(functions, starts, first, second, phases, across)
        _laplacian(first, second, _row(strength, sample), across[2], given, sample, matrix)
        if kind != FREE:
            _bend(kind, sharpness, places, beta[sample], target[sample], phases, matrix)
        answer[sample] = _factorise(matrix, floor[sample])
