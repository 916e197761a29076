"""Figures. matplotlib is imported here, when a figure is drawn, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from phasegrad.dynamics import Cost
from phasegrad.equilibrium import Equilibrium
from phasegrad.gradients import adjoint, two_phase
from phasegrad.network import Network
from phasegrad.validation import FloatArray

# Okabe and Ito's colours, distinguishable with every kind of colour vision.
INPUT, HIDDEN, OUTPUT, NUDGED, EXACT = "#56B4E9", "#D0D0D0", "#E69F00", "#AA1177", "#222222"

FORMATS = ("svg", "png", "pdf")


def draw_two_phase(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: Any, *, beta: float, path: Path
) -> None:
    """Draw the two-phase protocol on one sample of a layered network: settle, nudge, read the gradient.

    Parameters
    ----------
    network, equilibrium, objective, target
        As for `two_phase`; a single sample.
    beta : float
        The nudge.
    path : Path
        Where to write; the ending chooses the format.
    """
    if path.suffix.lstrip(".").lower() not in FORMATS:
        raise ValueError(f"A figure must end in one of {', '.join(FORMATS)}. Got {path.name!r}.")
    mpl = import_matplotlib()
    gradient = two_phase(network, equilibrium, objective, target, beta=beta)
    exact = adjoint(network, equilibrium, objective, target).get("omega")
    shift = -gradient.get("omega") * beta
    style = {"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "phasegrad", "axes.spines.top": False}
    with mpl.rc_context({**style, "axes.spines.right": False}):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(10.5, 3.6), layout="constrained")
        free, nudged, read = figure.subplots(1, 3, gridspec_kw={"width_ratios": [1, 1, 1.15]})
        places = _places(network)
        phases = equilibrium.phases
        outputs = list(objective.nodes(network))
        magnified = _magnification(phases[outputs], shift[outputs], np.asarray(target))
        _draw_network(free, network, places, phases)
        free.set_title("(a) settle: free equilibrium θ*", loc="left")
        _draw_network(nudged, network, places, phases, shift * magnified)
        _draw_targets(nudged, objective.nodes(network), places, np.asarray(target))
        nudged.set_title(f"(b) nudge the outputs, β = {beta:g}", loc="left")
        nudged.text(
            0.5,
            -0.02,
            f"black: free; purple: nudged, shift × {magnified:.0f}; dashes: target",
            transform=nudged.transAxes,
            ha="center",
            va="top",
        )
        _draw_gradient(read, network, gradient.get("omega"), exact)
        read.set_title("(c) shift / β is minus the gradient", loc="left")
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=200)


def _magnification(phases: FloatArray, shift: FloatArray, target: FloatArray) -> float:
    """Return how much larger shifts can be drawn before an output would seem to pass its target."""
    room = np.abs(target - phases) / np.maximum(np.abs(shift), 1e-12)
    return float(np.clip(0.9 * np.min(room), 1.0, 1e3))


def _draw_network(axes: Any, network: Network, places: FloatArray, phases: FloatArray, shift: Any = None) -> None:
    """Draw oscillators as clocks whose hand points at the phase, with the shifted hand beside it."""
    from matplotlib.patches import Circle

    for (i, j), strength in zip(network.edges, network.coupling, strict=True):
        width = 0.4 + 1.6 * strength / network.coupling.max()
        axes.plot(*places[[i, j]].T, color="#9A9A9A", linewidth=width, alpha=0.5, zorder=1)
    for node, (x, y) in enumerate(places):
        axes.text(x, y + 0.39, str(node), ha="center", va="bottom", fontsize=7, zorder=5)
        axes.add_patch(Circle((x, y), 0.36, facecolor=_colour(network, node), edgecolor="black", zorder=2))
        _hand(axes, x, y, phases[node], "black", 1.8)
        if shift is not None:
            _hand(axes, x, y, phases[node] + shift[node], NUDGED, 1.8)
    axes.set_aspect("equal")
    axes.set_xlim(places[:, 0].min() - 0.6, places[:, 0].max() + 0.75)
    axes.set_ylim(places[:, 1].min() - 0.5, places[:, 1].max() + 0.5)
    axes.axis("off")


def _draw_targets(axes: Any, nodes: tuple[int, ...], places: FloatArray, target: FloatArray) -> None:
    for node, angle in zip(nodes, target, strict=True):
        x, y = places[node]
        along = np.array([0.0, 0.62])
        axes.plot(x + along * np.cos(angle), y + along * np.sin(angle), "--", color="black", linewidth=1, zorder=4)


def _draw_gradient(axes: Any, network: Network, nudged: FloatArray, exact: FloatArray) -> None:
    nodes = range(network.size)
    colours = [_colour(network, node) for node in nodes]
    axes.bar(nodes, nudged, color=colours, edgecolor="black", linewidth=0.6)
    axes.bar([0], [0], color="white", edgecolor="black", linewidth=0.6, label="two-phase: −(θᵝ − θ*) / β")
    axes.plot(nodes, exact, "D", color=EXACT, markersize=4, label="exact: adjoint")
    axes.axhline(0, color="black", linewidth=0.6)
    held = set(network.held.tolist())
    axes.set_xticks(nodes, [f"{node}\nheld" if node in held else str(node) for node in nodes])
    axes.set_xlabel("oscillator (blue input, grey hidden, amber output)")
    axes.set_ylabel("∂C / ∂ω")
    axes.legend(frameon=False, loc="best")


def _hand(axes: Any, x: float, y: float, angle: float, colour: str, width: float) -> None:
    axes.plot([x, x + 0.34 * np.cos(angle)], [y, y + 0.34 * np.sin(angle)], color=colour, linewidth=width, zorder=3)


def _colour(network: Network, node: int) -> str:
    if node in network.inputs:
        return INPUT
    return OUTPUT if node in network.outputs else HIDDEN


def _places(network: Network) -> FloatArray:
    """Return node positions: inputs left, hidden nodes in the middle, outputs right."""
    rest = [k for k in range(network.size) if k not in network.inputs and k not in network.outputs]
    places = np.zeros((network.size, 2))
    for column, nodes in enumerate((network.inputs, rest, network.outputs)):
        for row, node in enumerate(nodes):
            places[node] = 1.6 * column, (len(nodes) - 1) / 2 - row
    return places


def import_matplotlib() -> Any:
    """Return matplotlib, or say which extra brings it."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise ImportError(
            "Drawing needs matplotlib, which is not installed. Install it with 'pip install phasegrad[plot]'."
        ) from None
    return mpl
