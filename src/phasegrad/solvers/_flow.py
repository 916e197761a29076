r"""Gradient flow: follow the oscillators' own dynamics until they are nearly at rest, then finish by Newton.

The third-order Bogacki-Shampine pair integrates d theta / dt = F(theta) with its own step size for every
sample. Slower than guarded Newton, but it ends in the equilibrium the physical network would reach, which is
what basins of attraction are about; and it needs no energy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from phasegrad._validation import Array, FloatArray, IntArray, positive_float, whole_number
from phasegrad.dynamics import System
from phasegrad.solvers._contract import Solution, Solver
from phasegrad.solvers._newton import Newton

# The longest step, in units of the time constant of the stiffest oscillator.
_STRIDE = 0.35
#: Steps of a run: more would not end.
_MOST_STEPS = 1e12


@dataclass(frozen=True)
class GradientFlow:
    """The physical dynamics, finished by Newton.

    Parameters
    ----------
    accuracy : float
        Error allowed per integration step, in radians.
    rest : float
        The dynamics are left once the force on every oscillator is below this fraction of its own total coupling.
    max_steps : int
        Integration steps after which a sample is handed to Newton as it is.
    finish : Solver
        What brings the residual below the tolerance.

    See Also
    --------
    Newton : Guarded Newton on the energy.
    find_equilibrium : One certified equilibrium per sample.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.networks.ring(6, omega=[0.5, 0, 0, -0.5, 0, 0])
    >>> bool(pg.find_equilibrium(network, solver=pg.solvers.GradientFlow()).stable)
    True
    """

    name: ClassVar[str] = "flow"
    accuracy: float = 1e-3
    rest: float = 1e-3
    max_steps: int = 5000
    finish: Solver = field(default_factory=Newton)

    def __post_init__(self) -> None:
        positive_float("accuracy", self.accuracy, "GradientFlow")
        positive_float("rest", self.rest, "GradientFlow")
        whole_number("max_steps", self.max_steps, 1, "GradientFlow")

    def solve(self, system: System, start: Array, tolerance: FloatArray) -> Solution:
        """Return phases reached from ``start`` by the dynamics, finished to ``tolerance``."""
        phases = start.copy()
        steps = np.zeros(system.batch, dtype=np.int64)
        self._integrate(system, phases, steps)
        finished = self.finish.solve(system, phases, tolerance)
        return Solution(finished.phases, finished.residual, steps + finished.steps)

    def _integrate(self, system: System, phases: Array, steps: Array) -> None:
        strength = np.broadcast_to(np.maximum(system.stiffest, 1e-300), phases.shape)
        scale = np.max(strength, axis=1)
        time_step = 0.1 / scale
        active = np.arange(system.batch)
        rate = velocity(system, phases)
        for _ in range(self.max_steps):
            moving = np.any(np.abs(rate) > self.rest * strength[active], axis=1)
            active, rate = active[moving], rate[moving]
            if active.size == 0:
                return
            system = system.take(np.flatnonzero(moving))
            h = time_step[active, None]
            here = phases[active]
            second = velocity(system, here + h / 2 * rate)
            third = velocity(system, here + 3 * h / 4 * second)
            after = here + h / 9 * (2 * rate + 3 * second + 4 * third)
            fourth = velocity(system, after)
            error = h / 72 * np.abs(-5 * rate + 6 * second + 8 * third - 9 * fourth)
            error = np.max(error, axis=1, initial=0.0) / self.accuracy
            good = error <= 1
            phases[active[good]] = after[good]
            rate = np.where(good[:, None], fourth, rate)
            steps[active] += 1
            growth = 0.9 * np.maximum(error, 1e-8) ** (-1 / 3)
            # Beyond 1 / scale the explicit method would ring at its stability limit instead of coming to rest.
            time_step[active] = np.minimum(time_step[active] * np.clip(growth, 0.2, 3.0), 1.0 / scale[active])


def velocity(system: System, phases: Array) -> Array:
    """Velocity of every oscillator: relative to a reference that runs free, or zero where one is truly held."""
    rate = system.force(phases)
    graph = system.graph
    if reference_runs_free(system):
        return rate - rate[:, [graph.reference]]
    rate[:, graph.held] = 0
    return rate


def reference_runs_free(system: System) -> bool:
    """Return whether the reference moves like all others, phases being counted from it."""
    return system.graph.pinned and system.reciprocal and system.pull is None


def flow_steps(system: System, time: float) -> IntArray:
    """Return in how many Runge-Kutta steps to follow each sample, (B,): powers of two, so that many share one."""
    # No eigenvalue is beyond twice the stiffest oscillator, and the classical Runge-Kutta method is stable up to 2.78.
    stiffest = np.broadcast_to(np.max(system.stiffest, axis=1, initial=0.0), (system.batch,))
    needed = np.maximum(time * stiffest / _STRIDE, 1.0)
    if np.max(needed, initial=1.0) > _MOST_STEPS:
        raise ValueError(
            f"Settling for {time:g} units of time takes {np.max(needed):.2g} steps here, more than {_MOST_STEPS:g}. "
            "Give a shorter settling time, or none, to settle until rest."
        )
    return np.asarray(2 ** np.ceil(np.log2(needed)), dtype=np.int64)
