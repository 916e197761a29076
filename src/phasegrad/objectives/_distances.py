r"""Costs that are a distance to target phases: one phase for the right output, another for the others.

With target phases t, one row per class, the costs are

    nearest target        1/2 sum (theta - t)^2
    output differences    1/2 sum (delta - mean delta)^2, delta = theta - t
    periodic distance     sum 1 - cos(theta - t)

and the decision is the class that would cost least. Read as energies of a noisy network, costs give probabilities
p_c proportional to exp(-C_c / T); the temperature T is set so that a perfect fit is exp(4), about 55 times, as likely
as any other class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import Array, float_between, positive_float
from phasegrad.objectives._classes import ClassObjective
from phasegrad.objectives._phases import Squares

_PERFECT = 4.0


@dataclass(frozen=True)
class NearestTarget(Squares, ClassObjective):
    """The paper's cost with the decision that belongs to it: the class whose targets are nearest.

    For class c output c belongs at -margin and all others at +margin; the cost is that of `PhaseTargets`. Invariant
    under nothing: phases count from the reference, and a full turn away is far away. The objectives below are
    variations of it.

    Parameters
    ----------
    margin : float
        Half the phase difference between the right and the wrong outputs.

    See Also
    --------
    PaperPair : The paper's cost and its contradictory decision.
    CosineCrossEntropy : Cross-entropy on the cosines of the outputs.
    ClassObjective : The base of costs that stand for classes.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.objectives.NearestTarget().decide([[0.0, 0.1], [0.2, 0.1]]).tolist()
    [0, 1]
    >>> pg.objectives.NearestTarget().decide([-0.4, -0.3]).item()      # largest cosine would say 1
    0
    """

    margin: float = 0.2

    def __post_init__(self) -> None:
        positive_float("margin", self.margin, type(self).__name__)

    def table(self, n_outputs: int) -> Array:
        """Return the target phases of every class, shape (M, M)."""
        return np.where(np.eye(n_outputs, dtype=bool), -self.margin, self.margin)

    def log_odds(self, phases: ArrayLike) -> Array:
        """Return minus the cost of every class, in units of margin^2, shape (..., M)."""
        return -self.class_costs(phases) / (4 * self.margin**2 / _PERFECT)


@dataclass(frozen=True)
class PaperPair(NearestTarget):
    """The paper's pair of cost and decision, which contradict each other.

    The cost draws the right output to -margin and the others to +margin; the decision picks the output of largest
    cosine, the one nearest phase zero. At zero cost all cosines are equal: a perfect fit is a tie. Kept under its own
    name for reproduction; `NearestTarget` has the same cost with the decision it asks for.

    See Also
    --------
    NearestTarget : The paper's cost with the decision it asks for.
    ClassObjective : The base of costs that stand for classes.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.objectives.PaperPair().decide([[0.0, 0.1], [0.2, 0.1]]).tolist()
    [0, 1]
    """

    consistent: ClassVar[bool] = False

    def decide(self, phases: ArrayLike) -> Array:
        """Return the output of largest cosine; ties go to the lower number."""
        return np.argmax(np.cos(phases), axis=-1)

    def probabilities(self, phases: ArrayLike) -> Array:
        """Raise ValueError: a decision that contradicts its cost has no probabilities."""
        del phases
        raise ValueError(
            "PaperPair has no class probabilities, because its decision contradicts its cost. "
            "NearestTarget has the same cost with the decision it asks for."
        )


@dataclass(frozen=True)
class OutputDifferences(NearestTarget):
    """Only the differences between outputs count: C = 1/2 sum (delta - mean delta)^2 with delta = theta - target.

    Independent of the reference: turning all outputs together changes nothing, so no force is spent on where they are.

    See Also
    --------
    NearestTarget : The paper's cost with the decision it asks for.
    PeriodicDistance : 1 - cos of the distance from the target.

    Examples
    --------
    >>> import phasegrad as pg
    >>> objective = pg.objectives.OutputDifferences(margin=0.2)
    >>> float(objective.cost([0.8, 1.2], objective.table(2)[0]).round(12))
    0.0
    """

    invariances: ClassVar[tuple[str, ...]] = ("common rotation",)

    def cost(self, phases: ArrayLike, target: ArrayLike) -> Array:
        """Return the cost, shape (...), of output phases (..., M)."""
        return np.asarray(0.5 * np.sum(self.force(phases, target) ** 2, axis=-1))

    def force(self, phases: ArrayLike, target: ArrayLike) -> Array:
        """Return the pull toward the differences asked for, shape (..., M); it sums to zero."""
        away = np.asarray(target) - np.asarray(phases)
        return away - np.mean(away, axis=-1, keepdims=True)

    def hessian(self, phases: ArrayLike, target: ArrayLike) -> Array:
        """Return the projection on differences, shape (..., M, M)."""
        del target
        shape = np.shape(phases)
        return np.broadcast_to(np.eye(shape[-1]) - 1 / shape[-1], (*shape, shape[-1]))

    def torch_cost(self, phases: Any, target: Any) -> Any:
        """Return the cost of one sample as tensors, by all pairs of outputs."""
        away = phases - target
        return ((away[:, None] - away[None, :]) ** 2).sum() / (4 * len(away))


@dataclass(frozen=True)
class PeriodicDistance(NearestTarget):
    """The distance on the circle: C = sum of 1 - cos(theta - target), for every output on its own.

    The nudge is a bias field of strength beta at the target phase, which hardware can apply. For small distances the
    cost is that of `NearestTarget`; full turns cost nothing.

    Parameters
    ----------
    margin : float
        Right outputs belong at -margin, wrong ones at +margin; at most pi / 2, where the two are opposite.

    See Also
    --------
    PhaseTargets : Squared distance from given phases.
    OneHotPhases : The right output at +pi/2, all others at -pi/2.

    Examples
    --------
    >>> import math, phasegrad as pg
    >>> objective = pg.objectives.PeriodicDistance()
    >>> float(objective.cost([-0.7 + 2 * math.pi, 0.7], [-0.7, 0.7]).round(12))
    0.0
    """

    margin: float = np.pi / 4

    invariances: ClassVar[tuple[str, ...]] = ("full turns",)

    def __post_init__(self) -> None:
        positive_float("margin", self.margin, type(self).__name__)
        float_between("margin", self.margin, 0, np.pi / 2, type(self).__name__)

    def cost(self, phases: ArrayLike, target: ArrayLike) -> Array:
        """Return the cost, shape (...), of output phases (..., M)."""
        return np.asarray(np.sum(1 - np.cos(np.asarray(phases) - np.asarray(target)), axis=-1))

    def force(self, phases: ArrayLike, target: ArrayLike) -> Array:
        """Return sin(target - theta), shape (..., M)."""
        return np.asarray(np.sin(np.asarray(target) - np.asarray(phases)))

    def hessian(self, phases: ArrayLike, target: ArrayLike) -> Array:
        """Return cos(theta - target) on the diagonal, shape (..., M, M)."""
        slope = np.cos(np.asarray(phases) - np.asarray(target))
        return np.asarray(slope[..., None] * np.eye(slope.shape[-1]))

    def torch_cost(self, phases: Any, target: Any) -> Any:
        """Return the cost of one sample as tensors."""
        return (1 - (phases - target).cos()).sum()

    def log_odds(self, phases: ArrayLike) -> Array:
        """Return minus the cost of every class over the temperature, shape (..., M)."""
        return -self.class_costs(phases) / (2 * (1 - np.cos(2 * self.margin)) / _PERFECT)


@dataclass(frozen=True)
class OneHotPhases(PeriodicDistance):
    """Wang, Wanjura and Marquardt's encoding: the right output at +pi/2, the others at -pi/2, decided by the sine.

    The distance is that of `PeriodicDistance`, which here is the sum of 1 - sin(theta) for the right output and of
    1 + sin(theta) for the others: of two classes, the one whose output has the larger sine always costs less.

    See Also
    --------
    CosineCrossEntropy : Cross-entropy on the cosines of the outputs.
    PeriodicDistance : 1 - cos of the distance from the target.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.objectives.OneHotPhases().decide([[0.3, 0.4], [2.0, 3.0]]).tolist()
    [1, 0]
    """

    margin: float = np.pi / 2

    invariances: ClassVar[tuple[str, ...]] = ("full turns", "theta -> pi - theta")

    def __post_init__(self) -> None:
        if self.margin != np.pi / 2:
            raise ValueError(
                f"The 'margin' parameter of OneHotPhases is pi/2 and nothing else. Got {self.margin!r} instead. "
                "PeriodicDistance takes any margin up to that."
            )

    def table(self, n_outputs: int) -> Array:
        """Return the target phases of every class, shape (M, M): +pi/2 on the diagonal, -pi/2 elsewhere."""
        return np.where(np.eye(n_outputs, dtype=bool), self.margin, -self.margin)
