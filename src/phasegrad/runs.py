"""Runs: from words (a task, seeds, a start) to networks and data, and from results to plain data and a model file."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from phasegrad import datasets
from phasegrad.datasets import Dataset
from phasegrad.models import Model, save_model
from phasegrad.network import Network
from phasegrad.seeding import multi_start_seed, output_seed, spectral_seed
from phasegrad.topologies import layered
from phasegrad.training import TrainingResult
from phasegrad.validation import FloatArray, choice

TASKS = ("vowels", "fm", "xor")
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
        choice("task", task, TASKS, "phasegrad train")
        choice("init", init, _INITS, "phasegrad train")
        loaders: dict[str, Callable[[int], Dataset]] = {
            "vowels": lambda seed: datasets.vowels([name.strip() for name in vowels], seed=seed, scale_by=scale_by),
            "fm": lambda seed: datasets.fm(seed=seed),
            "xor": lambda _seed: datasets.xor(),
        }
        data = [loaders[task](seed) for seed in seeds]
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
