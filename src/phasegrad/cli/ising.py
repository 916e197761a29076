"""The command about Ising machines: `ising`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from phasegrad.cli.words import LARGEST_SEED, RESULTS, Json, check_places, progress_bar, put, put_json, tables

#: How the commands are used, for their help.
EXAMPLES = {
    "ising": ("phasegrad ising graph.txt --runs 100 --plot cuts.png --json cuts.json",),
}


_MACHINE = "The machine"

_File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="A graph as those of G-set: a line 'nodes edges', then a line 'i j weight' per edge."
    ),
]
_Runs = Annotated[
    int, typer.Option(min=1, max=100_000, metavar="N", rich_help_panel=_MACHINE, help="Runs, side by side.")
]
_Time = Annotated[
    float, typer.Option(min=1e-3, max=1e5, metavar="X", rich_help_panel=_MACHINE, help="How long a run anneals.")
]
_Injection = Annotated[
    float,
    typer.Option(
        min=0.0, max=1e3, metavar="X", rich_help_panel=_MACHINE, help="Second-harmonic injection that 0 rises to."
    ),
]
_Noise = Annotated[
    float,
    typer.Option(min=0.0, max=1e3, metavar="X", rich_help_panel=_MACHINE, help="Phase noise D that falls to 0."),
]
_Seed = Annotated[
    int,
    typer.Option(min=0, max=LARGEST_SEED, metavar="N", rich_help_panel=_MACHINE, help="Seed of phases and noise."),
]
_Plot = Annotated[
    Path | None,
    typer.Option(metavar="FILE", rich_help_panel=RESULTS, help="Draw all cuts here; ends in .svg, .png or .pdf."),
]


def ising(
    file: _File,
    runs: _Runs = 100,
    time: _Time = 200.0,
    injection: _Injection = 0.6,
    noise: _Noise = 0.3,
    seed: _Seed = 0,
    json: Json = None,
    plot: _Plot = None,
) -> None:
    """Cut a graph by an Ising machine made of oscillators: the largest cut of many runs, and its certificate.

    Exit status: 0 if the machine holds the best cut as a stable state, 1 if it does not, 2 for wrong input.
    """
    from phasegrad.cli.tables.ising import draw_cuts, solutions_table
    from phasegrad.ising import Problem, solve

    check_places(json, picture=plot, inputs=[file])
    problem = Problem.read(file)
    with progress_bar("step {task.completed} of {task.total}") as bar:
        task = bar.add_task("annealing", total=None)
        found = solve(
            problem, runs=runs, time=time, injection=(0.0, injection), noise=(noise, 0.0), seed=seed,
            progress=lambda taken, steps: bar.update(task, completed=taken, total=steps),
        )  # fmt: skip
    tables(json).print(solutions_table(found))
    put(plot, lambda place: draw_cuts(found, place), json=json)
    settings = {"time": time, "injection": injection, "noise": noise, "seed": seed}
    put_json(json, {"settings": settings, **found.as_dict()})
    raise typer.Exit(0 if bool(found.stable[found.best]) else 1)
