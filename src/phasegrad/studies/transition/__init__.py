"""Dynamics beside theory: the transition to synchrony, and noise; asked for by name, not by default.

``python -m phasegrad.studies.transition OUT.json --page PAGE.md`` runs the pieces, or reads them where the file is
there, and writes a page's tables.
"""

from phasegrad.studies.transition.claims import STUDY

__all__ = ["STUDY"]
