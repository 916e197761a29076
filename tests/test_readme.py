"""The README's code runs and prints what the README shows, and its figures are those that come out."""

import contextlib
import io
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import phasegrad as pg
from phasegrad.initial import STARTS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]\d+)?")
# Below this a number is what rounding left: its digits depend on the machine.
ROUNDING = 1e-12


def assert_same_text(shown: str, printed: str) -> None:
    """Compare word for word and digit for digit; rounding errors only by being tiny."""
    shown, printed = (NUMBER.sub(_digits, text) for text in (shown, printed))
    assert shown.split() == printed.split()


def _digits(number: re.Match) -> str:
    text = number.group()
    return "tiny" if "e" in text and abs(float(text)) < ROUNDING else text


def run_examples(text: str, name: str) -> int:
    """Run the Python blocks of a page one after the other, compare with the text blocks, and return how many ran."""
    blocks = re.findall(r"```(python|text)\n(.*?)```", text, flags=re.DOTALL)
    names: dict = {}
    printed = ""
    for kind, block in blocks:
        if kind == "text":
            assert_same_text(block, printed)
            printed = ""
            continue
        assert printed == "", f"an example printed something that {name} does not show"
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(block, name, "exec"), names)
        printed = output.getvalue()
    assert printed == ""
    return sum(kind == "python" for kind, _ in blocks)


def test_every_example_runs_and_prints_what_is_shown(tmp_path, monkeypatch):
    """Longer than most: the examples train what they show."""
    monkeypatch.chdir(tmp_path)
    assert run_examples(README, "README.md") >= 8


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
    from typer.main import get_command

    from phasegrad.cli import app

    commands = get_command(app).commands
    used = re.findall(r"phasegrad (\w+)((?: [^\s`#]+)*)", "\n".join(_command_lines()))
    assert {"train", "predict", "reproduce", "grid", "draw"} <= {name for name, _ in used}
    for name, words in used:
        known = {option for parameter in commands[name].params for option in parameter.opts}
        assert set(re.findall(r"--[\w-]+", words)) <= known, (name, words)


PAGES = ("your-data", "power-grid", "scaling", "images")


def _command_lines() -> list[str]:
    pages = [README, *((ROOT / "docs" / f"{page}.md").read_text() for page in PAGES)]
    lines = [line for page in pages for line in page.splitlines() if line.startswith("    phasegrad ")]
    return lines + re.findall(r"`(phasegrad [^`]+)`", "\n".join(pages))


def test_the_verdicts_it_counts_are_those_of_the_list_of_claims():
    """docs/claims.md is written by `phasegrad reproduce`, with the verdicts of all seeds."""
    claims = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    counts = [int(number) for number in re.findall(r"(\d+) (?:reproduced|not|contradicted)", claims.split("\n\n")[2])]
    assert f"{counts[0]} of {sum(counts)} claims" in README
    assert f"all {sum(counts)} claims" in README


def test_the_table_of_starts_is_what_training_gives():
    """A hundred seeds by five starts, because that is what the table says."""
    seeds = range(100)
    data = [pg.datasets.vowels("a,i", seed=seed) for seed in seeds]
    rows = re.findall(r"^\| `([\w-]+)`.*\| (\d+) \| ([\d.]+) % \|$", README, flags=re.MULTILINE)
    assert {name for name, _, _ in rows} == {
        "random", "spectral", "anti-spectral", "outputs-positive", "outputs-negative"
    }  # fmt: skip
    for name, successes, mean in rows:
        networks = [STARTS[name](pg.layered(2, 5, 2, seed=seed), [], seed) for seed in seeds]
        scores = pg.train(networks, data, pg.paper_plan(), seed=seeds).history.score()
        assert (str(np.sum(scores > 0.6)), f"{100 * scores.mean():.1f}") == (successes, mean), name
    plan = pg.paper_plan({"omega": 0.01, "coupling": 0.5}, objective=pg.NearestTarget())
    networks = [pg.layered(2, 5, 2, seed=seed) for seed in seeds]
    assert np.all(pg.train(networks, data, plan, seed=seeds).history.score() == 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "load", "seeds", "options"),
    [
        ("/a/ against /i/", lambda seed: pg.datasets.vowels("a,i", seed=seed), 100, {"hidden": 5}),
        ("/o/ against /u/", lambda seed: pg.datasets.vowels("o,u", seed=seed), 100, {"hidden": 5}),
        ("five vowels", lambda seed: pg.datasets.vowels("a,e,i,o,u", seed=seed), 20, {}),
        ("FM signals", lambda seed: pg.datasets.fm(seed), 10, {}),
    ],
)
def test_the_table_of_the_classifier_is_what_it_scores(task, load, seeds, options):
    """To a quarter of a percent: single samples may fall the other way with other matrix products."""
    (row,) = [line for line in README.splitlines() if line.startswith(f"| {task}")]
    shown = [float(number) for number in re.findall(r"([\d.]+) %", row)]
    scores, others = [], []
    for seed in range(seeds):
        data = load(seed)
        fitted = pg.OscillatorClassifier(**options, random_state=seed).fit(data.x_train, data.y_train)
        scores.append(fitted.score(data.x_test, data.y_test))
        logistic = LogisticRegression(max_iter=5000).fit(data.x_train, data.y_train)
        others.append(logistic.score(data.x_test, data.y_test))
    assert shown[0] == pytest.approx(100 * np.mean(scores), abs=0.25)
    assert shown[1] == pytest.approx(100 * np.min(scores), abs=2.5)
    assert shown[2] == pytest.approx(100 * np.mean(others), abs=0.25)


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
