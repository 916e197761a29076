"""How far a training is: a bar of epochs for one seed after another, on standard error where that is a terminal."""

from __future__ import annotations

from types import TracebackType

import numpy as np
from rich.progress import TaskID

import phasegrad
from phasegrad.cli.words import progress_bar


class EpochBar:
    """Shows the epoch, the loss and the accuracy of the run that trains now."""

    def __init__(self, epochs: int) -> None:
        self._progress = progress_bar("epoch {task.completed:.0f} of {task.total:.0f}{task.fields[words]}")
        self._total = max(epochs, 1)
        self._bar: TaskID | None = None
        self._name = ""

    def __enter__(self) -> EpochBar:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._progress.stop()

    def begin(self, name: str) -> None:
        """Begin anew with a run of this name."""
        if self._bar is not None:
            self._progress.remove_task(self._bar)
        self._name, self._bar = name, self._progress.add_task(f"{name}, untrained", total=self._total, words="")

    def show(self, epoch: int, history: phasegrad.training.History, remark: str = "") -> None:
        """Show an epoch: as `phasegrad.train` tells of it, with a remark behind."""
        assert self._bar is not None
        found = ((part, getattr(history, f"{part}_accuracy")[0, -1]) for part in ("test", "train"))
        scores = [f", {part} {share:.1%}" for part, share in found if np.isfinite(share)]
        words = f", loss {history.train_loss[0, -1]:.4f}{remark}"
        self._progress.update(self._bar, completed=epoch, words=words, description=self._name + "".join(scores[:1]))

    def say(self, line: str) -> None:
        """Print a line that stays."""
        self._progress.console.print(line, highlight=False)
