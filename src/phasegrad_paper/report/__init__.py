"""Reports: what studies found, as tables, figures and one page."""

from phasegrad_paper.report.console import studies_table, verdict_tables, verification_tables
from phasegrad_paper.report.drawings import draw_two_phase
from phasegrad_paper.report.objectives import draw_objectives
from phasegrad_paper.report.page import write_report

__all__ = [
    "draw_objectives",
    "draw_two_phase",
    "studies_table",
    "verdict_tables",
    "verification_tables",
    "write_report",
]
