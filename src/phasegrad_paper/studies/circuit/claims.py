"""The study of circuits: section 7.3 of the paper, simulated by ngspice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from phasegrad_paper.studies.circuit import rings, work
from phasegrad_paper.studies.measures import Quantity, Results, Unit
from phasegrad_paper.studies.piece import Piece
from phasegrad_paper.studies.rules import all_of, at_least, at_most, below, every
from phasegrad_paper.studies.study import Claim, Study, Table, check

SEEDS, LEARNERS = 5, 3
EPS = (0.02, 0.01, 0.005)
#: That the figures are asked for at.
AT = 0.01
UPDATES = 30
KINDS = {"as built": work.NARROW, "wide": work.WIDE}
_ERROR, _BY_FREQUENCIES, _BY_COUPLINGS, _IN_RINGS, _CONSTANTS, _FOLD = 0.05, 0.999, 0.99, 0.05, 5.0, 10.0
_GOOD_IN_RINGS = 0.999
_RINGS = "rings"


def _plan(seeds: int | None) -> dict[str, Piece]:
    count, pieces = min(seeds or SEEDS, SEEDS), {}
    for kind, spread in KINDS.items():
        for seed in range(count):
            options = {"seed": seed, "spread": spread}
            for eps in EPS:
                title = f"circuit, phases, {kind}, eps {eps:g}, seed {seed}"
                pieces[f"phases {kind} {eps:g} {seed}"] = Piece(title, work.phases, {"eps": eps, **options}, 2.0)
            for name, function in (("gradients", work.gradients), ("settling", work.settling)):
                title = f"circuit, {name}, {kind}, seed {seed}"
                pieces[f"{name} {kind} {seed}"] = Piece(title, function, {"eps": AT, **options}, 4.0)
    for seed in range(min(count, LEARNERS)):
        options = {"seed": seed, "updates": UPDATES}
        pieces[f"learning {seed}"] = Piece(f"circuit, learning, seed {seed}", work.learning, options, 60.0)
    pieces[_RINGS] = Piece("circuit, rings", rings.rings, {"seeds": min(count, LEARNERS)}, 60.0)
    return pieces


def _all(results: Results, start: str, seeds: int = SEEDS) -> list[Any]:
    names = (f"{start} {seed}" for seed in range(seeds))
    return [results[name] for name in names if name in results]


def _phases(results: Results, kind: str, eps: float, figure: str) -> list[float]:
    return [each[figure] for each in _all(results, f"phases {kind} {eps:g}")]


def _cosines(results: Results, kind: str, way: str, parameter: str) -> list[float]:
    return [each[way][parameter] for each in _all(results, f"gradients {kind}")]


def _constants(results: Results, kind: str) -> list[float]:
    """Return after how many time constants of the slowest mode each gradient is good; infinite where it never is."""
    runs = _all(results, f"settling {kind}")
    return [np.inf if each["good_after"] is None else each["good_after"] / each["time_constant"] for each in runs]


def _falls(results: Results) -> list[float]:
    return [each["costs"][0] / each["costs"][-1] for each in _all(results, "learning", LEARNERS)]


def _of_rings(results: Results, figure: Callable[[Any], Any]) -> list[float]:
    return list(np.atleast_1d(figure(results[_RINGS]))) if _RINGS in results else []


def _ring_cosines(results: Results, figure: str = "cosine") -> list[float]:
    return _of_rings(results, lambda found: [each[figure] for each in found["gradients"]])


def _falling(results: Results) -> list[bool]:
    """Return for every network whether its phase error falls with eps, step by step."""
    columns = [_phases(results, kind, eps, "error") for kind in KINDS for eps in EPS]
    if not all(columns):
        return []
    curves = np.array(columns).reshape(len(KINDS), len(EPS), -1)
    return list(np.all(np.diff(curves, axis=1) < 0, axis=1).ravel())


def _largest_error(kind: str, figure: str = "error") -> Quantity:
    words = "after the first-order correction of averaging" if figure == "corrected" else "against the phase model"
    return Quantity.largest(
        f"largest phase error in radians, {words} (2+5+2 {kind}, eps {AT:g})",
        lambda results: _phases(results, kind, AT, figure),
    )


def _least_cosine(kind: str, way: str, parameter: str) -> Quantity:
    word = {"omega": "frequencies", "coupling": "couplings"}[parameter]
    nudge = {"bridge": "one more resistor", "torques": "shifted frequencies"}[way]
    return Quantity.smallest(
        f"least cosine of the gradient by {word}, nudged by {nudge} (2+5+2 {kind})",
        lambda results: _cosines(results, kind, way, parameter), Unit.DIGITS,
    )  # fmt: skip


def _until_good(kind: str) -> Quantity:
    words = f"largest number of time constants of the slowest mode until the cosine stays {work.GOOD} (2+5+2 {kind})"
    return Quantity.largest(words, lambda results: _constants(results, kind), Unit.NUMBER)


_LEAST_IN_RINGS = Quantity.smallest("least cosine of the gradient in networks of rings", _ring_cosines, Unit.DIGITS)
_CLAIMS = (
    Claim(
        "circuit-mapping", "Section 7.3", "proposed",
        "Frequencies, couplings, nudges and readout of a network map onto components of a circuit of oscillators.",
        all_of(
            at_most(_largest_error("as built"), _ERROR),
            at_least(_least_cosine("as built", "bridge", "omega"), _BY_FREQUENCIES),
            at_least(_least_cosine("as built", "bridge", "coupling"), _BY_COUPLINGS),
            at_least(_least_cosine("as built", "torques", "omega"), _BY_FREQUENCIES),
            at_least(_least_cosine("as built", "torques", "coupling"), _BY_COUPLINGS),
        ),
        control=below(_LEAST_IN_RINGS, _GOOD_IN_RINGS),
        beside=(
            _largest_error("as built", "corrected"), _largest_error("wide"), _largest_error("wide", "corrected"),
            _least_cosine("wide", "bridge", "omega"), _least_cosine("wide", "bridge", "coupling"),
        ),
        controls=(
            Quantity.mean(
                "slope of the even part of the interaction of two rings, relative to that of the odd part",
                lambda results: _of_rings(results, lambda found: found["evenness"]), Unit.NUMBER,
            ),
            Quantity.smallest(
                "least cosine that the measured interaction predicts in networks of rings",
                lambda results: _ring_cosines(results, "model"), Unit.DIGITS,
            ),
        ),
        note="Capacitors stand for bias currents and resistors for capacitances; the circuit is simulated.",
    ),
    Claim(
        "circuit-settling", "Section 7.3", "in principle",
        "The learning loop of a circuit runs at the settling time of its oscillators.",
        all_of(*(at_most(_until_good(kind), _CONSTANTS) for kind in KINDS)),
        note="A nudge begins at the free state; the circuit is simulated.",
    ),
)  # fmt: skip
_CHECKS = (
    check(
        "circuit-falling", "The phase error of every circuit falls with eps.",
        every(Quantity.count("number of circuits whose phase error falls with eps", _falling)),
    ),
    check(
        "circuit-learning", "A 2+5+2 circuit learns from the phases read of it alone.",
        at_least(
            Quantity.smallest(f"least factor by which {UPDATES} updates lower the cost", _falls, Unit.NUMBER), _FOLD
        ),
    ),
    check(
        "circuit-rings", "The interaction measured in half of the pairs of rings predicts the phases of the others.",
        at_most(
            Quantity.largest(
                "largest error of a locked phase in radians",
                lambda results: _of_rings(results, lambda found: found["error"]),
            ),
            _IN_RINGS,
        ),
    ),
)  # fmt: skip


def _tables(results: Results) -> list[Table]:
    return [_phase_table(results), _gradient_table(results), _settling_table(results), _learning_table(results),
            _ring_table(results)]  # fmt: skip


def _phase_table(results: Results) -> Table:
    rows = []
    for kind in KINDS:
        for eps in EPS:
            figures = [
                _phases(results, kind, eps, each) for each in ("spread", "error", "corrected", "settling_cycles")
            ]
            rows.append([kind, eps, len(figures[0]), *map(_most, figures)])
    columns = (
        "2+5+2", "eps", "networks", "phases spread over, rad", "largest error, rad", "after correction, rad",
        "cycles to settle",
    )  # fmt: skip
    note = "All figures are the largest over the networks. Settling: from phase zero to within 0.01 rad."
    return Table("circuit-phases", "Phases against the phase model", columns, rows, note)


def _gradient_table(results: Results) -> Table:
    rows = []
    for kind in KINDS:
        for way, words in (("bridge", "one more resistor"), ("torques", "shifted frequencies, both signs")):
            each = [_cosines(results, kind, way, name) for name in ("omega", "coupling")]
            rows.append([kind, words, len(each[0]), *(_least(values) for values in each)])
    columns = ("2+5+2", "nudge", "networks", "cosine by frequencies", "cosine by couplings")
    note = f"The least over the networks, against the exact gradient of the phase model, at eps {AT:g}."
    return Table("circuit-gradients", "Gradients", columns, rows, note)


def _settling_table(results: Results) -> Table:
    rows = []
    for kind in KINDS:
        runs = _all(results, f"settling {kind}")
        after = [np.inf if each["good_after"] is None else each["good_after"] for each in runs]
        constants = [each["time_constant"] for each in runs]
        rows.append([kind, len(runs), _most(constants), _most(after), _most(_constants(results, kind))])
    columns = ("2+5+2", "networks", "slowest mode, cycles", "good gradient after, cycles", "in time constants")
    note = f"Good: the cosines by frequencies and by couplings stay above {work.GOOD}. At eps {AT:g}."
    return Table("circuit-settling", "When the gradient can be read", columns, rows, note)


def _learning_table(results: Results) -> Table:
    rows = []
    for seed, run in enumerate(_all(results, "learning", LEARNERS)):
        costs = run["costs"]
        rows.append([seed, f"{costs[0]:.4f}", f"{costs[10]:.5f}", f"{costs[20]:.5f}", f"{costs[-1]:.5f}",
                     round(costs[0] / costs[-1]), run["halved"], run["shortened"]])  # fmt: skip
    columns = (
        "seed",
        "cost before",
        "after 10 updates",
        "after 20",
        f"after {UPDATES}",
        "falls by",
        "nudges halved",
        "steps halved",
    )
    return Table("circuit-learning", "Learning from phases that are read", columns, rows)


def _ring_table(results: Results) -> Table:
    rows = []
    for each in _all({f"{_RINGS} 0": results[_RINGS]} if _RINGS in results else {}, _RINGS, 1):
        a, b = each["sines"], each["cosines"]
        rows = [
            ["frequency of a ring, Hz", f"{each['frequency']:.4g}"],
            ["pairs locked", f"{sum(each['locked'])} of {len(each['locked'])}"],
            ["odd part, sines", ", ".join(f"{value:.2e}" for value in a)],
            ["even part, cosines less 1", ", ".join(f"{value:.2e}" for value in b)],
            ["slope of the even part over that of the odd part", f"{each['evenness']:.2f}"],
            ["largest error of a locked phase, pairs not fitted, rad", f"{each['error']:.1e}"],
        ]
        for seed, one in enumerate(each["gradients"]):
            figures = f"{one['cosine']:.4f}; {one['model']:.4f}; {one['odd_model']:.6f}"
            rows.append(
                [f"cosine of the gradient, five rings, seed {seed}: measured; predicted; odd part alone", figures]
            )
    return Table("circuit-rings", "Rings of three inverters", ("figure", "value"), rows)


def _most(values: Iterable[float]) -> str:
    given = list(values)
    return f"{max(given):.3g}" if given else "not measured"


def _least(values: Iterable[float]) -> str:
    given = list(values)
    return f"{min(given):.6f}" if given else "not measured"


STUDY = Study(
    name="circuit",
    title="Circuits in ngspice",
    question="Does a circuit of oscillators settle, show its gradient and learn as the phase model says?",
    protocol="2+5+2 networks of LC tanks with a cubic conductance, resistors for couplings, capacitors for "
    "frequencies, seeds 0 to 4, as built and with natural frequencies of deviation 3; nudged by one more resistor "
    "between the outputs or by shifted frequencies; 30 updates of frequencies and couplings by phases that were read; "
    "rings of three CMOS inverters, coupled by resistors, at 20 detunings.",
    claims=_CLAIMS,
    checks=_CHECKS,
    plan=_plan,
    tables=_tables,
)  # fmt: skip
