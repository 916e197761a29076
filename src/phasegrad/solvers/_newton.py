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

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray, choice, positive_float, whole_number
from phasegrad.dynamics import System
from phasegrad.linearised import (
    AT_REST,
    KINDS,
    DenseLaplacian,
    Linearised,
    SparseLaplacian,
    chunks,
    refuse_dense_solve,
)
from phasegrad.solvers._contract import Solution
from phasegrad.solvers._guards import EnergyGuard, ForceGuard, squared

INDEFINITE = ("descend", "follow", "stop")
# A full step that leaves a quarter of the squared force, half of the force, is taken without a line search.
_HALVED = 0.25
# Halvings of a step until the line search gives up; on a branch a short step means that the branch has ended.
_HALVINGS, _FEW_HALVINGS = 40, 6
# Two turns of a phase difference from the start: without a locked state descent would go on for ever.
_SLIP = 4 * np.pi
# Descent is stale while the force stays above this share of the weakest so far; after so many stale steps it leaves a
# saddle by the true curvatures, and gives up where it began convex and frequencies drive it.
_WEAKER, _CRAWLS, _PATIENCE = 0.95, 10, 10
# On a branch: steps that did not halve the weakest force so far, after which the sample is not near an equilibrium.
_HALF, _FEW_STEPS = 0.5, 4
# The coarsest that an iterative solve of a step may be: quadratic convergence needs no more far away.
_LOOSEST = 1e-2
# The share of the tolerance below which polishing and iterative solves stop.
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
    algebra : type of Linearised, optional
        How linear systems with the Laplacian are solved: `DenseLaplacian` by LAPACK, sample by sample;
        `SparseLaplacian` by conjugate gradients; `PhasorLaplacian` by products of matrices that all samples of one
        sine-coupled network share, which agree with the others to the tolerance. Left out: sparse for large networks
        with few edges, else dense. One that does not fit a network gives way to the dense one.
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
    >>> network = pg.networks.random_regular(1000, 6, omega=np.random.default_rng(0).normal(0, 0.3, 1000))
    >>> bool(pg.find_equilibrium(network, solver=pg.solvers.Newton(preconditioner="jacobi")).stable)
    True
    """

    max_steps: int = 500
    max_turn: float = 1.0
    indefinite: str = "descend"
    algebra: type[Linearised] | None = None
    preconditioner: str = "auto"
    polish: bool = True
    progress: Callable[[Progress], object] | None = None

    def __post_init__(self) -> None:
        whole_number("max_steps", self.max_steps, 1, "Newton")
        positive_float("max_turn", self.max_turn, "Newton")
        choice("indefinite", self.indefinite, INDEFINITE, "Newton")
        choice("preconditioner", self.preconditioner, KINDS, "Newton")
        if self.algebra is not None and not (isinstance(self.algebra, type) and issubclass(self.algebra, Linearised)):
            raise TypeError(
                "The 'algebra' parameter of Newton must be a class of phasegrad.linearised, such as DenseLaplacian, or "
                f"None. Got {self.algebra!r}."
            )

    def solve(self, system: System, start: Array, tolerance: FloatArray) -> Solution:
        """Return phases near ``start`` whose residual is at most ``tolerance``, or the best found."""
        phases, left = start.copy(), np.zeros(system.batch)
        steps = np.zeros(system.batch, dtype=np.int64)
        algebra = self.algebra_of(system)
        for part in chunks(system.batch, algebra.entries(system)):
            rows = np.arange(part.start, part.stop)
            some = system if rows.size == system.batch else system.take(rows)
            state = algebra.of(some, start[rows], self.preconditioner)
            moving, left[rows], steps[rows] = self.iterate(state, tolerance[rows])
            phases[rows[:, None], state.nodes] = moving
        return Solution(phases, left, steps, np.full(system.batch, f"newton ({algebra.name})", dtype=object))

    def algebra_of(self, system: System) -> type[Linearised]:
        """Return how linear systems of this one are solved."""
        if self.algebra is SparseLaplacian or (self.algebra is None and SparseLaplacian.fits(system)):
            return SparseLaplacian
        leads_anywhere = self.algebra is not None and (self.algebra.descends or self.indefinite == "stop")
        if self.algebra is not None and leads_anywhere and self.algebra.fits(system):
            return self.algebra
        refuse_dense_solve(system.graph, "A dense solve", reciprocal=system.reciprocal)
        return DenseLaplacian

    def iterate(
        self, state: Linearised, tolerance: FloatArray, *, easily: bool = False
    ) -> tuple[Array, FloatArray, IntArray]:
        """Return phases (B, n) of the oscillators that move, their residuals (B,) and the steps taken (B,).

        With ``easily`` samples that need more than full steps may be left as they are.
        """
        plain = state.stride(tolerance, self.max_steps, self.max_turn, _HALVED, polish=self.polish)
        if plain is None:
            return _Iteration(self, state, tolerance).run()
        # Steps that need no closer look were taken in one go; the loop takes over the samples they left.
        found, left, steps = plain
        rows = np.flatnonzero(~(left <= tolerance))
        if rows.size and not easily:
            rest = _Iteration(self, state.take(rows).at(found[rows]), tolerance[rows])
            rest.begun(state.moving[rows], steps[rows])
            found[rows], left[rows], more = rest.run()
            steps[rows] += more
        return found, left, steps


class _Iteration:
    """The loop: the states of the samples that still move, and where all of them are."""

    def __init__(self, settings: Newton, state: Linearised, tolerance: FloatArray) -> None:
        self.settings, self.state = settings, state
        self.start, self.tolerance = state.moving, tolerance
        batch = state.moving.shape[0]
        self.rows = np.arange(batch)
        self.found, self.steps = np.array(state.moving), np.zeros(batch, dtype=np.int64)
        self.left = _largest(state.force)
        self.weakest, self.stale = np.full(batch, np.inf), np.zeros(batch, dtype=np.int64)
        self.convex = np.zeros(batch, dtype=bool)
        self.follows = settings.indefinite == "follow"
        self.has_energy, self.is_complex = state.system.has_energy, state.system.is_complex
        self.energetic = self.has_energy and not self.follows
        self.most = np.full(batch, settings.max_steps)

    def begun(self, start: Array, steps: IntArray) -> None:
        """Go on from full steps that led here from ``start``: each of them halved the force, on convex ground."""
        self.start, self.convex = start, steps > 0
        if self.follows:
            self.weakest = np.where(steps > 0, np.sqrt(squared(self.state.force)), np.inf)
        self.most = self.most - steps

    def run(self) -> tuple[Array, FloatArray, IntArray]:
        done = np.zeros(self.rows.size, dtype=bool)
        for taken in range(self.settings.max_steps):
            going = ~(done | self._finished())
            if not going.any():
                break
            self._keep_going(going)
            near = self.left[self.rows] <= self.tolerance[self.rows]
            step, usable, indefinite = self._direction()
            after, kept = self._guarded(step, usable, indefinite, near)
            left = _largest(after.force)
            # A converged sample takes one last step for the digits below the tolerance, if it helps. The imaginary
            # part that a tiny complex nudge causes may hide below the residual of the real one: it always counts.
            hidden = self.is_complex & (left <= self.tolerance[self.rows])
            kept &= ~near | (left < self.left[self.rows]) | hidden
            # What was not kept is done, so that nobody looks at its state any more.
            done = near | ~kept
            self._move(after, kept, left)
            if taken == 0:
                # From a random start the way over indefinite states is long; from a convex one it leads nowhere.
                self.convex[self.rows] |= usable & ~indefinite
            if self.follows:
                done |= self._astray(after.force)
            elif indefinite.any():
                done[indefinite] |= self._lost(np.flatnonzero(indefinite), after.force)
            self._tell()
        return self.found, self.left, self.steps

    def _finished(self) -> BoolArray:
        """Return which samples have taken all steps they may, or need no further one, not even one to polish them.

        Where systems are solved by iterations, a step for a residual that is well below the tolerance would not be.
        """
        spent = np.asarray(self.steps[self.rows] >= self.most[self.rows])
        if self.settings.polish and not self.state.iterates:
            return spent
        share = _POLISHED if self.settings.polish else 1.0
        return np.asarray(spent | (self.left[self.rows] <= share * self.tolerance[self.rows]))

    def _keep_going(self, going: BoolArray) -> None:
        """Leave out the samples that are done."""
        if not going.all():
            self.rows = self.rows[going]
            self.state = self.state.take(going)

    def _direction(self) -> tuple[Array, BoolArray, BoolArray]:
        """Return the steps, where there is one, and where it is not Newton's on a positive definite Laplacian."""
        left, tolerance = self.left[self.rows], self.tolerance[self.rows]
        # Accurate enough for quadratic convergence, but never beyond what the last step needs.
        accuracy = np.maximum(np.minimum(_LOOSEST, left), _POLISHED * tolerance / np.maximum(left, 1e-200))
        step, usable = self.state.newton(accuracy, left <= AT_REST * tolerance)
        indefinite = np.zeros(usable.shape, dtype=bool)
        if self.settings.indefinite != "stop" and self.has_energy and not usable.all():
            indefinite = ~usable
            rows = np.flatnonzero(indefinite)
            other = self.state.follow if self.follows else self.state.descend
            step[rows], usable[rows] = other(rows)
            self._leave_saddles(step, rows)
        turn = self.state.turn(step)
        if not (usable & np.isfinite(turn)).all():
            usable &= np.isfinite(turn)
            step[~usable], turn[~usable] = 0.0, 0.0
        if (turn > self.settings.max_turn).any():
            step *= np.minimum(1.0, self.settings.max_turn / np.maximum(turn, 1e-300))[:, None]
        return step, usable, indefinite

    def _leave_saddles(self, step: Array, rows: IntArray) -> None:
        """Where descent crawls along a saddle, which its stand-in metric does not see, take the true curvatures.

        Only where nothing drives the oscillators: their energy is bounded below, and the way down leads somewhere.
        """
        stuck = rows[(self.stale[self.rows[rows]] >= _CRAWLS) & ~self._driven(rows)]
        if stuck.size and not self.follows:
            away = self.state.leave(stuck)
            if away is not None:
                step[stuck] = away

    def _driven(self, places: IntArray) -> BoolArray:
        """Return which of some samples have frequencies, which may carry them down for ever."""
        driven = np.any(self.state.system.drive != 0, axis=1)
        return np.broadcast_to(driven, (self.rows.size,))[places]

    def _guarded(
        self, step: Array, usable: BoolArray, indefinite: BoolArray, near: BoolArray
    ) -> tuple[Linearised, BoolArray]:
        """Return the state after the step, halved where the guard asks for it, and where there is one."""
        after = self.state.at(self.state.moving + step)
        before, norm = squared(self.state.force), squared(after.force)
        accepted = usable & (near | (norm <= _HALVED * before) & ~(indefinite & self.energetic))
        waiting = np.flatnonzero(usable & ~accepted)
        if waiting.size == 0:
            return after, accepted
        return self._line_search(step, waiting, accepted)

    def _line_search(self, step: Array, waiting: IntArray, accepted: BoolArray) -> tuple[Linearised, BoolArray]:
        """Halve the steps of the samples that wait until their guard accepts."""
        guard = (EnergyGuard if self.energetic else ForceGuard)(self.state.take(waiting), step[waiting])
        moved = self.state.moving + step
        fraction, place = 1.0, np.arange(waiting.size)
        for _ in range(_FEW_HALVINGS if self.follows else _HALVINGS):
            passed = guard.accepts(place, self.state.take(waiting).at(moved[waiting]), fraction)
            accepted[waiting[passed]] = True
            waiting, place = waiting[~passed], place[~passed]
            if waiting.size == 0:
                break
            fraction /= 2
            moved[waiting] = self.state.moving[waiting] + fraction * step[waiting]
        return self.state.at(moved), accepted

    def _move(self, after: Linearised, kept: BoolArray, left: FloatArray) -> None:
        rows = self.rows[kept]
        self.found[rows], self.left[rows] = after.moving[kept], left[kept]
        self.steps[rows] += 1
        self.state = after

    def _astray(self, force: Array) -> BoolArray:
        """Return which samples are not near an equilibrium: four steps that did not halve their forces."""
        size = np.sqrt(squared(force))
        self.stale[self.rows] += size > _HALF * self.weakest[self.rows]
        self.weakest[self.rows] = np.minimum(size, self.weakest[self.rows])
        return np.asarray(self.stale[self.rows] >= _FEW_STEPS)

    def _lost(self, places: IntArray, force: Array) -> BoolArray:
        """Return which of some samples only drift: for long without weaker forces, or slipped away."""
        rows, size = self.rows[places], np.sqrt(squared(force[places]))
        weaker = size < _WEAKER * self.weakest[rows]
        self.stale[rows] = np.where(weaker, 0, self.stale[rows] + 1)
        self.weakest[rows] = np.minimum(size, self.weakest[rows])
        turned = np.zeros((rows.size, self.state.system.graph.size))
        turned[:, self.state.nodes] = self.state.moving[places] - self.start[rows]
        slipped = self.state.system.turns(turned) > _SLIP
        return self.convex[rows] & (self.stale[rows] >= _PATIENCE) & self._driven(places) | slipped

    def _tell(self) -> None:
        if self.settings.progress is None:
            return
        for place, row in enumerate(self.rows.tolist()):
            report = self.state.report(place)
            if report is not None:
                self.settings.progress(Progress(row, int(self.steps[row]), float(self.left[row]), *report))


def _largest(force: Array) -> FloatArray:
    return np.asarray(np.abs(force).max(axis=1, initial=0.0), dtype=np.float64)
