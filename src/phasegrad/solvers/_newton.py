r"""Newton's method, guarded: full steps where they are safe, descent everywhere else.

With an energy E (reciprocal coupling), a step solves L d = F. One that at least halves the force of a sample is taken
as it is; any other must lower E enough (Armijo, halving otherwise). Where the Laplacian L is not positive definite,
Newton would climb toward saddles; there the step follows the gradient flow instead, d = P^-1 F with the positive
definite stand-in P of `System.laplacian(floor=...)`, again under the line search; where that crawls along a saddle the
eigenvalues of L itself, made positive, lead away. Without an energy (non-reciprocal
coupling, complex nudges), or to follow a known equilibrium, the guard is the norm of the force.

One masked loop serves every linear algebra: samples that are done leave it, and none touches another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray, choice, positive_float, whole_number
from phasegrad.dynamics import System
from phasegrad.solvers._contract import Solution, Solver
from phasegrad.solvers._linear import chunks
from phasegrad.solvers._mechanics import Descending, Mechanics

ALGEBRAS = ("auto", "dense", "sparse", "products")
INDEFINITE = ("descend", "follow", "stop")
_ARMIJO = 1e-4
_HALVINGS, _FEW_HALVINGS = 40, 6
_HALVED = 0.25
_EPS = float(np.finfo(float).eps)
_SLIP = 4 * np.pi
_WEAKER, _CRAWLS, _PATIENCE = 0.95, 10, 10
_HALF, _FEW_STEPS = 0.5, 4
_LOOSEST = 1e-2
_POLISHED = 0.1


@dataclass(frozen=True)
class Progress:
    """How far a long solve has come: sample, step, the largest force left, linear iterations so far, by which way."""

    sample: int
    step: int
    residual: float
    iterations: int
    preconditioner: str


@dataclass(frozen=True)
class Newton:
    """Newton's method that never leaves descent.

    Parameters
    ----------
    max_steps : int
        Steps after which a sample is given up. Where frequencies drive it, it is also given up once ten steps out of a
        convex region into an indefinite one have not weakened the forces; and once a phase difference across an edge
        has slipped two turns: without a locked state descent would go on for ever.
    max_turn : float
        No oscillator (on a large sparse network: no phase difference across an edge) turns by more than this many
        radians in one step.
    indefinite : {"descend", "follow", "stop"}
        What to do where the Laplacian is not positive definite: descend in a positive stand-in metric; follow the
        branch near the start even if it is unstable, by plain Newton that is guarded by the norm of the force alone,
        made for small changes of a known equilibrium; or give the sample up.
    algebra : {"auto", "dense", "sparse", "products"}
        How linear systems with the Laplacian are solved: "dense" by LAPACK, sample by sample; "sparse" by conjugate
        gradients on sparse matrices; "products" by products of matrices that all samples of one sine-coupled network
        share, which agree with the others to the tolerance. "auto" takes "sparse" for large networks with few edges,
        else "dense".
    preconditioner : {"auto", "gauss-seidel", "jacobi", "multigrid"}
        Of the sparse algebra. "auto" probes the graph: Gauss-Seidel where few steps lead everywhere, multigrid (pyamg)
        on meshes.
    polish : bool
        Whether a sample that has converged takes one more step for the digits below the tolerance. In the sparse
        algebra it does so only as long as its residual is above a tenth of the tolerance.
    progress : callable, optional
        Called with a `Progress` after every step of the sparse algebra.

    See Also
    --------
    GradientFlow : The physical dynamics, finished by Newton.
    find_equilibrium : One certified equilibrium per sample.

    Examples
    --------
    >>> import numpy as np, phasegrad as pg
    >>> network = pg.random_regular(1000, 6, omega=np.random.default_rng(0).normal(0, 0.3, 1000))
    >>> bool(pg.find_equilibrium(network, solver=pg.Newton(preconditioner="jacobi")).stable)
    True
    """

    max_steps: int = 500
    max_turn: float = 1.0
    indefinite: str = "descend"
    algebra: str = "auto"
    preconditioner: str = "auto"
    polish: bool = True
    progress: Callable[[Progress], object] | None = None

    def __post_init__(self) -> None:
        whole_number("max_steps", self.max_steps, 1, "Newton")
        positive_float("max_turn", self.max_turn, "Newton")
        choice("algebra", self.algebra, ALGEBRAS, "Newton")
        choice("indefinite", self.indefinite, INDEFINITE, "Newton")
        from phasegrad.solvers._preconditioning import KINDS

        choice("preconditioner", self.preconditioner, KINDS, "Newton")

    def solve(self, system: System, start: Array, tolerance: FloatArray) -> Solution:
        """Return phases near ``start`` whose residual is at most ``tolerance``, or the best found."""
        from phasegrad.solvers._choice import mechanics_of

        phases, left = start.copy(), np.zeros(system.batch)
        steps = np.zeros(system.batch, dtype=np.int64)
        whole = mechanics_of(system, self)
        for part in chunks(system.batch, whole.entries):
            rows = np.arange(part.start, part.stop)
            mechanics = whole if rows.size == system.batch else whole.take(rows)
            moving, left[rows], steps[rows] = self.iterate(
                mechanics, np.take(start[rows], mechanics.nodes, axis=1), tolerance[rows]
            )
            phases[rows[:, None], mechanics.nodes] = moving
        return Solution(phases, left, steps)

    def iterate(
        self, mechanics: Mechanics, moving: Array, tolerance: FloatArray, *, easily: bool = False
    ) -> tuple[Array, FloatArray, IntArray]:
        """Return phases (B, n) of the oscillators that move, their residuals (B,) and the steps taken (B,).

        With ``easily`` samples that need more than full steps may be left as they are.
        """
        strides = getattr(mechanics, "stride", None)
        plain = None
        if strides is not None and self.indefinite == "stop" and not self.polish:
            plain = strides(moving, tolerance, self.max_steps, self.max_turn, _HALVED)
        if plain is None:
            return _Iteration(self, mechanics, moving, tolerance).run()
        # Steps that need no closer look were taken in one go; the loop takes over the samples they left.
        found, left, steps = plain
        rows = np.flatnonzero(~(left <= tolerance))
        if rows.size and not easily:
            found[rows], left[rows], more = _Iteration(self, mechanics.take(rows), found[rows], tolerance[rows]).run()
            steps[rows] += more
        return found, left, steps


class _Iteration:
    """The loop: what the samples that still move share, and where all of them are."""

    def __init__(self, settings: Newton, mechanics: Mechanics, moving: Array, tolerance: FloatArray) -> None:
        self.settings, self.mechanics = settings, mechanics
        self.state = mechanics.at(moving)
        self.start, self.tolerance = moving, tolerance
        batch = moving.shape[0]
        self.rows = np.arange(batch)
        self.found, self.steps = np.array(moving), np.zeros(batch, dtype=np.int64)
        self.left = _largest(self.state.force)
        self.weakest, self.stale = np.full(batch, np.inf), np.zeros(batch, dtype=np.int64)
        self.convex = np.zeros(batch, dtype=bool)
        self.follows = settings.indefinite == "follow"
        self.energetic = mechanics.system.has_energy and not self.follows

    def run(self) -> tuple[Array, FloatArray, IntArray]:
        done = np.zeros(self.rows.size, dtype=bool)
        for taken in range(self.settings.max_steps):
            self._keep_going(~(done | self._finished()))
            if self.rows.size == 0:
                break
            near = self.left[self.rows] <= self.tolerance[self.rows]
            step, usable, bent = self._direction()
            after, kept = self._guarded(step, usable, bent, near)
            left = _largest(after.force)
            # A converged sample takes one last step for the digits below the tolerance, if it helps. The imaginary
            # part that a tiny complex nudge causes may hide below the residual of the real one: it always counts.
            hidden = self.mechanics.system.is_complex & (left <= self.tolerance[self.rows])
            kept &= ~near | (left < self.left[self.rows]) | hidden
            done = near | ~kept
            self._move(after, kept, left)
            if taken == 0:
                # From a random start the way over indefinite states is long; from a convex one it leads nowhere.
                self.convex[self.rows] = usable & ~bent
            if self.follows:
                done |= self._astray(after.force)
            elif np.any(bent):
                done[bent] |= self._lost(np.flatnonzero(bent), after.force)
            self._tell()
        return self.found, self.left, self.steps

    def _finished(self) -> BoolArray:
        """Return which samples need no further step, not even one to polish them.

        Where systems are solved by iterations, a step for a residual that is well below the tolerance would not be.
        """
        iterates = getattr(self.mechanics, "iterates", False)
        if self.settings.polish and not iterates:
            return np.zeros(self.rows.shape, dtype=bool)
        share = _POLISHED if self.settings.polish else 1.0
        return np.asarray(self.left[self.rows] <= share * self.tolerance[self.rows])

    def _keep_going(self, going: BoolArray) -> None:
        """Leave out the samples that are done."""
        if not np.all(going):
            self.rows = self.rows[going]
            self.mechanics, self.state = self.mechanics.take(going), self.state.take(going)

    def _direction(self) -> tuple[Array, BoolArray, BoolArray]:
        """Return the steps, where there is one, and where it is not Newton's on a positive definite Laplacian."""
        left, tolerance = self.left[self.rows], self.tolerance[self.rows]
        # Accurate enough for quadratic convergence, but never beyond what the last step needs.
        accuracy = np.maximum(np.minimum(_LOOSEST, left), _POLISHED * tolerance / np.maximum(left, 1e-200))
        step, usable = self.mechanics.newton(self.state, accuracy)
        bent = np.zeros(usable.shape, dtype=bool)
        if self.settings.indefinite != "stop" and self.mechanics.system.has_energy and not np.all(usable):
            bent = ~usable
            rows = np.flatnonzero(bent)
            mechanics = cast(Descending, self.mechanics)
            other = mechanics.follow if self.follows else mechanics.descend
            step[rows], usable[rows] = other(self.state, rows)
            self._leave_saddles(step, rows)
        turn = self.mechanics.turn(step)
        if not np.all(usable & np.isfinite(turn)):
            usable &= np.isfinite(turn)
            step[~usable], turn[~usable] = 0.0, 0.0
        if np.any(turn > self.settings.max_turn):
            step *= np.minimum(1.0, self.settings.max_turn / np.maximum(turn, 1e-300))[:, None]
        return step, usable, bent

    def _leave_saddles(self, step: Array, rows: IntArray) -> None:
        """Where descent crawls along a saddle, which its stand-in metric does not see, take the true curvatures.

        Only where nothing drives the oscillators: their energy is bounded below, and the way down leads somewhere.
        """
        leave = getattr(self.mechanics, "leave", None)
        stuck = rows[(self.stale[self.rows[rows]] >= _CRAWLS) & ~self._driven(rows)]
        if leave is not None and stuck.size and not self.follows:
            step[stuck] = leave(self.state, stuck)

    def _driven(self, places: IntArray) -> BoolArray:
        """Return which of some samples have frequencies, which may carry them down for ever."""
        driven = np.any(self.mechanics.system.drive != 0, axis=1)
        return np.broadcast_to(driven, (self.rows.size,))[places]

    def _guarded(self, step: Array, usable: BoolArray, bent: BoolArray, near: BoolArray) -> tuple[Any, BoolArray]:
        """Return the state after the step, halved where the guard asks for it, and where there is one."""
        after = self.mechanics.at(self.state.moving + step)
        before, norm = _square(self.state.force), _square(after.force)
        accepted = usable & (near | (norm <= _HALVED * before) & ~(bent & self.energetic))
        waiting = np.flatnonzero(usable & ~accepted)
        if waiting.size == 0:
            return after, accepted
        return self._line_search(step, waiting, accepted)

    def _line_search(self, step: Array, waiting: IntArray, accepted: BoolArray) -> tuple[Any, BoolArray]:
        """Halve the steps of the samples that wait until their guard accepts."""
        judge = _EnergyGuard if self.energetic else _ForceGuard
        guard = judge(self.mechanics.take(waiting), self.state.take(waiting), step[waiting])
        moved = self.state.moving + step
        fraction, place = 1.0, np.arange(waiting.size)
        for _ in range(_FEW_HALVINGS if self.follows else _HALVINGS):
            part = self.mechanics.take(waiting)
            passed = guard.accepts(part, place, part.at(moved[waiting]), fraction)
            accepted[waiting[passed]] = True
            waiting, place = waiting[~passed], place[~passed]
            if waiting.size == 0:
                break
            fraction /= 2
            moved[waiting] = self.state.moving[waiting] + fraction * step[waiting]
        return self.mechanics.at(moved), accepted

    def _move(self, after: Any, kept: BoolArray, left: FloatArray) -> None:
        rows = self.rows[kept]
        self.found[rows], self.left[rows] = after.moving[kept], left[kept]
        self.steps[rows] += 1
        self.state = after if np.all(kept) else self._mixed(after, kept)

    def _mixed(self, after: Any, kept: BoolArray) -> Any:
        """Return the state after the step where it was kept, else that before."""
        return type(after)(
            *(
                np.where(kept.reshape(-1, *(1,) * (new.ndim - 1)), new, old)
                for new, old in zip(after, self.state, strict=True)
            )
        )

    def _astray(self, force: Array) -> BoolArray:
        """Return which samples are not near an equilibrium: four steps that did not halve their forces."""
        size = np.sqrt(_square(force))
        self.stale[self.rows] += size > _HALF * self.weakest[self.rows]
        self.weakest[self.rows] = np.minimum(size, self.weakest[self.rows])
        return np.asarray(self.stale[self.rows] >= _FEW_STEPS)

    def _lost(self, places: IntArray, force: Array) -> BoolArray:
        """Return which of some samples only drift: for long without weaker forces, or slipped away."""
        rows, size = self.rows[places], np.sqrt(_square(force[places]))
        weaker = size < _WEAKER * self.weakest[rows]
        self.stale[rows] = np.where(weaker, 0, self.stale[rows] + 1)
        self.weakest[rows] = np.minimum(size, self.weakest[rows])
        turned = np.zeros((rows.size, self.mechanics.system.graph.size))
        turned[:, self.mechanics.nodes] = self.state.moving[places] - self.start[rows]
        slipped = self.mechanics.system.turns(turned) > _SLIP
        return self.convex[rows] & (self.stale[rows] >= _PATIENCE) & self._driven(places) | slipped

    def _tell(self) -> None:
        report = getattr(self.mechanics, "report", None)
        if self.settings.progress is not None and report is not None:
            for place, row in enumerate(self.rows.tolist()):
                iterations, way = report(place)
                self.settings.progress(Progress(row, int(self.steps[row]), float(self.left[row]), iterations, way))


class _EnergyGuard:
    """Armijo's rule on the energy, or less force where the energy's own rounding hides its change."""

    def __init__(self, mechanics: Mechanics, state: Any, step: Array) -> None:
        self.energy = mechanics.energy(state)
        self.gain = np.sum(state.force * step, axis=1)
        self.norm = _square(state.force)
        system = mechanics.system
        reach = 1.0 + np.max(np.abs(state.moving), axis=1)
        magnitude = np.sum(system.capacity + np.abs(system.drive), axis=1) * reach + np.abs(self.energy)
        self.rounding = 16 * _EPS * magnitude

    def accepts(self, mechanics: Mechanics, rows: IntArray, moved: Any, fraction: float) -> BoolArray:
        """Return which of the samples ``rows`` may go to ``moved``, a fraction of the whole step away."""
        drop = self.energy[rows] - mechanics.energy(moved)
        lower = drop >= _ARMIJO * fraction * self.gain[rows]
        hidden = self.gain[rows] <= 1e3 * self.rounding[rows]
        weaker = (_square(moved.force) < self.norm[rows]) & (drop >= -self.rounding[rows])
        return np.where(hidden, weaker, lower)


class _ForceGuard:
    """The norm of the force must fall."""

    def __init__(self, mechanics: Mechanics, state: Any, step: Array) -> None:
        del mechanics, step
        self.norm = np.sqrt(_square(state.force))

    def accepts(self, mechanics: Mechanics, rows: IntArray, moved: Any, fraction: float) -> BoolArray:
        """Return which of the samples ``rows`` may go to ``moved``, a fraction of the whole step away."""
        del mechanics
        return np.sqrt(_square(moved.force)) <= (1 - _ARMIJO * fraction) * self.norm[rows]


@dataclass(frozen=True)
class InTurn:
    """Several solvers: what the first leaves unsettled the next one tries, from the same start.

    What none of them settles is left where the force is weakest.

    Parameters
    ----------
    solvers : sequence of Solver
    stable : bool
        Whether a state must be stable to count as settled; an unstable one is kept where no later solver does better.
    energetic : bool
        Whether the later ones are for systems with an energy only.
    """

    solvers: Sequence[Solver]
    stable: bool = False
    energetic: bool = False

    def solve(self, system: System, start: Array, tolerance: FloatArray) -> Solution:
        """Return phases near ``start`` whose residual is at most ``tolerance``, or the best found."""
        found = self.solvers[0].solve(system, start, tolerance)
        for solver in self.solvers[1:] if system.has_energy or not self.energetic else ():
            rows = np.flatnonzero(~self._settled(system, found, tolerance))
            if rows.size == 0:
                break
            part, limits = system.take(rows), tolerance[rows]
            again = solver.solve(part, start[rows], limits)
            nearer = ~(found.residual[rows] <= limits) & (again.residual < found.residual[rows])
            better = self._settled(part, again, limits) | nearer
            found.phases[rows[better]], found.residual[rows[better]] = again.phases[better], again.residual[better]
            found.steps[rows] += again.steps
        return found

    def _settled(self, system: System, solution: Solution, tolerance: FloatArray) -> BoolArray:
        converged = np.asarray(solution.residual <= tolerance)
        if not self.stable:
            return converged
        from phasegrad.solvers._stability import stability

        return converged & stability(system, solution.phases).stable


def _largest(force: Array) -> FloatArray:
    return np.asarray(np.max(np.abs(force), axis=1, initial=0.0), dtype=np.float64)


def _square(force: Array) -> FloatArray:
    return np.asarray(np.sum(np.abs(force) ** 2 if np.iscomplexobj(force) else force * force, axis=1))
