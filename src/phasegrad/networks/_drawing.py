"""A network as a picture: oscillators as clocks or discs, edges by their coupling or by their stress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from phasegrad._validation import FloatArray, IntArray, choice, counted, finite_array, shaped_array
from phasegrad.graphs import Graph
from phasegrad.pictures import MOST_CLOCKS, ROLES, arrange, canvas, draw_clocks, draw_edges, draw_points, fit, levels
from phasegrad.terms import Interaction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from phasegrad.networks._network import Network

_NODES = ("auto", "hands", "dots")
# Oscillators for which springs find places in seconds, and edges that can be told apart.
_PLACED, _EDGES = 500, 20_000


def plot_network(network: Network, ax: Axes | None, phases: Any, nodes: str, colour: str | None, places: Any) -> Axes:
    """Draw a network; `Network.plot` says what the arguments are."""
    owner, angles = "Network.plot", None
    if phases is not None:
        angles = shaped_array("phases", finite_array("phases", phases, owner), (network.size,), owner)
    hands = _as_hands(network.size, angles, choice("nodes", nodes, _NODES, owner))
    by = colour or ("phase" if angles is not None and not hands else "role")
    on_nodes = [p.name for term in network.terms for p in term.parameters if p.on == "nodes"]
    by = choice("colour", by, ("role", *(("phase",) if angles is not None else ()), *on_nodes), owner)
    if hands and by != "role":
        raise ValueError("Clocks show roles as colours. Take nodes='dots' to see another value as a colour.")
    if network.n_edges > _EDGES:
        raise ValueError(f"Network.plot draws up to {_EDGES} edges. Got {network.n_edges}: plot a state instead.")
    where = _places(network.graph, places)
    with canvas(ax, owner, 4.2, 3.6) as axes:
        words = _draw_edges(axes, network, where, angles)
        if hands and angles is not None:
            faces = [ROLES[role] for role in network.graph.roles]
            radius = draw_clocks(axes, where, angles, faces, names=_names(network))
        else:
            radius = 0.05 * float(np.max(np.ptp(where, axis=0), initial=1.0))
            _draw_dots(axes, network, where, by, angles)
        if by == "role":
            _name_roles(axes, network.graph)
        fit(axes, where, 1.8 * radius)
        axes.set_title(words)
    return axes


def _as_hands(size: int, angles: FloatArray | None, nodes: str) -> bool:
    if nodes == "hands" and angles is None:
        raise ValueError("Hands point at phases. Give them, such as phases=find_equilibrium(network).phases.")
    if nodes == "hands" and size > MOST_CLOCKS:
        raise ValueError(f"Hands can be read of up to {MOST_CLOCKS} oscillators. Got {size}: take nodes='dots'.")
    return nodes != "dots" and angles is not None and size <= MOST_CLOCKS


def _places(graph: Graph, given: Any) -> FloatArray:
    if given is not None:
        return shaped_array("places", finite_array("places", given, "Network.plot"), (graph.size, 2), "Network.plot")
    if graph.size > _PLACED and levels(graph.size, graph.edges, graph.inputs, graph.outputs) is None:
        raise ValueError(
            f"Network.plot finds places for up to {_PLACED} oscillators without layers. Got {graph.size}: give "
            "'places', a row (x, y) for each, or plot a state of the network with Equilibrium.plot."
        )
    return arrange(graph.size, graph.edges, graph.inputs, graph.outputs)


def _draw_edges(axes: Axes, network: Network, places: FloatArray, angles: FloatArray | None) -> str:
    """Draw edges as wide as their coupling or, of phases, as wide and dark as their stress; return what they mean."""
    graph = network.graph
    coupling = graph.sharing.spread("edges", network.coupling)
    dashed, size = coupling < 0, f"{counted(graph.size, 'oscillator')}, {counted(graph.n_edges, 'edge')}"
    # Many edges are thin ones, so that they can be told apart.
    widest = 3.5 * float(np.clip(np.sqrt(50 / max(graph.n_edges, 1)), 0.15, 1.0))
    if angles is None:
        draw_edges(axes, places, graph.edges, _shares(np.abs(coupling)), widest=0.6 * widest, dashed=dashed)
        return f"{size} (width: coupling)"
    stress = _stress(graph.edges, angles, network.interaction)
    shares = _shares(stress)
    draw_edges(axes, places, graph.edges, shares, widest=widest, darkness=shares, dashed=dashed)
    return f"{size}\nstress up to {np.max(stress, initial=0.0):.0%} of what an edge can hold"


def _stress(edges: IntArray, phases: FloatArray, interaction: Interaction) -> FloatArray:
    """Return the share of its largest pull that every edge exerts, (E,): abs(H) over the largest abs(H)."""
    pull = interaction.value(phases[edges[:, 1]] - phases[edges[:, 0]])
    return np.abs(pull) / interaction.bound


def _shares(values: FloatArray) -> FloatArray:
    return values / max(float(np.max(values, initial=0.0)), 1e-300)


def _draw_dots(axes: Axes, network: Network, places: FloatArray, by: str, angles: FloatArray | None) -> None:
    if by == "role":
        draw_points(axes, places, [ROLES[role] for role in network.graph.roles])
    elif by == "phase" and angles is not None:
        cyclic = float(np.ptp(angles)) > np.pi
        draw_points(axes, places, angles, label="phase (rad)", cyclic=cyclic)
    else:
        draw_points(axes, places, network.graph.sharing.spread("nodes", network.parameters[by]), label=by)


def _name_roles(axes: Axes, graph: Graph) -> None:
    """Say which colour is which role, where there are several."""
    from matplotlib.lines import Line2D

    there = [role for role in ROLES if role in graph.roles]
    look: dict[str, Any] = {"marker": "o", "linestyle": "none", "markersize": 6, "markeredgecolor": "black"}
    handles = [Line2D([], [], color=ROLES[role], label=role, markeredgewidth=0.6, **look) for role in there]
    if len(there) > 1:
        axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, borderaxespad=0)


def _names(network: Network) -> list[str]:
    return [str(name) for name in (range(network.size) if network.labels is None else network.labels)]
