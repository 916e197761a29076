"""The command line: words to calls."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

import phasegrad
from phasegrad._files import printable
from phasegrad.cli.checking import bench, draw, grid, verify
from phasegrad.cli.reproducing import reproduce, studies
from phasegrad.cli.training import predict, train


class _Readable:
    """Help that shows flags as flags, and no Python types for lists."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
            elif param.nargs == -1:
                param.display_type_rich = lambda **_: "any number"
        return params


class _Command(_Readable, TyperCommand):
    """One of the commands."""


class _Group(_Readable, TyperGroup):
    """All of them."""


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="Learning in networks of coupled oscillators: certified equilibria and exact gradients.",
)
_COMMANDS = (
    (reproduce, "phasegrad reproduce ablation --seeds 20 --out pilot --open"),
    (studies, "phasegrad studies --json studies.json"),
    (verify, "phasegrad verify --sizes 6,10,50 --seeds 5 --json verify.json"),
    (draw, "phasegrad draw two-phase.svg --seed 3 --beta 0.05"),
    (train, "phasegrad train vowels --vowels a,i --seeds 0:100 --learn omega --init spectral --json out.json"),
    (predict, "phasegrad predict model.npz samples.csv --json classes.json"),
    (grid, "phasegrad grid case118 --scale 1.3 --relieve 8-5 --plot grid.png"),
    (bench, "phasegrad bench --json bench.json"),
)
for _function, _example in _COMMANDS:
    app.command(cls=_Command, epilog=f"Example: {_example}")(_function)


def main() -> None:
    """Run the command line; errors a user can mend are one sentence, not a traceback."""
    warnings.showwarning = _show_warning
    try:
        app(standalone_mode=True)
    except (ValueError, ImportError, OSError) as error:
        Console(stderr=True).print(f"[red]Error:[/red] {escape(printable(error))}", soft_wrap=True, highlight=False)
        sys.exit(2)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    Console(stderr=True).print(
        f"[yellow]Warning:[/yellow] {escape(printable(message))}", soft_wrap=True, highlight=False
    )


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"phasegrad {phasegrad.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Learning in networks of coupled oscillators: certified equilibria and exact gradients."""
    del version
