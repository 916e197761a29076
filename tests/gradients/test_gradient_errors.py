"""Every gradient states its error, and says so in a warning where that is large.

The judge works in fifty digits (`exact_gradients`). The networks are of every kind the library has, among them those on
which digits are lost: close to the loss of locking, and with strengths that span sixteen decades.
"""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from exact_gradients import exact_gradient
from random_networks import INTERACTIONS, connected_edges

import phasegrad as pg
from phasegrad.dynamics import build_system
from phasegrad.gradients._exact import force_rounding
from phasegrad.gradients._local import transposed_product
from phasegrad.gradients._problem import pose

TARGETS = pg.PhaseTargets()
METHODS = (
    pg.adjoint,
    pg.two_phase,
    pg.centred,
    pg.gradients.holomorphic,
    pg.gradients.finite_difference,
    pg.gradients.autograd,
)


class Third(pg.terms.NodeField):
    """A pull at the third harmonic: a term that the library does not have."""

    every = (pg.terms.Parameter("third_strength", least=0.0), pg.terms.Parameter("third_phase", default=0.0))
    interaction = pg.terms.OddSeries((0.0, 0.0, 1.0))


KINDS = (
    "plain",
    "odd series",
    "ring",
    "field",
    "clamped",
    "driven",
    "signed",
    "second harmonic",
    "own term",
    "non-reciprocal field",
    "non-reciprocal clamped",
    "near critical",
    "near critical field",
    "span",
    "span field",
    "lagging field",
    "anisotropic",
)


def make_case(number: int):
    """Return a network, its equilibrium, inputs and target; its frequencies balance phases that were drawn first."""
    rng, kind = np.random.default_rng(number), KINDS[number % len(KINDS)]
    n = int(rng.integers(3, 7))
    edges = connected_edges(n, rng, 0.0 if "critical" in kind else 0.4)
    if kind == "ring":
        edges = np.array([[k, k + 1] for k in range(n - 1)] + [[0, n - 1]])
    phases = rng.normal(0.0, 0.3, n)
    coupling = 10 ** rng.uniform(-8, 8, len(edges)) if "span" in kind else rng.uniform(0.5, 2.0, len(edges))
    options: dict = {"outputs": (n - 1,) if n < 4 else (n - 2, n - 1)}
    if kind == "odd series":
        options["interaction"] = INTERACTIONS[1 + int(rng.integers(2))]
    if "critical" in kind:
        # On a tree nothing but a turn of a quarter across one edge ends the locked state.
        phases = np.zeros(n)
        for i, j in sorted(edges.tolist(), key=lambda pair: pair[1]):
            phases[j] = phases[i] + rng.uniform(-0.5, 0.5)
        steep = int(rng.integers(1, n))
        (before,) = edges[edges[:, 1] == steep, 0]
        lift = phases[before] + np.pi / 2 - 10 ** rng.uniform(-7, -1) - phases[steep]
        phases += lift * _hangs_from(edges, steep, n)
        coupling = rng.uniform(0.5, 2.0, len(edges))
    if "signed" in kind:
        coupling, options["signed"] = coupling * rng.choice([1.0, 1.0, -0.4], len(edges)), True
    if "field" in kind or kind in ("signed", "own term"):
        size = 10 ** rng.uniform(-8, 8, n) if "span" in kind else rng.uniform(0.1, 1.0, n)
        strength = 1e-7 * size if "critical" in kind else size
        options |= {"field_strength": strength, "field_phase": rng.uniform(-0.5, 0.5, n)}
    if "non-reciprocal" in kind:
        options["coupling_reverse"] = rng.uniform(0.5, 2.0, len(edges))
    if "lagging" in kind:
        options["lag"] = rng.uniform(-0.2, 0.2, len(edges))
    if kind == "anisotropic":
        options["anisotropy"] = -rng.uniform(0.1, 0.8, len(edges))
    if kind == "second harmonic":
        options |= {"second_strength": rng.uniform(0.1, 1.0, n), "second_phase": rng.uniform(-0.5, 0.5, n)}
    if kind == "own term":
        options |= {"terms": [Third()], "third_strength": rng.uniform(0.1, 0.5, n)}
    inputs = None
    if "clamped" in kind or kind == "driven":
        options |= {"inputs": (0,), "input_scale": 0.3, "input_mode": "phase" if "clamped" in kind else "frequency"}
        inputs = rng.uniform(-1, 1, 1)
    network = pg.Network(edges, coupling, rng.normal(0.0, 0.1, n), **options)
    if kind not in ("clamped", "driven", "non-reciprocal clamped"):
        network = _balanced(network, phases)
    target = rng.uniform(-0.5, 0.5, len(network.outputs))
    return network, pg.find_equilibrium(network, inputs, start=phases), inputs, target


def _balanced(network: pg.Network, phases: np.ndarray) -> pg.Network:
    """Return the network with the frequencies that hold it at these phases."""
    still = network.replace(omega=np.zeros(network.size))
    return still.replace(omega=-pg.dynamics.force(still, phases))


def _hangs_from(edges: np.ndarray, top: int, n: int) -> np.ndarray:
    """Return 1 for an oscillator of a tree and all that hang from it, 0 for the others."""
    below = np.zeros(n)
    below[top] = 1.0
    for i, j in sorted(edges.tolist(), key=lambda pair: pair[1]):
        below[j] = max(below[j], below[i])
    return below


def silent_failures(numbers: range) -> tuple[list[str], int]:
    """Return entries that are off by more than their gradient states, without a warning, and how many were judged."""
    found, judged = [], 0
    for number in numbers:
        network, equilibrium, inputs, target = make_case(number)
        frequencies = ("relative", "raw")[number % 2]
        truth = exact_gradient(network, equilibrium.phases, inputs, target, raw=frequencies == "raw")
        for method in METHODS:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                gradient = method(network, equilibrium, TARGETS, target, wrt=tuple(truth), frequencies=frequencies)
            assert all(warning.category is pg.gradients.GradientWarning for warning in said), said
            for name in truth:
                off = ~(np.abs(gradient[name] - truth[name]) <= gradient.error[name])
                judged += off.size
                if np.any(off) and not said:
                    found.append(f"{number} ({KINDS[number % len(KINDS)]}): {method.__name__}, {name}")
    return found, judged


def test_no_entry_is_off_by_more_than_its_gradient_states_without_a_warning():
    """Two networks of every kind, six methods, all parameters and the data; the long campaign has twenty of each."""
    found, judged = silent_failures(range(34))
    assert found == []
    assert judged > 2000


@pytest.mark.slow
@pytest.mark.parametrize("first", range(34, 340, 34))
def test_no_entry_of_340_networks_is_off_without_a_warning(first):
    """Minutes, because every one is solved in fifty digits and by finite differences; the first 34 are normal tests."""
    found, judged = silent_failures(range(first, first + 34))
    assert found == []
    assert judged > 2000


def test_stated_errors_of_ordinary_networks_are_small():
    """An error that is always large would hold too, and say nothing."""
    limits = {"adjoint": 1e-11, "autograd": 1e-11, "holomorphic": 1e-11, "finite_difference": 1e-6}
    limits |= {"centred": 1e-5, "two_phase": 2e-3}
    for number in range(9):
        network, equilibrium, _, target = make_case(number)
        for method in METHODS:
            gradient = method(network, equilibrium, TARGETS, target, wrt=tuple(network.parameters))
            for name in network.parameters:
                assert gradient.relative_error(name) < limits[method.__name__], (number, method.__name__, name)


BIASED = pg.networks.from_matrix([[0, 1, 0.5], [2, 0, 1], [1.5, 0.3, 0]], omega=[0.1, 0, -0.1], outputs=[2])


@pytest.mark.parametrize(("grounded", "bias"), [(False, 0.05), (True, 2.0)])
@pytest.mark.parametrize("method", [pg.two_phase, pg.centred, pg.gradients.holomorphic])
def test_nudges_of_a_network_that_is_not_reciprocal_warn_and_state_their_bias(method, grounded, bias):
    """Nothing fixes the frame here: the judge turns every coupling and lets the network settle."""
    network = BIASED.replace(grounded=grounded)
    equilibrium = pg.find_equilibrium(network)

    def cost(coupling: np.ndarray) -> float:
        state = pg.find_equilibrium(network.replace(coupling=coupling), start=equilibrium.phases)
        return 0.5 * float(state.phases[2] - 0.3) ** 2

    step = 1e-5
    turns = step * np.eye(3)
    truth = np.array([cost(network.coupling + by) - cost(network.coupling - by) for by in turns]) / (2 * step)
    with pytest.warns(
        pg.gradients.GradientWarning, match=r"may be off by [\d.]+ % of its largest entry.*not reciprocal"
    ):
        gradient = method(network, equilibrium, TARGETS, [0.3], wrt="coupling")
    off = np.abs(gradient.coupling - truth)
    assert np.max(off) > bias * np.max(np.abs(truth))
    # Rounding of the costs over the step.
    np.testing.assert_allclose(gradient.error["coupling"], off, rtol=2e-3, atol=1e-10)


@pytest.mark.parametrize("method", [pg.adjoint, pg.gradients.finite_difference, pg.gradients.autograd])
def test_the_methods_that_are_right_without_reciprocity_do_not_warn(method):
    gradient = method(BIASED, pg.find_equilibrium(BIASED), TARGETS, [0.3], wrt=tuple(BIASED.parameters))
    assert all(gradient.relative_error(name) < 1e-6 for name in BIASED.parameters)


def test_slight_asymmetry_is_stated_and_not_worth_a_warning():
    network = pg.networks.random_network(8, seed=0)
    network = pg.networks.from_matrix(
        pg.networks.to_matrix(network) * (1 + 1e-5 * np.triu(np.ones((8, 8)))),
        omega=network.omega,
        outputs=network.outputs,
    )
    gradient = pg.gradients.holomorphic(network, pg.find_equilibrium(network), TARGETS, [-0.2, 0.2])
    assert 1e-7 < gradient.relative_error("omega") < 1e-4


def test_a_nudge_that_is_left_out_keeps_its_promise_for_every_parameter():
    """Odd series and rings bend more than the response of the outputs shows."""
    cases = [pg.networks.ring(n, omega=0.1 * np.cos(3.0 * np.arange(n)), outputs=[n // 2]) for n in (5, 8, 12)]
    cases += [pg.networks.random_network(8, seed=s, interaction=INTERACTIONS[1 + s % 2]) for s in range(6)]
    for network in cases:
        question = (network, pg.find_equilibrium(network), TARGETS, [-0.3, 0.2][: len(network.outputs)])
        exact = pg.adjoint(*question, wrt=("omega", "coupling"))
        nudged = pg.two_phase(*question, wrt=("omega", "coupling"))
        for name in ("omega", "coupling"):
            assert np.max(np.abs(nudged[name] - exact[name])) <= 1.1e-3 * np.max(np.abs(exact[name]))


def _nearly_lost(gap: float) -> tuple[pg.Network, float]:
    """Return two oscillators a quarter of a turn less ``gap`` apart, and dC/dw_1 in closed form: theta = asin(w_1)."""
    network = pg.Network([[0, 1]], 1.0, [-np.cos(gap), np.cos(gap)], outputs=[1])
    return network, (np.pi / 2 - gap - 0.3) / np.sin(gap)


@pytest.mark.parametrize("gap", [0.1, 1e-2, 3e-3, 1e-3])
def test_finite_differences_shorten_their_step_near_the_end_of_locking(gap):
    """With a step of 1e-5 for all, they would be off by (step / gap^2)^2 / 2, and lose the state at the last."""
    network, slope = _nearly_lost(gap)
    equilibrium = pg.find_equilibrium(network)
    gradient = pg.gradients.finite_difference(network, equilibrium, TARGETS, [0.3])
    assert gradient.omega[1] == pytest.approx(slope, rel=1e-5)
    assert abs(gradient.omega[1] - slope) <= gradient.error["omega"][1] + 1e-9 * abs(slope)


def test_a_step_that_was_given_is_taken_and_its_error_stated():
    network, slope = _nearly_lost(6e-3)
    equilibrium = pg.find_equilibrium(network)
    with pytest.warns(pg.gradients.GradientWarning, match="finite_difference: the gradient by omega may be off by"):
        gradient = pg.gradients.finite_difference(network, equilibrium, TARGETS, [0.3], step=1e-5)
    assert 0.01 < abs(gradient.omega[1] / slope - 1) < gradient.relative_error("omega")


def test_the_error_of_a_long_step_is_stated_half_as_large_again_as_it_is():
    """Half the step tells the error of a smooth cost; half of that more is left for what it does not tell."""
    network = pg.networks.random_network(8, seed=3)
    question = (network, pg.find_equilibrium(network), TARGETS, [-0.2, 0.2])
    rough, exact = (
        method(*question, wrt="omega", **options)
        for method, options in ((pg.gradients.finite_difference, {"step": 0.01}), (pg.adjoint, {}))
    )
    moving = list(network.free)
    off = np.abs(rough.omega - exact.omega)[moving]
    np.testing.assert_allclose(rough.error["omega"][moving], 1.5 * off, rtol=1e-3)


def test_an_equilibrium_settled_loosely_has_a_gradient_that_says_so():
    network = pg.networks.random_network(10, seed=2)
    tight = pg.find_equilibrium(network)
    loose = pg.find_equilibrium(network, start=tight.phases + 1e-9 * np.sin(np.arange(10.0)), solver=_Idle())
    exact, rough = (pg.adjoint(network, each, TARGETS, [-0.2, 0.2]) for each in (tight, loose))
    off = np.max(np.abs(rough.omega - exact.omega))
    assert 1e-12 < off <= np.max(rough.error["omega"]) < 1e3 * off


def test_a_state_that_the_force_left_on_it_would_carry_far_away_has_no_error_that_is_known():
    """Two oscillators so close to a quarter of a turn that what was left of the force is a step of half a radian."""
    gap, left = 1e-7, 8e-8
    frequency = np.cos(gap) - left
    network = pg.Network([[0, 1]], 1.0, [-frequency, frequency], outputs=[1])
    loose = pg.find_equilibrium(network, start=[0.0, np.pi / 2 - gap], solver=_Idle())
    assert loose.stable
    with pytest.warns(pg.gradients.GradientWarning, match="more than ten times the size"):
        gradient = pg.adjoint(network, loose, TARGETS, [0.3])
    assert np.all(gradient.error["omega"] == np.inf)


@pytest.mark.parametrize("method", [pg.adjoint, pg.gradients.holomorphic, pg.gradients.finite_difference])
def test_phases_many_turns_away_cost_digits_that_the_error_tells(method):
    """The angle to a field is rounded as the phase is: after a hundred thousand turns in the tenth decimal."""
    network = pg.Network([[0, 1]], 1.0, [0.1, 0.3], field_strength=[1.0, 2.0], field_phase=[0.2, -0.1], outputs=[1])
    equilibrium = pg.find_equilibrium(network, start=2e5 * np.pi * np.ones(2))
    target = equilibrium.phases[[1]] + 0.1
    truth = exact_gradient(network, equilibrium.phases, None, target, raw=False)["omega"]
    gradient = method(network, equilibrium, TARGETS, target)
    off = np.abs(gradient.omega - truth)
    assert np.all((off > 1e-13) & (off <= gradient.error["omega"]))


def test_the_products_of_the_linear_system_and_their_sizes_are_those_of_the_laplacian():
    """No weight is negative here, so that a size is a product too, of positive numbers."""
    nodes = np.arange(6.0)
    network = pg.networks.random_network(6, seed=1).replace(field_strength=0.1 + nodes, field_phase=0.1 * nodes)
    equilibrium = pg.find_equilibrium(network)
    question = pose("adjoint", network, equilibrium, TARGETS, [0.1, 0.2], "omega", "relative")
    matrix, vector = pg.dynamics.laplacian(network, equilibrium.phases), np.cos(3 * nodes)[None]
    product, size = transposed_product(question.system, question.phases, vector)
    np.testing.assert_allclose(product, vector @ matrix, atol=1e-13)
    np.testing.assert_allclose(size, np.abs(vector) @ np.abs(matrix), atol=1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_a_parameter_that_the_cost_does_not_feel_is_worth_no_warning(method):
    """A clamped oscillator stands between the output and the field: what is left of that gradient is rounding."""
    network = pg.Network(
        [[0, 1], [0, 2]],
        [1.0, 1.3],
        [0.0, 0.1, 0.2],
        inputs=[0],
        input_mode="phase",
        outputs=[1],
        field_strength=[0.0, 0.0, 50.0],
        field_phase=[0.0, 0.0, 0.4],
    )
    gradient = method(network, pg.find_equilibrium(network, [0.3]), TARGETS, [0.1], wrt="field_phase")
    assert np.max(np.abs(gradient.field_phase) + gradient.error["field_phase"]) < 1e-13


class _Idle:
    """A solver that leaves the phases where they are and calls them settled."""

    def solve(self, system, start, tolerance):
        from phasegrad.solvers import Solution

        return Solution(start, np.zeros(system.batch), np.zeros(system.batch, dtype=int))


def test_autograd_warns_where_a_terms_two_writings_disagree():
    pytest.importorskip("torch")

    class Wrong(Third):
        def torch_force(self, graph, values, phases):
            return 1.5 * super().torch_force(graph, values, phases)

    network = pg.networks.ring(5, omega=[0.0, 0.1, 0.0, -0.1, 0.0], outputs=[2], terms=[Wrong()], third_strength=1e-3)
    equilibrium = pg.find_equilibrium(network.replace(third_strength=np.full(5, 1e-3)))
    with pytest.warns(pg.gradients.GradientWarning):
        pg.gradients.autograd(network, equilibrium, TARGETS, [0.4], wrt="third_strength")


def test_errors_are_printed_and_stand_in_the_table():
    network = pg.networks.random_network(6, seed=1)
    question = (network, pg.find_equilibrium(network), TARGETS, [-0.2, 0.2])
    gradient = pg.two_phase(*question, beta=0.01)
    assert f"error at most {np.max(gradient.error['omega']):.1g}" in str(gradient)
    table = pg.check_gradients(*question, methods=["adjoint", "two_phase"], beta=0.01)
    assert table.stated_error["omega"][1] == pytest.approx(float(gradient.relative_error("omega")))
    assert f"{table.stated_error['omega'][1]:.1e}" in str(table)


def test_training_on_a_biased_gradient_says_so_once():
    network = pg.networks.from_matrix(pg.networks.to_matrix(BIASED), omega=BIASED.omega, inputs=[0], outputs=[2])
    x = 0.2 * np.linspace(-1, 1, 6)[:, None]
    options = {"objective": TARGETS, "learn": "coupling", "epochs": 3, "learning_rate": 0.01}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        pg.train(network, (x, x / 2), **options)
    assert [warning.filename for warning in said] == [__file__]
    assert "the coupling is not reciprocal, and gradient='centred' is biased there" in str(said[0].message)
    pg.train(network, (x, x / 2), gradient="adjoint", **options)
    pg.train(network, (x, x / 2), **{**options, "epochs": 0})


@pytest.mark.parametrize("strong", [1.0, 1e6])
def test_forces_are_as_well_known_as_is_stated(strong):
    """Against long doubles. Where coupling is not reciprocal, what the reference feels is part of every force."""
    network = pg.Network([(0, 1), (1, 2)], [strong, 1.0], [0.1, 0.2, -0.3], coupling_reverse=[1.0, 0.5], outputs=[2])
    phases = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    system = build_system(network, None)[0].take(np.zeros(50, dtype=np.int64))
    stated = force_rounding(SimpleNamespace(system=system, phases=phases, network=network, inputs=None))
    first, second = np.sin(np.diff(phases.astype(np.longdouble), axis=1)).T
    omega = network.omega.astype(np.longdouble)
    pulls = np.stack([strong * first, second - first, -second / 2], axis=1) + omega
    exact = pulls - pulls[:, :1]
    assert np.all(np.abs(system.force(phases) - exact) <= stated)


def test_what_is_stated_about_a_sample_does_not_depend_on_the_others():
    network = pg.Network([(0, 1), (1, 2)], [1.0, 2.0], [0.1, 0.2, -0.3], anisotropy=[0.3, 0.2], outputs=[2])
    phases = np.random.default_rng(0).uniform(-1, 1, (3, 3)) * [[1.0], [10.0], [100.0]]
    stated = []
    for rows in ([0, 1, 2], [0], [1], [2]):
        system = build_system(network, None)[0].take(np.zeros(len(rows), dtype=np.int64))
        question = SimpleNamespace(system=system, phases=phases[rows], network=network, inputs=None)
        stated.append(force_rounding(question))
    np.testing.assert_array_equal(stated[0], np.concatenate(stated[1:]))
