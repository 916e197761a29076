"""Runs: one network per seed by the paper's plan, one estimator on a data set, one layered network on images."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from phasegrad import datasets
from phasegrad._files import printable
from phasegrad._validation import FloatArray, IntArray, choice
from phasegrad.datasets import Dataset, Scaling, Shifts
from phasegrad.initial import STARTS
from phasegrad.models import Model, confusion_counts
from phasegrad.networks import Dense, Network, complete, layered, layers, mean_field, ring, small_world
from phasegrad.runs._tables import Quantities
from phasegrad.training import History, Interrupted, Plan, Report, Training, train_whole

if TYPE_CHECKING:
    from phasegrad.estimators import OscillatorClassifier, OscillatorRegressor

#: Networks to follow in time, by name, and how many oscillators they have unless told otherwise.
IN_TIME = {"ring": 10, "complete": 10, "mean-field": 1000, "small-world": 50, "layered": 9}
TASKS = ("vowels", "fm", "xor")
CLASSIFIER_TASKS = ("digits", *datasets.CLASSICS, *TASKS)
#: Two inputs, one hidden oscillator, two outputs.
_SMALLEST_LAYERED = 5
#: Options of `layers` for images.
IMAGE_NETWORK = {"gain": 0.4, "field": 2.0}
#: Samples that settle at once on a device.
_AT_ONCE = 2048
#: A run counts as a success if its accuracy exceeds this; the paper's threshold.
SUCCESS = 0.6
#: Parameters of a network beyond which they are left to model files.
_MOST_PARAMETERS = 10_000


def network_in_time(
    word: str, seed: int, *, size: int | None = None, coupling: float | None = None, spread: float | None = None
) -> Network:
    """Return the network of a model file or of a name, with normal frequencies drawn by the seed."""
    named = word in IN_TIME
    for name, value in (("size", size), ("coupling", coupling), ("spread", spread)):
        if value is not None and not (named and (word != "layered" or name == "size")):
            raise ValueError(f"--{name} has no effect on {printable(word)}, which has its own. Leave it out.")
    if not named:
        if not Path(word).exists():
            known = ", ".join(IN_TIME)
            raise ValueError(f"There is no network or model file {printable(word)}. Networks are {known}.")
        return Model.load(Path(word)).network
    number = size or IN_TIME[word]
    if word == "layered":
        if number < _SMALLEST_LAYERED:
            raise ValueError(
                f"--size must be at least {_SMALLEST_LAYERED} for layered: 2 inputs, 2 outputs. Got {number}."
            )
        return layered(2, number - 4, 2, seed=seed)
    deviation, strength = (default if given is None else given for given, default in ((spread, 0.3), (coupling, 1.0)))
    omega = np.random.default_rng(seed).normal(0.0, deviation, number)
    if word == "mean-field":
        return mean_field(number, strength, omega=omega)
    if word == "complete":
        return complete(number, coupling=strength / number, omega=omega)
    options: dict[str, Any] = {"coupling": strength, "omega": omega}
    return ring(number, **options) if word == "ring" else small_world(number, seed=seed, **options)


@dataclass(frozen=True)
class Runs:
    """The runs of one command: a network and a data set per seed."""

    networks: list[Network]
    data: list[Dataset]

    @classmethod
    def plan(
        cls,
        task: str,
        seeds: Sequence[int],
        hidden: int,
        init: str,
        *,
        vowels: Sequence[str] = ("a", "i"),
        scale_by: str = "train",
    ) -> Runs:
        """Set up one network and one data set per seed."""
        choice("task", task, TASKS, "the paper's plan in phasegrad train")
        choice("init", init, STARTS, "phasegrad train")
        data = [load_task(task, seed, vowels, scale_by=scale_by) for seed in seeds]
        width, classes = data[0].x_train.shape[1], data[0].n_classes
        networks = [layered(width, hidden, classes, seed=seed) for seed in seeds]
        started = [
            STARTS[init](network, part.x_train[:10], seed)
            for network, part, seed in zip(networks, data, seeds, strict=True)
        ]
        return cls(started, data)

    def best(self, result: Training) -> int:
        """Return which run has the best training accuracy; test data has no say."""
        return int(np.argmax(result.history.train_accuracy[:, -1]))

    def save(self, path: Path, result: Training, run: int) -> None:
        """Write the trained network of a run as a model file that `phasegrad predict` reads."""
        Model.from_training(result, self.data[run], run).save(path)

    def as_dict(self, result: Training, seeds: Sequence[int]) -> dict[str, Any]:
        """Return every run as plain data."""
        history = result.history
        last = ("train_accuracy", "test_accuracy", "train_loss", "test_loss", "test_unsettled", "test_unstable")
        columns = {name: getattr(history, name)[:, -1] for name in last} | {
            "untrained_test_accuracy": history.test_accuracy[:, 0],
            "skipped": history.skipped.sum(axis=1),
            "train_unsettled": history.train_unsettled[:, 1:].sum(axis=1),
            "train_unstable": history.train_unstable[:, 1:].sum(axis=1),
        }
        runs = [
            {"seed": seed} | {name: values[r].item() for name, values in columns.items()} | _parameters(network)
            for r, (seed, network) in enumerate(zip(seeds, result.networks, strict=True))
        ]
        return {
            "runs": runs,
            "epochs": result.state.epoch,
            "evaluated_after": history.epoch.tolist(),
            "test_accuracy_history": history.test_accuracy.tolist(),
            "classes": list(self.data[0].classes),
            "plan": {name: _plain(value) for name, value in vars(result.plan).items()},
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
    interrupted: bool  # whether training was stopped from outside

    @classmethod
    def fit(cls, data: Dataset, seed: int, *, progress: Report | None = None, **options: Any) -> ClassifierRun:
        """Train on the training part and score the test part, before and after."""
        from phasegrad.estimators import OscillatorClassifier  # scikit-learn is slow to import, and not always needed

        drawn = OscillatorClassifier(random_state=seed, **{**options, "epochs": 0}).fit(data.x_train, data.y_train)
        untrained = float(drawn.score(data.x_test, data.y_test))
        classifier = OscillatorClassifier(random_state=seed, **options)
        stopped = _fitted_until_stopped(classifier, data, progress)
        state = classifier.settle(data.x_test)
        phases = state.phases[:, list(classifier.network_.outputs)]
        predicted = classifier.objective_.decide(phases)
        accuracy = float(np.mean(state.stable & (predicted == data.y_test)))
        lost = int(np.sum(~state.stable))
        return cls(seed, data, classifier, untrained, accuracy, predicted, phases, lost, stopped)

    @property
    def epochs(self) -> int:
        """For how many it was trained."""
        return int(self.classifier.n_iter_)

    @property
    def majority_accuracy(self) -> float:
        """What answering with the most frequent class of the training part would score on the test part."""
        return float(np.mean(self.data.y_test == np.bincount(self.data.y_train).argmax()))

    @property
    def merit(self) -> float:
        """What the best of many runs has most of: accuracy on its training part; test data has no say."""
        return float(self.classifier.history_.train_accuracy[-1])

    def confusion(self) -> IntArray:
        """Return how many test samples of each class (rows) were given each class (columns)."""
        return confusion_counts(self.data.y_test, self.predicted, self.data.n_classes)

    def save(self, path: Path) -> None:
        """Write the trained network as a model file that `phasegrad predict` reads."""
        model = self.classifier.to_model(self.data.classes, self.data.features)
        own = self.data.scaling
        if own is not None and model.scaling is not None:
            # The classifier scales what the data set has scaled already: one scaling does both.
            low, high = own.invert(model.scaling.low), own.invert(model.scaling.high)
            model = dataclasses.replace(model, scaling=Scaling(low, high, model.scaling.beyond))
        model.save(path)

    def as_dict(self) -> dict[str, Any]:
        """Return the run as plain data."""
        history = self.classifier.history_
        return {
            "seed": self.seed,
            "untrained_test_accuracy": self.untrained_accuracy,
            "test_accuracy": self.test_accuracy,
            "majority_test_accuracy": self.majority_accuracy,
            "train_accuracy": float(history.train_accuracy[-1]),
            "train_loss": history.train_loss.tolist(),
            "skipped": int(history.skipped[1:].sum()),
            "shortened": int(history.shortened.sum()),
            "updates": int(history.updates.sum()),
            "test_unsettled": self.unsettled,
            "confusion": self.confusion().tolist(),
            "classes": list(self.data.classes),
            **_parameters(self.classifier.network_),
        }


@dataclass(frozen=True)
class RegressorRun:
    """One seed of `OscillatorRegressor` on one table: what it was before and after, and its test predictions."""

    seed: int
    data: Quantities
    regressor: OscillatorRegressor
    untrained_score: float
    predicted: FloatArray
    unsettled: int
    interrupted: bool  # whether training was stopped from outside

    @classmethod
    def fit(cls, data: Quantities, seed: int, *, progress: Report | None = None, **options: Any) -> RegressorRun:
        """Train on the training part and score the test part, before and after."""
        from phasegrad.estimators import OscillatorRegressor

        drawn = OscillatorRegressor(random_state=seed, **{**options, "epochs": 0}).fit(data.x_train, data.y_train)
        regressor = OscillatorRegressor(random_state=seed, **options)
        stopped = _fitted_until_stopped(regressor, data, progress)
        untrained = determination(data.y_test, drawn.predict(data.x_test))
        lost = int(np.sum(~regressor.settle(data.x_test).stable))
        return cls(seed, data, regressor, untrained, regressor.predict(data.x_test), lost, stopped)

    @property
    def epochs(self) -> int:
        """For how many it was trained."""
        return int(self.regressor.n_iter_)

    @property
    def merit(self) -> float:
        """What the best of many runs has most of: minus its cost on the training part."""
        return -float(self.regressor.history_.train_loss[-1])

    @property
    def score(self) -> float:
        """The coefficient of determination on the test part."""
        return determination(self.data.y_test, self.predicted)

    @property
    def error(self) -> float:
        """The root of the mean squared error on the test part, in units of the target."""
        return float(np.sqrt(np.mean((self.predicted - self.data.y_test) ** 2)))

    def save(self, path: Path) -> None:
        """Write the trained network as a model file that `phasegrad predict` reads."""
        self.regressor.to_model([self.data.target], self.data.features).save(path)

    def as_dict(self) -> dict[str, Any]:
        """Return the run as plain data."""
        history = self.regressor.history_
        return {
            "seed": self.seed,
            "untrained_test_r2": self.untrained_score,
            "test_r2": self.score,
            "test_rmse": self.error,
            "train_loss": history.train_loss.tolist(),
            "skipped": int(history.skipped[1:].sum()),
            "shortened": int(history.shortened.sum()),
            "updates": int(history.updates.sum()),
            "test_unsettled": self.unsettled,
            "target": self.data.target,
            **_parameters(self.regressor.network_),
        }


@dataclass(frozen=True)
class ImageRun:
    """One seed of a layered network on images: its training, where it was, and how long an epoch took."""

    seed: int
    data: Dataset
    training: Training
    device: str
    seconds_per_epoch: float

    @classmethod
    def fit(
        cls,
        data: Dataset,
        seed: int,
        *,
        device: str,
        dtype: str = "float32",
        hidden: int | Sequence[int] = 1000,
        shifts: bool = False,
        progress: Callable[[int, History, float], None] | None = None,
        **changes: Any,
    ) -> ImageRun:
        """Train one network; ``progress`` is told the epoch, the history and the seconds of an epoch so far."""
        sizes = (hidden,) if isinstance(hidden, int) else tuple(hidden)
        made = [Dense(size) for size in (*sizes, data.n_classes)]
        network = layers(len(data.features), *made, seed=seed, **IMAGE_NETWORK)
        plan = Plan.images(augmentation=moves_of(data) if shifts else None, **changes)
        start = last = time.perf_counter()

        def note(epoch: int, history: History) -> None:
            nonlocal last
            last = time.perf_counter()
            if progress is not None:
                progress(epoch, history, (last - start) / epoch)

        try:
            training = train_whole(network, data, plan, seed=seed, device=device, dtype=dtype, progress=note)
        except Interrupted as stop:
            training = stop.training
        return cls(seed, data, training, device, (last - start) / max(training.state.epoch, 1))

    @property
    def history(self) -> History:
        """The scores of every epoch."""
        return self.training.history

    @property
    def interrupted(self) -> bool:
        """Whether training was stopped from outside."""
        return self.training.interrupted

    @property
    def test_accuracy(self) -> float:
        """That of the last full epoch."""
        return float(self.history.test_accuracy[0, -1])

    @property
    def untrained_accuracy(self) -> float:
        """That of the network as it was drawn."""
        return float(self.history.test_accuracy[0, 0])

    def confusion(self) -> IntArray:
        """Return how many test images of each class (rows) were given each class (columns); lost ones are left out."""
        import torch

        from phasegrad.torch import PhaseNetwork

        layer = PhaseNetwork(self.training.network, dtype=torch.float32, device=self.device)
        rows = self.data.x_test.reshape(len(self.data.y_test), -1)
        count = self.data.n_classes
        table = np.zeros((count, count), dtype=np.int64)
        for first in range(0, len(rows), _AT_ONCE):
            part = torch.tensor(rows[first : first + _AT_ONCE], dtype=torch.float32, device=self.device)
            with torch.no_grad():
                phases = layer(part).double().cpu().numpy()
            sure = np.isfinite(phases).all(axis=1)
            decided = self.training.plan.objective.decide(phases[sure])  # type: ignore[attr-defined]
            table += confusion_counts(self.data.y_test[first : first + _AT_ONCE][sure], decided, count)
        return table

    def save(self, path: Path) -> None:
        """Write the trained network as a model file that `phasegrad predict` reads."""
        Model.from_training(self.training, self.data).save(path)

    def as_dict(self) -> dict[str, Any]:
        """Return the run as plain data."""
        history = self.history
        return {
            "seed": self.seed,
            "device": self.device,
            "epochs": self.training.state.epoch,
            "seconds_per_epoch": self.seconds_per_epoch,
            "untrained_test_accuracy": self.untrained_accuracy,
            "test_accuracy": self.test_accuracy,
            "train_accuracy": float(history.train_accuracy[0, -1]),
            "train_loss": history.train_loss[0].tolist(),
            "test_accuracy_history": history.test_accuracy[0].tolist(),
            "skipped": int(history.skipped[0, 1:].sum()),
            "test_unsettled": int(history.test_unsettled[0, -1]),
            "test_unproved": int(history.test_unstable[0, -1]),
            "plan": {name: _plain(value) for name, value in vars(self.training.plan).items()},
            **_parameters(self.training.network),
        }


def determination(truth: FloatArray, predicted: FloatArray) -> float:
    """Return the coefficient of determination: 1 is right, 0 no better than the mean; NaN of a constant truth."""
    spread = float(np.sum((truth - truth.mean()) ** 2))
    return 1.0 - float(np.sum((truth - predicted) ** 2)) / spread if spread else float("nan")


def _fitted_until_stopped(estimator: Any, data: Any, progress: Report | None) -> bool:
    """Fit an estimator, and return whether Ctrl-C stopped it with something trained; raise it where nothing was."""
    try:
        estimator.fit(data.x_train, data.y_train, progress=progress)
    except KeyboardInterrupt:
        if not hasattr(estimator, "training_"):
            raise
        return True
    return False


def _parameters(network: Network) -> dict[str, Any]:
    """Return the values of every parameter as plain data, or where to find them if they are many."""
    size = sum(values.size for values in network.parameters.values())
    if size > _MOST_PARAMETERS:
        return {"parameters": f"{size} numbers, more than {_MOST_PARAMETERS}: --save writes them to a model file."}
    return {"parameters": {name: values.tolist() for name, values in network.parameters.items()}}


def moves_of(data: Dataset) -> Shifts:
    """Return how training images of a data set are moved: by a pixel; coloured ones by two, and turned, in a mirror."""
    assert data.shape is not None
    channels, height, width = data.shape
    shape = (channels, height, width)
    return Shifts(1, shape=shape) if channels == 1 else Shifts(2, shape=shape, flip=True, fill="reflect")


def load_images(task: str, folder: Path | None) -> Dataset:
    """Return the images of a task."""
    choice("task", task, datasets.IMAGES, "phasegrad train")
    function: Callable[..., Dataset] = getattr(datasets, task)
    return function(folder)


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


def _plain(value: Any) -> Any:
    """Return a setting of a plan as plain data."""
    return value if isinstance(value, str | int | float | bool | None | tuple | list) else str(value)
