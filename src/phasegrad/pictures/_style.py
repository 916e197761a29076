"""How all pictures look, on which axes they are drawn, and how they become files.

matplotlib is imported when something is drawn, never before.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phasegrad._files import write_bytes
from phasegrad._validation import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, and Paul Tol's for shifted phases: distinguishable with every kind of colour vision.
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
    "shifted": "#882255",
}
LABELS = {
    "omega": "ω only",
    "coupling": "K only",
    "both": "ω and K",
    "random": "random",
    "spectral": "spectral",
    "anti-spectral": "spectral × −1",
}
#: What an oscillator is for, as the colour of its face.
ROLES = {"input": "#56B4E9", "hidden": "#D0D0D0", "output": "#E69F00"}
#: Colours of things that have no name of their own, such as classes: Okabe and Ito's, then greys.
CYCLE = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000", "#777777", "#BBBBBB",
)  # fmt: skip
GUIDE = "#555555"
WIDE, NARROW = 7.0, 3.5
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
    require(("matplotlib",), "plot", "Drawing")
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


@contextmanager
def canvas(axes: Axes | None, owner: str, width: float = 4.5, height: float = 3.2) -> Iterator[Axes]:
    """Yield axes to draw on in the style of this package: those given or, of None, new ones of so many inches.

    New ones belong to pyplot, so that a notebook shows them and ``plt.show()`` finds them.
    """
    with style():
        from matplotlib.axes import Axes

        if axes is None:
            import matplotlib.pyplot as plt

            yield plt.subplots(figsize=(width, height), layout="constrained")[1]
            return
        if not isinstance(axes, Axes) or axes.name != "rectilinear":
            kind = f"{axes.name} axes" if isinstance(axes, Axes) else f"{type(axes).__name__}"
            raise TypeError(
                f"The 'ax' parameter of {owner} must be plain matplotlib Axes, such as 'figure, ax = plt.subplots()' "
                f"makes, or None for new ones. Got {kind} instead."
            )
        yield axes


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
