"""Measures: numbers with what stands behind them, and the quantities of a study that they are values of.

A quantity has words and a way to its value; rules put bounds on quantities (`phasegrad_paper.studies.rules`), and every
sentence about a claim is made of their words and values. Of nothing there is no value: the mean of an empty group is
NaN, which no rule takes for an answer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from importlib import resources
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from phasegrad_paper.studies import statistics

Results: TypeAlias = Mapping[str, Any]
Pairs: TypeAlias = Sequence[tuple[Sequence[float], Sequence[float]]]


@cache
def published(name: str) -> dict[str, Any]:
    """Return the published figures of one file of the package; they are shared, so nobody may change them."""
    text = resources.files("phasegrad_paper.studies").joinpath("published", f"{name}.json").read_text(encoding="utf-8")
    figures: dict[str, Any] = json.loads(text)
    return figures


class Unit(Enum):
    """How the values of a quantity read."""

    NUMBER = "{:.4g}", 1
    SMALL = "{:.1e}", 1
    DIGITS = "{:.6f}", 1
    PERCENT = "{:.1f} %", 100
    POINTS = "{:+z.1f} points", 100
    DEGREES = "{:.1f} degrees", 180 / math.pi
    SHARE = "{:g} % of them", 100

    def text(self, value: float) -> str:
        """Return a value as words."""
        form, factor = self.value
        return str(form).format(factor * value)

    def plain(self, value: float) -> str:
        """Return a bound as words: without the sign of a difference, and without the unit of zero."""
        return "0" if value == 0 else self.text(value).lstrip("+")

    def width(self, value: float) -> str:
        """Return a distance as words; that of two percentages is in points."""
        return f"{100 * value:.3g} points" if self in (Unit.PERCENT, Unit.POINTS) else self.text(value)


@dataclass(frozen=True)
class Measure:
    """A number and what stands behind it; NaN where there is nothing to measure.

    ``n`` values it is made of, or things counted; ``low`` and ``high``, the ends of its 95 % interval if it has one;
    ``extreme`` if it is the "largest" or "smallest" of its values, which more values can only push further;
    ``complete`` if it is made of all seeds, which `Quantity.measure` finds out.
    """

    value: float
    n: int | None = None
    low: float = math.nan
    high: float = math.nan
    extreme: str = ""
    complete: bool = True

    @property
    def has_interval(self) -> bool:
        """Whether both ends of its interval are numbers."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @classmethod
    def share(cls, outcomes: ArrayLike) -> Measure:
        """Return how many of some outcomes are true."""
        return cls.mean(np.asarray(outcomes, dtype=bool))

    @classmethod
    def mean(cls, values: ArrayLike) -> Measure:
        """Return the mean."""
        return cls(average(values), np.size(values))

    @classmethod
    def largest(cls, values: ArrayLike) -> Measure:
        """Return the largest value."""
        return cls(float(np.max(values)) if np.size(values) else math.nan, np.size(values), extreme="largest")

    @classmethod
    def smallest(cls, values: ArrayLike) -> Measure:
        """Return the smallest value."""
        return cls(float(np.min(values)) if np.size(values) else math.nan, np.size(values), extreme="smallest")

    @classmethod
    def identical(cls, pairs: Pairs, tolerance: float = 1e-6) -> Measure:
        """Return how many measured values are the stored ones, over pairs of (measured, stored) that begin alike."""
        counts = [statistics.identical(measured, stored, tolerance) for measured, stored in pairs]
        same, compared = sum(same for same, _ in counts), sum(of for _, of in counts)
        return cls(same / compared if compared else math.nan, compared)

    @classmethod
    def spread(cls, values: ArrayLike) -> Measure:
        """Return the mean with its t interval."""
        return cls.of(statistics.t_interval(values), np.size(values))

    @classmethod
    def of(cls, interval: statistics.Interval, n: int) -> Measure:
        """Return an estimate with its interval."""
        return cls(interval.estimate, n, interval.low, interval.high)


@dataclass(frozen=True)
class Quantity:
    """Something that a study measures.

    ``words`` are a noun without its article, "largest residual of Table 1"; ``of`` leads from the results of the
    study's pieces to the measure; with ``interval`` rules look at the 95 % interval instead of the value.
    """

    words: str
    of: Callable[[Results], Measure]
    unit: Unit = Unit.NUMBER
    interval: bool = False

    @classmethod
    def count(cls, words: str, outcomes: Callable[[Results], ArrayLike]) -> Quantity:
        """Return how many of some outcomes are true."""
        return cls(words, lambda results: Measure.share(outcomes(results)), Unit.SHARE)

    @classmethod
    def mean(cls, words: str, values: Callable[[Results], ArrayLike], unit: Unit = Unit.PERCENT) -> Quantity:
        """Return the mean of some values."""
        return cls(words, lambda results: Measure.mean(values(results)), unit)

    @classmethod
    def largest(cls, words: str, values: Callable[[Results], ArrayLike], unit: Unit = Unit.SMALL) -> Quantity:
        """Return the largest of some values."""
        return cls(words, lambda results: Measure.largest(values(results)), unit)

    @classmethod
    def smallest(cls, words: str, values: Callable[[Results], ArrayLike], unit: Unit = Unit.PERCENT) -> Quantity:
        """Return the smallest of some values."""
        return cls(words, lambda results: Measure.smallest(values(results)), unit)

    @classmethod
    def met(cls, words: str, pairs: Callable[[Results], Pairs], tolerance: float = 1e-6) -> Quantity:
        """Return how many stored values come out, by pairs of (measured, stored)."""
        return cls(words, lambda results: Measure.identical(pairs(results), tolerance), Unit.SHARE)

    @classmethod
    def difference(cls, words: str, values: Callable[[Results], ArrayLike]) -> Quantity:
        """Return the mean of some differences with its t interval."""
        return cls(words, lambda results: Measure.spread(values(results)), Unit.POINTS, interval=True)

    def measure(self, results: Results, partial: Collection[str] = ()) -> Measure:
        """Return its measure; complete if it was made without looking at a result named in ``partial``."""
        reading = _Reading(results)
        found = self.of(reading)
        return replace(found, complete=not reading.seen.intersection(partial))

    def text(self, measure: Measure) -> str:
        """Return the measure as words, such as "47 of 100" or "94.3 % (n = 47)"."""
        if not math.isfinite(measure.value):
            return "not measured"
        if self.unit is Unit.SHARE and measure.n is not None:
            return f"{round(measure.value * measure.n)} of {measure.n}"
        parts = []
        if measure.has_interval:
            low = self.unit.text(measure.low).split()[0]
            parts.append(f"95 % interval {low} to {self.unit.text(measure.high)}")
        if measure.n is not None:
            parts.append(f"n = {measure.n}")
        text = self.unit.text(measure.value)
        return f"{text} ({', '.join(parts)})" if parts else text


class _Reading(Mapping[str, Any]):
    """Results that note which of them were looked at, or looked for."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self.seen: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.seen.add(name)
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        raise TypeError("A quantity must name its results: those that fewer seeds leave out would go unnoticed.")

    def __len__(self) -> int:
        return len(self._results)


def average(values: ArrayLike) -> float:
    """Return the mean as a number, NaN of nothing."""
    array = np.asarray(values, dtype=float)
    return float(array.mean()) if array.size else math.nan
