"""Words that a shell completes: what an option or an argument may be, as far as there is a list of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

Completion = Callable[[str], list[str]]


def one_of(names: Callable[[], Iterable[str]]) -> Completion:
    """Return a completion by names, which are looked up when a shell asks for them."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


def tasks_and_tables(incomplete: str) -> list[str]:
    """Complete the name of a task, or of a CSV file."""
    return one_of(tasks)(incomplete) + sorted(str(path) for path in Path().glob(f"{_literal(incomplete)}*.csv"))


def tasks() -> tuple[str, ...]:
    """Return the tasks that have a name."""
    from phasegrad.datasets import IMAGES
    from phasegrad.runs import CLASSIFIER_TASKS

    return (*CLASSIFIER_TASKS, *IMAGES)


def starts() -> Iterable[str]:
    """Return the names of initial frequencies."""
    from phasegrad.initial import STARTS

    return STARTS


def presets() -> Iterable[str]:
    """Return the names of kinds of chip."""
    from phasegrad import hardware

    return hardware.presets()


def chip_tasks() -> Iterable[str]:
    """Return what chips learn."""
    from phasegrad.hardware import TASKS

    return TASKS


def grid_cases() -> Iterable[str]:
    """Return the names of power grids."""
    from phasegrad.grids import CASES

    return CASES


def _literal(text: str) -> str:
    """Return a text as a pattern that only matches itself."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in text)
