"""Figures about how runs end: accuracies per seed, and what decides them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from phasegrad._validation import FloatArray
from phasegrad.pictures import (
    COLOURS,
    GUIDE,
    LABELS,
    NARROW,
    WIDE,
    accuracy_axis,
    by_success,
    guide,
    letter,
    panels,
    share_legend,
    violin,
    whole_numbers,
)
from phasegrad.runs import SUCCESS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

_UNCHANGED = "#B5B5B5"


def ablation(data: Mapping[str, Any]) -> Figure:
    """Draw the accuracies of all seeds per arm, and their means with and without the seeds that failed.

    ``arms`` by name: test and converged per seed; mean and converged_mean, each with mean, low and high, or None.
    """
    arms = data["arms"]
    figure, (left, right) = panels(WIDE, 3.0, 1, 2, gridspec_kw={"width_ratios": [1.25, 1]})
    for place, (name, arm) in enumerate(arms.items()):
        violin(left, place, _percent(arm["test"]), COLOURS[name], arm["converged"])
        _means(right, place, arm, COLOURS[name])
    names = [f"{LABELS[name]}\n{sum(arm['converged'])} of {len(arm['test'])}" for name, arm in arms.items()]
    _columns(left, names, "what is trained, and how many seeds converge")
    _columns(right, [LABELS[name] for name in arms], "what is trained\n")
    right.set_ylim(0, 118)
    right.bar([0], [0], color="white", edgecolor="black", linewidth=0.8, hatch="////", label="all seeds")
    right.bar([0], [0], color="black", label="converged seeds")
    right.legend(loc="upper left", ncols=2, columnspacing=1.2, borderaxespad=0)
    letter(left, "a", "every seed (hollow: not converged)")
    letter(right, "b", "means with 95 % intervals")
    return figure


def _means(axes: Axes, place: int, arm: Mapping[str, Any], colour: str) -> None:
    """Draw the mean of all seeds and, where there are any, of the converged ones, with intervals and values."""
    hollow = {"color": "white", "edgecolor": colour, "linewidth": 0.9, "hatch": "////"}
    for across, interval, look in (
        (place - 0.19, arm["mean"], hollow),
        (place + 0.19, arm["converged_mean"], {"color": colour}),
    ):
        if interval is None or interval["mean"] is None:
            axes.text(across, 1.5, "none", ha="center", va="bottom", fontsize=7, color=GUIDE)
            continue
        mean, low, high = (100 * interval[key] for key in ("mean", "low", "high"))
        axes.bar(across, mean, 0.34, **look)
        reach = [[max(mean - low, 0)], [max(high - mean, 0)]]
        axes.errorbar(across, mean, reach, color="black", capsize=2, linewidth=1)
        _value(axes, across, max(high, mean), mean)


def _value(axes: Axes, across: float, top: float, value: float) -> None:
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    axes.text(across, top + 2, f"{value:.1f}", ha="center", va="bottom", fontsize=7, bbox=box)


def spectral(data: Mapping[str, Any]) -> Figure:
    """Draw the accuracies of a random and of the spectral start, and the change per seed.

    ``random`` and ``spectral``: test accuracy per seed.
    """
    before, after = _percent(data["random"]), _percent(data["spectral"])
    figure, (left, right) = panels(WIDE, 3.1, 1, 2, gridspec_kw={"width_ratios": [1, 1.35]})
    for place, (name, values) in enumerate((("random", before), ("spectral", after))):
        violin(left, place, values, COLOURS[name])
    counts = [f"{np.sum(values > 100 * SUCCESS)} of {len(values)}" for values in (before, after)]
    names = [f"random\n{counts[0]}", f"spectral\n{counts[1]}"]
    _columns(left, names, "start, and how many seeds end above 60 %", 100 * SUCCESS)
    letter(left, "a", "accuracy per seed")
    figure.legend(handles=_changes(right, before, after), loc="outside lower center", ncols=3)
    letter(right, "b", "change per seed, sorted")
    return figure


def starts(data: Mapping[str, Any]) -> Figure:
    """Draw the accuracies of all seeds by the start of their frequencies, and what became of them.

    ``starts``: test accuracy per seed by name, random starts first, then pairs of a sign and its reverse.
    """
    figure, (axes,) = panels(5.0, 3.35)
    for place, values in enumerate(map(_percent, data["starts"].values())):
        won = values > 100 * SUCCESS
        for mask, name in ((won, "success"), (~won, "failure")):
            violin(axes, place, values[mask], COLOURS[name])
    counts = [int(np.sum(_percent(values) > 100 * SUCCESS)) for values in data["starts"].values()]
    names = [_STARTS.get(name, name) for name in data["starts"]]
    _columns(axes, [f"{name}\n{count}" for name, count in zip(names, counts, strict=True)], "", 50)
    number = max(len(values) for values in data["starts"].values())
    axes.set_xlabel(f"start of the frequencies, and seeds out of {number} that end above {100 * SUCCESS:g} %")
    for height, words in ((92, "classifier"), (8, "inverted")):
        axes.text(len(names) - 0.42, height, words, rotation=90, va="center", ha="left", color=GUIDE)
    for edge in np.arange(0.5, len(names) - 1, 2):
        axes.axvline(edge, color="#CCCCCC", linewidth=0.7, zorder=0)
    return figure


_STARTS = {
    "random": "random",
    "spectral": "spectral",
    "anti-spectral": "spectral\n× −1",
    "outputs-positive": "outputs\nonly, +",
    "outputs-negative": "outputs\nonly, −",
}


def _changes(axes: Axes, before: FloatArray, after: FloatArray) -> list[Patch]:
    """Draw one bar per seed, sorted, and return what the legend says about them."""
    from matplotlib.patches import Patch

    rescued = (before <= 100 * SUCCESS) & (after > 100 * SUCCESS)
    lost = (before > 100 * SUCCESS) & (after <= 100 * SUCCESS)
    change = after - before
    rank = np.empty(len(change), int)
    rank[np.argsort(change, kind="stable")] = np.arange(len(change))
    legend = []
    for mask, words, colour in (
        (rescued, "rescued", COLOURS["success"]),
        (~rescued & ~lost, "on the same side of 60 %", _UNCHANGED),
        (lost, "lost", COLOURS["failure"]),
    ):
        axes.bar(rank[mask] + 1, change[mask], width=0.85, color=colour)
        legend.append(Patch(color=colour, label=f"{words}: {mask.sum()}"))
    axes.axhline(0, color="black", linewidth=0.7)
    axes.set(xlabel="seeds, by change", ylabel="spectral − random (points)")
    axes.set_xlim(0, len(change) + 1)
    whole_numbers(axes.xaxis)
    return legend


def mechanism(data: Mapping[str, Any]) -> Figure:
    """Draw the accuracy of every seed against the difference of its output phases.

    ``panels``: title, separation in radians, accuracy and success per seed.
    """
    labels = ("difference of the output phases d (rad)", "test accuracy (%)")
    return _small_multiples(data["panels"], 2.05, _order, *labels)


def _order(axes: Axes, panel: Mapping[str, Any]) -> str:
    separation, success = np.asarray(panel["separation"], float), np.asarray(panel["success"], bool)
    axes.axvline(0, color="black", linewidth=0.8, linestyle="--", zorder=1)
    by_success(axes, separation, _percent(panel["accuracy"]), success)
    accuracy_axis(axes, label="")
    reach = 1.15 * np.abs(separation).max() or 1.0
    axes.set_xlim(-reach, reach)
    axes.locator_params(axis="x", nbins=4)
    guide(axes, 50)
    return f"sign of d tells success: {int(np.sum((separation > 0) == success))} of {len(success)}"


def untrained(data: Mapping[str, Any]) -> Figure:
    """Draw the accuracy after training against the one before, per seed.

    ``panels``: title, untrained and trained accuracy per seed.
    """
    labels = ("untrained test accuracy (%)", "trained test accuracy (%)")
    return _small_multiples(data["panels"], 2.3, _before_and_after, *labels)


def _before_and_after(axes: Axes, panel: Mapping[str, Any]) -> str:
    before, after = _percent(panel["untrained"]), _percent(panel["trained"])
    axes.plot([-4, 104], [-4, 104], color=GUIDE, linewidth=0.8, linestyle="--", zorder=1)
    by_success(axes, before, after, after > 100 * SUCCESS)
    accuracy_axis(axes, "x", "")
    accuracy_axis(axes, "y", "")
    axes.set_aspect("equal")
    return f"unchanged by training: {int(np.isclose(before, after).sum())} of {len(after)}"


def _small_multiples(
    drawn: Sequence[Mapping[str, Any]], height: float, draw: Callable[[Axes, Mapping[str, Any]], str], *labels: str
) -> Figure:
    """Return a figure with a panel each, at most three in a row; ``draw`` returns the second line of its title."""
    columns = {1: 1, 2: 2, 4: 2}.get(len(drawn), 3)
    rows = -(-len(drawn) // columns)
    width = {1: NARROW + 0.5, 2: WIDE - 1}.get(columns, WIDE)
    figure, places = panels(width, 0.6 + (height + 0.1) * rows, rows, columns, sharey=True)
    for name, axes, panel in zip("abcdefgh", places, drawn, strict=False):
        letter(axes, name, f"{panel['title']}\n{draw(axes, panel)}")
    for empty in places[len(drawn) :]:
        empty.set_axis_off()
    figure.supxlabel(labels[0], fontsize=8)
    figure.supylabel(labels[1], fontsize=8)
    share_legend(figure, places[0], side="upper")
    return figure


def repair(data: Mapping[str, Any]) -> Figure:
    """Draw the accuracies of all seeds per arm, with their mean.

    ``arms``: title and test accuracy per seed.
    """
    arms = data["arms"]
    figure, (axes,) = panels(min(WIDE, 1.6 + 1.35 * len(arms)), 2.9)
    for place, arm in enumerate(arms):
        values = _percent(arm["test"])
        words = arm["title"].lower()
        known = (COLOURS[name] for name in ("spectral", "matched", "logistic") if name in words)
        violin(axes, place, values, next(known, COLOURS["random"]))
        axes.plot(place, values.mean(), "D", color="black", markeredgecolor="white", markersize=5.5, zorder=5)
    _columns(axes, [f"{textwrap.fill(arm['title'], 18)}\nmean {_percent(arm['test']).mean():.1f} %" for arm in arms])
    axes.set_title("every seed, and their mean (diamond)")
    return figure


def _percent(values: Any) -> FloatArray:
    return 100 * np.asarray(values, float)


def _columns(axes: Axes, names: Sequence[str], label: str = "", height: float = 50) -> None:
    """Lay out columns of accuracies under their names, with a guide at some height."""
    axes.set_xticks(range(len(names)), names)
    axes.set_xlabel(label)
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.55, len(names) - 0.45)
    accuracy_axis(axes)
    guide(axes, height)


def which_parameter(data: Mapping[str, Any]) -> Figure:
    """Draw the mean accuracy of arms of equal parameter count against the size of the network.

    ``sizes``; ``panels``, each with title, logistic, and arms (omega, coupling_matched, both_matched): a mean per size;
    ``whole``: means with all couplings and with everything at the size ``paper``.
    """
    figure, axes = panels(WIDE, 2.8, 1, len(data["panels"]), sharey=True)
    words = {"omega": "all frequencies", "coupling_matched": "as many couplings", "both_matched": "as many of both"}
    words |= {"coupling": "all couplings", "both": "everything"}
    for mark, (place, panel) in zip("abcd", zip(axes, data["panels"], strict=True), strict=False):
        edge: dict[str, Any] = {"markeredgecolor": "black", "markeredgewidth": 0.5}
        for name, means in panel["arms"].items():
            colour = COLOURS[name.removesuffix("_matched")]
            place.plot(data["sizes"], _percent(means), marker="o", color=colour, label=words[name], **edge)
        for name, mean in panel["whole"].items():
            star: dict[str, Any] = {"marker": "*", "markersize": 9, "linestyle": "none", **edge}
            place.plot([data["paper"]], [100 * mean], color=COLOURS[name], label=words[name], **star)
        level = 100 * panel["logistic"]
        place.axhline(level, color=COLOURS["logistic"], linewidth=1, linestyle="--", label="logistic regression")
        accuracy_axis(place)
        guide(place, 50)
        place.set_xticks(data["sizes"])
        place.set_xlabel("oscillators")
        letter(place, mark, panel["title"])
    share_legend(figure, axes[0], 3)
    return figure
