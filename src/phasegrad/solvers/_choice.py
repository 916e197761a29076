"""The one place that chooses: which linear algebra a system gets, which solver a word means, what is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from phasegrad._validation import Array, FloatArray, choice, whole_number
from phasegrad.dynamics import System
from phasegrad.graphs import DENSE_LIMIT, Graph, refuse_dense
from phasegrad.solvers._alignment import align, align_system, can_align
from phasegrad.solvers._contract import Solution, Solver
from phasegrad.solvers._flow import GradientFlow
from phasegrad.solvers._linear import chunks
from phasegrad.solvers._mechanics import Dense, Mechanics
from phasegrad.solvers._newton import InTurn, Newton, Progress
from phasegrad.solvers._persistence import ColdStart, StiffFlow, Unwinding
from phasegrad.solvers._products import Products
from phasegrad.solvers._rows import Rows

#: Words for solvers.
SOLVERS = ("auto", "newton", "sparse", "flow", "batch")
#: Oscillators from which a network with few edges is solved sparsely.
SPARSE_FROM = 300
#: Share of all pairs that may be coupled in a network that counts as sparse.
SPARSE_DENSITY = 0.1
#: Newton for a batch of one network, where plain steps nearly always do.
BATCHED = Newton(max_steps=20, algebra="products", indefinite="stop", polish=False)
#: Newton that stays on stable ground, or gives a sample up.
STOPPING = Newton(max_steps=50, indefinite="stop", polish=False)
#: Newton that stays on the branch it starts from, stable or not, or gives a sample up.
FOLLOWING = Newton(max_steps=50, indefinite="follow", polish=False)
#: Oscillators up to which a sample that did not converge is followed by the dynamics: each step factors dense matrices.
FOLLOWED_UP_TO = 300
_ROUNDS = 3


def is_sparse(system: System) -> bool:
    """Return whether the sparse algebra takes a system: large, few edges, and a real symmetric Laplacian."""
    graph = system.graph
    if not system.has_energy or graph.size < SPARSE_FROM:
        return False
    return graph.size > DENSE_LIMIT or 2 * graph.n_edges <= SPARSE_DENSITY * graph.size**2


def refuse_dense_solve(graph: Graph, what: str, *, reciprocal: bool = True) -> None:
    """Raise ValueError where a solver or gradient would have to make a dense matrix that is too large.

    It has a row for every oscillator that moves: inputs whose phases are clamped do not count.
    """
    if reciprocal:
        advice = "The sparse way has no such limit: solver='auto', and the gradients adjoint, two_phase and centred."
    else:
        advice = "The sparse way is for reciprocal coupling only: use a smaller network."
    refuse_dense(graph.free.size, what, advice)


def mechanics_of(system: System, settings: Newton) -> Mechanics:
    """Return the linear algebra that Newton's loop gets for a system."""
    word = settings.algebra
    if word == "sparse" or (word == "auto" and is_sparse(system)):
        return Rows.of(system, settings.preconditioner)
    if word == "products" and settings.indefinite == "stop" and Products.fits(system):
        return Products.of(system)
    refuse_dense_solve(system.graph, "A dense solve", reciprocal=system.reciprocal)
    return Dense(system)


def solver_of(
    word: str | Solver,
    system: System,
    owner: str,
    progress: Callable[[Progress], object] | None = None,
    *,
    polish: bool = True,
) -> Solver:
    """Return the solver that a word means for a system; a solver stands for itself.

    Without ``polish`` it stops at the tolerance, where digits below it are not needed.
    """
    if not isinstance(word, str):
        if isinstance(word, type) or not callable(getattr(word, "solve", None)):
            raise TypeError(
                f"The 'solver' parameter of {owner} must be a name or an object with a solve method, such as "
                f"Newton(). Got {word!r}."
            )
        return word
    choice("solver", word, SOLVERS, owner)
    sparsely = is_sparse(system)
    if word == "sparse" or (word == "auto" and sparsely):
        return Newton(algebra="sparse", progress=progress, polish=polish)
    if word == "flow":
        return GradientFlow(finish=Newton(progress=progress, polish=polish))
    refuse_dense_solve(system.graph, f"solver={word!r}", reciprocal=system.reciprocal)
    if word == "batch":
        dense = Newton(algebra="dense", polish=polish)
        if system.pull is not None:
            return InTurn((BATCHED, branch_solver(system)), energetic=True)
        return InTurn((AlignedNewton(), dense))
    if word == "auto" and not system.has_energy and not system.is_complex:
        # Newton on the norm of the force knows no descent: what it leaves unstable, the dynamics may settle.
        return InTurn((Newton(max_steps=50, polish=polish), GradientFlow()), stable=True)
    return Newton(algebra="dense", polish=polish)


def persistent_solver(
    word: str | Solver,
    system: System,
    owner: str,
    progress: Callable[[Progress], object] | None = None,
    *,
    unwinds: bool = False,
) -> Solver:
    """Return the solver that a word means, with more to try where it does not converge; a solver stands for itself.

    First the dynamics, from the same start; then, where they drift, the same solver from phase zero: a state with a
    small basin may be missed from anywhere else. Not under a nudge, whose state belongs to its start, nor for "flow",
    whose state is the one that the dynamics reach. With ``unwinds`` full turns are removed on the way.
    """
    first = solver_of(word, system, owner, progress)
    tried = [first]
    if isinstance(word, str) and not system.is_complex and system.graph.free.size <= FOLLOWED_UP_TO:
        tried.append(StiffFlow())
        if word != "flow" and system.pull is None:
            tried.append(ColdStart(first))
    tried = [Unwinding(each) for each in tried] if unwinds else tried
    return InTurn(tried) if len(tried) > 1 else tried[0]


def branch_solver(system: System) -> Solver:
    """Return the solver that stays on the branch of a known equilibrium, and descends only where that fails.

    For nudged networks and turned parameters: they are small changes of an equilibrium whose derivative is asked for.
    """
    if not is_sparse(system):
        refuse_dense_solve(system.graph, "A solve on the branch of an equilibrium", reciprocal=system.reciprocal)
    return InTurn((dataclasses.replace(FOLLOWING, polish=True), Newton()), energetic=True)


@dataclass(frozen=True)
class AlignedNewton:
    """Newton's method by products of matrices, from where field alignment leads.

    Alignment brings signed, layered networks near a stable state from anywhere. Any other system goes to plain Newton
    as it is.

    Parameters
    ----------
    newton : Newton
        What follows alignment.
    sweeps : int
        Most sweeps of alignment before Newton, for networks of few colours.
    """

    newton: Newton = BATCHED
    sweeps: int = 30

    def __post_init__(self) -> None:
        whole_number("sweeps", self.sweeps, 0, "AlignedNewton")

    def solve(self, system: System, start: Array, tolerance: FloatArray) -> Solution:
        """Return phases near ``start`` whose residual is at most ``tolerance``, or the best found."""
        if not Products.fits(system) or system.batch == 0:
            if not self.sweeps or not can_align(system):
                return self.newton.solve(system, start, tolerance)
            first = align_system(system, start, self.sweeps)
            # With fields that are no sines alignment may end where the Laplacian is not positive definite.
            downhill = () if all(term.phasor for term in system.terms) else (Newton(polish=False),)
            return InTurn((self.newton, *downhill)).solve(system, first, tolerance)
        phases, left = start.copy(), np.zeros(system.batch)
        steps = np.zeros(system.batch, dtype=np.int64)
        for part in chunks(system.batch, Products.entries_of(system)):
            rows = np.arange(part.start, part.stop)
            products = Products.of(system.take(rows))
            first = np.take(start[rows], products.nodes, axis=1)
            moving, left[rows], steps[rows] = self.settle(products, first, tolerance[rows])
            phases[rows[:, None], products.nodes] = moving
        return Solution(phases, left, steps)

    def settle(
        self, products: Products, start: FloatArray, tolerance: FloatArray, *, near: bool = False
    ) -> tuple[Array, Array, Array]:
        """Return phases (B, n) of the oscillators that move, their residuals (B,) and the steps taken (B,).

        With ``near`` the start is nearly an equilibrium already: alignment comes only after Newton has failed.
        """
        aligns = self.sweeps > 0 and products.pull is None and can_align(products.base)
        phases, left = np.array(start), np.full(start.shape[0], np.inf)
        steps, active = np.zeros(start.shape[0], dtype=np.int64), np.arange(start.shape[0])
        part, first = products, start
        for turn in range(_ROUNDS + near if aligns else 1):
            if turn:
                part, first = products.take(active), phases[active]
            easily = aligns and near and turn == 0
            if aligns and not easily:
                first = align(part, first, self.sweeps)
            found, residual, taken = self.newton.iterate(part, first, tolerance[active], easily=easily)
            done = residual <= tolerance[active]
            if turn == 0 and done.all():
                return found, residual, taken
            # What Newton left astray goes on from where alignment had brought it, always downhill.
            phases[active] = np.where(done[:, None], found, first)
            left[active], steps[active] = residual, steps[active] + taken
            active = active[~done]
            if active.size == 0:
                break
        return phases, left, steps
