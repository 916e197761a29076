"""Training: against published values seed by seed, against slower implementations, and in its own consistency."""

import dataclasses
import json
import os
import subprocess
import sys
import warnings
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest

import phasegrad as pg
from phasegrad.dynamics import build_system
from phasegrad.gradients import MeanGradient, Propagation
from phasegrad.linearised import PhasorLaplacian
from phasegrad.objectives import CLASS_OBJECTIVES
from phasegrad.solvers import AlignedNewton, Newton, _choice
from phasegrad.training import Adam, Constant, Cosine, Momentum, Staircase, prepare
from phasegrad.training._lanes import processors
from phasegrad.training._samples import Samples, validation_rows
from phasegrad_bench import PlainTraining
from phasegrad_paper.studies import published
from phasegrad_paper.studies.arms import SpotChecks, leaked

SEEDS = 100
PROBED = 32  # samples whose gradient is compared on request
ONE_SAMPLE = 1 / 55 + 1e-6  # published to six digits
PARAMETERS = ("omega", "coupling", "field_strength", "field_phase")
MATCHED = [kind() for name, kind in CLASS_OBJECTIVES.items() if name != "PaperPair"]


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


def three_blobs(count: int = 60, seed: int = 0):
    rng = np.random.default_rng(seed)
    y = np.arange(count) % 3
    centres = np.array([[-0.6, -0.4], [0.6, -0.4], [0.0, 0.6]])
    return centres[y] + 0.15 * rng.standard_normal((count, 2)), y


def layers(objective=None, seed=1, **options) -> pg.Network:
    rest = pg.CosineCrossEntropy.undecided if objective is None else objective.undecided
    return pg.networks.signed_layers(2, 6, 3, rest=rest, seed=seed, **options)


class InOrder(pg.training.Shuffle):
    """The samples as they come."""

    def order(self, stream, size, epoch):
        return np.arange(size)


def spot_checked(plan: pg.Plan) -> pg.Plan:
    """Return the plan as the paper's main loop runs it."""
    return plan.replace(shuffle=SpotChecks())


def same(result: pg.Training, other: pg.Training) -> None:
    """Bitwise equality of all that training returns."""
    for mine, theirs in zip(result.networks, other.networks, strict=True):
        assert mine == theirs
    for item in dataclasses.fields(pg.training.History):
        if item.name != "records":
            np.testing.assert_array_equal(
                getattr(result.history, item.name), getattr(other.history, item.name), item.name
            )


class TestPublished:
    """Each run takes about a second for all hundred seeds."""

    @pytest.mark.parametrize(("variant", "leak"), [("as_described", False), ("published", True)])
    @pytest.mark.parametrize("learn", ["omega", "coupling", "omega,coupling"])
    def test_the_ablation_is_reproduced_for_every_seed(self, paper_networks, vowels, learn, variant, leak):
        known = published("ablation")[variant]["both" if "," in learn else learn]
        networks = [leaked(network) for network in paper_networks] if leak else paper_networks
        plan = spot_checked(pg.Plan.paper(learn.split(","), epochs=150, evaluate_every=30))
        result = pg.train(networks, vowels, plan)
        np.testing.assert_allclose(result.history.score(), known["test"], atol=1e-6)
        np.testing.assert_allclose(result.history.train_accuracy[:, -1], known["train"], atol=1e-6)
        assert result.history.skipped.sum() == 0

    @pytest.mark.parametrize("arm", ["omega", "coupling_7", "coupling_24"])
    def test_the_parameter_matched_control_is_reproduced(self, paper_networks, vowels, arm):
        mask = np.ones((SEEDS, 24), dtype=bool)
        if arm == "coupling_7":
            chosen = [np.random.default_rng(seed + 10_000).choice(24, 7, replace=False) for seed in range(SEEDS)]
            mask = np.array([np.isin(np.arange(24), edges) for edges in chosen])
        plan = pg.Plan.paper("omega" if arm == "omega" else "coupling", warm_start="run")
        networks = [leaked(network) for network in paper_networks] if arm == "omega" else paper_networks
        result = pg.train(networks, vowels, plan, mask=None if arm == "omega" else {"coupling": mask})
        exact = np.abs(result.history.score() - published("parameter_matched")[arm]["test"]) < 1e-6
        assert exact.sum() >= 99

    def test_spectral_frequencies_and_their_alternatives_are_reproduced(self, paper_networks, vowels):
        known = published("spectral")
        probe = pg.datasets.vowels(["a", "i"], seed=42).x_train[:10]
        starts = {
            "random": ([leaked(network) for network in paper_networks], 46),
            "spectral": ([pg.initial.spectral_frequencies(network) for network in paper_networks], 100),
            "output_only": (
                [
                    pg.initial.output_frequencies(net, sign=-1, seed=seed + 10_000)
                    for seed, net in enumerate(paper_networks)
                ],
                0,
            ),
            "multi_start": (
                [
                    pg.initial.multi_start_frequencies(net, probe, seed=seed + 10_000)
                    for seed, net in enumerate(paper_networks)
                ],
                55,
            ),
        }
        for name, (networks, successes) in starts.items():
            score = pg.train(networks, vowels, spot_checked(pg.Plan.paper(evaluate_every=200))).history.score()
            assert np.max(np.abs(score - known[name])) <= ONE_SAMPLE, name
            assert int(np.sum(score > 0.6)) == successes, name

    def test_condition_numbers_are_those_published(self, paper_networks):
        """The stored file was made with the edge leak and with scaling by all rows."""
        known = published("convergence")["rows"][:8]
        data = [pg.datasets.vowels(["a", "i"], seed=seed, scale_by="all") for seed in range(8)]
        plan = pg.Plan.paper(["omega", "coupling"], epochs=150, evaluate_every=10, record="condition")
        result = pg.train([leaked(network) for network in paper_networks[:8]], data, spot_checked(plan))
        np.testing.assert_allclose(result.history.condition[:, 0], [row["cond0"] for row in known], atol=1e-9)
        np.testing.assert_allclose(result.history.condition[:, -1], [row["condF"] for row in known], atol=1e-5)
        np.testing.assert_allclose(result.history.test_loss[:, 0], [row["init_loss"] for row in known], atol=1e-12)


class TestAgainstSlowerWays:
    @pytest.mark.parametrize("learn", [("omega",), ("coupling",), ("omega", "coupling")])
    @pytest.mark.parametrize("gradient", ["two_phase", "centred", "adjoint", "finite_difference"])
    def test_lanes_do_what_the_batch_engine_does(self, learn, gradient):
        """Errors of 1e-11 per equilibrium, over beta or over the step of differences, times the learning rate."""
        network, data = pg.layered(2, 4, 2, seed=3), tiny()
        plan = pg.Plan.paper(learn, gradient=gradient, epochs=3, learning_rate=0.05, evaluate_every=2)
        fast, slow = (pg.train(network, data, plan, engine=engine) for engine in ("lanes", "batch"))
        np.testing.assert_allclose(fast.network.omega, slow.network.omega, atol=1e-7)
        np.testing.assert_allclose(fast.network.coupling, slow.network.coupling, atol=1e-7)
        assert np.abs(fast.network.omega - network.omega).max() > 1e-3 or "omega" not in learn
        assert np.abs(fast.network.coupling - network.coupling).max() > 1e-4 or "coupling" not in learn
        for name in ("train_loss", "test_loss", "separation", "common_phase"):
            np.testing.assert_allclose(
                getattr(fast.history, name), getattr(slow.history, name), atol=1e-8, err_msg=name
            )
        np.testing.assert_array_equal(fast.history.test_accuracy, slow.history.test_accuracy)
        np.testing.assert_array_equal(fast.history.epoch, [0, 1, 2, 3])

    @pytest.mark.parametrize("frequencies", ["relative", "raw"])
    @pytest.mark.parametrize("objective", [pg.objectives.PaperPair(), pg.objectives.NearestTarget(0.4)])
    @pytest.mark.parametrize("warm_start", ["epoch", "run", "none"])
    def test_every_option_means_the_same_in_both_engines(self, frequencies, objective, warm_start):
        network, data = pg.layered(3, 4, 3, seed=1), tiny(classes=3, features=3)
        plan = pg.Plan.paper(
            {"omega": 0.001, "coupling": 0.1},
            epochs=2,
            frequencies=frequencies,
            objective=objective,
            warm_start=warm_start,
        )
        fast, slow = (pg.train(network, data, plan, engine=engine) for engine in ("lanes", "batch"))
        np.testing.assert_allclose(fast.network.omega, slow.network.omega, atol=1e-9)
        np.testing.assert_allclose(fast.network.coupling, slow.network.coupling, atol=1e-8)
        np.testing.assert_array_equal(fast.history.test_accuracy, slow.history.test_accuracy)
        np.testing.assert_array_equal(fast.history.train_accuracy, slow.history.train_accuracy)

    @pytest.mark.parametrize("gradient", ["two_phase", "centred", "adjoint"])
    @pytest.mark.parametrize("clamped", [False, True])
    def test_fields_clamped_inputs_and_signed_couplings_train_in_lanes_too(self, gradient, clamped):
        network = pg.networks.signed_layers(2, 4, 2, gain=0.8, skip=True, seed=5)
        if not clamped:
            network = network.replace(input_mode="frequency", input_scale=0.3, field_strength=np.ones(8))
        plan = pg.Plan.paper(
            PARAMETERS,
            gradient=gradient,
            epochs=3,
            learning_rate=0.05,
            beta=0.01,
            bounds={},
            objective=pg.objectives.NearestTarget(),
        )
        fast, slow = (pg.train(network, tiny(), plan, engine=engine) for engine in ("lanes", "batch"))
        for name in PARAMETERS:
            np.testing.assert_allclose(fast.network.parameters[name], slow.network.parameters[name], atol=1e-7)
            assert np.abs(fast.network.parameters[name] - network.parameters[name]).max() > 1e-4, name
        np.testing.assert_allclose(fast.history.test_loss, slow.history.test_loss, atol=1e-8)

    def test_fields_that_begin_at_zero_train_in_lanes_too(self):
        network = pg.networks.signed_layers(2, 4, 2, seed=5)
        network = network.replace(field_strength=np.where(np.arange(8) < 4, 0.0, network.field_strength))
        plan = pg.Plan.paper(
            "field_strength", epochs=1, learning_rate=0.05, bounds={}, objective=pg.objectives.NearestTarget()
        )
        fast, slow = (pg.train(network, tiny(), plan, engine=engine).network for engine in ("lanes", "batch"))
        np.testing.assert_allclose(fast.field_strength, slow.field_strength, atol=1e-7)
        assert np.all(np.abs(fast.field_strength[2:4]) > 1e-4)

    def test_regression_trains_in_lanes_too(self):
        x = np.linspace(-1, 1, 15)[:, None]
        network = pg.networks.signed_layers(1, 5, 1, gain=0.3, seed=2)
        plan = pg.Plan.paper(
            PARAMETERS[1:], objective=pg.PhaseTargets(), bounds={}, epochs=4, learning_rate=0.05, clip=None
        )
        fast, slow = (pg.train(network, (x, np.sin(2 * x)), plan, engine=engine) for engine in ("lanes", "batch"))
        np.testing.assert_allclose(fast.network.coupling, slow.network.coupling, atol=1e-7)
        assert np.all(np.isnan(fast.history.train_accuracy))
        assert fast.history.train_loss[0, -1] < fast.history.train_loss[0, 0]

    def test_validation_samples_count_by_their_weights(self):
        """The lanes count all samples alike: weights on those held back alone are not for them either."""
        network, data = pg.layered(2, 4, 2, seed=0), tiny()
        plan = pg.Plan.paper(epochs=1, validation_fraction=0.3)
        weights = np.ones(len(data.y_train))
        weights[pg.train(network, data, plan).state.held_back[0, 0]] = 2.0
        with pytest.raises(ValueError, match="The lanes count every sample alike"):
            pg.train(network, data, plan, sample_weight=weights, engine="lanes")

    def test_strong_inputs_settle_as_exactly_as_weak_ones(self):
        """Angles above one radian, where Newton needs several steps from one sample to the next."""
        network, data = pg.layered(2, 4, 2, seed=3, input_scale=7.5), tiny()
        assert pg.find_equilibrium(network, data.x_train).largest_angle.max() > 1.0
        plan = pg.Plan.paper(["omega", "coupling"], epochs=2)
        fast, slow = (pg.train(network, data, plan, engine=engine) for engine in ("lanes", "batch"))
        np.testing.assert_allclose(fast.network.omega, slow.network.omega, atol=1e-10)
        np.testing.assert_allclose(fast.network.coupling, slow.network.coupling, atol=1e-10)
        np.testing.assert_allclose(fast.history.test_loss, slow.history.test_loss, atol=1e-9)

    @pytest.mark.parametrize(
        "build",
        [pg.networks.complete, pg.networks.ring, lambda n, **options: pg.networks.lattice(3, n // 3, **options)],
    )
    def test_any_topology_trains(self, build):
        network = build(9, inputs=(1, 4), outputs=(6, 8), coupling=1.5, input_scale=0.3)
        plan = pg.Plan.paper(["omega", "coupling"], epochs=2)
        fast, slow = (pg.train(network, tiny(), plan, engine=engine) for engine in ("lanes", "batch"))
        np.testing.assert_allclose(fast.network.omega, slow.network.omega, atol=1e-9)
        np.testing.assert_allclose(fast.network.coupling, slow.network.coupling, atol=1e-9)

    @pytest.mark.parametrize(
        ("seed", "epochs"),
        [(0, 3), (1, 3), (2, 3), (3, 3), *(pytest.param(seed, 200, marks=pytest.mark.slow) for seed in (0, 1))],
    )
    def test_final_frequencies_are_those_of_the_plain_way(self, paper_networks, vowels, seed, epochs):
        """The plain way needs half a minute per seed for 200 epochs."""
        data = vowels[seed]
        plain = PlainTraining(paper_networks[seed], data.x_train, data.y_train, seed)
        plain.run(epochs, evaluate_every=20)
        result = pg.train(paper_networks[seed], data, spot_checked(pg.Plan.paper(epochs=epochs)), seed=seed)
        np.testing.assert_allclose(result.network.omega[2:], plain.omega[2:], atol=1e-9)
        assert result.history.score()[0] == plain.accuracy(data.x_test, data.y_test)

    @pytest.mark.parametrize("kind", ["series", "one-way"])
    def test_what_the_lanes_cannot_do_they_say_and_the_batch_engine_does(self, kind):
        network = pg.layered(2, 3, 2, field_strength=0.2, interaction=pg.terms.OddSeries((1.0, 0.2)))
        if kind == "one-way":
            network = pg.layered(2, 3, 2)
            network = network.replace(coupling_reverse=1.1 * network.coupling)
        learn = ["omega", "coupling"] + (["coupling_reverse"] if kind == "one-way" else [])
        plan = pg.Plan.paper(learn, epochs=2, learning_rate=0.05)
        biased = (
            pytest.warns(pg.gradients.GradientWarning, match="not reciprocal") if kind == "one-way" else nullcontext()
        )
        with biased:
            result = pg.train(network, tiny(6), plan)
        assert result.history.test_loss[0, -1] < result.history.test_loss[0, 0]
        for name in learn:
            assert np.abs(result.network.parameters[name] - network.parameters[name]).max() > 0, name
        with pytest.raises(ValueError, match=r"sine coupling.*Use engine='batch' for this one"):
            pg.train(network, tiny(6), plan, engine="lanes")
        with pytest.raises(ValueError, match=r"The lanes .*Use engine='batch'"):
            pg.train(pg.layered(2, 3, 2), tiny(6), plan.replace(learn="omega", optimizer="adam"), engine="lanes")

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"weight_decay": 0.1}, "no weight decay"),
            ({"input_noise": 0.1}, "no weight decay, input noise"),
            ({"lock_floor": 1e-6}, "input noise, lock guard"),
            ({"validation_fraction": 0.2, "patience": 1}, "lock guard or patience"),
            ({"batch_size": 2, "warm_start": "none"}, "sample by sample"),
            ({"optimizer": "momentum"}, "by plain descent"),
        ],
    )
    def test_plans_that_are_not_for_the_lanes_are_refused_by_them(self, changes, words):
        plan = pg.Plan.paper("coupling", epochs=1, **changes)
        with pytest.raises(ValueError, match=rf"The lanes .*{words}"):
            pg.train(pg.layered(2, 3, 2), tiny(6), plan, engine="lanes")

    def test_the_lanes_are_for_at_most_64_oscillators_that_move(self):
        """Of a layered network all but the reference move."""
        plan = pg.Plan.paper("coupling", epochs=0)
        largest, larger = (pg.layered(2, hidden, 2) for hidden in (61, 62))
        assert [network.free.size for network in (largest, larger)] == [64, 65]
        assert prepare(largest, tiny(6), plan, engine="lanes").groups
        with pytest.raises(ValueError, match="at most 64 oscillators"):
            prepare(larger, tiny(6), plan, engine="lanes")


class TestGradients:
    @pytest.mark.parametrize("engine", ["lanes", "batch"])
    def test_differences_have_the_step_that_the_plan_says(self, engine):
        """The step is a hundredth of the coupling: half or twice of it would show in the fourth digit."""
        strength, frequency, step, rate = 1e-3, 1e-3, 1e-5, 1e-10
        network = pg.Network([[0, 1]], strength, [0.0, frequency], inputs=(0,), outputs=(1,))
        plan = pg.Plan.paper(
            {"coupling": rate},
            gradient="finite_difference",
            objective=pg.PhaseTargets(),
            clip=None,
            bounds=(),
            epochs=1,
        )
        fit = pg.train(network, ([[0.0]], [[0.1]]), plan, engine=engine)
        above, below = (0.5 * (np.arcsin(frequency / 2 / (strength + h)) - 0.1) ** 2 for h in (step, -step))
        slope = (strength - fit.network.coupling[0]) / rate
        assert slope == pytest.approx((above - below) / (2 * step), rel=1e-7)

    def test_a_sample_whose_linear_system_was_not_solved_has_no_part(self, monkeypatch):
        """Each is judged by what is left of its own right-hand side, however large that of its neighbour is."""
        network, x = layers(), np.array([[0.3, -0.2], [0.1, 0.5]])
        phases, (system, _) = pg.find_equilibrium(network, x).phases, build_system(network, x)
        nodes, solve = np.array(network.outputs), PhasorLaplacian._solved
        target = phases[:, nodes] + np.array([[1.0], [1e-9]])
        mean = MeanGradient(
            network,
            system,
            phases,
            pg.PhaseTargets(),
            nodes,
            target,
            limits=np.full(2, 1e-9),
            state=PhasorLaplacian.of(system, phases),
        )

        def spoilt(self, *given):
            solution, found = solve(self, *given)
            return solution * np.array([[1.0], [0.9]]), found

        for solver, expected in ((solve, [True, True]), (spoilt, [True, False])):
            monkeypatch.setattr(PhasorLaplacian, "_solved", solver)
            options = {"by": Propagation("adjoint", 0.1), "frequencies": "raw"}
            assert mean.take(np.full((1, 2), 0.5), ["coupling"], **options)[1].tolist() == expected

    def test_differences_by_what_does_not_learn_cost_no_sample(self):
        """Turning a frequency breaks the weak edge; a network that learns the strong one must not notice."""
        network = pg.Network([[0, 1], [1, 2]], [2.0, 0.100006], [0.0, 0.1, 0.2], inputs=(0,), outputs=(2,))
        plan = pg.Plan.paper(
            "coupling", gradient="finite_difference", objective=pg.PhaseTargets(), frequencies="raw", epochs=1
        )
        mask = {"coupling": [True, False]}
        fit = pg.train(network, ([[0.0]], [[0.0]]), plan, mask=mask, engine="lanes")
        assert fit.history.skipped[0, -1] == 0
        assert fit.network.coupling[0] != network.coupling[0]

    """The mean gradient that training descends along, read off one plain step of size 1."""

    NETWORKS = {
        "signed layers": layers(),
        "two hidden layers": pg.networks.signed_layers(2, (5, 4), 3, rest=np.pi / 2, gain=0.5, seed=1),
        "paper": pg.layered(2, 5, 3, seed=2),
        "turning": layers().replace(omega=np.r_[0, 0, 0.05 * np.cos(np.arange(9))]),
        "odd series": layers(interaction=pg.terms.OddSeries((1.0, 0.1))),
    }

    @pytest.mark.parametrize("name", list(NETWORKS))
    @pytest.mark.parametrize("method", ["centred", "two_phase", "adjoint"])
    @pytest.mark.parametrize("objective", MATCHED, ids=repr)
    @pytest.mark.filterwarnings("ignore:The outputs of this network start near phase")
    def test_it_is_the_weighted_mean_of_the_exact_gradients(self, name, method, objective):
        network = self.NETWORKS[name].replace(signed=True)
        x, y = three_blobs(12)
        weights, names = np.linspace(0.5, 2.0, 12), tuple(network.parameters)
        plan = pg.Plan(
            learn=dict.fromkeys(names, 1e-3),
            objective=objective,
            optimizer="sgd",
            schedule="constant",
            epochs=1,
            gradient=method,
            beta=1e-3,
            lock_floor=None,
            settling=pg.training.Settling("batch", 1e-12),
        )
        result = pg.train(network, (x, y), plan, sample_weight=weights)
        assert result.history.skipped.sum() == 0
        equilibrium = plan.settling.equilibrium(network, x)
        exact = pg.adjoint(network, equilibrium, objective, y, wrt=names, frequencies="raw")
        for parameter in names:
            found = (network.parameters[parameter] - result.network.parameters[parameter]) / 1e-3
            expected = weights @ exact[parameter] / weights.sum()
            if parameter != "coupling":
                expected[list(network.inputs)] = 0.0
            # Rounding for the adjoint; beta^2 for centred nudges; beta times the bending for one.
            tolerance = {"adjoint": 1e-7, "centred": 1e-3, "two_phase": 0.05}[method]
            scale = np.max(np.abs(expected)) + 1e-2 * np.max(np.abs(exact["omega"]))
            np.testing.assert_allclose(found, expected, atol=tolerance * scale, err_msg=parameter)

    def test_samples_that_have_no_stable_state_take_no_part(self):
        network = pg.layered(2, 5, 3, seed=2)
        x, y = three_blobs(6)
        wild = x.copy()
        wild[2] = [300.0, -300.0]
        options = {"objective": pg.objectives.NearestTarget(), "learn": "coupling", "gradient": "adjoint", "epochs": 1}
        options |= {"batch_size": 6, "optimizer": "sgd"}
        rows = [0, 1, 3, 4, 5]
        with_it = pg.train(network, (wild, y), **options)
        without = pg.train(network, (x[rows], y[rows]), **options)
        np.testing.assert_allclose(with_it.network.coupling, without.network.coupling, atol=1e-10)
        assert with_it.history.skipped[0, -1] == with_it.history.train_unsettled[0, -1] == 1

    def test_networks_in_lock_step_learn_as_they_do_alone(self):
        """Small ones are one flat batch, large ones go one by one; with different data and seeds."""
        for hidden in (3, 20):
            networks = [pg.networks.signed_layers(2, hidden, 3, rest=np.pi / 2, seed=seed) for seed in range(3)]
            data = [three_blobs(30, seed) for seed in range(3)]
            plan = pg.Plan.classifier(epochs=3, input_noise=0.1, validation_fraction=0.2, patience=2)
            together = pg.train(networks, data, plan)
            for seed in range(3):
                alone = pg.train(networks[seed], data[seed], plan, seed=seed)
                np.testing.assert_allclose(alone.network.coupling, together.networks[seed].coupling, atol=1e-7)
                np.testing.assert_allclose(alone.history.validation_loss[0], together.history.validation_loss[seed])


class TestIndependence:
    @pytest.mark.parametrize("learn", [("omega",), ("omega", "coupling")])
    def test_threads_change_nothing(self, paper_networks, vowels, learn):
        plan = pg.Plan.paper(learn, epochs=5)
        runs = [pg.train(paper_networks[:40], vowels[:40], plan, threads=threads) for threads in (1, 2, 3)]
        same(runs[0], runs[1])
        same(runs[0], runs[2])

    def test_company_changes_nothing(self, paper_networks, vowels):
        """A network alone, in another group, or beside others with large steps, is bitwise the same."""
        plan = pg.Plan.paper(["omega", "coupling"], epochs=5, warm_start="run")
        together = pg.train(paper_networks[:20], vowels[:20], plan)
        for k in (0, 7, 15, 16, 19):
            alone = pg.train(paper_networks[k], vowels[k], plan, seed=k)
            assert alone.network == together.networks[k]
            np.testing.assert_array_equal(alone.history.test_loss[0], together.history.test_loss[k])

    def test_company_changes_nothing_where_lanes_need_different_numbers_of_steps(self, vowels):
        """Strong inputs on some networks only: their lanes go on for several steps after the others are done."""
        networks = [pg.layered(2, 5, 2, seed=seed, input_scale=4.0) for seed in range(16)]
        data = [
            pg.datasets.from_arrays(scale * each.x_train, each.y_train, scale * each.x_test, each.y_test)
            for scale, each in zip([1.0, 0.02] * 8, vowels[:16], strict=True)
        ]
        plan = pg.Plan.paper(epochs=3, warm_start="run", learning_rate=0.05)
        together = pg.train(networks, data, plan)
        for k in (0, 1, 7, 8):
            assert pg.train(networks[k], data[k], plan, seed=k).network == together.networks[k], k

    @pytest.mark.parametrize("warm_start", ["epoch", "run"])
    @pytest.mark.parametrize("stops", [(1, 2, 3, 10), (7,), (4, 5)])
    def test_training_can_stop_and_go_on_exactly(self, paper_networks, vowels, warm_start, stops):
        plan = pg.Plan.paper(["omega", "coupling"], epochs=10, evaluate_every=4, warm_start=warm_start)
        straight = pg.train(paper_networks[:3], vowels[:3], plan)
        result = pg.train(paper_networks[:3], vowels[:3], plan, until=stops[0])
        history = result.history
        for stop in (*stops[1:], 10):
            result = pg.train(paper_networks[:3], vowels[:3], plan, until=stop, state=result.state)
            history = history.join(result.history)
        assert result.networks == straight.networks
        assert result.state.epoch == 10
        planned = np.isin(history.epoch, straight.history.epoch)
        _, first = np.unique(history.epoch[planned], return_index=True)
        np.testing.assert_array_equal(history.test_loss[:, planned][:, first], straight.history.test_loss)

    @pytest.mark.parametrize("optimizer", ["adam", "momentum"])
    def test_mini_batches_stop_and_go_on_exactly_through_a_file(self, tmp_path, optimizer):
        data = three_blobs()
        plan = pg.Plan.classifier(
            epochs=6, input_noise=0.1, validation_fraction=0.2, patience=3, optimizer=optimizer, weight_decay=0.1
        )
        whole = pg.train(layers(), data, plan)
        pg.train(layers(), data, plan, until=3).state.save(tmp_path / "half.npz")
        rest = pg.train(layers(), data, plan, state=pg.training.TrainingState.load(tmp_path / "half.npz"))
        assert rest.network == whole.network
        np.testing.assert_array_equal(rest.history.validation_loss[:, 1:], whole.history.validation_loss[:, 4:])

    @pytest.mark.parametrize("stop", [2, 3])
    def test_noise_goes_on_exactly_between_two_evaluations(self, stop):
        """The noise of an epoch is drawn after its order and before the next one's, wherever training stops."""
        plan = pg.Plan.classifier(epochs=6, input_noise=0.1, evaluate_every=4)
        half = pg.train(layers(), three_blobs(), plan, until=stop)
        rest = pg.train(layers(), three_blobs(), plan, state=half.state)
        assert rest.network == pg.train(layers(), three_blobs(), plan).network

    @pytest.mark.parametrize(
        "drawn",
        [
            {"gradient": "random_sign"},
            {
                "gradient": "stochastic",
                "gradient_options": {"temperature": 1e-3, "averages": "langevin", "walkers": 4, "steps": 100},
            },
        ],
        ids=["random_sign", "stochastic"],
    )
    def test_gradients_that_draw_go_on_exactly_between_two_evaluations(self, drawn, monkeypatch):
        network, data = layers(), tiny(classes=3)
        plan = pg.Plan.classifier(epochs=5, evaluate_every=5, **drawn)
        whole = pg.train(network, data, plan)
        half = pg.train(network, data, plan, until=3)
        assert pg.train(network, data, plan, state=half.state).network == whole.network
        monkeypatch.setattr("phasegrad.training._train._ORDERS_AT_ONCE", 2 * 12)
        assert pg.train(network, data, plan).network == whole.network

    def test_signs_are_drawn_as_alone_where_a_sample_does_not_settle(self):
        """Far inputs unlock a network; beside one that stays locked it draws no signs for them either."""
        x = np.array([[0.1, -0.2], [9.0, -9.0], [-0.3, 0.2], [0.2, 0.3]])
        data = (x, [0, 1, 0, 1])
        weak, strong = (pg.layered(2, 3, 2, seed=1).replace(coupling=k) for k in (1.0, 50.0))
        plan = pg.Plan(
            learn="omega",
            objective=pg.objectives.OutputDifferences(),
            gradient="random_sign",
            batch_size=1,
            epochs=3,
            beta=0.1,
        )
        together = pg.train([weak, strong], data, plan)
        assert together.history.train_unsettled[:, 1:].sum(axis=1).tolist() == [3, 0]
        alone = pg.train(weak, data, plan)
        np.testing.assert_allclose(together.networks[0].omega, alone.network.omega, rtol=0, atol=1e-9)

    def test_how_many_orders_fit_in_memory_changes_nothing(self, paper_networks, vowels, monkeypatch):
        plan = pg.Plan.paper(epochs=9, evaluate_every=6, warm_start="run")
        whole = pg.train(paper_networks[:3], vowels[:3], plan)
        monkeypatch.setattr("phasegrad.training._train._ORDERS_AT_ONCE", 2 * 3 * 220)
        same(pg.train(paper_networks[:3], vowels[:3], plan), whole)

    def test_interventions_between_epochs_are_plain_code(self, paper_networks, vowels):
        """A coupling floor after every epoch, as in the paper's five configurations."""
        plan = pg.Plan.paper({"omega": 0.001, "coupling": 0.5}, epochs=6)
        state = None
        for epoch in range(1, 7):
            result = pg.train(paper_networks[:2], vowels[:2], plan, until=epoch, state=state)
            state = result.state.replace(coupling=np.maximum(result.state.parameters["coupling"], 1.5))
        assert state.parameters["coupling"].min() == 1.5
        assert pg.train(paper_networks[:2], vowels[:2], plan).networks[0].coupling.min() < 1.5

    def test_another_plan_may_begin_where_one_ended(self, paper_networks, vowels):
        first = pg.train(paper_networks[:2], vowels[:2], pg.Plan.paper(epochs=2))
        slower = pg.Plan.paper(epochs=3, learning_rate=1e-4)
        later = pg.train(paper_networks[:2], vowels[:2], slower, state=first.state.begin(slower))
        assert later.history.epoch.tolist() == [0, 1, 3]
        np.testing.assert_array_equal(later.history.test_loss[:, 0], first.history.test_loss[:, -1])


class TestHistory:
    def test_it_starts_untrained_and_follows_the_schedule(self, paper_networks, vowels):
        result = pg.train(paper_networks[:3], vowels[:3], pg.Plan.paper(epochs=7, evaluate_every=3))
        assert result.history.epoch.tolist() == [0, 1, 3, 6, 7]
        for r in range(3):
            phases = pg.find_equilibrium(paper_networks[r], vowels[r].x_test).phases[:, [7, 8]]
            accuracy = np.mean(np.argmax(np.cos(phases), axis=1) == vowels[r].y_test)
            assert result.history.test_accuracy[r, 0] == pytest.approx(accuracy, abs=1e-15)
            assert result.history.separation[r, 0] == pytest.approx(np.mean(phases[:, 0] - phases[:, 1]), abs=1e-11)
            assert result.history.common_phase[r, 0] == pytest.approx(phases.mean(), abs=1e-11)
        assert "3 networks, 7 epochs" in str(result)
        assert "shuffled by seeds 0 to 2" in str(result)

    def test_a_test_part_that_not_all_networks_have_is_not_scored(self, paper_networks):
        x, y = tiny().x_train, tiny().y_train
        history = pg.train(paper_networks[:2], [(x, y, x, y), (x, y)], pg.Plan.paper(epochs=0)).history
        assert np.all(np.isnan(history.test_loss))
        assert np.all(np.isfinite(history.train_loss))

    def test_zero_epochs_return_the_untrained_evaluation(self, paper_networks, vowels):
        result = pg.train(paper_networks[0], vowels[0], pg.Plan.paper(epochs=0))
        assert result.history.epoch.tolist() == [0]
        assert result.network == paper_networks[0]

    def test_the_best_of_history_is_at_least_the_last(self, paper_networks, vowels):
        history = pg.train(paper_networks[:8], vowels[:8], pg.Plan.paper(epochs=20, evaluate_every=5)).history
        assert np.all(history.score("best") >= history.score("final"))
        assert np.any(history.score("best") > history.score("final"))
        with pytest.raises(ValueError, match=r"'kind' parameter of History.score"):
            history.score("median")

    def test_as_a_table(self, paper_networks, vowels):
        plan = pg.Plan.paper(epochs=2, evaluate_every=1, record="condition")
        table = pg.train(paper_networks[:2], vowels[:2], plan).history.to_pandas()
        assert list(table["network"]) == [0, 0, 0, 1, 1, 1]
        assert list(table["epoch"]) == [0, 1, 2] * 2
        assert np.all(table["condition"] > 1)
        assert "gradient_cosine" not in table

    def test_it_follows_the_gradient_and_the_classes_on_request(self, vowels):
        """At a weak nudge the gradient is the exact one, at a strong one not; training pulls the classes apart."""
        network = pg.layered(2, 5, 2, seed=0)
        for beta, low, high in ((1e-4, 1 - 1e-6, 1 + 1e-12), (20.0, -1, 0.9999)):
            plan = pg.Plan.paper(["omega", "coupling"], epochs=1, beta=beta, record=["gradient_cosine"])
            cosine = pg.train(network, vowels[0], plan).history.gradient_cosine
            assert low <= cosine.min() <= cosine.max() <= high
        plan = pg.Plan.paper(
            {"omega": 0.01, "coupling": 0.5},
            epochs=100,
            objective=pg.objectives.NearestTarget(),
            evaluate_every=100,
            record="class_separation",
        )
        apart = pg.train(network, vowels[0], plan).history.class_separation[0]
        assert apart[-1] > 1.2 * apart[0] > 0
        with pytest.raises(AttributeError, match="record='gradient_cosine'"):
            pg.train(network, vowels[0], plan, epochs=0).history.gradient_cosine  # noqa: B018

    def test_samples_without_a_stable_state_are_no_class_of_their_own(self):
        network, (x, y) = pg.layered(2, 5, 2, seed=0), (np.array([[0.5, 0.2], [0.1, 0.4], [-0.5, 0.3]]), [0, 1, 1])
        plan = pg.Plan.paper(epochs=0, record="class_separation")
        near = pg.find_equilibrium(network, x).phases[:, list(network.outputs)]
        known = np.linalg.norm(near[0] - near[1:].mean(axis=0))
        far = np.vstack([x, [[40.0, 0.0]]])
        assert pg.train(network, (far, [*y, 0]), plan).history.class_separation[0, 0] == pytest.approx(known, abs=1e-9)

    @pytest.mark.parametrize("method", ["two_phase", "centred", "finite_difference", "adjoint"])
    def test_the_gradient_it_follows_is_the_one_that_learns(self, method, vowels):
        network, beta = pg.layered(2, 5, 2, seed=0), 0.5
        plan = pg.Plan.paper(["omega", "coupling"], epochs=0, gradient=method, beta=beta, record=["gradient_cosine"])
        found = pg.train(network, vowels[0], plan).history.gradient_cosine[0, 0]
        x, y = vowels[0].x_train[:PROBED], vowels[0].y_train[:PROBED]
        question = (network, pg.find_equilibrium(network, x), plan.objective, y)
        options = {"beta": beta} if method in ("two_phase", "centred") else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pg.gradients.GradientWarning)
            given = [
                getattr(pg.gradients, name)(*question, wrt=("omega", "coupling"), **(options if name == method else {}))
                for name in (method, "adjoint")
            ]
        used, exact = (np.concatenate([each.omega.sum(axis=0), each.coupling.sum(axis=0)]) for each in given)
        assert found == pytest.approx(used @ exact / np.linalg.norm(used) / np.linalg.norm(exact), abs=1e-12)

    def test_words_for_one_network_and_for_many_seeds(self, paper_networks, vowels):
        one = pg.train(paper_networks[0], vowels[0], pg.Plan.paper(epochs=1))
        assert "seed" not in str(one)
        assert "worst" not in str(one)
        assert str(one).startswith("1 network, 1 epoch: test accuracy ")
        learnt = pg.train(paper_networks[0], vowels[0], pg.Plan.paper(epochs=60, evaluate_every=20, learning_rate=0.02))
        scores = learnt.history.test_accuracy[0]
        assert len({scores[0], scores[1], scores[-1]}) == 3
        assert f"{scores[0]:.1%} untrained, {scores[-1]:.1%} trained" in str(learnt)
        two = pg.train(paper_networks[:2], vowels[0], pg.Plan.paper(epochs=0), seed=4)
        assert str(two).endswith("; shuffled by seeds 4 to 5")
        seeds = [5, 1, 2, 3, 4, 9, 8, 7, 6]
        many = pg.train(paper_networks[:9], vowels[0], pg.Plan.paper(epochs=0), seed=seeds)
        assert str(many).endswith("; shuffled by seeds 5, 1, 2, 3, 4, 9, 8, 7")
        assert str(dataclasses.replace(many, seeds=tuple(range(3, 12)))).endswith("; shuffled by seeds 3 to 11")

    @pytest.mark.parametrize("plan", [pg.Plan.paper(epochs=6, evaluate_every=2), pg.Plan.classifier(epochs=6)])
    def test_progress_is_told_of_every_evaluation(self, plan):
        seen = []
        network = pg.networks.signed_layers(2, 3, 2)
        pg.train(network, tiny(), plan, bounds={}, progress=lambda e, h: seen.append((e, len(h.epoch))))
        expected = [1, 2, 4, 6] if plan.evaluate_every == 2 else [1, 2, 3, 4, 5, 6]
        assert seen == [(epoch, k + 2) for k, epoch in enumerate(expected)]

    @pytest.mark.parametrize("plan", [pg.Plan.paper(epochs=10, evaluate_every=2), pg.Plan.classifier(epochs=10)])
    def test_ctrl_c_leaves_the_state_between_two_epochs_and_warns(self, monkeypatch, plan):
        """Interrupted in the middle of an epoch, where some batches have been learned already."""
        network, data = pg.networks.signed_layers(2, 3, 2, seed=1), tiny(40)
        plan = plan.replace(bounds={}, batch_size=1 if plan.batch_size == 1 else 8)
        whole = pg.train(network, data, plan, engine="batch")
        group = __import__("phasegrad.training._batch", fromlist=["_Group"])._Group
        update, calls = group.update, []

        def interrupted(self, *arguments):
            calls.append(1)
            if len(calls) == (40 if plan.batch_size == 1 else 5) * 3 + 3:
                raise KeyboardInterrupt
            return update(self, *arguments)

        monkeypatch.setattr(group, "update", interrupted)
        with pytest.warns(pg.training.TrainingWarning, match="was interrupted; the result is that of epoch"):
            result = pg.train(network, data, plan, engine="batch")
        assert result.interrupted
        assert result.state.epoch == 3
        assert result.history.epoch[-1] == (2 if plan.evaluate_every == 2 else 3)
        going_on = pg.train(network, data, plan, state=result.state, engine="batch")
        assert going_on.network == whole.network


class TestLearning:
    @pytest.mark.parametrize("objective", MATCHED, ids=repr)
    def test_every_matched_objective_learns_three_classes(self, objective):
        result = pg.train(
            layers(objective), three_blobs(), objective=objective, epochs=40, learning_rate=0.05, beta=0.01
        )
        assert result.history.train_accuracy[0, 0] < 0.8
        assert result.history.train_accuracy[0, -1] > 0.95
        assert result.history.train_loss[0, -1] < result.history.train_loss[0, 0]

    @pytest.mark.parametrize(
        ("options", "least"),
        [
            ({"gradient": "adjoint"}, 0.95),
            ({"gradient": "two_phase", "beta": 0.01}, 0.95),
            ({"optimizer": "momentum", "schedule": "staircase", "learning_rate": 0.1}, 0.95),
            ({"optimizer": "sgd", "learning_rate": 0.5}, 0.9),
            ({"learn": PARAMETERS}, 0.8),  # frequencies leave some samples without a locked state, which are wrong
            ({"learn": ("field_phase",)}, 0.5),
            ({"learn": {"coupling": 0.05, "field_phase": 0.0}}, 0.8),
        ],
    )
    def test_every_way_to_learn_learns_and_a_rate_of_0_does_not(self, options, least):
        plan = {"epochs": 30, "learning_rate": 0.05, "beta": 0.02, "objective": pg.CosineCrossEntropy(), **options}
        result = pg.train(layers(), three_blobs(), **plan)
        assert result.history.train_accuracy[0, -1] >= least
        for name in PARAMETERS:
            changed = not np.array_equal(result.network.parameters[name], layers().parameters[name])
            assert changed == (name in result.plan.rates), name

    def test_the_papers_network_learns_frequencies_and_positive_couplings_in_mini_batches(self):
        network = pg.layered(2, 5, 3, seed=0)
        plan = {
            "objective": pg.objectives.NearestTarget(),
            "learn": ("omega", "coupling"),
            "epochs": 30,
            "learning_rate": 0.05,
        }
        result = pg.train(network, three_blobs(), **plan)
        assert result.history.train_accuracy[0, -1] > result.history.train_accuracy[0, 0] + 0.2
        assert np.all(result.network.coupling > 0)
        np.testing.assert_array_equal(result.network.omega[:2], network.omega[:2])  # inputs belong to the data

    def test_a_cost_of_ones_own_trains(self):
        """The difference of two outputs should be a function of the input, wherever they are."""

        class Difference(pg.Cost):
            def cost(self, phases, target):
                return 0.5 * (phases[..., 0] - phases[..., 1] - target[..., 0]) ** 2

            def check_target(self, target, network):
                return np.asarray(target, dtype=float)[..., None]

        x = np.linspace(-1, 1, 24)[:, None]
        plan = {"objective": Difference(), "epochs": 60, "learning_rate": 0.03, "gradient": "centred", "beta": 0.01}
        result = pg.train(pg.networks.signed_layers(1, 8, 2, seed=1), (x, np.tanh(2 * x[:, 0])), **plan)
        assert result.history.train_loss[0, -1] < 0.05 * result.history.train_loss[0, 0]
        assert np.all(np.isnan(result.history.train_accuracy))

    def test_nothing_learns_if_nothing_is_to_learn(self):
        network = layers()
        result = pg.train(network, three_blobs(), learn=(), epochs=3)
        assert result.network == network
        # Running means over reshuffled samples: equal but for the order of the sums.
        np.testing.assert_allclose(result.history.train_loss, result.history.train_loss[0, 0], rtol=1e-9)

    def test_a_weight_of_two_is_the_sample_twice_and_zero_is_its_absence(self):
        x, y = three_blobs(30)
        plan = {"epochs": 3, "batch_size": 90, "optimizer": "sgd", "gradient": "adjoint"}
        weights = np.arange(30) % 3
        weighted = pg.train(layers(), (x, y), sample_weight=weights, **plan)
        repeated = pg.train(layers(), (np.repeat(x, weights, axis=0), np.repeat(y, weights)), **plan)
        np.testing.assert_allclose(weighted.network.coupling, repeated.network.coupling, atol=1e-9)

    @pytest.mark.parametrize("optimizer", [Momentum(0.9), Momentum(0.0), Adam()])
    def test_weight_decay_is_decoupled_from_the_optimiser(self, optimizer):
        """Without a gradient couplings shrink by rate times decay per update, whatever the optimiser remembers."""
        network = layers()
        still = pg.Plan(
            learn="coupling",
            optimizer=optimizer,
            schedule="constant",
            learning_rate=0.1,
            weight_decay=0.5,
            epochs=5,
            batch_size=60,
            gradient="adjoint",
            lock_floor=None,
        )
        flat = type(
            "Flat",
            (pg.Cost,),
            {
                "cost": lambda self, phases, target: np.zeros(phases.shape[:-1]),
                "force": lambda self, phases, target: np.zeros_like(phases),
                "hessian": lambda self, phases, target: np.zeros((*phases.shape, phases.shape[-1])),
            },
        )
        x, _ = three_blobs()
        result = pg.train(network, (x, np.zeros((60, 3))), still, objective=flat())
        np.testing.assert_allclose(result.network.coupling, network.coupling * 0.95**5, rtol=1e-12)
        np.testing.assert_array_equal(result.network.field_phase, network.field_phase)

    def test_patience_stops_and_returns_the_best_network(self):
        x, _ = three_blobs(40)
        y = np.random.default_rng(3).integers(3, size=40)  # noise: the validation cost must rise sooner or later
        plan = {"epochs": 200, "learning_rate": 0.1, "validation_fraction": 0.3, "patience": 4, "gradient": "adjoint"}
        result = pg.train(layers(), (x, y), **plan)
        history = result.history
        assert result.ended == "patience"
        assert len(history.epoch) < 150
        best = int(np.argmin(history.validation_loss[0, 1:])) + 1
        assert best == len(history.epoch) - 1 - 4
        again = pg.train(layers(), (x, y), until=best, **plan)
        assert again.network == result.network

    @pytest.mark.parametrize("stop", [3, 7, 20, "patience"])
    def test_patience_goes_on_exactly(self, stop):
        """Wherever it stopped, also between evaluations: networks without patience left learn no more."""
        x, _ = three_blobs(40)
        y = np.random.default_rng(3).integers(3, size=40)
        networks = [layers(seed=seed) for seed in range(3)]
        plan = {"epochs": 60, "evaluate_every": 5, "learning_rate": 0.1, "validation_fraction": 0.3, "patience": 1}
        whole = pg.train(networks, (x, y), **plan)
        assert whole.ended == "patience"
        until = whole.state.epoch if stop == "patience" else stop
        first = pg.train(networks, (x, y), until=until, **plan)
        rest = pg.train(networks, (x, y), state=first.state, **plan)
        assert rest.networks == whole.networks
        assert rest.ended == "patience"
        assert rest.state.epoch == whole.state.epoch
        for name, values in whole.state.parameters.items():
            np.testing.assert_array_equal(rest.state.parameters[name], values)

    def test_another_plan_draws_its_own_validation_part(self):
        x, y = three_blobs(40)
        plain = pg.train(layers(), (x, y), epochs=1)
        plan = plain.plan.replace(validation_fraction=0.3, epochs=2)
        held = pg.train(layers(), (x, y), plan, state=plain.state.begin(plan))
        assert np.all(np.isfinite(held.history.validation_loss))
        again = pg.train(layers(), (x, y), plain.plan, state=held.state.begin(plain.plan))
        assert again.state.held_back.shape == (1, 0)
        with pytest.raises(ValueError, match="This state belongs to another training"):
            pg.train(pg.networks.signed_layers(2, 3, 3), (x, y), plan, state=plain.state.begin(plan))
        with pytest.raises(ValueError, match="A validation part needs a class of at least two samples"):
            pg.train(layers(), (x[:3], np.arange(3)), validation_fraction=0.3)

    def test_a_cost_that_is_not_finite_ends_training_and_nothing_is_lost(self):
        class Brittle(pg.PhaseTargets):
            calls = [0]

            def cost(self, phases, target):
                self.calls[0] += 1
                return super().cost(phases, target) * (np.nan if self.calls[0] > 12 else 1.0)

        x = np.linspace(-1, 1, 16)[:, None]
        with pytest.warns(pg.training.TrainingWarning, match="met a cost that is not finite"):
            result = pg.train(
                pg.networks.signed_layers(1, 4, 1),
                (x, x),
                objective=Brittle(),
                epochs=30,
                batch_size=16,
                lock_floor=None,
                gradient="adjoint",
            )
        assert result.ended == "not finite"
        assert 0 < result.state.epoch < 30
        assert np.all(np.isfinite(result.history.train_loss))
        assert np.all(np.isfinite(result.network.coupling))


class TestLockGuard:
    """Two oscillators lock while |omega_1 - omega_0| / 2 < K; a target beyond a quarter turn asks for more."""

    def network(self):
        edges = [[0, 1], [1, 2], [1, 3]]
        return pg.Network(edges, [2.0, 1.0, 1.0], [0.0, 0.0, 0.2, -0.2], inputs=[0], outputs=[2, 3], reference=1)

    def test_a_step_out_of_the_locked_region_is_shortened_and_counted(self):
        x, y = np.array([[0.1], [-0.1]]), np.array([0, 1])
        options = {"objective": pg.objectives.NearestTarget(3.0), "learn": ("omega",), "epochs": 20, "batch_size": 2}
        result = pg.train(self.network(), (x, y), learning_rate=1.0, schedule="constant", lock_floor=0.05, **options)
        assert result.history.shortened.sum() > 0
        assert "updates shortened" in str(result)
        state = pg.find_equilibrium(result.network, x, eigenvalue=True)
        assert np.all(state.stable)
        assert np.all(state.smallest_eigenvalue >= 0.05)

    def test_a_step_that_no_halving_saves_is_not_taken_but_counted(self):
        x, y = np.array([[0.1], [-0.1]]), np.array([0, 1])
        options = {"objective": pg.objectives.NearestTarget(3.0), "learn": ("omega",), "epochs": 1, "batch_size": 2}
        result = pg.train(self.network(), (x, y), learning_rate=1e6, schedule="constant", lock_floor=0.05, **options)
        assert result.network == self.network()
        assert result.history.shortened.sum() == result.history.updates.sum() == 1

    def test_a_step_that_is_shortened_is_halved(self):
        x, y = np.array([[0.1], [-0.1]]), np.array([0, 1])
        options = {"objective": pg.objectives.NearestTarget(3.0), "learn": ("omega",), "epochs": 1, "batch_size": 2}
        options |= {"optimizer": "sgd", "learning_rate": 10.0, "schedule": "constant"}
        guarded, whole = (pg.train(self.network(), (x, y), lock_floor=floor, **options) for floor in (0.05, None))
        taken, asked = (each.network.omega[2:] - self.network().omega[2:] for each in (guarded, whole))
        halvings = np.log2(asked / taken)
        np.testing.assert_allclose(halvings, np.round(halvings), atol=1e-9)
        assert np.all(np.round(halvings) >= 1)

    def test_without_need_it_does_nothing(self):
        result = pg.train(layers(), three_blobs(30), epochs=3, learning_rate=1e-4)
        assert result.history.shortened.sum() == 0

    @pytest.mark.parametrize("optimizer", ["adam", "momentum"])
    def test_a_refused_update_is_counted_and_remembered(self, optimizer):
        plan = pg.Plan.classifier(epochs=1, batch_size=12, optimizer=optimizer, lock_floor=1e3)
        result = pg.train(layers(), tiny(classes=3), plan)
        assert result.network == layers()
        assert (result.history.shortened[0, -1], result.history.updates[0, -1]) == (1, 1)
        memory = result.state.progress.memory
        assert memory.steps.tolist() == [1]
        assert np.any(memory.first["coupling"] != 0)


class TestDefaultPlan:
    @pytest.mark.parametrize("seed", range(3))
    def test_the_paper_s_network_learns_two_vowels_without_a_plan(self, seed):
        result = pg.train(pg.layered(2, 5, 2, seed=seed), pg.datasets.vowels("a,i", seed=seed), epochs=60)
        assert result.history.skipped.sum() == 0
        assert result.history.test_accuracy[0, -1] > 0.95

    def test_a_network_with_fields_is_trained_as_the_classifier_is(self):
        result = pg.train(layers(), tiny(classes=3), epochs=2)
        assert result.plan == pg.Plan.classifier(epochs=2)

    def test_a_cost_without_force_on_the_outputs_is_reported(self):
        with pytest.warns(pg.training.TrainingWarning, match=r"[0-9]% of that at 1\.57.*OutputDifferences") as said:
            pg.train(pg.layered(2, 5, 2, seed=0), tiny(), pg.Plan.classifier(epochs=1, learn="coupling"))
        assert said[0].filename == __file__

    def test_a_cost_that_acts_on_the_outputs_is_not_reported(self):
        """Without fields, too, where clamped inputs hold the outputs away from zero."""
        chain = pg.Network(
            [[0, 1], [0, 2]], 1.0, np.zeros(3), inputs=[0], outputs=[1, 2], input_mode="phase", input_scale=1.0
        )
        plan = pg.Plan.classifier(epochs=1, learn="coupling")
        pg.train(chain, (np.array([[1.0], [1.2]]), [0, 1]), plan)


@pytest.mark.parametrize("engine", ["lanes", "batch"])
def test_a_training_names_the_engine_that_did_the_work(engine):
    plan = pg.Plan.paper(epochs=1)
    assert pg.train(pg.layered(2, 3, 2), tiny(), plan, engine=engine).engine == engine
    assert "engine='lanes'" in repr(pg.train(pg.layered(2, 3, 2), tiny(), plan))


class TestFailures:
    @pytest.mark.parametrize("interaction", [pg.terms.Sine(), pg.terms.OddSeries((1.0, 0.05))])
    @pytest.mark.parametrize("word", ["newton", "batch"])
    def test_what_a_prediction_settles_counts_as_settled_in_scores(self, word, interaction, monkeypatch):
        """One step is too few for Newton, and the dynamics come to the rescue: in scores as in predictions."""
        monkeypatch.setattr(_choice, "Newton", partial(Newton, max_steps=1))
        monkeypatch.setattr(_choice, "AlignedNewton", lambda: AlignedNewton(Newton(max_steps=1, indefinite="stop")))
        network = pg.layered(2, 5, 2, seed=0).replace(interaction=interaction)
        x, y = np.random.default_rng(0).uniform(-1, 1, (6, 2)), np.arange(6) % 2
        plan = pg.Plan.classifier(learn="omega", learning_rate=0.01, settling=pg.training.Settling(word, 1e-9))
        assert plan.settling.equilibrium(network, x).stable.all()
        scored = prepare([network], [(x, y)], plan, engine="batch").score("train")
        assert scored.settled.item() == 6
        assert scored.unsettled.item() == 0

    @pytest.mark.parametrize("engine", ["lanes", "batch"])
    def test_samples_without_equilibrium_are_skipped_counted_and_wrong(self, engine):
        """Inputs far beyond locking in two training and one test sample; their neighbours are not disturbed."""
        good = tiny()
        x_train, x_test = good.x_train.copy(), good.x_test.copy()
        x_train[[3, 8]], x_test[5] = [400.0, -400.0], [400.0, -400.0]
        bad = pg.datasets.from_arrays(x_train, good.y_train, x_test, good.y_test)
        network, plan = pg.layered(2, 4, 2, seed=0), pg.Plan.paper(epochs=4, evaluate_every=2)
        result = pg.train(network, bad, plan, engine=engine)
        assert result.history.skipped[0].tolist() == [0, 2, 2, 4]
        assert result.history.train_unsettled[0].tolist() == [2, 2, 2, 4]
        assert np.all(result.history.test_unsettled == 1)
        assert np.all(np.isfinite(result.network.omega))
        assert result.history.test_accuracy.max() <= 11 / 12
        other = pg.train(network, bad, plan, engine="batch")
        np.testing.assert_allclose(result.network.omega, other.network.omega, atol=1e-9)
        np.testing.assert_allclose(result.history.train_loss, other.history.train_loss, atol=1e-9)

    @pytest.mark.parametrize("engine", ["lanes", "batch"])
    def test_samples_whose_nudges_fail_are_skipped_but_not_lost_to_the_mean_loss(self, paper_networks, vowels, engine):
        """Pushed away as hard as this no output has a stable state; free states and so the loss are as they were."""
        plan = pg.Plan.paper(epochs=1, gradient="centred", beta=60.0, objective=pg.objectives.NearestTarget())
        idle = "100% of the training samples had no part in an update: they had"
        with pytest.warns(pg.training.TrainingWarning, match=idle) as said:
            history = pg.train(paper_networks[0], vowels[0], plan, engine=engine).history
        assert [warning.filename for warning in said] == [__file__]
        assert history.skipped[0, 1] == len(vowels[0].x_train)
        assert history.train_unsettled[0, 1] == history.updates[0, 1] == 0
        np.testing.assert_allclose(history.train_loss[0, 1], history.train_loss[0, 0], rtol=1e-9)

    def test_a_failing_network_does_not_touch_the_others_in_its_group(self):
        good = [tiny(seed=seed) for seed in range(5)]
        wild = pg.datasets.from_arrays(1e4 * good[2].x_train, good[2].y_train, good[2].x_test, good[2].y_test)
        networks, plan = [pg.layered(2, 4, 2, seed=seed) for seed in range(5)], pg.Plan.paper(epochs=3)
        clean = pg.train(networks, good, plan)
        with pytest.warns(pg.training.TrainingWarning, match="had no part in an update in 1 of 5 networks"):
            mixed = pg.train(networks, [*good[:2], wild, *good[3:]], plan)
        for k in (0, 1, 3, 4):
            assert mixed.networks[k] == clean.networks[k]
        assert mixed.history.skipped[2].sum() > 0

    def test_networks_in_lock_step_never_settle_by_each_others_couplings(self):
        """Every other sample locks in one network only: what is kept about it is nothing for the next one."""
        base, rng = pg.layered(2, 5, 2, seed=0), np.random.default_rng(0)
        networks = [base.replace(coupling=rng.uniform(0.5, 1.5, base.n_edges)) for _ in range(2)]
        x, y = rng.uniform(-1, 1, (20, 2)), rng.integers(0, 2, 20)
        x[::2] *= 0.3
        x[1::2, 0] = 9.0
        plan = pg.Plan.classifier(
            learn="coupling",
            objective=pg.objectives.NearestTarget(),
            batch_size=1,
            epochs=2,
            optimizer="sgd",
            learning_rate=0.05,
            gradient="two_phase",
            beta=1e-3,
        )
        both = pg.train(networks, (x, y), plan, engine="batch", seed=[0, 1])
        for k, network in enumerate(networks):
            alone = pg.train(network, (x, y), plan, engine="batch", seed=k).network
            np.testing.assert_allclose(both.networks[k].coupling, alone.coupling, atol=1e-10)

    @pytest.mark.parametrize("hidden", [4, 5])
    def test_a_high_floor_of_the_lock_guard_leaves_a_layer_of_any_width_free(self, hidden):
        network = pg.networks.signed_layers(2, hidden, 2, seed=0)
        network = network.replace(field_strength=np.full(network.size, 4.0))
        x = np.random.default_rng(0).uniform(-0.3, 0.3, (20, 2))
        result = pg.train(network, (x, (x[:, 0] > 0).astype(int)), epochs=2, learning_rate=1e-3, lock_floor=1.5)
        assert result.history.shortened.sum() == 0
        assert result.network != network

    def test_strong_forces_are_nudged_to_their_own_rounding(self):
        """At couplings of 1e5 no force can be told from zero below 1e-11."""
        network = pg.networks.signed_layers(2, 5, 2, seed=0)
        strong = network.replace(coupling=1e5 * network.coupling, field_strength=1e5 * network.field_strength)
        x, settling = np.random.default_rng(0).uniform(-0.5, 0.5, (20, 2)), pg.training.Settling("batch")
        result = pg.train(strong, (x, (x[:, 0] > 0).astype(int)), epochs=1, settling=settling, beta=1.0)
        assert result.history.skipped.sum() == 0

    @pytest.mark.parametrize("epochs", [0, 5])
    def test_lanes_score_and_train_on_equilibria_alone(self, vowels, epochs):
        """Weak coupling, strong inputs: some samples have no locked state, and all engines must agree on which."""
        network, data = pg.layered(2, 5, 2, seed=2, coupling_scale=0.4, input_scale=2.0), vowels[2]
        plan = pg.Plan.paper(epochs=epochs)
        fast, slow = (pg.train(network, data, plan, engine=engine) for engine in ("lanes", "batch"))
        for name in ("train_unsettled", "train_unstable", "test_unsettled", "test_unstable", "skipped"):
            np.testing.assert_array_equal(getattr(fast.history, name), getattr(slow.history, name), name)
        np.testing.assert_array_equal(fast.history.test_accuracy, slow.history.test_accuracy)
        assert fast.history.test_unsettled[0, 0] > 0
        found = pg.find_equilibrium(network, data.x_test)
        assert fast.history.test_unsettled[0, 0] == np.sum(~found.converged)

    @pytest.mark.parametrize("engine", ["lanes", "batch"])
    def test_unstable_states_are_counted_and_wrong_unless_the_plan_accepts_them(self, engine):
        """Repelling oscillators in phase: an equilibrium that Newton finds from zero and noise would destroy."""
        network = pg.networks.complete(5, coupling=-1.0, signed=True, inputs=(0, 1), outputs=(3, 4))
        still = (np.zeros((6, 2)), np.arange(6) % 2)
        plan = pg.Plan.paper(epochs=2, evaluate_every=1, bounds={"coupling": (-8.0, 8.0)}, accept=(0.01, 0.1))
        loose = pg.train(network, (*still, *still), plan, engine=engine)
        assert loose.history.train_unstable[0, :2].tolist() == [6, 6]
        assert loose.history.skipped.sum() == 0
        with pytest.warns(pg.training.TrainingWarning, match="100% of the training samples"):
            strict = pg.train(network, (*still, *still), plan.replace(accept=None), engine=engine)
        assert strict.history.train_unstable[0].tolist() == strict.history.test_unstable[0].tolist() == [6, 6, 6]
        assert strict.history.skipped[0].tolist() == [0, 6, 6]
        assert np.all(strict.history.test_accuracy == 0)
        assert strict.network == network
        stable = pg.train(network.replace(coupling=1.0), (*still, *still), plan, accept=None, engine=engine)
        assert stable.history.train_unstable.sum() == stable.history.skipped.sum() == 0

    def test_bounds_and_clipping_hold(self):
        network, data = pg.layered(2, 4, 2, seed=0), tiny()
        bounds = {"omega": (-0.05, 0.05), "coupling": (1.5, 2.0)}
        for engine in ("lanes", "batch"):
            plan = pg.Plan.paper({"omega": 0.5, "coupling": 5.0}, epochs=5, bounds=bounds)
            result = pg.train(network, data, plan, engine=engine)
            assert np.all(np.abs(result.network.omega) <= 0.05)
            assert network.coupling.min() < 1.5 <= result.network.coupling.min()
            assert result.network.coupling.max() == 2.0
            small = pg.train(network, data, pg.Plan.paper(epochs=1, clip=1e-9), engine=engine)
            assert np.abs(small.network.omega - network.omega).max() <= 1e-12 * 12

    def test_masks_keep_what_they_exclude(self):
        network, data = pg.layered(2, 4, 2, seed=0), tiny()
        edges, nodes = np.arange(network.n_edges) % 3 == 0, np.arange(8) == 7
        for engine in ("lanes", "batch"):
            result = pg.train(
                network,
                data,
                pg.Plan.paper(["omega", "coupling"], epochs=2),
                engine=engine,
                mask={"coupling": edges, "omega": nodes},
            )
            assert np.array_equal(result.network.coupling != network.coupling, edges)
            assert np.array_equal(result.network.omega != network.omega, nodes)

    def test_a_few_samples_without_a_locked_state_do_not_slow_a_batch_down(self):
        """Counted in evaluations of the force, which cost the same everywhere: at most four times as many."""
        from phasegrad.dynamics import System

        x, y = three_blobs(60)
        network = pg.layered(2, 12, 3, seed=0)
        counts = []
        for wild in (0, 3):
            inputs = x.copy()
            inputs[:wild] = [9.0, -9.0]
            calls = []
            force = System.force
            System.force = lambda self, phases, calls=calls, force=force: calls.append(1) or force(self, phases)
            try:
                pg.train(
                    network,
                    (inputs, y),
                    objective=pg.objectives.NearestTarget(),
                    learn="coupling",
                    epochs=1,
                    batch_size=60,
                    settling=pg.training.Settling("newton", 1e-9),
                )
            finally:
                System.force = force
            counts.append(len(calls))
        assert counts[1] <= 4 * counts[0] + 100


class TestOptimizers:
    def run(self, optimizer, steps=400, rate=0.05):
        """Descend a quadratic bowl of condition number 10."""
        scale = np.array([[1.0, 10.0]])
        place = {"a": np.array([[3.0, -2.0]])}
        memory = optimizer.start(place)
        for _ in range(steps):
            change, memory = optimizer.step(memory, {"a": scale * place["a"]}, {"a": rate})
            place = {"a": place["a"] + change["a"]}
        assert memory.steps == steps
        return np.max(np.abs(place["a"]))

    @pytest.mark.parametrize("optimizer", [Momentum(0.0), Momentum(0.9), Adam()])
    def test_they_reach_the_minimum(self, optimizer):
        assert self.run(optimizer) < 1e-2

    def test_adams_first_step_is_the_learning_rate_whatever_the_scale(self):
        for scale in (1e-3, 1.0, 1e3):
            optimizer = Adam()
            slope = {"a": np.array([[scale, -scale]])}
            change, _ = optimizer.step(optimizer.start({"a": np.zeros((1, 2))}), slope, {"a": 0.01})
            np.testing.assert_allclose(change["a"], [[-0.01, 0.01]], rtol=1e-4)

    @pytest.mark.parametrize("make", [Momentum, Adam, lambda value: Adam(second=value)])
    def test_an_average_that_never_forgets_is_refused(self, make):
        with pytest.raises(ValueError, match=r"must be a float from 0 to 1\. Got 1\.0"):
            make(1.0)
        assert make(0.0) is not None

    def test_they_agree_with_torch(self):
        torch = pytest.importorskip("torch")
        for mine, kind, options in (
            (Momentum(0.8), torch.optim.SGD, {"momentum": 0.8}),
            (Adam(), torch.optim.Adam, {}),
        ):
            parameter = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
            theirs = kind([parameter], lr=0.1, **options)
            place, memory = {"a": np.array([[1.0, -2.0]])}, mine.start({"a": np.zeros((1, 2))})
            for _ in range(5):
                theirs.zero_grad()
                (parameter**4).sum().backward()
                theirs.step()
                change, memory = mine.step(memory, {"a": 4 * place["a"] ** 3}, {"a": 0.1})
                place = {"a": place["a"] + change["a"]}
            np.testing.assert_allclose(place["a"][0], parameter.detach().numpy(), rtol=1e-12)

    def test_schedules(self):
        assert [Constant().factor(p) for p in (0, 0.5, 1)] == [1, 1, 1]
        np.testing.assert_allclose([Cosine(0.1).factor(p) for p in (0, 0.5, 1)], [1, 0.55, 0.1])
        np.testing.assert_allclose([Staircase(0.5, 2).factor(p) for p in (0, 0.49, 0.5, 1)], [1, 1, 0.5, 0.5])
        stairs = pg.Plan(schedule="staircase").schedule
        np.testing.assert_allclose([stairs.factor(p) for p in (0, 0.4, 0.7, 1)], [1, 0.3, 0.09, 0.09])
        assert [pg.Plan(schedule="cosine").schedule.factor(p) for p in (0, 1)] == [1, 0]

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Momentum(-0.1), "'momentum' parameter of Momentum"),
            (lambda: Adam(epsilon=0.0), "'epsilon' parameter of Adam"),
            (lambda: Cosine(1.5), "'final' parameter of Cosine"),
            (lambda: Cosine(-0.5), "'final' parameter of Cosine"),
            (lambda: Staircase(ratio=2.0), "'ratio' parameter of Staircase"),
            (lambda: Staircase(stairs=0), "'stairs' parameter of Staircase"),
        ],
    )
    def test_settings_without_sense_are_refused(self, make, message):
        with pytest.raises(ValueError, match=message):
            make()

    def test_the_plan_of_the_paper_is_what_it_says(self):
        plan = pg.Plan.paper()
        assert plan.rates == {"omega": 0.001}
        assert (plan.epochs, plan.evaluate_every, plan.batch_size, plan.warm_start) == (200, 20, 1, "epoch")
        assert (plan.gradient, plan.beta, plan.frequencies, plan.clip) == ("two_phase", 0.1, "relative", 2.0)
        assert (plan.optimizer, plan.schedule, plan.lock_floor) == (Momentum(0.0), Constant(), None)
        assert plan.limits == {"omega": (-3.0, 3.0), "coupling": (0.01, 8.0)}
        assert plan.objective == pg.objectives.PaperPair()


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"learning_rate": -0.1}, "'learning_rate' parameter of the plan must be a number, 0 or more"),
            ({"learn": {"coupling": -1.0}}, r"learn\['coupling'\]' parameter of the plan"),
            ({"learn": 5}, "'learn' of the plan must be names of parameters"),
            ({"learn": "mass"}, "The plan names 'mass'. This network has no parameter 'mass'. Its parameters are"),
            ({"learn": "field_phase"}, "The plan names 'field_phase'. This network has no parameter"),
            ({"beta": 0}, "'beta'"),
            ({"epochs": -1}, "'epochs'"),
            ({"epochs": 2.5}, "'epochs'"),
            ({"gradient": "backprop"}, "'gradient'"),
            ({"warm_start": "always"}, "'warm_start'"),
            ({"batch_size": 4}, "'warm_start' of the plan needs batches of one sample"),
            ({"optimizer": "newton"}, "'optimizer' parameter of the plan"),
            ({"schedule": "wavy"}, "'schedule' parameter of the plan"),
            ({"input_noise": -1}, "'input_noise' parameter of the plan"),
            ({"patience": 3}, "needs a validation_fraction above 0"),
            ({"record": "mood"}, "'record' parameter of the plan"),
            ({"accept": (0.0, 1.0)}, "'accept' parameter of the plan"),
            ({"bounds": {"omega": (1, -1)}}, "'bounds' of the plan must be a lower and a higher number for 'omega'"),
            ({"bounds": {"mass": (0, 1)}}, "The plan names 'mass'"),
            ({"mask": {"omega": np.ones(7, bool)}}, r"'mask' of train for 'omega' must be .* shape \(9,\)"),
            ({"mask": {"omega": np.ones(9)}}, "an array of True and False"),
            ({"mask": {"coupling": np.ones(24, bool)}}, "'coupling', which does not learn in this plan"),
            ({"until": 300}, "cannot stop at 300"),
            ({"engine": "gpu"}, "'engine' parameter of train"),
            ({"threads": 0}, "'threads' parameter"),
            ({"seed": "x"}, "'seed' parameter of train must be a whole number"),
            ({"seed": [1, 2]}, "'seed' of train must name one seed per network, 1. Got 2"),
            ({"seed": -1}, "'seed' parameter of train"),
        ],
    )
    def test_wrong_options_are_refused(self, paper_networks, vowels, options, message):
        with pytest.raises(ValueError, match=message):
            pg.train(paper_networks[0], vowels[0], pg.Plan.paper(), **options)

    def test_unknown_options_and_objectives_are_refused(self, paper_networks, vowels):
        with pytest.raises(TypeError, match=r"A plan has no field 'momentum'. Its fields are learn, learning_rate"):
            pg.train(paper_networks[0], vowels[0], momentum=0.9)
        for objective in (pg.PhaseTargets, "squares", None):
            with pytest.raises(TypeError, match="must be a cost, such as"):
                pg.train(paper_networks[0], vowels[0], objective=objective)
        with pytest.raises(TypeError, match="'settling' of the plan must be a Settling"):
            pg.train(paper_networks[0], vowels[0], settling="batch")

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            (lambda phases: np.full(phases.shape[:-1], np.nan), "Own.cost must return finite numbers"),
            (lambda phases: phases, r"Own.cost must return shape \(B,\) for output phases of shape \(B, 2\)"),
            (lambda phases: 1j * phases[..., 0], "Own.cost must return real numbers for real phases. Got complex"),
        ],
    )
    def test_costs_that_cannot_be_used_are_refused_before_training(self, paper_networks, vowels, answer, message):
        own = type("Own", (pg.PhaseTargets,), {"cost": lambda self, phases, target: answer(phases)})()
        with pytest.raises(ValueError, match=message):
            pg.train(paper_networks[0], (vowels[0].x_train, np.zeros((220, 2))), objective=own)

    def test_data_that_does_not_fit_is_refused(self, paper_networks, vowels):
        network = paper_networks[0]
        with pytest.raises(ValueError, match=r"last axis of length 2 \(one value per input\)"):
            pg.train(network, tiny(features=3))
        with pytest.raises(ValueError, match="3 classes, but the networks have 2 outputs"):
            pg.train(network, tiny(classes=3))
        with pytest.raises(ValueError, match="must be class numbers from 0 to 1"):
            pg.train(network, (np.zeros((3, 2)), [0, 1, 2]))
        with pytest.raises(TypeError, match="'data' of train must be a Dataset"):
            pg.train(network, 5)
        with pytest.raises(TypeError, match="train takes a Network or a list of them"):
            pg.train("network", vowels[0])
        with pytest.raises(TypeError, match="train takes a Network or a list of them, at least one"):
            pg.train([], [])
        with pytest.raises(TypeError, match="train takes a Network or a list of them, at least one"):
            pg.train([network, "network"], vowels[0])
        with pytest.raises(ValueError, match="differ in size"):
            pg.train([network] * 2, [vowels[0], tiny()])
        with pytest.raises(ValueError, match="one data set for all networks or one for each"):
            pg.train([network] * 3, vowels[:2])
        with pytest.raises(ValueError, match=r"one seed per network, 2. Got 3"):
            pg.train([network] * 2, vowels[:2], seed=[1, 2, 3])
        for x, y, message in (
            (np.zeros((3, 2)), [0, 1], "one target for each"),
            (np.zeros((0, 2)), np.zeros(0, int), "at least one sample"),
        ):
            with pytest.raises(ValueError, match=message):
                pg.train(network, (x, y))
        for weights, message in (([1, -1, 1], "none negative"), ([0, 0, 0], "not all zero")):
            with pytest.raises(ValueError, match=message):
                pg.train(network, (np.zeros((3, 2)), [0, 1, 0]), sample_weight=weights)

    def test_networks_of_different_topology_are_refused(self, vowels):
        for other in (pg.layered(2, 6, 2), pg.layered(2, 5, 2, input_scale=2.0)):
            with pytest.raises(ValueError, match="Network 1 has another topology than network 0"):
                pg.train([pg.layered(2, 5, 2), other], vowels[:2])

    def test_the_state_of_another_training_is_refused(self, paper_networks, vowels):
        plan = pg.Plan.paper(epochs=3)
        state = pg.train(paper_networks[0], vowels[0], plan, until=1).state
        refused = [
            (pg.layered(2, 6, 2), vowels[0], plan),
            (paper_networks[0], vowels[0], plan.replace(learning_rate=0.5)),
            (paper_networks[0], vowels[0], plan.replace(objective=pg.objectives.NearestTarget())),
            (paper_networks[0], tiny(), plan),
            (paper_networks[0], vowels[1], plan),
            (paper_networks[0].replace(input_scale=2.0), vowels[0], plan),
            (paper_networks[:2], vowels[:2], plan),
        ]
        for network, data, other in refused:
            with pytest.raises(ValueError, match="This state belongs to another training"):
                pg.train(network, data, other, state=state)
        for words, options in (
            ("must be a Plan, such as Plan.paper", {"plan": "paper"}),
            (r"\(a function: call it\)", {"plan": pg.Plan.paper}),
            ("'mask' of train must be a mapping", {"plan": plan, "mask": [True]}),
        ):
            with pytest.raises(TypeError, match=words):
                pg.train(paper_networks[0], vowels[0], **options)
        with pytest.raises(TypeError, match="'state' of train must be a TrainingState"):
            pg.train(paper_networks[0], vowels[0], plan, state={})
        with pytest.raises(ValueError, match="each of its own shape"):
            state.replace(coupling=np.ones(3))

    def test_what_goes_on_is_not_called_untrained(self):
        network, data, plan = (
            pg.layered(2, 5, 2, seed=0),
            pg.datasets.vowels("a,i", seed=0),
            pg.Plan.paper(epochs=4),
        )
        begun = pg.train(network, data, plan, until=2)
        assert "% untrained, " in str(begun)
        assert "% at epoch 2, " in str(pg.train(network, data, plan, state=begun.state))

    def test_what_is_no_state_is_refused(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="There is no file"):
            pg.training.TrainingState.load(tmp_path / "gone.npz")
        pg.Model(layers(), MATCHED[0], ("a", "b", "c"), ("x", "y")).save(tmp_path / "model.npz")
        (tmp_path / "text.npz").write_text("not a file of arrays")
        for name in ("model.npz", "text.npz"):
            with pytest.raises(ValueError, match=r"not a (phasegrad )?training state"):
                pg.training.TrainingState.load(tmp_path / name)


def test_a_plan_is_a_value():
    plan = pg.Plan(learn="coupling", optimizer="sgd")
    assert plan.optimizer == Momentum(0.0)
    assert plan.rates == {"coupling": 0.01}
    assert plan.replace(epochs=3) == pg.Plan(learn=["coupling"], optimizer=Momentum(0.0), epochs=3)
    assert plan.replace(learning_rate=0.5).rates == {"coupling": 0.5}
    assert pg.Plan.paper({"omega": 0.0, "coupling": 0.5}).rates == {"coupling": 0.5}


def test_signed_layers_start_undecided_and_locked_whatever_their_size():
    for sizes in ((2, 3, 2), (64, 100, 10), (10, 0, 30), (8, (20, 10), 4)):
        network = pg.networks.signed_layers(*sizes, rest=np.pi / 2, seed=3)
        x = np.random.default_rng(0).uniform(-1, 1, (20, sizes[0]))
        state = pg.find_equilibrium(network, x, solver="batch")
        assert np.all(state.stable)
        outputs = state.phases[:, list(network.outputs)]
        assert np.max(np.abs(outputs - np.pi / 2)) < 0.6


def test_a_lattice_that_the_matrix_products_do_not_settle_goes_on_learning():
    """Alignment creeps over a lattice; samples it leaves unsettled must not drop out of the training for good."""
    iris = pg.datasets.classic("iris", seed=0)
    graph = pg.networks.lattice(8, 8)
    field = {"field_strength": np.full(64, 0.3), "field_phase": np.full(64, np.pi / 2)}
    roles = {"inputs": [0, 16, 40, 56], "outputs": [7, 31, 63], "input_mode": "phase", "input_scale": 1.0}
    coupling = np.random.default_rng(0).uniform(0.5, 1.5, graph.n_edges)
    lattice = graph.replace(coupling=coupling, omega=np.zeros(64), signed=True, **field, **roles)
    result = pg.train(lattice, (iris.x_train, iris.y_train), epochs=20, learning_rate=0.05, gradient="adjoint")
    assert result.history.skipped.sum() <= 0.05 * 20 * 120
    assert result.history.train_loss[0, -1] < 0.6 * result.history.train_loss[0, 0]


@pytest.mark.slow
def test_ten_thousand_networks_fit_into_a_gigabyte():
    """VmHWM counts from the start of this program; ru_maxrss begins at what the process that starts it holds."""
    code = (
        "import pathlib, phasegrad as pg\n"
        "nets = [pg.layered(2, 5, 2, seed=s) for s in range(10_000)]\n"
        "data = [pg.datasets.vowels(seed=s) for s in range(10_000)]\n"
        "pg.train(nets, data, pg.Plan.paper(epochs=2))\n"
        "lines = pathlib.Path('/proc/self/status').read_text().splitlines()\n"
        "print(*(float(line.split()[1]) / 1024 for line in lines if line.startswith('VmHWM')))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 100 < float(result.stdout) < 1000


class TestWarmStarts:
    @pytest.mark.parametrize("engine", ["lanes", "batch"])
    def test_a_sample_starts_where_the_one_before_it_settled(self, engine):
        """What is carried on is the state of the last sample, here of the only one that a stop leaves."""
        data, network = tiny(), pg.layered(2, 4, 2, seed=1)
        plan = pg.Plan.paper(epochs=1, warm_start="run", learning_rate=0.0)
        state = pg.train(network, data, plan, engine=engine).state
        last = [pg.find_equilibrium(network, x).phases for x in data.x_train]
        near = [np.max(np.abs(state.progress.phases[0] - phases)) for phases in last]
        assert min(near) < 1e-9
        cold = pg.train(network, data, plan, warm_start="none", engine="batch").state
        assert not np.any(cold.progress.phases)

    @pytest.mark.parametrize("engine", ["lanes", "batch"])
    def test_every_epoch_begins_at_zero_or_only_the_first(self, engine):
        """Led on from input to input an oscillator is turned almost once; then the first one is a whole turn on."""
        network = pg.Network([[0, 1]], 1.0, [0.0, 0.0], inputs=[0], outputs=[1], input_mode="phase", input_scale=1.0)
        x = 1.2 * np.arange(1.0, 6.0)[:, None]
        plan = pg.Plan.paper(
            epochs=2, evaluate_every=1, learning_rate=0.0, objective=pg.PhaseTargets(), shuffle=InOrder()
        )
        losses = [
            pg.train(network, (x, 0 * x), plan, warm_start=start, engine=engine).history.train_loss[0, 1:]
            for start in ("epoch", "run")
        ]
        known = np.mean(0.5 * x**2), np.mean(0.5 * (x + 2 * np.pi) ** 2)
        np.testing.assert_allclose(losses, [[known[0], known[0]], known], rtol=1e-9)


class TestValidationPart:
    @pytest.mark.parametrize(
        ("sizes", "fraction", "expected"),
        [
            ((10, 20), 0.01, (1, 1)),
            ((10, 20), 0.1, (1, 2)),
            ((10, 20), 0.5, (5, 10)),
            ((3, 20), 0.9, (2, 18)),
            ((2, 2), 0.9, (1, 1)),
        ],
    )
    def test_it_takes_the_same_share_of_every_class_at_least_one_never_all(self, sizes, fraction, expected):
        labels = np.repeat([0, 1], sizes)[None]
        blank = np.zeros((1, labels.size, 1))
        rows = validation_rows(Samples(blank, blank, blank[..., 0], labels), fraction, [np.random.default_rng(0)])
        assert tuple(np.bincount(labels[0, rows[0]])) == expected
        assert np.all(np.diff(rows[0]) > 0)


class TestStates:
    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("format", "an .npz file, but not a phasegrad training state"),
            ("version", "training state format 6; this version"),
        ],
    )
    def test_a_file_of_another_format_or_version_is_refused(self, tmp_path, name, message):
        data, network = tiny(), pg.layered(2, 4, 2, seed=1)
        pg.train(network, data, pg.Plan.paper(epochs=1)).state.save(tmp_path / "state.npz")
        with np.load(tmp_path / "state.npz") as file:
            content = dict(file)
        header = json.loads(str(content["header"]))
        content["header"] = np.array(json.dumps({**header, name: header[name] * 2}))
        np.savez(tmp_path / "other.npz", **content)
        with pytest.raises(ValueError, match=message):
            pg.training.TrainingState.load(tmp_path / "other.npz")

    def test_a_state_belongs_to_the_samples_of_every_network(self):
        networks, plan = [pg.layered(2, 4, 2, seed=seed) for seed in (1, 2)], pg.Plan.paper(epochs=2)
        given, others = [tiny(), tiny()], [tiny(), tiny(seed=1)]
        half = pg.train(networks, given, plan, until=1)
        assert pg.train(networks, given, plan, state=half.state).state.epoch == 2
        with pytest.raises(ValueError, match="belongs to another training"):
            pg.train(networks, others, plan, state=half.state)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not tie a process to processors")
class Pull(pg.Cost):
    """A cost of your own that is no dataclass."""

    def __init__(self, strength, at=(0.2, -0.2, 0.1)):
        self.strength, self.at, self._calls = strength, np.array(at), 0

    def nodes(self, network):
        return network.outputs

    def cost(self, outputs, target):
        self._calls += 1
        return 0.5 * self.strength * np.sum((outputs - self.at - target) ** 2, axis=1)

    def force(self, outputs, target):
        return -self.strength * (outputs - self.at - target)


class Turned:
    """An augmentation of your own that is no dataclass."""

    def __init__(self, scale):
        self.scale = scale

    def draw(self, stream, count):
        return stream.standard_normal((count, 1))

    def apply(self, inputs, rows):
        return inputs + self.scale * rows


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"objective": Pull(1.0)}, {"objective": Pull(2.0)}),
        ({"objective": Pull(1.0)}, {"objective": Pull(1.0, at=(0.2, -0.3, 0.1))}),
        ({"augmentation": Turned(0.1)}, {"augmentation": Turned(0.2)}),
    ],
)
def test_a_state_belongs_to_the_settings_of_a_custom_cost_or_augmentation(before, after):
    network, data = layers(), (tiny().x_train, np.zeros((len(tiny().x_train), 3)))
    plan = pg.Plan(epochs=2, objective=Pull(1.0)).replace(**before)
    state = pg.train(network, data, plan, until=1).state
    with pytest.raises(ValueError, match="belongs to another training"):
        pg.train(network, data, plan.replace(**after), state=state)
    assert pg.train(network, data, plan, state=state).network == pg.train(network, data, plan).network


def test_tuples_are_taken_as_arrays():
    x, y = ((0.1, 0.2), (0.3, -0.4), (-0.5, 0.1)), (0, 1, 0)
    plan = pg.Plan.classifier(epochs=1)
    expected = pg.train(layers(), (np.array(x), np.array(y)), plan).network
    assert pg.train(layers(), (x, y), plan).network == expected
    assert pg.train(layers(), (x, y, x, y), plan).network == expected
    several = pg.train([layers()] * 2, [(x, y), (x, y)], plan, seed=[0, 0])
    for network in several.networks:
        np.testing.assert_allclose(network.coupling, expected.coupling, atol=1e-12)


def test_training_counts_the_processors_that_this_process_may_use():
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert processors() == 1
    finally:
        os.sched_setaffinity(0, before)
    assert processors() == len(before)
