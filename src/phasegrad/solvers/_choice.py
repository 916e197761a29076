"""Which solver a word means for a system."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from phasegrad._validation import choice
from phasegrad.dynamics import System
from phasegrad.linearised import DenseLaplacian, SparseLaplacian, refuse_dense_solve
from phasegrad.solvers._alignment import BATCHED, AlignedNewton
from phasegrad.solvers._contract import Solver
from phasegrad.solvers._fallback import ColdStart, Fallback, Unwinding
from phasegrad.solvers._flow import GradientFlow
from phasegrad.solvers._newton import Newton, Progress
from phasegrad.solvers._stiff_flow import StiffFlow

#: Words for solvers.
SOLVERS = ("auto", "newton", "sparse", "flow", "batch")
#: Newton that stays on stable ground, or gives a sample up.
STOPPING = Newton(max_steps=50, indefinite="stop", polish=False)
#: Newton that stays on the branch it starts from, stable or not, or gives a sample up.
FOLLOWING = Newton(max_steps=50, indefinite="follow", polish=False)
_ON_BRANCH = Fallback((dataclasses.replace(FOLLOWING, polish=True), Newton()), energetic=True)
#: Oscillators up to which a sample that did not converge is followed by the dynamics: each step factors dense matrices.
FOLLOWED_UP_TO = 300


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
    if word == "sparse" or (word == "auto" and SparseLaplacian.fits(system)):
        return Newton(algebra=SparseLaplacian, progress=progress, polish=polish)
    if word == "flow":
        return GradientFlow(finish=Newton(progress=progress, polish=polish))
    refuse_dense_solve(system.graph, f"solver={word!r}", reciprocal=system.reciprocal)
    if word == "batch":
        dense = Newton(algebra=DenseLaplacian, polish=polish)
        if system.pull is not None:
            return Fallback((BATCHED, branch_solver(system)), energetic=True)
        return Fallback((AlignedNewton(), dense))
    if word == "auto" and not system.has_energy and not system.is_complex:
        # Newton on the norm of the force knows no descent: what it leaves unstable, the dynamics may settle.
        return Fallback((Newton(max_steps=50, polish=polish), GradientFlow()), stable=True)
    return Newton(algebra=DenseLaplacian, polish=polish)


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
    return Fallback(tried) if len(tried) > 1 else tried[0]


def branch_solver(system: System) -> Solver:
    """Return the solver that stays on the branch of a known equilibrium, and descends only where that fails.

    For nudged networks and turned parameters: they are small changes of an equilibrium whose derivative is asked for.
    """
    if not SparseLaplacian.fits(system):
        refuse_dense_solve(system.graph, "A solve on the branch of an equilibrium", reciprocal=system.reciprocal)
    return _ON_BRANCH
