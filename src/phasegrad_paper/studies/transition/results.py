"""The file of what was measured of dynamics beside theory."""

from __future__ import annotations

from phasegrad_paper.studies.stored import StoredResults
from phasegrad_paper.studies.transition.claims import STUDY


class TransitionResults(StoredResults):
    """Results of pieces, by the names they have in the study."""

    study = STUDY
    about = "dynamics"
