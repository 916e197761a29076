"""The file of results: every finished run with its settings, written whole after each; and how runs get into it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phasegrad._files import printable, read_json, write_json
from phasegrad_paper.studies.images import work
from phasegrad_paper.studies.images.experiments import EXPERIMENTS, Experiment

FORMAT = 1
_NAME = "phasegrad images"
#: Figures that every run has, with their kinds.
_FIGURES = {
    "experiment": str, "seed": int, "settings": dict, "accuracy": float, "train_accuracy": float, "unsettled": int,
    "unproved": int, "epochs": int, "seconds": float, "seconds_per_epoch": float, "device": str, "torch": str,
    "dtype": str, "parameters": int,
}  # fmt: skip
# Share of a run's time by which the next may be longer than those before it.
_SPREAD = 1.1

Run = dict[str, Any]


class OutOfTimeError(Exception):
    """A run would take longer than there is time."""


@dataclass(frozen=True)
class Results:
    """Finished runs."""

    runs: tuple[Run, ...] = ()

    @classmethod
    def read(cls, path: Path) -> Results:
        """Return what a file holds; ValueError if it is not one of these."""
        try:
            data = read_json(path)
        except FileNotFoundError:
            raise FileNotFoundError(f"There is no file {printable(path)}. Name a file of results on images.") from None
        except ValueError as error:
            raise _unsound(path, str(error)) from None
        if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("kind") != _NAME:
            raise _unsound(path, "it does not say that it is one")
        runs = data.get("runs")
        if not isinstance(runs, list):
            raise _unsound(path, "it has no list of runs")
        for number, each in enumerate(runs):
            for name, kind in _FIGURES.items():
                if not isinstance(each, dict) or not isinstance(each.get(name), kind):
                    raise _unsound(path, f"its run {number} has no {name}")
        return cls(tuple(runs))

    def write(self, path: Path) -> None:
        """Write the file, whole."""
        write_json(path, {"kind": _NAME, "format": FORMAT, "runs": list(self.runs)})

    def of(self, experiment: Experiment) -> list[Run]:
        """Return the runs of an experiment with its present settings, by seed."""
        settings = experiment.settings
        mine = (each for each in self.runs if each["experiment"] == experiment.name and each["settings"] == settings)
        return sorted(mine, key=lambda each: int(each["seed"]))

    def has(self, experiment: Experiment, seed: int) -> bool:
        """Whether a run of an experiment is there."""
        return any(each["seed"] == seed for each in self.of(experiment))

    def with_run(self, run: Run) -> Results:
        """Return these and one more."""
        return Results((*self.runs, run))

    def by_piece(self) -> dict[str, Run]:
        """Return the runs of the table by the names of the pieces of the study."""
        return {f"{name}_{run['seed']}": run for name, each in EXPERIMENTS.items() for run in self.of(each)}


@dataclass(frozen=True)
class Budget:
    """Seconds until work must be over, None for as long as it takes."""

    seconds: float | None
    start: float

    @classmethod
    def of(cls, seconds: float | None) -> Budget:
        """Return the budget of so many seconds from now."""
        return cls(seconds, time.monotonic())

    @property
    def left(self) -> float:
        """How many are left."""
        return float("inf") if self.seconds is None else self.seconds - (time.monotonic() - self.start)

    def check(self, took: float) -> None:
        """Raise `OutOfTimeError` where a run that is as long as an earlier one would not end in time."""
        if self.left <= 0 or self.left < _SPREAD * took:
            raise OutOfTimeError(f"it would take about {took:.0f} s and {max(self.left, 0):.0f} s are left")

    def watch(self, done: int, of: int, more: float) -> None:
        """Raise `OutOfTimeError` where a run would not end in time, by how long its epochs took so far."""
        if more > self.left:
            raise OutOfTimeError(
                f"after epoch {done} of {of} it would take {more:.0f} s more and {max(self.left, 0):.0f} s are left"
            )


def compute(
    path: Path, experiments: Sequence[Experiment], seeds: Iterable[int] | None = None, *, device: str = "cuda",
    folder: str | None = None, budget: float | None = None, say: Callable[[str], None] = lambda _line: None,
) -> Results:  # fmt: skip
    """Run what a file does not hold yet, one after the other, and write the file after every run.

    Parameters
    ----------
    path : Path
        The file; made if it is not there.
    experiments : sequence of Experiment
    seeds : iterable of int, optional
        Of every experiment; as many as its row says if left out.
    device, folder
        As of `phasegrad_paper.studies.images.work.run`.
    budget : float, optional
        Seconds. What would take longer, by earlier runs of the same experiment or by its own first epochs, is left out.
    say : callable
        Told of every run in a line.
    """
    results = Results.read(path) if path.exists() else Results()
    clock, asked = Budget.of(budget), None if seeds is None else list(seeds)
    results.write(path)
    for experiment in experiments:
        for seed in range(experiment.seeds) if asked is None else asked:
            name = f"{experiment.name}, seed {seed}"
            if results.has(experiment, seed):
                say(f"{name}: there already")
                continue
            try:
                clock.check(max((float(each["seconds"]) for each in results.of(experiment)), default=0.0))
                figures = work.run(experiment.settings, seed, device, folder, watch=clock.watch)
            except OutOfTimeError as error:
                say(f"{name}: left out, {error}; so are the seeds after it")
                break
            run = {"experiment": experiment.name, "seed": seed, "settings": experiment.settings, **figures}
            results = results.with_run(run)
            results.write(path)
            say(f"{name}: {described(run)}")
    return results


def described(run: Mapping[str, Any]) -> str:
    """Return what came out of a run, in a line."""
    return (
        f"{run['accuracy']:.2%} of the test images, {run['train_accuracy']:.2%} in training, {run['unsettled']} "
        f"unsettled, {run['unproved']} unproved, {run['epochs']} epochs in {run['seconds']:.1f} s "
        f"({run['seconds_per_epoch']:.2f} s each), {run['dtype']} on {run['device']}"
    )


def _unsound(path: Path, reason: str) -> ValueError:
    return ValueError(f"{printable(path)} is not a file of results on images: {printable(reason)}. Name another file.")
