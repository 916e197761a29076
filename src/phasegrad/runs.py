"""Runs: from words (a task, seeds, a start) to networks and data, and from results to plain data and a model file."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from phasegrad import datasets
from phasegrad.datasets import Dataset, Scaling
from phasegrad.models import Model, save_model
from phasegrad.network import Network
from phasegrad.seeding import multi_start_seed, output_seed, spectral_seed
from phasegrad.topologies import layered
from phasegrad.training import TrainingResult
from phasegrad.validation import FloatArray, IntArray, choice

if TYPE_CHECKING:
    from phasegrad.estimators import OscillatorClassifier

TASKS = ("vowels", "fm", "xor")
CLASSIFIER_TASKS = ("digits", *datasets.CLASSICS, *TASKS)
_INITS: dict[str, Callable[[Network, Dataset, int], Network]] = {
    "random": lambda network, _data, _seed: network,
    "spectral": lambda network, _data, _seed: spectral_seed(network),
    "anti-spectral": lambda network, _data, _seed: spectral_seed(network, sign=-1),
    "output": lambda network, _data, seed: output_seed(network, seed=seed + 10_000),
    "anti-output": lambda network, _data, seed: output_seed(network, sign=-1, seed=seed + 10_000),
    "multi-start": lambda network, data, seed: multi_start_seed(network, data.x_train[:10], seed=seed + 10_000),
}


@dataclass(frozen=True)
class Runs:
    """The runs of one command: a network and a data set per seed."""

    networks: list[Network]
    data: list[Dataset]

    @classmethod
    def plan(
        cls, task: str, vowels: Sequence[str], seeds: Sequence[int], hidden: int, init: str, scale_by: str = "train"
    ) -> Runs:
        """Set up one network and one data set per seed."""
        choice("task", task, TASKS, "the paper's protocol in phasegrad train")
        choice("init", init, _INITS, "phasegrad train")
        data = [load_task(task, seed, vowels, scale_by=scale_by) for seed in seeds]
        width, classes = data[0].x_train.shape[1], data[0].n_classes
        networks = [layered(width, hidden, classes, seed=seed) for seed in seeds]
        seeded = [_INITS[init](*run) for run in zip(networks, data, seeds, strict=True)]
        return cls(seeded, data)

    def save_best(self, path: Path, result: TrainingResult, seeds: Sequence[int]) -> int:
        """Write the network with the best training accuracy and return its seed; test data has no say."""
        best = int(np.argmax(result.history.train_accuracy[:, -1]))
        data = self.data[best]
        save_model(path, Model.from_training(result, data, best))
        return seeds[best]

    def as_dict(self, result: TrainingResult, seeds: Sequence[int]) -> dict[str, Any]:
        """Return every run as plain data."""
        history = result.history
        return {
            "runs": [
                {
                    "seed": seed,
                    "train_accuracy": float(history.train_accuracy[r, -1]),
                    "test_accuracy": float(history.test_accuracy[r, -1]),
                    "untrained_test_accuracy": float(history.test_accuracy[r, 0]),
                    "train_loss": float(history.train_loss[r, -1]),
                    "test_loss": float(history.test_loss[r, -1]),
                    "skipped": int(history.skipped[r].sum()),
                    "unstable": int(history.unstable[r].sum()),
                    "test_skipped": int(history.test_skipped[r, -1]),
                }
                for r, seed in enumerate(seeds)
            ],
            "epochs": result.state.epoch,
            "evaluated_after": history.epoch.tolist(),
            "test_accuracy_history": history.test_accuracy.tolist(),
            "classes": list(self.data[0].classes),
            "protocol": {
                name: str(value) if name == "objective" else value for name, value in vars(result.protocol).items()
            },
            "interrupted": result.interrupted,
        }


@dataclass(frozen=True)
class ClassifierRun:
    """One seed of `OscillatorClassifier` on one data set: what it was before and after, and its test predictions."""

    seed: int
    data: Dataset
    classifier: OscillatorClassifier
    untrained_accuracy: float
    test_accuracy: float
    predicted: IntArray
    output_phases: FloatArray
    unsettled: int

    @classmethod
    def fit(cls, data: Dataset, seed: int, **options: Any) -> ClassifierRun:
        """Train on the training part and score the test part, before and after."""
        from phasegrad.estimators import OscillatorClassifier  # scikit-learn is slow to import, and not always needed

        drawn = OscillatorClassifier(random_state=seed, **{**options, "epochs": 0}).fit(data.x_train, data.y_train)
        untrained = float(drawn.score(data.x_test, data.y_test))
        classifier = OscillatorClassifier(random_state=seed, **options)
        classifier.fit(data.x_train, data.y_train)
        state = classifier.settle(data.x_test)
        phases = state.phases[:, list(classifier.network_.outputs)]
        predicted = classifier.objective_.decide(phases)
        accuracy = float(np.mean(predicted == data.y_test))
        return cls(seed, data, classifier, untrained, accuracy, predicted, phases, int(np.sum(~state.stable)))

    @property
    def interrupted(self) -> bool:
        """Whether training was stopped from outside."""
        return self.classifier.learned_ is not None and self.classifier.learned_.interrupted

    def confusion(self) -> IntArray:
        """Return how many test samples of each class (rows) were given each class (columns)."""
        count = self.data.n_classes
        table = np.zeros((count, count), dtype=np.int64)
        np.add.at(table, (self.data.y_test, self.predicted), 1)
        return table

    def save(self, path: Path) -> None:
        """Write the trained network as a model file that `phasegrad predict` reads."""
        # The classifier scales by the range of its training part, which follows the data set's own scaling.
        own = self.data.scaling
        low, high = self.classifier.input_range_
        if own is not None:
            low, high = (own.low + (edge + 1) / 2 * (own.high - own.low) for edge in (low, high))
        model = Model(
            self.classifier.network_, self.classifier.objective_, self.data.classes, self.data.features,
            Scaling(low, high),
        )  # fmt: skip
        save_model(path, model)

    def as_dict(self) -> dict[str, Any]:
        """Return the run as plain data."""
        history = self.classifier.history_
        return {
            "seed": self.seed,
            "untrained_test_accuracy": self.untrained_accuracy,
            "test_accuracy": self.test_accuracy,
            "train_accuracy": float(history.train_accuracy[-1]),
            "train_loss": history.train_loss.tolist(),
            "skipped": int(history.skipped[1:].sum()),
            "shortened": int(history.shortened.sum()),
            "updates": int(history.updates.sum()),
            "test_unsettled": self.unsettled,
            "confusion": self.confusion().tolist(),
        }


def load_task(
    task: str, seed: int, vowels: Sequence[str] = ("a", "i"), *, scale_by: str = "train", shifts: bool = False
) -> Dataset:
    """Return the data of a task; the seed chooses the split where there is one."""
    choice("task", task, CLASSIFIER_TASKS, "phasegrad train")
    if task in datasets.CLASSICS:
        return datasets.classic(task, seed=seed)
    loaders: dict[str, Callable[[], Dataset]] = {
        "digits": lambda: datasets.digits(shifts=shifts),
        "vowels": lambda: datasets.vowels([name.strip() for name in vowels], seed=seed, scale_by=scale_by),
        "fm": lambda: datasets.fm(seed=seed),
        "xor": datasets.xor,
    }
    return loaders[task]()


def read_samples(path: Path, features: Sequence[str]) -> FloatArray:
    """Return the feature columns of a CSV file, shape (n, n_features)."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            table = csv.DictReader(file)
            rows, header = list(table), list(table.fieldnames or [])
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {path}.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file.") from None
    missing = [name for name in features if name not in header]
    if missing:
        raise ValueError(
            f"{path} has no column {missing[0]!r}. The model needs {', '.join(features)}; the file has "
            f"{', '.join(header) or 'no columns'}."
        )
    samples = np.empty((len(rows), len(features)))
    for number, row in enumerate(rows, 2):
        for column, name in enumerate(features):
            try:
                samples[number - 2, column] = float(row[name])
            except (TypeError, ValueError):
                raise ValueError(f"{path}, line {number}: {name} is {row[name]!r}, not a number.") from None
    return samples
