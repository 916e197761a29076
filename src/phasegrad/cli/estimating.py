"""`phasegrad train` with estimators: a classifier per seed on a task, a classifier or a regressor on a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, RenderableType

import phasegrad
from phasegrad._files import printable
from phasegrad._validation import counted
from phasegrad.cli.epochs import EpochBar
from phasegrad.cli.signals import STOPPED
from phasegrad.cli.words import put, put_json, tables

if TYPE_CHECKING:
    from phasegrad.runs import ClassifierRun, RegressorRun, Table

    Run = ClassifierRun | RegressorRun


def train_classifiers(
    task: str, seeds: list[int], load: dict[str, Any], options: dict[str, Any], places: Mapping[str, Path | None]
) -> None:
    """Train one classifier per seed, show the table, write what was asked for; of many seeds the best on training."""
    from phasegrad.cli.tables.train import classifier_table, draw_classifier
    from phasegrad.runs import ClassifierRun, load_task

    def fit(seed: int, show: Any) -> ClassifierRun:
        return ClassifierRun.fit(load_task(task, seed, **load), seed, progress=show, **options)

    runs = _fitted(fit, seeds, _epochs(options))
    _finish(task, seeds, runs, places, classifier_table, draw_classifier, "classifier")


def train_table(
    path: Path, seeds: list[int], reading: Mapping[str, Any], options: dict[str, Any], places: Mapping[str, Path | None]
) -> None:
    """Train one estimator per seed on a CSV file of the user's, and say what it was taken for."""
    from phasegrad.cli.tables.train import classifier_table, draw_classifier, draw_regressor, regressor_table
    from phasegrad.datasets import Dataset
    from phasegrad.runs import ClassifierRun, RegressorRun, read_more, read_table

    test, regress, drop_missing = reading["test"], reading["regress"], reading["drop_missing"]
    with Console(stderr=True).status(f"reading {printable(path)} ..."):
        table = read_table(
            path, reading["target"], regress=regress, ignore=reading["ignore"], drop_missing=drop_missing
        )
        tested = None if test is None else read_more(test, table, drop_missing=drop_missing)
    for line in _reading(table, tested, seeds):
        typer.echo(line, err=tables(places["json"]).stderr)

    def fit(seed: int, show: Any) -> Run:
        data = table.parts(seed, tested)
        if isinstance(data, Dataset):
            return ClassifierRun.fit(data, seed, progress=show, **options)
        return RegressorRun.fit(data, seed, progress=show, **options)

    runs = _fitted(fit, seeds, _epochs(options, regress))
    show, draw = (regressor_table, draw_regressor) if regress else (classifier_table, draw_classifier)
    _finish(printable(path), seeds, runs, places, show, draw, "regressor" if regress else "classifier")


def _epochs(options: Mapping[str, Any], regress: bool = False) -> int:
    """Return for how many epochs an estimator trains."""
    kind = phasegrad.OscillatorRegressor if regress else phasegrad.OscillatorClassifier
    return int(kind(**{name: options[name] for name in ("epochs",) if name in options}).epochs)


def _reading(table: Table, tested: Table | None, seeds: Sequence[int]) -> list[str]:
    """Return in words what a table was taken for."""
    names = printable(", ".join(table.classes))
    what = f"{len(table.classes)} classes ({names:.200})" if table.classes else "a quantity"
    rows = f"{counted(len(table.y), 'row')} and {counted(len(table.features), 'feature')}"
    if tested is not None:
        split = f"Tested on {counted(len(tested.y), 'row')} of the other file."
    else:
        split = f"A fifth of the rows is held back to test, drawn by the seed{'s' * (len(seeds) > 1)}."
    return [
        f"{table.name}: {rows}; {printable(table.target)} is taken as {what}. {split}",
        *map(printable, (*table.remarks, *(() if tested is None else tested.remarks))),
    ]


def _fitted(fit: Callable[[int, Any], Run], seeds: Sequence[int], epochs: int) -> list[Run]:
    """Train seed after seed until one is stopped, with a bar of its epochs."""
    runs: list[Run] = []
    try:
        with EpochBar(epochs) as bar:
            for seed in seeds:
                bar.begin(f"seed {seed}")
                runs.append(fit(seed, bar.show))
                if runs[-1].interrupted:
                    break
    except KeyboardInterrupt:
        pass
    if not runs:
        typer.echo("Stopped before the first epoch; nothing was written.", err=True)
        raise typer.Exit(STOPPED)
    return runs


def _finish(
    task: str, seeds: Sequence[int], runs: list[Any], places: Mapping[str, Path | None],
    show: Callable[[list[Any]], RenderableType], draw: Callable[[Any, Path], None], kind: str,
) -> None:  # fmt: skip
    """Show the table and write what was asked for; of many seeds the best on its training part."""
    tables(places["json"]).print(show(runs))
    best = max(runs, key=lambda run: run.merit)
    put(places["save"], best.save, f" (seed {best.seed})", json=places["json"])
    put(places["plot"], lambda place: draw(best, place), f" (seed {best.seed})", json=places["json"])
    put_json(places["json"], {"task": task, "runs": [run.as_dict() for run in runs]})
    if len(runs) < len(seeds) or runs[-1].interrupted:
        last = f"the last of them for {counted(runs[-1].epochs, 'epoch')}"
        many = counted(len(seeds), kind)
        typer.echo(f"Stopped after {len(runs)} of {many}, {last}; all above is of these.", err=True)
        raise typer.Exit(STOPPED)
