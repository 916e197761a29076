"""The error budget of a chip as tables and as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from phasegrad._validation import counted
from phasegrad.cli.tables.layout import table
from phasegrad.hardware import Budget, Entry
from phasegrad.pictures import accuracy_axis, drawn


def chip_tables(found: Budget) -> RenderableType:
    """Return what chips reached, fault by fault, for the terminal."""
    programmed = 100 * float(found.deployed.mean()), 100 * float(found.deployed.min())
    lines: list[RenderableType] = [
        Text(str(found.hardware)),
        entry_table(found.entries, ["learned ideally, then programmed", *programmed, "-"]),
        Text(_summary(found), style="bold"),
    ]
    if found.measurement is not None:
        lines.append(Text(f"Advice for the first chip, untrained, by its meter alone. {found.measurement}"))
    return Group(*lines)


def entry_table(entries: Sequence[Entry], *more: Sequence[Any]) -> RenderableType:
    """Return what chips reached as a table, with more rows behind."""
    rows = [
        [each.fault, 100 * float(each.accuracy.mean()), 100 * float(each.accuracy.min()), each.mean_cosine]
        for each in entries
    ]
    columns = ("faults", "mean accuracy, %", "worst chip, %", "cosine of the gradient")
    title = f"Learning on {counted(entries[0].accuracy.size, 'chip')}, test samples"
    return table(title, columns, [*rows, *map(list, more)])


def _summary(found: Budget) -> str:
    readings = counted(found.hardware.readout.readings, "reading")
    words = f"Nudge {found.beta:g}, {readings} per state, {found.runs} runs per chip"
    if math.isfinite(found.seconds):
        words += f" of {found.hardware.seconds:.3g} s, {found.seconds:.3g} s of settling in all"
    return f"{words}. To blame most: {found.blame or 'nothing'}."


def draw_budget(found: Budget, path: Path) -> None:
    """Draw the accuracy of every chip, fault by fault; the ending of the path chooses the format."""
    names = [each.fault for each in found.entries] + ["learned ideally"]
    values = [100 * each.accuracy for each in found.entries] + [100 * found.deployed]
    with drawn(path, 6.5, 0.45 * len(names) + 1.2) as (_, (axes,)):
        for place, accuracies in enumerate(values):
            axes.plot(accuracies, [place] * accuracies.size, "|", color="black", markersize=9, alpha=0.5)
            axes.plot([accuracies.mean()], [place], "D", color="black", markersize=5)
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_title(f"{found.hardware.name}, {counted(found.deployed.size, 'chip')} (diamonds: mean)")
        accuracy_axis(axes, "x")
