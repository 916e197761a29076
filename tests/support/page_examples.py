"""Running the examples of a page and comparing what they print with what the page shows."""

import contextlib
import io
import re

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
