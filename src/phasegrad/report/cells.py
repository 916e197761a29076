"""How numbers look in a table: as many digits as tell the rows apart, the same in a whole column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from phasegrad._files import printable
from phasegrad.studies import Table

NOTHING = "–"
_DIGITS = 4
_MOST_DECIMALS = 8
# On the page, in pixels: a character, what is around a cell, the width of the page, and that of phones and tablets.
_CHARACTER, _PADDING, _PAGE = 8.4, 20, 1015
_WIDTHS = (("small", 340), ("medium", 660), ("large", math.inf))
_LINE = 26


@dataclass(frozen=True)
class Column:
    """A column as it is shown: its heading, its cells as text, and whether they are numbers and stand to the right."""

    heading: str
    cells: list[str]
    numeric: bool

    @property
    def least(self) -> int:
        """The width in characters that it needs: of its longest number, or of its longest word."""
        words = [word for text in (self.heading, *([] if self.numeric else self.cells)) for word in text.split()]
        return max((len(each) for each in (*words, *(self.cells if self.numeric else ()))), default=0)

    @property
    def wanted(self) -> int:
        """The width in characters at which it reads well: words may break into lines, but not too often."""
        longest = max((len(cell) for cell in self.cells), default=0)
        return max(self.least, min(longest, _LINE))


class Part(NamedTuple):
    """Columns that stand side by side, and how wide they are at the least: "small", "medium" or "large"."""

    columns: list[Column]
    width: str


def folded(table: Table) -> list[Part]:
    """Return the columns of a table in parts that fit a page, each beside the first column, the key columns first."""
    head, *others = columns(table)
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


def columns(table: Table) -> list[Column]:
    """Return the columns of a table with every cell as text."""
    shown = []
    for k, heading in enumerate(table.columns):
        values = [row[k] for row in table.rows]
        shown.append(
            Column(printable(heading), _cells(values), any(map(_like_number, values)) and not any(map(_words, values)))
        )
    return shown


def _cells(values: Sequence[Any]) -> list[str]:
    decimals = max((_decimals(value) for value in values if _plain(value)), default=0)
    return [_cell(value, decimals) for value in values]


def _cell(value: Any, decimals: int) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float):
        return printable(value)
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    text = f"{value:.{decimals}f}" if _plain(value) else f"{value:.1e}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def _plain(value: Any) -> bool:
    """Whether this is a fraction that reads best without an exponent."""
    return isinstance(value, float) and math.isfinite(value) and (value == 0 or 1e-3 <= abs(value) < 1e6)


def _decimals(value: float) -> int:
    """Return the decimals a number needs: four digits, or more where it is close to one and the rest matters."""
    if value == 0:
        return 0
    smallest = min(abs(value), 1 - abs(value)) if 0.999 < abs(value) < 1 else abs(value)
    needed = min(max(_DIGITS - 1 - math.floor(math.log10(smallest)), 0), _MOST_DECIMALS)
    return len(f"{value:.{needed}f}".rstrip("0").partition(".")[2])


def _like_number(value: Any) -> bool:
    """Whether a cell is a number, or text that begins with one, such as 47 of 100."""
    if isinstance(value, str):
        return value.lstrip("+-−<>≤≥ ")[:1].isdigit()
    return isinstance(value, int | float) and not isinstance(value, bool)


def _words(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, str) and value.strip("-– ") != "" and not _like_number(value))
