"""Data sets: the published counts, splits and draws, and every wrong input refused with a sentence that helps."""

import dataclasses
import math
from importlib import resources

import numpy as np
import pytest

from phasegrad.datasets import Dataset, Scaling, fm, from_arrays, load_vowel_table, vowels, xor
from phasegrad.datasets.dataset import split_and_scale
from phasegrad.datasets.fm import fm_features

CODES = ("ah", "eh", "iy", "oa", "uw", "ae", "aw", "ei", "er", "ih", "oo", "uh")
LETTERS = {"a": "ah", "e": "eh", "i": "iy", "o": "oa", "u": "uw"}


def file_rows():
    """Return the lines of the shipped file as dictionaries, read without the package."""
    text = (resources.files("phasegrad") / "datasets" / "hillenbrand1995.csv").read_text(encoding="utf-8")
    head, *lines = [line.split(",") for line in text.splitlines()]
    return [dict(zip(head, line, strict=True)) for line in lines]


def selected(names, features=("f1_hz", "f2_hz"), groups="mwbg"):
    """Return the features and class numbers of the protocol's table, in plain Python."""
    codes = [LETTERS.get(name, name) for name in names]
    x, y = [], []
    for code in CODES:
        for row in file_rows():
            values = [float(row[feature]) for feature in features]
            if row["vowel"] == code and code in codes and row["group"] in groups and 0 not in values:
                x.append(values)
                y.append(codes.index(code))
    return np.array(x), np.array(y)


def tiny(**changes):
    fields = {
        "name": "tiny",
        "x_train": np.array([[0.0, 1.0], [2.0, 3.0]]),
        "y_train": np.array([0, 1]),
        "x_test": np.array([[4.0, 5.0]]),
        "y_test": np.array([1]),
        "classes": ("no", "yes"),
        "features": ("left", "right"),
    }
    return Dataset(**{**fields, **changes})


# --- Vowels -----------------------------------------------------------------------------------------------------


def test_the_table_holds_the_whole_file_and_is_read_once():
    table = load_vowel_table()
    assert table is load_vowel_table()
    assert len(table) == 1668
    rows = file_rows()
    for field in dataclasses.fields(table):
        column = getattr(table, field.name)
        assert [str(value) for value in column.tolist()] == [
            row[field.name] if column.dtype.kind in "Ui" else str(float(row[field.name])) for row in rows
        ]
        with pytest.raises(ValueError, match="read-only"):
            column[0] = column[1]


def test_the_table_has_139_talkers_and_the_repaired_utterances():
    table = load_vowel_table()
    talkers = {(group, talker) for group, talker in zip(table.group, table.talker, strict=True)}
    assert [sum(group == g for group, _ in talkers) for g in "mwbg"] == [45, 48, 27, 19]
    repaired = {("b", 8, "ah"): (762, 1604), ("w", 49, "eh"): (709, 2088)}
    repaired |= {("b", 2, "iy"): (344, 3193), ("g", 8, "iy"): (507, 3319)}
    for (group, talker, vowel), formants in repaired.items():
        (row,) = np.flatnonzero((table.group == group) & (table.talker == talker) & (table.vowel == vowel))
        assert (table.f1_hz[row], table.f2_hz[row]) == formants


def test_vowel_counts_are_the_published_ones():
    data = vowels("a,e,i,o,u")
    labels = np.concatenate([data.y_train, data.y_test])
    assert np.bincount(labels).tolist() == [136, 139, 139, 137, 138]
    assert (len(data.y_train), len(data.y_test)) == (551, 138)
    assert data.classes == ("a", "e", "i", "o", "u")


@pytest.mark.parametrize("names", [("a", "i"), ("o", "u")])
def test_the_published_pairs_split_into_220_and_55(names):
    data = vowels(names)
    assert (data.x_train.shape, data.x_test.shape) == ((220, 2), (55, 2))


@pytest.mark.parametrize(
    ("names", "features", "groups"),
    [
        (("a", "i"), ("f1_hz", "f2_hz"), None),
        (("u", "a", "e"), ("f2_hz", "f1_hz"), None),
        (CODES[::-1], ("f0_hz", "f3_hz", "duration_ms"), ("w", "g")),
        (("iy", "o", "uh"), ("f1_hz",), ("b",)),
    ],
)
def test_vowels_follow_the_protocol(names, features, groups):
    """Rows by vowel then file order, class by position in the list, one permutation, range of the training part."""
    x, y = selected(names, features, groups or "mwbg")
    order = np.random.default_rng(7).permutation(len(x))
    n_train = int(0.8 * len(x))
    low, high = x[order[:n_train]].min(axis=0), x[order[:n_train]].max(axis=0)
    scaled = 2 * (x - low) / (high - low) - 1
    data = vowels(names, seed=7, features=features, groups=groups)
    assert data.train_rows.tolist() == order[:n_train].tolist()
    assert data.test_rows.tolist() == order[n_train:].tolist()
    assert data.x_train.tolist() == scaled[order[:n_train]].tolist()
    assert data.x_test.tolist() == scaled[order[n_train:]].tolist()
    assert data.y_train.tolist() == y[order[:n_train]].tolist()
    assert data.y_test.tolist() == y[order[n_train:]].tolist()
    assert (data.classes, data.features) == (names, features)


def test_scaling_by_the_training_part_lets_test_values_exceed():
    outside = 0
    for seed in range(5):
        data = vowels("a,i", seed=seed)
        assert data.x_train.min(axis=0).tolist() == [-1, -1]
        assert data.x_train.max(axis=0).tolist() == [1, 1]
        outside += int(np.sum(np.abs(data.x_test) > 1))
    assert outside > 0


def test_scaling_by_all_rows_takes_the_range_of_both_parts():
    x, _ = selected(("a", "i"))
    data = vowels("a,i", seed=2, scale_by="all")
    both = np.concatenate([data.x_train, data.x_test])
    assert (both.min(axis=0).tolist(), both.max(axis=0).tolist()) == ([-1, -1], [1, 1])
    assert data.scaling.low.tolist() == x.min(axis=0).tolist()
    assert data.scaling.high.tolist() == x.max(axis=0).tolist()
    assert data.train_rows.tolist() == vowels("a,i", seed=2).train_rows.tolist()


def test_letters_codes_and_strings_with_commas_mean_the_same_vowels():
    reference = vowels(("a", "i"), seed=4)
    for names in (("ah", "iy"), ("a", "iy"), "a,i", " ah , i ", ["a", "i"], np.array(["a", "i"])):
        data = vowels(names, seed=4)
        assert data.x_train.tolist() == reference.x_train.tolist()
        assert data.y_test.tolist() == reference.y_test.tolist()


def test_the_seed_decides_the_split():
    first, again, other = vowels(seed=1), vowels(seed=1), vowels(seed=2)
    assert first.x_train.tolist() == again.x_train.tolist()
    assert first.train_rows.tolist() != other.train_rows.tolist()


def test_a_train_fraction_is_cut_to_whole_rows():
    data = vowels("a,i", train_fraction=0.5)
    assert (len(data.x_train), len(data.x_test)) == (137, 138)


def test_groups_show_in_the_name():
    assert str(vowels("a,i")) == "vowels a, i: 220 training and 55 test samples, 2 features, 2 classes"
    assert vowels("a,i", groups="m,w").name == "vowels a, i of groups m, w"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vowels": ("a", "ii")}, "must be out of a, e, i, o, u, ah, eh, .* Got 'ii'. Did you mean 'i'\\?$"),
        ({"vowels": "a,I"}, "Got 'I'. Did you mean 'i'\\?$"),
        ({"vowels": "a,xyz"}, r"Got 'xyz'\.$"),
        ({"vowels": "a,,i"}, "Got ''"),
        ({"vowels": ("a", 3)}, "Got '3'"),
        ({"vowels": 5}, "Got '5'"),
        ({"vowels": "a"}, "at least two vowels. Got 'a'"),
        ({"vowels": ()}, r"at least two vowels. Got \(\)"),
        ({"vowels": ("a", "i", "a")}, "has 'ah' twice"),
        ({"vowels": ("iy", "a", "i")}, "has 'iy' twice"),
        ({"groups": ("m", "x")}, "'groups' parameter of vowels must be out of m, w, b, g. Got 'x'"),
        ({"groups": ()}, "must name at least one of m, w, b, g"),
        ({"groups": "m,m"}, "has 'm' twice"),
        ({"features": ("f1_hz", "f2")}, "must be out of duration_ms, f0_hz, .* Got 'f2'. Did you mean 'f2_hz'\\?$"),
        ({"features": []}, "must name at least one of duration_ms"),
        ({"features": "f1_hz,f1_hz"}, "has 'f1_hz' twice"),
        ({"seed": -1}, "'seed' parameter of vowels"),
        ({"train_fraction": 1.2}, "'train_fraction' parameter of vowels must be a float from 0 to 1. Got 1.2"),
        ({"train_fraction": math.nan}, "'train_fraction' parameter of vowels"),
        ({"train_fraction": 0.001}, "train_fraction of 0.001 leaves no training sample out of 275 samples"),
        ({"train_fraction": 0.004}, "Feature 'f1_hz' has the same value everywhere in the training part"),
        ({"train_fraction": 1.0}, "Class 'a' has no sample in the test part, which has 0 samples"),
        ({"scale_by": "test"}, "'scale_by' parameter of vowels must be one of 'train', 'all'. Got 'test'"),
    ],
)
def test_wrong_vowel_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        vowels(**options)


def test_a_vowel_without_a_training_sample_is_named():
    """Two training rows out of 689 cannot hold five vowels; the smallest number of those left out is named."""
    x, y = selected("aeiou")
    train = np.random.default_rng(0).permutation(len(x))[:2]
    absent = next(k for k in range(5) if k not in y[train])
    with pytest.raises(ValueError, match=f"Class '{'aeiou'[absent]}' has no sample in the training part"):
        vowels("a,e,i,o,u", train_fraction=0.003)


# --- Scaling and splitting --------------------------------------------------------------------------------------


def test_a_scaling_takes_the_range_to_minus_one_and_one_exactly():
    x = np.random.default_rng(0).normal(size=(50, 3)) * [1e-3, 1.0, 1e4] + [5.0, 0.0, -3e5]
    scaled = Scaling.fit(x).apply(x)
    assert scaled.min(axis=0).tolist() == [-1, -1, -1]
    assert scaled.max(axis=0).tolist() == [1, 1, 1]
    assert Scaling([0.0], [4.0]).apply([[1.0], [6.0]]).tolist() == [[-0.5], [2.0]]


def test_a_scaling_is_a_read_only_copy():
    low = np.zeros(2)
    scaling = Scaling(low, np.ones(2))
    low[0] = 9.0
    assert scaling.low.tolist() == [0, 0]
    with pytest.raises(ValueError, match="read-only"):
        scaling.high[0] = 3.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Scaling.fit([[1.0, 5.0], [2.0, 5.0]], ("f1_hz", "f2_hz")), "Feature 'f2_hz' has the same value every"),
        (lambda: Scaling.fit([[5.0], [5.0]]), r"Feature 'x0' .* in the training part \(5\)"),
        (lambda: Scaling.fit(np.empty((0, 2))), "at least one row"),
        (lambda: Scaling.fit([1.0, 2.0]), r"must be a table of shape \(samples, 1\).* Got shape \(2,\)"),
        (lambda: Scaling.fit([[1.0, np.inf]]), r"'x\[:, 1\] \(x1\)' parameter of Scaling.fit must be finite"),
        (lambda: Scaling.fit([[1.0], [2.0, 3.0]]), "rows of equal length"),
        (lambda: Scaling([0.0, 1.0], [1.0]), r"'low' of shape \(2,\) and 'high' of shape \(1,\)"),
        (lambda: Scaling(0.0, 1.0), "one low and one high value"),
        (lambda: Scaling([0.0, 1.0], [1.0, 0.5]), r"Got 1.0 and 0.5 at index \[1\]"),
        (lambda: Scaling([np.nan], [1.0]), "'low' parameter of Scaling must be finite"),
        (lambda: Scaling([0.0], [1.0]).apply([[1.0, 2.0]]), "last axis of length 1"),
    ],
)
def test_wrong_scalings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_flat_feature_is_refused_only_where_the_scale_is_taken_from():
    """Row 0 is the only one that differs; with seed 3 it is the test part."""
    x = [[1.0], [2.0], [2.0], [2.0], [2.0]]
    assert np.random.default_rng(3).permutation(5)[-1] == 0
    options = {"y": [0, 1, 1, 0, 1], "classes": ("no", "yes"), "features": ("height",), "seed": 3}
    with pytest.raises(ValueError, match=r"Feature 'height' .* in the training part \(2\)"):
        split_and_scale("steps", x, **options)
    assert split_and_scale("steps", x, **options, scale_by="all").x_test.tolist() == [[-1]]
    with pytest.raises(ValueError, match=r"Feature 'height' .* in the selected rows"):
        split_and_scale("steps", np.ones((5, 1)), **options, scale_by="all")


# --- The data set itself ----------------------------------------------------------------------------------------


def test_a_dataset_is_a_read_only_copy():
    x = np.array([[0.0, 1.0], [2.0, 3.0]])
    data = tiny(x_train=x, train_rows=np.array([5, 6]), test_rows=np.array([7]))
    x[0, 0] = 9.0
    assert data.x_train.tolist() == [[0, 1], [2, 3]]
    for name in ("x_train", "y_train", "x_test", "y_test", "train_rows", "test_rows"):
        array = getattr(data, name)
        assert array.dtype == (np.float64 if name[0] == "x" else np.int64)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"


def test_a_dataset_counts_and_names_what_it_holds():
    assert tiny().n_classes == 2
    assert repr(tiny()) == str(tiny()) == "tiny: 2 training and 1 test samples, 2 features, 2 classes"
    single = {
        "x_train": [[1.0]],
        "y_train": [0],
        "x_test": [[1.0]],
        "y_test": [0],
        "classes": ["no"],
        "features": ["b"],
    }
    assert str(tiny(**single)) == "tiny: 1 training and 1 test samples, 1 feature, 1 class"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x_train": [[0.0, np.nan], [2.0, 3.0]]}, r"'x_train\[:, 1\] \(right\)' .* Got nan at index \[0\]"),
        ({"x_test": [[np.inf, 0.0]]}, r"'x_test\[:, 0\] \(left\)' .* must be finite. Got inf"),
        ({"x_test": [["a", "b"]]}, r"'x_test\[:, 0\] \(left\)' .* real numbers"),
        ({"x_train": [[0.0, 1.0], [2.0]]}, "'x_train' parameter of Dataset must be an array with rows of equal length"),
        ({"x_train": [0.0, 1.0]}, r"shape \(samples, 2\).* Got shape \(2,\)"),
        ({"x_test": [[0.0, 1.0, 2.0]]}, r"shape \(samples, 2\).* Got shape \(1, 3\)"),
        ({"y_train": [0, 1, 1]}, r"'y_train' .* one entry for each of 2 samples. Got shape \(3,\)"),
        ({"y_test": [[1]]}, r"'y_test' .* one entry for each of 1 sample. Got shape \(1, 1\)"),
        ({"y_train": [0.0, 1.0]}, "'y_train' .* must hold whole numbers"),
        ({"y_train": [0, 2]}, "'y_train' .* has the label 2, but labels must be from 0 to 1"),
        ({"y_test": [-1]}, "'y_test' .* has the label -1"),
        ({"x_train": np.empty((0, 2)), "y_train": []}, "at least one training sample"),
        ({"train_rows": [1]}, "'train_rows' .* one entry for each of 2 samples"),
        ({"test_rows": [0.5]}, "'test_rows' .* must hold whole numbers"),
        ({"classes": "ab"}, "'classes' .* must be a list of one or more names. Got 'ab'"),
        ({"classes": ()}, "'classes' .* one or more names"),
        ({"classes": ("no", 1)}, "'classes' .* one or more names"),
        ({"features": 2}, "'features' .* one or more names. Got 2"),
        ({"features": ("left", "left")}, "'features' .* has the name 'left' twice"),
    ],
)
def test_wrong_datasets_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        tiny(**changes)


def test_a_class_without_samples_is_named():
    tiny(x_test=[[0.0, 0.0], [1.0, 1.0]], y_test=[1, 0]).require_all_classes()
    with pytest.raises(ValueError, match=r"Class 'no' has no sample in the test part, which has 1 sample\. "):
        tiny().require_all_classes()
    with pytest.raises(ValueError, match=r"Class 'yes' has no sample in the training part, which has 2 samples\. "):
        tiny(y_train=[0, 0]).require_all_classes()


# --- Own arrays -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("train", "test", "classes"),
    [
        (["yes", "no", "yes"], ["no"], ("no", "yes")),
        (np.array([7, 3, 7]), np.array([3]), ("3", "7")),
        ([True, False, True], [False], ("False", "True")),
        ([0.5, -0.5, 0.5], (-0.5,), ("-0.5", "0.5")),
    ],
)
def test_labels_of_any_kind_become_sorted_classes(train, test, classes):
    data = from_arrays([[0.0], [1.0], [2.0]], train, [[3.0]], test)
    assert (data.classes, data.features, data.scaling) == (classes, ("x0",), None)
    assert (data.y_train.tolist(), data.y_test.tolist()) == ([1, 0, 1], [0])
    assert (data.x_train.tolist(), data.x_test.tolist()) == ([[0], [1], [2]], [[3]])


def test_a_label_that_only_the_test_part_has_is_a_class():
    data = from_arrays([[0.0], [1.0]], ["a", "c"], [[3.0]], ["b"])
    assert (data.classes, data.y_train.tolist(), data.y_test.tolist()) == (("a", "b", "c"), [0, 2], [1])


def test_given_classes_number_names_and_take_positions():
    x = [[0.0, 1.0], [1.0, 0.0]]
    named = from_arrays(x, ["b", "a"], x, ["b", "b"], classes=["b", "a", "c"], features=["p", "q"])
    placed = from_arrays(x, [0, 1], x, np.array([0, 0]), classes=["b", "a", "c"])
    assert named.y_train.tolist() == placed.y_train.tolist() == [0, 1]
    assert named.y_test.tolist() == placed.y_test.tolist() == [0, 0]
    assert (named.classes, named.features) == (("b", "a", "c"), ("p", "q"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y_train": ["a", 1]}, "labels of one kind .* Got labels of kind int, str"),
        ({"y_train": ["a", None]}, "Got labels of kind NoneType, str"),
        ({"y_train": [["a"], ["b"]]}, r"'y_train' .* one label for each sample. Got shape \(2, 1\)"),
        ({"y_test": [np.nan]}, "'y_test' .* has a label that is NaN"),
        ({"y_train": ["a"]}, r"'y_train' .* one entry for each of 2 samples. Got shape \(1,\)"),
        ({"x_train": [[1.0], [2.0, 3.0]]}, "'x_train' parameter of from_arrays .* rows of equal length"),
        ({"x_test": [[1.0, 2.0]]}, r"'x_test' .* shape \(samples, 1\)"),
        ({"x_test": [[np.nan]]}, r"'x_test\[:, 0\] \(x0\)' .* must be finite"),
        ({"classes": ["a", "c"]}, "'y_train' .* has the label 'b', .* must be one of 'a', 'c'. Add a class"),
        ({"y_train": [0, 2], "y_test": [0], "classes": ["a", "b"]}, "has the label 2, .* must be one of 0, 1"),
        ({"y_train": [True, False], "y_test": [True], "classes": ["a", "b"]}, "has the label True"),
        ({"classes": ["a", "a"]}, "'classes' parameter of from_arrays has the name 'a' twice"),
        ({"features": "p"}, "'features' parameter of from_arrays must be a list of one or more names"),
    ],
)
def test_wrong_arrays_are_refused(changes, message):
    arrays = {"x_train": [[0.0], [1.0]], "y_train": ["a", "b"], "x_test": [[0.5]], "y_test": ["a"]}
    with pytest.raises(ValueError, match=message):
        from_arrays(**{**arrays, **changes})


# --- Exclusive or -----------------------------------------------------------------------------------------------


def test_xor_is_the_four_corners_labelled_by_sign():
    data = xor()
    assert sorted(data.x_train.tolist()) == [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    assert [data.classes[k] for k in data.y_train] == [
        "same" if a * b > 0 else "different" for a, b in data.x_train.tolist()
    ]
    assert data.x_test.tolist() == data.x_train.tolist()
    assert data.y_test.tolist() == data.y_train.tolist()
    data.require_all_classes()


# --- Frequency-modulated signals --------------------------------------------------------------------------------


def published_lags():
    lags = np.unique(np.geomspace(1, 125, 8).astype(int))
    return lags if len(lags) == 8 else np.linspace(1, 125, 8).astype(int)


def plain_features(signal):
    """Return the ten features by sums over Python floats."""
    s = [float(value) for value in signal]
    power = math.fsum(v * v for v in s)
    features = [math.fsum(s[t] * s[t + k] for t in range(500 - k)) / power for k in published_lags().tolist()]
    features.append(sum((s[t] >= 0) != (s[t + 1] >= 0) for t in range(499)) / 500)
    early = math.fsum(v * v for v in s[:250]) / 250
    features.append(math.sqrt(math.fsum((v * v - early) ** 2 for v in s[:250]) / 250) / (power / 500 + 1e-10))
    largest = max(abs(value) for value in features)
    return [value / largest for value in features]


def plain_signals(seed, count):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 0.1, 500)
    signals, labels = [], []
    for _ in range(count):
        label = int(rng.integers(2))
        modulation = rng.uniform(150, 300) if label else rng.uniform(30, 80)
        carrier = 500 * (1 + rng.uniform(-0.05, 0.05))
        depth = 3 * (1 + rng.uniform(-0.3, 0.3))
        phase = rng.uniform(0, 2 * np.pi)
        noise = rng.standard_normal(500) * 0.15
        signals.append(np.sin(2 * np.pi * carrier * t + depth * np.sin(2 * np.pi * modulation * t) + phase) + noise)
        labels.append(label)
    return signals, labels


@pytest.mark.parametrize("seed", [0, 5])
def test_fm_draws_signal_after_signal_in_the_published_order(seed):
    data = fm(seed, n_train=12, n_test=5)
    signals, labels = plain_signals(seed, 17)
    assert data.y_train.tolist() + data.y_test.tolist() == labels
    assert set(labels) == {0, 1}
    x = np.concatenate([data.x_train, data.x_test])
    # Both sides agree to double rounding before the features are rounded to single precision, 2^-24 of at most 1.
    np.testing.assert_allclose(x, [plain_features(signal) for signal in signals], rtol=0, atol=2.0**-24 + 1e-12)


def test_fm_features_agree_with_plain_sums_for_any_leading_shape():
    signals = np.random.default_rng(1).normal(size=(2, 3, 500)).cumsum(axis=-1)
    features = fm_features(signals)
    assert features.shape == (2, 3, 10)
    for place in np.ndindex(2, 3):
        np.testing.assert_allclose(features[place], plain_features(signals[place]), rtol=0, atol=2.0**-24 + 1e-12)
        assert fm_features(signals[place]).tolist() == features[place].tolist()


def test_fm_features_are_single_precision_with_largest_size_one():
    data = fm(3)
    x = np.concatenate([data.x_train, data.x_test])
    assert np.array_equal(x, x.astype(np.float32).astype(np.float64))
    assert np.abs(x).max(axis=1).tolist() == [1.0] * 280


def test_fm_names_its_features_by_the_published_lags():
    names = [f"autocorrelation_{lag}" for lag in published_lags()]
    assert fm(n_train=4, n_test=4).features == (*names, "zero_crossing_rate", "energy_variability")


def test_fm_has_200_and_80_signals_in_order_and_no_scaling():
    data = fm()
    assert (data.x_train.shape, data.x_test.shape, data.scaling) == ((200, 10), (80, 10), None)
    assert data.train_rows.tolist() == list(range(200))
    assert data.test_rows.tolist() == list(range(200, 280))
    data.require_all_classes()


def test_fm_depends_on_the_seed_alone():
    few, many, other = fm(2, n_train=3, n_test=2), fm(2, n_train=10, n_test=4), fm(4, n_train=3, n_test=2)
    assert few.x_train.tolist() == many.x_train[:3].tolist()
    assert few.x_test.tolist() == many.x_train[3:5].tolist()
    assert few.x_train.tolist() != other.x_train.tolist()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fm(n_train=0), "'n_train' parameter of fm must be a whole number of at least 1. Got 0"),
        (lambda: fm(n_test=2.5), "'n_test' parameter of fm must be a whole number of at least 1. Got 2.5"),
        (lambda: fm(seed="x"), "'seed' parameter of fm"),
        (lambda: fm_features(np.ones(499)), "last axis of length 500"),
        (lambda: fm_features(np.zeros((2, 500))), "zero everywhere"),
        (lambda: fm_features(np.full(500, np.nan)), "'signal' parameter of fm_features must be finite"),
    ],
)
def test_wrong_fm_options_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_own_arrays_can_be_scaled_on_their_training_part():
    data = from_arrays([[0.0, 5.0], [10.0, 7.0]], ["a", "b"], [[20.0, 6.0]], ["b"], scale=True)
    assert data.x_train.tolist() == [[-1.0, -1.0], [1.0, 1.0]]
    assert data.x_test.tolist() == [[3.0, 0.0]]
    assert data.scaling.apply(np.array([[5.0, 6.0]])).tolist() == [[0.0, 0.0]]
    assert from_arrays([[0.0], [1.0]], [0, 1], [[0.5]], [1]).scaling is None
    with pytest.raises(ValueError, match="'x1' has the same value everywhere"):
        from_arrays([[0.0, 5.0], [10.0, 5.0]], ["a", "b"], [[20.0, 6.0]], ["b"], scale=True)


def test_a_feature_that_says_nothing_becomes_zero_and_far_values_are_cut():
    """A blank pixel has no range: version 0.1 divided by it in a saved model, and left out the classifier's cut."""
    scaling = Scaling([0.0, 5.0, -1e308], [4.0, 5.0, 1e308], beyond=1.5)
    assert scaling.apply([[1.0, 5.0, 0.0], [100.0, 7.0, -1e308]]).tolist() == [[-0.5, 0.0, 0.0], [1.5, 0.0, -1.0]]
    assert scaling.invert([[-0.5, 0.0, 0.0]]).tolist() == [[1.0, 5.0, 0.0]]
    with pytest.raises(ValueError, match="'beyond' parameter of Scaling"):
        Scaling([0.0], [1.0], beyond=0.0)
