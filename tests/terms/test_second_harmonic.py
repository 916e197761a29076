"""The second harmonic came as one file and one line: everything that a network can do, it can do with this term."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import eigvalsh
from scipy.optimize import approx_fprime

import phasegrad as pg
from phasegrad.dynamics import build_system
from phasegrad.gradients import MeanGradient, Propagation, relative_error
from phasegrad.linearised import PhasorLaplacian, Verdict, _choice, stability
from phasegrad.terms import SecondHarmonic

NAMES = ("coupling", "field_strength", "second_strength", "second_phase")
PARAMETERS = ("omega", "coupling", "second_strength", "second_phase")


def layers(seed=0, **options):
    """Return the paper's network in an injection of random strength and phase."""
    rng = np.random.default_rng(seed + 100)
    strength, phase = rng.uniform(0.1, 0.8, 9), rng.uniform(-0.3, 0.3, 9)
    return pg.layered(2, 5, 2, seed=seed, second_strength=strength, second_phase=phase, **options)


def test_one_oscillator_in_closed_form():
    """h sin 2(psi - theta) + omega = 0 has two stable solutions, half a turn apart, while |omega| < h."""
    network = pg.Network([], [], [0.3], second_strength=0.8, second_phase=0.2)
    theta = 0.2 + math.asin(0.3 / 0.8) / 2
    states = pg.find_equilibria(network, starts=40)
    np.testing.assert_allclose(np.sort(states.phases[:, 0]), [theta - math.pi, theta], atol=1e-12)
    for start in (0.0, 3.0):
        found = pg.find_equilibrium(network, start=[start], eigenvalue=True)
        assert found.smallest_eigenvalue == pytest.approx(2 * 0.8 * math.cos(2 * (0.2 - theta)), abs=1e-12)
    between = pg.find_equilibrium(network, start=[theta + math.pi / 2 - 2 * (theta - 0.2)])
    assert between.status == pg.Status.UNSTABLE
    assert pg.find_equilibrium(network.replace(omega=[0.81])).status == pg.Status.CANNOT_LOCK
    assert pg.critical_scale(network).scale == pytest.approx(0.8 / 0.3, rel=1e-5)


def test_the_force_is_the_formula_and_the_slope_of_the_energy():
    network, rng = layers(), np.random.default_rng(0)
    bare = network.replace(second_strength=None, second_phase=None)
    assert [type(term) for term in network.terms if term not in bare.terms] == [SecondHarmonic]
    for phases in rng.uniform(-3, 3, (5, 9)):
        pull = network.second_strength * np.sin(2 * (network.second_phase - phases))
        # Without the injection the frame turns with the mean frequency.
        expected = pg.dynamics.force(bare, phases) + network.omega.mean() + pull
        np.testing.assert_allclose(pg.dynamics.force(network, phases), expected, atol=1e-13)
        slope = approx_fprime(phases, lambda theta: float(pg.dynamics.energy(network, theta)), 1e-6)
        np.testing.assert_allclose(pg.dynamics.force(network, phases), -slope, atol=1e-4)
        steps = 1e-6 * np.eye(9)
        jacobian = (pg.dynamics.force(network, phases + steps) - pg.dynamics.force(network, phases - steps)).T / 2e-6
        np.testing.assert_allclose(pg.dynamics.laplacian(network, phases), -jacobian, atol=1e-7)
        np.testing.assert_array_equal(
            pg.dynamics.laplacian(network, phases, compressed=True).toarray(), pg.dynamics.laplacian(network, phases)
        )


@pytest.mark.parametrize("frequencies", ["relative", "raw"])
@pytest.mark.parametrize(
    ("seed", "options"),
    [
        (0, {}),
        (1, {"input_mode": "phase"}),
        (2, {"field_strength": 0.4, "field_phase": 0.2, "interaction": pg.terms.OddSeries((1.0, 0.2))}),
    ],
)
def test_six_methods_agree_and_finite_differences_are_the_judge(seed, options, frequencies):
    pytest.importorskip("torch")
    network = layers(seed, **options)
    equilibrium = pg.find_equilibrium(network, np.random.default_rng(seed).uniform(-1, 1, (3, 2)))
    assert np.all(equilibrium.stable)
    table = pg.check_gradients(network, equilibrium, pg.PhaseTargets(), [-0.2, 0.3], frequencies=frequencies)
    assert set(table.relative_error) >= set(PARAMETERS)
    judge = table.methods.index("finite_difference")
    limits = {"adjoint": 1e-7, "holomorphic": 1e-7, "autograd": 1e-7, "centred": 1e-6, "two_phase": 1e-3}
    for parameter in PARAMETERS:
        for method, limit in limits.items():
            assert table.relative_error[parameter][table.methods.index(method), judge] < limit, (parameter, method)


def test_beside_coupling_that_is_not_reciprocal_the_exact_methods_agree():
    network = layers(3)
    network = network.replace(coupling_reverse=1.3 * network.coupling)
    equilibrium = pg.find_equilibrium(network, [[0.2, -0.4], [0.9, 0.3]])
    table = pg.check_gradients(
        network, equilibrium, pg.PhaseTargets(), [-0.2, 0.3], methods=["adjoint", "finite_difference", "autograd"]
    )
    assert np.all(equilibrium.stable)
    assert max(errors.max() for errors in table.relative_error.values()) < 1e-6


def test_the_finite_differences_turn_the_networks_own_numbers():
    """A judge of the judge: networks made anew with one number turned."""
    network, x, target, step = layers(1), [0.3, -0.7], np.array([-0.2, 0.3]), 1e-5
    exact = pg.adjoint(network, pg.find_equilibrium(network, x), pg.PhaseTargets(), target, wrt=PARAMETERS)
    for name in PARAMETERS:
        for k in range(0, len(network.parameters[name]), 4):
            costs = []
            for sign in (1, -1):
                values = network.parameters[name].copy()
                values[k] += sign * step
                phases = pg.find_equilibrium(network.replace(**{name: values}), x).phases[list(network.outputs)]
                costs.append(0.5 * np.sum((phases - target) ** 2))
            if not (name == "omega" and k in network.inputs):  # data sets these
                assert exact[name][k] == pytest.approx((costs[0] - costs[1]) / (2 * step), abs=1e-8), (name, k)


@pytest.mark.parametrize("seed", range(12))
def test_certificates_are_right_by_eigenvalues_and_by_the_dynamics(seed):
    """Repelling couplings against an injection: many states, of which half a turn decides."""
    rng = np.random.default_rng(seed)
    network = pg.networks.complete(
        6,
        coupling=-rng.uniform(0.1, 1.0, 15),
        omega=0.1 * rng.standard_normal(6),
        signed=True,
        second_strength=rng.uniform(0.2, 1.5, 6),
        second_phase=rng.uniform(-1, 1, 6),
    )
    starts = rng.uniform(-np.pi, np.pi, (8, 6))
    found = pg.find_equilibrium(network, start=starts, solver="newton", eigenvalue=True)
    for k in np.flatnonzero(found.converged):
        matrix = pg.dynamics.laplacian(network, found.phases[k])
        smallest = eigvalsh(matrix)[0]
        assert found.smallest_eigenvalue[k] == pytest.approx(smallest, abs=1e-10)
        assert found.stable[k] == (smallest > 0)
        if abs(smallest) < 0.05:
            continue
        pushed = found.phases[k] + 1e-3 * np.linalg.eigh(matrix)[1][:, 0]
        end = solve_ivp(
            lambda _, theta: pg.dynamics.force(network, theta), (0, 20 / abs(smallest)), pushed, rtol=1e-9
        ).y[:, -1]
        assert (np.max(np.abs(end - found.phases[k])) < 1e-3) == found.stable[k]


def test_an_ising_machine_finds_the_ground_state_of_a_frustrated_ring():
    """Five repelling oscillators in an injection are five spins; the best cut of an odd ring leaves one bond whole."""
    network = pg.networks.ring(5, coupling=-0.3, signed=True, second_strength=1.0)
    states = pg.find_equilibria(network, starts=100)
    spins = np.sign(np.cos(states.phases))
    np.testing.assert_allclose(np.abs(np.sin(states.phases)), 0, atol=1e-9)
    whole = np.sum(spins * np.roll(spins, 1, axis=1) > 0, axis=1)
    assert whole.min() == 1
    assert np.all(whole[states.energy < states.energy.min() + 1e-9] == 1)


class TestTraining:
    def data(self):
        """Return inputs and the phases of a network whose injection is to be found again."""
        inputs = np.random.default_rng(3).uniform(-1, 1, (30, 2))
        teacher = layers().replace(second_strength=0.6)
        return inputs, pg.find_equilibrium(teacher, inputs).phases[:, list(teacher.outputs)]

    @pytest.mark.parametrize("engine", ["auto", "batch"])
    def test_the_strength_is_learned(self, engine):
        result = pg.train(
            layers(),
            self.data(),
            learn="second_strength",
            objective=pg.PhaseTargets(),
            epochs=60,
            learning_rate=0.02,
            batch_size=10,
            engine=engine,
        )
        assert result.history.train_loss[0, -1] < 1e-2 * result.history.train_loss[0, 0]
        moved = result.network.second_strength != layers().second_strength
        assert moved.tolist() == [False, False] + [True] * 7  # inputs belong to the data
        np.testing.assert_array_equal(result.network.coupling, layers().coupling)

    def test_many_networks_learn_side_by_side_as_they_do_alone(self):
        options = {"learn": ["second_strength", "second_phase"], "objective": pg.PhaseTargets(), "epochs": 2}
        together = pg.train([layers(0), layers(1)], self.data(), **options)
        alone = pg.train(layers(1), self.data(), seed=1, **options)
        np.testing.assert_allclose(together.networks[1].second_strength, alone.network.second_strength, atol=1e-9)

    @pytest.mark.parametrize("gradient", ["centred", "two_phase", "adjoint", "finite_difference"])
    def test_every_gradient_of_a_plan_makes_the_step_that_the_exact_one_makes(self, gradient):
        x, y = self.data()
        network, names = layers(1), ("second_strength", "second_phase", "omega")
        step = pg.train(
            network,
            (x, y),
            learn=names,
            learning_rate=0.5,
            objective=pg.PhaseTargets(),
            epochs=1,
            batch_size=30,
            optimizer="sgd",
            schedule="constant",
            gradient=gradient,
        )
        exact = pg.adjoint(network, pg.find_equilibrium(network, x), pg.PhaseTargets(), y, wrt=names)
        for name in names:
            learns = network.term_of(name)[1].learnable(network.graph)
            moved = -0.5 * np.where(learns, exact[name].mean(axis=0), 0.0)
            size = np.abs(moved).max()
            np.testing.assert_allclose(
                step.network.parameters[name] - network.parameters[name], moved, atol=1e-3 * size, err_msg=name
            )

    def test_strengths_that_are_not_signed_stay_positive(self):
        weak = layers().replace(second_strength=0.01)
        result = pg.train(
            weak,
            self.data(),
            learn="second_strength",
            objective=pg.PhaseTargets(),
            epochs=3,
            learning_rate=0.5,
            optimizer="sgd",
        )
        assert result.network.second_strength.min() >= 0.0

    def test_the_lanes_say_that_they_cannot(self):
        with pytest.raises(ValueError, match=r"The lanes train .*, not SecondHarmonic.*Use engine='batch'"):
            pg.train(layers(), pg.datasets.xor(), pg.Plan.paper("second_strength"), engine="lanes")

    def test_files_give_back_the_same_training_and_the_same_model(self, tmp_path):
        data = pg.datasets.xor()
        plan = pg.Plan.paper("second_strength", epochs=4)
        whole = pg.train(layers(), data, plan)
        half = pg.train(layers(), data, plan, until=2)
        half.state.save(tmp_path / "half.npz")
        rest = pg.train(layers(), data, plan, state=pg.training.TrainingState.load(tmp_path / "half.npz"))
        assert rest.network == whole.network
        model = pg.Model.from_training(whole, data)
        model.save(tmp_path / "model.npz")
        again = pg.Model.load(tmp_path / "model.npz")
        assert again.network == whole.network
        np.testing.assert_array_equal(again.predict(data.x_test).labels, model.predict(data.x_test).labels)


def test_networks_with_it_are_values_like_all_others():
    network = layers()
    assert network == layers()
    assert network != network.replace(second_strength=0.5)
    assert network.replace(second_phase=0.1).graph is network.graph
    assert "second harmonic" in repr(network)
    assert "gauge fixed from outside" in repr(network)
    assert pg.from_networkx(pg.networks.to_networkx(network)) == network
    options = {
        "inputs": network.inputs,
        "outputs": network.outputs,
        "second_strength": network.second_strength,
        "second_phase": network.second_phase,
    }
    assert pg.networks.from_matrix(pg.networks.to_matrix(network), network.omega, **options) == network
    assert pg.layered(2, 5, 2).second_strength is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"second_strength": [1.0, 2.0]},
            r"'second_strength' parameter of Network must have shape \(9,\), or be one number. Got",
        ),
        ({"second_phase": 0.3}, "'second_phase' parameter of Network needs 'second_strength' beside it"),
        ({"second_strength": 0.0}, "'second_strength' parameter of Network is zero everywhere"),
        ({"second_strength": -1.0}, "second harmonic at node 0 has strength -1.0, but negative .* signed=True"),
        ({"second_strength": np.nan}, "'second_strength' parameter of Network must be finite"),
    ],
)
def test_wrong_values_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        pg.layered(2, 5, 2, **options)


class TestProducts:
    """Matrix products that all samples of a layered network share, beside the dense algebra sample by sample."""

    def network(self, seed, injection=0.4):
        rng = np.random.default_rng(seed)
        plain = pg.networks.signed_layers(3, 8, 2, seed=seed, rest=np.pi / 2)
        strength, phase = rng.uniform(-injection, injection, 13), rng.uniform(-3, 3, 13)
        return plain.replace(second_strength=strength, second_phase=phase)

    def mean_gradient(self, network, x, by, *, products):
        """Return the mean gradient at stable states by one of the two ways."""
        system, _ = build_system(network, x)
        assert PhasorLaplacian.fits(system)
        found = pg.find_equilibrium(network, x, solver="batch")
        assert np.all(found.stable)
        objective, labels = pg.CosineCrossEntropy(sharpness=4.0), np.arange(len(x)) % 2
        mean = MeanGradient(
            network,
            system,
            found.phases,
            objective,
            np.array(network.outputs),
            objective.check_target(labels, network),
            limits=np.full(len(x), 1e-12),
            state=PhasorLaplacian.of(system, found.phases) if products else None,
        )
        sums, used = mean.take(np.full((1, len(x)), 1 / len(x)), NAMES, by=by, frequencies="relative")
        assert np.all(used)
        return sums, (found, objective, labels)

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("method", ["centred", "two_phase", "adjoint"])
    def test_gradients_are_those_of_the_dense_algebra(self, seed, method):
        network, x = self.network(seed), np.random.default_rng(seed).uniform(-1, 1, (11, 3))
        by = Propagation(method, 1e-4)
        fast, question = self.mean_gradient(network, x, by, products=True)
        slow, _ = self.mean_gradient(network, x, by, products=False)
        exact = pg.adjoint(network, *question, wrt=NAMES)
        # Nudged states are found to 1e-12, and their difference is divided by the nudge; it is the gradient up to
        # the nudge, or its square where it is centred.
        size = {"adjoint": 1e-9, "centred": 1e-4, "two_phase": 0.01}[method]
        for name in NAMES:
            np.testing.assert_allclose(fast[name], slow[name], atol=1e-7, err_msg=name)
            scale = np.max(np.abs(exact[name].mean(axis=0)))
            np.testing.assert_allclose(fast[name][0], exact[name].mean(axis=0), atol=size * scale, err_msg=name)

    @pytest.mark.parametrize("name", ["second_strength", "second_phase", "coupling"])
    def test_gradients_are_differences_of_the_cost(self, name):
        network, x, step = self.network(5), np.random.default_rng(5).uniform(-1, 1, (7, 3)), 1e-5
        fast, (found, objective, labels) = self.mean_gradient(network, x, Propagation("adjoint", 0.01), products=True)
        for k in range(3, len(network.parameters[name]), 4):
            costs = []
            for sign in (1, -1):
                values = network.parameters[name].copy()
                values[k] += sign * step
                turned = network.replace(**{name: values})
                near = pg.find_equilibrium(turned, x, start=found.phases, solver="batch")
                outputs = near.phases[:, list(network.outputs)]
                costs.append(np.mean(objective.cost(outputs, objective.check_target(labels, network))))
            assert fast[name][0, k] == pytest.approx((costs[0] - costs[1]) / (2 * step), abs=1e-8), k

    @pytest.mark.parametrize("seed", range(4))
    def test_states_that_injection_makes_unstable_are_said_to_be(self, seed, monkeypatch):
        """Injection of growing strength toward a quarter turn away bends the energy of every oscillator down."""
        monkeypatch.setattr(_choice, "MOST_NUMBERS", 0)
        plain = pg.networks.signed_layers(3, 8, 2, seed=seed)
        x = np.random.default_rng(seed).uniform(-1, 1, (6, 3))
        verdicts = []
        for phases in pg.find_equilibrium(plain, x).phases:
            for strength in (0.05, 0.3, 0.45, 0.6, 1.2):
                # Where 2 (psi - theta) is half a turn it pulls nowhere, and the diagonal falls by twice the strength.
                network = plain.replace(
                    second_strength=np.r_[np.zeros(3), np.full(10, strength)], second_phase=phases + np.pi / 2
                )
                system, _ = build_system(network, phases[None, :3] / plain.input_scale)
                assert PhasorLaplacian.fits(system)
                assert np.max(np.abs(system.force(phases[None])[:, 3:])) < 1e-9
                found = stability(system, phases[None], explain=True)
                lowest = eigvalsh(system.laplacian(phases[None])[0])[0]
                expected = Verdict.STABLE if lowest > 0 else Verdict.UNSTABLE
                assert found.verdict[0] == expected, (strength, lowest)
                verdicts.append(expected)
        assert {Verdict.STABLE, Verdict.UNSTABLE} == set(verdicts)

    def test_relabelled_shifted_and_split_batches_settle_alike(self):
        network, x = self.network(3), np.random.default_rng(3).uniform(-1, 1, (10, 3))
        whole = pg.find_equilibrium(network, x, solver="batch")
        parts = [pg.find_equilibrium(network, part, solver="batch").phases for part in (x[:1], x[1:4], x[4:])]
        np.testing.assert_allclose(np.concatenate(parts), whole.phases, atol=1e-10)
        turned = network.replace(second_phase=network.second_phase + np.pi)
        np.testing.assert_allclose(pg.find_equilibrium(turned, x, solver="batch").phases, whole.phases, atol=1e-10)


def test_more_oscillators_than_a_dense_matrix_would_like():
    """The sparse solver takes it too, and the gradient is right there."""
    rng = np.random.default_rng(0)
    network = pg.networks.lattice(25, 25, omega=0.1 * rng.standard_normal(625), outputs=(312, 624), second_strength=0.2)
    fast, plain = (pg.find_equilibrium(network, solver=solver) for solver in ("sparse", "newton"))
    np.testing.assert_allclose(fast.phases, plain.phases, atol=1e-11)
    question = (pg.PhaseTargets(), [0.3, -0.2])
    for method in (pg.adjoint, pg.centred):
        mine, theirs = (method(network, each, *question, wrt="second_strength") for each in (fast, plain))
        assert relative_error(mine.second_strength, theirs.second_strength) < 1e-6
