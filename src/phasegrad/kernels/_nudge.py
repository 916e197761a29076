"""Nudges of a tile: force and Hessian of a cost of the outputs, by one of the formulas or given as arrays."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from phasegrad.kernels._elementary import compiled, sine_and_cosine
from phasegrad.kernels._tile import BLOCK, COSINE, PHASES, SINE, WIDTH, sections
from phasegrad.kernels._vector import copies, entry, lane_of, load, put, store, where_less

#: Nudges: none, force and Hessian given as arrays, or one of the formulas.
FREE, GIVEN, QUADRATIC, PERIODIC, ENTROPY = range(5)


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


@compiled
def nudge_places(first, rest):
    """First rows of the force of a nudge, of its Hessian, of its targets, and of its strength."""
    _, _, _, block = sections(first, rest)
    pull = block + (BLOCK + 2) * rest
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
            odds = nudge.sharpness * load(rows, COSINE * size + many + entry(nudge.places, m))
            highest = where_less(highest, odds, odds, highest)
        for m in range(count):
            odds = nudge.sharpness * load(rows, COSINE * size + many + entry(nudge.places, m))
            store(rows, block + m, odds - highest)
            total = total + exponential(rows, block + m)
    for m in range(count):
        place = entry(nudge.places, m)
        here = many + place
        away = load(rows, target + m) - load(rows, PHASES * size + here)
        curvature = copies(rows, 1.0)
        if nudge.kind == PERIODIC:
            away, curvature = sine_and_cosine(away)
        elif nudge.kind == ENTROPY:
            share = load(rows, block + m) / total
            excess = nudge.sharpness * (share - load(rows, target + m))
            slope = nudge.sharpness * load(rows, SINE * size + here)
            away = load(rows, SINE * size + here) * excess
            curvature = slope * slope * share - load(rows, COSINE * size + here) * excess
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
