r"""The training kernel: sixteen networks of one topology in lock-step.

One update of one network is: settle the free equilibrium of a sample, settle the nudged one, change the parameters.

*Settling* is Newton's method. With S = sum_j K_ij sin theta_j and C = sum_j K_ij cos theta_j the force on oscillator i
is omega_i + S cos theta_i - C sin theta_i and the diagonal of the Laplacian C cos theta_i + S sin theta_i, so that each
oscillator needs one sine and one cosine (`sines`, `forces`). The Laplacian is factored as L D L^T by the elimination
program of the topology (`weights`, `factorise`, `substitute`).

*Starts.* The free solve starts from the previous sample's phases moved by the linear response to the change of the
frequencies; the nudged one from the free phases moved by the linear response to the nudge; both use the factor at hand.
A Newton step of size d leaves an error of order d^2, a chord step (old factor, at distance D) one of order d D; a lane
is done when that product is below `CLOSE`. Every lane takes the same fixed sequence of steps until it is done and is
then masked, so that no network's result depends on which others share its group.

*Failures.* A lane that is not done after `MAX_STEPS` starts once more from zero. If then its largest force is above the
protocol's limit the sample is skipped and counted; if a pivot of its factor is not positive the state is counted as
unstable.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from phasegrad.training.vector import WIDTH, any_less, copies, floor, load, magnitude, store, where_less

CLOSE = 1e-10
MAX_STEPS = 50
MAX_TURN = 1.0

TWO_PHASE, ADJOINT, FINITE_DIFFERENCE = 0, 1, 2
COSINE, NEAREST = 0, 1

# Rows of the tallies that an epoch or an evaluation returns.
LOSS, CORRECT, SKIPPED, UNSTABLE, SEPARATION, COMMON = range(6)
TALLIES = 6

# Two things shape the code below. Numba optimises a function again inside each of its callers, so that many layers of
# compiled functions take minutes: only the leaves, `settle`, `train_group` and `evaluate_group` are compiled on their
# own. And it counts references, atomically, whenever an array gets a name: the leaves, which run millions of times,
# take every array as an argument and name none.
_compiled = njit(cache=True, error_model="numpy", nogil=True)
_inlined = njit(error_model="numpy", inline="always")


class Rule(NamedTuple):
    """The numbers of the learning protocol."""

    beta: float
    clip: float
    free_limit: float
    nudged_limit: float
    difference_step: float
    gradient: int
    raw: bool
    decision: int
    reset_each_epoch: bool
    tally_needs_nudge: bool


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


@_inlined
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


@_compiled
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


@_compiled
def sines(phases, sine, cosine):
    """Sines and cosines of all phases."""
    for i in range(phases.shape[0]):
        s, c = sine_and_cosine(load(phases, i))
        store(sine, i, s)
        store(cosine, i, c)


@_compiled
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


@_compiled
def nudge_forces(outputs, target, phases, beta, force, diagonal):
    """Add the nudge to the force on the outputs and its stiffness to the diagonal."""
    for m in range(outputs.size):
        node = outputs[m]
        store(force, node, load(force, node) + beta * (load(target, m) - load(phases, node)))
        store(diagonal, node, load(diagonal, node) + beta)


@_compiled
def weights(fill, edge, first, second, slot, coupling, sine, cosine, entries):
    """Entries of the Laplacian below the diagonal."""
    for k in range(fill.size):
        store(entries, fill[k], copies(0.0))
    for k in range(edge.size):
        i, j = first[k], second[k]
        across = load(cosine, j) * load(cosine, i) + load(sine, j) * load(sine, i)
        store(entries, slot[k], -(load(coupling, edge[k]) * across))


@_compiled
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


@_compiled
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


@_compiled
def largest(rows, count):
    """Largest absolute value of the first ``count`` rows, in every lane."""
    most = copies(0.0)
    for q in range(count):
        size = magnitude(load(rows, q))
        most = where_less(most, size, size, most)
    return most


@_compiled
def advance(order, step, active, phases):
    """Move the phases by the step where ``active`` is 1, at most by MAX_TURN; return the size of the step."""
    size = largest(step, order.size)
    half, one = copies(0.5), copies(1.0)
    scale = where_less(copies(MAX_TURN), size, MAX_TURN / size, one)
    for q in range(order.size):
        here = load(phases, order[q])
        store(phases, order[q], where_less(half, active, here + load(step, q) * scale, here))
    return size


@_compiled
def gather(order, rows, step):
    """Rows of the moving nodes in the order of elimination."""
    for q in range(order.size):
        store(step, q, load(rows, order[q]))


@_compiled
def blend(active, count, new, old):
    """Rows of ``old`` replaced by ``new`` where ``active`` is 1."""
    for k in range(count):
        store(old, k, where_less(copies(0.5), active, load(new, k), load(old, k)))


@_compiled
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


@_inlined
def centre(omega, work):
    """Frequencies in the frame that turns with their mean."""
    total = copies(0.0)
    size = omega.shape[0]
    for i in range(size):
        total = total + load(omega, i)
    mean = total * (1.0 / size)
    for i in range(size):
        store(work.centred, i, load(omega, i) - mean)


@_inlined
def set_sample(program, omega, records, rows, work):
    """Give every lane its sample: input frequencies, output targets, and the number of its class."""
    inputs, outputs = program.inputs.size, program.outputs.size
    for lane in range(WIDTH):
        row = rows[lane]
        for k in range(inputs):
            omega[program.inputs[k], lane] = records[row, lane, k]
        for m in range(outputs + 1):
            work.target[m, lane] = records[row, lane, inputs + m]
    centre(omega, work)


@_inlined
def predict_start(program, phases, fresh, work, lower, pivot):
    """Move the phases by the linear response to the new frequencies, except in fresh lanes, which start at zero."""
    half, zero = copies(0.5), copies(0.0)
    for q in range(program.order.size):
        node = program.order[q]
        store(work.step, q, load(work.centred, node) - load(work.previous, node))
    substitute(program.column_start, program.column_row, lower, pivot, work.step)
    advance(program.order, work.step, where_less(half, fresh, zero, copies(1.0)), phases)
    for i in range(phases.shape[0]):
        store(phases, i, where_less(half, fresh, zero, load(phases, i)))
        store(work.previous, i, load(work.centred, i))


@_inlined
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


@_inlined
def half_square(program, phases, work):
    """Cost of every lane: half the squared distance of the outputs to their targets."""
    total = copies(0.0)
    for m in range(program.outputs.size):
        error = load(phases, program.outputs[m]) - load(work.target, m)
        total = total + error * error
    return 0.5 * total


@_inlined
def decide(program, phases, targets, decision):
    """Class of every lane: the output of largest cosine, or the class of the nearest targets; ties to the lower."""
    best = copies(0.0)
    chosen = copies(0.0)
    for label in range(targets.shape[0]):
        value = copies(0.0)
        if decision == COSINE:
            _, value = sine_and_cosine(load(phases, program.outputs[label]))
        else:
            for m in range(program.outputs.size):
                error = load(phases, program.outputs[m]) - targets[label, m]
                value = value - error * error
        if label == 0:
            best = value
        else:
            chosen = where_less(best, value, copies(float(label)), chosen)
            best = where_less(best, value, value, best)
    return chosen


@_inlined
def unstable_lanes(program, pivot):
    bad = copies(0.0)
    for q in range(program.order.size):
        bad = where_less(load(pivot, q), copies(0.0), copies(1.0), bad)
    return bad


@_inlined
def tally(program, phases, targets, decision, keep, unstable, work, tallies):
    """Add one sample of every lane to the sums, where ``keep`` is 1."""
    half, zero = copies(0.5), copies(0.0)
    off = magnitude(decide(program, phases, targets, decision) - load(work.target, program.outputs.size))
    correct = where_less(off, half, copies(1.0), zero)
    common = copies(0.0)
    for m in range(program.outputs.size):
        common = common + load(phases, program.outputs[m])
    separation = load(phases, program.outputs[0]) - load(phases, program.outputs[program.outputs.size - 1])
    store(tallies, LOSS, load(tallies, LOSS) + where_less(half, keep, half_square(program, phases, work), zero))
    store(tallies, CORRECT, load(tallies, CORRECT) + where_less(half, keep, correct, zero))
    store(tallies, UNSTABLE, load(tallies, UNSTABLE) + where_less(half, keep, unstable, zero))
    store(tallies, SEPARATION, load(tallies, SEPARATION) + where_less(half, keep, separation, zero))
    share = common * (1.0 / program.outputs.size)
    store(tallies, COMMON, load(tallies, COMMON) + where_less(half, keep, share, zero))


@_inlined
def settle_nudged(program, coupling, phases, rule, work, lower, pivot):
    """Settle the nudged equilibrium into ``work.nudged``; return 1 where that failed."""
    for q in range(program.order.size):
        store(work.step, q, copies(0.0))
    for m in range(program.outputs.size):
        node = program.outputs[m]
        pull = rule.beta * (load(work.target, m) - load(phases, node))
        store(work.step, program.position[node], pull)
    substitute(program.column_start, program.column_row, lower, pivot, work.step)
    for i in range(phases.shape[0]):
        store(work.nudged, i, load(phases, i))
    advance(program.order, work.step, copies(1.0), work.nudged)
    # The free factor must survive for the next sample's start: the nudged one has rows of its own.
    return settle(
        program, coupling, work.nudged, rule.beta, True, rule.nudged_limit, work, work.nudged_lower, work.nudged_pivot
    )


@_inlined
def two_phase_gradient(program, coupling, phases, rule, edges_learn, work, lower, pivot):
    """-(theta_beta - theta) / beta per node, [cos - cos_beta] / beta per edge; return 1 where the nudge failed."""
    failed = settle_nudged(program, coupling, phases, rule, work, lower, pivot)
    for i in range(phases.shape[0]):
        store(work.gradient, i, (load(phases, i) - load(work.nudged, i)) * (1.0 / rule.beta))
    if edges_learn:
        sines(work.nudged, work.sine, work.cosine)
        for e in range(program.first.size):
            i, j = program.first[e], program.second[e]
            cosine = load(work.cosine, j) * load(work.cosine, i) + load(work.sine, j) * load(work.sine, i)
            store(work.edge_gradient, e, cosine)
        sines(phases, work.sine, work.cosine)
        for e in range(program.first.size):
            i, j = program.first[e], program.second[e]
            cosine = load(work.cosine, j) * load(work.cosine, i) + load(work.sine, j) * load(work.sine, i)
            store(work.edge_gradient, e, (cosine - load(work.edge_gradient, e)) * (1.0 / rule.beta))
    return failed


@_inlined
def adjoint_gradient(program, coupling, phases, edges_learn, work):
    """Response lambda to the slope of the cost per node, (lambda_i - lambda_j) sin(theta_j - theta_i) per edge."""
    first_factor(program, coupling, phases, work, work.nudged_lower, work.nudged_pivot)
    for q in range(program.order.size):
        store(work.step, q, copies(0.0))
    for m in range(program.outputs.size):
        node = program.outputs[m]
        store(work.step, program.position[node], load(phases, node) - load(work.target, m))
    substitute(program.column_start, program.column_row, work.nudged_lower, work.nudged_pivot, work.step)
    for i in range(phases.shape[0]):
        store(work.gradient, i, copies(0.0))
    for q in range(program.order.size):
        store(work.gradient, program.order[q], load(work.step, q))
    if edges_learn:
        for e in range(program.first.size):
            i, j = program.first[e], program.second[e]
            sine = load(work.sine, j) * load(work.cosine, i) - load(work.cosine, j) * load(work.sine, i)
            store(work.edge_gradient, e, (load(work.gradient, i) - load(work.gradient, j)) * sine)
    return copies(0.0)


@_inlined
def difference_gradient(program, coupling, phases, rule, learn_nodes, learn_edges, work):
    """Central differences of the cost by every parameter that learns, centred frequencies turned one by one."""
    step = rule.difference_step
    size = phases.shape[0]
    failed = copies(0.0)
    for i in range(size):
        store(work.gradient, i, copies(0.0))
    for k in range(2 * (size + coupling.shape[0])):
        number, sign = k // 2, 1.0 - 2.0 * (k % 2)
        is_node = number < size
        row = number if is_node else number - size
        if not (learn_nodes[row] if is_node else learn_edges[row]):
            continue
        parameter = work.centred if is_node else coupling
        slopes = work.gradient if is_node else work.edge_gradient
        value = load(parameter, row)
        store(parameter, row, value + sign * step)
        for i in range(size):
            store(work.nudged, i, load(phases, i))
        failed = failed + settle(
            program, coupling, work.nudged, 0.0, False, rule.nudged_limit, work, work.nudged_lower, work.nudged_pivot
        )
        store(parameter, row, value)
        before = load(slopes, row) if sign < 0.0 else copies(0.0)
        store(slopes, row, before + half_square(program, work.nudged, work) * (sign * 0.5 / step))
    return where_less(copies(0.5), failed, copies(1.0), copies(0.0))


@_inlined
def gradients(program, coupling, phases, rule, learn_nodes, learn_edges, edges_learn, work):
    """Fill the gradients in ``work`` by the rule's method; return 1 where there is none."""
    if rule.gradient == TWO_PHASE:
        failed = two_phase_gradient(program, coupling, phases, rule, edges_learn, work, work.lower, work.pivot)
    elif rule.gradient == ADJOINT:
        failed = adjoint_gradient(program, coupling, phases, edges_learn, work)
    else:
        failed = difference_gradient(program, coupling, phases, rule, learn_nodes, learn_edges, work)
    if rule.raw:
        size = phases.shape[0]
        total = copies(0.0)
        for i in range(size):
            total = total + load(work.gradient, i)
        mean = total * (1.0 / size)
        for i in range(size):
            store(work.gradient, i, load(work.gradient, i) - mean)
    return failed


@_inlined
def between(value, low, high):
    value = where_less(value, copies(low), copies(low), value)
    return where_less(copies(high), value, copies(high), value)


@_inlined
def update(parameters, rates, gradient, learns, low, high, clip, keep):
    """Descend along the gradient, clipped and kept within bounds, in lanes where ``keep`` is 1."""
    half = copies(0.5)
    for k in range(parameters.shape[0]):
        value = load(parameters, k)
        changed = value
        if learns[k]:
            changed = value - load(rates, k) * between(load(gradient, k), -clip, clip)
        changed = between(changed, low[k], high[k])
        store(parameters, k, where_less(half, keep, changed, value))


@_inlined
def start_epoch(program, coupling, phases, reset, work):
    """Zero the phases if the protocol says so, and prepare factor and frequencies for the first prediction."""
    if reset:
        for i in range(phases.shape[0]):
            store(phases, i, copies(0.0))
    for i in range(phases.shape[0]):
        store(work.centred, i, copies(0.0))
    first_factor(program, coupling, phases, work, work.lower, work.pivot)
    for i in range(phases.shape[0]):
        store(work.previous, i, -load(work.force, i))


@_inlined
def settle_sample(program, coupling, phases, fresh, limit, work):
    """Settle the free equilibrium of the sample at hand; return 1 where it must be skipped."""
    predict_start(program, phases, fresh, work, work.lower, work.pivot)
    return settle(program, coupling, phases, 0.0, False, limit, work, work.lower, work.pivot)


@_compiled
def train_group(
    program, rule, targets, bounds, learn_nodes, learn_edges, omega, coupling, phases, omega_rate, coupling_rate,
    records, orders, tallies,
):  # fmt: skip
    """Train one group for as many epochs as ``orders`` has; ``tallies`` (epochs, TALLIES, lanes) receives the sums."""
    work = make_work(program, omega.shape[0], coupling.shape[0])
    zero, one, half = copies(0.0), copies(1.0), copies(0.5)
    edges_learn = np.any(learn_edges)
    unbounded = True  # couplings that do not learn need to be brought within their bounds only once
    for epoch in range(orders.shape[0]):
        sums = tallies[epoch]
        start_epoch(program, coupling, phases, rule.reset_each_epoch, work)
        fresh = zero
        for step in range(orders.shape[1]):
            rows = orders[epoch, step]
            set_sample(program, omega, records, rows, work)
            lost = settle_sample(program, coupling, phases, fresh, rule.free_limit, work)
            unstable = unstable_lanes(program, work.pivot)
            failed = gradients(program, coupling, phases, rule, learn_nodes, learn_edges, edges_learn, work)
            usable = where_less(half, lost, zero, where_less(half, failed, zero, one))
            counted = usable if rule.tally_needs_nudge else where_less(half, lost, zero, one)
            tally(program, phases, targets, rule.decision, counted, unstable, work, sums)
            store(sums, SKIPPED, load(sums, SKIPPED) + (1.0 - usable))
            update(omega, omega_rate, work.gradient, learn_nodes, bounds[0], bounds[1], rule.clip, usable)
            if unbounded or edges_learn:
                update(
                    coupling, coupling_rate, work.edge_gradient, learn_edges, bounds[2], bounds[3], rule.clip, usable
                )
                unbounded = unbounded and any_less(usable, half)
            fresh = lost


@_compiled
def evaluate_group(program, targets, decision, limit, omega, coupling, records, tallies):
    """Score one group on samples in order, each started from the one before, the first from zero."""
    work = make_work(program, omega.shape[0], coupling.shape[0])
    zero, one, half = copies(0.0), copies(1.0), copies(0.5)
    phases = np.zeros(omega.shape)
    rows = np.zeros(WIDTH, dtype=np.uint32)
    start_epoch(program, coupling, phases, True, work)
    fresh = zero
    for row in range(records.shape[0]):
        rows[:] = row
        set_sample(program, omega, records, rows, work)
        lost = settle_sample(program, coupling, phases, fresh, limit, work)
        unstable = unstable_lanes(program, work.pivot)
        counted = where_less(half, lost, zero, one)
        tally(program, phases, targets, decision, counted, unstable, work, tallies)
        store(tallies, SKIPPED, load(tallies, SKIPPED) + lost)
        fresh = lost
