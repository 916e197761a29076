"""Drawings: from the plain data of a study to a figure, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from phasegrad.pictures import style
from phasegrad_paper.report.drawings.gradients import beta_error, readout_map, verification
from phasegrad_paper.report.drawings.outcomes import (
    ablation,
    mechanism,
    repair,
    spectral,
    starts,
    untrained,
    which_parameter,
)
from phasegrad_paper.report.drawings.trajectories import collapse, convergence, coupling_rates
from phasegrad_paper.report.drawings.two_phase import draw_two_phase, schematic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DRAWINGS", "draw", "draw_two_phase"]

_DRAWN = (
    schematic, verification, beta_error, ablation, convergence, spectral, starts, mechanism, collapse, untrained,
    coupling_rates, repair, which_parameter, readout_map,
)  # fmt: skip
#: All drawings by the names of their figures.
DRAWINGS: dict[str, Callable[[Mapping[str, Any]], Figure]] = {
    drawing.__name__.replace("_", "-"): drawing for drawing in _DRAWN
}


def draw(name: str, data: Mapping[str, Any]) -> Figure:
    """Return the drawing of this name, of plain data as its docstring describes them."""
    if name not in DRAWINGS:
        raise ValueError(f"There is no drawing {name!r}. Drawings are {', '.join(DRAWINGS)}.")
    with style():
        return DRAWINGS[name](data)
