"""Kinds of chips: their faults by name, alone or together, and the chips that are made of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from phasegrad.hardware._chips import Chip, Ensemble
from phasegrad.hardware._specification import Specification
from phasegrad.networks import Network

#: The faults that can be looked at alone, by name: the fields that make each of them.
FAULTS: dict[str, tuple[str, ...]] = {
    "frequency mismatch": ("frequency_mismatch",),
    "coupling mismatch": ("coupling_mismatch",),
    "levels": ("coupling_levels", "frequency_bits", "field_bits"),
    "drift": ("drift",),
    "settling": ("settling_time", "jitter"),
    "reading": ("readout",),
}
#: What all faults together are called.
TOGETHER = "all together"


@dataclass(frozen=True, kw_only=True)
class Hardware(Specification):
    """A kind of chip: its faults, its levels, its meter and its times. Without arguments, an ideal one.

    Parameters
    ----------
    frequency_mismatch : float
        Standard deviation of the frequency of an oscillator, as a share of the operating frequency.
    coupling_mismatch : float
        Standard deviation of a coupling or a field strength, as a share of its own value.
    coupling_levels : int or None
        How many values a coupling can have, evenly spread over ``coupling_range``, both ends among them. None has all.
    coupling_range : (float, float) or None
        The least and the greatest coupling. None goes by the network that a chip is made for: twice its strongest
        coupling, to both sides of zero if it is signed and from zero on if not.
    frequency_bits, field_bits : int or None
        2^bits values of natural frequencies over ``frequency_range``; of field strengths over ``field_range`` and of
        their phases over a full turn.
    frequency_range, field_range : (float, float)
        In units of the model.
    drift : float
        How far a frequency walks from one run to the next, standard deviation as a share of the operating frequency.
    settling_time : float or None
        How long a run lasts from phase zero on, in units of the model's time. None waits until all is at rest.
    jitter : float
        Standard deviation of a period, as a share of the period; it needs a settling time.
    cycles : float
        Periods of the oscillation in one unit of the model's time: the weaker the coupling, the more.
    frequency : float or None
        The operating frequency in hertz, for times in seconds.
    readout : Readout
        The phase meter.
    name : str
    sources : sequence of (str, str)
        Where numbers come from, by the names of their fields.

    See Also
    --------
    hardware.Chip : A simulated chip with faults of its own.
    hardware.preset : A kind of chip by name.
    Readout : A phase meter: noise, averaging, bits.

    Examples
    --------
    >>> import phasegrad as pg
    >>> from phasegrad.hardware import Hardware
    >>> kind = Hardware(coupling_levels=5, coupling_range=(0, 4), coupling_mismatch=0.01)
    >>> kind.programmed(pg.layered(2, 5, 2), {"coupling": [0.3, 1.9, 7.0]})["coupling"].tolist()
    [0.0, 2.0, 4.0]
    >>> chip = kind.sample(pg.layered(2, 5, 2), seed=1)
    >>> chip.run([[0.5, -0.5]])
    >>> chip.read().shape
    (1, 9)
    """

    def only(self, *faults: str) -> Hardware:
        """Return hardware with some of the faults alone, by the names in `FAULTS`, and ideal otherwise."""
        unknown = [word for word in faults if word not in FAULTS]
        if unknown:
            raise ValueError(f"There is no fault {unknown[0]!r}. Faults are {', '.join(FAULTS)}.")
        kept = {name for word in faults for name in FAULTS[word]}
        ideal = Hardware()
        gone = {name for names in FAULTS.values() for name in names} - kept
        return self.replace(**{name: getattr(ideal, name) for name in gone})

    @property
    def faults(self) -> tuple[str, ...]:
        """The names of the faults that it has."""
        ideal = Hardware()
        return tuple(
            word for word, names in FAULTS.items() if any(getattr(self, k) != getattr(ideal, k) for k in names)
        )

    def kinds(self, alone: bool = True) -> dict[str, Hardware]:
        """Return the kinds of chips of an error budget by name: with no fault, with each alone, with all together."""
        found = {"none": self.only()}
        if alone and len(self.faults) > 1:
            found |= {fault: self.only(fault) for fault in self.faults}
        if self.faults:
            found[TOGETHER] = self
        return found

    def sample(self, network: Network, seed: int = 0) -> Chip:
        """Return a chip of this kind with faults of its own, for networks of this topology; the seed makes it."""
        return Chip(self, network, seed)

    def ensemble(self, network: Network, seeds: int | Sequence[int]) -> Ensemble:
        """Return many chips that run at once: so many, of the seeds from 0 on, or those of some seeds."""
        return Ensemble(self, network, range(seeds) if isinstance(seeds, int) else seeds)

    def __str__(self) -> str:
        """Return all numbers that differ from ideal ones, a line each, with their sources."""
        sources, ideal, lines = dict(self.sources), Hardware(), [self.name]
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if item.name in ("name", "sources") or (value == getattr(ideal, item.name) and item.name not in sources):
                continue
            source = f"  [{sources[item.name]}]" if item.name in sources else ""
            lines.append(f"  {item.name} = {value}{source}")
        return "\n".join(lines if len(lines) > 1 else [self.name, "  no faults"])
