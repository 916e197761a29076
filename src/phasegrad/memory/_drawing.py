"""Patterns, states and capacities as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from phasegrad._validation import FloatArray
from phasegrad.pictures import CYCLE, GUIDE, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from phasegrad.memory._capacity import Capacity

# Pictures side by side, and most that are shown.
_COLUMNS, _SHOWN = 8, 40


def plot_pictures(values: FloatArray, titles: Sequence[str], owner: str, ax: Axes | None) -> Axes:
    """Draw values from -1 to 1, (n, height, width) or (n, N), as pictures in rows, each with a title."""
    shown = values[:_SHOWN] if values.ndim == 3 else values[:_SHOWN, None, :]
    columns = min(len(shown), _COLUMNS)
    rows = -(-len(shown) // columns)
    high, wide = shown.shape[1] + 2.0, shown.shape[2] + 1.0
    with canvas(ax, owner, 0.9 * columns + 0.2, 1.1 * rows + 0.3) as axes:
        for k, each in enumerate(shown):
            left, top = wide * (k % columns), high * (k // columns)
            x, y = left + np.arange(shown.shape[2] + 1), top + np.arange(shown.shape[1] + 1)
            axes.pcolormesh(x, y, each, cmap="Greys", vmin=-1.2, vmax=1.2, edgecolors="white", linewidth=0.3)
            axes.text(left + (wide - 1) / 2, top - 0.2, titles[k], ha="center", va="bottom", fontsize=7)
        axes.set(xlim=(-0.5, wide * columns - 0.5), ylim=(high * rows - 1.5, -1.8))
        if shown.shape[1] > 1:
            axes.set_aspect("equal")
        axes.set_axis_off()
    return axes


def plot_capacity(found: Capacity, ax: Axes | None) -> Axes:
    """Draw the share of patterns that are recalled by their number; `Capacity.plot` says how."""
    with canvas(ax, "Capacity.plot", 4.5, 3.0) as axes:
        axes.errorbar(
            found.patterns, 100 * found.recalled, 100 * found.error, fmt="o-", color=CYCLE[0], capsize=2,
            label="every pixel right",
        )  # fmt: skip
        axes.plot(found.patterns, 100 * found.pixels, "s--", color=CYCLE[1], label="pixels right")
        axes.axvline(0.138 * found.size, color=GUIDE, linewidth=0.8, linestyle=(0, (1, 2)), label="0.138 N", zorder=0)
        axes.set(xlabel="patterns", ylabel="share (%)", ylim=(-3, 103))
        axes.set_title(f"{found.rule}: {found.size} oscillators, {100 * found.flips:.0f} % of the pixels flipped")
        axes.legend(loc="lower left")
    return axes
