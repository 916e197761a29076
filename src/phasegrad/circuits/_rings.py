"""Ring oscillators: three CMOS inverters in a ring, coupled by resistors between their first stages.

Transistors are SPICE's level 1 and have no capacitance of their own, so that a ring of frequency 1 + d, relative to the
others, has all its capacitors divided by that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import finite_array, positive_float, shaped_array, whole_number
from phasegrad.circuits._netlist import Netlist
from phasegrad.circuits._ngspice import LIMIT, ngspice
from phasegrad.circuits._phases import Locked, crossing_frequency, lock

_STAGES = 3
# Frequency of a ring, times capacitance over transconductance and supply: measured once, to know how long a cycle is.
_PACE = 0.052


@dataclass(frozen=True)
class Rings:
    """The inverters of ring oscillators.

    Parameters
    ----------
    capacitance : float
        At every stage, in farad.
    supply, threshold : float
        In volt; the threshold below half the supply.
    transconductance : float
        Of the n-channel transistors, in ampere per square volt.
    skew : float
        That of the p-channel transistors, as a multiple; 1 makes rising and falling edges alike.

    See Also
    --------
    circuits.Circuit : A network as a circuit, and a device.
    circuits.fit_interaction : The interaction that locked pairs show.

    Examples
    --------
    >>> from phasegrad.circuits import Rings
    >>> f"{Rings().frequency:.2g} Hz"
    '9.4e+08 Hz'
    """

    capacitance: float = 1e-13
    supply: float = 1.8
    threshold: float = 0.45
    transconductance: float = 1e-3
    skew: float = 1.0

    def __post_init__(self) -> None:
        for name in ("capacitance", "supply", "threshold", "transconductance", "skew"):
            object.__setattr__(self, name, positive_float(name, getattr(self, name), "Rings"))
        if self.threshold >= self.supply / 2:
            raise ValueError(
                f"The 'threshold' of Rings must be below half the supply of {self.supply:g} V, else no ring "
                f"oscillates. Got {self.threshold:g} V."
            )

    @property
    def frequency(self) -> float:
        """About that of a ring, in hertz; a run finds the true one."""
        return _PACE * self.transconductance * self.supply / self.capacitance

    def netlist(
        self, detunings: ArrayLike, edges: ArrayLike = (), resistances: ArrayLike = (), *, cycles: int = 150,
        steps: int = 200,
    ) -> Netlist:  # fmt: skip
        """Return the netlist of rings whose frequencies are 1 + detuning, (N,), joined by resistors (E,) in ohm."""
        shares = finite_array("detunings", detunings, "Rings.netlist")
        if shares.ndim != 1 or shares.size == 0 or np.any(shares <= -1):
            raise ValueError(f"The 'detunings' of Rings must be one number above -1 per ring. Got {detunings!r:.80}.")
        pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        ohms = shaped_array("resistances", resistances, (len(pairs),), "Rings.netlist")
        if np.any(ohms <= 0) or np.any(pairs < 0) or np.any(pairs >= shares.size):
            raise ValueError(f"Resistors of Rings must be greater than 0 and join rings 0 to {shares.size - 1}.")
        kind = f"level=1 lambda=0.05 vto={{sign}}{self.threshold:g} kp={{slope:.6e}}"
        lines = [
            f"* {shares.size} rings",
            f"Vd d 0 {self.supply:g}",
            ".model n nmos " + kind.format(sign="", slope=self.transconductance),
            ".model p pmos " + kind.format(sign="-", slope=self.transconductance * self.skew),
        ]
        for ring, share in enumerate(shares.tolist()):
            lines += self._ring(ring, self.capacitance / (1 + share))
        ends = zip(pairs.tolist(), ohms.tolist(), strict=True)
        lines += [f"R{k} r{a}s0 r{b}s0 {ohm:.12e}" for k, ((a, b), ohm) in enumerate(ends)]
        nodes = tuple(f"r{ring}s0" for ring in range(shares.size))
        step = 1 / self.frequency / whole_number("steps", steps, 20, "Rings.netlist")
        end = whole_number("cycles", cycles, 1, "Rings.netlist") / self.frequency
        lines.append(".save " + " ".join(f"v({node})" for node in nodes))
        lines += [f".tran {step:.12e} {end:.12e} 0 {step:.12e} uic", ".end", ""]
        scales = self.supply, self.transconductance * self.supply**2, self.capacitance
        return Netlist("\n".join(lines), nodes, self.frequency, cycles, False, scales)

    def run(
        self, detunings: ArrayLike, edges: ArrayLike = (), resistances: ArrayLike = (), *, cycles: int = 150,
        steps: int = 200, limit: float = LIMIT,
    ) -> Locked:  # fmt: skip
        """Simulate rings and return their phases, those of the first stages' fundamentals."""
        waveforms = ngspice(self.netlist(detunings, edges, resistances, cycles=cycles, steps=steps), limit=limit)
        return lock(waveforms, crossing_frequency(waveforms))

    def _ring(self, ring: int, farad: float) -> Iterable[str]:
        begin = (self.supply, 0.0, self.supply / 2)
        for stage in range(_STAGES):
            gate, drain = f"r{ring}s{stage}", f"r{ring}s{(stage + 1) % _STAGES}"
            yield f"Mn{ring}_{stage} {drain} {gate} 0 0 n w=1u l=1u"
            yield f"Mp{ring}_{stage} {drain} {gate} d d p w=1u l=1u"
            yield f"C{ring}_{stage} {drain} 0 {farad:.12e} ic={begin[stage]:g}"
