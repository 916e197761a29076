"""Circuits: what ngspice says of networks as circuits; asked for by name, not by default.

``python -m phasegrad_paper.studies.circuit OUT.json`` computes what a file does not hold yet, and ``phasegrad reproduce
circuit`` the same as pieces of a study. `CircuitResults` makes tables and verdicts from a file, without ngspice.
"""

from phasegrad_paper.studies.circuit.claims import STUDY
from phasegrad_paper.studies.circuit.results import CircuitResults

__all__ = ["STUDY", "CircuitResults"]
