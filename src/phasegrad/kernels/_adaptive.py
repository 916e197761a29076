"""Compiled steps in time whose length follows from their error: the method of Dormand and Prince of order eight.

Formulas and choice of steps are those of Hairer, Norsett and Wanner 1993, sections II.4 to II.6; the coefficients come
as arrays, those of SciPy's DOP853. A step ends at the time asked for; where several such times lie within one step, it
is taken whole, and the polynomial of order seven gives the states inside it.
"""

import numpy as np

from phasegrad.kernels._elementary import compiled
from phasegrad.kernels._entrance import entrance
from phasegrad.kernels._motion import BLOCK, added, rates, sample

# What `advance` says: that all are there, or past it, that there are steps left to take, that a step became too short,
# that a state is not finite.
THERE, UNDER_WAY, TOO_SHORT, NOT_FINITE = 0, 1, 2, 3
# Places of a clock: the time, the length that the next step may have, whether the last attempt was rejected, how many
# steps were taken, the length of the last one that has a polynomial, and whether the first stage is known.
TIME, STEP, REJECTED, TAKEN, LAST, KNOWN = 0, 1, 2, 3, 4, 5
# Number of stages of a step, the rates of change after it included, and of those that its polynomial needs.
STEPPED, STAGES = 13, 16


@compiled
def _combine(stages, weights, begin, out):
    """Set ``out`` to the sum of stages from ``begin`` on with these weights."""
    out[:] = 0.0
    for j in range(weights.size):
        weight = weights[j]
        if weight != 0.0:
            stage = stages[j, begin : begin + out.size]
            for i in range(out.size):
                out[i] += weight * stage[i]


@compiled
def _place(state, step, stages, weights, there):
    """Set the state of a stage, or that after the step."""
    for begin in range(0, there.size, BLOCK):
        before, some = state[begin : begin + BLOCK], there[begin : begin + BLOCK]
        _combine(stages, weights, begin, some)
        for i in range(some.size):
            some[i] = before[i] + step * some[i]


@compiled
def _error(state, there, step, stages, tolerances, weights, waves):
    """Return the error of a step in units of what is tolerated: of order five, weighed against that of order three."""
    absolute, relative = tolerances
    fifth, third = waves
    high, low = 0.0, 0.0
    for begin in range(0, state.size, BLOCK):
        before, after = state[begin : begin + BLOCK], there[begin : begin + BLOCK]
        number = before.size
        _combine(stages, weights[0], begin, fifth[:number])
        _combine(stages, weights[1], begin, third[:number])
        for i in range(number):
            scale = absolute + relative * max(abs(before[i]), abs(after[i]))
            fifth[i] = (fifth[i] / scale) ** 2
            third[i] = (third[i] / scale) ** 2
        high += added(fifth, number)
        low += added(third, number)
    if high == 0.0 and low == 0.0:
        return 0.0
    return step * high / np.sqrt((high + 0.01 * low) * state.size)


@compiled
def _bend(state, after, step, stages, tableau, bends, acting):
    """Set the coefficients (8, width) of the polynomial between a state and the one after it."""
    matrix, _, polynomial = tableau
    bends[0] = state
    for k in range(STEPPED, STAGES):
        _place(state, step, stages, matrix[k, :k], bends[1])
        rates(bends[1], stages[k], *acting)
    for i in range(state.size):
        change = after[i] - state[i]
        bends[1, i] = change
        bends[2, i] = step * stages[0, i] - change
        bends[3, i] = 2 * change - step * (stages[STEPPED - 1, i] + stages[0, i])
    for k in range(polynomial.shape[0]):
        for begin in range(0, state.size, BLOCK):
            some = bends[4 + k, begin : begin + BLOCK]
            _combine(stages, polynomial[k], begin, some)
            for i in range(some.size):
                some[i] *= step


@compiled
def _between(share, bends, state):
    """Set the state after a share of the step that a polynomial belongs to."""
    state[:] = 0.0
    for back in range(7):
        factor = share if back % 2 == 0 else 1.0 - share
        for i in range(state.size):
            state[i] = (state[i] + bends[7 - back, i]) * factor
    for i in range(state.size):
        state[i] += bends[0, i]


@compiled
def _advance(clock, state, bends, moments, left, tolerances, tableau, work, acting):
    """Lead a state in place to the first of three times or, where the second is within the step, past it.

    The third is the last there is. In at most ``left[0]`` attempts to take a step; return what is to be said.
    """
    end, following, last = moments
    matrix, errors, _ = tableau
    stages, there = work
    while clock[TIME] < end:
        if left[0] == 0:
            return UNDER_WAY
        left[0] -= 1
        if clock[STEP] < 10 * np.spacing(abs(clock[TIME])):
            return TOO_SHORT
        whole = clock[TIME] + clock[STEP] >= following
        limit = last if whole else end
        cut = clock[STEP] >= limit - clock[TIME]
        length = limit - clock[TIME] if cut else clock[STEP]
        if clock[KNOWN] == 0.0:
            rates(state, stages[0], *acting)
            clock[KNOWN] = 1.0
        for k in range(1, STEPPED):
            _place(state, length, stages, matrix[k, :k], there)
            if k < STEPPED - 1:
                rates(there, stages[k], *acting)
        error = _error(state, there, length, stages, tolerances, errors, acting[1])
        if not np.isfinite(error):
            return NOT_FINITE
        factor = 10.0 if error == 0.0 else min(10.0, max(0.2, 0.9 * error**-0.125))
        if error >= 1.0:
            clock[STEP], clock[REJECTED] = length * factor, 1.0
            continue
        rates(there, stages[STEPPED - 1], *acting)
        if whole:
            _bend(state, there, length, stages, tableau, bends, acting)
            clock[LAST] = length
        # A step that was cut short says nothing against longer ones.
        factor = min(1.0, factor) if clock[REJECTED] == 1.0 else factor
        clock[STEP] = max(length * factor, clock[STEP] if cut else 0.0)
        clock[TIME] = limit if cut else clock[TIME] + length
        clock[REJECTED] = 0.0
        clock[TAKEN] += 1.0
        state[:] = there
        stages[0] = stages[STEPPED - 1]
    return THERE


@entrance
def advance(clocks, states, bends, after, begin, moments, most, tolerances, tableau, work, waves, forces, rows, bodies):
    """Lead samples from number ``begin`` on to the first of three times, and set their states at it.

    Return the number of the sample at which it stopped, after at most so many attempts to take a step in all, and what
    is to be said of that.
    """
    left = np.array([most])
    for k in range(begin, len(states)):
        clock = clocks[k]
        if len(states) > 1:
            clock[KNOWN] = 0.0  # the stages are those of another sample
        acting, couplings = sample(k, forces, rows)
        said = _advance(
            clock, states[k], bends[k], moments, left, tolerances, tableau, work, (*waves, acting, couplings, bodies)
        )
        if said != THERE:
            return k, said
        passed = clock[TIME] - moments[0]
        if passed > 0.0:
            _between(1.0 - passed / clock[LAST], bends[k], after[k])
        else:
            after[k] = states[k]
    return len(states), THERE
