"""The command line as a person uses it: a process of its own, its exit status and what it prints."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ENVIRONMENT = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}


def run(*words: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "phasegrad", *words]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=120)


@pytest.mark.parametrize("words", [(), ("verify",), ("draw",)])
def test_every_command_has_help_with_an_example(words):
    result = run(*words, "--help")
    assert result.returncode == 0
    assert "Usage" in result.stdout
    assert not words or "Example: phasegrad" in result.stdout


def test_version():
    assert run("--version").stdout.startswith("phasegrad 0.")


def test_verify_prints_tables_and_writes_json(tmp_path):
    place = tmp_path / "verify.json"
    result = run("verify", "--sizes", "6,10", "--seeds", "2", "--json", str(place))
    assert result.returncode == 0, result.stdout + result.stderr
    for words in ("Table 1", "Table 2", "Universality", "Error against beta", "checks keep their tolerance"):
        assert words in result.stdout
    data = json.loads(place.read_text())
    assert data["passed"] is True
    assert [row["N"] for row in data["table1"]] == [6, 10]
    assert list(tmp_path.iterdir()) == [place]


def test_verify_exits_with_1_when_a_check_misses(tmp_path):
    """A bound that cannot be met makes the command fail and name what missed."""
    patched = tmp_path / "strict.py"
    patched.write_text(
        "from phasegrad.studies import verification, identity\n"
        "from phasegrad.studies.finding import Check, Finding\n"
        "true = identity.table1_row\n"
        "identity.table1_row = lambda n: Finding(true(n).data, (Check('impossible', 1.0, '<=', 0.0),))\n"
        "from phasegrad.cli import main\n"
        "import sys; sys.argv = ['phasegrad', 'verify', '--sizes', '6', '--seeds', '1']; main()\n"
    )
    result = subprocess.run([sys.executable, str(patched)], capture_output=True, text=True, env=ENVIRONMENT)
    assert result.returncode == 1
    assert "missed: impossible: measured 1, must be <= 0" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("verify", "--sizes", "six"), "--sizes must be whole numbers separated by commas"),
        (("verify", "--sizes", "2"), "at least 3"),
        (("verify", "--sizes", ""), "at least one network size"),
        (("verify", "--seeds", "0"), "greater than or equal to 1"),
        (("verify", "--json", "no/such/folder/out.json"), "does not exist"),
        (("verify", "--json", "."), "is a folder"),
        (("draw", "picture.gif"), "must end in one of svg, png, pdf"),
        (("draw", "picture.svg", "--beta", "-1"), "'beta' parameter of two_phase must be a float greater than 0"),
        (("nonsense",), "No such command"),
    ],
)
def test_wrong_words_get_one_sentence_and_status_2(words, message, tmp_path):
    command = [sys.executable, "-m", "phasegrad", *words]
    result = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, cwd=tmp_path)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_said_and_leaves_nothing_behind(tmp_path, monkeypatch):
    from phasegrad.report import files

    place = tmp_path / "out.json"
    place.write_text("before")
    real = files.os.fsync

    def full(descriptor):
        real(descriptor)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match=r"Could not write .*: No space left on device. Choose another place"):
        files.write_json(place, {"a": 1})
    assert place.read_text() == "before"
    assert list(tmp_path.iterdir()) == [place]


def test_ctrl_c_stops_cleanly(tmp_path):
    place = tmp_path / "verify.json"
    command = [sys.executable, "-m", "phasegrad", "verify", "--json", str(place)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "nothing was written" in error
    assert "Traceback" not in error
    assert not place.exists()


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_draw_makes_a_picture(tmp_path, ending):
    place = tmp_path / f"two-phase.{ending}"
    result = run("draw", str(place), "--seed", "3")
    assert result.returncode == 0, result.stderr
    if ending == "svg":
        text = place.read_text()
        assert "settle: free equilibrium" in text
        assert "exact: adjoint" in text
    else:
        assert place.read_bytes().startswith(b"\x89PNG")


def test_the_readmes_picture_is_what_draw_makes(tmp_path):
    place = tmp_path / "two-phase.svg"
    run("draw", str(place))
    shown = Path(__file__).parent.parent / "docs" / "images" / "two-phase.svg"
    assert _words(place.read_text()) == _words(shown.read_text())


def _words(svg: str) -> list[str]:
    """The text of a picture; coordinates may differ in their last digit between machines."""
    return [part.split("</text>")[0].split(">")[-1] for part in svg.split("<text")[1:]]
