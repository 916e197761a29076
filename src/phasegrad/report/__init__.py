"""Reports: what studies, trainings and benchmarks found, as tables, figures and files."""

from phasegrad.report.benchmarks import benchmark_tables, draw_growth, speed_tables
from phasegrad.report.chips import chip_tables, draw_budget, entry_table
from phasegrad.report.console import studies_table, verdict_tables, verification_tables
from phasegrad.report.drawings import draw_two_phase
from phasegrad.report.grids import draw_grid, grid_tables
from phasegrad.report.ising import draw_cuts, solutions_table
from phasegrad.report.objectives import draw_objectives
from phasegrad.report.page import write_report
from phasegrad.report.simulation import draw_run, run_table
from phasegrad.report.training import (
    classifier_table,
    draw_classifier,
    draw_images,
    draw_regressor,
    image_table,
    prediction_table,
    regressor_table,
    training_table,
)

__all__ = [
    "benchmark_tables",
    "chip_tables",
    "classifier_table",
    "draw_budget",
    "draw_classifier",
    "draw_cuts",
    "draw_grid",
    "draw_growth",
    "draw_images",
    "draw_objectives",
    "draw_regressor",
    "draw_run",
    "draw_two_phase",
    "entry_table",
    "grid_tables",
    "image_table",
    "prediction_table",
    "regressor_table",
    "run_table",
    "solutions_table",
    "speed_tables",
    "studies_table",
    "training_table",
    "verdict_tables",
    "verification_tables",
    "write_report",
]
