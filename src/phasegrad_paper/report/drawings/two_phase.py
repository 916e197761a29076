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
from phasegrad.pictures import (
    COLOURS,
    ROLES,
    WIDE,
    arrange,
    draw_bars,
    draw_clocks,
    draw_edges,
    drawn,
    fit,
    letter,
    panels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE = (WIDE, 3.5, 1, 3)
_LAYOUT: dict[str, Any] = {"gridspec_kw": {"width_ratios": [1, 1, 1]}}


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
    phases, shift, outputs = equilibrium.phases, -beta * gradient, list(network.outputs)
    magnified = _magnification(phases[outputs], shift[outputs], target)
    _draw_network(free, network, phases)
    letter(free, "a", "settle: free equilibrium θ*")
    _draw_network(nudged, network, phases, phases + shift * magnified, target)
    letter(nudged, "b", f"nudge the outputs, β = {beta:g}")
    _name_hands(nudged, f"nudged, shift × {magnified:.0f}")
    _draw_gradient(read, network, gradient, exact)
    letter(read, "c", "shift / β is minus the gradient")


def _magnification(phases: FloatArray, shift: FloatArray, target: FloatArray) -> float:
    """Return how much larger shifts can be drawn before an output would seem to pass its target."""
    room = np.abs(target - phases) / np.maximum(np.abs(shift), 1e-12)
    return float(np.clip(0.9 * np.min(room), 1.0, 1e3))


def _draw_network(
    axes: Axes, network: Network, phases: FloatArray, shifted: FloatArray | None = None, target: Any = ()
) -> None:
    """Draw oscillators as clocks, the shifted hand beside that of the phase, and where outputs should point."""
    # The columns stand closer than usual: three panels share the width of a page, and the clocks need it.
    places = arrange(network.size, network.edges, network.inputs, network.outputs) * [0.8, 1.0]
    draw_edges(axes, places, network.edges, network.coupling / network.coupling.max(), widest=1.6)
    faces = [ROLES[role] for role in network.graph.roles]
    radius = draw_clocks(axes, places, phases, faces, shifted=shifted, names=[str(k) for k in range(network.size)])
    for (x, y), angle in zip(places[list(network.outputs)], target, strict=False):
        along = np.array([0.0, 1.6 * radius])
        look: dict[str, Any] = {"color": "black", "linewidth": 1, "zorder": 4}
        axes.plot(x + along * np.cos(angle), y + along * np.sin(angle), linestyle=(0, (2.5, 1.5)), **look)
    fit(axes, places, 1.65 * radius)


def _name_hands(axes: Axes, shifted: str) -> None:
    """Say which hand is which, under the panel."""
    from matplotlib.lines import Line2D

    looks: tuple[tuple[str, dict[str, Any]], ...] = (
        ("free", {"color": "black", "linewidth": 2}),
        ("target", {"color": "black", "linewidth": 1, "linestyle": (0, (2.5, 1.5))}),
        (shifted, {"color": COLOURS["shifted"], "linewidth": 2}),
    )
    handles = [Line2D([], [], label=words, **look) for words, look in looks]
    place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.02), "borderaxespad": 0}
    axes.legend(handles=handles, ncols=2, columnspacing=1.2, **place)


def _draw_gradient(axes: Axes, network: Network, nudged: FloatArray, exact: FloatArray) -> None:
    held = set(network.held.tolist())
    names = [f"{node}\nheld" if node in held else str(node) for node in range(network.size)]
    draw_bars(
        axes, nudged, colours=[ROLES[role] for role in network.graph.roles], label="two-phase: −(θᵝ − θ*) / β",
        names=names, beside=exact, beside_label="exact: adjoint",
    )  # fmt: skip
    axes.set_xlabel("oscillator (blue: input, amber: output)")
    axes.set_ylabel("∂C / ∂ω")
    axes.legend(loc="lower left")
