"""Charts of arrays: bars, curves, matrices, and angles on rings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.pictures._marks import whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Bars that can have a name each.
_NAMED = 30
# Letters that their names have in one line, side by side.
_LETTERS = 40
# A matrix in which every cell can say what it holds.
_WORDED = 16


def draw_bars(
    axes: Axes, values: FloatArray, *, colours: str | Sequence[str], label: str | None = None,
    errors: FloatArray | None = None, names: Sequence[str] = (), beside: FloatArray | None = None,
    beside_label: str | None = None,
) -> None:  # fmt: skip
    """Draw one bar per value, with its error; ``beside`` are values to compare with, drawn as diamonds.

    Few bars have their names under them, many only their number.
    """
    across = np.arange(len(values))
    edge: dict[str, Any] = {"edgecolor": "black", "linewidth": 0.6} if len(values) <= _NAMED else {"linewidth": 0}
    axes.bar(across, values, color=colours, **edge)
    if label is not None:
        # Bars may differ in colour: what all of them are stands in the legend without one.
        axes.bar([0], [0], color="white", edgecolor="black", linewidth=0.6, label=label)
    if errors is not None:
        axes.errorbar(across, values, errors, fmt="none", ecolor="black", elinewidth=0.8, capsize=2, label="_errors")
    if beside is not None:
        size = 4 if len(values) <= _NAMED else 2
        axes.plot(across, beside, "D", color="#222222", markersize=size, label=beside_label)
    axes.axhline(0, color="black", linewidth=0.6)
    axes.set_xlim(-0.7, len(values) - 0.3)
    if len(names) and len(values) <= _NAMED:
        axes.set_xticks(across, list(names), rotation=90 if sum(map(len, names)) > _LETTERS else 0)
    else:
        whole_numbers(axes.xaxis)


def draw_curves(
    axes: Axes, across: Array, curves: FloatArray, colour: str, *, dashes: Any = "-", label: str | None = None
) -> None:
    """Draw curves (R, T) of one kind: a thin line each and a strong one for their mean; of none only the legend."""
    for curve in curves if len(curves) > 1 else ():
        axes.plot(across, curve, color=colour, linewidth=0.6, alpha=0.4, zorder=2)
    middle = curves.mean(axis=0) if len(curves) else np.full(len(across), np.nan)
    axes.plot(across, middle, color="white", linewidth=3.4, zorder=4)
    axes.plot(across, middle, color=colour, linewidth=2, linestyle=dashes, label=label, zorder=5)


def draw_matrix(
    axes: Axes, shares: FloatArray, rows: Sequence[str], columns: Sequence[str], words: Array, *, upward: bool = False
) -> None:
    """Draw shares from 0 to 1 as shades of blue, row by row, with words in the cells where there is room for them."""
    edge: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.8}
    axes.pcolormesh(shares, cmap="Blues", vmin=0, vmax=1, **edge)
    if max(shares.shape) <= _WORDED:
        for (row, column), word in np.ndenumerate(words):
            colour = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column + 0.5, row + 0.5, str(word), ha="center", va="center", color=colour)
    long = sum(map(len, columns)) > _LETTERS
    axes.set_xticks(
        np.arange(len(columns)) + 0.5, columns, rotation=30 if long else 0, ha="right" if long else "center"
    )
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    if not upward:
        axes.invert_yaxis()


def draw_confusion(axes: Axes, counts: IntArray, names: Sequence[str]) -> None:
    """Draw how many samples of each class (rows) were given each class (columns); shades are shares of a row."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    draw_matrix(axes, shares, names, names, np.where(counts > 0, counts.astype(object), ""))
    axes.set(xlabel="decided", ylabel="true")
    axes.set_aspect("equal")


class Ring(NamedTuple):
    """Angles on one circle, with a name; those that are not filled are hollow."""

    name: str
    angles: FloatArray
    colour: str
    filled: BoolArray


def draw_rings(axes: Axes, rings: Sequence[Ring]) -> None:
    """Draw angles, counted from the right, on circles one inside the other, the first one innermost."""
    turn = np.linspace(0, 2 * np.pi, 181)
    # A hole in the middle, so that the innermost circle is one.
    for radius, ring in enumerate(rings, start=max(1, round(0.4 * len(rings)))):
        axes.plot(radius * np.cos(turn), radius * np.sin(turn), color="#DDDDDD", linewidth=0.8, zorder=1)
        filled = np.asarray(ring.filled, bool)
        for mask, look in ((~filled, {"facecolors": "none", "alpha": 0.35}), (filled, {"facecolors": ring.colour})):
            points = radius * np.cos(ring.angles[mask]), radius * np.sin(ring.angles[mask])
            order = 3 if mask is filled else 2
            options: dict[str, Any] = {"edgecolors": ring.colour, "linewidths": 0.6, "zorder": order, **look}
            axes.scatter(*points, s=14, label=f"_{ring.name}", **options)
        box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none"}
        axes.text(-radius, 0, ring.name, fontsize=7, ha="center", va="center", zorder=4, bbox=box)
    axes.set_aspect("equal")
    axes.set_axis_off()
