"""Compiled steps in time of oscillators with sine coupling, sine fields and a mean field.

A state is the phases (N,) or, with inertia, phases and velocities one after the other, (2N,). The force on oscillator i
is drive_i + Y_i cos theta_i - X_i sin theta_i, with the local field X + i Y of its neighbours, its own field and the
mean field: one sine and one cosine per oscillator, whatever the number of edges.
"""

import numpy as np

from phasegrad.kernels._elementary import compiled
from phasegrad.kernels._entrance import entrance


@compiled
def _sines(phases, cos, sin):
    """Cosines and sines by polynomials after a reduction by quarter turns, without branches: LLVM makes vectors of it.

    As accurate as the reduction: to a few units in the last place of 1 up to a million turns.
    """
    for i in range(cos.size):
        quarter = np.floor(phases[i] * 0.6366197723675814 + 0.5)
        r = phases[i] - quarter * 1.5707963267341256
        r = r - quarter * 6.077100506303966e-11
        r = r - quarter * 2.0222662487959506e-21
        z = r * r
        odd = z * 1.5896230157654656e-10 - 2.5050747762857807e-8
        odd = z * odd + 2.755731362138572e-6
        odd = z * odd - 1.9841269829589539e-4
        odd = z * odd + 8.333333333322118e-3
        odd = z * odd - 0.16666666666666632
        odd = r * z * odd + r
        even = z * -1.1358536521387682e-11 + 2.0876100842787e-9
        even = z * even - 2.7557317272344188e-7
        even = z * even + 2.4801587298767044e-5
        even = z * even - 1.3888888888887398e-3
        even = z * even + 4.166666666666666e-2
        even = z * z * even + (1.0 - 0.5 * z)
        turn = quarter - 4.0 * np.floor(quarter * 0.25)
        swapped = turn == 1.0 or turn == 3.0
        first = even if swapped else odd
        second = odd if swapped else even
        sin[i] = -first if turn >= 2.0 else first
        cos[i] = -second if turn == 1.0 or turn == 2.0 else second


@compiled
def rates(state, slopes, cos, sin, forces, rows, bodies):
    """Set the rates of change of a state."""
    drive, along, across, mean = forces
    indptr, indices, weight = rows
    moving, damping, inertia = bodies
    size = drive.size
    _sines(state, cos, sin)
    x_all, y_all = 0.0, 0.0
    if mean != 0.0:
        for i in range(size):
            x_all += cos[i]
            y_all += sin[i]
    for i in range(size):
        x, y = along[i] + mean * x_all, across[i] + mean * y_all
        for entry in range(indptr[i], indptr[i + 1]):
            x += weight[entry] * cos[indices[entry]]
            y += weight[entry] * sin[indices[entry]]
        force = drive[i] + y * cos[i] - x * sin[i]
        if inertia.size == 0:
            slopes[i] = moving[i] * force / damping[i]
        else:
            slopes[i] = moving[i] * state[size + i]
            slopes[size + i] = moving[i] * (force - damping[i] * state[size + i]) / inertia[i]


@entrance
def runge_kutta(state, steps, step, forces, rows, bodies, work):
    """Take classical Runge-Kutta steps in place; return how many, fewer where the next would not be finite."""
    first, second, third, fourth, there, cos, sin = work
    for taken in range(steps):
        rates(state, first, cos, sin, forces, rows, bodies)
        for i in range(state.size):
            there[i] = state[i] + step / 2 * first[i]
        rates(there, second, cos, sin, forces, rows, bodies)
        for i in range(state.size):
            there[i] = state[i] + step / 2 * second[i]
        rates(there, third, cos, sin, forces, rows, bodies)
        for i in range(state.size):
            there[i] = state[i] + step * third[i]
        rates(there, fourth, cos, sin, forces, rows, bodies)
        total = 0.0
        for i in range(state.size):
            there[i] = state[i] + step / 6 * (first[i] + 2 * (second[i] + third[i]) + fourth[i])
            total += abs(there[i])
        if not np.isfinite(total):
            return taken
        state[:] = there
    return steps


@entrance
def heun(state, kicks, step, forces, rows, bodies, work):
    """Take Heun's steps with kicks (steps, len(state)) added in place; return as `runge_kutta` does."""
    first, second, _, _, there, cos, sin = work
    for taken in range(kicks.shape[0]):
        rates(state, first, cos, sin, forces, rows, bodies)
        for i in range(state.size):
            there[i] = state[i] + step * first[i] + kicks[taken, i]
        rates(there, second, cos, sin, forces, rows, bodies)
        total = 0.0
        for i in range(state.size):
            there[i] = state[i] + step / 2 * (first[i] + second[i]) + kicks[taken, i]
            total += abs(there[i])
        if not np.isfinite(total):
            return taken
        state[:] = there
    return kicks.shape[0]
