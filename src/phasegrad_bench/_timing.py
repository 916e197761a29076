"""How speed is measured here: CPU seconds, both sides in turn, medians of several rounds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

ROUNDS = 5


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU time of one call, all threads together."""
    start = time.process_time()
    work()
    return time.process_time() - start


def in_turn(*works: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """Return the median CPU seconds of each, run in turn so that what else the machine does falls on all alike."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for of_work, work in zip(times, works, strict=True):
            of_work.append(cpu_seconds(work))
    return [statistics.median(of_work) for of_work in times]
