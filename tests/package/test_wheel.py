"""The package as it is installed: its metadata, its types, and its wheel on every Python there is."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from itertools import chain
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSIONS = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), flags=re.MULTILINE)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built once."""
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (found,) = place.glob("*.whl")
    return found


def plain_environment() -> dict[str, str]:
    """The environment of a person who has installed the wheel and knows nothing of this folder."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | {"COLUMNS": "80"}


def interpreter(version: str) -> str:
    """Return the program of a version of Python, on the path or among those of pyenv; skip where there is none."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [
        *sorted(root.glob(f"versions/{version}.*/bin/python"))[-1:],
        *filter(None, [shutil.which(f"python{version}")]),
    ]
    if not found:
        pytest.skip(f"Python {version} is not here.")
    return str(found[0])


class TestMetadata:
    def test_every_version_from_the_oldest_on_is_named(self):
        oldest = PROJECT["requires-python"].removeprefix(">=")
        assert VERSIONS[0] == oldest == "3.11"
        assert [f"3.{minor}" for minor in range(11, 11 + len(VERSIONS))] == VERSIONS

    def test_the_citation_is_of_this_version(self):
        yaml = pytest.importorskip("yaml")
        citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
        assert {"cff-version", "message", "title", "authors", "type"} <= set(citation)
        assert citation["cff-version"] == "1.2.0"
        assert citation["title"] == PROJECT["name"]
        assert citation["version"] == PROJECT["version"]
        assert citation["license"] == PROJECT["license"]
        assert citation["keywords"] == PROJECT["keywords"]
        assert [author["name"] for author in citation["authors"]] == [each["name"] for each in PROJECT["authors"]]
        readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
        assert citation["references"][0]["title"] in readme

    def test_the_changelog_begins_with_this_version_and_its_date(self):
        """Where the changelog has a date, the citation has the same."""
        changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        version, date = re.search(r"^## \[([\d.]+)\](?: - ([\d-]+))?$", changelog, flags=re.MULTILINE).groups()
        assert version == PROJECT["version"]
        stated = re.search(r"^date-released: (\S+)$", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE)
        assert (stated and stated[1].strip("'\"")) == date


#: What a user's program gets, by what it writes: nothing of it is Any, and a name that is not there is an error.
PROGRAM = {
    "pg.layered(2, 5, 2)": "Network",
    "network.omega": "ndarray",
    "state": "Equilibrium",
    "state.stable": "ndarray",
    "gradient": "Gradient",
    "gradient.omega": "ndarray",
    "pg.check_gradients(network, state, pg.PhaseTargets(), [-0.2, 0.2])": "GradientTable",
    "pg.gradients.cosine(gradient, gradient)": "float",
    "data": "Dataset",
    "pg.train(network, data, pg.Plan.paper(epochs=1))": "Training",
    "pg.train(network, data).network": "Network",
    "pg.train(network, data).history.test_accuracy": "ndarray",
    "pg.OscillatorClassifier(hidden=5).fit(data.x_train, data.y_train)": "OscillatorClassifier",
    "pg.OscillatorClassifier().predict(data.x_test)": "ndarray",
    "pg.OscillatorRegressor().to_model()": "Model",
    "pg.Model.load('model.npz').predict(data.x_test)": "Prediction",
    "pg.hardware.preset('ideal')": "Hardware",
    "pg.torch.PhaseNetwork.layers(4, 16, 3)": "PhaseNetwork",
}


@pytest.mark.slow
def test_type_checkers_know_the_public_names_of_an_installed_wheel(wheel, tmp_path):
    pytest.importorskip("mypy")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    site = Path(subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                               capture_output=True, text=True, check=True).stdout.strip())  # fmt: skip
    zipfile.ZipFile(wheel).extractall(site)
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    lines = [
        "import phasegrad as pg",
        "network = pg.layered(2, 5, 2)",
        "state = pg.find_equilibrium(network, [[0.1, 0.2]])",
        "gradient = pg.two_phase(network, state, pg.PhaseTargets(), [-0.2, 0.2])",
        "data = pg.datasets.vowels('a,i', seed=0)",
        *(f"reveal_type({words})" for words in PROGRAM),
        "pg.find_equilibrum",
    ]
    (tmp_path / "program.py").write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run(
        [*command, "--python-executable", str(python), "program.py"],
        capture_output=True, text=True, cwd=tmp_path, env=plain_environment(),
    )  # fmt: skip
    revealed = re.findall(r'Revealed type is "(.*)"', done.stdout)
    short = [re.match(r"[\w.]+", each)[0].rpartition(".")[2] for each in revealed]
    assert short == list(PROGRAM.values()), done.stdout + done.stderr
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 1, done.stdout
    assert 'Module has no attribute "find_equilibrum"' in errors[0]


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_the_wheel_works_with_its_plain_dependencies(version, wheel, tmp_path):
    """On a bare Python: the ten lines of the README, the command, a training; without Numba the ten lines again."""
    program, environment = interpreter(version), plain_environment()

    def run(*words: str) -> str:
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, env=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(program, "-m", "venv", str(tmp_path / "venv"))
    python, command = (str(tmp_path / "venv" / "bin" / name) for name in ("python", "phasegrad"))
    # Compiled by pip, all modules of SciPy and scikit-learn would take longer than everything that is run here.
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    index = subprocess.run([*pip, "--dry-run", "rich"], capture_output=True, text=True, env=environment)
    if index.returncode:
        pytest.skip("There is no package index to install from.")
    run(*pip, str(wheel))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (tmp_path / "ten.py").write_text(re.search(r"```python\n(.*?)```", readme, flags=re.DOTALL)[1])
    assert "Converged and stable" in run(python, "-W", "error", "ten.py")
    assert f"phasegrad {PROJECT['version']}" in run(command, "--version")
    assert "train" in run(command, "--help")
    assert "1 run, 5 epochs, learning omega" in run(command, "train", "xor", "--epochs", "5")
    assert "4-3-3 network, 2 epochs" in run(command, "train", "iris", "--hidden", "3", "--epochs", "2")
    run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "numba", "llvmlite")
    assert "Converged and stable" in run(python, "-W", "error", "ten.py")


def test_a_wheel_holds_everything_the_package_reads(wheel, tmp_path):
    names = set(zipfile.ZipFile(wheel).namelist())
    for needed in ("py.typed", "datasets/hillenbrand1995.csv", "laboratory/web/lab.js"):
        assert f"phasegrad/{needed}" in names
    assert "phasegrad_paper/studies/published/ablation.json" in names
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


def versions(name: str) -> dict[str, tuple[int, ...]]:
    """Return the versions that a file of pins names."""
    text = (ROOT / name).read_text(encoding="utf-8")
    found = re.findall(r"^([\w.-]+)==([\d.]+)", text, flags=re.MULTILINE)
    return {package: tuple(map(int, version.split("."))) for package, version in found}


def lower_bounds() -> dict[str, tuple[int, ...]]:
    """Return the lower bounds of the dependencies and of the extras that can be installed at their lowest."""
    extras = PROJECT["optional-dependencies"]
    lines = chain(PROJECT["dependencies"], *(extras[name] for name in extras if name not in ("all", "torch")))
    found = [re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", line).groups() for line in lines]
    return {package: tuple(map(int, bound.split("."))) for package, bound in found}


def test_every_dependency_has_a_lower_bound_that_the_lock_keeps():
    locked = versions("requirements.lock")
    for package, bound in lower_bounds().items():
        assert bound <= locked[package]


def test_the_oldest_versions_that_are_tested_are_the_lower_bounds():
    tested = versions("constraints-oldest.txt")
    for package, bound in lower_bounds().items():
        assert tested[package][: len(bound)] == bound
        assert not any(tested[package][len(bound) :])


def test_one_package_has_one_lower_bound():
    extras = PROJECT["optional-dependencies"]
    lines = {line for name in extras if name != "all" for line in [*extras[name], *PROJECT["dependencies"]]}
    names = [re.match(r"[\w-]+", line).group() for line in lines]
    assert len(names) == len(set(names))


def test_settings_of_the_hosting_site_are_yaml_and_name_every_python():
    yaml = pytest.importorskip("yaml")
    paths = [ROOT / ".pre-commit-config.yaml", *(ROOT / ".github").rglob("*.yml")]
    read = {path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in paths}
    assert {"test.yml", "release.yml", "dependabot.yml", "bug_report.yml", "feature_request.yml"} <= set(read)
    assert set(VERSIONS) < set(read["test.yml"]["jobs"]["core"]["strategy"]["matrix"]["python"])
