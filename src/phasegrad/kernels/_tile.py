r"""A tile: eight samples of one sine-coupled network, one per lane, and what they feel.

The oscillators that move are a first group of f, not coupled to each other, and r others, coupled to it by K and among
each other by M. With c = cos theta, s = sin theta and the field x + i y of all that is held,

    X = x + K c,   Y = y + K s,   F = omega + c Y - s X,   D = c X + s Y

are the local field, the force and the diagonal of the Laplacian (`state`). What an oscillator feels by its own phase
alone, sum_k y_k cos(k theta) - x_k sin(k theta), is added to both (`own`).

Four oscillators of the first group are walked at a time, which keeps them in registers while the r others pass; the
group is filled up with oscillators that are coupled to nothing.
"""

from __future__ import annotations

from phasegrad.kernels._elementary import compiled, sine_and_cosine
from phasegrad.kernels._vector import copies, entry, lane_of, load, magnitude, multiply_add, put, store, where_less

WIDTH = 8
#: Oscillators of the first group that are walked at a time.
BLOCK = 4
# Sections of a tile's memory, each as long as there are oscillators; the others follow.
PHASES, COSINE, SINE, X, Y, FIXED_X, FIXED_Y, DRIVE, FORCE, DIAGONAL, STEP, LAST = range(12)
SECTIONS = 12


def memory(first: int, rest: int) -> int:
    """Return how many rows a tile needs."""
    size = filled(first) + rest
    return SECTIONS * size + 2 * rest * rest + (BLOCK + 5) * rest + 4


def filled(first: int) -> int:
    """Return the size of the first group once it is filled up to whole blocks."""
    return -(-first // BLOCK) * BLOCK


@compiled
def sections(first, rest):
    """Numbers of filled oscillators of the first group and of all, and the first rows of the sections after theirs."""
    many = (first + BLOCK - 1) // BLOCK * BLOCK
    size = many + rest
    schur = SECTIONS * size
    return many, size, schur, schur + rest * rest


@compiled
def memory_end(first, rest):
    """Row after all sections, for numbers on their way in and out."""
    _, _, _, block = sections(first, rest)
    return block + (BLOCK + 5) * rest + rest * rest


@compiled
def fetch(rows, row, values, sample, first, rest, many):
    """Copy the numbers of the oscillators of eight samples into rows."""
    batch, width = values.shape
    for lane in range(WIDTH):
        start = min(sample + lane, batch - 1) * width
        for i in range(first):
            put(rows, row + i, lane, entry(values, start + i))
        for j in range(rest):
            put(rows, row + many + j, lane, entry(values, start + first + j))


@compiled
def bring(rows, row, values, sample, first, rest, many):
    """Copy the numbers of the oscillators of eight samples out of rows."""
    batch = values.shape[0]
    for lane in range(min(WIDTH, batch - sample)):
        for i in range(first):
            values[sample + lane, i] = lane_of(rows, row + i, lane)
        for j in range(rest):
            values[sample + lane, first + j] = lane_of(rows, row + many + j, lane)


@compiled
def numbers(rows, row, values, sample):
    """Copy one number of each of eight samples into a row, and return it."""
    for lane in range(WIDTH):
        put(rows, row, lane, values[min(sample + lane, values.size - 1)])
    return load(rows, row)


@compiled
def give(rows, row, vector, values, sample):
    """Copy a row out into one number of each of eight samples."""
    store(rows, row, vector)
    for lane in range(min(WIDTH, values.size - sample)):
        values[sample + lane] = lane_of(rows, row, lane)


@compiled
def open_tile(rows, moving, x, y, drive, sample, first, rest):
    """Copy a tile in; oscillators that fill up the first group point along a field of their own."""
    many, size, _, _ = sections(first, rest)
    fetch(rows, PHASES * size, moving, sample, first, rest, many)
    fetch(rows, FIXED_X * size, x, sample, first, rest, many)
    fetch(rows, FIXED_Y * size, y, sample, first, rest, many)
    if drive.size > 0:
        fetch(rows, DRIVE * size, drive, sample, first, rest, many)
    else:
        for i in range(size):
            store(rows, DRIVE * size + i, 0.0)
    for i in range(first, many):
        store(rows, PHASES * size + i, 0.0)
        store(rows, FIXED_X * size + i, 1e100)
        store(rows, FIXED_Y * size + i, 0.0)
        store(rows, DRIVE * size + i, 0.0)


@compiled
def turn_all(rows, size):
    """Cosines and sines of all phases."""
    for i in range(size):
        sine, cosine = sine_and_cosine(load(rows, PHASES * size + i))
        store(rows, SINE * size + i, sine)
        store(rows, COSINE * size + i, cosine)


@compiled
def start_rest(rows, size, many, rest):
    """Local fields of the others without the first group: what is held."""
    for j in range(many, many + rest):
        store(rows, X * size + j, load(rows, FIXED_X * size + j))
        store(rows, Y * size + j, load(rows, FIXED_Y * size + j))


@compiled
def load_four(rows, row):
    """Four rows, one after the other."""
    return load(rows, row), load(rows, row + 1), load(rows, row + 2), load(rows, row + 3)


@compiled
def store_four(rows, row, a, b, c, d):
    """Four rows, one after the other."""
    store(rows, row, a)
    store(rows, row + 1, b)
    store(rows, row + 2, c)
    store(rows, row + 3, d)


@compiled
def strengths(cross, rest, i, j):
    """Couplings of four oscillators of the first group to another one."""
    here = i * rest + j
    return entry(cross, here), entry(cross, here + rest), entry(cross, here + 2 * rest), entry(cross, here + 3 * rest)


@compiled
def field_of_others(rows, cross, size, many, rest, i):
    """Local fields of four oscillators of the first group."""
    x0, x1, x2, x3 = load_four(rows, FIXED_X * size + i)
    y0, y1, y2, y3 = load_four(rows, FIXED_Y * size + i)
    for j in range(rest):
        c, s = load(rows, COSINE * size + many + j), load(rows, SINE * size + many + j)
        k0, k1, k2, k3 = strengths(cross, rest, i, j)
        x0, y0 = multiply_add(k0, c, x0), multiply_add(k0, s, y0)
        x1, y1 = multiply_add(k1, c, x1), multiply_add(k1, s, y1)
        x2, y2 = multiply_add(k2, c, x2), multiply_add(k2, s, y2)
        x3, y3 = multiply_add(k3, c, x3), multiply_add(k3, s, y3)
    store_four(rows, X * size + i, x0, x1, x2, x3)
    store_four(rows, Y * size + i, y0, y1, y2, y3)


@compiled
def field_on_others(rows, cross, size, many, rest, i):
    """Add the fields of four oscillators of the first group to those of the others."""
    c0, c1, c2, c3 = load_four(rows, COSINE * size + i)
    s0, s1, s2, s3 = load_four(rows, SINE * size + i)
    for j in range(rest):
        x, y = load(rows, X * size + many + j), load(rows, Y * size + many + j)
        k0, k1, k2, k3 = strengths(cross, rest, i, j)
        x, y = multiply_add(k0, c0, x), multiply_add(k0, s0, y)
        x, y = multiply_add(k1, c1, x), multiply_add(k1, s1, y)
        x, y = multiply_add(k2, c2, x), multiply_add(k2, s2, y)
        x, y = multiply_add(k3, c3, x), multiply_add(k3, s3, y)
        store(rows, X * size + many + j, x)
        store(rows, Y * size + many + j, y)


@compiled
def field_among_others(rows, inner, size, many, rest, j):
    """Add the fields of all others to that of one of them."""
    x, y = load(rows, X * size + many + j), load(rows, Y * size + many + j)
    if inner.size > 0:
        for k in range(rest):
            strength = entry(inner, j * rest + k)
            x = multiply_add(strength, load(rows, COSINE * size + many + k), x)
            y = multiply_add(strength, load(rows, SINE * size + many + k), y)
        store(rows, X * size + many + j, x)
        store(rows, Y * size + many + j, y)
    return x, y


@compiled
def state(rows, cross, inner, local, first, rest):
    """Force and diagonal of every oscillator at the phases at hand; return square and largest of the force."""
    many, size, _, _ = sections(first, rest)
    turn_all(rows, size)
    start_rest(rows, size, many, rest)
    for i in range(0, many, BLOCK):
        field_of_others(rows, cross, size, many, rest, i)
        field_on_others(rows, cross, size, many, rest, i)
    for j in range(rest):
        field_among_others(rows, inner, size, many, rest, j)
    for i in range(size):
        c, s = load(rows, COSINE * size + i), load(rows, SINE * size + i)
        x, y = load(rows, X * size + i), load(rows, Y * size + i)
        store(rows, FORCE * size + i, multiply_add(c, y, load(rows, DRIVE * size + i) - s * x))
        store(rows, DIAGONAL * size + i, multiply_add(c, x, s * y))
        if local.size > 0:
            force, diagonal = own(local, size, i, c, s)
            store(rows, FORCE * size + i, load(rows, FORCE * size + i) + force)
            store(rows, DIAGONAL * size + i, load(rows, DIAGONAL * size + i) + diagonal)


@compiled
def own(local, size, i, c, s):
    """Force of an oscillator's own phase on it, and what that adds to the diagonal, at its cosine and sine."""
    cosine, sine = c, s
    force, diagonal = 0.0 * c, 0.0 * c
    for k in range(local.shape[0]):
        x, y = entry(local, 2 * k * size + i), entry(local, (2 * k + 1) * size + i)
        force = multiply_add(cosine, y, force) - sine * x
        diagonal = multiply_add(float(k + 1), multiply_add(cosine, x, sine * y), diagonal)
        cosine, sine = multiply_add(cosine, c, -(sine * s)), multiply_add(sine, c, cosine * s)
    return force, diagonal


@compiled
def own_energy(local, size, i, c, s):
    """Energy of that force."""
    cosine, sine, energy = c, s, 0.0 * c
    for k in range(local.shape[0]):
        x, y = entry(local, 2 * k * size + i), entry(local, (2 * k + 1) * size + i)
        energy = multiply_add(-1.0 / (k + 1), multiply_add(cosine, x, sine * y), energy)
        cosine, sine = multiply_add(cosine, c, -(sine * s)), multiply_add(sine, c, cosine * s)
    return energy


@compiled
def size_of_force(rows, size):
    """Sum of squares and largest of the forces."""
    square, most = copies(rows, 0.0), copies(rows, 0.0)
    for i in range(size):
        force = load(rows, FORCE * size + i)
        square = multiply_add(force, force, square)
        most = where_less(most, magnitude(force), magnitude(force), most)
    return square, most
