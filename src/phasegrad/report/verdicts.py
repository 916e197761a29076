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


def verdict_tables(reproduction: Reproduction) -> RenderableType:
    """Return every claim with its verdict, and how many got which."""
    table = plain_table("Claims of the paper", "")
    for heading in ("study", "claim", "where", "verdict"):
        table.add_column(heading)
    for study in reproduction.studies:
        name = study.name
        for judgement in reproduction.outcomes[study.name].judgements:
            badge = Text(judgement.verdict.value, style=_COLOURS[judgement.verdict])
            table.add_row(name, judgement.claim.sentence, judgement.claim.where, badge)
            name = ""
    counts = Text(f"{len(reproduction.judgements)} claims")
    for verdict, count in reproduction.counts.items():
        if count:
            counts.append("; ").append(f"{count} {verdict.value}", style=_COLOURS[verdict])
    return Group(table, counts)


def studies_table(studies: Sequence[Study]) -> Table:
    """Return the studies with their claims."""
    table = plain_table("Studies", "run one with: phasegrad reproduce NAME")
    for heading in ("name", "title", "claim", "where"):
        table.add_column(heading)
    for study in studies:
        name, title = study.name, study.title
        for claim in study.claims:
            table.add_row(name, title, claim.sentence, claim.where)
            name, title = "", ""
    return table
