r"""Inexact guarded Newton for one large sparse network.

Each step solves L d = F by conjugate gradients, only as accurately as the distance to the equilibrium deserves: to a
relative error of the order of |F|, so that the steps together cost little more than one accurate solve. The guard is
that of the dense solver: the step must lower the energy (Armijo). Where the Laplacian turns out indefinite, the
step follows the gradient flow in the positive stand-in metric of `System.sparse_laplacian(floor=...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phasegrad.dynamics import System
from phasegrad.solvers.contract import Solution, residual
from phasegrad.solvers.krylov import LinearSolution, conjugate_gradients, solve_accurately
from phasegrad.solvers.newton import FLOOR, EnergyGuard, ForceGuard, line_search
from phasegrad.solvers.preconditioning import KINDS, preconditioner
from phasegrad.validation import FloatArray, choice, positive_float, whole_number

Array = NDArray[Any]

_LOOSEST, _STAND_IN = 1e-2, 1e-1
_SLIP = 4 * np.pi
_WEAKER, _PATIENCE = 0.95, 10
_WORN, _WORN_BY = 3, 10


@dataclass(frozen=True)
class Progress:
    """How far a long solve has come: sample, step, the largest force left, linear iterations so far, by which way."""

    sample: int
    step: int
    residual: float
    iterations: int
    preconditioner: str


@dataclass(frozen=True)
class SparseNewton:
    """Newton's method on compressed sparse rows, in memory of the order of the edges.

    For reciprocal coupling. Samples are solved one after the other.

    Parameters
    ----------
    max_steps : int
        Steps after which a sample is given up. It is also given up once ten steps out of a convex region into an
        indefinite one have not weakened the forces, or a phase difference across an edge has slipped two turns: without
        a locked state descent would go on for ever.
    max_turn : float
        No phase difference across an edge changes by more than this many radians in one step.
    follow : bool
        Stay with the equilibrium near the start even if it is unstable, as `GuardedNewton` does.
    preconditioner : {"auto", "gauss-seidel", "jacobi", "multigrid"}
        "auto" probes the graph: Gauss-Seidel where few steps lead everywhere, multigrid (pyamg) on meshes.
    progress : callable, optional
        Called with a `Progress` after every step.

    Examples
    --------
    >>> import numpy as np, phasegrad as pg
    >>> network = pg.random_regular(1000, 6, omega=np.random.default_rng(0).normal(0, 0.3, 1000))
    >>> bool(pg.find_equilibrium(network, solver=pg.SparseNewton(preconditioner="jacobi")).stable)
    True
    """

    max_steps: int = 500
    max_turn: float = 1.0
    follow: bool = False
    preconditioner: str = "auto"
    progress: Callable[[Progress], object] | None = None

    def __post_init__(self) -> None:
        whole_number("max_steps", self.max_steps, 1, "SparseNewton")
        positive_float("max_turn", self.max_turn, "SparseNewton")
        choice("preconditioner", self.preconditioner, KINDS, "SparseNewton")

    def solve(self, system: System, start: Array, tolerance: FloatArray) -> Solution:
        """Return phases near ``start`` whose residual is at most ``tolerance``, or the best found."""
        if not system.has_energy:
            raise ValueError(
                "SparseNewton needs reciprocal coupling and a real nudge. Use solver='newton' or 'flow' instead."
            )
        phases = start.copy()
        left = np.zeros(system.batch)
        steps = np.zeros(system.batch, dtype=np.int64)
        for b in range(system.batch):
            part = system.take(np.array([b]))
            descent = _Descent(self, part, phases[b : b + 1], float(tolerance[b]), b)
            phases[b], left[b], steps[b] = descent.run()
        return Solution(phases, left, steps)


class _Descent:
    """The way of one sample, with what its steps share."""

    def __init__(self, settings: SparseNewton, system: System, start: Array, tolerance: float, sample: int) -> None:
        self.settings, self.system, self.sample = settings, system, sample
        self.phases, self.tolerance = start.copy(), tolerance
        self.start = start
        self.iterations = 0
        self.usual = 0.0
        self.way = ""
        self.renew = False
        self.weakest, self.stale = np.inf, 0
        self.convex = False

    def run(self) -> tuple[Array, float, int]:
        """Return the phases reached, their residual and the number of steps."""
        free = self.system.network.free
        force = self.system.force(self.phases)
        left = float(residual(self.system, force)[0])
        taken = 0
        while taken < self.settings.max_steps and left > self.tolerance:
            turn, bent = self._direction(np.take(force, free, axis=1)[0], left)
            moved, kept = self._guarded(np.take(force, free, axis=1), turn)
            if not kept:
                break
            self.phases, taken = moved, taken + 1
            # From a random start the way over indefinite states is long; from a convex one it leads nowhere.
            self.convex = not bent if taken == 1 else self.convex
            force = self.system.force(moved)
            left = float(residual(self.system, force)[0])
            if self.settings.progress is not None:
                self.settings.progress(Progress(self.sample, taken, left, self.iterations, self.way))
            if bent and ((self.convex and self._stalled(force)) or self._slipped()):
                break
        return self.phases[0], left, taken

    def _direction(self, force: FloatArray, left: float) -> tuple[FloatArray, bool]:
        """Return the step and whether it is one of the stand-in because the Laplacian is indefinite."""
        matrix = self.system.sparse_laplacian(self.phases)
        # Accurate enough for quadratic convergence, but never beyond what the last step needs.
        relative = max(min(_LOOSEST, left), 0.1 * self.tolerance / left)
        found = self._solved(matrix, force, relative)
        if found.positive:
            return found.solution, False
        if self.settings.follow:
            inverse = preconditioner(self.system, self.phases, matrix, self.settings.preconditioner)
            return solve_accurately(matrix, force, inverse).solution, True
        stand_in = self.system.sparse_laplacian(self.phases, floor=FLOOR)
        return self._solved(stand_in, force, _STAND_IN).solution, True

    def _solved(self, matrix: Any, right: FloatArray, relative: float) -> LinearSolution:
        kind = self.settings.preconditioner
        inverse = preconditioner(self.system, self.phases, matrix, kind, renew=self.renew)
        found = conjugate_gradients(matrix, right, inverse, tolerance=relative)
        self.iterations += found.iterations
        self.way = inverse.name
        # A hierarchy serves many states; one that has come to need far more iterations per digit is built anew.
        each = found.iterations / max(1.0, -np.log10(relative))
        self.renew = found.positive and self.usual > 0 and each > _WORN * self.usual + _WORN_BY
        if self.usual == 0 or self.renew:
            self.usual = max(each, 1.0)
        return found

    def _guarded(self, force: Array, turn: FloatArray) -> tuple[Array, bool]:
        step = turn[None] * min(1.0, self.settings.max_turn / max(self._largest_turn(turn), 1e-300))
        guard = ForceGuard if self.settings.follow else EnergyGuard
        judge = guard(self.system, self.phases, force, step)
        yes, no = np.array([True]), np.array([False])
        moved, kept = line_search(judge, self.system, self.phases, step, no, yes)
        return moved, bool(kept[0])

    def _largest_turn(self, turn: FloatArray) -> float:
        """Return the largest change across an edge or, with a field, against it: far ends of a mesh may turn far."""
        network = self.system.network
        whole = np.zeros((1, network.size))
        whole[0, network.free] = turn
        largest = float(np.max(np.abs(self.system.angles(whole)), initial=0.0))
        return largest if network.field_strength is None else max(largest, float(np.max(np.abs(turn))))

    def _stalled(self, force: Array) -> bool:
        """Return whether descent over an indefinite Laplacian has gone on for long without weakening the forces."""
        size = float(np.linalg.norm(force))
        self.stale = 0 if size < _WEAKER * self.weakest else self.stale + 1
        self.weakest = min(size, self.weakest)
        return self.stale >= _PATIENCE

    def _slipped(self) -> bool:
        turned = self.system.angles(self.phases) - self.system.angles(self.start)
        return float(np.max(np.abs(turned), initial=0.0)) > _SLIP
