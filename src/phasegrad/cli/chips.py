"""The command about hardware: `chip`."""

from __future__ import annotations

from typing import Annotated

import typer

from phasegrad.cli.completing import chip_tasks, one_of, presets
from phasegrad.cli.signals import STOPPED
from phasegrad.cli.words import Json, Plot, check_places, progress_bar, put, put_json, tables

_MOST_CHIPS = 1000
_CHIPS, _HOW = "Which chips", "How they learn"


_Task = Annotated[
    str,
    typer.Argument(
        autocompletion=one_of(chip_tasks), help="What the chips learn: vowels, or digits (minutes per fault)."
    ),
]
_Preset = Annotated[
    str,
    typer.Option(
        metavar="NAME", rich_help_panel=_CHIPS, autocompletion=one_of(presets),
        help="Kind: ideal, cmos-ring-65nm, cmos-ring-aggressive or lc-board.",
    ),
]  # fmt: skip
_Chips = Annotated[
    int,
    typer.Option(
        min=1, max=_MOST_CHIPS, metavar="N", rich_help_panel=_CHIPS,
        help=f"How many, up to {_MOST_CHIPS}, each with its own faults.",
    ),
]  # fmt: skip
_Epochs = Annotated[
    int | None,
    typer.Option(
        min=0, max=10_000, metavar="N", rich_help_panel=_HOW, help="Epochs to train (default: that of the task)."
    ),
]
_Beta = Annotated[
    float | None,
    typer.Option(
        min=1e-9, max=1e3, metavar="X", rich_help_panel=_HOW, help="Strength of the nudge (default: that of the task)."
    ),
]


def chip(
    task: _Task,
    preset: _Preset = "cmos-ring-65nm",
    chips: _Chips = 10,
    epochs: _Epochs = None,
    beta: _Beta = None,
    json: Json = None,
    plot: Plot = None,
) -> None:
    """Say what a kind of chip can learn, and which of its faults is to blame.

    Chips learn with no fault, with each fault alone and with all together; every number of a preset has its source.
    """
    from phasegrad.hardware import error_budget
    from phasegrad.hardware import preset as kind_of
    from phasegrad.hardware import task as task_of
    from phasegrad.report import chip_tables, draw_budget

    check_places(json, picture=plot)
    kind, chosen = kind_of(preset), task_of(task, chips)
    changes = {name: value for name, value in (("epochs", epochs), ("beta", beta)) if value is not None}
    plan = chosen.plan.replace(**changes)
    progress = progress_bar("epoch {task.completed:.0f} of {task.total:.0f}")
    bar = progress.add_task("starting", total=max(plan.epochs, 1))

    def show(fault: str, epoch: int) -> None:
        progress.update(bar, completed=epoch, description=f"faults: {fault}")

    try:
        with progress:
            found = error_budget(chosen.networks, chosen.data, chosen.fitted(kind), plan, progress=show)
    except KeyboardInterrupt:
        typer.echo("Stopped; nothing was written.", err=True)
        raise typer.Exit(STOPPED) from None
    tables(json).print(chip_tables(found))
    put(plot, lambda place: draw_budget(found, place), json=json)
    put_json(json, found.as_dict())
