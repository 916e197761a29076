"""Studies: one file per family of claims, each with its protocol, its measures and its rules."""

from phasegrad.studies.identity import SIZES
from phasegrad.studies.measures import published
from phasegrad.studies.piece import Piece
from phasegrad.studies.registry import STUDIES, choose, verification_studies
from phasegrad.studies.study import Claim, Figure, Judgement, Outcome, Study, Table, Verdict

__all__ = [
    "SIZES",
    "STUDIES",
    "Claim",
    "Figure",
    "Judgement",
    "Outcome",
    "Piece",
    "Study",
    "Table",
    "Verdict",
    "choose",
    "published",
    "verification_studies",
]
