"""Graphs: where their nodes lie, and nodes and edges drawn there, from arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.pictures._style import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

#: Nodes that can be drawn as clocks and still be read.
MOST_CLOCKS = 40
_COLUMN, _ROW = 2.0, 1.1
# The share of edges between levels from which on a graph is one of levels.
_BETWEEN = 0.6
_BOX = {"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
# Of the shortest distance between two nodes: the radius of a clock.
_CLOCK = 0.37


def arrange(size: int, edges: IntArray, first: Sequence[int] = (), last: Sequence[int] = ()) -> FloatArray:
    """Return places of nodes, (N, 2), at distances near 1.

    A graph with levels, as `levels` finds them, stands in columns; a ring and a complete graph stand on a circle; any
    other lies where springs hold it.
    """
    columns = levels(size, edges, first, last)
    if columns is not None:
        return _in_columns(columns)
    order = _circle(size, edges)
    if order is not None:
        turn = 2 * np.pi * np.arange(size) / size
        places = np.empty((size, 2))
        places[order] = np.stack([np.sin(turn), np.cos(turn)], axis=1) * max(1.0, size / (2 * np.pi))
        return places
    return springs(size, edges, np.ones(len(edges)))


def levels(size: int, edges: IntArray, first: Sequence[int], last: Sequence[int]) -> IntArray | None:
    """Return how many edges each node is from the nodes ``first``, (N,).

    None unless the nodes ``last`` are all that are farthest, and most edges lead from one level to the next.
    """
    if not len(first) or not len(last):
        return None
    away = csgraph.dijkstra(_graph(size, edges), directed=False, indices=list(first), unweighted=True, min_only=True)
    farthest = np.flatnonzero(away == away.max())
    if not np.isfinite(away).all() or not np.array_equal(farthest, np.sort(last)):
        return None
    between = away[edges[:, 0]] != away[edges[:, 1]]
    return away.astype(np.int64) if between.mean() > _BETWEEN else None


def _in_columns(columns: IntArray) -> FloatArray:
    places = np.empty((columns.size, 2))
    for column in np.unique(columns):
        nodes = np.flatnonzero(columns == column)
        places[nodes] = np.stack([np.full(nodes.size, _COLUMN * column), -_ROW * np.arange(nodes.size)], axis=1)
        places[nodes, 1] += _ROW * (nodes.size - 1) / 2
    # Columns of very many nodes stand farther apart, so that the picture is not a needle.
    places[:, 0] *= max(1.0, np.ptp(places[:, 1]) / (2.2 * _COLUMN * max(columns.max(), 1)))
    return places


def _circle(size: int, edges: IntArray) -> IntArray | None:
    """Return the order of nodes around a circle, for a ring and for a complete graph."""
    if size >= 3 and len(edges) == size * (size - 1) // 2:
        return np.arange(size)
    degrees = np.bincount(edges.ravel(), minlength=size)
    if size < 3 or len(edges) != size or np.any(degrees != 2):
        return None
    order = csgraph.depth_first_order(_graph(size, edges), 0, directed=False, return_predecessors=False)
    return np.asarray(order, dtype=np.int64) if order.size == size else None


def springs(size: int, edges: IntArray, lengths: FloatArray) -> FloatArray:
    """Return places, (N, 2), whose distances are near those along the edges (Kamada and Kawai's).

    The longest direction lies flat, as a page does.
    """
    import networkx as nx

    apart = csgraph.shortest_path(_graph(size, edges, lengths), directed=False)
    reached = np.isfinite(apart)
    apart[~reached] = 1.5 * np.max(apart[reached], initial=1.0)
    distances = {i: dict(enumerate(row.tolist())) for i, row in enumerate(apart)}
    graph: Any = nx.Graph()
    graph.add_nodes_from(range(size))
    found = nx.kamada_kawai_layout(graph, dist=distances)
    points = np.array([found[node] for node in range(size)]).reshape(size, 2)
    points -= points.mean(axis=0)
    _, _, axes = np.linalg.svd(points, full_matrices=False)
    return np.asarray(points @ axes.T) / (_typical_length(points, edges) or 1.0)


def _typical_length(points: FloatArray, edges: IntArray) -> float:
    return float(np.median(np.linalg.norm(np.subtract(*points[edges.T]), axis=1))) if len(edges) else 1.0


def _graph(size: int, edges: IntArray, lengths: FloatArray | None = None) -> Any:
    values = np.ones(len(edges)) if lengths is None else lengths
    # Older versions of SciPy find trees and paths with indices of 32 bits only.
    first, second = edges.T.astype(np.int32)
    return sparse.csr_array((values, (first, second)), shape=(size, size))


def draw_edges(
    axes: Axes, places: FloatArray, edges: IntArray, strength: FloatArray, *, widest: float = 2.0,
    darkness: FloatArray | None = None, dashed: BoolArray | None = None,
) -> None:  # fmt: skip
    """Draw edges as wide as their strength, from 0 to 1, and as dark, where that is given; some of them dashed."""
    from matplotlib.collections import LineCollection

    shade = np.full(len(edges), 0.35) if darkness is None else darkness
    marked = np.zeros(len(edges), dtype=bool) if dashed is None else dashed
    look: dict[str, Any] = {
        "linewidths": 0.4 + widest * strength,
        "colors": [(0.75 * (1 - each),) * 3 for each in shade],
        "linestyles": [(0, (3, 1.5)) if each else "-" for each in marked],
    }
    axes.add_collection(LineCollection(list(places[edges]), zorder=1, label="_edges", **look))


def draw_clocks(
    axes: Axes, places: FloatArray, angles: FloatArray, faces: Sequence[str], *, shifted: FloatArray | None = None,
    names: Sequence[str] = (),
) -> float:  # fmt: skip
    """Draw nodes as clocks whose hands point at angles, counted from the right, and a second hand where it is shifted.

    Returns the radius of a clock.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Circle

    radius = _CLOCK * _shortest_distance(places)
    for (x, y), face in zip(places, faces, strict=True):
        axes.add_patch(Circle((x, y), radius, facecolor=face, edgecolor="black", linewidth=0.8, zorder=2))
    looks = [(angles, "black", 0.8, "_hands", 3)]
    if shifted is not None:
        looks.append((shifted, COLOURS["shifted"], 1.0, "_shifted", 4))
    for turned, colour, reach, label, order in looks:
        tips = places + reach * radius * np.stack([np.cos(turned), np.sin(turned)], axis=1)
        look: dict[str, Any] = {"linewidths": 2.0, "capstyle": "round", "zorder": order, "label": label}
        axes.add_collection(LineCollection(list(np.stack([places, tips], axis=1)), colors=colour, **look))
    for (x, y), name in zip(places, names, strict=False):
        # Over the edges, under the clocks.
        place: dict[str, Any] = {"ha": "right", "va": "bottom", "zorder": 1.5, "bbox": dict(_BOX)}
        axes.text(x - 0.75 * radius, y + 0.75 * radius, name, fontsize=7, **place)
    return radius


def _shortest_distance(places: FloatArray) -> float:
    if len(places) < 2:
        return 1.0
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
    return max(float(np.min(apart[~np.eye(len(places), dtype=bool)])), 0.05 * float(np.ptp(places, axis=0).max()), 1e-9)


def draw_points(
    axes: Axes, places: FloatArray, colours: Sequence[str] | Array, *, label: str = "", cyclic: bool = False,
    sizes: Any = None,
) -> PathCollection:  # fmt: skip
    """Draw nodes as discs in given colours or, of numbers, in those of a scale, which is drawn beside them.

    ``cyclic`` is for angles that go all the way round; otherwise the scale is the same on both sides of zero.
    """
    look: dict[str, Any] = {"zorder": 3, "edgecolor": "black", "linewidth": 0.6, "label": "_nodes"}
    look["s"] = float(np.clip(4000 / max(len(places), 1), 14, 120)) if sizes is None else sizes
    values = np.asarray(colours)
    if values.dtype.kind not in "fiu":
        return axes.scatter(*places.T, color=list(colours), **look)
    span = np.pi if cyclic else float(np.max(np.abs(values), initial=0.0)) or 1.0
    look |= {"c": np.mod(values + np.pi, 2 * np.pi) - np.pi if cyclic else values, "vmin": -span, "vmax": span}
    points = axes.scatter(*places.T, cmap="twilight" if cyclic else "coolwarm", **look)
    figure: Any = axes.figure
    scale = figure.colorbar(points, ax=axes, label=label, shrink=0.7, pad=0.01)
    if cyclic:
        scale.set_ticks([-np.pi, 0, np.pi], labels=["−π", "0", "π"])
    return points


def fit(axes: Axes, places: FloatArray, room: float) -> None:
    """Show all places with some room around them, a unit as long upward as to the right, and no axes."""
    (left, low), (right, high) = places.min(axis=0) - room, places.max(axis=0) + room
    axes.set(xlim=(left, right), ylim=(low, high))
    axes.set_aspect("equal")
    axes.set_axis_off()


def draw_words(
    axes: Axes, places: FloatArray, words: Sequence[str], *, taken: FloatArray, radii: FloatArray, size: float = 8
) -> None:
    """Write words near places, each where it covers least of what is there already.

    ``taken`` (K, 2) are places that should stay free, with so many points around them (``radii``); words that were
    written before, count, too. The limits of the axes must be final.
    """
    figure: Any = axes.figure
    figure.draw_without_rendering()  # the layout has its say first
    points = 72 / figure.dpi * axes.transData.transform(taken)
    anchors = 72 / figure.dpi * axes.transData.transform(places)
    boxes = [np.array([*point - r, *point + r]) for point, r in zip(points, radii, strict=True)]
    for anchor, place, word in zip(anchors, places, words, strict=True):
        half = np.array([0.32 * size * len(word) + 1, 0.62 * size])
        shifts = _OFFSETS * (half + 4)
        offset = shifts[int(np.argmin([_covered(anchor + shift, half, boxes) for shift in shifts]))]
        boxes.append(np.array([*(anchor + offset - half), *(anchor + offset + half)]))
        where: dict[str, Any] = {
            "xytext": tuple(offset),
            "textcoords": "offset points",
            "zorder": 5,
            "bbox": dict(_BOX),
        }
        axes.annotate(word, place, ha="center", va="center", fontsize=size, **where)


_TURN = 2 * np.pi * np.arange(16) / 16
# On the spot, then around it, nearer and farther, to the upper right first.
_OFFSETS = np.array(
    [(0, 0), *(k * np.array([np.cos(a + np.pi / 4), np.sin(a + np.pi / 4)]) for k in (1.0, 1.5, 2.2) for a in _TURN)]
)


def _covered(centre: FloatArray, half: FloatArray, boxes: Sequence[FloatArray]) -> float:
    """Return the area that a box would cover of others."""
    low, high = centre - half, centre + half
    total = 0.0
    for box in boxes:
        sides = np.minimum(high, box[2:]) - np.maximum(low, box[:2])
        total += float(max(sides[0], 0.0) * max(sides[1], 0.0))
    return total
