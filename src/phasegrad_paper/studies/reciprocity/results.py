"""The file of what was measured of coupling that is not reciprocal."""

from __future__ import annotations

from phasegrad_paper.studies.reciprocity.claims import STUDY
from phasegrad_paper.studies.stored import StoredResults


class ReciprocityResults(StoredResults):
    """Results of pieces, by the names they have in the study."""

    study = STUDY
    about = "reciprocity"
