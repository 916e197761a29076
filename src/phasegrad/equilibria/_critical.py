r"""How far a network is from losing its locked state.

All frequencies, counted from the mean, are scaled by one factor s. As s grows the locked state theta(s) meets an
unstable one and both vanish: the smallest eigenvalue of the Laplacian falls to zero as sqrt(s_c - s), and the tangent
d theta / ds = L^-1 omega grows as its inverse, so that 1 / g^2 goes to zero linearly, g being the fastest change of an
angle across an edge. The continuation follows the state upward and reads s_c off that line; a step that goes too far
finds no locked state, and the next one goes half the way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import FloatArray, IntArray, float_between, frozen_array
from phasegrad.dynamics import System, build_system
from phasegrad.equilibria._equilibrium import Equilibrium, settle
from phasegrad.networks import Network
from phasegrad.solvers import Newton, is_sparse, on_one_blas_thread, refuse_dense_solve, respond

_STRIDE = 0.9
_ROUNDS = 100
# Across an edge; a state that is farther away than this belongs to another branch.
_SAME_BRANCH = np.pi


@dataclass(frozen=True, eq=False)
class CriticalScale:
    """Where the locked state is lost, and what gives way there.

    Attributes
    ----------
    scale : float
        Factor by which all frequencies may grow. Infinite without frequencies, zero if there is no locked state at all.
    locked : float
        The largest factor at which a stable locked state was found; ``scale - locked`` is the uncertainty.
    equilibrium : Equilibrium or None
        That state.
    mode : ndarray, shape (N,), or None
        How the phases move as it is lost, largest entry 1.
    oscillators : ndarray of int
        Those that break away: they move more than half as far as the first against the majority, the first first.
    edges : ndarray of int
        Numbers of the edges that give way: stretched by the mode more than half as much as the first.
    """

    scale: float
    locked: float
    equilibrium: Equilibrium | None
    mode: FloatArray | None
    oscillators: IntArray
    edges: IntArray

    def __str__(self) -> str:
        if self.mode is None:
            return f"critical scale {self.scale:g}"
        nodes = ", ".join(str(int(node)) for node in self.oscillators[:8])
        edges = "1 edge gives way" if self.edges.size == 1 else f"{self.edges.size} edges give way"
        loose = self.oscillators.size
        apart = "1 oscillator breaks away" if loose == 1 else f"{loose} oscillators break away"
        return (
            f"critical scale {self.scale:.6g} (locked up to {self.locked:.6g}): {edges}, {apart}: "
            f"{nodes}{', ...' if loose > 8 else ''}"
        )


@on_one_blas_thread
def critical_scale(network: Network, inputs: ArrayLike | None = None, *, precision: float = 1e-6) -> CriticalScale:
    """Return the factor by which all frequencies may grow before the locked state is lost.

    The locked state is the one that grows out of the state without frequencies (all phases equal, unless a field says
    otherwise). Frequencies are counted from their mean, or from the frame that a field or clamped phases fix.

    Parameters
    ----------
    network : Network
        Reciprocal.
    inputs : array_like, shape (n_in,), optional
        One sample of inputs; input frequencies are scaled with the others.
    precision : float
        Relative precision of the factor.

    Examples
    --------
    Two oscillators that differ by 1, coupled with strength 2 in both directions, lock up to a difference of 4:

    >>> import phasegrad as pg
    >>> found = pg.critical_scale(pg.Network([[0, 1]], 2.0, [-0.5, 0.5]))
    >>> round(found.scale, 4), found.edges.tolist()
    (4.0, [0])
    """
    precision = float_between("precision", precision, 1e-12, 0.1, "critical_scale")
    system, shape = build_system(network, inputs)
    if shape:
        raise ValueError(f"critical_scale takes one sample of inputs, shape (n_in,). Got a batch of shape {shape}.")
    if not network.reciprocal:
        raise ValueError("critical_scale needs reciprocal coupling: without it there is no energy to follow.")
    if not is_sparse(system):
        refuse_dense_solve(network.graph, "critical_scale")
    return _Continuation(system, precision).run()


class _Continuation:
    """The branch followed so far: the last locked state, its tangent, and the line that 1 / g^2 falls along."""

    def __init__(self, system: System, precision: float) -> None:
        self.system, self.precision = system, precision
        self.solver = Newton() if is_sparse(system) else Newton(max_steps=60)
        self.locked, self.lost = 0.0, _node_bound(system)
        self.state: Equilibrium | None = None
        self.tangent = np.zeros((1, system.graph.size))
        self.line: list[tuple[float, float]] = []

    def run(self) -> CriticalScale:
        """Return where the branch ends."""
        nothing = np.empty(0, dtype=np.int64)
        if not self._try(0.0):
            return CriticalScale(0.0, 0.0, None, None, nothing, nothing)
        if np.isinf(self.lost):
            return CriticalScale(np.inf, np.inf, self.state, None, nothing, nothing)
        for _ in range(_ROUNDS):
            end = self._estimated_end()
            if end - self.locked <= self.precision * end:
                break
            trial = self.locked + (_STRIDE if end < self.lost else 0.5) * (end - self.locked)
            if not self._try(trial):
                self.lost = trial
        return self._result(self._estimated_end())

    def _try(self, scale: float) -> bool:
        """Follow the branch to a factor; return whether the locked state is still there."""
        start = np.zeros((1, self.system.graph.size)) if self.state is None else self._predicted(scale)
        scaled = self.system.driven(scale)
        found = settle(scaled, (1,), start, self.solver)
        if not found.stable[0] or (self.state is not None and self._jumped(found)):
            return False
        self.locked, self.state = scale, found
        free = self.system.graph.free
        answer, _ = respond(scaled, found.phases, self.system.drive[:, free], accuracy=1e-10)
        self.tangent = np.zeros_like(self.tangent)
        self.tangent[:, free] = answer
        growth = float(np.max(np.abs(self.system.graph.angles(self.tangent)), initial=0.0))
        if not self.system.graph.pinned:
            growth = max(growth, float(np.max(np.abs(answer), initial=0.0)))
        self.line = [*self.line[-1:], (scale, growth**-2.0 if growth > 0 else np.inf)]
        return True

    def _predicted(self, scale: float) -> FloatArray:
        """Return the phases expected at a factor, moving as the square root of what is left to the end."""
        assert self.state is not None
        left = self._estimated_end() - self.locked
        share = np.sqrt(max(0.0, 1.0 - (scale - self.locked) / left)) if left > 0 else 1.0
        return self.state.phases + 2 * left * (1.0 - share) * self.tangent

    def _estimated_end(self) -> float:
        """Return where the line through the last two states reaches zero, within what is known not to lock."""
        if len(self.line) == 2:
            (before, high), (after, low) = self.line
            if low < high < np.inf:
                return min(self.lost, after + low * (after - before) / (high - low))
            return self.lost
        # At the start: where the sine of the steepest angle would reach one if the flows grew in proportion.
        return min(self.lost, float(np.sqrt(self.line[0][1]))) if self.line else self.lost

    def _jumped(self, found: Equilibrium) -> bool:
        assert self.state is not None
        change = self.system.graph.angles(found.phases) - self.system.graph.angles(self.state.phases)
        return float(np.max(np.abs(change), initial=0.0)) > _SAME_BRANCH

    def _result(self, end: float) -> CriticalScale:
        mode = self.tangent[0] / np.max(np.abs(self.tangent))
        stretch = np.abs(self.system.graph.angles(mode[None])[0])
        apart = np.abs(mode - np.median(mode))
        return CriticalScale(
            scale=end,
            locked=self.locked,
            equilibrium=self.state,
            mode=frozen_array(mode),
            oscillators=frozen_array(_leading(apart)),
            edges=frozen_array(_leading(stretch)),
        )


def _leading(values: FloatArray) -> IntArray:
    """Return the places of the values above half the largest, the largest first."""
    chosen = np.flatnonzero(values > 0.5 * np.max(values, initial=0.0))
    return chosen[np.argsort(-values[chosen], kind="stable")]


def _node_bound(system: System) -> float:
    """Return a factor at which some oscillator certainly cannot lock, infinite if nothing drives the network."""
    speed, free = np.abs(system.drive[0]), system.graph.free
    free = free[speed[free] > 0]
    return float(np.min(system.capacity[0][free] / speed[free], initial=np.inf)) * (1 + 1e-9)
