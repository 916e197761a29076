"""Section 6.2: training by the two-phase rule against training by numerical differences."""

from __future__ import annotations

import numpy as np

from phasegrad._validation import BoolArray, FloatArray
from phasegrad_paper.studies.arms import Arm
from phasegrad_paper.studies.conditions import HISTORICAL, Condition, Conditions, by_seed
from phasegrad_paper.studies.measures import Quantity, Results, Unit
from phasegrad_paper.studies.rules import every, within
from phasegrad_paper.studies.study import Claim, Study, Table


def _condition(name: str, stored: str, arm: Arm) -> Condition:
    return Condition(name, arm, ("gradient_rule", stored), arm.historical(), best=True)


_DIFFERENCES = Arm(gradient="finite_difference", spot_check=False, seeds=10)
ARMS = Conditions(
    two_phase=_condition("two-phase training", "two_phase", Arm(seeds=10)),
    finite_difference=_condition("training by differences", "finite_difference", _DIFFERENCES),
)


def _gaps(results: Results, ending: str = "", score: str = "test") -> FloatArray:
    return np.abs(np.subtract(*(results[f"{name}{ending}"][score] for name in ARMS)))


def _trivial(results: Results) -> BoolArray:
    """Of the stored gaps of zero, how many are those of the untrained network in both arms."""
    known = {name: ARMS[name].known["test"] for name in ARMS}
    untrained = np.array(results["two_phase_published"]["untrained"])
    stored = np.array(known["two_phase"][: len(untrained)])
    equal = np.abs(stored - known["finite_difference"][: len(untrained)]) < 1e-9
    return np.asarray((np.abs(untrained - stored) < 1e-6)[equal])


def _tables(results: Results) -> list[Table]:
    values = [ARMS[name].known["test"] for name in ARMS]
    values += [results[f"{name}_published"]["best"] for name in ARMS]
    values += [*(results[name]["test"] for name in ARMS), results["two_phase"]["untrained"]]
    kinds = ("published", "as published", "as described")
    columns = ("seed", *(f"{kind}, {rule}" for kind in kinds for rule in ("two-phase", "differences")), "untrained")
    rows = by_seed(values, len(results["two_phase"]["test"]))
    note = "As published: edge leak, scaling by all rows, best evaluation. As described: final epoch."
    return [
        Table("gradient-rule", "Test accuracy by either gradient, per cent", columns, rows, note),
        ARMS.table(results, "gradient-rule-controls", "Both rules as described, with controls", stored=False),
    ]


_BESIDE = (
    ARMS.met(f"by two-phase training alone {HISTORICAL}", ("two_phase",)),
    Quantity.mean("mean gap as described", lambda results: _gaps(results)),
    Quantity.mean("mean gap under the variant", lambda r: _gaps(r, "_published", "best")),
    Quantity.count("number of gaps of exactly zero as described", lambda r: _gaps(r) == 0),
)
_UNTRAINED = Quantity.count("number of stored gaps of zero that are those of the untrained network", _trivial)
_LARGEST = Quantity.largest("largest gap of a seed", lambda results: _gaps(results), Unit.PERCENT)
STUDY = Study(
    name="gradient-rule",
    title="Two-phase training against numerical differences",
    question="Does training by phase shifts end where training by numerical differentiation ends?",
    protocol="2+5+2 networks, /a/ against /i/, seeds 0 to 9, frequencies only, 200 epochs at 0.001; differences over "
    "steps of 1e-5.",
    claims=(
        Claim(
            "gradient-rule-gap", "Section 6.2", "mean gap 0.7 % +- 0.9 %, 6 of 10 seeds 0.0 %",
            "Two-phase and finite-difference training end 0.7 +- 0.9 points apart, exactly equal in 6 of 10 seeds.",
            every(ARMS.met("as described, final epoch", described=True)), variant=every(ARMS.met(HISTORICAL)),
            beside=_BESIDE, controls=(_UNTRAINED,),
        ),
        Claim(
            "gradient-rule-equivalent", "Section 6.2", "functionally equivalent",
            "The two-phase rule is as good a learning signal as numerical differentiation.",
            within(ARMS.lead("two_phase", "finite_difference"), 0.02, why="about one of 55 test samples"),
            beside=(_LARGEST,),
        ),
    ),
    plan=ARMS.plan,
    tables=_tables,
    remarks=(
        "The arm of numerical differences is not met on every seed. A likely reason, not tested here: its equilibria "
        "were solved to about 1e-8, which a difference over 1e-5 turns into an error of order 1e-3; ours are exact to "
        "rounding.",
    ),
)  # fmt: skip
