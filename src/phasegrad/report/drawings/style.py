"""How all figures look: one colour per condition, one style, and the marks that several figures share.

matplotlib is imported when a figure is drawn, never before.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from phasegrad._files import write_bytes
from phasegrad._validation import FloatArray
from phasegrad.reproduction import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito's colours for conditions, Paul Tol's for methods: distinguishable with every kind of colour vision.
COLOURS = {
    "omega": "#0072B2",
    "coupling": "#E69F00",
    "both": "#CC79A7",
    "random": "#8A8A8A",
    "spectral": "#56B4E9",
    "anti-spectral": "#000000",
    "success": "#009E73",
    "failure": "#D55E00",
    "matched": "#44AA99",
    "logistic": "#333333",
    "two_phase": "#882255",
    "centred": "#117733",
    "complex_step": "#332288",
    "circle_4": "#999933",
}
LABELS = {
    "omega": "ω only",
    "coupling": "K only",
    "both": "ω and K",
    "random": "random",
    "spectral": "spectral",
    "anti-spectral": "spectral × −1",
    "two_phase": "one-sided",
    "centred": "centred",
    "complex_step": "one complex step",
    "circle_4": "circle of 4 points",
}
GUIDE = "#555555"
WIDE, NARROW = 7.0, 3.5
_DISTRIBUTION = 5
_STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.handlelength": 1.5,
    "axes.titlelocation": "left",
    "axes.titlepad": 6,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "svg.hashsalt": "phasegrad",
}
_ENDINGS: dict[str, dict[str, Any]] = {
    "svg": {"metadata": {"Date": None}},
    "png": {"dpi": 200},
    "pdf": {"metadata": {"CreationDate": None}},
}
FORMATS = tuple(_ENDINGS)


@contextmanager
def style() -> Iterator[None]:
    """Draw in the style of this package, whatever the settings of the user are; they are back afterwards."""
    require(("matplotlib",), "report", "Drawing")
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def picture(figure: Figure, ending: str, *, words_as_text: bool = False) -> bytes:
    """Return a figure as the content of a file of one of `FORMATS`: the same bytes for the same figure.

    With ``words_as_text`` the words of an SVG can be searched; else they are outlines that look the same everywhere.
    """
    content = io.BytesIO()
    with style():
        import matplotlib as mpl

        mpl.rcParams["svg.fonttype"] = "none" if words_as_text else "path"
        figure.savefig(content, format=ending, **_ENDINGS[ending])
    # The places found for the first picture serve for all of them: the same in every format, and in half the time.
    figure.set_layout_engine("none")
    return content.getvalue()


def picture_format(path: Path) -> str:
    """Return which of `FORMATS` the ending of a path asks for."""
    ending = path.suffix.lstrip(".").lower()
    if ending not in FORMATS:
        raise ValueError(f"A figure must end in one of {', '.join(FORMATS)}. Got {path.name!r}.")
    return ending


@contextmanager
def drawn(
    path: Path, width: float, height: float, rows: int = 1, columns: int = 1, **options: Any
) -> Iterator[tuple[Figure, list[Axes]]]:
    """Yield an empty figure and its axes, in the style of this package, and write what was drawn on them.

    The ending of the path chooses the format; an SVG keeps its words as text.
    """
    ending = picture_format(path)
    with style():
        figure, axes = panels(width, height, rows, columns, **options)
        yield figure, axes
    write_bytes(path, picture(figure, ending, words_as_text=True))


def panels(width: float, height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, list[Axes]]:
    """Return an empty figure of so many inches and its axes, row by row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, list(grid.flat)


def letter(axes: Axes, name: str, title: str) -> None:
    """Title a panel: a bold letter, then words."""
    axes.set_title(f"$\\mathbf{{{name}}}$  {title}")


def accuracy_axis(axes: Axes, which: str = "y", label: str = "test accuracy (%)") -> None:
    """Lay out an axis of accuracies in per cent, the same in every figure."""
    axes.set(**{f"{which}lim": (-4, 104), f"{which}ticks": [0, 25, 50, 75, 100], f"{which}label": label})


def guide(axes: Axes, height: float, words: str = "") -> None:
    """Draw a thin dotted line across, with its meaning at the right end."""
    axes.axhline(height, color=GUIDE, linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
    if words:
        place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
        axes.annotate(words, (1, height), (-1, 1.5), ha="right", va="bottom", fontsize=7, color=GUIDE, **place)


def violin(axes: Axes, place: float, percent: FloatArray, colour: str, filled: Sequence[bool] | None = None) -> None:
    """Draw accuracies as points side by side on their distribution; points that are not ``filled`` are hollow.

    The distribution is mirrored at 0 and 100 %, so that no part of it lies where no accuracy can be; of very few
    points there is none.
    """
    if len(percent) >= _DISTRIBUTION:
        heights = np.linspace(0, 100, 201)
        images = np.concatenate([percent, -percent, 200 - percent])
        density = np.exp(-0.5 * ((heights[:, None] - images) / 3.5) ** 2).sum(axis=1)
        half = 0.42 * density / density.max()
        axes.fill_betweenx(heights, place - half, place + half, color=colour, alpha=0.22, linewidth=0)
    mask = np.ones(len(percent), bool) if filled is None else np.asarray(filled, bool)
    across = place + side_by_side(percent)
    axes.scatter(across[mask], percent[mask], s=8, color=colour, linewidth=0.5, edgecolor="white", zorder=3)
    axes.scatter(across[~mask], percent[~mask], s=7, facecolor="white", edgecolor=colour, linewidth=0.7, zorder=3)


def side_by_side(percent: FloatArray, half_width: float = 0.38, gap: float = 0.055) -> FloatArray:
    """Return sideways offsets that keep points of nearly the same height apart, without chance."""
    rows = np.round(percent / 2.5)
    offsets = np.zeros(len(percent))
    for row in np.unique(rows):
        members = np.flatnonzero(rows == row)
        step = min(gap, 2 * half_width / max(len(members) - 1, 1))
        offsets[members] = step * (np.arange(len(members)) - (len(members) - 1) / 2)
    return offsets


def by_success(axes: Axes, across: FloatArray, up: FloatArray, success: Any) -> None:
    """Draw one point per seed: green discs for success, vermilion triangles for failure."""
    good = np.asarray(success, bool)
    for mask, name, marker in ((good, "success", "o"), (~good, "failure", "v")):
        look: dict[str, Any] = {"marker": marker, "color": COLOURS[name], "alpha": 0.65, "linewidth": 0, "label": name}
        axes.scatter(across[mask], up[mask], s=15, zorder=3, **look)


def share_legend(figure: Figure, axes: Axes, columns: int = 2, side: str = "lower") -> None:
    """Put the legend of one panel under all of them, or above."""
    place: Any = f"outside {side} center"
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc=place, ncols=columns, columnspacing=2)


def whole_numbers(axis: Axis) -> None:
    """Mark an axis of counts at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
