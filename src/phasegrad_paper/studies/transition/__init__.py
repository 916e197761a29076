"""Dynamics beside theory: the transition to synchrony, and noise; asked for by name, not by default.

``python -m phasegrad_paper.studies.transition OUT.json`` computes what a file does not hold yet, and
``phasegrad reproduce transition`` the same as pieces of a study.
`TransitionResults` makes tables and verdicts from a file.
"""

from phasegrad_paper.studies.transition.claims import STUDY
from phasegrad_paper.studies.transition.results import TransitionResults

__all__ = ["STUDY", "TransitionResults"]
