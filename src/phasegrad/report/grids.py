"""The power grid as tables and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from phasegrad.grid_analysis import GridAnalysis
from phasegrad.report.console import counted, plain_table
from phasegrad.report.drawings.style import panels, picture, style
from phasegrad.report.figures import format_of, save
from phasegrad.topologies import to_networkx
from phasegrad.validation import FloatArray

_SHOWN = 8


def grid_tables(found: GridAnalysis) -> RenderableType:
    """Return what the analysis of a grid found, for the terminal."""
    grid, margin = found.grid, found.margin
    assert grid.labels is not None
    title = f"{grid.name} at {found.scale:g} times its injections: {grid.size} buses, {counted(grid.n_edges, 'line')}"
    lines: list[RenderableType] = [Text(title, style="bold"), Text(found.equilibrium.status.item().value)]
    smallest = float(np.asarray(found.equilibrium.smallest_eigenvalue))
    lines.append(Text(f"residual {float(found.equilibrium.residual):.1e}, smallest eigenvalue {smallest:.4g}"))
    if found.equilibrium.stable:
        table = plain_table("Most stressed lines", "90 degrees is the most a single line can hold")
        for heading in ("line", "angle (deg)", "flow (MW)", "of its limit"):
            table.add_column(heading, justify="left" if heading == "line" else "right")
        for e in found.stressed:
            angle = found.angles[e]
            cells = (f"{np.degrees(angle):.2f}", f"{found.flow(e):.1f}", f"{abs(np.sin(angle)):.0%}")
            table.add_row(grid.lines[e], *cells)
        lines.append(table)
    lines.append(Text(f"Synchrony is lost at {margin.scale:.4g} times these injections.", style="bold"))
    if margin.edges.size:
        first = ", ".join(grid.lines[e] for e in margin.edges[:_SHOWN])
        away = ", ".join(str(grid.labels[k]) for k in margin.oscillators[:_SHOWN])
        more = ", ..." if margin.oscillators.size > _SHOWN else ""
        lines.append(Text(f"Lines that give way first: {first}. Buses that break away: {away}{more}."))
    if found.relief is not None:
        lines += _relief_tables(found)
    return Group(*lines)


def _relief_tables(found: GridAnalysis) -> list[RenderableType]:
    grid, relief = found.grid, found.relief
    assert relief is not None
    assert grid.labels is not None
    power = grid.base_mva * relief.redispatch
    moved = float(np.sum(np.abs(power)) / 2)
    table = plain_table(
        f"Relieving line {grid.lines[relief.line]}: {moved:.1f} MW moved between generators",
        f"two-phase and adjoint gradient: 1 - cosine {1 - relief.agreement:.1e}",
    )
    for heading in ("generator at bus", "change (MW)"):
        table.add_column(heading, justify="right")
    order = np.argsort(-np.abs(power), kind="stable")
    for k in [int(node) for node in order if power[node] != 0][:_SHOWN]:
        table.add_row(str(grid.labels[k]), f"{power[k]:+.2f}")
    now, expected, after = (float(np.degrees(angle)) for angle in (relief.before, relief.predicted, relief.after))
    return [
        table,
        Text(f"Angle across it: {now:.3f} deg now, {expected:.3f} predicted, {after:.3f} after solving again."),
    ]


def draw_grid(found: GridAnalysis, path: Path) -> None:
    """Draw the grid: phase as colour, stress as width, the most stressed lines named.

    Parameters
    ----------
    found : GridAnalysis
    path : Path
        Where to write; the ending chooses the format.
    """
    ending = format_of(path)
    with style():
        figure, (axes,) = panels(10, 7)
        places = _places(found)
        _draw_lines(axes, found, places)
        degrees = np.degrees(found.equilibrium.phases)
        span = float(np.max(np.abs(degrees), initial=1e-9))
        injected = np.abs(found.grid.omega) / np.max(np.abs(found.grid.omega))
        buses = axes.scatter(
            places[:, 0], places[:, 1], c=degrees, cmap="coolwarm", vmin=-span, vmax=span, s=35 + 260 * injected,
            edgecolor="black", linewidth=0.6, zorder=3,
        )  # fmt: skip
        figure.colorbar(buses, ax=axes, label="phase (degrees)", shrink=0.7, pad=0.01)
        _draw_names(axes, found, places)
        axes.set_title(
            f"{found.grid.name} at {found.scale:g} × its injections; synchrony is lost at "
            f"{found.margin.scale:.3g} × these",
            loc="left",
        )
        axes.text(
            0.0, -0.01, "line width and darkness: stress |sin of the angle|; bus size: injected power",
            transform=axes.transAxes, va="top",
        )  # fmt: skip
        axes.set_aspect("equal")
        axes.axis("off")
    save(path, picture(figure, ending, words_as_text=True))


def _draw_lines(axes: Any, found: GridAnalysis, places: FloatArray) -> None:
    from matplotlib.collections import LineCollection

    stress = np.abs(np.sin(found.angles))
    strongest = max(float(stress.max()), 1e-9)
    colours = [(0.55 * (1 - s / strongest),) * 3 for s in stress]
    axes.add_collection(
        LineCollection(
            list(places[found.grid.edges]), linewidths=0.6 + 6 * stress / strongest, colors=colours, zorder=1
        )
    )


def _draw_names(axes: Any, found: GridAnalysis, places: FloatArray) -> None:
    grid = found.grid
    assert grid.labels is not None
    named = {int(node) for e in found.stressed for node in grid.edges[e]}
    if grid.size <= 60:
        named = set(range(grid.size))
    for node in named:
        axes.annotate(
            str(grid.labels[node]), places[node], xytext=(6, 6), textcoords="offset points", fontsize=8, zorder=5
        )
    for e in found.stressed:
        middle = places[grid.edges[e]].mean(axis=0)
        axes.annotate(
            f"{abs(np.degrees(found.angles[e])):.0f}°", middle, ha="center", va="center", fontsize=8, zorder=4,
            bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8},
        )  # fmt: skip


def _places(found: GridAnalysis) -> FloatArray:
    """Return positions in which electrically near buses lie near each other; the cases carry no map."""
    import networkx as nx

    graph = to_networkx(found.grid)
    for _, _, data in graph.edges(data=True):
        data["length"] = abs(data["weight"]) ** -0.5
    places = nx.kamada_kawai_layout(graph, weight="length")
    assert found.grid.labels is not None
    points = np.array([places[label] for label in found.grid.labels])
    # The longest direction lies flat, as the page does.
    _, _, axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    return np.asarray((points - points.mean(axis=0)) @ axes.T)
