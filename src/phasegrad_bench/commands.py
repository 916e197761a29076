"""The command `bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from phasegrad.cli.signals import STOPPED
from phasegrad.cli.words import Json, Plot, check_places, put, put_json, tables

#: How the commands are used, for their help.
EXAMPLES = {
    "bench": ("phasegrad bench --json bench.json",),
}


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
    from phasegrad_bench import SIZES, measure
    from phasegrad_bench.tables import benchmark_tables, draw_growth
    from phasegrad_paper.reproduction import cpu_seconds_of

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
