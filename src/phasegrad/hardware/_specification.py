r"""What is wrong with a piece of hardware, as one frozen value.

What happens on a chip happens in a fixed order:

1. *program*: couplings, frequencies and fields are rounded to the levels that the chip has;
2. *mismatch*: every coupling and every field is off by a factor 1 + c of its own, every frequency by a shift of its
   own, drawn once when the chip is made;
3. *drift*: frequencies have walked a little further since the last run;
4. *settle*: the oscillators run for a finite time, their phases jittering, or until they are at rest;
5. *read*: noise, then levels (`Readout`).

Frequencies of hardware are shares of the operating frequency f, those of the model are counted in its own time. With
``cycles`` periods of the oscillation in one unit of the model's time, a share s of f is 2 pi s cycles there, and a
jitter of a share j of the period per period is a diffusion of phases of 2 pi j sqrt(cycles) per square root of time.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import FloatArray, float_between, positive_float, whole_number
from phasegrad.measurement import Readout
from phasegrad.networks import Network
from phasegrad.terms import Coupling, Frequencies, NodeField

_MOST_BITS = 32
Range = tuple[float, float]


@dataclass(frozen=True)
class Levels:
    """Evenly spread values from the lowest to the highest, or around the circle, where the highest is left out."""

    low: float
    high: float
    count: int
    circular: bool = False

    def nearest(self, values: FloatArray) -> FloatArray:
        """Return the level nearest to each value."""
        gaps = self.count if self.circular else self.count - 1
        if gaps == 0:
            return np.full(values.shape, self.low)
        step = (self.high - self.low) / gaps
        inside = values if self.circular else np.clip(values, self.low, self.high)
        number = np.rint((inside - self.low) / step)
        return np.asarray(self.low + step * (np.mod(number, gaps) if self.circular else number))


@dataclass(frozen=True, kw_only=True)
class Specification:
    """The numbers of a kind of chip, and what follows from them for one: `Hardware` says what each of them is."""

    frequency_mismatch: float = 0.0
    coupling_mismatch: float = 0.0
    coupling_levels: int | None = None
    coupling_range: Range | None = None
    frequency_bits: int | None = None
    frequency_range: Range = (-3.0, 3.0)
    field_bits: int | None = None
    field_range: Range = (0.0, 4.0)
    drift: float = 0.0
    settling_time: float | None = None
    jitter: float = 0.0
    cycles: float = 10.0
    frequency: float | None = None
    readout: Readout = field(default_factory=Readout)
    name: str = "hardware"
    sources: Any = ()

    def __post_init__(self) -> None:
        owner = "Hardware"
        for name in ("frequency_mismatch", "coupling_mismatch", "drift", "jitter"):
            float_between(name, getattr(self, name), 0, 1, owner)
        positive_float("cycles", self.cycles, owner)
        for name in ("settling_time", "frequency"):
            if getattr(self, name) is not None:
                positive_float(name, getattr(self, name), owner)
        if self.jitter and self.settling_time is None:
            raise ValueError("The 'jitter' of Hardware acts while phases settle: give a 'settling_time' too.")
        if self.coupling_levels is not None:
            whole_number("coupling_levels", self.coupling_levels, 1, owner)
        for name in ("frequency_bits", "field_bits"):
            if getattr(self, name) is not None and whole_number(name, getattr(self, name), 1, owner) > _MOST_BITS:
                raise ValueError(
                    f"The '{name}' of Hardware must be at most {_MOST_BITS}, or None for all values. "
                    f"Got {getattr(self, name)}."
                )
        self._check_ranges()
        if not isinstance(self.readout, Readout):
            raise TypeError(f"The 'readout' of Hardware must be a Readout. Got {self.readout!r:.80}.")
        object.__setattr__(self, "sources", tuple((str(key), str(words)) for key, words in dict(self.sources).items()))

    def _check_ranges(self) -> None:
        levels = {
            "coupling_range": self.coupling_levels,
            "frequency_range": None if self.frequency_bits is None else 2**self.frequency_bits,
            "field_range": None if self.field_bits is None else 2**self.field_bits,
        }
        for name, count in levels.items():
            given = getattr(self, name)
            if given is None:
                continue
            try:
                low, high = (float(end) for end in given)
            except (TypeError, ValueError):
                low, high = math.nan, math.nan
            if not (math.isfinite(low) and math.isfinite(high) and low <= high):
                raise ValueError(
                    f"The '{name}' of Hardware must be two numbers, the lower one first. Got {given!r:.60}."
                )
            object.__setattr__(self, name, (low, high))
            # Levels closer than the rounding of their own values are not different values.
            room = math.inf if count is None else 1 + (high - low) / (max(abs(low), abs(high), 1e-300) * 2**-_MOST_BITS)
            if count is not None and not (count <= room and (count > 1 or low == high)):
                raise ValueError(
                    f"The '{name}' of Hardware from {low:g} to {high:g} does not allow {count} different "
                    f"level{'s' * (count > 1)}. "
                    + ("One level is for a range of one value. " if count == 1 else "")
                    + "Give another range, or another number of levels."
                )

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed; a number that is changed loses its source."""
        kept = tuple((key, words) for key, words in self.sources if key not in changes)
        return dataclasses.replace(self, **{"sources": kept, **changes})

    @property
    def detuning(self) -> float:
        """Standard deviation of a natural frequency, in units of the model."""
        return 2 * math.pi * self.cycles * self.frequency_mismatch

    @property
    def wander(self) -> float:
        """Standard deviation of a step of drift of a natural frequency, in units of the model."""
        return 2 * math.pi * self.cycles * self.drift

    @property
    def diffusion(self) -> float:
        """Standard deviation of a phase left alone for one unit of the model's time, in radians."""
        return 2 * math.pi * math.sqrt(self.cycles) * self.jitter

    @property
    def seconds(self) -> float:
        """How long one run lasts; NaN without a settling time or an operating frequency."""
        if self.settling_time is None or self.frequency is None:
            return math.nan
        return self.settling_time * self.cycles / self.frequency

    def fitted(self, network: Network) -> Self:
        """Return hardware whose range of couplings is that of a network, where it has none of its own."""
        if self.coupling_range is not None:
            return self
        most = 2 * float(np.max(np.abs(network.parameters["coupling"]), initial=0.0)) or 1.0
        return dataclasses.replace(self, coupling_range=(-most if network.signed else 0.0, most))

    def ranges(self, network: Network) -> dict[str, Range]:
        """Return between which values each parameter of a network can be programmed, where it has levels."""
        levels = self._levels(network).items()
        return {name: (each.low, each.high) for name, each in levels if not each.circular}

    def programmed(self, network: Network, parameters: Mapping[str, ArrayLike]) -> dict[str, FloatArray]:
        """Return the values that a chip takes for those it is given, by name: the nearest of its levels."""
        levels = self._levels(network)
        given = {name: np.asarray(values, dtype=np.float64) for name, values in parameters.items()}
        return {name: levels[name].nearest(values) if name in levels else values for name, values in given.items()}

    def _levels(self, network: Network) -> dict[str, Levels]:
        """Return the levels of every parameter that has some; those of terms of one's own have none."""
        fitted, levels = self.fitted(network), {}
        for term in network.terms:
            names = [each.name for each in term.parameters]
            if isinstance(term, Coupling) and self.coupling_levels is not None:
                assert fitted.coupling_range is not None
                strengths = [each.name for each in term.strengths]
                levels.update({name: Levels(*fitted.coupling_range, self.coupling_levels) for name in strengths})
            if isinstance(term, Frequencies) and self.frequency_bits is not None:
                levels.update({name: Levels(*self.frequency_range, 2**self.frequency_bits) for name in names})
            if isinstance(term, NodeField) and self.field_bits is not None:
                strength, phase = names
                levels[strength] = Levels(*self.field_range, 2**self.field_bits)
                levels[phase] = Levels(-math.pi, math.pi, 2**self.field_bits, circular=True)
        return levels
