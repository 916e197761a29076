r"""Settling that can be trusted: Newton where that is safe, descent of the energy everywhere else.

The nudged energy of phases theta is, over all bonds, those to the fields included,

    E = -sum_i omega_i theta_i - sum_bonds K cos(theta_j - theta_i) + beta C

`settle` first takes plain Newton steps, which nearly always end in a stable equilibrium. A lane that they leave
unsettled, or that came through phases whose Laplacian is not positive definite, where Newton may climb or jump, starts
again and is guarded (`guarded`): a step solves L d = F where the Laplacian L is positive definite, and P d = F
elsewhere, P being the Laplacian with weights max(|K cos|, |K| / 10), which always is; it is kept if E falls enough
(Armijo), and halved otherwise. All of it in lock-step and masked, as everything here; the lanes that are done wait.

A protocol may instead name a limit on the residual (the paper: 0.01 in training, 0.1 in evaluation): then a lane that
does not settle starts once more from zero, without guard, is taken as settled if its largest force is below the limit,
and may be unstable.
"""

from __future__ import annotations

from phasegrad.kernels import _program as at
from phasegrad.kernels._elementary import compiled
from phasegrad.kernels._settling import (
    CLOSE,
    MAX_TURN,
    at_least,
    backward,
    blend,
    cost_of,
    factorise,
    forces,
    largest,
    newton,
    nudge_forces,
    sines,
)
from phasegrad.kernels._vector import any_less, copies, entry, load, magnitude, multiply_add, store, where_less

PLAIN_STEPS = 16
LOOSE_STEPS = 50
GUARDED_STEPS = 100
HALVINGS = 40
ARMIJO = 1e-4
FLOOR = 0.1
STILL = 1e-12
ROUNDING = 16 * 2.220446049250313e-16


@compiled
def energy_of(rows, program, phases, beta, kind):
    """Energy of every lane, from the angles at hand, and a bound on its rounding error."""
    angles, ends, strength = entry(program, at.ANGLES), entry(program, at.BOND_ENDS), entry(program, at.STRENGTH)
    total, most, span = copies(rows, 0.0), copies(rows, 0.0), copies(rows, 1.0)
    for bond in range(entry(program, at.BONDS)):
        a = angles + 2 * entry(program, ends + 2 * bond)
        b = angles + 2 * entry(program, ends + 2 * bond + 1)
        across = multiply_add(load(rows, b + 1), load(rows, a + 1), load(rows, b) * load(rows, a))
        total = multiply_add(-load(rows, strength + bond), across, total)
        most = most + magnitude(load(rows, strength + bond))
    drive, order = entry(program, at.DRIVE), entry(program, at.ORDER)
    for q in range(entry(program, at.MOVING)):
        node = entry(program, order + q)
        turned = load(rows, phases + node)
        total = multiply_add(-load(rows, drive + node), turned, total)
        span = at_least(span, 1.0 + magnitude(turned))
        most = most + magnitude(load(rows, drive + node))
    if beta != 0.0:
        total = multiply_add(beta, cost_of(rows, program, phases, kind), total)
    return total, ROUNDING * (most * span + magnitude(total))


@compiled
def measure(rows, program, phases, beta, kind):
    """Angles, forces (in STEP) and diagonal at the phases; return the energy and its rounding error."""
    sines(rows, program, phases)
    forces(rows, program)
    if beta != 0.0:
        nudge_forces(rows, program, phases, beta, kind)
    return energy_of(rows, program, phases, beta, kind)


@compiled
def lockable(rows, program):
    """0 in lanes where an oscillator's frequency exceeds all that its bonds can pull: there is no equilibrium."""
    ends, strength, drive = entry(program, at.BOND_ENDS), entry(program, at.STRENGTH), entry(program, at.DRIVE)
    held, count = entry(program, at.HELD_NODES), entry(program, at.HELD)
    possible = copies(rows, 1.0)
    for node in range(entry(program, at.NODES)):
        balanced = True  # without clamped inputs and fields all forces add to zero, that on the reference too
        if entry(program, at.PINNED) == 0:
            for k in range(count):
                balanced = balanced and entry(program, held + k) != node
        if balanced:
            capacity = copies(rows, 0.0)
            for bond in range(entry(program, at.BONDS)):
                if entry(program, ends + 2 * bond) == node or entry(program, ends + 2 * bond + 1) == node:
                    capacity = capacity + magnitude(load(rows, strength + bond))
            pulled = magnitude(load(rows, drive + node))
            possible = where_less(capacity + 1e-12 * (capacity + pulled), pulled, 0.0, possible)
    return possible


@compiled
def restart(rows, program, phases, start, lanes):
    """Put the nodes that move where rows ``start`` on have them, in lanes where ``lanes`` is 1."""
    order = entry(program, at.ORDER)
    for q in range(entry(program, at.MOVING)):
        node = entry(program, order + q)
        here = load(rows, phases + node)
        store(rows, phases + node, where_less(0.5, lanes, load(rows, start + node), here))


@compiled
def stand_in(rows, program, beta):
    """Diagonal of the positive definite matrix that stands in for the Laplacian."""
    angles, diagonal, link = entry(program, at.OWN_ANGLE), entry(program, at.DIAGONAL), entry(program, at.LINKS)
    for q in range(entry(program, at.MOVING)):
        own, total = entry(program, angles + q), copies(rows, 0.0)
        while entry(program, link) != at.END:
            strength, row = load(rows, entry(program, link)), entry(program, link + 1)
            across = multiply_add(load(rows, row + 1), load(rows, own + 1), load(rows, row) * load(rows, own))
            total = total + at_least(magnitude(strength * across), FLOOR * magnitude(strength))
            link += 2
        link += 1
        store(rows, diagonal + q, total)
    places = entry(program, at.OUTPUT_PLACES)
    for m in range(entry(program, at.OUTPUTS)):
        row = diagonal + entry(program, places + m)
        store(rows, row, load(rows, row) + abs(beta))


@compiled
def choose_direction(rows, program, beta, active):
    """Fill DIRECTION with the step to try, at most MAX_TURN, FORCE with the force.

    Return 1 where it is Newton's, and its size. The true factor is left in SPARE_FACTOR.
    """
    count, step, direction = entry(program, at.MOVING), entry(program, at.STEP), entry(program, at.DIRECTION)
    force = entry(program, at.FORCE)
    for q in range(count):
        store(rows, force + q, load(rows, step + q))
    bent = factorise(rows, program, entry(program, at.SPARE_FACTOR), 0.0)
    backward(rows, program, entry(program, at.SPARE_FACTOR))
    if any_less(0.5, bent * active):
        for q in range(count):
            store(rows, direction + q, load(rows, step + q))
            store(rows, step + q, load(rows, force + q))
        stand_in(rows, program, beta)
        factorise(rows, program, entry(program, at.STAND_IN), FLOOR)
        backward(rows, program, entry(program, at.STAND_IN))
        blend(rows, 1.0 - bent, count, direction, step)
    size = largest(rows, step, count)
    scale = where_less(MAX_TURN, size, MAX_TURN / size, 1.0)
    for q in range(count):
        store(rows, direction + q, scale * load(rows, step + q))
    return 1.0 - bent, size


@compiled
def try_step(rows, program, phases, fraction, waiting):
    """Put TRIAL a fraction of DIRECTION away from the phases, in lanes that wait."""
    trial, direction, order = entry(program, at.TRIAL), entry(program, at.DIRECTION), entry(program, at.ORDER)
    for q in range(entry(program, at.MOVING)):
        node = entry(program, order + q)
        moved = multiply_add(fraction, load(rows, direction + q), load(rows, phases + node))
        store(rows, trial + node, where_less(0.5, waiting, moved, load(rows, trial + node)))


@compiled
def search(rows, program, phases, energy, rounding, beta, kind, active):
    """Halve the step until the energy falls enough, or the force where rounding hides the energy's change.

    TRIAL and all that `measure` fills then belong to the new phases. Return 1 where nothing was found, the energy and
    its rounding error.
    """
    count, trial = entry(program, at.MOVING), entry(program, at.TRIAL)
    step, direction, force = entry(program, at.STEP), entry(program, at.DIRECTION), entry(program, at.FORCE)
    gain, norm = copies(rows, 0.0), copies(rows, 0.0)
    for q in range(count):
        gain = multiply_add(load(rows, force + q), load(rows, direction + q), gain)
        norm = multiply_add(load(rows, force + q), load(rows, force + q), norm)
    fraction, waiting = copies(rows, 1.0), active
    after, blur = energy, rounding
    for _ in range(HALVINGS):
        try_step(rows, program, phases, fraction, waiting)
        after, blur = measure(rows, program, trial, beta, kind)
        left = copies(rows, 0.0)
        for q in range(count):
            left = multiply_add(load(rows, step + q), load(rows, step + q), left)
        drop = energy - after
        lower = where_less(ARMIJO * fraction * gain, drop, 1.0, 0.0)
        weaker = where_less(left, norm, where_less(-rounding, drop, 1.0, 0.0), 0.0)
        waiting = waiting * (1.0 - where_less(1e3 * rounding, gain, lower, weaker))
        if not any_less(0.5, waiting):
            break
        fraction = where_less(0.5, waiting, 0.5 * fraction, fraction)
    return waiting, after, blur


@compiled
def guarded(rows, program, phases, factor, start, beta, kind, lanes):
    """Settle the lanes where ``lanes`` is 1 from the phases at rows ``start`` on.

    Return 1 where no equilibrium was found, and 1 where one was found that is unstable.
    """
    order, count, trial = entry(program, at.ORDER), entry(program, at.MOVING), entry(program, at.TRIAL)
    restart(rows, program, phases, start, lanes)
    restart(rows, program, trial, phases, copies(rows, 1.0))
    active, lost, unstable = lanes, lanes, copies(rows, 0.0)
    if beta == 0.0:
        active = active * lockable(rows, program)
    energy, rounding = measure(rows, program, trial, beta, kind)
    for _ in range(GUARDED_STEPS):
        if not any_less(0.5, active):
            break
        newton_like, size = choose_direction(rows, program, beta, active)
        settled = active * newton_like * where_less(size * size, CLOSE, 1.0, 0.0)
        resting = active * (1.0 - newton_like) * where_less(size, STILL, 1.0, 0.0)
        blend(rows, settled, count + entry(program, at.SLOTS), entry(program, at.SPARE_FACTOR), factor)
        lost, unstable = lost - settled - resting, unstable + resting
        failed, after, blur = search(rows, program, phases, energy, rounding, beta, kind, active - settled - resting)
        active = active - resting - failed
        energy, rounding = where_less(0.5, active, after, energy), where_less(0.5, active, blur, rounding)
        for q in range(count):
            node = entry(program, order + q)
            # A settled lane takes its last step whole: the energy can no longer tell.
            moved = load(rows, phases + node) + load(rows, entry(program, at.DIRECTION) + q)
            moved = where_less(0.5, settled, moved, load(rows, trial + node))
            store(rows, phases + node, where_less(0.5, active, moved, load(rows, phases + node)))
        active = active - settled
    return lost, unstable


@compiled
def residual(rows, program, phases, beta, kind):
    """Largest force on a node that moves; not a number where one of them is not."""
    count, step = entry(program, at.MOVING), entry(program, at.STEP)
    sines(rows, program, phases)
    forces(rows, program)
    if beta != 0.0:
        nudge_forces(rows, program, phases, beta, kind)
    return largest(rows, step, count)


@compiled
def settle(rows, program, phases, factor, start, beta, kind, limit, wanted):
    """Settle the lanes where ``wanted`` is 1; return 1 where there is no equilibrium, and 1 where it is unstable.

    ``limit`` 0 asks for a guard, which begins at the phases in rows ``start``; above 0 it is that of the residual.
    """
    strict = limit == 0.0
    steps = PLAIN_STEPS if strict else LOOSE_STEPS
    lost, unstable = newton(rows, program, phases, factor, beta, kind, steps, strict, wanted)
    if not any_less(0.5, lost):
        return lost, unstable
    if strict:
        return guarded(rows, program, phases, factor, start, beta, kind, lost)
    restart(rows, program, phases, entry(program, at.ZERO), lost)
    again = lost
    lost, tilted = newton(rows, program, phases, factor, beta, kind, steps, strict, again)
    lost = lost * where_less(residual(rows, program, phases, beta, kind), limit, 0.0, 1.0)
    return lost, where_less(0.5, again, tilted, unstable)
