"""What `phasegrad train` and `phasegrad predict` show."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from phasegrad.models import Prediction
from phasegrad.report.console import counted, plain_table
from phasegrad.training import TrainingResult

_SUCCESS = 0.6
_ROWS_SHOWN = 20


def training_table(seeds: Sequence[int], result: TrainingResult) -> RenderableType:
    """Return a table of the runs, all of them if they are few, and a line of summary."""
    history = result.history
    runs, epochs = counted(len(seeds), "run"), counted(result.state.epoch, "epoch")
    table = plain_table(f"{runs}, {epochs}, learning {result.protocol.learn}", "")
    for heading in ("seed", "untrained", "test", "train (running)", "train loss", "skipped"):
        table.add_column(heading, justify="right")
    shown = range(len(seeds)) if len(seeds) <= _ROWS_SHOWN else range(_ROWS_SHOWN // 2)
    for r in shown:
        table.add_row(
            str(seeds[r]),
            f"{history.test_accuracy[r, 0]:.1%}",
            f"{history.test_accuracy[r, -1]:.1%}",
            f"{history.train_accuracy[r, -1]:.1%}",
            f"{history.train_loss[r, -1]:.4f}",
            str(int(history.skipped[r].sum())),
        )
    if len(seeds) > len(shown):
        table.add_row(f"... {len(seeds) - len(shown)} more", *[""] * 5)
    last, first = history.test_accuracy[:, -1], history.test_accuracy[:, 0]
    lines = [
        f"test accuracy: mean {last.mean():.1%}, worst {last.min():.1%}, best {last.max():.1%}; "
        f"untrained {first.mean():.1%}",
        f"above {_SUCCESS:.0%}: {int(np.sum(last > _SUCCESS))} of {counted(len(seeds), 'seed')}",
    ]
    skipped, unstable = int(history.skipped.sum()), int(history.unstable.sum())
    if skipped or unstable or history.test_skipped.any():
        lines.append(
            f"{skipped} training samples skipped, {unstable} unstable, {int(history.test_skipped[:, -1].sum())} test "
            "samples without equilibrium (counted as wrong)"
        )
    return Group(table, Text("\n".join(lines)))


def prediction_table(answer: Prediction) -> RenderableType:
    """Return the class of every row, the first ones if they are many, and how many had no stable state."""
    table: Table = plain_table(counted(len(answer.names), "sample"), "")
    table.add_column("row", justify="right")
    table.add_column("class")
    table.add_column("state")
    for k, name in enumerate(answer.names[:_ROWS_SHOWN]):
        table.add_row(str(k + 1), name, answer.equilibrium.status[k].name.lower())
    if len(answer.names) > _ROWS_SHOWN:
        table.add_row(f"... {len(answer.names) - _ROWS_SHOWN} more", "", "")
    counts = ", ".join(f"{answer.names.count(name)} x {name}" for name in dict.fromkeys(answer.names))
    unsettled = int(np.sum(~answer.equilibrium.stable))
    return Group(table, Text(f"{counts}\n{unsettled} of {len(answer.names)} without a stable equilibrium"))
