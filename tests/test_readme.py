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
    monkeypatch.chdir(tmp_path)
    assert run_examples(README, "README.md") >= 5


def test_every_file_it_points_to_exists():
    root = Path(__file__).parent.parent
    links = re.findall(r"\]\(([^)#:]+)\)", README) + re.findall(r"`((?:docs/)?[\w-]+\.md)`", README)
    assert len(links) >= 4
    for link in links:
        assert (root / link).exists(), link
