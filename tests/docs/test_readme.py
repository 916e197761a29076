"""The README's code runs and prints what the README shows, and its figures are those that come out."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from page_examples import assert_same_text, run_examples

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_example_runs_and_prints_what_is_shown(tmp_path, monkeypatch):
    """Longer than most: the examples train what they show."""
    monkeypatch.chdir(tmp_path)
    assert run_examples(README, "README.md") == 2


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("iris: 95%", "iris: 97%"),
        ("loss 0.0400", "loss 0.0401"),
        ("1.4e-10", "1.5e-10"),
        ("3 states", "3 stable states"),
    ],
)
def test_a_page_that_shows_another_digit_or_word_is_caught(shown, printed):
    with pytest.raises(AssertionError):
        assert_same_text(shown, printed)


def test_what_rounding_left_may_differ():
    assert_same_text("residual 6.9e-14, 1 - cosine 0.0e+00", "residual 5.7e-14, 1 - cosine 2.2e-16")


def test_every_file_it_points_to_exists():
    links = re.findall(r"\]\(([^)#:]+)\)", README) + re.findall(r"`((?:docs/)?[\w-]+\.md)`", README)
    assert len(links) >= 4
    for link in links:
        assert (ROOT / link).exists(), link


def test_its_commands_name_options_that_there_are():
    """Every option after `phasegrad` in the README is one that the command's help lists."""

    from phasegrad.cli.application import commands as every_command

    commands = every_command()
    used = re.findall(r"phasegrad (\w+)((?: [^\s`#]+)*)", "\n".join(_command_lines()))
    assert {"train", "predict", "reproduce", "grid", "lab"} <= {name for name, _ in used}
    for name, words in used:
        known = {option for parameter in commands[name].params for option in parameter.opts}
        assert set(re.findall(r"--[\w-]+", words)) <= known, (name, words)


def _command_lines() -> list[str]:
    pages = [README, *(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md")))]
    lines = [line for page in pages for line in page.splitlines() if line.startswith("    phasegrad ")]
    return lines + re.findall(r"`(phasegrad [^`]+)`", "\n".join(pages))


def test_it_is_short_and_begins_with_code():
    lines = README.splitlines()
    assert len(lines) <= 120
    assert lines.index("```python") < 25


def test_make_says_what_it_installs_and_can_be_told_not_to(tmp_path):
    """Version 0.1 ran apt-get as root without a word."""
    programs = {"apt-get": 'echo "$@" >> "$CALLED"', "id": "echo 0", "grep": "exit 0"}
    for name, body in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    called = tmp_path / "called"
    for word, expected in (
        ("no", "Not here: chromium ngspice. What needs it is not tested"),
        ("yes", "About to install chromium ngspice with apt-get, as root: the page is tested"),
    ):
        done = subprocess.run(
            [_make(), "-C", str(ROOT), "system", f"SYSTEM={word}"],
            env={"PATH": str(tmp_path), "CALLED": str(called)}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert expected in done.stdout
        assert called.exists() == (word == "yes")


def _make() -> str:
    program = shutil.which("make")
    if program is None:
        pytest.skip("there is no make here")
    return program
