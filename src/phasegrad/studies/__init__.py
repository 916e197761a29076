"""Studies: one file per family of claims, each with its protocol, its measures and its rules."""

from phasegrad.studies.identity import SIZES
from phasegrad.studies.images import study as images_study
from phasegrad.studies.measures import published
from phasegrad.studies.piece import Piece
from phasegrad.studies.registry import ON_REQUEST, STUDIES, choose, verification_studies
from phasegrad.studies.study import Claim, Figure, Judgement, Outcome, Study, Table, Verdict

__all__ = [
    "ON_REQUEST",
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
    "images_study",
    "published",
    "verification_studies",
]
