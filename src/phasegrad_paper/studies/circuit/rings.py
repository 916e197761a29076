"""Rings of inverters: their interaction, measured, and what its even part does to the gradient that a nudge shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import root

from phasegrad._validation import FloatArray
from phasegrad.circuits import MeasuredInteraction, Rings, fit_interaction, ngspice_version
from phasegrad.gradients import cosine

#: A coupling in ohm, and the detunings of pairs: nine tenths of the locking range.
RESISTANCE, DETUNING, PAIRS = 50e3, 0.021, 20
_HARMONICS = 3
_PAIR_CYCLES = 250
# Networks of rings: how far they are detuned, coupled, nudged, and by how much turned for differences.
_RINGS, _DETUNED, _CYCLES, _NUDGE, _STEP = 5, 0.006, 250, 1e6, 2e-4
_EDGES = ((0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (1, 3))
_OUTPUTS = (0, 3)


def pairs(resistance: float = RESISTANCE) -> dict[str, Any]:
    """Lock two rings at many detunings, fit H to every other pair, and predict the phases of the others."""
    rings = Rings()
    alone = rings.run([0.0]).frequency
    detunings = np.linspace(-DETUNING, DETUNING, PAIRS)
    readings = [rings.run([0.0, each], [(0, 1)], [resistance], cycles=_PAIR_CYCLES) for each in detunings]
    phases = _wrapped(np.array([each.phases[1] for each in readings]))
    ratios = np.array([each.frequency / alone for each in readings])
    fitted = fit_interaction(detunings[::2], phases[::2], ratios[::2], harmonics=_HARMONICS)
    predicted = np.array([fitted.locked_phase(each) for each in detunings])
    return {
        "detunings": detunings.tolist(),
        "phases": phases.tolist(),
        "frequencies": ratios.tolist(),
        "predicted": predicted.tolist(),
        "locked": [each.locked for each in readings],
        "sines": list(fitted.sines),
        "cosines": list(fitted.cosines),
        "evenness": fitted.evenness,
        "error": float(np.max(np.abs(predicted - phases)[1::2])),
        "resistance": resistance,
        "frequency": alone,
        "ngspice": ngspice_version(),
        "netlist": rings.netlist([0.0, DETUNING], [(0, 1)], [resistance], cycles=_PAIR_CYCLES).text,
    }


def rings(seeds: int) -> dict[str, Any]:
    """Measure the interaction of two rings, and the gradients of so many networks of rings."""
    found = pairs()
    measured = MeasuredInteraction(tuple(found["sines"]), tuple(found["cosines"]))
    return {**found, "gradients": [gradient(seed, measured) for seed in range(seeds)]}


def gradient(seed: int, measured: MeasuredInteraction, resistance: float = RESISTANCE) -> dict[str, float]:
    """Hold the gradient that one more resistor shows in a network of rings against differences in the same circuit.

    The cost is 1 - cos of the difference of two rings, and the gradient is by all detunings, less its mean.
    """
    stream = np.random.default_rng(seed)
    detunings = stream.uniform(-_DETUNED, _DETUNED, _RINGS)
    ohms = resistance * stream.uniform(0.7, 1.5, len(_EDGES))
    rings = Rings()

    def phases(turned: FloatArray, *, nudged: bool = False) -> FloatArray:
        edges, values = list(_EDGES), ohms.tolist()
        if nudged:
            edges, values = [*edges, _OUTPUTS], [*values, _NUDGE]
        return rings.run(turned, edges, values, cycles=_CYCLES).phases

    shift = _wrapped(phases(detunings, nudged=True) - phases(detunings))
    turns = _STEP * np.eye(_RINGS)
    ends = [[_cost(phases(detunings + sign * turn)) for sign in (1, -1)] for turn in turns]
    slope = np.array([(up - down) / (2 * _STEP) for up, down in ends])
    odd = MeasuredInteraction(measured.sines, (0.0,) * len(measured.cosines))
    strengths = resistance / ohms
    return {
        "cosine": cosine(_centred(-shift), _centred(slope)),
        "model": _model_cosine(measured, detunings, strengths),
        "odd_model": _model_cosine(odd, detunings, strengths),
    }


def _cost(phases: FloatArray) -> float:
    return float(1 - np.cos(phases[_OUTPUTS[0]] - phases[_OUTPUTS[1]]))


def _model_cosine(interaction: MeasuredInteraction, detunings: FloatArray, strengths: FloatArray) -> float:
    """Return the cosine of the nudged and the exact gradient in the phase model with a measured interaction.

    Unknown are all phases but the first and the common frequency; the nudge is a weak coupling of the outputs.
    """
    first, second = np.array(_EDGES).T
    size = detunings.size

    def pull(unknown: FloatArray) -> FloatArray:
        phases = np.append(0.0, unknown[1:])
        across = phases[second] - phases[first]
        total = detunings - unknown[0]
        total = total + np.bincount(first, strengths * interaction.value(across), minlength=size)
        return np.asarray(total + np.bincount(second, strengths * interaction.value(-across), minlength=size))

    found = root(pull, np.zeros(size), tol=1e-13)
    phases = np.append(0.0, found.x[1:])
    across = phases[second] - phases[first]
    ahead, behind = strengths * interaction.derivative(across), strengths * interaction.derivative(-across)
    jacobian = np.zeros((size, size))
    np.add.at(jacobian, (first, second), ahead)
    np.add.at(jacobian, (second, first), behind)
    jacobian -= np.diag(jacobian.sum(axis=1))
    bordered = np.column_stack([-np.ones(size), jacobian[:, 1:]])
    one, other = _OUTPUTS
    apart = phases[one] - phases[other]
    nudge, slope = np.zeros(size), np.zeros(size)
    nudge[[one, other]] = interaction.value(np.array([-apart, apart]))
    slope[[one, other]] = np.sin(apart) * np.array([1.0, -1.0])
    shift = np.append(0.0, -np.linalg.solve(bordered, nudge)[1:])
    exact = -np.linalg.solve(bordered.T, np.append(0.0, slope[1:]))
    return cosine(_centred(-shift), _centred(exact))


def _centred(values: FloatArray) -> FloatArray:
    return np.asarray(values - values.mean())


def _wrapped(angles: FloatArray) -> FloatArray:
    return np.asarray(np.mod(angles + np.pi, 2 * np.pi) - np.pi)
