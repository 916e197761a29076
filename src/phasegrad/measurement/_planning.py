"""How to measure a gradient with a meter: the nudge, the readings, the time and the energy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from numpy.typing import ArrayLike

from phasegrad._validation import choice, counted, float_between, positive_float
from phasegrad.equilibria import Equilibrium
from phasegrad.gradients import METHODS, NUDGES, checked_meter, pose
from phasegrad.measurement._outlook import best_outlook, given_outlook
from phasegrad.measurement._readouts import Readout
from phasegrad.networks import Network
from phasegrad.objectives import Cost

# Radians of error from where on readings reach around the circle.
_LARGE = 0.4
# Prefixes of units, by powers of ten.
_PREFIXES = {9: "G", 6: "M", 3: "k", 0: "", -3: "m", -6: "u", -9: "n", -12: "p", -15: "f"}
# Noise, as a share of a level, that leaves of rounding a four-hundredth of a level.
_HALF_LEVEL = 0.5


@dataclass(frozen=True)
class Measurement:
    """How to measure a gradient, and what to expect of it.

    Attributes
    ----------
    beta : float
        The nudge.
    readings : int or None
        How often every state is read; None where no number gives the cosine that was asked for.
    cosine : float
        What is expected of the cosine with the exact gradient, in the mean over noise and samples; where no number of
        readings suffices, what infinitely many would give.
    states : int
        How many states are settled and read.
    seconds, joules : float or None
        What one gradient of one sample takes, by ``assumptions``; None without a frequency, or where no number of
        readings suffices.
    assumptions : tuple of str
        What the time and the energy rest on, in sentences.
    remarks : tuple of str
        What to know beyond the figures, in sentences.

    See Also
    --------
    plan_measurement : Which nudge and how many readings.
    Readout : A phase meter: noise, averaging, bits.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.networks.random_network(10, seed=0)
    >>> question = (network, pg.find_equilibrium(network), pg.PhaseTargets(), [-0.2, 0.2])
    >>> plan = pg.measurement.plan_measurement(*question, pg.measurement.Readout(noise=0.01), nudge="held")
    >>> plan.readings, plan.states, round(plan.cosine, 3)
    (1, 3, 0.999)
    """

    beta: float
    readings: int | None
    cosine: float
    states: int
    seconds: float | None
    joules: float | None
    assumptions: tuple[str, ...]
    remarks: tuple[str, ...]

    def __str__(self) -> str:
        if self.readings is None:
            first = (
                f"No number of readings suffices: infinitely many under beta = {self.beta:.3g} would give a cosine of "
                f"{self.cosine:.4f}."
            )
        else:
            first = (
                f"Nudge with beta = {self.beta:.3g}, settle {self.states} states and read each "
                f"{counted(self.readings, 'time')}: expect a cosine of {self.cosine:.4f} with the exact gradient."
            )
        lines = [first]
        if self.seconds is not None:
            lines.append(f"A gradient takes {_with_unit(self.seconds, 's')}.")
        if self.joules is not None:
            lines.append(f"It costs {_with_unit(self.joules, 'J')}.")
        return "\n".join([*lines, *self.remarks, *self.assumptions])


def plan_measurement(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, readout: Readout, *,
    cosine: float | None = None, beta: float | None = None, method: str = "centred", points: int = 2,
    pattern: str = "fit", nudge: str = "frozen", wrt: str | Iterable[str] = "omega", frequencies: str = "relative",
    frequency: float | None = None, settling_cycles: float = 50.0, reading_cycles: float = 1.0,
    joules_per_cycle: float = 0.38e-12,
) -> Measurement:  # fmt: skip
    """Return how to measure a gradient with a meter: the nudge, the readings, and what to expect.

    Parameters
    ----------
    network, equilibrium, objective, target, wrt, frequencies
        As for `adjoint`.
    readout : Readout
        The meter.
    cosine : float, optional
        What the cosine with the exact gradient is to be in the mean; the nudge is then that which needs the fewest
        readings. Left out, the readings are those of the readout and the nudge that of the largest cosine.
    beta : float, optional
        The nudge, where it is not to be chosen.
    method : {"two_phase", "centred"}
    points, pattern, nudge
        As for `centred`.
    frequency : float, optional
        At which the oscillators run, in hertz; without it no time is stated.
    settling_cycles, reading_cycles : float
        How many cycles a state takes to settle, and a reading of it to be taken.
    joules_per_cycle : float
        What one oscillator takes per cycle.

    See Also
    --------
    Readout : A phase meter: noise, averaging, bits.
    suggest_beta : The nudge for a given error.
    gradient_from_phases : A gradient from measured phases.

    Examples
    --------
    A picosecond at 3 GHz, one reading of each state:

    >>> import phasegrad as pg
    >>> network = pg.networks.random_network(10, seed=0)
    >>> question = (network, pg.find_equilibrium(network), pg.PhaseTargets(), [-0.2, 0.2])
    >>> readout = pg.measurement.Readout.from_time(1e-12, 3e9)
    >>> plan = pg.measurement.plan_measurement(*question, readout, nudge="held", frequency=3e9)
    >>> plan.readings, plan.cosine > 0.99, f"{plan.seconds:.3g} s"
    (1, True, '5.1e-08 s')
    """
    owner = "plan_measurement"
    checked_meter(readout, owner)
    wanted = None if cosine is None else float_between("cosine", cosine, -1, 1, owner)
    choice("method", method, [each.name for each in METHODS.values() if each.readable], owner)
    choice("nudge", nudge, NUDGES, owner)
    settling_cycles, reading_cycles = (
        float_between(name, value, 0, math.inf, owner)
        for name, value in (("settling_cycles", settling_cycles), ("reading_cycles", reading_cycles))
    )
    joules_per_cycle = float_between("joules_per_cycle", joules_per_cycle, 0, math.inf, owner)
    frequency = None if frequency is None else positive_float("frequency", frequency, owner)
    record, given = METHODS[method], {"points": points, "pattern": pattern}
    assert record.scheme is not None  # every method that a meter can read nudges
    scheme = record.scheme(**{name: value for name, value in given.items() if name in record.options})
    problem = pose(owner, network, equilibrium, objective, target, wrt, frequencies)
    if beta is None:
        outlook = best_outlook(problem, scheme, nudge, readout, wanted)
    else:
        outlook = given_outlook(problem, scheme, nudge, positive_float("beta", beta, owner))
    readings = readout.readings if wanted is None else outlook.readings(readout, wanted)
    states = len(scheme.strengths) + (nudge != "following" and not scheme.free)
    cycles = None if readings is None else states * (settling_cycles + readings * reading_cycles)
    return Measurement(
        beta=outlook.beta,
        readings=readings,
        cosine=outlook.cosine(readout.variance(math.inf if readings is None else readings)),
        states=states,
        seconds=None if cycles is None or frequency is None else cycles / frequency,
        joules=None if cycles is None else cycles * network.size * joules_per_cycle,
        assumptions=_assumptions(network, settling_cycles, reading_cycles, joules_per_cycle, frequency),
        remarks=_remarks(readout, readings),
    )


def _assumptions(
    network: Network, settling: float, reading: float, joules: float, frequency: float | None
) -> tuple[str, ...]:
    pace = "" if frequency is None else f" at {_with_unit(frequency, 'Hz')}"
    return (
        f"Assumed: a state settles in {settling:g} cycles and a reading takes {reading:g}{pace}, all "
        f"{network.size} oscillators read at once.",
        f"Assumed: an oscillator takes {_with_unit(joules, 'J')} per cycle; converters and digital arithmetic are "
        "left out.",
    )


def _remarks(readout: Readout, readings: int | None) -> tuple[str, ...]:
    """Say where averaging cannot help, levels that too little noise smears out, and where the theory ends."""
    left = math.sqrt(readout.variance(math.inf if readings is None else readings))
    if left > _LARGE:
        return (f"An error of {left:.2g} rad reaches around the circle: expect less than this cosine.",)
    if readout.step and readout.noise < _HALF_LEVEL * readout.step and (readings is None or readings > 1):
        return (
            f"The meter's noise of {readout.noise:.3g} rad is less than half of its level of {readout.step:.3g} rad: "
            f"averaging leaves {readout.bias:.2g} rad of rounding. Dither, noise added on purpose, of "
            f"{_HALF_LEVEL * readout.step:.3g} rad or more lets averages resolve less than a level.",
        )
    return ()


def _with_unit(value: float, unit: str) -> str:
    """Return a quantity with the prefix that leaves one to three digits before the point."""
    for power, prefix in _PREFIXES.items():
        if abs(value) >= 10.0**power:
            return f"{value / 10.0**power:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"
