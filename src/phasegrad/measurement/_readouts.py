r"""Readouts: what a meter makes of phases.

A reading is the phase plus normal noise, then rounded to one of 2^bits levels where the meter has so few. Several
readings are averaged. Phases are counted around the circle: readings on both sides of where it is cut are brought
together first, which takes noise well below half a turn.

Rounding to levels a step apart is a sawtooth of the phase. Over all phases its mean square is step^2 / 12 and noise of
deviation sigma is independent of it, so that one reading is off by sigma^2 + step^2 / 12 in the mean square. Noise
smears the sawtooth: its k-th harmonic falls by exp(-2 (pi k sigma / step)^2), and what is left of it no averaging
removes,

    bias^2 = step^2 / (2 pi^2) sum_k exp(-(2 pi k sigma / step)^2) / k^2
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import FloatArray, float_between, positive_float, whole_number
from phasegrad.dynamics import wrapped
from phasegrad.gradients import Meter, NudgedStates, Problem, Scheme
from phasegrad.measurement._noise import deviations
from phasegrad.measurement._outlook import best_outlook

_TURN = 2 * math.pi
# Numbers drawn at once.
_AT_ONCE = 2**22
_MOST_BITS = 32


@dataclass(frozen=True)
class Readout(Meter):
    """A phase meter: noise, averaging, bits.

    Parameters
    ----------
    noise : float
        Standard deviation of one reading, in radians.
    readings : int
        How many are averaged.
    bits : int or None
        A reading is one of 2^bits levels over ``span``; None is a meter without levels.
    span : (float, float)
        The phases it can tell apart. A full turn (default) is read around the circle; beyond a smaller one readings
        stay at its ends.

    See Also
    --------
    plan_measurement : Which nudge and how many readings.
    gradient_from_phases : A gradient from measured phases.
    hardware.Hardware : A kind of chip with its faults.

    Examples
    --------
    A picosecond at 3 GHz:

    >>> import numpy as np, phasegrad as pg
    >>> meter = pg.measurement.Readout.from_time(1e-12, 3e9, readings=4)
    >>> round(meter.noise, 5), round(meter.deviation, 5)
    (0.01885, 0.00942)
    >>> pg.measurement.Readout(bits=4).read([0.1, -3.1], np.random.default_rng(0)).round(3).tolist()
    [0.196, -2.945]
    """

    noise: float = 0.0
    readings: int = 1
    bits: int | None = None
    span: tuple[float, float] = (-math.pi, math.pi)

    def __post_init__(self) -> None:
        float_between("noise", self.noise, 0, math.inf, "Readout")
        whole_number("readings", self.readings, 1, "Readout")
        if self.bits is not None and whole_number("bits", self.bits, 1, "Readout") > _MOST_BITS:
            raise ValueError(
                f"The 'bits' of Readout must be at most {_MOST_BITS}, or None for no levels. Got {self.bits}."
            )
        try:
            low, high = (float(end) for end in self.span)
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if not 0 < high - low <= _TURN * (1 + 1e-12):
            raise ValueError(
                "The 'span' of Readout must be two phases, the lower one first, at most a full turn apart. "
                f"Got {self.span!r:.60}."
            )
        object.__setattr__(self, "span", (low, high))

    @classmethod
    def from_time(cls, seconds: float, frequency: float, **options: Any) -> Readout:
        """Return the meter whose readings are off by so many seconds at a frequency in hertz."""
        seconds = float_between("seconds", seconds, 0, math.inf, "Readout.from_time")
        return cls(noise=_TURN * positive_float("frequency", frequency, "Readout.from_time") * seconds, **options)

    @property
    def step(self) -> float:
        """The distance of two levels, 0 without levels."""
        return 0.0 if self.bits is None else (self.span[1] - self.span[0]) / 2**self.bits

    @property
    def circular(self) -> bool:
        """Whether it reads the whole circle."""
        return self.span[1] - self.span[0] >= _TURN * (1 - 1e-12)

    @property
    def bias(self) -> float:
        """How far the mean of very many readings is from the phase, in the root mean square over all phases."""
        spread = 4 * (math.pi * self.noise / self.step) ** 2 if self.step else math.inf
        if spread < 1:
            # Poisson's sum of the series, exact but for exp(-pi^2 / spread).
            total = math.pi**2 / 6 - math.sqrt(math.pi * spread) + spread / 2
        else:
            total = sum(math.exp(-spread * k**2) / k**2 for k in range(1, 8))
        return self.step / math.pi * math.sqrt(total / 2)

    @property
    def deviation(self) -> float:
        """How far the mean of its readings is from the phase, in the root mean square over all phases."""
        return math.sqrt(self.variance(self.readings))

    def variance(self, readings: float) -> float:
        """Return the mean square error of the mean of so many readings; infinitely many leave the bias."""
        return self.bias**2 + (self.noise**2 + self.step**2 / 12 - self.bias**2) / readings

    def read(self, phases: ArrayLike, stream: np.random.Generator) -> FloatArray:
        """Return what the meter shows of phases of any shape: the mean of its readings, NaN where a phase is."""
        given = np.asarray(phases, dtype=np.float64)
        if self.bits is None and self.circular:
            # The mean of normal readings is normal.
            return given + (self.noise / math.sqrt(self.readings)) * stream.standard_normal(given.shape)
        total, done = np.zeros(given.shape), 0
        first: FloatArray | None = None
        while done < self.readings:
            count = min(self.readings - done, max(1, _AT_ONCE // max(given.size, 1)))
            each = self._levels(given + self.noise * stream.standard_normal((count, *given.shape)))
            first = each[0] if first is None else first
            if self.circular:
                each = first + wrapped(each - first)
            total += each.sum(axis=0)
            done += count
        return total / self.readings

    def best_beta(self, problem: Problem, scheme: Scheme, nudge: str) -> float:
        """Return the nudge whose gradient, read with it, is expected to have the largest cosine with the exact one."""
        return best_outlook(problem, scheme, nudge, self).beta

    def deviations(self, problem: Problem, states: NudgedStates, nudge: str) -> dict[str, FloatArray]:
        """Return the standard deviation of every entry of a gradient read with it, (B, width) by name."""
        return deviations(problem, states, self.deviation, frozen=nudge == "frozen")

    def _levels(self, readings: FloatArray) -> FloatArray:
        low, high = self.span
        inside = low + np.mod(readings - low, _TURN) if self.circular else np.clip(readings, low, high)
        if not self.step:
            return np.asarray(inside)
        assert self.bits is not None
        level = np.minimum(np.floor((inside - low) / self.step), 2.0**self.bits - 1)
        return np.asarray(low + (level + 0.5) * self.step)
