r"""Which nudge: bias against variance.

A stronger nudge moves phases farther above the noise of a meter and bends the response more. The expected cosine of the
measured gradient with the exact one weighs both: its mean is that of the nudged equilibria themselves, at a handful of
strengths, and its covariance follows from the meter (`phasegrad.measurement._noise`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from phasegrad._validation import FloatArray
from phasegrad.gradients import Nudging, Problem, Scheme, beta_for, combined, exact_slopes, settle_nudged
from phasegrad.measurement._noise import expected_cosine, factors, joined

if TYPE_CHECKING:
    from phasegrad.measurement._readouts import Readout

# Doublings of the nudge, and how often the step between the strengths that are tried is halved after that.
_DOUBLINGS, _REFINEMENTS = 40, 2
# Readings beyond which nobody waits.
_MOST_READINGS = 10**12


@dataclass(frozen=True)
class Outlook:
    """What a gradient would be under one nudge: its mean (B, P), and what noise changes; see `factors`."""

    beta: float
    exact: FloatArray
    mean: FloatArray
    first: FloatArray
    second: FloatArray

    def cosine(self, variance: float) -> float:
        """Return the cosine expected with the exact gradient, in the mean over samples."""
        factor = np.concatenate([math.sqrt(variance) * self.first, variance * self.second], axis=2)
        return float(np.mean([expected_cosine(*each) for each in zip(self.mean, self.exact, factor, strict=True)]))

    def readings(self, readout: Readout, cosine: float) -> int | None:
        """Return how many readings of each state give this cosine, None where no number does."""
        if self.cosine(readout.variance(_MOST_READINGS)) < cosine:
            return None
        low, high = 0, 1
        while self.cosine(readout.variance(high)) < cosine:
            low, high = high, 2 * high
        while high - low > max(1, high // 100):
            middle = (low + high) // 2
            low, high = (middle, high) if self.cosine(readout.variance(middle)) < cosine else (low, middle)
        return high


def best_outlook(
    problem: Problem, scheme: Scheme, nudge: str, readout: Readout, cosine: float | None = None
) -> Outlook:
    """Return the nudge with the largest expected cosine, or with the fewest readings for a cosine that is asked for."""
    if cosine is None or nudge != "frozen":
        return _best(problem, scheme, nudge, readout, readout.deviation, cosine)
    # How far the error that is frozen may be off depends on how often it is read.
    first = _best(problem, scheme, nudge, readout, 0.0, cosine)
    readings = first.readings(readout, cosine)
    if readings is None:
        return first
    return _best(problem, scheme, nudge, readout, math.sqrt(readout.variance(readings)), cosine)


def _best(
    problem: Problem, scheme: Scheme, nudge: str, readout: Readout, deviation: float, cosine: float | None
) -> Outlook:
    """Return the same among nudges that the network holds where the error of a frozen one has this deviation."""
    part, exact = _measurable(problem)
    nudging = Nudging.of(part, nudge, part.phases)
    widened = nudging.widened(part, deviation) if nudge == "frozen" else None

    def at(beta: float) -> Outlook | None:
        if widened and np.any(settle_nudged(part, scheme, beta, widened).lost(part)):
            return None
        return _outlook(part, exact, scheme, nudge, beta)

    def merit(outlook: Outlook) -> tuple[float, float]:
        if cosine is None:
            return 0.0, outlook.cosine(readout.variance(readout.readings))
        readings = outlook.readings(readout, cosine)
        return -math.inf if readings is None else -readings, outlook.cosine(readout.variance(_MOST_READINGS))

    beta, best = beta_for(part, 1e-3, scheme.order), None
    for _ in range(_DOUBLINGS):
        found = at(beta)
        if found is None and best is not None:
            break
        if found is not None and (best is None or merit(found) > merit(best)):
            best = found
        # Without noise it can only be better than with it: stronger nudges, which bend more, are not.
        if best is not None and found is not None and found.cosine(0.0) < _least(best, readout, cosine):
            break
        beta = beta / 2 if best is None else 2 * beta
    if best is None:
        raise ValueError(f"{problem.owner} found no nudge, however weak, under which all samples stay locked.")
    factor = 2.0
    for _ in range(_REFINEMENTS):
        factor = math.sqrt(factor)
        near = [found for beta in (best.beta / factor, best.beta * factor) if (found := at(beta)) is not None]
        best = max([best, *near], key=merit)
    return best


def given_outlook(problem: Problem, scheme: Scheme, nudge: str, beta: float) -> Outlook:
    part, exact = _measurable(problem)
    outlook = _outlook(part, exact, scheme, nudge, beta)
    if outlook is None:
        raise ValueError(
            f"The 'beta' parameter of {problem.owner} is more than the network can hold: under {beta:g} a sample "
            "leaves the locked state. Give a weaker one, or leave it out to have it chosen."
        )
    return outlook


def _outlook(part: Problem, exact: FloatArray, scheme: Scheme, nudge: str, beta: float) -> Outlook | None:
    """Return what to expect under one nudge, None where a sample leaves the locked state."""
    states = settle_nudged(part, scheme, beta, Nudging.of(part, nudge, part.phases))
    if np.any(states.lost(part)):
        return None
    terms = list(zip(states.weights, states.phases(part.phases), strict=True))
    mean = joined(part, combined(part.network, part.system, part.wrt, part.phases, terms))
    return Outlook(beta, exact, mean, *factors(part, states, frozen=nudge == "frozen"))


def _least(best: Outlook, readout: Readout, cosine: float | None) -> float:
    """Return the cosine that a nudge must have without noise to be better than the best so far."""
    reached = best.cosine(readout.variance(readout.readings if cosine is None else _MOST_READINGS))
    return reached if cosine is None else min(cosine, reached)


def _measurable(problem: Problem) -> tuple[Problem, FloatArray]:
    """Return the samples that have an equilibrium and a gradient, and the exact one, (B, P)."""
    part = problem.take(problem.solvable)
    exact = exact_slopes(part)
    values, errors = joined(part, dict(exact.values)), np.concatenate([exact.errors[name] for name in part.wrt], axis=1)
    rows = np.flatnonzero(exact.regular & (np.max(np.abs(values) - errors, axis=1, initial=0.0) > 0))
    if not rows.size:
        raise ValueError(
            f"{problem.owner} has nothing to measure: no sample has an equilibrium at which the gradient differs from "
            "zero. Give targets other than the phases that the outputs have."
        )
    return part.take(rows), values[rows]
