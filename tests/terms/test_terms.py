"""Terms of one's own and of the package: what a network takes, shares and refuses."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from own_terms import PATH, Tilt
from random_networks import KINDS, inputs_for, make_network, networks
from scipy.sparse import csgraph

import phasegrad as pg
from phasegrad.graphs import Graph
from phasegrad.terms import TERMS, Coupling, NodeField, Parameter


class Third(NodeField):
    """A term of one's own, as short as it can be: a pull at the third harmonic."""

    every = (Parameter("third_strength"), Parameter("third_phase", default=0.0))
    word = "third harmonic"
    interaction = pg.terms.OddSeries((0.0, 0.0, 1.0))


class More(Coupling):
    """Sine coupling once more, with a name of its own."""

    every = Parameter("more", "edges")


class Alike(Third):
    """Another term with the same names."""


def own_names(*names):
    """Return a term whose parameters have these names."""
    return type("Own", (Third,), {"every": tuple(Parameter(name, default=0.0) for name in names)})()


def small(**options):
    return pg.Network(PATH, 1.0, np.zeros(3), outputs=[2], **options)


def layers(seed=0, **options):
    return pg.layered(2, 4, 2, seed=seed, terms=[Third()], third_strength=0.3, **options)


def _pull_of_neighbours(term, graph, values, phases):
    """The force of a third harmonic, times what only shows among all oscillators."""
    return Third.force(term, graph, values, phases) * (1.0 if phases.shape[1] == graph.size else 0.5)


class TestOwnTerms:
    def test_every_gradient_method_takes_it(self):
        network = layers()
        equilibrium = pg.find_equilibrium(network, [[0.4, -0.2], [0.1, 0.3]])
        table = pg.check_gradients(network, equilibrium, pg.PhaseTargets(), [0.2, -0.2])
        assert set(table.relative_error) == {"omega", "coupling", "third_strength", "third_phase"}
        for name, errors in table.relative_error.items():
            assert errors.max() < 1e-3, name

    @pytest.mark.parametrize("solver", ["newton", "batch", "sparse", "flow"])
    def test_two_sine_couplings_are_their_sum(self, solver):
        rng = np.random.default_rng(0)
        base = pg.layered(2, 4, 2, seed=0)
        more, inputs = rng.uniform(0.1, 1.0, base.n_edges), rng.uniform(-0.3, 0.3, (3, 2))
        found = pg.find_equilibrium(base.replace(terms=[More()], more=more), inputs, solver=solver)
        expected = pg.find_equilibrium(base.replace(coupling=base.coupling + more), inputs)
        assert np.all(found.stable)
        np.testing.assert_allclose(found.phases, expected.phases, atol=1e-11)

    def test_networks_with_it_are_values_and_train_together(self):
        """Each network brings its own object; terms of one kind with the same settings are the same."""
        assert layers() == layers()
        assert Third() == Third()
        assert Third() != Alike()
        result = pg.train([layers(0), layers(1)], pg.datasets.xor(), learn="third_strength", epochs=2)
        for network, start in zip(result.networks, (layers(0), layers(1)), strict=True):
            assert np.any(network.third_strength != start.third_strength)

    def test_a_state_goes_on_and_a_model_file_says_that_it_cannot_hold_it(self, tmp_path):
        data = pg.datasets.xor()
        whole = pg.train(layers(), data, learn="third_strength", epochs=4)
        half = pg.train(layers(), data, learn="third_strength", epochs=4, until=2)
        half.state.save(tmp_path / "half.npz")
        rest = pg.train(
            layers(),
            data,
            learn="third_strength",
            epochs=4,
            state=pg.training.TrainingState.load(tmp_path / "half.npz"),
        )
        assert rest.network == whole.network
        with pytest.raises(ValueError, match="A model file holds the package's own terms only, not Third"):
            pg.Model.from_training(whole, data).save(tmp_path / "model.npz")
        assert not (tmp_path / "model.npz").exists()

    def test_it_survives_networkx_unless_it_lives_on_edges(self):
        assert pg.from_networkx(pg.networks.to_networkx(layers())) == layers()
        network = pg.layered(2, 4, 2, terms=[Tilt()], tilt=0.1)
        assert network.tilt.shape == (network.n_edges,)
        with pytest.raises(ValueError, match="carries couplings on its edges, not 'tilt'"):
            pg.networks.to_networkx(network)

    def test_only_autograd_needs_it_in_torch(self):
        network = pg.layered(2, 4, 2).replace(terms=[Tilt()], tilt=0.1)
        assert network.replace(terms=[Third()], third_strength=0.3) == layers()
        question = network, pg.find_equilibrium(network, [0.4, -0.2]), pg.PhaseTargets(), [0.2, -0.2]
        methods = ["adjoint", "centred", "holomorphic", "finite_difference"]
        table = pg.check_gradients(*question, wrt="tilt", methods=methods)
        assert table.relative_error["tilt"].max() < 1e-5
        with pytest.raises(NotImplementedError, match="the force of Tilt in PyTorch: write its 'torch_force', or use"):
            pg.gradients.autograd(*question)

    def test_a_term_that_is_zero_to_begin_with_is_taken(self):
        """What is to be learned may begin at zero, where the force and all its slopes are zero."""
        assert small(terms=[Tilt()], tilt=0.0).terms[-1] == Tilt()

    def test_names_stand_for_parameters_and_a_field_needs_no_word(self):
        named = type("Named", (NodeField,), {"every": ("a_strength", "a_phase")})
        assert named.every == (Parameter("a_strength"), Parameter("a_phase"))
        network = small(terms=[named()], a_strength=0.5, a_phase=0.1)
        assert repr(network) == "Network(3 oscillators, 2 edges, 1 output, Named, Sine(), gauge fixed from outside)"

    @pytest.mark.parametrize(
        ("kind", "name", "answer", "message"),
        [
            (Tilt, "force", lambda *_: np.zeros(3), r"Wrong.force must return shape \(2, 3\) .* Got \(3,\)"),
            (Tilt, "energy", lambda *_: 0.0, r"Wrong.energy must return shape \(2,\) .* Got \(\)"),
            (Tilt, "energy", lambda *_: np.zeros(2), "force is not minus the slope of Wrong.energy: .* rises by 0,"),
            (Third, "capacity", lambda *_: None, r"Wrong.capacity must be the most .* at random phases, by 0\."),
            (Tilt, "stiffness", lambda *_: np.ones((2, 3)), r"Wrong.stiffness must return a Stiffness\(.* Got array"),
            (Tilt, "stiffness", lambda *_: pg.terms.Stiffness(np.ones(2)), r"in each of its parts, must .* \(2, 2\)"),
            (Tilt, "stiffness", lambda *_: pg.terms.Stiffness(np.ones((1, 2))), "Wrong.stiffest must bound every part"),
            (
                Third,
                "stiffness",
                lambda *_: pg.terms.Stiffness(),
                "Wrong.stiffness is not minus the slope of Wrong.force",
            ),
            (Tilt, "energy_slopes", lambda *_: {"tlit": 0}, r"each parameter, \['tilt'\]. Got 'tlit'"),
            (Tilt, "force_slopes", lambda *_: None, r"Wrong.force_slopes must return one array by .* Got NoneType"),
            (Tilt, "force_slopes", lambda *_: {"tilt": np.ones(2)}, r"slopes\['tilt'\] must return shape \(2, 2\)"),
            (Third, "every", ("third_strength",), "Wrong must name two parameters in 'every', a strength and a phase"),
            (Tilt, "local", True, "local is True, but its parameters or its stiffness are not those of single nodes"),
            (Third, "force", _pull_of_neighbours, "Wrong.force of some of the oscillators is not what it is among all"),
            (Third, "harmonics", lambda *_: np.ones((2, 3, 1, 3)), "Wrong.harmonics are not those of Wrong.force"),
            (Tilt, "summed_contrast", lambda *_: {"tilt": np.ones((1, 2))}, "Wrong.summed_contrast of 'tilt' is not"),
            (Tilt, "summed_products", lambda *_: {}, "Wrong.summed_products of 'tilt' is not the sum of its slopes"),
            (Tilt, "every", (5,), r"Wrong must name its parameters: every = \(Parameter"),
        ],
    )
    def test_wrong_formulas_are_found_when_the_network_is_built(self, kind, name, answer, message):
        values = {"third_strength": 0.3} if kind is Third else {"tilt": 0.3}
        with pytest.raises((ValueError, TypeError), match=message):
            small(terms=[type("Wrong", (kind,), {name: answer})()], **values)

    def test_another_force_does_not_keep_the_harmonics_of_its_base(self):
        """All formulas agree, but compiled code would take the harmonics, which are those of half the force."""

        class Twice(Third):
            def force(self, graph, values, phases):
                return 2 * super().force(graph, values, phases)

            def energy(self, graph, values, phases):
                return 2 * super().energy(graph, values, phases)

            def stiffness(self, graph, values, phases):
                return pg.terms.Stiffness(diagonal=2 * super().stiffness(graph, values, phases).diagonal)

            def capacity(self, graph, values):
                return 2 * super().capacity(graph, values)

        with pytest.raises(ValueError, match=r"Twice\.harmonics are not those of Twice.force"):
            small(terms=[Twice()], third_strength=0.3)


class TestSharedGraph:
    @pytest.fixture
    def searches(self, monkeypatch):
        """Count everything that searches a graph or makes a new one."""
        calls = []

        def counted(owner, name):
            real = getattr(owner, name)
            monkeypatch.setattr(owner, name, lambda *args, **options: calls.append(name) or real(*args, **options))

        for name in ("connected_components", "breadth_first_order"):
            counted(csgraph, name)
        counted(Graph, "__init__")
        counted(Graph, "components_of")
        return calls

    @pytest.mark.parametrize("kind", KINDS)
    def test_replacing_any_parameter_shares_the_graph_and_searches_nothing(self, kind, searches):
        network = make_network(8, 3, kind=kind)
        searches.clear()
        for name, values in network.parameters.items():
            changed = network.replace(**{name: 1.1 * values})
            assert changed.graph is network.graph
            assert changed.replace(**{name: values}) == network
        everything = network.replace(**{name: 0.9 * values for name, values in network.parameters.items()})
        assert everything.graph is network.graph
        assert searches == []

    @pytest.mark.parametrize("kind", ["plain", "all terms", "non-reciprocal"])
    def test_longer_training_searches_the_graph_no_more_often(self, kind, searches):
        network = make_network(8, 3, kind=kind)
        network = network.replace(inputs=(1,)) if not network.inputs else network
        x = np.linspace(-1, 1, 6)[:, None]
        counts = []
        for epochs in (1, 6):
            searches.clear()
            done = pg.train(
                network,
                (x, np.hstack([x, -x])),
                objective=pg.PhaseTargets(),
                learn=["omega", "coupling"],
                epochs=epochs,
                batch_size=2,
                gradient="centred" if network.reciprocal else "adjoint",
            )
            assert done.network.graph is network.graph
            counts.append(len(searches))
        assert counts[0] == counts[1]

    def test_what_changes_the_graph_makes_a_new_one(self):
        network = make_network(8, 3)
        for change in ({"outputs": (3,)}, {"reference": 2}, {"field_strength": 1.0}, {"inputs": (1,)}):
            assert network.replace(**change).graph is not network.graph
        # A strength that vanishes joins nothing any more, and is found out.
        line = pg.Network(PATH, 1.0, np.zeros(3), signed=True)
        with pytest.raises(ValueError, match="disconnected"):
            line.replace(coupling=[1.0, 0.0])


@given(networks(kinds=("all terms",)), st.integers(1, 5), st.integers(0, 2**31))
def test_with_all_terms_at_once_a_batch_may_be_split_and_gradients_with_it(network, cut, seed):
    """Bitwise, by every parameter."""
    inputs, wrt = inputs_for(network, (6,), seed), tuple(network.parameters)
    target = np.random.default_rng(seed).uniform(-0.5, 0.5, (6, len(network.outputs)))

    def gradients(rows):
        found = pg.find_equilibrium(network, inputs[rows])
        return [method(network, found, pg.PhaseTargets(), target[rows], wrt=wrt) for method in (pg.adjoint, exactly)]

    def exactly(*question, wrt):
        return pg.centred(*question, wrt=wrt, beta=1e-3)

    whole, parts = gradients(slice(None)), (gradients(slice(cut)), gradients(slice(cut, None)))
    for k, gradient in enumerate(whole):
        for name in wrt:
            np.testing.assert_array_equal(gradient[name], np.concatenate([part[k][name] for part in parts]), name)


@given(networks(kinds=("field", "second harmonic", "all terms")), st.floats(-3, 3))
def test_where_terms_fix_the_frame_turning_all_of_it_turns_the_state(network, angle):
    """Fields and injections turned together carry the oscillators with them, and the reference is nobody special."""
    phases = {name: values + angle for name, values in network.parameters.items() if name.endswith("_phase")}
    still = network.replace(inputs=())
    first = pg.find_equilibrium(still, eigenvalue=True)
    turned = pg.find_equilibrium(still.replace(**phases), start=first.phases + angle)
    slack = 1e-11 / min(1.0, float(first.smallest_eigenvalue))
    np.testing.assert_allclose(turned.phases, first.phases + angle, atol=slack)
    other = pg.find_equilibrium(still.replace(reference=1))
    np.testing.assert_array_equal(other.phases, first.phases)


class TestNonReciprocal:
    """Coupling that is not reciprocal learns: version 0.1 took the plan and learned nothing."""

    def network(self):
        network = pg.layered(2, 4, 2, seed=0)
        return network.replace(coupling_reverse=1.2 * network.coupling)

    def samples(self):
        x = np.random.default_rng(0).uniform(-1, 1, (10, 2))
        return x, np.tile([0.3, -0.3], (10, 1))

    @pytest.mark.parametrize("name", ["coupling", "coupling_reverse"])
    def test_each_direction_descends_along_its_own_exact_gradient(self, name):
        network, (x, y) = self.network(), self.samples()
        step = pg.train(
            network,
            (x, y),
            objective=pg.PhaseTargets(),
            learn={name: 0.5},
            epochs=1,
            batch_size=10,
            gradient="adjoint",
            optimizer="sgd",
            schedule="constant",
            lock_floor=None,
        )
        exact = pg.adjoint(network, pg.find_equilibrium(network, x), pg.PhaseTargets(), y, wrt=name)
        moved = step.network.parameters[name] - network.parameters[name]
        np.testing.assert_allclose(moved, -0.5 * exact[name].mean(axis=0), rtol=1e-6, atol=1e-10)
        assert np.any(moved != 0)
        other = {"coupling": "coupling_reverse", "coupling_reverse": "coupling"}[name]
        np.testing.assert_array_equal(step.network.parameters[other], network.parameters[other])

    def test_training_finds_what_another_network_does(self):
        teacher, x = self.network(), self.samples()[0]
        y = pg.find_equilibrium(teacher.replace(coupling=1.3 * teacher.coupling), x).phases[:, list(teacher.outputs)]
        result = pg.train(
            teacher,
            (x, y),
            objective=pg.PhaseTargets(),
            learn="coupling",
            epochs=40,
            learning_rate=0.05,
            gradient="adjoint",
        )
        assert result.history.train_loss[0, -1] < 0.1 * result.history.train_loss[0, 0]


class TestBadInput:
    @pytest.mark.parametrize(
        ("build", "message"),
        [
            (
                lambda: small(terms=[Third()], third_strength=[1.0, 2.0]),
                r"'third_strength' parameter of Network must have shape \(3,\), or be one number. Got shape \(2,\)",
            ),
            (
                lambda: small(field_strength=[1.0, 2.0]),
                r"'field_strength' parameter of Network must have shape \(3,\), or be one number. Got shape \(2,\)",
            ),
            (lambda: small(field_strength=np.ones((1, 3))), r"must have shape \(3,\)"),
            (lambda: small(coupling_reverse=np.ones(3)), r"'coupling_reverse' parameter .* shape \(2,\)"),
            (lambda: small().replace(omega=np.ones(2)), r"'omega' parameter of Network must have shape \(3,\)"),
            (
                lambda: small(terms=[Third()]),
                "The term Third of Network needs 'third_strength' beside it, one per node",
            ),
            (
                lambda: small(terms=[Third()], third_phase=0.1),
                "The 'third_phase' parameter of Network needs 'third_strength' beside it",
            ),
            (
                lambda: small(terms=[Third(), Alike()], third_strength=1.0),
                "Two terms, Third and Alike, have a parameter called 'third_strength'. Rename one of them",
            ),
            (
                lambda: small(terms=[own_names("omega", "a")]),
                "Two terms, Frequencies and Own, have a parameter called 'omega'",
            ),
            (
                lambda: small(terms=[own_names("field_phase", "a")]),
                "Two terms, Field and Own, have a parameter called 'field_phase'",
            ),
            (
                lambda: small(terms=[own_names("size", "a")]),
                "Own has a parameter called 'size', which is a field of Network. Rename it",
            ),
        ],
    )
    def test_wrong_parameters_are_refused(self, build, message):
        with pytest.raises(ValueError, match=message):
            build()

    @pytest.mark.parametrize("terms", [Third, [Third], Third(), 5, ["third"]])
    def test_what_is_no_term_is_refused(self, terms):
        with pytest.raises(TypeError, match=r"'terms' parameter of Network must be a list of Terms"):
            small(terms=terms)

    def test_unknown_names_are_refused_with_those_that_are_known(self):
        with pytest.raises(TypeError, match=r"no parameter 'third_strength'.*omega, coupling.*name it in 'terms'"):
            small(third_strength=1.0)
        with pytest.raises(ValueError, match=r"This network has no parameter 'field_phase'\. Its parameters are omega"):
            small().term_of("field_phase")
        with pytest.raises(ValueError, match="'wrt' parameter of adjoint for this network must be one of 'omega'"):
            pg.adjoint(small(), pg.find_equilibrium(small()), pg.PhaseTargets(), [0.1], wrt="third_strength")

    def test_an_engine_and_a_solver_asked_for_a_term_they_cannot_do_say_so(self):
        data = pg.datasets.xor()
        for network in (layers(), pg.layered(2, 4, 2, interaction=pg.terms.OddSeries((1.0, 0.1)))):
            with pytest.raises(ValueError, match=r"The lanes train .*, not .*Use engine='batch' for this one"):
                pg.train(network, data, pg.Plan.paper(epochs=1), engine="lanes")
            assert pg.train(network, data, pg.Plan.paper(epochs=1)).ended == "finished"

    def test_the_state_of_a_network_with_other_terms_is_refused_and_stays_good(self):
        data, plan = pg.datasets.xor(), pg.Plan.paper(epochs=2)
        state = pg.train(pg.layered(2, 4, 2), data, plan, until=1).state
        others = [
            layers(),
            pg.layered(2, 4, 2, second_strength=0.3),
            pg.layered(2, 4, 2, interaction=pg.terms.OddSeries((1.0, 0.1))),
            pg.layered(2, 5, 2),
        ]
        for network in others:
            with pytest.raises(ValueError, match="This state belongs to another training: another topology"):
                pg.train(network, data, plan, state=state)
        rest = pg.train(pg.layered(2, 4, 2), data, plan, state=state)
        assert rest.network == pg.train(pg.layered(2, 4, 2), data, plan).network


def test_every_parameter_of_the_package_has_one_name():
    """A term that extends another has its very parameters; no two others are called alike."""
    parameters = {parameter for kind in TERMS for parameter in kind.every}
    assert len(parameters) == len({parameter.name for parameter in parameters})


def test_a_force_that_ties_oscillators_to_the_frame_must_say_so():
    """Its state would be certified in a frame that turns, where it does not rest."""

    class Cubed(pg.terms.Term):
        every = (pg.terms.Parameter("pull"),)

        def force(self, graph, values, phases):
            return -values["pull"] * np.sin(phases) ** 3

        def energy(self, graph, values, phases):
            return np.sum(values["pull"] * (np.cos(phases) ** 3 / 3 - np.cos(phases)), axis=1)

        def stiffness(self, graph, values, phases):
            return pg.terms.Stiffness(diagonal=3 * values["pull"] * np.sin(phases) ** 2 * np.cos(phases))

        def stiffest(self, graph, values):
            return pg.terms.Stiffness(diagonal=2 * np.abs(values["pull"]))

        def capacity(self, graph, values):
            return np.abs(values["pull"])

        def energy_slopes(self, graph, values, phases):
            return {"pull": np.cos(phases) ** 3 / 3 - np.cos(phases)}

        def force_slopes(self, graph, values, phases, response):
            return {"pull": -response * np.sin(phases) ** 3}

    class Tied(Cubed):
        fixes_gauge = True

        def grounded(self, graph, values):
            return np.ones(graph.size, dtype=bool)

    with pytest.raises(ValueError, match="Say fixes_gauge = True"):
        pg.networks.ring(4, terms=[Cubed()], pull=0.1)
    assert not pg.networks.ring(4, terms=[Tied()], pull=0.1).pinned


@pytest.mark.parametrize("given", [{k: {"a": 1} for k in range(4)}, list("abcd")])
def test_node_attributes_are_a_dictionary_for_every_oscillator(given):
    with pytest.raises(TypeError, match="'node_attributes' parameter of Network must be a list with a dictionary"):
        pg.networks.ring(4, node_attributes=given)
