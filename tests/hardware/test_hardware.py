"""Chips with faults, what is programmed into them and read from them, and learning on them."""

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

import phasegrad as pg
from phasegrad.cli.application import app
from phasegrad.hardware import FAULTS, Chip, Device, DeviceError, Hardware, OnDevice, preset, presets

INPUTS = np.random.default_rng(5).uniform(-1, 1, (6, 2))
TORQUES = np.random.default_rng(6).uniform(-1, 1, (6, 2))
NETWORK = pg.layered(2, 5, 2, seed=0)
FAULTY = Hardware(
    frequency_mismatch=0.01,
    coupling_mismatch=0.05,
    coupling_levels=5,
    coupling_range=(0.5, 4.5),
    frequency_bits=6,
    drift=1e-4,
    settling_time=2.0,
    jitter=0.001,
    readout=pg.measurement.Readout(0.01, bits=6),
)


def shown(device, inputs=INPUTS, torques=None):
    device.run(inputs, torques)
    return device.read()


def vowels(count=40):
    data = pg.datasets.vowels(["a", "i"], seed=0)
    return data.x_train[:count], data.y_train[:count], data.x_test, data.y_test


PLAN = pg.Plan(
    learn={"omega": 0.05, "coupling": 0.05},
    objective=pg.objectives.OutputDifferences(),
    beta=0.5,
    epochs=3,
    batch_size=10,
)


class TestHardware:
    def test_levels_are_evenly_spread_over_the_range_with_both_ends(self):
        kind = Hardware(coupling_levels=5, coupling_range=(0, 4))
        given = [-1.0, 0.49, 0.51, 2.4, 3.6, 9.0]
        assert kind.programmed(NETWORK, {"coupling": given})["coupling"].tolist() == [0, 0, 1, 2, 4, 4]

    @pytest.mark.parametrize("bits", [1, 3, 10])
    def test_rounding_is_to_the_nearest_level_and_changes_no_level(self, bits):
        kind = Hardware(frequency_bits=bits, frequency_range=(-2, 2))
        levels = np.linspace(-2, 2, 2**bits)
        given = np.random.default_rng(0).uniform(-2, 2, 200)
        rounded = kind.programmed(NETWORK, {"omega": given})["omega"]
        np.testing.assert_allclose(rounded, levels[np.argmin(abs(given[:, None] - levels), axis=1)], atol=1e-12)
        np.testing.assert_array_equal(kind.programmed(NETWORK, {"omega": rounded})["omega"], rounded)

    def test_phases_of_fields_are_rounded_around_the_circle(self):
        network = pg.networks.signed_layers(2, 3, 2)
        kind = Hardware(field_bits=2, field_range=(0, 3))
        taken = kind.programmed(network, {"field_phase": [3.1, -3.1, 0.7, 0.9], "field_strength": [1.4, 1.6, 5, -1]})
        expected = [-math.pi, -math.pi, 0.0, math.pi / 2]
        np.testing.assert_allclose(np.cos(taken["field_phase"] - expected), 1)
        np.testing.assert_allclose(taken["field_strength"], [1, 2, 3, 0])

    def test_a_range_that_is_not_given_goes_by_the_network(self):
        most = 2 * NETWORK.coupling.max()
        assert Hardware(coupling_levels=3).ranges(NETWORK) == {"coupling": (0.0, most)}
        signed = pg.networks.signed_layers(2, 3, 2)
        low, high = Hardware(coupling_levels=3).ranges(signed)["coupling"]
        assert -low == high == 2 * abs(signed.coupling).max()

    def test_shares_of_the_operating_frequency_in_units_of_the_model(self):
        kind = Hardware(
            frequency_mismatch=0.01, drift=0.001, jitter=0.002, settling_time=5.0, cycles=10.0, frequency=1e9
        )
        assert kind.detuning == pytest.approx(0.2 * math.pi)
        assert kind.wander == pytest.approx(0.02 * math.pi)
        assert kind.diffusion == pytest.approx(0.004 * math.pi * math.sqrt(10))
        assert kind.seconds == pytest.approx(50e-9)
        assert math.isnan(Hardware().seconds)

    def test_only_keeps_the_faults_that_are_named(self):
        assert set(FAULTY.faults) == set(FAULTS)
        for fault in FAULTS:
            assert FAULTY.only(fault).faults == (fault,)
        assert FAULTY.only().faults == Hardware().faults == ()
        with pytest.raises(ValueError, match="no fault 'rust'"):
            FAULTY.only("rust")

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"frequency_mismatch": -0.1}, "frequency_mismatch"),
            ({"coupling_mismatch": float("nan")}, "coupling_mismatch"),
            ({"coupling_levels": 0}, "coupling_levels"),
            ({"coupling_levels": 5, "coupling_range": (2, 2)}, "does not allow 5 different levels"),
            ({"coupling_levels": 1, "coupling_range": (0, 2)}, "does not allow 1 different level"),
            ({"coupling_levels": 2**40, "coupling_range": (1, 2)}, "does not allow"),
            ({"coupling_range": (2, 1)}, "lower one first"),
            ({"coupling_range": 3}, "two numbers"),
            ({"field_bits": 40}, "at most 32"),
            ({"jitter": 0.1}, "settling_time"),
            ({"settling_time": 0.0}, "settling_time"),
            ({"drift": 2}, "drift"),
        ],
    )
    def test_impossible_numbers_are_refused(self, given, words):
        with pytest.raises(ValueError, match=words):
            Hardware(**given)

    def test_a_readout_must_be_one(self):
        with pytest.raises(TypeError, match="Readout"):
            Hardware(readout=0.1)


class TestPresets:
    @pytest.mark.parametrize("name", presets())
    def test_every_number_of_a_preset_has_a_source(self, name):
        kind, ideal = preset(name), Hardware()
        named = dict(kind.sources)
        changed = [key for key in Hardware.__dataclass_fields__ if getattr(kind, key) != getattr(ideal, key)]
        assert set(changed) - {"name", "sources"} <= set(named)
        text = str(kind)
        assert all(source in text for source in named.values())
        assert text.startswith(name)

    def test_a_number_that_is_changed_loses_its_source(self):
        kind = preset("cmos-ring-65nm").replace(coupling_levels=9)
        assert "coupling_levels" not in dict(kind.sources)
        assert "coupling_levels = 9\n" in str(kind)
        assert str(Hardware()).splitlines()[1:] == ["  no faults"]

    def test_an_unknown_one_is_refused_with_the_nearest(self):
        with pytest.raises(ValueError, match="Did you mean 'cmos-ring-65nm'"):
            preset("cmos_ring_65")


class TestChip:
    def test_is_a_device(self):
        assert isinstance(Hardware().sample(NETWORK), Device)

    def test_an_ideal_chip_shows_the_equilibrium_free_and_nudged(self):
        chip = preset("ideal").sample(NETWORK)
        np.testing.assert_allclose(shown(chip), pg.find_equilibrium(NETWORK, INPUTS).phases, atol=1e-8)
        nudged = pg.find_equilibrium(NETWORK, INPUTS, nudge=pg.Nudge(pg.objectives.Torques(), TORQUES, 1.0))
        np.testing.assert_allclose(shown(chip, torques=TORQUES), nudged.phases, atol=1e-8)

    def test_large_signed_networks_too(self):
        network = pg.networks.signed_layers(2, 20, 2, seed=3)
        chip = Hardware().sample(network)
        np.testing.assert_allclose(shown(chip), pg.find_equilibrium(network, INPUTS).phases, atol=1e-7)
        nudged = pg.find_equilibrium(network, INPUTS, nudge=pg.Nudge(pg.objectives.Torques(), TORQUES, 1.0))
        np.testing.assert_allclose(shown(chip, torques=TORQUES), nudged.phases, atol=1e-7)

    @pytest.mark.parametrize("network", [pg.networks.ring(5, outputs=[2]), pg.networks.mean_field(5, 2.0, outputs=[2])])
    def test_a_chip_of_a_network_without_inputs_settles(self, network):
        network = network.replace(omega=[0.3, -0.1, 0.2, -0.4, 0.1])
        chip = Hardware().sample(network, seed=0)
        chip.run(np.zeros((2, 0)))
        assert chip.read() == pytest.approx(np.tile(pg.find_equilibrium(network).phases, (2, 1)), abs=1e-8)
        chip.run(np.zeros((1, 0)), [[0.2]])
        turned = network.omega + np.array([-0.2, 0, 0.2, 0, 0])  # the reference has the reaction
        assert chip.read()[0] == pytest.approx(pg.find_equilibrium(network.replace(omega=turned)).phases, abs=1e-8)

    def test_a_seed_makes_the_same_chip_again_and_another_another(self):
        first, again, other = (FAULTY.sample(NETWORK, seed) for seed in (3, 3, 4))
        for _ in range(2):
            one, two, three = shown(first), shown(again), shown(other)
            np.testing.assert_array_equal(one, two)
            assert np.abs(one - three).max() > 0.01

    def test_faults_are_frozen_while_readings_differ(self):
        quiet = FAULTY.replace(drift=0.0, jitter=0.0, readout=pg.measurement.Readout()).sample(NETWORK, 1)
        np.testing.assert_array_equal(shown(quiet), shown(quiet))
        noisy = Hardware(readout=pg.measurement.Readout(0.1)).sample(NETWORK, 1)
        assert not np.array_equal(shown(noisy), shown(noisy))

    def test_no_chip_depends_on_its_company(self):
        many, alone = FAULTY.ensemble(NETWORK, 3), FAULTY.sample(NETWORK, 1)
        many.run(np.broadcast_to(INPUTS, (3, *INPUTS.shape)), np.broadcast_to(TORQUES, (3, *TORQUES.shape)))
        np.testing.assert_allclose(many.read()[1], shown(alone, torques=TORQUES), atol=1e-12)

    def test_mismatch_comes_after_rounding_and_noise_before_levels(self):
        """Couplings off their levels by a per cent or so; readings on the meter's levels whatever its noise."""
        kind = Hardware(
            coupling_levels=3,
            coupling_range=(1, 3),
            coupling_mismatch=0.01,
            readout=pg.measurement.Readout(0.5, bits=3),
        )
        chip = kind.sample(NETWORK, 2)
        system = chip._alone._system(np.array([0]), INPUTS[None], np.zeros((1, 6, 9)))
        coupling = system.values["coupling"][0]
        distance = np.abs(coupling[:, None] / np.array([1.0, 2.0, 3.0]) - 1).min(axis=1)
        assert distance.min() > 0
        assert distance.max() < 0.05
        step = 2 * math.pi / 8
        levels = (shown(chip) + math.pi) / step - 0.5
        np.testing.assert_allclose(levels, np.rint(levels), atol=1e-9)

    @pytest.mark.parametrize("fault", ["frequency mismatch", "coupling mismatch", "levels", "settling", "reading"])
    def test_every_fault_changes_what_is_read(self, fault):
        exact = pg.find_equilibrium(NETWORK, INPUTS).phases
        assert np.abs(shown(FAULTY.only(fault).sample(NETWORK, 0)) - exact).max() > 1e-3

    def test_frequencies_walk_from_run_to_run(self):
        chip = Hardware(drift=0.001).sample(NETWORK, 0)
        first = [shown(chip) for _ in range(40)]
        assert np.abs(first[39] - first[0]).max() > np.abs(first[1] - first[0]).max() > 0

    def test_spread_of_mismatch_is_as_stated(self):
        kind = Hardware(frequency_mismatch=0.01, coupling_mismatch=0.02)
        chips = kind.ensemble(NETWORK, 400)
        assert np.std(chips._shift) == pytest.approx(kind.detuning, rel=0.05)
        assert np.std(chips._factors["coupling"]) == pytest.approx(0.02, rel=0.05)

    def test_a_long_run_ends_at_rest_and_a_short_one_before(self):
        exact = pg.find_equilibrium(NETWORK, INPUTS).phases
        errors = [np.abs(shown(Hardware(settling_time=time).sample(NETWORK)) - exact).max() for time in (0.1, 1, 10)]
        assert errors[0] > errors[1] > errors[2]
        assert errors[0] > 0.05
        assert errors[2] < 1e-8

    def test_a_run_follows_the_dynamics(self):
        """Two oscillators under a torque s: d phi / dt = 2 s - 2 K sin phi, here by very many small steps."""
        network = pg.Network([[0, 1]], [1.0], [0.0, 0.0], inputs=[0], outputs=[1])
        strength, time = 0.5, 1.3
        chip = Hardware(settling_time=time).sample(network)
        phase = shown(chip, np.zeros((1, 1)), [[strength]])[0, 1]
        exact = 0.0
        for _ in range(20000):
            middle = exact + time / 40000 * 2 * (strength - math.sin(exact))
            exact += time / 20000 * 2 * (strength - math.sin(middle))
        assert phase == pytest.approx(exact, abs=2e-3)

    def test_what_does_not_lock_reads_nan(self):
        for kind in (Hardware(), Hardware(settling_time=5.0)):
            read = shown(kind.sample(NETWORK), [[0.1, 0.2], [80.0, -80.0]])
            assert np.isfinite(read[0]).all()
            assert np.isnan(read[1]).all()

    def test_relabelling_the_oscillators_relabels_what_is_read(self):
        order = np.random.default_rng(1).permutation(9)
        place = np.argsort(order)
        coupling = dict(zip(map(tuple, np.sort(place[NETWORK.edges], axis=1)), NETWORK.coupling, strict=True))
        edges = np.array(sorted(coupling))
        moved = pg.Network(
            edges,
            [coupling[tuple(edge)] for edge in edges],
            NETWORK.omega[order],
            inputs=place[list(NETWORK.inputs)],
            outputs=place[list(NETWORK.outputs)],
            reference=int(place[0]),
        )
        kind = Hardware(coupling_levels=4, frequency_bits=5, settling_time=3.0)
        first, second = shown(kind.sample(NETWORK), torques=TORQUES), shown(kind.sample(moved), torques=TORQUES)
        np.testing.assert_allclose(second[:, place], first, atol=1e-9)

    def test_wrong_calls_are_refused_in_words(self):
        chip = Hardware().sample(NETWORK)
        with pytest.raises(RuntimeError, match="run the chip first"):
            chip.read()
        with pytest.raises(ValueError, match=r"shape \(1, 9\)"):
            chip.program({"omega": [1.0, 2.0]})
        with pytest.raises(ValueError, match="finite"):
            chip.program({"omega": [np.nan] * 9})
        with pytest.raises(ValueError, match="colour"):
            chip.program({"colour": [1.0]})
        with pytest.raises(ValueError, match=r"chips, samples, values"):
            chip.run([[1.0, 2.0, 3.0]])
        with pytest.raises(ValueError, match="do not go with"):
            chip.run(INPUTS, TORQUES[:2])
        with pytest.raises(TypeError, match="Network"):
            Hardware().sample(3)
        with pytest.raises(ValueError, match="at least one chip"):
            Hardware().ensemble(NETWORK, [])

    def test_a_chip_of_parts_that_nothing_ties_together_reads_nan(self):
        chip = Hardware().sample(NETWORK)
        chip.program({"coupling": np.zeros(NETWORK.n_edges)})
        assert np.isnan(shown(chip)).all()


class Laboratory:
    """A function of one's own behind the three calls."""

    def __init__(self, answer):
        self.answer, self.parameters, self.phases = answer, {}, None

    def program(self, parameters):
        self.parameters.update(parameters)

    def run(self, inputs, torques=None):
        nudge = None if torques is None else pg.Nudge(pg.objectives.Torques(), torques, 1.0)
        found = pg.find_equilibrium(NETWORK.replace(**self.parameters), inputs, nudge=nudge)
        self.phases = self.answer(np.where(found.stable[:, None], found.phases, np.nan))

    def read(self):
        return self.phases


class TestOnDevice:
    @pytest.mark.parametrize("gradient", ["centred", "two_phase"])
    def test_an_ideal_chip_gives_the_exact_gradient(self, gradient):
        """A first step of plain descent is the rate times the mean gradient, to the order of the nudge."""
        rate, beta = 0.01, 1e-4
        plan = PLAN.replace(
            learn={"omega": rate, "coupling": rate},
            epochs=1,
            batch_size=40,
            optimizer="sgd",
            schedule="constant",
            beta=beta,
            gradient=gradient,
            lock_floor=None,
        )
        x, y = vowels()[:2]
        result = pg.train(NETWORK, (x, y), plan, engine=OnDevice([Hardware().sample(NETWORK)]))
        exact = pg.adjoint(
            NETWORK, pg.find_equilibrium(NETWORK, x), plan.objective, y, wrt=("omega", "coupling"), frequencies="raw"
        )
        for name in ("omega", "coupling"):
            step = getattr(result.network, name) - getattr(NETWORK, name)
            learns = slice(2, None) if name == "omega" else slice(None)
            error = np.abs(step + rate * exact[name].mean(axis=0))[learns].max()
            assert error < rate * np.abs(exact[name]).max() * (1e-3 if gradient == "two_phase" else 1e-4)

    def test_an_ideal_chip_trains_as_the_batch_engine_does(self):
        plan = PLAN.replace(beta=0.001, lock_floor=None)
        chip = pg.train(NETWORK, vowels(), plan, engine=OnDevice([Hardware().sample(NETWORK)]))
        batch = pg.train(NETWORK, vowels(), plan, engine="batch")
        np.testing.assert_allclose(chip.network.coupling, batch.network.coupling, atol=1e-3)
        np.testing.assert_allclose(chip.history.train_loss, batch.history.train_loss, rtol=1e-3)
        np.testing.assert_array_equal(chip.history.test_accuracy, batch.history.test_accuracy)

    def test_chips_one_by_one_and_at_once_learn_the_same(self):
        networks = [NETWORK] * 2
        kind = FAULTY.replace(drift=0.0)
        once = pg.train(networks, vowels(), PLAN, engine=OnDevice(kind.ensemble(NETWORK, 2)))
        each = pg.train(networks, vowels(), PLAN, engine=OnDevice([kind.sample(NETWORK, seed) for seed in (0, 1)]))
        for one, other in zip(once.networks, each.networks, strict=True):
            np.testing.assert_allclose(one.coupling, other.coupling, atol=1e-9)
        assert not np.allclose(once.networks[0].coupling, once.networks[1].coupling)

    def test_hidden_copies_move_between_levels_and_stay_in_the_range(self):
        kind = Hardware(coupling_levels=3, coupling_range=(1, 3))
        result = pg.train(NETWORK, vowels(), PLAN, learning_rate=1.0, engine=OnDevice([kind.sample(NETWORK)]))
        assert not np.isin(result.network.coupling, [1, 2, 3]).all()
        assert result.network.coupling.min() >= 1
        assert result.network.coupling.max() <= 3

    def test_learning_survives_the_faults(self):
        kind = Hardware(
            frequency_mismatch=0.01,
            coupling_mismatch=0.01,
            coupling_levels=5,
            coupling_range=(0.5, 4.5),
            readout=pg.measurement.Readout.from_time(1e-12, 3e9),
        )
        plan = PLAN.replace(beta=2.0, learn={"omega": 0.1, "coupling": 0.1}, epochs=15, batch_size=32)
        chips = kind.ensemble(NETWORK, 3)
        result = pg.train([NETWORK] * 3, vowels(220), plan, engine=OnDevice(chips))
        assert result.history.test_accuracy[:, -1].mean() > 0.9

    def test_a_laboratory_function_learns(self):
        result = pg.train(NETWORK, vowels(), PLAN, engine=OnDevice([Laboratory(lambda phases: phases)]))
        assert result.history.train_loss[0, -1] < result.history.train_loss[0, 0]

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            (lambda phases: phases[:, :5], r"here \(40, 9\). Got shape \(40, 5\)"),
            (lambda phases: phases[0], r"Got shape \(9,\)"),
            (lambda phases: phases * np.nan, "NaN for all of 40 samples"),
            (lambda phases: "phases", "did not return numbers"),
        ],
    )
    def test_wrong_answers_of_a_laboratory_are_refused(self, answer, words):
        with pytest.raises(ValueError, match=words):
            pg.train(NETWORK, vowels(), PLAN, engine=OnDevice([Laboratory(answer)]))

    def test_a_dead_device_can_be_counted_instead(self):
        engine = OnDevice([Laboratory(lambda phases: phases * np.nan)], dead="count")
        with pytest.warns(pg.training.TrainingWarning, match="100%"):
            result = pg.train(NETWORK, vowels(), PLAN, engine=engine)
        assert result.history.test_accuracy[0].tolist() == [0] * 4
        assert result.history.skipped[0, 1:].tolist() == [40] * 3
        np.testing.assert_array_equal(result.network.coupling, NETWORK.coupling)

    def test_samples_without_a_reading_are_skipped_and_counted(self):
        def answer(phases):
            phases[0] = np.nan
            return phases

        result = pg.train(NETWORK, vowels(), PLAN, engine=OnDevice([Laboratory(answer)]))
        # One of every batch of ten, and of the part that is scored first.
        assert result.history.skipped[0].tolist() == [0, 4, 4, 4]
        assert result.history.train_unsettled[0].tolist() == [1, 4, 4, 4]

    def test_a_nudge_that_unlocks_is_halved_counted_and_said(self):
        with pytest.warns(pg.training.TrainingWarning, match="A nudge of 200 unlocked"):
            result = pg.train(NETWORK, vowels(), PLAN, beta=200.0, engine=OnDevice([Hardware().sample(NETWORK)]))
        assert result.history.shortened[0, 1:].min() > 0
        assert result.history.train_loss[0, -1] < result.history.train_loss[0, 0]

    def test_the_lock_guard_goes_by_what_is_read(self):
        """Steps so long that they unlock are halved; without the guard they are taken."""
        options = {"learn": {"omega": 12.0}, "schedule": "constant", "epochs": 2, "batch_size": 40}
        chip = [Hardware().sample(NETWORK)]
        guarded = pg.train(NETWORK, vowels(), PLAN, engine=OnDevice(chip), **options)
        assert guarded.history.skipped[0].sum() == 0
        assert guarded.history.shortened[0].sum() > 0
        with pytest.warns(pg.training.TrainingWarning):
            free = pg.train(NETWORK, vowels(), PLAN, engine=OnDevice(chip), lock_floor=None, **options)
        assert free.history.skipped[0].sum() > 0

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"gradient": "adjoint"}, "it can only be nudged"),
            ({"gradient_options": {"points": 4}}, "without 'gradient_options'"),
            ({"warm_start": "epoch", "batch_size": 1}, "warm_start='none'"),
            ({"record": "condition"}, "nothing else"),
        ],
    )
    def test_plans_that_a_device_cannot_do_are_refused(self, changes, words):
        with pytest.raises(ValueError, match=words):
            pg.train(NETWORK, vowels(), PLAN, engine=OnDevice([Hardware().sample(NETWORK)]), **changes)

    def test_what_are_no_devices_is_refused(self):
        with pytest.raises(ValueError, match="one device per network"):
            pg.train([NETWORK] * 3, vowels(), PLAN, engine=OnDevice(Hardware().ensemble(NETWORK, 2)))
        with pytest.raises(ValueError, match="at least one device"):
            OnDevice([])
        with pytest.raises(TypeError, match="a list of devices"):
            OnDevice(3)
        with pytest.raises(TypeError, match="has no run and no read"):
            OnDevice([type("Half", (), {"program": lambda self, parameters: None})()])
        with pytest.raises(TypeError, match="is a class"):
            OnDevice([Chip])
        with pytest.raises(ValueError, match="dead"):
            OnDevice(Hardware().ensemble(NETWORK, 2), dead="maybe")

    def test_without_reciprocity_nothing_is_shown(self):
        network = NETWORK.replace(coupling_reverse=1.2 * NETWORK.coupling)
        with pytest.raises(ValueError, match="reciprocal"):
            pg.train(network, vowels(), PLAN, engine=OnDevice([Hardware().sample(network)]))

    def test_phases_in_degrees_are_noticed_before_training(self):
        engine = OnDevice([Laboratory(np.rad2deg)])
        with pytest.raises(ValueError, match=r"Device 0 returned phases .* np\.deg2rad"):
            pg.train(NETWORK, vowels(), PLAN, engine=engine)

    def test_a_few_samples_that_slipped_a_turn_are_not_taken_for_degrees(self):
        def slipped(phases):
            return phases + 4 * np.pi * (np.arange(len(phases))[:, None] % 3 == 0)

        pg.train(NETWORK, vowels(), PLAN, epochs=0, engine=OnDevice([Laboratory(slipped)]))

    @pytest.mark.parametrize("call", ["program", "run", "read"])
    def test_a_bus_that_times_out_loses_no_full_epoch_and_can_be_tried_again(self, call):
        class Shaky(Laboratory):
            """Fails at one call of a kind, and then no more."""

            fails, calls = -1, 0

            def __getattribute__(self, name):
                if name == call:
                    self.calls += 1
                    if self.calls == self.fails:
                        raise TimeoutError("no answer from the bus")
                return super().__getattribute__(name)

        plan = PLAN.replace(epochs=3, evaluate_every=1)
        device = Shaky(lambda phases: phases)
        engine = OnDevice([device])
        device.calls = 0
        whole = pg.train(NETWORK, vowels(), plan, engine=engine)
        device.fails, device.calls = device.calls * 4 // 5, 0
        with pytest.raises(DeviceError, match=f"Device 0 failed in {call}: TimeoutError: no answer") as failure:
            pg.train(NETWORK, vowels(), plan, engine=engine)
        kept = failure.value.training
        assert kept.ended == "failed"
        assert kept.state is failure.value.state
        assert kept.history.epoch.tolist() == [0, 1, 2]
        again = pg.train(NETWORK, vowels(), plan, engine=engine, state=failure.value.state)
        assert np.array_equal(again.network.omega, whole.network.omega)

    def test_a_device_that_fails_before_the_first_epoch_can_be_tried_again_too(self):
        def unplugged(phases):
            raise ConnectionError("unplugged")

        with pytest.raises(DeviceError, match="Device 0 failed in run: ConnectionError: unplugged") as failure:
            pg.train(NETWORK, vowels(), PLAN, engine=OnDevice([Laboratory(unplugged)]))
        assert failure.value.training is None
        engine = OnDevice([Laboratory(lambda phases: phases)])
        assert pg.train(NETWORK, vowels(), PLAN, engine=engine, state=failure.value.state, until=1).state.epoch == 1


class TestBudget:
    def test_a_meter_that_a_nudge_drowns_out_costs_no_direction(self):
        """The gradient that a chip has is what a perfect meter finds by a weak nudge, whatever meter the chip has."""
        chosen = pg.hardware.task("vowels", 2)
        kind = chosen.fitted(Hardware(readout=pg.measurement.Readout(1e-4)))
        assert chosen.plan.epochs == 10
        entry, _ = pg.hardware.learn_with(kind, chosen.networks, chosen.data, chosen.plan.replace(epochs=0))
        assert entry.mean_cosine > 0.99

    def test_faults_are_learned_with_alone_and_together(self):
        chosen = pg.hardware.task("vowels", 2)
        kind = chosen.fitted(
            Hardware(coupling_mismatch=0.05, readout=pg.measurement.Readout(0.02), settling_time=0.2, frequency=1e9)
        )
        seen = []
        found = pg.hardware.error_budget(
            chosen.networks,
            chosen.data,
            kind,
            chosen.plan.replace(epochs=1),
            progress=lambda fault, epoch: seen.append((fault, epoch)),
        )
        faults = ["none", "coupling mismatch", "settling", "reading", "all together"]
        assert seen == [(fault, epoch) for fault in faults for epoch in (0, 1)]
        assert [entry.fault for entry in found.entries] == faults
        none, mismatch, _, reading, _ = found.entries
        assert none.mean_cosine > 0.9999
        assert mismatch.mean_cosine > 0.9999 > 0.99 > reading.mean_cosine
        assert found.runs == 3 * len(chosen.data[0].y_train)
        assert found.seconds == pytest.approx(found.runs * 0.2 * 10 / 1e9)
        assert found.blame in {"", *FAULTS}
        assert len(found.as_dict()["deployed"]) == 2
        # The advice is that of plan_measurement for the first network, its meter and its time to settle.
        data, network = chosen.data[0], chosen.networks[0]
        advice = pg.measurement.plan_measurement(
            network,
            pg.find_equilibrium(network, data.x_train[:8]),
            chosen.plan.objective,
            data.y_train[:8],
            pg.measurement.Readout(0.02),
            wrt=("omega", "coupling"),
            frequencies="raw",
            frequency=1e9,
            settling_cycles=2,
        )
        assert found.measurement == advice
        assert found.as_dict()["measurement"]["beta"] == advice.beta

    def test_an_ideal_chip_has_nothing_to_blame(self):
        chosen = pg.hardware.task("vowels", 1)
        found = pg.hardware.error_budget(chosen.networks, chosen.data, Hardware(), chosen.plan.replace(epochs=1))
        assert found.measurement is None
        assert [entry.fault for entry in found.entries] == ["none"]
        assert found.blame == ""
        assert found.as_dict()["seconds"] is None
        assert found.deployed.tolist() == found.entries[0].accuracy.tolist()

    def test_where_nothing_can_be_measured_the_advice_says_so(self):
        chosen = pg.hardware.task("vowels", 1)
        network = chosen.networks[0]
        lost = network.replace(omega=np.where(np.arange(network.size) == 4, 1e3, 0.0))
        advice = pg.hardware.advised(Hardware(readout=pg.measurement.Readout(0.02)), lost, chosen.data, chosen.plan)
        assert "nothing to measure" in advice

    @pytest.mark.parametrize(("name", "chips", "words"), [("vovels", 1, "vovels"), ("vowels", 0, "chips")])
    def test_wrong_tasks_are_refused(self, name, chips, words):
        with pytest.raises(ValueError, match=words):
            pg.hardware.task(name, chips)


class TestCommand:
    def test_the_budget_is_shown_drawn_and_written(self, tmp_path):
        words = ["chip", "vowels", "--preset", "lc-board", "--chips", "2", "--epochs", "1"]
        places = tmp_path / "budget.svg", tmp_path / "out.json"
        result = CliRunner().invoke(app, [*words, "--plot", str(places[0]), "--json", str(places[1])])
        assert result.exit_code == 0, result.output
        assert "all together" in result.output
        assert "To blame most" in result.output
        assert "Chou" in result.output
        assert "all together" in places[0].read_text()
        found = json.loads(places[1].read_text())
        assert found["hardware"] == "lc-board"
        assert len(found["faults"][-1]["accuracies"]) == 2

    def test_an_unknown_preset_is_refused(self):
        result = CliRunner().invoke(app, ["chip", "vowels", "--preset", "cmos-ring"])
        assert result.exit_code != 0
        assert "Did you mean" in str(result.exception)


def test_a_chip_of_a_network_without_inputs_runs():
    chip = pg.hardware.Hardware().sample(pg.networks.ring(5, outputs=[1]))
    chip.run(np.zeros((2, 0)))
    assert chip.read().shape == (2, 5)


@pytest.mark.parametrize(("accuracies", "blame"), [((1.0, 0.5), "a"), ((1.0, 0.9, 0.5, 0.4), "b"), ((1.0, 1.0), "")])
def test_the_fault_that_costs_most_is_blamed_also_where_it_is_the_only_one(accuracies, blame):
    from types import SimpleNamespace

    from phasegrad.hardware import Budget

    words = ("none", "a", "b", "all")[: len(accuracies)]
    entries = tuple(
        SimpleNamespace(fault=fault, accuracy=np.array([each])) for fault, each in zip(words, accuracies, strict=True)
    )
    assert Budget.blame.fget(SimpleNamespace(entries=entries)) == blame
