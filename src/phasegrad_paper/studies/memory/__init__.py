"""Associative memory: three rules on letters and random patterns, and capacity; asked for by name, not by default.

``python -m phasegrad_paper.studies.memory OUT.json`` computes what a file does not hold yet, and ``phasegrad reproduce
memory`` the same as pieces of a study. `MemoryResults` makes tables and verdicts from a file.
"""

from phasegrad_paper.studies.memory.claims import STUDY
from phasegrad_paper.studies.memory.results import MemoryResults

__all__ = ["STUDY", "MemoryResults"]
