"""Circuits in ngspice: python -m phasegrad.studies.circuit OUT.json --page PAGE.md."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from phasegrad.studies.circuit.results import CircuitResults, compute

_STOPPED = 130


def main(words: Sequence[str] | None = None) -> int:
    """Compute what is missing, or only read it, and return the exit status."""
    options = _parser().parse_args(words)
    try:
        if options.stored:
            results = CircuitResults.read(options.out)
        else:
            results = compute(options.out, lambda line: print(line, flush=True))
        if options.page is not None:
            results.write_page(options.page)
    except KeyboardInterrupt:
        print("Stopped; finished pieces are kept, and the same command goes on from there.", file=sys.stderr)
        return _STOPPED
    except (ValueError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m phasegrad.studies.circuit", description=__doc__)
    parser.add_argument("out", type=Path, help="file of results; pieces that it holds are not computed again")
    parser.add_argument("--stored", action="store_true", help="compute nothing: make the page from what is there")
    parser.add_argument("--page", type=Path, help="a Markdown page whose tables are written anew from the results")
    return parser


if __name__ == "__main__":
    sys.exit(main())
