"""The estimators as scikit-learn sees them, and what they add."""

import pickle
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import phasegrad as pg

SMALL = {"hidden": 4, "epochs": 12, "learning_rate": 0.05, "gradient": "adjoint", "random_state": 0}
DOUBLE = {"device": "cpu", "dtype": "float64"}
CHECKS = [
    each
    for estimator in (pg.OscillatorClassifier(**SMALL), pg.OscillatorRegressor(**{**SMALL, "epochs": 40}))
    for each in estimator_checks_generator(estimator)
]


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("estimator", "check"),
    CHECKS,
    ids=[f"{type(estimator).__name__}-{check.func.__name__}" for estimator, check in CHECKS],
)
def test_scikit_learns_own_checks_pass(estimator, check):
    if getattr(check, "func", check).__name__ == "check_array_api_input":
        pytest.skip("scikit-learn runs it only where SCIPY_ARRAY_API is set")
    check(estimator)


def test_no_check_was_lost():
    """scikit-learn leaves checks out silently where tags say so; no check is marked as an expected failure."""
    assert len(CHECKS) >= 110


def test_defaults_learn_iris_and_report_the_untrained_score(iris):
    x, y = iris
    classifier = pg.OscillatorClassifier(random_state=0).fit(x[::2], y[::2])
    assert classifier.score(x[1::2], y[1::2]) > 0.9
    history = classifier.history_
    assert history.train_accuracy[0] < 0.7 < 0.95 < history.train_accuracy[-1]
    assert classifier.n_iter_ == len(history.epoch) - 1
    report = classifier.settle(x[::2])
    assert report.shape == (75,)
    assert np.all(report.stable)


def test_probabilities_decision_and_classes_agree_for_names(iris):
    x, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    classifier = pg.OscillatorClassifier(**SMALL).fit(x, names)
    share = classifier.predict_proba(x)
    np.testing.assert_allclose(share.sum(axis=1), 1)
    np.testing.assert_array_equal(classifier.classes_[share.argmax(axis=1)], classifier.predict(x))
    np.testing.assert_array_equal(classifier.decision_function(x).argmax(axis=1), share.argmax(axis=1))
    two = pg.OscillatorClassifier(**SMALL).fit(x[y > 0], names[y > 0])
    odds = two.decision_function(x)
    np.testing.assert_allclose(1 / (1 + np.exp(-odds)), two.predict_proba(x)[:, 1], atol=1e-12)


def test_pipelines_grid_search_cloning_and_pickles(iris):
    x, y = iris
    pipeline = make_pipeline(StandardScaler(), pg.OscillatorClassifier(**{**SMALL, "epochs": 30}))
    assert cross_val_score(pipeline, x, y, cv=3).mean() > 0.85
    search = GridSearchCV(pg.OscillatorClassifier(**SMALL), {"hidden": [0, 4]}, cv=2).fit(x, y)
    assert search.best_params_["hidden"] in (0, 4)
    fitted = clone(search.best_estimator_).fit(x, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(x), fitted.predict_proba(x))


def test_partial_fit_goes_on_from_where_it_was(iris):
    x, y = iris
    classifier = pg.OscillatorClassifier(**SMALL)
    order = np.random.default_rng(0).permutation(150)
    losses = []
    for _ in range(25):
        for part in np.array_split(order, 2):
            classifier.partial_fit(x[part], y[part], classes=[0, 1, 2])
        losses.append(classifier.history_.train_loss[-1])
    assert classifier.n_iter_ == 50
    assert losses[-1] < 0.5 * losses[0]
    assert classifier.score(x, y) > 0.9
    with pytest.raises(ValueError, match="met the label 7"):
        classifier.partial_fit(x[:2], [7, 7])


def test_the_order_of_the_rows_does_not_matter_and_weights_are_repetitions(iris):
    x, y = iris
    weights = np.random.default_rng(0).integers(0, 3, 150)
    order = np.random.default_rng(1).permutation(150)
    first = pg.OscillatorClassifier(**SMALL).fit(x, y, sample_weight=weights)
    other = pg.OscillatorClassifier(**SMALL).fit(
        np.repeat(x[order], weights[order], 0), np.repeat(y[order], weights[order])
    )
    np.testing.assert_array_equal(first.predict_proba(x), other.predict_proba(x))


def test_progress_is_printed_when_asked_for(iris, capsys):
    x, y = iris
    options = {**SMALL, "epochs": 4, "verbose": 2, "early_stopping": True}
    pg.OscillatorClassifier(**options).fit(x, y)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["epoch 2", "epoch 4"]
    assert all("accuracy" in line and "validation loss" in line for line in lines)
    pg.OscillatorRegressor(**{**options, "early_stopping": False}).fit(x, y)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["epoch 2", "epoch 4"]
    assert not any("accuracy" in line or "validation" in line for line in lines)


def test_restarts_keep_the_network_of_lowest_cost():
    """Five oscillators and XOR: some starts end in a bad minimum, which more starts mend."""
    corners = pg.datasets.xor()
    options = {
        "hidden": 1,
        "skip": True,
        "gain": 2.0,
        "input_scale": np.pi / 2,
        "input_noise": 0.0,
        "gradient": "adjoint",
    }
    options |= {"epochs": 60, "learning_rate": 0.05}
    losses = {}
    for restarts in (1, 3):
        fitted = [
            pg.OscillatorClassifier(**options, restarts=restarts, random_state=seed).fit(
                corners.x_train, corners.y_train
            )
            for seed in range(4)
        ]
        losses[restarts] = np.array([each.history_.train_loss[-1] for each in fitted])
        assert all(each.network_ == each.training_.network for each in fitted)
    assert np.all(losses[3] <= losses[1])
    assert np.any(losses[3] < losses[1])


def test_one_start_more_never_ends_in_a_higher_cost():
    """The first starts are the same ones, however many there are."""
    corners = pg.datasets.xor()
    options = {"hidden": 1, "gain": 2.0, "input_scale": np.pi / 2, "input_noise": 0.0, "epochs": 10}
    losses = [
        [
            pg.OscillatorClassifier(**options, restarts=restarts, random_state=seed)
            .fit(corners.x_train, corners.y_train)
            .history_.train_loss[-1]
            for restarts in (1, 2, 3)
        ]
        for seed in range(3)
    ]
    assert np.all(np.diff(losses, axis=1) <= 0)
    assert np.any(np.diff(losses, axis=1) < 0)


def test_objectives_of_all_kinds_learn_iris(iris):
    x, y = iris
    # One-hot phases pull every wrong output as hard as the right one, and learn three classes more slowly.
    least = {
        pg.objectives.NearestTarget(): 0.85,
        pg.objectives.OutputDifferences(): 0.85,
        pg.objectives.PeriodicDistance(): 0.85,
        pg.objectives.OneHotPhases(): 0.6,
    }
    for objective, score in least.items():
        classifier = pg.OscillatorClassifier(**{**SMALL, "epochs": 30}, objective=objective).fit(x, y)
        assert classifier.score(x, y) > score, objective


def test_hidden_is_a_number_or_a_tuple_of_layers(iris):
    x, y = iris
    sizes = {
        hidden: pg.OscillatorClassifier(**{**SMALL, "hidden": hidden}).fit(x, y).network_.size
        for hidden in (0, 6, (6,), (6, 3))
    }
    assert sizes == {0: 4 + 3, 6: 4 + 6 + 3, (6,): 4 + 6 + 3, (6, 3): 4 + 6 + 3 + 3}
    deep = pg.OscillatorClassifier(**{**SMALL, "hidden": (10, 6), "epochs": 40}).fit(x, y)
    assert deep.score(x, y) > 0.9


def test_balanced_classes_count_alike(iris):
    """Ten of one class among fifty of two others: without weights they are mostly given away."""
    x, y = iris
    few = np.concatenate([np.flatnonzero(y == 1), np.flatnonzero(y == 2)[:10]])
    options = {**SMALL, "epochs": 30}
    plain = pg.OscillatorClassifier(**options).fit(x[few], y[few])
    balanced = pg.OscillatorClassifier(**options, class_weight="balanced").fit(x[few], y[few])
    rest = np.setdiff1d(np.flatnonzero(y > 0), few)
    assert np.mean(balanced.predict(x[rest]) == 2) > np.mean(plain.predict(x[rest]) == 2)
    assert balanced_accuracy_score(y[y > 0], balanced.predict(x[y > 0])) > 0.85
    named = pg.OscillatorClassifier(**options, class_weight={1: 60 / 50 / 2, 2: 60 / 10 / 2}).fit(x[few], y[few])
    # The same weights by hand: only the rounding of 0.6 and 3.0 differs.
    np.testing.assert_allclose(named.predict_proba(x), balanced.predict_proba(x), atol=1e-6)
    repeated = pg.OscillatorClassifier(**options).fit(x[few], y[few], sample_weight=np.where(y[few] == 1, 0.6, 3.0))
    np.testing.assert_allclose(repeated.predict_proba(x), balanced.predict_proba(x), atol=1e-6)


def test_balanced_weights_leave_out_samples_of_weight_zero(iris):
    x, y = iris
    options = {**SMALL, "class_weight": "balanced"}
    kept = y != 1
    whole = pg.OscillatorClassifier(**options).fit(x, y, sample_weight=kept.astype(float))
    assert whole.score(x[kept], y[kept]) > 0.9


def test_warm_start_goes_on_with_the_network_there_is(iris):
    x, y = iris
    classifier = pg.OscillatorClassifier(**SMALL, warm_start=True).fit(x, y)
    first, scaling = classifier.network_, classifier.scaling_
    classifier.fit(x[:120], y[:120])
    assert classifier.scaling_ is scaling
    assert classifier.history_.train_loss[0] < 0.7 * np.log(3)
    fresh = clone(classifier).set_params(epochs=0).fit(x, y)
    assert not np.array_equal(fresh.network_.coupling, first.coupling)
    with pytest.raises(ValueError, match=r"warm_start goes on with a network for \[0, 1, 2\]. Got \[0, 1\]"):
        classifier.fit(x[y < 2], y[y < 2])
    with pytest.raises(ValueError, match="expecting 4 features"):
        classifier.fit(x[:, :3], y)
    assert classifier.predict(x).shape == (150,)


def test_warm_start_of_a_regressor_keeps_what_phases_stand_for():
    x = np.linspace(-1, 1, 40)[:, None]
    regressor = pg.OscillatorRegressor(**{**SMALL, "epochs": 60}, warm_start=True).fit(x, x[:, 0])
    before = regressor.predict(x)
    regressor.set_params(epochs=0).fit(x[:20], x[:20, 0])
    np.testing.assert_array_equal(regressor.predict(x), before)


def test_early_stopping_holds_back_a_part_and_keeps_the_best_network(iris):
    x, y = iris
    options = {**SMALL, "epochs": 300, "early_stopping": True, "validation_fraction": 0.2, "n_iter_no_change": 5}
    classifier = pg.OscillatorClassifier(**options).fit(x, y)
    loss = classifier.history_.validation_loss
    assert classifier.training_.ended == "patience"
    assert classifier.n_iter_ == np.argmin(loss[1:]) + 1 + 5 < 300
    assert classifier.score(x, y) > 0.9
    without = pg.OscillatorClassifier(**{**options, "epochs": 3, "early_stopping": False}).fit(x, y)
    assert np.all(np.isnan(without.history_.validation_loss))


@pytest.fixture
def odd_rows(iris):
    """Iris with a constant feature, and rows far out of the range it was trained on."""
    x, y = iris
    data = np.column_stack([x, np.full(150, 3.0)])
    far = np.concatenate([data, data * 5 - 7, np.where(np.arange(5) == 4, 1e6, data)])
    return data, y, far


@pytest.mark.parametrize("hidden", [6, (6, 5)])
def test_a_saved_model_is_its_classifier_on_every_sample(odd_rows, hidden, tmp_path):
    """Constant and out-of-range features included. Version 0.1 settled a saved model by another solver, unclipped."""
    data, y, far = odd_rows
    classifier = pg.OscillatorClassifier(**{**SMALL, "hidden": hidden, "gain": 2.0}).fit(data, y)
    classifier.to_model(names=["s", "c", "v"]).save(tmp_path / "model.npz")
    model = pg.Model.load(tmp_path / "model.npz")
    assert (model.classes, model.features) == (("s", "c", "v"), ("x0", "x1", "x2", "x3", "x4"))
    answer = model.predict(far)
    np.testing.assert_array_equal(answer.equilibrium.phases, classifier.settle(far).phases)
    np.testing.assert_array_equal(answer.equilibrium.status, classifier.settle(far).status)
    np.testing.assert_array_equal(answer.labels, classifier.predict(far))


def test_a_saved_model_is_its_regressor_on_every_sample(odd_rows, tmp_path):
    data, y, far = odd_rows
    goals = np.column_stack([data[:, 0] * 100, y])
    regressor = pg.OscillatorRegressor(**SMALL).fit(data, goals)
    regressor.to_model().save(tmp_path / "model.npz")
    model = pg.Model.load(tmp_path / "model.npz")
    assert model.classes == ("y0", "y1")
    np.testing.assert_array_equal(model.predict(far).values, regressor.predict(far))


def test_the_digits_on_the_command_line_become_a_model_that_predicts(tmp_path):
    """Some pixels are blank in every training image; version 0.1 wrote a model of NaN."""
    from phasegrad.runs import ClassifierRun

    data = pg.datasets.digits()
    run = ClassifierRun.fit(data, 0, hidden=10, epochs=3)
    run.save(tmp_path / "digits.npz")
    model = pg.Model.load(tmp_path / "digits.npz")
    raw = data.scaling.invert(data.x_test)
    answer = model.predict(raw)
    assert np.all(answer.equilibrium.stable)
    np.testing.assert_array_equal(answer.labels, run.predicted)


def test_memory_follows_rows_and_oscillators_not_edges():
    """Version 0.1 certified with arrays of rows times edges: 2000 times 6300 numbers here, 100 MB each."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (2000, 60)), rng.integers(0, 3, 2000)
    options = {"hidden": 100, "epochs": 1, "batch_size": 200, "random_state": 0}
    pg.OscillatorClassifier(**options).fit(x[:50], y[:50])  # imports and compiled kernels are not counted
    tracemalloc.start()
    try:
        classifier = pg.OscillatorClassifier(**options).fit(x, y)
        fitted = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        classifier.predict(x)
        predicted = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    edges = classifier.network_.n_edges
    assert edges == 6300
    assert max(fitted, predicted) < 0.5 * 8 * len(x) * edges


class TestRegressor:
    def test_defaults_learn_a_curve_and_several_numbers_at_once(self):
        x = np.linspace(-1, 1, 60)[:, None]
        curve = np.sin(3 * x[:, 0])
        regressor = pg.OscillatorRegressor(random_state=0).fit(x[::2], 50 + 20 * curve[::2])
        assert regressor.score(x[1::2], 50 + 20 * curve[1::2]) > 0.98
        assert regressor.history_.train_loss[-1] < 0.05 * regressor.history_.train_loss[0]
        assert np.all(np.isnan(regressor.history_.train_accuracy))
        both = np.column_stack([curve, x[:, 0] ** 2])
        fitted = pg.OscillatorRegressor(random_state=0).fit(x, both)
        assert fitted.predict(x).shape == (60, 2)
        assert fitted.score(x, both) > 0.95

    def test_a_cost_of_your_own_trains(self):
        class Huber(pg.Cost):
            def cost(self, phases, target):
                away = np.abs(phases - target)
                return np.sum(np.where(away < 0.2, away**2 / 2, 0.2 * (away - 0.1)), axis=-1)

        x = np.linspace(-1, 1, 40)[:, None]
        regressor = pg.OscillatorRegressor(hidden=10, objective=Huber(), gradient="adjoint", random_state=0)
        assert regressor.fit(x, x[:, 0] ** 2).score(x, x[:, 0] ** 2) > 0.8

    def test_a_number_that_never_changes_is_predicted(self):
        x = np.linspace(-1, 1, 10)[:, None]
        np.testing.assert_array_equal(pg.OscillatorRegressor(**SMALL).fit(x, np.full(10, 7.0)).predict(x), 7.0)


class TestBadInput:
    def test_one_class_is_refused(self, iris):
        with pytest.raises(ValueError, match=r"at least two classes to tell apart. Got one class: 0\."):
            pg.OscillatorClassifier().fit(iris[0], np.zeros(150, dtype=int))
        with pytest.raises(ValueError, match="Name all of them in the 'classes' parameter"):
            pg.OscillatorClassifier().partial_fit(iris[0], np.zeros(150))

    def test_a_quantity_is_not_taken_for_classes(self):
        """The progress of diabetes is 214 different whole numbers, which scikit-learn's own check takes for classes."""
        x, y = load_diabetes(return_X_y=True)
        with pytest.raises(ValueError, match=r"214 different numbers .* Use OscillatorRegressor"):
            pg.OscillatorClassifier().fit(x, y)
        with pytest.raises(ValueError, match="Unknown label type: continuous"):
            pg.OscillatorClassifier().fit(x, y + 0.5)

    def test_an_objective_of_the_other_kind_is_refused(self, iris):
        with pytest.raises(TypeError, match="of OscillatorClassifier must be an objective for classes"):
            pg.OscillatorClassifier(objective=pg.PhaseTargets()).fit(*iris)
        with pytest.raises(TypeError, match="of OscillatorRegressor must be a cost of output and target phases"):
            pg.OscillatorRegressor(objective=pg.CosineCrossEntropy()).fit(*iris)

    def test_features_of_zero_variance_are_harmless(self, iris):
        x, y = iris
        constant = np.column_stack([x, np.full(150, 3.0)])
        classifier = pg.OscillatorClassifier(**{**SMALL, "epochs": 40}).fit(constant, y)
        assert classifier.score(constant, y) > 0.85
        moved = constant.copy()
        moved[:, 4] = 1e9
        np.testing.assert_array_equal(classifier.predict(moved), classifier.predict(constant))

    def test_nothing_to_learn_leaves_the_network_as_it_was_drawn(self, iris):
        x, y = iris
        classifier = pg.OscillatorClassifier(**{**SMALL, "learn": ()}).fit(x, y)
        np.testing.assert_allclose(classifier.history_.train_accuracy, classifier.history_.train_accuracy[0])

    def test_samples_that_cannot_lock_are_counted_and_still_classified(self, iris):
        x, y = iris
        classifier = pg.OscillatorClassifier(**SMALL).fit(x, y)
        fast = np.array(classifier.network_.omega)
        fast[4] = 1e3  # a hidden oscillator far too fast for its neighbours
        classifier.network_ = classifier.network_.replace(omega=fast)
        with pytest.warns(ConvergenceWarning, match="Samples without a stable locked state: 150 of 150"):
            assert classifier.predict(x).shape == (150,)

    def test_weights_that_are_all_zero_are_refused(self, iris):
        with pytest.raises(ValueError, match=r"at least one non-zero number|not all of them 0"):
            pg.OscillatorClassifier(**SMALL).fit(*iris, sample_weight=np.zeros(150))

    @pytest.mark.parametrize("weight", [{0: -1, 1: 1, 2: 1}, {0: 0, 1: 0, 2: 0}])
    def test_class_weights_that_mean_nothing_are_refused(self, iris, weight):
        with pytest.raises(ValueError, match="must give weights of at least 0, not all of them 0"):
            pg.OscillatorClassifier(**SMALL, class_weight=weight).fit(*iris)

    @pytest.mark.parametrize("kind", [str, object])
    def test_a_regressor_refuses_names(self, iris, kind):
        with pytest.raises(ValueError, match="'y' parameter of OscillatorRegressor must be numbers"):
            pg.OscillatorRegressor(**SMALL).fit(iris[0], np.array(["a", "b", "c"], dtype=kind)[iris[1]])

    def test_a_score_has_one_label_per_sample(self, iris):
        x, y = iris
        classifier = pg.OscillatorClassifier(**SMALL).fit(x, y)
        assert classifier.score(x, y[:, None]) == classifier.score(x, y) == classifier.score(x, y, np.ones(150))
        for labels, weights in ((0, None), (y[:10], None), (y, np.ones(3))):
            with pytest.raises(ValueError, match=r"shape|inconsistent"):
                classifier.score(x, labels, weights)

    def test_before_fit_there_is_nothing_to_predict(self, iris):
        with pytest.raises(NotFittedError):
            pg.OscillatorClassifier().predict(iris[0])

    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("hidden", -1),
            ("hidden", (4, 0)),
            ("epochs", 2.5),
            ("input_noise", "loud"),
            ("beta", 0),
            ("gain", 0),
            ("restarts", 0),
            ("verbose", 0.5),
        ],
    )
    @pytest.mark.parametrize("kind", [pg.OscillatorClassifier, pg.OscillatorRegressor])
    def test_wrong_parameters_are_refused_at_fit(self, iris, kind, option, value):
        with pytest.raises(ValueError, match=f"'{option}' parameter of"):
            kind(**{option: value}).fit(*iris)

    def test_a_parameter_that_no_network_has_is_named_with_those_there_are(self, iris):
        with pytest.raises(ValueError, match=r"no parameter 'mass'. Its parameters are omega, coupling"):
            pg.OscillatorClassifier(learn=("mass",)).fit(*iris)


@pytest.mark.usefixtures("one_thread")
class TestDevices:
    """Training by PyTorch: the same in double precision, and refused in a sentence where it cannot be."""

    @pytest.mark.parametrize("options", [{}, {"early_stopping": True, "n_iter_no_change": 2}, {"skip": True}])
    def test_a_classifier_learns_the_same_there(self, options):
        x, y = load_iris(return_X_y=True)
        settings = {"hidden": 8, "epochs": 4, "random_state": 0, **options}
        here, there = (pg.OscillatorClassifier(**settings, **w).fit(x, y) for w in ({}, DOUBLE))
        assert np.abs(here.network_.coupling - there.network_.coupling).max() < 1e-6
        assert np.abs(here.predict_proba(x) - there.predict_proba(x)).max() < 1e-6
        assert here.n_iter_ == there.n_iter_

    def test_a_regressor_learns_the_same_there(self):
        x = np.linspace(-1, 1, 40)[:, None]
        here, there = (pg.OscillatorRegressor(8, epochs=4, random_state=0, **w).fit(x, x**2) for w in ({}, DOUBLE))
        assert np.abs(here.predict(x) - there.predict(x)).max() < 1e-6

    def test_single_precision_is_enough_and_models_do_not_know(self):
        x, y = load_iris(return_X_y=True)
        classifier = pg.OscillatorClassifier(8, epochs=15, learning_rate=0.03, random_state=0, device="cpu").fit(x, y)
        assert classifier.score(x, y) > 0.9
        assert classifier.partial_fit(x, y).n_iter_ == 16
        assert (classifier.to_model().predict(x).labels == classifier.predict(x)).all()

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"device": "quantum"}, "The device 'quantum' cannot be used"),
            ({"device": "cpu", "dtype": "float16"}, "must be one of"),
            ({"dtype": "float64"}, "is for a device: name one"),
            ({"device": "cpu", "gradient": "finite_difference"}, "and none by finite differences"),
        ],
    )
    def test_what_cannot_be_is_refused(self, options, words):
        x, y = load_iris(return_X_y=True)
        with pytest.raises(ValueError, match=words):
            pg.OscillatorClassifier(4, epochs=1, **options).fit(x, y)


@pytest.mark.parametrize("lost", [0, 1])
def test_a_network_without_a_cost_loses_against_any_other(iris, monkeypatch, lost):
    """Where no sample settled the loss is NaN, which is neither below nor above the loss of another network."""
    learned, seen = pg.OscillatorClassifier._learned, []

    def spoilt(self, training):
        learned(self, training)
        if len(seen) == lost:
            self.history_.train_loss[-1] = np.nan
        seen.append(self.network_)

    monkeypatch.setattr(pg.OscillatorClassifier, "_learned", spoilt)
    fitted = pg.OscillatorClassifier(hidden=3, epochs=1, restarts=2, random_state=0).fit(*iris)
    assert len(seen) == 2
    assert fitted.network_ == seen[1 - lost]
    assert np.isfinite(fitted.history_.train_loss[-1])
