"""The torch engine, held against the batch engine, which shares no formula with it."""

import numpy as np
import pytest

import phasegrad as pg
from phasegrad.training import TrainingWarning, prepare

torch = pytest.importorskip("torch")

EXACT = pg.training.Settling("batch", 1e-12)


pytestmark = pytest.mark.usefixtures("one_thread")


def _data(width=6, count=24, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-0.7, 0.7, (count, width)), rng.integers(0, classes, count)


def _dense(hidden=10):
    return pg.networks.signed_layers(6, hidden, 3, rest=np.pi / 2, gain=0.4, seed=1)


def _convolutional():
    return pg.layers(
        (1, 4, 4), pg.Convolution(2, 3, stride=2, padding=1), pg.Dense(5), pg.Dense(3), field=2.0, gain=0.4, seed=0
    )


def _apart(first, second):
    return max(np.abs(first.parameters[name] - each).max() for name, each in second.parameters.items())


def _both(network, data, dtype="float64", **changes):
    settings = {"epochs": 2, "batch_size": 6, "settling": EXACT, "beta": 0.001, "seed": 4, **changes}
    return (
        pg.train(network, data, engine="batch", **settings),
        pg.train(network, data, engine="torch", dtype=dtype, **settings),
    )


CHANGES = {
    "as a classifier": {},
    "without the guard": {"lock_floor": None},
    "one nudge": {"gradient": "two_phase"},
    "adjoint": {"gradient": "adjoint", "learn": ("coupling", "omega", "field_phase")},
    "frequencies": {"learn": {"omega": 0.01, "coupling": 0.02}},
    "momentum, clipped, decaying": {"optimizer": "momentum", "clip": 0.05, "weight_decay": 0.1},
    "plain descent by fan-in": {"optimizer": "sgd", "fan_in": 4.0},
    "bounded": {"bounds": {"coupling": (-0.2, 0.2), "field_strength": (0.9, 1.1)}},
    "noise": {"input_noise": 0.1},
    "another cost": {"objective": pg.objectives.NearestTarget()},
    "a constant rate": {"schedule": "constant"},
}  # fmt: skip


@pytest.mark.parametrize("changes", CHANGES.values(), ids=list(CHANGES))
@pytest.mark.parametrize("hidden", [10, (8, 7)])
def test_trains_as_the_batch_engine_does(hidden, changes):
    batch, tensors = _both(_dense(hidden), _data(), **changes)
    assert _apart(batch.network, _dense(hidden)) > 1e-3
    assert _apart(batch.network, tensors.network) < 1e-8
    for name in ("train_loss", "train_accuracy", "skipped", "shortened", "updates"):
        assert np.allclose(getattr(batch.history, name), getattr(tensors.history, name), atol=1e-8), name


@pytest.mark.parametrize("changes", [{}, {"gradient": "adjoint"}])
def test_outputs_that_are_not_all_of_a_layer_are_trained_as_the_batch_engine_does(changes):
    network, (x, y) = _dense(), _data(classes=2)
    network = network.replace(outputs=(network.outputs[2], network.outputs[0]))
    batch, tensors = _both(network, (x, y), **changes)
    assert _apart(batch.network, network) > 1e-3
    assert _apart(batch.network, tensors.network) < 1e-8


CONVOLUTIONAL_CHANGES = (
    {},
    {"balance": True, "lock_floor": None},
    {"fan_in": 5.0, "gradient": "adjoint"},
    {"coupling_norm": 0.2},
    {"coupling_norm": 0.3, "lock_floor": None},
)


@pytest.mark.parametrize("changes", CONVOLUTIONAL_CHANGES)
def test_trains_convolutions_as_the_batch_engine_does(changes):
    batch, tensors = _both(_convolutional(), _data(16), **changes)
    assert _apart(batch.network, _convolutional()) > 1e-3
    assert _apart(batch.network, tensors.network) < 1e-8


@pytest.mark.parametrize("engine", ["batch", "torch"])
def test_the_norm_of_couplings_between_layers_that_move_is_bounded(engine):
    def norms(network):
        layout, found = network.graph.layout, []
        for link, part in zip(layout.links, layout.couplings, strict=True):
            first, second = (layout.nodes[each] for each in (link.first, link.second))
            inside = np.isin(layout.coupling_of, np.arange(part.start, part.stop))
            matrix = np.zeros((network.size, network.size))
            matrix[tuple(layout.edges[inside].T)] = network.coupling[layout.coupling_of[inside]]
            found.append(np.linalg.norm(matrix[first, second], 2))
        return found

    # The first link is from the inputs, which are clamped.
    plan = {"epochs": 10, "learning_rate": 0.05, "lock_floor": None, "engine": engine}
    wide = norms(pg.train(_convolutional(), _data(16), **plan).network)
    assert min(wide[1:]) > 0.5
    kept = norms(pg.train(_convolutional(), _data(16), coupling_norm=0.3, **plan).network)
    assert kept[0] > 0.5
    # One step of power iteration lags behind by what one update changes.
    assert max(kept[1:]) == pytest.approx(0.3, rel=0.02)


def test_a_norm_is_bounded_after_a_stop_as_before():
    options = {"epochs": 4, "device": "cpu", "dtype": "float64", "coupling_norm": 0.2, "lock_floor": None}
    whole = pg.train(_convolutional(), _data(16), **options)
    half = pg.train(_convolutional(), _data(16), until=2, **options)
    assert _apart(whole.network, pg.train(_convolutional(), _data(16), state=half.state, **options).network) == 0.0


def test_single_precision_is_as_good_as_it_can_be():
    batch, tensors = _both(_convolutional(), _data(16), dtype="float32", optimizer="sgd", learning_rate=0.1)
    moved = _apart(batch.network, _convolutional())
    assert 0 < _apart(batch.network, tensors.network) < 1e-3 * moved


def test_masks_and_weights_and_moved_images():
    network, (x, y) = _convolutional(), _data(16)
    mask = {"coupling": np.arange(network.coupling.size) % 3 == 0}
    shifts = pg.datasets.Shifts(1, shape=(1, 4, 4))
    weights = np.linspace(0, 2, len(y))
    batch, tensors = _both(
        network, (x, y), mask=mask, sample_weight=weights, augmentation=shifts, learn="coupling", lock_floor=None
    )
    assert _apart(batch.network, tensors.network) < 1e-8
    assert np.array_equal(tensors.network.coupling[~mask["coupling"]], network.coupling[~mask["coupling"]])


def test_scores_parts_as_the_batch_engine_does():
    x, y = _data(count=40)
    batch, tensors = _both(_dense(), (x[:30], y[:30], x[30:], y[30:]), validation_fraction=0.2, patience=5)
    for name in ("test_loss", "test_accuracy", "validation_loss", "test_unsettled", "test_unstable"):
        assert np.allclose(getattr(batch.history, name), getattr(tensors.history, name), atol=1e-8), name


def test_several_networks_learn_as_each_alone():
    networks = [pg.networks.signed_layers(6, 5, 3, rest=np.pi / 2, gain=0.4, seed=seed) for seed in range(3)]
    together = pg.train(networks, _data(), engine="torch", dtype="float64", epochs=2, seed=[7, 8, 9])
    for network, seed, mine in zip(networks, (7, 8, 9), together.networks, strict=True):
        alone = pg.train(network, _data(), engine="torch", dtype="float64", epochs=2, seed=seed)
        assert _apart(mine, alone.network) == 0.0


def test_goes_on_as_if_it_had_not_stopped(tmp_path):
    options = {"epochs": 4, "device": "cpu", "input_noise": 0.05, "dtype": "float64"}
    whole = pg.train(_dense(), _data(), **options)
    half = pg.train(_dense(), _data(), until=2, **options)
    half.state.save(tmp_path / "state.npz")
    rest = pg.train(_dense(), _data(), state=pg.training.TrainingState.load(tmp_path / "state.npz"), **options)
    assert _apart(whole.network, rest.network) == 0.0


def test_a_device_chooses_the_engine():
    engine = prepare(_dense(), _data(), device="cpu")
    assert type(engine).__name__ == "TorchEngine"
    assert type(prepare(_dense(), _data())).__name__ == "BatchEngine"


def test_sweeps_grow_where_they_left_states_and_there_alone():
    """On a GPU, which records a number of them and cannot look after each one whether it was enough."""
    (trainer,) = prepare(_convolutional(), _data(16), device="cpu").trainers
    free, nudged = trainer.sweeps, trainer.nudged
    assert not trainer.follow(0.0, 0.0)
    assert (trainer.sweeps, trainer.nudged) == (free, nudged)
    assert trainer.follow(0.0, 0.5)
    assert trainer.sweeps == free
    assert trainer.nudged > nudged
    nudged = trainer.nudged
    assert trainer.follow(0.5, 0.0)
    assert trainer.sweeps > free
    assert trainer.nudged == nudged


def test_ctrl_c_in_the_middle_of_an_epoch_keeps_the_last_whole_one(monkeypatch):
    from phasegrad.training import _torch

    played, calls = _torch.Step.play, []

    def play(self, noise):
        calls.append(noise)
        if len(calls) == 6:
            raise KeyboardInterrupt
        played(self, noise)

    monkeypatch.setattr(_torch.Step, "play", play)
    with pytest.warns(TrainingWarning, match="epoch 1 of 5"):
        result = pg.train(_dense(), _data(), epochs=5, batch_size=6, device="cpu", dtype="float64")
    monkeypatch.setattr(_torch.Step, "play", played)
    expected = pg.train(_dense(), _data(), epochs=5, until=1, batch_size=6, device="cpu", dtype="float64")
    assert result.state.epoch == 1
    assert _apart(result.network, expected.network) == 0.0


def test_where_nothing_settles_nothing_is_learned_and_that_is_said():
    network = _dense()
    fast = np.where(np.isin(np.arange(network.size), network.inputs), 0.0, 50.0)
    with pytest.warns(TrainingWarning, match="100% of the training samples had no part"):
        result = pg.train(
            network.replace(omega=fast), _data(), epochs=1, device="cpu", dtype="float64", lock_floor=None
        )
    assert np.array_equal(result.network.coupling, network.coupling)
    assert result.history.train_unsettled[0, -1] == 24
    assert result.history.train_accuracy[0, -1] == 0.0


def test_a_batch_that_does_not_fit_is_told_in_words(monkeypatch):
    from phasegrad.tensors import _memory
    from phasegrad.training import _step, _torch

    def full(*_):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(_step, "sweeps_and_steps", full)
    each = _memory.bytes_per_sample(_torch.Structure.of(_dense()), 4, 2)
    monkeypatch.setattr(_memory, "free_bytes", lambda _: 10 * each)
    with pytest.raises(torch.cuda.OutOfMemoryError, match=r"A batch of 24 samples .* About 8 would fit"):
        pg.train(_dense(), _data(), epochs=1, batch_size=32, device="cpu")


def test_scores_go_by_what_fits(monkeypatch):
    from phasegrad.training import _torch

    whole = pg.train(_dense(), _data(), epochs=1, device="cpu", dtype="float64")
    monkeypatch.setattr(_torch, "samples_that_fit", lambda *_: 5)
    parts = pg.train(_dense(), _data(), epochs=1, device="cpu", dtype="float64")
    assert np.allclose(whole.history.train_loss, parts.history.train_loss, atol=1e-12)


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"device": "cuda:99"}, "cannot be used"),
            ({"device": "nonsense"}, "PyTorch has cpu"),
            ({"engine": "batch", "device": "cpu"}, "is for engine='torch'"),
            ({"engine": "lanes", "dtype": "float32"}, "is for engine='torch'"),
            ({"device": "cpu", "dtype": "float16"}, "dtype"),
            ({"engine": "torch", "gradient": "finite_difference"}, "finite differences"),
            ({"engine": "torch", "warm_start": "epoch", "batch_size": 1}, "from phase zero"),
            ({"engine": "torch", "balance": True}, "pg.layers"),
            ({"engine": "torch", "balance": 1}, "True or False"),
            ({"engine": "torch", "fan_in": -1}, "fan_in"),
            ({"engine": "torch", "coupling_norm": 0}, "coupling_norm"),
            ({"engine": "torch", "coupling_norm": 1.0}, "norm of couplings, which is for networks that pg.layers"),
        ],
    )  # fmt: skip
    def test_in_words(self, options, words):
        with pytest.raises((ValueError, TypeError), match=words):
            pg.train(_dense(), _data(), epochs=1, **options)

    def test_frequencies_relative_to_their_mean(self):
        x, y = _data(2, classes=2)
        network = pg.layered(2, 5, 2)
        options = {"objective": pg.objectives.NearestTarget(), "learn": "omega", "engine": "torch", "epochs": 1}
        with pytest.raises(ValueError, match="relative to their mean"):
            pg.train(network, (x, y), frequencies="relative", **options)
        assert np.any(pg.train(network, (x, y), **options).network.omega != network.omega)

    def test_a_cost_of_other_nodes(self):
        class First(pg.objectives.NearestTarget):
            def nodes(self, network):
                return network.outputs[::-1]

        with pytest.raises(ValueError, match="the outputs of a network, and nothing else"):
            pg.train(_dense(), _data(), epochs=1, engine="torch", objective=First())

    def test_terms_that_it_cannot_do(self):
        network = _dense().replace(second_strength=0.2)
        with pytest.raises(ValueError, match="sine coupling, sine fields and frequencies"):
            pg.train(network, _data(), epochs=1, engine="torch")

    def test_without_pytorch(self, monkeypatch):
        monkeypatch.setattr("phasegrad._validation.find_spec", lambda name: None)
        with pytest.raises(ValueError, match=r"pip install '\.\[torch\]'"):
            pg.train(_dense(), _data(), epochs=1, engine="torch")

    def test_an_optimiser_of_ones_own(self):
        class Mine(pg.optim.Adam):
            pass

        with pytest.raises(ValueError, match="Adam and Momentum"):
            pg.train(_dense(), _data(), epochs=1, engine="torch", optimizer=Mine())


@pytest.mark.parametrize("engine", ["batch", "torch"])
def test_bounds_hold_for_what_does_not_learn(engine):
    plan = pg.Plan.images(learn="field_phase", bounds={"coupling": (-0.1, 0.1)}, epochs=1)
    assert np.abs(_dense().coupling).max() > 0.1
    dtype = "float64" if engine == "torch" else None
    result = pg.train(_dense(), _data(), plan, engine=engine, dtype=dtype)
    assert np.abs(result.network.coupling).max() <= 0.1
    assert result.engine == engine
    assert result.state.progress.memory.first.keys() == {"field_phase"}


def test_frequencies_of_a_state_are_not_forgotten():
    """The values of the given network are not used where training goes on from a state."""
    first = pg.Plan.images(learn={"omega": 0.05}, epochs=2)
    learned = pg.train(_dense(), _data(), first, engine="batch")
    assert np.abs(learned.network.omega).max() > 0.01
    second = pg.Plan.images(
        learn="coupling", epochs=2, settling=pg.training.Settling("batch", 1e-11), gradient="adjoint"
    )
    state = learned.state.begin(second)
    results = [pg.train(_dense(), _data(), second, engine=name, state=state, dtype=dtype)
               for name, dtype in (("batch", None), ("torch", "float64"))]  # fmt: skip
    assert _apart(results[0].network, results[1].network) < 1e-7


def test_a_refused_update_is_counted_and_remembered_on_tensors():
    plan = pg.Plan.classifier(epochs=1, batch_size=24, lock_floor=1e3)
    result = pg.train(_dense(), _data(), plan, engine="torch", dtype="float64")
    assert _apart(result.network, _dense()) == 0.0
    assert (result.history.shortened[0, -1], result.history.updates[0, -1]) == (1, 1)
    memory = result.state.progress.memory
    assert memory.steps.tolist() == [1]
    assert np.any(memory.first["coupling"] != 0)
