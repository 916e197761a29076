"""What `phasegrad train` and `phasegrad predict` show, and the picture of a classifier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from phasegrad._files import printable
from phasegrad._validation import FloatArray, counted
from phasegrad.cli.tables.layout import table
from phasegrad.models import Prediction
from phasegrad.objectives import ClassObjective
from phasegrad.pictures import CYCLE, Ring, draw_confusion, draw_rings, drawn, letter
from phasegrad.runs import SUCCESS, ClassifierRun, ImageRun, RegressorRun
from phasegrad.training import History, Training

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROWS_SHOWN = 20


def training_table(seeds: Sequence[int], result: Training) -> RenderableType:
    """Return a table of the runs, the first ones if they are many, and lines of summary."""
    history, plan = result.history, result.plan
    rows = [
        (
            seed, f"{history.test_accuracy[r, 0]:.1%}", f"{history.test_accuracy[r, -1]:.1%}",
            f"{history.train_accuracy[r, -1]:.1%}", f"{history.train_loss[r, -1]:.4f}", int(history.skipped[r].sum()),
        )
        for r, seed in enumerate(seeds)
    ]  # fmt: skip
    title = f"{counted(len(seeds), 'run')}, {counted(result.state.epoch, 'epoch')}, learning {', '.join(plan.rates)}"
    first, last = history.test_accuracy[:, 0], history.test_accuracy[:, -1]
    won = int(np.sum(last > SUCCESS))
    lines = [_summary(last, first), f"above {SUCCESS:.0%}: {won} of {counted(len(seeds), 'seed')}"]
    parts = {"training": (history.train_unsettled[:, 1:], history.train_unstable[:, 1:])}
    parts["test"] = (history.test_unsettled[:, -1:], history.test_unstable[:, -1:])
    for part, (unsettled, unstable) in parts.items():
        if unsettled.any() or unstable.any():
            lines.append(
                f"{counted(int(unsettled.sum()), f'{part} sample')} without an equilibrium, {int(unstable.sum())} with "
                "an unstable one (counted as wrong)"
            )
    inverted = len(result.networks[0].outputs) == 2 and last.min() < 1 - SUCCESS
    if inverted and isinstance(plan.objective, ClassObjective) and not plan.objective.consistent:
        lines.append(_WHY)
    headings = ("seed", "untrained", "test", "train (running)", "train loss", "skipped")
    return Group(_first(title, headings, rows), Text("\n".join(lines)))


_WHY = (
    "Why seeds fail: the paper's cost and its decision disagree, so about half of the random starts end as inverted "
    "classifiers (phasegrad reproduce mechanism shows how). Add --init spectral to start on the right side, or "
    "--decision nearest --learn omega=0.01,coupling=0.5 to decide as the cost asks."
)


def classifier_table(runs: Sequence[ClassifierRun]) -> RenderableType:
    """Return a table of the runs and a line of summary."""
    first, rows = runs[0], []
    for run in runs:
        history = run.classifier.history_
        shares = (f"{share:.1%}" for share in (run.untrained_accuracy, run.test_accuracy, history.train_accuracy[-1]))
        shortened = f"{int(history.shortened.sum())} of {int(history.updates.sum())}"
        rows.append((run.seed, *shares, int(history.skipped[1:].sum()), shortened, run.unsettled))
    shape, epochs = _shape(first.classifier), counted(first.epochs, "epoch")
    title = f"{first.data.name}: {counted(len(runs), 'run')} of a {shape} network, {epochs}"
    headings = ("seed", "untrained", "test", "train (running)", "skipped", "shortened", "unsettled")
    scores = np.array([[run.test_accuracy, run.untrained_accuracy, run.majority_accuracy] for run in runs])
    summary = f"{_summary(*scores[:, :2].T)}; the most frequent class alone {scores[:, 2].mean():.1%}"
    return Group(_first(title, headings, rows), Text(summary))


def regressor_table(runs: Sequence[RegressorRun]) -> RenderableType:
    """Return a table of the runs and a line of summary."""
    first, rows = runs[0], []
    for run in runs:
        history = run.regressor.history_
        shortened = f"{int(history.shortened.sum())} of {int(history.updates.sum())}"
        figures = (f"{run.untrained_score:.3f}", f"{run.score:.3f}", f"{run.error:.4g}")
        rows.append((run.seed, *figures, int(history.skipped[1:].sum()), shortened, run.unsettled))
    title = f"{first.data.name}: {counted(len(runs), 'run')} of a {_shape(first.regressor)} network, predicting "
    title += f"{printable(first.data.target)}, {counted(first.epochs, 'epoch')}"
    headings = ("seed", "untrained R2", "test R2", "test error (rms)", "skipped", "shortened", "unsettled")
    scores = np.array([run.score for run in runs])
    spread = f"mean {scores.mean():.3f}, worst {scores.min():.3f}, best {scores.max():.3f}"
    found = spread if len(runs) > 1 else f"{scores[0]:.3f}"
    return Group(_first(title, headings, rows), Text(f"test R2: {found} (0 is no better than the mean)"))


def _shape(estimator: Any) -> str:
    """Return the layers of an estimator's network: 4-50-3."""
    network = estimator.network_
    sizes = len(network.inputs), *np.atleast_1d(estimator.hidden), len(network.outputs)
    return "-".join(str(size) for size in sizes)


def image_table(runs: Sequence[ImageRun]) -> RenderableType:
    """Return a table of the runs and a line of summary."""
    rows = []
    for run in runs:
        history = run.history
        shares = (run.untrained_accuracy, run.test_accuracy, float(history.train_accuracy[0, -1]))
        counts = (history.skipped[0, 1:].sum(), history.test_unsettled[0, -1], history.test_unstable[0, -1])
        rows.append((run.seed, *(f"{x:.2%}" for x in shares), *map(int, counts), f"{run.seconds_per_epoch:.2f} s"))
    first = runs[0].training
    layout = str(first.network.graph.layout).replace(" ", "")
    title = f"{runs[0].data.name}: {counted(len(runs), 'run')} of {layout}, {counted(first.state.epoch, 'epoch')}"
    headings = ("seed", "untrained", "test", "train (running)", "skipped", "unsettled", "unproved", "an epoch")
    scores = np.array([[run.test_accuracy, run.untrained_accuracy] for run in runs])
    return Group(_first(title, headings, rows), Text(_summary(*scores.T)))


def prediction_table(answer: Prediction, outputs: Sequence[str], dropped: int = 0) -> RenderableType:
    """Return the answer for every row, the first ones if they are many, and how many had none or no stable state."""
    stable = answer.equilibrium.stable
    named, values = answer.values is None, [] if answer.values is None else answer.values.tolist()
    answers = [[name] for name in answer.names] if named else [[f"{x:.6g}" for x in row] for row in values]
    states = [status.name.lower() for status in answer.equilibrium.status]
    rows = [[k, *given, state] for k, (given, state) in enumerate(zip(answers, states, strict=True), 1)]
    headings = ("row", *(("class",) if named else outputs), "state")
    lines = [", ".join(f"{count} x {printable(name)}" for name, count in Counter(answer.names).items())]
    lines.append(f"{int(np.sum(~stable))} of {stable.size} without a stable equilibrium")
    if dropped:
        lines.append(f"{counted(dropped, 'row')} with missing values left out")
    shown = _first(counted(stable.size, "sample"), headings, rows)
    return Group(shown, Text("\n".join(line for line in lines if line)))


def _first(title: str, headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> RenderableType:
    """Return a table of the first rows, and how many there are beyond them."""
    more = len(rows) - _ROWS_SHOWN
    return table(title, headings, rows[:_ROWS_SHOWN], f"... {more} more" if more > 0 else "")


def _summary(scores: FloatArray, untrained: FloatArray) -> str:
    """Return the test accuracy in words: of many runs the mean and how far they lie apart."""
    spread = f"mean {scores.mean():.1%}, worst {scores.min():.1%}, best {scores.max():.1%}"
    found = spread if len(scores) > 1 else f"{scores[0]:.1%}"
    return f"test accuracy: {found}; untrained {untrained.mean():.1%}"


def draw_classifier(run: ClassifierRun, path: Path) -> None:
    """Draw a trained classifier: confusion matrix, learning curve, and the phases of its outputs on the circle."""
    with drawn(path, 12.0, 3.9, 1, 3) as (_, (confusion, curve, circle)):
        _draw_confusion(confusion, run)
        _draw_learning(curve, run.classifier.history_)
        rings = [
            Ring(name, run.output_phases[:, k], CYCLE[k % len(CYCLE)], run.data.y_test == k)
            for k, name in enumerate(run.data.classes)
        ]
        draw_rings(circle, rings)
        letter(circle, "c", "output phases (filled: true class)")


def draw_regressor(run: RegressorRun, path: Path) -> None:
    """Draw a trained regressor: predictions of the test part against the truth, and the learning curve."""
    data, history = run.data, run.regressor.history_
    with drawn(path, 9.0, 4.2, 1, 2) as (_, (answers, curve)):
        ends = [min(data.y_test.min(), run.predicted.min()), max(data.y_test.max(), run.predicted.max())]
        answers.plot(ends, ends, color="#999999", linewidth=0.8)
        answers.scatter(data.y_test, run.predicted, s=14, color=CYCLE[0], alpha=0.7, linewidths=0)
        answers.set(xlabel=f"{data.target}, true", ylabel="predicted")
        letter(answers, "a", f"{data.name}, test: R2 {run.score:.3f}")
        answers.set_aspect("equal", adjustable="datalim")
        history.plot(curve, score="loss")
        letter(curve, "b", "learning")


def draw_images(run: ImageRun, path: Path) -> None:
    """Draw a network trained on images: confusion matrix and learning curve."""
    with drawn(path, 9.0, 4.2, 1, 2) as (_, (confusion, curve)):
        _draw_confusion(confusion, run)
        _draw_learning(curve, run.history)


def _draw_confusion(axes: Axes, run: ClassifierRun | ImageRun) -> None:
    draw_confusion(axes, run.confusion(), run.data.classes)
    letter(axes, "a", f"{run.data.name}, test: {run.test_accuracy:.1%}, untrained {run.untrained_accuracy:.1%}")


def _draw_learning(axes: Axes, history: History) -> None:
    """Draw cost and accuracy over the epochs in one panel, with one legend of both."""
    other = axes.twinx()
    handles, names = [], []
    for each, score, word in ((axes, "loss", "cost"), (other, "accuracy", "accuracy")):
        history.plot(each, score=score)
        lines, parts = each.get_legend_handles_labels()
        handles += lines
        names += [f"{word}, {part}" for part in parts]
    for legend in filter(None, (axes.get_legend(), other.get_legend())):
        legend.remove()
    other.legend(handles, names, loc="center right")
    letter(axes, "b", "learning")
