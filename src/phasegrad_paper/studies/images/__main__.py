"""Runs on images without the command line: python -m phasegrad_paper.studies.images OUT.json --device cuda."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from phasegrad.training import check_device
from phasegrad_paper.studies.images.experiments import EXPERIMENTS, chosen
from phasegrad_paper.studies.images.results import compute
from phasegrad_paper.studies.images.tables import write_page

_STOPPED = 130


def main(words: Sequence[str] | None = None) -> int:
    """Compute the runs asked for and return the exit status."""
    options = _parser().parse_args(words)
    try:
        experiments = chosen([name for name in options.only.split(",") if name])
        seeds = _seeds(options.seeds)
        check_device(options.device)
        results = compute(
            options.out, experiments, seeds, device=options.device, folder=options.data, budget=options.budget,
            say=lambda line: print(line, flush=True),
        )  # fmt: skip
        if options.page is not None:
            write_page(options.page, results)
    except KeyboardInterrupt:
        print("Stopped; finished runs are kept, and the same command goes on from there.", file=sys.stderr)
        return _STOPPED
    except (ValueError, OSError, ImportError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m phasegrad_paper.studies.images", description=__doc__)
    parser.add_argument("out", type=Path, help="file of results; runs that it holds are not computed again")
    parser.add_argument("--device", default="cuda", help="cuda (default), cpu, cuda:1 and so on")
    parser.add_argument("--data", help="folder of the images (default: PHASEGRAD_DATA in the environment)")
    parser.add_argument("--only", default="", metavar="NAME,...", help=f"experiments of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--seeds", default="", help="a seed (3), a list (0,2) or a range (0:5); default: all")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="leave out what would take longer than this")
    parser.add_argument("--page", type=Path, help="a Markdown page whose tables are written anew from the results")
    return parser


def _seeds(text: str) -> list[int] | None:
    if not text:
        return None
    try:
        first, colon, last = text.partition(":")
        numbers = list(range(int(first), int(last))) if colon else [int(word) for word in text.split(",")]
        if not numbers or min(numbers) < 0:
            raise ValueError
    except ValueError:
        raise ValueError(f"--seeds must be a seed (3), a list (0,2) or a range (0:5). Got {text!r:.80}.") from None
    return numbers


if __name__ == "__main__":
    sys.exit(main())
