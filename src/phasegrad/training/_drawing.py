"""Learning curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from phasegrad._validation import choice
from phasegrad.pictures import CYCLE, accuracy_axis, canvas, draw_curves, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from phasegrad.training._history import History

_SCORES = {"accuracy": CYCLE[1], "loss": CYCLE[0]}
_PARTS = {"train": "-", "validation": (0, (1.5, 1)), "test": (0, (4, 1.5))}


def plot_history(history: History, ax: Axes | None, score: str | None) -> Axes:
    """Draw a score over the epochs; `History.plot` says how."""
    classes = bool(np.any(np.isfinite(history.train_accuracy)))
    word = choice("score", score or ("accuracy" if classes else "loss"), _SCORES, "History.plot")
    curves = {part: np.atleast_2d(getattr(history, f"{part}_{word}")) for part in _PARTS}
    there = {part: each for part, each in curves.items() if np.any(np.isfinite(each))}
    if not there:
        raise ValueError("This history has no accuracy: its cost is not for classes. Take score='loss'.")
    factor = 100 if word == "accuracy" else 1
    with canvas(ax, "History.plot") as axes:
        for part, each in there.items():
            name = f"{part} (running)" if part == "train" else part
            draw_curves(axes, history.epoch, factor * each, _SCORES[word], dashes=_PARTS[part], label=name)
        axes.set_xlabel("epoch")
        whole_numbers(axes.xaxis)
        if word == "accuracy":
            accuracy_axis(axes, label="accuracy (%)")
        else:
            axes.set_ylabel("mean cost")
            lowest, highest = (pick([pick(each[np.isfinite(each)]) for each in there.values()]) for pick in (min, max))
            axes.set_yscale("log" if 0 < 10 * lowest < highest else "linear")
        axes.yaxis.label.set_color(_SCORES[word])
        axes.legend(loc="best", title=None)
    return axes
