"""Section 6.4: whether the same seeds fail under five ways of training."""

from __future__ import annotations

from typing import Any

import numpy as np

from phasegrad._validation import BoolArray
from phasegrad_paper.studies import statistics
from phasegrad_paper.studies.arms import Arm
from phasegrad_paper.studies.conditions import HISTORICAL, Condition, Conditions, by_seed, succeeded
from phasegrad_paper.studies.measures import Measure, Pairs, Quantity, Results, published
from phasegrad_paper.studies.piece import Piece
from phasegrad_paper.studies.rules import every, none
from phasegrad_paper.studies.study import Claim, Study, Table


def _condition(name: str, stored: str, arm: Arm) -> Condition:
    return Condition(name, arm, ("five_configurations", "published", stored), arm.historical(), best=True)


_BOTH: dict[str, Any] = {"learn": "both", "seeds": 20}
_CONFIGURATIONS = {
    "baseline": ("baseline", Arm(**_BOTH)),
    "strong_coupling": ("coupling scale 4", Arm(**_BOTH, coupling_scale=4.0)),
    "floor": ("coupling floor 1.5", Arm(**_BOTH, intervention="floor")),
    "recentring": ("frequencies recentred", Arm(**_BOTH, intervention="recentre")),
    "omega_fixed_coupling": ("frequencies only, coupling scale 3", Arm(coupling_scale=3.0, seeds=20)),
}
ARMS = Conditions({key: _condition(name, key, arm) for key, (name, arm) in _CONFIGURATIONS.items()})
_STARTS = {
    start: Condition(f"{start} start", Arm(start=start, evaluate_every=200)) for start in ("spectral", "anti-spectral")
}


def _plan(seeds: int | None) -> dict[str, Piece]:
    return ARMS.plan(seeds) | Conditions(_STARTS).plan(seeds)


def _outcomes(results: Results, variant: bool = False) -> BoolArray:
    """Return the success of every seed in every configuration, (seeds, configurations)."""
    ending, score = ("_published", "best") if variant else ("", "test")
    return np.array([succeeded(results[f"{key}{ending}"], score) for key in ARMS]).T


def _changing(how: str, variant: bool) -> Quantity:
    def changing(results: Results) -> BoolArray:
        outcomes = _outcomes(results, variant)
        return np.any(outcomes != outcomes[:, :1], axis=1)

    return Quantity.count(f"number of seeds whose success changes with the configuration ({how})", changing)


def _untrained(results: Results) -> BoolArray:
    run = results["baseline_published"]
    return succeeded(run, "untrained")[succeeded(run, "best")]


def _first(start: str) -> Quantity:
    words = f"number of successes of the same seeds from the {start} start"
    return Quantity.count(words, lambda results: succeeded(results[start])[: len(results["baseline"]["test"])])


def _rerun(results: Results) -> Pairs:
    known = published("five_configurations")["as_described"]
    return [(results[key]["test"], known[key]) for key in ARMS]


def _tables(results: Results) -> list[Table]:
    kinds, values = ("published", "as published", "as described"), []
    for key, arm in ARMS.items():
        values += [arm.known["test"], results[f"{key}_published"]["best"], results[key]["test"]]
    columns = ("seed", *(f"{arm.name}, {kind}" for arm in ARMS.values() for kind in kinds))
    title, controls = "Test accuracy per seed and configuration, per cent", "five-configurations-controls"
    note = "Published and as published: best evaluation of each run. As described: final epoch."
    return [
        Table("five-configurations", title, columns, by_seed(values, len(results["baseline"]["test"])), note),
        ARMS.table(results, controls, "The configurations as described, with controls", stored=False),
    ]


_Q = Quantity("Cochran's Q, final epoch", lambda results: Measure(statistics.cochran_q(_outcomes(results)).statistic))
_P = Quantity("its p value", lambda results: Measure(statistics.cochran_q(_outcomes(results)).p))
_RERUN = Quantity.met("number of values of an independent rerun met as described", _rerun)
_BEFORE = Quantity.count("number of successful baseline seeds that exceed 60 % untrained", _untrained)
STUDY = Study(
    name="five-configurations",
    title="Five training configurations",
    question="Is success a property of the seed, whatever the training?",
    protocol="2+5+2 networks, /a/ against /i/, seeds 0 to 19, 200 epochs: baseline (both parameters); couplings "
    "doubled at the start; couplings lifted to 1.5 after every epoch; half the mean frequency taken away every 10 "
    "epochs; frequencies only.",
    claims=(
        Claim(
            "five-pattern", "Section 6.4", "11 of 20 in each, identical pattern, Cochran's Q = 0 (degenerate)",
            "The same 11 of 20 seeds converge under five training configurations.",
            every(ARMS.met("as described, final epoch", described=True)), variant=every(ARMS.met(HISTORICAL)),
            beside=(*(ARMS.count(key) for key in ARMS), _Q, _P), controls=(_BEFORE,),
            note="Q = 0 / 0 tests nothing: with the same outcome in every column there is no variation to test. A "
            "maximum over the run keeps what the untrained network scores.",
        ),
        Claim(
            "five-invariant", "Section 6.4", "fully determined by the seed index",
            "The outcome is fully determined by the seed and does not depend on the training algorithm.",
            none(_changing("as described, final epoch", False)), variant=none(_changing(HISTORICAL, True)),
            beside=(_RERUN,), controls=tuple(_first(start) for start in _STARTS),
            note="The five share their start: with other initial frequencies the same seeds end differently.",
        ),
    ),
    plan=_plan,
    tables=_tables,
)  # fmt: skip
