"""What `phasegrad train` shows and draws of classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from phasegrad.report.console import counted, plain_table
from phasegrad.report.drawings.style import panels, picture, style
from phasegrad.report.figures import format_of, save
from phasegrad.runs import ClassifierRun

# Okabe and Ito's colours, then greys: distinguishable with every kind of colour vision.
_COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#000000",
    "#777777",
    "#BBBBBB",
)


def classifier_table(runs: Sequence[ClassifierRun]) -> RenderableType:
    """Return a table of the runs and a line of summary."""
    first = runs[0]
    sizes = first.classifier.network_
    shape = f"{len(sizes.inputs)}-{sizes.size - len(sizes.inputs) - len(sizes.outputs)}-{len(sizes.outputs)}"
    title = f"{first.data.name}: {counted(len(runs), 'run')} of a {shape} network, {first.classifier.n_iter_} epochs"
    table = plain_table(title, "")
    for heading in ("seed", "untrained", "test", "train (running)", "skipped", "shortened", "unsettled"):
        table.add_column(heading, justify="right")
    for run in runs[:20]:
        history = run.classifier.history_
        table.add_row(
            str(run.seed),
            f"{run.untrained_accuracy:.1%}",
            f"{run.test_accuracy:.1%}",
            f"{history.train_accuracy[-1]:.1%}",
            str(int(history.skipped[1:].sum())),
            f"{int(history.shortened.sum())} of {int(history.updates.sum())}",
            str(run.unsettled),
        )
    if len(runs) > 20:
        table.add_row(f"... {len(runs) - 20} more", *[""] * 6)
    scores = np.array([run.test_accuracy for run in runs])
    before = np.array([run.untrained_accuracy for run in runs])
    summary = (
        f"test accuracy: mean {scores.mean():.1%}, worst {scores.min():.1%}, best {scores.max():.1%}; "
        f"untrained {before.mean():.1%}"
    )
    return Group(table, Text(summary))


def draw_classifier(run: ClassifierRun, path: Path) -> None:
    """Draw a trained classifier: confusion matrix, learning curve, and the phases of its outputs on the circle.

    Parameters
    ----------
    run : ClassifierRun
    path : Path
        Where to write; the ending chooses the format.
    """
    ending = format_of(path)
    with style():
        figure, (confusion, curve, circle) = panels(12.0, 3.9, 1, 3)
        _draw_confusion(confusion, run)
        _draw_curve(curve, run)
        _draw_circle(circle, run)
    save(path, picture(figure, ending, words_as_text=True))


def _draw_confusion(axes: Any, run: ClassifierRun) -> None:
    table = run.confusion()
    share = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(table):
        if count:
            axes.text(
                column,
                row,
                str(count),
                ha="center",
                va="center",
                color="white" if share[row, column] > 0.5 else "black",
            )
    names = run.data.classes
    axes.set_xticks(range(len(names)), names, rotation=0 if max(map(len, names)) < 4 else 30)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("decided")
    axes.set_ylabel("true")
    axes.set_title(
        f"(a) {run.data.name}, test: {run.test_accuracy:.1%}, untrained {run.untrained_accuracy:.1%}", loc="left"
    )


def _draw_curve(axes: Any, run: ClassifierRun) -> None:
    history = run.classifier.history_
    axes.plot(history.epoch, history.train_loss, color=_COLOURS[0])
    axes.set_yscale("log")
    axes.set_xlabel("epoch")
    axes.set_ylabel("mean cost (running)", color=_COLOURS[0])
    other = axes.twinx()
    other.plot(history.epoch, history.train_accuracy, color=_COLOURS[1])
    if np.any(np.isfinite(history.validation_accuracy)):
        other.plot(history.epoch, history.validation_accuracy, "--", color=_COLOURS[1])
    other.set_ylim(0, 1.02)
    other.set_ylabel("accuracy (running; dashed: validation)", color=_COLOURS[1])
    axes.set_title("(b) learning", loc="left")


def _draw_circle(axes: Any, run: ClassifierRun) -> None:
    """Draw, for every class on a ring of its own, the phases of its output: filled where the class is the true one."""
    names = run.data.classes
    for number, name in enumerate(names):
        radius = 1.0 + number
        turn = np.linspace(0, 2 * np.pi, 181)
        axes.plot(radius * np.cos(turn), radius * np.sin(turn), color="#DDDDDD", linewidth=0.8, zorder=1)
        phases, colour = run.output_phases[:, number], _COLOURS[number % len(_COLOURS)]
        mine = run.data.y_test == number
        for rows, options in ((~mine, {"facecolors": "none", "alpha": 0.35}), (mine, {"facecolors": colour})):
            axes.scatter(
                radius * np.cos(phases[rows]), radius * np.sin(phases[rows]), s=14, edgecolors=colour, linewidths=0.6,
                zorder=3 if rows is mine else 2, **options,
            )  # fmt: skip
        axes.text(0, -radius, name, fontsize=7, ha="center", va="center", zorder=4)
    axes.set_aspect("equal")
    axes.axis("off")
    axes.set_title("(c) output phases (filled: true class)", loc="left")
