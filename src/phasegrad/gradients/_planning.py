r"""Which nudge, and how many readings: bias against variance.

A stronger nudge moves phases farther above the noise of a meter and bends the response more. The expected cosine of the
measured gradient with the exact one weighs both: its mean is that of the nudged equilibria themselves, at a handful of
strengths, and its covariance follows from the meter (`phasegrad.gradients._noise`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import FloatArray, choice, counted, float_between, positive_float
from phasegrad.equilibria import Equilibrium
from phasegrad.gradients._bending import beta_for
from phasegrad.gradients._exact import exact_slopes
from phasegrad.gradients._measured import combined
from phasegrad.gradients._noise import expected_cosine, factors, joined
from phasegrad.gradients._pulled import NUDGES, Pulling, pulled
from phasegrad.gradients._question import Question, ask
from phasegrad.gradients._schemes import COMPLEX_STEP, ONE_SIDED, Scheme, symmetric
from phasegrad.networks import Network
from phasegrad.objectives import Cost
from phasegrad.readouts import Readout

_ORDER = {"two_phase": ONE_SIDED.order, "centred": 2, "holomorphic": COMPLEX_STEP.order}
#: Methods that a meter can take part in, by name.
READ = ("two_phase", "centred")
# Doublings of the nudge, and how often the step between the strengths that are tried is halved after that.
_DOUBLINGS, _REFINEMENTS = 40, 2
# Readings beyond which nobody waits.
_MOST_READINGS = 10**12
# Radians of error from where on readings reach around the circle.
_LARGE = 0.4
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
    >>> network = pg.random_network(10, seed=0)
    >>> question = (network, pg.find_equilibrium(network), pg.PhaseTargets(), [-0.2, 0.2])
    >>> plan = pg.plan_measurement(*question, pg.Readout(noise=0.01), nudge="held")
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


@dataclass(frozen=True)
class Outlook:
    """What a gradient would be under one nudge: its mean (B, P), and what noise changes; see `factors`."""

    beta: float
    exact: FloatArray
    mean: FloatArray
    first: FloatArray
    second: FloatArray

    def cosine(self, variance: float) -> float:
        """Return the cosine expected with the exact gradient, in the mean over samples."""
        factor = np.concatenate([math.sqrt(variance) * self.first, variance * self.second], axis=2)
        return float(np.mean([expected_cosine(*each) for each in zip(self.mean, self.exact, factor, strict=True)]))

    def readings(self, readout: Readout, cosine: float) -> int | None:
        """Return how many readings of each state give this cosine, None where no number does."""
        if self.cosine(readout.variance(_MOST_READINGS)) < cosine:
            return None
        low, high = 0, 1
        while self.cosine(readout.variance(high)) < cosine:
            low, high = high, 2 * high
        while high - low > max(1, high // 100):
            middle = (low + high) // 2
            low, high = (middle, high) if self.cosine(readout.variance(middle)) < cosine else (low, middle)
        return high


def suggest_beta(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *, error: float = 1e-3,
    method: str = "two_phase", readout: Readout | None = None, nudge: str = "following",
    wrt: str | Iterable[str] = "omega", frequencies: str = "relative",
) -> float:  # fmt: skip
    """Return the nudge whose gradient is expected to be within a relative ``error`` of the exact one.

    The equilibrium under a nudge is theta + beta a + beta^2 b + ...; a and b follow from two solves with the
    Laplacian. The rate r = max(|b| / |a|, largest compliance of the outputs) is how much beta bends the response, so
    that the error of a method of order m is about (beta r)^m. Of a batch, the most sensitive sample decides.

    With a readout it is the nudge whose gradient, as that meter reads it, is expected to have the largest cosine with
    the exact one; see `plan_measurement`.

    Parameters
    ----------
    network, equilibrium, objective, target
        As for `adjoint`.
    error : float
        Relative error that is allowed, where there is no readout.
    method : {"two_phase", "centred", "holomorphic"}
        Whose error is meant; "holomorphic" is the single complex step, which no meter takes.
    readout : Readout, optional
        The meter.
    nudge, wrt, frequencies
        As for `centred`; they matter with a readout.

    See Also
    --------
    two_phase : One nudged equilibrium; error of order beta.
    centred : Nudges of +beta and -beta; error of order beta squared.
    plan_measurement : Which nudge and how many readings.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.layered(2, 5, 2, seed=0)
    >>> question = (network, pg.find_equilibrium(network, [0.8, -0.6]), pg.PhaseTargets(), [-0.2, 0.2])
    >>> print(f"{pg.suggest_beta(*question):.1e}, {pg.suggest_beta(*question, method='centred'):.1e}")
    3.4e-03, 1.1e-01
    """
    owner = "suggest_beta"
    error = positive_float("error", error, owner)
    choice("method", method, _ORDER if readout is None else READ, owner)
    choice("nudge", nudge, NUDGES, owner)
    question = ask(owner, network, equilibrium, objective, target, wrt, frequencies)
    if readout is None:
        return beta_for(question, error, _ORDER[method])
    return best_outlook(question, scheme_of(method, 2, "fit", owner), nudge, checked_readout(readout, owner)).beta


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
    Measurement : The advice of plan_measurement.
    Readout : A phase meter: noise, averaging, bits.
    suggest_beta : The nudge for a given error.
    gradient_from_phases : A gradient from measured phases.

    Examples
    --------
    A picosecond at 3 GHz, one reading of each state:

    >>> import phasegrad as pg
    >>> network = pg.random_network(10, seed=0)
    >>> question = (network, pg.find_equilibrium(network), pg.PhaseTargets(), [-0.2, 0.2])
    >>> plan = pg.plan_measurement(*question, pg.Readout.from_time(1e-12, 3e9), nudge="held", frequency=3e9)
    >>> plan.readings, plan.cosine > 0.99, f"{plan.seconds:.3g} s"
    (1, True, '5.1e-08 s')
    """
    owner = "plan_measurement"
    readout = checked_readout(readout, owner)
    wanted = None if cosine is None else float_between("cosine", cosine, -1, 1, owner)
    choice("method", method, READ, owner)
    choice("nudge", nudge, NUDGES, owner)
    settling_cycles, reading_cycles = (
        float_between(name, value, 0, math.inf, owner)
        for name, value in (("settling_cycles", settling_cycles), ("reading_cycles", reading_cycles))
    )
    joules_per_cycle = float_between("joules_per_cycle", joules_per_cycle, 0, math.inf, owner)
    frequency = None if frequency is None else positive_float("frequency", frequency, owner)
    scheme = scheme_of(method, points, pattern, owner)
    question = ask(owner, network, equilibrium, objective, target, wrt, frequencies)
    if beta is None:
        outlook = best_outlook(question, scheme, nudge, readout, wanted)
    else:
        outlook = _given_outlook(question, scheme, nudge, positive_float("beta", beta, owner))
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


def scheme_of(method: str, points: int, pattern: str, owner: str) -> Scheme:
    """Return the scheme of a method that a meter can take part in."""
    return ONE_SIDED if method == "two_phase" else symmetric(points, pattern, owner)


def checked_readout(readout: Any, owner: str) -> Readout:
    """Return a readout that is one."""
    if not isinstance(readout, Readout):
        kind = "the class: call it" if isinstance(readout, type) else type(readout).__name__
        raise TypeError(f"The 'readout' parameter of {owner} must be a Readout, such as Readout(0.01). Got {kind}.")
    return readout


def best_outlook(
    question: Question, scheme: Scheme, nudge: str, readout: Readout, cosine: float | None = None
) -> Outlook:
    """Return the nudge with the largest expected cosine, or with the fewest readings for a cosine that is asked for."""
    if cosine is None or nudge != "frozen":
        return _best(question, scheme, nudge, readout, readout.deviation, cosine)
    # How far the error that is frozen may be off depends on how often it is read.
    first = _best(question, scheme, nudge, readout, 0.0, cosine)
    readings = first.readings(readout, cosine)
    if readings is None:
        return first
    return _best(question, scheme, nudge, readout, math.sqrt(readout.variance(readings)), cosine)


def _best(
    question: Question, scheme: Scheme, nudge: str, readout: Readout, deviation: float, cosine: float | None
) -> Outlook:
    """Return the same among nudges that the network holds where the error of a frozen one has this deviation."""
    part, exact = _measurable(question)
    pulling = Pulling.of(part, nudge, part.phases)
    widened = pulling.widened(part, deviation) if nudge == "frozen" else None

    def at(beta: float) -> Outlook | None:
        if widened and np.any(pulled(part, scheme, beta, widened).lost(part)):
            return None
        return _outlook(part, exact, scheme, nudge, beta)

    def merit(outlook: Outlook) -> tuple[float, float]:
        if cosine is None:
            return 0.0, outlook.cosine(readout.variance(readout.readings))
        readings = outlook.readings(readout, cosine)
        return -math.inf if readings is None else -readings, outlook.cosine(readout.variance(_MOST_READINGS))

    beta, best = beta_for(part, 1e-3, scheme.order), None
    for _ in range(_DOUBLINGS):
        found = at(beta)
        if found is None and best is not None:
            break
        if found is not None and (best is None or merit(found) > merit(best)):
            best = found
        # Without noise it can only be better than with it: stronger nudges, which bend more, are not.
        if best is not None and found is not None and found.cosine(0.0) < _least(best, readout, cosine):
            break
        beta = beta / 2 if best is None else 2 * beta
    if best is None:
        raise ValueError(f"{question.owner} found no nudge, however weak, under which all samples stay locked.")
    factor = 2.0
    for _ in range(_REFINEMENTS):
        factor = math.sqrt(factor)
        near = [found for beta in (best.beta / factor, best.beta * factor) if (found := at(beta)) is not None]
        best = max([best, *near], key=merit)
    return best


def _given_outlook(question: Question, scheme: Scheme, nudge: str, beta: float) -> Outlook:
    part, exact = _measurable(question)
    outlook = _outlook(part, exact, scheme, nudge, beta)
    if outlook is None:
        raise ValueError(
            f"The 'beta' parameter of {question.owner} is more than the network can hold: under {beta:g} a sample "
            "leaves the locked state. Give a weaker one, or leave it out to have it chosen."
        )
    return outlook


def _outlook(part: Question, exact: FloatArray, scheme: Scheme, nudge: str, beta: float) -> Outlook | None:
    """Return what to expect under one nudge, None where a sample leaves the locked state."""
    states = pulled(part, scheme, beta, Pulling.of(part, nudge, part.phases))
    if np.any(states.lost(part)):
        return None
    terms = list(zip(states.weights, states.phases(part.phases), strict=True))
    mean = joined(part, combined(part.network, part.system, part.wrt, part.phases, terms))
    return Outlook(beta, exact, mean, *factors(part, states, frozen=nudge == "frozen"))


def _least(best: Outlook, readout: Readout, cosine: float | None) -> float:
    """Return the cosine that a nudge must have without noise to be better than the best so far."""
    reached = best.cosine(readout.variance(readout.readings if cosine is None else _MOST_READINGS))
    return reached if cosine is None else min(cosine, reached)


def _measurable(question: Question) -> tuple[Question, FloatArray]:
    """Return the samples that have an equilibrium and a gradient, and the exact one, (B, P)."""
    part = question.take(question.solvable)
    exact = exact_slopes(part)
    values, errors = joined(part, dict(exact.values)), np.concatenate([exact.errors[name] for name in part.wrt], axis=1)
    rows = np.flatnonzero(exact.regular & (np.max(np.abs(values) - errors, axis=1, initial=0.0) > 0))
    if not rows.size:
        raise ValueError(
            f"{question.owner} has nothing to measure: no sample has an equilibrium at which the gradient differs from "
            "zero. Give targets other than the phases that the outputs have."
        )
    return part.take(rows), values[rows]


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
    for power, prefix in (
        (9, "G"),
        (6, "M"),
        (3, "k"),
        (0, ""),
        (-3, "m"),
        (-6, "u"),
        (-9, "n"),
        (-12, "p"),
        (-15, "f"),
    ):
        if abs(value) >= 10.0**power:
            return f"{value / 10.0**power:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"
