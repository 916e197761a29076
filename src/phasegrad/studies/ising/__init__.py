"""Ising machines: cuts beside optima and simulated annealing, and learning with injection; asked for by name.

``python -m phasegrad.studies.ising OUT.json --page PAGE.md`` runs the pieces, or reads them where the file is there,
and writes a page's tables.
"""

from phasegrad.studies.ising.claims import STUDY

__all__ = ["STUDY"]
