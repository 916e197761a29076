r"""How far a network is from losing its locked state.

All frequencies, counted from the mean, are scaled by one factor s. As s grows the locked state theta(s) meets an
unstable one and both vanish in a saddle-node bifurcation: the smallest eigenvalue of the Laplacian falls to zero as
sqrt(s_c - s), and the tangent d theta / ds = L^-1 omega grows as its inverse, so that 1 / g^2 goes to zero linearly, g
being the fastest change of an angle across an edge. The continuation follows the state upward, predictor and corrector,
and reads s_c off that line.

A step counts only if it stays on the branch. The corrected state must lie near the predicted one, and the Laplacian
must be positive definite all the way between the last state and the new one: the least that each of its weights
becomes on the way makes a Laplacian that is smaller than every one passed, and if that is positive definite, so are
they. Two different states at one s cannot be joined like this, because the energy would be convex along the way from
one to the other. A step that fails is halved; the end that is answered has been tried, from within the precision.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._process import on_one_blas_thread
from phasegrad._validation import FloatArray, IntArray, float_between, frozen_array, last_axis_array
from phasegrad.dynamics import System, build_system
from phasegrad.equilibria._drawing import plot_critical
from phasegrad.equilibria._equilibrium import Equilibrium, settle
from phasegrad.equilibria._path import convex_between, largest_change
from phasegrad.linearised import algebra_of, linearise
from phasegrad.networks import Network
from phasegrad.solvers import STOPPING, Newton

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The share of what is left to the end that a step covers, and how many times as long as the last one it may be.
_STRIDE, _LONGER = 0.9, 10.0
_ROUNDS = 300
# A corrector that moves a state by more than this share of the step it corrects has left the branch.
_CORRECTION = 0.5
# Steps that succeed below a factor that failed until that one deserves another trial.
_SECOND_TRIAL = 2
_CORRECTOR = dataclasses.replace(STOPPING, polish=True)


@dataclass(frozen=True, eq=False)
class CriticalScale:
    """Where the locked state is lost, and what gives way there.

    Attributes
    ----------
    scale : float
        Factor by which all frequencies may grow. Infinite without frequencies, or where no float is that large.
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

    See Also
    --------
    critical_scale : How much faster all may run before locking is lost.

    Examples
    --------
    >>> import phasegrad as pg
    >>> margin = pg.critical_scale(pg.networks.ring(4, omega=[0.3, 0.0, -0.3, 0.0]))
    >>> print(f"{margin.scale:.4f}")
    6.6667
    >>> margin.equilibrium.stable
    array([ True])
    """

    scale: float
    locked: float
    equilibrium: Equilibrium | None
    mode: FloatArray | None
    oscillators: IntArray
    edges: IntArray

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw how far every oscillator moves as the locked state is lost, those that break away in vermilion.

        Draws on ``ax``, or on new axes if it is left out, and returns them. Needs matplotlib.
        """
        return plot_critical(self, ax)

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
def critical_scale(
    network: Network, inputs: ArrayLike | None = None, *, start: Equilibrium | ArrayLike | None = None,
    precision: float = 1e-6, progress: Callable[[float, float], object] | None = None,
) -> CriticalScale:  # fmt: skip
    """Return the factor by which all frequencies may grow before the locked state is lost.

    Frequencies are counted from their mean, or from the frame that a field or clamped phases fix. The answer belongs to
    one branch: to the state that is followed without a break, stable all the way. A network may have others that last
    longer.

    Parameters
    ----------
    network : Network
        Reciprocal.
    inputs : array_like, shape (n_in,), optional
        One sample of inputs; input frequencies are scaled with the others.
    start : Equilibrium or array_like of shape (N,), optional
        The state to follow upward from factor 1: a stable one of this network at these inputs. Left out, it is the
        state that grows, from factor 0, out of the one without frequencies (all phases equal, unless a field says
        otherwise).
    precision : float
        Relative precision of the factor.
    progress : callable, optional
        Called after every step with the factor up to which the state is locked, and with the one at which it seems to
        end.

    Raises
    ------
    ValueError
        If the state to begin with is not stable. Couplings of both signs can make the one without frequencies so: give
        ``start`` then.

    See Also
    --------
    find_equilibrium : One certified equilibrium per sample.

    Examples
    --------
    Two oscillators that differ by 1, coupled with strength 2 in both directions, lock up to a difference of 4:

    >>> import phasegrad as pg
    >>> network = pg.Network([[0, 1]], 2.0, [-0.5, 0.5])
    >>> found = pg.critical_scale(network)
    >>> round(found.scale, 4), found.edges.tolist()
    (4.0, [0])

    The same from the state at its own frequencies:

    >>> round(pg.critical_scale(network, start=pg.find_equilibrium(network)).scale, 4)
    4.0
    """
    precision = float_between("precision", precision, 1e-12, 0.1, "critical_scale")
    system, shape = build_system(network, inputs)
    if shape:
        raise ValueError(f"critical_scale takes one sample of inputs, shape (n_in,). Got a batch of shape {shape}.")
    if not network.reciprocal:
        raise ValueError("critical_scale needs reciprocal coupling: without it there is no energy to follow.")
    if system.low_rank:
        raise ValueError(
            "critical_scale follows angles across edges, and a mean field has none. Build the network with complete, "
            "or ask transition for the order parameter by coupling."
        )
    algebra_of(system, "critical_scale")
    branch = _Branch(system, precision, progress)
    branch.begin_at_rest() if start is None else branch.begin_at(_given_phases(start, network.size))
    return branch.followed()


def _given_phases(start: Equilibrium | ArrayLike, size: int) -> FloatArray:
    """Return the phases (1, N) of a state to begin with."""
    given = start.phases if isinstance(start, Equilibrium) else start
    if np.iscomplexobj(given):
        raise ValueError("The 'start' parameter of critical_scale must be a real state, not one under a complex nudge.")
    phases = last_axis_array("start", given, size, "one phase per oscillator", "critical_scale")
    if phases.size != size:
        raise ValueError(
            f"The 'start' parameter of critical_scale must be one state, shape ({size},). Got shape {phases.shape}."
        )
    return phases.reshape(1, size)


class _Branch:
    """The branch followed so far: the last locked state, its tangent, and the last two factors with their g.

    ``bound`` is a factor at which nothing locks; ``ceiling`` one at which the last trial that failed found no state.
    """

    def __init__(
        self, system: System, precision: float, progress: Callable[[float, float], object] | None = None
    ) -> None:
        self.system, self.precision, self.progress = system, precision, progress
        self.bound = self.ceiling = _node_bound(system)
        self.locked, self.step, self.below = 0.0, np.inf, 0
        self.state: Equilibrium
        self.tangent: FloatArray
        self.line: list[tuple[float, float]] = []

    def begin_at_rest(self) -> None:
        """Begin at the state without frequencies."""
        system = self.system.driven(0.0)
        found = settle(system, (1,), np.zeros((1, system.graph.size)), Newton())
        if not found.stable[0]:
            raise ValueError(
                "Without frequencies this network does not rest in a stable state with all phases equal, so that there "
                "is none to follow from there. Give critical_scale a stable state of the network as it is instead: "
                "start=find_equilibrium(network)."
            )
        self._accept(0.0, found)

    def begin_at(self, phases: FloatArray) -> None:
        """Begin at a given state at factor 1."""
        placed = self.system.place(phases)
        found = settle(self.system, (1,), placed, _CORRECTOR)
        if not found.stable[0] or not convex_between(self.system, placed, found.phases):
            raise ValueError(
                "The 'start' parameter of critical_scale must be a stable equilibrium of this network at these inputs. "
                "There is none at the phases given: find one by find_equilibrium, and look at its status."
            )
        self._accept(1.0, found)

    def followed(self) -> CriticalScale:
        """Return where the branch ends."""
        if np.isinf(self.bound):
            nothing = np.empty(0, dtype=np.int64)
            return CriticalScale(np.inf, np.inf, self.state, None, nothing, nothing)
        for _ in range(_ROUNDS):
            end = self._estimated_end()
            if self.progress is not None:
                self.progress(self.locked, end)
            if end - self.locked <= self.precision * end:
                # From so near, a step beyond the end needs no prediction: what it does not find is not there.
                if not self._advance(end * (1 + self.precision), self.state.phases):
                    return self._result(end)
                continue
            step = (_STRIDE if end < self.ceiling else 0.5) * (end - self.locked)
            scale = self.locked + min(step, _LONGER * self.step)
            if not self._advance(scale, self._predicted(scale)):
                self.ceiling, self.below = scale, 0
        raise RuntimeError(
            f"critical_scale has followed the locked state up to {self.locked:.12g} in {_ROUNDS} steps without coming "
            f"within {self.precision:g} of where it ends. Ask for less precision."
        )

    def _advance(self, scale: float, first: FloatArray) -> bool:
        """Follow the branch to a factor; return whether it leads there."""
        scaled = self.system.driven(scale)
        found = settle(scaled, (1,), first, _CORRECTOR)
        if not found.stable[0] or self._strayed(first, found.phases):
            return False
        if not convex_between(self.system, self.state.phases, found.phases):
            return False
        self.step = scale - self.locked
        self._accept(scale, found)
        self.below += 1
        if self.below == _SECOND_TRIAL or scale >= self.ceiling:
            # What failed from far away may succeed from here.
            self.ceiling = self.bound
        return True

    def _strayed(self, predicted: FloatArray, found: FloatArray) -> bool:
        """Return whether the corrector went far from where the state was predicted, if it was."""
        step = largest_change(self.system, predicted - self.state.phases)
        return 0.0 < _CORRECTION * step < largest_change(self.system, found - predicted)

    def _accept(self, scale: float, found: Equilibrium) -> None:
        self.locked, self.state = scale, found
        free = self.system.graph.free
        drive = self.system.drive[:, free]
        unit = float(np.max(np.abs(drive), initial=0.0)) or 1.0
        answer, _ = linearise(self.system.driven(scale), found.phases).solve(drive / unit, accuracy=1e-10)
        self.tangent = np.zeros((1, self.system.graph.size))
        self.tangent[:, free] = unit * answer
        self.line = [*self.line[-1:], (scale, largest_change(self.system, self.tangent))]

    def _predicted(self, scale: float) -> FloatArray:
        """Return the phases expected at a factor, moving as the square root of what is left to the end."""
        left = self._estimated_end() - self.locked
        share = np.sqrt(max(0.0, 1.0 - (scale - self.locked) / left))
        return np.asarray(self.state.phases + 2 * left * (1.0 - share) * self.tangent)

    def _estimated_end(self) -> float:
        """Return where the line through the last two states reaches zero, within what has not failed."""
        if len(self.line) == 2:
            (before, slower), (after, faster) = self.line
            if slower >= faster:
                return self.ceiling
            share = (slower / faster) ** 2
            return min(self.ceiling, after + share / (1.0 - share) * (after - before))
        # At the start: where the sine of the steepest angle would reach one if the flows grew in proportion.
        return min(self.ceiling, float(np.hypot(self.locked, 1.0 / self.line[0][1])))

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
    with np.errstate(over="ignore"):
        return float(np.min(system.capacity[0][free] / speed[free], initial=np.inf)) * (1 + 1e-9)
