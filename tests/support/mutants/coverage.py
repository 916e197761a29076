"""Which test reaches which line, and how long it takes: recorded once, and again only for what a change can have moved.

A test is recorded anew when its file has changed or a file of the library that it reached; all of them are when a file
has changed that tests share. What fixtures of a wider scope reach counts for every test that uses them.
"""

from __future__ import annotations

import fnmatch
import json
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from mutants import forks, trees

#: Hypothesis is imported before pytest looks at it, of which pytest warns.
OPTIONS = ["-q", "--no-header", "-W", "ignore::pytest.PytestAssertRewriteWarning", "-m", "not slow"]
OPTIONS += ["-p", "no:xdist", "-p", "no:cacheprovider"]
#: Seconds of processor time after which a test counts as slow: it is left out, since changes are tried by quick ones.
SLOW = 2.0
#: Seconds of processor time that the cases of a parametrized test may take before the others are left out as well:
#: they reach the same lines, or nearly so, and are tried on what the recorded ones let pass.
CASES = 1.0
#: Seconds after which a part of the unchanged tests counts as hanging.
PATIENCE = 3600.0


def function_of(name: str) -> str:
    """Return the name of a test without its case."""
    return name.partition("[")[0]


@dataclass
class Test:
    """A test: its seconds of processor time, what became of it, and the lines of each file that it reaches."""

    seconds: float
    outcome: str
    lines: dict[str, list[int]]

    def reaches(self, path: str, first: int, last: int) -> bool:
        """Return whether it reaches one of some lines of a file."""
        return any(first <= line <= last for line in self.lines.get(path, ()))


@dataclass
class Map:
    """All tests by their name, and the digests of the files that they were recorded with."""

    tests: dict[str, Test] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Map:
        """Read a map, an empty one where there is no file."""
        if not path.exists():
            return cls()
        data = json.loads(path.read_text(encoding="utf-8"))
        return cls({name: Test(**test) for name, test in data["tests"].items()}, data["files"])

    def save(self, path: Path) -> None:
        """Write the map."""
        data = {"files": self.files, "tests": {name: vars(test) for name, test in self.tests.items()}}
        path.write_text(json.dumps(data, separators=(",", ":")), encoding="utf-8")

    def reaching(self, path: str, first: int, last: int) -> list[str]:
        """Return the tests that reach one of some lines of a file, the fastest first."""
        names = [name for name, test in self.tests.items() if test.reaches(path, first, last)]
        return self.ordered(names)

    def touching(self, path: str) -> list[str]:
        """Return the tests that reach any line of a file, the fastest first."""
        return self.ordered(name for name, test in self.tests.items() if path in test.lines)

    def ordered(self, names: Iterable[str]) -> list[str]:
        """Return tests with the fastest first and, of the equally fast, the one that reaches the fewest lines."""
        size = {name: sum(map(len, test.lines.values())) for name, test in self.tests.items()}
        return sorted(names, key=lambda name: (round(self.tests[name].seconds, 1), size[name], name))

    def forget(self, now: dict[str, str]) -> list[str]:
        """Drop the tests whose files or lines have changed; return the test files that must be recorded."""
        moved = {name for name in {*now, *self.files} if now.get(name) != self.files.get(name)}
        shared = [
            name for name in moved if name.startswith("tests/") and not _is_test_file(name) and name.endswith(".py")
        ]
        for name, test in list(self.tests.items()):
            if shared or test.outcome == "failed" or name.partition("::")[0] in moved or moved & set(test.lines):
                del self.tests[name]
        self.files = now
        return sorted(filter(_is_test_file, now))


def _is_test_file(name: str) -> bool:
    return name.startswith("tests/") and fnmatch.fnmatch(name.rpartition("/")[2], "test_*.py")


def watched(base: Path) -> dict[str, str]:
    """Return the digest of every Python file of the library and the tests, without this tool."""
    names = [name for name in trees.files_of(base) if name.endswith(".py") and name.startswith(("src/", "tests/"))]
    return {
        name: trees.digest((base / name).read_bytes())
        for name in names
        if not name.startswith("tests/support/mutants/")
    }


def record(
    base: Path, place: Path, targets: list[str], only: list[str], workers: int, say: Callable[[str], None]
) -> Map:
    """Return the map of the unchanged tree, recording what is missing from the one in ``place``.

    Where ``only`` names some test files, it is the map of their tests.
    """
    kept = Map.load(place / "coverage.json")
    files = [file for file in kept.forget(watched(base)) if not only or file in only]
    known = set(kept.tests)
    parts = 1 if workers < 4 else 4
    jobs = [_part(base, place, file, part, parts, targets, known) for file in files for part in range(parts)]
    for done, (job, ending) in enumerate(forks.run_all(jobs, workers), start=1):
        if ending.value is None:
            raise SystemExit(
                f"The unchanged tests of {job.subject} ended in a {ending.why}: see {job.folder}/output.txt."
            )
        if ending.value:
            say(f"[{done}/{len(jobs)}] recorded {len(ending.value)} tests of {job.subject} in {ending.seconds:.0f} s")
        kept.tests |= {name: Test(**test) for name, test in ending.value.items()}
        kept.save(place / "coverage.json")
    failed = sorted(
        name for name, test in kept.tests.items() if test.outcome == "failed" and name.partition("::")[0] in files
    )
    if failed:
        raise SystemExit(
            f"Without any change {len(failed)} tests fail; they are tried again next time:\n" + "\n".join(failed)
        )
    chosen = {
        name: test for name, test in kept.tests.items() if name.partition("::")[0] in files and test.outcome == "passed"
    }
    return Map(chosen, kept.files)


def _part(
    base: Path, place: Path, file: str, part: int, parts: int, targets: list[str], known: set[str]
) -> Callable[[int], forks.Job[str]]:
    def make(slot: int) -> forks.Job[str]:
        folder = place / f"recorder-{slot}"
        recorder = Recorder(base, targets, known, part, parts)

        def work() -> dict[str, Any]:
            trees.enter(base, writes=True)
            code = pytest.main([*OPTIONS, f"--basetemp={folder / 'tmp'}", file], plugins=[recorder])
            if code not in (0, 1, 5):
                raise RuntimeError(f"pytest ended with {code}")
            return recorder.tests

        return forks.Job(file, work, PATIENCE, folder)

    return make


class Recorder:
    """A plugin of pytest that runs the tests not known yet and notes the lines that each of them reaches."""

    def __init__(self, base: Path, targets: list[str], known: set[str], part: int, parts: int) -> None:
        self.paths = {str(base / target): target for target in targets}
        self.known, self.part, self.parts = known, part, parts
        self.tests: dict[str, Any] = {}
        self.lines: set[tuple[str, int]] = set()
        self.fixtures: dict[Any, set[tuple[str, int]]] = {}
        self.outcome, self.began = "passed", 0.0
        self.left: dict[int, tuple[CodeType, set[int]]] = {}
        self.taken: Counter[str] = Counter()

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keep this part of the tests, without those that are known."""
        items[:] = [item for item in items[self.part :: self.parts] if item.nodeid not in self.known]

    def pytest_runtest_protocol(self, item: Any) -> None:
        """Begin a test as if it were the first in its process: with empty caches."""
        modules = [module for name, module in list(sys.modules.items()) if name.startswith("phasegrad.")]
        for module in [item.module, *modules]:
            for value in list(vars(module).values()):
                clear = getattr(value, "cache_clear", None)
                if callable(clear) and getattr(value, "__module__", None) == module.__name__:
                    clear()
        self.lines, self.left = set(), {}
        self.outcome, self.began = "passed", time.process_time()
        signal.signal(signal.SIGPROF, self.leave)
        signal.setitimer(signal.ITIMER_PROF, SLOW)
        self.watch(True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: Any) -> None:
        """Leave out a case of which there were enough."""
        if self.taken[function_of(item.nodeid)] > CASES:
            self.leave(0, None)

    def leave(self, number: int, frame: FrameType | None) -> None:
        """Leave a test out that takes long."""
        self.outcome = "slow"
        pytest.skip("slow")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a failure."""
        if report.failed and self.outcome != "slow":
            self.outcome = "failed"

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note what a test reached and how long it took."""
        self.watch(False)
        signal.setitimer(signal.ITIMER_PROF, 0)
        found: dict[str, list[int]] = {}
        for path, line in sorted(self.lines):
            found.setdefault(self.paths[path], []).append(line)
        seconds = round(time.process_time() - self.began, 3)
        self.taken[function_of(nodeid)] += seconds
        self.tests[nodeid] = {"seconds": seconds, "outcome": self.outcome, "lines": found}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        """Note what a fixture reaches."""
        before, self.lines, self.left = self.lines, set(), {}
        try:
            return (yield)
        finally:
            self.fixtures[fixturedef] = self.fixtures.get(fixturedef, set()) | self.lines
            self.lines |= before

    def pytest_runtest_teardown(self, item: Any) -> None:
        """Count what the fixtures of a test reached, now or for an earlier test."""
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            for definition in definitions:
                self.lines |= self.fixtures.get(definition, set())

    def watch(self, on: bool) -> None:
        """Begin or end to trace, on all threads."""
        sys.settrace(self.call if on else None)
        threading.settrace(self.call if on else None)

    def call(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Trace the lines of a function if it is in one of the files asked for and has lines left to see."""
        code = frame.f_code
        # By name and number: the hash of a string is kept, that of a code object is worked out every time.
        if code.co_filename not in self.paths:
            return None
        if id(code) not in self.left:
            self.left[id(code)] = code, {line for _, _, line in code.co_lines() if line is not None}
        left = self.left[id(code)][1]

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            if frame.f_lineno in left:
                left.discard(frame.f_lineno)
                self.lines.add((code.co_filename, frame.f_lineno))
            return line

        return line(frame, event, argument) if left else None
