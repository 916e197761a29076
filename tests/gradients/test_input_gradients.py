"""The gradient by the data: six methods, both ways in which data enters, against the whole pipeline from x to the cost.

The judge is a plain central difference of cost(find_equilibrium(network, x)). How far an entry may be off in the last
digits, the fifty digits of `test_gradient_errors` say.
"""

import warnings

import numpy as np
import pytest
from random_layouts import network_on
from random_networks import INTERACTIONS, connected_edges

import phasegrad as pg
from phasegrad.gradients._local import local_products, rounded_sizes
from phasegrad.gradients._problem import pose

TARGETS = pg.PhaseTargets()
METHODS = {
    method.__name__: method
    for method in (
        pg.adjoint,
        pg.two_phase,
        pg.centred,
        pg.gradients.holomorphic,
        pg.gradients.finite_difference,
        pg.gradients.autograd,
    )
}
#: Relative error that each method promises where nothing is said of its nudge or its step.
PROMISED = {
    "adjoint": 1e-7,
    "two_phase": 2e-3,
    "centred": 1e-5,
    "holomorphic": 1e-7,
    "finite_difference": 1e-6,
    "autograd": 1e-7,
}
RIGHT_WITHOUT_RECIPROCITY = ("adjoint", "finite_difference", "autograd")
MODES = ("frequency", "phase")
#: Images of two channels under a convolution with a stride and padding, which the outputs see too.
LAYOUT = pg.networks.Layout(
    [(2, 3, 4), (2, 2, 2), (2,)], [pg.networks.Link(0, 1, 3, 2, 1), pg.networks.Link(1, 2), pg.networks.Link(0, 2)]
)
by_method = pytest.mark.parametrize("method", METHODS)
by_mode = pytest.mark.parametrize("mode", MODES)


class Third(pg.terms.NodeField):
    """A pull at the third harmonic: a term that the library does not have."""

    every = (pg.terms.Parameter("third_strength", least=0.0), pg.terms.Parameter("third_phase", default=0.0))
    interaction = pg.terms.OddSeries((0.0, 0.0, 1.0))


def build(seed: int, mode: str, *, kind: str = "plain", **options) -> pg.Network:
    """Return a random network of eight oscillators, of which 5, 1 and 3 are inputs, in this order."""
    rng, n = np.random.default_rng(seed), 8
    edges = connected_edges(n, rng, 0.4)
    options |= {"inputs": (5, 1, 3), "outputs": (6, 2), "reference": 4, "input_mode": mode}
    options["interaction"] = INTERACTIONS[seed % len(INTERACTIONS)]
    options.setdefault("input_scale", 0.3 if mode == "frequency" else 0.7)
    if "field" in kind:
        options |= {"field_strength": rng.uniform(0.1, 0.5, n), "field_phase": rng.uniform(-0.5, 0.5, n)}
    if "own term" in kind:
        options |= {"terms": [Third()], "third_strength": rng.uniform(0.1, 0.3, n)}
    if "non-reciprocal" in kind:
        options["coupling_reverse"] = rng.uniform(0.8, 2.0, len(edges))
    return pg.Network(edges, rng.uniform(0.8, 2.0, len(edges)), rng.normal(0.0, 0.1, n), **options)


def data(seed: int, *batch: int) -> np.ndarray:
    return np.random.default_rng(seed + 100).uniform(-1, 1, (*batch, 3))


def goals(seed: int, *batch: int) -> np.ndarray:
    return np.random.default_rng(seed + 200).uniform(-0.5, 0.5, (*batch, 2))


def cost_of(network: pg.Network, x: np.ndarray, target: np.ndarray) -> np.ndarray:
    equilibrium = pg.find_equilibrium(network, x)
    assert np.all(equilibrium.stable)
    return TARGETS.cost(equilibrium.phases[..., list(network.outputs)], target)


def differences(network: pg.Network, x: np.ndarray, target: np.ndarray, step: float = 1e-4) -> np.ndarray:
    """Return the slope of the cost by every entry of x, from equilibria found anew at four points around each."""
    slopes = []
    for along in step * np.eye(x.shape[-1]):
        near, far = (cost_of(network, x + k * along, target) - cost_of(network, x - k * along, target) for k in (1, 2))
        slopes.append((8 * near - far) / (12 * step))
    return np.stack(slopes, axis=-1)


def gradient_of(method: str, network: pg.Network, x: np.ndarray, target: np.ndarray, **options) -> pg.Gradient:
    return METHODS[method](network, pg.find_equilibrium(network, x), TARGETS, target, **{"wrt": "inputs"} | options)


@by_mode
@pytest.mark.parametrize("kind", ["plain", "field", "own term"])
@pytest.mark.parametrize("seed", [0, 1])
def test_all_six_are_the_slope_of_the_whole_pipeline(mode, kind, seed):
    """Sine and odd series, a frame that turns with the mean frequency and one that is fixed, a batch of two."""
    network, x, target = build(seed, mode, kind=kind), data(seed, 2), goals(seed, 2)
    measured = differences(network, x, target)
    for method, promised in PROMISED.items():
        gradient = gradient_of(method, network, x, target)
        assert gradient.inputs.shape == (2, 3)
        np.testing.assert_allclose(gradient.inputs, measured, rtol=0, atol=promised * np.max(np.abs(measured)))
        off = np.abs(gradient.inputs - measured)
        assert np.all(off <= gradient.error["inputs"] + 1e-7 * np.max(np.abs(measured))), method


@by_mode
@pytest.mark.parametrize("kind", ["non-reciprocal", "non-reciprocal field"])
def test_without_reciprocity_three_are_right_and_the_nudged_say_that_they_are_not(mode, kind):
    network, x, target = build(2, mode, kind=kind), data(2), goals(2)
    measured = differences(network, x, target)
    largest = np.max(np.abs(measured))
    for method in RIGHT_WITHOUT_RECIPROCITY:
        gradient = gradient_of(method, network, x, target)
        np.testing.assert_allclose(gradient.inputs, measured, rtol=0, atol=1e-6 * largest)
    with pytest.warns(pg.gradients.GradientWarning, match="not reciprocal"):
        nudged = gradient_of("centred", network, x, target)
    off = np.abs(nudged.inputs - measured)
    assert np.max(off) > 0.01 * largest
    assert np.all(off <= nudged.error["inputs"] + 1e-7 * largest)


def test_a_reference_held_by_force_may_be_an_input():
    """Its own frequency acts through the mean alone: what is dropped is its equation."""
    network = build(3, "frequency", kind="non-reciprocal").replace(reference=1, grounded=True)
    x, target = data(3), goals(3)
    measured = differences(network, x, target)
    assert abs(measured[1]) > 1e-3 * np.max(np.abs(measured))
    for method in RIGHT_WITHOUT_RECIPROCITY:
        np.testing.assert_allclose(gradient_of(method, network, x, target).inputs, measured, atol=1e-9)


def test_two_oscillators_in_closed_form():
    """As a frequency theta_1 = asin((w_1 - s x) / 2K), as the mean takes half of it; as a phase asin(w_1 / K) + s x."""
    driven = pg.Network([[0, 1]], 2.0, [9.0, -0.2], inputs=[0], outputs=[1], input_scale=1.5)
    theta = np.arcsin((-0.2 - 1.5 * 0.4) / 4.0)
    slope = -(theta - 0.3) * 1.5 / (4.0 * np.cos(theta))
    clamped = pg.Network([[0, 1]], 2.0, [9.0, 0.4], inputs=[0], outputs=[1], input_scale=1.5, input_mode="phase")
    for method in METHODS:
        found = gradient_of(method, driven, np.array([0.4]), np.array([0.3])).inputs
        assert found[0] == pytest.approx(slope, rel=PROMISED[method])
        found = gradient_of(method, clamped, np.array([0.4]), np.array([0.3])).inputs
        assert found[0] == pytest.approx((np.arcsin(0.2) + 0.6 - 0.3) * 1.5, rel=PROMISED[method])


@by_method
@by_mode
def test_it_may_stand_among_other_names_and_does_not_mind_how_frequencies_count(method, mode):
    network, x, target = build(4, mode), data(4), goals(4)
    alone = gradient_of(method, network, x, target)
    for frequencies in ("relative", "raw"):
        options = {"wrt": ("coupling", "inputs", "omega"), "frequencies": frequencies}
        options |= {} if alone.beta is None else {"beta": alone.beta}
        both = gradient_of(method, network, x, target, **options)
        assert list(both.values) == ["coupling", "inputs", "omega"]
        np.testing.assert_allclose(both["inputs"], alone.inputs, rtol=0, atol=1e-13)
        others = gradient_of(method, network, x, target, **{**options, "wrt": ("coupling", "omega")})
        for name in ("coupling", "omega"):
            np.testing.assert_allclose(both[name], others[name], rtol=0, atol=1e-13)


def test_data_that_is_a_frequency_counts_as_the_raw_frequency_of_its_oscillator():
    network, x, target = build(0, "frequency"), data(0), goals(0)
    gradient = gradient_of("adjoint", network, x, target, wrt=("omega", "inputs"), frequencies="raw")
    np.testing.assert_allclose(gradient.inputs, 0.3 * gradient.omega[[5, 1, 3]], rtol=1e-12)
    relative = gradient_of("adjoint", network, x, target, wrt="omega").omega
    assert np.max(np.abs(gradient.inputs - 0.3 * relative[[5, 1, 3]])) > 0.01 * np.max(np.abs(gradient.inputs))


@by_mode
def test_names_of_oscillators_do_not_matter_and_the_order_of_inputs_is_that_of_the_data(mode):
    network, x, target = build(5, mode, kind="field"), data(5), goals(5)
    new = np.random.default_rng(0).permutation(network.size)
    old = np.argsort(new)
    fields = {name: network.parameters[name][old] for name in ("field_strength", "field_phase")}
    renamed = pg.Network(
        new[network.edges],
        network.coupling,
        network.omega[old],
        inputs=new[[3, 5, 1]],
        outputs=new[[6, 2]],
        input_mode=mode,
        input_scale=network.input_scale,
        interaction=network.interaction,
        **fields,
    )
    for method in METHODS:
        before, after = (
            gradient_of(method, each, data_, target).inputs for each, data_ in ((network, x), (renamed, x[[2, 0, 1]]))
        )
        np.testing.assert_allclose(after, before[[2, 0, 1]], rtol=0, atol=1e-8)


def test_a_constant_added_to_all_frequencies_changes_nothing():
    """Where the frame turns with their mean; one added to the data alone moves the inputs against the others."""
    network, x, target = build(6, "frequency"), data(6), goals(6)
    shifted = network.replace(omega=network.omega + 0.6)
    for method in METHODS:
        before = gradient_of(method, network, x, target).inputs
        after = gradient_of(method, shifted, x + 0.6 / network.input_scale, target).inputs
        np.testing.assert_allclose(after, before, rtol=0, atol=1e-8)
        assert np.max(np.abs(gradient_of(method, network, x + 0.6, target).inputs - before)) > 1e-6


@by_mode
def test_no_sample_minds_its_company(mode):
    network, x, target = build(7, mode), data(7, 2, 2), goals(7, 2)
    for method in METHODS:
        options = {"beta": 1e-4} if method in ("two_phase", "centred", "holomorphic") else {}
        whole = gradient_of(method, network, x, target, **options)
        assert whole.inputs.shape == (2, 2, 3)
        for i, j in np.ndindex(2, 2):
            one = gradient_of(method, network, x[i, j], target[j], **options)
            np.testing.assert_array_equal(whole.inputs[i, j], one.inputs)
            np.testing.assert_array_equal(whole.error["inputs"][i, j], one.error["inputs"])


@by_mode
def test_one_sample_with_many_targets_has_a_gradient_for_each(mode):
    network, x, targets = build(8, mode), data(8), goals(8, 4)
    for method in METHODS:
        gradient = gradient_of(method, network, x, targets)
        expected = [gradient_of("adjoint", network, x, target).inputs for target in targets]
        np.testing.assert_allclose(gradient.inputs, expected, rtol=0, atol=PROMISED[method] * np.max(np.abs(expected)))


@by_mode
def test_a_linear_layer_in_front_learns_by_the_chain_rule(mode):
    """X = A u: the gradient by u is A^T times that by x, and is the slope of the pipeline from u on."""
    network, target = build(9, mode), goals(9)
    rng = np.random.default_rng(0)
    layer, u, step = rng.normal(0.0, 0.4, (3, 5)), rng.uniform(-1, 1, 5), 1e-5
    measured = [
        (cost_of(network, layer @ (u + way), target) - cost_of(network, layer @ (u - way), target)) / (2 * step)
        for way in step * np.eye(5)
    ]
    gradient = gradient_of("adjoint", network, layer @ u, target).inputs
    np.testing.assert_allclose(layer.T @ gradient, measured, rtol=0, atol=1e-8)
    assert np.max(np.abs(measured)) > 1e-3


@by_mode
def test_a_large_sparse_network_answers_data_too(mode):
    """On compressed rows; the slope along one direction of all the data."""
    network = pg.networks.lattice(
        20,
        20,
        inputs=range(20),
        outputs=(250, 399),
        input_mode=mode,
        input_scale=0.2,
        reference=210,
        **({} if mode == "phase" else {"field_strength": 0.1}),
    )
    x, way = np.random.default_rng(1).uniform(-1, 1, (2, 20))
    target, step = np.array([0.1, -0.2]), 1e-4
    rise = cost_of(network, x + step * way, target) - cost_of(network, x - step * way, target)
    for method in ("adjoint", "centred", "holomorphic"):
        slope = gradient_of(method, network, x, target).inputs @ way
        assert slope == pytest.approx(rise / (2 * step), rel=1e-4)


@by_method
def test_phases_many_turns_away_cost_digits_that_the_error_tells(method):
    """Turning all data by whole turns turns the state with it; what is left of the digits is stated."""
    network, turns = build(0, "phase", input_scale=2 * np.pi), 2.0**20
    x, target = 0.1 * data(0), goals(0)
    truth = gradient_of("adjoint", network, x, target).inputs
    equilibrium = pg.find_equilibrium(network, x + turns, start=np.full(8, 2 * np.pi * turns))
    goal = target + (2 * np.pi) * turns
    gradient = METHODS[method](network, equilibrium, TARGETS, goal, wrt="inputs")
    off = np.abs(gradient.inputs - truth)
    assert np.max(off) > 1e-12
    assert np.all(off <= gradient.error["inputs"])


@by_method
def test_a_mean_far_away_costs_digits_that_the_error_tells(method):
    """Data drives every oscillator, so that the network's own frequencies say nothing of how they are rounded."""
    network = pg.networks.ring(4, inputs=range(4), outputs=[2], input_scale=0.3, omega=np.zeros(4))
    x, target, far = np.array([1, -3, 2, -2]) / 4, np.array([0.1]), 2.0**24
    truth = gradient_of("adjoint", network, x, target).inputs
    gradient = gradient_of(method, network, x + far, target)
    off = np.abs(gradient.inputs - truth)
    assert np.max(off) > 1e-12
    assert np.all(off <= gradient.error["inputs"])


@by_method
@by_mode
def test_units_of_the_data_do_not_matter(method, mode):
    """Data a hundred million times as small under a scale so many times as large is the same; the other way too."""
    network, x, target = build(2, mode), data(2), goals(2)
    plain = gradient_of(method, network, x, target).inputs
    for factor in (1e-8, 1e8):
        scaled = network.replace(input_scale=factor * network.input_scale)
        found = gradient_of(method, scaled, x / factor, target).inputs / factor
        np.testing.assert_allclose(found, plain, rtol=0, atol=1e-7 * np.max(np.abs(plain)))


@by_mode
def test_what_rounding_is_a_share_of_is_the_sum_of_all_parts(mode):
    """Of a clamped phase the pulls on its neighbours, of a frequency the response from which a mean is taken away."""
    network, x, target = build(3, mode, kind="non-reciprocal"), data(3), goals(3)
    question = pose("adjoint", network, pg.find_equilibrium(network, x), TARGETS, target, ("omega", "inputs"), "raw")
    response = question.system.spread(np.cos(np.arange(network.free.size))[None])
    values = local_products(network, question.system, question.wrt, question.phases, response)
    sizes, scale, raw = rounded_sizes(question, values, response), network.input_scale, question.in_units
    if mode == "frequency":
        expected = np.abs(values["inputs"][0]) + scale * np.max(np.abs(response))
    else:
        pulls = np.zeros((network.size, network.size))
        step = 1e-6 * np.eye(network.size)
        for node in network.inputs:
            pushed = [question.system.force(question.phases + sign * step[[node]])[0] for sign in (1, -1)]
            pulls[:, node] = (pushed[0] - pushed[1]) / 2e-6
        expected = scale * (np.abs(response[0]) @ np.abs(pulls))[[5, 1, 3]]
    np.testing.assert_allclose(sizes["inputs"], expected[None], rtol=1e-6)
    alone = values["omega"]
    np.testing.assert_array_equal(sizes["omega"], np.maximum(np.abs(alone), np.abs(raw("omega", alone))))


@by_mode
def test_data_that_the_cost_does_not_feel_has_a_gradient_of_zero_without_a_warning(mode):
    """At its target the cost has no slope."""
    network, x = build(1, mode), data(1)
    target = pg.find_equilibrium(network, x).phases[[6, 2]]
    for method in METHODS:
        gradient = gradient_of(method, network, x, target)
        assert np.max(np.abs(gradient.inputs)) < 1e-9


def test_the_table_of_all_methods_takes_it_and_says_so():
    network, x, target = build(2, "phase"), data(2, 2), goals(2)
    table = pg.check_gradients(network, pg.find_equilibrium(network, x), TARGETS, target, wrt=("coupling", "inputs"))
    assert list(table.relative_error) == ["coupling", "inputs"]
    assert np.max(table.relative_error["inputs"]) < 1e-3
    assert np.max(table.stated_error["inputs"]) < 1e-3
    assert "gradient by inputs:" in str(table)
    assert "inputs " in str(table.gradients["adjoint"])


@by_method
def test_without_data_there_is_no_gradient_by_it(method):
    plain = pg.networks.random_network(6, seed=0)
    with pytest.raises(ValueError, match=rf"{method} was asked .* by 'inputs', but this network has none. Name them"):
        METHODS[method](plain, pg.find_equilibrium(plain), TARGETS, [0.1, 0.2], wrt="inputs")
    network = build(0, "frequency")
    with pytest.raises(ValueError, match=r"found without any, at the network's own frequencies. Give them"):
        METHODS[method](network, pg.find_equilibrium(network), TARGETS, [0.1, 0.2], wrt=["omega", "inputs"])


def test_a_wrong_name_is_told_that_inputs_may_be_asked_for_where_there_are_any():
    network = build(0, "phase")
    with pytest.raises(ValueError, match=r"one of 'omega', 'coupling', 'inputs'\. Got 'input'"):
        gradient_of("adjoint", network, data(0), goals(0), wrt="input")
    plain = pg.networks.random_network(6, seed=0)
    with pytest.raises(ValueError, match=r"one of 'omega', 'coupling'\. Got 'input'"):
        pg.adjoint(plain, pg.find_equilibrium(plain), TARGETS, [0.1, 0.2], wrt="input")


def test_no_term_of_ones_own_may_call_a_parameter_inputs():
    class Clash(pg.terms.NodeField):
        every = (pg.terms.Parameter("inputs"), pg.terms.Parameter("clash_phase", default=0.0))

    with pytest.raises(ValueError, match="Clash has a parameter called 'inputs', which is a field of Network"):
        pg.networks.ring(4, terms=[Clash()])


class Wind(pg.terms.Term):
    """A second force that data sets: a share of the frequency of every input blows on all oscillators."""

    every = (pg.terms.Parameter("wind", default=0.0),)
    drives = True
    share = 0.2

    def force(self, graph, values, phases):
        return np.broadcast_to(values["wind"], phases.shape)

    def energy(self, graph, values, phases):
        return -np.sum(values["wind"] * phases, axis=1)

    def energy_slopes(self, graph, values, phases):
        return {"wind": -phases}

    def force_slopes(self, graph, values, phases, response):
        return {"wind": response}

    def drive(self, graph, values):
        return values["wind"]

    def in_frame(self, graph, values, frequencies):
        if frequencies is None:
            return {}
        blows = self.share * np.sum(frequencies, axis=1, keepdims=True)
        return {"wind": blows * np.ones(graph.size) + values["wind"]}

    def torch_force(self, graph, values, phases):
        return values["wind"]


class KnownWind(Wind):
    def input_slope(self, graph, name, slope):
        return np.repeat(self.share * np.sum(slope, axis=1, keepdims=True), len(graph.inputs), axis=1)

    def torch_in_frame(self, graph, values, frequencies):
        return {"wind": values["wind"] + self.share * frequencies.sum()}


def test_a_term_of_ones_own_that_takes_data_says_how_or_is_asked_to():
    x, target = data(1), goals(1)
    network = build(1, "frequency", kind="field", terms=[KnownWind()])
    measured = differences(network, x, target)
    assert np.max(np.abs(measured - differences(network.replace(terms=()), x, target))) > 0.01
    for method, promised in PROMISED.items():
        found = gradient_of(method, network, x, target).inputs
        np.testing.assert_allclose(found, measured, rtol=0, atol=promised * np.max(np.abs(measured)))
    network = build(1, "frequency", kind="field", terms=[Wind()])
    with pytest.raises(NotImplementedError, match="how data enters Wind: write its 'input_slope'"):
        gradient_of("adjoint", network, x, target)
    with pytest.raises(NotImplementedError, match="how data enters Wind: write its 'torch_in_frame'"):
        gradient_of("autograd", network, x, target)


@by_mode
def test_a_nudge_given_by_hand_is_judged_by_what_it_does_to_the_gradient_by_data(mode):
    network, x, target = build(3, mode), data(3), goals(3)
    exact = gradient_of("adjoint", network, x, target).inputs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pg.gradients.GradientWarning)
        strong = gradient_of("two_phase", network, x, target, beta=0.3)
    off = np.abs(strong.inputs - exact)
    assert np.max(off) > 1e-3 * np.max(np.abs(exact))
    np.testing.assert_allclose(strong.error["inputs"], off, rtol=1e-6)


def shared(kind: str) -> tuple[pg.Network, np.ndarray, np.ndarray]:
    """Return a network whose parameters are shared, two images and targets; "turning" with the mean frequency."""
    rng = np.random.default_rng(0)
    x, target = rng.uniform(-1, 1, (2, 24)), rng.uniform(-0.5, 0.5, (2, 2))
    if kind == "turning":
        coupling, omega = rng.uniform(0.3, 0.6, LAYOUT.n_couplings), rng.normal(0.0, 0.1, LAYOUT.n_node_values)
        return pg.Network(LAYOUT, coupling, omega, input_scale=0.3), x, target
    modes = {"clamped": {"input_phase": np.pi / 2}, "driven": {"input_mode": "frequency", "input_phase": 0.0}}
    return network_on(LAYOUT, **modes[kind]), x, target


@pytest.mark.parametrize("kind", ["clamped", "driven", "turning"])
def test_every_pixel_has_a_slope_of_its_own_where_parameters_are_shared(kind):
    """By x one entry per pixel, by shared parameters one per value, in one question and in either units."""
    network, x, target = shared(kind)
    assert network.graph.pinned == (kind == "turning")
    measured = differences(network, x, target)
    largest, names = np.max(np.abs(measured)), ("coupling", "inputs", "omega")
    for frequencies in ("relative", "raw"):
        options = {"wrt": names, "frequencies": frequencies}
        exact = gradient_of("adjoint", network, x, target, **options)
        for method, promised in PROMISED.items():
            gradient = gradient_of(method, network, x, target, **options)
            off = np.abs(gradient.inputs - measured)
            assert gradient.inputs.shape == (2, 24)
            assert np.max(off) <= promised * largest, method
            assert np.all(off <= gradient.error["inputs"] + 1e-7 * largest), method
            for name in ("coupling", "omega"):
                assert gradient[name].shape == (2, network.parameters[name].size)
                far = np.max(np.abs(gradient[name] - exact[name]))
                assert far <= promised * np.max(np.abs(exact[name])), (method, name)
                np.testing.assert_array_less(gradient.relative_error(name), 10 * promised)


@pytest.mark.parametrize("kind", ["clamped", "driven", "turning"])
def test_data_does_not_mind_whether_parameters_are_shared(kind):
    """Edge by edge the network is the same, and so are the slopes by pixels and what is stated of them."""
    network, x, target = shared(kind)
    for method in ("adjoint", "centred", "autograd"):
        tied, untied = (gradient_of(method, each, x, target) for each in (network, network.untied()))
        np.testing.assert_array_equal(tied.inputs, untied.inputs)
        np.testing.assert_array_equal(tied.error["inputs"], untied.error["inputs"])


@by_method
def test_where_clamped_inputs_sit_does_not_matter_but_for_its_rounding(method):
    """Data far away that the phase at x = 0 brings back clamps the same phases, and the digits it costs are stated."""
    network, far = build(0, "phase"), 2.0**20
    x, target = np.array([1, -3, 2]) / 4, goals(0)
    truth = gradient_of("adjoint", network, x, target).inputs
    moved = network.replace(input_phase=-network.input_scale * far)
    gradient = gradient_of(method, moved, x + far, target)
    off = np.abs(gradient.inputs - truth)
    assert np.max(off) > 1e-12
    assert np.all(off <= gradient.error["inputs"])
