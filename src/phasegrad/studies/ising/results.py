"""The file of what was measured of Ising machines."""

from __future__ import annotations

from phasegrad.studies.ising.claims import STUDY
from phasegrad.studies.stored import StoredResults


class IsingResults(StoredResults):
    """Results of pieces, by the names they have in the study."""

    study = STUDY
    about = "Ising machines"
