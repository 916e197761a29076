"""Associative memory: three rules on letters and random patterns, and capacity; asked for by name, not by default.

``python -m phasegrad.studies.memory OUT.json --page PAGE.md`` runs the pieces, or reads them where the file is there,
and writes a page's tables.
"""

from phasegrad.studies.memory.claims import STUDY

__all__ = ["STUDY"]
