import dataclasses
import json
import pickle

import numpy as np
import pytest
from hypothesis import given, strategies as st
from own_interactions import Wrapped
from random_networks import networks

import phasegrad as pg
from phasegrad import _files, models


@pytest.fixture
def model() -> pg.Model:
    data = pg.datasets.vowels(["a", "i"], seed=0)
    network = pg.initial.spectral_frequencies(pg.layered(2, 5, 2, seed=0))
    return pg.Model(network, pg.objectives.PaperPair(0.3), data.classes, data.features, data.scaling)


def test_the_round_trip_is_exact(model, tmp_path):
    place = tmp_path / "model.npz"
    model.save(place)
    back = pg.Model.load(place)
    assert back.network == model.network
    assert back.objective == model.objective
    assert (back.classes, back.features) == (("a", "i"), ("f1_hz", "f2_hz"))
    np.testing.assert_array_equal(back.scaling.low, model.scaling.low)
    np.testing.assert_array_equal(back.scaling.high, model.scaling.high)
    assert list(tmp_path.iterdir()) == [place]


PLAIN = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
ATTRIBUTES = st.dictionaries(
    st.text(max_size=5),
    st.recursive(
        PLAIN | st.text(max_size=5),
        lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=3), part, max_size=3),
        max_leaves=5,
    ),
    max_size=3,
)


@st.composite
def described_networks(draw):
    """Draw a network whose nodes have names and attributes, or not."""
    network = draw(networks())
    size = network.size
    names = st.lists(st.text(max_size=4) | st.integers(0, 99), min_size=size, max_size=size, unique=True)
    attributes = st.lists(ATTRIBUTES, min_size=size, max_size=size)
    return network.replace(labels=draw(st.none() | names), node_attributes=draw(st.none() | attributes))


@given(described_networks())
def test_every_kind_of_network_survives(network):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "model.npz"
        pg.Model(network, pg.objectives.NearestTarget(), network.outputs, network.inputs).save(place)
        assert pg.Model.load(place).network == network


def test_numbers_of_numpy_come_back_as_plain_ones(model, tmp_path):
    network = model.network.replace(node_attributes=[{"load": np.float64(k), "bus": np.int64(k)} for k in range(9)])
    dataclasses.replace(model, network=network).save(tmp_path / "model.npz")
    back = pg.Model.load(tmp_path / "model.npz").network
    assert back == network
    assert [type(back.node_attributes[3][name]) for name in ("load", "bus")] == [float, int]


def test_a_file_without_attributes_as_earlier_versions_wrote_it_loads(model, tmp_path, monkeypatch):
    write = models.write_archive
    monkeypatch.setattr(
        models,
        "write_archive",
        lambda path, kind, header, arrays: write(
            path, kind, {name: each for name, each in header.items() if name != "node_attributes"}, arrays
        ),
    )
    model.save(tmp_path / "model.npz")
    assert pg.Model.load(tmp_path / "model.npz").network == model.network


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
    result = pg.train([pg.layered(2, 3, 2, seed=seed) for seed in range(2)], data, pg.Plan.paper(epochs=1))
    model = pg.Model.from_training(result, data, 1)
    assert model.network == result.networks[1]
    assert (model.classes, model.features) == (data.classes, data.features)
    assert model.scaling is data.scaling
    assert model.settling == result.plan.settling


def test_a_model_without_classes_answers_with_numbers(model, tmp_path):
    targets = pg.datasets.Scaling([100.0, 0.0], [300.0, 1.0], None)
    numbers = dataclasses.replace(
        model,
        objective=pg.PhaseTargets(),
        classes=("loud", "high"),
        targets=targets,
        settling=pg.training.Settling("flow", 1e-9),
    )
    numbers.save(tmp_path / "model.npz")
    back = pg.Model.load(tmp_path / "model.npz")
    assert back.settling == numbers.settling
    raw = np.array([[850.0, 1300.0], [300.0, 2500.0]])
    answer = back.predict(raw)
    outputs = answer.equilibrium.phases[:, [7, 8]]
    assert (answer.labels, answer.names) == (None, [])
    np.testing.assert_allclose(answer.values, outputs * [100.0, 0.5] + [200.0, 0.5], rtol=1e-14)
    np.testing.assert_array_equal(dataclasses.replace(back, targets=None).predict(raw).values, outputs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": ("a",)}, "'classes' per oscillator of its 2 outputs"),
        ({"features": ("f1", "f2", "f3")}, "'features' per oscillator of its 2 inputs"),
        ({"network": 3}, "'network' of a Model must be a Network. Got 3"),
        ({"objective": "cosine"}, "'objective' of a Model must be a Cost. Got 'cosine'"),
        ({"settling": "batch"}, "'settling' of a Model must be a Settling. Got 'batch'"),
        ({"scaling": 2.0}, "'scaling' of a Model must be a Scaling. Got 2.0"),
    ],
)
def test_a_model_whose_parts_do_not_fit_is_refused(model, change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        dataclasses.replace(model, **change)


def test_columns_of_a_table_are_taken_by_name(model):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"talker": ["x", "y"], "f2_hz": [1300.0, 2500.0], "f1_hz": [850.0, 300.0]})
    assert model.predict(table).names == ["a", "i"]
    plain = table[["f1_hz", "f2_hz"]]
    assert model.predict(plain.set_axis([0, 1], axis=1)).names == ["a", "i"]
    with pytest.raises(ValueError, match=r"takes the columns f1_hz, f2_hz of a table. Got one with the columns F1, F2"):
        model.predict(plain.set_axis(["F1", "F2"], axis=1))
    assert dataclasses.replace(model, features=("x0", "x1")).predict(plain).names == ["a", "i"]


def test_what_is_no_model_and_no_data_set_is_refused_with_the_way_to_one():
    data = pg.datasets.xor()
    result = pg.train(pg.layered(2, 3, 2), data, pg.Plan.paper(epochs=0))
    with pytest.raises(TypeError, match=r"takes a Dataset, such as datasets.from_arrays gives.*Got tuple"):
        pg.Model.from_training(result, (data.x_train, data.y_train), 0)
    with pytest.raises(ValueError, match=r"holds 1 network, numbered from 0. Got number 5"):
        pg.Model.from_training(result, data, 5)


def test_settings_of_numpys_kinds_are_kept(model, tmp_path):
    scaling = pg.datasets.Scaling(model.scaling.low, model.scaling.high, np.float32(1.5))
    settling = pg.training.Settling(tolerance=np.float32(1e-9))
    for objective in (
        pg.CosineCrossEntropy(np.float32(3.7)),
        pg.objectives.PaperPair(np.array(0.3)),
        pg.PhaseTargets(outputs=np.array([7, 8])),
    ):
        given = dataclasses.replace(model, objective=objective, scaling=scaling, settling=settling)
        given.save(tmp_path / "model.npz")
        back = pg.Model.load(tmp_path / "model.npz")
        assert (back.settling, back.scaling.beyond) == (settling, 1.5)
        for name, value in vars(objective).items():
            np.testing.assert_array_equal(getattr(back.objective, name), value)


def damaged(tmp_path, model, how):
    place = tmp_path / "model.npz"
    model.save(place)
    how(place)
    return place


def rewrite(place, **changes):
    with np.load(place) as file:
        content = dict(file)
    header = json.loads(str(content["header"]))
    for key, value in changes.items():
        header[key] = value
    del content["header"], content["digest"]
    _files.write_archive(place, "model", header, content)


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
        (
            lambda place: rewrite(place, version=99),
            "has model format 99; this version of phasegrad reads formats 2 and 3",
        ),
        (lambda place: rewrite(place, network={}), "is a damaged model file"),
        (lambda place: rewrite(place, objective={"kind": "Unknown", "margin": 1}), "is a damaged model file"),
    ],
)
def test_a_file_that_is_no_model_is_refused_in_words(model, tmp_path, how, message):
    place = damaged(tmp_path, model, how)
    with pytest.raises(ValueError, match=message):
        pg.Model.load(place)


def test_a_model_of_version_0_1_is_refused_in_words(model, tmp_path):
    """Such a file does not say how its network was let settle, so it cannot be told what it would predict."""
    network, place = model.network, tmp_path / "old.npz"
    header = {
        "format": "phasegrad model",
        "version": 1,
        "network": {"inputs": [0, 1], "outputs": [7, 8], "reference": 0, "input_mode": "frequency"},
        "interaction": {"kind": "Sine"},
        "objective": {"kind": "PaperPair", "margin": 0.2},
        "classes": ["a", "i"],
        "features": ["f1_hz", "f2_hz"],
        "labels": None,
    }
    arrays = {name: getattr(network, name) for name in ("edges", "coupling", "omega")}
    arrays |= {"scaling_low": model.scaling.low, "scaling_high": model.scaling.high}
    np.savez(place, header=np.array(json.dumps(header)), **arrays)
    with pytest.raises(
        ValueError, match=r"has model format 1; .* reads formats 2 and 3\. Read it with the version that wrote"
    ):
        pg.Model.load(place)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*gone\.npz"):
        pg.Model.load(tmp_path / "gone.npz")


class Own(pg.objectives.PaperPair):
    pass


class Spring(pg.terms.NodeField):
    every = (pg.terms.Parameter("spring", default=1.0), pg.terms.Parameter("spring_phase", default=0.0))
    word = "spring"
    interaction = pg.terms.Sine()


@pytest.mark.parametrize(
    ("options", "objective", "message"),
    [
        ({"interaction": Wrapped()}, pg.objectives.PaperPair(), "Sine and OddSeries interactions only, not Wrapped"),
        (
            {"labels": [(0, 1), (1, 2), (2, 3), (3, 4)]},
            pg.objectives.PaperPair(),
            "labels that are strings or whole numbers",
        ),
        (
            {"node_attributes": [{}, {"at": (0, 1)}, {}, {}]},
            pg.objectives.PaperPair(),
            r"Got \{'at': \(0, 1\)\} at node 1",
        ),
        ({"node_attributes": [{"at": float("nan")}] * 4}, pg.objectives.PaperPair(), r"finite numbers, .* at node 0"),
        (
            {"node_attributes": [{1: "one"}] * 4},
            pg.objectives.PaperPair(),
            r"dictionaries of these by text. Got \{1: 'one'\}",
        ),
        (
            {"node_attributes": [{"at": np.zeros(2)}] * 4},
            pg.objectives.PaperPair(),
            "A model file holds node attributes of",
        ),
        ({"terms": [Spring()]}, pg.objectives.PaperPair(), "the package's own terms only, not Spring"),
        ({}, Own(), "the package's own objectives only, not Own"),
    ],
)
def test_what_a_file_cannot_hold_is_refused(options, objective, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        pg.Model(pg.networks.ring(4, **options), objective, (), ()).save(tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_place_is_named_and_leaves_nothing(model, tmp_path):
    with pytest.raises(OSError, match=r"Could not write .*: No such file or directory. Make its folder first"):
        model.save(tmp_path / "no" / "folder.npz")


def test_of_several_networks_the_first_is_taken_unless_another_is_asked_for():
    data = pg.datasets.xor()
    result = pg.train([pg.networks.signed_layers(2, 3, 2, seed=seed) for seed in range(3)], data, epochs=1)
    assert pg.Model.from_training(result, data).network == result.networks[0]
    assert pg.Model.from_training(result, data, 1).network == result.networks[1]
    assert len({network.coupling.tobytes() for network in result.networks}) == 3
