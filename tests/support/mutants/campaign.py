"""A campaign: changes drawn by a seed, the tests that reach each of them, and a verdict on every one."""

from __future__ import annotations

import gc
import importlib
import inspect
import itertools
import json
import os
import random
import signal
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from mutants import coverage, forks, trees
from mutants.changes import Change, changes_of

#: Packages and files of the library that changes are drawn from: all that compute. Lines of ``kernels`` are run by
#: machine code, where no test can be seen to reach them.
TARGETS = ["_files.py", "_validation.py", "circuits", "datasets", "dynamics", "equilibria", "estimators.py"]
TARGETS += ["gradients", "graphs", "grids", "hardware", "initial.py", "ising", "measurement", "memory", "models.py"]
TARGETS += ["networks", "objectives", "simulation", "solvers", "tensors", "terms", "torch", "training"]
#: Tests that are tried before the others are even collected.
FIRST = 25
#: Under a change a test may take so many times as long as without it, and so many seconds of processor time more.
FACTOR, GRACE = 5.0, 5.0
#: How much longer all of it may take by the clock, on a machine that has other work.
BUSY = 10.0
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
    limit: float = 60.0
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

    def tell(verdict: Verdict) -> None:
        verdicts[verdict.change.key] = verdict
        book.add(verdict)
        say(f"[{len(verdicts)}/{len(changes)}] {verdict.line()}")

    # What runs at import needs processes that have not imported anything yet: it comes first.
    warm = [change for change in waiting if _codes(change, sources[change.path])]
    cold = [change for change in waiting if change not in warm]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for verdict in _Judge(cold, book, Path(folder) / "cold", _cold).verdicts():
            tell(verdict)
        if warm:
            Session(warm, book, Path(folder) / "warm", tell).run(warm)
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


class _Judge:
    """Tries changes side by side, and yields a verdict on each.

    A change meets the fastest of the tests that were recorded first, and then, if these let it pass, the others and
    every case of their functions, until its seconds are spent. ``work`` makes of a change, the slot it is tried in and
    a `Trial` what a child does.
    """

    def __init__(
        self, changes: list[Change], book: _Book, folder: Path, work: Callable[..., Callable[[], Any]]
    ) -> None:
        self.pending, self.book, self.folder, self.work = list(changes), book, folder, work
        self.rounds: dict[Any, tuple[int, float]] = {}
        workers = min(book.settings.workers, len(changes))
        self.slots = [trees.Slot(book.settings.base, folder / f"copy-{k}") for k in range(workers)]

    def verdicts(self) -> Iterator[Verdict]:
        """Yield the verdicts as they come."""

        def jobs() -> Iterator[Callable[[int], forks.Job[Change]]]:
            while self.pending:
                yield self._trial(self.pending.pop(0))

        # A change that its first tests let pass comes back to the front of the queue for the rest of them.
        while self.pending:
            for job, ending in forks.run_all(jobs(), len(self.slots)):
                change = job.subject
                first, spent = self.rounds.get(change.key, (0, 0.0))
                seconds, diff = spent + ending.seconds, change.diff(self.book.sources[change.path])
                if ending.value is None:
                    # A child that ended by an error of this tool has shown nothing.
                    verdict = {"timeout": "timeout", "error": "survived"}.get(ending.why, "killed")
                    yield Verdict(change, verdict, "" if verdict == "timeout" else ending.why, seconds, diff)
                elif ending.value["failed"]:
                    yield Verdict(change, "killed", ending.value["failed"], seconds, diff)
                elif first == 0 and not ending.value["spent"]:
                    self.rounds[change.key] = (FIRST, seconds)
                    self.pending.insert(0, change)
                else:
                    yield Verdict(change, "survived", "", seconds, diff)

    def _trial(self, change: Change) -> Callable[[int], forks.Job[Change]]:
        """Return what makes the job of trying a change in a slot."""
        every, known = self.book.chosen(change), self.book.tests.tests
        first, _ = self.rounds.get(change.key, (0, 0.0))
        chosen = every if first else every[:FIRST]
        limits = {name: GRACE + FACTOR * known[name].seconds for name in chosen}

        def make(slot: int) -> forks.Job[Change]:
            self.slots[slot].change(change)
            own, seconds = self.folder / f"work-{slot}", self.book.settings.limit
            trial = Trial(limits, every[:first], seconds, own / "tmp")
            work = self.work(change, self.slots[slot], trial)
            return forks.Job(change, work, BUSY * (seconds + max(limits.values())), own)

        return make


def _cold(change: Change, slot: trees.Slot, trial: Trial) -> Callable[[], dict[str, Any]]:
    """Return what tries a change in a process that imports the changed library and collects the tests."""

    def work() -> dict[str, Any]:
        trees.enter(slot.place, writes=False)
        files = sorted({name.partition("::")[0] for name in trial.limits})
        code = pytest.main(["-x", *coverage.OPTIONS, f"--basetemp={trial.folder}", *files], plugins=[trial])
        # 5 says that there was no other case.
        if not trial.failed and not trial.spent and code not in (0, 1, *([5] if trial.done else [])):
            trial.failed = f"{files[0]} (pytest ended with {int(code)})"
        return trial.found()

    return work


class Session:
    """A plugin of pytest that collects tests once and, instead of running them, tries every change in a fork.

    In the fork the code of the changed function takes the place of what was imported.
    """

    def __init__(self, changes: list[Change], book: _Book, folder: Path, tell: Callable[[Verdict], None]) -> None:
        self.judge, self.book, self.tell = _Judge(changes, book, folder, self._work), book, tell
        self.items: list[Any] = []

    def run(self, changes: list[Change]) -> None:
        """Collect and try."""
        place = self.judge.slots[0].place
        trees.enter(place, writes=False)
        files = sorted({name.partition("::")[0] for change in changes for name in self.book.chosen(change)})
        code = pytest.main([*coverage.OPTIONS, "-s", *files], plugins=[self])
        if code != 0:
            raise SystemExit(f"The tests of {', '.join(files)} could not be collected.")

    def pytest_configure(self) -> None:
        """Let property tests stop at the first counterexample, without looking for the smallest."""
        _hurry()

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Note the tests."""
        self.items = list(items)

    def pytest_runtestloop(self) -> bool:
        """Try the changes."""
        for verdict in self.judge.verdicts():
            self.tell(verdict)
        return True

    def _work(self, change: Change, slot: trees.Slot, trial: Trial) -> Callable[[], dict[str, Any]]:
        def work() -> dict[str, Any]:
            trees.enter(slot.place, writes=False)
            old, new = _codes(change, self.book.sources[change.path])
            place = str(self.judge.slots[0].place / change.path)
            # Some files are imported by what needs them only.
            importlib.import_module(".".join(Path(change.path).with_suffix("").parts[1:]).removesuffix(".__init__"))
            swapped = 0
            for each in gc.get_objects():
                code = each.__code__ if isinstance(each, FunctionType) else None
                if code is not None and code.co_filename == place and _same(code, old):
                    each.__code__ = new.replace(co_filename=place)
                    swapped += 1
            if not swapped:
                raise RuntimeError(f"no function {old.co_qualname} was imported")
            items = trial.chosen(self.items)
            for config in {item.config for item in items}:
                config.pluginmanager.register(trial)
                config._tmp_path_factory._given_basetemp = trial.folder
            for item, after in itertools.pairwise([*items, None]):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if trial.failed or trial.spent:
                    break
            return trial.found()

        return work


def _codes(change: Change, source: str) -> tuple[CodeType, CodeType] | None:
    """Return the code of the function that a change is in, before and after; None where one cannot replace the other.

    A function within a function is part of the outermost one.
    """
    if change.at_import:
        return None
    before, after = (list(_functions(compile(text, "", "exec"))) for text in (source, change.apply(source)))
    pairs = [(a, b) for a, b in zip(before, after, strict=True) if not _same(a, b, lines=False)]
    return pairs[0] if len(pairs) == 1 and pairs[0][0].co_freevars == pairs[0][1].co_freevars else None


def _functions(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of the functions of a module or a class, without those inside functions."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            is_class = not part.co_flags & inspect.CO_OPTIMIZED
            yield from _functions(part) if is_class else [part]


def _same(one: CodeType, other: CodeType, *, lines: bool = True) -> bool:
    """Return whether two codes are those of one function, at the same line or not."""
    if lines:
        return (one.co_qualname, one.co_firstlineno) == (other.co_qualname, other.co_firstlineno)
    alike = (one.co_code, one.co_names, one.co_varnames) == (other.co_code, other.co_names, other.co_varnames)
    return alike and len(one.co_consts) == len(other.co_consts) and all(map(_alike, one.co_consts, other.co_consts))


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, CodeType) and isinstance(other, CodeType):
        return _same(one, other, lines=False)
    return repr(one) == repr(other)


def _hurry() -> None:
    from hypothesis import Phase, settings

    settings.register_profile("mutants", settings(), phases=[Phase.explicit, Phase.generate])
    settings.load_profile("mutants")


class Trial:
    """A plugin of pytest that runs tests in the order given, each within its limit, and notes the first that fails.

    Given tests that were ``done`` before, it runs all cases of the functions but for those.
    """

    def __init__(self, limits: dict[str, float], done: list[str], seconds: float, folder: Path) -> None:
        self.limits, self.done, self.seconds, self.folder = limits, set(done), seconds, folder
        self.order: dict[str, int] = {}
        for name in limits:
            self.order.setdefault(coverage.function_of(name) if done else name, len(self.order))
        self.longest: dict[str, float] = {}
        for name, limit in limits.items():
            function = coverage.function_of(name)
            self.longest[function] = max(limit, self.longest.get(function, 0.0))
        self.failed, self.spent = "", False

    def found(self) -> dict[str, Any]:
        """Return which test failed, and whether the time was spent."""
        return {"failed": self.failed, "spent": self.spent}

    def chosen(self, items: list[Any]) -> list[Any]:
        """Return the chosen tests, in their order."""
        place = {
            item: self.order.get(coverage.function_of(item.nodeid) if self.done else item.nodeid) for item in items
        }
        kept = [item for item in items if place[item] is not None and item.nodeid not in self.done]
        return sorted(kept, key=lambda item: place[item] or 0)

    def pytest_configure(self) -> None:
        """Let property tests stop at the first counterexample, without looking for the smallest."""
        _hurry()

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keep the chosen tests, in their order."""
        items[:] = self.chosen(items)

    def pytest_runtest_protocol(self, item: Any) -> None:
        """Let a signal end this process if a test hangs, be it in compiled code; end all if the time is spent."""
        if time.process_time() > self.seconds:
            self.spent = True
            item.session.shouldstop = "The time is spent."
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, self.longest[coverage.function_of(item.nodeid)])

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
