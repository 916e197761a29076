"""Equilibria under nudges.

The pull of a following nudge is that of the cost wherever the outputs are. Frozen and held ones are constant torques:
the error of the free state as a meter read it, or as a circuit holds it (sample and hold), which no meter touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phasegrad._process import on_one_blas_thread
from phasegrad._validation import Array, BoolArray, counted
from phasegrad.dynamics import Pull
from phasegrad.equilibria import Equilibrium, Status, settle, settled
from phasegrad.gradients._measured import brought_together
from phasegrad.gradients._question import Question, warn
from phasegrad.gradients._schemes import Scheme
from phasegrad.objectives import Cost, Torques
from phasegrad.solvers import branch_solver

NUDGES = ("following", "frozen", "held")
# Standard deviations of the noise in its error that a frozen nudge must be held with.
_DEVIATIONS = 3.0
# How often a nudge that the network cannot hold is halved.
_HALVINGS = 40


@dataclass(frozen=True)
class Pulling:
    """What pulls the outputs: a cost and its target (B, M); the sign of the nudge, one for all samples or (B, 1)."""

    cost: Cost
    target: Array
    signs: Array | float = 1.0

    @classmethod
    def of(cls, question: Question, nudge: str, free: Array, signs: Array | float = 1.0) -> Pulling:
        """Return the pull of a nudge by word; a frozen one is that at the free phases (B, N) as they were read."""
        if nudge == "following":
            return cls(question.objective, question.target, signs)
        read = free if nudge == "frozen" else question.phases
        _, (near,) = brought_together(question.network, question.phases, [read])
        outputs = np.take(near, question.nodes, axis=1)
        return cls(Torques(), np.asarray(question.objective.force(outputs, question.target)), signs)

    def widened(self, question: Question, deviation: float) -> Pulling:
        """Return constant torques as large as noise of this deviation in the error that was read makes them."""
        slope = np.sum(np.abs(question.objective.hessian(question.outputs, question.target)), axis=-1)
        # The reference that phases are counted from is read, too.
        farther = _DEVIATIONS * np.sqrt(1 + question.network.pinned) * deviation * slope
        return Pulling(self.cost, self.target + np.copysign(farther, self.target), self.signs)


@dataclass(frozen=True)
class Pulled:
    """Equilibria under the nudges of a scheme, in its order; None stands for the free state."""

    beta: float
    strengths: Sequence[complex]
    weights: Sequence[Array | complex]
    others: Sequence[Equilibrium | None]

    @property
    def nudged(self) -> list[Equilibrium]:
        """Those that are under a nudge."""
        return [each for each in self.others if each is not None]

    def phases(self, free: Array) -> list[Array]:
        """Return the phases (B, N) of all, with those of the free state."""
        return [free if each is None else each.phases for each in self.others]

    def lost(self, question: Question) -> BoolArray:
        """Return which samples that have a free equilibrium lose it under a nudge, (B,).

        One that slipped by half a turn has lost it, too: a meter could not tell which way it went.
        """
        was_stable = np.asarray(question.status == Status.STABLE, dtype=bool)
        lost = np.zeros(question.system.batch, dtype=bool)
        for each in self.nudged:
            shift = np.max(np.abs(each.phases - question.phases), axis=1, initial=0.0)
            lost |= ~each.converged | (was_stable & ~each.stable) | (shift > np.pi)
        return np.asarray(settled(question.status) & lost)


def pulled(question: Question, scheme: Scheme, beta: float, pulling: Pulling) -> Pulled:
    """Return the equilibria under all nudges of a scheme."""
    nudges = scheme.at(beta)
    others = [_settled(question, pulling, strength) if strength else None for strength, _ in nudges]
    weights = [weight * pulling.signs for _, weight in nudges]
    return Pulled(beta, [strength for strength, _ in nudges], weights, others)


def held(question: Question, scheme: Scheme, beta: float, pulling: Pulling) -> Pulled:
    """Return the same, the nudge halved until no sample loses its equilibrium, and say so where it was."""
    first = states = pulled(question, scheme, beta, pulling)
    for _ in range(_HALVINGS):
        if not np.any(states.lost(question)):
            break
        states = pulled(question, scheme, states.beta / 2, pulling)
    if states is not first:
        lost = int(np.sum(first.lost(question)))
        warn(
            f"{question.owner}: under the nudge beta={beta:g} {lost} of {counted(question.system.batch, 'sample')} "
            f"left the locked state. It was halved to beta={states.beta:g} for all, as gradient.beta says: give a "
            "weaker one."
        )
    return states


@on_one_blas_thread
def _settled(question: Question, pulling: Pulling, strength: complex) -> Equilibrium:
    """Return the flat batch of equilibria under a nudge, started at the free ones."""
    beta = np.full((question.system.batch, 1), strength) * pulling.signs
    system = question.responding.replace(pull=Pull(pulling.cost, question.nodes, pulling.target, beta))
    return settle(system, (system.batch,), question.phases, branch_solver(system))
