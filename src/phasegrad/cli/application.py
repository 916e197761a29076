"""The commands by name, how they are listed and loaded, and what becomes of their errors."""

from __future__ import annotations

import os
import re
import sys
import traceback
import warnings
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from phasegrad.cli.signals import STOPPED, Stops

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
        from phasegrad.cli.words import check_arguments, check_words, refused

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
            from phasegrad.cli.words import with_words_of

            raise ValueError(with_words_of(self.params, str(error))).with_traceback(
                error.__traceback__
            ) from error.__cause__


class _Group(_Readable, TyperGroup):
    """All of them: listed by their first sentences, and imported when they run."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(_homes())

    def get_command(self, ctx: Any, name: str) -> Any:  # noqa: ARG002
        """Return what the list shows of a command."""
        if name not in _homes():
            return None
        return TyperCommand(name, help=_first_sentence(_homes()[name]), rich_help_panel=_panel_of(name))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        return name, command(str(name)), rest


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
#: The commands of the library by the panel of the help that they stand in.
_PANELS = {
    "Learn": ("train", "predict", "lab"),
    "Dynamics": ("simulate", "ising"),
    "Hardware and grids": ("chip", "grid"),
}
_OTHERS = "From other packages"


@cache
def _homes() -> dict[str, str]:
    """Return where every command is, as module:function: those of the library, then those of entry points."""
    own = {name: f"phasegrad.cli.{name}:{name}" for names in _PANELS.values() for name in names}
    return own | {point.name: point.value for point in sorted(entry_points(group="phasegrad.commands"))}


def _panel_of(name: str) -> str:
    return next((panel for panel, names in _PANELS.items() if name in names), _OTHERS)


def _first_sentence(home: str) -> str:
    """Return the first sentence of a command's docstring, read from its source: nothing is imported for a list."""
    module, _, function = home.partition(":")
    top, *inside = module.split(".")
    spec = find_spec(top)
    if spec is None or not spec.submodule_search_locations:
        return ""
    source = Path(spec.submodule_search_locations[0]).joinpath(*inside).with_suffix(".py").read_text(encoding="utf-8")
    found = re.search(rf'^def {function}\(.*?"""(.*?)(?:\n\n|""")', source, flags=re.DOTALL | re.MULTILINE)
    return "" if found is None else " ".join(found[1].split())


@cache
def command(name: str) -> Any:
    """Import a command and return it; its module has its examples."""
    module, _, function = _homes()[name].partition(":")
    home = import_module(module)
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    words = "\n\n".join(f"Example: {example}" for example in home.EXAMPLES[name]) + _ADD_DEBUG
    alone.command(name, cls=_Command, epilog=words)(getattr(home, function))
    return get_command(alone)


def commands() -> dict[str, Any]:
    """Import all commands and return them by name."""
    return {name: command(name) for name in _homes()}


def run(stops: Stops) -> int | str | None:
    """Run the command line and return its exit status."""
    _forget_impossible_widths()
    return _status(stops)


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
    _say("[red]Error:[/red]", words)
    return 2


def _forget_impossible_widths() -> None:
    """Let the size of the terminal be measured where the environment names one in which nothing can be printed."""
    for name in ("COLUMNS", "LINES"):
        words = os.environ.get(name, "")
        if words and not (words.isascii() and words.isdigit() and 0 < int(words[:9]) <= _WIDEST):
            del os.environ[name]


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    _say("[yellow]Warning:[/yellow]", message)


def _say(mark: str, message: object) -> None:
    """Print a line about what went wrong, with nothing in it that could move the cursor."""
    from rich.console import Console
    from rich.markup import escape

    from phasegrad._files import printable

    Console(stderr=True).print(f"{mark} {escape(printable(message))}", soft_wrap=True, highlight=False)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"phasegrad {version('phasegrad')}")
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    debug: Annotated[
        bool,
        typer.Option(_DEBUG, help="Show the traceback behind an error; may also stand after the command."),
    ] = False,
) -> None:
    """Learning in networks of coupled oscillators: certified equilibria and exact gradients."""
    del show_version, debug
