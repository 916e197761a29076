"""The file of what was measured of dynamics beside theory."""

from __future__ import annotations

from phasegrad.studies.stored import StoredResults
from phasegrad.studies.transition.claims import STUDY


class TransitionResults(StoredResults):
    """Results of pieces, by the names they have in the study."""

    study = STUDY
    about = "dynamics"
