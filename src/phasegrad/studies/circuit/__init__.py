"""Circuits: what ngspice says of networks as circuits; asked for by name, not by default.

``python -m phasegrad.studies.circuit OUT.json`` computes what a file does not hold yet, and ``phasegrad reproduce
circuit`` the same as pieces of a study. `CircuitResults` makes tables and verdicts from a file, without ngspice.
"""

from phasegrad.studies.circuit.claims import STUDY
from phasegrad.studies.circuit.results import CircuitResults

__all__ = ["STUDY", "CircuitResults"]
