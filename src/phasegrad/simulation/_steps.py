r"""Steps in time, between one time that is asked for and the next.

`Adaptive` is SciPy's DOP853, of order eight, every sample for itself. `FixedSteps` are the classical Runge-Kutta method
of order four, or Heun's, which with additive noise converges with order one path by path and with order two in the
mean (Kloeden and Platen 1992):

    x' = x + h f(x) + kick,   x <- x + h / 2 (f(x) + f(x')) + kick,   kick = sqrt(2 D h) normal / d

compiled where every term says how phasors act. What becomes of a sample does not depend, by a bit, on which others
there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from phasegrad._validation import FloatArray, IntArray
from phasegrad.simulation._motion import Motion

if TYPE_CHECKING:
    from scipy.integrate import DOP853

#: Numbers of noise drawn at a time.
DRAWN = 2**20
#: The least relative tolerance that adaptive steps can keep.
ROUNDING = 3e-14


class Steps(Protocol):
    """What leads a flat batch of states from one time to a later one."""

    def between(self, state: FloatArray, start: float, end: float) -> FloatArray:
        """Return the states at ``end`` of those at ``start``."""

    def rates(self, time: float, state: FloatArray) -> FloatArray:
        """Return the rates of change of states at a time."""

    @property
    def taken(self) -> IntArray:
        """How many steps every sample took, (B,)."""


class Adaptive:
    """SciPy's DOP853: one integration per sample, carried from one time to the next."""

    def __init__(self, motion: Motion, tolerance: float, last: float) -> None:
        self.motion, self.parts = motion, [motion.take(np.array([row])) for row in range(motion.rows.size)]
        self.tolerance, self.last = tolerance, last
        self.solvers: list[DOP853 | None] = [None] * len(self.parts)
        self.taken = np.zeros(len(self.parts), dtype=np.int64)

    def between(self, state: FloatArray, start: float, end: float) -> FloatArray:
        """Return the states at ``end``, of the interpolant of the step that passes it."""
        after = np.empty_like(state)
        for row, one in enumerate(state):
            after[row] = self._one(row, one, start, end)
        return after

    def rates(self, time: float, state: FloatArray) -> FloatArray:
        """Return the rates of change of states."""
        return self.motion.rates(time, state)

    def _one(self, row: int, state: FloatArray, start: float, end: float) -> FloatArray:
        solver, part = self.solvers[row], self.parts[row]
        if solver is None:
            from scipy.integrate import DOP853

            def rates(time: float, flat: FloatArray) -> FloatArray:
                return part.rates(time, flat[None])[0]

            # A phase is cyclic: an error is as large at a thousand turns as at none, but for rounding.
            options: dict[str, Any] = {"rtol": ROUNDING, "atol": self.tolerance}
            first = rates(start, state)
            if not np.all(np.isfinite(first)):
                raise not_finite(part, 0, start, first, "Its force is not finite there.")
            solver = self.solvers[row] = DOP853(rates, start, state, self.last, **options)
        while solver.t < end:
            before = solver.t
            with np.errstate(all="ignore"):
                solver.step()
            self.taken[row] += 1
            if not np.all(np.isfinite(solver.y)):
                raise not_finite(part, 0, before, solver.f, "The adaptive steps cannot go on from there.")
            if solver.status == "failed":
                raise too_short(part, 0, before, solver.f)
        return np.asarray(solver.dense_output()(end) if solver.t > end else solver.y)


@dataclass(frozen=True, eq=False)
class FixedSteps:
    """Steps of one length, shortened so that a whole number of them leads from one time to the next."""

    motion: Motion
    step: float
    method: str
    noise: FloatArray | None = None
    streams: tuple[np.random.Generator, ...] = ()
    taken: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    def between(self, state: FloatArray, start: float, end: float) -> FloatArray:
        """Return the states at ``end``."""
        rows = range(len(state))
        self.taken[:] += self._count(start, end)
        for first, length, number in self._strides(start, end, DRAWN // state.size):
            kicks = [self._kicks(row, number, length, state.shape[1]) for row in rows]
            state = self._several(state, first, length, number, None if self.noise is None else np.stack(kicks, axis=1))
        return state

    def rates(self, time: float, state: FloatArray) -> FloatArray:
        """Return the rates of change of states."""
        return self.motion.rates(time, state)

    def _strides(self, start: float, end: float, most: int) -> Iterator[tuple[float, float, int]]:
        """Yield times, lengths and numbers of steps, at most so many at a time."""
        count = self._count(start, end)
        length, most = (end - start) / count, max(1, most)
        for done in range(0, count, most):
            yield start + done * length, length, min(most, count - done)

    def _count(self, start: float, end: float) -> int:
        """Return the number of steps from one time to the next."""
        return max(1, math.ceil((end - start) / self.step * (1 - 1e-12)))

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
        return runge_kutta_step(self.motion.rates, state, time, step)

    def _heun(self, state: FloatArray, time: float, step: float, kick: Any) -> FloatArray:
        first = self.motion.rates(time, state)
        second = self.motion.rates(time + step, state + step * first + kick)
        return state + step / 2 * (first + second) + kick

    def _broken(self, row: int, before: FloatArray, time: float, length: float) -> ValueError:
        """Return the error of a sample whose state (1, width) a step from this time makes infinite."""
        with np.errstate(all="ignore"):
            rates = self.motion.take(np.array([row])).rates(time, before)[0]
        advice = f"Steps of {length:g} may be too long: give a smaller 'step', or method='adaptive' without noise."
        return not_finite(self.motion, row, time + length, rates, advice)


def runge_kutta_step(
    rates: Callable[[float, FloatArray], FloatArray], state: FloatArray, time: float, step: float
) -> FloatArray:
    """Return the state after one step of the classical Runge-Kutta method."""
    half = time + step / 2
    first = rates(time, state)
    second = rates(half, state + step / 2 * first)
    third = rates(half, state + step / 2 * second)
    fourth = rates(time + step, state + step * third)
    return state + step / 6 * (first + 2 * (second + third) + fourth)


def too_short(motion: Motion, row: int, time: float, rates: FloatArray) -> ValueError:
    """Return the error of adaptive steps that became too short to go on, by the rates of change where they did."""
    fastest = int(np.argmax(np.abs(rates))) % motion.size
    return ValueError(
        f"The adaptive steps broke down at time {time:g}, where oscillator {fastest} in sample {motion.name(row)} "
        "changes fastest: a step would be shorter than times can tell apart. Look at the forces there."
    )


def not_finite(motion: Motion, row: int, time: float, rates: FloatArray, advice: str) -> ValueError:
    """Return an error that says when and which oscillator: the one that changed fastest, which neighbours follow."""
    fastest = int(np.argmax(np.nan_to_num(np.abs(rates), nan=np.inf))) % motion.size
    return ValueError(
        f"The phases are no longer finite at time {time:g}, first that of oscillator {fastest} in sample "
        f"{motion.name(row)}. {advice}"
    )
