"""What an Ising machine found, as a table and as a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from phasegrad.cli.tables.layout import table
from phasegrad.ising import Solutions
from phasegrad.pictures import drawn

# Lines of the table.
_ROWS = 8


def solutions_table(found: Solutions) -> RenderableType:
    """Return the largest cuts, how many runs found each and in how many of them it is stable, for the terminal."""
    cuts, stable = found.cuts, found.stable
    largest = np.unique(cuts)[::-1]
    rows = [[f"{cut:g}", f"{np.sum(cuts == cut)}", f"{np.sum(stable[cuts == cut])}"] for cut in largest[:_ROWS]]
    title = "Cuts" if largest.size <= _ROWS else f"The {_ROWS} largest of {largest.size} cuts"
    held = "is" if stable[found.best] else "is not"
    words = f"{found.problem!r}: largest cut {found.best_cut:g}, which {held} a stable state of the machine."
    return Group(table(title, ("cut", "runs", "stable"), rows), Text(words, style="bold"))


def draw_cuts(found: Solutions, path: Path) -> None:
    """Draw how often each cut was found; the ending of the path chooses the format."""
    with drawn(path, 4.5, 3.0) as (_, axes):
        found.plot(axes[0])
