"""The command about power grids: `grid`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import phasegrad
from phasegrad.cli.words import check_place


def grid(
    case: Annotated[str, typer.Argument(help="An IEEE case: case9, case14, case30, case39, case57, case118, ...")],
    scale: Annotated[float, typer.Option(help="Factor on all injected power.")] = 1.0,
    relieve: Annotated[str | None, typer.Option(help="A line to relieve, by its two buses: BUS-BUS.")] = None,
    json: Annotated[Path | None, typer.Option(help="Also write every figure to this JSON file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the grid here; ends in .svg, .png or .pdf.")] = None,
) -> None:
    """Analyse a power grid as an oscillator network: stability, stressed lines, distance to loss of synchrony.

    Exit status: 0 if the grid is synchronous, 1 if it has no stable state, 2 for wrong input.
    """
    from phasegrad.files import write_json
    from phasegrad.grid_analysis import analyse
    from phasegrad.report.grids import draw_grid, grid_tables

    for place in (json, plot):
        if place is not None:
            check_place(place)
    found = analyse(phasegrad.datasets.grids.load(case), scale=scale, relieve=relieve)
    Console().print(grid_tables(found))
    if plot is not None:
        draw_grid(found, plot)
        typer.echo(f"Wrote {plot}")
    if json is not None:
        write_json(json, found.as_dict())
        typer.echo(f"Wrote {json}")
    raise typer.Exit(0 if found.equilibrium.stable else 1)
