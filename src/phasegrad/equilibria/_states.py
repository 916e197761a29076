"""Many equilibria: the distinct stable states of one network, from many starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad._validation import (
    BoolArray,
    FloatArray,
    IntArray,
    counted,
    finite_array,
    float_between,
    frozen_array,
    whole_number,
)
from phasegrad.dynamics import System, build_system, energy, wrapped
from phasegrad.equilibria._drawing import plot_equilibria
from phasegrad.equilibria._equilibrium import Equilibrium, Status, find_equilibrium, random_phases
from phasegrad.equilibria._path import convex_between
from phasegrad.equilibria._winding import CycleBasis
from phasegrad.graphs import lazy_property
from phasegrad.networks import Network
from phasegrad.solvers import Solver

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CONFIDENCE = 0.95
# Phases nearer than the first are one state; nearer than the second, if the energy is convex between them.
_SAME, _NEAR = 1e-6, 0.1
# Most states, and most cycles, that are shown.
_SHOWN, _SHOWN_CYCLES = 20, 8
# Phases of all starts that settle at once: enough that small networks lose nothing, and progress is told often.
_PHASES_AT_ONCE = 2**14


@dataclass(frozen=True, eq=False)
class Equilibria:
    """The distinct stable states of a network found from many starts, the most often reached first.

    Attributes
    ----------
    equilibrium : Equilibrium
        All of them as one batch of shape (S,), each with its certificate and smallest eigenvalue.
    phases : ndarray, shape (S, N)
        Wrapped to [-pi, pi).
    energy : ndarray, shape (S,), or None
        Of the wrapped phases; None for non-reciprocal coupling.
    share : ndarray, shape (S,)
        Fraction of all random starts, failed ones included, that ended in each state: its basin of attraction. Zero
        for a state that only a winding start has found.
    cycles : tuple of ndarray of int
        The nodes around every cycle of a cycle basis, C of them.
    winding : ndarray of int, shape (S, C)
        Turns of the phase around each.
    starts, unstable, unconverged : int
        Number of random starts, of those that ended in an unstable state, and of those that ended nowhere.
    winding_starts, winding_total : int
        Number of winding starts, and of the combinations of winding numbers that there are.

    See Also
    --------
    find_equilibria : All stable states met from random starts.
    Equilibrium : Phases with the certificate of every sample.

    Examples
    --------
    >>> import phasegrad as pg
    >>> states = pg.find_equilibria(pg.networks.ring(8), starts=50)
    >>> states.winding.tolist(), states.share.tolist()
    ([[0], [-1], [1]], [0.68, 0.16, 0.16])
    """

    equilibrium: Equilibrium
    phases: FloatArray
    energy: FloatArray | None
    share: FloatArray
    cycles: tuple[IntArray, ...]
    winding: IntArray
    starts: int
    unstable: int
    unconverged: int
    winding_starts: int
    winding_total: int

    @lazy_property
    def share_interval(self) -> FloatArray:
        """Where the share of each basin lies with 95 % confidence, (S, 2), by Clopper and Pearson."""
        from scipy.special import betaincinv

        hits = np.rint(self.share * self.starts)
        tail = (1 - _CONFIDENCE) / 2
        low = betaincinv(np.maximum(hits, 1), self.starts - hits + 1, tail)
        high = betaincinv(hits + 1, np.maximum(self.starts - hits, 1), 1 - tail)
        bounds = np.stack([np.where(hits == 0, 0.0, low), np.where(hits == self.starts, 1.0, high)], axis=1)
        return frozen_array(bounds)

    def missed(self, share: float) -> float:
        """Return the chance that no random start fell into a basin of a given share: (1 - share)^starts.

        Winding starts may still have found its state.

        Examples
        --------
        >>> import phasegrad as pg
        >>> round(pg.find_equilibria(pg.networks.ring(5), starts=200).missed(0.02), 3)
        0.018
        """
        share = float_between("share", share, 0, 1, "missed")
        return float((1 - share) ** self.starts)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw which share of the random starts ended in each state, by winding around cycles: the basins, estimated.

        Failed starts, and states beyond the first 20, are "others". Draws on ``ax``, or on new axes if it is left out,
        and returns them. Needs matplotlib.
        """
        return plot_equilibria(self, ax)

    def __len__(self) -> int:
        return int(self.share.size)

    def __str__(self) -> str:
        lines = [
            f"{counted(len(self), 'stable state')} from {counted(self.starts, 'random start')} ({self.unstable} ended "
            f"unstable, {self.unconverged} did not converge)"
        ]
        if self.winding_starts:
            lines[0] += f" and {self.winding_starts} of {counted(self.winding_total, 'winding start')}"
            if self.winding_starts < self.winding_total:
                lines[0] += f"; winding={self.winding_total} would try all"
        lines += ["  " + "  ".join(self._words(k)) for k in range(min(len(self), _SHOWN))]
        if len(self) > _SHOWN:
            lines.append(f"  ... and {len(self) - _SHOWN} more")
        lines.append(
            f"  a basin with a share of 0.01 escapes the random starts with probability {self.missed(0.01):.2g}"
        )
        return "\n".join(lines)

    def _words(self, state: int) -> list[str]:
        """Return what is said of one state."""
        low, high = self.share_interval[state]
        parts = [f"share {self.share[state]:.3f} ({low:.3f} to {high:.3f})"]
        if self.energy is not None:
            parts.append(f"energy {self.energy[state]:12.6f}")
        assert self.equilibrium.smallest_eigenvalue is not None
        parts.append(f"smallest eigenvalue {self.equilibrium.smallest_eigenvalue[state]:8.4f}")
        if 0 < len(self.cycles) <= _SHOWN_CYCLES:
            parts.append("winding " + " ".join(f"{turns:+d}" for turns in self.winding[state].tolist()))
        return parts


def find_equilibria(
    network: Network, inputs: ArrayLike | None = None, *, starts: int = 100, winding: int = 100, seed: int | None = 0,
    solver: str | Solver = "flow", tolerance: float = 1e-12, progress: Callable[[int, int], object] | None = None,
) -> Equilibria:  # fmt: skip
    """Find the distinct stable states that random starts, and starts that wind around cycles, lead to.

    Random starts are uniform, so that they show how large the basins are and miss the small ones. A winding start turns
    by whole numbers around the cycles of a cycle basis, evenly spread over the edges. In a ring of equal oscillators,
    and in cycles of them that share single nodes, one for each combination finds every stable state.

    Parameters
    ----------
    network : Network
    inputs : array_like, shape (n_in,), optional
        One sample of inputs.
    starts : int
        How many random starts.
    winding : int
        Most winding starts; the combinations of winding numbers with the lowest energy come first. 0 for none.
    seed : int or None
        Seed of the random starts.
    solver : str or Solver
        "flow" (default) follows the dynamics, so that ``share`` estimates basins of attraction.
    tolerance : float
        As in `find_equilibrium`.
    progress : callable, optional
        Called with the starts that have settled and the number of all.

    See Also
    --------
    find_equilibrium : One certified equilibrium per sample.

    References
    ----------
    Wiley, Strogatz and Girvan 2006, doi:10.1063/1.2165594, on the basins of a ring's states; Jafarpour, Huang, Smith
    and Bullo 2022, doi:10.1137/18M1242056, on winding numbers.

    Examples
    --------
    >>> import phasegrad as pg
    >>> states = pg.find_equilibria(pg.networks.ring(12), starts=20)
    >>> sorted(states.winding[:, 0].tolist())     # |winding| < 12 / 4
    [-2, -1, 0, 1, 2]
    """
    starts = whole_number("starts", starts, 1, "find_equilibria")
    winding = whole_number("winding", winding, 0, "find_equilibria")
    basis = CycleBasis.of(network.graph)
    wound, total = basis.starts(network, winding) if winding else (np.zeros((0, network.size)), 0)
    sample = _checked_sample(inputs)
    first = np.concatenate([random_phases(starts, network.size, seed), _turned_to_data(network, sample, wound)])
    found = _settled(network, sample, first, solver, tolerance, progress)
    rows = np.flatnonzero(found.stable)
    stable = wrapped(found.phases[rows])
    system = found.system
    known = system is not None and network.reciprocal and not system.low_rank
    one = system.take(np.arange(1)) if system is not None and known else None
    groups = [rows[group] for group in _group(stable, one)]
    groups.sort(key=lambda group: -int(np.sum(group < starts)))
    chosen = found.phases[[group[0] for group in groups]]
    phases = wrapped(chosen)
    drawn = found.status[:starts]
    return Equilibria(
        equilibrium=find_equilibrium(
            network, _repeated(sample, len(groups)), start=chosen, tolerance=tolerance, eigenvalue=True
        ),
        phases=frozen_array(phases),
        energy=frozen_array(energy(network, phases, sample)) if network.reciprocal else None,
        share=frozen_array(np.array([np.sum(group < starts) for group in groups], dtype=float) / starts),
        cycles=basis.cycles,
        winding=frozen_array(basis.winding(phases)),
        starts=starts,
        unstable=int(np.sum(found.converged[:starts] & ~found.stable[:starts])),
        unconverged=sum(status in (Status.UNCONVERGED, Status.CANNOT_LOCK) for status in drawn.tolist()),
        winding_starts=len(wound),
        winding_total=total,
    )


class _Settled(NamedTuple):
    """Where starts have settled: phases (S, N), and of each what an `Equilibrium` says; the system of some of them."""

    phases: FloatArray
    stable: BoolArray
    converged: BoolArray
    status: NDArray[Any]
    system: System | None


def _settled(
    network: Network, sample: FloatArray | None, first: FloatArray, solver: str | Solver, tolerance: float,
    progress: Callable[[int, int], object] | None,
) -> _Settled:  # fmt: skip
    """Let every start settle, some at a time."""
    parts, at_once = [], max(1, _PHASES_AT_ONCE // network.size)
    for begin in range(0, len(first), at_once):
        some = first[begin : begin + at_once]
        inputs = _repeated(sample, len(some))
        parts.append(find_equilibrium(network, inputs, start=some, solver=solver, tolerance=tolerance))
        if progress is not None:
            progress(begin + len(some), len(first))
    return _Settled(
        np.concatenate([part.phases for part in parts]), np.concatenate([part.stable for part in parts]),
        np.concatenate([part.converged for part in parts]), np.concatenate([part.status for part in parts]),
        parts[0].system,
    )  # fmt: skip


def _checked_sample(inputs: ArrayLike | None) -> FloatArray | None:
    if inputs is None:
        return None
    sample = finite_array("inputs", inputs, "find_equilibria")
    if sample.ndim != 1:
        raise ValueError(f"find_equilibria takes one sample of inputs, shape (n_in,). Got shape {sample.shape}.")
    return sample


def _turned_to_data(network: Network, sample: FloatArray | None, phases: FloatArray) -> FloatArray:
    """Return winding phases (W, N), each part of the graph turned so that it meets the phases data is clamped at."""
    graph = network.graph
    if not network.clamps_inputs or not len(phases):
        return phases
    held = build_system(network, sample)[0].held_phases
    pointers = np.zeros((graph.size, len(phases)), dtype=complex)
    np.add.at(pointers, graph.components[graph.held], np.exp(1j * (held - phases[:, graph.held])).T)
    return np.asarray(phases + np.angle(pointers)[graph.components].T)


def _repeated(sample: FloatArray | None, times: int) -> FloatArray | None:
    return None if sample is None else np.broadcast_to(sample, (times, sample.size))


def _group(phases: FloatArray, system: System | None) -> list[list[int]]:
    """Group rows (S, N) that are the same state, angles being equal modulo a turn, in the order of their first rows.

    States that a loose tolerance leaves apart are one if the energy of their system is convex all the way between them.
    """
    points = np.exp(1j * phases)
    groups: list[list[int]] = []
    for k, point in enumerate(points):
        apart = np.max(np.abs(points[[group[0] for group in groups]] - point), axis=1)
        nearest = int(np.argmin(apart)) if groups else -1
        if groups and (
            apart[nearest] < _SAME or _is_one_state(phases[[groups[nearest][0], k]], apart[nearest], system)
        ):
            groups[nearest].append(k)
        else:
            groups.append([k])
    return groups


def _is_one_state(pair: FloatArray, apart: float, system: System | None) -> bool:
    """Return whether two stable states (2, N) are proved to be one; without an energy it never is."""
    if system is None or apart > _NEAR:
        return False
    return convex_between(system, pair[:1], pair[:1] + wrapped(pair[1:] - pair[:1]))
