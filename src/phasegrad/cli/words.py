"""Words of the command line: what they stand for, what is said when they stand for nothing, and files asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

Json = Annotated[Path | None, typer.Option(help="Also write every figure to this JSON file.")]


def seed_list(text: str) -> list[int]:
    """Return the seeds of 3, of 0,2,5 or of 0:100."""
    try:
        if ":" in text:
            first, last = (int(part) for part in text.split(":"))
            numbers = list(range(first, last))
        else:
            numbers = [int(word) for word in text.split(",") if word.strip()]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 0:
        raise ValueError(f"--seeds must be a seed (3), a list (0,2,5) or a range (0:100), none below 0. Got {text!r}.")
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"--seeds names a seed twice. Got {text!r}.")
    return numbers


def whole_numbers(name: str, text: str) -> list[int]:
    """Return the whole numbers of a list such as 6,10,50."""
    try:
        return [int(word) for word in text.split(",") if word.strip()]
    except ValueError:
        raise ValueError(
            f"--{name} must be whole numbers separated by commas, such as 6,10,50. Got {text!r}."
        ) from None


def learn_words(text: str) -> dict[str, float] | list[str]:
    """Return the parameters of omega,coupling or, with rates, of omega=0.01,coupling=0.5."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    pairs = [word.partition("=") for word in words]
    if words and not any(sign for _, sign, _ in pairs):
        return words
    try:
        if words and all(sign for _, sign, _ in pairs):
            return {name.strip(): float(rate) for name, _, rate in pairs}
    except ValueError:
        pass
    raise ValueError(
        f"--learn must be names of parameters (omega,coupling), or all of them with rates (omega=0.01,coupling=0.5). "
        f"Got {text!r}."
    )


def check_places(*paths: Path | None, picture: Path | None = None) -> None:
    """Refuse places that cannot be written to before any work is done."""
    seen = set()
    for path in (each for each in (*paths, picture) if each is not None):
        if path.is_dir():
            raise ValueError(f"{path} is a folder. Name a file.")
        if not path.absolute().parent.is_dir():
            folder = path.absolute().parent
            raise ValueError(f"The folder {folder} does not exist. Make it first, or name another place.")
        if path.resolve() in seen:
            raise ValueError(f"Two files cannot be written to one place. Got {path} twice.")
        seen.add(path.resolve())
    if picture is not None:
        from phasegrad.report import picture_format

        picture_format(picture)


def put(path: Path | None, write: Callable[[Path], object], remark: str = "") -> None:
    """Write a file if one was asked for, and say so."""
    if path is not None:
        write(path)
        typer.echo(f"Wrote {path}{remark}")


def put_json(path: Path | None, data: Any) -> None:
    """Write data as JSON if that was asked for, and say so."""
    from phasegrad._files import write_json

    put(path, lambda place: write_json(place, data))


def progress_bar(words: str) -> Progress:
    """Return a bar on standard error that vanishes at the end; ``words`` stand behind it."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description:<24}"), BarColumn(), TextColumn(words), TimeElapsedColumn()
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
