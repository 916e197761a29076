"""Drawings: from the plain data of a study to a figure, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from phasegrad.report.drawings.gradients import beta_error, schematic, verification
from phasegrad.report.drawings.outcomes import ablation, mechanism, repair, spectral, untrained, which_parameter
from phasegrad.report.drawings.style import FORMATS, picture, style
from phasegrad.report.drawings.trajectories import collapse, convergence, coupling_rates

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DRAWINGS", "FORMATS", "draw", "picture"]

DRAWINGS: dict[str, Callable[[Mapping[str, Any]], Figure]] = {
    "schematic": schematic,
    "verification": verification,
    "beta-error": beta_error,
    "ablation": ablation,
    "convergence": convergence,
    "spectral": spectral,
    "mechanism": mechanism,
    "collapse": collapse,
    "untrained": untrained,
    "coupling-rates": coupling_rates,
    "repair": repair,
    "which-parameter": which_parameter,
}


def draw(name: str, data: Mapping[str, Any]) -> Figure:
    """Return the drawing of this name of these data.

    Parameters
    ----------
    name : str
        A key of `DRAWINGS`.
    data : mapping
        Plain data, as the docstring of the drawing describes them.

    Returns
    -------
    matplotlib.figure.Figure
        `picture` turns it into the content of a file.
    """
    if name not in DRAWINGS:
        raise ValueError(f"There is no drawing {name!r}. Drawings are {', '.join(DRAWINGS)}.")
    with style():
        return DRAWINGS[name](data)
