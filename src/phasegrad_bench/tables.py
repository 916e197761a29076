"""What `phasegrad bench` shows."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from phasegrad.cli.tables import table
from phasegrad.pictures import drawn
from phasegrad_paper.studies import Table

_THOUSAND = 999.5
# Ratios that need PyTorch, in words.
_TENSORS = {
    "layer_over_bare": "PhaseNetwork, forward and backward, over the bare engine: 784-500-10, batch 256",
    "centred_over_bare": "the same by two nudges (gradient='centred')",
    "batch_over_torch": "an epoch of it by the batch engine (float64) over the torch engine (float32)",
}


def benchmark_tables(figures: dict[str, Any]) -> RenderableType:
    """Return the figures of `phasegrad bench` as tables."""
    small, foundation, reproduce = (figures[name] for name in ("small", "foundation", "reproduce"))
    lines = [
        f"100 networks x 200 epochs: {small['experiment_cpu_s']:.2f} CPU seconds",
        f"import phasegrad: {foundation['import_s']:.2f} CPU seconds",
    ]
    if reproduce["plain_updates"] is not None:
        lines.append(f"last reproduction: {reproduce['plain_updates'] / 1e6:.2f} million plain updates")
    shown = (table(each.title, each.columns, each.rows) for each in speed_tables(figures))
    return Group(*shown, Text("\n".join(lines)))


def speed_tables(figures: dict[str, Any]) -> list[Table]:
    """Return the tables of the figures, numbers with three digits: those of speed have no more."""
    return [
        dataclasses.replace(each, rows=[[_digits(cell) for cell in row] for row in each.rows])
        for each in (
            *_small_tables(figures),
            _motion_table(figures["motion"]),
            _learning_table(figures),
            *_sparse_tables(figures["sparse"]),
        )
    ]


def draw_growth(figures: dict[str, Any], path: Path) -> None:
    """Draw CPU seconds of equilibrium and adjoint gradient against the number of oscillators, by family."""
    rows_of: dict[str, list[dict[str, Any]]] = {}
    for row in figures["rows"]:
        rows_of.setdefault(row["family"], []).append(row)
    with drawn(path, 6.5, 4) as (_, (axes,)):
        for (family, rows), marker in zip(rows_of.items(), "osD^", strict=False):
            seconds = [row["equilibrium_s"] + row["adjoint_s"] for row in rows]
            growth = f", N^{rows[-1]['exponent']:.2f}" if rows[-1]["exponent"] is not None else ""
            axes.loglog([row["N"] for row in rows], seconds, marker=marker, label=f"{family}{growth}")
        axes.set(xlabel="oscillators", ylabel="CPU seconds, equilibrium + gradient")
        axes.legend()
        axes.grid(alpha=0.3)


def _small_tables(figures: dict[str, Any]) -> list[Table]:
    small, generic, batch = (figures[name] for name in ("small", "generic", "batch"))
    updates = [
        ["plain: fsolve, sample by sample", small["plain_us"], 1],
        ["any network, one alone", generic["single_us"], generic["ratio_plain_single"]],
        ["any network, 100 in lock-step", generic["us"], generic["ratio_plain"]],
        ["lanes, kernel", small["lanes_us"], small["ratio_kernel"]],
        ["lanes, whole experiment", small["end_to_end_us"], small["ratio_end_to_end"]],
    ]
    ways = [
        ["plain: fsolve, sample by sample", batch["plain_s"], batch["ratio_plain"]],
        ["LAPACK, sample by sample", batch["lapack_s"], batch["ratio_lapack"]],
        ["batch, by matrix products", batch["batch_s"], 1],
    ]
    others = [[n, r["plain_s"], r["phasegrad_s"], r["ratio"]] for n, r in figures["foundation"]["rows"].items()]
    return [
        Table("speed-updates", "Training networks 2+5+2: CPU microseconds per update",
              ("way", "us", "times the plain way"), updates),
        Table("speed-equilibria", "Equilibria, gradients and runs in time: CPU seconds",
              ("task", "plain", "phasegrad", "ratio"), others),
        Table("speed-batch", "256 samples on 64+100+10, free and nudged: CPU seconds",
              ("way", "seconds", "times faster"), ways),
    ]  # fmt: skip


def _motion_table(figures: dict[str, Any]) -> Table:
    rows = [[name, row["other_s"], row["phasegrad_s"], row["ratio"]] for name, row in figures["rows"].items()]
    return Table("speed-motion", "A random regular graph of degree 6 in time: CPU seconds",
                 ("against", "other", "phasegrad", "ratio"), rows)  # fmt: skip


def _learning_table(figures: dict[str, Any]) -> Table:
    learning = figures["learning"]
    rows = [
        ["an epoch of 60,000 x 784-100-10, batches of 32, over one 60000 x 784 x 100 product", learning["epoch_units"]],
        ["the same in batches of 256", learning["epoch_units_256"]],
        ["OscillatorClassifier.fit over train, 5,000 rows", learning["fit_over_train"]],
        ["OscillatorClassifier over MLPClassifier, defaults, five folds of three tables", learning["over_perceptron"]],
    ]
    rows += [[words, figures["tensors"][name]] for name, words in _TENSORS.items() if figures["tensors"] is not None]
    return Table("speed-learning", "Mini-batches: CPU time", ("what", "ratio"), rows)


def _sparse_tables(figures: dict[str, Any]) -> list[Table]:
    keys = ("family", "N", "build_s", "equilibrium_s", "adjoint_s", "peak_mb", "residual", "exponent")
    growth = [[row[key] for key in keys] for row in figures["rows"]]
    others = [[name, row["other_s"], row["phasegrad_s"], row["ratio"]] for name, row in figures["ratios"].items()]
    nudged = [
        [row["family"], row["N"], *(row[name]["error"] for name in ("two_phase", "centred"))]
        for row in figures["nudged"]
    ]
    headings = ("family", "N", "build", "equilibrium", "adjoint", "peak MB", "residual", "exponent")
    return [
        Table("speed-sparse", "One large sparse network: CPU seconds; adjoint by all frequencies and couplings",
              headings, growth),
        Table("speed-others", "One equilibrium against SciPy: CPU seconds",
              ("against", "other", "phasegrad", "ratio"), others),
        Table("speed-nudged", "Gradient by omega at the default beta: relative error against adjoint",
              ("family", "N", "two-phase", "centred"), nudged),
    ]  # fmt: skip


def _digits(cell: Any) -> Any:
    if cell is None:
        return "–"
    if not isinstance(cell, float):
        return cell
    return f"{cell:.3g}" if abs(cell) < _THOUSAND else f"{float(f'{cell:.3g}'):,.0f}"
