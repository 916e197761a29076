"""Associative memory: python -m phasegrad.studies.memory OUT.json --page PAGE.md."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from phasegrad._files import read_json, write_json
from phasegrad.studies.memory.claims import STUDY
from phasegrad.studies.pages import fill_page


def main(words: Sequence[str] | None = None) -> int:
    """Run the pieces, or read them, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m phasegrad.studies.memory", description=__doc__)
    parser.add_argument("out", type=Path, help="file of results; read where it is there, else computed")
    parser.add_argument("--page", type=Path, help="a Markdown page whose tables are written anew from the results")
    options = parser.parse_args(words)
    try:
        if not options.out.exists():
            write_json(options.out, {name: piece.run() for name, piece in STUDY.plan(None).items()})
        if options.page is not None:
            fill_page(options.page, STUDY.tables(read_json(options.out)))
    except (ValueError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
