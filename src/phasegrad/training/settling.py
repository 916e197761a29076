r"""Settling in lanes: Newton's method on thirty-two networks of one topology at once.

With S = sum_j K_ij sin theta_j and C = sum_j K_ij cos theta_j the force on oscillator i is
omega_i + S cos theta_i - C sin theta_i and the diagonal of the Laplacian C cos theta_i + S sin theta_i, so that each
oscillator needs one sine and one cosine (`sines`, `forces`). The Laplacian is factored as L D L^T by the elimination
program of the topology (`weights`, `factorise`, `substitute`).

A Newton step of size d leaves an error of order d^2, a chord step (old factor, at distance D) one of order d D; a lane
is done when that product is below `CLOSE`. Every lane takes the same fixed sequence of steps until it is done and is
then masked, so that no network's result depends on which others share its group.

A lane that is not done after `MAX_STEPS` starts once more from zero. If then its largest force is above the caller's
limit, `settle` says so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from phasegrad.training.vector import WIDTH, any_less, copies, floor, load, magnitude, store, where_less

CLOSE = 1e-10
MAX_STEPS = 50
MAX_TURN = 1.0

# Two things shape the code below. Numba optimises a function again inside each of its callers, so that many layers of
# compiled functions take minutes: only the leaves, `settle`, `train_group` and `evaluate_group` are compiled on their
# own. And it counts references, atomically, whenever an array gets a name: the leaves, which run millions of times,
# take every array as an argument and name none.
compiled = njit(cache=True, error_model="numpy", nogil=True)
inlined = njit(error_model="numpy", inline="always")


class Work(NamedTuple):
    """Scratch rows of one group: per node, per slot and per eliminated node."""

    sine: Any
    cosine: Any
    force: Any
    diagonal: Any
    centred: Any
    previous: Any
    nudged: Any
    gradient: Any
    edge_gradient: Any
    entries: Any
    lower: Any
    pivot: Any
    nudged_lower: Any
    nudged_pivot: Any
    spare_lower: Any
    spare_pivot: Any
    step: Any
    target: Any


@inlined
def make_work(program, size, edges):
    def rows(count):
        return np.zeros((count, WIDTH))

    count = program.order.size
    slots = max(program.slots, 1)
    return Work(
        rows(size), rows(size), rows(size), rows(size), rows(size), rows(size), rows(size), rows(size),
        rows(edges), rows(slots), rows(slots), rows(count), rows(slots), rows(count), rows(slots), rows(count),
        rows(count), rows(program.outputs.size + 1),
    )  # fmt: skip


@compiled
def sine_and_cosine(x):
    """Sine and cosine of every lane: reduce by multiples of pi / 2, evaluate two polynomials, pick and sign."""
    quarter = floor(x * 0.6366197723675814 + 0.5)
    r = x - quarter * 1.5707963267341256
    r = r - quarter * 6.077100506303966e-11
    r = r - quarter * 2.0222662487959506e-21
    z = r * r
    odd = z * 1.5896230157654656e-10 - 2.5050747762857807e-8
    odd = z * odd + 2.755731362138572e-6
    odd = z * odd - 1.9841269829589539e-4
    odd = z * odd + 8.333333333322118e-3
    odd = z * odd - 0.16666666666666632
    odd = r + r * z * odd
    even = 2.0876100842787e-9 - z * 1.1358536521387682e-11
    even = z * even - 2.7557317272344188e-7
    even = z * even + 2.4801587298767044e-5
    even = z * even - 1.3888888888887398e-3
    even = z * even + 4.166666666666666e-2
    even = 1.0 - 0.5 * z + z * z * even
    half = copies(0.5)
    swapped = quarter - 2.0 * floor(quarter * 0.5)
    turn = quarter - 4.0 * floor(quarter * 0.25)
    sine = where_less(swapped, half, odd, even)
    cosine = where_less(swapped, half, even, odd)
    sine = where_less(turn, copies(1.5), sine, -sine)
    cosine = where_less(magnitude(turn - 1.5), copies(1.0), -cosine, cosine)
    return sine, cosine


@compiled
def sines(phases, sine, cosine):
    """Sines and cosines of all phases."""
    for i in range(phases.shape[0]):
        s, c = sine_and_cosine(load(phases, i))
        store(sine, i, s)
        store(cosine, i, c)


@compiled
def forces(start, edge, neighbour, coupling, sine, cosine, centred, force, diagonal):
    """Force on every oscillator and diagonal of the Laplacian, from sines and cosines."""
    for i in range(force.shape[0]):
        s, c = copies(0.0), copies(0.0)
        for k in range(start[i], start[i + 1]):
            strength = load(coupling, edge[k])
            s = s + strength * load(sine, neighbour[k])
            c = c + strength * load(cosine, neighbour[k])
        store(force, i, load(centred, i) + (load(cosine, i) * s - load(sine, i) * c))
        store(diagonal, i, load(cosine, i) * c + load(sine, i) * s)


@compiled
def nudge_forces(outputs, target, phases, beta, force, diagonal):
    """Add the nudge to the force on the outputs and its stiffness to the diagonal."""
    for m in range(outputs.size):
        node = outputs[m]
        store(force, node, load(force, node) + beta * (load(target, m) - load(phases, node)))
        store(diagonal, node, load(diagonal, node) + beta)


@compiled
def weights(fill, edge, first, second, slot, coupling, sine, cosine, entries):
    """Entries of the Laplacian below the diagonal."""
    for k in range(fill.size):
        store(entries, fill[k], copies(0.0))
    for k in range(edge.size):
        i, j = first[k], second[k]
        across = load(cosine, j) * load(cosine, i) + load(sine, j) * load(sine, i)
        store(entries, slot[k], -(load(coupling, edge[k]) * across))


@compiled
def factorise(order, start, row, update_start, slot, left, right, diagonal, entries, lower, pivot):
    """L D L^T of the entries; ``lower`` receives L, ``pivot`` the reciprocals of D."""
    for q in range(order.size):
        reciprocal = 1.0 / load(diagonal, order[q])
        store(pivot, q, reciprocal)
        for k in range(start[q], start[q + 1]):
            entry = load(entries, k)
            scaled = entry * reciprocal
            node = order[row[k]]
            store(diagonal, node, load(diagonal, node) - entry * scaled)
            store(lower, k, scaled)
        for k in range(update_start[q], update_start[q + 1]):
            store(entries, slot[k], load(entries, slot[k]) - load(entries, left[k]) * load(lower, right[k]))


@compiled
def substitute(start, row, lower, pivot, step):
    """Solve with the factor, in place."""
    count = start.size - 1
    for q in range(count):
        value = load(step, q)
        for k in range(start[q], start[q + 1]):
            store(step, row[k], load(step, row[k]) - load(lower, k) * value)
    for back in range(count):
        q = count - 1 - back
        value = load(step, q) * load(pivot, q)
        for k in range(start[q], start[q + 1]):
            value = value - load(lower, k) * load(step, row[k])
        store(step, q, value)


@compiled
def largest(rows, count):
    """Largest absolute value of the first ``count`` rows, in every lane."""
    most = copies(0.0)
    for q in range(count):
        size = magnitude(load(rows, q))
        most = where_less(most, size, size, most)
    return most


@compiled
def advance(order, step, active, phases):
    """Move the phases by the step where ``active`` is 1, at most by MAX_TURN; return the size of the step."""
    size = largest(step, order.size)
    half, one = copies(0.5), copies(1.0)
    scale = where_less(copies(MAX_TURN), size, MAX_TURN / size, one)
    for q in range(order.size):
        here = load(phases, order[q])
        store(phases, order[q], where_less(half, active, here + load(step, q) * scale, here))
    return size


@compiled
def gather(order, rows, step):
    """Rows of the moving nodes in the order of elimination."""
    for q in range(order.size):
        store(step, q, load(rows, order[q]))


@compiled
def blend(active, count, new, old):
    """Rows of ``old`` replaced by ``new`` where ``active`` is 1."""
    for k in range(count):
        store(old, k, where_less(copies(0.5), active, load(new, k), load(old, k)))


@compiled
def settle(program, coupling, phases, beta, chord, limit, work, lower, pivot):
    """Settle every lane, once more from zero where that fails; return 1 where the sample must be skipped.

    ``chord`` makes the second step reuse the first factor. Factors after the second step go through spare rows, so
    that those of lanes that are done stay as they are.
    """
    zero, one, half = copies(0.0), copies(1.0), copies(0.5)
    (
        order,
        _,
        _,
        outputs,
        _,
        _,
        link_start,
        link_edge,
        link_node,
        inner_edge,
        inner_first,
        inner_second,
        inner_slot,
        fill_slot,
        column_start,
        column_row,
        update_start,
        update_slot,
        update_left,
        update_right,
        slots,
    ) = program
    sine, cosine, force, diagonal, centred = work.sine, work.cosine, work.force, work.diagonal, work.centred
    entries, step, target = work.entries, work.step, work.target
    spare_lower, spare_pivot = work.spare_lower, work.spare_pivot
    active = one
    for attempt in range(2):
        all_active = attempt == 0
        distance = zero
        for iteration in range(MAX_STEPS):
            sines(phases, sine, cosine)
            forces(link_start, link_edge, link_node, coupling, sine, cosine, centred, force, diagonal)
            if beta != 0.0:
                nudge_forces(outputs, target, phases, beta, force, diagonal)
            old_factor = chord and iteration == 1
            if not old_factor:
                weights(fill_slot, inner_edge, inner_first, inner_second, inner_slot, coupling, sine, cosine, entries)
                if all_active and iteration < 2:
                    factorise(
                        order, column_start, column_row, update_start, update_slot, update_left, update_right, diagonal,
                        entries, lower, pivot,
                    )  # fmt: skip
                else:
                    factorise(
                        order, column_start, column_row, update_start, update_slot, update_left, update_right, diagonal,
                        entries, spare_lower, spare_pivot,
                    )  # fmt: skip
                    blend(active, slots, spare_lower, lower)
                    blend(active, order.size, spare_pivot, pivot)
            gather(order, force, step)
            substitute(column_start, column_row, lower, pivot, step)
            size = advance(order, step, active, phases)
            distance = size + distance if old_factor else size
            if iteration > 0:
                # A comparison with something that is not a number is false: such a lane stays active.
                active = where_less(size * distance, copies(CLOSE), zero, active)
                if not any_less(half, active):
                    return zero
        if attempt == 0:
            for i in range(phases.shape[0]):
                store(phases, i, where_less(half, active, zero, load(phases, i)))
    sines(phases, sine, cosine)
    forces(link_start, link_edge, link_node, coupling, sine, cosine, centred, force, diagonal)
    if beta != 0.0:
        nudge_forces(outputs, target, phases, beta, force, diagonal)
    gather(order, force, step)
    left = largest(step, order.size)
    for q in range(order.size):
        # The maximum passes over what is not a number; a sum does not.
        left = left + 0.0 * load(step, q)
    return active * where_less(left, copies(limit), zero, one)


@inlined
def first_factor(program, coupling, phases, work, lower, pivot):
    """Find the forces at the phases, and the factor of the Laplacian there."""
    sines(phases, work.sine, work.cosine)
    forces(
        program.link_start, program.link_edge, program.link_node, coupling, work.sine, work.cosine, work.centred,
        work.force, work.diagonal,
    )  # fmt: skip
    weights(
        program.fill_slot, program.inner_edge, program.inner_first, program.inner_second, program.inner_slot, coupling,
        work.sine, work.cosine, work.entries,
    )  # fmt: skip
    factorise(
        program.order, program.column_start, program.column_row, program.update_start, program.update_slot,
        program.update_left, program.update_right, work.diagonal, work.entries, lower, pivot,
    )  # fmt: skip
