"""Networks with shared parameters: the same physics as edge by edge, gradients collected, training, files, builders."""

import copy
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from random_layouts import inputs_of, layouts, network_on

import phasegrad as pg
from phasegrad import _files
from phasegrad.dynamics import assemble
from phasegrad.gradients import MeanGradient, Propagation
from phasegrad.training import prepare

SMALL = pg.networks.Layout(
    [(1, 4, 5), (2, 2, 3), (3,)], [pg.networks.Link(0, 1, 3, 2, 1), pg.networks.Link(1, 2), pg.networks.Link(0, 2)]
)
ALL = ("coupling", "omega", "field_strength", "field_phase")


def collected(network: pg.Network, gradient, name: str) -> np.ndarray:
    """Return a gradient of the untied network as one of the network, written without the package's own sums."""
    layout = network.graph.layout
    index = layout.coupling_of if name.startswith("coupling") else layout.value_of
    total = np.zeros((len(gradient[name]), network.parameters[name].size))
    for b, slopes in enumerate(gradient[name]):
        np.add.at(total[b], index, slopes)
    return total


@given(layouts())
def test_force_energy_and_equilibrium_are_those_of_the_untied_network(layout):
    network = network_on(layout)
    untied, x = network.untied(), inputs_of(network, 3)
    assert untied.graph.layout is None
    assert np.array_equal(untied.coupling, network.coupling[layout.coupling_of])
    phases = np.random.default_rng(2).uniform(-1, 1, (3, layout.size))
    for question in (pg.dynamics.force, pg.dynamics.energy, pg.dynamics.laplacian):
        assert np.array_equal(question(network, phases, x), question(untied, phases, x))
    states = [pg.find_equilibrium(each, x) for each in (network, untied)]
    assert np.array_equal(states[0].phases, states[1].phases)
    assert np.all(states[0].stable)
    assert np.allclose(states[0].phases[:, layout.nodes[0]], 0.4 + 0.8 * x)


def test_the_force_of_a_convolution_is_pytorchs():
    torch = pytest.importorskip("torch")
    network, rng = network_on(SMALL), np.random.default_rng(0)
    phases = rng.uniform(-1, 1, SMALL.size)
    z = torch.polar(torch.ones(SMALL.size, dtype=torch.float64), torch.tensor(phases))
    kernel, dense, across = (torch.tensor(each).to(z.dtype) for each in SMALL.weights(network.coupling))
    first, second, third = (z[part] for part in SMALL.nodes)
    image, middle = first.reshape(1, 1, 4, 5), second.reshape(1, 2, 2, 3)
    conv = torch.nn.functional.conv2d(image, kernel, stride=2, padding=1).ravel() + dense @ third
    seen = [across @ third, conv, second @ dense + first @ across]
    seen[0] = seen[0] + torch.nn.functional.conv_transpose2d(middle, kernel, None, 2, 1, (1, 0)).ravel()
    field = (network.field_strength * np.exp(1j * network.field_phase))[SMALL.value_of]
    pull = np.imag((torch.cat(seen).numpy() + field) * np.exp(-1j * phases)) + network.omega[SMALL.value_of]
    x = (phases[SMALL.nodes[0]] - 0.4) / 0.8
    assert np.abs(pg.dynamics.force(network, phases, x) - pull).max() < 1e-12


class TestGradients:
    def question(self, **options):
        network = network_on(SMALL, **options)
        x = inputs_of(network, 3)
        target = np.random.default_rng(3).uniform(-1, 1, (3, 3))
        return network, pg.find_equilibrium(network, x), pg.PhaseTargets(), target

    def test_all_six_methods_agree(self):
        pytest.importorskip("torch")
        question = self.question()
        table = pg.check_gradients(*question, wrt=ALL)
        assert len(table.methods) == 6
        for name in ALL:
            assert table.gradients["adjoint"][name].shape == (3, question[0].parameters[name].size)
            column = table.relative_error[name][:, 0]
            limits = {"two_phase": 1e-3, "centred": 1e-6, "finite_difference": 1e-6}
            assert all(off < limits.get(method, 1e-11) for off, method in zip(column, table.methods, strict=True))
            assert np.max(table.stated_error[name]) < 1e-3

    @pytest.mark.parametrize("method", [pg.adjoint, pg.centred, pg.gradients.holomorphic])
    def test_they_are_the_sums_over_those_who_share(self, method):
        network, state, cost, target = self.question()
        mine = method(network, state, cost, target, wrt=ALL)
        untied = network.untied()
        exact = pg.adjoint(untied, pg.find_equilibrium(untied, state.inputs), cost, target, wrt=ALL)
        for name in ALL:
            expected = collected(network, exact, name)
            assert np.abs(mine[name] - expected).max() <= np.max(mine.error[name]) < 1e-5 * np.abs(expected).max()
            assert np.any(expected)

    @pytest.mark.parametrize("frequencies", ["relative", "raw"])
    def test_frequencies_count_from_the_mean_over_all_oscillators(self, frequencies):
        """Without fields and clamps the frame turns with the mean, in which a channel weighs as its oscillators do."""
        layout = pg.networks.Layout(
            [(1, 3, 3), (2, 2, 2), (2,)], [pg.networks.Link(0, 1, kernel=2), pg.networks.Link(1, 2)]
        )
        network = pg.Network(layout, np.linspace(0.5, 1.5, layout.n_couplings), [0.1, 0.2, -0.1, 0.05, -0.3])
        x, target = inputs_of(network, 2) / 10, [[0.2, -0.1]]
        state = pg.find_equilibrium(network, x)
        options = {"wrt": ("omega", "coupling"), "frequencies": frequencies}
        table = pg.check_gradients(network, state, pg.PhaseTargets(), target, **options)
        for name in options["wrt"]:
            assert np.max(table.relative_error[name][:, 0]) < 1e-3
            assert table.relative_error[name][table.methods.index("finite_difference"), 0] < 1e-7
        exact = pg.adjoint(network.untied(), state, pg.PhaseTargets(), target, **options)
        assert np.allclose(table.gradients["adjoint"].omega, collected(network, exact, "omega"), atol=1e-13)

    def test_without_reciprocity_each_direction_is_shared(self):
        reverse = 0.1 * np.random.default_rng(9).standard_normal(SMALL.n_couplings)
        network, state, cost, target = self.question(coupling_reverse=reverse)
        wrt = ("coupling", "coupling_reverse")
        mine = pg.adjoint(network, state, cost, target, wrt=wrt)
        untied = network.untied()
        exact = pg.adjoint(untied, pg.find_equilibrium(untied, state.inputs), cost, target, wrt=wrt)
        measured = pg.gradients.finite_difference(network, state, cost, target, wrt=wrt)
        for name in wrt:
            assert np.allclose(mine[name], collected(network, exact, name), atol=1e-13)
            assert np.allclose(mine[name], measured[name], atol=1e-7)

    @pytest.mark.parametrize("method", ["two_phase", "centred", "adjoint", "finite_difference"])
    def test_the_mean_gradient_is_collected_too(self, method):
        network, state, cost, target = self.question()
        system = assemble(network, state.inputs, 3)
        outputs, limits = np.array(network.outputs), np.full(3, 1e-10)
        mean = MeanGradient(network, system, state.phases, cost, outputs, target, limits=limits)
        share = np.array([[0.2, 0.5, 0.3]])
        sums, used = mean.take(share, ALL, by=Propagation(method, 1e-4), frequencies="relative")
        exact = pg.adjoint(network, state, cost, target, wrt=ALL)
        assert np.all(used)
        for name in ALL:
            expected = share @ exact[name]
            assert np.abs(sums[name] - expected).max() < (1e-3 if method == "two_phase" else 1e-5)
            assert sums[name].shape == (1, network.parameters[name].size)

    def test_a_stated_error_covers_the_sum(self):
        network, state, cost, target = self.question()
        gradient = pg.two_phase(network, state, cost, target, beta=0.01, wrt=ALL)
        exact = pg.adjoint(network, state, cost, target, wrt=ALL)
        for name in ALL:
            off = np.abs(gradient[name] - exact[name])
            assert np.all(off <= gradient.error[name])
            assert np.max(gradient.error[name]) < 2 * np.max(off)


class TestNetworks:
    def test_it_stays_what_it_is(self):
        network = network_on(SMALL)
        for other in (copy.copy(network), copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
            assert other == network
            assert other.graph.layout == SMALL
        assert network.replace(coupling=0.5).coupling.tolist() == [0.5] * SMALL.n_couplings
        assert network.replace(omega=0.1).graph is network.graph
        scaled = network.replace(input_scale=2.0, input_phase=0.0)
        assert scaled.graph.layout is SMALL
        assert scaled != network
        assert network != network.untied()
        other = pg.networks.Layout(SMALL.shapes, SMALL.links[::-1])
        assert not network.graph.alike(network_on(other).graph)
        assert (network.inputs, network.outputs) == (tuple(range(20)), (32, 33, 34))
        assert "layers 1x4x5 - 2x2x3 - 3, 20 inputs as clamped phases, 3 outputs" in repr(network)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"inputs": (0, 1)}, "The 'inputs' of a Network with a layout are its first layer, nodes 0 to 19"),
            ({"outputs": (0,)}, "The 'outputs' of a Network with a layout are its last layer, nodes 32 to 34"),
            ({"coupling": np.ones(3)}, r"'coupling' parameter of Network must have shape \(114,\)"),
            ({"omega": np.ones(35)}, r"'omega' parameter of Network must have shape \(6,\)"),
            ({"coupling": -1.0, "signed": False}, r"coupling of weight \(0, 0, 0, 0\) of the link from layer 0 to 1"),
            ({"field_strength": [1, 1, -1, 1, 1, 1], "signed": False, "coupling": 1.0}, "at channel 1 of layer 1 has"),
            ({"field_strength": [1, 1, 1, 1, 1, -1], "signed": False, "coupling": 1.0}, "at node 2 of layer 2 has"),
            ({"input_mode": "frequency"}, "needs input_mode='phase'. Got 0.4 with input_mode='frequency'"),
            ({"input_phase": [0.1, 0.2]}, "'input_phase' parameter of Network must have shape"),
            ({"input_phase": np.nan}, "'input_phase' parameter of Network must be finite"),
        ],
    )
    def test_what_does_not_fit_is_refused_in_words(self, options, message):
        with pytest.raises(ValueError, match=message):
            network_on(SMALL).replace(**options)

    def test_a_phase_of_the_inputs_turns_a_network_as_a_whole(self):
        network = pg.networks.signed_layers(3, 5, 2, rest=0.3, input_scale=0.7)
        turned = network.replace(input_phase=0.5, field_phase=network.field_phase + 0.5)
        x = inputs_of(network, 4)
        phases = [pg.find_equilibrium(each, x).phases for each in (network, turned)]
        assert np.allclose(np.exp(1j * (phases[1] - phases[0])), np.exp(0.5j), atol=1e-10)

    def test_what_solvers_keep_belongs_to_the_same_values(self):
        network = network_on(SMALL)
        state = pg.find_equilibrium(network, inputs_of(network, 2))
        assert state.workspace_of(network.replace(omega=0.2)) is state.system.workspace
        for change in ({"coupling": 1.01 * network.coupling}, {"field_phase": 0.1}):
            assert state.workspace_of(network.replace(**change)) is None

    def test_a_term_of_ones_own_is_shared_too(self):
        class Third(pg.terms.NodeField):
            every = (pg.terms.Parameter("third_strength"), pg.terms.Parameter("third_phase", default=0.0))
            interaction = pg.terms.OddSeries((0, 0, 1))

        network = network_on(SMALL, terms=[Third()], third_strength=np.linspace(0.1, 0.3, 6))
        state = pg.find_equilibrium(network, inputs_of(network, 2))
        question = network, state, pg.PhaseTargets(), [[0.1, 0.2, 0.3]]
        exact, measured = (f(*question, wrt="third_strength") for f in (pg.adjoint, pg.gradients.finite_difference))
        assert exact.third_strength.shape == (2, 6)
        assert np.allclose(exact.third_strength, measured.third_strength, atol=1e-8)

    def test_matrices_and_graphs_hold_what_each_edge_has(self):
        network = network_on(SMALL)
        assert np.array_equal(pg.networks.to_matrix(network), pg.networks.to_matrix(network.untied()))
        assert pg.from_networkx(pg.networks.to_networkx(network)) == network.untied()

    @pytest.mark.parametrize("mode", ["phase", "frequency"])
    def test_frequencies_may_begin_anywhere(self, mode):
        options = {"input_mode": mode, "input_phase": 0.4 if mode == "phase" else 0.0, "omega": 0.0}
        network = network_on(SMALL).replace(**options)
        found = [
            pg.initial.random_frequencies(network, seed=1),
            pg.initial.spectral_frequencies(network),
            pg.initial.output_frequencies(network, seed=1),
            pg.initial.multi_start_frequencies(network, inputs_of(network, 3), starts=3),
        ]
        for each in found:
            assert each.graph.layout is SMALL
            assert each.omega[0] == 0
            assert np.all(each.omega[[1, 2, 3, 5]] != 0)
            assert np.max(np.abs(each.omega)) <= 0.3 + 1e-12
        assert found[2].omega[3:].tolist() == [0.3, 0.0, -0.3]
        spectral = pg.initial.spectral_frequencies(network.untied()).omega
        mean = [spectral[SMALL.value_of == k].mean() for k in range(6)]
        assert np.allclose(found[1].omega, 0.3 * np.array(mean) / np.max(np.abs(mean)))


def stripes(count: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Noisy images of lines that lie or stand, flat."""
    rng = np.random.default_rng(0)
    labels, images = np.arange(count) % 2, 0.2 * rng.standard_normal((count, 6, 6)) - 0.5
    for image, label in zip(images, labels, strict=True):
        line = int(rng.integers(1, 5))
        image[(line, slice(None)) if label else (slice(None), line)] += 1.0
    return np.clip(images, -1, 1).reshape(count, 36), labels


class TestTraining:
    network = pg.layers((1, 6, 6), pg.Convolution(3, 3), pg.Dense(2, skip=[0]), output_gain=0.3)
    plan = pg.Plan.classifier(epochs=12, learning_rate=0.03)

    def test_a_convolution_learns(self):
        result = pg.train(self.network, stripes(), self.plan, engine="batch")
        assert result.history.train_loss[0, -1] < 0.6 * result.history.train_loss[0, 0]
        assert result.network.graph is self.network.graph
        assert result.network.coupling.shape == self.network.coupling.shape
        # Fields of the inputs belong to nobody.
        assert result.network.field_strength[0] == 0
        assert np.all(result.network.field_phase[1:] != self.network.field_phase[1:])

    def test_several_learn_in_lock_step_as_each_alone(self):
        small = [pg.layers((1, 4, 4), pg.Convolution(1, 3), pg.Dense(2), seed=seed) for seed in range(2)]
        x, y = stripes(12)
        x = x.reshape(12, 6, 6)[:, 1:5, 1:5].reshape(12, 16)
        together = pg.train(small, (x, y), self.plan, epochs=2, seed=3)
        for r, network in enumerate(small):
            alone = pg.train(network, (x, y), self.plan, epochs=2, seed=3 + r).network
            assert np.allclose(alone.coupling, together.networks[r].coupling, atol=1e-9)
        with pytest.raises(ValueError, match="has another topology than network 0"):
            pg.train([small[0], small[1].replace(input_phase=0.0)], (x, y), self.plan)

    def test_the_lanes_refuse_it_in_a_sentence(self):
        options = {"objective": pg.objectives.OneHotPhases(), "epochs": 1}
        with pytest.raises(ValueError, match="The lanes know no parameters that several edges or oscillators share"):
            prepare(self.network, stripes(), pg.Plan.paper(), engine="lanes", **options)

    def test_the_lanes_know_the_phase_of_the_inputs(self):
        network = pg.networks.signed_layers(2, 4, 2, input_scale=0.5).replace(input_phase=0.3)
        rng = np.random.default_rng(0)
        data = rng.uniform(-1, 1, (8, 2)), rng.uniform(-0.5, 0.5, (8, 2))
        plan = pg.Plan.paper(objective=pg.PhaseTargets(), learn=("coupling",), epochs=2, accept=None)
        found = [pg.train(network, data, plan, engine=engine).network for engine in ("lanes", "batch")]
        assert np.allclose(found[0].coupling, found[1].coupling, atol=1e-7)
        assert np.max(np.abs(found[0].coupling - network.coupling)) > 1e-3

    def test_masks_have_the_width_of_shared_values(self):
        mask = np.zeros(self.network.coupling.size, dtype=bool)
        mask[:5] = True
        result = pg.train(self.network, stripes(), self.plan, epochs=1, mask={"coupling": mask})
        assert np.array_equal(result.network.coupling != self.network.coupling, mask)

    def test_it_goes_on_from_a_file_as_if_it_had_not_stopped(self, tmp_path):
        whole = pg.train(self.network, stripes(), self.plan, epochs=3)
        half = pg.train(self.network, stripes(), self.plan, epochs=3, until=1)
        half.state.save(tmp_path / "state.npz")
        state = pg.training.TrainingState.load(tmp_path / "state.npz")
        assert pg.train(self.network, stripes(), self.plan, epochs=3, state=state).network == whole.network
        layout = self.network.graph.layout
        others = [
            self.network.replace(input_phase=1.0),
            self.network.replace(edges=pg.networks.Layout(layout.shapes, (layout.links[0], *layout.links[:0:-1]))),
        ]
        for other in others:
            with pytest.raises(ValueError, match="belongs to another training"):
                pg.train(other, stripes(), self.plan, epochs=3, state=state)


class TestFiles:
    @pytest.fixture
    def model(self) -> pg.Model:
        features = [f"x{k}" for k in range(20)]
        return pg.Model(network_on(SMALL), pg.objectives.OneHotPhases(), ("a", "b", "c"), features)

    def test_the_round_trip_is_exact(self, model, tmp_path):
        model.save(tmp_path / "model.npz")
        again = pg.Model.load(tmp_path / "model.npz")
        assert again.network == model.network
        assert again.network.graph.layout == SMALL
        assert again.network.input_phase == 0.4
        with np.load(tmp_path / "model.npz") as archive:
            assert "edges" not in archive
        x = inputs_of(model.network, 2)
        assert np.array_equal(again.predict(x).equilibrium.phases, model.predict(x).equilibrium.phases)

    def test_a_file_without_a_phase_of_the_inputs_still_loads(self, tmp_path):
        model = pg.Model(pg.networks.signed_layers(2, 3, 2), pg.objectives.OneHotPhases(), ("a", "b"), ("x", "y"))
        model.save(tmp_path / "model.npz")
        with np.load(tmp_path / "model.npz") as archive:
            arrays = dict(archive)
        header = json.loads(str(arrays.pop("header")))
        del header["network"]["input_phase"], arrays["digest"]
        assert "layout" not in header
        _files.write_archive(tmp_path / "old.npz", "model", header, arrays)
        assert pg.Model.load(tmp_path / "old.npz").network == model.network

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"layout": None}, "is a damaged model file"),
            ({"layout": {"shapes": [[3], [2]]}}, "it has no 'links'"),
            ({"layout": {"shapes": [[3], [2]], "links": [{"first": 0, "second": 1, "colour": 3}]}}, "'colour'"),
            ({"layout": {"shapes": [[3], [2]], "links": [{"first": 0, "second": 2}]}}, "names layer 2"),
            ({"layout": {"shapes": [[10**12], [2]], "links": [{"first": 0, "second": 1}]}}, "at most 4194304"),
            ({"layout": {"shapes": [[3], [2]], "links": [{"first": 0, "second": 1}]}}, "with a layout are its first"),
            ({"scalar": True}, "its parameters are not lists of numbers"),
        ],
    )
    def test_a_hostile_layout_ends_in_one_sentence(self, model, tmp_path, change, message):
        model.save(tmp_path / "model.npz")
        with np.load(tmp_path / "model.npz") as archive:
            arrays = dict(archive)
        if "scalar" in change:
            arrays["parameter.coupling"] = np.array(0.5)
        del arrays["digest"]
        header = {**json.loads(str(arrays.pop("header"))), **{k: v for k, v in change.items() if k == "layout"}}
        _files.write_archive(tmp_path / "model.npz", "model", header, arrays)
        with pytest.raises(ValueError, match="is a damaged model file: ") as error:
            pg.Model.load(tmp_path / "model.npz")
        assert message in str(error.value)


class TestLayers:
    def test_couplings_are_drawn_by_how_many_act(self):
        network = pg.layers((3, 20, 20), pg.Convolution(30, 5), pg.Dense(20), pg.Dense(50), gain=0.5, output_gain=0.2)
        layout = network.graph.layout
        assert layout.shapes == ((3, 20, 20), (30, 16, 16), (20,), (50,))
        drawn = zip(layout.weights(network.coupling), (75, 7680, 20), (0.5, 0.5, 0.2), strict=True)
        for weight, many, gain in drawn:
            assert abs(weight.std() * np.sqrt(many) / gain - 1) < 0.1
        few = [pg.layers(3, pg.Dense(4), seed=seed) for seed in (0, 0, 1)]
        assert few[0] == few[1]
        assert not np.any(few[0].coupling == few[2].coupling)

    def test_all_but_the_inputs_rest_in_a_field(self):
        network = pg.layers((2, 4, 4), pg.Convolution(3, 3), pg.Dense(2), field=0.7, rest=0.3)
        assert network.field_strength.tolist() == [0, 0, 0.7, 0.7, 0.7, 0.7, 0.7]
        assert network.field_phase.tolist() == [0, 0, 0.3, 0.3, 0.3, 0.3, 0.3]
        assert (network.input_mode, network.input_phase, network.input_scale) == ("phase", np.pi / 2, np.pi / 2)
        assert network.signed
        assert not np.any(network.omega)
        bare = pg.layers(3, pg.Dense(2), field=0.0, input_phase=0.1)
        assert bare.field_strength is None
        assert bare.input_phase == 0.1
        driven = pg.layers(3, pg.Dense(2), input_mode="frequency")
        assert (driven.input_phase, driven.input_scale) == (0.0, 1.5)

    def test_data_of_zero_leaves_everybody_at_rest(self):
        network = pg.layers((1, 5, 5), pg.Convolution(4, 3), pg.Dense(3))
        phases = pg.find_equilibrium(network, [np.zeros(25), np.ones(25), -np.ones(25)]).phases
        assert np.allclose(phases[0], np.pi / 2)
        moved = phases[1:, 25:] - np.pi / 2
        assert np.allclose(moved[0], -moved[1], atol=1e-10)
        assert np.min(np.abs(moved[0, :36])) > 1e-3

    def test_layers_are_skipped(self):
        middle = pg.Convolution(3, 3, stride=2, skip=[0])
        network = pg.layers((1, 6, 6), pg.Convolution(2, 3, padding=1), middle, pg.Dense(4, skip=[1, 0]))
        links = [(each.first, each.second, each.kernel) for each in network.graph.layout.links]
        assert links == [(0, 1, 3), (1, 2, 3), (0, 2, 3), (2, 3, None), (1, 3, None), (0, 3, None)]
        assert network.graph.layout.shapes == ((1, 6, 6), (2, 6, 6), (3, 2, 2), (4,))

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: pg.layers(3), "layers takes the shape of the inputs and at least one layer after them"),
            (lambda: pg.layers(3, 10), "such as Dense(10) or Convolution(32, 5). Got (10,)"),
            (lambda: pg.layers((3, 3), pg.Dense(2)), "must be a number of oscillators, or (channels, height, width)"),
            (lambda: pg.layers(9, pg.Convolution(2, 3)), "Got layer 0 of 9 nodes"),
            (lambda: pg.layers((1, 4, 4), pg.Dense(16), pg.Convolution(2, 3)), "Got layer 1 of 16 nodes"),
            (lambda: pg.layers((1, 4, 4), pg.Convolution(2, 5)), "A kernel of 5 x 5 does not fit into layer 0"),
            (lambda: pg.layers((1, 4, 4), pg.Dense(2, skip=[0])), "Layer 1 skips from layer 0, but only layers before"),
            (lambda: pg.layers(4, pg.Dense(2), pg.Dense(2, skip=[1])), "anyway, 1, can be skipped from: 0"),
            (
                lambda: pg.layers((1, 6, 6), pg.Convolution(2, 3), pg.Convolution(2, 3, skip=[0])),
                "Layer 2 is 2x2x2, but the same convolution of layer 0 would make it 2x4x4",
            ),
            (lambda: pg.Dense(0), "'size' parameter of Dense must be a whole number of at least 1"),
            (lambda: pg.Dense(2, skip=[0, 0]), "The 'skip' of Dense names a layer twice"),
            (lambda: pg.Convolution(2, 3, padding=-1), "'padding' parameter of Convolution must be a whole number"),
            (lambda: pg.Convolution(2, 3, skip="0"), "'skip' parameter of Convolution must be a whole number"),
            (lambda: pg.layers(3, pg.Dense(2), gain=-1), "'gain' parameter of layers must be a number, 0 or more"),
            (lambda: pg.layers(3, pg.Dense(2), omega=0.0), "layers sets 'omega' itself"),
            (lambda: pg.layers(3, pg.Dense(2), inputs=[0]), "are its first layer"),
        ],
    )
    def test_what_does_not_fit_is_refused_in_words(self, make, message):
        with pytest.raises((ValueError, TypeError)) as error:
            make()
        assert message in str(error.value)
