"""The tool that makes wrong changes: it finds what a toy's tests miss, and leaves the tree as it was."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mutants import campaign, trees
from mutants.changes import changes_of

pytestmark = pytest.mark.process

TOY = '''"""A toy."""
LIMIT = 3


def area(a, b):
    """Return a product."""
    return a * b


def clipped(x, *, low=0.0):
    if x < low and x != LIMIT:
        return low
    return x


def forever(n):
    while n > 0:
        n -= 1
    return n
'''
TESTS = """from toy import area, clipped, forever


def test_area():
    assert area(1, 1) == 1


def test_clipped():
    assert clipped(-1) == 0


def test_forever():
    assert forever(2) == 0
"""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("y = a + b * c", {"y = a - b * c", "y = a + b / c"}),
        ("y = a / b**c", {"y = a * b**c", "y = a / (b*c)"}),
        ("y = (a) - (b)  # (-)", {"y = (a) + (b)  # (-)"}),
        ("y = a < b", {"y = a <= b", "y = a >= b"}),
        ("y = a not in b", {"y = a in b"}),
        ("y = a and not b", {"y = (a or not b)", "y = a and (b)"}),
        ("y = max(a, key=b)", {"y = min(a, key=b)", "y = max(a, )"}),
        ("y = np.maximum(a, -b)", {"y = np.minimum(a, -b)", "y = np.maximum(a, (b))"}),
        ("y = True", {"y = False"}),
        ("y = a[7], 0.25, 1e-9", {"y = a[8], 0.25, 1e-9", "y = a[6], 0.25, 1e-9", "y = a[7], 0.5, 1e-9",
                                  "y = a[7], 0.0, 1e-9", "y = a[7], 0.25, 0.001", "y = a[7], 0.25, 0.0"}),
        ("if f(a):\n    a.b *= 2.0", {"if not (f(a)):\n    a.b *= 2.0", "if f(a):\n    a.b /= 2.0",
                                      "if f(a):\n    pass", "if f(a):\n    a.b *= 4.0", "if f(a):\n    a.b *= 0.0"}),
        ("def f() -> float:\n    return a", {"def f() -> float:\n    return -(a)"}),
        ("def f(a: int = 1):\n    return a", {"def f(a: int = 2):\n    return a", "def f(a: int = 0):\n    return a",
                                              "def f(a: int = 1):\n    return None"}),
        ("raise ValueError(f'{a + 1}')", {"pass"}),
        ("'é'; y = a + b", {"'é'; y = a - b"}),
        ('"""Say 1 + 1."""\nimport a\nx: Literal[1] = y', set()),
    ],
)  # fmt: skip
def test_every_kind_of_change_is_made(source, expected):
    found = changes_of("toy.py", source)
    assert {change.apply(source) for change in found} == expected
    for change in found:
        assert change.matters(source)
        ast.parse(change.apply(source))


def test_a_change_keeps_its_key_when_lines_move():
    before, after = changes_of("toy.py", TOY), changes_of("toy.py", "import os\n\n" + TOY)
    assert [change.key for change in before] == [change.key for change in after]
    assert len({change.key for change in before}) == len(before)


def test_the_same_seed_draws_the_same_changes():
    sources = {"toy.py": TOY}
    assert campaign.draw(sources, 5, 1) == campaign.draw(sources, 5, 1) != campaign.draw(sources, 5, 2)
    assert len(set(campaign.draw(sources, 100, 1))) == len(changes_of("toy.py", TOY))


def test_every_change_said_to_make_no_difference_is_one_that_can_be_made():
    root = Path(__file__).parents[2]
    said = campaign.equivalents(root / "tests" / "mutants" / "equivalent.toml")
    files = {path: (root / path).read_text(encoding="utf-8") for path, *_ in said}
    assert said.keys() <= {change.key for path, source in files.items() for change in changes_of(path, source)}


@pytest.fixture
def toy(tmp_path):
    """A tree with a library and its tests."""
    files = {
        "src/toy/__init__.py": TOY,
        "tests/test_toy.py": TESTS,
        "pyproject.toml": "[tool.pytest.ini_options]\nmarkers = ['slow: no']\nfilterwarnings = ['error']\n",
        "tests/mutants/equivalent.toml": '[[equivalent]]\nfile = "src/toy/__init__.py"\nfunction = "clipped"\n'
        'text = "if x < low and x != LIMIT:"\nwhat = "< -> <="\nreason = "both are low there"\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def campaign_on(toy: Path) -> list[str]:
    """Run the tool on the toy, in a process of its own and without the heavy imports; return what it says."""
    code = (
        "import sys; from pathlib import Path; from mutants import campaign as c;"
        "c.GRACE = 3.0; root = Path(sys.argv[1]);"
        "verdicts = c.run(c.Settings(root, root / 'build', ['src/toy'], workers=2, heavy=[]), print);"
        "(root / 'report').write_text(__import__('json').dumps([v.row() for v in verdicts]))"
    )
    path = os.pathsep.join([str(Path(__file__).parents[1] / "support"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code, str(toy)], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_the_tool_finds_what_the_tests_miss(toy):
    before = {name: (toy / name).read_bytes() for name in trees.files_of(toy)}
    assert f"{len(changes_of('toy.py', TOY))} changes, 2 of them judged before." in campaign_on(toy)
    report = json.loads((toy / "report").read_text())
    verdicts = {(row["function"], row["what"]): row["verdict"] for row in report}
    assert verdicts["area", "* -> /"] == "survived"
    assert verdicts["area", "return None"] == "killed"
    assert verdicts["clipped", "< -> >="] == "killed"
    assert verdicts["clipped", "and -> or"] == "survived"
    assert verdicts["clipped", "< -> <="] == "equivalent"
    assert verdicts["forever", "-= -> +="] == "timeout"
    assert verdicts["module", "3 -> 4"] == "survived"
    assert [row["verdict"] for row in report if row["text"] == "return x"] == ["unreached"]
    assert {name: (toy / name).read_bytes() for name in trees.files_of(toy) if not name.startswith("report")} == before

    # A test that kills one of them is all that has to be recorded, and what was killed stays so.
    (toy / "tests/test_more.py").write_text("import toy\n\n\ndef test_area():\n    assert toy.area(2, 3) == 6\n")
    said = campaign_on(toy)
    assert [line for line in said if "recorded" in line] == [
        line for line in said if "1 tests of tests/test_more" in line
    ]
    again = {(row["function"], row["what"]): row["verdict"] for row in json.loads((toy / "report").read_text())}
    assert {key for key in again if again[key] != verdicts[key]} == {("area", "* -> /")}
    assert not any("clipped: return None" in line for line in said)


def test_tests_that_fail_without_a_change_stop_the_tool(toy):
    (toy / "tests/test_bad.py").write_text("def test_bad():\n    assert False\n")
    with pytest.raises(AssertionError, match=r"Without any change 1 tests fail(.|\n)*tests/test_bad.py::test_bad"):
        campaign_on(toy)
