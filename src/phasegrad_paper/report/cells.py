"""How the columns of a table are folded to fit the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from phasegrad.cli.tables import Column, columns
from phasegrad_paper.studies import Table

# On the page, in pixels: a character, what is around a cell, the width of the page, and that of phones and tablets.
_CHARACTER, _PADDING, _PAGE = 8.4, 20, 1015
_WIDTHS = (("small", 340), ("medium", 660), ("large", math.inf))


class Part(NamedTuple):
    """Columns that stand side by side, and how wide they are at the least: "small", "medium" or "large"."""

    columns: list[Column]
    width: str


def folded(table: Table) -> list[Part]:
    """Return the columns of a table in parts that fit a page, each beside the first column, the key columns first."""
    head, *others = columns(table.columns, table.rows)
    left = sorted(others, key=lambda column: column.heading not in table.key) if table.key else list(others)
    parts: list[list[Column]] = []
    while left or not parts:
        chosen = [head]
        while left and (len(chosen) == 1 or _pixels([*chosen, left[0]]) <= _PAGE):
            chosen.append(left.pop(0))
        # As the table has them, whatever came first.
        parts.append([head, *(column for column in others if any(column is each for each in chosen))])
    return [Part(part, next(name for name, room in _WIDTHS if _pixels(part, wrapped=True) <= room)) for part in parts]


def _pixels(shown: Sequence[Column], *, wrapped: bool = False) -> float:
    widths = [column.least if wrapped else column.wanted for column in shown]
    return sum(_CHARACTER * width + _PADDING for width in widths)
