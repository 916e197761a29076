"""The command line as a person uses it: a process of its own, its exit status and what it prints."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import phasegrad as pg
from phasegrad.runs import load_task

ENVIRONMENT = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}


def run(*words: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "phasegrad", *words]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=120)


@pytest.mark.parametrize(
    "words",
    [(), *((name,) for name in ["reproduce", "studies", "verify", "draw", "train", "predict", "grid", "bench"])],
)
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
        (
            ("train", "music"),
            "'task' parameter of phasegrad train must be one of 'digits', 'iris', 'wine'",
        ),
        (("train", "vowels", "--vowels", "a,y"), "y"),
        (("train", "vowels", "--vowels", "a"), "at least"),
        (("train", "vowels", "--seeds", "5:5"), "--seeds must be a seed (3), a list (0,2,5) or a range (0:100)"),
        (("train", "vowels", "--seeds", "x"), "--seeds must be"),
        (("train", "vowels", "--seeds", "1,1"), "names a seed twice"),
        (("train", "vowels", "--learn", "mass"), "'omega', 'coupling', 'both'"),
        (("train", "vowels", "--init", "lucky"), "'init' parameter of phasegrad train"),
        (("train", "vowels", "--decision", "coin"), "--decision must be cosine or nearest"),
        (("train", "vowels", "--learning-rate", "-1"), "'learning_rate'"),
        (("train", "vowels", "--save", "no/such/folder/m.npz"), "does not exist"),
        (("train", "vowels", "--method", "magic"), "--method must be paper or classifier"),
        (("train", "vowels", "--plot", "a.svg"), "--plot draws classifiers"),
        (("train", "digits", "--method", "paper"), "'task' parameter of the paper's protocol"),
        (("train", "iris", "--plot", "no/such/folder/p.svg"), "does not exist"),
        (("train", "iris", "--learn", "mass"), "'learn' parameter of the recipe must be one of 'omega'"),
        (("predict", "gone.npz", "gone.csv"), "There is no file gone.npz"),
        (("reproduce", "finit-beta"), "There is no study 'finit-beta'. Did you mean 'finite-beta'?"),
        (("reproduce", "--seeds", "0"), "greater than or equal to 1"),
        (("reproduce", "--workers", "0"), "greater than or equal to 1"),
        (("reproduce", "--out", "/dev/null"), "/dev/null is a file. Name a folder."),
        (("reproduce", "--out", "/dev/null/below"), "Could not make the folder /dev/null/below"),
        (("reproduce", "--cluster", "here"), "--cluster must be the address of a dask scheduler"),
        (("studies", "--json", "no/such/folder/out.json"), "does not exist"),
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
    from phasegrad import files

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


class TestTrain:
    def test_it_trains_saves_and_predicts(self, tmp_path):
        model, out, answers = (tmp_path / name for name in ("model.npz", "out.json", "answers.json"))
        words = ("train", "vowels", "--vowels", "a,i", "--seeds", "0:3", "--init", "spectral", "--epochs", "40")
        result = run(*words, "--save", str(model), "--json", str(out))
        assert result.returncode == 0, result.stderr
        assert "3 runs, 40 epochs, learning omega" in result.stdout
        assert "above 60%: 3 of 3 seeds" in result.stdout
        data = json.loads(out.read_text())
        keys = {"seed", "train_accuracy", "test_accuracy", "untrained_test_accuracy", "skipped"}
        assert [row["seed"] for row in data["runs"]] == [0, 1, 2]
        assert all(keys <= set(row) and row["test_accuracy"] > 0.85 for row in data["runs"])
        samples = tmp_path / "samples.csv"
        samples.write_text("talker,f2_hz,f1_hz\nx,1300,850\ny,2500,300\n", encoding="utf-8-sig")  # as spreadsheets do
        result = run("predict", str(model), str(samples), "--json", str(answers))
        assert result.returncode == 0, result.stderr
        assert json.loads(answers.read_text()) == {"classes": ["a", "i"], "stable": [True, True]}

    @pytest.mark.parametrize("learn", ["omega", "coupling", "both"])
    @pytest.mark.parametrize(
        ("task", "more"), [("xor", ()), ("vowels", ("--vowels", "o,u,ae")), ("fm", ("--hidden", "4"))]
    )
    def test_every_task_and_parameter_runs(self, task, more, learn):
        result = run("train", task, *more, "--learn", learn, "--epochs", "1", "--decision", "nearest")
        assert result.returncode == 0, result.stderr
        assert f"1 run, 1 epoch, learning {learn}" in result.stdout

    @pytest.mark.parametrize("init", ["random", "anti-spectral", "output", "anti-output", "multi-start"])
    def test_every_start_runs(self, init):
        assert run("train", "vowels", "--init", init, "--epochs", "0").returncode == 0

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("f1_hz\n850\n", "has no column 'f2_hz'. The model needs f1_hz, f2_hz; the file has f1_hz."),
            ("f1_hz,f2_hz\n850,high\n", "line 2: f2_hz is 'high', not a number"),
            ("f1_hz,f2_hz\n850,nan\n", "must be finite"),
            ("", "the file has no columns"),
        ],
    )
    def test_wrong_samples_are_refused(self, tmp_path, text, message):
        import phasegrad as pg

        model, samples = tmp_path / "model.npz", tmp_path / "samples.csv"
        pg.save_model(model, pg.Model(pg.layered(2, 5, 2), pg.PaperPair(), ("a", "i"), ("f1_hz", "f2_hz")))
        samples.write_text(text)
        result = run("predict", str(model), str(samples))
        assert result.returncode == 2
        assert message in " ".join(result.stderr.split())

    def test_ctrl_c_keeps_and_says_what_was_trained(self, tmp_path):
        assert run("train", "vowels", "--epochs", "1").returncode == 0  # from here on the kernel is compiled
        out = tmp_path / "out.json"
        words = (
            "train",
            "vowels",
            "--seeds",
            "0:64",
            "--epochs",
            "100000",
            "--evaluate-every",
            "10",
            "--json",
            str(out),
        )
        command = [sys.executable, "-m", "phasegrad", *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        while (
            psutil.Process(process.pid).cpu_times().user < 5
        ):  # starting takes two; not seconds of a clock others share
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=120)
        assert process.returncode == 130, error
        assert "Stopped after epoch" in error
        data = json.loads(out.read_text())
        assert data["interrupted"] is True
        assert len(data["runs"]) == 64


class TestReproduce:
    words = ("reproduce", "finite-beta", "--seeds", "2")

    def test_it_writes_a_page_goes_on_and_opens_it(self, tmp_path):
        out, opened = tmp_path / "out", tmp_path / "opened"
        browser = tmp_path / "browser"
        browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
        browser.chmod(0o755)
        first = run(*self.words, "--out", str(out))
        assert first.returncode == 0, first.stderr
        assert "2 claims; 2 reproduced" in first.stdout
        assert "".join(f"Wrote {out}/index.html".split()) in "".join(first.stdout.split())
        assert first.stderr.strip() == "finite-beta: 2 of 2 pieces"
        assert {"index.html", "results.json", "run.json", "pieces"} <= {path.name for path in out.iterdir()}
        results = (out / "results.json").read_bytes()
        command = [sys.executable, "-m", "phasegrad", *self.words, "--out", str(out), "--open"]
        environment = {**ENVIRONMENT, "BROWSER": f"{browser} %s"}
        second = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert second.returncode == 0, second.stderr
        assert "2 of 2 pieces were finished before" in second.stderr
        assert (out / "results.json").read_bytes() == results
        assert opened.read_text().strip() == (out / "index.html").as_uri()

    def test_a_folder_of_another_run_is_kept_unless_fresh(self, tmp_path):
        assert run(*self.words, "--out", str(tmp_path)).returncode == 0
        other = run("reproduce", "finite-beta", "--seeds", "1", "--out", str(tmp_path))
        assert other.returncode == 2
        assert "made with 2 seeds instead of 1 seed" in " ".join(other.stderr.split())
        assert run("reproduce", "finite-beta", "--seeds", "1", "--out", str(tmp_path), "--fresh").returncode == 0

    def test_ctrl_c_says_what_is_kept(self, tmp_path):
        command = [sys.executable, "-m", "phasegrad", *self.words, "--out", str(tmp_path), "--workers", "2"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        while not (tmp_path / "pieces").exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        assert process.returncode == 130, error
        assert "Stopped. Nothing was finished" in error or "of 2 pieces are kept" in error
        assert "the same command goes on from there." in error
        assert "Traceback" not in error

    @pytest.mark.parametrize("package", ["matplotlib", "jinja2", "statsmodels"])
    def test_a_missing_package_is_said_before_anything_is_computed(self, tmp_path, package):
        code = (
            "import importlib.util, sys; real = importlib.util.find_spec\n"
            f"importlib.util.find_spec = lambda name, *more: None if name == {package!r} else real(name, *more)\n"
            "from phasegrad.cli import main\n"
            f"sys.argv = ['phasegrad', 'reproduce', '--out', {str(tmp_path / 'out')!r}]; main()\n"
        )
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT)
        assert result.returncode == 2
        assert f"phasegrad reproduce needs {package}, which is not installed." in " ".join(result.stderr.split())
        assert "pip install phasegrad[report]" in " ".join(result.stderr.split())
        assert not (tmp_path / "out").exists()

    def test_a_failing_piece_is_named_with_its_traceback(self, tmp_path):
        patched = tmp_path / "failing.py"
        patched.write_text(
            "import sys\n"
            "from phasegrad.studies import finite_beta\n"
            "def adjoint(*_): raise ArithmeticError('no gradient today')\n"
            "finite_beta.adjoint = adjoint\n"
            "from phasegrad.cli import main\n"
            f"sys.argv = ['phasegrad', *{self.words!r}, '--workers', '1', '--out', {str(tmp_path / 'out')!r}]\n"
            "main()\n"
        )
        result = subprocess.run([sys.executable, str(patched)], capture_output=True, text=True, env=ENVIRONMENT)
        assert result.returncode == 1
        assert "of the study 'finite-beta' failed: ArithmeticError: no gradient today" in result.stderr
        assert "in adjoint" in result.stderr
        assert "1 finished piece is kept" in result.stderr
        assert len(list((tmp_path / "out" / "pieces").iterdir())) == 1

    def test_studies_are_listed(self, tmp_path):
        place = tmp_path / "studies.json"
        result = run("studies", "--json", str(place))
        assert result.returncode == 0, result.stderr
        listed = json.loads(place.read_text())
        assert all(study["name"] in result.stdout and study["claims"] for study in listed)
        assert {"key", "sentence", "where", "published", "rule"} == set(listed[0]["claims"][0])


def test_the_benchmark_compares_what_it_says():
    from phasegrad.benchmarks import foundation, small

    assert set(foundation.foundation(sizes=(5,))) == {"rows", "import_s"}
    figures = small.small(rounds=1)
    assert {"plain_us", "lanes_us", "ratio_kernel", "ratio_end_to_end"} <= set(figures)
    assert all(value > 0 for value in figures.values())


def test_the_sparse_benchmark_reports_every_family(tmp_path, monkeypatch):
    from rich.console import Console

    from phasegrad.benchmarks import sparse
    from phasegrad.report.sparse import draw_growth, sparse_tables

    monkeypatch.setattr(sparse, "FAMILIES", sparse.FAMILIES[1:3])  # a process for each family and size takes a while
    figures = sparse.sparse((2000, 4000), direct=1000, plain=310)
    assert [row["family"] for row in figures["rows"][::2]] == list(sparse.FAMILIES)
    for row in figures["rows"]:
        assert row["stable"]
        assert row["residual"] <= 1e-12
        assert (row["exponent"] is None) == (row["N"] < 3000)
    assert all(row["ratio"] > 1 for row in figures["ratios"].values())
    console = Console(width=200)
    with console.capture() as shown:
        console.print(sparse_tables(figures))
    assert "Erdos-Renyi 10" in shown.get()
    draw_growth(figures, tmp_path / "growth.svg")
    assert "random regular 6, N^" in (tmp_path / "growth.svg").read_text()


@pytest.mark.parametrize("task", ["wine", "vowels"])
def test_train_as_classifier_shows_draws_saves_and_predicts(task, tmp_path):
    places = {name: tmp_path / f"run.{name}" for name in ("svg", "json", "npz")}
    result = run(
        "train", task, "--method", "classifier", "--seeds", "0:2", "--hidden", "6", "--epochs", "8", "--learning-rate",
        "0.05", "--plot", str(places["svg"]), "--json", str(places["json"]), "--save", str(places["npz"]),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "untrained" in result.stdout
    runs = json.loads(places["json"].read_text())["runs"]
    assert [each["seed"] for each in runs] == [0, 1]
    for each in runs:
        confusion = each["confusion"]
        right = sum(confusion[k][k] for k in range(len(confusion)))
        assert each["test_accuracy"] == pytest.approx(right / sum(map(sum, confusion)))
    picture = places["svg"].read_text()
    for words in ("decided", "learning", "output phases"):
        assert words in picture
    model = pg.load_model(places["npz"])
    seed = int(result.stdout.split("(seed ")[1].split(")")[0])
    data = load_task(task, seed, ["a", "i"])
    raw = data.scaling.low + (data.x_test + 1) / 2 * (data.scaling.high - data.scaling.low)
    accuracy = (model.predict(raw).labels == data.y_test).mean()
    assert accuracy == pytest.approx(runs[seed]["test_accuracy"])


def test_ctrl_c_keeps_the_classifiers_trained_so_far(tmp_path):
    out = tmp_path / "out.json"
    words = ("train", "digits", "--hidden", "5", "--epochs", "100000", "--seeds", "0:3", "--json", str(out))
    command = [sys.executable, "-m", "phasegrad", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    while psutil.Process(process.pid).cpu_times().user < 6:  # starting takes two or three
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130, error
    assert "Stopped after 1 of 3 classifiers" in error
    assert len(json.loads(out.read_text())["runs"]) == 1
