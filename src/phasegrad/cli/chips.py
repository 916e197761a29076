"""The command about hardware: `chip`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from phasegrad.cli.signals import STOPPED
from phasegrad.cli.words import Json, check_places, put, put_json, tables

_MOST_CHIPS = 1000


def chip(
    task: Annotated[str, typer.Argument(help="What the chips learn: vowels, or digits (minutes per fault).")],
    preset: Annotated[
        str, typer.Option(help="Kind of chip: ideal, cmos-ring-65nm, cmos-ring-aggressive or lc-board.")
    ] = "cmos-ring-65nm",
    chips: Annotated[int, typer.Option(min=1, max=_MOST_CHIPS, help="How many chips, each with its own faults.")] = 10,
    epochs: Annotated[
        int | None, typer.Option(min=0, max=10_000, help="Epochs to train (default: that of the task).")
    ] = None,
    beta: Annotated[
        float | None, typer.Option(min=1e-9, max=1e3, help="Strength of the nudge (default: that of the task).")
    ] = None,
    json: Json = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the budget here; ends in .svg, .png or .pdf.")] = None,
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
    try:
        with Console(stderr=True).status("starting ...") as status:
            found = error_budget(
                chosen.networks, chosen.data, chosen.fitted(kind), plan,
                progress=lambda fault: status.update(f"learning, faults: {fault} ..."),
            )  # fmt: skip
    except KeyboardInterrupt:
        typer.echo("Stopped; nothing was written.", err=True)
        raise typer.Exit(STOPPED) from None
    tables(json).print(chip_tables(found))
    put(plot, lambda place: draw_budget(found, place), json=json)
    put_json(json, found.as_dict())
