"""The fair version of the paper's headline: which parameter learns better when cost and decision agree.

Every arm gets its own learning rate, chosen on a validation part of the training set, and the decision by nearest
target; test data has no say. Arms of equal parameter count are compared at five sizes: as many frequencies as there
are, the same number of couplings, the same number drawn from both; and at 2+5+2 all couplings, and everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phasegrad._validation import FloatArray
from phasegrad_paper.studies.arms import Arm
from phasegrad_paper.studies.conditions import VOWELS, Condition, Conditions, cell
from phasegrad_paper.studies.measures import Quantity, Results, average
from phasegrad_paper.studies.piece import Piece
from phasegrad_paper.studies.rules import above, all_of
from phasegrad_paper.studies.study import Claim, Figure, Study, Table

HIDDEN = (3, 5, 7, 10, 15)
PAPER = 5  # the hidden oscillators of the paper's network
SEEDS = 100
VALIDATION_SEEDS = 32
_OMEGA_RATES = ((0.01, None), (0.1, None), (0.3, None))
_COUPLING_RATES = ((0.001, 0.5), (0.001, 1.0), (0.001, 2.0))
_BOTH_RATES = ((0.01, 0.5), (0.03, 1.0), (0.1, 2.0))
#: The name of an arm, what learns, whether only as many parameters as there are frequencies, and rates to choose from.
MODES: dict[str, tuple[str, str, bool, tuple[tuple[float, float | None], ...]]] = {
    "omega": ("all frequencies", "omega", False, _OMEGA_RATES),
    "coupling_matched": ("as many couplings", "coupling", True, _COUPLING_RATES),
    "both_matched": ("as many of both", "both", True, _BOTH_RATES),
    "coupling": ("all couplings", "coupling", False, _COUPLING_RATES),
    "both": ("everything", "both", False, _BOTH_RATES),
}
MATCHED = ("omega", "coupling_matched", "both_matched")
#: All arms, as (mode, task, hidden): matched ones at every size, the others in the paper's network.
CASES = {
    f"{mode}_{task}_{hidden}": (mode, task, hidden)
    for task in VOWELS
    for hidden in HIDDEN
    for mode in MODES
    if hidden == PAPER or mode in MATCHED
}


def _arm(mode: str, task: str, hidden: int, rates: tuple[float, float | None], *, validate: bool = False) -> Arm:
    _, learn, matched, _ = MODES[mode]
    return Arm(
        task=task, hidden=hidden, learn=learn, rate=rates[0], coupling_rate=rates[1], objective="nearest",
        learnable=hidden + 2 if matched else None, evaluate_every=200, validate=validate,
        seeds=VALIDATION_SEEDS if validate else SEEDS,
    )  # fmt: skip


ARMS = Conditions(
    {
        key: Condition(f"{VOWELS[task]}, 2+{hidden}+2, {MODES[mode][0]}", _arm(mode, task, hidden, MODES[mode][3][0]))
        for key, (mode, task, hidden) in CASES.items()
    }
)


def chosen(mode: str, task: str, hidden: int, seeds: int) -> dict[str, Any]:
    """Choose the rates of an arm on validation data, train with them, and return the figures with the choice."""
    rates = MODES[mode][3]
    few = min(seeds, VALIDATION_SEEDS)
    scores = [average(_arm(mode, task, hidden, pair, validate=True).piece("", few).run()["test"]) for pair in rates]
    best = rates[int(np.argmax(scores))]
    return {"rates": list(best), "validation": scores, **_arm(mode, task, hidden, best).piece("", seeds).run()}


def _plan(seeds: int | None) -> dict[str, Piece]:
    pieces = {name: piece for name, piece in ARMS.plan(seeds).items() if name not in ARMS}
    for key, (mode, task, hidden) in CASES.items():
        options = {"mode": mode, "task": task, "hidden": hidden, "seeds": min(seeds or SEEDS, SEEDS)}
        pieces[key] = Piece(ARMS[key].name, chosen, options, 2.0 + 0.2 * hidden)
    return pieces


def _leads(results: Results, settings: Sequence[tuple[str, int]]) -> FloatArray:
    """Return the lead of frequencies over as many couplings, (settings, seeds)."""
    omega, coupling = (
        [results[f"{mode}_{task}_{hidden}"]["test"] for task, hidden in settings]
        for mode in ("omega", "coupling_matched")
    )
    return np.subtract(omega, coupling)


_SETTINGS = [(task, hidden) for task in VOWELS for hidden in HIDDEN]


def _mean_lead(words: str, settings: Sequence[tuple[str, int]], minus: Sequence[tuple[str, int]] = ()) -> Quantity:
    """Return the lead of frequencies, mean over settings and seeds, perhaps minus that over others."""

    def leads(results: Results) -> FloatArray:
        rest = _leads(results, minus).mean(axis=0) if minus else 0.0
        return np.asarray(_leads(results, settings).mean(axis=0) - rest)

    return Quantity.difference(f"lead of frequencies over as many couplings ({words})", leads)


def _means(results: Results, mode: str, task: str) -> list[float]:
    return [average(results[f"{mode}_{task}_{hidden}"]["test"]) for hidden in HIDDEN]


def _tables(results: Results) -> list[Table]:
    rows = []
    for key, (mode, _, hidden) in CASES.items():
        run, (_, learn, matched, _) = results[key], MODES[mode]
        count = hidden + 2 if matched or learn == "omega" else 5 * hidden - 1 + (hidden + 2) * (learn == "both")
        omega, coupling = run["rates"]
        rates = (omega if learn != "coupling" else None, coupling if learn != "omega" else None)
        shares = (*run["validation"], min(run["test"]))
        rows.append([ARMS[key].name, count, *rates, *(cell(value) for value in shares), int(np.sum(run["skipped"]))])
    validation = (f"validation {k}, %" for k in (1, 2, 3))
    columns = ("arm", "parameters", "rate of frequencies", "rate of couplings", *validation, "worst seed, %", "skipped")
    title = "Which parameter matters, cost and decision in agreement"
    note = "Decision by nearest target throughout; rates chosen on the last fifth of the training part."
    tried = f"Validation accuracies of the three pairs of rates, {VALIDATION_SEEDS} seeds; the best was taken."
    return [
        ARMS.table(results, "which-parameter", title, note),
        Table("which-parameter-rates", "Rates chosen, and the worst seed", columns, rows, tried),
    ]


def _figures(results: Results) -> list[Figure]:
    panels = []
    for task, name in VOWELS.items():
        whole = {mode: average(results[f"{mode}_{task}_{PAPER}"]["test"]) for mode in ("coupling", "both")}
        arms = {mode: _means(results, mode, task) for mode in MATCHED}
        logistic = average(results[f"logistic_{task}"])
        panels.append({"title": name, "arms": arms, "whole": whole, "logistic": logistic})
    return [
        Figure(
            "which-parameter",
            "Mean test accuracy over all seeds, by what learns and by network size; cost and decision agree, every arm "
            "at the rate that validation data chose.",
            "Two panels, one per task, of mean accuracy over the number of oscillators: lines for frequencies, as many "
            "couplings and as many of both, and a dashed line for logistic regression.",
            {"sizes": [hidden + 4 for hidden in HIDDEN], "paper": PAPER + 4, "panels": panels},
        )
    ]


_AHEAD = Quantity.count(
    "number of settings in which frequencies are ahead of as many couplings",
    lambda results: _leads(results, _SETTINGS).mean(axis=1) > 0,
)
_LOGISTIC = Quantity.mean("mean of logistic regression, /a i/", lambda r: r["logistic_ai"])
STUDY = Study(
    name="which-parameter",
    title="Which parameter matters?",
    question="Do frequencies or couplings learn better when the decision is what the cost asks for?",
    protocol="2+3+2 to 2+15+2 networks, /a i/ and /o u/, random starts, 100 seeds, 200 epochs, decision by nearest "
    "target; rates of every arm chosen from three on the last fifth of the training part (32 seeds).",
    claims=(
        Claim(
            "which-headline", "Sections 2 and 8", "96.0 % against 83.3 % among converged seeds",
            "Natural frequency is the more effective learning target on sparse architectures.",
            above(_mean_lead("ten settings, all seeds", _SETTINGS), 0),
            beside=(_AHEAD, *(ARMS.mean(f"{mode}_ai_5") for mode in ("omega", "coupling_matched", "both"))),
            controls=(ARMS.mean("omega_ai_5", score="untrained"), _LOGISTIC),
        ),
        Claim(
            "which-sparse", "Section 6.3, scope", "stated",
            "Frequencies have their advantage where couplings have too few parameters to encode the function.",
            all_of(
                above(_mean_lead("/a i/, N = 7", [("ai", 3)]), 0),
                above(_mean_lead("/a i/, N = 7 minus N = 19", [("ai", 3)], [("ai", 15)]), 0),
            ),
            beside=tuple(_mean_lead(f"/a i/, N = {hidden + 4}", [("ai", hidden)]) for hidden in HIDDEN[1:]),
        ),
    ),
    plan=_plan,
    tables=_tables,
    figures=_figures,
)  # fmt: skip
