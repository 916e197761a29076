"""What `phasegrad train` and `phasegrad predict` show: runs set up from words, tables of what came of them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from phasegrad import datasets
from phasegrad.datasets import Dataset
from phasegrad.models import Model, Prediction, save_model
from phasegrad.network import Network
from phasegrad.report.console import counted, plain_table
from phasegrad.seeding import multi_start_seed, output_seed, spectral_seed
from phasegrad.topologies import layered
from phasegrad.training import TrainingResult
from phasegrad.validation import FloatArray, choice

TASKS = ("vowels", "fm", "xor")
_SUCCESS = 0.6
_ROWS_SHOWN = 20

_INITS: dict[str, Callable[[Network, Dataset, int], Network]] = {
    "random": lambda network, _data, _seed: network,
    "spectral": lambda network, _data, _seed: spectral_seed(network),
    "anti-spectral": lambda network, _data, _seed: spectral_seed(network, sign=-1),
    "output": lambda network, _data, seed: output_seed(network, seed=seed + 10_000),
    "anti-output": lambda network, _data, seed: output_seed(network, sign=-1, seed=seed + 10_000),
    "multi-start": lambda network, data, seed: multi_start_seed(network, data.x_train[:10], seed=seed + 10_000),
}


@dataclass(frozen=True)
class RunSummary:
    """The runs of one command: a network and a data set per seed."""

    networks: list[Network]
    data: list[Dataset]

    @classmethod
    def plan(
        cls, task: str, vowels: Sequence[str], seeds: Sequence[int], hidden: int, init: str, scale_by: str = "train"
    ) -> RunSummary:
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


def training_table(seeds: Sequence[int], result: TrainingResult) -> RenderableType:
    """Return a table of the runs, all of them if they are few, and a line of summary."""
    history = result.history
    runs, epochs = counted(len(seeds), "run"), counted(result.state.epoch, "epoch")
    table = plain_table(f"{runs}, {epochs}, learning {result.protocol.learn}", "")
    for heading in ("seed", "untrained", "test", "train (running)", "train loss", "skipped"):
        table.add_column(heading, justify="right")
    shown = range(len(seeds)) if len(seeds) <= _ROWS_SHOWN else range(_ROWS_SHOWN // 2)
    for r in shown:
        table.add_row(
            str(seeds[r]),
            f"{history.test_accuracy[r, 0]:.1%}",
            f"{history.test_accuracy[r, -1]:.1%}",
            f"{history.train_accuracy[r, -1]:.1%}",
            f"{history.train_loss[r, -1]:.4f}",
            str(int(history.skipped[r].sum())),
        )
    if len(seeds) > len(shown):
        table.add_row(f"... {len(seeds) - len(shown)} more", *[""] * 5)
    last, first = history.test_accuracy[:, -1], history.test_accuracy[:, 0]
    lines = [
        f"test accuracy: mean {last.mean():.1%}, worst {last.min():.1%}, best {last.max():.1%}; "
        f"untrained {first.mean():.1%}",
        f"above {_SUCCESS:.0%}: {int(np.sum(last > _SUCCESS))} of {counted(len(seeds), 'seed')}",
    ]
    skipped, unstable = int(history.skipped.sum()), int(history.unstable.sum())
    if skipped or unstable or history.test_skipped.any():
        lines.append(
            f"{skipped} training samples skipped, {unstable} unstable, {int(history.test_skipped[:, -1].sum())} test "
            "samples without equilibrium (counted as wrong)"
        )
    return Group(table, Text("\n".join(lines)))


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


def prediction_table(answer: Prediction) -> RenderableType:
    """Return the class of every row, the first ones if they are many, and how many had no stable state."""
    table: Table = plain_table(counted(len(answer.names), "sample"), "")
    table.add_column("row", justify="right")
    table.add_column("class")
    table.add_column("state")
    for k, name in enumerate(answer.names[:_ROWS_SHOWN]):
        table.add_row(str(k + 1), name, answer.equilibrium.status[k].name.lower())
    if len(answer.names) > _ROWS_SHOWN:
        table.add_row(f"... {len(answer.names) - _ROWS_SHOWN} more", "", "")
    counts = ", ".join(f"{answer.names.count(name)} x {name}" for name in dict.fromkeys(answer.names))
    unsettled = int(np.sum(~answer.equilibrium.stable))
    return Group(table, Text(f"{counts}\n{unsettled} of {len(answer.names)} without a stable equilibrium"))
