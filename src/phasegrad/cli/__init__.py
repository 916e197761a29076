"""The command line: words to calls."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

import phasegrad
from phasegrad._files import printable
from phasegrad.cli.checking import bench, draw, grid, verify
from phasegrad.cli.chips import chip
from phasegrad.cli.reproducing import reproduce, studies
from phasegrad.cli.signals import STOPPED, Stops, heeding_signals, leave_in_peace
from phasegrad.cli.simulating import simulate
from phasegrad.cli.training import predict, train
from phasegrad.cli.words import check_words, with_words_of


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
    """One of the commands: passes over nothing that was typed, and speaks of its options by the words for them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given, _, order = self.make_parser(ctx).parse_args(args=list(args))
        check_words(ctx, given, order)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("Stopped.", err=True)
            raise typer.Exit(STOPPED) from None
        except ValueError as error:
            raise ValueError(with_words_of(self.params, str(error))) from error


class _Group(_Readable, TyperGroup):
    """All of them."""


#: Wider terminals are taken for a slip: a line of blanks as wide as that would fill the memory.
_WIDEST = 10_000
_TOO_LARGE = (MemoryError, OverflowError)
#: Errors that say to a user what to do; any other is a mistake of ours, and keeps its traceback.
_MENDABLE = (ValueError, ImportError, OSError, *_TOO_LARGE)

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
    (simulate, "phasegrad simulate ring --size 12 --time 50 --noise 0.01 --plot run.png"),
    (grid, "phasegrad grid case118 --scale 1.3 --relieve 8-5 --plot grid.png"),
    (chip, "phasegrad chip vowels --preset cmos-ring-65nm --chips 50 --plot budget.svg --json out.json"),
    (bench, "phasegrad bench --json bench.json"),
)
for _function, _example in _COMMANDS:
    app.command(cls=_Command, epilog=f"Example: {_example}")(_function)


def main() -> None:
    """Run the command line; errors a user can mend are one sentence, not a traceback."""
    _forget_impossible_widths()
    status: int | str | None = STOPPED
    with heeding_signals() as stops, suppress(KeyboardInterrupt):
        status = _status(stops)
    leave_in_peace()
    sys.exit(stops.status if status == STOPPED else status)


def _status(stops: Stops) -> int | str | None:
    """Run the command and return its exit status."""
    warnings.showwarning = _show_warning
    try:
        app(standalone_mode=True)
    except SystemExit as end:
        return end.code
    except Exception as error:
        if stops.received is not None:  # an import that a signal breaks off may make any error of it
            return STOPPED
        if not isinstance(error, _MENDABLE):
            raise
        words = f"This is too large: {error}. Give smaller numbers." if isinstance(error, _TOO_LARGE) else str(error)
    Console(stderr=True).print(f"[red]Error:[/red] {escape(printable(words))}", soft_wrap=True, highlight=False)
    return 2


def _forget_impossible_widths() -> None:
    """Let the size of the terminal be measured where the environment names one in which nothing can be printed."""
    for name in ("COLUMNS", "LINES"):
        words = os.environ.get(name, "")
        if words and not (words.isascii() and words.isdigit() and 0 < int(words[:9]) <= _WIDEST):
            del os.environ[name]


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
