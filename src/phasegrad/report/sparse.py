"""The figures of large sparse networks as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType

from phasegrad.report.console import plain_table
from phasegrad.report.drawings.style import panels, picture, style
from phasegrad.report.figures import format_of, save


def sparse_tables(figures: dict[str, Any]) -> RenderableType:
    """Return the sparse part of `phasegrad bench` as tables."""
    growth = plain_table("One large sparse network: CPU seconds", "adjoint: by all frequencies and couplings")
    for heading in ("family", "N", "build", "equilibrium", "adjoint", "peak MB", "residual", "exponent"):
        growth.add_column(heading, justify="left" if heading == "family" else "right")
    for row in figures["rows"]:
        seconds = [f"{row[key]:.2f}" for key in ("build_s", "equilibrium_s", "adjoint_s")]
        exponent = "" if row["exponent"] is None else f"{row['exponent']:.2f}"
        cells = (*seconds, f"{row['peak_mb']:.0f}", f"{row['residual']:.1e}", exponent)
        growth.add_row(row["family"], str(row["N"]), *cells)
    other = plain_table("Equilibrium, random regular graph of degree 6: CPU seconds", "")
    for heading in ("against", "other", "phasegrad", "ratio"):
        other.add_column(heading, justify="left" if heading == "against" else "right")
    for name, row in figures["ratios"].items():
        other.add_row(name, f"{row['other_s']:.3f}", f"{row['phasegrad_s']:.4f}", f"{row['ratio']:.3g}")
    nudged = plain_table("Gradient by omega at the default beta: relative error against adjoint", "")
    for heading in ("family", "N", "two-phase", "centred"):
        nudged.add_column(heading, justify="left" if heading == "family" else "right")
    for row in figures["nudged"]:
        errors = [f"{row[name]['error']:.1e}" for name in ("two_phase", "centred")]
        nudged.add_row(row["family"], str(row["N"]), *errors)
    return Group(growth, other, nudged)


def draw_growth(figures: dict[str, Any], path: Path) -> None:
    """Draw CPU seconds of equilibrium and adjoint gradient against the number of oscillators, by family."""
    ending = format_of(path)
    with style():
        figure, (axes,) = panels(6.5, 4)
        markers = iter("osD^v")
        for family in dict.fromkeys(row["family"] for row in figures["rows"]):
            rows = [row for row in figures["rows"] if row["family"] == family]
            seconds = [row["equilibrium_s"] + row["adjoint_s"] for row in rows]
            growth = f", N^{rows[-1]['exponent']:.2f}" if rows[-1]["exponent"] is not None else ""
            axes.loglog([row["N"] for row in rows], seconds, marker=next(markers), label=f"{family}{growth}")
        axes.set(xlabel="oscillators", ylabel="CPU seconds, equilibrium + gradient")
        axes.legend()
        axes.grid(alpha=0.3)
    save(path, picture(figure, ending, words_as_text=True))
