"""Studies: one file per family of claims, each with its protocol, its measures and its rules."""

from phasegrad_paper.studies.identity import SIZES
from phasegrad_paper.studies.images import study as images_study
from phasegrad_paper.studies.measures import published
from phasegrad_paper.studies.piece import Piece
from phasegrad_paper.studies.registry import ON_REQUEST, STUDIES, choose, verification_studies
from phasegrad_paper.studies.study import Claim, Figure, Judgement, Outcome, Study, Table, Verdict

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
