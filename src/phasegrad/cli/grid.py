"""The command `grid`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

import phasegrad
from phasegrad._files import printable
from phasegrad.cli.completing import grid_cases, one_of
from phasegrad.cli.words import Json, Plot, check_places, put, put_json, tables

#: How the commands are used, for their help.
EXAMPLES = {
    "grid": ("phasegrad grid case118 --scale 1.3 --relieve 8-5 --plot grid.png",),
}


_GRID = "What to ask of it"


def grid(
    case: Annotated[
        str,
        typer.Argument(
            autocompletion=one_of(grid_cases), help="An IEEE case: case9, case14, case30, case39, case57, case118, ..."
        ),
    ],
    scale: Annotated[
        float, typer.Option(metavar="X", rich_help_panel=_GRID, help="Factor on all injected power.")
    ] = 1.0,
    relieve: Annotated[
        str | None,
        typer.Option(metavar="BUS-BUS", rich_help_panel=_GRID, help="A line to relieve, by its two buses."),
    ] = None,
    json: Json = None,
    plot: Plot = None,
) -> None:
    """Analyse a power grid as an oscillator network: stability, stressed lines, distance to loss of synchrony.

    Exit status: 0 if the grid is synchronous, 1 if it has no stable state, 2 for wrong input.
    """
    from phasegrad.cli.tables.grid import draw_grid, grid_tables

    check_places(json, picture=plot)
    words = f"following the state of {printable(case)} to where synchrony is lost"
    with Console(stderr=True).status(f"{words} ...") as status:

        def show(locked: float, end: float) -> None:
            status.update(f"{words}: at {locked:.4g} of about {end:.4g} times the power ...")

        found = phasegrad.grids.analyse(phasegrad.grids.load(case), scale=scale, relieve=relieve, progress=show)
    tables(json).print(grid_tables(found))
    put(plot, lambda place: draw_grid(found, place), json=json)
    put_json(json, found.as_dict())
    raise typer.Exit(0 if found.synchronous else 1)
