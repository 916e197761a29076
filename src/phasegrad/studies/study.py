"""What a study is: claims with their published figures and verdict rules, the pieces of work, and the assessment.

A study declares; `phasegrad.reproduction` runs its pieces and keeps their results; `phasegrad.report` draws and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from phasegrad.studies.piece import Piece


class Verdict(Enum):
    """What became of a claim."""

    REPRODUCED = "reproduced"
    HISTORICAL = "reproduced only under a historical variant"
    CONTROLLED = "reproduced, but a control changes its meaning"
    NOT_REPRODUCED = "not reproduced"
    UNTESTABLE = "not testable here"


@dataclass(frozen=True)
class Claim:
    """One claim of the paper.

    Parameters
    ----------
    key : str
        A short name, unique among all claims.
    sentence : str
        The claim in one sentence of our own.
    where : str
        Where it stands in the paper.
    published : str
        The published figures.
    rule : str
        How the verdict is found, with its tolerance.
    """

    key: str
    sentence: str
    where: str
    published: str
    rule: str


@dataclass(frozen=True)
class Judgement:
    """A claim with what was measured, the control that decides it, and the verdict.

    Parameters
    ----------
    claim : Claim
    verdict : Verdict
    measured : str
        What came out here.
    reason : str
        One sentence.
    number : float or None
        The figure the verdict rests on; None where nothing can be measured.
    control : str
        What the control shows; empty where none is needed.
    """

    claim: Claim
    verdict: Verdict
    measured: str
    reason: str
    number: float | None
    control: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the judgement as plain data."""
        return {
            "key": self.claim.key,
            "claim": self.claim.sentence,
            "where": self.claim.where,
            "published": self.claim.published,
            "rule": self.claim.rule,
            "measured": self.measured,
            "control": self.control,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "number": self.number,
        }


@dataclass(frozen=True)
class Table:
    """A table of results.

    Parameters
    ----------
    name : str
        Its file name, without ending.
    title : str
    columns : tuple of str
    rows : list of lists
        Numbers stay numbers; text is for names and for figures that belong together, such as "47 of 100".
    note : str
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: list[list[Any]]
    note: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure to draw: the name of a drawing in `phasegrad.report`, the data it needs, and the words around it.

    Parameters
    ----------
    name : str
        The drawing, and its file name without ending.
    caption : str
    alternative : str
        What the picture shows, for those who do not see it.
    data : dict
        Plain data.
    """

    name: str
    caption: str
    alternative: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What a study found.

    Parameters
    ----------
    judgements : list of Judgement
        One per claim of the study, in order.
    tables : list of Table
    figures : list of Figure
    data : dict
        Every figure, per seed, as plain data.
    remarks : list of str
        What else a reader should know, one or two sentences each.
    """

    judgements: list[Judgement]
    tables: list[Table]
    figures: list[Figure] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Study:
    """One family of claims.

    Parameters
    ----------
    name : str
        The word for the command line.
    title : str
    question : str
        What it asks, in one sentence.
    protocol : str
        Data, network, training options and seeds, in a few sentences.
    claims : tuple of Claim
    plan : callable
        From a number of seeds (None: as published) to its pieces, each under a name of the study's own.
    assess : callable
        From the results of those pieces, under the same names, to the outcome.
    """

    name: str
    title: str
    question: str
    protocol: str
    claims: tuple[Claim, ...]
    plan: Callable[[int | None], dict[str, Piece]]
    assess: Callable[[Mapping[str, Any]], Outcome]
