"""Equilibria under nudges.

The pull of a following nudge is that of the cost wherever the outputs are. Frozen and held ones are constant torques:
the error of the free state as a meter read it, or as a circuit holds it (sample and hold), which no meter touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phasegrad._process import on_one_blas_thread
from phasegrad._validation import Array, BoolArray, IntArray, counted
from phasegrad.dynamics import Pull, System
from phasegrad.equilibria import Equilibrium, Status, settle, settled
from phasegrad.gradients._gradient import warn
from phasegrad.gradients._problem import Problem
from phasegrad.gradients._reading import brought_together
from phasegrad.gradients._schemes import Scheme
from phasegrad.objectives import Cost, Torques
from phasegrad.solvers import branch_solver

NUDGES = ("following", "frozen", "held")
# Standard deviations of the noise in its error that a frozen nudge must be held with.
_DEVIATIONS = 3.0
# How often a nudge that the network cannot hold is halved.
_HALVINGS = 40


@dataclass(frozen=True)
class Nudging:
    """What pulls the outputs: a cost and its target (B, M); the sign of the nudge, one for all samples or (B, 1)."""

    cost: Cost
    target: Array
    signs: Array | float = 1.0

    @classmethod
    def of(cls, problem: Problem, nudge: str, free: Array, signs: Array | float = 1.0) -> Nudging:
        """Return the pull of a nudge by word; a frozen one is that at the free phases (B, N) as they were read."""
        if nudge == "following":
            return cls(problem.objective, problem.target, signs)
        read = free if nudge == "frozen" else problem.phases
        _, (near,) = brought_together(problem.network, problem.phases, [read])
        outputs = np.take(near, problem.nodes, axis=1)
        return cls(Torques(), np.asarray(problem.objective.force(outputs, problem.target)), signs)

    def on(self, system: System, nodes: IntArray, strength: complex) -> System:
        """Return a system of the same batch whose ``nodes`` are pulled with a strength, times the samples' signs."""
        beta = np.full((system.batch, 1), strength) * self.signs
        return system.replace(pull=Pull(self.cost, nodes, self.target, beta))

    def widened(self, problem: Problem, deviation: float) -> Nudging:
        """Return constant torques as large as noise of this deviation in the error that was read makes them."""
        slope = np.sum(np.abs(problem.objective.hessian(problem.outputs, problem.target)), axis=-1)
        # The reference that phases are counted from is read, too.
        farther = _DEVIATIONS * np.sqrt(1 + problem.network.pinned) * deviation * slope
        return Nudging(self.cost, self.target + np.copysign(farther, self.target), self.signs)


@dataclass(frozen=True)
class NudgedStates:
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

    def lost(self, problem: Problem) -> BoolArray:
        """Return which samples that have a free equilibrium lose it under a nudge, (B,).

        One that slipped by half a turn has lost it, too: a meter could not tell which way it went.
        """
        was_stable = np.asarray(problem.status == Status.STABLE, dtype=bool)
        lost = np.zeros(problem.system.batch, dtype=bool)
        for each in self.nudged:
            shift = np.max(np.abs(each.phases - problem.phases), axis=1, initial=0.0)
            lost |= ~each.converged | (was_stable & ~each.stable) | (shift > np.pi)
        return np.asarray(settled(problem.status) & lost)


def settle_nudged(problem: Problem, scheme: Scheme, beta: float, nudging: Nudging) -> NudgedStates:
    """Return the equilibria under all nudges of a scheme, each started at the free one."""
    nudges = scheme.at(beta)
    others = [
        settle_near(nudging.on(problem.responding, problem.nodes, strength), problem.phases) if strength else None
        for strength, _ in nudges
    ]
    weights = [weight * nudging.signs for _, weight in nudges]
    return NudgedStates(beta, [strength for strength, _ in nudges], weights, others)


def settle_held(problem: Problem, scheme: Scheme, beta: float, nudging: Nudging) -> NudgedStates:
    """Return the same with the nudge halved until no sample loses its equilibrium; a warning says so where it was."""
    first = states = settle_nudged(problem, scheme, beta, nudging)
    for _ in range(_HALVINGS):
        if not np.any(states.lost(problem)):
            break
        states = settle_nudged(problem, scheme, states.beta / 2, nudging)
    if states is not first:
        lost = int(np.sum(first.lost(problem)))
        warn(
            f"{problem.owner}: under the nudge beta={beta:g} {lost} of {counted(problem.system.batch, 'sample')} "
            f"left the locked state. It was halved to beta={states.beta:g} for all, as gradient.beta says: give a "
            "weaker one."
        )
    return states


@on_one_blas_thread
def settle_near(system: System, phases: Array) -> Equilibrium:
    """Return the flat batch of equilibria on the branch of the states (B, N) given."""
    return settle(system, (system.batch,), phases, branch_solver(system))
