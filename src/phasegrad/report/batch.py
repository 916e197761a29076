"""What `phasegrad bench` shows of the batch engine."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from phasegrad.report.console import plain_table


def batch_table(figures: dict[str, Any]) -> Table:
    """Return the figures of the batch benchmark as a table."""
    table = plain_table("256 samples on one 64+100+10 network, free and nudged: CPU seconds", "")
    for heading in ("way", "seconds", "times faster is the batch"):
        table.add_column(heading, justify="left" if heading == "way" else "right")
    table.add_row("plain: fsolve, sample by sample", f"{figures['plain_s']:.1f}", f"{figures['ratio_plain']:.0f}")
    table.add_row("LAPACK, sample by sample", f"{figures['lapack_s']:.2f}", f"{figures['ratio_lapack']:.1f}")
    table.add_row("batch, by matrix products", f"{figures['batch_s']:.4f}", "1")
    return table
