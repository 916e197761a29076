"""Ising machines: python -m phasegrad_paper.studies.ising OUT.json --page PAGE.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from phasegrad_paper.studies.ising.results import IsingResults


def main(words: Sequence[str] | None = None) -> int:
    """Compute what is missing, or only read it, and return the exit status."""
    return IsingResults.main(str(__doc__), words)


if __name__ == "__main__":
    sys.exit(main())
