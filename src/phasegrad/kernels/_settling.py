r"""Settling in lanes: Newton's method on many networks of one topology at once.

With S = sum_j K_ij sin theta_j and C = sum_j K_ij cos theta_j over the bonds of oscillator i the force on it is
omega_i + S cos theta_i - C sin theta_i and the diagonal of the Laplacian C cos theta_i + S sin theta_i, so that each
oscillator needs one sine and one cosine (`sines`, `forces`). The Laplacian is factored as L D L^T column by column,
by the elimination program of the topology, the right-hand side with it (`factorise`, then `backward`; `forward` for
a factor at hand).

A Newton step of size d leaves an error of order d^2, a chord step (old factor, at distance D) one of order d D; a lane
is done when that product is below `CLOSE`. Every lane takes the same fixed sequence of steps until it is done and is
then masked, so that no network's result depends on which others share its group.
"""

from __future__ import annotations

from phasegrad.kernels import _program as at
from phasegrad.kernels._elementary import compiled, sine_and_cosine
from phasegrad.kernels._vector import any_less, copies, entry, load, magnitude, multiply_add, store, where_less

CLOSE = 1e-10
MAX_TURN = 1.0
QUADRATIC, PERIODIC = 0, 1


@compiled
def sines(rows, program, phases):
    """Sines and cosines of all nodes that move."""
    order, angles = entry(program, at.ORDER), entry(program, at.OWN_ANGLE)
    for q in range(entry(program, at.MOVING)):
        sine, cosine = sine_and_cosine(load(rows, phases + entry(program, order + q)))
        row = entry(program, angles + q)
        store(rows, row, sine)
        store(rows, row + 1, cosine)


@compiled
def hold(rows, program, phases):
    """Sines and cosines of the nodes that are held."""
    angles, held = entry(program, at.ANGLES), entry(program, at.HELD_NODES)
    for k in range(entry(program, at.HELD)):
        node = entry(program, held + k)
        sine, cosine = sine_and_cosine(load(rows, phases + node))
        store(rows, angles + 2 * node, sine)
        store(rows, angles + 2 * node + 1, cosine)


@compiled
def turn_fields(rows, program):
    """Sines and cosines of the fields, which are nodes after the others."""
    angles, phases = entry(program, at.ANGLES) + 2 * entry(program, at.NODES), entry(program, at.FIELD_PHASE)
    for k in range(entry(program, at.FIELDS)):
        sine, cosine = sine_and_cosine(load(rows, phases + k))
        store(rows, angles + 2 * k, sine)
        store(rows, angles + 2 * k + 1, cosine)


@compiled
def forces(rows, program):
    """Force on every oscillator that moves, into STEP, and diagonal of the Laplacian, from sines and cosines."""
    order, angles, link = entry(program, at.ORDER), entry(program, at.OWN_ANGLE), entry(program, at.LINKS)
    drive, step, diagonal = entry(program, at.DRIVE), entry(program, at.STEP), entry(program, at.DIAGONAL)
    for q in range(entry(program, at.MOVING)):
        s, c = copies(rows, 0.0), copies(rows, 0.0)
        bond = entry(program, link)
        while bond != at.END:
            strength, row = load(rows, bond), entry(program, link + 1)
            s = multiply_add(strength, load(rows, row), s)
            c = multiply_add(strength, load(rows, row + 1), c)
            link += 2
            bond = entry(program, link)
        link += 1
        row = entry(program, angles + q)
        sine, cosine = load(rows, row), load(rows, row + 1)
        frequency = load(rows, drive + entry(program, order + q))
        store(rows, step + q, frequency + multiply_add(cosine, s, -(sine * c)))
        store(rows, diagonal + q, multiply_add(cosine, c, sine * s))


@compiled
def cost_of(rows, program, phases, kind):
    """Cost of every lane: half the squared distance of the outputs to their targets, or that on the circle."""
    total = copies(rows, 0.0)
    nodes, target = entry(program, at.OUTPUT_NODES), entry(program, at.TARGET)
    for m in range(entry(program, at.OUTPUTS)):
        error = load(rows, phases + entry(program, nodes + m)) - load(rows, target + m)
        if kind == PERIODIC:
            # 1 - cos x = 2 sin^2(x / 2) keeps the digits of small errors.
            sine, _ = sine_and_cosine(0.5 * error)
            total = multiply_add(4.0 * sine, sine, total)
        else:
            total = multiply_add(error, error, total)
    return 0.5 * total


@compiled
def nudge_forces(rows, program, phases, beta, kind):
    """Add the nudge to the force on the outputs and its stiffness to the diagonal."""
    outputs, places = entry(program, at.OUTPUT_NODES), entry(program, at.OUTPUT_PLACES)
    target, step, diagonal = entry(program, at.TARGET), entry(program, at.STEP), entry(program, at.DIAGONAL)
    for m in range(entry(program, at.OUTPUTS)):
        q = entry(program, places + m)
        away = load(rows, target + m) - load(rows, phases + entry(program, outputs + m))
        stiffness = copies(rows, 1.0)
        if kind == PERIODIC:
            away, stiffness = sine_and_cosine(away)
        store(rows, step + q, multiply_add(beta, away, load(rows, step + q)))
        store(rows, diagonal + q, multiply_add(beta, stiffness, load(rows, diagonal + q)))


@compiled
def at_least(value, bound):
    """Larger of two numbers, in every lane."""
    return where_less(value, bound, bound, value)


@compiled
def factorise(rows, program, factor, least):
    """L D L^T of the Laplacian at the angles at hand, and L^-1 of STEP in place.

    Row ``factor + q`` receives the reciprocal of pivot q, the rows after those L, slot by slot. If ``least`` is not 0,
    weights are replaced by their absolute values, at least this share of the strength. Return 1 where the matrix is
    not positive definite.
    """
    count, slot, bent = entry(program, at.MOVING), 0, copies(rows, 0.0)
    lower, entries, diagonal = factor + count, entry(program, at.ENTRIES), entry(program, at.DIAGONAL)
    angles, step = entry(program, at.OWN_ANGLE), entry(program, at.STEP)
    earlier, here = entry(program, at.BEFORE), entry(program, at.COLUMNS)
    for q in range(count):
        pivot, right_side = load(rows, diagonal + q), load(rows, step + q)
        other = entry(program, earlier)
        while other != at.END:
            scaled, column = -load(rows, lower + other), entry(program, earlier + 1)
            pivot = multiply_add(scaled, load(rows, entries + other), pivot)
            right_side = multiply_add(scaled, load(rows, step + column), right_side)
            earlier += 2
            other = entry(program, earlier)
        earlier += 1
        bent = where_less(0.0, pivot, bent, 1.0)
        reciprocal = 1.0 / pivot
        store(rows, step + q, right_side)
        store(rows, factor + q, reciprocal)
        row = entry(program, angles + q)
        sine, cosine = load(rows, row), load(rows, row + 1)
        while entry(program, here) != at.END_OF_COLUMN:
            value = copies(rows, 0.0)
            if entry(program, here) != at.END:
                strength, row = load(rows, entry(program, here)), entry(program, here + 1)
                across = multiply_add(load(rows, row + 1), cosine, load(rows, row) * sine)
                value = -(strength * across)
                if least != 0.0:
                    value = -at_least(magnitude(value), least * magnitude(strength))
            here += 2
            other = entry(program, here)
            while other != at.END:
                scaled = load(rows, lower + entry(program, here + 1))
                value = multiply_add(-load(rows, entries + other), scaled, value)
                here += 2
                other = entry(program, here)
            here += 1
            store(rows, entries + slot, value)
            store(rows, lower + slot, value * reciprocal)
            slot += 1
        here += 1
    return bent


@compiled
def forward(rows, program, factor):
    """L^-1 of STEP in place, with a factor at hand."""
    lower, step = factor + entry(program, at.MOVING), entry(program, at.STEP)
    earlier = entry(program, at.BEFORE)
    for row in range(step, step + entry(program, at.MOVING)):
        value, slot = load(rows, row), entry(program, earlier)
        while slot != at.END:
            value = multiply_add(-load(rows, lower + slot), load(rows, step + entry(program, earlier + 1)), value)
            earlier += 2
            slot = entry(program, earlier)
        earlier += 1
        store(rows, row, value)


@compiled
def backward(rows, program, factor):
    """L^-T D^-1 of STEP in place."""
    count = entry(program, at.MOVING)
    lower, step, later = factor + count, entry(program, at.STEP), entry(program, at.AFTER)
    for back in range(count):
        q = count - 1 - back
        value, slot = load(rows, step + q) * load(rows, factor + q), entry(program, later)
        while slot != at.END:
            value = multiply_add(-load(rows, lower + slot), load(rows, step + entry(program, later + 1)), value)
            later += 2
            slot = entry(program, later)
        later += 1
        store(rows, step + q, value)


@compiled
def largest(rows, first, count):
    """Largest absolute value of ``count`` rows, in every lane; not a number where one of them is not."""
    most, total = copies(rows, 0.0), copies(rows, 0.0)
    for row in range(first, first + count):
        value = load(rows, row)
        size = magnitude(value)
        most = where_less(most, size, size, most)
        # The maximum passes over what is not a number; a sum does not.
        total = total + value
    return multiply_add(0.0, total, most)


@compiled
def advance(rows, program, phases, active):
    """Move the phases by STEP where ``active`` is 1, at most by MAX_TURN; return the size of the step."""
    count, step, order = entry(program, at.MOVING), entry(program, at.STEP), entry(program, at.ORDER)
    size = largest(rows, step, count)
    scale = copies(rows, 1.0)
    if any_less(MAX_TURN, size):
        scale = where_less(MAX_TURN, size, MAX_TURN / size, 1.0)
    for q in range(count):
        row = phases + entry(program, order + q)
        here = load(rows, row)
        store(rows, row, where_less(0.5, active, multiply_add(load(rows, step + q), scale, here), here))
    return size


@compiled
def blend(rows, active, count, new, old):
    """Rows ``old`` replaced by rows ``new`` where ``active`` is 1."""
    for k in range(count):
        store(rows, old + k, where_less(0.5, active, load(rows, new + k), load(rows, old + k)))


@compiled
def newton(rows, program, phases, factor, beta, kind, steps, strict, active):
    """Settle the lanes where ``active`` is 1 without any guard.

    Under a nudge the second step is a chord step, with the first factor. Factors go through spare rows where lanes are
    not active, whose factors must stay as they are. Return 1 where a lane did not settle, and 1 where its last
    Laplacian is not positive definite. If this is ``strict``, a lane does not go on from such a Laplacian.
    """
    spare, size_of_factor = entry(program, at.SPARE_FACTOR), entry(program, at.MOVING) + entry(program, at.SLOTS)
    some_wait, distance = any_less(active, 0.5), copies(rows, 0.0)
    unstable, lost = copies(rows, 0.0), copies(rows, 0.0)
    for iteration in range(steps):
        sines(rows, program, phases)
        forces(rows, program)
        if beta != 0.0:
            nudge_forces(rows, program, phases, beta, kind)
        old_factor = beta != 0.0 and iteration == 1
        if old_factor:
            forward(rows, program, factor)
        else:
            direct = iteration < 2 and not some_wait
            here = factorise(rows, program, factor if direct else spare, 0.0)
            if not direct:
                blend(rows, active, size_of_factor, spare, factor)
            unstable = where_less(0.5, active, here, unstable)
            if strict:
                lost = lost + active * here
                active = active - active * here
        backward(rows, program, factor)
        size = advance(rows, program, phases, active)
        distance = size + distance if old_factor else size
        if iteration > 0:
            # A comparison with something that is not a number is false: such a lane stays active.
            active = where_less(size * distance, CLOSE, 0.0, active)
            if not any_less(0.5, active):
                break
    return active + lost, unstable
