"""Presets: kinds of hardware, each number with its source."""

from __future__ import annotations

import difflib

from phasegrad.hardware._hardware import Hardware
from phasegrad.measurement import Readout

_MOY = "Moy et al. 2022, Nature Electronics 5, 310: 1,968 ring oscillators in 65 nm"
_CHOU = "Chou et al. 2019, Scientific Reports 9: four LC oscillators on a board"
_JITTER = "Haddad et al. 2014: about 1.5 per mille of the period per period; the figure is quoted from memory"
_TIME = f"assumed: with 10 periods per unit of time, the 50 periods to settle of {_MOY}"
_PERIODS = "assumed: a coupling of 1 then shifts the phase by 0.1 rad per period, weak enough for a phase model"

PRESETS: dict[str, Hardware] = {
    each.name: each
    for each in (
        Hardware(name="ideal"),
        Hardware(
            name="cmos-ring-65nm", frequency_mismatch=0.01, coupling_mismatch=0.01, coupling_levels=5,
            settling_time=5.0, jitter=0.0015, cycles=10.0, frequency=1e9, readout=Readout.from_time(1.6e-12, 1e9),
            sources={
                "frequency_mismatch": "about 1 % within a die for rings of minimum size, quoted from memory; measured "
                "sets exist (Maiti et al., 125 FPGAs)",
                "coupling_mismatch": "assumed: transistors of the same size as those of the rings",
                "coupling_levels": f"five levels: {_MOY}",
                "settling_time": _TIME,
                "jitter": _JITTER,
                "cycles": _PERIODS,
                "frequency": f"50 periods in about 50 ns: {_MOY}",
                "readout": "1.6 ps: time-to-digital converter of coupled rings, Aalto 2021; 0.8 to 3.2 ps, 65 nm "
                "Vernier, Jurgo and Navickas",
            },
        ),
        Hardware(
            name="cmos-ring-aggressive", frequency_mismatch=0.03, coupling_mismatch=0.03, coupling_levels=16,
            settling_time=5.0, jitter=0.0015, cycles=10.0, frequency=1e9, readout=Readout(bits=4),
            sources={
                "frequency_mismatch": "assumed: three times that of cmos-ring-65nm",
                "coupling_mismatch": "assumed: three times that of cmos-ring-65nm",
                "coupling_levels": "assumed: 4 bits",
                "settling_time": _TIME,
                "jitter": _JITTER,
                "cycles": _PERIODS,
                "frequency": f"50 periods in about 50 ns: {_MOY}",
                "readout": "4 bits, enough for learning in simulated oscillator Ising machines: Gower 2025, "
                "arXiv:2505.02103",
            },
        ),
        Hardware(
            name="lc-board", frequency_mismatch=0.001, coupling_mismatch=0.001, coupling_levels=32, settling_time=5.0,
            cycles=1.0,
            sources={
                "frequency_mismatch": "assumed: selected inductors and capacitors",
                "coupling_mismatch": "assumed: resistors of 0.1 %",
                "coupling_levels": f"5 bits: {_CHOU}",
                "settling_time": f"with one period per unit of time, the 5 periods to settle of {_CHOU}",
                "cycles": "assumed, so that 5 periods are enough: coupling as strong as this is at the edge of what a "
                "phase model describes",
            },
        ),
    )
}  # fmt: skip


def presets() -> tuple[str, ...]:
    """Return the names of all presets.

    See Also
    --------
    hardware.preset : A kind of chip by name.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.hardware.presets()
    ('ideal', 'cmos-ring-65nm', 'cmos-ring-aggressive', 'lc-board')
    """
    return tuple(PRESETS)


def preset(name: str) -> Hardware:
    """Return hardware by its name; printed, it shows each number with its source.

    Spin-torque oscillators have none: their amplitudes take part, which a model of phases leaves out.

    See Also
    --------
    hardware.presets : The names of all presets.
    hardware.Hardware : A kind of chip with its faults.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.hardware.presets()
    ('ideal', 'cmos-ring-65nm', 'cmos-ring-aggressive', 'lc-board')
    >>> print(str(pg.hardware.preset("cmos-ring-65nm")).splitlines()[3])
      coupling_levels = 5  [five levels: Moy et al. 2022, Nature Electronics 5, 310: 1,968 ring oscillators in 65 nm]
    """
    if not isinstance(name, str) or name not in PRESETS:
        near = difflib.get_close_matches(str(name), PRESETS, n=1, cutoff=0.3)
        advice = f"Did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"There is no preset {name!r:.60}. {advice}Presets are {', '.join(PRESETS)}.")
    return PRESETS[name]
