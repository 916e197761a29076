"""The command line: words to calls."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from contextlib import suppress
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

import phasegrad
from phasegrad._files import printable
from phasegrad.cli.chips import chip
from phasegrad.cli.grid import grid
from phasegrad.cli.laboratory import lab
from phasegrad.cli.signals import STOPPED, Stops, heeding_signals, leave_in_peace
from phasegrad.cli.simulating import simulate
from phasegrad.cli.solving import ising
from phasegrad.cli.training import predict, train
from phasegrad.cli.words import check_arguments, check_words, refused, with_words_of

_DEBUG = "--debug"
_ADD_DEBUG = f"\n\nWith {_DEBUG} an error comes with the traceback behind it."


class _Readable:
    """Help that reads in 80 columns: flags as flags, and no Python types."""

    #: The panel of --help itself; None is that of options without one.
    help_panel: str | None = None

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            # What is allowed is said in the error; in 80 columns there is no room for [1e-09<=x<=1000.0].
            param._get_number_range_help_str = lambda: None
            if getattr(param, "is_flag", False):
                param.metavar = ""
            elif param.param_type_name == "argument":
                param.display_type_rich = lambda many=param.nargs == -1, **_: "any number" if many else None
            if param.name == "help":
                param.rich_help_panel = self.help_panel
        return params


class _Command(_Readable, TyperCommand):
    """One of the commands: passes over nothing that was typed, and speaks of its options by the words for them."""

    help_panel = "More"  # below those of its own

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        if ctx.resilient_parsing:  # a shell asks how a line may go on
            return super().parse_args(ctx, args)
        args = [word for word in args if word != _DEBUG]
        given, _, order = self.make_parser(ctx).parse_args(args=list(args))
        check_words(ctx, given, order)
        if not given.get("help"):
            check_arguments(ctx, self.params, given, str(self.epilog).removesuffix(_ADD_DEBUG))
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            if error.param is None or given.get(error.param.name) is None:
                raise
            return ctx.fail(refused(error.param, given[error.param.name], error.message))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("Stopped.", err=True)
            raise typer.Exit(STOPPED) from None
        except ValueError as error:
            raise ValueError(with_words_of(self.params, str(error))).with_traceback(
                error.__traceback__
            ) from error.__cause__


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
    rich_markup_mode="rich",
    help="Learning in networks of coupled oscillators: certified equilibria and exact gradients.",
)
_LEARN, _TIME, _BUILD = "Learn", "Dynamics", "Hardware and grids"
_COMMANDS = (
    (
        train, _LEARN,
        "phasegrad train flowers.csv --target species --save model.npz",
        "phasegrad train vowels --seeds 0:100 --init spectral --json out.json",
    ),
    (predict, _LEARN, "phasegrad predict model.npz samples.csv --out answers.csv --json answers.json"),
    (lab, _LEARN, "phasegrad lab model.npz --out lab.html --no-open"),
    (simulate, _TIME, "phasegrad simulate ring --size 12 --time 50 --noise 0.01 --plot run.png"),
    (ising, _TIME, "phasegrad ising graph.txt --runs 100 --plot cuts.png --json cuts.json"),
    (chip, _BUILD, "phasegrad chip vowels --chips 50 --plot budget.svg --json out.json"),
    (grid, _BUILD, "phasegrad grid case118 --scale 1.3 --relieve 8-5 --plot grid.png"),
)  # fmt: skip
_PROVIDED = [row for point in entry_points(group="phasegrad.commands") for row in point.load()]
for _function, _panel, *_examples in (*_COMMANDS, *_PROVIDED):
    _words = "\n\n".join(f"Example: {_example}" for _example in _examples) + _ADD_DEBUG
    app.command(cls=_Command, rich_help_panel=_panel, epilog=_words)(_function)


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
        app(standalone_mode=True, prog_name="phasegrad")
    except SystemExit as end:
        return end.code
    except Exception as error:
        if stops.received is not None:  # an import that a signal breaks off may make any error of it
            return STOPPED
        if not isinstance(error, _MENDABLE):
            raise
        if _DEBUG in sys.argv[1:]:
            traceback.print_exc()
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
    debug: Annotated[
        bool,
        typer.Option(_DEBUG, help="Show the traceback behind an error; may also stand after the command."),
    ] = False,
) -> None:
    """Learning in networks of coupled oscillators: certified equilibria and exact gradients."""
    del version, debug
