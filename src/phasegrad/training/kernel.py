r"""The training kernel: the learning protocol on thirty-two networks of one topology in lock-step.

One update of one network is: settle the free equilibrium of a sample, settle the nudged one, change the parameters.

The free solve starts from the previous sample's phases moved by the linear response to the change of the frequencies
(`predict_start`); the nudged one from the free phases moved by the linear response to the nudge (`settle_nudged`); both
use the factor at hand. A sample that does not settle is skipped and counted; if a pivot of the factor of a free
equilibrium is not positive the state is counted as unstable.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phasegrad.training.settling import (
    advance,
    compiled,
    first_factor,
    inlined,
    make_work,
    settle,
    sine_and_cosine,
    sines,
    substitute,
)
from phasegrad.training.vector import WIDTH, any_less, copies, load, magnitude, store, where_less

TWO_PHASE, ADJOINT, FINITE_DIFFERENCE = 0, 1, 2
COSINE, NEAREST = 0, 1

# Rows of the tallies that an epoch or an evaluation returns.
LOSS, CORRECT, SKIPPED, UNSTABLE, SEPARATION, COMMON = range(6)
TALLIES = 6


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


@inlined
def centre(omega, work):
    """Frequencies in the frame that turns with their mean."""
    total = copies(0.0)
    size = omega.shape[0]
    for i in range(size):
        total = total + load(omega, i)
    mean = total * (1.0 / size)
    for i in range(size):
        store(work.centred, i, load(omega, i) - mean)


@inlined
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


@inlined
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


@inlined
def half_square(program, phases, work):
    """Cost of every lane: half the squared distance of the outputs to their targets."""
    total = copies(0.0)
    for m in range(program.outputs.size):
        error = load(phases, program.outputs[m]) - load(work.target, m)
        total = total + error * error
    return 0.5 * total


@inlined
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


@inlined
def unstable_lanes(program, pivot):
    bad = copies(0.0)
    for q in range(program.order.size):
        bad = where_less(load(pivot, q), copies(0.0), copies(1.0), bad)
    return bad


@inlined
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


@inlined
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


@inlined
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


@inlined
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


@inlined
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


@inlined
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


@inlined
def between(value, low, high):
    value = where_less(value, copies(low), copies(low), value)
    return where_less(copies(high), value, copies(high), value)


@inlined
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


@inlined
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


@inlined
def settle_sample(program, coupling, phases, fresh, limit, work):
    """Settle the free equilibrium of the sample at hand; return 1 where it must be skipped."""
    predict_start(program, phases, fresh, work, work.lower, work.pivot)
    return settle(program, coupling, phases, 0.0, False, limit, work, work.lower, work.pivot)


@compiled
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


@compiled
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
