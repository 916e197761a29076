"""Gradients as pictures: bars per entry, and the agreement of methods as a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from phasegrad._validation import FloatArray, choice, counted
from phasegrad.pictures import COLOURS, CYCLE, canvas, draw_bars, draw_matrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from phasegrad.gradients._compare import GradientTable
    from phasegrad.gradients._gradient import Gradient

# The smallest number that a relative error can be told from: its shade is white, that of 1 the darkest.
_NONE = float(np.finfo(float).eps) / 2


def plot_gradient(gradient: Gradient, ax: Axes | None, parameter: str | None, against: Any) -> Axes:
    """Draw the mean gradient with respect to one parameter; `Gradient.plot` says how."""
    owner = "Gradient.plot"
    name = choice("parameter", parameter or next(iter(gradient.values)), gradient.values, owner)
    if against is not None and not hasattr(against, "values"):
        raise TypeError(f"The 'against' parameter of {owner} must be another Gradient. Got {against!r:.80}.")
    values, beside = gradient[name], None
    if against is not None:
        beside = _mean(against, against[name], owner)
        if beside.shape != values.shape[-1:]:
            raise ValueError(
                f"Two gradients that are compared have as many entries. Got {values.shape[-1]} and {beside.size}."
            )
    mean = _mean(gradient, values, owner)
    error = _mean(gradient, gradient.error[name], owner) if gradient.error else None
    with canvas(ax, owner, 4.5, 3.0) as axes:
        draw_bars(
            axes, mean, colours=COLOURS.get(name, CYCLE[4]), errors=error,
            label=gradient.method, beside=beside, beside_label=None if against is None else against.method,
        )  # fmt: skip
        axes.set(xlabel=f"entry of {name}", ylabel=f"∂C / ∂ {name}")
        samples = "" if gradient.cost.size == 1 else f", mean of {counted(int(gradient.valid.sum()), 'sample')}"
        axes.set_title(f"gradient by {name}{samples}")
        if against is not None:
            axes.legend(loc="best")
    return axes


def _mean(gradient: Gradient, values: FloatArray, owner: str) -> FloatArray:
    """Return the mean over the samples that have a gradient."""
    rows = values.reshape(-1, values.shape[-1])[gradient.valid.ravel()]
    if not len(rows):
        raise ValueError(f"{owner} has nothing to draw: no sample has a gradient. Its status says why.")
    return np.asarray(rows.mean(axis=0))


def plot_table(table: GradientTable, ax: Axes | None, parameter: str | None) -> Axes:
    """Draw the agreement of all methods by one parameter; `GradientTable.plot` says how."""
    name = choice("parameter", parameter or next(iter(table.cosine)), table.cosine, "GradientTable.plot")
    numbers = table.agreement(name)
    # Shades are decades, from what rounding leaves to an error as large as the gradient itself.
    shares = np.log(np.clip(numbers, _NONE, 1.0) / _NONE) / -np.log(_NONE)
    words = np.array([[f"{number:.0e}" if number else "0" for number in row] for row in numbers])
    with canvas(ax, "GradientTable.plot", 2.2 + 0.62 * len(numbers), 1.5 + 0.42 * len(numbers)) as axes:
        draw_matrix(axes, shares, table.methods, table.methods, words)
        axes.set_title(f"gradient by {name}\nbelow: relative error, above: 1 − cosine,\ndiagonal: stated error")
    return axes
