"""The package as others meet it: what importing costs, what the wheel holds, what the docstrings promise."""

import ast
import doctest
import importlib
import importlib.metadata
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

import phasegrad as pg
import phasegrad_bench
import phasegrad_paper

ROOT = Path(__file__).parents[2]
MODULES = [m.name for m in pkgutil.walk_packages(pg.__path__, "phasegrad.") if m.name != "phasegrad.__main__"]
#: Packages beside the library, which use it.
BESIDE = [
    module.name
    for package in (phasegrad_paper, phasegrad_bench)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith("__main__")
]


def plan_of_the_house() -> dict[str, int]:
    """Read the rank of every room from the plan in the documentation: the first indented block of the page."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    block = re.search(r"\n\n((?: {4}\S.*\n)(?: {4}.*\n)*)", page).group(1)
    groups = [re.findall(r"\w+", group) for group in block.split("─>")]
    return {room: rank for rank, group in enumerate(groups) for room in group}


RANKS = plan_of_the_house()


def test_importing_stays_light():
    """Nothing is loaded before it is asked for; time itself is for the benchmark."""
    heavy = [
        "numpy",
        "scipy",
        "torch",
        "matplotlib",
        "pandas",
        "networkx",
        "sklearn",
        "numba",
        "pyamg",
        "pypower",
        "typer",
        "rich",
    ]
    code = f"import sys, phasegrad; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_every_public_name_is_there_and_documented():
    assert pg.__all__ == sorted(pg.__all__)
    assert len(pg.__all__) <= 50
    for name in pg.__all__:
        assert getattr(pg, name).__doc__, name


@pytest.mark.parametrize("name", [*MODULES, *BESIDE])
def test_docstring_examples_run(name):
    if name.endswith(".autograd"):
        pytest.importorskip("torch")
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_there_are_docstring_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(found) >= 10


def imported(source: str, module: str, package: bool) -> set[str]:
    """Return the modules of phasegrad that a source imports, in any form that Python has."""
    here = module.split(".") if package else module.split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = ".".join([*here[: len(here) - node.level + 1], *filter(None, [node.module])])
            base = start if node.level else node.module
            names = [f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base for alias in node.names]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            names = [node.args[0].value] if called in ("import_module", "__import__") else []
        found |= {name for name in names if str(name).startswith("phasegrad.")}
    return found


def trespasses(module: str, source: str, package: bool) -> list[str]:
    """Return the imports that go to a room to the right, or into another room past its door."""
    room = module.split(".")[1]
    others = {name for name in imported(source, module, package) if name.split(".")[1] != room}
    return [name for name in others if name.count(".") > 1 or RANKS[name.split(".")[1]] >= RANKS[room]]


@pytest.mark.parametrize("name", MODULES)
def test_imports_go_one_way_and_through_doors(name):
    path = Path(importlib.import_module(name).__file__)
    assert trespasses(name, path.read_text(encoding="utf-8"), path.name == "__init__.py") == []


@pytest.mark.parametrize("name", MODULES)
def test_the_library_imports_neither_the_paper_nor_the_benchmarks(name):
    source = Path(importlib.import_module(name).__file__).read_text(encoding="utf-8")
    assert not re.search(r"phasegrad_(paper|bench)", source)


def test_the_plan_names_every_room_and_no_other():
    assert set(RANKS) == {name.split(".")[1] for name in MODULES}


@pytest.mark.parametrize(
    "line",
    [
        "import phasegrad.cli",
        "import phasegrad.cli.words as words",
        "from phasegrad import cli",
        "from phasegrad.cli import main",
        "from .. import cli",
        "from ..cli import words",
        "def later():\n    from phasegrad.solvers._newton import Newton",
        "from phasegrad.graphs import _graph",
        "from ..graphs._graph import Graph",
        "importlib.import_module('phasegrad.cli')",
    ],
)
def test_no_form_of_import_is_missed(line):
    assert trespasses("phasegrad.gradients._exact", line, False)
    assert trespasses("phasegrad.gradients._exact", "from phasegrad.graphs import Graph", False) == []


def plain(name: str) -> str:
    """Return the normal form of the name of a package."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    """Return the version of every pinned package, in the order of their names."""
    text = "".join(
        (ROOT / name).read_text(encoding="utf-8") for name in ("requirements.lock", "requirements-torch.txt")
    )
    return dict(sorted(re.findall(r"^([\w.-]+)==([\w.]+)", text, flags=re.MULTILINE)))


def stated_licence(name: str) -> str:
    """Return the licence that an installed package states: as an expression, by classifiers or in words."""
    metadata = importlib.metadata.metadata(name)
    words = [line.rpartition(" :: ")[2] for line in metadata.get_all("Classifier", []) if line.startswith("License ::")]
    return metadata.get("License-Expression") or " AND ".join(words) or metadata["License"]


def test_every_pinned_package_has_its_licence_in_the_list():
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| (\S+) \| (.+) \|$", page, flags=re.MULTILINE))
    del listed["package"]
    assert list(listed) == list(pins())
    found = {name: list(importlib.metadata.Distribution.discover(name=name)) for name in pins()}
    installed = {name for name, each in found.items() if each and each[0].version.split("+")[0] == pins()[name]}
    if "numpy" not in installed:
        pytest.skip("other versions than those of the lock are installed")
    assert {"numpy", "scipy", "numba", "pytest"} <= installed
    assert {name: listed[name] for name in installed} == {name: stated_licence(name) for name in installed}


def test_what_is_installed_and_needed_is_pinned():
    """Nothing comes along that no pin holds."""
    needed, seen = ["phasegrad"], set()
    while needed:
        name = plain(needed.pop())
        if name not in seen and any(importlib.metadata.Distribution.discover(name=name)):
            seen.add(name)
            needed += [
                re.match(r"[\w.-]+", line).group()
                for line in importlib.metadata.requires(name) or []
                if "extra" not in line
            ]
    assert len(seen) > 15
    assert seen - {"phasegrad"} <= set(pins())


def test_every_package_of_the_environment_has_hashes_or_an_exact_pin():
    program = shutil.which("make")
    if program is None:
        pytest.skip("there is no make here")
    plan = subprocess.run([program, "-nB", "-C", str(ROOT), "venv"], capture_output=True, text=True, check=True).stdout
    installs = [
        line.partition(" --disable-pip-version-check ")[2] for line in plan.splitlines() if "pip install" in line
    ]
    assert installs == [
        "--require-hashes -r requirements.lock",
        "-r requirements-torch.txt",
        "--no-deps --no-build-isolation -e .",
    ]
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    parts = re.split(r"^(?=[\w.-]+==)", lock, flags=re.MULTILINE)[1:]
    assert len(parts) == len(pins()) - 1
    assert all("--hash=sha256:" in part for part in parts)
    assert "torch" in pins()
    assert not re.search(r"^torch==", lock, flags=re.MULTILINE)


def test_the_lock_has_everything_that_the_project_declares():
    """Extras, groups and the build backend; a checkout made importable by a path entry needs no other package."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, groups = settings["project"], settings["dependency-groups"]
    lists = [project["dependencies"], *project["optional-dependencies"].values(), *groups.values()]
    named = {plain(re.match(r"[\w.-]+", words).group()) for words in chain(*lists) if isinstance(words, str)}
    assert named - {"phasegrad"} <= set(pins())
    assert settings["build-system"]["requires"] == ["hatchling>=1.27"]
    assert settings["tool"]["hatch"]["build"]["dev-mode-dirs"] == ["src"]
    assert "hatchling" in pins()


def test_torch_finds_what_it_needs_in_the_lock():
    pytest.importorskip("torch")
    lines = [line for line in importlib.metadata.requires("torch") if ";" not in line]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert {plain(re.match(r"[\w.-]+", line).group()) for line in lines} <= set(
        settings["dependency-groups"]["torch-needs"]
    )


def test_no_page_or_message_installs_a_release_that_there_is_none_of():
    """Extras are installed from a clone; `how_to_install` is the one sentence about it in errors."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    assert len(pages) > 100
    wrong = [page.name for page in pages if re.search(r"pip install '?phasegrad", page.read_text(encoding="utf-8"))]
    assert wrong == []
