"""Many equilibria: the distinct stable states of one network, from many starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse import csgraph

from phasegrad._validation import FloatArray, IntArray, counted, finite_array, frozen_array, whole_number
from phasegrad.dynamics import energy, wrapped
from phasegrad.equilibria._drawing import plot_equilibria
from phasegrad.equilibria._equilibrium import Status, find_equilibrium, random_phases
from phasegrad.networks import Network
from phasegrad.solvers import Solver

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Equilibria:
    """The distinct stable states of a network found from many starts, the most often reached first.

    Attributes
    ----------
    phases : ndarray, shape (S, N)
        Wrapped to [-pi, pi).
    energy : ndarray, shape (S,), or None
        Of the wrapped phases; None for non-reciprocal coupling.
    share : ndarray, shape (S,)
        Fraction of all starts, failed ones included, that ended in each state.
    winding : ndarray of int, shape (S,), or None
        Turns of the phase around the ring, if the network is a ring.
    starts, unstable, unconverged : int
        Number of starts, of those that ended in an unstable state, and of those that ended nowhere.
    """

    phases: FloatArray
    energy: FloatArray | None
    share: FloatArray
    winding: IntArray | None
    starts: int
    unstable: int
    unconverged: int

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw which share of the starts ended in each state, by winding on a ring: an estimate of the basins.

        Failed starts, and states beyond the first 20, are "others". Draws on ``ax``, or on new axes if it is left out,
        and returns them. Needs matplotlib.
        """
        return plot_equilibria(self, ax)

    def __len__(self) -> int:
        return int(self.share.size)

    def __str__(self) -> str:
        lines = [
            f"{counted(len(self), 'stable state')} from {counted(self.starts, 'start')} "
            f"({self.unstable} ended unstable, {self.unconverged} did not converge)"
        ]
        for k in range(min(len(self), 20)):
            parts = [f"share {self.share[k]:6.3f}"]
            if self.energy is not None:
                parts.append(f"energy {self.energy[k]:12.6f}")
            if self.winding is not None:
                parts.append(f"winding {self.winding[k]:+d}")
            lines.append("  " + "  ".join(parts))
        if len(self) > 20:
            lines.append(f"  ... and {len(self) - 20} more")
        return "\n".join(lines)


def find_equilibria(
    network: Network, inputs: ArrayLike | None = None, *, starts: int = 100, seed: int | None = 0,
    solver: str | Solver = "flow", tolerance: float = 1e-12,
) -> Equilibria:  # fmt: skip
    """Find the distinct stable states that uniformly random starts lead to.

    Parameters
    ----------
    network : Network
    inputs : array_like, shape (n_in,), optional
        One sample of inputs.
    starts : int
        How many random starts.
    seed : int or None
        Seed of the starts.
    solver : str or Solver
        "flow" (default) follows the dynamics, so that ``share`` estimates basins of attraction.
    tolerance : float
        As in `find_equilibrium`.

    Examples
    --------
    >>> import phasegrad as pg
    >>> states = pg.find_equilibria(pg.ring(8), starts=200)
    >>> sorted(states.winding.tolist())     # |winding| < 8 / 4
    [-1, 0, 1]
    """
    starts = whole_number("starts", starts, 1, "find_equilibria")
    many = None
    if inputs is not None:
        sample = finite_array("inputs", inputs, "find_equilibria")
        if sample.ndim != 1:
            raise ValueError(f"find_equilibria takes one sample of inputs, shape (n_in,). Got shape {sample.shape}.")
        many = np.broadcast_to(sample, (starts, sample.size))
    first = random_phases(starts, network.size, seed)
    found = find_equilibrium(network, many, start=first, solver=solver, tolerance=tolerance)
    stable = wrapped(found.phases[found.stable])
    members = _group(stable)
    members.sort(key=len, reverse=True)
    phases = np.array([stable[group[0]] for group in members]).reshape(len(members), network.size)
    counts = found.counts
    cycle = _ring_order(network)
    return Equilibria(
        phases=frozen_array(phases),
        energy=frozen_array(energy(network, phases, inputs)) if network.reciprocal else None,
        share=frozen_array(np.array([len(group) for group in members], dtype=float) / starts),
        winding=None if cycle is None else frozen_array(_winding(phases, cycle)),
        starts=starts,
        unstable=int(np.sum(found.converged & ~found.stable)),
        unconverged=counts[Status.UNCONVERGED] + counts[Status.CANNOT_LOCK],
    )


def _group(phases: FloatArray, distance: float = 1e-6) -> list[list[int]]:
    """Group rows that are the same state, angles being equal modulo a turn."""
    points = np.exp(1j * phases)
    groups: list[list[int]] = []
    for k, point in enumerate(points):
        for group in groups:
            if np.max(np.abs(point - points[group[0]])) < distance:
                group.append(k)
                break
        else:
            groups.append([k])
    return groups


def _ring_order(network: Network) -> IntArray | None:
    """Return the nodes in order around the ring, or None if the graph is not a single ring."""
    size, ends = network.size, network.edges.T
    if size < 3 or network.n_edges != size or np.any(np.bincount(ends.ravel(), minlength=size) != 2):
        return None
    graph = sparse.csr_array((np.ones(size), (ends[0], ends[1])), shape=(size, size))
    order = csgraph.depth_first_order(graph, 0, directed=False, return_predecessors=False)
    return order if order.size == size else None


def _winding(phases: FloatArray, cycle: IntArray) -> IntArray:
    around = phases[:, cycle]
    steps = wrapped(np.roll(around, -1, axis=1) - around)
    return np.rint(np.sum(steps, axis=1) / (2 * np.pi)).astype(np.int64)
