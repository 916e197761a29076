"""Marks that several pictures share: guides, letters, accuracies, and one point or one violin per condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from phasegrad._validation import FloatArray
from phasegrad.pictures._style import COLOURS, GUIDE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_DISTRIBUTION = 5


def letter(axes: Axes, name: str, title: str) -> None:
    """Title a panel: a bold letter, then words."""
    axes.set_title(f"$\\mathbf{{{name}}}$  {title}")


def accuracy_axis(axes: Axes, which: str = "y", label: str = "test accuracy (%)") -> None:
    """Lay out an axis of accuracies in per cent, the same in every figure."""
    axes.set(**{f"{which}lim": (-4, 104), f"{which}ticks": [0, 25, 50, 75, 100], f"{which}label": label})


def guide(axes: Axes, height: float, words: str = "") -> None:
    """Draw a thin dotted line across, with its meaning at the right end."""
    axes.axhline(height, color=GUIDE, linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
    if words:
        place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        axes.annotate(words, (1, height), (-1, 1.5), ha="right", va="bottom", fontsize=7, color=GUIDE, **place)


def violin(axes: Axes, place: float, percent: FloatArray, colour: str, filled: Sequence[bool] | None = None) -> None:
    """Draw accuracies as points side by side on their distribution; points that are not ``filled`` are hollow.

    The distribution is mirrored at 0 and 100 %, so that no part of it lies where no accuracy can be; of very few
    points there is none.
    """
    if len(percent) >= _DISTRIBUTION:
        heights = np.linspace(0, 100, 101)
        images = np.concatenate([percent, -percent, 200 - percent])
        density = np.exp(-0.5 * ((heights[:, None] - images) / 3.5) ** 2).sum(axis=1)
        half = 0.42 * density / density.max()
        axes.fill_betweenx(heights, place - half, place + half, color=colour, alpha=0.22, linewidth=0)
    mask = np.ones(len(percent), bool) if filled is None else np.asarray(filled, bool)
    across = place + side_by_side(percent)
    axes.scatter(across[mask], percent[mask], s=8, color=colour, linewidth=0.5, edgecolor="white", zorder=3)
    axes.scatter(across[~mask], percent[~mask], s=7, facecolor="white", edgecolor=colour, linewidth=0.7, zorder=3)


def side_by_side(percent: FloatArray, half_width: float = 0.38, gap: float = 0.055) -> FloatArray:
    """Return sideways offsets that keep points of nearly the same height apart, without chance."""
    rows = np.round(percent / 2.5)
    offsets = np.zeros(len(percent))
    for row in np.unique(rows):
        members = np.flatnonzero(rows == row)
        step = min(gap, 2 * half_width / max(len(members) - 1, 1))
        offsets[members] = step * (np.arange(len(members)) - (len(members) - 1) / 2)
    return offsets


def by_success(axes: Axes, across: FloatArray, up: FloatArray, success: Any) -> None:
    """Draw one point per seed: green discs for success, vermilion triangles for failure."""
    good = np.asarray(success, bool)
    for mask, name, marker in ((good, "success", "o"), (~good, "failure", "v")):
        look: dict[str, Any] = {"marker": marker, "color": COLOURS[name], "alpha": 0.65, "linewidth": 0, "label": name}
        axes.scatter(across[mask], up[mask], s=15, zorder=3, **look)


def share_legend(figure: Figure, axes: Axes, columns: int = 2, side: str = "lower") -> None:
    """Put the legend of one panel under all of them, or above."""
    place: Any = f"outside {side} center"
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc=place, ncols=columns, columnspacing=2)


def whole_numbers(axis: Axis) -> None:
    """Mark an axis of counts at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
