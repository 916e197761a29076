"""The package as others meet it: what importing costs, what the wheel holds, what the docstrings promise."""

import doctest
import importlib
import os
import pkgutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import phasegrad as pg

ROOT = Path(__file__).parent.parent
MODULES = [m.name for m in pkgutil.walk_packages(pg.__path__, "phasegrad.") if m.name != "phasegrad.__main__"]

# The line data walks: a room imports only from rooms before it.
ROOMS = (
    "validation",
    "files",
    "interactions",
    "random_graphs",
    "sparsity",
    "network",
    "topologies",
    "datasets",
    "dynamics",
    "solvers",
    "stability",
    "equilibrium",
    "equilibria",
    "critical",
    "objectives",
    "gradients",
    "grid_analysis",
    "seeding",
    "training",
    "learning",
    "models",
    "estimators",
    "runs",
    "benchmarks",
    "studies",
    "reproduction",
    "report",
    "cli",
)


def test_importing_stays_light():
    """Nothing optional and nothing heavy is loaded; time itself is for the benchmark."""
    heavy = ["torch", "matplotlib", "pandas", "networkx", "sklearn", "numba", "pyamg", "pypower", "typer", "rich"]
    code = f"import sys, phasegrad; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_every_public_name_is_there_and_documented():
    assert pg.__all__ == sorted(pg.__all__, key=lambda name: (name.islower() or "_" in name, name))
    for name in pg.__all__:
        assert getattr(pg, name).__doc__, name


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_there_are_docstring_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(found) >= 10


@pytest.mark.parametrize("name", MODULES)
def test_imports_go_one_way(name):
    rank = {room: k for k, room in enumerate(ROOMS)}
    room = name.split(".")[1]
    source = Path(importlib.import_module(name).__file__).read_text(encoding="utf-8")
    for line in source.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] in ("from", "import") and words[1].startswith("phasegrad."):
            assert rank[words[1].split(".")[1]] <= rank[room], f"{name}: {line.strip()}"


def test_a_wheel_holds_everything_the_package_reads(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for needed in ("py.typed", "studies/published/ablation.json", "datasets/hillenbrand1995.csv"):
        assert f"phasegrad/{needed}" in names
    # An installed wheel, not the checkout, must find its data.
    place = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    code = "import phasegrad as pg; print(pg.__file__); print(pg.datasets.vowels('a,i,u'))"
    environment = {**os.environ, "PYTHONPATH": str(place)}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
    )
    assert str(place) in result.stdout
    assert "vowels a, i, u: 330 training and 83 test samples" in result.stdout
    shipped = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")}
    assert shipped <= names
