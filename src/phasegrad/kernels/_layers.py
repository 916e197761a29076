r"""A mini-batch of one sine-coupled network in tiles of samples, one sample per lane.

The oscillators that move are a first group of f, not coupled to each other, and r others, coupled to it by K and among
each other by M. With c = cos theta, s = sin theta and the field x + i y of all that is held,

    X = x + K c,   Y = y + K s,   F = omega + c Y - s X,   D = c X + s Y

are the local field, the force and the diagonal of the Laplacian. The first group's block of the Laplacian is diagonal,
so that what is left after it is a small Schur complement, A - W^T D^-1 W with W = K cos(theta_i - theta_j).

Four oscillators of the first group are walked at a time, which keeps them in registers while the r others pass; the
group is filled up with oscillators that are coupled to nothing. A lane that is done, or cannot go on, is masked: no
sample's result depends on the others in its tile.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from phasegrad.kernels._elementary import compiled, rough_angle, sine_and_cosine
from phasegrad.kernels._vector import (
    any_less,
    copies,
    entry,
    lane_of,
    load,
    magnitude,
    multiply_add,
    put,
    root,
    store,
    where_less,
)

WIDTH = 8
#: What becomes of a sample: it goes on, has settled, or has left the ground on which plain Newton is safe.
GOES_ON, SETTLED, ASTRAY = range(3)

# Nudges: none, force and Hessian given as arrays, or one of the formulas.
FREE, GIVEN, QUADRATIC, PERIODIC, ENTROPY = range(5)

_BLOCK = 4
# Sections of a tile's memory, each as long as there are oscillators; the others follow.
_PHASES, _COSINE, _SINE, _X, _Y, _FIXED_X, _FIXED_Y, _DRIVE, _FORCE, _DIAGONAL, _STEP, _LAST = range(12)
_SECTIONS = 12


class Nudge(NamedTuple):
    """A nudge on ``places`` (M,) among the others: of which kind, how strong (B,), toward what (B, M).

    A given one has force (B, r) and Hessian (B, r, r) instead.
    """

    kind: int
    sharpness: float
    places: np.ndarray
    beta: np.ndarray
    target: np.ndarray
    force: np.ndarray
    hessian: np.ndarray


entrance = njit(error_model="numpy", nogil=True, cache=True)


def memory(first: int, rest: int) -> int:
    """Return how many rows a tile needs."""
    size = filled(first) + rest
    return _SECTIONS * size + 2 * rest * rest + (_BLOCK + 5) * rest + 4


def filled(first: int) -> int:
    """Return the size of the first group once it is filled up to whole blocks."""
    return -(-first // _BLOCK) * _BLOCK


@compiled
def sections(first, rest):
    """Numbers of filled oscillators of the first group and of all, and the first rows of the sections after theirs."""
    many = (first + 3) // 4 * 4
    size = many + rest
    schur = _SECTIONS * size
    return many, size, schur, schur + rest * rest


@compiled
def fetch(rows, row, values, sample, first, rest, many):
    """Copy the numbers of the oscillators of eight samples into rows."""
    batch, width = values.shape
    for lane in range(WIDTH):
        start = min(sample + lane, batch - 1) * width
        for i in range(first):
            put(rows, row + i, lane, entry(values, start + i))
        for j in range(rest):
            put(rows, row + many + j, lane, entry(values, start + first + j))


@compiled
def bring(rows, row, values, sample, first, rest, many):
    """Copy the numbers of the oscillators of eight samples out of rows."""
    batch = values.shape[0]
    for lane in range(min(WIDTH, batch - sample)):
        for i in range(first):
            values[sample + lane, i] = lane_of(rows, row + i, lane)
        for j in range(rest):
            values[sample + lane, first + j] = lane_of(rows, row + many + j, lane)


@compiled
def numbers(rows, row, values, sample):
    """Copy one number of each of eight samples into a row, and return it."""
    for lane in range(WIDTH):
        put(rows, row, lane, values[min(sample + lane, values.size - 1)])
    return load(rows, row)


@compiled
def give(rows, row, vector, values, sample):
    """Copy a row out into one number of each of eight samples."""
    store(rows, row, vector)
    for lane in range(min(WIDTH, values.size - sample)):
        values[sample + lane] = lane_of(rows, row, lane)


@compiled
def open_tile(rows, moving, x, y, drive, sample, first, rest):
    """Copy a tile in; oscillators that fill up the first group point along a field of their own."""
    many, size, _, _ = sections(first, rest)
    fetch(rows, _PHASES * size, moving, sample, first, rest, many)
    fetch(rows, _FIXED_X * size, x, sample, first, rest, many)
    fetch(rows, _FIXED_Y * size, y, sample, first, rest, many)
    if drive.size > 0:
        fetch(rows, _DRIVE * size, drive, sample, first, rest, many)
    else:
        for i in range(size):
            store(rows, _DRIVE * size + i, 0.0)
    for i in range(first, many):
        store(rows, _PHASES * size + i, 0.0)
        store(rows, _FIXED_X * size + i, 1e100)
        store(rows, _FIXED_Y * size + i, 0.0)
        store(rows, _DRIVE * size + i, 0.0)


@compiled
def turn_all(rows, size):
    """Cosines and sines of all phases."""
    for i in range(size):
        sine, cosine = sine_and_cosine(load(rows, _PHASES * size + i))
        store(rows, _SINE * size + i, sine)
        store(rows, _COSINE * size + i, cosine)


@compiled
def start_rest(rows, size, many, rest):
    """Local fields of the others without the first group: what is held."""
    for j in range(many, many + rest):
        store(rows, _X * size + j, load(rows, _FIXED_X * size + j))
        store(rows, _Y * size + j, load(rows, _FIXED_Y * size + j))


@compiled
def field_of_others(rows, cross, size, many, rest, i):
    """Local fields of four oscillators of the first group."""
    x0, x1 = load(rows, _FIXED_X * size + i), load(rows, _FIXED_X * size + i + 1)
    x2, x3 = load(rows, _FIXED_X * size + i + 2), load(rows, _FIXED_X * size + i + 3)
    y0, y1 = load(rows, _FIXED_Y * size + i), load(rows, _FIXED_Y * size + i + 1)
    y2, y3 = load(rows, _FIXED_Y * size + i + 2), load(rows, _FIXED_Y * size + i + 3)
    for j in range(rest):
        c, s = load(rows, _COSINE * size + many + j), load(rows, _SINE * size + many + j)
        k0, k1 = entry(cross, i * rest + j), entry(cross, (i + 1) * rest + j)
        k2, k3 = entry(cross, (i + 2) * rest + j), entry(cross, (i + 3) * rest + j)
        x0, y0 = multiply_add(k0, c, x0), multiply_add(k0, s, y0)
        x1, y1 = multiply_add(k1, c, x1), multiply_add(k1, s, y1)
        x2, y2 = multiply_add(k2, c, x2), multiply_add(k2, s, y2)
        x3, y3 = multiply_add(k3, c, x3), multiply_add(k3, s, y3)
    store(rows, _X * size + i, x0)
    store(rows, _X * size + i + 1, x1)
    store(rows, _X * size + i + 2, x2)
    store(rows, _X * size + i + 3, x3)
    store(rows, _Y * size + i, y0)
    store(rows, _Y * size + i + 1, y1)
    store(rows, _Y * size + i + 2, y2)
    store(rows, _Y * size + i + 3, y3)


@compiled
def field_on_others(rows, cross, size, many, rest, i):
    """Add the fields of four oscillators of the first group to those of the others."""
    c0, c1 = load(rows, _COSINE * size + i), load(rows, _COSINE * size + i + 1)
    c2, c3 = load(rows, _COSINE * size + i + 2), load(rows, _COSINE * size + i + 3)
    s0, s1 = load(rows, _SINE * size + i), load(rows, _SINE * size + i + 1)
    s2, s3 = load(rows, _SINE * size + i + 2), load(rows, _SINE * size + i + 3)
    for j in range(rest):
        x, y = load(rows, _X * size + many + j), load(rows, _Y * size + many + j)
        k0, k1 = entry(cross, i * rest + j), entry(cross, (i + 1) * rest + j)
        k2, k3 = entry(cross, (i + 2) * rest + j), entry(cross, (i + 3) * rest + j)
        x, y = multiply_add(k0, c0, x), multiply_add(k0, s0, y)
        x, y = multiply_add(k1, c1, x), multiply_add(k1, s1, y)
        x, y = multiply_add(k2, c2, x), multiply_add(k2, s2, y)
        x, y = multiply_add(k3, c3, x), multiply_add(k3, s3, y)
        store(rows, _X * size + many + j, x)
        store(rows, _Y * size + many + j, y)


@compiled
def field_among_others(rows, inner, size, many, rest, j):
    """Add the fields of all others to that of one of them."""
    x, y = load(rows, _X * size + many + j), load(rows, _Y * size + many + j)
    if inner.size > 0:
        for k in range(rest):
            strength = entry(inner, j * rest + k)
            x = multiply_add(strength, load(rows, _COSINE * size + many + k), x)
            y = multiply_add(strength, load(rows, _SINE * size + many + k), y)
        store(rows, _X * size + many + j, x)
        store(rows, _Y * size + many + j, y)
    return x, y


@compiled
def state(rows, cross, inner, first, rest):
    """Force and diagonal of every oscillator at the phases at hand; return square and largest of the force."""
    many, size, _, _ = sections(first, rest)
    turn_all(rows, size)
    start_rest(rows, size, many, rest)
    for i in range(0, many, _BLOCK):
        field_of_others(rows, cross, size, many, rest, i)
        field_on_others(rows, cross, size, many, rest, i)
    for j in range(rest):
        field_among_others(rows, inner, size, many, rest, j)
    for i in range(size):
        c, s = load(rows, _COSINE * size + i), load(rows, _SINE * size + i)
        x, y = load(rows, _X * size + i), load(rows, _Y * size + i)
        store(rows, _FORCE * size + i, multiply_add(c, y, load(rows, _DRIVE * size + i) - s * x))
        store(rows, _DIAGONAL * size + i, multiply_add(c, x, s * y))


@compiled
def size_of_force(rows, size):
    """Sum of squares and largest of the forces."""
    square, most = copies(rows, 0.0), copies(rows, 0.0)
    for i in range(size):
        force = load(rows, _FORCE * size + i)
        square = multiply_add(force, force, square)
        most = where_less(most, magnitude(force), magnitude(force), most)
    return square, most


@compiled
def nudge_places(first, rest):
    """First rows of the force of a nudge, of its Hessian, of its targets, and of its strength."""
    _, _, _, block = sections(first, rest)
    pull = block + (_BLOCK + 2) * rest
    return pull, pull + rest, pull + rest + rest * rest, pull + 2 * rest + rest * rest


@compiled
def open_nudge(rows, nudge, sample, first, rest):
    """Copy a tile's targets and strengths in, or the force and Hessian that are given."""
    pull, bend, target, strength = nudge_places(first, rest)
    batch = max(nudge.beta.size, nudge.force.shape[0])
    for j in range(rest):
        store(rows, pull + j, 0.0)
    for j in range(rest * rest):
        store(rows, bend + j, 0.0)
    for lane in range(WIDTH):
        row = min(sample + lane, batch - 1)
        if nudge.kind == GIVEN:
            for j in range(rest):
                put(rows, pull + j, lane, entry(nudge.force, row * rest + j))
            for j in range(rest * rest):
                put(rows, bend + j, lane, entry(nudge.hessian, row * rest * rest + j))
        elif nudge.kind != FREE:
            put(rows, strength, lane, entry(nudge.beta, row))
            for m in range(nudge.places.size):
                put(rows, target + m, lane, entry(nudge.target, row * nudge.places.size + m))


@compiled
def exponential(rows, row):
    """Replace every lane of a row by its exponential, and return it."""
    for lane in range(WIDTH):
        put(rows, row, lane, math.exp(lane_of(rows, row, lane)))
    return load(rows, row)


@compiled
def turn_nudge(rows, nudge, first, rest):
    """Force and Hessian of a nudge at the phases at hand."""
    many, size, _, block = sections(first, rest)
    pull, bend, target, strength = nudge_places(first, rest)
    beta, count = load(rows, strength), nudge.places.size
    highest, total = copies(rows, -1e300), copies(rows, 0.0)
    if nudge.kind == ENTROPY:
        for m in range(count):
            odds = nudge.sharpness * load(rows, _COSINE * size + many + entry(nudge.places, m))
            highest = where_less(highest, odds, odds, highest)
        for m in range(count):
            odds = nudge.sharpness * load(rows, _COSINE * size + many + entry(nudge.places, m))
            store(rows, block + m, odds - highest)
            total = total + exponential(rows, block + m)
    for m in range(count):
        place = entry(nudge.places, m)
        here = many + place
        away = load(rows, target + m) - load(rows, _PHASES * size + here)
        curvature = copies(rows, 1.0)
        if nudge.kind == PERIODIC:
            away, curvature = sine_and_cosine(away)
        elif nudge.kind == ENTROPY:
            share = load(rows, block + m) / total
            excess = nudge.sharpness * (share - load(rows, target + m))
            slope = nudge.sharpness * load(rows, _SINE * size + here)
            away = load(rows, _SINE * size + here) * excess
            curvature = slope * slope * share - load(rows, _COSINE * size + here) * excess
            store(rows, block + count + m, slope * share)
        store(rows, pull + place, beta * away)
        store(rows, bend + place * rest + place, beta * curvature)
    if nudge.kind == ENTROPY:
        for m in range(count):
            for k in range(m + 1):
                across = load(rows, block + count + m) * load(rows, block + count + k)
                a, b = entry(nudge.places, m), entry(nudge.places, k)
                place = bend + max(a, b) * rest + min(a, b)
                before = load(rows, place) if m == k else copies(rows, 0.0)
                store(rows, place, before - beta * across)


@compiled
def eliminate(rows, cross, inner, shift, nudged, first, rest):
    """Schur complement of the Laplacian minus ``shift``, and the right-hand side folded into it.

    Return 1 in lanes whose first group is not positive.
    """
    many, size, schur, block = sections(first, rest)
    folded, bent = block + _BLOCK * rest, copies(rows, 0.0)
    _, bend, _, _ = nudge_places(first, rest)
    for a in range(rest):
        store(rows, folded + a, load(rows, _FORCE * size + many + a))
        for b in range(a):
            store(rows, schur + a * rest + b, 0.0)
        store(rows, schur + a * rest + a, load(rows, _DIAGONAL * size + many + a) - shift)
    if inner.size > 0:
        for a in range(rest):
            for b in range(a):
                across = turned(rows, size, many + a, many + b)
                store(rows, schur + a * rest + b, -entry(inner, a * rest + b) * across)
    if nudged:
        for a in range(rest):
            for b in range(a + 1):
                place = a * rest + b
                store(rows, schur + place, load(rows, schur + place) + load(rows, bend + place))
    for i in range(0, many, _BLOCK):
        bent = where_less(0.5, bent, 1.0, fold(rows, cross, shift, first, rest, i))
    return bent


@compiled
def turned(rows, size, i, j):
    """Cosine of the angle between two oscillators."""
    both = load(rows, _SINE * size + i) * load(rows, _SINE * size + j)
    return multiply_add(load(rows, _COSINE * size + i), load(rows, _COSINE * size + j), both)


@compiled
def inverse_of(rows, diagonal, shift):
    """One over a diagonal minus the shift, one where that is not positive; and 1 there."""
    value = load(rows, diagonal) - shift
    good = where_less(0.0, value, 1.0, 0.0)
    return 1.0 / where_less(0.0, value, value, 1.0), 1.0 - good


@compiled
def fold(rows, cross, shift, first, rest, i):
    """Take four oscillators of the first group into Schur complement and right-hand side."""
    many, size, schur, block = sections(first, rest)
    folded = block + _BLOCK * rest
    d0, bent0 = inverse_of(rows, _DIAGONAL * size + i, shift)
    d1, bent1 = inverse_of(rows, _DIAGONAL * size + i + 1, shift)
    d2, bent2 = inverse_of(rows, _DIAGONAL * size + i + 2, shift)
    d3, bent3 = inverse_of(rows, _DIAGONAL * size + i + 3, shift)
    f0, f1 = d0 * load(rows, _FORCE * size + i), d1 * load(rows, _FORCE * size + i + 1)
    f2, f3 = d2 * load(rows, _FORCE * size + i + 2), d3 * load(rows, _FORCE * size + i + 3)
    for j in range(rest):
        w0 = entry(cross, i * rest + j) * turned(rows, size, i, many + j)
        w1 = entry(cross, (i + 1) * rest + j) * turned(rows, size, i + 1, many + j)
        w2 = entry(cross, (i + 2) * rest + j) * turned(rows, size, i + 2, many + j)
        w3 = entry(cross, (i + 3) * rest + j) * turned(rows, size, i + 3, many + j)
        sums = multiply_add(w0, f0, load(rows, folded + j))
        sums = multiply_add(w1, f1, sums)
        sums = multiply_add(w2, f2, sums)
        store(rows, folded + j, multiply_add(w3, f3, sums))
        store(rows, block + _BLOCK * j, w0)
        store(rows, block + _BLOCK * j + 1, w1)
        store(rows, block + _BLOCK * j + 2, w2)
        store(rows, block + _BLOCK * j + 3, w3)
        v0, v1, v2, v3 = -d0 * w0, -d1 * w1, -d2 * w2, -d3 * w3
        for b in range(j + 1):
            place, other = schur + j * rest + b, block + _BLOCK * b
            total = multiply_add(v0, load(rows, other), load(rows, place))
            total = multiply_add(v1, load(rows, other + 1), total)
            total = multiply_add(v2, load(rows, other + 2), total)
            store(rows, place, multiply_add(v3, load(rows, other + 3), total))
    return bent0 + bent1 + bent2 + bent3


@compiled
def decompose(rows, first, rest):
    """Factor the Schur complement as L D L^T in place; return 1 in lanes where it is not positive definite."""
    _, _, schur, _ = sections(first, rest)
    bent = copies(rows, 0.0)
    for a in range(rest):
        pivot = load(rows, schur + a * rest + a)
        bent = where_less(0.0, pivot, bent, 1.0)
        inverse = 1.0 / where_less(0.0, pivot, pivot, 1.0)
        store(rows, schur + a * rest + a, inverse)
        for b in range(a + 1, rest):
            below = load(rows, schur + b * rest + a)
            share = below * inverse
            for k in range(a + 1, b):
                place = schur + b * rest + k
                # Columns are scaled only after they have served: row k still holds its unscaled entry.
                store(rows, place, multiply_add(-share, load(rows, schur + k * rest + a), load(rows, place)))
            place = schur + b * rest + b
            store(rows, place, multiply_add(-share, below, load(rows, place)))
        for b in range(a + 1, rest):
            place = schur + b * rest + a
            store(rows, place, load(rows, place) * inverse)
    return bent


@compiled
def substitute(rows, cross, first, rest):
    """Solve for the step with the factors at hand; return how far it turns the oscillator that turns most."""
    many, size, schur, block = sections(first, rest)
    folded = block + _BLOCK * rest
    for a in range(rest):
        value = load(rows, folded + a)
        for b in range(a):
            value = multiply_add(-load(rows, schur + a * rest + b), load(rows, folded + b), value)
        store(rows, folded + a, value)
    most = copies(rows, 0.0)
    for a in range(rest - 1, -1, -1):
        value = load(rows, folded + a) * load(rows, schur + a * rest + a)
        for b in range(a + 1, rest):
            value = multiply_add(-load(rows, schur + b * rest + a), load(rows, folded + b), value)
        store(rows, folded + a, value)
        store(rows, _STEP * size + many + a, value)
        most = where_less(most, magnitude(value), magnitude(value), most)
    # The others' steps times their cosine and sine take the place of the block.
    for j in range(rest):
        step = load(rows, folded + j)
        store(rows, block + 2 * j, load(rows, _COSINE * size + many + j) * step)
        store(rows, block + 2 * j + 1, load(rows, _SINE * size + many + j) * step)
    for i in range(first):
        along, across = copies(rows, 0.0), copies(rows, 0.0)
        for j in range(rest):
            k = entry(cross, i * rest + j)
            along = multiply_add(k, load(rows, block + 2 * j), along)
            across = multiply_add(k, load(rows, block + 2 * j + 1), across)
        pushed = multiply_add(load(rows, _COSINE * size + i), along, load(rows, _FORCE * size + i))
        pushed = multiply_add(load(rows, _SINE * size + i), across, pushed)
        value = pushed / load(rows, _DIAGONAL * size + i)
        store(rows, _STEP * size + i, value)
        most = where_less(most, magnitude(value), magnitude(value), most)
    for i in range(first, many):
        store(rows, _STEP * size + i, 0.0)
    return most


@entrance
def align(rows, cross, inner, x, y, drive, moving, first, rest, sweeps, rests):
    """Turn oscillators into their local fields, sample by sample until none turns by more than ``rests``."""
    many, size, _, _ = sections(first, rest)
    for sample in range(0, moving.shape[0], WIDTH):
        open_tile(rows, moving, x, y, drive, sample, first, rest)
        turn_all(rows, size)
        going = copies(rows, 1.0)
        for _ in range(sweeps):
            turned_by = copies(rows, 0.0)
            start_rest(rows, size, many, rest)
            for i in range(0, many, _BLOCK):
                field_of_others(rows, cross, size, many, rest, i)
                for k in range(i, i + _BLOCK):
                    x_k, y_k = load(rows, _X * size + k), load(rows, _Y * size + k)
                    turned_by = point(rows, size, k, x_k, y_k, going, turned_by)
                field_on_others(rows, cross, size, many, rest, i)
            for j in range(rest):
                x_j, y_j = field_among_others(rows, inner, size, many, rest, j)
                turned_by = point(rows, size, many + j, x_j, y_j, going, turned_by)
            going = where_less(rests, turned_by, going, 0.0)
            if not any_less(0.5, going):
                break
        for i in range(size):
            angle = rough_angle(load(rows, _COSINE * size + i), load(rows, _SINE * size + i))
            store(rows, _PHASES * size + i, angle)
        bring(rows, _PHASES * size, moving, sample, first, rest, many)


@compiled
def point(rows, size, i, x, y, going, turned_by):
    """Let an oscillator point along its field, turned by its drive; return the largest turn so far."""
    length = root(multiply_add(x, x, y * y))
    length = where_less(length, 1e-300, 1e-300, length)
    x, y = x / length, y / length
    lead = load(rows, _DRIVE * size + i) / length
    lead = where_less(lead, -1.0, -1.0, lead)
    lead = where_less(1.0, lead, 1.0, lead)
    along = root(1.0 - lead * lead)
    x, y = multiply_add(x, along, -(y * lead)), multiply_add(y, along, x * lead)
    c, s = load(rows, _COSINE * size + i), load(rows, _SINE * size + i)
    change = magnitude(x - c) + magnitude(y - s)
    store(rows, _COSINE * size + i, where_less(0.5, going, x, c))
    store(rows, _SINE * size + i, where_less(0.5, going, y, s))
    return where_less(turned_by, change, change, turned_by)


@entrance
def stride(
    rows, cross, inner, x, y, drive, nudge, moving, last, square, left, fate, steps, tolerance, most_turn, share, count,
    first, rest
):  # fmt: skip
    """Take ``count`` full Newton steps as long as each leaves at most ``share`` of the squared force before it.

    ``moving`` holds the phases to look at, (B, n), ``last`` the last ones that were accepted, ``square`` and ``left``
    the squared and largest force there. Where phases are not accepted, or the Laplacian is not positive definite, the
    sample is astray and ``last`` stands.
    """
    many, size, _, _ = sections(first, rest)
    here, nudged = memory_end(first, rest), nudge.kind != FREE
    pull, _, _, _ = nudge_places(first, rest)
    for sample in range(0, moving.shape[0], WIDTH):
        going = where_less(numbers(rows, here, fate, sample), 0.5, 1.0, 0.0)
        if not any_less(0.5, going):
            continue
        open_tile(rows, moving, x, y, drive, sample, first, rest)
        if nudged:
            open_nudge(rows, nudge, sample, first, rest)
        fetch(rows, _LAST * size, last, sample, first, rest, many)
        ends, before = numbers(rows, here, fate, sample), numbers(rows, here, square, sample)
        found, limit = numbers(rows, here, left, sample), numbers(rows, here, tolerance, sample)
        taken = numbers(rows, here, steps, sample)
        for _ in range(count):
            state(rows, cross, inner, first, rest)
            if nudged:
                if nudge.kind != GIVEN:
                    turn_nudge(rows, nudge, first, rest)
                for j in range(rest):
                    place = _FORCE * size + many + j
                    store(rows, place, load(rows, place) + load(rows, pull + j))
            now, most = size_of_force(rows, size)
            # Not a number is not accepted either.
            weaker = where_less(now, share * before + 1e-300, 1.0, 0.0)
            ends = where_less(going - weaker, 0.5, ends, float(ASTRAY))
            going = going * weaker
            for i in range(size):
                kept = where_less(0.5, going, load(rows, _PHASES * size + i), load(rows, _LAST * size + i))
                store(rows, _LAST * size + i, kept)
            before, found = where_less(0.5, going, now, before), where_less(0.5, going, most, found)
            done = going * where_less(limit, most, 0.0, 1.0)
            ends = where_less(0.5, done, float(SETTLED), ends)
            going = going - done
            if not any_less(0.5, going):
                break
            bent = eliminate(rows, cross, inner, copies(rows, 0.0), nudged, first, rest)
            bent = bent + decompose(rows, first, rest)
            turn = substitute(rows, cross, first, rest)
            ends = where_less(0.5, going * bent, float(ASTRAY), ends)
            going = where_less(0.5, bent, 0.0, going)
            pace = going * where_less(most_turn, turn, most_turn / where_less(turn, 1e-300, 1e-300, turn), 1.0)
            taken = taken + going
            for i in range(size):
                kept, step = load(rows, _LAST * size + i), load(rows, _STEP * size + i)
                # A step that is not a number must not touch a lane that stands.
                store(rows, _PHASES * size + i, where_less(0.5, going, multiply_add(pace, step, kept), kept))
        bring(rows, _PHASES * size, moving, sample, first, rest, many)
        bring(rows, _LAST * size, last, sample, first, rest, many)
        give(rows, here, ends, fate, sample)
        give(rows, here, before, square, sample)
        give(rows, here, found, left, sample)
        give(rows, here, taken, steps, sample)


@compiled
def memory_end(first, rest):
    """Row after all sections, for numbers on their way in and out."""
    _, _, _, block = sections(first, rest)
    return block + (_BLOCK + 5) * rest + rest * rest


@entrance
def exceeds(rows, cross, inner, x, y, drive, nudge, moving, floor, answer, first, rest):
    """Set ``answer`` to whether the smallest eigenvalue of the Laplacian is above ``floor``, (B,)."""
    here, nudged = memory_end(first, rest), nudge.kind != FREE
    for sample in range(0, moving.shape[0], WIDTH):
        open_tile(rows, moving, x, y, drive, sample, first, rest)
        state(rows, cross, inner, first, rest)
        if nudged:
            open_nudge(rows, nudge, sample, first, rest)
            if nudge.kind != GIVEN:
                turn_nudge(rows, nudge, first, rest)
        shift = numbers(rows, here, floor, sample)
        bent = eliminate(rows, cross, inner, shift, nudged, first, rest)
        store(rows, here, bent + decompose(rows, first, rest))
        for lane in range(min(WIDTH, answer.size - sample)):
            answer[sample + lane] = lane_of(rows, here, lane) < 0.5


@entrance
def solve(rows, cross, inner, x, y, drive, nudge, moving, right, solution, definite, first, rest):
    """Solve L v = right at phases (B, n); say where the Laplacian is positive definite."""
    many, size, _, _ = sections(first, rest)
    here, nudged = memory_end(first, rest), nudge.kind != FREE
    for sample in range(0, moving.shape[0], WIDTH):
        open_tile(rows, moving, x, y, drive, sample, first, rest)
        state(rows, cross, inner, first, rest)
        if nudged:
            open_nudge(rows, nudge, sample, first, rest)
            if nudge.kind != GIVEN:
                turn_nudge(rows, nudge, first, rest)
        fetch(rows, _FORCE * size, right, sample, first, rest, many)
        for i in range(first, many):
            store(rows, _FORCE * size + i, 0.0)
        bent = eliminate(rows, cross, inner, copies(rows, 0.0), nudged, first, rest)
        store(rows, here, bent + decompose(rows, first, rest))
        substitute(rows, cross, first, rest)
        bring(rows, _STEP * size, solution, sample, first, rest, many)
        for lane in range(min(WIDTH, definite.size - sample)):
            definite[sample + lane] = lane_of(rows, here, lane) < 0.5
