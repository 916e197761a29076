"""The command line as a person uses it: a process of its own, its exit status and what it prints."""

import io
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from command_line import ENVIRONMENT, run

import phasegrad as pg
from phasegrad.cli.application import app, commands
from phasegrad.initial import STARTS
from phasegrad.runs import load_task
from phasegrad_paper.studies import ON_REQUEST, STUDIES

COMMANDS = commands()


def interrupt_after(seconds: float, process: subprocess.Popen, number: int = signal.SIGINT) -> None:
    """Press Ctrl-C once a process has had this much of a processor, of which starting takes two or three seconds."""
    while process.poll() is None and psutil.Process(process.pid).cpu_times().user < seconds:
        time.sleep(0.05)
    process.send_signal(number)


@pytest.mark.parametrize("words", [(), *((name,) for name in COMMANDS)])
def test_every_command_has_help_with_an_example_in_80_columns(words, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = here(*words, "--help")
    assert result.returncode == 0
    assert "Usage" in result.stdout
    assert not words or "Example: phasegrad" in result.stdout
    for strange in ("bool", "list[", "<str>", "<=", "…"):
        assert strange not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_commands_and_options_stand_in_groups(here):
    every = here("--help").stdout
    panels = ["Learn", "train", "Hardware and grids", "chip", "From other packages", "reproduce"]
    assert sorted(panels, key=every.index) == panels
    panels = ["What to learn", "--target", "How", "--epochs", "Images", "--device", "Where results go", "--json"]
    shown = here("train", "--help").stdout.partition("╰")[2]  # below the arguments
    assert sorted(panels, key=shown.index) == panels


def test_version():
    assert run("--version").stdout.startswith("phasegrad 0.")


@pytest.mark.parametrize("line", [("--debug", "train", "music"), ("train", "--debug", "music")])
def test_debug_shows_the_traceback_behind_a_sentence(line, here):
    shown = here(*line)
    assert shown.returncode == 2
    assert "Traceback (most recent call last)" in shown.stderr
    assert "in choice" in shown.stderr
    plain = here("train", "music").stderr
    assert "Traceback" not in plain
    assert shown.stderr.endswith(plain)
    assert shown.stderr.count("Got 'music' instead.") == 2


class TestCompletion:
    """As a shell asks: the words so far in its own variables, the answer one word in a line."""

    def test_a_script_for_a_shell_is_shown(self, here, monkeypatch):
        monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
        result = here("--show-completion", "bash")
        assert result.returncode == 0, result.stderr
        assert "complete -o default -F" in result.stdout
        assert "_PHASEGRAD_COMPLETE" in result.stdout

    @pytest.mark.parametrize(
        ("typed", "expected"),
        [
            ("tr", {"train"}),
            ("train vow", {"vowels"}),
            ("train fl", {"flowers.csv"}),
            ("train vowels --init out", {"outputs-positive", "outputs-negative"}),
            ("train vowels --decision n", {"nearest"}),
            ("chip d", {"digits"}),
            ("chip vowels --preset lc", {"lc-board"}),
            ("reproduce spec", {"spectral"}),
            ("reproduce spectral circ", {"circuit"}),
            ("grid case11", {"case118"}),
            ("train vowels --evaluate", {"--evaluate-every"}),
        ],
    )
    def test_names_are_completed(self, typed, expected, tmp_path, monkeypatch, here):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "flowers.csv").write_text("")
        words = f"phasegrad {typed}"
        monkeypatch.setenv("_PHASEGRAD_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        result = here()
        assert result.returncode == 0, result.stderr
        assert set(result.stdout.split()) == expected


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (("train", "xor", "--epochs", "2"), "epoch 2 of 2"),
        (("train", "iris", "--epochs", "2", "--hidden", "2"), "epoch 2 of 2, loss"),
        (("chip", "vowels", "--preset", "ideal", "--chips", "1", "--epochs", "2"), "epoch 2 of 2"),
        (("grid", "case9"), "following the state of case9"),
    ],
)
def test_work_shows_how_far_it_is_in_a_terminal_alone(line, shown, here, monkeypatch):
    result = here(*line)
    assert result.returncode == 0
    assert shown not in " ".join((result.stdout + result.stderr).split())
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TTY_INTERACTIVE", "1")
    monkeypatch.setenv("TERM", "xterm")
    result = here(*line)
    assert shown in " ".join(re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", result.stderr).split())


def test_every_run_comes_with_its_parameters(here, tmp_path):
    place = tmp_path / "out.json"
    assert here("train", "vowels", "--seeds", "3,5", "--epochs", "2", "--json", str(place)).returncode == 0
    data = [pg.datasets.vowels("a,i", seed=seed) for seed in (3, 5)]
    networks = [pg.layered(2, 5, 2, seed=seed) for seed in (3, 5)]
    trained = pg.train(networks, data, pg.Plan.paper(epochs=2), seed=[3, 5]).networks
    runs = json.loads(place.read_text())["runs"]
    for run_, network in zip(runs, trained, strict=True):
        assert run_["parameters"] == {name: values.tolist() for name, values in network.parameters.items()}
    wide = ("train", "digits", "--hidden", "150", "--epochs", "0", "--json", str(place))
    assert here(*wide).returncode == 0
    assert json.loads(place.read_text())["runs"][0]["parameters"].endswith("--save writes them to a model file.")


def test_verify_prints_tables_and_writes_json(tmp_path):
    place = tmp_path / "verify.json"
    result = run("verify", "--sizes", "6,10", "--seeds", "2", "--json", str(place))
    assert result.returncode == 0, result.stdout + result.stderr
    for words in ("Table 1", "Table 2", "Universality", "Error against beta", "claims and checks keep their tolerance"):
        assert words in result.stdout
    data = json.loads(place.read_text())
    assert data["passed"] is True
    assert [data["studies"]["identity"]["data"][f"sine_{n}"]["N"] for n in (6, 10)] == [6, 10]
    assert {"identity", "asymmetry", "finite-beta"} == set(data["studies"])
    assert list(tmp_path.iterdir()) == [place]


def test_verify_exits_with_1_when_a_rule_is_missed(tmp_path):
    """A gradient that is slightly wrong makes the command fail and name what missed."""
    patched = tmp_path / "wrong.py"
    patched.write_text(
        "from phasegrad_paper.studies import agreement\n"
        "true = agreement.cosine\n"
        "agreement.cosine = lambda a, b: true(a, b) - 1e-6\n"
        "from phasegrad.cli import main\n"
        "import sys; sys.argv = ['phasegrad', 'verify', '--sizes', '6', '--seeds', '1']; main()\n"
    )
    result = subprocess.run([sys.executable, str(patched)], capture_output=True, text=True, env=ENVIRONMENT)
    assert result.returncode == 1
    words = " ".join(result.stdout.split())
    assert "missed: identity-table: The largest 1 - cosine" in words
    assert "not as asked (at most 1.0e-08, the square of the nudge of 1e-4)." in words
    assert "claims and checks missed their tolerance." in words


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("verify", "--sizes", "six"), "--sizes must be whole numbers separated by commas"),
        (("verify", "--sizes", "3"), "--sizes must be a whole number of at least 4"),
        (("verify", "--sizes", ""), "--sizes has no value. Give one, or leave it out."),
        (("verify", "--seeds", "0"), "--seeds cannot be '0'. It must be at least 1."),
        (("verify", "--json", "no/such/folder/out.json"), "does not exist"),
        (("verify", "--json", "."), "is a folder"),
        (("draw", "picture.gif"), "must end in one of svg, png, pdf"),
        (("draw", "picture.svg", "--beta", "-1"), "--beta cannot be '-1'. It must be at least 0.000000001."),
        (("nonsense",), "No such command"),
        (("train",), "TASK is missing. What to learn: vowels, fm, xor"),
        (("predict", "m.npz"), "SAMPLES is missing. CSV file whose header names the model's features."),
        (("verify", "--seeds", "two"), "--seeds cannot be 'two'. It must be a whole number."),
        # What a name says is what is written there.
        (("train", "xor", "--save", "new.csv"), "--save must end in .npz. Got 'new.csv'."),
        (("train", "xor", "--json", "new.csv"), "--json must end in .json or be -. Got 'new.csv'."),
        (("verify", "--json", "out"), "--json must end in .json or be -. Got 'out'."),
        (("predict", "m.npz", "s.csv", "--out", "m.txt"), "--out must end in .csv. Got 'm.txt'."),
        (
            ("train", "music"),
            "TASK must be one of 'digits', 'iris', 'wine'",
        ),
        (("train", "vowels", "--vowels", "a,y"), "y"),
        (("train", "vowels", "--vowels", "a"), "at least"),
        (("train", "vowels", "--seeds", "5:5"), "--seeds must be a seed (3), a list (0,2,5) or a range (0:100)"),
        (("train", "vowels", "--seeds", "x"), "--seeds must be"),
        (("train", "vowels", "--seeds", "1,1"), "names a seed twice"),
        (("train", "vowels", "--learn", "mass"), "has no parameter 'mass'. Its parameters are omega, coupling."),
        (("train", "vowels", "--init", "lucky"), "--init must be one of 'random'"),
        (("train", "vowels", "--decision", "coin"), "--decision must be cosine or nearest"),
        (("train", "vowels", "--learning-rate", "-1"), "--learning-rate cannot be '-1'. It must be at least 0."),
        (("train", "vowels", "--learn", "omega=-1"), "--learn must be a number, 0 or more. Got -1.0 instead."),
        (("train", "vowels", "--save", "no/such/folder/m.npz"), "does not exist"),
        (("train", "vowels", "--method", "magic"), "--method must be paper or classifier"),
        (("train", "vowels", "--plot", "a.svg"), "--plot has no effect with --method paper"),
        (("train", "digits", "--method", "paper"), "--method paper is for the tasks vowels, fm, xor. Leave it out for"),
        (("train", "iris", "--plot", "no/such/folder/p.svg"), "does not exist"),
        (("train", "iris", "--plot", "p.jpg"), "must end in one of svg, png, pdf"),
        (("grid", "case9", "--plot", "p.jpg"), "must end in one of svg, png, pdf"),
        (("train", "xor", "--save", "out", "--json", "./out"), "Two files cannot be written to one place"),
        (("grid", "case9", "--json", "p.svg", "--plot", "p.svg"), "Two files cannot be written to one place"),
        (("train", "vowels", "--learn", "omega=0.01", "--learning-rate", "0.5"), "--learning-rate has no effect where"),
        (
            ("train", "iris", "--learn", "mass"),
            "has no parameter 'mass'. Its parameters are omega, coupling, field_strength, field_phase.",
        ),
        # Nothing that is typed is ignored: neither what only the other method has, nor what is of another task.
        (
            ("train", "iris", "--init", "spectral"),
            "--init has no effect with --method classifier, and iris has no other. Leave it out.",
        ),
        (("train", "xor", "--method", "classifier", "--init", "zero"), "Leave it out, or add --method paper."),
        (("train", "iris", "--margin", "0.1"), "--margin has no effect with --method classifier"),
        (("train", "iris", "--decision", "nearest"), "--decision has no effect with --method classifier"),
        (("train", "iris", "--evaluate-every", "5"), "--evaluate-every has no effect with --method classifier"),
        (("train", "iris", "--vowels", "a,i"), "--vowels is for the task vowels. Leave it out for iris."),
        (("train", "fm", "--scale-by", "all"), "--scale-by is for the task vowels. Leave it out for fm."),
        (
            ("train", "iris", "--shifts"),
            "--shifts is for the tasks digits, mnist, fashion_mnist, cifar10. Leave it out",
        ),
        (
            ("train", "vowels", "--shifts"),
            "--shifts is for the tasks digits, mnist, fashion_mnist, cifar10. Leave it out",
        ),
        (("train", "digits", "--method", "paper", "--shifts"), "--shifts has no effect with --method paper"),
        (("train", "vowels", "--hidden", "5,5"), "--hidden must be one number with --method paper"),
        (("train", "vowels", "--learn", "omega=fast"), "--learn must be names of parameters"),
        (("predict", "gone.npz", "gone.csv"), "There is no file gone.npz"),
        (("reproduce", "finit-beta"), "There is no study 'finit-beta'. Did you mean 'finite-beta'?"),
        (("reproduce", "--seeds", "0"), "--seeds cannot be '0'. It must be at least 1."),
        (("reproduce", "--workers", "0"), "--workers cannot be '0'. It must be at least 1."),
        (("reproduce", "--out", "/dev/null"), "/dev/null is a file. Name a folder."),
        (("reproduce", "--out", "/dev/null/below"), "Could not make the folder /dev/null/below"),
        (("reproduce", "--cluster", "here"), "--cluster must be the address of a dask scheduler"),
        (("studies", "--json", "no/such/folder/out.json"), "does not exist"),
    ],
)
def test_wrong_words_get_one_sentence_and_status_2(words, message, tmp_path, monkeypatch, here):
    monkeypatch.chdir(tmp_path)
    result = here(*words)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mine.npz", b"a letter"),
        ("mine.npz", None),
        ("mine.csv", b"x,y\n1,2\n"),
        ("mine.csv", b""),
        ("mine.csv", b"\xff\xfe"),
    ],
)
def test_no_command_replaces_what_it_did_not_write(name, content, tmp_path, monkeypatch, here):
    monkeypatch.chdir(tmp_path)
    pg.Model(pg.layered(1, 2, 2), pg.objectives.PaperPair(), ("a", "b"), ("x",)).save("model.npz")
    Path("samples.csv").write_text("x\n1\n")
    np.savez("mine.npz", header=np.arange(3)) if content is None else Path(name).write_bytes(content)
    before = Path(name).read_bytes()
    train, predict = ("train", "xor", "--epochs", "1", "--save"), ("predict", "model.npz", "samples.csv", "--out")
    result = here(*(train if name == "mine.npz" else predict), name)
    assert result.returncode == 2
    assert "name another place, or delete it first." in " ".join(result.stderr.split()).lower()
    assert Path(name).read_bytes() == before
    for command, place in ((train, "ours.npz"), (predict, "ours.csv"), (("studies", "--json"), "ours.json")):
        assert here(*command, place).returncode == 0
        Path(place).touch()
        assert here(*command, place).returncode == 0  # once more


@pytest.mark.parametrize(
    "words",
    [
        ("train", "iris", "--plot", "p.svg"),
        ("grid", "case9", "--plot", "p.svg"),
        ("draw", "p.svg"),
        ("bench", "--plot", "p.svg"),
    ],
)
def test_a_picture_without_matplotlib_is_refused_before_any_work(words, tmp_path, monkeypatch, here):
    from phasegrad import _validation

    real = _validation.find_spec
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_validation, "find_spec", lambda name: None if name == "matplotlib" else real(name))
    result = here(*words)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "A picture needs matplotlib, which is not installed." in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_verdicts_are_whole_in_80_columns():
    from types import SimpleNamespace

    from rich.console import Console

    from phasegrad_paper.report import verdict_tables
    from phasegrad_paper.report.verdicts import BADGES
    from phasegrad_paper.studies import STUDIES

    claims = [claim for study in STUDIES for claim in study.claims]
    for verdict, badge in BADGES.items():
        judgements = [SimpleNamespace(claim=claim, verdict=verdict) for claim in claims]
        console = Console(width=80, record=True, file=io.StringIO())
        console.print(verdict_tables(SimpleNamespace(judgements=judgements, counts={verdict: len(claims)})))
        shown = console.export_text()
        assert max(map(len, shown.splitlines())) <= 80
        wanted = {word for claim in claims for word in f"{claim.key} {claim.where} {badge.short}".split()}
        assert wanted <= set(shown.split())


def test_what_verify_could_not_measure_comes_with_a_reason():
    from types import SimpleNamespace

    from phasegrad_paper.report.console import _verdict

    claim = SimpleNamespace(key="identity-independent", note="")
    judgement = SimpleNamespace(claim=claim, reason="There is no value of the largest residual.")
    found = SimpleNamespace(missed=[], unmeasured=[judgement], tested=[judgement])
    assert "not measured: identity-independent. There is no value of the largest residual.\n" in str(_verdict(found))


def test_tables_break_at_blanks_alone_and_go_on_below():
    from rich.console import Console

    from phasegrad_paper.report.console import table

    headings = ("N", "two-phase, differences", "adjoint, differences", "residual, published")
    for width in (24, 40, 80):
        console = Console(width=width, record=True, file=io.StringIO())
        console.print(table("", headings, [(6, 1e-10, 2e-11, 3e-12)]))
        shown = console.export_text()
        assert max(map(len, shown.splitlines())) <= width
        assert {"two-phase,", "differences", "published", "1.0e-10", "2.0e-11", "3.0e-12"} <= set(shown.split())


def test_the_names_of_the_package_are_those_it_offers():
    assert {"OscillatorClassifier", "Model", "__version__"} <= set(dir(pg))
    assert not {"Any", "TYPE_CHECKING"} & set(dir(pg))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_said_and_leaves_nothing_behind(tmp_path, monkeypatch):
    from phasegrad import _files

    place = tmp_path / "out.json"
    place.write_text("before")
    real = _files.os.fsync

    def full(descriptor):
        real(descriptor)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_files.os, "fsync", full)
    with pytest.raises(OSError, match=r"Could not write .*: No space left on device. Choose another place"):
        _files.write_json(place, {"a": 1})
    assert place.read_text() == "before"
    assert list(tmp_path.iterdir()) == [place]


def test_ctrl_c_stops_cleanly(tmp_path):
    place = tmp_path / "verify.json"
    command = [sys.executable, "-m", "phasegrad", "verify", "--json", str(place)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    interrupt_after(3, process)
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
    shown = Path(__file__).parents[2] / "docs" / "images" / "two-phase.svg"
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

    @pytest.mark.parametrize("learn", ["omega", "coupling", "omega,coupling"])
    @pytest.mark.parametrize(
        ("task", "more"), [("xor", ()), ("vowels", ("--vowels", "o,u,ae")), ("fm", ("--hidden", "4"))]
    )
    def test_every_task_and_parameter_runs(self, task, more, learn, here):
        result = here("train", task, *more, "--learn", learn, "--epochs", "1", "--decision", "nearest")
        assert result.returncode == 0, result.stderr
        assert f"1 run, 1 epoch, learning {learn.replace(',', ', ')}" in result.stdout

    def test_failing_seeds_are_explained(self, here):
        """Half of the random starts end below chance by the paper's decision, and the command says why."""
        failing = here("train", "vowels", "--seeds", "0:3", "--epochs", "20")
        assert "Why seeds fail" in failing.stdout
        assert "--decision nearest" in failing.stdout
        advised = ("--decision", "nearest", "--learn", "omega=0.01,coupling=0.5")
        for more in (("--init", "spectral"), advised):
            result = here("train", "vowels", "--seeds", "0:3", *more)
            assert "above 60%: 3 of 3 seeds" in result.stdout
            assert "Why seeds fail" not in result.stdout

    @pytest.mark.parametrize("init", list(STARTS))
    def test_every_start_runs(self, init, here):
        assert here("train", "vowels", "--init", init, "--epochs", "0").returncode == 0

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("f1_hz\n850\n", "has no column 'f2_hz'. The model needs f1_hz, f2_hz; the file has f1_hz."),
            ("f1_hz,f2_hz\n850,high\n", "line 2: f2_hz is 'high', not a number"),
            (
                "f1_hz,f2_hz\n\n850,nan\n",
                "samples.csv, line 3: f2_hz is 'nan', which stands for a missing value.",
            ),
            ("f1_hz,f2_hz\n850,1300,7\n", "samples.csv, line 2: columns in this line 3, in the header 2."),
            ("f1_hz,f2_hz\n850\n", "samples.csv, line 2: columns in this line 1, in the header 2."),
            ("f1_hz,f2_hz,f1_hz\n850,1300,7\n", "samples.csv, line 1 names the column 'f1_hz' twice"),
            (None, "samples.csv is a folder. Name a file."),
            ("", "samples.csv is empty. Give a table with a header"),
        ],
    )
    def test_wrong_samples_are_refused(self, tmp_path, text, message, here):
        model, samples = tmp_path / "model.npz", tmp_path / "samples.csv"
        pg.Model(pg.layered(2, 5, 2), pg.objectives.PaperPair(), ("a", "i"), ("f1_hz", "f2_hz")).save(model)
        samples.mkdir() if text is None else samples.write_text(text)
        result = here("predict", str(model), str(samples))
        assert result.returncode == 2
        assert message in " ".join(result.stderr.split())

    @pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
    def test_ctrl_c_keeps_and_says_what_was_trained(self, tmp_path, number):
        # From here on the kernel is compiled, as wide as so many seeds make it.
        assert run("train", "vowels", "--seeds", "0:64", "--epochs", "1").returncode == 0
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
        interrupt_after(5, process, number)
        _, error = process.communicate(timeout=120)
        assert process.returncode == 128 + number, error
        assert "Stopped after epoch" in error
        data = json.loads(out.read_text())
        assert data["interrupted"] is True
        assert len(data["runs"]) == 64


class TestGrid:
    def test_it_says_how_far_synchrony_is_and_what_relieves_a_line(self, here, tmp_path):
        place = tmp_path / "grid.json"
        result = here("grid", "case9", "--relieve", "8-9", "--json", str(place))
        assert result.returncode == 0
        assert "Synchrony is lost at 7.83 times these injections." in result.stdout
        assert json.loads(place.read_text())["critical_scale"] == pytest.approx(7.83, abs=0.01)

    def test_a_line_of_negative_coupling_does_not_make_it_contradict_itself(self, here, tmp_path):
        """The state followed is the one shown, and lines beyond 90 degrees come with the reason."""
        place = tmp_path / "grid.json"
        result = here("grid", "case300", "--json", str(place))
        words = " ".join(result.stdout.split())
        assert result.returncode == 0
        assert "Converged and stable" in words
        assert "Synchrony is lost at 2.509 times these injections." in words
        assert "Beyond that, held by others: 118-1201, 120-1201. 120-1201 has negative coupling" in words
        assert "All phases equal, near which a power flow ends, is not a stable state here" in words
        found = json.loads(place.read_text())
        assert (found["synchronous"], found["flat_stable"]) == (True, False)
        assert found["critical_scale"] == pytest.approx(2.5085, abs=1e-4)
        assert found["negative_coupling"] == ["120-1201"]
        assert (
            {line["line"] for line in found["stressed"][:2]} == set(found["beyond_90_deg"]) == {"118-1201", "120-1201"}
        )

    def test_without_a_stable_state_the_status_is_1(self, here):
        assert here("grid", "case9", "--scale", "9").returncode == 1


class TestReproduce:
    words = ("reproduce", "finite-beta", "--seeds", "2")

    @pytest.mark.slow
    def test_it_writes_a_page_goes_on_and_opens_it(self, tmp_path):
        out, opened = tmp_path / "out", tmp_path / "opened"
        browser = tmp_path / "browser"
        browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
        browser.chmod(0o755)
        first = run(*self.words, "--out", str(out))
        assert first.returncode == 0, first.stderr
        assert "2 claims; 1 reproduced; 1 not decided by these data" in first.stdout
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

    @pytest.mark.slow
    def test_a_folder_of_another_run_is_kept_unless_fresh(self, tmp_path, here):
        place = ("--workers", "1", "--out", str(tmp_path))
        assert here(*self.words, *place).returncode == 0
        other = ("reproduce", "finite-beta", "--seeds", "1", *place)
        refused = here(*other)
        assert refused.returncode == 2
        assert "made with 2 seeds instead of 1 seed" in " ".join(refused.stderr.split())
        assert here(*other, "--fresh").returncode == 0

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_ctrl_c_says_what_is_kept(self, tmp_path, number):
        command = [sys.executable, "-m", "phasegrad", *self.words, "--out", str(tmp_path), "--workers", "2"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        while not (tmp_path / "pieces").exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        _, error = process.communicate(timeout=60)
        assert process.returncode == 128 + number, error
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
        assert "pip install '.[report]'" in " ".join(result.stderr.split())
        assert not (tmp_path / "out").exists()

    def test_a_failing_piece_is_named_with_its_traceback(self, tmp_path):
        patched = tmp_path / "failing.py"
        patched.write_text(
            "import sys\n"
            "from phasegrad_paper.studies import agreement\n"
            "true = agreement.adjoint\n"
            "def adjoint(network, *question):\n"
            "    if network.size == 15: raise ArithmeticError('no gradient today')\n"
            "    return true(network, *question)\n"
            "agreement.adjoint = adjoint\n"
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

    def test_studies_are_listed(self, tmp_path, here):
        place = tmp_path / "studies.json"
        result = here("studies", "--json", str(place))
        assert result.returncode == 0, result.stderr
        listed = json.loads(place.read_text())
        assert all(study["name"] in result.stdout for study in listed)
        assert f"{len(STUDIES)} studies, and {len(ON_REQUEST)} on request" in result.stdout
        assert [study["name"] for study in listed] == [study.name for study in (*STUDIES, *ON_REQUEST)]
        # Of chips with faults the paper claims nothing: of its studies, that one has checks alone.
        assert [study["name"] for study in listed[: len(STUDIES)] if not study["claims"]] == ["mismatch"]
        assert {"key", "sentence", "where", "published", "rule"} == set(listed[0]["claims"][0])


@pytest.mark.slow
def test_the_benchmark_compares_what_it_says():
    from phasegrad_bench._foundation import foundation
    from phasegrad_bench._motion import motion
    from phasegrad_bench._small import small

    assert set(foundation(sizes=(5,), starts=1, many=500)) == {"rows", "import_s"}
    assert len(motion(sizes=(500,), steps=5, rounds=1)["rows"]) == 4
    figures = small(rounds=1)
    assert {"plain_us", "lanes_us", "ratio_kernel", "ratio_end_to_end"} <= set(figures)
    assert all(value > 0 for name, value in figures.items() if name != "generic")
    assert {"us", "ratio_plain"} <= set(figures["generic"])


class TestBench:
    """`bench --json` with every measurement replaced by numbers: which keys there are, and what the page shows."""

    SMALL = {"plain_us": 700.0, "lanes_us": 0.3, "end_to_end_us": 0.4, "experiment_cpu_s": 1.0, "ratio_kernel": 2333.0,
             "ratio_end_to_end": 1750.0}  # fmt: skip
    GENERIC = {"us": 20.0, "single_us": 60.0, "ratio_plain": 35.0, "ratio_plain_single": 11.7}
    ROW = {"family": "grid", "N": 10_000, "build_s": 0.1, "equilibrium_s": 0.2, "adjoint_s": 0.1, "peak_mb": 200.0,
           "residual": 1e-13, "stable": True, "exponent": None}  # fmt: skip

    @pytest.fixture
    def bench(self, tmp_path, monkeypatch):
        from typer.testing import CliRunner

        from phasegrad_bench import _all

        other = {"other_s": 1.0, "plain_s": 1.0, "phasegrad_s": 0.1, "ratio": 10.0}
        ways = {"plain_s": 60.0, "lapack_s": 1.0, "batch_s": 0.1, "ratio_plain": 600.0, "ratio_lapack": 10.0}
        epochs = {"epoch_units": 30.0, "epoch_units_256": 20.0, "fit_over_train": 1.1, "over_perceptron": 2.0}
        errors = {name: {"beta": 1e-3, "error": 1e-6} for name in ("two_phase", "centred")}
        monkeypatch.setattr(_all, "small", lambda rounds: {**self.SMALL, "generic": self.GENERIC})
        monkeypatch.setattr(_all, "foundation", lambda: {"rows": {"task": other}, "import_s": 1.0})
        monkeypatch.setattr(_all, "batch", lambda rounds: ways)
        monkeypatch.setattr(_all, "learning", lambda rounds: epochs)
        monkeypatch.setattr(_all, "motion", lambda: {"rows": {"by hand": other}})
        monkeypatch.setattr(
            _all,
            "tensors",
            lambda rounds: dict.fromkeys(("layer_over_bare", "centred_over_bare", "batch_over_torch"), 1.1),
        )
        nudged = [{"family": "grid", "N": 10_000, **errors}]
        monkeypatch.setattr(
            _all, "sparse", lambda sizes: {"rows": [self.ROW], "ratios": {"fsolve": other}, "nudged": nudged}
        )

        def run(*folder):
            place = tmp_path / "bench.json"
            result = CliRunner().invoke(app, ["bench", *map(str, folder), "--json", str(place)])
            assert result.exit_code == 0, result.output
            return json.loads(place.read_text()), result.output

        return run

    def test_the_json_has_every_key(self, bench, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)  # where there is no reproduction
        figures, shown = bench()
        assert set(self.SMALL) <= set(figures["small"])
        assert {"plain_s", "batch_s", "ratio_plain", "ratio_lapack"} <= set(figures["batch"])
        assert {"rows", "ratios", "nudged"} == set(figures["sparse"])
        assert figures["generic"]["ratio_plain"] == 35.0
        assert figures["reproduce"]["plain_updates"] is None
        assert "last reproduction" not in shown
        assert figures["tensors"]["layer_over_bare"] == 1.1
        assert "PhaseNetwork, forward and backward" in shown

    def test_a_finished_reproduction_is_given_in_plain_updates(self, bench, tmp_path, monkeypatch):
        from phasegrad_paper.reproduction import reproduce
        from phasegrad_paper.studies import choose

        folder = tmp_path / "reproduction"
        reproduce(choose(["finite-beta"]), folder, seeds=1, workers=1)
        figures, shown = bench("--folder", folder)
        pieces = [json.loads(path.read_text()) for path in (folder / "pieces").iterdir()]
        spent = sum(piece["seconds"]["cpu"] for piece in pieces)
        assert figures["reproduce"]["cpu_s"] == pytest.approx(spent)
        assert figures["reproduce"]["plain_updates"] == pytest.approx(spent / 700e-6)
        assert "million plain updates" in shown
        monkeypatch.chdir(tmp_path)
        assert bench()[0]["reproduce"] == figures["reproduce"]
        (folder / "results.json").unlink()  # not finished
        assert bench()[0]["reproduce"]["plain_updates"] is None


@pytest.mark.slow
def test_the_sparse_benchmark_reports_every_family(tmp_path, monkeypatch):
    from phasegrad_bench import _sparse as sparse
    from phasegrad_bench.tables import draw_growth

    monkeypatch.setattr(sparse, "FAMILIES", sparse.FAMILIES[1:3])  # a process for each family and size takes a while
    figures = sparse.sparse((2000, 4000), large=4000, plain=310)
    assert [row["family"] for row in figures["rows"][::2]] == list(sparse.FAMILIES)
    for row in figures["rows"]:
        assert row["stable"]
        assert row["residual"] <= 1e-12
        assert 50 < row["peak_mb"] < 600  # its own, whatever the process that asks for it holds
        assert (row["exponent"] is None) == (row["N"] < 3000)
    assert [name for name in figures["ratios"] if "cg" in name] == [
        f"SciPy Newton + cg, {family}, N = 4,000" for family in sparse.EXPANDERS
    ]
    draw_growth(figures, tmp_path / "growth.svg")
    assert "random regular 6, N^" in (tmp_path / "growth.svg").read_text()


@pytest.mark.parametrize("task", [pytest.param("wine", marks=pytest.mark.slow), "vowels"])
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
    model = pg.Model.load(places["npz"])
    seed = int(result.stdout.split("(seed ")[1].split(")")[0])
    data = load_task(task, seed, ["a", "i"])
    raw = data.scaling.low + (data.x_test + 1) / 2 * (data.scaling.high - data.scaling.low)
    accuracy = (model.predict(raw).labels == data.y_test).mean()
    assert accuracy == pytest.approx(runs[seed]["test_accuracy"])


@pytest.mark.slow
def test_ctrl_c_keeps_the_classifiers_trained_so_far(tmp_path):
    out = tmp_path / "out.json"
    words = ("train", "digits", "--hidden", "5", "--epochs", "100000", "--seeds", "0:3", "--json", str(out))
    command = [sys.executable, "-m", "phasegrad", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    interrupt_after(6, process)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 130, error
    assert "Stopped after 1 of 3 classifiers" in error
    assert len(json.loads(out.read_text())["runs"]) == 1
