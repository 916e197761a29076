"""Claims and their verdicts as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from phasegrad.report.console import plain_table
from phasegrad.reproduction import Reproduction
from phasegrad.studies.study import Study, Verdict

_COLOURS = {
    Verdict.REPRODUCED: "green",
    Verdict.HISTORICAL: "cyan",
    Verdict.CONTROLLED: "yellow",
    Verdict.NOT_REPRODUCED: "red",
    Verdict.UNTESTABLE: "bright_black",
}
_SHORT = {
    Verdict.HISTORICAL: "historical variant only",
    Verdict.CONTROLLED: "a control changes it",
}


def verdict_tables(reproduction: Reproduction) -> RenderableType:
    """Return every claim with its verdict, and how many got which."""
    table = plain_table("Claims of the paper", "")
    for heading in ("claim", "where", "verdict"):
        table.add_column(heading, no_wrap=True)
    for judgement in reproduction.judgements:
        words = _SHORT.get(judgement.verdict, judgement.verdict.value)
        table.add_row(judgement.claim.key, judgement.claim.where, Text(words, style=_COLOURS[judgement.verdict]))
    counts = Text(f"{len(reproduction.judgements)} claims")
    for verdict, count in reproduction.counts.items():
        if count:
            counts.append("; ").append(f"{count} {verdict.value}", style=_COLOURS[verdict])
    return Group(table, counts)


def studies_table(studies: Sequence[Study]) -> Table:
    """Return the studies with their claims."""
    table = plain_table(f"{len(studies)} studies", "run one with: phasegrad reproduce NAME")
    table.add_column("study and its claims", no_wrap=True)
    table.add_column("")
    for study in studies:
        table.add_row(Text(study.name, style="bold"), Text(study.title, style="bold"))
        for claim in study.claims:
            table.add_row(f"  {claim.key}", claim.sentence)
    return table
