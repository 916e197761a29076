"""The file of what was measured of Ising machines."""

from __future__ import annotations

from phasegrad_paper.studies.ising.claims import STUDY
from phasegrad_paper.studies.stored import StoredResults


class IsingResults(StoredResults):
    """Results of pieces, by the names they have in the study."""

    study = STUDY
    about = "Ising machines"
