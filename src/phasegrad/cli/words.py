"""Words of the command line: what they stand for, what is said when they stand for nothing, and files asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from phasegrad._files import check_place, is_standard_output, json_text, printable, write_json
from phasegrad._validation import parse_float, parse_int, require

#: Seeds are trained side by side, each with a network and data of its own in memory.
MOST_SEEDS = 100_000
#: The largest that every generator of random numbers takes, scikit-learn's too.
LARGEST_SEED = 2**32 - 1
_OF_PLAN = "The plan"  # names a parameter that the network does not have
_PARAMETER = re.compile(r"The '(\w+)(\[[^]]*\])?' (?:parameter )?of [^.]*? (?=must )")

#: The panel of the help for files that are asked for, and the options of most commands in it.
RESULTS = "Where results go"
Json = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", rich_help_panel=RESULTS, help="Write every figure, a .json file; - is standard output."
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(metavar="FILE", rich_help_panel=RESULTS, help="Draw a picture; ends in .svg, .png or .pdf."),
]
_DASH = Path("-")
#: Options of which metavar are numbers, how they are read, and what they must be.
_NUMBERS: dict[str, tuple[Callable[[str], float], str]] = {
    "N": (parse_int, "a whole number"),
    "X": (parse_float, "a number"),
}
#: How typer says what a number must be, and how it is said here.
_OURS = {
    ", unable to parse string as an integer": "", ", unable to parse string as a number": "",
    "Input should be": "It must be", "a valid integer": "a whole number", "a valid number": "a number",
    "greater than or equal to": "at least", "less than or equal to": "at most",
}  # fmt: skip
#: Characters of a bar, which leaves room for the words around it in 80 columns.
_BAR = 14


def check_words(ctx: Any, given: Mapping[str, Any], order: Iterable[Any]) -> None:
    """Refuse options without a value, options given twice, of which one would have no effect, and words for numbers."""
    seen: set[str] = set()
    for param in order:
        word, value = _word_of(param), given.get(param.name)
        if isinstance(value, str) and not value.strip():
            ctx.fail(f"{word} has no value. Give one, or leave it out.")
        if word in seen:
            ctx.fail(f"{word} was given twice. Give it once.")
        seen.add(word)
        if isinstance(value, str) and param.metavar in _NUMBERS:
            _check_number(ctx, param, value)


def _check_number(ctx: Any, param: Any, value: str) -> None:
    """Refuse what is no number as it is written everywhere, such as 1_0, which Python would take for ten."""
    parse, kind = _NUMBERS[param.metavar]
    try:
        parse(value)
    except ValueError:
        ctx.fail(refused(param, value, f"It must be {kind}."))


def check_arguments(ctx: Any, params: Iterable[Any], given: Mapping[str, Any], examples: str) -> None:
    """Refuse a line without an argument that is needed: say what may stand there, and show a line that is whole."""
    for param in params:
        if param.required and not given.get(param.name):
            ctx.fail(f"{_word_of(param)} is missing. {param.help.rstrip('.')}.\n\n{examples}")


def refused(param: Any, value: object, reason: str) -> str:
    """Return a sentence about a value that an option does not take, for one of typer, which does not name the value."""
    for theirs, ours in _OURS.items():
        reason = reason.replace(theirs, ours)
    return f"{_word_of(param)} cannot be {printable(value)!r:.80}. {reason.rstrip('.')}."


def with_words_of(params: Iterable[Any], message: str) -> str:
    """Return a message about a parameter as one about the option or argument of that name, where there is one."""
    found = _PARAMETER.match(message)
    words = {param.name: _word_of(param) for param in params}
    if "learn" in words and message.startswith(_OF_PLAN):  # which has them from there
        return f"{words['learn']}{message.removeprefix(_OF_PLAN)}"
    if found is None or found[1] not in words:
        return message
    return f"{words[found[1]]} {message[found.end() :]}"


def _word_of(param: Any) -> str:
    """Return how an option or an argument is called on the command line."""
    word = str(param.opts[0])
    return word if word.startswith("-") else word.upper()


def seed_list(text: str) -> list[int]:
    """Return the seeds of 3, of 0,2,5 or of 0:100."""
    try:
        first, colon, last = text.partition(":")
        if colon:
            begin = parse_int(first)
            numbers = list(range(begin, min(parse_int(last), begin + MOST_SEEDS + 1)))
        else:
            numbers = [parse_int(word) for word in text.split(",") if word.strip()]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 0 or max(numbers) > LARGEST_SEED:
        raise ValueError(
            "--seeds must be a seed (3), a list (0,2,5) or a range (0:100), none below 0 or above "
            f"{LARGEST_SEED}. Got {text!r:.80}."
        )
    if len(numbers) > MOST_SEEDS:
        raise ValueError(f"--seeds must be at most {MOST_SEEDS} seeds. Train a part of {text!r:.80} at a time.")
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"--seeds names a seed twice. Got {text!r:.80}.")
    return numbers


def whole_numbers(name: str, text: str) -> list[int]:
    """Return the whole numbers of a list such as 6,10,50."""
    try:
        numbers = [parse_int(word) for word in text.split(",") if word.strip()]
    except ValueError:
        numbers = []
    if not numbers:
        raise ValueError(f"--{name} must be whole numbers separated by commas, such as 6,10,50. Got {text!r:.80}.")
    return numbers


def learn_words(text: str) -> dict[str, float] | list[str]:
    """Return the parameters of omega,coupling or, with rates, of omega=0.01,coupling=0.5."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    pairs = [word.partition("=") for word in words]
    names = [name.strip() for name, _, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError(f"--learn names a parameter twice. Got {text!r:.80}.")
    if words and not any(sign for _, sign, _ in pairs):
        return words
    try:
        if words and all(sign for _, sign, _ in pairs):
            return {name.strip(): parse_float(rate) for name, _, rate in pairs}
    except ValueError:
        pass
    raise ValueError(
        f"--learn must be names of parameters (omega,coupling), or all of them with rates (omega=0.01,coupling=0.5). "
        f"Got {text!r:.80}."
    )


def check_places(
    json: Path | None = None,
    *,
    model: Path | None = None,
    picture: Path | None = None,
    page: Path | None = None,
    table: Path | None = None,
    inputs: Sequence[Path] = (),
) -> None:
    """Refuse, before any work is done, places for results that must not or cannot be written to.

    Those are places that are read from, names that say another kind of file than is written there, and files that are
    there and are no results of the same kind: a command may replace what it wrote itself, and nothing else.
    """
    if model == _DASH:
        raise ValueError("A model is not text and needs a file of its own. Name one with --save.")
    read = {_real(path) for path in inputs}
    seen = set()
    asked = (model, json, picture, page, table)
    for path in (each for each in asked if each is not None and not (each is json and _printed(each))):
        place, named = _real(path), printable(path)
        if os.path.isdir(path):
            raise ValueError(f"{named} is a folder. Name a file.")
        if not os.path.isdir(path.absolute().parent):
            folder = printable(path.absolute().parent)
            raise ValueError(f"The folder {folder} does not exist. Make it first, or name another place.")
        if place in seen:
            raise ValueError(f"Two files cannot be written to one place. Got {named} twice.")
        if read & {place, *place.parents} or any(_same(path, each) for each in inputs):
            raise ValueError(f"{named} is what this command reads. Name another place to write to.")
        check_place(path)
        seen.add(place)
    _check_kinds(json, model, picture, table)


def _check_kinds(json: Path | None, model: Path | None, picture: Path | None, table: Path | None) -> None:
    """Refuse names that end in another way than such files do, what is there and no such file, and a lacking extra."""
    endings = (("--json", json, ".json"), ("--save", model, ".npz"), ("--out", table, ".csv"))
    for word, path, ending in endings:
        if path is not None and not _is_stream(path) and path.suffix.lower() != ending:
            other = " or be -" if word == "--json" else ""
            raise ValueError(f"{word} must end in {ending}{other}. Got {printable(path)!r:.80}.")
    if model is not None and model.is_file():
        _check_replaced(model)
    if table is not None and table.is_file():
        _check_answers(table)
    if picture is not None:
        from phasegrad.pictures import picture_format

        picture_format(picture)
        require(("matplotlib",), "plot", "A picture")


def _check_replaced(path: Path) -> None:
    """Refuse to put a model in the place of a file that is none."""
    from phasegrad.models import check_model_file

    try:
        check_model_file(path)
    except ValueError as error:
        raise ValueError(f"{error} --save replaces models alone: name another place, or delete it first.") from None


def _check_answers(path: Path) -> None:
    """Refuse to put answers in the place of a table that holds none."""
    from phasegrad.runs import holds_answers

    if not holds_answers(path):
        raise ValueError(
            f"{printable(path)} is there already and holds no answers of phasegrad predict. Name another place, or "
            "delete it first."
        )


def _is_stream(path: Path) -> bool:
    """Whether this is standard output, or a device or a pipe, which may have any name."""
    return _printed(path) or (path.exists() and not path.is_file())


def require_torch(purpose: str, device: str) -> None:
    """Refuse, before any work is done, to go on without PyTorch or without a device."""
    from phasegrad.training import check_device

    require(("torch",), "torch", purpose)
    check_device(device)


def tables(json: Path | None) -> Console:
    """Return where tables go: standard output, or standard error where JSON goes to standard output."""
    return Console(stderr=json is not None and _printed(json))


def put(path: Path | None, write: Callable[[Path], object], remark: str = "", *, json: Path | None = None) -> None:
    """Write a file if one was asked for, and say so where tables go."""
    if path is not None:
        write(path)
        typer.echo(f"Wrote {printable(path)}{remark}", err=tables(json).stderr)


def put_json(path: Path | None, data: Any) -> None:
    """Write data as JSON if that was asked for, and say so; on standard output it stands alone."""
    if path is not None and _printed(path):
        typer.echo(json_text(data), nl=False)
    else:
        put(path, lambda place: write_json(place, data))


def _printed(path: Path) -> bool:
    return path == _DASH or is_standard_output(path)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _same(path: Path, other: Path) -> bool:
    """Whether both are one file, under whatever names."""
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)


def failed(error: Exception) -> typer.Exit:
    """Show which piece of work failed, with its traceback, and return the end of the command."""
    for note in error.__notes__:
        typer.echo(note, err=True)
    typer.echo(f"Error: {printable(error)}", err=True)
    return typer.Exit(1)


def progress_bar(words: str) -> Progress:
    """Return a bar on standard error that vanishes at the end; ``words`` stand behind it."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description:<20}"), BarColumn(_BAR), TextColumn(words), TimeElapsedColumn()
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
