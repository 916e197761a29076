"""Tables for the terminal: as many digits as tell the rows apart, and columns as wide as the terminal allows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from phasegrad._files import printable

NOTHING = "–"
_DIGITS = 4
_MOST_DECIMALS = 8
_LINE = 26


def table(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[Any]], note: str = "", *,
    styles: Iterable[str] = repeat(""),
) -> RenderableType:  # fmt: skip
    """Return a table in the style of all tables here, columns of numbers to the right; ``styles`` are of its rows."""
    cells = columns(headings, [list(row) for row in rows])
    shown = _Fitted(cells, list(islice(styles, len(cells[0].cells))))
    # Not the table's own title and caption, which would break at its width.
    shown_note = [Text(f"{note}\n", style="dim italic")] if note else []
    return Group(Text(printable(title), style="bold"), shown, *shown_note)


@dataclass(frozen=True)
class _Fitted:
    """Columns as wide as the terminal lets them be, broken at blanks alone.

    Columns for which there is no room follow below, beside the first one again, or the first two if both are words.
    """

    columns: list[Column]
    styles: list[str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console
        texts = [[column.heading, *column.cells] for column in self.columns]
        most = [max(map(len, text)) for text in texts]
        least = [max(map(len, " ".join(text).split()), default=0) for text in texts]
        names = [0] if any(column.numeric for column in self.columns[:2]) else [0, 1][: len(most)]
        parts = [list(names)]
        for k in range(len(names), len(most)):
            if len(parts[-1]) > len(names) and _total(least[j] for j in (*parts[-1], k)) > options.max_width:
                parts.append(list(names))
            parts[-1].append(k)
        for part in parts:
            widths = {k: most[k] for k in part}
            while _total(widths.values()) > options.max_width and any(widths[k] > least[k] for k in part):
                widths[max(part, key=lambda k: widths[k] if widths[k] > least[k] else 0)] -= 1
            yield self._part(widths)

    def _part(self, widths: dict[int, int]) -> RichTable:
        shown = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        chosen = [self.columns[k] for k in widths]
        for column, width in zip(chosen, widths.values(), strict=True):
            justify: Any = "right" if column.numeric else "left"
            shown.add_column(Text(column.heading), justify=justify, overflow="fold", width=width)
        for row, style in zip(zip(*(column.cells for column in chosen), strict=True), self.styles, strict=False):
            shown.add_row(*map(Text, row), style=style)
        return shown


def _total(widths: Iterable[int]) -> int:
    """Return the width of a table whose columns have these: two more between two of them, and one at either end."""
    given = list(widths)
    return sum(given) + 2 * len(given)


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


def columns(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[Column]:
    """Return the columns of a table with every cell as text."""
    shown = []
    for k, heading in enumerate(headings):
        values = [row[k] for row in rows]
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
