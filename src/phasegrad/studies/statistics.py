"""Statistics of runs over seeds, by SciPy and statsmodels.

Results over all seeds come first; what is said of the successful ones only is conditional, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

RESAMPLES = 2000


@dataclass(frozen=True)
class Test:
    """A statistic with its p value; both are NaN where there is too little data, and ``remark`` says so."""

    statistic: float
    p: float
    remark: str = ""

    __test__ = False  # not a test of ours, for pytest

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, with None where there is no number."""
        return {"statistic": plain(self.statistic), "p": plain(self.p), "remark": self.remark}


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
        return Test(math.nan, math.nan, "too few different values")
    result = stats.ttest_ind(a, b, equal_var=False)
    return Test(float(result.statistic), float(result.pvalue))


def paired_t(first: ArrayLike, second: ArrayLike) -> Test:
    """Return the paired t test."""
    difference = np.subtract(first, second)
    if len(difference) < 2 or np.ptp(difference) == 0:
        return Test(math.nan, math.nan, "too few different values")
    result = stats.ttest_rel(first, second)
    return Test(float(result.statistic), float(result.pvalue))


def wilcoxon(first: ArrayLike, second: ArrayLike) -> Test:
    """Return Wilcoxon's signed-rank test, ties between the arms left out."""
    difference = np.round(np.subtract(first, second), 9)
    difference = difference[difference != 0]
    if len(difference) < 2:
        return Test(math.nan, math.nan, "too few different values")
    result = stats.wilcoxon(difference, method="approx" if len(difference) > 50 else "auto")
    return Test(float(result.statistic), float(result.pvalue))


def fisher(successes: tuple[int, int], trials: tuple[int, int]) -> Test:
    """Return Fisher's exact test of two rates."""
    table = [[won, all_ - won] for won, all_ in zip(successes, trials, strict=True)]
    result = stats.fisher_exact(table)
    return Test(float(result.statistic), float(result.pvalue))


def cochran_q(success: ArrayLike) -> Test:
    """Return Cochran's Q of successes, shape (seeds, conditions).

    Where every seed has the same outcome in all conditions the statistic is 0 / 0: there is nothing to test.
    """
    from statsmodels.stats.contingency_tables import cochrans_q

    outcome = np.asarray(success, dtype=int)
    rows = outcome.sum(axis=1)
    if np.all((rows == 0) | (rows == outcome.shape[1])):
        return Test(math.nan, math.nan, "degenerate: no seed changes with the condition, Q is 0 / 0")
    result = cochrans_q(outcome)
    return Test(float(result.statistic), float(result.pvalue))


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
    if len(sample) == 1 or np.ptp(sample) == 0:
        return Interval(float(sample.mean()), float(sample.mean()), float(sample.mean()))
    result = stats.bootstrap((sample,), np.mean, n_resamples=RESAMPLES, method="percentile", rng=0)
    ends = result.confidence_interval
    return Interval(float(sample.mean()), float(ends.low), float(ends.high))


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
