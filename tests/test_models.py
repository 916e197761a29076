import dataclasses
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from random_networks import networks
from test_interactions import Wrapped

import phasegrad as pg


@pytest.fixture
def model() -> pg.Model:
    data = pg.datasets.vowels(["a", "i"], seed=0)
    network = pg.spectral_seed(pg.layered(2, 5, 2, seed=0))
    return pg.Model(network, pg.PaperPair(0.3), data.classes, data.features, data.scaling)


def test_the_round_trip_is_exact(model, tmp_path):
    place = tmp_path / "model.npz"
    pg.save_model(place, model)
    back = pg.load_model(place)
    assert back.network == model.network
    assert back.objective == model.objective
    assert (back.classes, back.features) == (("a", "i"), ("f1_hz", "f2_hz"))
    np.testing.assert_array_equal(back.scaling.low, model.scaling.low)
    np.testing.assert_array_equal(back.scaling.high, model.scaling.high)
    assert list(tmp_path.iterdir()) == [place]


@given(networks())
def test_every_kind_of_network_survives(network):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model.npz"
        pg.save_model(place, pg.Model(network, pg.NearestTarget(), network.outputs, network.inputs))
        assert pg.load_model(place).network == network


def test_predictions_are_those_of_equilibrium_and_decision(model):
    raw = np.array([[850.0, 1300.0], [300.0, 2500.0]])
    answer = model.predict(raw)
    phases = pg.find_equilibrium(model.network, model.scaling.apply(raw)).phases[:, [7, 8]]
    assert answer.labels.tolist() == np.argmax(np.cos(phases), axis=1).tolist() == [0, 1]
    assert answer.names == ["a", "i"]
    assert np.all(answer.equilibrium.stable)
    with pytest.raises(ValueError, match=r"samples of shape \(n, 2\), one column for each of f1_hz, f2_hz"):
        model.predict([1.0, 2.0])


def test_a_model_of_a_training_takes_its_names_and_scaling():
    data = pg.datasets.vowels("o,u", seed=3)
    result = pg.train_many([pg.layered(2, 3, 2, seed=seed) for seed in range(2)], data, epochs=1)
    model = pg.Model.from_training(result, data, 1)
    assert model.network == result.networks[1]
    assert (model.classes, model.features) == (data.classes, data.features)
    assert model.scaling is data.scaling


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"objective": pg.PhaseTargets()}, TypeError, "must be one for classes"),
        ({"classes": ("a",)}, ValueError, "'classes' per oscillator of its 2 outputs"),
        ({"features": ("f1", "f2", "f3")}, ValueError, "'features' per oscillator of its 2 inputs"),
    ],
)
def test_a_model_whose_parts_do_not_fit_is_refused(model, change, error, message):
    with pytest.raises(error, match=message):
        dataclasses.replace(model, **change)


def damaged(tmp_path, model, how):
    place = tmp_path / "model.npz"
    pg.save_model(place, model)
    how(place)
    return place


def rewrite(place, **changes):
    with np.load(place) as file:
        content = dict(file)
    header = json.loads(str(content["header"]))
    for key, value in changes.items():
        header[key] = value
    np.savez(place, **{**content, "header": np.array(json.dumps(header))})


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (lambda place: place.write_bytes(place.read_bytes()[:300]), "is not a model file, is damaged"),
        (lambda place: place.write_bytes(b""), "is not a model file, is damaged"),
        (lambda place: place.write_text("hello"), "is not a model file, is damaged"),
        (lambda place: place.write_bytes(pickle.dumps({"a": 1})), "holds Python objects, which are never loaded"),
        (lambda place: np.savez(place, header=np.array([{}], dtype=object)), "holds Python objects"),
        (lambda place: np.savez(place, a=np.zeros(3)), "is an .npz file, but not a phasegrad model"),
        (lambda place: rewrite(place, format="something else"), "not a phasegrad model"),
        (lambda place: rewrite(place, version=99), "has model format 99; this version of phasegrad reads format 1"),
        (lambda place: rewrite(place, network={}), "is a damaged model file"),
        (lambda place: rewrite(place, objective={"kind": "Unknown", "margin": 1}), "is a damaged model file"),
    ],
)
def test_a_file_that_is_no_model_is_refused_in_words(model, tmp_path, how, message):
    place = damaged(tmp_path, model, how)
    with pytest.raises(ValueError, match=message):
        pg.load_model(place)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*gone\.npz"):
        pg.load_model(tmp_path / "gone.npz")


def test_what_a_file_cannot_hold_is_refused(tmp_path):
    for network, message in (
        (pg.ring(4, interaction=Wrapped()), "Sine and OddSeries interactions only, not Wrapped"),
        (pg.ring(4, labels=[(0, 1), (1, 2), (2, 3), (3, 4)]), "labels that are strings or whole numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            pg.save_model(tmp_path / "model.npz", pg.Model(network, pg.PaperPair(), (), ()))
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_place_is_named_and_leaves_nothing(model, tmp_path):
    with pytest.raises(OSError, match="Could not write"):
        pg.save_model(tmp_path / "no" / "folder.npz", model)
