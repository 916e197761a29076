r"""The training kernel: the learning protocol on networks of one topology in lock-step.

One update of one network is: settle the free equilibrium of a sample, find the slope of its cost, change the
parameters. In a chain the free solve starts from the previous sample's phases, moved by the linear response to the
change of the frequencies, or to the force that clamped inputs then exert; a cold one starts from phase zero.

A sample that does not settle has no part in an update and no right answer, nor has one that settles in an unstable
state, unless the rule names a limit (see `phasegrad.kernels._guard`). Both are counted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from phasegrad.kernels import _program as at
from phasegrad.kernels._elementary import compiled, sine_and_cosine
from phasegrad.kernels._entrance import entrance
from phasegrad.kernels._guard import restart, settle
from phasegrad.kernels._settling import (
    PERIODIC,
    advance,
    backward,
    cost_of,
    factorise,
    forces,
    forward,
    hold,
    sines,
    turn_fields,
)
from phasegrad.kernels._slopes import conclude, finish_state, prepare_state, states
from phasegrad.kernels._vector import any_less, copies, entry, load, magnitude, multiply_add, put, store, where_less

inlined = njit(error_model="numpy", inline="always")

CHAIN, CARRIED, COLD = range(3)
COSINE, NEAREST, NONE = range(3)

# Rows of the tallies that an epoch or an evaluation returns.
LOSS, CORRECT, COUNTED, UNSETTLED, UNSTABLE, SKIPPED, SEPARATION, COMMON = range(8)
TALLIES = 8


class Rule(NamedTuple):
    """The numbers of the learning protocol, or of an evaluation; see `phasegrad.training._lanes.LaneRule`."""

    learns: bool
    beta: float
    clip: float
    limit: float
    difference_step: float
    gradient: int
    raw: bool
    cost: int
    decision: int
    start: int


class Samples(NamedTuple):
    """What every network is shown, in which order.

    ``records`` (R, n, d + M + 1) hold inputs, targets and class of every sample, ``orders`` (R, epochs, steps) numbers
    of samples; R is 1 where all networks share them. ``owner`` and ``order_owner`` (lanes,) say which rows belong to
    the network in each lane.
    """

    records: np.ndarray
    owner: np.ndarray
    orders: np.ndarray
    order_owner: np.ndarray


@compiled
def set_sample(rows, program, phases, samples, epoch, step):
    """Give every lane its sample: input frequencies or phases, output targets, and the number of its class."""
    nodes, drive, omega = entry(program, at.NODES), entry(program, at.DRIVE), entry(program, at.OMEGA)
    target, inputs, outputs = entry(program, at.TARGET), entry(program, at.INPUTS), entry(program, at.OUTPUTS)
    clamped, input_nodes = entry(program, at.CLAMPED) > 0, entry(program, at.INPUT_NODES)
    records, orders = samples.records, samples.orders
    (_, count, width), (_, epochs, steps) = records.shape, orders.shape
    for i in range(nodes):
        store(rows, drive + i, load(rows, omega + i))
    first = phases if clamped else drive
    for lane in range(samples.owner.size):
        sample = entry(orders, (entry(samples.order_owner, lane) * epochs + epoch) * steps + step)
        record = (entry(samples.owner, lane) * count + sample) * width
        for k in range(inputs):
            put(rows, first + entry(program, input_nodes + k), lane, entry(records, record + k))
        for m in range(outputs + 1):
            put(rows, target + m, lane, entry(records, record + inputs + m))
    if clamped:
        hold(rows, program, phases)
    if entry(program, at.PINNED) > 0:
        # The frame turns with the mean frequency.
        total = copies(rows, 0.0)
        for i in range(nodes):
            total = total + load(rows, drive + i)
        mean = total * (1.0 / nodes)
        for i in range(nodes):
            store(rows, drive + i, load(rows, drive + i) - mean)


@compiled
def predict_start(rows, program, phases, fresh):
    """Move the phases by the linear response to the new sample, except in fresh lanes, which start at zero."""
    count, order, step = entry(program, at.MOVING), entry(program, at.ORDER), entry(program, at.STEP)
    drive, previous = entry(program, at.DRIVE), entry(program, at.PREVIOUS)
    if entry(program, at.CLAMPED) > 0:
        sines(rows, program, phases)
        forces(rows, program)
    else:
        for q in range(count):
            now = load(rows, drive + entry(program, order + q))
            store(rows, step + q, now - load(rows, previous + q))
            store(rows, previous + q, now)
    forward(rows, program, entry(program, at.FREE_FACTOR))
    backward(rows, program, entry(program, at.FREE_FACTOR))
    advance(rows, program, phases, 1.0 - fresh)
    if any_less(0.5, fresh):
        restart(rows, program, phases, entry(program, at.ZERO), fresh)


@compiled
def start_epoch(rows, program, phases, carried):
    """Put all phases at zero unless they are carried over, and prepare the first prediction: factor and frequencies."""
    nodes, drive, step = entry(program, at.NODES), entry(program, at.DRIVE), entry(program, at.STEP)
    for i in range(nodes):
        store(rows, drive + i, 0.0)
        if not carried:
            store(rows, phases + i, 0.0)
    hold(rows, program, phases)
    turn_fields(rows, program)
    sines(rows, program, phases)
    forces(rows, program)
    for q in range(entry(program, at.MOVING)):
        store(rows, entry(program, at.PREVIOUS) + q, -load(rows, step + q))
    factorise(rows, program, entry(program, at.FREE_FACTOR), 0.0)


@compiled
def decide(rows, program, phases, table, rule):
    """Class of every lane: the output of largest cosine, or the cheapest row of the table; ties to the lower."""
    nodes, outputs = entry(program, at.OUTPUT_NODES), entry(program, at.OUTPUTS)
    best, chosen = copies(rows, 0.0), copies(rows, 0.0)
    for label in range(table.shape[0]):
        value = copies(rows, 0.0)
        if rule.decision == COSINE:
            _, value = sine_and_cosine(load(rows, phases + entry(program, nodes + label)))
        else:
            for m in range(outputs):
                error = load(rows, phases + entry(program, nodes + m)) - table[label, m]
                if rule.cost == PERIODIC:
                    error, _ = sine_and_cosine(0.5 * error)
                value = multiply_add(-error, error, value)
        if label == 0:
            best = value
        else:
            chosen = where_less(best, value, float(label), chosen)
            best = where_less(best, value, value, best)
    return chosen


@compiled
def add(tallies, row, value, keep):
    """Add to a sum in lanes where ``keep`` is 1."""
    store(tallies, row, load(tallies, row) + where_less(0.5, keep, value, 0.0))


@compiled
def tally(rows, program, phases, table, rule, keep, tallies, row):
    """Add one sample of every lane to the sums from ``row`` on, where ``keep`` is 1."""
    nodes, outputs, target = entry(program, at.OUTPUT_NODES), entry(program, at.OUTPUTS), entry(program, at.TARGET)
    common = copies(rows, 0.0)
    for m in range(outputs):
        common = common + load(rows, phases + entry(program, nodes + m))
    first = load(rows, phases + entry(program, nodes))
    last = load(rows, phases + entry(program, nodes + outputs - 1))
    add(tallies, row + LOSS, cost_of(rows, program, phases, rule.cost), keep)
    add(tallies, row + SEPARATION, first - last, keep)
    add(tallies, row + COMMON, common * (1.0 / outputs), keep)
    store(tallies, row + COUNTED, load(tallies, row + COUNTED) + keep)
    if rule.decision != NONE:
        off = magnitude(decide(rows, program, phases, table, rule) - load(rows, target + outputs))
        add(tallies, row + CORRECT, where_less(off, 0.5, 1.0, 0.0), keep)


@compiled
def between(value, low, high):
    """Value brought between two bounds, in every lane."""
    value = where_less(value, low, low, value)
    return where_less(high, value, high, value)


@compiled
def update(rows, program, learned, bounds, clip, pace, keep):
    """Descend along the slopes, clipped and kept within bounds, in lanes where ``keep`` is 1."""
    first, rate, slope = entry(program, at.OMEGA), entry(program, at.RATE), entry(program, at.SLOPE)
    for n in range(learned.size):
        k = entry(learned, n)
        value = load(rows, first + k)
        descent = between(load(rows, slope + k), -clip, clip)
        changed = multiply_add(-(load(rows, rate + k) * pace), descent, value)
        changed = between(changed, bounds[0, k], bounds[1, k])
        store(rows, first + k, where_less(0.5, keep, changed, value))
    if learned.size > 0 and entry(learned, learned.size - 1) >= entry(program, at.NODES) + entry(program, at.BONDS):
        turn_fields(rows, program)


@compiled
def enforce(rows, program, bounds, keep):
    """Bring all parameters within their bounds, in lanes where ``keep`` is 1."""
    first = entry(program, at.OMEGA)
    for k in range(entry(program, at.PARAMETERS)):
        value = load(rows, first + k)
        store(rows, first + k, where_less(0.5, keep, between(value, bounds[0, k], bounds[1, k]), value))


@inlined
def settle_sample(rows, program, rule, phases, fresh):
    """Settle the free equilibrium of the sample at hand; return 1 where there is none, and 1 where it is unstable."""
    zero, everyone = entry(program, at.ZERO), copies(rows, 1.0)
    if rule.start == COLD:
        restart(rows, program, phases, zero, everyone)
    else:
        predict_start(rows, program, phases, fresh)
    return settle(rows, program, phases, entry(program, at.FREE_FACTOR), zero, 0.0, rule.cost, rule.limit, everyone)


@inlined
def find_slopes(rows, program, rule, learned, turned, good):
    """Find the slopes of the cost in lanes that are good; return 1 where they are usable."""
    phases, factor = entry(program, at.PHASES), entry(program, at.NUDGED_FACTOR)
    usable = good
    for number in range(states(rule, turned)):
        here, beta, wanted = prepare_state(rows, program, rule, turned, number, usable)
        lost, unstable = settle(rows, program, here, factor, phases, beta, rule.cost, rule.limit, wanted)
        usable = usable - (lost + unstable if rule.limit == 0.0 else lost)
        finish_state(rows, program, rule, turned, number)
    conclude(rows, program, rule, learned)
    return usable


@entrance
def run_group(rows, program, rule, table, bounds, learned, turned, samples, paces, phases, tallies):
    """Run one group through as many epochs as ``paces`` has, each at its pace; ``tallies`` receives the sums.

    Row ``phases`` is where the phases of the chain are. An evaluation is an epoch in which nothing learns.
    """
    strict, everyone = rule.limit == 0.0, copies(rows, 1.0)
    outside = True  # parameters that do not learn need to be brought within their bounds only once
    for epoch in range(paces.size):
        start_epoch(rows, program, phases, rule.start == CARRIED)
        fresh, sums = copies(rows, 0.0), epoch * TALLIES
        for step in range(samples.orders.shape[2]):
            set_sample(rows, program, phases, samples, epoch, step)
            lost, unstable = settle_sample(rows, program, rule, phases, fresh)
            fresh = lost + unstable if strict else lost
            good = 1.0 - fresh
            if any_less(good, 0.5):
                restart(rows, program, phases, entry(program, at.ZERO), fresh)
            usable = good
            if rule.learns:
                usable = find_slopes(rows, program, rule, learned, turned, good)
            tally(rows, program, phases, table, rule, good, tallies, sums)
            add(tallies, sums + UNSTABLE, unstable, 1.0 - lost)
            add(tallies, sums + UNSETTLED, lost, everyone)
            add(tallies, sums + SKIPPED, 1.0 - usable, everyone)
            if rule.learns:
                update(rows, program, learned, bounds, rule.clip, paces[epoch], usable)
                if outside:
                    enforce(rows, program, bounds, usable)
                    outside = any_less(usable, 0.5)
