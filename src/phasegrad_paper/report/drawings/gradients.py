"""Figures about gradients: the identity, the error of a nudge, and the noise of a meter."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from phasegrad.pictures import COLOURS, GUIDE, NARROW, WIDE, draw_matrix, guide, letter, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Where a figure of exactly zero is drawn on a logarithmic axis.
_ZERO = 2e-17
# Label and colour, one of Paul Tol's, of the curves of the study of finite nudges.
_CURVES = {
    "two_phase": ("one-sided", "#882255"),
    "centred": ("centred", "#117733"),
    "complex_step": ("one complex step", "#332288"),
    "circle_4": ("circle of 4 points", "#999933"),
}
# Marker, its size, and dashes: methods of the same order lie on top of each other and must all be seen.
_LOOKS = (("o", 5, "-"), ("s", 7.5, "-"), ("D", 3.5, (0, (3, 2))), ("^", 5, "-"))


def verification(data: Mapping[str, Any]) -> Figure:
    """Draw two-phase against exact gradient per oscillator, and the residual of equilibria against their size.

    ``scatter``: N, beta, two_phase, adjoint; ``residuals``: N, measured, published.
    """
    figure, (left, right) = panels(WIDE, 2.9, 1, 2)
    _identity(left, data["scatter"])
    letter(left, "a", f"N = {data['scatter']['N']}, β = {_power(data['scatter']['beta'])}")
    _residuals(right, data["residuals"])
    letter(right, "b", "residual of the equilibrium")
    return figure


def _identity(axes: Axes, data: Mapping[str, Any]) -> None:
    exact, nudged = np.asarray(data["adjoint"], float), np.asarray(data["two_phase"], float)
    low, high = min(exact.min(), nudged.min()), max(exact.max(), nudged.max())
    room = 0.08 * (high - low) or 1.0
    ends = (low - room, high + room)
    axes.plot(ends, ends, color=GUIDE, linewidth=0.8, linestyle="--", zorder=1, label="y = x")
    axes.scatter(exact, nudged, s=22, color=COLOURS["shifted"], edgecolor="white", linewidth=0.6, zorder=3)
    axes.set(xlim=ends, ylim=ends, xlabel="exact ∂C/∂ω (adjoint)", ylabel="two-phase −Δθ/β")
    axes.set_aspect("equal")
    axes.locator_params(nbins=5)
    axes.legend(loc="upper left")


def _residuals(axes: Axes, data: Mapping[str, Any]) -> None:
    sizes = np.asarray(data["N"])
    looks = (("published", "published", "none", "s"), ("measured", "measured here", "black", "."))
    for key, words, face, marker in looks:
        heights = np.maximum(data[key], _ZERO)
        axes.plot(sizes, heights, marker, color="black", markerfacecolor=face, markersize=6, label=words)
    axes.set(xscale="log", yscale="log", xlabel="oscillators N", ylabel="largest |force|")
    axes.set_xticks(sizes, [str(size) for size in sizes], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_ylim(1e-17, max(10**-12.5, 5 * max(*data["measured"], *data["published"])))
    guide(axes, float(np.finfo(float).eps), "machine ε")
    axes.legend(loc="upper right")


def beta_error(data: Mapping[str, Any]) -> Figure:
    """Draw the error of every method against the nudge.

    ``betas``; ``median_relative_error`` and ``slopes`` by method.
    """
    figure, (axes,) = panels(NARROW + 1, 3.1)
    looks = itertools.cycle(_LOOKS)
    for (name, errors), (marker, size, dashes) in zip(data["median_relative_error"].items(), looks, strict=False):
        slope, (label, colour) = data["slopes"].get(name), _CURVES.get(name, (name, GUIDE))
        words = label + ("" if slope is None else f": order {slope:.2f}")
        heights = np.maximum(errors, _ZERO)
        look: dict[str, Any] = {"marker": marker, "markersize": size, "linestyle": dashes, "label": words}
        axes.plot(data["betas"], heights, color=colour, **look)
    axes.set(xscale="log", yscale="log", xlabel="nudge β", ylabel="median relative error")
    guide(axes, float(np.finfo(float).eps), "machine ε")
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def readout_map(data: Mapping[str, Any]) -> Figure:
    """Draw the mean cosine of a gradient as it is read, over noise and nudge, and what was predicted of it.

    ``noises``, ``betas``; ``measured`` and ``predicted`` by both.
    """
    figure, axes = panels(WIDE, 2.9, 1, 2)
    for place, mark, key in zip(axes, "ab", ("measured", "predicted"), strict=True):
        cells = np.asarray(data[key], float)
        noises, betas = ([f"{each:g}" for each in data[axis]] for axis in ("noises", "betas"))
        draw_matrix(place, cells, noises, betas, np.vectorize("{:.2f}".format)(cells), upward=True)
        place.set(xlabel="nudge β", ylabel="noise of a reading, rad")
        letter(place, mark, f"{key} cosine")
    return figure


def _power(number: float) -> str:
    exponent = round(np.log10(number))
    return f"$10^{{{exponent}}}$" if np.isclose(number, 10.0**exponent) else f"{number:g}"
