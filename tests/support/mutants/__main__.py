"""The command: ``cd tests && python -m mutants --help``."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path

from mutants import campaign

ROOT = Path(__file__).resolve().parents[3]


def main(words: list[str] | None = None) -> int:
    """Run a campaign and return 1 if a change survived."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="which changes are drawn (default 0)")
    parser.add_argument("--count", type=int, default=300, help="how many changes (default 300)")
    parser.add_argument("--only", action="append", metavar="PATH", help="a file or folder to change, from the root")
    parser.add_argument("--tests", action="append", metavar="FILE", help="use this test file alone, for a quick look")
    parser.add_argument("--workers", type=int, default=1, help="changes tried side by side (default 1)")
    parser.add_argument(
        "--limit", type=float, default=60.0, help="seconds of processor time for one change (default 60)"
    )
    parser.add_argument("--list", action="store_true", help="show what would be changed and stop")
    parser.add_argument("--fresh", action="store_true", help="judge anew what was judged before")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="where to write all verdicts (default build/mutants/report.json)"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree (default the one this tool is in)")
    options = parser.parse_args(words)
    root = options.root.resolve()
    targets = options.only or [f"src/phasegrad/{name}" for name in campaign.TARGETS]
    place = root / "build" / "mutants"
    settings = campaign.Settings(
        root,
        place,
        targets,
        options.count,
        options.seed,
        max(1, options.workers),
        options.fresh,
        options.tests or [],
        options.limit,
    )
    if options.list:
        sources = settings.sources()
        for change in campaign.draw(sources, settings.count, settings.seed):
            print(f"{change.path}:{change.at} {change.function}: {change.what}\n{change.diff(sources[change.path])}")
        return 0
    # So that the children end with it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    verdicts = campaign.run(settings, lambda line: print(line, flush=True))
    print("\n" + campaign.summary(verdicts))
    file = options.json or place / "report.json"
    rows = [verdict.row() for verdict in verdicts]
    file.write_text(json.dumps({"seed": options.seed, "targets": targets, "mutants": rows}, indent=1), encoding="utf-8")
    return int(any(row["verdict"] in ("survived", "unreached") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
