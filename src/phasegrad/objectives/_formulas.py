"""Which costs compiled code knows, by which formula."""

from __future__ import annotations

from typing import NamedTuple

from phasegrad.objectives._cost import Cost
from phasegrad.objectives._distances import NearestTarget, OneHotPhases, PaperPair, PeriodicDistance
from phasegrad.objectives._entropy import CosineCrossEntropy
from phasegrad.objectives._phases import PhaseTargets


class Formula(NamedTuple):
    """A cost of outputs theta with targets t that compiled code can compute.

    ``kind`` is "quadratic", the sum of (theta - t)^2 / 2, "periodic", the sum of 1 - cos(theta - t), or "entropy",
    cross-entropy of t and the softmax of sharpness cos(theta).
    """

    kind: str
    sharpness: float = 0.0


def formula_of(cost: Cost) -> Formula | None:
    """Return the formula of a cost, None if compiled code does not know it; a subclass of one's own is never known."""
    if type(cost) in (PhaseTargets, PaperPair, NearestTarget):
        return Formula("quadratic")
    if type(cost) in (PeriodicDistance, OneHotPhases):
        return Formula("periodic")
    return Formula("entropy", cost.sharpness) if type(cost) is CosineCrossEntropy else None
