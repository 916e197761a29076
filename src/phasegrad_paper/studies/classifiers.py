"""Accuracies on small data: the classifier beside logistic regression, and what the start decides in the paper's plan.

``python -m phasegrad_paper.studies.classifiers docs/results/classifiers.json`` computes them, in about nine minutes of
processor time, and keeps every seed; ``--only starts,xor`` computes some of them anew.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from phasegrad import datasets
from phasegrad._files import read_json, write_json
from phasegrad.estimators import OscillatorClassifier
from phasegrad.initial import STARTS
from phasegrad.networks import layered
from phasegrad.objectives import NearestTarget
from phasegrad.runs import SUCCESS
from phasegrad.training import Plan, train_whole
from phasegrad_paper.studies.study import Table

_KIND = "phasegrad classifiers"
_PUBLISHED_DIGITS = "94.1 % (published oscillators)"


@dataclass(frozen=True)
class Task:
    """Data by seed, how many seeds, and the settings of the classifier that differ from its defaults."""

    words: str
    load: Callable[[int], datasets.Dataset]
    seeds: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    beside: str = ""


TASKS = {
    "a-i": Task("/a/ against /i/, 5 hidden", lambda seed: datasets.vowels("a,i", seed=seed), 100, {"hidden": 5}),
    "o-u": Task("/o/ against /u/, 5 hidden", lambda seed: datasets.vowels("o,u", seed=seed), 100, {"hidden": 5}),
    "five-vowels": Task("five vowels", lambda seed: datasets.vowels("a,e,i,o,u", seed=seed), 20),
    "fm": Task("FM signals", lambda seed: datasets.fm(seed), 10),
    "digits": Task("digits, 200 hidden", lambda _: datasets.digits(), 3, {"hidden": 200}, _PUBLISHED_DIGITS),
    "digits-shifts": Task(
        "digits and their one-pixel shifts, 200 hidden", lambda _: datasets.digits(shifts=True), 2, {"hidden": 200}
    ),
}
#: The starts of the paper's plan, in words.
STARTS_IN_WORDS = {
    "random": "`random`, as described",
    "spectral": "`spectral`, the spectral seed",
    "anti-spectral": "`anti-spectral`, its sign reversed",
    "outputs-positive": "`outputs-positive`: frequencies on the outputs only, the first positive",
    "outputs-negative": "`outputs-negative`, the published sign",
}
MATCHED = "matched"
XOR = "xor"
_XOR_SETTINGS: Mapping[str, Any] = {
    "hidden": 1, "skip": True, "gain": 2.0, "input_scale": np.pi / 2, "input_noise": 0.0, "epochs": 200,
    "learning_rate": 0.05,
}  # fmt: skip


def scores(name: str, seeds: int | None = None) -> dict[str, list[float]]:
    """Return the test accuracies of one task and those of logistic regression, seed by seed: all, or the first few."""
    from sklearn.linear_model import LogisticRegression

    task = TASKS[name]
    parts = [task.load(seed) for seed in range(task.seeds if seeds is None else seeds)]
    fitted = [
        OscillatorClassifier(**task.settings, random_state=seed).fit(data.x_train, data.y_train)
        for seed, data in enumerate(parts)
    ]
    others = [LogisticRegression(max_iter=5000).fit(data.x_train, data.y_train) for data in parts]
    return {
        "accuracy": [float(one.score(data.x_test, data.y_test)) for one, data in zip(fitted, parts, strict=True)],
        "logistic": [float(one.score(data.x_test, data.y_test)) for one, data in zip(others, parts, strict=True)],
    }


def start_scores(name: str, seeds: int = 100) -> list[float]:
    """Return the test accuracies on /a i/ of the paper's plan from one start; of `MATCHED`, with its own decision."""
    data = [datasets.vowels("a,i", seed=seed) for seed in range(seeds)]
    networks = [layered(2, 5, 2, seed=seed) for seed in range(seeds)]
    if name == MATCHED:
        plan = Plan.paper({"omega": 0.01, "coupling": 0.5}, objective=NearestTarget())
    else:
        plan = Plan.paper()
        networks = [STARTS[name](network, [], seed) for seed, network in enumerate(networks)]
    return train_whole(networks, data, plan, seed=range(seeds)).history.score().tolist()


def solved(starts: int, seeds: int = 100) -> int:
    """Return how many seeds of five oscillators solve XOR, each with up to so many starts."""
    corners = datasets.xor()
    fitted = (
        OscillatorClassifier(**_XOR_SETTINGS, restarts=starts, random_state=seed).fit(corners.x_train, corners.y_train)
        for seed in range(seeds)
    )
    return sum(one.score(corners.x_test, corners.y_test) == 1 for one in fitted)


def compute(path: Path, only: Sequence[str] = ()) -> dict[str, Any]:
    """Compute what is asked for, all if nothing is, and return the file's content, written after each part."""
    empty: dict[str, Any] = {"kind": _KIND, "format": 1, "tasks": {}, "starts": {}, XOR: {}}
    found: dict[str, Any] = read_json(path) if path.exists() else empty
    for name in only or (*TASKS, "starts", XOR):
        if name in TASKS:
            found["tasks"][name] = scores(name)
        elif name == "starts":
            found["starts"] = {start: start_scores(start) for start in (*STARTS_IN_WORDS, MATCHED)}
        elif name == XOR:
            found[XOR] = {"one start": solved(1), "five starts": solved(5)}
        else:
            raise ValueError(f"--only takes {', '.join((*TASKS, 'starts', XOR))}. Got {name!r:.60}.")
        write_json(path, found)
    return found


def tables(found: Mapping[str, Any]) -> list[Table]:
    """Return the tables of a page: of the classifier, and of the starts of the paper's plan."""
    return [_accuracies(found), _starts(found)]


def _accuracies(found: Mapping[str, Any]) -> Table:
    rows: list[list[Any]] = []
    for name, task in TASKS.items():
        ours, others = (found["tasks"][name][key] for key in ("accuracy", "logistic"))
        rows.append(
            [task.words, task.seeds, _percent(np.mean(ours)), _percent(np.min(ours)), _percent(np.mean(others))]
        )
        rows[-1][-1] += f"; {task.beside}" if task.beside else ""
    columns = ("task", "seeds", "test accuracy", "worst seed", "logistic regression")
    return Table("classifiers", "", columns, rows)


def _starts(found: Mapping[str, Any]) -> Table:
    rows = [
        [words, int(np.sum(np.array(found["starts"][name]) > SUCCESS)), _percent(np.mean(found["starts"][name]))]
        for name, words in STARTS_IN_WORDS.items()
    ]
    return Table("starts", "", ("start (`--init`)", "seeds above 60 %, of 100", "mean test accuracy"), rows)


def _percent(share: Any) -> str:
    return f"{100 * float(share):.1f} %"


def main(words: Sequence[str] | None = None) -> int:
    """Compute the accuracies asked for and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m phasegrad_paper.studies.classifiers", description=__doc__)
    parser.add_argument("out", type=Path, help="file of results; what is not computed anew stays in it")
    parser.add_argument("--only", default="", metavar="NAME,...", help=f"of {', '.join((*TASKS, 'starts', XOR))}")
    options = parser.parse_args(words)
    try:
        compute(options.out, [name for name in options.only.split(",") if name])
    except (ValueError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
