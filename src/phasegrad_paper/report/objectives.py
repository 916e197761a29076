"""Pictures of objectives: the cost of two outputs, and which class would be decided where."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from phasegrad._validation import FloatArray
from phasegrad.objectives import ClassObjective
from phasegrad.pictures import drawn

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
    # Phases go round: where the lowest cost lies on the rim of the plane, a quarter turn brings it inside.
    across, up = (line + np.pi / 2 if abs(place) > 0.99 * reach else line for place in _lowest(objective, line, line))
    plane = np.stack(np.meshgrid(across, up), axis=-1)
    axes.contourf(across, up, objective.decide(plane), levels=[-0.5, 0.5, 1.5], colors=[_FIRST, _SECOND])
    axes.contour(across, up, objective.cost(plane, table[0]), levels=9, colors="black", linewidths=0.5)
    axes.plot(*_lowest(objective, across, up), marker="*", color="black", markersize=12, zorder=5)
    axes.set(xlabel="phase of output 0", ylabel="phase of output 1")
    axes.set_aspect("equal")
    axes.set_title(type(objective).__name__ + ("" if objective.consistent else ": a tie"))


def _lowest(objective: ClassObjective, across: FloatArray, up: FloatArray) -> tuple[float, float]:
    """Return where on a grid of phases the cost of class 0 is lowest."""
    cost = objective.cost(np.stack(np.meshgrid(across, up), axis=-1), objective.table(2)[0])
    row, column = np.unravel_index(int(np.argmin(cost)), cost.shape)
    return float(across[column]), float(up[row])
