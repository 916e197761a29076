"""The command about hardware: `chip`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from phasegrad._validation import counted
from phasegrad.cli.completing import chip_tasks, one_of, presets
from phasegrad.cli.signals import STOPPED
from phasegrad.cli.words import Json, Plot, check_places, progress_bar, put, put_json, tables

if TYPE_CHECKING:
    from phasegrad.hardware import Entry

#: How the commands are used, for their help.
EXAMPLES = {
    "chip": ("phasegrad chip vowels --chips 50 --plot budget.svg --json out.json",),
}


_MOST_CHIPS = 1000
#: Seconds from which on a duration is given in minutes.
_MINUTES = 100
#: Share of the expected duration by which the expectation itself counts.
_TRUST = 0.25
_CHIPS, _HOW = "Which chips", "How they learn"


_Task = Annotated[
    str,
    typer.Argument(
        autocompletion=one_of(chip_tasks), help="What the chips learn: vowels, or digits (minutes per fault)."
    ),
]
_Preset = Annotated[
    str,
    typer.Option(
        metavar="NAME", rich_help_panel=_CHIPS, autocompletion=one_of(presets),
        help="Kind: ideal, cmos-ring-65nm, cmos-ring-aggressive or lc-board.",
    ),
]  # fmt: skip
_Chips = Annotated[
    int,
    typer.Option(
        min=1, max=_MOST_CHIPS, metavar="N", rich_help_panel=_CHIPS,
        help=f"How many, up to {_MOST_CHIPS}, each with its own faults.",
    ),
]  # fmt: skip
_Epochs = Annotated[
    int | None,
    typer.Option(
        min=0, max=10_000, metavar="N", rich_help_panel=_HOW, help="Epochs to train (default: that of the task)."
    ),
]
_Beta = Annotated[
    float | None,
    typer.Option(
        min=1e-9, max=1e3, metavar="X", rich_help_panel=_HOW, help="Strength of the nudge (default: that of the task)."
    ),
]


def chip(
    task: _Task,
    preset: _Preset = "cmos-ring-65nm",
    chips: _Chips = 10,
    epochs: _Epochs = None,
    beta: _Beta = None,
    json: Json = None,
    plot: Plot = None,
) -> None:
    """Say what a kind of chip can learn, and which of its faults is to blame.

    Chips learn with no fault, with each fault alone and with all together; every number of a preset has its source.

    Each result is printed when it is there, with an estimate of the time left; stopped, the command keeps what it has.
    """
    from phasegrad.cli.tables.chip import chip_tables, draw_budget, entry_table
    from phasegrad.hardware import error_budget, preset as kind_of, task as task_of

    check_places(json, picture=plot)
    chosen = task_of(task, chips)
    kind = chosen.fitted(kind_of(preset))
    changes = {name: value for name, value in (("epochs", epochs), ("beta", beta)) if value is not None}
    plan = chosen.plan.replace(**changes)
    trainings = _Trainings(chosen.seconds(kind, plan), plan.epochs)
    try:
        with trainings:
            found = error_budget(
                chosen.networks, chosen.data, kind, plan, progress=trainings.show, report=trainings.keep
            )
    except KeyboardInterrupt:
        entries = trainings.entries
        if entries:
            tables(json).print(entry_table(entries))
            faults = [each.as_dict() for each in entries]
            put_json(json, {"hardware": kind.name, "beta": plan.beta, "interrupted": True, "faults": faults})
        kept = "all above is of these" if entries else "nothing was written"
        typer.echo(f"Stopped after {len(entries)} of {counted(trainings.count, 'training')}; {kept}.", err=True)
        raise typer.Exit(STOPPED) from None
    tables(json).print(chip_tables(found))
    put(plot, lambda place: draw_budget(found, place), json=json)
    put_json(json, {**found.as_dict(), "interrupted": False})


class _Trainings:
    """A bar of the trainings of a budget on standard error, a line for each that is done, and how long the rest takes.

    ``seconds`` are what every training is expected to take; they are corrected by how long it takes.
    """

    def __init__(self, seconds: Mapping[str, float], epochs: int) -> None:
        self.count = len(seconds)
        self.entries: list[Entry] = []
        self._seconds, self._epochs = dict(seconds), max(epochs, 1)
        self._total = sum(seconds.values())
        self._bar = progress_bar("{task.fields[words]}")
        self._task = self._bar.add_task("starting", total=self._total, words="")
        self._start = time.monotonic()

    def __enter__(self) -> None:
        self._bar.start()
        self._say(
            f"{counted(self.count, 'training')} of {counted(self._epochs, 'epoch')}, {_about(self._total)} in all"
        )

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, fault: str, epoch: int) -> None:
        """Show an epoch: as `error_budget` tells of it."""
        done = self._before(fault) + self._seconds[fault] * epoch / self._epochs
        words = f"training {len(self.entries) + 1} of {self.count}, epoch {epoch} of {self._epochs}{self._left(done)}"
        self._bar.update(self._task, completed=done, description=f"faults: {fault}", words=words)

    def keep(self, entry: Entry) -> None:
        """Keep a result, and print it."""
        self.entries.append(entry)
        mean, worst = 100 * float(entry.accuracy.mean()), 100 * float(entry.accuracy.min())
        left = self._left(self._before(entry.fault) + self._seconds[entry.fault])
        self._say(f"faults: {entry.fault}: mean accuracy {mean:.1f} %, worst chip {worst:.1f} %{left}")

    def _before(self, fault: str) -> float:
        """Return how long the trainings before one were expected to take."""
        names = list(self._seconds)
        return sum(self._seconds[name] for name in names[: names.index(fault)])

    def _left(self, done: float) -> str:
        """Return in words how long the rest will take, where so much of what was expected is done."""
        left = self._total - done
        if left <= 0:
            return ""
        # How much slower it goes than expected, taken to be 1 until a good part of it is done.
        pace = (time.monotonic() - self._start + _TRUST * self._total) / (done + _TRUST * self._total)
        return f", {_about(pace * left)} left"

    def _say(self, line: str) -> None:
        self._bar.console.print(line, highlight=False, soft_wrap=True)


def _about(seconds: float) -> str:
    return f"about {seconds:.0f} s" if seconds < _MINUTES else f"about {seconds / 60:.0f} min"
