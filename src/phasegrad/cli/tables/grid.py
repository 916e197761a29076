"""The power grid as tables and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from phasegrad._validation import FloatArray, counted
from phasegrad.cli.tables.layout import table
from phasegrad.grids import GridAnalysis
from phasegrad.pictures import draw_edges, draw_points, draw_words, drawn, fit, springs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = 8


def grid_tables(found: GridAnalysis) -> RenderableType:
    """Return what the analysis of a grid found, for the terminal."""
    grid, margin = found.grid, found.margin
    assert grid.labels is not None
    title = f"{grid.name} at {found.scale:g} times its injections: {grid.size} buses, {counted(grid.n_edges, 'line')}"
    lines: list[RenderableType] = [Text(title, style="bold"), Text(found.equilibrium.status.item().value)]
    if found.equilibrium.converged:
        smallest = float(np.asarray(found.equilibrium.smallest_eigenvalue))
        lines.append(Text(f"residual {float(found.equilibrium.residual):.1e}, smallest eigenvalue {smallest:.4g}"))
    if (bus := found.blocking) is not None:
        carried = grid.base_mva * float(np.sum(np.abs(grid.coupling[(grid.edges == bus).any(axis=1)])))
        power = f"{grid.base_mva * abs(grid.omega[bus]):.0f} MW, its lines carry {carried:.0f} MW at most"
        lines.append(Text(f"To blame is bus {grid.labels[bus]}: it exchanges {power}."))
    if found.synchronous:
        lines.append(_stressed_table(found))
    lines.append(Text(_margin(found), style="bold"))
    if margin is not None and margin.edges.size:
        first = ", ".join(grid.lines[e] for e in margin.edges[:_SHOWN])
        away = ", ".join(str(grid.labels[k]) for k in margin.oscillators[:_SHOWN])
        more = ", ..." if margin.oscillators.size > _SHOWN else ""
        lines.append(Text(f"Lines that give way first: {first}. Buses that break away: {away}{more}."))
    if found.relief is not None:
        lines += _relief_tables(found)
    return Group(*lines)


def _stressed_table(found: GridAnalysis) -> RenderableType:
    grid, rows = found.grid, []
    for e in found.stressed:
        angle = found.angles[e]
        rows.append((grid.lines[e], f"{np.degrees(angle):.2f}", f"{found.flow(e):.1f}", f"{abs(np.sin(angle)):.0%}"))
    headings = ("line", "angle (deg)", "flow (MW)", "of its limit")
    return table("Most stressed lines", headings, rows, _limit(found))


def _limit(found: GridAnalysis) -> str:
    """Return what the angles of a stable state say about the lines."""
    words = "90 degrees is the most a line can hold by itself."
    if found.beyond:
        words += f" Beyond that, held by others: {_named(found, found.beyond)}."
    if found.beyond and found.negative:
        has, push = ("has", "pushes its") if len(found.negative) == 1 else ("have", "push their")
        words += (
            f" {_named(found, found.negative)} {has} negative coupling (negative reactance: series compensation, or "
            f"the star of a transformer) and {push} ends half a turn apart."
        )
    if not found.flat:
        words += " All phases equal, near which a power flow ends, is not a stable state here, even without injections."
    return words


def _margin(found: GridAnalysis) -> str:
    if found.margin is not None:
        return f"Synchrony is lost at {found.margin.scale:.4g} times these injections."
    return "How far it is from synchrony is not known: no stable state was found at any smaller injections either."


def _named(found: GridAnalysis, lines: list[int]) -> str:
    """Return the names of some lines, the first few of many."""
    return ", ".join(found.grid.lines[e] for e in lines[:_SHOWN]) + (", ..." if len(lines) > _SHOWN else "")


def _relief_tables(found: GridAnalysis) -> list[RenderableType]:
    grid, relief = found.grid, found.relief
    assert relief is not None
    assert grid.labels is not None
    power = grid.base_mva * relief.redispatch
    moved = float(np.sum(np.abs(power)) / 2)
    title = f"Relieving line {grid.lines[relief.line]}: {moved:.1f} MW moved between generators"
    note = f"two-phase and adjoint gradient: 1 - cosine {1 - relief.agreement:.1e}"
    order = [int(node) for node in np.argsort(-np.abs(power), kind="stable") if power[node] != 0]
    changes = [(str(grid.labels[k]), f"{power[k]:+.2f}") for k in order[:_SHOWN]]
    now, expected, after = (float(np.degrees(angle)) for angle in (relief.before, relief.predicted, relief.after))
    words = f"Angle across it: {now:.3f} deg now, {expected:.3f} predicted, {after:.3f} after solving again."
    return [table(title, ("generator at bus", "change (MW)"), changes, note), Text(words)]


def draw_grid(found: GridAnalysis, path: Path) -> None:
    """Draw the grid: phase as colour, stress as width, the most stressed lines named.

    Without a stable state there are neither, and the picture, of the grid alone, says so.
    """
    grid = found.grid
    # Electrically near buses lie near each other; the cases carry no map.
    places = springs(grid.size, grid.edges, np.abs(grid.coupling) ** -0.5)
    stress = np.abs(np.sin(found.angles)) if found.synchronous else np.zeros(grid.n_edges)
    shares = stress / max(float(stress.max()), 1e-9)
    injected = np.abs(grid.omega) / max(float(np.max(np.abs(grid.omega))), 1e-300)
    sizes = 35 + 260 * injected
    with drawn(path, 10, 7) as (_, (axes,)):
        draw_edges(axes, places, grid.edges, shares, widest=6.0, darkness=0.25 + 0.75 * shares)
        degrees = np.degrees(found.equilibrium.phases)
        colours = degrees if found.synchronous else ["white"] * grid.size
        draw_points(axes, places, colours, label="phase (degrees)", sizes=sizes)
        state = "" if found.synchronous else ": no stable state"
        lost = "" if found.margin is None else f"; synchrony is lost at {found.margin.scale:.3g} × these"
        axes.set_title(f"{grid.name} at {found.scale:g} × its injections{state}{lost}")
        words = "line width and darkness: stress |sin of the angle|; " if found.synchronous else ""
        axes.text(0.0, -0.01, f"{words}bus size: injected power", transform=axes.transAxes, va="top")
        fit(axes, places, 0.04 * float(np.max(np.ptp(places, axis=0))))
        _draw_names(axes, found, places, np.sqrt(sizes / np.pi))


def _draw_names(axes: Axes, found: GridAnalysis, places: FloatArray, radii: FloatArray) -> None:
    """Write the angles of the most stressed lines on them, and the numbers of buses, all where there is room."""
    grid = found.grid
    assert grid.labels is not None
    named = sorted({int(node) for e in found.stressed for node in grid.edges[e]})
    if grid.size <= 60:
        named = list(range(grid.size))
    angles = [f"{abs(np.degrees(found.angles[e])):.0f}°" for e in found.stressed]
    middles = places[grid.edges[found.stressed]].mean(axis=1).reshape(-1, 2)
    spots, words = np.concatenate([middles, places[named]]), [*angles, *(str(grid.labels[node]) for node in named)]
    draw_words(axes, spots, words, taken=places, radii=radii)
