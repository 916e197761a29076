r"""Steps in time, between one time that is asked for and the next.

`Adaptive` is SciPy's DOP853, of order eight, every sample for itself. `FixedSteps` are the classical Runge-Kutta method
of order four, or Heun's, which with additive noise converges with order one path by path and with order two in the
mean (Kloeden and Platen 1992):

    x' = x + h f(x) + kick,   x <- x + h / 2 (f(x) + f(x')) + kick,   kick = sqrt(2 D h) normal / d

compiled where the forces are sines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.integrate import DOP853
from scipy.sparse import csr_array

from phasegrad._validation import FloatArray, IntArray, random_stream
from phasegrad.simulation._motion import Motion

# Numbers of noise drawn at a time.
_DRAWN = 2**20


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
        return np.array([self._one(row, state[row], start, end) for row in range(len(self.parts))])

    def _one(self, row: int, state: FloatArray, start: float, end: float) -> FloatArray:
        solver = self.solvers[row]
        if solver is None:
            part = self.parts[row]

            def rates(time: float, flat: FloatArray) -> FloatArray:
                return part.rates(time, flat[None])[0]

            options: dict[str, Any] = {"rtol": max(self.tolerance, 3e-14), "atol": self.tolerance}
            check_finite(rates(start, state)[None], start, part.size, row, "Its force is not finite there.")
            solver = self.solvers[row] = DOP853(rates, start, state, self.last, **options)
        while solver.t < end:
            before = solver.t
            with np.errstate(all="ignore"):
                message = solver.step()
            failed = solver.status == "failed" or not np.all(np.isfinite(solver.y))
            if failed:
                size = self.parts[row].size
                check_finite(solver.y[None], before, size, row, "The adaptive steps cannot go on from there.")
                fastest = int(np.argmax(np.abs(solver.f))) % size
                raise ValueError(
                    f"The adaptive steps broke down at time {before:g}, where oscillator {fastest} changes fastest: "
                    f"{message} Look at the forces there."
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
    def of(
        cls, motion: Motion, step: float, method: str, noise: FloatArray | None, seed: int | None
    ) -> FixedSteps | CompiledSteps:
        """Return compiled steps where the forces are sines, else those by NumPy; noise is one stream per sample."""
        number = 0 if noise is None else motion.rows.size
        streams = tuple(random_stream(seed, "simulate").spawn(number))
        kind = CompiledSteps if motion.compiles else cls
        return kind(motion, step, method, noise, streams)

    def between(self, state: FloatArray, start: float, end: float) -> FloatArray:
        """Return the states at ``end``."""
        count = max(1, math.ceil((end - start) / self.step * (1 - 1e-12)))
        length = (end - start) / count
        done = 0
        most = max(1, _DRAWN // state.size) if self.noise is not None else count
        while done < count:
            number = min(most, count - done)
            kicks = self._kicks(number, length, state.shape)
            state = self._several(state, start + done * length, length, number, kicks)
            done += number
        return state

    def _kicks(self, number: int, length: float, shape: tuple[int, ...]) -> FloatArray | None:
        """Return kicks (B, steps, width); a sample's come from its own stream."""
        if self.noise is None:
            return None
        motion = self.motion
        weight = motion.damping if motion.inertia is None else motion.inertia
        scale = np.sqrt(2 * self.noise * length) / weight
        scale[motion.held] = 0.0
        kicks = np.zeros((shape[0], number, shape[1]))
        for row, stream in enumerate(self.streams):
            kicks[row, :, shape[1] - motion.size :] = scale * stream.standard_normal((number, motion.size))
        return kicks

    def _several(
        self, state: FloatArray, start: float, length: float, number: int, kicks: FloatArray | None
    ) -> FloatArray:
        stride = self._runge_kutta if self.method == "rk4" else self._heun
        with np.errstate(all="ignore"):
            for k in range(number):
                kick = 0.0 if kicks is None else kicks[:, k]
                time, before = start + k * length, state
                state = stride(before, time, length, kick)
                if not math.isfinite(float(np.sum(np.abs(state)))):
                    fast = np.abs(self.motion.rates(time, before))
                    check_finite(state, time + length, self.motion.size, None, self._advice(length), fast)
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

    def _advice(self, length: float) -> str:
        return f"Steps of {length:g} may be too long: give a smaller 'step', or method='adaptive' without noise."


@dataclass(frozen=True, eq=False)
class CompiledSteps(FixedSteps):
    """The same, compiled, a sample at a time."""

    def _several(
        self, state: FloatArray, start: float, length: float, number: int, kicks: FloatArray | None
    ) -> FloatArray:
        from phasegrad.kernels import motion as loops

        motion = self.motion
        after, work = state.copy(), tuple(np.empty(state.shape[1]) for _ in range(5))
        work += tuple(np.empty(motion.size) for _ in range(2))
        moving = np.ones(motion.size)
        moving[motion.held] = 0.0
        inertia = np.zeros(0) if motion.inertia is None else motion.inertia
        bodies = moving, motion.damping, inertia
        for row, one in enumerate(after):
            acting = self._forces(row), self._rows(row), bodies, work
            if self.method == "rk4":
                taken = loops.runge_kutta(one, number, length, *acting)
            else:
                some = np.zeros((number, state.shape[1])) if kicks is None else kicks[row]
                taken = loops.heun(one, some, length, *acting)
            check_finite(one[None], start + taken * length, motion.size, row, self._advice(length))
        return after

    def _forces(self, row: int) -> tuple[Any, ...]:
        """Return drive, fields and the strength of the mean field over N that act on a sample."""
        system, shift = self.motion.first, self.motion.shift(0.0)
        drive = system.drive[min(row, len(system.drive) - 1)]
        if shift is not None:
            drive = drive + shift[row]
        along, across = np.zeros((2, self.motion.size))
        for field in (found for term in system.terms if (found := term.phasor_field(system.values)) is not None):
            along, across = along + field[0][0], across + field[1][0]
        mean = system.values.get("global_coupling", np.zeros((1, 1)))[0, 0] / self.motion.size
        return np.ascontiguousarray(drive), along, across, float(mean)

    def _rows(self, row: int) -> tuple[Any, ...]:
        """Return couplings in compressed rows; what is clamped acts like any other, at its phase."""
        del row
        system, graph = self.motion.first, self.motion.first.graph

        def made() -> tuple[IntArray, IntArray, FloatArray]:
            found = [k[0] for term in system.terms if (k := term.phasor_edges(system.values)) is not None]
            strength = np.sum(found, axis=0) if found else np.zeros(graph.n_edges)
            ends = np.concatenate([graph.first, graph.second]), np.concatenate([graph.second, graph.first])
            matrix = csr_array((np.concatenate([strength, strength]), ends), shape=(graph.size, graph.size))
            return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data

        rows: tuple[Any, ...] = system.workspace.keep("rows in time", made)
        return rows


def check_finite(
    state: FloatArray, time: float, size: int, row: int | None, advice: str, fast: FloatArray | None = None
) -> None:
    """Raise ValueError that says when and which oscillator, where a state (B, width) is not finite.

    Neighbours follow within a step: of several it is the one that changed fastest before, where ``fast`` says so.
    """
    bad = ~np.isfinite(state)
    if not np.any(bad):
        return
    blame = np.where(bad, 1.0 if fast is None else np.nan_to_num(fast, nan=np.inf), -1.0)
    sample, place = (int(k) for k in np.unravel_index(np.argmax(blame), state.shape))
    raise ValueError(
        f"The phases are no longer finite at time {time:g}, first that of oscillator {place % size} in sample "
        f"{sample if row is None else row}. {advice}"
    )
