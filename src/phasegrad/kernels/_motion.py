"""Compiled steps in time of oscillators whose forces are sines: of neighbours, of fields, of a mean field.

A state is the phases (N,) or, with inertia, phases and velocities one after the other, (2N,). With the phasors
z = exp(i theta), the force on oscillator i is drive_i + Im(h_i conj(z_i)): the local field h_i is a linear map of the
phasors of the neighbours, plus the field of the oscillator itself and the mean field. So there is one sine and one
cosine per oscillator, whatever the number of edges. Cosine and sine stand side by side, and an edge costs one load of
both and one multiplication.
"""

import numpy as np

from phasegrad.kernels._elementary import COSINE, QUARTER, QUARTERS, SINE, compiled
from phasegrad.kernels._entrance import entrance
from phasegrad.kernels._vector import entry, lane, multiply_add, pair, swapped

# Numbers handled at a time, so that what is read again is still in the first cache.
BLOCK = 512


@compiled
def _sines(phases, cos, sin):
    """Cosines and sines by polynomials after a reduction by quarter turns, without branches: LLVM makes vectors of it.

    As accurate as the reduction: to a few units in the last place of 1 up to a million turns.
    """
    for i in range(phases.size):
        quarter = np.floor(phases[i] * QUARTERS + 0.5)
        r = phases[i] - quarter * QUARTER[0]
        r = r - quarter * QUARTER[1]
        r = r - quarter * QUARTER[2]
        z = r * r
        odd = z * SINE[0] + SINE[1]
        odd = z * odd + SINE[2]
        odd = z * odd + SINE[3]
        odd = z * odd + SINE[4]
        odd = z * odd + SINE[5]
        odd = r * z * odd + r
        even = z * COSINE[0] + COSINE[1]
        even = z * even + COSINE[2]
        even = z * even + COSINE[3]
        even = z * even + COSINE[4]
        even = z * even + COSINE[5]
        even = z * z * even + (1.0 - 0.5 * z)
        turn = quarter - 4.0 * np.floor(quarter * 0.25)
        swap = turn == 1.0 or turn == 3.0
        first = even if swap else odd
        second = odd if swap else even
        sin[i] = -first if turn >= 2.0 else first
        cos[i] = -second if turn == 1.0 or turn == 2.0 else second


@compiled
def added(values, number):
    """Return the sum of the first of at most `BLOCK` numbers, folded in halves; the numbers are lost."""
    half = BLOCK // 2
    while half >= number:
        half //= 2
    values[number : 2 * half] = 0.0
    while half:
        for i in range(half):
            values[i] += values[half + i]
        half //= 2
    return values[0]


@compiled
def _phasors(phases, phasors, waves):
    """Set cosines and sines side by side, (2N,)."""
    cos, sin = waves
    for begin in range(0, phases.size, BLOCK):
        some, turned = phases[begin : begin + BLOCK], phasors[2 * begin : 2 * (begin + BLOCK)]
        _sines(some, cos, sin)
        for i in range(some.size):
            turned[2 * i] = cos[i]
            turned[2 * i + 1] = sin[i]


@compiled
def _sums(phasors, waves):
    """Return the sums of all cosines and of all sines."""
    cos, sin = waves
    along, across = 0.0, 0.0
    size = phasors.size // 2
    for begin in range(0, size, BLOCK):
        number, some = min(BLOCK, size - begin), phasors[2 * begin : 2 * (begin + BLOCK)]
        for i in range(number):
            cos[i] = some[2 * i]
            sin[i] = some[2 * i + 1]
        along += added(cos, number)
        across += added(sin, number)
    return along, across


@compiled
def _forces(phasors, drive, own, mean, rows, forced):
    """Set the forces, by the local field of every oscillator: its own, the mean field, that of its neighbours."""
    indptr, indices, weight, every, maps = rows
    x_all, y_all = mean
    for i in range(drive.size):
        field = pair(own, i)
        if maps.size:
            for place in range(entry(indptr, i), entry(indptr, i + 1)):
                phasor = pair(phasors, entry(indices, place))
                field = multiply_add(pair(maps, 2 * place), phasor, field)
                field = multiply_add(pair(maps, 2 * place + 1), swapped(phasor), field)
        else:
            for place in range(entry(indptr, i), entry(indptr, i + 1)):
                field = multiply_add(pair(phasors, entry(indices, place)), entry(weight, place & every), field)
        x, y = lane(field, 0) + x_all, lane(field, 1) + y_all
        forced[i] = drive[i] + y * phasors[2 * i] - x * phasors[2 * i + 1]


@compiled
def _forces_alone(phasors, drive, own, mean, forced):
    """Set the same where there are no neighbours."""
    x_all, y_all = mean
    for i in range(drive.size):
        x, y = own[2 * i] + x_all, own[2 * i + 1] + y_all
        forced[i] = drive[i] + y * phasors[2 * i] - x * phasors[2 * i + 1]


@compiled
def rates(state, slopes, phasors, waves, forces, rows, bodies):
    """Set the rates of change of a state."""
    drive, own, mean = forces
    moving, mobility, damping, heavy = bodies
    size = drive.size
    _phasors(state[:size], phasors, waves)
    along, across = _sums(phasors, waves) if mean != 0.0 else (0.0, 0.0)
    forced = slopes[size:] if heavy else slopes
    if rows[1].size:
        _forces(phasors, drive, own, (mean * along, mean * across), rows, forced)
    else:
        _forces_alone(phasors, drive, own, (mean * along, mean * across), forced)
    if heavy:
        for i in range(size):
            speed = state[size + i]
            slopes[i] = moving[i] * speed
            forced[i] = mobility[i] * (forced[i] - damping[i] * speed)
    else:
        for i in range(size):
            forced[i] = mobility[i] * forced[i]


@compiled
def sample(k, forces, rows):
    """Return forces and couplings of one sample, out of those of every sample or of the one that stands for all."""
    drive, own, mean, weight, maps = forces
    indptr, indices, every = rows
    acting = drive[min(k, len(drive) - 1)], own[min(k, len(own) - 1)], mean[min(k, len(mean) - 1)]
    return acting, (indptr, indices, weight[min(k, len(weight) - 1)], every, maps[min(k, len(maps) - 1)])


@entrance
def slopes_of(states, slopes, waves, forces, rows, bodies):
    """Set the rates of change of several states, each with forces of its own or all with the same."""
    for k in range(states.shape[0]):
        acting, couplings = sample(k, forces, rows)
        rates(states[k], slopes[k], *waves, acting, couplings, bodies)


@compiled
def _finite(state):
    """Return whether all entries are finite."""
    strange = 0
    for i in range(state.size):
        strange |= not abs(state[i]) < np.inf
    return strange == 0


@entrance
def runge_kutta(state, steps, step, work, acting):
    """Take classical Runge-Kutta steps in place; return how many, fewer where the next would not be finite."""
    slopes, total, there = work
    for taken in range(steps):
        rates(state, slopes, *acting)
        for i in range(state.size):
            total[i] = slopes[i]
            there[i] = state[i] + step / 2 * slopes[i]
        rates(there, slopes, *acting)
        for i in range(state.size):
            total[i] += 2 * slopes[i]
            there[i] = state[i] + step / 2 * slopes[i]
        rates(there, slopes, *acting)
        for i in range(state.size):
            total[i] += 2 * slopes[i]
            there[i] = state[i] + step * slopes[i]
        rates(there, slopes, *acting)
        for i in range(state.size):
            there[i] = state[i] + step / 6 * (total[i] + slopes[i])
        if not _finite(there):
            return taken
        state[:] = there
    return steps


@entrance
def heun(state, kicks, step, work, acting):
    """Take Heun's steps with kicks (steps, len(state)) added in place; return as `runge_kutta` does."""
    slopes, total, there = work
    for taken in range(kicks.shape[0]):
        rates(state, total, *acting)
        for i in range(state.size):
            there[i] = state[i] + step * total[i] + kicks[taken, i]
        rates(there, slopes, *acting)
        for i in range(state.size):
            there[i] = state[i] + step / 2 * (total[i] + slopes[i]) + kicks[taken, i]
        if not _finite(there):
            return taken
        state[:] = there
    return kicks.shape[0]
