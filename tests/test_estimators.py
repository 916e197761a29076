"""The classifier as scikit-learn sees it, and what it adds."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import phasegrad as pg

SMALL = {"hidden": 4, "epochs": 12, "learning_rate": 0.05, "gradient": "adjoint", "random_state": 0}
CHECKS = list(estimator_checks_generator(pg.OscillatorClassifier(**SMALL)))


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("estimator", "check"), CHECKS, ids=lambda part: getattr(getattr(part, "func", None), "__name__", "")
)
def test_scikit_learns_own_checks_pass(estimator, check):
    if getattr(check, "func", check).__name__ == "check_array_api_input":
        pytest.skip("scikit-learn runs it only where SCIPY_ARRAY_API is set")
    check(estimator)


def test_no_check_was_lost():
    """scikit-learn leaves checks out silently where tags say so; no check is marked as an expected failure."""
    assert len(CHECKS) >= 60


def test_defaults_learn_iris_and_report_the_untrained_score(iris):
    x, y = iris
    classifier = pg.OscillatorClassifier(random_state=0).fit(x[::2], y[::2])
    assert classifier.score(x[1::2], y[1::2]) > 0.9
    history = classifier.history_
    assert history.train_accuracy[0] < 0.7 < 0.95 < history.train_accuracy[-1]
    assert classifier.n_iter_ == len(history.epoch) - 1
    assert np.all(classifier.equilibrium_report_.stable)
    assert classifier.equilibrium_report_.shape == (75,)


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
    pg.OscillatorClassifier(**{**SMALL, "epochs": 4}, verbose=2, validation_fraction=0.2).fit(x, y)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["epoch 2", "epoch 4"]
    assert all("validation" in line for line in lines)


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
        assert all(each.network_ == each.learned_.network for each in fitted)
    assert np.all(losses[3] <= losses[1])
    assert np.any(losses[3] < losses[1])


def test_objectives_of_all_kinds_learn_iris(iris):
    x, y = iris
    # One-hot phases pull every wrong output as hard as the right one, and learn three classes more slowly.
    least = {
        pg.NearestTarget(): 0.85,
        pg.OutputDifferences(): 0.85,
        pg.PeriodicDistance(): 0.85,
        pg.OneHotPhases(): 0.6,
    }
    for objective, score in least.items():
        classifier = pg.OscillatorClassifier(**{**SMALL, "epochs": 30}, objective=objective).fit(x, y)
        assert classifier.score(x, y) > score, objective


class TestBadInput:
    def test_one_class_is_refused(self, iris):
        with pytest.raises(ValueError, match=r"at least two classes to tell apart. Got one class"):
            pg.OscillatorClassifier().fit(iris[0], np.zeros(150))
        with pytest.raises(ValueError, match="Name all of them in the 'classes' parameter"):
            pg.OscillatorClassifier().partial_fit(iris[0], np.zeros(150))

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
        with pytest.warns(ConvergenceWarning, match="150 of 150 samples have no stable locked state"):
            assert classifier.predict(x).shape == (150,)

    def test_weights_that_are_all_zero_are_refused(self, iris):
        with pytest.raises(ValueError, match="at least one non-zero number"):
            pg.OscillatorClassifier(**SMALL).fit(*iris, sample_weight=np.zeros(150))

    def test_before_fit_there_is_nothing_to_predict(self, iris):
        with pytest.raises(NotFittedError):
            pg.OscillatorClassifier().predict(iris[0])

    @pytest.mark.parametrize(
        ("option", "value"),
        [("hidden", -1), ("epochs", 2.5), ("learn", ("mass",)), ("input_noise", "loud"), ("beta", 0), ("gain", 0)],
    )
    def test_wrong_parameters_are_refused_at_fit(self, iris, option, value):
        classifier = pg.OscillatorClassifier(**{option: value})
        with pytest.raises(ValueError, match=f"'{option}' parameter of"):
            classifier.fit(*iris)
