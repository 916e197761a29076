"""Learning in mini-batches: its gradients against the exact ones, its bookkeeping against itself."""

import dataclasses

import numpy as np
import pytest

import phasegrad as pg
from phasegrad.learning import load_checkpoint, save_checkpoint
from phasegrad.learning.batches import batch_system, mean_gradient, parameters_of, settle_batch
from phasegrad.learning.optimizers import Adam, Constant, Cosine, Momentum, Staircase
from phasegrad.objectives import CLASS_OBJECTIVES

PARAMETERS = ("omega", "coupling", "field_strength", "field_phase")
MATCHED = [kind() for name, kind in CLASS_OBJECTIVES.items() if name != "PaperPair"]


def three_blobs(count: int = 60, seed: int = 0):
    rng = np.random.default_rng(seed)
    y = np.arange(count) % 3
    centres = np.array([[-0.6, -0.4], [0.6, -0.4], [0.0, 0.6]])
    return centres[y] + 0.15 * rng.standard_normal((count, 2)), y


def layers(objective=None, **options) -> pg.Network:
    rest = pg.CosineCrossEntropy.undecided if objective is None else objective.undecided
    return pg.signed_layers(2, 6, 3, rest=rest, seed=1, **options)


NETWORKS = {
    "signed layers": layers(),
    "paper": pg.layered(2, 5, 3, seed=2),
    "turning": layers().replace(omega=np.r_[0, 0, 0.05 * np.cos(np.arange(9))]),
}


class TestGradients:
    @pytest.mark.parametrize("name", list(NETWORKS))
    @pytest.mark.parametrize("method", ["centred", "two_phase", "adjoint"])
    @pytest.mark.parametrize("objective", MATCHED, ids=repr)
    def test_the_mean_gradient_is_the_mean_of_the_exact_gradients(self, name, method, objective):
        network = NETWORKS[name]
        x, y = three_blobs(12)
        weights = np.linspace(0.5, 2.0, 12)
        wrt = PARAMETERS if network.field_strength is not None else PARAMETERS[:2]
        system = batch_system(network, parameters_of(network, wrt), x)
        settled = settle_batch(system, 1e-9)
        assert np.all(settled.locked)
        target = objective.check_target(y, network)
        found, used = mean_gradient(settled, objective, target, weights, wrt=wrt, method=method, beta=1e-3)
        equilibrium = pg.find_equilibrium(network, x, start=settled.full)
        exact = pg.adjoint(network, equilibrium, objective, y, wrt=wrt, frequencies="raw")
        assert np.all(used)
        for parameter in wrt:
            expected = weights @ exact.get(parameter) / weights.sum()
            # Rounding for the adjoint; 1e-7 / beta and beta^2 for centred nudges; beta times the bending for one.
            tolerance = {"adjoint": 1e-6, "centred": 1e-3, "two_phase": 0.05}[method]
            scale = np.max(np.abs(expected)) + 1e-2 * np.max(np.abs(exact.get("omega")))
            np.testing.assert_allclose(found[parameter], expected, atol=tolerance * scale, err_msg=parameter)

    def test_other_parameters_are_those_of_a_new_network(self):
        for network in NETWORKS.values():
            wrt = PARAMETERS if network.field_strength is not None else PARAMETERS[:2]
            rng = np.random.default_rng(0)
            turned = {
                name: values + 0.01 * rng.random(values.shape) for name, values in parameters_of(network, wrt).items()
            }
            if not network.clamps_inputs:
                turned["omega"][list(network.inputs)] = 0.0
            x, _ = three_blobs(5)
            mine = settle_batch(batch_system(network, turned, x), 1e-9)
            theirs = pg.find_equilibrium(network.replace(**turned), x, start=mine.full)
            np.testing.assert_allclose(mine.full, theirs.phases, atol=1e-6)

    def test_samples_that_are_not_locked_take_no_part(self):
        network = pg.layered(2, 5, 3, seed=2)
        x, y = three_blobs(6)
        wild = x.copy()
        wild[2] = [300.0, -300.0]
        objective = pg.NearestTarget()
        target = objective.check_target(y, network)
        gradients = []
        for inputs, rows in ((wild, [0, 1, 2, 3, 4, 5]), (x, [0, 1, 3, 4, 5])):
            settled = settle_batch(batch_system(network, {}, inputs[rows]), 1e-9)
            gradients.append(
                mean_gradient(settled, objective, target[rows], np.ones(len(rows)), wrt=("coupling",), method="adjoint")
            )
        np.testing.assert_array_equal(gradients[0][1], [True, True, False, True, True, True])
        np.testing.assert_allclose(gradients[0][0]["coupling"], gradients[1][0]["coupling"], atol=1e-8)


class TestLearning:
    @pytest.mark.parametrize("objective", MATCHED, ids=repr)
    def test_every_matched_objective_learns_three_classes(self, objective):
        x, y = three_blobs()
        learned = pg.learn(layers(objective), x, y, objective=objective, epochs=40, learning_rate=0.05, beta=0.01)
        assert learned.history.train_accuracy[0] < 0.8
        assert learned.history.train_accuracy[-1] > 0.95
        assert learned.history.train_loss[-1] < learned.history.train_loss[0]

    @pytest.mark.parametrize(
        ("options", "least"),
        [
            ({"gradient": "adjoint"}, 0.95),
            ({"gradient": "two_phase", "beta": 0.01}, 0.95),
            ({"optimizer": "momentum", "schedule": "staircase", "learning_rate": 0.1}, 0.95),
            ({"optimizer": "sgd", "learning_rate": 0.5}, 0.9),
            ({"learn": PARAMETERS}, 0.95),
            ({"learn": ("field_phase",)}, 0.5),
        ],
    )
    def test_every_way_to_learn_learns(self, options, least):
        x, y = three_blobs()
        plan = {"epochs": 30, "learning_rate": 0.05, "beta": 0.02, **options}
        learned = pg.learn(layers(), x, y, **plan)
        assert learned.history.train_accuracy[-1] >= least
        learns = set(learned.recipe.learn)
        for name in PARAMETERS:
            changed = not np.array_equal(getattr(learned.network, name), getattr(layers(), name))
            assert changed == (name in learns), name

    def test_the_papers_network_learns_frequencies_and_positive_couplings(self):
        x, y = three_blobs()
        network = pg.layered(2, 5, 3, seed=0)
        plan = {"objective": pg.NearestTarget(), "learn": ("omega", "coupling"), "epochs": 30, "learning_rate": 0.05}
        learned = pg.learn(network, x, y, **plan)
        assert learned.history.train_accuracy[-1] > learned.history.train_accuracy[0] + 0.2
        assert np.all(learned.network.coupling > 0)
        np.testing.assert_array_equal(learned.network.omega[:2], network.omega[:2])  # inputs belong to the data

    def test_nothing_learns_if_nothing_is_to_learn(self):
        x, y = three_blobs()
        network = layers()
        learned = pg.learn(network, x, y, learn=(), epochs=3)
        assert learned.network == network
        # Running means over reshuffled samples: equal but for the order of the sums.
        np.testing.assert_allclose(learned.history.train_loss, learned.history.train_loss[0], rtol=1e-9)

    def test_stopping_and_going_on_is_the_same_as_not_stopping(self):
        x, y = three_blobs()
        plan = {"epochs": 6, "input_noise": 0.1, "validation_fraction": 0.2, "patience": 3}
        whole = pg.learn(layers(), x, y, **plan)
        first = pg.learn(layers(), x, y, until=2, **plan)
        rest = pg.learn(layers(), x, y, state=first.state, **plan)
        assert rest.network == whole.network
        np.testing.assert_array_equal(rest.history.train_loss, whole.history.train_loss)

    def test_a_checkpoint_goes_on_bit_by_bit(self, tmp_path):
        x, y = three_blobs()
        plan = {"epochs": 6, "input_noise": 0.1, "validation_fraction": 0.2, "patience": 3}
        whole = pg.learn(layers(), x, y, **plan)
        save_checkpoint(tmp_path / "half.npz", pg.learn(layers(), x, y, until=3, **plan).state)
        rest = pg.learn(layers(), x, y, state=load_checkpoint(tmp_path / "half.npz"), **plan)
        assert rest.network == whole.network
        np.testing.assert_array_equal(rest.history.validation_loss, whole.history.validation_loss)

    def test_what_is_no_checkpoint_is_refused(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="There is no file"):
            load_checkpoint(tmp_path / "gone.npz")
        pg.save_model(tmp_path / "model.npz", pg.Model(layers(), MATCHED[0], ("a", "b", "c"), ("x", "y")))
        (tmp_path / "text.npz").write_text("not a file of arrays")
        for name in ("model.npz", "text.npz"):
            with pytest.raises(ValueError, match="is not a checkpoint"):
                load_checkpoint(tmp_path / name)

    def test_a_weight_of_two_is_the_sample_twice_and_zero_is_its_absence(self):
        x, y = three_blobs(30)
        plan = {"epochs": 3, "batch_size": 90, "optimizer": "sgd", "gradient": "adjoint"}
        weights = np.arange(30) % 3
        weighted = pg.learn(layers(), x, y, sample_weight=weights, **plan)
        repeated = pg.learn(layers(), np.repeat(x, weights, axis=0), np.repeat(y, weights), **plan)
        np.testing.assert_allclose(weighted.network.coupling, repeated.network.coupling, atol=1e-9)

    def test_patience_stops_and_returns_the_best_network(self):
        x, _ = three_blobs(40)
        y = np.random.default_rng(3).integers(3, size=40)  # noise: the validation cost must rise sooner or later
        plan = {"epochs": 200, "learning_rate": 0.1, "validation_fraction": 0.3, "patience": 4, "gradient": "adjoint"}
        learned = pg.learn(layers(), x, y, **plan)
        history = learned.history
        assert learned.stopped_early
        assert len(history.epoch) < 150
        best = int(np.argmin(history.validation_loss[1:])) + 1
        assert best == len(history.epoch) - 1 - 4
        again = pg.learn(layers(), x, y, until=best, **plan)
        assert again.network == learned.network

    def test_progress_is_reported_and_a_summary_names_the_untrained_score(self):
        x, y = three_blobs(30)
        seen = []
        learned = pg.learn(layers(), x, y, epochs=3, progress=lambda history: seen.append(int(history.epoch[-1])))
        assert seen == [1, 2, 3]
        assert f"train accuracy {learned.history.train_accuracy[0]:.1%} untrained" in str(learned)


class TestLockGuard:
    """Two oscillators lock while |omega_1 - omega_0| / 2 < K; a target beyond a quarter turn asks for more."""

    def network(self):
        edges = [[0, 1], [1, 2], [1, 3]]
        return pg.Network(edges, [2.0, 1.0, 1.0], [0.0, 0.0, 0.2, -0.2], inputs=[0], outputs=[2, 3], reference=1)

    def test_a_step_out_of_the_locked_region_is_shortened_and_counted(self):
        x, y = np.array([[0.1], [-0.1]]), np.array([0, 1])
        options = {"objective": pg.NearestTarget(3.0), "learn": ("omega",), "epochs": 20, "batch_size": 2}
        learned = pg.learn(self.network(), x, y, learning_rate=1.0, schedule="constant", lock_floor=0.05, **options)
        assert learned.history.shortened.sum() > 0
        assert "updates shortened by the lock guard" in str(learned)
        state = pg.find_equilibrium(learned.network, x, eigenvalue=True)
        assert np.all(state.stable)
        assert np.all(state.smallest_eigenvalue >= 0.05)

    def test_without_need_it_does_nothing(self):
        x, y = three_blobs(30)
        learned = pg.learn(layers(), x, y, epochs=3, learning_rate=1e-4)
        assert learned.history.shortened.sum() == 0


class TestOptimizers:
    def run(self, optimizer, steps=400, rate=0.05):
        """Descend a quadratic bowl of condition number 10."""
        scale = np.array([1.0, 10.0])
        place = {"a": np.array([3.0, -2.0])}
        memory = optimizer.start(place)
        for _ in range(steps):
            change, memory = optimizer.step(memory, {"a": scale * place["a"]}, rate)
            place = {"a": place["a"] + change["a"]}
        assert memory.steps == steps
        return np.max(np.abs(place["a"]))

    @pytest.mark.parametrize("optimizer", [Momentum(0.0), Momentum(0.9), Adam()])
    def test_they_reach_the_minimum(self, optimizer):
        assert self.run(optimizer) < 1e-2

    def test_adams_first_step_is_the_learning_rate_whatever_the_scale(self):
        for scale in (1e-3, 1.0, 1e3):
            optimizer = Adam()
            change, _ = optimizer.step(optimizer.start({"a": np.zeros(2)}), {"a": np.array([scale, -scale])}, 0.01)
            np.testing.assert_allclose(change["a"], [-0.01, 0.01], rtol=1e-4)

    def test_momentum_agrees_with_torch(self):
        torch = pytest.importorskip("torch")
        for mine, kind, options in (
            (Momentum(0.8), torch.optim.SGD, {"momentum": 0.8}),
            (Adam(), torch.optim.Adam, {}),
        ):
            parameter = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
            theirs = kind([parameter], lr=0.1, **options)
            place, memory = {"a": np.array([1.0, -2.0])}, mine.start({"a": np.zeros(2)})
            for _ in range(5):
                theirs.zero_grad()
                (parameter**4).sum().backward()
                theirs.step()
                change, memory = mine.step(memory, {"a": 4 * place["a"] ** 3}, 0.1)
                place = {"a": place["a"] + change["a"]}
            np.testing.assert_allclose(place["a"], parameter.detach().numpy(), rtol=1e-12)

    def test_schedules(self):
        assert [Constant().factor(p) for p in (0, 0.5, 1)] == [1, 1, 1]
        np.testing.assert_allclose([Cosine(0.1).factor(p) for p in (0, 0.5, 1)], [1, 0.55, 0.1])
        np.testing.assert_allclose([Staircase(0.5, 2).factor(p) for p in (0, 0.49, 0.5, 1)], [1, 1, 0.5, 0.5])


class TestBadInput:
    @pytest.mark.parametrize(
        ("changes", "error", "message"),
        [
            ({"learn": ("mass",)}, ValueError, "'learn' parameter of the recipe must be one of 'omega'"),
            ({"objective": pg.PhaseTargets()}, TypeError, "must be an objective for classes"),
            ({"optimizer": "newton"}, ValueError, "'optimizer' parameter of the recipe"),
            ({"schedule": "wavy"}, ValueError, "'schedule' parameter of the recipe"),
            ({"gradient": "guess"}, ValueError, "'gradient' parameter of the recipe"),
            ({"epochs": -1}, ValueError, "'epochs' parameter of the recipe"),
            ({"beta": 0}, ValueError, "'beta' parameter of the recipe"),
            ({"input_noise": -1}, ValueError, "'input_noise' parameter of the recipe"),
            ({"patience": 3}, ValueError, "needs a validation_fraction above 0"),
            ({"colour": "red"}, TypeError, "learn has no option 'colour'"),
        ],
    )
    def test_wrong_recipes_are_refused(self, changes, error, message):
        x, y = three_blobs(9)
        with pytest.raises(error, match=message):
            pg.learn(layers(), x, y, **changes)

    @pytest.mark.parametrize(
        ("network", "x", "y", "options", "message"),
        [
            (layers(), np.zeros((3, 4)), [0, 1, 2], {}, "one value per input"),
            (layers(), np.zeros((3, 2)), [0, 1], {}, "one class number for each"),
            (layers(), np.zeros((0, 2)), np.zeros(0, int), {}, "at least one"),
            (layers(), np.zeros((3, 2)), [0, 1, 3], {}, "must be class numbers from 0 to 2"),
            (layers(), np.zeros((3, 2)), [0, 1, 2], {"sample_weight": [1, -1, 1]}, "none negative"),
            (layers(), np.zeros((3, 2)), [0, 1, 2], {"sample_weight": [0, 0, 0]}, "not all zero"),
            (pg.layered(2, 5, 3), np.zeros((3, 2)), [0, 1, 2], {}, "this network has no field"),
            (layers(interaction=pg.OddSeries((1, 0.1))), np.zeros((3, 2)), [0, 1, 2], {}, "reciprocal sine coupling"),
        ],
    )
    def test_wrong_samples_and_networks_are_refused(self, network, x, y, options, message):
        with pytest.raises(ValueError, match=message):
            pg.learn(network, x, y, epochs=1, **options)


def test_signed_layers_start_undecided_and_locked_whatever_their_size():
    for sizes in ((2, 3, 2), (64, 100, 10), (10, 0, 30)):
        network = pg.signed_layers(*sizes, rest=np.pi / 2, seed=3)
        x = np.random.default_rng(0).uniform(-1, 1, (20, sizes[0]))
        state = pg.find_equilibrium(network, x, solver="batch")
        assert np.all(state.stable)
        outputs = state.phases[:, list(network.outputs)]
        assert np.max(np.abs(outputs - np.pi / 2)) < 0.6


def test_a_recipe_is_a_value():
    recipe = pg.Recipe(learn="coupling", optimizer="sgd")
    assert recipe.learn == ("coupling",)
    assert recipe.optimizer == Momentum(0.0)
    assert dataclasses.replace(recipe, epochs=3) == pg.Recipe(learn=["coupling"], optimizer=Momentum(0.0), epochs=3)


def test_a_lattice_that_the_matrix_products_do_not_settle_goes_on_learning():
    """Alignment creeps over a lattice; samples it leaves unsettled must not drop out of the training for good."""
    iris = pg.datasets.classic("iris", seed=0)
    graph = pg.grid(8, 8)
    field = {"field_strength": np.full(64, 0.3), "field_phase": np.full(64, np.pi / 2)}
    roles = {"inputs": [0, 16, 40, 56], "outputs": [7, 31, 63], "input_mode": "phase", "input_scale": 1.0}
    coupling = np.random.default_rng(0).uniform(0.5, 1.5, graph.n_edges)
    lattice = graph.replace(coupling=coupling, omega=np.zeros(64), signed=True, **field, **roles)
    learned = pg.learn(lattice, iris.x_train, iris.y_train, epochs=20, learning_rate=0.05, gradient="adjoint")
    assert learned.history.skipped.sum() <= 0.05 * 20 * 120
    assert learned.history.train_loss[-1] < 0.6 * learned.history.train_loss[0]
