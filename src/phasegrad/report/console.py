"""Tables for the terminal: those of studies, the claims and their verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from phasegrad._files import printable
from phasegrad._validation import counted
from phasegrad.report.cells import Column, columns
from phasegrad.report.verdicts import BADGES
from phasegrad.reproduction import Reproduction, Verification
from phasegrad.studies import Study, Table


def table(
    title: str, headings: Sequence[str], rows: Iterable[Sequence[Any]], note: str = "", *,
    styles: Iterable[str] = repeat(""),
) -> RenderableType:  # fmt: skip
    """Return a table in the style of all tables here, columns of numbers to the right; ``styles`` are of its rows."""
    cells = columns(Table("", title, tuple(headings), [list(row) for row in rows]))
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


def verification_tables(result: Verification) -> RenderableType:
    """Return everything a verification found as tables: figures, then what keeps its rule, then the verdict."""
    shown = [each for outcome in result.reproduction.outcomes.values() for each in outcome.tables]
    figures = [table(each.title, each.columns, each.rows, each.note) for each in shown if "-checks" not in each.name]
    rows = []
    for judgement in result.tested:
        for each in judgement.rule:
            quantity, kept = each.bound.quantity, None if judgement.kept is None else each.kept
            rows.append((quantity.words, quantity.text(each.measure), each.bound.place, kept))
    styles = ["red" if row[-1] is False else "" for row in rows]
    headings = ("quantity", "measured", "asked", "kept")
    return Group(*figures, table("What claims and checks ask for", headings, rows, styles=styles), _verdict(result))


def _verdict(result: Verification) -> Text:
    text = Text()
    for judgement in result.missed:
        text.append(f"missed: {judgement.claim.key}: {judgement.reason}\n", style="red")
    for judgement in result.unmeasured:
        why = f"{judgement.reason} {judgement.claim.note}".rstrip()
        text.append(f"not measured: {judgement.claim.key}. {why}\n", style="yellow")
    measured = len(result.tested) - len(result.unmeasured)
    if result.missed:
        text.append(f"{len(result.missed)} of {measured} claims and checks missed their tolerance.", style="bold red")
    else:
        text.append(f"All {measured} claims and checks keep their tolerance.", style="bold green")
    return text


def verdict_tables(reproduction: Reproduction) -> RenderableType:
    """Return every claim with its verdict, and how many got which."""
    found = [(judgement.claim, BADGES[judgement.verdict]) for judgement in reproduction.judgements]
    rows = [(claim.key, claim.where, badge.short) for claim, badge in found]
    styles = [badge.colour for _, badge in found]
    counts = Text(counted(len(found), "claim"))
    for verdict, count in reproduction.counts.items():
        if count:
            counts.append("; ").append(f"{count} {verdict.value}", style=BADGES[verdict].colour)
    return Group(table("Claims of the paper", ("claim", "where", "verdict"), rows, styles=styles), counts)


def studies_table(studies: Sequence[Study], on_request: Sequence[Study] = ()) -> RenderableType:
    """Return the studies with their claims, and what else there is on request."""
    rows = []
    for study in studies:
        rows += [(study.name, study.title), *((f"  {claim.key}", claim.sentence) for claim in study.claims)]
    styles = ["" if name.startswith(" ") else "bold" for name, _ in rows]
    note = "run one with: phasegrad reproduce NAME"
    for study in on_request:
        note += f"\nonly on request: phasegrad reproduce {study.name} ({study.question[0].lower()}{study.question[1:]})"
    title = f"{len(studies)} studies" + (f", and {len(on_request)} on request" if on_request else "")
    return table(title, ("study and its claims", "what it asks or says"), rows, note, styles=styles)
