"""Section 7.3: phases read by a time-to-digital converter, and which nudge survives it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from phasegrad._validation import FloatArray
from phasegrad.equilibria import find_equilibrium
from phasegrad.gradients import Gradient, GradientWarning, adjoint, centred, cosine, two_phase
from phasegrad.measurement import Readout, plan_measurement
from phasegrad.networks import random_network
from phasegrad.objectives import PhaseTargets
from phasegrad_paper.studies.agreement import TARGET, Question
from phasegrad_paper.studies.measures import Measure, Quantity, Results, Unit
from phasegrad_paper.studies.piece import Piece
from phasegrad_paper.studies.rules import all_of, at_least, at_most
from phasegrad_paper.studies.study import Claim, Figure, Study, Table, check

SIZE, SEEDS, DRAWS = 10, 20, 10
SECONDS, FREQUENCY, PAPER_BETA = 1e-12, 3e9, 0.1
READINGS = (1, 100, 10_000)
MAP_SEEDS, MAP_DRAWS = 8, 200
NOISES, BETAS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1), (0.003, 0.03, 0.3, 3.0, 30.0)
BITS, BITS_SEEDS, BITS_DRAWS, BITS_COSINE = 4, 3, 200, 0.9
_METHODS: dict[str, Callable[..., Gradient]] = {"two_phase": two_phase, "centred": centred}
# What is compared: the paper's nudge, and ours with the error as it is read or as a circuit holds it.
_WAYS: dict[str, dict[str, Any]] = {
    "paper": {"method": "two_phase", "nudge": "following", "beta": PAPER_BETA},
    "frozen": {"method": "centred", "nudge": "frozen", "beta": None},
    "held": {"method": "centred", "nudge": "held", "beta": None},
}
_WORDS = {
    "paper": f"one-sided, following, beta = {PAPER_BETA:g} (the paper's)",
    "frozen": "centred, frozen error as it was read, suggested beta",
    "held": "centred, frozen error as a circuit holds it, suggested beta",
}


def nudges(seeds: int) -> dict[str, Any]:
    """Return mean cosines with the exact gradient by omega, per network: by nudge, frequencies and readings.

    `random_network(10)`, targets -0.2 and +0.2, readings off by 1 ps at 3 GHz; 10 gradients of each network. The nudge
    is the one suggested for one reading.
    """
    meter = Readout.from_time(SECONDS, FREQUENCY)
    found: dict[str, Any] = {way: {"beta": [], "relative": {}, "raw": {}} for way in _WAYS}
    for seed in range(seeds):
        question = _question(seed)
        for way, options in _WAYS.items():
            method, nudge, beta = options["method"], options["nudge"], options["beta"]
            beta = beta or plan_measurement(*question, meter, method=method, nudge=nudge).beta
            found[way]["beta"].append(beta)
            for frequencies in ("relative", "raw"):
                for readings in READINGS if frequencies == "relative" else READINGS[:1]:
                    read = Readout(meter.noise, readings=readings)
                    options = {"beta": beta, "nudge": nudge, "readout": read, "frequencies": frequencies}
                    values, _ = _read(question, method, DRAWS, seed, options)
                    found[way][frequencies].setdefault(str(readings), []).append(float(np.mean(values)))
    return found


def cosine_map(seeds: int) -> dict[str, Any]:
    """Return the mean cosine over noise and nudge, measured and predicted: centred, the error frozen as it was read.

    200 gradients of each network, one reading of each state. A nudge that a network cannot hold is halved, and the
    prediction is that of the nudge used.
    """
    measured, predicted = np.zeros((2, len(NOISES), len(BETAS)))
    halved = 0
    for seed in range(seeds):
        question = _question(seed)
        for row, noise in enumerate(NOISES):
            for column, beta in enumerate(BETAS):
                meter = Readout(noise)
                stream = seed * len(NOISES) * len(BETAS) + row * len(BETAS) + column
                options = {"beta": beta, "nudge": "frozen", "readout": meter}
                values, used = _read(question, "centred", MAP_DRAWS, stream, options)
                measured[row, column] += np.mean(values) / seeds
                predicted[row, column] += plan_measurement(*question, meter, beta=used).cosine / seeds
                halved += used < beta
    return {
        "noises": list(NOISES), "betas": list(BETAS), "measured": measured.tolist(), "predicted": predicted.tolist(),
        "halved": halved, "of": seeds * len(NOISES) * len(BETAS),
    }  # fmt: skip


def bits(seeds: int) -> list[dict[str, Any]]:
    """Return how many readings of a 4-bit meter cosine 0.9 takes, as it was planned and by bisection.

    The meter's own noise is half a level; the error is frozen as it was read.
    """
    meter = Readout(math.pi / 2**BITS, bits=BITS)
    rows = []
    for seed in range(seeds):
        question = _question(seed)
        plan = plan_measurement(*question, meter, cosine=BITS_COSINE)
        assert plan.readings is not None

        def reached(readings: int, question: Question = question, beta: float = plan.beta, seed: int = seed) -> float:
            read = Readout(meter.noise, readings=readings, bits=BITS)
            options = {"beta": beta, "nudge": "frozen", "readout": read}
            return float(np.mean(_read(question, "centred", BITS_DRAWS, seed, options)[0]))

        low, high = 0, 4 * plan.readings
        while high - low > max(1, high // 16):
            middle = (low + high) // 2
            low, high = (middle, high) if reached(middle) < BITS_COSINE else (low, middle)
        rows.append({"seed": seed, "beta": plan.beta, "planned": plan.readings, "needed": high})
    return rows


def _question(seed: int) -> Question:
    network = random_network(SIZE, seed=seed)
    return network, find_equilibrium(network), PhaseTargets(), TARGET


def _read(question: Question, method: str, draws: int, seed: int, options: dict[str, Any]) -> tuple[FloatArray, float]:
    """Return the cosines of so many gradients as they are read with the exact one, and the nudge that was used."""
    network, equilibrium, objective, target = question
    exact = adjoint(*question, frequencies=options.get("frequencies", "relative")).omega
    with warnings.catch_warnings():
        # That a meter is louder than a gradient is what is measured here.
        warnings.simplefilter("ignore", GradientWarning)
        read = _METHODS[method](network, equilibrium, objective, np.tile(target, (draws, 1)), seed=seed, **options)
    assert read.beta is not None
    return np.array([cosine(each, exact) for each in read.omega]), read.beta


def _plan(seeds: int | None) -> dict[str, Piece]:
    def most(count: int) -> dict[str, int]:
        return {"seeds": min(seeds or count, count)}

    return {
        "nudges": Piece("a meter of 1 ps, 20 networks", nudges, most(SEEDS), 2.0),
        "map": Piece("cosine over noise and nudge", cosine_map, most(MAP_SEEDS), 2.0),
        "bits": Piece("readings of a 4-bit meter", bits, most(BITS_SEEDS), 1.0),
    }


def _mean(way: str, words: str, frequencies: str = "relative", readings: int = 1) -> Quantity:
    return Quantity.mean(words, lambda results: results["nudges"][way][frequencies][str(readings)], Unit.DIGITS)


def _distance(results: Results) -> Measure:
    """Return the largest distance; of fewer networks it is not smaller, since the mean of few draws is off by more."""
    found = results["map"]
    far = np.abs(np.subtract(found["measured"], found["predicted"]))
    return Measure(float(np.max(far)), far.size)


def _factor(results: Results) -> Measure:
    ratios = [row["needed"] / row["planned"] for row in results["bits"]]
    return Measure.largest([max(ratio, 1 / ratio) for ratio in ratios])


_HELD = _mean("held", "mean cosine of one reading under the suggested nudge, its error held by a circuit")
_HELD_RAW = _mean(
    "held", "mean cosine by raw frequencies of one reading under the suggested nudge, its error held", "raw"
)
_FROZEN = _mean("frozen", "mean cosine of one reading under the suggested nudge, its error as it was read")
_FROZEN_MANY = _mean(
    "frozen", "mean cosine of a hundred readings under the suggested nudge, its error as it was read", readings=100
)
_PAPER = _mean("paper", "mean cosine of one reading under the paper's nudge")
_PAPER_MANY = _mean("paper", "mean cosine of ten thousand readings under the paper's nudge", readings=10_000)
_MAP = Quantity("largest distance of predicted and measured mean cosine on the map", _distance)
_BITS = Quantity("largest factor between planned and needed readings of a 4-bit meter", _factor)


def _tables(results: Results) -> list[Table]:
    found, cells = results["nudges"], results["map"]
    columns = ("nudge", "mean beta", *(f"cosine, {readings} readings" for readings in READINGS), "raw, 1 reading")
    rows = [
        [words, float(np.mean(found[way]["beta"])), *(float(np.mean(found[way]["relative"][str(r)])) for r in READINGS),
         float(np.mean(found[way]["raw"]["1"]))]
        for way, words in _WORDS.items()
    ]  # fmt: skip
    measured = [
        [noise, *(f"{value:.3f} ({expected:.3f})" for value, expected in zip(*both, strict=True))]
        for noise, both in zip(cells["noises"], zip(cells["measured"], cells["predicted"], strict=True), strict=True)
    ]
    title = f"Mean cosine with the exact gradient by omega, N = {SIZE}, 1 ps at 3 GHz (0.0188 rad)"
    return [
        Table("readout-nudges", title, columns, rows),
        Table(
            "readout-map", "Mean cosine over noise and nudge, measured (predicted), one reading of each state",
            ("noise, rad", *(f"beta {beta:g}" for beta in cells["betas"])), measured,
            note=f"The nudge was halved in {cells['halved']} of {cells['of']} cells of single networks.",
        ),
        Table(
            "readout-bits", f"Readings of a {BITS}-bit meter with noise of half a level for cosine {BITS_COSINE:g}",
            ("network", "beta", "planned", "needed"),
            [[row["seed"], row["beta"], row["planned"], row["needed"]] for row in results["bits"]],
        ),
    ]  # fmt: skip


STUDY = Study(
    name="readout",
    title="Reading phases with a meter",
    question="Does the gradient survive a time-to-digital converter?",
    protocol="Random networks of 10 oscillators, two outputs with targets -0.2 and +0.2, gradient by omega. Readings "
    "off by 1 ps at 3 GHz on 20 networks; noise from 1e-5 to 0.1 rad times nudges from 0.003 to 30 on 8 of them; a "
    "4-bit meter with noise of half a level on 3.",
    claims=(
        Claim(
            "readout-conversion", "Section 7.3", "proposed",
            "Phases read by time-to-digital conversion give the gradient.",
            at_least(_HELD, 0.99), control=at_most(_PAPER, 0.5), beside=(_HELD_RAW,),
            controls=(_PAPER_MANY, _FROZEN, _FROZEN_MANY),
        ),
    ),
    checks=(
        check(
            "readout-suggested", "One reading of each state gives the gradient under the suggested nudge.",
            all_of(at_least(_HELD, 0.99), at_least(_HELD_RAW, 0.997)),
        ),
        check(
            "readout-frozen", "Where the error that is frozen was itself read, averaging brings the gradient back.",
            at_least(_FROZEN_MANY, 0.99),
        ),
        check("readout-map", "Predicted cosines are the measured ones.", at_most(_MAP, 0.05)),
        check("readout-bits", "Planned readings are those that it takes.", at_most(_BITS, 2.0)),
    ),
    plan=_plan,
    tables=_tables,
    figures=lambda results: [
        Figure(
            "readout-map",
            "Mean cosine of a gradient read once with a noisy meter, the error of a centred nudge frozen as it was "
            "read: a stronger nudge is worth as much as less noise, until the noise of the frozen error itself shows.",
            "Two maps of cosines over noise and nudge strength, measured and predicted, which look alike.",
            results["map"],
        ),
    ],
    remarks=(
        "An error that is frozen as it was read has the noise of the meter, which bounds the cosine of single readings "
        "whatever the nudge. A circuit that holds the error (sample and hold) has no such bound.",
    ),
)  # fmt: skip
