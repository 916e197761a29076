"""Words of the command line: what they stand for, and what is said when they stand for nothing."""

from __future__ import annotations

from pathlib import Path


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


def check_place(path: Path) -> None:
    """Refuse a place that cannot be written to before any work is done."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder. Name a file.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"The folder {path.absolute().parent} does not exist. Make it first, or name another place.")
