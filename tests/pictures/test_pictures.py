"""`plot` of networks, states, gradients, histories and models: what is drawn is what they hold, on the axes given."""

import dataclasses
import re
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection, QuadMesh
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import phasegrad as pg
from phasegrad.pictures import COLOURS, CYCLE, ROLES, arrange, draw_words, fit, on_dark, panels, picture, style

mpl.use("Agg")
SAMPLES = np.array([[0.8, -0.6], [-0.2, 0.5], [0.1, 0.9]])
TARGET = [-0.2, 0.2]


@pytest.fixture(scope="module")
def network():
    return pg.layered(2, 5, 2, seed=0)


@pytest.fixture(scope="module")
def state(network):
    return pg.find_equilibrium(network, SAMPLES)


@pytest.fixture(scope="module")
def gradients(network, state):
    question = (network, state, pg.PhaseTargets(), TARGET)
    wrt = ["omega", "coupling"]
    return pg.two_phase(*question, beta=0.01, wrt=wrt), pg.adjoint(*question, wrt=wrt)


@pytest.fixture(scope="module")
def training():
    networks = [pg.initial.spectral_frequencies(pg.layered(2, 5, 2, seed=seed)) for seed in range(3)]
    data = [pg.datasets.vowels(["a", "i"], seed=seed) for seed in range(3)]
    return pg.train(networks, data, pg.Plan.paper(epochs=4, evaluate_every=2)), data[0]


@pytest.fixture(scope="module")
def everything(network, state, gradients, training):
    """Every call of `plot` that there is."""
    result, data = training
    model, ring = pg.Model.from_training(result, data), pg.networks.ring(6)
    table = pg.check_gradients(network, state, pg.PhaseTargets(), TARGET, methods=["adjoint", "two_phase", "centred"])
    raw = data.x_test if data.scaling is None else data.scaling.invert(data.x_test)
    return {
        "network": network.plot,
        "hands": lambda ax=None: network.plot(ax, phases=state.phases[0]),
        "dots": lambda ax=None: network.plot(ax, phases=state.phases[0], nodes="dots"),
        "circle": state.plot,
        "stress": lambda ax=None: state.plot(ax, kind="stress"),
        "gradient": lambda ax=None: gradients[0].plot(ax, against=gradients[1]),
        "table": table.plot,
        "states": pg.find_equilibria(ring, starts=10).plot,
        "critical": pg.critical_scale(network.replace(omega=np.linspace(-1, 1, 9))).plot,
        "history": result.history.plot,
        "training": lambda ax=None: result.plot(ax, score="loss"),
        "answers": lambda ax=None: model.plot(raw, data.y_test, ax),
        "outputs": lambda ax=None: model.plot(raw, [data.classes[y] for y in data.y_test], ax, kind="circle"),
    }


NAMES = (
    "network", "hands", "dots", "circle", "stress", "gradient", "table", "states", "critical", "history", "training",
    "answers", "outputs",
)  # fmt: skip


@pytest.fixture
def axes():
    return Figure(layout="constrained").subplots()


def collection(axes, label):
    (found,) = [each for each in axes.collections if each.get_label() == label]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_axes_in_are_axes_out_and_new_ones_belong_to_pyplot(everything, axes, name):
    import matplotlib.pyplot as plt

    plt.close("all")
    own = plt.figure()
    before = dict(mpl.rcParams)
    assert everything[name](axes) is axes
    assert axes.has_data()
    made = everything[name]()
    assert made.figure is not own
    assert plt.fignum_exists(own.number)
    assert plt.fignum_exists(made.figure.number)
    assert dict(mpl.rcParams) == before
    made.figure.draw_without_rendering()  # which lays it out
    frame, (width, height) = made.figure.get_tightbbox(), made.figure.get_size_inches()
    assert min(frame.x0, frame.y0, width - frame.x1, height - frame.y1) > -0.05
    plt.close("all")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Figure(), "Got Figure instead"),
        ([1, 2], "Got list instead"),
        ("red", "Got str instead"),
        (Figure().add_subplot(projection="polar"), "Got polar axes instead"),
    ],
    ids=["figure", "list", "word", "polar"],
)
def test_what_is_no_axes_is_refused_in_a_sentence(everything, name, given, words):
    with pytest.raises(TypeError, match=rf"The 'ax' parameter of \w+\.plot must be plain matplotlib Axes.*{words}"):
        everything[name](given)


@pytest.mark.parametrize("name", NAMES)
def test_without_matplotlib_the_error_names_the_extra(everything, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"Drawing needs matplotlib, .* pip install '\.\[plot\]'"):
        everything[name]()


class TestNetworks:
    def test_hands_point_at_the_phases(self, network, state, axes):
        network.plot(axes, phases=state.phases[1])
        hands = np.array(collection(axes, "_hands").get_segments())
        along = hands[:, 1] - hands[:, 0]
        np.testing.assert_allclose(np.arctan2(along[:, 1], along[:, 0]), state.phases[1], atol=1e-12)
        faces = [to_hex(patch.get_facecolor()).upper() for patch in axes.patches]
        assert faces == [ROLES["input"]] * 2 + [ROLES["hidden"]] * 5 + [ROLES["output"]] * 2

    def test_without_phases_edges_are_as_wide_as_their_coupling(self, network, axes):
        network.plot(axes)
        widths = collection(axes, "_edges").get_linewidths()
        assert np.array_equal(np.argsort(widths, kind="stable"), np.argsort(network.coupling, kind="stable"))
        assert axes.get_title(loc="left") == f"9 oscillators, {network.n_edges} edges (width: coupling)"

    def test_edges_are_as_wide_as_their_stress(self, network, state, axes):
        network.plot(axes, phases=state.phases[0])
        phases, (i, j) = state.phases[0], network.edges.T
        stress = np.abs(np.sin(phases[j] - phases[i]))
        widths = collection(axes, "_edges").get_linewidths()
        assert np.array_equal(np.argsort(widths), np.argsort(stress))
        assert f"up to {stress.max():.0%}" in axes.get_title(loc="left")
        lines = np.array(collection(axes, "_edges").get_segments())
        centres = np.array([patch.center for patch in axes.patches])
        np.testing.assert_array_equal(lines, centres[network.edges])

    def test_without_a_state_edges_are_as_wide_as_their_coupling(self, axes):
        mixed = pg.networks.ring(5, signed=True, coupling=[-1.0, 0.5, 2.0, 1.0, 3.0], omega=0.0)
        mixed.plot(axes)
        edges = collection(axes, "_edges")
        widths = edges.get_linewidths()
        assert np.array_equal(np.argsort(widths), np.argsort(np.abs(mixed.coupling)))
        dashed = [pattern is not None for _, pattern in edges.get_linestyle()]
        assert dashed == (mixed.coupling < 0).tolist()

    def test_layers_stand_in_columns_a_ring_on_a_circle_a_mesh_as_a_mesh(self, network):
        places = arrange(network.size, network.edges, network.inputs, network.outputs)
        assert len(set(places[[0, 1], 0])) == len(set(places[2:7, 0])) == len(set(places[7:, 0])) == 1
        assert places[0, 0] < places[2, 0] < places[7, 0]
        ring = pg.networks.ring(7)
        around = arrange(7, ring.edges)
        np.testing.assert_allclose(np.linalg.norm(around, axis=1), np.linalg.norm(around[0]))
        sides = np.linalg.norm(np.subtract(*around[ring.edges.T]), axis=1)
        np.testing.assert_allclose(sides, sides[0])
        mesh = pg.networks.lattice(4, 4)
        lengths = np.linalg.norm(np.subtract(*arrange(mesh.size, mesh.edges)[mesh.edges.T]), axis=1)
        assert lengths.max() < 2 * lengths.min()

    def test_many_oscillators_are_discs_whose_colour_is_the_phase(self, axes):
        many = pg.networks.ring(60)
        phases = np.linspace(-np.pi, np.pi, 60, endpoint=False)
        many.plot(axes, phases=phases)
        np.testing.assert_allclose(collection(axes, "_nodes").get_array(), phases)
        assert not [each for each in axes.collections if each.get_label() == "_hands"]
        assert [line.get_label() for line in axes.collections] == ["_edges", "_nodes"]

    def test_a_parameter_can_be_the_colour(self, network, axes):
        shown = network.replace(omega=np.arange(9.0) - 4)
        shown.plot(axes, colour="omega")
        np.testing.assert_array_equal(collection(axes, "_nodes").get_array(), shown.omega)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"colour": "mauve"}, "'colour' parameter of Network.plot must be one of 'role', 'omega'. Got 'mauve'"),
            ({"colour": "phase"}, "must be one of 'role', 'omega'"),
            ({"nodes": "hands"}, "Hands point at phases. Give them"),
            ({"nodes": "clocks"}, "'nodes' parameter of Network.plot must be one of 'auto', 'hands', 'dots'"),
            ({"phases": [1.0, 2.0]}, "must have shape (9,), or be one number. Got shape (2,)"),
            ({"phases": np.zeros(9), "colour": "omega"}, "Take nodes='dots'"),
            ({"places": np.zeros((9, 3))}, "must have shape (9, 2)"),
        ],
    )
    def test_what_cannot_be_drawn_is_said(self, network, options, words):
        with pytest.raises(ValueError, match=re.escape(words)):
            network.plot(**options)

    def test_a_network_too_large_for_hands_or_places_says_what_to_do(self):
        many = pg.networks.ring(41)
        with pytest.raises(ValueError, match=r"up to 40 oscillators. Got 41: take nodes='dots'"):
            many.plot(phases=np.zeros(41), nodes="hands")
        more = pg.networks.random_regular(502, 3, seed=0)
        with pytest.raises(ValueError, match=r"up to 500 oscillators without layers. Got 502: give 'places'"):
            more.plot()
        assert more.plot(Figure().subplots(), places=np.random.default_rng(0).normal(size=(502, 2))) is not None
        with pytest.raises(ValueError, match=r"draws up to 20000 edges. Got 20100"):
            pg.networks.complete(201).plot()


class TestStates:
    def test_every_oscillator_has_a_circle_with_a_point_per_sample(self, state, axes):
        state.plot(axes)
        filled = [each for each in axes.collections if len(each.get_facecolors())]
        points = [each.get_offsets().data for each in filled]
        assert [len(each) for each in points] == [3] * 9
        for node, each in enumerate(points):
            np.testing.assert_allclose(np.arctan2(each[:, 1], each[:, 0]), state.phases[:, node], atol=1e-12)

    def test_a_state_that_is_not_stable_is_hollow(self, axes):
        ring = pg.networks.ring(5)
        upside_down = pg.find_equilibrium(ring, start=[0, np.pi, 0, np.pi, np.pi], solver="newton")
        assert not upside_down.stable
        upside_down.plot(axes)
        assert all(len(each.get_facecolors()) == 0 for each in axes.collections if len(each.get_offsets()))
        assert "hollow" in axes.get_title(loc="left")

    def test_many_oscillators_share_a_circle_per_role(self, axes):
        state = pg.find_equilibrium(pg.layered(3, 20, 2, seed=0), [0.1, 0.2, -0.3])
        state.plot(axes)
        assert [text.get_text() for text in axes.texts] == ["input", "hidden", "output"]

    def test_stress_is_the_largest_angle_of_every_edge_in_order(self, network, state, axes):
        state.plot(axes, kind="stress")
        i, j = network.edges.T
        angles = np.abs(state.phases[:, j] - state.phases[:, i]).max(axis=0)
        heights = [bar.get_height() for bar in axes.patches]
        np.testing.assert_allclose(heights, np.sort(angles)[::-1])
        first = network.edges[np.argmax(angles)]
        assert axes.get_xticklabels()[0].get_text() == f"{first[0]}-{first[1]}"

    def test_what_has_no_picture_is_said(self, state):
        with pytest.raises(ValueError, match=r"'kind' parameter of Equilibrium.plot must be one of 'circle', 'stress'"):
            state.plot(kind="bars")
        lost = pg.find_equilibrium(pg.networks.ring(5, omega=[0, 0, 9, 0, 0]))
        with pytest.raises(ValueError, match=r"No sample of this equilibrium converged"):
            lost.plot(kind="stress")
        with pytest.raises(ValueError, match=r"nothing gives way"):
            pg.critical_scale(pg.networks.ring(4)).plot()

    def test_basins_are_the_shares_and_what_ended_elsewhere(self, axes):
        found = pg.find_equilibria(pg.networks.ring(12), starts=60)
        found.plot(axes)
        heights = np.array([bar.get_height() for bar in axes.patches])
        np.testing.assert_allclose(heights, found.share)
        names = [label.get_text() for label in axes.get_xticklabels()]
        assert names == [f"{turns:+d}" for turns in found.winding[:, 0]]
        axes.clear()
        rest = dataclasses.replace(found, energy=None, share=found.share / 2, unstable=30)
        rest.plot(axes)
        assert axes.patches[-1].get_height() == pytest.approx(0.5)
        assert axes.get_xticklabels()[-1].get_text() == "others"

    def test_the_mode_marks_what_breaks_away(self, network, axes):
        found = pg.critical_scale(network.replace(omega=np.linspace(-1, 1, 9)))
        found.plot(axes)
        np.testing.assert_allclose([bar.get_height() for bar in axes.patches], found.mode)
        marked = [k for k, bar in enumerate(axes.patches) if to_hex(bar.get_facecolor()).upper() == COLOURS["failure"]]
        assert marked == sorted(found.oscillators.tolist())


class TestGradients:
    def test_bars_are_the_mean_gradient_and_diamonds_the_other(self, gradients, axes):
        nudged, exact = gradients
        nudged.plot(axes, parameter="coupling", against=exact)
        bars = [bar.get_height() for bar in axes.patches][: nudged.coupling.shape[-1]]
        np.testing.assert_allclose(bars, nudged.coupling.mean(axis=0))
        (diamonds,) = [line for line in axes.lines if line.get_marker() == "D"]
        np.testing.assert_allclose(diamonds.get_ydata(), exact.coupling.mean(axis=0))
        assert {text.get_text() for text in axes.get_legend().get_texts()} == {"two_phase", "adjoint"}

    def test_stated_errors_are_drawn(self, gradients, axes):
        nudged = gradients[0]
        nudged.plot(axes)
        (errors,) = [each for each in axes.collections if isinstance(each, LineCollection)]
        ends = np.array(errors.get_segments())
        np.testing.assert_allclose((ends[:, 1, 1] - ends[:, 0, 1]) / 2, nudged.error["omega"].mean(axis=0), atol=1e-15)

    def test_what_cannot_be_compared_is_said(self, network, state, gradients):
        with pytest.raises(
            ValueError, match=r"'parameter' parameter of Gradient.plot must be one of 'omega', 'coupling'"
        ):
            gradients[0].plot(parameter="field_strength")
        with pytest.raises(TypeError, match=r"must be another Gradient. Got 'adjoint'"):
            gradients[0].plot(against="adjoint")
        other = pg.layered(2, 4, 2, seed=0)
        smaller = pg.adjoint(other, pg.find_equilibrium(other, SAMPLES), pg.PhaseTargets(), TARGET)
        with pytest.raises(ValueError, match=r"as many entries. Got 9 and 8"):
            gradients[0].plot(against=smaller)
        lost = pg.networks.ring(5, omega=[0, 0, 9, 0, 0], outputs=[2])
        with pytest.warns(pg.gradients.GradientWarning):
            none = pg.adjoint(lost, pg.find_equilibrium(lost), pg.PhaseTargets(), [0.0])
        with pytest.raises(ValueError, match=r"no sample has a gradient"):
            none.plot()

    def test_the_table_shows_what_it_prints(self, network, state, axes):
        table = pg.check_gradients(network, state, pg.PhaseTargets(), TARGET, methods=["adjoint", "two_phase"])
        table.plot(axes, parameter="coupling")
        numbers = table.agreement("coupling")
        assert numbers[0, 1] == 1 - table.cosine["coupling"][0, 1]
        assert numbers[1, 0] == table.relative_error["coupling"][1, 0]
        assert numbers[1, 1] == table.stated_error["coupling"][1]
        assert [text.get_text() for text in axes.texts] == [f"{number:.0e}" for number in numbers.ravel()]
        (mesh,) = [each for each in axes.collections if isinstance(each, QuadMesh)]
        shades = np.asarray(mesh.get_array()).ravel()
        assert np.array_equal(np.argsort(shades), np.argsort(numbers.ravel()))
        assert axes.yaxis_inverted()


class TestLearning:
    def test_curves_are_those_of_the_history_with_their_mean(self, training, axes):
        history = training[0].history
        history.plot(axes)
        drawn = [line for line in axes.lines if line.get_linewidth() < 1]
        given = np.concatenate([history.train_accuracy, history.test_accuracy])
        np.testing.assert_allclose([line.get_ydata() for line in drawn], 100 * given)
        (test,) = [line for line in axes.lines if line.get_label() == "test"]
        np.testing.assert_allclose(test.get_ydata(), 100 * history.test_accuracy.mean(axis=0))
        np.testing.assert_array_equal(test.get_xdata(), history.epoch)

    def test_a_cost_without_classes_has_a_loss_only(self, axes):
        x = np.linspace(-1, 1, 12)[:, None]
        plan = pg.Plan(learn="omega", learning_rate=0.01, objective=pg.PhaseTargets(), epochs=2)
        result = pg.train(pg.layered(1, 3, 1, seed=0), (x, 0.1 * x), plan)
        result.plot(axes)
        assert axes.get_ylabel() == "mean cost"
        with pytest.raises(ValueError, match=r"no accuracy: its cost is not for classes. Take score='loss'"):
            result.plot(score="accuracy")

    def test_an_unknown_score_is_refused(self, training):
        with pytest.raises(ValueError, match=r"'score' parameter of History.plot must be one of 'accuracy', 'loss'"):
            training[0].plot(score="speed")


class TestModels:
    @pytest.fixture
    def given(self, training):
        result, data = training
        raw = data.x_test if data.scaling is None else data.scaling.invert(data.x_test)
        return pg.Model.from_training(result, data), raw, data.y_test

    def test_the_confusion_matrix_counts_answers(self, given, axes):
        model, x, y = given
        model.plot(x, y, axes)
        labels = model.predict(x).labels
        counts = [[int(np.sum((y == i) & (labels == j))) for j in range(2)] for i in range(2)]
        shown = [text.get_text() for text in axes.texts]
        assert shown == [str(count or "") for row in counts for count in row]
        assert f"accuracy {np.mean(labels == y):.1%}" in axes.get_title(loc="left")

    def test_outputs_on_the_circle_are_filled_where_the_class_is_true(self, given, axes):
        model, x, y = given
        model.plot(x, y, axes, kind="circle")
        phases = model.predict(x).equilibrium.phases[:, list(model.network.outputs)]
        filled = [each for each in axes.collections if isinstance(each, PathCollection) and len(each.get_facecolors())]
        for k, each in enumerate(filled):
            points = each.get_offsets().data
            np.testing.assert_allclose(np.arctan2(points[:, 1], points[:, 0]), phases[y == k, k], atol=1e-12)
            assert to_hex(each.get_facecolors()[0]).upper() == CYCLE[k]

    def test_answers_that_are_numbers_are_drawn_against_the_true_ones(self, axes):
        network = pg.layered(1, 3, 1, seed=0)
        model = pg.Model(network, pg.PhaseTargets(), ("y",), ("x",))
        x = np.linspace(-1, 1, 5)[:, None]
        model.plot(x, x[:, 0] / 10, axes)
        points = axes.collections[0].get_offsets().data
        np.testing.assert_allclose(points, np.stack([x[:, 0] / 10, model.predict(x).values[:, 0]], axis=1))
        with pytest.raises(ValueError, match=r"true values of shape \(5, 1\). Got \(4, 1\)"):
            model.plot(x, np.zeros(4))

    @pytest.mark.parametrize("wrong", [[5] * 55, ["o"] * 55, [0] * 3])
    def test_wrong_classes_are_named(self, given, wrong):
        model, x, _ = given
        with pytest.raises(ValueError, match=r"'y' parameter of Model.plot must be 55 answers, each of a, i or its"):
            model.plot(x, wrong)


def test_words_lie_beside_what_they_would_cover():
    with style():
        figure, (axes,) = panels(4, 4)
        places = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
        fit(axes, places, 0.2)
        draw_words(axes, places[:2], ["26", "15°"], taken=places, radii=np.full(4, 12.0))
        picture(figure, "png")
    centres = axes.transData.transform(places)
    for text in axes.texts:
        box = text.get_window_extent()
        gap = np.maximum(np.maximum(box.min - centres, centres - box.max), 0)
        assert np.all(np.linalg.norm(gap, axis=1) > 10)
    first, second = (text.get_window_extent() for text in axes.texts)
    assert not first.overlaps(second)


class TestDark:
    @staticmethod
    def luminance(colour: str) -> float:
        given = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
        linear = np.where(given <= 0.04045, given / 12.92, ((given + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    def test_every_colour_stands_out_from_the_dark_page(self):
        """Marks reach the ratio of 3 to the page that WCAG asks for graphics."""
        page = self.luminance(on_dark(b"#ffffff").decode())
        for colour in {*COLOURS.values(), *CYCLE[:-1], *ROLES.values(), "#000000", "#555555"} - {ROLES["hidden"]}:
            turned = on_dark(colour.encode()).decode()
            assert (self.luminance(turned) + 0.05) / (page + 0.05) > 3, colour
        assert on_dark(b"#000000") == b"#e3e7ec"

    def test_nothing_but_colours_changes(self):
        with style():
            figure, (axes,) = panels(2, 2)
            axes.plot([0, 1], [0, 1], color=COLOURS["omega"])
        light = picture(figure, "svg")
        dark = on_dark(light)
        assert b"#ffffff" not in dark
        assert dark.count(b'<svg fill="#e3e7ec"') == 1, "words have no colour of their own"
        colours = re.compile(rb"#[0-9a-fA-F]{6}\b")
        assert colours.sub(b"", dark.replace(b'fill="#e3e7ec" ', b"")) == colours.sub(b"", light)
