"""Coupling that is not reciprocal, with and without a correction; asked for by name, not by default.

``python -m phasegrad_paper.studies.reciprocity OUT.json`` computes what a file does not hold yet, and
``phasegrad reproduce reciprocity`` the same as pieces of a study.
`ReciprocityResults` makes tables and verdicts from a file.
"""

from phasegrad_paper.studies.reciprocity.claims import STUDY
from phasegrad_paper.studies.reciprocity.results import ReciprocityResults

__all__ = ["STUDY", "ReciprocityResults"]
