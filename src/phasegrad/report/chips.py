"""The error budget of a chip as tables and as a picture."""

from __future__ import annotations

import math
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from phasegrad._validation import counted
from phasegrad.hardware import Budget
from phasegrad.pictures import accuracy_axis, drawn
from phasegrad.report.console import table


def chip_tables(found: Budget) -> RenderableType:
    """Return what chips reached, fault by fault, for the terminal."""
    rows = [
        [each.fault, 100 * float(each.accuracy.mean()), 100 * float(each.accuracy.min()), each.mean_cosine]
        for each in found.entries
    ]
    count, programmed = found.deployed.size, (100 * float(found.deployed.mean()), 100 * float(found.deployed.min()))
    rows.append(["learned ideally, then programmed", *programmed, "-"])
    columns = ("faults", "mean accuracy, %", "worst chip, %", "cosine of the gradient")
    lines: list[RenderableType] = [
        Text(str(found.hardware)),
        table(f"{counted(count, 'chip')} that learn, test samples", columns, rows),
        Text(_summary(found), style="bold"),
    ]
    if found.measurement is not None:
        lines.append(Text(f"Advice for the first chip, untrained, by its meter alone. {found.measurement}"))
    return Group(*lines)


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
