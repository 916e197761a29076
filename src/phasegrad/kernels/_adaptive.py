"""Compiled steps in time whose length follows from their error: the method of Dormand and Prince of order eight.

Formulas and choice of steps are those of Hairer, Norsett and Wanner 1993, sections II.4 and II.5; the coefficients come
as arrays, those of SciPy's DOP853.
"""

import numpy as np

from phasegrad.kernels._elementary import compiled
from phasegrad.kernels._entrance import entrance
from phasegrad.kernels._motion import rates

# What `advance` says: that it is there, that there are steps left to take, that a step became too short, that a state
# is not finite.
THERE, UNDER_WAY, TOO_SHORT, NOT_FINITE = 0, 1, 2, 3
# Places of a clock: the time, the length that the next step may have, and whether the last attempt was rejected.
TIME, STEP, REJECTED = 0, 1, 2


@compiled
def _stages(state, step, stages, there, matrix, acting):
    """Set the rates of change at all stages of a step, and the state after it.

    The first row of the matrix is zero, and the first stage the state itself; the last row has the weights of the step.
    """
    for k in range(matrix.shape[0]):
        there[:] = 0.0
        for j in range(k):
            if matrix[k, j] != 0.0:
                for i in range(there.size):
                    there[i] += matrix[k, j] * stages[j, i]
        for i in range(there.size):
            there[i] = state[i] + step * there[i]
        rates(there, stages[k], *acting)


@compiled
def _error(state, there, step, stages, tolerances, fifth, third):
    """Return the error of a step in units of what is tolerated: of order five, weighed against that of order three."""
    absolute, relative = tolerances
    high, low = 0.0, 0.0
    for i in range(state.size):
        scale = absolute + relative * max(abs(state[i]), abs(there[i]))
        five, three = 0.0, 0.0
        for k in range(stages.shape[0]):
            five += fifth[k] * stages[k, i]
            three += third[k] * stages[k, i]
        high += (five / scale) ** 2
        low += (three / scale) ** 2
    if high == 0.0 and low == 0.0:
        return 0.0
    return step * high / np.sqrt((high + 0.01 * low) * state.size)


@entrance
def advance(clock, state, end, most, tolerances, tableau, work, acting):
    """Lead a state in place toward ``end``, in at most so many attempts to take a step; return what is to be said."""
    matrix, fifth, third = tableau
    stages, there = work
    for _ in range(most):
        left = end - clock[TIME]
        if left <= 0.0:
            return THERE
        if clock[STEP] < 10 * np.spacing(abs(clock[TIME])):
            return TOO_SHORT
        cut = clock[STEP] >= left
        length = left if cut else clock[STEP]
        _stages(state, length, stages, there, matrix, acting)
        error = _error(state, there, length, stages, tolerances, fifth, third)
        if not np.isfinite(error):
            return NOT_FINITE
        factor = 10.0 if error == 0.0 else min(10.0, max(0.2, 0.9 * error**-0.125))
        if error < 1.0:
            # A step that the end cut short says nothing against longer ones.
            clock[STEP] = max(length * (min(1.0, factor) if clock[REJECTED] else factor), clock[STEP] if cut else 0.0)
            clock[TIME] = end if cut else clock[TIME] + length
            state[:] = there
        else:
            clock[STEP] = length * factor
        clock[REJECTED] = error >= 1.0
    return THERE if clock[TIME] >= end else UNDER_WAY
