"""Claims that no computation here can test: they are about hardware, about other work, or about costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phasegrad.studies.piece import Piece
from phasegrad.studies.study import Claim, Judgement, Outcome, Study, Verdict

_REASONS = {
    "outside-hardware": "It needs an oscillator circuit; nothing here measures one.",
    "outside-settling": "It needs hardware; the package computes equilibria, not settling times of devices.",
    "outside-prior-work": "It is about what other papers contain, not about a figure.",
    "outside-dense": "The full MNIST images are not part of the package.",
    "outside-cost": "The figures are cited from other work on digital training.",
}


def _plan(_seeds: int | None) -> dict[str, Piece]:
    return {}


def _assess(_results: Mapping[str, Any]) -> Outcome:
    judgements = [Judgement(claim, Verdict.UNTESTABLE, "not measured", _REASONS[claim.key], None) for claim in CLAIMS]
    return Outcome(judgements, [])


CLAIMS = (
    Claim(
        "outside-hardware",
        "Frequencies, couplings, nudges and readout map onto bias currents, capacitances, injection currents and "
        "time-to-digital conversion.",
        "Section 7.3",
        "proposed",
        "Not testable here.",
    ),
    Claim(
        "outside-settling",
        "In hardware the learning loop would run at the settling time of the oscillators.",
        "Section 7.3",
        "in principle",
        "Not testable here.",
    ),
    Claim(
        "outside-prior-work",
        "Earlier work on equilibrium propagation in oscillators set natural frequencies aside.",
        "Abstract, section 2",
        "stated, with citations",
        "Not testable here.",
    ),
    Claim(
        "outside-dense",
        "Coupling-only learning reaches 97.8 % on full MNIST in dense oscillator networks of other authors.",
        "Section 2, section 6.3",
        "97.8 %",
        "Not testable here.",
    ),
    Claim(
        "outside-cost",
        "Training a large language model costs 1287 MWh and about 118 GiB of activations per step.",
        "Section 1",
        "1287 MWh, 118 GiB",
        "Not testable here.",
    ),
)
STUDY = Study(
    "outside",
    "Claims outside computation",
    "Which claims can a program not test?",
    "No computation.",
    CLAIMS,
    _plan,
    _assess,
)
