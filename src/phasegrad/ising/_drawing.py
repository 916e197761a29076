"""Solutions as a picture: how often each cut, or energy, was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from phasegrad._validation import counted
from phasegrad.pictures import CYCLE, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from phasegrad.ising._solutions import Solutions

# Bars of a histogram where more values than this were found.
_BARS = 40


def plot_solutions(found: Solutions, ax: Axes | None) -> Axes:
    """Draw the distribution of solutions; `Solutions.plot` says how."""
    fields = bool(np.any(found.problem.fields))
    values, word = (found.energies, "energy") if fields else (found.cuts, "cut")
    each = np.unique(values)
    with canvas(ax, "Solutions.plot", 4.5, 3.0) as axes:
        if each.size > _BARS:
            axes.hist(values, bins=_BARS, color=CYCLE[0])
        else:
            width = 0.8 * float(np.min(np.diff(each), initial=1.0 if each.size == 1 else np.inf))
            counts = [int(np.sum(values == value)) for value in each]
            axes.bar(each, counts, width=width, color=CYCLE[0])
        axes.axvline(values[found.best], color=CYCLE[1], linewidth=1.0)
        axes.set(xlabel=word, ylabel="runs")
        size = counted(found.problem.size, "spin")
        axes.set_title(f"{counted(values.size, 'run')} of {size}: best {word} {values[found.best]:g}")
    return axes
