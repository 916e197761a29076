"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from phasegrad.studies.finding import Check
from phasegrad.studies.verification import Verification

_SHORT = {"two_phase": "TP", "centred": "CE", "holomorphic": "HO", "finite_difference": "FD", "autograd": "AG"}


def verification_tables(result: Verification) -> RenderableType:
    """Return everything a verification found as tables, the verdict last."""
    sections = result.sections
    return Group(
        _identity_table("Table 1: the phase-gradient identity", sections["table1"].data),
        _identity_table(f"{len(sections['multi_seed'].data)} seeds at N = 10", sections["multi_seed"].data, "seed"),
        _asymmetry_table(sections["asymmetry"].data),
        _finite_beta_table(sections["finite_beta"].data),
        _parameters_table(sections["parameters"].data),
        _raw_table(sections["raw_against_centred"].data),
        _identity_table("Universality: odd series in place of the sine", sections["universality"].data, "coefficients"),
        _beta_table(sections["beta_error"].data),
        _verdict(result.checks, result.as_dict()["not_compared"]),
    )


def benchmark_tables(figures: dict[str, Any]) -> RenderableType:
    """Return the figures of `phasegrad bench` as tables."""
    small = figures["small"]
    table = plain_table("Training 100 networks 2+5+2: CPU microseconds per update", "")
    for heading in ("way", "us per update", "times the plain way"):
        table.add_column(heading, justify="left" if heading == "way" else "right")
    for name, key, ratio in (
        ("plain: fsolve, sample by sample", "plain_us", None),
        ("generic engine, any network", "generic_us", "ratio_generic"),
        ("lanes, kernel", "lanes_us", "ratio_kernel"),
        ("lanes, whole experiment", "end_to_end_us", "ratio_end_to_end"),
    ):
        table.add_row(name, f"{small[key]:.3g}", "1" if ratio is None else f"{small[ratio]:.3g}")
    other = plain_table("Equilibria and gradients: CPU seconds", "")
    for heading in ("task", "plain", "phasegrad", "ratio"):
        other.add_column(heading, justify="left" if heading == "task" else "right")
    for name, row in figures["foundation"]["rows"].items():
        other.add_row(name, f"{row['plain_s']:.5f}", f"{row['phasegrad_s']:.6f}", f"{row['ratio']:.3g}")
    return Group(
        table,
        Text(f"100 networks x 200 epochs: {small['experiment_cpu_s']:.2f} CPU seconds"),
        other,
        Text(f"import phasegrad: {figures['foundation']['import_s']:.2f} CPU seconds"),
    )


def _identity_table(title: str, rows: list[dict[str, Any]], extra: str | None = None) -> Table:
    table = plain_table(
        title,
        "1 - cosine of two methods: TP two-phase (beta = 1e-4), FD finite difference, AG autograd, AD adjoint",
    )
    if extra:
        table.add_column("a1, a2, a3" if extra == "coefficients" else extra, no_wrap=True)
    for heading in ("N", "TP, FD", "AG, TP", "AD, FD", "AG, AD", "residual", "stable"):
        table.add_column(heading, justify="right")
    for row in rows:
        cells = [str(row["N"])]
        cells += [
            _distance(row[key])
            for key in ("cos_two_phase_fd", "cos_autograd_two_phase", "cos_adjoint_fd", "cos_autograd_adjoint")
        ]
        cells += [f"{row['residual']:.1e}", "yes" if row["stable"] else "NO"]
        if extra:
            lead = row[extra]
            cells.insert(0, ", ".join(f"{a:g}" for a in lead) if isinstance(lead, list) else str(lead))
        table.add_row(*cells)
    return table


def _asymmetry_table(rows: list[dict[str, Any]]) -> Table:
    table = plain_table("Table 2: non-reciprocal coupling, N = 15", "cosine of two-phase and finite difference")
    for heading in ("asymmetry", "mean", "std", "worst seed", "seeds"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            f"{row['asymmetry']:.0%}",
            f"{row['mean_cos']:.6f}",
            f"{row['std_cos']:.6f}",
            f"{row['worst_cos']:.6f}",
            str(row["n"]),
        )
    return table


def _finite_beta_table(data: dict[str, Any]) -> Table:
    table = plain_table(f"Finite beta: two-phase at beta = {data['beta']:g} against adjoint, N = {data['N']}", "")
    for heading in ("networks", "mean cosine", "minimum cosine", "mean scale error"):
        table.add_column(heading, justify="right")
    table.add_row(
        str(data["n_networks"]),
        f"{data['mean_cosine']:.8f}",
        f"{data['min_cosine']:.8f}",
        f"{data['mean_scale_error_pct']:.3f} %",
    )
    return table


def _parameters_table(rows: list[dict[str, Any]]) -> Table:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    table = plain_table(
        "Every parameter: relative error against the adjoint gradient",
        "worst seed; TP two-phase and CE centred (beta = 1e-4), HO one complex step (1e-8), FD, AG as above",
    )
    table.add_column("network", no_wrap=True)
    table.add_column("parameter", no_wrap=True)
    for method in methods:
        table.add_column(_SHORT[method], justify="right")
    for name, parameter in dict.fromkeys((row["network"], row["parameter"]) for row in rows):
        worst = [
            max(
                row["relative_error"]
                for row in rows
                if (row["network"], row["parameter"], row["method"]) == (name, parameter, method)
            )
            for method in methods
        ]
        table.add_row(name, parameter, *(f"{value:.1e}" for value in worst))
    return table


def _raw_table(rows: list[dict[str, Any]]) -> Table:
    table = plain_table(
        "Raw against centred frequencies, N = 15", "what turning one raw frequency does, by differences"
    )
    for heading in ("seeds", "error of (centred - mean)", "cosine centred, raw", "worst seed"):
        table.add_column(heading, justify="right")
    cosines = [row["cos_centred_raw"] for row in rows]
    table.add_row(
        str(len(rows)),
        f"{max(row['error_of_centred_minus_mean'] for row in rows):.1e}",
        f"{sum(cosines) / len(cosines):.3f}",
        f"{min(cosines):.3f}",
    )
    return table


def _beta_table(data: dict[str, Any]) -> Table:
    table = plain_table("Error against beta, 2+5+2 networks", "median relative error against the adjoint gradient")
    table.add_column("method")
    for beta in data["betas"]:
        table.add_column(f"{beta:.0e}", justify="right")
    table.add_column("order", justify="right")
    for name, values in data["median_relative_error"].items():
        table.add_row(name, *(f"{value:.1e}" for value in values), f"{data['slopes'][name]:.2f}")
    return table


def _verdict(checks: Iterable[Check], not_compared: list[str]) -> Text:
    checks = list(checks)
    missed = [check for check in checks if not check.passed]
    text = Text()
    for check in missed:
        text.append(
            f"missed: {check.name}: measured {check.measured:.3g}, must be {check.relation} {check.bound:.12g}\n",
            style="red",
        )
    for note in not_compared:
        text.append(f"not compared: {note}\n", style="yellow")
    if missed:
        text.append(f"{len(missed)} of {len(checks)} checks missed their tolerance.", style="bold red")
    else:
        text.append(f"All {len(checks)} checks keep their tolerance.", style="bold green")
    return text


def counted(number: int, word: str) -> str:
    """Return a number with its noun: 1 run, 2 runs."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def plain_table(title: str, caption: str) -> Table:
    """Return an empty table in the style of all tables here."""
    return Table(
        title=title,
        caption=caption or None,
        title_justify="left",
        caption_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )


def _distance(value: float | None) -> str:
    return "-" if value is None else f"{1 - value:.1e}"
