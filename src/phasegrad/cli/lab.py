"""The command that opens the page on which the physics runs: `lab`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from phasegrad._files import printable
from phasegrad.cli.words import check_places

#: How the commands are used, for their help.
EXAMPLES = {
    "lab": ("phasegrad lab model.npz --out lab.html --no-open",),
}


def lab(
    model: Annotated[
        Path | None, typer.Argument(help="A model file to show (default: the paper's network, with a tour).")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the page here, or with a name in .json what is on show (default: a temporary file)."),
    ] = None,
    show: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> None:
    """Open the lab: a page that runs the physics in the browser, where one sees the gradient appear.

    The page is one file that needs no network. A file that is there is never replaced.
    """
    from phasegrad.laboratory import lab as write
    from phasegrad.models import Model

    if out == Path("-"):
        raise ValueError("The page needs a file of its own. Name one with --out.")
    if out is not None and out.exists():
        raise ValueError(f"{printable(out)} is there already. Name another place, or delete it first.")
    check_places(page=out, inputs=[] if model is None else [model])
    page = write(None if model is None else Model.load(model), out=out, open=show)
    typer.echo(f"Wrote {printable(page)}")
