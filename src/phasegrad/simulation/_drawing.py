"""Runs as pictures: phases, order parameters and frequencies in time, and the order parameter by coupling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from phasegrad._validation import BoolArray, FloatArray, choice, counted
from phasegrad.pictures import CYCLE, GUIDE, canvas, draw_curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from phasegrad.simulation._trajectory import Trajectory
    from phasegrad.simulation._transition import Transition

_KINDS = ("phases", "order", "frequencies")
# Oscillators that can have a line of their own.
_LINES = 200


def plot_trajectory(run: Trajectory, ax: Axes | None, kind: str) -> Axes:
    """Draw a run; `Trajectory.plot` says how."""
    owner = "Trajectory.plot"
    choice("kind", kind, _KINDS, owner)
    many = run.times.size > 1
    with canvas(ax, owner, 4.5, 3.0) as axes:
        axes.set_xlabel("time")
        if kind == "order":
            order = run.order_parameter().reshape(run.times.size, -1).T
            draw_curves(axes, run.times, order, CYCLE[0])
            axes.set(ylim=(-0.03, 1.03), ylabel="order parameter r")
            axes.set_title(f"synchrony of {counted(run.network.size, 'oscillator')}")
            return axes
        values = run.phases if kind == "phases" else run.velocities
        lines = values.reshape(run.times.size, -1, run.network.size)[:, 0]
        locked = run.locked.reshape(-1, run.network.size)[0] if many else np.ones(run.network.size, dtype=bool)
        if kind == "phases":
            lines = _together(lines, locked)
        shown = np.linspace(0, run.network.size - 1, min(run.network.size, _LINES)).astype(int)
        for k in shown:
            axes.plot(run.times, lines[:, k], color=CYCLE[0] if locked[k] else CYCLE[5], linewidth=0.9, alpha=0.8)
        axes.set_ylabel("phase (rad)" if kind == "phases" else "frequency (rad / time)")
        drifting = "" if locked.all() else " (orange: drifting)"
        first = f", first of {counted(run.turning.size, 'sample')}" if run.turning.size > 1 else ""
        drawn = f", {shown.size} drawn" if shown.size < locked.size else ""
        axes.set_title(f"{locked.sum()} of {locked.size} locked{drawn}, {run.frame} frame{drifting}{first}")
    return axes


def _together(phases: FloatArray, locked: BoolArray) -> FloatArray:
    """Return phases (T, N) less full turns, so that those that are locked end within half a turn of their mean."""
    if not locked.any():
        return phases
    mean = np.angle(np.mean(np.exp(1j * phases[-1, locked])))
    turns = np.rint((phases[-1] - mean) / (2 * np.pi))
    common = np.rint(np.median(turns[locked]))
    return np.asarray(phases - 2 * np.pi * np.where(locked, turns - common, 0.0))


def plot_transition(found: Transition, ax: Axes | None) -> Axes:
    """Draw the order parameter by coupling; `Transition.plot` says how."""
    with canvas(ax, "Transition.plot", 4.5, 3.0) as axes:
        ways = (("down", found.down, found.theory, "v", CYCLE[0]), ("up", found.up, found.theory_up, "^", CYCLE[1]))
        for way, order, theory, mark, colour in ways:
            if order is None:
                continue
            if theory is not None:
                axes.plot(found.couplings, theory, color=colour, label=f"theory, coupling {way}")
            axes.plot(found.couplings, order, mark, color=colour, label=f"{found.size} oscillators, coupling {way}")
        if found.critical is not None:
            axes.axvline(found.critical, color=GUIDE, linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
        axes.set(xlabel="coupling K", ylabel="order parameter r", ylim=(-0.03, 1.03))
        axes.set_title(f"transition to synchrony, {found.frequencies} frequencies")
        axes.legend(loc="lower right")
    return axes
