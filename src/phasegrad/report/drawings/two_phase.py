"""The two-phase protocol on one sample: settle, nudge, read the gradient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from phasegrad._validation import FloatArray
from phasegrad.equilibria import find_equilibrium
from phasegrad.gradients import adjoint, two_phase
from phasegrad.networks import Network, layered
from phasegrad.objectives import PhaseTargets
from phasegrad.report.drawings.style import COLOURS, WIDE, drawn, letter, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INPUT, HIDDEN, OUTPUT, NUDGED, EXACT = "#56B4E9", "#D0D0D0", "#E69F00", COLOURS["two_phase"], "#222222"
_SIZE = (WIDE, 2.75, 1, 3)
_LAYOUT: dict[str, Any] = {"gridspec_kw": {"width_ratios": [1, 1, 1.3]}}


def draw_two_phase(path: Path, *, seed: int = 0, beta: float = 0.1) -> None:
    """Draw the protocol on the paper's 2+5+2 network into a file, whose ending chooses the format."""
    with drawn(path, *_SIZE, **_LAYOUT) as (_, axes):
        _draw(axes, seed, beta)


def schematic(_: Mapping[str, Any]) -> Figure:
    """Draw the protocol on the paper's 2+5+2 network; needs no data."""
    figure, axes = panels(*_SIZE, **_LAYOUT)
    _draw(axes, 0, 0.1)
    return figure


def _draw(axes: Sequence[Axes], seed: int, beta: float) -> None:
    """Draw a network that settles and is nudged, and the gradient read off the two."""
    network = layered(2, 5, 2, seed=seed)
    # Stronger inputs and targets than in training, so that the phases can be seen.
    equilibrium, target = find_equilibrium(network, [3.0, -2.5]), np.array([-1.2, 0.6])
    question = (network, equilibrium, PhaseTargets(), target)
    gradient, exact = two_phase(*question, beta=beta).omega, adjoint(*question).omega
    free, nudged, read = axes
    phases, shift, outputs, places = equilibrium.phases, -beta * gradient, list(network.outputs), _places(network)
    magnified = _magnification(phases[outputs], shift[outputs], target)
    _draw_network(free, network, places, phases)
    letter(free, "a", "settle: free equilibrium θ*")
    _draw_network(nudged, network, places, phases, shift * magnified)
    for (x, y), angle in zip(places[outputs], target, strict=True):
        along = np.array([0.0, 0.62])
        nudged.plot(x + along * np.cos(angle), y + along * np.sin(angle), "--", color="black", linewidth=1, zorder=4)
    letter(nudged, "b", f"nudge the outputs, β = {beta:g}")
    words = f"black: free; dashes: target\npurple: nudged, shift × {magnified:.0f}"
    nudged.text(0.5, -0.02, words, transform=nudged.transAxes, ha="center", va="top", fontsize=7)
    _draw_gradient(read, network, gradient, exact)
    letter(read, "c", "shift / β is minus the gradient")


def _magnification(phases: FloatArray, shift: FloatArray, target: FloatArray) -> float:
    """Return how much larger shifts can be drawn before an output would seem to pass its target."""
    room = np.abs(target - phases) / np.maximum(np.abs(shift), 1e-12)
    return float(np.clip(0.9 * np.min(room), 1.0, 1e3))


def _draw_network(axes: Axes, network: Network, places: FloatArray, phases: FloatArray, shift: Any = None) -> None:
    """Draw oscillators as clocks whose hand points at the phase, with the shifted hand beside it."""
    from matplotlib.patches import Circle

    for (i, j), strength in zip(network.edges, network.coupling, strict=True):
        width = 0.4 + 1.6 * strength / network.coupling.max()
        axes.plot(*places[[i, j]].T, color="#9A9A9A", linewidth=width, alpha=0.5, zorder=1)
    for node, (x, y) in enumerate(places):
        axes.text(x, y + 0.4, str(node), ha="center", va="bottom", fontsize=7, zorder=5)
        axes.add_patch(Circle((x, y), 0.36, facecolor=_colour(network, node), edgecolor="black", zorder=2))
        _hand(axes, x, y, phases[node], "black", 1.8)
        if shift is not None:
            _hand(axes, x, y, phases[node] + shift[node], NUDGED, 1.8)
    axes.set_aspect("equal")
    axes.set_xlim(places[:, 0].min() - 0.6, places[:, 0].max() + 0.75)
    axes.set_ylim(places[:, 1].min() - 0.5, places[:, 1].max() + 0.9)
    axes.axis("off")


def _draw_gradient(axes: Axes, network: Network, nudged: FloatArray, exact: FloatArray) -> None:
    nodes = range(network.size)
    colours = [_colour(network, node) for node in nodes]
    axes.bar(nodes, nudged, color=colours, edgecolor="black", linewidth=0.6)
    axes.bar([0], [0], color="white", edgecolor="black", linewidth=0.6, label="two-phase: −(θᵝ − θ*) / β")
    axes.plot(nodes, exact, "D", color=EXACT, markersize=4, label="exact: adjoint")
    axes.axhline(0, color="black", linewidth=0.6)
    held = set(network.held.tolist())
    axes.set_xticks(nodes, [f"{node}\nheld" if node in held else str(node) for node in nodes])
    axes.set_xlabel("oscillator (blue: input, amber: output)")
    axes.set_ylabel("∂C / ∂ω")
    axes.legend(frameon=False, loc="best")


def _hand(axes: Axes, x: float, y: float, angle: float, colour: str, width: float) -> None:
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
            places[node] = 1.7 * column, 1.3 * ((len(nodes) - 1) / 2 - row)
    return places
