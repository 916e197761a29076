"""The pieces of the training kernel against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from random_networks import make_network

import phasegrad as pg
from phasegrad.training import settling
from phasegrad.training.program import elimination_program
from phasegrad.training.vector import WIDTH, any_less, copies, floor, load, magnitude, store, where_less

ROWS = np.random.default_rng(0).uniform(-3, 3, (3, WIDTH))


@njit
def arithmetic(a, out):
    x, y, z = load(a, 0), load(a, 1), load(a, 2)
    store(out, 0, x + y * z - x / y)
    store(out, 1, 2.0 * x - y * 0.5 + 1.0 / z)
    store(out, 2, -floor(x) + magnitude(y))
    store(out, 3, where_less(x, y, z, copies(7.0)))


@njit
def compare(a, b):
    return any_less(load(a, 0), load(b, 0))


def test_vectors_compute_lane_by_lane():
    out = np.zeros((4, WIDTH))
    arithmetic(ROWS, out)
    x, y, z = ROWS
    expected = [x + y * z - x / y, 2 * x - y * 0.5 + 1 / z, -np.floor(x) + np.abs(y), np.where(x < y, z, 7.0)]
    np.testing.assert_allclose(out, expected, rtol=1e-14)


@pytest.mark.parametrize("lane", [0, 7, WIDTH - 1])
def test_a_single_lane_is_seen(lane):
    a, b = np.ones((1, WIDTH)), np.zeros((1, WIDTH))
    assert not compare(a, b)
    b[0, lane] = 2.0
    assert compare(a, b)
    a[0, lane] = np.nan
    assert not compare(a, b)


def test_sines_are_accurate_to_rounding():
    """Two units in the last place of one, from tiny angles to many turns."""
    phases = np.concatenate([np.linspace(-60, 60, 250 * WIDTH), np.geomspace(1e-12, 1, 10 * WIDTH)]).reshape(-1, WIDTH)
    sine, cosine = np.zeros_like(phases), np.zeros_like(phases)
    settling.sines(phases, sine, cosine)
    np.testing.assert_allclose(sine, np.sin(phases), atol=7e-16)
    np.testing.assert_allclose(cosine, np.cos(phases), atol=7e-16)


@njit
def factor_and_solve(program, coupling, phases, work, step):
    kernel_first_factor(program, coupling, phases, work, work.lower, work.pivot)
    kernel_substitute(program.column_start, program.column_row, work.lower, work.pivot, step)


kernel_first_factor, kernel_substitute = settling.first_factor, settling.substitute


@njit
def scratch(program, size, edges):
    return kernel_make_work(program, size, edges)


kernel_make_work = settling.make_work


@given(st.integers(2, 14), st.integers(0, 2**31))
def test_the_elimination_program_solves_with_the_laplacian(n, seed):
    """Any topology: a spanning tree with random chords, factored in lanes and by NumPy."""
    rng = np.random.default_rng(seed)
    network = make_network(n, seed).replace(interaction=pg.Sine())
    program = elimination_program(network)
    assert sorted(program.order.tolist()) == network.free.tolist()
    assert set(program.order[-len(network.outputs) :].tolist()) == set(network.outputs)
    phases = np.repeat(0.4 * rng.standard_normal(n)[:, None], WIDTH, axis=1)
    coupling = np.repeat(network.coupling[:, None], WIDTH, axis=1)
    right = rng.standard_normal((n - 1, WIDTH))
    step = right.copy()
    factor_and_solve(program, coupling, phases, scratch(program, n, network.n_edges), step)
    matrix = pg.laplacian(network, phases[:, 0])
    order = network.position[program.order]
    expected = np.linalg.solve(matrix[np.ix_(order, order)], right)
    np.testing.assert_allclose(step, expected, rtol=1e-8, atol=1e-8)
