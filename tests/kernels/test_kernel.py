"""The training kernel: its pieces against NumPy, its equilibria and gradients against the library and closed forms."""

import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numba import njit
from random_networks import connected_edges, make_network

import phasegrad as pg
from phasegrad.kernels import _elementary, _program as at, _settling, _vector
from phasegrad.kernels._vector import (
    Rows,
    any_less,
    copies,
    entry,
    floor,
    load,
    magnitude,
    multiply_add,
    put,
    store,
    where_less,
)
from phasegrad.training import _lanes, prepare

pytestmark = pytest.mark.internal

WIDTHS = tuple(_lanes.WIDTHS)
METHODS = {
    "two_phase": pg.two_phase,
    "centred": pg.centred,
    "adjoint": pg.adjoint,
    "finite_difference": pg.gradients.finite_difference,
}


def network_of(kind: str, seed: int, n: int = 8) -> pg.Network:
    """Return a random network that locks, with two inputs and two outputs."""
    rng = np.random.default_rng(seed)
    edges = connected_edges(n, rng, 0.4)
    coupling, omega = rng.uniform(0.5, 2.0, len(edges)), 0.2 * rng.standard_normal(n)
    strength, phase = rng.uniform(0.3, 1.0, n), rng.uniform(-0.6, 0.6, n)
    options = {"inputs": (0, 1), "outputs": (n - 2, n - 1), "input_scale": 0.4, "signed": True}
    if "signed" in kind:
        coupling[rng.random(len(edges)) < 0.3] *= -0.3
        strength[rng.random(n) < 0.3] *= -0.3
    if "field" in kind:
        options |= {"field_strength": strength, "field_phase": phase}
    if "clamped" in kind:
        options |= {"input_mode": "phase", "input_scale": 0.9}
    if "reference" in kind:
        options["reference"] = 3
    return pg.Network(edges, coupling, omega, **options)


KINDS = ("pinned", "reference signed", "field", "clamped", "clamped field signed")


def plan_of(network: pg.Network, **changes) -> pg.Plan:
    """Return a plan of plain descent in which every parameter learns, with no bounds and cold starts."""
    words = {"objective": pg.PhaseTargets(), "learning_rate": 0.1, "clip": None, "bounds": {}, "warm_start": "none"}
    return pg.Plan.paper(**{"learn": tuple(network.parameters)} | words | changes)


def engine_of(networks, x, y, *, threads=None, mask=None, **changes):
    """Return the lanes for some networks; samples (n, d) for all of them, or (R, n, d), one set for each."""
    x, y = np.asarray(x), np.asarray(y)
    data = (x, y) if x.ndim == 2 else list(zip(x, y, strict=True))
    plan = plan_of(networks[0], **changes)
    return prepare(networks, data, plan, engine="lanes", threads=threads, mask=mask)


def run(engine, orders, factors=None):
    orders = np.asarray(orders)
    return engine.train(orders, np.ones(orders.shape[1]) if factors is None else np.array(factors), [])


def verdicts(network: pg.Network, x: np.ndarray, **changes):
    """Return the sums and the phases of every sample on its own: one copy of the network for each."""
    targets = np.zeros((len(x), 1, len(network.outputs)))
    engine = engine_of([network] * len(x), x[:, None], targets, learn=(), gradient="adjoint", **changes)
    return run(engine, np.zeros((1, 1, 1), dtype=int)), engine.progress.phases


class TestVectors:
    @pytest.mark.parametrize("width", WIDTHS)
    def test_they_compute_lane_by_lane(self, width):
        rows, out = Rows(3, width), Rows(6, width)
        rows.floats[:] = np.random.default_rng(0).uniform(-3, 3, (3, width))
        arithmetic(rows, out, np.array([5, 2]))
        x, y, z = rows.floats
        assert rows.floats.ctypes.data % 64 == 0
        assert np.array_equal(out.floats[0], x + y * z - x / y)
        assert np.array_equal(out.floats[1], 2 * x - y * 0.5 + 1 / z)
        assert np.array_equal(out.floats[2], -np.floor(x) + np.abs(y))
        assert np.array_equal(out.floats[3], np.where(x < y, z, 7.0))
        np.testing.assert_allclose(out.floats[4], x * y + z, rtol=1e-15, atol=1e-15)
        assert out.floats[5].tolist() == [2.0, 5.0] + [0.0] * (width - 2)

    @pytest.mark.parametrize("width", WIDTHS)
    def test_a_single_lane_is_seen(self, width):
        for lane in range(width):
            a, b = Rows(1, width), Rows(1, width)
            a.floats[:] = 1.0
            assert not compare(a, b)
            b.floats[0, lane] = 2.0
            assert compare(a, b)
            a.floats[0, lane] = np.nan
            assert not compare(a, b)

    @pytest.mark.parametrize("top", [0.7, 60.0])
    def test_sines_are_accurate_to_rounding(self, top):
        """Two units in the last place of one, from tiny angles to many turns; small angles take a shorter way."""
        angles = np.concatenate([np.linspace(-top, top, 4000), top * np.geomspace(1e-12, 1, 160)])
        rows = Rows(3 * 520, 8)
        rows.floats[:520] = angles.reshape(520, 8)
        all_sines(rows, 520)
        np.testing.assert_allclose(rows.floats[520:1040].ravel(), np.sin(angles), atol=7e-16)
        np.testing.assert_allclose(rows.floats[1040:].ravel(), np.cos(angles), atol=7e-16)

    def test_the_short_way_to_sines_gives_the_same_bits(self):
        """A single large angle in the group sends all lanes the long way."""
        small = np.random.default_rng(0).uniform(-0.77, 0.77, (40, 8))
        short, long = Rows(120, 8), Rows(120, 8)
        short.floats[:40] = long.floats[:40] = small
        long.floats[:40, 3] = 3.0
        all_sines(short, 40)
        all_sines(long, 40)
        others = np.arange(8) != 3
        assert np.array_equal(short.floats[40:, others], long.floats[40:, others])


@njit(error_model="numpy")
def arithmetic(rows, out, numbers):
    x, y, z = load(rows, 0), load(rows, 1), load(rows, 2)
    store(out, 0, x + y * z - x / y)
    store(out, 1, 2.0 * x - y * 0.5 + 1.0 / z)
    store(out, 2, -floor(x) + magnitude(y))
    store(out, 3, where_less(x, y, z, 7.0))
    store(out, 4, multiply_add(x, y, z))
    store(out, 5, 0.0)
    for k in range(2):
        put(out, 5, 1 - k, float(entry(numbers, k)))


@njit
def compare(a, b):
    return any_less(load(a, 0), load(b, 0))


@njit(error_model="numpy")
def all_sines(rows, count):
    for k in range(count):
        sine, cosine = _elementary.sine_and_cosine(load(rows, k))
        store(rows, count + k, sine)
        store(rows, 2 * count + k, cosine)


@njit(error_model="numpy")
def factor_and_solve(rows, program, right):
    _settling.hold(rows, program, entry(program, at.PHASES))
    _settling.turn_fields(rows, program)
    _settling.sines(rows, program, entry(program, at.PHASES))
    _settling.forces(rows, program)
    for q in range(entry(program, at.MOVING)):
        store(rows, entry(program, at.STEP) + q, copies(rows, entry(right, q)))
    bent = _settling.factorise(rows, program, entry(program, at.FREE_FACTOR), 0.0)
    _settling.backward(rows, program, entry(program, at.FREE_FACTOR))
    return any_less(0.5, bent)


@given(st.integers(3, 14), st.integers(0, 2**31), st.sampled_from(["plain", "field", "clamped"]))
def test_the_elimination_program_solves_with_the_laplacian(n, seed, kind):
    """Any topology: a spanning tree with random chords, factored in lanes and by NumPy."""
    rng = np.random.default_rng(seed)
    network = make_network(n, seed, kind=kind).replace(interaction=pg.terms.Sine())
    coupling = network.coupling * np.where(rng.random(network.n_edges) < 0.2, -1, 1)
    network = network.replace(coupling=coupling, signed=True)
    fields = range(n) if kind == "field" else ()
    program = at.elimination_program(network.graph, list(fields))
    order = program[program[at.ORDER] :][: program[at.MOVING]]
    assert sorted(order.tolist()) == network.free.tolist()
    assert set(order[-len(network.outputs) :].tolist()) == set(network.outputs)
    phases, right = 0.4 * rng.standard_normal(n), rng.standard_normal(order.size)
    rows = Rows(program[at.ROWS], 8)
    sections = {at.STRENGTH: coupling, at.PHASES: phases}
    if kind == "field":
        sections = {at.STRENGTH: np.concatenate([coupling, network.field_strength]), at.PHASES: phases}
        sections[at.FIELD_PHASE] = network.field_phase
    for place, values in sections.items():
        rows.floats[program[place] :][: len(values)] = values[:, None]
    indefinite = factor_and_solve(rows, program, right)
    inputs = phases[list(network.inputs)] / network.input_scale if kind == "clamped" else None
    matrix = pg.dynamics.laplacian(network, phases, inputs)
    matrix = matrix[np.ix_(network.graph.position[order], network.graph.position[order])]
    step = rows.floats[program[at.STEP] :][: order.size]
    scale = np.linalg.cond(matrix)
    np.testing.assert_allclose(step, np.repeat(np.linalg.solve(matrix, right)[:, None], 8, 1), rtol=1e-13 * scale**2)
    assert indefinite == (np.linalg.eigvalsh(matrix).min() <= 0)


class TestAgainstTheLibrary:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("gradient", METHODS)
    @pytest.mark.parametrize(("cost", "start"), [("quadratic", "epoch"), ("periodic", "none")])
    def test_all_parameters_learn_what_its_gradients_say(self, kind, gradient, cost, start):
        """Errors of equilibria are below 1e-10; over beta or the step of differences, times the rate, below 1e-8."""
        network, rng = network_of(kind, seed=1), np.random.default_rng(5)
        x, targets = rng.uniform(-1, 1, (4, 2)), rng.uniform(-0.4, 0.4, (4, 2))
        changes = {"gradient": gradient, "beta": 0.05, "clip": 0.3, "warm_start": start, "frequencies": "relative"}
        changes["bounds"] = {"coupling": (-3.0, 1.9)}
        if "field" in kind:
            changes["bounds"]["field_strength"] = (-0.9, 0.9)
        if cost == "periodic":
            targets = np.array([0, 1, 1, 0])
            changes |= {"objective": pg.objectives.PeriodicDistance(0.4), "frequencies": "raw"}
        engine, plan = engine_of([network], x, targets, **changes), plan_of(network, **changes)
        tallies = run(engine, [[[2, 0, 3, 1]]])
        known, loss, phases = learned_slowly(network, x, targets, [2, 0, 3, 1], plan)
        for name, values in engine.progress.parameters.items():
            np.testing.assert_allclose(values[0], known[name], atol=1e-8, err_msg=name)
            assert np.abs(known[name] - network.parameters[name]).max() > 1e-4, name
        np.testing.assert_allclose(engine.progress.phases[0], phases, atol=1e-8)
        assert tallies.cost.item() == pytest.approx(loss, abs=1e-8)
        assert (tallies.settled.item(), tallies.skipped.item(), tallies.unstable.item()) == (4, 0, 0)


def learned_slowly(network, x, targets, order, plan):
    """Return what the library's own equilibria and gradients teach: parameters, loss, last phases."""
    phases, loss, now = np.zeros(network.size), 0.0, dict(network.parameters)
    options = {"wrt": tuple(now), "frequencies": plan.frequencies}
    if plan.gradient in ("two_phase", "centred"):
        options["beta"] = plan.beta
    for row in order:
        current = network.replace(**now)
        free = pg.find_equilibrium(current, x[row], start=None if plan.warm_start == "none" else phases)
        assert free.stable
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pg.gradients.GradientWarning)
            gradient = METHODS[plan.gradient](current, free, plan.objective, targets[row], **options)
        phases, loss = free.phases, loss + float(gradient.cost)
        for name, values in now.items():
            rate = 0.1 * network.term_of(name)[1].learnable(network.graph)
            slope = np.clip(gradient[name], -plan.clip, plan.clip)
            now[name] = np.clip(values - rate * slope, *plan.limits.get(name, (-np.inf, np.inf)))
    return now, loss, phases


class TestClosedForms:
    @pytest.mark.parametrize("gradient", METHODS)
    def test_one_oscillator_between_an_input_and_a_field(self, gradient):
        """Both pulls add up to one of size r towards alpha: theta = alpha + asin(omega / r), and four derivatives."""
        omega, k, phi, h, psi, target, rate = 0.3, 0.5, -0.6, 0.8, 0.4, -0.2, 1e-3
        network = pg.Network([[0, 1]], [k], [0.0, omega], inputs=(0,), outputs=(1,), input_mode="phase",
                             input_scale=1.0, field_strength=h, field_phase=psi)  # fmt: skip
        engine = engine_of([network], [[phi]], [[target]], learning_rate=rate, gradient=gradient, beta=1e-4)
        pull = k * np.exp(1j * phi) + h * np.exp(1j * psi)
        theta = np.angle(pull) + np.arcsin(omega / abs(pull))
        assert engine.score("train").common.item() == pytest.approx(theta, abs=1e-12)
        run(engine, np.zeros((1, 1, 1), int))
        error, stiffness = theta - target, np.real(pull * np.exp(-1j * theta))
        slopes = {"omega": 1.0, "coupling": np.sin(phi - theta), "field_strength": np.sin(psi - theta)}
        slopes["field_phase"] = h * np.cos(psi - theta)
        for name, slope in slopes.items():
            moved = (engine.progress.parameters[name] - network.parameters[name])[0, -1]
            # A one-sided nudge is off by terms of order beta, the others by its square.
            tolerance = 1e-3 if gradient == "two_phase" else 1e-6
            assert moved == pytest.approx(-rate * error * slope / stiffness, rel=tolerance), name

    def test_an_oscillator_between_clamped_neighbours_points_along_their_sum(self):
        coupling, x = np.array([1.0, 2.5, -0.4]), np.array([[0.9, -0.7, 0.3], [-1.2, 0.2, 2.0]])
        network = pg.Network([[0, 3], [1, 3], [2, 3]], coupling, np.zeros(4), inputs=(0, 1, 2), outputs=(3,),
                             input_mode="phase", input_scale=1.5, signed=True)  # fmt: skip
        _, phases = verdicts(network, x)
        angle = np.angle(np.exp(1.5j * x) @ coupling)
        np.testing.assert_allclose(phases[:, 3], angle, atol=1e-10)
        np.testing.assert_array_equal(phases[:, :3], 1.5 * x)


class TestGuard:
    @pytest.mark.parametrize(("scale", "drive"), [(0.5, 2.0), (0.3, 1.5), (0.7, 4.0)])
    def test_weak_coupling_settles_exactly_where_the_library_does(self, scale, drive):
        """Inputs around the edge of locking, most of them on one side of it or the other by little."""
        lost = 0
        for seed in range(4):
            network = pg.layered(2, 5, 2, seed=seed, coupling_scale=scale, input_scale=drive)
            x = 1.3 * pg.datasets.vowels(["a", "i"], seed=seed).x_train
            tallies, phases = verdicts(network, x)
            found = pg.find_equilibrium(network, x)
            np.testing.assert_array_equal(tallies.unsettled[:, 0] == 0, found.converged)
            np.testing.assert_array_equal(tallies.unstable[:, 0] > 0, found.converged & ~found.stable)
            np.testing.assert_allclose(phases[found.stable], found.phases[found.stable], atol=1e-8)
            lost += int(tallies.unsettled.sum())
        assert lost > 0

    @pytest.mark.parametrize("kind", ["pinned", "field", "clamped"])
    def test_couplings_of_both_signs_settle_where_the_library_does(self, kind):
        """Frustrated networks far from zero: Newton alone would find saddles, and other states."""
        rng = np.random.default_rng(3)
        agree = settled = 0
        for _ in range(25):
            n = int(rng.integers(5, 12))
            edges = connected_edges(n, rng, 0.5)
            options = {"outputs": (n - 1,), "inputs": (0, 1), "signed": True, "input_scale": 0.5}
            if kind == "field":
                options |= {"field_strength": rng.normal(size=n), "field_phase": rng.uniform(-3, 3, n)}
            if kind == "clamped":
                options |= {"input_mode": "phase", "input_scale": 3.0}
            network = pg.Network(edges, rng.normal(size=len(edges)), 0.2 * rng.normal(size=n), **options)
            x = rng.uniform(-1, 1, (8, 2))
            tallies, phases = verdicts(network, x)
            found = pg.find_equilibrium(network, x)
            stable = (tallies.unsettled + tallies.unstable)[:, 0] == 0
            assert np.all(found.stable[stable])
            np.testing.assert_allclose(phases[stable], found.phases[stable], atol=1e-7)
            agree += int(np.sum(stable == found.stable))
            settled += int(stable.sum())
        # The library takes up to 500 steps, the lanes 100: a few samples in a thousand settle only there.
        assert agree >= 199
        assert settled >= 100

    def test_a_chain_never_leaves_the_stable_states(self):
        """Weak coupling, strong inputs, five epochs: the old kernel trained on a hundred unstable states here."""
        networks = [pg.layered(2, 5, 2, seed=seed, coupling_scale=0.5, input_scale=2.4) for seed in range(6)]
        data = [pg.datasets.vowels(["a", "i"], seed=seed) for seed in range(6)]
        plan = pg.Plan.paper(("omega", "coupling"), epochs=5, learning_rate=0.05)
        strict = pg.train(networks, data, plan)
        assert strict.history.train_unstable.sum() == 0
        assert strict.history.skipped.sum() > 0
        for network, part in zip(strict.networks, data, strict=True):
            found = pg.find_equilibrium(network, part.x_test)
            score = np.mean(found.stable & (np.argmax(np.cos(found.phases[:, 7:]), axis=1) == part.y_test))
            r = strict.networks.index(network)
            assert strict.history.test_accuracy[r, -1] == pytest.approx(score, abs=1e-12)
            assert strict.history.test_unsettled[r, -1] == np.sum(~found.converged)

    def test_a_saddle_is_unstable_and_a_sample_that_cannot_lock_is_unsettled(self):
        """Two oscillators that repel, in phase and at rest; and a frequency beyond all coupling."""
        network = pg.Network([[0, 1]], [-1.0], [0.0, 0.0], inputs=(0,), outputs=(1,), input_scale=1.0, signed=True)
        x = np.array([[0.0], [0.5], [1.0], [2.1], [7.0]])
        found = pg.find_equilibrium(network, x)
        tallies, phases = verdicts(network, x)
        assert tallies.unstable[:, 0].tolist() == [1, 0, 0, 0, 0]
        assert tallies.unsettled[:, 0].tolist() == [0, 0, 0, 1, 1]
        assert tallies.settled[:, 0].tolist() == [0, 1, 1, 0, 0]
        np.testing.assert_allclose(np.cos(phases[1:3]), np.cos(found.phases[1:3]), atol=1e-10)
        loose, _ = verdicts(network, x, accept=(0.01, 0.01))
        assert loose.unstable[:, 0].tolist() == [1, 1, 1, 0, 0]
        assert loose.unsettled[:, 0].tolist() == [0, 0, 0, 1, 1]
        assert loose.settled[:, 0].tolist() == [1, 1, 1, 0, 0]

    @pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
    def test_what_is_not_a_number_harms_no_one_else(self, bad):
        network, x = pg.layered(2, 4, 2, seed=0), np.random.default_rng(0).uniform(-1, 1, (9, 2))
        good, phases = verdicts(network, x)
        engine = engine_of([network] * 9, x[:, None], np.zeros((9, 1, 2)), learn=(), gradient="adjoint")
        engine.records["train"][4, 0, 1] = bad
        tallies, others = run(engine, np.zeros((1, 1, 1), dtype=int)), engine.progress.phases
        assert tallies.unsettled[:, 0].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0]
        assert good.unsettled.sum() == 0
        kept = np.arange(9) != 4
        assert np.array_equal(phases[kept], others[kept])


class TestRules:
    def test_cold_starts_do_not_depend_on_the_order(self):
        network, rng = network_of("clamped field signed", 2), np.random.default_rng(0)
        x, targets = rng.uniform(-1, 1, (9, 2)), rng.uniform(-0.4, 0.4, (9, 2))
        orders = np.stack([[np.concatenate([rng.permutation(8), [8]])] for _ in range(5)])
        engine = engine_of([network] * 5, x, targets, learn=())
        run(engine, orders)
        assert len(np.unique(engine.progress.phases, axis=0)) == 1
        free = pg.find_equilibrium(network, x)
        cost = pg.PhaseTargets().cost(free.phases[:, 6:], targets).sum()
        np.testing.assert_allclose(engine.score("train").cost[:, 0], cost, atol=1e-8)

    def test_chains_are_carried_over_epochs_or_not(self):
        """Two epochs in one call or two: a carried chain goes on from where it was, the others do not look back."""
        network, rng = pg.layered(2, 4, 2, seed=1), np.random.default_rng(0)
        x, targets, order = rng.uniform(-1, 1, (6, 2)), np.zeros((6, 2)), np.arange(6)[None, None]

        def second_epoch(start, first):
            engine = engine_of([network], x, targets, warm_start=start, learning_rate=1e-12)
            run(engine, first)
            run(engine, order)
            return engine.progress.phases

        for start, looks_back in (("none", False), ("epoch", False), ("run", True)):
            one, other = second_epoch(start, order), second_epoch(start, order[..., ::-1])
            assert np.array_equal(one, other) is not looks_back
            np.testing.assert_allclose(one, other, atol=1e-9)

    def test_factors_multiply_the_rates_of_their_epoch(self):
        network, rng = network_of("field", 1), np.random.default_rng(0)
        x, targets = rng.uniform(-1, 1, (5, 2)), rng.uniform(-0.4, 0.4, (5, 2))
        orders = np.stack([[rng.permutation(5), rng.permutation(5)]])
        together = engine_of([network], x, targets)
        run(together, orders, [0.5, 2.0])
        first = engine_of([network], x, targets, learning_rate=0.05)
        run(first, orders[:, :1])
        after = network.replace(**{name: values[0] for name, values in first.progress.parameters.items()})
        second = engine_of([after], x, targets, learning_rate=0.2)
        run(second, orders[:, 1:])
        for name, values in second.progress.parameters.items():
            np.testing.assert_allclose(together.progress.parameters[name], values, rtol=1e-14, err_msg=name)

    def test_masks_and_bounds_hold_for_every_parameter(self):
        """Half of the networks learn nothing; what does not learn is still brought within its bounds."""
        network, rng = network_of("clamped field", seed=4), np.random.default_rng(0)
        x, targets = rng.uniform(-1, 1, (6, 2)), rng.uniform(-0.4, 0.4, (6, 2))
        learn = np.array([True, False, True, False])[:, None]
        mask = {name: learn & np.ones(values.size, bool) for name, values in network.parameters.items()}
        bounds = {"coupling": (0.6, 1.5), "field_strength": (0.4, 0.7), "field_phase": (-0.3, 0.3), "omega": (-1, 0.1)}
        engine = engine_of([network] * 4, x, targets, mask=mask, bounds=bounds, learning_rate=0.5)
        run(engine, np.tile(np.arange(6), (1, 3, 1)))
        for name, values in engine.progress.parameters.items():
            held = np.clip(network.parameters[name], *bounds[name])
            columns = np.arange(held.size) if name == "coupling" else network.free
            np.testing.assert_array_equal(values[1, columns], held[columns], err_msg=name)
            assert np.all((values[:, columns] >= bounds[name][0]) & (values[:, columns] <= bounds[name][1])), name
            np.testing.assert_array_equal(values[0], values[2])
            assert np.abs(values[0, columns] - held[columns]).max() > 1e-3, name

    @pytest.mark.parametrize(
        "objective",
        [pg.objectives.NearestTarget(0.3), pg.objectives.PeriodicDistance(0.3), pg.objectives.PaperPair(0.3)],
    )
    def test_decisions_are_those_of_the_objectives(self, objective):
        network, rng = pg.layered(2, 4, 3, seed=1, input_scale=3.0), np.random.default_rng(0)
        x, labels = rng.uniform(-1, 1, (40, 2)), rng.integers(0, 3, 40)
        tallies = engine_of([network], x, labels, objective=objective, learn=()).score("train")
        outputs = pg.find_equilibrium(network, x).phases[:, -3:]
        assert tallies.correct.item() == np.sum(objective.decide(outputs) == labels)
        cost = objective.cost(outputs, objective.table(3)[labels])
        assert tallies.cost.item() == pytest.approx(cost.sum(), abs=1e-8)
        assert tallies.separation.item() == pytest.approx(np.sum(outputs[:, 0] - outputs[:, 2]), abs=1e-8)

    def test_targets_of_their_own_for_every_sample_are_a_regression(self):
        """Outputs that should follow the mean of two clamped inputs: the loss falls by a factor of a hundred."""
        network = pg.layered(2, 3, 1, seed=0, input_mode="phase", input_scale=1.0, field_strength=0.5)
        x = np.random.default_rng(0).uniform(-1, 1, (30, 2))
        engine = engine_of([network], x, 0.4 * x.mean(axis=1, keepdims=True), learning_rate=0.2)
        before = engine.score("train").cost.item()
        tallies = run(engine, np.tile(np.arange(30), (1, 200, 1)))
        assert engine.score("train").cost.item() < 0.01 * before
        assert np.all(np.isnan(tallies.correct))
        assert tallies.settled.sum() == 200 * 30


class TestWidths:
    @given(st.integers(1, 700), st.integers(1, 9))
    def test_groups_hold_all_networks_and_little_else(self, count, threads):
        chosen = _lanes.widths(count, threads)
        assert sum(chosen[:-1]) < count <= sum(chosen)
        assert sum(chosen) - count < 8 or len(chosen) == 1 or threads > 1
        assert chosen == sorted(chosen, reverse=True)

    @pytest.mark.parametrize(
        ("count", "threads", "expected"),
        [
            (1, 1, [8]),
            (10, 1, [16]),
            (10, 2, [8, 8]),
            (20, 1, [16, 8]),
            (32, 2, [16, 16]),
            (100, 1, [16] * 6 + [8]),
        ],
    )
    def test_seeds_as_people_choose_them_waste_little(self, count, threads, expected):
        assert _lanes.widths(count, threads) == expected

    @pytest.mark.parametrize("gradient", METHODS)
    @pytest.mark.parametrize(("kind", "start"), [("pinned", "run"), ("clamped field", "none")])
    def test_width_company_and_threads_change_no_bit(self, kind, start, gradient, monkeypatch):
        """Networks at the edge of locking, so that lanes fail, are guarded and wait for each other."""
        options = {"coupling_scale": 0.4, "input_scale": 2.0}
        if kind == "clamped field":
            options = {"input_mode": "phase", "input_scale": 2.5, "field_strength": 0.3}
        networks = [pg.layered(2, 5, 2, seed=seed, **options) for seed in range(37)]
        if kind == "clamped field":
            draws = np.random.default_rng(1).normal(size=(37, networks[0].n_edges))
            networks = [net.replace(coupling=draw, signed=True) for net, draw in zip(networks, draws, strict=True)]
        rng = np.random.default_rng(0)
        x, targets = rng.uniform(-1, 1, (37, 6, 2)), rng.uniform(-0.3, 0.3, (37, 6, 2))
        orders = np.stack([[rng.permutation(6) for _ in range(2)] for _ in range(37)])
        changes = {"gradient": gradient, "clip": 2.0, "warm_start": start, "learning_rate": 0.02}

        def outcome(chosen, allowed, threads):
            monkeypatch.setattr(_lanes, "WIDTHS", dict.fromkeys(allowed, 1.0))
            some = [networks[k] for k in chosen]
            engine = engine_of(some, x[chosen], targets[chosen], threads=threads, **changes)
            trained, scored = run(engine, orders[chosen]), engine.score("train")
            parameters, _, phases = engine.progress
            return trained, [*parameters.values(), phases, *trained, *scored]

        everyone = np.arange(37)
        trained, known = outcome(everyone, [16], 1)
        assert 0 < trained.skipped.sum() < 200
        for allowed, threads in (([8], 1), ([16], 2), ([8, 16], 3)):
            for mine, theirs in zip(outcome(everyone, allowed, threads)[1], known, strict=True):
                np.testing.assert_array_equal(mine, theirs)
        for chosen, allowed in (([0], [8]), ([0], [16]), ([36, 3, 17], [8]), (list(range(20, 31)), [8, 16])):
            for mine, theirs in zip(outcome(chosen, allowed, 2)[1], known, strict=True):
                np.testing.assert_array_equal(mine, theirs[chosen])

    def test_differences_that_only_others_need_cost_no_sample(self):
        """Turning the weak edge breaks the network; the one that learns only a frequency must not notice."""
        network = pg.Network([[0, 1], [1, 2]], [2.0, 0.100006], [0.0, 0.1, 0.2], inputs=(0,), outputs=(2,))
        mask = {name: np.zeros((2, values.size), bool) for name, values in network.parameters.items()}
        mask["omega"][0, 1] = mask["coupling"][1, 1] = True

        def outcome(chosen):
            mine = {name: values[chosen] for name, values in mask.items()}
            plan = {"gradient": "finite_difference", "mask": mine}
            engine = engine_of([network] * len(chosen), [[0.0]], [[0.0]], **plan)
            return run(engine, np.zeros((1, 1, 1), int)), engine.progress.parameters["omega"]

        (alone, omega), (tallies, together) = outcome([0]), outcome([0, 1])
        assert alone.skipped.item() == 0
        assert tallies.skipped[:, 0].tolist() == [0, 1]
        assert np.array_equal(together[0], omega[0])
        assert omega[0, 1] != network.omega[1]


PROBE = """
import sys
from numba import njit
from phasegrad.kernels._elementary import sine_and_cosine
from phasegrad.kernels._vector import Rows, load, store

@njit(cache=True)
def probe(rows):
    store(rows, 0, sine_and_cosine(load(rows, 0))[1])

for width in map(int, sys.argv[1:]):
    rows = Rows(1, width)
    probe(rows)
    print(width, rows.floats[0].tolist() == [1.0] * width, sum(probe.stats.cache_hits.values()))
"""


class TestCache:
    """Compiled code on disk, in a copy of the package that can be edited; every process takes a second or two."""

    @pytest.fixture
    def copy(self, tmp_path):
        source = Path(pg.__file__).parent
        shutil.copytree(source, tmp_path / "phasegrad", ignore=shutil.ignore_patterns("__pycache__", "data"))
        (tmp_path / "probe.py").write_text(PROBE)
        return tmp_path

    @staticmethod
    def run(place, *widths):
        environment = {"PYTHONPATH": str(place), "HOME": str(place / "home"), "PATH": "/usr/bin:/bin"}
        words = [sys.executable, "-B", str(place / "probe.py"), *map(str, widths)]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        return [line.split() for line in done.stdout.splitlines()]

    @pytest.mark.slow
    def test_editing_any_file_of_the_kernel_compiles_it_anew(self, copy):
        assert self.run(copy, 8) == [["8", "True", "0"]]
        assert self.run(copy, 8) == [["8", "True", "1"]]
        with (copy / "phasegrad/kernels/_program.py").open("a") as file:
            file.write("\n# another comment\n")
        assert self.run(copy, 8) == [["8", "True", "0"]]
        # A number that only the other file holds: stale code would still say that the cosine of zero is one.
        path = copy / "phasegrad/kernels/_elementary.py"
        path.write_text(path.read_text().replace("multiply_add(z, -0.5, 1.0)", "multiply_add(z, -0.5, 2.0)"))
        assert self.run(copy, 8) == [["8", "False", "0"]]
        assert self.run(copy, 8) == [["8", "False", "1"]]

    @pytest.mark.slow
    def test_widths_from_the_cache_are_not_mistaken_for_each_other(self, copy):
        """Each compiled in a process of its own, then all loaded into one."""
        for width in (8, 16):
            assert self.run(copy, width) == [[str(width), "True", "0"]]
        assert self.run(copy, 16, 8) == [["16", "True", "1"], ["8", "True", "2"]]

    def test_what_is_kept_of_any_kernel_belongs_to_all_files_of_the_room(self):
        from numba.core.registry import cpu_target

        from phasegrad.kernels import motion, sparse

        for kernel in (motion.runge_kutta, sparse.turn):
            assert _vector.DIGEST in kernel._cache._index_key((), cpu_target.target_context.codegen())

    def test_an_installation_that_cannot_be_written_to_caches_elsewhere(self, copy):
        (copy / "__pycache__").write_text("not a folder")
        assert self.run(copy, 8) == [["8", "True", "0"]]
        assert self.run(copy, 8) == [["8", "True", "1"]]

    @staticmethod
    def turn(place, home, **more):
        """Call a small kernel and the room of all others; return what was printed and what was warned of."""
        code = (
            "import numpy as np\n"
            "from phasegrad.kernels import lanes, sparse\n"
            "direction = np.ones(2)\n"
            "sparse.turn(2.0, direction, np.ones(2))\n"
            "print(direction.tolist(), sum(sparse.turn.stats.cache_hits.values()))\n"
        )
        environment = {"PYTHONPATH": str(place), "HOME": str(home), "PATH": "/usr/bin:/bin", **more}
        return subprocess.run([sys.executable, "-B", "-c", code], env=environment, capture_output=True, text=True)

    @pytest.mark.slow
    def test_where_nothing_can_be_written_kernels_are_compiled_in_memory(self, copy):
        nowhere = copy / "file"
        for path in (nowhere, copy / "phasegrad" / "kernels" / "__pycache__"):
            path.write_text("not a folder")
        done = self.turn(copy, nowhere, NUMBA_CACHE_DIR=str(nowhere), XDG_CACHE_HOME=str(nowhere))
        assert done.stdout == "[3.0, 3.0] 0\n", done.stderr
        assert done.stderr.count("Warning") == 1
        assert "CompilationWarning: Compiled code cannot be kept on disk" in done.stderr
        assert "Set NUMBA_CACHE_DIR to a folder that can be written to." in done.stderr

    @pytest.mark.slow
    def test_a_damaged_cache_costs_time_and_nothing_else(self, copy):
        assert self.turn(copy, copy / "home").stdout == "[3.0, 3.0] 0\n"
        files = [path for path in (copy / "phasegrad/kernels/__pycache__").iterdir() if "turn-" in path.name]
        assert {path.suffix for path in files} == {".nbi", ".nbc"}
        for path in files:
            whole = path.read_bytes()
            path.write_bytes(whole[: len(whole) // 2])
            done = self.turn(copy, copy / "home")
            assert (done.stdout, done.stderr) == ("[3.0, 3.0] 0\n", "")
            assert self.turn(copy, copy / "home").stdout == "[3.0, 3.0] 1\n"

    def test_a_disk_that_is_full_is_warned_of_once(self, monkeypatch):
        from phasegrad.kernels import _compilation

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(_compilation.FunctionCache, "save_overload", full)
        monkeypatch.setattr(_compilation.FunctionCache, "load_overload", lambda *_: None)
        _compilation._warn.cache_clear()
        both = [_compilation.kept(lambda x: x + 1), _compilation.kept(lambda x: x + 2)]
        with pytest.warns(_compilation.CompilationWarning, match="cannot be kept on disk") as noted:
            assert [function(1) for function in both] == [2, 3]
        assert len(noted) == 1

    def test_without_compilation_there_are_no_kernels(self, copy):
        done = self.turn(copy, copy / "home", NUMBA_DISABLE_JIT="1")
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == (
            "ImportError: NUMBA_DISABLE_JIT is set, but the kernels of phasegrad run only as compiled code. Unset it."
        )
        words = [sys.executable, "-m", "phasegrad", "train", "xor", "--epochs", "1"]
        done = subprocess.run(words, env={**os.environ, "NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True)
        assert done.returncode == 2
        assert "Error: NUMBA_DISABLE_JIT is set" in " ".join(done.stderr.split())
        assert "Traceback" not in done.stderr

    def test_only_the_room_of_kernels_compiles(self):
        """Its files are the key of the cache; a kernel elsewhere would not be, unless it is compiled at every start."""
        folder = Path(pg.__file__).parent
        numba = re.compile(r"^\s*(from|import) numba", re.MULTILINE)
        compiled = [path for path in folder.rglob("*.py") if numba.search(path.read_text())]
        assert {path.parent.name for path in compiled} == {"kernels"}
        assert not any("cache=" in path.read_text() for path in compiled if path.parent.name == "benchmarks")
        assert _vector.DIGEST in _vector.RowsType(8).name
