"""Ising machines: cuts beside optima and simulated annealing, and learning with injection; asked for by name.

``python -m phasegrad_paper.studies.ising OUT.json`` computes what a file does not hold yet, and ``phasegrad reproduce
ising`` the same as pieces of a study. `IsingResults` makes tables and verdicts from a file.
"""

from phasegrad_paper.studies.ising.claims import STUDY
from phasegrad_paper.studies.ising.results import IsingResults

__all__ = ["STUDY", "IsingResults"]
