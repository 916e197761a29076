"""The file of what was measured in ngspice: every piece of the study by its name, with the netlists and the version."""

from __future__ import annotations

from phasegrad_paper.studies.circuit.claims import STUDY
from phasegrad_paper.studies.stored import StoredResults


class CircuitResults(StoredResults):
    """Results of pieces, by the names they have in the study."""

    study = STUDY
    about = "circuits"
