"""The README's code runs and prints what the README shows."""

import contextlib
import io
import re
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]\d+)?")


def assert_same_text(shown: str, printed: str) -> None:
    """Compare word for word; numbers to their shown digits, and rounding errors only by being tiny."""
    assert NUMBER.sub("#", shown).split() == NUMBER.sub("#", printed).split()
    for expected, got in zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True):
        small = max(abs(float(expected)), abs(float(got))) < 1e-12
        assert small or abs(float(got) - float(expected)) <= 0.05 * abs(float(expected)), f"{expected} is now {got}"


def test_every_example_runs_and_prints_what_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```(python|text)\n(.*?)```", README, flags=re.DOTALL)
    assert sum(kind == "python" for kind, _ in blocks) >= 5
    names: dict = {}
    printed = ""
    for kind, text in blocks:
        if kind == "text":
            assert_same_text(text, printed)
            printed = ""
            continue
        assert printed == "", "an example printed something that the README does not show"
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(text, "README.md", "exec"), names)
        printed = output.getvalue()
    assert printed == ""


def test_every_file_it_points_to_exists():
    root = Path(__file__).parent.parent
    links = re.findall(r"\]\(([^)#:]+)\)", README) + re.findall(r"`((?:docs/)?[\w-]+\.md)`", README)
    assert len(links) >= 4
    for link in links:
        assert (root / link).exists(), link
