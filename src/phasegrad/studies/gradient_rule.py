"""Section 6.2: training by the two-phase rule against training by numerical differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from phasegrad.studies import summary
from phasegrad.studies.arms import Arm
from phasegrad.studies.baselines import logistic_piece
from phasegrad.studies.finding import published
from phasegrad.studies.piece import Piece
from phasegrad.studies.statistics import identical
from phasegrad.studies.study import Claim, Judgement, Outcome, Study, Table, Verdict

SEEDS = 10
_ARMS = {
    "two_phase": Arm(seeds=SEEDS),
    "finite_difference": Arm(gradient="finite_difference", spot_check=False, seeds=SEEDS),
}


def _plan(seeds: int | None) -> dict[str, Piece]:
    pieces = {"logistic": logistic_piece("ai", seeds, SEEDS)}
    for name, arm in _ARMS.items():
        pieces[name] = arm.piece(f"{name}, as described", seeds)
        pieces[f"{name}_published"] = arm.historical().piece(f"{name}, as published", seeds)
    return pieces


def _assess(results: Mapping[str, Any]) -> Outcome:
    known = published("gradient_rule")
    count = len(results["two_phase"]["test"])
    gaps = np.abs(np.subtract(known["two_phase"], known["finite_difference"]))[:count]
    described = np.abs(np.subtract(results["two_phase"]["test"], results["finite_difference"]["test"]))
    same = {name: identical(results[f"{name}_published"]["best"], known[name]) for name in _ARMS}
    old = np.abs(np.subtract(*(results[f"{name}_published"]["best"] for name in _ARMS)))
    untrained = np.array(results["two_phase_published"]["untrained"])
    trivial = int(np.sum((gaps < 1e-9) & (np.abs(untrained - known["two_phase"][:count]) < 1e-6)))
    gap, equivalent = CLAIMS
    judgements = [
        Judgement(
            gap,
            Verdict.HISTORICAL if summary.add(*same.values()) == (2 * count, 2 * count) else Verdict.NOT_REPRODUCED,
            f"as published (edge leak, scaling by all rows, best evaluation): two-phase "
            f"{summary.agreement(same['two_phase'])}, differences {summary.agreement(same['finite_difference'])}, gap "
            f"{summary.percent(float(old.mean()))}; as described, final epoch: gap "
            f"{summary.percent(float(described.mean()))}, {int(np.sum(described == 0))} of {count} exactly 0",
            f"The two-phase arm is met under the variant, the arm of differences in {same['finite_difference'][0]} of "
            f"{count} seeds; the mean gap is {100 * old.mean():.2f} points there and {100 * described.mean():.2f} as "
            f"described, {100 * gaps.mean():.2f} in the stored file.",
            float(described.mean()),
            f"{trivial} of the {int(np.sum(gaps < 1e-9))} zero gaps are trivial: the stored value is that of the "
            "untrained network in both arms.",
        ),
        Judgement(
            equivalent,
            Verdict.REPRODUCED if described.mean() <= 0.02 else Verdict.NOT_REPRODUCED,
            f"as described, final epoch: accuracies differ by {summary.percent(float(described.mean()))} on average, "
            f"{summary.percent(float(described.max()))} at most",
            f"Both rules train to test accuracies that are {100 * described.mean():.2f} points apart on average.",
            float(described.mean()),
        ),
    ]
    rows = [
        [seed]
        + [summary.cell(known[name][seed]) for name in _ARMS]
        + [summary.cell(results[f"{name}_published"]["best"][seed]) for name in _ARMS]
        + [summary.cell(results[name]["test"][seed]) for name in _ARMS]
        + [summary.cell(results["two_phase"]["untrained"][seed])]
        for seed in range(count)
    ]
    columns = ("two-phase", "differences")
    kinds = ("published", "as published", "as described")
    table = Table(
        "gradient-rule",
        "Test accuracy by either gradient, per cent",
        ("seed", *(f"{kind}, {column}" for kind in kinds for column in columns), "untrained"),
        rows,
        "As published: edge leak, scaling by all rows, best evaluation. As described: final epoch.",
    )
    controls = summary.table(
        "gradient-rule-controls",
        "Both rules as described, with controls",
        [summary.row(name.replace("_", " "), results[name], logistic=results["logistic"]) for name in _ARMS],
    )
    remark = (
        "The arm of numerical differences is not met on every seed. A likely reason, not tested here: its equilibria "
        "were solved to about 1e-8, which a difference over 1e-5 turns into an error of order 1e-3; ours are exact to "
        "rounding."
    )
    return Outcome(judgements, [table, controls], [], dict(results), [remark])


CLAIMS = (
    Claim(
        "gradient-rule-gap",
        "Two-phase and finite-difference training end 0.7 +- 0.9 points apart, exactly equal in 6 of 10 seeds.",
        "Section 6.2",
        "mean gap 0.7 % +- 0.9 %, 6 of 10 seeds 0.0 %",
        "Historical variant if both arms are met on every seed under it (edge leak, all rows, best evaluation).",
    ),
    Claim(
        "gradient-rule-equivalent",
        "The two-phase rule is as good a learning signal as numerical differentiation.",
        "Section 6.2",
        "functionally equivalent",
        "Reproduced if the final test accuracies as described are within 2 points of each other on average.",
    ),
)
STUDY = Study(
    "gradient-rule",
    "Two-phase training against numerical differences",
    "Does training by phase shifts end where training by numerical differentiation ends?",
    "2+5+2 networks, /a/ against /i/, seeds 0 to 9, frequencies only, 200 epochs at 0.001; differences over steps of "
    "1e-5.",
    CLAIMS,
    _plan,
    _assess,
)
