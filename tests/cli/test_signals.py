"""Commands that are stopped or killed at any moment: a sentence and a status, what is finished kept, the same result.

Moments are counted in processor time of the command, or from its first finished piece, so that a busy machine shifts
none of them. Imports take the first second and more.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
import psutil
import pytest

import phasegrad as pg
from phasegrad.runs import Runs

pytestmark = pytest.mark.process

TESTS = Path(__file__).parents[1] / "support"
STOPS = (signal.SIGINT, signal.SIGTERM)
#: The command as it is installed, except that it says when it begins and that `reproduce` has quick pieces.
SCRIPT = """
import os
import sys
if __name__ == "__main__":
    print("begun", flush=True)
from phasegrad.cli import main
if __name__ == "__main__" and sys.argv[1] == "reproduce":
    import piece_functions as functions
    from phasegrad_paper import studies
    studies.choose = lambda names: [functions.drawing_study(8, os.environ["LOG"], float(os.environ["PAUSE"]))]
if __name__ == "__main__":
    sys.exit(main())
"""
TRAIN = ("vowels", "--seeds", "0:2", "--init", "spectral", "--epochs", "1000000", "--evaluate-every", "10")


class Command:
    """A command in a process group of its own, begun but not yet far."""

    def __init__(self, place: Path, *words: str, pause: float = 0.1) -> None:
        script, log = place / "phasegrad", place / "log"
        script.write_text(SCRIPT)
        log.mkdir(exist_ok=True)
        environment = {**os.environ, "NO_COLOR": "1", "TERM": "dumb", "LOG": str(log), "PAUSE": str(pause)}
        environment["PYTHONPATH"] = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [sys.executable, str(script), *words], env=environment, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert self.process.stdout.readline() == "begun\n"

    def until(self, condition) -> None:
        """Wait for something that happens soon, or for the end."""
        for _ in range(20_000):
            if self.process.poll() is not None or condition():
                return
            time.sleep(0.005)
        raise AssertionError("waited in vain")

    def until_spent(self, seconds: float) -> None:
        """Wait until so much of a processor was used."""
        self.until(lambda: sum(psutil.Process(self.process.pid).cpu_times()[:2]) >= seconds)

    def stopped(self, number: int, *, group: bool = False) -> str:
        """Send a signal, and return what was said at the end; the status and the silence are as they should be."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number) if group else os.kill(self.process.pid, number)
        _, said = self.process.communicate(timeout=120)
        assert "Traceback" not in said, said
        assert "ignored" not in said, said
        assert self.process.returncode in (0, 128 + number), (self.process.returncode, said)
        return said

    def finished(self) -> None:
        _, said = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, said


def pieces(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (folder / "pieces").glob("[!.]*.json")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What `reproduce` ends with when nothing happens."""
    place = tmp_path_factory.mktemp("undisturbed")
    return place, reproduced(place, "whole")


def reproduced(place: Path, name: str) -> bytes:
    Command(place, "reproduce", "--workers", "2", "--out", str(place / name)).finished()
    return (place / name / "results.json").read_bytes()


def stop_an_import(place: Path, number: int, moment: float) -> None:
    command = Command(place, "studies")
    command.until_spent(moment)
    assert command.stopped(number) in ("", "Stopped.\n")


def stop_a_training(place: Path, number: int, moment: float) -> bool:
    """Return whether anything was trained; what was is what an undisturbed training has after as many epochs."""
    model, out = place / "model.npz", place / "out.json"
    for path in (model, out):
        path.unlink(missing_ok=True)
    command = Command(place, "train", *TRAIN, "--save", str(model), "--json", str(out))
    command.until_spent(moment)
    said = command.stopped(number)
    if not out.exists():
        assert not model.exists()
        return False
    assert "Stopped after epoch" in said
    told = json.loads(out.read_text())
    assert told["interrupted"] is True
    seeds = [0, 1]
    runs = Runs.plan("vowels", seeds, 5, "spectral")
    plan = pg.Plan.paper(epochs=1_000_000, evaluate_every=10)
    same = pg.train(runs.networks, runs.data, plan, seed=seeds, until=told["epochs"])
    assert np.array_equal(pg.Model.load(model).network.omega, same.networks[runs.best(same)].omega)
    assert [run["train_loss"] for run in told["runs"]] == same.history.train_loss[:, -1].tolist()
    return told["epochs"] > 0


def disturb_a_reproduction(undisturbed, number: int, moment: float, *, after: int, group: bool) -> None:
    """Stop it after so many finished pieces and a moment; going on keeps all of them and ends with the same bytes."""
    (place, whole), name = undisturbed, f"{number}-{moment}-{after}"
    folder = place / name
    command = Command(place, "reproduce", "--workers", "2", "--out", str(folder))
    command.until(lambda: (folder / "run.json").exists() and len(pieces(folder)) >= after)
    time.sleep(moment)
    said = command.stopped(number, group=group)
    assert command.process.returncode == 0 or "Stopped." in said
    before = pieces(folder)
    assert len(before) >= after
    assert reproduced(place, name) == whole
    assert before.items() <= pieces(folder).items()


@pytest.mark.parametrize("number", STOPS)
def test_an_import_stops_in_silence(number, tmp_path):
    stop_an_import(tmp_path, number, 0.3)


@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGINT, ("-m", "phasegrad")), (signal.SIGTERM, ("-mphasegrad",))]
)
def test_an_import_by_python_m_stops_in_silence(number, words):
    process = subprocess.Popen([sys.executable, *words, "studies"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None and not any(
        "numpy" in each.path for each in psutil.Process(process.pid).memory_maps()
    ):
        time.sleep(0.005)
    process.send_signal(number)
    assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == 128 + number


def test_importing_the_library_leaves_signals_alone():
    code = "import signal; import phasegrad; print(*map(signal.getsignal, (signal.SIGINT, signal.SIGTERM)))"
    plain = subprocess.run([sys.executable, "-c", code.replace("import phasegrad; ", "")], capture_output=True)
    with_it = subprocess.run([sys.executable, "-c", code, "phasegrad"], capture_output=True)
    assert (with_it.returncode, with_it.stderr) == (0, b"")
    assert with_it.stdout.split(b" at ")[0] == plain.stdout.split(b" at ")[0]


def test_signals_are_as_before_when_a_command_is_over(here):
    before = [signal.getsignal(number) for number in STOPS], sys.unraisablehook
    assert here("studies").returncode == 0
    assert ([signal.getsignal(number) for number in STOPS], sys.unraisablehook) == before


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_after_the_end_changes_no_status(number):
    """It comes while the interpreter ends, just after the command."""
    code = (
        "import atexit, os, sys; import phasegrad.cli as cli; sys.argv = ['phasegrad', '--version'];"
        f"atexit.register(os.kill, os.getpid(), {int(number)}); cli.main()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_what_is_ignored_stays_ignored(here):
    """As by nohup."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        from phasegrad.cli.signals import heeding_signals

        with heeding_signals() as stops:
            signal.raise_signal(signal.SIGINT)
        assert stops.received is None
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_that_a_destructor_swallows_comes_again():
    from phasegrad.cli.signals import heeding_signals

    class Fragile:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)

    def drop_and_wait():
        fragile = Fragile()
        del fragile
        for _ in range(1000):
            time.sleep(0.01)

    with heeding_signals() as stops, pytest.raises(KeyboardInterrupt):
        drop_and_wait()
    assert stops.received == signal.SIGTERM


def test_sigterm_to_all_processes_ends_the_workers_and_says_what_is_kept(tmp_path):
    folder, log = tmp_path / "out", tmp_path / "log"
    command = Command(tmp_path, "reproduce", "--workers", "2", "--out", str(folder), pause=60.0)
    command.until(lambda: len(list(log.iterdir())) == 2)
    assert "Stopped. 0 of 8 pieces are kept; the same command goes on from there." in command.stopped(
        signal.SIGTERM, group=True
    )
    assert command.process.returncode == 143
    workers = [int(path.name.split("-")[1]) for path in log.iterdir()]
    assert len(workers) == 2
    for _ in range(2000):
        if not any(psutil.pid_exists(pid) for pid in workers):
            return
        time.sleep(0.005)
    raise AssertionError("the workers did not end")


@pytest.mark.slow
class TestThirtyMoments:
    def test_of_imports(self, tmp_path):
        stream = random.Random(1)
        for number, _ in product(STOPS, range(5)):
            stop_an_import(tmp_path, number, stream.uniform(0.05, 0.9))

    def test_of_training(self, tmp_path):
        stream = random.Random(2)
        trained = [
            stop_a_training(tmp_path, number, stream.uniform(0.5 + k, 1.5 + k))
            for number, k in product(STOPS, range(5))
        ]
        assert len(trained) == 10
        assert any(trained)

    def test_of_reproductions(self, undisturbed):
        stream = random.Random(3)
        for number, after in product(STOPS, (0, 1, 3, 6, 8)):
            moment, group = stream.uniform(0, 0.5), stream.random() < 0.5
            disturb_a_reproduction(undisturbed, number, moment, after=after, group=group)
