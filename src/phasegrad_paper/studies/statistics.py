"""Statistics of runs over seeds, by SciPy and statsmodels.

Results over all seeds come first; what is said of the successful ones only is conditional, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy  # its rooms are loaded where they are first used: that of statistics takes half a second
from numpy.typing import ArrayLike

RESAMPLES = 2000
#: Means of fewer values have no t interval: a handful of seeds that happen to agree would seem exact.
FEWEST = 10


@dataclass(frozen=True)
class Test:
    """A statistic with its p value; both are NaN where there is too little data, and ``remark`` says so."""

    statistic: float
    p: float
    remark: str = ""

    __test__ = False  # not a test of ours, for pytest

    @classmethod
    def of(cls, result: Any) -> Test:
        """Return what a function of SciPy or statsmodels found."""
        return cls(float(result.statistic), float(result.pvalue))


TOO_FEW = Test(math.nan, math.nan, "too few different values")


@dataclass(frozen=True)
class Interval:
    """An estimate with the ends of its 95 % interval."""

    estimate: float
    low: float
    high: float

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, with None where there is no number."""
        return {"mean": plain(self.estimate), "low": plain(self.low), "high": plain(self.high)}


def welch(first: ArrayLike, second: ArrayLike) -> Test:
    """Return Welch's t test of two samples with different variances."""
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if min(len(a), len(b)) < 2 or (np.ptp(a) == 0 and np.ptp(b) == 0):
        return TOO_FEW
    moments = (a.mean(), a.std(ddof=1), len(a), b.mean(), b.std(ddof=1), len(b))
    return Test.of(scipy.stats.ttest_ind_from_stats(*moments, equal_var=False))


def paired_t(first: ArrayLike, second: ArrayLike) -> Test:
    """Return the paired t test."""
    difference = np.round(np.subtract(first, second), 9)
    if len(difference) < 2 or np.ptp(difference) == 0:
        return TOO_FEW
    return Test.of(scipy.stats.ttest_1samp(difference, 0.0))


def wilcoxon(first: ArrayLike, second: ArrayLike) -> Test:
    """Return Wilcoxon's signed-rank test, ties between the arms left out."""
    difference = np.round(np.subtract(first, second), 9)
    difference = difference[difference != 0]
    if len(difference) < 2:
        return TOO_FEW
    return Test.of(scipy.stats.wilcoxon(difference, method="approx" if len(difference) > 50 else "auto"))


def fisher(successes: tuple[int, int], trials: tuple[int, int]) -> Test:
    """Return Fisher's exact test of two rates."""
    return Test.of(scipy.stats.fisher_exact([[won, all_ - won] for won, all_ in zip(successes, trials, strict=True)]))


def cochran_q(success: ArrayLike) -> Test:
    """Return Cochran's Q of successes, shape (seeds, conditions).

    Where every seed has the same outcome in all conditions the statistic is 0 / 0: there is nothing to test.
    """
    from statsmodels.stats.contingency_tables import cochrans_q

    outcome = np.asarray(success, dtype=int)
    rows = outcome.sum(axis=1)
    if np.all((rows == 0) | (rows == outcome.shape[1])):
        return Test(math.nan, math.nan, "degenerate: no seed changes with the condition, Q is 0 / 0")
    return Test.of(cochrans_q(outcome))


def rate(success: ArrayLike) -> Interval:
    """Return the share of successes with Wilson's interval."""
    from statsmodels.stats.proportion import proportion_confint

    outcome = np.asarray(success, dtype=bool)
    low, high = proportion_confint(int(outcome.sum()), len(outcome), method="wilson")
    return Interval(float(outcome.mean()), float(low), float(high))


def mean(values: ArrayLike) -> Interval:
    """Return the mean with a bootstrap interval (percentiles, always the same resamples)."""
    sample = np.asarray(values, dtype=float)
    if len(sample) == 0:
        return Interval(math.nan, math.nan, math.nan)
    low, high = np.percentile(_resamples(len(sample)) @ sample, (2.5, 97.5))
    return Interval(float(sample.mean()), float(low), float(high))


@cache
def _resamples(count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the weights of all values in every resample, (RESAMPLES, count)."""
    return np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), RESAMPLES) / count


def t_interval(values: ArrayLike) -> Interval:
    """Return the mean with its t interval; without one of fewer than `FEWEST` values."""
    sample = np.asarray(values, dtype=float)
    if len(sample) < FEWEST:
        return Interval(float(sample.mean()) if len(sample) else math.nan, math.nan, math.nan)
    half = scipy.stats.t.ppf(0.975, len(sample) - 1) * sample.std(ddof=1) / math.sqrt(len(sample))
    return Interval(float(sample.mean()), float(sample.mean() - half), float(sample.mean() + half))


def welch_interval(first: ArrayLike, second: ArrayLike) -> Interval:
    """Return the difference of two means with Welch's interval; without one of fewer than `FEWEST` values each."""
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if min(len(a), len(b)) == 0:
        return Interval(math.nan, math.nan, math.nan)
    estimate = float(a.mean() - b.mean())
    if min(len(a), len(b)) < FEWEST:
        return Interval(estimate, math.nan, math.nan)
    errors = np.array([sample.var(ddof=1) / len(sample) for sample in (a, b)])
    if not errors.any():
        return Interval(estimate, estimate, estimate)
    freedom = errors.sum() ** 2 / np.sum(errors**2 / [len(a) - 1, len(b) - 1])
    half = float(scipy.stats.t.ppf(0.975, freedom) * math.sqrt(errors.sum()))
    return Interval(estimate, estimate - half, estimate + half)


def paired_rate_interval(first: ArrayLike, second: ArrayLike) -> Interval:
    """Return the difference of two rates of paired outcomes, with the interval of Bonett and Price (2012).

    It is Wald's with one more pair of each discordant kind, so that a few pairs without any discordant one do not seem
    to prove that the rates are equal.
    """
    a, b = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if len(a) == 0:
        return Interval(math.nan, math.nan, math.nan)
    p, q = ((int(np.sum(only)) + 1) / (len(a) + 2) for only in (a & ~b, b & ~a))
    half = scipy.stats.norm.ppf(0.975) * math.sqrt((p + q - (p - q) ** 2) / (len(a) + 2))
    return Interval(float(a.mean() - b.mean()), p - q - half, p - q + half)


def identical(measured: Sequence[float], known: Sequence[float], tolerance: float = 1e-6) -> tuple[int, int]:
    """Return how many of the seeds that both have agree, and how many there are; published values have six digits."""
    shared = min(len(measured), len(known))
    return int(np.sum(np.abs(np.subtract(measured[:shared], known[:shared])) < tolerance)), shared


def oriented(accuracy: ArrayLike) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return max(a, 1 - a): the accuracy of the classifier or of its inversion, whichever is right more often."""
    values = np.asarray(accuracy, dtype=float)
    return np.maximum(values, 1 - values)


def plain(number: float) -> float | None:
    """Return the number for JSON, None where it is not one."""
    return number if math.isfinite(number) else None
