"""A campaign: changes drawn by a seed, the tests that reach each of them, and a verdict on every one."""

from __future__ import annotations

import json
import os
import random
import signal
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mutants import coverage, forks, trees
from mutants.changes import Change, changes_of

#: Packages and files of the library that changes are drawn from.
TARGETS = ["dynamics", "solvers", "equilibria", "gradients", "training", "models.py"]
#: Tests that are tried before the others are even collected.
FIRST = 25
#: Under a change a test may take so many times as long as without it, and so many seconds more.
FACTOR, GRACE = 8.0, 30.0
#: Words for what becomes of a change, in the order of the report.
VERDICTS = ["killed", "timeout", "survived", "unreached", "equivalent"]


@dataclass(frozen=True)
class Settings:
    """What to change, how often, and where to keep what was found."""

    root: Path
    place: Path
    targets: list[str]
    count: int = 300
    seed: int = 0
    workers: int = 1
    fresh: bool = False
    tests: list[str] = field(default_factory=list)
    heavy: list[str] = field(default_factory=lambda: forks.HEAVY)

    @property
    def base(self) -> Path:
        """The copy that is never changed."""
        return self.place / "base"

    def sources(self) -> dict[str, str]:
        """Return the text of every file that changes are drawn from, by its path."""
        found = {}
        for target in self.targets:
            where = self.root / target
            if not where.exists():
                raise SystemExit(
                    f"There is no {target} in {self.root}. Name a file or a folder, such as src/phasegrad/solvers."
                )
            for file in [where] if where.is_file() else sorted(where.rglob("*.py")):
                found[file.relative_to(self.root).as_posix()] = file.read_text(encoding="utf-8")
        return found


@dataclass
class Verdict:
    """What became of a change, by which test or for which reason."""

    change: Change
    verdict: str
    by: str
    seconds: float
    diff: str

    def row(self) -> dict[str, Any]:
        """Return the verdict as plain data."""
        change = self.change
        where = {"file": change.path, "line": change.at, "function": change.function, "text": change.text}
        return {
            "verdict": self.verdict,
            **where,
            "what": change.what,
            "nth": change.nth,
            "by": self.by,
            "seconds": round(self.seconds, 2),
            "diff": self.diff,
        }

    def line(self) -> str:
        """Return the verdict as one line."""
        change = self.change
        by = f", by {self.by}" if self.verdict == "killed" else f", since {self.by}" if self.by else ""
        return (
            f"{self.verdict:10} {change.path}:{change.at} {change.function}: {change.what}{by} ({self.seconds:.1f} s)"
        )


def draw(sources: dict[str, str], count: int, seed: int) -> list[Change]:
    """Draw changes without repetition, the same ones for the same sources and seed."""
    every = [change for path, source in sorted(sources.items()) for change in changes_of(path, source)]
    random.Random(seed).shuffle(every)
    drawn: list[Change] = []
    for change in every:
        if len(drawn) == count:
            break
        if change.matters(sources[change.path]):
            drawn.append(change)
    return drawn


def equivalents(path: Path) -> dict[tuple[str, str, str, str, int], str]:
    """Read the changes known to make no difference, and why, by their keys."""
    rows = tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", []) if path.exists() else []
    return {(row["file"], row["function"], row["text"], row["what"], row.get("nth", 0)): row["reason"] for row in rows}


def run(settings: Settings, say: Callable[[str], None]) -> list[Verdict]:
    """Run a campaign and return its verdicts in the order of drawing; what an earlier one found is not done again."""
    # Threads of BLAS would only wait for each other beside other workers.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    sources = settings.sources()
    changes = draw(sources, settings.count, settings.seed)
    settings.place.mkdir(parents=True, exist_ok=True)
    trees.renew_base(settings.root, settings.base)
    forks.prepare(settings.heavy)
    every = sorted(name for name in trees.files_of(settings.root) if name.startswith("src/") and name.endswith(".py"))
    known = coverage.record(settings.base, settings.place, every, settings.tests, settings.workers, say)
    book = _Book(settings, sources, known)
    verdicts = {change.key: verdict for change in changes if (verdict := book.known(change)) is not None}
    say(f"{len(changes)} changes, {len(verdicts)} of them judged before.")
    waiting = [change for change in changes if change.key not in verdicts]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for verdict in _judged(waiting, book, Path(folder)):
            verdicts[verdict.change.key] = verdict
            book.add(verdict)
            say(f"[{len(verdicts)}/{len(changes)}] {verdict.line()}")
    return [verdicts[change.key] for change in changes]


class _Book:
    """What is known before a change is tried: its tests, whether it is equivalent, what an earlier campaign found."""

    def __init__(self, settings: Settings, sources: dict[str, str], tests: coverage.Map) -> None:
        self.settings, self.sources, self.tests = settings, sources, tests
        self.equivalent = equivalents(settings.root / "tests" / "mutants" / "equivalent.toml")
        self.file = settings.place / "verdicts.json"
        is_kept = self.file.exists() and not settings.fresh
        self.rows: dict[str, Any] = json.loads(self.file.read_text(encoding="utf-8")) if is_kept else {}

    def chosen(self, change: Change) -> list[str]:
        """Return the tests that reach a change, the fastest first."""
        if not change.at_import:
            return self.tests.reaching(change.path, *change.lines)
        room = change.path.rpartition("/")[0]
        return self.tests.touching(change.path) or self.tests.ordered(
            name for name, test in self.tests.tests.items() if any(path.startswith(room) for path in test.lines)
        )

    def known(self, change: Change) -> Verdict | None:
        """Return the verdict on a change that need not be tried."""
        diff = change.diff(self.sources[change.path])
        if change.key in self.equivalent:
            return Verdict(change, "equivalent", self.equivalent[change.key], 0.0, diff)
        if not self.chosen(change):
            return Verdict(change, "unreached", "", 0.0, diff)
        row = self.rows.get(self.name(change))
        if row is None or row["state"] != self.state(row["verdict"], row["by"]):
            return None
        return Verdict(change, row["verdict"], row["by"], row["seconds"], diff)

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict for later campaigns."""
        state = self.state(verdict.verdict, verdict.by)
        row = {"verdict": verdict.verdict, "by": verdict.by, "seconds": verdict.seconds, "state": state}
        self.rows[self.name(verdict.change)] = row
        draft = self.file.with_suffix(".new")
        draft.write_text(json.dumps(self.rows), encoding="utf-8")
        draft.replace(self.file)

    def name(self, change: Change) -> str:
        """Return the name of a change in this very source."""
        return trees.digest(self.sources[change.path].encode(), repr(change).encode())

    def state(self, verdict: str, by: str) -> str:
        """Return what a verdict rests on: the file of the test that killed, or everything."""
        files = self.tests.files
        return (
            files.get(by.partition("::")[0], "")
            if verdict == "killed"
            else trees.digest(repr([sorted(files.items()), sorted(self.tests.tests)]).encode())
        )


def _judged(changes: list[Change], book: _Book, folder: Path) -> Iterator[Verdict]:
    """Try changes side by side and yield a verdict on each, first with the fastest tests and then with the others."""
    slots = [
        trees.Slot(book.settings.base, folder / f"copy-{k}") for k in range(min(book.settings.workers, len(changes)))
    ]
    pending = list(changes)
    rounds: dict[Any, tuple[int, float]] = {}

    def jobs() -> Iterator[Callable[[int], forks.Job[Change]]]:
        while pending:
            yield _trial(pending.pop(0), rounds, book, slots, folder)

    # A change that its first tests let pass comes back to the front of the queue for the rest of them.
    while pending:
        for job, ending in forks.run_all(jobs(), len(slots)):
            change = job.subject
            first, spent = rounds.get(change.key, (0, 0.0))
            seconds, total = spent + ending.seconds, len(book.chosen(change))
            diff = change.diff(book.sources[change.path])
            if ending.value is None:
                verdict = "timeout" if ending.why == "timeout" else "killed"
                yield Verdict(change, verdict, "" if verdict == "timeout" else ending.why, seconds, diff)
            elif ending.value["failed"]:
                yield Verdict(change, "killed", ending.value["failed"], seconds, diff)
            elif first == 0 and total > FIRST:
                rounds[change.key] = (FIRST, seconds)
                pending.insert(0, change)
            else:
                yield Verdict(change, "survived", "", seconds, diff)


def _trial(
    change: Change, rounds: dict[Any, tuple[int, float]], book: _Book, slots: list[trees.Slot], folder: Path
) -> Callable[[int], forks.Job[Change]]:
    """Return what makes the job of trying a change in a slot."""
    every = book.chosen(change)
    first, _ = rounds.get(change.key, (0, 0.0))
    chosen = every[first:] if first else every[:FIRST]

    def limit(name: str) -> float:
        return GRACE + FACTOR * book.tests.tests[name].seconds

    def make(slot: int) -> forks.Job[Change]:
        slots[slot].change(change)
        own = folder / f"work-{slot}"

        def work() -> dict[str, str]:
            trees.enter(slots[slot].place, writes=False)
            trial = Trial({name: limit(name) for name in chosen})
            files = sorted({name.partition("::")[0] for name in chosen})
            code = pytest.main(["-x", *coverage.OPTIONS, f"--basetemp={own / 'tmp'}", *files], plugins=[trial])
            if not trial.failed and code not in (0, 1):
                trial.failed = f"{files[0]} (pytest ended with {int(code)})"
            return {"failed": trial.failed}

        return forks.Job(change, work, sum(map(limit, chosen)), own)

    return make


class Trial:
    """A plugin of pytest that runs tests in the order given, each within its limit, and notes the first that fails."""

    def __init__(self, limits: dict[str, float]) -> None:
        self.limits, self.order = limits, {name: k for k, name in enumerate(limits)}
        self.failed = ""

    def pytest_configure(self) -> None:
        """Let property tests stop at the first counterexample, without looking for the smallest."""
        from hypothesis import Phase, settings

        settings.register_profile("mutants", settings(), phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keep the chosen tests, in their order."""
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order), key=lambda item: self.order[item.nodeid]
        )

    def pytest_runtest_protocol(self, item: Any) -> None:
        """Let the alarm end this process if a test hangs, be it in compiled code."""
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, self.limits[item.nodeid])

    def pytest_collectreport(self, report: Any) -> None:
        """Note a file that cannot be imported any more."""
        if report.failed:
            self.failed = self.failed or report.nodeid

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a test that fails."""
        if report.failed:
            self.failed = self.failed or report.nodeid


def summary(verdicts: list[Verdict]) -> str:
    """Return the report: what survived with its diff, what makes no difference with the reason, and the counts."""
    lost = [f"{each.line()}\n{each.diff}" for each in verdicts if each.verdict in ("survived", "unreached")]
    same = [f"{each.line()}" for each in verdicts if each.verdict == "equivalent"]
    counts = Counter(each.verdict for each in verdicts)
    return "\n".join([*lost, *same, "", ", ".join(f"{counts[word]} {word}" for word in VERDICTS)])
