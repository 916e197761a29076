"""Training: against published values seed by seed, against two slower implementations, and in its own consistency."""

import subprocess
import sys

import numpy as np
import pytest

import phasegrad as pg
from phasegrad.benchmarks.plain import PlainTraining
from phasegrad.studies.finding import published
from phasegrad.training.engine import Rates
from phasegrad.training.lanes import LaneEngine

SEEDS = 100
ONE_SAMPLE = 1 / 55 + 1e-6  # published to six digits


@pytest.fixture(scope="module")
def vowels():
    return [pg.datasets.vowels(["a", "i"], seed=seed) for seed in range(SEEDS)]


@pytest.fixture(scope="module")
def paper_networks():
    return [pg.layered(2, 5, 2, seed=seed) for seed in range(SEEDS)]


def tiny(n: int = 12, classes: int = 2, features: int = 2, seed: int = 0) -> pg.datasets.Dataset:
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-1, 1, (2 * n, features)), rng.integers(0, classes, 2 * n)
    y[:classes] = y[n : n + classes] = np.arange(classes)
    return pg.datasets.from_arrays(x[:n], y[:n], x[n:], y[n:])


def same(result: pg.TrainingResult, other: pg.TrainingResult) -> None:
    """Bitwise equality of all that training returns."""
    for mine, theirs in zip(result.networks, other.networks, strict=True):
        assert mine == theirs
    for name in ("train_accuracy", "train_loss", "test_accuracy", "test_loss", "separation", "common_phase", "skipped"):
        np.testing.assert_array_equal(getattr(result.history, name), getattr(other.history, name), err_msg=name)


class TestPublished:
    """Each run takes about a second for all hundred seeds."""

    @pytest.mark.parametrize(("variant", "leak"), [("as_described", False), ("published", True)])
    @pytest.mark.parametrize("learn", ["omega", "coupling", "both"])
    def test_the_ablation_is_reproduced_for_every_seed(self, paper_networks, vowels, learn, variant, leak):
        known = published("ablation")[variant][learn]
        result = pg.train_many(paper_networks, vowels, learn=learn, epochs=150, evaluate_every=30, edge_leak=leak)
        np.testing.assert_allclose(result.history.score(), known["test"], atol=1e-6)
        np.testing.assert_allclose(result.history.train_accuracy[:, -1], known["train"], atol=1e-6)
        assert result.history.skipped.sum() == 0

    @pytest.mark.parametrize("arm", ["omega", "coupling_7", "coupling_24"])
    def test_the_parameter_matched_control_is_reproduced(self, paper_networks, vowels, arm):
        mask = np.ones((SEEDS, 24), dtype=bool)
        if arm == "coupling_7":
            chosen = [np.random.default_rng(seed + 10_000).choice(24, 7, replace=False) for seed in range(SEEDS)]
            mask = np.array([np.isin(np.arange(24), edges) for edges in chosen])
        options = {"edge_leak": True} if arm == "omega" else {"learn": "coupling", "learn_coupling": mask}
        result = pg.train_many(paper_networks, vowels, loop="matched", **options)
        exact = np.abs(result.history.score() - published("parameter_matched")[arm]["test"]) < 1e-6
        assert exact.sum() >= 99

    def test_spectral_seeding_and_its_alternatives_are_reproduced(self, paper_networks, vowels):
        known = published("spectral")
        probe = pg.datasets.vowels(["a", "i"], seed=42).x_train[:10]
        starts = {
            "random": (paper_networks, 46),
            "spectral": ([pg.spectral_seed(network) for network in paper_networks], 100),
            "output_only": (
                [pg.output_seed(net, sign=-1, seed=seed + 10_000) for seed, net in enumerate(paper_networks)],
                0,
            ),
            "multi_start": (
                [pg.multi_start_seed(net, probe, seed=seed + 10_000) for seed, net in enumerate(paper_networks)],
                55,
            ),
        }
        for name, (networks, successes) in starts.items():
            result = pg.train_many(networks, vowels, evaluate_every=200, edge_leak=name == "random")
            score = result.history.score()
            assert np.max(np.abs(score - known[name])) <= ONE_SAMPLE, name
            assert int(np.sum(score > 0.6)) == successes, name

    def test_condition_numbers_are_those_published(self, paper_networks):
        """The stored file was made with the edge leak and with scaling by all rows."""
        known = published("convergence")["rows"][:8]
        data = [pg.datasets.vowels(["a", "i"], seed=seed, scale_by="all") for seed in range(8)]
        result = pg.train_many(
            paper_networks[:8], data, learn="both", epochs=150, evaluate_every=10, edge_leak=True, condition=True
        )
        np.testing.assert_allclose(result.history.condition[:, 0], [row["cond0"] for row in known], atol=1e-9)
        np.testing.assert_allclose(result.history.condition[:, -1], [row["condF"] for row in known], atol=1e-5)
        np.testing.assert_allclose(result.history.test_loss[:, 0], [row["init_loss"] for row in known], atol=1e-12)


class TestAgainstSlowerWays:
    @pytest.mark.parametrize("learn", ["omega", "coupling", "both"])
    @pytest.mark.parametrize("gradient", ["two_phase", "adjoint", "finite_difference"])
    def test_lanes_do_what_the_generic_engine_does(self, learn, gradient):
        """Errors of 1e-11 per equilibrium, over beta or over the step of differences, times the learning rate."""
        network, data = pg.layered(2, 4, 2, seed=3), tiny()
        options = {"learn": learn, "gradient": gradient, "epochs": 3, "learning_rate": 0.05, "evaluate_every": 2}
        fast = pg.train(network, data, engine="lanes", **options)
        slow = pg.train(network, data, engine="generic", **options)
        np.testing.assert_allclose(fast.network.omega, slow.network.omega, atol=1e-7)
        np.testing.assert_allclose(fast.network.coupling, slow.network.coupling, atol=1e-7)
        assert np.abs(fast.network.omega - network.omega).max() > 1e-3 or learn == "coupling"
        assert np.abs(fast.network.coupling - network.coupling).max() > 1e-4 or learn == "omega"
        for name in ("train_loss", "test_loss", "separation", "common_phase"):
            np.testing.assert_allclose(
                getattr(fast.history, name), getattr(slow.history, name), atol=1e-8, err_msg=name
            )
        np.testing.assert_array_equal(fast.history.test_accuracy, slow.history.test_accuracy)
        np.testing.assert_array_equal(fast.history.epoch, [0, 1, 2, 3])

    @pytest.mark.parametrize("frequencies", ["centred", "raw"])
    @pytest.mark.parametrize("objective", [pg.PaperPair(), pg.NearestTarget(0.4)])
    @pytest.mark.parametrize("loop", ["main", "matched"])
    def test_every_option_means_the_same_in_both_engines(self, frequencies, objective, loop):
        network = pg.layered(3, 4, 3, seed=1)
        data = tiny(classes=3, features=3)
        options = {"frequencies": frequencies, "objective": objective, "loop": loop, "learn": "both"}
        fast = pg.train(network, data, engine="lanes", epochs=2, coupling_rate=0.1, **options)
        slow = pg.train(network, data, engine="generic", epochs=2, coupling_rate=0.1, **options)
        np.testing.assert_allclose(fast.network.omega, slow.network.omega, atol=1e-9)
        np.testing.assert_allclose(fast.network.coupling, slow.network.coupling, atol=1e-8)
        np.testing.assert_array_equal(fast.history.test_accuracy, slow.history.test_accuracy)
        np.testing.assert_array_equal(fast.history.train_accuracy, slow.history.train_accuracy)

    def test_strong_inputs_settle_as_exactly_as_weak_ones(self):
        """Angles above one radian, where Newton needs several steps from one sample to the next."""
        network, data = pg.layered(2, 4, 2, seed=3, input_scale=7.5), tiny()
        assert pg.find_equilibrium(network, data.x_train).largest_angle.max() > 1.0
        fast, slow = (pg.train(network, data, engine=engine, epochs=2, learn="both") for engine in ("lanes", "generic"))
        np.testing.assert_allclose(fast.network.omega, slow.network.omega, atol=1e-10)
        np.testing.assert_allclose(fast.network.coupling, slow.network.coupling, atol=1e-10)
        np.testing.assert_allclose(fast.history.test_loss, slow.history.test_loss, atol=1e-9)

    @pytest.mark.parametrize("build", [pg.complete, pg.ring, lambda n, **options: pg.grid(3, n // 3, **options)])
    def test_any_topology_trains(self, build):
        network = build(9, inputs=(1, 4), outputs=(6, 8), coupling=1.5, input_scale=0.3)
        data = tiny()
        fast, slow = (pg.train(network, data, engine=engine, epochs=2, learn="both") for engine in ("lanes", "generic"))
        np.testing.assert_allclose(fast.network.omega, slow.network.omega, atol=1e-9)
        np.testing.assert_allclose(fast.network.coupling, slow.network.coupling, atol=1e-9)

    @pytest.mark.parametrize("epochs", [3, pytest.param(200, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("seed", range(4))
    def test_final_frequencies_are_those_of_the_plain_way(self, paper_networks, vowels, seed, epochs):
        """The plain way needs half a minute per seed for 200 epochs."""
        data = vowels[seed]
        plain = PlainTraining(paper_networks[seed], data.x_train, data.y_train, seed)
        plain.run(epochs, evaluate_every=20)
        result = pg.train(paper_networks[seed], data, seed=seed, epochs=epochs)
        np.testing.assert_allclose(result.network.omega[2:], plain.omega[2:], atol=1e-9)
        assert result.history.score()[0] == plain.accuracy(data.x_test, data.y_test)

    def test_other_kinds_of_networks_train_generically(self):
        data = tiny(6)
        field = pg.layered(2, 3, 2, field_strength=0.2, interaction=pg.OddSeries((1.0, 0.2)))
        clamped = pg.layered(2, 3, 2, input_mode="phase", input_scale=0.5)
        for network in (field, clamped):
            result = pg.train(network, data, epochs=2, learn="both", learning_rate=0.05)
            assert result.history.test_loss[0, -1] < result.history.test_loss[0, 0]
            with pytest.raises(ValueError, match=r"Use engine=.generic."):
                pg.train(network, data, engine="lanes")


class TestIndependence:
    @pytest.mark.parametrize("learn", ["omega", "both"])
    def test_threads_change_nothing(self, paper_networks, vowels, learn):
        runs = [
            pg.train_many(paper_networks[:40], vowels[:40], learn=learn, epochs=5, threads=threads)
            for threads in (1, 2, 3)
        ]
        same(runs[0], runs[1])
        same(runs[0], runs[2])

    def test_company_changes_nothing(self, paper_networks, vowels):
        """A network alone, in another group, or beside others with large steps, is bitwise the same."""
        together = pg.train_many(paper_networks[:20], vowels[:20], epochs=5, learn="both", loop="matched")
        for k in (0, 7, 15, 16, 19):
            alone = pg.train(paper_networks[k], vowels[k], seed=k, epochs=5, learn="both", loop="matched")
            assert alone.network == together.networks[k]
            np.testing.assert_array_equal(alone.history.test_loss[0], together.history.test_loss[k])

    def test_company_changes_nothing_where_lanes_need_different_numbers_of_steps(self, vowels):
        """Strong inputs on some networks only: their lanes go on for several steps after the others are done."""
        networks = [pg.layered(2, 5, 2, seed=seed, input_scale=4.0) for seed in range(16)]
        data = [
            pg.datasets.from_arrays(scale * each.x_train, each.y_train, scale * each.x_test, each.y_test)
            for scale, each in zip([1.0, 0.02] * 8, vowels[:16], strict=True)
        ]
        together = pg.train_many(networks, data, epochs=3, loop="matched", learning_rate=0.05)
        for k in (0, 1, 7, 8):
            alone = pg.train(networks[k], data[k], seed=k, epochs=3, loop="matched", learning_rate=0.05)
            assert alone.network == together.networks[k], k

    @pytest.mark.parametrize("loop", ["main", "matched"])
    @pytest.mark.parametrize("stops", [(1, 2, 3, 10), (7,), (4, 5)])
    def test_training_can_stop_and_go_on_exactly(self, paper_networks, vowels, loop, stops):
        plan = {"epochs": 10, "evaluate_every": 4, "loop": loop, "learn": "both"}
        straight = pg.train_many(paper_networks[:3], vowels[:3], **plan)
        result = pg.train_many(paper_networks[:3], vowels[:3], until=stops[0], **plan)
        history = result.history
        for stop in (*stops[1:], 10):
            result = pg.train_many(paper_networks[:3], vowels[:3], until=stop, state=result.state, **plan)
            history = history.join(result.history)
        assert result.networks == straight.networks
        assert result.state.epoch == 10
        planned = np.isin(history.epoch, straight.history.epoch)
        _, first = np.unique(history.epoch[planned], return_index=True)
        np.testing.assert_array_equal(history.test_loss[:, planned][:, first], straight.history.test_loss)

    def test_how_many_orders_fit_in_memory_changes_nothing(self, paper_networks, vowels, monkeypatch):
        plan = {"epochs": 9, "evaluate_every": 6, "loop": "matched"}
        whole = pg.train_many(paper_networks[:3], vowels[:3], **plan)
        monkeypatch.setattr("phasegrad.training.trainer._ORDERS_AT_ONCE", 2 * 3 * 220)
        same(pg.train_many(paper_networks[:3], vowels[:3], **plan), whole)

    def test_interventions_between_epochs_are_plain_code(self, paper_networks, vowels):
        """A coupling floor after every epoch, as in the paper's five configurations."""
        plan = {"epochs": 6, "learn": "both", "coupling_rate": 0.5}
        state = None
        for epoch in range(1, 7):
            result = pg.train_many(paper_networks[:2], vowels[:2], until=epoch, state=state, **plan)
            lifted = [net.replace(coupling=np.maximum(net.coupling, 1.5)) for net in result.networks]
            state = pg.TrainingState(epoch, tuple(lifted), result.state.streams, result.state.phases)
        assert min(net.coupling.min() for net in state.networks) == 1.5
        free = pg.train_many(paper_networks[:2], vowels[:2], **plan)
        assert free.networks[0].coupling.min() < 1.5


class TestHistory:
    def test_it_starts_untrained_and_follows_the_schedule(self, paper_networks, vowels):
        result = pg.train_many(paper_networks[:3], vowels[:3], epochs=7, evaluate_every=3)
        assert result.history.epoch.tolist() == [0, 1, 3, 6, 7]
        for r in range(3):
            phases = pg.find_equilibrium(paper_networks[r], vowels[r].x_test).phases[:, [7, 8]]
            accuracy = np.mean(np.argmax(np.cos(phases), axis=1) == vowels[r].y_test)
            assert result.history.test_accuracy[r, 0] == pytest.approx(accuracy, abs=1e-15)
            assert result.history.separation[r, 0] == pytest.approx(np.mean(phases[:, 0] - phases[:, 1]), abs=1e-11)
            assert result.history.common_phase[r, 0] == pytest.approx(phases.mean(), abs=1e-11)
        assert "3 networks, 7 epochs" in str(result)

    def test_zero_epochs_return_the_untrained_evaluation(self, paper_networks, vowels):
        result = pg.train(paper_networks[0], vowels[0], epochs=0)
        assert result.history.epoch.tolist() == [0]
        assert result.network == paper_networks[0]

    def test_the_best_of_history_is_at_least_the_last(self, paper_networks, vowels):
        history = pg.train_many(paper_networks[:8], vowels[:8], epochs=20, evaluate_every=5).history
        assert np.all(history.score("best") >= history.score("final"))
        assert np.any(history.score("best") > history.score("final"))
        with pytest.raises(ValueError, match=r"'kind' parameter of History.score"):
            history.score("median")

    def test_as_a_table(self, paper_networks, vowels):
        table = pg.train_many(paper_networks[:2], vowels[:2], epochs=2, evaluate_every=1).history.to_pandas()
        assert list(table["network"]) == [0, 0, 0, 1, 1, 1]
        assert list(table["epoch"]) == [0, 1, 2] * 2
        assert "condition" not in table

    def test_progress_is_told_of_every_evaluation(self, paper_networks, vowels):
        seen = []
        pg.train(
            paper_networks[0],
            vowels[0],
            epochs=6,
            evaluate_every=2,
            progress=lambda e, h: seen.append((e, len(h.epoch))),
        )
        assert seen == [(1, 2), (2, 3), (4, 4), (6, 5)]

    def test_ctrl_c_keeps_what_was_trained(self, paper_networks, vowels):
        def stop(epoch, _):
            if epoch == 4:
                raise KeyboardInterrupt

        result = pg.train(paper_networks[0], vowels[0], epochs=10, evaluate_every=2, progress=stop)
        assert result.interrupted
        assert result.state.epoch == 2
        assert result.history.epoch.tolist() == [0, 1, 2]
        whole = pg.train(paper_networks[0], vowels[0], epochs=10, evaluate_every=2)
        going_on = pg.train(paper_networks[0], vowels[0], epochs=10, evaluate_every=2, state=result.state)
        assert going_on.network == whole.network


class TestFailures:
    @pytest.mark.parametrize("engine", ["lanes", "generic"])
    def test_samples_without_equilibrium_are_skipped_counted_and_wrong(self, engine):
        """Inputs far beyond locking in two training and one test sample; their neighbours are not disturbed."""
        good = tiny()
        x_train, x_test = good.x_train.copy(), good.x_test.copy()
        x_train[[3, 8]], x_test[5] = [400.0, -400.0], [400.0, -400.0]
        bad = pg.datasets.from_arrays(x_train, good.y_train, x_test, good.y_test)
        network = pg.layered(2, 4, 2, seed=0)
        result = pg.train(network, bad, epochs=4, evaluate_every=2, engine=engine)
        assert result.history.skipped[0].tolist() == [0, 2, 2, 4]
        assert np.all(result.history.test_skipped == 1)
        assert np.all(np.isfinite(result.network.omega))
        assert result.history.test_accuracy.max() <= 11 / 12
        other = pg.train(network, bad, epochs=4, evaluate_every=2, engine="generic")
        np.testing.assert_allclose(result.network.omega, other.network.omega, atol=1e-9)

    def test_a_failing_network_does_not_touch_the_others_in_its_group(self):
        good = [tiny(seed=seed) for seed in range(5)]
        wild = pg.datasets.from_arrays(1e4 * good[2].x_train, good[2].y_train, good[2].x_test, good[2].y_test)
        networks = [pg.layered(2, 4, 2, seed=seed) for seed in range(5)]
        clean = pg.train_many(networks, good, epochs=3)
        mixed = pg.train_many(networks, [*good[:2], wild, *good[3:]], epochs=3)
        for k in (0, 1, 3, 4):
            assert mixed.networks[k] == clean.networks[k]
        assert mixed.history.skipped[2].sum() > 0

    @pytest.mark.parametrize(("loop", "counted"), [("main", True), ("matched", False)])
    def test_a_sample_without_gradient_is_skipped_though_its_free_state_is_fine(self, loop, counted):
        """Differences that turn a frequency by a thousand cannot settle; only the main loop then scores the sample."""
        network, data = pg.layered(2, 4, 2, seed=0), tiny()
        rates = Rates(np.full((1, 8), 0.1) * ~np.isin(np.arange(8), network.inputs), np.zeros((1, network.n_edges)))
        engine = LaneEngine(
            [network], [data], pg.Protocol(gradient="finite_difference", loop=loop), rates, np.zeros((1, 8))
        )
        engine.rule = engine.rule._replace(difference_step=1e3)
        tallies = engine.train(np.arange(12)[None, None])
        assert tallies.skipped.item() == 12
        assert (tallies.loss.item() > 0) == counted
        np.testing.assert_array_equal(engine.parameters()[0][0], network.omega)

    def test_unstable_states_are_counted(self):
        """Repelling oscillators in phase: an equilibrium that Newton finds from zero and noise would destroy."""
        network = pg.complete(5, coupling=-1.0, signed=True, inputs=(0, 1), outputs=(3, 4), input_scale=0.1)
        result = pg.train(network, tiny(), epochs=2, evaluate_every=1, coupling_bounds=(-8.0, 8.0))
        assert result.history.unstable[0].tolist() == [0, 12, 12]
        assert result.history.skipped.sum() == 0
        stable = pg.train(network.replace(coupling=1.0), tiny(), epochs=2, evaluate_every=1)
        assert stable.history.unstable.sum() == 0

    def test_bounds_and_clipping_hold(self):
        network, data = pg.layered(2, 4, 2, seed=0), tiny()
        result = pg.train(network, data, epochs=5, learn="both", learning_rate=0.5, coupling_rate=5.0,
                          omega_bounds=(-0.05, 0.05), coupling_bounds=(1.5, 2.0))  # fmt: skip
        assert np.all(np.abs(result.network.omega) <= 0.05)
        assert network.coupling.min() < 1.5 <= result.network.coupling.min()
        assert result.network.coupling.max() == 2.0
        small = pg.train(network, data, epochs=1, clip=1e-9)
        assert np.abs(small.network.omega - network.omega).max() <= 1e-12 * 12

    def test_masks_keep_what_they_exclude(self):
        network, data = pg.layered(2, 4, 2, seed=0), tiny()
        edges = np.arange(network.n_edges) % 3 == 0
        nodes = np.arange(8) == 7
        result = pg.train(network, data, epochs=2, learn="both", learn_coupling=edges, learn_omega=nodes)
        assert np.array_equal(result.network.coupling != network.coupling, edges)
        assert np.array_equal(result.network.omega != network.omega, nodes)


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                {"learning_rate": -0.1},
                "'learning_rate' parameter of the training protocol must be a float greater than 0",
            ),
            ({"coupling_rate": 0}, "'coupling_rate'"),
            ({"beta": 0}, "'beta'"),
            ({"epochs": -1}, "'epochs'"),
            ({"epochs": 2.5}, "'epochs'"),
            ({"learn": "mass"}, "must be one of 'omega', 'coupling', 'both'"),
            ({"gradient": "backprop"}, "'gradient'"),
            ({"loop": "third"}, "'loop'"),
            ({"omega_bounds": (1, -1)}, "'omega_bounds'"),
            ({"learn_coupling": np.ones(7, bool)}, r"'learn_coupling' parameter of train must be .* shape \(24,\)"),
            ({"learn_omega": np.ones(9)}, "an array of True and False"),
            ({"until": 300}, "cannot stop at 300"),
            ({"engine": "gpu"}, "'engine' parameter of train"),
            ({"threads": 0}, "'threads' parameter"),
            ({"seed": "x"}, "'seed' parameter of train"),
        ],
    )
    def test_wrong_options_are_refused(self, paper_networks, vowels, options, message):
        with pytest.raises(ValueError, match=message):
            pg.train(paper_networks[0], vowels[0], **options)

    def test_unknown_options_and_objectives_are_refused(self, paper_networks, vowels):
        with pytest.raises(
            TypeError, match=r"train has no option 'momentum'. Options of the protocol are learn, epochs"
        ):
            pg.train(paper_networks[0], vowels[0], momentum=0.9)
        with pytest.raises(TypeError, match="must be an objective for classes"):
            pg.train(paper_networks[0], vowels[0], objective=pg.PhaseTargets())

    def test_data_that_does_not_fit_is_refused(self, paper_networks, vowels):
        network = paper_networks[0]
        with pytest.raises(ValueError, match="3 features, but the networks have 2 inputs"):
            pg.train(network, tiny(features=3))
        with pytest.raises(ValueError, match="3 classes, but the networks have 2 outputs"):
            pg.train(network, tiny(classes=3))
        with pytest.raises(ValueError, match="2 classes, but the networks have 3 outputs"):
            pg.train(pg.layered(2, 5, 3), tiny())
        with pytest.raises(TypeError, match="'datasets' parameter of train_many must be a list of Dataset"):
            pg.train(network, (1, 2))
        with pytest.raises(TypeError, match="'networks' parameter of train_many must be a list of Network"):
            pg.train_many(network, vowels[0])
        with pytest.raises(ValueError, match="another number of samples"):
            pg.train_many([network] * 2, [vowels[0], tiny()])
        with pytest.raises(ValueError, match="one data set per network"):
            pg.train_many([network] * 2, [vowels[0]])
        with pytest.raises(ValueError, match="one data set per network"):
            pg.train_many([], [])
        with pytest.raises(ValueError, match=r"one seed per network, 2. Got 3"):
            pg.train_many([network] * 2, vowels[:2], seeds=[1, 2, 3])

    def test_networks_of_different_topology_are_refused(self, vowels):
        with pytest.raises(ValueError, match="Network 1 has another topology than network 0"):
            pg.train_many([pg.layered(2, 5, 2), pg.layered(2, 6, 2)], vowels[:2])
        with pytest.raises(ValueError, match="Network 1 has another topology"):
            pg.train_many([pg.layered(2, 5, 2), pg.layered(2, 5, 2, input_scale=2.0)], vowels[:2])


@pytest.mark.slow
def test_ten_thousand_networks_fit_into_a_gigabyte():
    code = (
        "import resource, phasegrad as pg\n"
        "nets = [pg.layered(2, 5, 2, seed=s) for s in range(10_000)]\n"
        "data = [pg.datasets.vowels(seed=s) for s in range(10_000)]\n"
        "pg.train_many(nets, data, epochs=2)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(result.stdout) < 1000
