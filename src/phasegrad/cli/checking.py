"""Commands that check and show: `verify`, `draw`, `grid`, `bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import phasegrad
from phasegrad._files import printable
from phasegrad.cli.completing import grid_cases, one_of
from phasegrad.cli.signals import STOPPED
from phasegrad.cli.words import (
    LARGEST_SEED,
    Json,
    Plot,
    check_places,
    failed,
    progress_bar,
    put,
    put_json,
    tables,
    whole_numbers,
)
from phasegrad.studies import Piece

_GRID = "What to ask of it"


def verify(
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="SIZES", help="Network sizes of Table 1 and the universality table (default: as published)."
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="At most so many seeds wherever a study runs over seeds (default: as published)."
        ),
    ] = None,
    json: Json = None,
) -> None:
    """Check the phase-gradient identity by every method, and the paper's sections 3 to 5 with it.

    Exit status: 0 if every check keeps its tolerance, 1 if one misses it or fails, 2 for wrong input.
    """
    from phasegrad.report import verification_tables
    from phasegrad.reproduction import PieceError
    from phasegrad.reproduction import verify as run
    from phasegrad.studies import SIZES, verification_studies

    chosen = SIZES if sizes is None else whole_numbers("sizes", sizes)
    total = sum(len(study.plan(seeds)) for study in verification_studies(chosen))
    check_places(json)
    started: list[str] = []
    try:
        with progress_bar("{task.completed} of {task.total}") as progress:
            task = progress.add_task("starting", total=total)

            def show(piece: Piece) -> None:
                progress.update(task, description=piece.title, completed=len(started))
                started.append(piece.title)

            result = run(chosen, seeds, show)
    except KeyboardInterrupt:
        typer.echo(f"Stopped in piece {len(started)} of {total}; nothing was written.", err=True)
        raise typer.Exit(STOPPED) from None
    except PieceError as error:
        raise failed(error) from None
    tables(json).print(verification_tables(result))
    put_json(json, result.as_dict())
    raise typer.Exit(1 if result.missed else 0)


def draw(
    path: Annotated[Path, typer.Argument(help="Picture to write; ends in .svg, .png or .pdf.")],
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, metavar="N", help="Seed of the 2+5+2 network.")] = 0,
    beta: Annotated[float, typer.Option(min=1e-9, max=1e3, metavar="X", help="Strength of the nudge.")] = 0.1,
) -> None:
    """Draw the two-phase protocol on the paper's 2+5+2 network: settle, nudge, read the gradient."""
    from phasegrad.report import draw_two_phase

    check_places(picture=path)
    put(path, lambda place: draw_two_phase(place, seed=seed, beta=beta))


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
    from phasegrad.report import draw_grid, grid_tables

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


def bench(
    rounds: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Rounds of which the median is taken.")] = 3,
    largest: Annotated[
        int,
        typer.Option(
            min=10_000,
            max=1_000_000,
            metavar="N",
            help="Oscillators of the largest sparse network, in steps of ten from 10000.",
        ),
    ] = 1_000_000,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of a finished reproduction whose processor time is given in plain updates (default: "
            "reproduction, if there is one).",
        ),
    ] = None,
    plot: Plot = None,
    json: Json = None,
) -> None:
    """Compare speed with the plain way: scipy's fsolve, sample by sample. CPU time, medians, within one run.

    Stopped, it shows no figures: a ratio needs both sides to the end.
    """
    from phasegrad.benchmarks import SIZES, measure
    from phasegrad.report import benchmark_tables, draw_growth
    from phasegrad.reproduction import cpu_seconds_of

    source = folder or Path("reproduction")
    check_places(json, picture=plot, inputs=[source / "results.json", source / "pieces"])
    if folder is not None and cpu_seconds_of(folder) is None:
        raise ValueError(f"--folder must be the folder of a finished reproduction. {folder!s:.80} is none.")
    started = ["nothing yet"]
    try:
        with Console(stderr=True).status("starting ...") as status:

            def show(words: str) -> None:
                started.append(words)
                status.update(f"{words} ...")

            figures = measure(rounds, [n for n in SIZES if n <= largest], source, show)
    except KeyboardInterrupt:
        typer.echo(f"Stopped while it measured {started[-1]}; no figures are shown.", err=True)
        raise typer.Exit(STOPPED) from None
    tables(json).print(benchmark_tables(figures))
    put(plot, lambda place: draw_growth(figures["sparse"], place), json=json)
    put_json(json, figures)
