"""How an arm is summed up: every accuracy with its controls beside it, all seeds first, successes second."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad.studies import statistics
from phasegrad.studies.arms import THRESHOLD
from phasegrad.studies.study import Table, Verdict

Figures = Mapping[str, Any]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

COLUMNS = (
    "condition",
    "seeds",
    "mean of all, %",
    "95 % interval",
    "successes",
    "95 % interval of the rate, %",
    "mean of successes, %",
    "untrained, %",
    "max(a, 1 - a), %",
    "nearest target, %",
    "majority class, %",
    "logistic regression, %",
)
NOTE = (
    "Accuracies on the test part, final epoch unless the condition says otherwise. Intervals: bootstrap of the mean, "
    "Wilson for the rate. Controls: the untrained network; max(a, 1 - a), the accuracy of the classifier or of its "
    "inversion; the decision that the cost asks for (nearest target); always the more frequent class of the training "
    "part; logistic regression on the same splits."
)


def succeeded(figures: Figures, by: str = "test") -> BoolArray:
    """Return which seeds exceed 60 %, judged by test accuracy or by running training accuracy."""
    return np.asarray(figures[by], dtype=float) > THRESHOLD


def of_successes(figures: Figures, by: str = "test", score: str = "test") -> FloatArray:
    """Return the scores of the successful seeds."""
    return np.asarray(figures[score], dtype=float)[succeeded(figures, by)]


def mean(values: ArrayLike) -> float:
    """Return the mean, NaN of nothing."""
    array = np.asarray(values, dtype=float)
    return float(array.mean()) if array.size else math.nan


def percent(value: float, digits: int = 1) -> str:
    """Return a share as text, such as 94.3 %."""
    return f"{100 * value:.{digits}f} %" if math.isfinite(value) else "none"


def p_value(p: float) -> str:
    """Return a p value as text."""
    if not math.isfinite(p):
        return "not defined"
    return f"{p:.2g}" if p >= 0.001 else f"{p:.1e}"


def row(label: str, figures: Figures, by: str = "test", score: str = "test", logistic: ArrayLike = ()) -> list[Any]:
    """Return one row of an accuracy table; columns that were not published stay empty."""
    values = np.asarray(figures[score], dtype=float)
    won = succeeded(figures, by)
    whole, rate = statistics.mean(values), statistics.rate(won)
    regression = np.asarray(logistic, dtype=float)[: len(values)]
    controls = {name: figures.get(name, ()) for name in ("untrained", "nearest", "majority")}
    return [
        label,
        len(values),
        cell(whole.estimate),
        f"{100 * whole.low:.1f} to {100 * whole.high:.1f}",
        int(won.sum()),
        f"{100 * rate.low:.0f} to {100 * rate.high:.0f}",
        cell(mean(values[won])),
        cell(mean(controls["untrained"])),
        cell(mean(statistics.oriented(values))),
        cell(mean(controls["nearest"])),
        cell(mean(controls["majority"])),
        cell(mean(regression)),
    ]


def table(name: str, title: str, rows: Sequence[Sequence[Any]], note: str = "") -> Table:
    """Return an accuracy table."""
    return Table(name, title, COLUMNS, [list(each) for each in rows], f"{note} {NOTE}".strip())


def comparison(name: str, title: str, first: Figures, second: Figures) -> Table:
    """Return the tests between two arms that share their seeds: over all seeds first, then of the converged ones."""
    won = [succeeded(figures, "train") for figures in (first, second)]
    both = won[0] & won[1]
    pairs = [np.asarray(figures["test"])[both] for figures in (first, second)]
    counts = int(won[0].sum()), int(won[1].sum())
    tests = {
        "all seeds: Welch": statistics.welch(first["test"], second["test"]),
        "all seeds: Wilcoxon, paired by seed": statistics.wilcoxon(first["test"], second["test"]),
        "convergence rate: Fisher": statistics.fisher(counts, (len(won[0]), len(won[1]))),
        "converged seeds only: Welch": statistics.welch(of_successes(first, "train"), of_successes(second, "train")),
        f"the {int(both.sum())} seeds converged in both arms: paired t": statistics.paired_t(*pairs),
    }
    rows = [
        [label, statistics.plain(test.statistic), statistics.plain(test.p), test.remark]
        for label, test in tests.items()
    ]
    note = "The last two are conditional on success, which the initial order of the outputs decides."
    return Table(name, title, ("test", "statistic", "p", "remark"), rows, note)


def judged(holds: bool, changed: bool) -> Verdict:
    """Return the verdict of a claim that a control may give another meaning."""
    if not holds:
        return Verdict.NOT_REPRODUCED
    return Verdict.CONTROLLED if changed else Verdict.REPRODUCED


def unmoved(figures: Figures) -> int:
    """Return how many seeds have the test accuracy of their untrained network."""
    return int(np.sum(np.abs(np.subtract(figures["test"], figures["untrained"])) < 1e-9))


def agreement(counts: tuple[int, int]) -> str:
    """Return "300 of 300 per-seed values identical"."""
    same, of = counts
    return f"{same} of {of} per-seed values identical"


def add(*counts: tuple[int, int]) -> tuple[int, int]:
    """Return the sum of several counts of agreement."""
    return sum(same for same, _ in counts), sum(of for _, of in counts)


def cell(value: float) -> float | None:
    """Return a share as a number of per cent for a table, None where there is none."""
    return round(100 * float(value), 2) if math.isfinite(value) else None
