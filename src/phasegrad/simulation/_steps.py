r"""Steps in time, between one time that is asked for and the next.

`Adaptive` is SciPy's DOP853, of order eight, every sample for itself. `FixedSteps` are the classical Runge-Kutta method
of order four, or Heun's, which with additive noise converges with order one path by path and with order two in the
mean (Kloeden and Platen 1992):

    x' = x + h f(x) + kick,   x <- x + h / 2 (f(x) + f(x')) + kick,   kick = sqrt(2 D h) normal / d

compiled where the forces are sines. What becomes of a sample does not depend, by a bit, on which others there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.integrate import DOP853
from scipy.sparse import csr_array

from phasegrad._validation import FloatArray, IntArray, random_stream
from phasegrad.graphs import lazy_property
from phasegrad.kernels import COMPILES
from phasegrad.simulation._motion import Motion

# Numbers of noise drawn at a time, and oscillators and edges looked at in one call of compiled code, which nothing can
# interrupt.
_DRAWN, _LOOKED = 2**20, 2**24
# The least relative tolerance that adaptive steps can keep.
_ROUNDING = 3e-14


class Steps(Protocol):
    """What leads a flat batch of states from one time to a later one."""

    def between(self, state: FloatArray, start: float, end: float) -> FloatArray:
        """Return the states at ``end`` of those at ``start``."""


class Adaptive:
    """SciPy's DOP853: one integration per sample, carried from one time to the next."""

    def __init__(self, motion: Motion, tolerance: float, last: float) -> None:
        self.parts = [motion.take(np.array([row])) for row in range(motion.rows.size)]
        self.tolerance, self.last = tolerance, last
        self.solvers: list[DOP853 | None] = [None] * len(self.parts)

    def between(self, state: FloatArray, start: float, end: float) -> FloatArray:
        """Return the states at ``end``, of the interpolant of the step that passes it."""
        after = np.empty_like(state)
        for row, one in enumerate(state):
            after[row] = self._one(row, one, start, end)
        return after

    def _one(self, row: int, state: FloatArray, start: float, end: float) -> FloatArray:
        solver, part = self.solvers[row], self.parts[row]
        if solver is None:

            def rates(time: float, flat: FloatArray) -> FloatArray:
                return part.rates(time, flat[None])[0]

            # A phase is cyclic: an error is as large at a thousand turns as at none, but for rounding.
            options: dict[str, Any] = {"rtol": _ROUNDING, "atol": self.tolerance}
            first = rates(start, state)
            if not np.all(np.isfinite(first)):
                raise _not_finite(part, 0, start, first, "Its force is not finite there.")
            solver = self.solvers[row] = DOP853(rates, start, state, self.last, **options)
        while solver.t < end:
            before = solver.t
            with np.errstate(all="ignore"):
                message = solver.step()
            if not np.all(np.isfinite(solver.y)):
                raise _not_finite(part, 0, before, solver.f, "The adaptive steps cannot go on from there.")
            if solver.status == "failed":
                fastest = int(np.argmax(np.abs(solver.f))) % part.size
                raise ValueError(
                    f"The adaptive steps broke down at time {before:g}, where oscillator {fastest} in sample "
                    f"{part.name(0)} changes fastest: {message} Look at the forces there."
                )
        return np.asarray(solver.dense_output()(end) if solver.t > end else solver.y)


@dataclass(frozen=True, eq=False)
class FixedSteps:
    """Steps of one length, shortened so that a whole number of them leads from one time to the next."""

    motion: Motion
    step: float
    method: str
    noise: FloatArray | None = None
    streams: tuple[np.random.Generator, ...] = ()

    @classmethod
    def of(cls, motion: Motion, steps: FloatArray, method: str, noise: FloatArray | None, seed: int | None) -> Groups:
        """Return steps whose lengths (B,) are those of every sample: compiled where the forces are sines.

        Noise has one stream per sample: the k-th child of the seed for the k-th sample of the flat batch.
        """
        streams = random_stream(seed, "simulate").spawn(0 if noise is None else motion.rows.size)
        kind = CompiledSteps if COMPILES and motion.compiles else cls
        groups = []
        for length in np.unique(steps):
            rows = np.flatnonzero(steps == length)
            own = tuple(streams[row] for row in rows) if streams else ()
            groups.append((rows, kind(motion.take(rows), float(length), method, noise, own)))
        return Groups(groups)

    def between(self, state: FloatArray, start: float, end: float) -> FloatArray:
        """Return the states at ``end``."""
        rows = range(len(state))
        for first, length, number in self._strides(start, end, _DRAWN // state.size):
            kicks = [self._kicks(row, number, length, state.shape[1]) for row in rows]
            state = self._several(state, first, length, number, None if self.noise is None else np.stack(kicks, axis=1))
        return state

    def _strides(self, start: float, end: float, most: int) -> Iterator[tuple[float, float, int]]:
        """Yield times, lengths and numbers of steps, at most so many at a time."""
        count = max(1, math.ceil((end - start) / self.step * (1 - 1e-12)))
        length, most = (end - start) / count, max(1, most)
        for done in range(0, count, most):
            yield start + done * length, length, min(most, count - done)

    def _kicks(self, row: int, number: int, length: float, width: int) -> FloatArray:
        """Return the kicks (steps, width) of a sample, from its own stream; zeros without noise."""
        kicks, motion = np.zeros((number, width)), self.motion
        if self.noise is not None:
            scale = np.sqrt(2 * self.noise * length) / (motion.damping if motion.inertia is None else motion.inertia)
            scale[motion.held] = 0.0
            kicks[:, width - motion.size :] = scale * self.streams[row].standard_normal((number, motion.size))
        return kicks

    def _several(
        self, state: FloatArray, start: float, length: float, number: int, kicks: FloatArray | None
    ) -> FloatArray:
        stride = self._runge_kutta if self.method == "rk4" else self._heun
        with np.errstate(all="ignore"):
            for k in range(number):
                kick = 0.0 if kicks is None else kicks[k]
                time, before = start + k * length, state
                state = stride(before, time, length, kick)
                if not math.isfinite(float(np.sum(np.abs(state)))):
                    row = int(np.argmin(np.all(np.isfinite(state), axis=1)))
                    raise self._broken(row, before[[row]], time, length)
        return state

    def _runge_kutta(self, state: FloatArray, time: float, step: float, _kick: Any) -> FloatArray:
        rates, half = self.motion.rates, time + step / 2
        first = rates(time, state)
        second = rates(half, state + step / 2 * first)
        third = rates(half, state + step / 2 * second)
        fourth = rates(time + step, state + step * third)
        return state + step / 6 * (first + 2 * (second + third) + fourth)

    def _heun(self, state: FloatArray, time: float, step: float, kick: Any) -> FloatArray:
        first = self.motion.rates(time, state)
        second = self.motion.rates(time + step, state + step * first + kick)
        return state + step / 2 * (first + second) + kick

    def _broken(self, row: int, before: FloatArray, time: float, length: float) -> ValueError:
        """Return the error of a sample whose state (1, width) a step from this time makes infinite."""
        with np.errstate(all="ignore"):
            rates = self.motion.take(np.array([row])).rates(time, before)[0]
        advice = f"Steps of {length:g} may be too long: give a smaller 'step', or method='adaptive' without noise."
        return _not_finite(self.motion, row, time + length, rates, advice)


@dataclass(frozen=True, eq=False)
class CompiledSteps(FixedSteps):
    """The same, compiled, a sample at a time."""

    def between(self, state: FloatArray, start: float, end: float) -> FloatArray:
        """Return the states at ``end``."""
        from phasegrad.kernels import motion as loops

        motion, width = self.motion, state.shape[1]
        after, work = state.copy(), tuple(np.empty(width) for _ in range(5))
        work += tuple(np.empty(motion.size) for _ in range(2))
        moving = np.ones(motion.size)
        moving[motion.held] = 0.0
        bodies = moving, motion.damping, np.zeros(0) if motion.inertia is None else motion.inertia
        most = _LOOKED // (width + self._places[1].size)
        if self.method == "heun":
            most = min(most, _DRAWN // width)
        for row, one in enumerate(after):
            acting = *self._acting(row), bodies, work
            for first, length, number in self._strides(start, end, most):
                if self.method == "rk4":
                    taken = loops.runge_kutta(one, number, length, *acting)
                else:
                    taken = loops.heun(one, self._kicks(row, number, length, width), length, *acting)
                if taken < number:
                    raise self._broken(row, one[None], first + taken * length, length)
        return after

    def _acting(self, row: int) -> tuple[Any, Any]:
        """Return what the compiled code is given of one sample: its forces, and its couplings in compressed rows."""
        drive, along, across, mean, weight = (each[min(row, len(each) - 1)] for each in self._forces)
        return (drive, along, across, float(mean)), (*self._places[:2], weight)

    @lazy_property
    def _forces(self) -> tuple[FloatArray, ...]:
        """Of every sample, or of all: drive (b, N), both parts of the fields, the mean field's strength over N (b,).

        And the couplings in compressed rows, (b, 2E).
        """
        motion, system = self.motion, self.motion.first.system
        shift, values = motion.shift(motion.first), system.values
        drive = np.ascontiguousarray(system.drive if shift is None else system.drive + shift)
        along, across = np.zeros((2, 1, motion.size))
        strength = np.zeros((1, motion.drive.network.n_edges))
        for term in system.terms:
            field, edges = term.phasor_field(values), term.phasor_edges(values)
            if field is not None:
                along, across = along + field[0], across + field[1]
            if edges is not None:
                strength = strength + edges
        mean = values.get("global_coupling", np.zeros((1, 1)))[:, 0] / motion.size
        return drive, along, across, mean, np.take(strength, self._places[2], axis=1)

    @lazy_property
    def _places(self) -> tuple[IntArray, IntArray, IntArray]:
        """Both directions of all edges in compressed rows: where rows begin, neighbours, and the number of the edge.

        What is clamped acts like any other, at its phase.
        """
        graph = self.motion.drive.network.graph
        numbers = np.arange(graph.n_edges, dtype=np.int64)
        ends = np.concatenate([graph.first, graph.second]), np.concatenate([graph.second, graph.first])
        matrix = csr_array((np.concatenate([numbers, numbers]), ends), shape=(graph.size, graph.size))
        return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data


@dataclass(frozen=True, eq=False)
class Groups:
    """Samples, by their numbers, with the steps of each group."""

    groups: Sequence[tuple[IntArray, FixedSteps]]

    def between(self, state: FloatArray, start: float, end: float) -> FloatArray:
        """Return the states at ``end``."""
        after = np.empty_like(state)
        for rows, steps in self.groups:
            after[rows] = steps.between(state[rows], start, end)
        return after


def _not_finite(motion: Motion, row: int, time: float, rates: FloatArray, advice: str) -> ValueError:
    """Return an error that says when and which oscillator: the one that changed fastest, which neighbours follow."""
    fastest = int(np.argmax(np.nan_to_num(np.abs(rates), nan=np.inf))) % motion.size
    return ValueError(
        f"The phases are no longer finite at time {time:g}, first that of oscillator {fastest} in sample "
        f"{motion.name(row)}. {advice}"
    )
