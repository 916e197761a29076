"""A gradient method is one record: what the rest of the library knows about it, and the physics without its judge."""

import importlib
import pickle

import numpy as np
import pytest
from random_networks import make_network

import phasegrad as pg
from phasegrad.gradients import METHODS, Method, Problem, Scheme
from phasegrad.gradients._nudged import nudged_gradient
from phasegrad.gradients._problem import pose
from phasegrad.linearised import Linearised
from phasegrad.training import prepare

TARGET = (-0.2, 0.2)
#: Every method that nudges, with what it needs beside the nudge.
NUDGED = {name: {} for name, method in METHODS.items() if method.scheme is not None}
NUDGED["stochastic"] = {"temperature": 1e-4}


def asked(batch=(3,)):
    network = make_network(8, 2)
    equilibrium = pg.find_equilibrium(network)
    return network, equilibrium, pg.PhaseTargets(), np.broadcast_to(TARGET, (*batch, 2))


class TestRecords:
    def test_every_public_method_is_in_the_table_and_in_a_file_named_after_it(self):
        assert len(METHODS) == 10
        for name, method in METHODS.items():
            module = importlib.import_module(f"phasegrad.gradients.methods.{name}")
            assert module.METHOD is method
            assert getattr(pg.gradients, name) is method.function

    def test_options_are_what_the_public_function_takes(self):
        for method in METHODS.values():
            for option in method.options:
                assert method.takes(option), (method.name, option)
            assert method.takes("correction") == method.correctable
            assert method.takes("readout") == method.readable
            assert method.takes("error") == (method.scheme is not None)

    def test_orders_of_the_error_are_those_of_the_schemes(self):
        orders = {name: method.usual.order for name, method in METHODS.items() if method.usual}
        assert orders == {
            "two_phase": 1, "centred": 2, "holomorphic": 2, "dyadic": 2, "random_sign": 1, "continuous": 1,
        }  # fmt: skip

    def test_engines_are_told_signs_of_plain_nudges_alone(self):
        signs = {name: method.signs for name, method in METHODS.items() if method.signs is not None}
        assert signs == {"adjoint": (), "two_phase": (1.0,), "centred": (1.0, -1.0)}

    def test_the_lanes_number_every_method_once(self):
        numbers = [method.lane for method in METHODS.values() if method.lane is not None]
        assert sorted(numbers) == list(range(len(numbers)))


#: One nudge of the other sign than that of two_phase.
BACKWARD = Scheme((-1.0, 0.0), (-1.0, 1.0), 1, 5e-4)


def backward(
    network, equilibrium, objective, target, *, beta=None, correction="none", readout=None, error=True, wrt="omega",
    frequencies="relative",
):  # fmt: skip
    problem = pose("backward", network, equilibrium, objective, target, wrt, frequencies, correction=correction)
    return nudged_gradient(problem, BACKWARD, beta, error=error, readout=readout)


class TestNewMethod:
    """A method that nobody else has heard of is one record."""

    @pytest.fixture(autouse=True)
    def _known(self, monkeypatch):
        method = Method(backward, lambda: BACKWARD, correctable=True, readable=True, compared=True)
        monkeypatch.setitem(METHODS, "backward", method)

    def test_it_is_compared(self):
        table = pg.check_gradients(*asked(), wrt=("omega", "coupling"))
        row = table.methods.index("backward")
        for name in ("omega", "coupling"):
            assert table.relative_error[name][row, table.methods.index("adjoint")] < 1e-3
        # The error of one nudge has the sign of the nudge.
        exact = table.gradients["adjoint"].omega
        ahead, behind = (table.gradients[name].omega - exact for name in ("two_phase", "backward"))
        assert np.abs(ahead + behind).max() < 0.01 * np.abs(ahead).max()

    @pytest.mark.parametrize("reciprocal", [True, False])
    def test_it_trains(self, reciprocal):
        network = pg.layered(2, 3, 2, seed=1)
        if not reciprocal:
            network = network.replace(coupling_reverse=0.7 * network.coupling)
        data = np.array([[0.3, -0.5], [-0.4, 0.2]]), np.array([[0.2, -0.1], [-0.2, 0.1]])
        plan = pg.Plan(
            learn=("omega", "coupling"), objective=pg.PhaseTargets(), epochs=1, batch_size=2, optimizer="sgd",
            schedule="constant", lock_floor=None, beta=1e-4,
        )  # fmt: skip
        options = {} if reciprocal else {"correction": "asymmetric"}
        exact = pg.train(network, data, plan, gradient="adjoint").network
        found = pg.train(network, data, plan, gradient="backward", **options).network
        for name in ("omega", "coupling"):
            step = exact.parameters[name] - network.parameters[name]
            assert np.abs(found.parameters[name] - exact.parameters[name]).max() < 2e-3 * np.abs(step).max()

    def test_engines_that_do_not_have_it_say_so(self):
        network = pg.layered(2, 3, 2, seed=1)
        data = np.array([[0.3, -0.5]]), np.array([[0.2, -0.1]])
        plan = pg.Plan.paper("omega", objective=pg.PhaseTargets(), gradient="backward", warm_start="none")
        with pytest.raises(ValueError, match="lanes have the gradients"):
            prepare(network, data, plan, engine="lanes")

    def test_a_nudge_is_suggested_and_a_measurement_planned(self):
        question = asked()
        assert pg.gradients.suggest_beta(*question, method="backward") == pg.gradients.suggest_beta(
            *question, method="two_phase"
        )
        plan = pg.measurement.plan_measurement(*question, pg.measurement.Readout(0.001), method="backward")
        assert plan.states == 2
        assert plan.cosine > 0.9


def judged_by_nothing(_problem: Problem):
    raise AssertionError("the exact gradient was computed")


class TestPhysicsAlone:
    @pytest.mark.parametrize("name", NUDGED)
    def test_without_an_error_the_values_are_the_same_and_nothing_judges_them(self, name, monkeypatch):
        method, question = METHODS[name].function, asked()
        options = {"beta": 1e-3, "wrt": ("omega", "coupling"), **NUDGED[name]}
        usual = method(*question, **options)
        for module in ("_nudged", "_accuracy"):
            exact = "exact_slopes" if module == "_nudged" else "natural_size"
            monkeypatch.setattr(f"phasegrad.gradients.{module}.{exact}", judged_by_nothing)
        alone = method(*question, **options, error=False)
        for parameter in ("omega", "coupling"):
            np.testing.assert_array_equal(alone[parameter], usual[parameter])
        assert alone.beta == usual.beta
        assert (alone.status == usual.status).all()
        with pytest.raises(AssertionError, match="exact gradient was computed"):
            method(*question, **options)

    def test_a_nudge_left_out_is_chosen_without_it_too(self, monkeypatch):
        question = asked()
        usual = pg.two_phase(*question)
        monkeypatch.setattr("phasegrad.gradients._nudged.exact_slopes", judged_by_nothing)
        alone = pg.two_phase(*question, error=False)
        assert alone.beta == pytest.approx(usual.beta)
        np.testing.assert_allclose(alone.omega, usual.omega, rtol=1e-9)

    def test_no_transposed_system_is_solved(self, monkeypatch):
        """On directed coupling too, where a transposed solve would be the only way to know the error."""
        network = make_network(8, 2)
        directed = pg.Network(
            network.edges, network.coupling, network.omega, coupling_reverse=0.8 * network.coupling,
            outputs=network.outputs,
        )  # fmt: skip
        question = (directed, pg.find_equilibrium(directed), pg.PhaseTargets(), TARGET)
        solves, solve = [], Linearised.solve

        def counted(self, right, **how):
            solves.append(how.get("transposed", False))
            return solve(self, right, **how)

        monkeypatch.setattr(Linearised, "solve", counted)
        pg.two_phase(*question, error=False)
        assert solves
        assert not any(solves)
        with pytest.warns(pg.gradients.GradientWarning):
            pg.two_phase(*question)
        assert any(solves)

    def test_a_gradient_without_an_error_says_so(self):
        gradient = pg.two_phase(*asked(), error=False)
        assert dict(gradient.error) == {}
        assert "error not computed" in str(gradient)
        with pytest.raises(ValueError, match="error=False"):
            gradient.relative_error("omega")
        again = pickle.loads(pickle.dumps(gradient))
        assert dict(again.error) == {}
        np.testing.assert_array_equal(again.omega, gradient.omega)

    def test_it_is_drawn_without_error_bars(self):
        pytest.importorskip("matplotlib")
        axes = pg.two_phase(*asked(), error=False).plot()
        assert not any(each.get_label() == "_errors" for each in axes.containers)
        assert any(each.get_label() == "_errors" for each in pg.two_phase(*asked()).plot().containers)

    def test_nothing_is_warned_about_an_error_that_is_not_known(self):
        question = asked()
        pg.two_phase(*question, beta=5.0, error=False)
        with pytest.warns(pg.gradients.GradientWarning, match="may be off"):
            pg.two_phase(*question, beta=5.0)

    def test_samples_without_an_equilibrium_are_still_told(self):
        question = asked()
        with pytest.warns(pg.gradients.GradientWarning, match="parameters found no rest"):
            gradient = pg.gradients.continuous(*question, rate=1e3, error=False)
        assert not gradient.valid.any()

    def test_a_meter_needs_a_nudge(self):
        question, meter = asked(), pg.measurement.Readout(0.001)
        with pytest.raises(ValueError, match="'beta' parameter of two_phase"):
            pg.two_phase(*question, readout=meter, error=False)
        usual, alone = (pg.two_phase(*question, beta=0.1, readout=meter, error=error) for error in (True, False))
        np.testing.assert_array_equal(usual.omega, alone.omega)
