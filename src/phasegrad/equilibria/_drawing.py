"""States as pictures: phases on circles, stress across edges, shares of starts, and how a locked state is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from phasegrad._validation import BoolArray, FloatArray, choice, counted
from phasegrad.dynamics import System, wrapped
from phasegrad.graphs import Graph
from phasegrad.pictures import COLOURS, CYCLE, ROLES, Ring, canvas, draw_bars, draw_rings, guide

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from phasegrad.equilibria._critical import CriticalScale
    from phasegrad.equilibria._equilibrium import Equilibrium
    from phasegrad.equilibria._states import Equilibria

_KINDS = ("circle", "stress")
# Oscillators, and states, that can have a circle or a bar of their own.
_RINGS, _STATES = 16, 20
# Cycles whose winding can be the name of a state.
_CYCLES = 4


def plot_equilibrium(equilibrium: Equilibrium, ax: Axes | None, kind: str) -> Axes:
    """Draw the samples of an equilibrium; `Equilibrium.plot` says how."""
    owner = "Equilibrium.plot"
    choice("kind", kind, _KINDS, owner)
    if equilibrium.system is None:
        raise ValueError("This equilibrium does not carry its network: find it again with find_equilibrium.")
    system, size = equilibrium.system, equilibrium.phases.shape[-1]
    phases, stable = equilibrium.phases.real.reshape(-1, size), equilibrium.stable.ravel()
    if kind == "stress" and not np.any(equilibrium.converged):
        raise ValueError("No sample of this equilibrium converged, so that there is no stress to draw.")
    with canvas(ax, owner, *((3.6, 3.8) if kind == "circle" else (4.5, 3.0))) as axes:
        if kind == "circle":
            draw_rings(axes, _rings(system.graph, phases, stable))
            left = "" if np.all(stable) else ", hollow where not stable"
            axes.set_title(f"phases of {counted(len(phases), 'sample')}{left}")
        else:
            _draw_stress(axes, system, phases[equilibrium.converged.ravel()])
    return axes


def _rings(graph: Graph, phases: FloatArray, stable: BoolArray) -> list[Ring]:
    """Return a circle for every oscillator or, of many, one for every role."""
    roles = np.array(graph.roles)
    filled = np.broadcast_to(stable[:, None], phases.shape)
    groups = [(str(k), [k], roles[k]) for k in range(graph.size)]
    if graph.size > _RINGS:
        groups = [(role, np.flatnonzero(roles == role).tolist(), role) for role in ROLES if role in roles]
    return [
        Ring(name, phases[:, nodes].ravel(), _POINTS[role], filled[:, nodes].ravel()) for name, nodes, role in groups
    ]


# The colours of roles, but for hidden oscillators a grey that a small point needs.
_POINTS = {**ROLES, "hidden": "#777777"}


def _draw_stress(axes: Axes, system: System, phases: FloatArray) -> None:
    """Draw the largest angle across every edge, the largest first."""
    edges = system.graph.edges
    angles = np.max(np.abs(wrapped(phases[:, edges[:, 1]] - phases[:, edges[:, 0]])), axis=0)
    order = np.argsort(-angles, kind="stable")
    names = [f"{i}-{j}" for i, j in edges[order]]
    draw_bars(axes, angles[order], colours=CYCLE[0], names=names)
    over = "" if len(phases) == 1 else f", largest of {counted(len(phases), 'sample')}"
    axes.set(xlabel="edge, by stress", ylabel="angle (rad)", title=f"angle across every edge{over}")
    if angles.size and angles.max() > np.pi / 4:
        guide(axes, np.pi / 2, "π/2: most that sine coupling holds")


def plot_equilibria(found: Equilibria, ax: Axes | None) -> Axes:
    """Draw which share of the starts ended in each state; `Equilibria.plot` says how."""
    shares = found.share[:_STATES]
    names = [str(k) for k in range(len(shares))]
    winds = 0 < len(found.cycles) <= _CYCLES
    if winds:
        names = [" ".join(f"{turns:+d}" for turns in row) for row in found.winding[:_STATES].tolist()]
    rest = 1.0 - float(shares.sum())
    elsewhere = rest > 0.5 / found.starts
    with canvas(ax, "Equilibria.plot", 4.5, 3.0) as axes:
        values = np.append(shares, rest) if elsewhere else shares
        colours = [CYCLE[0]] * len(shares) + ["white"] * elsewhere
        draw_bars(axes, values, colours=colours, names=[*names, "others"] if elsewhere else names)
        axes.set(xlabel="state, by winding" if winds else "state", ylabel="share of random starts")
        axes.set_title(f"{counted(len(found), 'stable state')} from {counted(found.starts, 'random start')}")
    return axes


def plot_critical(found: CriticalScale, ax: Axes | None) -> Axes:
    """Draw how every oscillator moves as the locked state is lost; `CriticalScale.plot` says how."""
    if found.mode is None:
        raise ValueError(f"At a critical scale of {found.scale:g} nothing gives way, so that there is no mode to draw.")
    loose = set(found.oscillators.tolist())
    with canvas(ax, "CriticalScale.plot", 4.5, 3.0) as axes:
        colours = [COLOURS["failure"] if k in loose else CYCLE[-1] for k in range(found.mode.size)]
        draw_bars(axes, found.mode, colours=colours)
        axes.set(xlabel="oscillator (vermilion: breaks away)", ylabel="mode")
        axes.set_title(f"locking is lost at {found.scale:.4g} × the frequencies")
    return axes
