"""Rules: bounds on quantities, and what measured values say about them.

A rule is one bound or several that must all be kept. Its words ("at most 1.0e-08") are made from the bound itself.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from phasegrad_paper.studies.measures import Measure, Quantity, Results, Unit


class State(Enum):
    """What the measures say about a rule."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "not decided"
    UNMEASURED = "not measured"


@dataclass(frozen=True)
class Bound:
    """A quantity and where it must lie; made by `at_least`, `at_most`, `above`, `below`, `within`, `every`, `none`.

    Of a quantity with an interval the whole interval must lie there: a test at the 5 % level, of a difference if the
    bound is zero, of equivalence (two one-sided tests) if it is a range. Too few values have no interval and decide
    nothing. Without an interval, fewer seeds than there could be decide only what more of them cannot change.
    """

    quantity: Quantity
    least: float = -math.inf
    most: float = math.inf
    strict: bool = False  # whether the ends themselves are outside
    why: str = ""  # where the bound comes from

    @property
    def asked(self) -> str:
        """Where the quantity must lie, and where that comes from, in words."""
        return f"{self.place}, {self.why}" if self.why else self.place

    @property
    def place(self) -> str:
        """Where the quantity must lie, in words."""
        unit = self.quantity.unit
        if math.isfinite(self.least) and math.isfinite(self.most):
            words = f"within {unit.width((self.most - self.least) / 2)} of {unit.plain((self.most + self.least) / 2)}"
        elif unit is Unit.SHARE and self.least == 1:
            words = "all of them"
        elif unit is Unit.SHARE and self.most == 0:
            words = "none of them"
        elif math.isfinite(self.least):
            words = f"{'above' if self.strict else 'at least'} {unit.plain(self.least)}"
        else:
            words = f"{'below' if self.strict else 'at most'} {unit.plain(self.most)}"
        return f"{words} with the whole 95 % interval" if self.quantity.interval else words

    def contains(self, value: float) -> bool:
        """Whether a value lies inside; NaN does not."""
        return self.least < value < self.most if self.strict else self.least <= value <= self.most

    def state(self, measure: Measure) -> State:
        """Return what a measure says about the bound."""
        if not math.isfinite(measure.value):
            return State.UNMEASURED
        if self.quantity.interval:
            if not measure.has_interval:
                return State.UNDECIDED
            if self.contains(measure.low) and self.contains(measure.high):
                return State.HOLDS
            return State.FAILS if measure.high < self.least or measure.low > self.most else State.UNDECIDED
        if measure.complete or self._is_final(measure):
            return State.HOLDS if self.contains(measure.value) else State.FAILS
        return State.UNDECIDED

    def _is_final(self, measure: Measure) -> bool:
        """Whether no further seed can change the answer."""
        if self.quantity.unit is Unit.SHARE:  # one exception ends "all" and "none"
            return (self.least == 1 and measure.value < 1) or (self.most == 0 and measure.value > 0)
        inside = self.contains(measure.value)
        if measure.extreme == "largest":
            return measure.value > self.most or (inside and self.most == math.inf)
        if measure.extreme == "smallest":
            return measure.value < self.least or (inside and self.least == -math.inf)
        return False


Rule: TypeAlias = Bound | tuple[Bound, ...]


def bounds_of(rule: Rule | None) -> tuple[Bound, ...]:
    """Return all bounds of a rule, which must all be kept; none of no rule."""
    return () if rule is None else (rule,) if isinstance(rule, Bound) else rule


def at_least(quantity: Quantity, bound: float, why: str = "") -> Bound:
    """Ask for a value of at least ``bound``."""
    return Bound(quantity, least=bound, why=why)


def at_most(quantity: Quantity, bound: float, why: str = "") -> Bound:
    """Ask for a value of at most ``bound``."""
    return Bound(quantity, most=bound, why=why)


def above(quantity: Quantity, bound: float, why: str = "") -> Bound:
    """Ask for a value above ``bound``."""
    return Bound(quantity, least=bound, strict=True, why=why)


def below(quantity: Quantity, bound: float, why: str = "") -> Bound:
    """Ask for a value below ``bound``."""
    return Bound(quantity, most=bound, strict=True, why=why)


def within(quantity: Quantity, tolerance: float, of: float = 0.0, why: str = "") -> Bound:
    """Ask for a value within ``tolerance`` of a number."""
    return Bound(quantity, of - tolerance, of + tolerance, why=why)


def every(quantity: Quantity) -> Bound:
    """Ask for all of what a share counts."""
    return at_least(quantity, 1.0)


def none(quantity: Quantity) -> Bound:
    """Ask for nothing of what a share counts."""
    return at_most(quantity, 0.0)


def all_of(*bounds: Bound) -> Rule:
    """Ask for all of these bounds."""
    return bounds


@dataclass(frozen=True)
class Tested:
    """A bound with the measure that was tested against it."""

    bound: Bound
    measure: Measure

    @property
    def state(self) -> State:
        """What the measure says."""
        return self.bound.state(self.measure)

    @property
    def kept(self) -> bool:
        """Whether what was measured, be it of few seeds, keeps the bound."""
        if self.bound.quantity.interval:
            return self.state is not State.FAILS
        return self.bound.contains(self.measure.value)


def evaluate(rule: Rule | None, results: Results, partial: Collection[str] = ()) -> tuple[Tested, ...]:
    """Measure every quantity of a rule."""
    return tuple(Tested(bound, bound.quantity.measure(results, partial)) for bound in bounds_of(rule))


def state_of(tested: Collection[Tested]) -> State:
    """Return the state of several bounds: that of the worst."""
    worst_first = (State.FAILS, State.UNMEASURED, State.UNDECIDED)
    return next((state for state in worst_first if any(each.state is state for each in tested)), State.HOLDS)
