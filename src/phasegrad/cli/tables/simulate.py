"""A run in time as a table and as a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from phasegrad._validation import counted
from phasegrad.cli.tables.layout import table
from phasegrad.pictures import drawn
from phasegrad.simulation import Trajectory

# Lines of the table.
_ROWS = 6


def run_table(run: Trajectory) -> RenderableType:
    """Return what a run of one sample shows, for the terminal."""
    order = run.order_parameter()
    spread = np.ptp(run.velocities, axis=-1)
    chosen = np.unique(np.linspace(0, run.times.size - 1, _ROWS).astype(int))
    rows = [[f"{run.times[k]:g}", f"{order[k]:.4f}", f"{spread[k]:.2e}"] for k in chosen]
    columns = ("time", "order parameter", "spread of frequencies")
    told = f"{counted(run.network.size, 'oscillator')}, {run.frame} frame: {run.ending}"
    return Group(table("In time", columns, rows), Text(told, style="bold"))


def draw_run(run: Trajectory, path: Path) -> None:
    """Draw phases and order parameter side by side; the ending of the path chooses the format."""
    with drawn(path, 7.0, 2.8, 1, 2) as (_, axes):
        run.plot(axes[0])
        run.plot(axes[1], kind="order")
