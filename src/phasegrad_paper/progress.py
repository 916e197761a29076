"""How far a reproduction is: bars in a terminal, a line per finished study elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from phasegrad._validation import counted
from phasegrad_paper.reproduction import Tally


class ReproductionProgress:
    """Shows every `Tally` it is given, and remembers the last."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self.tally: Tally | None = None
        self._live = console.is_terminal
        self._progress = Progress(
            TextColumn("{task.description:<24}"), BarColumn(), TextColumn("{task.fields[words]}"), _TimeLeft(),
            console=console, transient=True, disable=not self._live,
        )  # fmt: skip
        self._bars: dict[str, TaskID] = {}
        self._start = time.monotonic()
        self._weight_before = 0.0
        self._announced: set[str] = set()

    def __enter__(self) -> ReproductionProgress:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._progress.stop()

    def __call__(self, tally: Tally) -> None:
        """Show it."""
        if self.tally is None:
            self._begin(tally)
        self.tally = tally
        for name, done in tally.done.items():
            words = f"{done} of {counted(tally.total[name], 'piece')}"
            self._progress.update(self._bars[name], completed=done, words=words)
            if done == tally.total[name] and name not in self._announced:
                self._announced.add(name)
                if not self._live:
                    typer.echo(f"{name}: {words}", err=True)
        words = f"{tally.pieces_done} of {counted(tally.pieces, 'piece')}"
        self._progress.update(self._bars[""], completed=tally.weight_done, words=words, end=self._end(tally))

    def _begin(self, tally: Tally) -> None:
        for name, total in tally.total.items():
            self._bars[name] = self._progress.add_task(name, total=total, words="", end=None)
        self._bars[""] = self._progress.add_task("all", total=tally.weight, words="", end=None)
        self._start = time.monotonic()
        self._weight_before = tally.weight_done
        if tally.pieces_done and not self._live:
            typer.echo(f"{tally.pieces_done} of {tally.pieces} pieces were finished before", err=True)

    def _end(self, tally: Tally) -> float | None:
        """Return when all is done if the weight left goes as the weight done; None if there is nothing to go by."""
        worked = tally.weight_done - self._weight_before
        if worked <= 0 or tally.pieces_done == tally.pieces:
            return None
        now = time.monotonic()
        return now + (now - self._start) * (tally.weight - tally.weight_done) / worked


class _TimeLeft(ProgressColumn):
    """Counts down to the end that was last estimated."""

    def render(self, task: Task) -> Text:
        if task.fields["end"] is None:
            return Text()
        seconds = max(task.fields["end"] - time.monotonic(), 0.0)
        return Text(f"about {seconds:.0f} s left" if seconds < 100 else f"about {seconds / 60:.0f} min left")
