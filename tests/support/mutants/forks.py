"""Work in forked processes, which begin with the heavy imports done and end, with all they started, by a time limit.

The parent stays on one thread and never imports the library, so that a child can import any version of it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

Subject = TypeVar("Subject")

#: What takes long to import and is the same for every change.
HEAVY = [
    "pytest",
    "hypothesis",
    "hypothesis.extra.numpy",
    "numpy.testing",
    "scipy.linalg",
    "scipy.sparse.linalg",
    "scipy.sparse.csgraph",
    "scipy.optimize",
    "scipy.integrate",
    "scipy.stats",
    "sklearn.datasets",
    "sklearn.linear_model",
    "sklearn.neural_network",
    "sklearn.utils.estimator_checks",
    "networkx",
    "numba",
    "pandas",
    "typer.testing",
    "rich.table",
    "rich.progress",
    "torch",
    "pyamg",
    "threadpoolctl",
]
#: Bytes that a child may allocate: a change that fills the memory must not take the machine with it.
MEMORY = 8 * 2**30
#: Seconds between two looks at the children.
PAUSE = 0.02


def prepare(names: Iterable[str] = HEAVY) -> None:
    """Import what takes long, where it is installed, and let Numba set up its compiler."""
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    if "numba" in sys.modules:
        sys.modules["numba"].njit(lambda x: x + 1)(1.0)
    # The collector of a child shall not write to the pages that it shares with this process.
    gc.freeze()


@dataclass(eq=False)
class Job(Generic[Subject]):
    """A function to call in a child, in which folder, for how many seconds at most; ``subject`` is what it is about."""

    subject: Subject
    function: Callable[[], Any]
    seconds: float
    folder: Path


@dataclass(frozen=True)
class Ending:
    """How a child ended: what its function returned, or why it returned nothing."""

    value: Any
    why: str
    seconds: float


@dataclass
class _Child:
    job: Job[Any]
    slot: int
    number: int
    began: float = field(default_factory=time.monotonic)

    def result(self) -> Ending | None:
        """Return how the child ended, None while it runs."""
        seconds = time.monotonic() - self.began
        over = os.waitid(os.P_PID, self.number, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if over is None and seconds < self.job.seconds:
            return None
        # The child leads a group of its own, and is not yet reaped: nothing else can have its number.
        os.killpg(self.number, signal.SIGKILL)
        _, status = os.waitpid(self.number, 0)
        if over is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF):
            return Ending(None, "timeout", seconds)
        file = self.job.folder / "result.json"
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0 and file.exists():
            return Ending(json.loads(file.read_text(encoding="utf-8")), "", seconds)
        is_error = os.WIFEXITED(status) and os.WEXITSTATUS(status) == 1
        return Ending(None, "error" if is_error else f"crash (wait status {status})", seconds)


def run_all(jobs: Iterable[Callable[[int], Job[Subject]]], slots: int) -> Iterator[tuple[Job[Subject], Ending]]:
    """Run jobs side by side, each made for the slot that became free, and yield them as they end."""
    waiting, free, running = iter(jobs), list(range(slots)), []
    try:
        while True:
            while free:
                make = next(waiting, None)
                if make is None:
                    break
                slot = free.pop(0)
                job = make(slot)
                running.append(_Child(job, slot, _start(job)))
            if not running:
                return
            time.sleep(PAUSE)
            for child in list(running):
                ending = child.result()
                if ending is not None:
                    running.remove(child)
                    free.append(child.slot)
                    yield child.job, ending
    finally:
        for child in running:
            os.killpg(child.number, signal.SIGKILL)
            os.waitpid(child.number, 0)


def _start(job: Job[Any]) -> int:
    """Fork a child that does a job, and return its number."""
    job.folder.mkdir(parents=True, exist_ok=True)
    (job.folder / "result.json").unlink(missing_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    number = os.fork()
    if number:
        # Both sides make the group, so that it is there whichever runs first.
        with contextlib.suppress(OSError):
            os.setpgid(number, number)
        return number
    status = 1
    try:
        os.setpgid(0, 0)
        _redirect(job.folder / "output.txt")
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        value = job.function()
        (job.folder / "result.json").write_text(json.dumps(value), encoding="utf-8")
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _redirect(path: Path) -> None:
    """Send what a child prints to a file, and let it read nothing."""
    nothing, file = os.open(os.devnull, os.O_RDONLY), os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(nothing, 0)
    os.dup2(file, 1)
    os.dup2(file, 2)
