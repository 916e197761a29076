"""The file of what was measured of associative memory."""

from __future__ import annotations

from phasegrad_paper.studies.memory.claims import STUDY
from phasegrad_paper.studies.stored import StoredResults


class MemoryResults(StoredResults):
    """Results of pieces, by the names they have in the study."""

    study = STUDY
    about = "associative memory"
