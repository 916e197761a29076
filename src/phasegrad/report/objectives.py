"""Pictures of objectives: the cost of two outputs, and which class would be decided where."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from phasegrad.objectives import ClassObjective
from phasegrad.report.drawings.style import drawn

_FIRST, _SECOND = "#CFE3F3", "#FBE3B5"


def draw_objectives(objectives: Sequence[ClassObjective], path: Path) -> None:
    """Draw, for two outputs and class 0, the cost as contours over the regions of the decision.

    The star marks the lowest cost. It must lie well inside the region of class 0; in the paper's pair it lies on the
    border. The ending of the path chooses the format.
    """
    count = len(objectives)
    with drawn(path, 3.4 * count, 3.6, 1, count) as (_, planes):
        for axes, objective in zip(planes, objectives, strict=True):
            _draw_plane(axes, objective)


def _draw_plane(axes: Any, objective: ClassObjective) -> None:
    table = objective.table(2)
    reach = 2.5 * float(np.max(np.abs(table))) if getattr(objective, "margin", None) else np.pi
    reach = min(reach, np.pi)
    line = np.linspace(-reach, reach, 97)
    plane = np.stack(np.meshgrid(line, line), axis=-1)
    decided = objective.decide(plane)
    cost = objective.cost(plane, table[0])
    axes.contourf(line, line, decided, levels=[-0.5, 0.5, 1.5], colors=[_FIRST, _SECOND])
    axes.contour(line, line, cost, levels=9, colors="black", linewidths=0.5)
    row, column = np.unravel_index(int(np.argmin(cost)), cost.shape)
    axes.plot(line[column], line[row], marker="*", color="black", markersize=12)
    axes.set(xlabel="phase of output 0", ylabel="phase of output 1")
    axes.set_aspect("equal")
    axes.set_title(type(objective).__name__ + ("" if objective.consistent else ": a tie"))
