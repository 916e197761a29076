"""Mini-batches: an epoch of images, the estimator around it, and the classifier against scikit-learn's perceptron."""

from __future__ import annotations

import statistics
import time
import warnings
from functools import partial
from typing import Any

import numpy as np
import threadpoolctl

from phasegrad.networks import Network, signed_layers
from phasegrad.training import Plan, train_whole
from phasegrad_bench._timing import cpu_seconds, in_turn

IMAGES, PIXELS, HIDDEN, CLASSES = 60_000, 784, 100, 10
FEW_IMAGES = 5_000


def learning(rounds: int = 3, images: int = IMAGES) -> dict[str, Any]:
    """Return CPU time of training in mini-batches.

    ``epoch_units`` is an epoch of 60,000 samples, 784-100-10, centred nudges in batches of 32, in units of one product
    of a 60000 x 784 and a 784 x 100 matrix on one core, ``epoch_units_256`` the same in batches of 256.
    ``fit_over_train`` is `OscillatorClassifier.fit` on 5,000 rows for an epoch over `train` alone. ``over_perceptron``
    is the classifier with its defaults over scikit-learn's ``MLPClassifier((50,), max_iter=500)``, five folds of three
    data sets of 400 to 600 rows.
    """
    stream = np.random.default_rng(0)
    x = stream.uniform(-1, 1, (images, PIXELS))
    y = stream.integers(CLASSES, size=images)
    weights = stream.standard_normal((PIXELS, HIDDEN))
    network = signed_layers(PIXELS, HIDDEN, CLASSES, rest=np.pi / 2, gain=0.3, input_scale=0.8)
    plan = Plan.classifier(epochs=1)
    with threadpoolctl.threadpool_limits(limits=1):
        unit = statistics.median(cpu_seconds(lambda: x @ weights) for _ in range(3))
    # The untrained score is part of a training, not of an epoch.
    plans = (plan, plan.replace(batch_size=256), plan.replace(epochs=0))
    whole, few, scored = (cpu_seconds(partial(train_whole, network, (x, y), each)) for each in plans)
    return {
        "unit_s": unit,
        "epoch_units": (whole - scored) / unit,
        "epoch_units_256": (few - scored) / unit,
        "fit_over_train": _estimator(network, x[:FEW_IMAGES], y[:FEW_IMAGES], rounds),
        **_against_perceptron(),
    }


def _estimator(network: Network, x: Any, y: Any, rounds: int) -> float:
    from phasegrad.estimators import OscillatorClassifier

    classifier, plan = (
        OscillatorClassifier(HIDDEN, epochs=1, random_state=0, input_noise=0.0),
        Plan.classifier(epochs=1),
    )
    fit, alone = in_turn(lambda: classifier.fit(x, y), lambda: train_whole(network, (x, y), plan), rounds=rounds)
    return fit / alone


def _against_perceptron() -> dict[str, Any]:
    from sklearn.datasets import load_breast_cancer, make_classification, make_moons
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import cross_val_score
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from phasegrad.estimators import OscillatorClassifier

    cancer = load_breast_cancer(return_X_y=True)
    tables = {
        "moons": make_moons(500, noise=0.25, random_state=0),
        "blobs": make_classification(400, 20, n_informative=8, n_classes=3, random_state=0),
        "breast_cancer": (cancer[0][:, :20], cancer[1]),
    }
    estimators = {
        "oscillators": OscillatorClassifier(random_state=0),
        "perceptron": make_pipeline(StandardScaler(), MLPClassifier((50,), max_iter=500, random_state=0)),
    }
    seconds = dict.fromkeys(estimators, 0.0)
    scores: dict[str, dict[str, float]] = {name: {} for name in estimators}
    for table, (x, y) in tables.items():
        for name, estimator in estimators.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                start = time.process_time()
                scores[name][table] = float(cross_val_score(estimator, x, y, cv=5).mean())
                seconds[name] += time.process_time() - start
    return {
        "over_perceptron": seconds["oscillators"] / seconds["perceptron"],
        "oscillators_s": seconds["oscillators"],
        "perceptron_s": seconds["perceptron"],
        "accuracy": scores,
    }
