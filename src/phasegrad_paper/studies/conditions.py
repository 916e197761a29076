"""Conditions: the arms of a study with their names and stored values, their pieces, quantities and tables.

All seeds come first; what is said of the successful ones only is conditional, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import BoolArray, FloatArray
from phasegrad.runs import SUCCESS
from phasegrad_paper.studies import statistics
from phasegrad_paper.studies.arms import Arm
from phasegrad_paper.studies.logistic import logistic_piece
from phasegrad_paper.studies.measures import Measure, Pairs, Quantity, Results, Unit, average, published
from phasegrad_paper.studies.piece import Piece
from phasegrad_paper.studies.study import Table

Run: TypeAlias = Results
Group: TypeAlias = Callable[[Run], BoolArray]

#: The variant behind the stored files of sections 6.2 to 6.4 that hold best evaluations.
HISTORICAL = "under the edge leak, scaling by all rows, best evaluation"
LEARN = {"omega": "frequencies", "coupling": "couplings", "both": "both"}
VOWELS = {"ai": "/a i/", "ou": "/o u/"}
COLUMNS = (
    "condition", "seeds", "mean of all, %", "95 % interval", "successes", "95 % interval of the rate, %",
    "mean of successes, %", "untrained, %", "max(a, 1 - a), %", "nearest target, %", "majority class, %",
    "logistic regression, %",
)  # fmt: skip
#: What a reader needs first: the result beside its controls.
KEY = (
    "seeds", "mean of all, %", "successes", "untrained, %", "max(a, 1 - a), %", "nearest target, %",
    "logistic regression, %",
)  # fmt: skip
NOTE = (
    "Accuracies on the test part, final epoch unless the condition says otherwise. Intervals: bootstrap of the mean, "
    "Wilson for the rate. Controls: the untrained network; max(a, 1 - a), the accuracy of the classifier or of its "
    "inversion; the decision that the cost asks for (nearest target); always the more frequent class of the training "
    "part; logistic regression on the same splits."
)


SUCCESS_NOTE = "Success: final test accuracy above 60 %. As published: edge leak."


def succeeded(run: Run, by: str = "test") -> BoolArray:
    """Return which seeds exceed 60 %, by test accuracy or by another score."""
    return np.asarray(run[by], dtype=float) > SUCCESS


def converged(run: Run) -> BoolArray:
    """Return which seeds exceed 60 % by running training accuracy, as the paper's larger tables count."""
    return succeeded(run, "train")


def failed(run: Run) -> BoolArray:
    """Return which seeds do not succeed."""
    return ~succeeded(run)


def not_converged(run: Run) -> BoolArray:
    """Return which seeds do not converge."""
    return ~converged(run)


def scores(run: Run, among: Group | None = None, score: str = "test") -> FloatArray:
    """Return a score of all seeds or of a group."""
    values = np.asarray(run[score], dtype=float)
    return values if among is None else values[among(run)]


_GROUPS: dict[Group | None, str] = {
    None: "all seeds",
    succeeded: "successes",
    failed: "failed seeds",
    converged: "converged seeds",
    not_converged: "failed seeds",
}
SCORES = {"test": "", "best": " by best evaluation", "untrained": " untrained", "nearest": " by nearest target"}


@dataclass(frozen=True)
class Condition:
    """One arm of a study."""

    name: str
    arm: Arm  # as described
    stored: tuple[str, ...] = ()  # a file of published figures and keys in it, if its values were stored
    variant: Arm | None = None  # the arm behind the stored values, if that is another one
    best: bool = False  # whether best evaluations were stored
    by: str = "test"  # the score by which a seed succeeds, "test" or "train"

    @property
    def known(self) -> Run:
        """The stored scores."""
        found: Any = published(self.stored[0])
        for key in self.stored[1:]:
            found = found[key]
        return found if isinstance(found, dict) else {"test": found}


class Conditions(dict[str, Condition]):
    """The conditions of a study by the names of their results, those of a variant with "_published" after it."""

    def plan(self, seeds: int | None) -> dict[str, Piece]:
        """Return their pieces, and logistic regression on the same splits, on at most so many seeds."""
        pieces = {}
        for key, condition in self.items():
            pieces[key] = condition.arm.piece(f"{condition.name}, as described", seeds)
            if condition.variant is not None:
                pieces[f"{key}_published"] = condition.variant.piece(f"{condition.name}, as published", seeds)
        for task in dict.fromkeys(condition.arm.task for condition in self.values()):
            pieces[f"logistic_{task}"] = logistic_piece(task, seeds)
        return pieces

    # Quantities.

    def mean(self, key: str, among: Group | None = None, score: str = "test", *, interval: bool = False) -> Quantity:
        """Return the mean accuracy of all seeds or of a group."""

        def of(results: Results) -> Measure:
            return (Measure.spread if interval else Measure.mean)(scores(results[key], among, score))

        words = f"mean of {_GROUPS[among]}{SCORES[score]} ({self._name(key)})"
        return Quantity(words, of, Unit.PERCENT, interval)

    def count(self, key: str, by: str = "test") -> Quantity:
        """Return how many seeds exceed 60 %."""
        words = f"number of {'converged seeds' if by == 'train' else f'successes{SCORES[by]}'} ({self._name(key)})"
        return Quantity.count(words, lambda results: succeeded(results[key], by))

    def lead(self, first: str, second: str, among: Group | None = None) -> Quantity:
        """Return the accuracy of one arm minus that of another, seed by seed, over all or over a group of both."""

        def differences(results: Results) -> FloatArray:
            runs = results[first], results[second]
            chosen = np.logical_and(*(among(run) for run in runs)) if among else slice(None)
            return np.subtract(*(scores(run)[chosen] for run in runs))

        whose = "all seeds" if among is None else f"{_GROUPS[among]} of both"
        words = f"accuracy of {self._name(first)} minus that of {self._name(second)} ({whose})"
        return Quantity.difference(words, differences)

    def more_often(self, first: str, second: str, among: Group = succeeded) -> Quantity:
        """Return how much more often the seeds of one arm are in a group than those of another, seed by seed."""

        def of(results: Results) -> Measure:
            groups = among(results[first]), among(results[second])
            return Measure.of(statistics.paired_rate_interval(*groups), len(groups[0]))

        words = f"rate of {_GROUPS[among]} of {self._name(first)} minus that of {self._name(second)}"
        return Quantity(words, of, Unit.POINTS, interval=True)

    def still(self, *keys: str) -> Quantity:
        """Return how many seeds have exactly the test accuracy of their untrained network."""

        def unchanged(results: Results) -> BoolArray:
            changes = [np.subtract(results[key]["test"], results[key]["untrained"]) for key in keys]
            return np.abs(np.concatenate(changes)) < 1e-9

        words = f"number of seeds that score exactly as untrained ({', '.join(map(self._name, keys))})"
        return Quantity.count(words, unchanged)

    def moved(self, key: str) -> Quantity:
        """Return how far couplings moved on average."""
        words = f"mean change of a coupling ({self._name(key)})"
        return Quantity.mean(words, lambda results: results[key]["moved"], Unit.NUMBER)

    def order_agrees(self, key: str, separation: str = "separation") -> Quantity:
        """Return how often the order of the outputs, in the end or untrained, says whether a seed succeeds."""
        when = " untrained" if separation.startswith("untrained") else ""
        words = f"number of seeds where the sign of the output difference{when} tells success ({self._name(key)})"
        return Quantity.count(words, lambda r: (np.array(r[key][separation]) > 0) == succeeded(r[key]))

    def met(self, how: str, keys: Iterable[str] = (), *, described: bool = False) -> Quantity:
        """Return how many stored values come out of the arms behind them, or of the arms as described."""
        chosen = tuple(keys) or tuple(key for key, condition in self.items() if condition.stored)

        def pairs(results: Results) -> Pairs:
            found = []
            for key in chosen:
                run = results[key if described or self[key].variant is None else f"{key}_published"]
                for part, values in self[key].known.items():
                    best = self[key].best and part == "test" and not described
                    found.append((run["best" if best else part], values))
            return found

        return Quantity.met(f"number of stored values met {how}", pairs)

    def _name(self, key: str) -> str:
        return self[key].name if key in self else f"{self[key.removesuffix('_published')].name} under the variant"

    # Tables.

    def table(
        self, results: Results, name: str, title: str, note: str = "", keys: Iterable[str] = (), stored: bool = True
    ) -> Table:
        """Return the accuracy table of some or all: what was stored, the arm behind it, and the arm as described."""
        rows = []
        for key in keys or self:
            condition, run = self[key], results[key]
            logistic = results[f"logistic_{condition.arm.task}"]
            if stored and condition.stored:
                held = {part: values[: len(run["test"])] for part, values in condition.known.items()}
                rows.append(row(f"{condition.name}, published", held, condition.by))
            if stored and condition.variant is not None:
                scored = ("best", "best") if condition.best else (condition.by, "test")
                rows.append(row(f"{condition.name}, as published", results[f"{key}_published"], *scored, logistic))
            ending = ", as described" if stored and condition.stored else ""
            rows.append(row(f"{condition.name}{ending}", run, condition.by, logistic=logistic))
        return Table(name, title, COLUMNS, rows, f"{note} {NOTE}".strip(), KEY)

    def tabled(self, name: str, title: str, note: str) -> Callable[[Results], list[Table]]:
        """Return what makes the accuracy table of all conditions, the only one of a study."""
        return lambda results: [self.table(results, name, title, note)]


def row(label: str, run: Run, by: str = "test", score: str = "test", logistic: ArrayLike = ()) -> list[Any]:
    """Return one row of an accuracy table; columns that were not published stay empty."""
    values, won = scores(run, None, score), succeeded(run, by)
    whole, rate = statistics.mean(values), statistics.rate(won)
    untrained, nearest, majority = (run.get(name, ()) for name in ("untrained", "nearest", "majority"))
    regression = np.asarray(logistic, dtype=float)[: len(values)]
    controls = untrained, statistics.oriented(values), nearest, majority, regression
    intervals = f"{100 * whole.low:.1f} to {100 * whole.high:.1f}", f"{100 * rate.low:.0f} to {100 * rate.high:.0f}"
    counts = [label, len(values), cell(whole.estimate), intervals[0], int(won.sum()), intervals[1]]
    return [*counts, *cells((values[won], *controls))]


def comparison(name: str, title: str, first: Run, second: Run) -> Table:
    """Return the tests between two arms that share their seeds: over all seeds first, then of the converged ones."""
    won = [converged(run) for run in (first, second)]
    both = won[0] & won[1]
    counts = int(won[0].sum()), int(won[1].sum())
    paired = statistics.paired_t(scores(first)[both], scores(second)[both])
    tests = {
        "all seeds: Welch": statistics.welch(first["test"], second["test"]),
        "all seeds: Wilcoxon, paired by seed": statistics.wilcoxon(first["test"], second["test"]),
        "convergence rate: Fisher": statistics.fisher(counts, (len(won[0]), len(won[1]))),
        "converged seeds only: Welch": statistics.welch(*(scores(run, converged) for run in (first, second))),
        f"the {int(both.sum())} seeds converged in both arms: paired t": paired,
    }
    rows = [[label, *map(statistics.plain, (test.statistic, test.p)), test.remark] for label, test in tests.items()]
    note = "The last two are conditional on success, which the initial order of the outputs decides."
    return Table(name, title, ("test", "statistic", "p", "remark"), rows, note)


def cell(value: float) -> float | None:
    """Return a share as a number of per cent for a table, None where there is none."""
    return round(100 * float(value), 2) if math.isfinite(value) else None


def by_seed(columns: Sequence[Sequence[float]], seeds: int) -> list[list[Any]]:
    """Return a row per seed: its number, and its share in every column as a cell."""
    return [[seed, *(cell(column[seed]) for column in columns)] for seed in range(seeds)]


def cells(values: Iterable[ArrayLike]) -> list[float | None]:
    """Return the means of several lists of shares as cells."""
    return [cell(average(value)) for value in values]
