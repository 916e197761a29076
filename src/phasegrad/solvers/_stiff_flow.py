r"""The last resort: where a solver found nothing, follow the oscillators' own dynamics until they rest or drift.

Guarded Newton may give up a sample that has a locked state, and an explicit integration may end in a crawl where fast
oscillators allow small steps only. `StiffFlow` integrates d theta / dt = F(theta) by the linearly implicit method ROS2
(Rosenbrock, two stages, L-stable), whose steps lengthen to Newton's as the network comes to rest:

    (M + g h L) k = F(theta),   (M + g h L) l = F(theta + h k) - 2 M k,   theta += h (3 k + l) / 2,   g = 1 - 1 / sqrt 2

M is the identity or, where the reference runs free, what turns velocities relative to it into forces. No step is so
long that the method would damp what grows: M / 2 + g h L stays positive definite.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray, positive_float, whole_number
from phasegrad.dynamics import System
from phasegrad.linearised import DenseLaplacian, chunks, is_positive_definite
from phasegrad.solvers._contract import Solution, Solver
from phasegrad.solvers._flow import reference_runs_free
from phasegrad.solvers._newton import Newton

_GAMMA = 1 - 1 / np.sqrt(2)


@dataclass(frozen=True)
class StiffFlow:
    """The physical dynamics by an implicit method, finished by Newton.

    Parameters
    ----------
    accuracy : float
        Error allowed per integration step, in radians.
    rest : float
        The dynamics are left once the force on every oscillator is below this fraction of its own total coupling.
    max_steps : int
        Integration steps after which a sample is given up.
    slip : float
        A sample is also given up once a phase difference across an edge, or a phase where the frame does not turn with
        the network, has changed by so many radians: it drifts.
    finish : Solver
        What brings the residual below the tolerance.
    """

    accuracy: float = 1e-2
    rest: float = 1e-8
    max_steps: int = 1000
    slip: float = 8 * np.pi
    name: ClassVar[str] = "stiff flow"
    finish: Solver = field(default_factory=lambda: Newton(algebra=DenseLaplacian))

    def __post_init__(self) -> None:
        positive_float("accuracy", self.accuracy, "StiffFlow")
        positive_float("rest", self.rest, "StiffFlow")
        whole_number("max_steps", self.max_steps, 1, "StiffFlow")
        positive_float("slip", self.slip, "StiffFlow")

    def solve(self, system: System, start: Array, tolerance: FloatArray) -> Solution:
        """Return phases reached from ``start`` by the dynamics, finished to ``tolerance`` where they came to rest."""
        phases, left = start.copy(), np.full(system.batch, np.inf)
        steps = np.zeros(system.batch, dtype=np.int64)
        for part in chunks(system.batch, 4 * system.graph.free.size**2):
            rows = np.arange(part.start, part.stop)
            phases[rows], steps[rows], rests = self._integrate(system.take(rows), start[rows])
            rows = rows[rests]
            if rows.size:
                finished = self.finish.solve(system.take(rows), phases[rows], tolerance[rows])
                phases[rows], left[rows] = finished.phases, finished.residual
                steps[rows] += finished.steps
        return Solution(phases, left, steps)

    def _integrate(self, system: System, start: Array) -> tuple[Array, IntArray, BoolArray]:
        """Return where the samples end, the steps they took, and which of them rest there."""
        phases, steps, rests = start.copy(), np.zeros(system.batch, dtype=np.int64), np.zeros(system.batch, dtype=bool)
        free = system.graph.free
        strength = np.broadcast_to(np.maximum(system.stiffest, 1e-300), phases.shape)[:, free]
        shared = 1 / system.graph.size if reference_runs_free(system) else 0.0
        time_step = 0.1 / np.max(strength, axis=1, initial=1e-300)
        active = np.arange(system.batch)
        for _ in range(self.max_steps):
            here = phases[active]
            force = system.force(here)[:, free]
            rests[active] = np.all(np.abs(force) <= self.rest * strength[active], axis=1)
            going = np.flatnonzero(~rests[active] & (_slipped(system, here - start[active]) <= self.slip))
            active, here, force, system = active[going], here[going], force[going], system.take(going)
            if active.size == 0:
                break
            h = time_step[active]
            step, error = _stride(system, here, force, shared, h)
            good = error <= self.accuracy
            here[:, free] += step
            phases[active[good]] = here[good]
            steps[active] += 1
            growth = 0.9 * np.sqrt(self.accuracy / np.maximum(error, 1e-300))
            time_step[active] = h * np.clip(growth, 0.2, 5.0)
        return phases, steps, rests


def _slipped(system: System, turned: Array) -> FloatArray:
    """Return by how much a phase difference across an edge, or a phase in a frame of its own, has changed, (B,)."""
    largest = system.turns(turned)
    return largest if system.graph.pinned else np.maximum(largest, np.max(np.abs(turned), axis=1, initial=0.0))


def _stride(
    system: System, phases: Array, force: Array, shared: float, time_step: FloatArray
) -> tuple[Array, FloatArray]:
    """Return a step of every sample, (B, n), and its error, (B,): infinite where it would be too long for a saddle.

    M is the identity minus ``shared`` in every place.
    """
    free, h = system.graph.free, time_step[:, None]
    matrices = _GAMMA * h[:, :, None] * system.laplacian(phases)
    mass = np.eye(free.size) - shared
    step, error = np.zeros_like(force), np.full(time_step.shape, np.inf)
    rows = np.flatnonzero(is_positive_definite((mass + matrices + matrices.swapaxes(1, 2)) / 2))
    if rows.size == 0:
        return step, error
    matrices, h, moved = mass + matrices[rows], h[rows], phases[rows]
    first = np.linalg.solve(matrices, force[rows, :, None])[:, :, 0]
    moved[:, free] += h * first
    right = system.take(rows).force(moved)[:, free] - 2 * (first - shared * np.sum(first, axis=1, keepdims=True))
    second = np.linalg.solve(matrices, right[:, :, None])[:, :, 0]
    step[rows] = h / 2 * (3 * first + second)
    error[rows] = np.max(np.abs(h / 2 * (first + second)), axis=1, initial=0.0)
    return step, error
