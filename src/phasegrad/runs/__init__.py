"""Runs: from words (a task, a table, seeds, a start) to networks and data, and from results to plain data and files."""

from phasegrad.runs._runs import (
    CLASSIFIER_TASKS,
    IMAGE_NETWORK,
    IN_TIME,
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
    network_in_time,
)
from phasegrad.runs._tables import Quantities, Table, read_more, read_samples, read_table

__all__ = [
    "CLASSIFIER_TASKS",
    "IMAGE_NETWORK",
    "IN_TIME",
    "SUCCESS",
    "TASKS",
    "ClassifierRun",
    "ImageRun",
    "Quantities",
    "RegressorRun",
    "Runs",
    "Table",
    "determination",
    "load_images",
    "load_task",
    "moves_of",
    "network_in_time",
    "read_more",
    "read_samples",
    "read_table",
]
