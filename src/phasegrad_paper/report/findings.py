"""What was found, in a few sentences: each made of measured figures, and said only as long as they bear it out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from phasegrad.runs import SUCCESS
from phasegrad_paper.reproduction import Reproduction
from phasegrad_paper.studies import Figure, Judgement

#: The figure that shows what decides, and the study that it belongs to.
DECISIVE = ("spectral", "starts")


class Finding(NamedTuple):
    """A sentence in two parts, what was found and by which figures, and the study whose section says more."""

    words: str
    figures: str
    study: str


class _Found:
    """What the studies of a reproduction measured, by study, claim and words of the quantity."""

    def __init__(self, reproduction: Reproduction) -> None:
        outcomes = reproduction.outcomes
        self._judgements: dict[str, Judgement] = {
            judgement.claim.key: judgement for outcome in outcomes.values() for judgement in outcome.judgements
        }
        self._data: dict[str, Mapping[str, Any]] = {name: outcome.data for name, outcome in outcomes.items()}

    def rule(self, claim: str) -> float:
        """Return the first figure of the rule of a claim; KeyError where its study was not run."""
        judgement = self._judgements[claim]
        return judgement.rule[0].measure.value if judgement.rule else math.nan

    def accuracies(self, study: str, run: str) -> np.ndarray:
        """Return the test accuracy of every seed of a run; KeyError where its study was not run."""
        found = self._data[study][run]
        return np.asarray(found["test"] if isinstance(found, Mapping) else found, dtype=float)


def findings(reproduction: Reproduction) -> list[Finding]:
    """Return what was found, the most important first; nothing that rests on studies that were not run."""
    found, said = _Found(reproduction), []
    for say in _SAY:
        try:
            finding = say(found)
        except KeyError:
            continue
        if finding is not None:
            said.append(finding)
    return said


def decisive_figure(reproduction: Reproduction) -> Figure | None:
    """Return the figure that shows what decides, where its study was run."""
    study, name = DECISIVE
    outcome = reproduction.outcomes.get(study)
    return next((figure for figure in outcome.figures if figure.name == name), None) if outcome else None


def _identity(found: _Found) -> Finding | None:
    apart, exact = found.rule("identity-table"), found.rule("identity-theorem")
    if not (apart <= 1e-8 and exact <= 1e-9):
        return None
    return Finding(
        "The identity holds: the phase shift over the nudge is minus the gradient.",
        f"Against numerical differences 1\N{NO-BREAK SPACE}−\N{NO-BREAK SPACE}cosine is at most {apart:.1e} at every "
        f"size tested; with a complex nudge the relative error is {exact:.1e}.",
        "identity",
    )


def _halves(found: _Found) -> Finding | None:
    random = found.accuracies("spectral", "random")
    won = random > SUCCESS
    if won.all() or not won.any() or not random[~won].mean() < 1 - SUCCESS:
        return None
    return Finding(
        "Random starts that fail are not at chance: they are inverted classifiers.",
        f"{_count(won)} seeds end above {_percent(SUCCESS, 0)}; the others score {_percent(random[~won].mean())} on "
        f"average, and {_percent(1 - random[~won].mean())} with their answer turned round.",
        "spectral",
    )


def _sign(found: _Found) -> Finding | None:
    won = {start: found.accuracies("spectral", start) > SUCCESS for start in _PAIRS}
    if not all(won[plus].mean() > 0.9 and won[minus].mean() < 0.1 for plus, minus in _OPPOSITES):
        return None
    counts = {start: _count(each) for start, each in won.items()}
    return Finding(
        "The sign of the initial output frequencies decides which of the two a network becomes.",
        f"The spectral seed succeeds in {counts['spectral']}, and with its sign reversed in {counts['anti-spectral']}; "
        f"frequencies on the outputs alone in {counts['outputs-positive']} and {counts['outputs-negative']}.",
        "spectral",
    )


_OPPOSITES = (("spectral", "anti-spectral"), ("outputs-positive", "outputs-negative"))
_PAIRS = tuple(start for pair in _OPPOSITES for start in pair)


def _repair(found: _Found) -> Finding | None:
    repaired, regression = found.accuracies("baselines", "repaired_ai"), found.accuracies("baselines", "logistic_ai")
    if not (repaired.min() > 0.9 and repaired.mean() > regression.mean() - 0.01):
        return None
    return Finding(
        "The cause is a cost and a decision that disagree; made to agree, they leave no seed behind.",
        f"With the decision that the cost asks for, random starts score {_percent(repaired.mean())} (worst seed "
        f"{_percent(repaired.min())}); logistic regression {_percent(regression.mean())}.",
        "baselines",
    )


def _parameter(found: _Found) -> Finding | None:
    lead = found.rule("which-headline")
    if not lead < 0:
        return None
    return Finding(
        "Of as many parameters, couplings learn more than frequencies.",
        f"Over all seeds, tasks and sizes frequencies are {-100 * lead:.1f} points behind with a matched decision.",
        "which-parameter",
    )


_SAY: tuple[Callable[[_Found], Finding | None], ...] = (_identity, _halves, _sign, _repair, _parameter)


def _count(outcomes: Any) -> str:
    return f"{int(np.sum(outcomes))} of {len(outcomes)}"


def _percent(share: float, decimals: int = 1) -> str:
    return f"{100 * share:.{decimals}f} %"
