"""Tables for the terminal: those of studies, the claims and their verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from phasegrad._validation import counted
from phasegrad.cli.tables import table
from phasegrad_paper.report.verdicts import BADGES
from phasegrad_paper.reproduction import Reproduction, Verification
from phasegrad_paper.studies import Study


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
