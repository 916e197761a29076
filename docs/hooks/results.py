"""Stored results, and the tables that pages make of them.

`python docs/hooks/results.py` writes the tables anew, and a test holds the pages to it. With the `results.json` of a
reproduction, `python docs/hooks/results.py reproduction/results.json`, it first stores what every claim measured.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from phasegrad_bench import layer
from phasegrad_bench.tables import speed_tables
from phasegrad_paper.studies import classifiers
from phasegrad_paper.studies.pages import filled
from phasegrad_paper.studies.study import Table

DOCS = Path(__file__).parent.parent
#: The file of results of every page, and the tables that it makes.
PAGES: dict[str, tuple[str, Callable[[Any], list[Table]]]] = {
    "accuracies.md": ("classifiers.json", classifiers.tables),
    "pytorch.md": ("layer.json", layer.tables),
    "speed.md": ("bench.json", speed_tables),
}


def written(page: str) -> str:
    """Return the text of a page with its tables written anew from the stored results."""
    source, tables = PAGES[page]
    results = json.loads((DOCS / "results" / source).read_text(encoding="utf-8"))
    return filled((DOCS / page).read_text(encoding="utf-8"), tables(results))


def store_claims(reproduction: Path) -> None:
    """Keep verdict, measures and controls of every claim of a reproduction of all seeds."""
    found = json.loads(reproduction.read_text(encoding="utf-8"))
    if found["seeds"] is not None:
        raise ValueError(
            f"{reproduction} holds at most {found['seeds']} seeds of a study. Reproduce all of them first."
        )
    claims = {
        claim["key"]: {name: claim[name] for name in ("verdict", "measured", "control")}
        for study in found["studies"].values()
        for claim in study["claims"]
    }
    stored = {"kind": "phasegrad claims", "versions": found["versions"], "claims": claims}
    text = json.dumps(stored, indent=1, ensure_ascii=False)
    (DOCS / "results" / "claims.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        store_claims(Path(sys.argv[1]))
    for name in PAGES:
        text = written(name)
        (DOCS / name).write_text(text, encoding="utf-8")
