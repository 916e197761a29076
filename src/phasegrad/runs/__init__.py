"""Runs: from words (a task, a table, seeds, a start) to networks and data, and from results to plain data and files."""

from phasegrad.runs._runs import (
    CLASSIFIER_TASKS,
    IMAGE_NETWORK,
    SUCCESS,
    TASKS,
    ClassifierRun,
    ImageRun,
    RegressorRun,
    Runs,
    determination,
    load_images,
    load_task,
    moves_of,
)
from phasegrad.runs._tables import (
    Quantities,
    Samples,
    Table,
    holds_answers,
    read_more,
    read_samples,
    read_table,
    write_answers,
)

__all__ = [
    "CLASSIFIER_TASKS",
    "IMAGE_NETWORK",
    "SUCCESS",
    "TASKS",
    "ClassifierRun",
    "ImageRun",
    "Quantities",
    "RegressorRun",
    "Runs",
    "Samples",
    "Table",
    "determination",
    "holds_answers",
    "load_images",
    "load_task",
    "moves_of",
    "read_more",
    "read_samples",
    "read_table",
    "write_answers",
]
