"""What a run shows: order parameters, frequencies, which oscillators are locked and since when, winding numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csgraph, csr_array

from phasegrad._validation import (
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    counted,
    float_between,
    frozen_array,
    node_tuple,
    positive_float,
)
from phasegrad.dynamics import wrapped
from phasegrad.graphs import lazy_property
from phasegrad.networks import Network

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Share of the time, at its end, over which frequencies are averaged.
LAST = 0.25
# The most that two locked oscillators would move against each other in the whole time, as they move at its end, in
# radians; with noise, that they do move from its third quarter to its last.
_APART = 0.5
# The fewest times whose phases are averaged.
_FEW = 4


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """The phases of a network, or of several with one graph, in time.

    Attributes
    ----------
    times : ndarray, shape (T,)
    phases : ndarray, shape (T, ..., N)
        Continuous: full turns are not removed.
    velocities : ndarray, shape (T, ..., N)
        The instantaneous frequency of every oscillator in the frame; with noise, what the forces alone make of it. Zero
        for clamped inputs.
    networks : tuple of Network
        The network, or those of a batch: phases are then (T, ..., G, N).
    frame : {"rotating", "laboratory"}
    turning : ndarray, shape (...)
        How fast the frame turns: frequencies at rest are larger by that.
    noisy : bool
        Whether there was noise.
    steps : ndarray of int, shape (...)
        How many steps it took to follow each sample.
    uncompiled : str
        Why the steps were not compiled, in a sentence; empty where they were.

    See Also
    --------
    simulate : The dynamics in time.
    Equilibrium : Phases with the certificate of every sample.

    Examples
    --------
    >>> import phasegrad as pg
    >>> run = pg.simulate(pg.networks.ring(5, omega=[-0.2, 0.1, 0.0, 0.3, -0.2]), [0.0, 30.0, 60.0])
    >>> run.order_parameter().round(3).tolist(), bool(abs(run.locked_frequency) < 1e-9)
    ([1.0, 0.994, 0.994], True)
    """

    times: FloatArray
    phases: FloatArray
    velocities: FloatArray
    networks: tuple[Network, ...]
    frame: str
    turning: FloatArray
    noisy: bool = False
    steps: IntArray = field(default_factory=lambda: np.zeros((), dtype=np.int64))
    uncompiled: str = ""

    def __post_init__(self) -> None:
        for name in ("times", "phases", "velocities", "turning", "steps"):
            object.__setattr__(self, name, frozen_array(getattr(self, name)))

    @property
    def network(self) -> Network:
        """The network, or the first of a batch, which has the graph, the roles and the terms of all."""
        return self.networks[0]

    def order_parameter(self, group: Sequence[int] | None = None) -> FloatArray:
        """Return ``|mean of exp(i theta)|``, shape (T, ...), over all oscillators or a group of them."""
        return np.asarray(np.abs(np.mean(np.exp(1j * self.phases[..., self._group(group)]), axis=-1)))

    def local_order(self) -> FloatArray:
        """Return ``|mean of exp(i theta)|`` over the neighbours of every oscillator, shape (T, ..., N).

        NaN for one without neighbours. In a mean field all are neighbours of all.
        """
        joined = np.array([any(term.joins_all(each.parameters) for term in each.terms) for each in self.networks])
        everywhere = np.broadcast_to(self.order_parameter()[..., None], self.phases.shape)
        if joined.all():
            return everywhere
        size, ends = self.network.size, self.network.edges.T
        ones = np.ones(2 * self.network.n_edges)
        both = np.concatenate(ends), np.concatenate(ends[::-1])
        matrix = csr_array((ones, both), shape=(size, size))
        degree = np.asarray(matrix.sum(axis=1)).ravel()
        sums = (matrix @ np.exp(1j * self.phases.reshape(-1, size)).T).T.reshape(self.phases.shape)
        with np.errstate(invalid="ignore"):
            among = np.where(degree > 0, np.abs(sums) / degree, np.nan)
        return np.asarray(np.where(joined[:, None], everywhere, among))

    def frequencies(self, last: float = LAST) -> FloatArray:
        """Return the mean frequency of every oscillator over the last share of the time, shape (..., N)."""
        first = self._since(last)
        span = self.times[-1] - self.times[first]
        return np.asarray((self.phases[-1] - self.phases[first]) / span)

    @lazy_property
    def locked(self) -> BoolArray:
        """Which oscillators are locked at the end, shape (..., N).

        All, if at the end they move so nearly alike that none would leave the others by half a radian in the whole
        time, and none turned by half a turn against the others in its last quarter. Else the largest group, of two at
        least, that would not move apart by half a radian in the whole time as their mean phases move in its last
        quarter. Where a field or a clamped input fixes the frame, those that would not move by that. With noise, those
        whose mean phases did not from the third quarter of the time to the last. Frequencies that differ by less than
        1 / (2 time) cannot be told apart: a run must be long to show who drifts slowly.
        """
        return self._locked[0]

    @lazy_property
    def _locked(self) -> tuple[BoolArray, FloatArray]:
        """Which oscillators are locked, and how fast each moves as seen by what says so, (..., N) each."""
        first, end, shape = self._since(2 * LAST if self.noisy else LAST), self.times.size, self.phases.shape[1:]
        time = float(self.times[-1] - self.times[0])
        middle = (first + end + 1) // 2
        span = float(self.times[middle:].mean() - self.times[first:middle].mean())
        means = (self.phases[middle:].mean(axis=0) - self.phases[first:middle].mean(axis=0)) / span
        by_means = self._together(means * (span if self.noisy else time), _APART)
        if self.noisy:
            return by_means, means
        still = self._together(self.velocities[-1] * time, _APART)
        if end - first < _FEW:
            return still, self.velocities[-1]
        still = still & self._together(self.phases[-1] - self.phases[first], np.pi)
        rest = np.broadcast_to(np.all(still, axis=-1, keepdims=True), shape)
        return rest | by_means, np.where(rest, self.velocities[-1], means)

    def _together(self, moved: FloatArray, width: float) -> BoolArray:
        """Return the largest group that moved by the same to within a width, or not at all where the frame is fixed."""
        if not self.network.pinned:
            return np.asarray(np.abs(moved) < width)
        rows = moved.reshape(-1, self.network.size)
        return np.array([_largest_group(row, width) for row in rows], dtype=bool).reshape(moved.shape)

    @property
    def locked_frequency(self) -> FloatArray:
        """The mean frequency of those that are locked, shape (...), in the frame; NaN where none is."""
        number = np.sum(self.locked, axis=-1)
        total = np.sum(np.where(self.locked, self._locked[1], 0.0), axis=-1)
        return np.asarray(np.where(number > 0, total / np.maximum(number, 1), np.nan))

    def time_to_lock(self, tolerance: float = 1e-3) -> FloatArray:
        """Return from when on the velocities of all oscillators stay alike, shape (...); infinity where they do not.

        Alike to within ``tolerance`` of the frequency of those that are locked; with noise they are not.
        """
        tolerance = positive_float("tolerance", tolerance, "time_to_lock")
        common = np.nan_to_num(self.locked_frequency)
        apart = np.max(np.abs(self.velocities - common[..., None]), axis=-1) > tolerance
        since = self.times.size - np.argmax(apart[::-1], axis=0)
        since = np.where(np.any(apart, axis=0), since, 0)
        return np.asarray(np.append(self.times, np.inf)[since])

    def winding(self, cycle: Sequence[int] | None = None) -> IntArray:
        """Return the turns of the phase around a cycle of nodes, shape (T, ...); around the ring if it is one."""
        size = self.network.size
        if cycle is None:
            order = _around(self.network)
        else:
            order = np.array(node_tuple("cycle", cycle, size, "winding"), dtype=np.int64)
            if order.size < 3:
                raise ValueError(f"The 'cycle' parameter of winding must have three nodes at least. Got {cycle!r}.")
        around = self.phases[..., order]
        turns = np.sum(wrapped(np.roll(around, -1, axis=-1) - around), axis=-1) / (2 * np.pi)
        return np.asarray(np.rint(turns), dtype=np.int64)

    def as_dict(self) -> dict[str, Any]:
        """Return the run as plain data: order parameters, frequencies and who is locked, and every phase.

        Frequencies, and who is locked, are left out where there is a single time; the frequency of those that are
        locked is None where none is.
        """
        data = {
            "frame": self.frame,
            "turning": self.turning.tolist(),
            "times": self.times.tolist(),
            "order_parameter": self.order_parameter().tolist(),
        }
        if self.times.size > 1:
            data["frequencies"] = self.frequencies().tolist()
            data["locked"] = self.locked.tolist()
            common = self.locked_frequency.astype(object)
            common[np.isnan(self.locked_frequency)] = None
            data["locked_frequency"] = common.tolist()
        return {**data, "phases": self.phases.tolist()}

    @property
    def ending(self) -> str:
        """How it ends, in words: who is locked, and the order parameter."""
        if not self.phases.size:
            return "empty"
        order = np.mean(self.order_parameter()[-1])
        if self.times.size < 2:
            return f"order parameter {order:.3f}"
        number = np.sum(self.locked, axis=-1)
        size = self.network.size
        if number.ndim == 0:
            told = "all locked" if number == size else f"{number} of {size} locked" if number else "none locked"
            # What rounding leaves of zero is not a frequency.
            common = round(float(self.locked_frequency), 9) + 0.0
            where = f" at frequency {common:.4g}" if number else ""
            return f"{told}{where}, order parameter {order:.3f} at the end"
        whole = int(np.sum(number == size))
        return f"{whole} of {number.size} locked as a whole, mean order parameter {order:.3f} at the end"

    def plot(self, ax: Axes | None = None, *, kind: str = "phases") -> Axes:
        """Draw the run and return the axes: new ones by pyplot where none are given.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        kind : {"phases", "order", "frequencies"}
            Phases of all oscillators of the first sample, order parameters of all samples, or instantaneous frequencies
            of the first sample, against time. Phases are moved by full turns so that those of locked oscillators end
            beside each other.
        """
        from phasegrad.simulation._drawing import plot_trajectory

        return plot_trajectory(self, ax, kind)

    def __repr__(self) -> str:
        samples = int(np.prod(self.phases.shape[1:-1], dtype=np.int64))
        many = f"{counted(samples, 'sample')} of " if self.phases.ndim > 2 else ""
        if len(self.networks) > 1:
            many += f"{len(self.networks)} networks of "
        span = f"{counted(self.times.size, 'time')} from {self.times[0]:g} to {self.times[-1]:g}"
        return (
            f"Trajectory({many}{counted(self.network.size, 'oscillator')}, {span}, {self.frame} frame; {self.ending})"
        )

    def _since(self, last: float) -> int:
        """Return the number of the time at which the last share of the run begins."""
        last = float_between("last", last, 0.0, 1.0, "frequencies")
        if self.times.size < 2:
            raise ValueError("A mean frequency needs two times at least. This trajectory has one.")
        begin = self.times[-1] - last * (self.times[-1] - self.times[0])
        return int(min(np.searchsorted(self.times, begin), self.times.size - 2))

    def _group(self, group: Sequence[int] | None) -> Array | slice:
        if group is None:
            return slice(None)
        nodes = node_tuple("group", group, self.network.size, "order_parameter")
        if not nodes:
            raise ValueError("The 'group' parameter of order_parameter must name one node at least.")
        return np.array(nodes)


def _around(network: Network) -> IntArray:
    """Return the nodes in order around a ring; ValueError where the network is none."""
    size, ends = network.size, network.edges.T
    order = np.zeros(0, dtype=np.int64)
    if size >= 3 and network.n_edges == size and np.all(np.bincount(ends.ravel(), minlength=size) == 2):
        matrix = csr_array((np.ones(size), (ends[0], ends[1])), shape=(size, size))
        order = csgraph.depth_first_order(matrix, 0, directed=False, return_predecessors=False)
    if order.size != size:
        raise ValueError("This network is not a ring: give the nodes of a 'cycle', in order.")
    return np.asarray(order, dtype=np.int64)


def _largest_group(moved: FloatArray, width: float) -> BoolArray:
    """Return the mask of the largest group within ``width`` of each other, of two at least, the first of equals."""
    order = np.sort(moved)
    counts = np.searchsorted(order, order + width, side="right") - np.arange(order.size)
    best = int(np.argmax(counts))
    if counts[best] < min(2, order.size):
        return np.zeros(order.size, dtype=bool)
    return np.asarray((moved >= order[best]) & (moved <= order[best] + width))
