"""Reproductions go on where they stopped, end alike however they ran, and touch nothing that is not theirs."""

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import piece_functions as functions
import pytest

from phasegrad import _files, _validation
from phasegrad_paper.reproduction import PieceError, Reproduction, identity as identities, reproduce
from phasegrad_paper.reproduction.identity import Identity, digest_of_sources
from phasegrad_paper.studies import Piece, choose

TESTS = Path(__file__).parents[1] / "support"
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
SCRIPT = """
import sys
import piece_functions as functions
from phasegrad_paper.reproduction import reproduce
if __name__ == "__main__":
    _, folder, log, pause, workers = sys.argv
    reproduce([functions.drawing_study(8, log, float(pause))], folder, workers=int(workers))
"""


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def finished(folder: Path) -> list[Path]:
    return sorted((folder / "pieces").glob("[!.]*.json"))


def until(condition, process: subprocess.Popen | None = None) -> None:
    """Wait for something that will happen soon, on a slow machine too."""
    for _ in range(6000):
        if condition():
            return
        assert process is None or process.poll() is None, "the process ended too early"
        time.sleep(0.01)
    raise AssertionError("waited in vain")


def start(folder: Path, log: Path, pause: float, workers: int = 2) -> subprocess.Popen:
    log.mkdir(exist_ok=True)
    command = [sys.executable, "-c", SCRIPT, str(folder), str(log), str(pause), str(workers)]
    return subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, start_new_session=True)


class TestResults:
    @pytest.mark.parametrize(
        "study",
        [functions.drawing_study(5), pytest.param(*choose(["finite-beta"]), marks=pytest.mark.slow)],
        ids=lambda s: s.name,
    )
    def test_all_ways_end_alike(self, tmp_path, study):
        for name, workers in (("one", 1), ("two", 2)):
            assert isinstance(reproduce([study], tmp_path / name, seeds=2, workers=workers), Reproduction)
        results = (tmp_path / "one" / "results.json").read_bytes()
        assert results == (tmp_path / "two" / "results.json").read_bytes()
        for path in finished(tmp_path / "one")[::2]:
            path.unlink()
        kept = {path.name: path.stat().st_mtime_ns for path in finished(tmp_path / "one")}
        reproduce([study], tmp_path / "one", seeds=2, workers=1)
        assert results == (tmp_path / "one" / "results.json").read_bytes()
        assert kept.items() <= {path.name: path.stat().st_mtime_ns for path in finished(tmp_path / "one")}.items()

    def test_they_are_strict_json_with_versions_and_without_times(self, tmp_path):
        reproduce([functions.drawing_study(1)], tmp_path, seeds=7, workers=1)

        def refuse(word):
            raise AssertionError(word)

        text = (tmp_path / "results.json").read_text()
        data = json.loads(text, parse_constant=refuse)
        assert data["seeds"] == 7
        assert data["versions"] == identities.versions()
        assert data["sources"] == identities.fingerprint()
        assert "seconds" not in text
        (piece,) = finished(tmp_path)
        assert set(json.loads(piece.read_text())["seconds"]) == {"wall", "cpu"}

    def test_a_piece_of_two_studies_is_computed_once(self, tmp_path):
        log = tmp_path / "log"
        log.mkdir()
        pair = [functions.drawing_study(3, str(log), name=name) for name in ("first", "second")]
        tallies = []
        found = reproduce(pair, tmp_path / "out", workers=1, progress=tallies.append)
        assert len(list(log.iterdir())) == 3
        assert [study.name for study in found.studies] == ["first", "second"]
        assert tallies[0].done == {"first": 0, "second": 0}
        assert tallies[-1].done == tallies[-1].total == {"first": 3, "second": 3}
        assert [tally.pieces_done for tally in tallies] == [0, 1, 2, 3]
        assert tallies[-1].weight_done == tallies[-1].weight == 6.0

    def test_studies_already_in_the_folder_are_covered_too(self, tmp_path):
        known = choose(["finite-beta"])
        reproduce(known, tmp_path, seeds=2, workers=1)
        found = reproduce([functions.drawing_study(1)], tmp_path, seeds=2, workers=1)
        names = [study.name for study in found.studies]
        assert {"finite-beta", "numbers"} <= set(names)
        assert list(json.loads((tmp_path / "results.json").read_text())["studies"]) == names

    def test_a_study_on_request_in_the_folder_is_covered_too(self, tmp_path, monkeypatch):
        requested = functions.drawing_study(2, name="requested")
        monkeypatch.setattr("phasegrad_paper.reproduction.run.ON_REQUEST", (requested,))
        reproduce([requested], tmp_path, seeds=2, workers=1)
        found = reproduce(choose(["finite-beta"]), tmp_path, seeds=2, workers=1)
        assert [study.name for study in found.studies] == ["finite-beta", "requested"]
        assert list(json.loads((tmp_path / "results.json").read_text())["studies"]) == ["finite-beta", "requested"]

    def test_a_study_is_planned_once(self, tmp_path):
        given, asked = functions.drawing_study(2), []

        def plan(seeds):
            asked.append(seeds)
            return given.plan(seeds)

        reproduce([dataclasses.replace(given, plan=plan)], tmp_path, workers=1)
        assert asked == [None]
        # Fewer seeds are compared with all of them, which takes a second plan.
        reproduce([dataclasses.replace(given, plan=plan)], tmp_path / "few", seeds=1, workers=1)
        assert asked == [None, 1, None]

    def test_warnings_of_a_piece_arrive(self, tmp_path):
        study = functions.study("unsure", {"one": Piece("one", functions.warn, {"seed": 1})})
        with pytest.warns(UserWarning, match="one: this is uncertain"):
            reproduce([study, functions.drawing_study(1)], tmp_path, workers=2)


class TestStopping:
    @pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
    def test_killed_at_random_moments_nothing_finished_is_computed_again(self, tmp_path, workers):
        stream = random.Random(workers)
        folder, log, whole = tmp_path / "out", tmp_path / "log", tmp_path / "whole"
        log.mkdir()
        reproduce([functions.drawing_study(8, str(log), 0.02)], whole, workers=1)
        for path in log.iterdir():
            path.unlink()
        before: set[int] = set()
        for wanted in (0, 3, 6):
            process = start(folder, log, 0.02, workers)
            until(lambda n=wanted: (folder / "run.json").exists() and len(finished(folder)) >= n, process)
            time.sleep(stream.uniform(0, 0.03))
            process.kill()
            process.communicate()
            seeds = {json.loads(path.read_text())["arguments"]["seed"] for path in finished(folder)}
            assert before <= seeds
            before = seeds
            for path in log.iterdir():
                path.unlink()
        process = start(folder, log, 0.02, workers)
        assert process.wait() == 0, process.communicate()[1]
        process.communicate()
        computed = [int(path.name.split("-")[0]) for path in log.iterdir()]
        assert sorted(computed) == sorted(set(range(8)) - before)
        assert (folder / "results.json").read_bytes() == (whole / "results.json").read_bytes()
        assert not [path for path in folder.rglob("*") if _files.is_unfinished(path)]

    def test_workers_end_with_their_killed_parent(self, tmp_path):
        log = tmp_path / "log"
        process = start(tmp_path / "out", log, 60.0)
        until(lambda: log.exists() and len(list(log.iterdir())) == 2, process)
        workers = [int(path.name.split("-")[1]) for path in log.iterdir()]
        process.kill()
        process.communicate()
        until(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() for pid in workers))

    @pytest.mark.parametrize("moment", ["workers start", "workers work"])
    def test_ctrl_c_ends_the_workers_and_keeps_what_is_finished(self, tmp_path, moment):
        """A terminal sends Ctrl-C to the whole group of processes; only the first of them is to answer."""
        folder, log = tmp_path / "out", tmp_path / "log"
        process = start(folder, log, 60.0)
        until(lambda: (folder / "pieces").exists() and (moment == "workers start" or len(list(log.iterdir())) == 2))
        os.killpg(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=60)
        assert process.returncode != 0
        assert "\nKeyboardInterrupt\n" in error  # Python's own resource tracker may add a line after it
        assert error.count("Traceback") == 1
        workers = [int(path.name.split("-")[1]) for path in log.iterdir()]
        until(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() for pid in workers))

    def test_a_result_cut_short_by_ctrl_c_is_not_kept(self, tmp_path):
        """Training answers Ctrl-C with what it has; that must not pass for the result."""
        started, folder = tmp_path / "started", tmp_path / "out"
        script = (
            "import sys, piece_functions as functions\n"
            "from phasegrad_paper.reproduction import reproduce\n"
            "from phasegrad_paper.studies import Piece\n"
            "piece = Piece('long', functions.swallow_interrupts, {'seed': 1, 'started': sys.argv[2]})\n"
            "reproduce([functions.study('long', {'long': piece})], sys.argv[1], workers=1)\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(folder), str(started)], env=ENVIRONMENT, stderr=subprocess.PIPE
        )
        until(started.exists, process)
        process.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in process.communicate(timeout=60)[1]
        assert finished(folder) == []

    @pytest.mark.parametrize(
        ("workers", "function", "message"),
        [
            (1, functions.fail, "'bad' of the study 'mixed' failed: ZeroDivisionError: seed 3 divides by nothing"),
            (2, functions.fail, "'bad' of the study 'mixed' failed: ZeroDivisionError: seed 3 divides by nothing"),
            (1, functions.not_plain, "'bad' of the study 'mixed' failed: TypeError: Object of type set"),
        ],
    )
    def test_a_failing_piece_is_named_and_the_others_are_kept(self, tmp_path, function, message, workers):
        pieces = {f"good {k}": Piece(f"good {k}", functions.draw, {"seed": k}) for k in range(3)}
        pieces["bad"] = Piece("bad", function, {"seed": 3}, weight=2.0)
        with pytest.raises(PieceError, match=message) as caught:
            reproduce([functions.study("mixed", pieces)], tmp_path, workers=workers)
        assert "3 finished pieces are kept" in str(caught.value)
        assert "Traceback" in caught.value.__notes__[0]
        assert len(finished(tmp_path)) == 3
        assert not (tmp_path / "results.json").exists()

    def test_a_worker_that_dies_is_said(self, tmp_path):
        pieces = {f"{k}": Piece(f"{k}", functions.end_process, {"seed": k}) for k in range(2)}
        with pytest.raises(
            ChildProcessError, match=r"A worker process ended before its piece did.*same command goes on"
        ):
            reproduce([functions.study("deadly", pieces)], tmp_path, workers=2)

    def test_a_full_disk_is_said_and_finished_pieces_stay(self, tmp_path, monkeypatch):
        real, calls = _files.os.fsync, []

        def fill_up(descriptor):
            calls.append(descriptor)
            if len(calls) > 3:  # run.json and two pieces
                raise OSError(28, "No space left on device")
            real(descriptor)

        monkeypatch.setattr(_files.os, "fsync", fill_up)
        study = functions.drawing_study(4)
        with pytest.raises(OSError, match=r"Could not write .*: No space left on device\. Choose another place"):
            reproduce([study], tmp_path, workers=1)
        assert len(finished(tmp_path)) == 2
        assert sorted(contents(tmp_path)) == sorted(
            ["run.json", *(f"pieces/{path.name}" for path in finished(tmp_path))]
        )
        monkeypatch.undo()
        tallies = []
        reproduce([study], tmp_path, workers=1, progress=tallies.append)
        assert tallies[0].pieces_done == 2


class TestFolder:
    study = functions.drawing_study(2)

    def refused(self, folder: Path, match: str, kind=ValueError, **options) -> None:
        before = contents(folder) if folder.is_dir() else None
        with pytest.raises(kind, match=match):
            reproduce([self.study], folder, workers=1, **options)
        assert before is None or contents(folder) == before

    @pytest.fixture
    def folder(self, tmp_path) -> Path:
        place = tmp_path / "new" / "folder"
        reproduce([self.study], place, workers=1)
        return place

    @pytest.mark.parametrize("fresh", [False, True])
    def test_a_folder_of_something_else_is_refused_and_not_touched(self, tmp_path, fresh):
        (tmp_path / "index.html").write_text("someone's page")
        (tmp_path / ".notes.txt.abcdefgh.part").write_text("not ours")
        self.refused(tmp_path, "not of a reproduction; nothing there was touched", fresh=fresh)
        (tmp_path / "run.json").write_text('{"name": "another tool"}')
        self.refused(tmp_path, "not of a reproduction; nothing there was touched", fresh=fresh)

    def test_other_seeds_are_refused_by_name(self, folder):
        self.refused(folder, "made with all seeds instead of 5 seeds.*--out.*--fresh", seeds=5)
        reproduce([self.study], folder, workers=1, seeds=1, fresh=True)
        self.refused(folder, "made with 1 seed instead of all seeds")

    def test_other_versions_and_sources_are_refused_by_name(self, folder, monkeypatch):
        pytest.importorskip("torch")
        versions = identities.versions() | {"phasegrad": "9.9", "torch": "not installed"}
        monkeypatch.setattr(identities, "versions", lambda: versions)
        self.refused(folder, r"phasegrad \S+ instead of 9.9; torch \S+ instead of not installed.*--out.*--fresh")
        monkeypatch.undo()
        monkeypatch.setattr(identities, "fingerprint", lambda: "0" * 64)
        self.refused(folder, r"other sources of phasegrad \(\w{8} instead of 00000000\)")

    @pytest.mark.parametrize("damage", ["", "{", "[]", "null", "{}", '{"phasegrad": 1}', "\0\0\0"])
    def test_a_damaged_run_file_is_said_not_overwritten(self, folder, damage):
        (folder / "run.json").write_text(damage)
        self.refused(folder, r"run\.json is damaged.*--fresh|not of a reproduction")

    @pytest.mark.parametrize("damage", ["cut", "changed", "emptied", "exchanged", "list"])
    def test_a_damaged_piece_is_named_not_computed_again(self, folder, damage):
        first, second = finished(folder)
        text = first.read_text()
        changed = {
            "cut": text[: len(text) // 2],
            "changed": text.replace('"none": NaN', '"none": 1.0'),
            "emptied": "",
            "exchanged": second.read_text(),
            "list": "[1, 2]",
        }[damage]
        assert changed != text
        first.write_text(changed)
        self.refused(folder, f"{first.name} is damaged.*--fresh")
        reproduce([self.study], folder, workers=1, fresh=True)
        assert first.read_text() != changed

    def test_fresh_deletes_only_what_is_its_own(self, folder):
        mine = ["notes.txt", "tables/extra.md", "figures/sketch.pdf", "pieces/remark.json"]
        own = ["index.html", "tables/old.csv", "figures/old.svg", "figures/old.png"]
        for name in (*mine, *own):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(name)
        before = contents(folder)
        reproduce([self.study], folder, workers=1)
        assert contents(folder) == before  # without --fresh nothing changes
        reproduce([functions.drawing_study(1)], folder, workers=1, fresh=True)
        names = set(contents(folder))
        assert set(mine) <= names
        assert not set(own) & names
        assert len(finished(folder)) == 1 + 1  # the new piece and the remark

    def test_what_a_kill_left_half_written_is_removed(self, folder, tmp_path):
        for name in (".run.json.abcd1234.part", "pieces/.x-0123456789ab.json.abcd123_.part"):
            (folder / name).write_text("half")
        reproduce([self.study], folder, workers=1)
        assert not [name for name in contents(folder) if name.endswith(".part")]
        beginning = tmp_path / "beginning"
        beginning.mkdir()
        (beginning / ".run.json.abcd1234.part").write_text("ha")
        reproduce([self.study], beginning, workers=1)
        assert not [name for name in contents(beginning) if name.endswith(".part")]

    def test_two_at_once_are_refused(self, tmp_path):
        pytest.importorskip("fcntl")
        process = start(tmp_path / "out", tmp_path / "log", 60.0, workers=1)
        until(lambda: (tmp_path / "log").exists() and any((tmp_path / "log").iterdir()), process)
        self.refused(tmp_path / "out", "Another reproduction is at work in")
        process.kill()
        process.communicate()

    def test_places_that_cannot_be_are_said(self, tmp_path):
        (tmp_path / "file").write_text("")
        self.refused(tmp_path / "file", "is a file. Name a folder")
        self.refused(tmp_path / "file" / "below", "Could not make the folder .*: Not a directory", OSError)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"seeds": 0}, "'seeds' parameter of reproduce must be a whole number of at least 1. Got 0"),
            ({"workers": 0}, "'workers' parameter of reproduce"),
            ({"workers": 1.5}, "'workers' parameter of reproduce"),
        ],
    )
    def test_wrong_numbers_are_refused_before_anything_is_made(self, tmp_path, options, message):
        with pytest.raises(ValueError, match=message):
            reproduce([self.study], tmp_path / "out", **options)
        with pytest.raises(ValueError, match="at least one study"):
            reproduce([], tmp_path / "out")
        assert not (tmp_path / "out").exists()


class TestIdentity:
    def test_only_what_can_change_a_figure_counts(self, tmp_path):
        for name in ("a.py", "studies/b.json", "report/c.py", "cli/d.py", "studies/__pycache__/b.pyc"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("1")
        before = digest_of_sources(tmp_path)
        for name in ("report/c.py", "cli/d.py", "studies/__pycache__/b.pyc"):
            (tmp_path / name).write_text("2")
        assert digest_of_sources(tmp_path) == before
        (tmp_path / "studies/b.json").write_text("2")
        changed = digest_of_sources(tmp_path)
        assert changed != before
        (tmp_path / "a.py").rename(tmp_path / "z.py")
        assert digest_of_sources(tmp_path) not in (before, changed)

    def test_it_survives_json_and_knows_its_like(self):
        here = Identity.here(3)
        assert Identity.from_dict(json.loads(json.dumps(here.as_dict()))) == here
        assert here.differences(here) == []

    @pytest.mark.parametrize("package", ["statsmodels", "distributed"])
    def test_a_missing_package_is_said_before_anything_is_made(self, tmp_path, monkeypatch, package):
        real = _validation.find_spec
        monkeypatch.setattr(_validation, "find_spec", lambda name: None if name == package else real(name))
        extra = {"statsmodels": "report", "distributed": "cluster"}[package]
        with pytest.raises(ImportError, match=rf"needs {package}, which is not installed.*\[{extra}\]"):
            reproduce([functions.drawing_study(1)], tmp_path / "out", cluster="tcp://127.0.0.1:1")
        assert not (tmp_path / "out").exists()
