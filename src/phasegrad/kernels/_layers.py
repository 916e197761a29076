r"""A mini-batch of one sine-coupled network in tiles of samples, one sample per lane.

The first group's block of the Laplacian is diagonal, so that what is left after it is a small Schur complement,
A - W^T D^-1 W with W = K cos(theta_i - theta_j); see `phasegrad.kernels._tile` for the letters.

A lane that is done, or cannot go on, is masked: no sample's result depends on the others in its tile.
"""

from __future__ import annotations

from phasegrad.kernels._elementary import compiled, rough_angle, sine_and_cosine
from phasegrad.kernels._entrance import entrance
from phasegrad.kernels._nudge import FREE, GIVEN, nudge_places, open_nudge, turn_nudge
from phasegrad.kernels._tile import (
    BLOCK,
    COSINE,
    DIAGONAL,
    DRIVE,
    FORCE,
    LAST,
    PHASES,
    SINE,
    STEP,
    WIDTH,
    X,
    Y,
    bring,
    fetch,
    field_among_others,
    field_of_others,
    field_on_others,
    give,
    memory_end,
    numbers,
    open_tile,
    own,
    own_energy,
    sections,
    size_of_force,
    start_rest,
    state,
    store_four,
    strengths,
    turn_all,
)
from phasegrad.kernels._vector import (
    any_less,
    copies,
    entry,
    lane_of,
    load,
    magnitude,
    multiply_add,
    root,
    store,
    where_less,
)

# Newton steps of one oscillator in its local field and what it feels by its own phase alone, the most that it turns in
# one, and the least stiffness, as a share of its local field, that it is taken to have.
OWN_STEPS, OWN_TURN, OWN_STIFFNESS = 3, 0.5, 0.2

#: What becomes of a sample: it goes on, has settled, or has left the ground on which plain Newton is safe.
GOES_ON, SETTLED, ASTRAY = range(3)


@compiled
def eliminate(rows, cross, inner, shift, nudged, first, rest):
    """Schur complement of the Laplacian minus ``shift``, and the right-hand side folded into it.

    Return 1 in lanes whose first group is not positive.
    """
    many, size, schur, block = sections(first, rest)
    folded, bent = block + BLOCK * rest, copies(rows, 0.0)
    _, bend, _, _ = nudge_places(first, rest)
    for a in range(rest):
        store(rows, folded + a, load(rows, FORCE * size + many + a))
        for b in range(a):
            store(rows, schur + a * rest + b, 0.0)
        store(rows, schur + a * rest + a, load(rows, DIAGONAL * size + many + a) - shift)
    if inner.size > 0:
        for a in range(rest):
            for b in range(a):
                across = turned(rows, size, many + a, many + b)
                store(rows, schur + a * rest + b, -entry(inner, a * rest + b) * across)
    if nudged:
        for a in range(rest):
            for b in range(a + 1):
                place = a * rest + b
                store(rows, schur + place, load(rows, schur + place) + load(rows, bend + place))
    for i in range(0, many, BLOCK):
        bent = where_less(0.5, bent, 1.0, fold(rows, cross, shift, first, rest, i))
    return bent


@compiled
def turned(rows, size, i, j):
    """Cosine of the angle between two oscillators."""
    both = load(rows, SINE * size + i) * load(rows, SINE * size + j)
    return multiply_add(load(rows, COSINE * size + i), load(rows, COSINE * size + j), both)


@compiled
def inverse_of(rows, diagonal, shift):
    """One over a diagonal minus the shift, one where that is not positive; and 1 there."""
    value = load(rows, diagonal) - shift
    good = where_less(0.0, value, 1.0, 0.0)
    return 1.0 / where_less(0.0, value, value, 1.0), 1.0 - good


@compiled
def fold(rows, cross, shift, first, rest, i):
    """Take four oscillators of the first group into Schur complement and right-hand side."""
    many, size, schur, block = sections(first, rest)
    folded = block + BLOCK * rest
    d0, bent0 = inverse_of(rows, DIAGONAL * size + i, shift)
    d1, bent1 = inverse_of(rows, DIAGONAL * size + i + 1, shift)
    d2, bent2 = inverse_of(rows, DIAGONAL * size + i + 2, shift)
    d3, bent3 = inverse_of(rows, DIAGONAL * size + i + 3, shift)
    f0, f1 = d0 * load(rows, FORCE * size + i), d1 * load(rows, FORCE * size + i + 1)
    f2, f3 = d2 * load(rows, FORCE * size + i + 2), d3 * load(rows, FORCE * size + i + 3)
    for j in range(rest):
        k0, k1, k2, k3 = strengths(cross, rest, i, j)
        w0, w1 = k0 * turned(rows, size, i, many + j), k1 * turned(rows, size, i + 1, many + j)
        w2, w3 = k2 * turned(rows, size, i + 2, many + j), k3 * turned(rows, size, i + 3, many + j)
        sums = multiply_add(w0, f0, load(rows, folded + j))
        sums = multiply_add(w1, f1, sums)
        sums = multiply_add(w2, f2, sums)
        store(rows, folded + j, multiply_add(w3, f3, sums))
        store_four(rows, block + BLOCK * j, w0, w1, w2, w3)
        v0, v1, v2, v3 = -d0 * w0, -d1 * w1, -d2 * w2, -d3 * w3
        for b in range(j + 1):
            place, other = schur + j * rest + b, block + BLOCK * b
            total = multiply_add(v0, load(rows, other), load(rows, place))
            total = multiply_add(v1, load(rows, other + 1), total)
            total = multiply_add(v2, load(rows, other + 2), total)
            store(rows, place, multiply_add(v3, load(rows, other + 3), total))
    return bent0 + bent1 + bent2 + bent3


@compiled
def decompose(rows, first, rest):
    """Factor the Schur complement as L D L^T in place; return 1 in lanes where it is not positive definite."""
    _, _, schur, _ = sections(first, rest)
    bent = copies(rows, 0.0)
    for a in range(rest):
        pivot = load(rows, schur + a * rest + a)
        bent = where_less(0.0, pivot, bent, 1.0)
        inverse = 1.0 / where_less(0.0, pivot, pivot, 1.0)
        store(rows, schur + a * rest + a, inverse)
        for b in range(a + 1, rest):
            below = load(rows, schur + b * rest + a)
            share = below * inverse
            for k in range(a + 1, b):
                place = schur + b * rest + k
                # Columns are scaled only after they have served: row k still holds its unscaled entry.
                store(rows, place, multiply_add(-share, load(rows, schur + k * rest + a), load(rows, place)))
            place = schur + b * rest + b
            store(rows, place, multiply_add(-share, below, load(rows, place)))
        for b in range(a + 1, rest):
            place = schur + b * rest + a
            store(rows, place, load(rows, place) * inverse)
    return bent


@compiled
def substitute(rows, cross, first, rest):
    """Solve for the step with the factors at hand; return how far it turns the oscillator that turns most."""
    many, size, schur, block = sections(first, rest)
    folded = block + BLOCK * rest
    for a in range(rest):
        value = load(rows, folded + a)
        for b in range(a):
            value = multiply_add(-load(rows, schur + a * rest + b), load(rows, folded + b), value)
        store(rows, folded + a, value)
    most = copies(rows, 0.0)
    for a in range(rest - 1, -1, -1):
        value = load(rows, folded + a) * load(rows, schur + a * rest + a)
        for b in range(a + 1, rest):
            value = multiply_add(-load(rows, schur + b * rest + a), load(rows, folded + b), value)
        store(rows, folded + a, value)
        store(rows, STEP * size + many + a, value)
        most = where_less(most, magnitude(value), magnitude(value), most)
    # The others' steps times their cosine and sine take the place of the block.
    for j in range(rest):
        step = load(rows, folded + j)
        store(rows, block + 2 * j, load(rows, COSINE * size + many + j) * step)
        store(rows, block + 2 * j + 1, load(rows, SINE * size + many + j) * step)
    for i in range(first):
        along, across = copies(rows, 0.0), copies(rows, 0.0)
        for j in range(rest):
            k = entry(cross, i * rest + j)
            along = multiply_add(k, load(rows, block + 2 * j), along)
            across = multiply_add(k, load(rows, block + 2 * j + 1), across)
        pushed = multiply_add(load(rows, COSINE * size + i), along, load(rows, FORCE * size + i))
        pushed = multiply_add(load(rows, SINE * size + i), across, pushed)
        value = pushed / load(rows, DIAGONAL * size + i)
        store(rows, STEP * size + i, value)
        most = where_less(most, magnitude(value), magnitude(value), most)
    for i in range(first, many):
        store(rows, STEP * size + i, 0.0)
    return most


@entrance
def align(rows, cross, inner, local, x, y, drive, moving, first, rest, sweeps, rests):
    """Turn oscillators into their local fields, sample by sample until none turns by more than ``rests``."""
    many, size, _, _ = sections(first, rest)
    for sample in range(0, moving.shape[0], WIDTH):
        open_tile(rows, moving, x, y, drive, sample, first, rest)
        turn_all(rows, size)
        going = copies(rows, 1.0)
        for _ in range(sweeps):
            turned_by = copies(rows, 0.0)
            start_rest(rows, size, many, rest)
            for i in range(0, many, BLOCK):
                field_of_others(rows, cross, size, many, rest, i)
                for k in range(i, i + BLOCK):
                    x_k, y_k = load(rows, X * size + k), load(rows, Y * size + k)
                    turned_by = point(rows, local, size, k, x_k, y_k, going, turned_by)
                field_on_others(rows, cross, size, many, rest, i)
            for j in range(rest):
                x_j, y_j = field_among_others(rows, inner, size, many, rest, j)
                turned_by = point(rows, local, size, many + j, x_j, y_j, going, turned_by)
            going = where_less(rests, turned_by, going, 0.0)
            if not any_less(0.5, going):
                break
        for i in range(size):
            angle = rough_angle(load(rows, COSINE * size + i), load(rows, SINE * size + i))
            store(rows, PHASES * size + i, angle)
        bring(rows, PHASES * size, moving, sample, first, rest, many)


@compiled
def point(rows, local, size, i, x, y, going, turned_by):
    """Let an oscillator point along its field, turned by its drive; return the largest turn so far."""
    length = root(multiply_add(x, x, y * y))
    length = where_less(length, 1e-300, 1e-300, length)
    x, y = x / length, y / length
    lead = load(rows, DRIVE * size + i) / length
    lead = where_less(lead, -1.0, -1.0, lead)
    lead = where_less(1.0, lead, 1.0, lead)
    along = root(1.0 - lead * lead)
    x, y = multiply_add(x, along, -(y * lead)), multiply_add(y, along, x * lead)
    if local.size > 0:
        x, y = balance(rows, local, size, i, x, y, length)
    c, s = load(rows, COSINE * size + i), load(rows, SINE * size + i)
    change = magnitude(x - c) + magnitude(y - s)
    store(rows, COSINE * size + i, where_less(0.5, going, x, c))
    store(rows, SINE * size + i, where_less(0.5, going, y, s))
    return where_less(turned_by, change, change, turned_by)


@compiled
def balance(rows, local, size, i, x, y, length):
    """Where an oscillator goes whose local field is along x + i y, and which feels its own phase beside it.

    It starts where it is or along its local field, whichever is lower.
    """
    c, s = load(rows, COSINE * size + i), load(rows, SINE * size + i)
    here = own_energy(local, size, i, c, s) - length * multiply_add(x, c, y * s)
    there = own_energy(local, size, i, x, y) - length
    c, s = where_less(here, there, c, x), where_less(here, there, s, y)
    for _ in range(OWN_STEPS):
        force, stiffness = own(local, size, i, c, s)
        force = multiply_add(length, multiply_add(y, c, -(x * s)), force)
        stiffness = multiply_add(length, multiply_add(x, c, y * s), stiffness)
        least = OWN_STIFFNESS * length
        stiffness = magnitude(stiffness)
        turn = force / where_less(stiffness, least, least, stiffness)
        turn = where_less(turn, -OWN_TURN, -OWN_TURN, where_less(OWN_TURN, turn, OWN_TURN, turn))
        sine, cosine = sine_and_cosine(turn)
        c, s = multiply_add(c, cosine, -(s * sine)), multiply_add(s, cosine, c * sine)
    return c, s


@entrance
def stride(
    rows, cross, inner, local, x, y, drive, nudge, moving, last, square, left, fate, steps, tolerance, most_turn, share,
    count, first, rest
):  # fmt: skip
    """Take ``count`` full Newton steps as long as each leaves at most ``share`` of the squared force before it.

    ``moving`` holds the phases to look at, (B, n), ``last`` the last ones that were accepted, ``square`` and ``left``
    the squared and largest force there. Where phases are not accepted, or the Laplacian is not positive definite, the
    sample is astray and ``last`` stands.
    """
    many, size, _, _ = sections(first, rest)
    here, nudged = memory_end(first, rest), nudge.kind != FREE
    pull, _, _, _ = nudge_places(first, rest)
    for sample in range(0, moving.shape[0], WIDTH):
        going = where_less(numbers(rows, here, fate, sample), 0.5, 1.0, 0.0)
        if not any_less(0.5, going):
            continue
        open_tile(rows, moving, x, y, drive, sample, first, rest)
        if nudged:
            open_nudge(rows, nudge, sample, first, rest)
        fetch(rows, LAST * size, last, sample, first, rest, many)
        ends, before = numbers(rows, here, fate, sample), numbers(rows, here, square, sample)
        found, limit = numbers(rows, here, left, sample), numbers(rows, here, tolerance, sample)
        taken = numbers(rows, here, steps, sample)
        for _ in range(count):
            state(rows, cross, inner, local, first, rest)
            if nudged:
                if nudge.kind != GIVEN:
                    turn_nudge(rows, nudge, first, rest)
                for j in range(rest):
                    place = FORCE * size + many + j
                    store(rows, place, load(rows, place) + load(rows, pull + j))
            now, most = size_of_force(rows, size)
            # Not a number is not accepted either.
            weaker = where_less(now, share * before + 1e-300, 1.0, 0.0)
            ends = where_less(going - weaker, 0.5, ends, float(ASTRAY))
            going = going * weaker
            for i in range(size):
                kept = where_less(0.5, going, load(rows, PHASES * size + i), load(rows, LAST * size + i))
                store(rows, LAST * size + i, kept)
            before, found = where_less(0.5, going, now, before), where_less(0.5, going, most, found)
            done = going * where_less(limit, most, 0.0, 1.0)
            ends = where_less(0.5, done, float(SETTLED), ends)
            going = going - done
            if not any_less(0.5, going):
                break
            bent = eliminate(rows, cross, inner, copies(rows, 0.0), nudged, first, rest)
            bent = bent + decompose(rows, first, rest)
            turn = substitute(rows, cross, first, rest)
            ends = where_less(0.5, going * bent, float(ASTRAY), ends)
            going = where_less(0.5, bent, 0.0, going)
            pace = going * where_less(most_turn, turn, most_turn / where_less(turn, 1e-300, 1e-300, turn), 1.0)
            taken = taken + going
            for i in range(size):
                kept, step = load(rows, LAST * size + i), load(rows, STEP * size + i)
                # A step that is not a number must not touch a lane that stands.
                store(rows, PHASES * size + i, where_less(0.5, going, multiply_add(pace, step, kept), kept))
        bring(rows, PHASES * size, moving, sample, first, rest, many)
        bring(rows, LAST * size, last, sample, first, rest, many)
        give(rows, here, ends, fate, sample)
        give(rows, here, before, square, sample)
        give(rows, here, found, left, sample)
        give(rows, here, taken, steps, sample)


@entrance
def exceeds(rows, cross, inner, local, x, y, drive, nudge, moving, floor, answer, first, rest):
    """Set ``answer`` to whether the smallest eigenvalue of the Laplacian is above ``floor``, (B,)."""
    here, nudged = memory_end(first, rest), nudge.kind != FREE
    for sample in range(0, moving.shape[0], WIDTH):
        open_tile(rows, moving, x, y, drive, sample, first, rest)
        state(rows, cross, inner, local, first, rest)
        if nudged:
            open_nudge(rows, nudge, sample, first, rest)
            if nudge.kind != GIVEN:
                turn_nudge(rows, nudge, first, rest)
        shift = numbers(rows, here, floor, sample)
        bent = eliminate(rows, cross, inner, shift, nudged, first, rest)
        store(rows, here, bent + decompose(rows, first, rest))
        for lane in range(min(WIDTH, answer.size - sample)):
            answer[sample + lane] = lane_of(rows, here, lane) < 0.5


@entrance
def solve(rows, cross, inner, local, x, y, drive, nudge, moving, right, solution, definite, first, rest):
    """Solve L v = right at phases (B, n); say where the Laplacian is positive definite."""
    many, size, _, _ = sections(first, rest)
    here, nudged = memory_end(first, rest), nudge.kind != FREE
    for sample in range(0, moving.shape[0], WIDTH):
        open_tile(rows, moving, x, y, drive, sample, first, rest)
        state(rows, cross, inner, local, first, rest)
        if nudged:
            open_nudge(rows, nudge, sample, first, rest)
            if nudge.kind != GIVEN:
                turn_nudge(rows, nudge, first, rest)
        fetch(rows, FORCE * size, right, sample, first, rest, many)
        for i in range(first, many):
            store(rows, FORCE * size + i, 0.0)
        bent = eliminate(rows, cross, inner, copies(rows, 0.0), nudged, first, rest)
        store(rows, here, bent + decompose(rows, first, rest))
        substitute(rows, cross, first, rest)
        bring(rows, STEP * size, solution, sample, first, rest, many)
        for lane in range(min(WIDTH, definite.size - sample)):
            definite[sample + lane] = lane_of(rows, here, lane) < 0.5
