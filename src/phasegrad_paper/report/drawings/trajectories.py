"""Figures about the course of training: over epochs and over learning rates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from phasegrad.pictures import (
    COLOURS,
    GUIDE,
    LABELS,
    NARROW,
    WIDE,
    accuracy_axis,
    draw_curves,
    guide,
    letter,
    panels,
    share_legend,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def convergence(data: Mapping[str, Any]) -> Figure:
    """Draw accuracy and condition number of every seed over the epochs, by whether it converged.

    ``epochs``; ``accuracy`` and ``condition`` per seed and epoch; ``converged`` per seed.
    """
    figure, (left, right) = panels(WIDE, 2.9, 1, 2)
    good = np.asarray(data["converged"], bool)
    epochs = np.asarray(data["epochs"])
    accuracy, condition = 100 * np.asarray(data["accuracy"], float), np.asarray(data["condition"], float)
    groups = ((good, "success", "converged", "-"), (~good, "failure", "failed", (0, (4, 1.5))))
    for mask, name, words, dashes in groups:
        label = f"{words}: {mask.sum()} of {len(good)}, with their mean"
        for axes, curves in ((left, accuracy), (right, condition)):
            draw_curves(axes, epochs, curves[mask], COLOURS[name], dashes=dashes, label=label)
    accuracy_axis(left)
    guide(left, 50)
    left.set_xlabel("epoch")
    right.set(xlabel="epoch", ylabel="condition number of the Jacobian", ylim=(0, 1.25 * condition.max()))
    letter(left, "a", "accuracy")
    letter(right, "b", "condition")
    share_legend(figure, left)
    return figure


def collapse(data: Mapping[str, Any]) -> Figure:
    """Draw how three starts become one: successes over epochs, and the separation on its way to the optimum.

    ``starts`` by name: epochs, success (a count per epoch), n, separation per seed and epoch; ``optimum`` per seed.
    """
    figure, (left, right) = panels(WIDE, 2.9, 1, 2)
    optimum = np.asarray(data["optimum"], float)
    dashes = {"random": "-", "spectral": (0, (5, 1.5)), "anti-spectral": (0, (1.5, 1))}
    # Smaller and smaller marks, so that three that meet are seen to be three.
    for (name, start), marker, size in zip(data["starts"].items(), "os^", (9, 6, 3), strict=False):
        line: dict[str, Any] = {"color": COLOURS[name], "linestyle": dashes[name], "marker": marker, "markersize": size}
        left.plot(start["epochs"], start["success"], label=f"{LABELS[name]} start", **line)
        distance = np.asarray(start["separation"], float) - optimum[:, None]
        right.plot(start["epochs"], distance.T, color=COLOURS[name], linewidth=0.5, alpha=0.35)
        right.plot(start["epochs"], np.median(distance, axis=0), **line)
    count = max(start["n"] for start in data["starts"].values())
    left.set(xlabel="epoch", ylabel=f"successes, out of {count}", ylim=(-0.04 * count, 1.04 * count))
    whole_numbers(left.yaxis)
    right.axhline(0, color="black", linewidth=0.8, linestyle="--", zorder=1)
    right.set(xlabel="epoch", ylabel="d − d* (rad), thick: median")
    letter(left, "a", "seeds above 60 % test accuracy")
    letter(right, "b", "output difference d and its optimum d*")
    share_legend(figure, left, 3)
    return figure


def coupling_rates(data: Mapping[str, Any]) -> Figure:
    """Draw accuracy and loss of coupling-only training against its learning rate.

    ``rates``; mean ``accuracy`` and ``loss`` per rate; ``omega_loss`` and ``trivial_loss`` to compare with.
    """
    figure, (above, below) = panels(NARROW + 0.5, 3.8, 2, 1, sharex=True)
    line: dict[str, Any] = {"color": COLOURS["coupling"], "marker": "o"}
    line |= {"markeredgecolor": "black", "markeredgewidth": 0.5}
    above.plot(data["rates"], 100 * np.asarray(data["accuracy"], float), **line)
    accuracy_axis(above)
    guide(above, 50, "chance")
    below.plot(data["rates"], data["loss"], label="K only", **line)
    below.axhline(data["omega_loss"], color=COLOURS["omega"], linewidth=1.2, label="ω only, at the paper's rate")
    below.axhline(data["trivial_loss"], color=GUIDE, linewidth=1, linestyle="--", label="all output phases 0")
    levels = [*data["loss"], data["omega_loss"], data["trivial_loss"]]
    below.set(xscale="log", xlabel="learning rate of the couplings", ylabel="training loss")
    below.set_ylim(0, 1.15 * max(levels))
    below.set_xticks(data["rates"], [f"{rate:g}" for rate in data["rates"]])
    below.set_xticks([], minor=True)
    below.legend(loc="lower left")
    letter(above, "a", "accuracy")
    letter(below, "b", "loss")
    return figure
