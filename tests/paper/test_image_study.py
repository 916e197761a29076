"""Images: the study and its file of results, the page, the runner where there is little, and the command line."""

import dataclasses
import hashlib
import json
import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import phasegrad as pg
from phasegrad.datasets import images
from phasegrad.runs import read_samples
from phasegrad_paper.studies import ON_REQUEST, STUDIES, Verdict, choose, images_study
from phasegrad_paper.studies.images import (
    EXPERIMENTS,
    STUDY,
    Experiment,
    Results,
    chosen,
    compute,
    gradient_cosines,
    images_tables,
    judged,
    run,
    with_tables,
    work,
    write_page,
)
from phasegrad_paper.studies.images.__main__ import main as runner
from phasegrad_paper.studies.images.results import Budget, OutOfTimeError

torch = pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "images.md"
RESULTS = ROOT / "docs" / "results" / "images.json"
HEAVY = (
    "numba",
    "llvmlite",
    "typer",
    "rich",
    "matplotlib",
    "pandas",
    "statsmodels",
    "networkx",
    "threadpoolctl",
    "sklearn",
)
TINY = Experiment(
    "tiny", "tiny", "digits", (pg.Dense(12), pg.Dense(10)), plan={"epochs": 2, "batch_size": 100}, seeds=2
)


pytestmark = pytest.mark.usefixtures("one_thread")


def tiny(name):
    """Return an experiment of the table at a size that takes a moment."""
    given = EXPERIMENTS[name]
    layers = tuple(pg.Dense(12) for _ in given.layers[1:])
    plan = {**given.plan, "epochs": 1, "batch_size": 100}
    return dataclasses.replace(given, task="digits", layers=(*layers, pg.Dense(10)), plan=plan, shifts=None)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Return a file of results with two runs of every experiment, and the table that they belong to."""
    torch.set_num_threads(1)
    small = {name: tiny(name) for name in EXPERIMENTS}
    path, lines = tmp_path_factory.mktemp("images") / "results.json", []
    first = {json.dumps(each.settings): each for each in reversed(small.values())}
    results = compute(path, list(first.values()), [0, 1], device="cpu", say=lines.append)
    for name, each in small.items():  # at this size many are the same
        same = results.of(first[json.dumps(each.settings)])
        results = Results((*results.runs, *({**run, "experiment": name} for run in same if run["experiment"] != name)))
    results.write(path)
    return path, small, lines


@pytest.fixture
def small_table(measured, monkeypatch):
    """Put the small experiments in the place of the true ones."""
    for module in ("tables", "claims", "results"):
        monkeypatch.setattr(f"phasegrad_paper.studies.images.{module}.EXPERIMENTS", measured[1])
    return measured


# --- The table --------------------------------------------------------------------------------------------------


def test_the_table_can_be_built_and_its_settings_are_plain_and_complete():
    shapes = {"mnist": (1, 28, 28), "fashion_mnist": (1, 28, 28), "cifar10": (3, 32, 32)}
    for name, each in EXPERIMENTS.items():
        plain = json.loads(json.dumps(each.settings))
        assert plain == each.settings, name
        again = Experiment.of(plain)
        assert again.settings == each.settings
        assert again.made_plan() == each.made_plan()
        each.made_plan().check_network(each.build(shapes[each.task], 0))
        assert each.seeds == 5


def test_names_are_checked():
    assert [each.name for each in chosen(["mnist-conv", "mnist-mlp"])] == ["mnist-mlp", "mnist-conv"]
    with pytest.raises(ValueError, match=r"There is no experiment 'mnist-mpl'. Did you mean 'mnist-mlp'"):
        chosen(["mnist-mpl"])
    with pytest.raises(ValueError, match="must be one of"):
        Experiment.of({**TINY.settings, "task": "imagenet"})


def test_as_many_parameters_learn_whatever_they_are():
    network = pg.layers(64, pg.Dense(12), pg.Dense(10))
    for learn in ("coupling", "omega", "field_phase", ("field_strength", "field_phase")):
        masks = work.drawn_masks(network, pg.Plan.images(learn=learn), seed=1)
        assert sum(int(mask.sum()) for mask in masks.values()) == 22
        assert not any(mask[:64].any() for name, mask in masks.items() if name != "coupling")
    again = work.drawn_masks(network, pg.Plan.images(learn="coupling"), seed=2)
    assert np.any(again["coupling"] != work.drawn_masks(network, pg.Plan.images(learn="coupling"), seed=1)["coupling"])


@pytest.mark.filterwarnings("ignore::phasegrad.gradients.GradientWarning")
def test_the_compared_gradients_are_those_of_numpy():
    network = pg.layers(4, pg.Dense(6), pg.Dense(5), pg.Dense(3), gain=0.6, output_gain=0.4, field=2.0, seed=1)
    stream = np.random.default_rng(0)
    x, y, objective = stream.uniform(-1, 1, (8, 4)), stream.integers(0, 3, 8), pg.CosineCrossEntropy(8)
    found = gradient_cosines(network, objective, x, y, 0.05)
    both = []
    equilibrium = pg.find_equilibrium(network, x)
    for method, options in ((pg.centred, {"beta": 0.05}), (pg.adjoint, {})):
        both.append(method(network, equilibrium, objective, y, wrt=["coupling"], **options).coupling.mean(axis=0))
    for link, part in zip(network.graph.layout.links, network.graph.layout.couplings, strict=True):
        first, second = both[0][part], both[1][part]
        expected = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
        assert found[f"layer {link.second}"] == pytest.approx(expected, abs=1e-7)
    assert found["all"] < 1 - 1e-9


# --- Runs and their file ----------------------------------------------------------------------------------------


def test_a_run_says_what_it_was(measured):
    path, small, lines = measured
    runs = Results.read(path).runs
    assert len(runs) == 2 * len(small)
    assert sum(line.startswith("mnist-mlp, seed ") for line in lines) == 2
    for each in runs:
        assert each["settings"] == small[each["experiment"]].settings
        assert 0 <= each["accuracy"] <= 1
        assert each["epochs"] == 1
        assert each["seconds"] > each["seconds_per_epoch"] > 0
        assert each["torch"] == torch.__version__
        assert (each["dtype"], each["ended"]) == (EXPERIMENTS[each["experiment"]].dtype, "finished")
        assert each["plan"]["beta"] == EXPERIMENTS[each["experiment"]].made_plan().beta
    counts = {each["experiment"]: each["parameters"] for each in runs}
    assert {counts[name] for name in EXPERIMENTS if small[name].matched} == {22}
    assert counts["which-all-couplings"] == 64 * 12 + 12 * 10
    assert all(min(each["cosines"]["after"].values()) > 0.99 for each in runs if "cosines" in each)


def test_the_same_seed_gives_the_same(measured):
    path, small, _ = measured
    before = Results.read(path).of(small["which-couplings"])[1]
    again = run(small["which-couplings"].settings, 1, "cpu")
    assert again["curve"] == before["curve"]


def test_finished_runs_are_not_repeated_and_other_settings_are(tmp_path):
    path, lines = tmp_path / "out.json", []
    compute(path, [TINY], [0], device="cpu", say=lines.append)
    compute(path, [TINY], device="cpu", say=lines.append)
    assert [line.split(": ")[0] for line in lines] == ["tiny, seed 0", "tiny, seed 0", "tiny, seed 1"]
    assert lines[1].endswith("there already")
    other = dataclasses.replace(TINY, sharpness=4.0)
    results = compute(path, [other], [0], device="cpu")
    assert (len(results.runs), len(results.of(TINY)), len(results.of(other))) == (3, 2, 1)


def test_a_budget_is_kept(tmp_path, monkeypatch):
    path, lines = tmp_path / "out.json", []
    clock = Budget(10.0, start=0.0)
    monkeypatch.setattr("phasegrad_paper.studies.images.results.time.monotonic", lambda: 4.0)
    clock.check(5.0)
    clock.watch(1, 2, 5.9)
    with pytest.raises(OutOfTimeError, match="about 6 s and 6 s are left"):
        clock.check(5.9)
    with pytest.raises(OutOfTimeError, match="after epoch 1 of 3 it would take 8 s more"):
        clock.watch(1, 3, 8.0)
    monkeypatch.undo()
    compute(path, [TINY], device="cpu", budget=1e-9, say=lines.append)
    assert Results.read(path).runs == ()
    assert len(lines) == 1
    assert lines[0].startswith("tiny, seed 0: left out, ")


def test_ctrl_c_in_a_run_keeps_the_others(tmp_path, monkeypatch):
    path = tmp_path / "out.json"
    compute(path, [TINY], [0], device="cpu")
    from phasegrad.training._torch import Trainer

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "train", stop)
    with pytest.raises(KeyboardInterrupt):
        compute(path, [TINY], [1], device="cpu")
    assert [each["seed"] for each in Results.read(path).runs] == [0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not a file of results on images"),
        ("[]", "it does not say that it is one"),
        ('{"kind": "phasegrad images", "format": 2, "runs": []}', "it does not say that it is one"),
        ('{"kind": "phasegrad images", "format": 1}', "it has no list of runs"),
        ('{"kind": "phasegrad images", "format": 1, "runs": [{"experiment": 3}]}', "its run 0 has no experiment"),
    ],
)
def test_other_files_are_refused(tmp_path, content, words, capsys):
    (tmp_path / "out.json").write_text(content)
    with pytest.raises(ValueError, match=words):
        Results.read(tmp_path / "out.json")
    assert runner([str(tmp_path / "out.json"), "--device", "cpu"]) == 2
    assert words in capsys.readouterr().err
    assert (tmp_path / "out.json").read_text() == content


def test_the_runner_works_with_little_more_than_numpy_and_pytorch(tmp_path):
    """Images come from files here, since the small digits are scikit-learn's."""
    lay_images(tmp_path)
    code = f"""
import sys
sys.modules |= dict.fromkeys({HEAVY!r})  # not there, whoever asks
import dataclasses, torch
torch.set_num_threads(1)
import phasegrad as pg
from phasegrad.datasets import images
images.MNIST = dataclasses.replace(images.MNIST, shape=(1, 6, 6), counts={COUNTS!r}, digests={DIGESTS!r})
from phasegrad_paper.studies.images import experiments, __main__ as runner
given = experiments.EXPERIMENTS["mnist-mlp"]
small = dataclasses.replace(given, layers=(pg.Dense(8), pg.Dense(10)), plan={{"epochs": 1, "batch_size": 20}})
runner.chosen = lambda names: (small,)
sys.exit(runner.main(["out.json", "--device", "cpu", "--data", {str(tmp_path)!r}, "--seeds", "0:2"]))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.count("mnist-mlp, seed") == 2
    assert len(json.loads((tmp_path / "out.json").read_text())["runs"]) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--device", "quantum"], "The device 'quantum' cannot be used"),
        (["--device", "cuda:77"], "PyTorch has cpu"),
        (["--only", "nothing"], "There is no experiment 'nothing'"),
        (["--seeds", "three"], "--seeds must be a seed"),
        (["--seeds", "5:2"], "--seeds must be a seed"),
        (["--device", "cpu", "--data", "nowhere"], "in nowhere, where MNIST was looked for"),
    ],
)
def test_the_runner_refuses_in_a_sentence(tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    assert runner(["out.json", "--only", "mnist-mlp", *words]) == 2
    assert said in capsys.readouterr().err


# --- Judgements, tables, the page -------------------------------------------------------------------------------


def test_the_study_is_on_request_alone():
    assert STUDY in ON_REQUEST
    assert STUDY not in STUDIES
    assert STUDY not in choose()
    assert choose(["images", "sweep"])[-1].name == "images"
    keys = [claim.key for study in (*STUDIES, *ON_REQUEST) for claim in (*study.claims, *study.checks)]
    assert len(set(keys)) == len(keys)
    pieces = images_study("cpu", "/data").plan(2)
    assert len(pieces) == 2 * len(EXPERIMENTS)
    assert pieces["mnist-mlp_1"].arguments["folder"] == "/data"
    assert set(images_study("cpu").plan(None)) == set(STUDY.plan(None))


def test_without_runs_nothing_is_measured():
    assert {each.verdict for each in judged(Results())} == {Verdict.NOT_MEASURED}
    outcome = STUDY.assess({})
    assert outcome.judgements[0].verdict is Verdict.NOT_MEASURED
    assert len(outcome.tables) == 5


@pytest.mark.parametrize(
    ("accuracy", "seeds", "verdict"),
    [(0.9771, 5, Verdict.REPRODUCED), (0.9769, 5, Verdict.NOT_REPRODUCED), (0.99, 4, Verdict.UNDECIDED)],
)
def test_the_cited_claim_is_judged_by_couplings_alone_and_all_seeds(accuracy, seeds, verdict):
    each = EXPERIMENTS["which-all-couplings"]
    run = {"experiment": each.name, "settings": each.settings, "accuracy": accuracy, "untrained_accuracy": 0.1}
    run |= {"unsettled": 0, "unproved": 0}
    results = Results(tuple({**run, "seed": seed} for seed in range(seeds)))
    judgement = judged(results)[0]
    assert judgement.verdict is verdict
    assert judgement.claim.asks == (
        "Reproduced if the mean accuracy on the test images (MNIST, all couplings) is at least 97.7 %, a tenth of a "
        "point less."
    )


def test_checks_are_made_on_what_there_is(small_table):
    path, _, _ = small_table
    found = {each.claim.key: each for each in judged(Results.read(path))}
    assert found["images-couplings"].kept is False  # in one epoch
    assert found["images-gradients"].kept is True
    assert found["images-settled"].kept is True


def test_tables_hold_the_figures_of_the_file(small_table, tmp_path):
    path, small, _ = small_table
    made, results = images_tables(path), Results.read(path)
    for name in ("mnist-mlp", "fashion-conv", "cifar-conv"):
        line = next(line for line in made["images"].splitlines() if line.startswith(f"| {name} |"))
        values = [100 * each["accuracy"] for each in results.of(small[name])]
        assert f"| 2 | {np.mean(values):.2f} ± {np.std(values, ddof=1):.2f} | {min(values):.2f} |" in line
    assert "not measured" not in made["images"] + made["images-which"] + made["images-gradients"]
    assert "| 97.77% |" in made["images-peers"]
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- table images-which -->\nold\n<!-- end of table -->\nafter\n", encoding="utf-8")
    write_page(page, results)
    text = page.read_text(encoding="utf-8")
    assert made["images-which"] in text
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert with_tables(text, results) == text


def test_pages_that_are_not_there_or_ask_for_other_tables_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no page"):
        write_page(tmp_path / "none.md", Results())
    with pytest.raises(ValueError, match="There is no table 'other'"):
        with_tables("<!-- table other -->\n<!-- end of table -->", Results())


def test_the_page_shows_the_file_digit_by_digit():
    text, results = PAGE.read_text(encoding="utf-8"), Results.read(RESULTS)
    assert set(re.findall(r"<!-- table ([\w-]+) -->", text)) == set(images_tables(RESULTS))
    assert with_tables(text, results) == text


def test_every_run_of_the_file_belongs_to_the_table():
    """Settings and whole plans are those that stand there now, and no run is there twice.

    A field that a plan has got since then must do nothing unless it is set.
    """
    results, plain = Results.read(RESULTS), pg.Plan.images()
    places = [(each["experiment"], each["seed"]) for each in results.runs]
    assert len(set(places)) == len(places)
    for each in results.runs:
        experiment = EXPERIMENTS[each["experiment"]]
        assert each["settings"] == experiment.settings
        plan = {name: work._words(value) for name, value in vars(experiment.made_plan()).items()}
        later = {name: work._words(getattr(plain, name)) for name in plan.keys() - each["plan"].keys()}
        assert each["plan"] | later == plan
        assert all(value in (None, [], "none") for value in later.values())


# --- The command line -------------------------------------------------------------------------------------------

STREAM = np.random.default_rng(5)
COUNTS = {"train": 60, "test": 20}


def _drawn(count):
    """Return small images of ten classes that can be told apart: noise, and a bright pixel for the class."""
    pixels, labels = STREAM.integers(0, 90, (count, 36), dtype=np.uint8), (np.arange(count) % 10).astype(np.uint8)
    pixels[np.arange(count), 3 * labels] = 255
    return pixels.reshape(count, 6, 6), labels


PARTS = {name: _drawn(count) for name, count in COUNTS.items()}
DIGESTS = {name: hashlib.sha256(x.tobytes() + y.tobytes()).hexdigest() for name, (x, y) in PARTS.items()}


def lay_images(folder):
    for name, part in (("train", "train"), ("t10k", "test")):
        for kind, array in zip(("images-idx3", "labels-idx1"), PARTS[part], strict=True):
            head = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
            (folder / f"{name}-{kind}-ubyte").write_bytes(head + array.tobytes())
    return folder


@pytest.fixture
def small_images(tmp_path, monkeypatch):
    monkeypatch.delenv("PHASEGRAD_DATA", raising=False)
    small = dataclasses.replace(images.MNIST, shape=(1, 6, 6), counts=COUNTS, digests=DIGESTS)
    monkeypatch.setattr(images, "MNIST", small)
    monkeypatch.chdir(tmp_path)
    return lay_images(tmp_path)


def test_training_on_images_writes_model_picture_and_figures(small_images, here):
    words = ("--data", str(small_images), "--hidden", "12", "--epochs", "12", "--seeds", "0,3", "--device", "cpu")
    files = ("--save", "m.npz", "--plot", "m.svg", "--json", "m.json")
    result = here("train", "mnist", *words, "--learning-rate", "0.02", "--shifts", *files)
    assert result.returncode == 0, result.stderr
    assert "MNIST: 2 runs of 36-12-10, 12 epochs" in result.stdout
    assert "unproved" in result.stdout
    assert result.stderr.count("after 12 epochs") == 2
    runs = json.loads(Path("m.json").read_text())["runs"]
    assert [each["seed"] for each in runs] == [0, 3]
    assert all(each["device"] == "cpu" and len(each["test_accuracy_history"]) == 13 for each in runs)
    assert Path("m.svg").read_text().count("confusion") == 0
    model = pg.Model.load("m.npz")
    pixels, labels = PARTS["test"]
    rows = [",".join(model.features), *(",".join(map(str, row)) for row in pixels.reshape(-1, 36).tolist())]
    Path("samples.csv").write_text("\n".join(rows))
    told = here("predict", "m.npz", "samples.csv", "--json", "classes.json")
    assert told.returncode == 0, told.stderr
    answers = json.loads(Path("classes.json").read_text())["classes"]
    best = max(runs, key=lambda each: each["train_accuracy"])
    assert np.mean(np.array(answers, dtype=int) == labels) == pytest.approx(best["test_accuracy"])


def test_ctrl_c_within_an_epoch_ends_with_the_last_full_one(small_images, here, monkeypatch):
    from phasegrad.training._step import Step

    play, count = Step.play, []

    def played(step, noise):
        count.append(noise)
        if len(count) == 8:  # three batches an epoch: in the middle of the third
            raise KeyboardInterrupt
        play(step, noise)

    monkeypatch.setattr(Step, "play", played)
    words = ("--data", str(small_images), "--hidden", "8", "--epochs", "9", "--device", "cpu", "--seeds", "0:3")
    images = pg.Plan.images
    monkeypatch.setattr(pg.Plan, "images", lambda **changes: images(**{"batch_size": 20, **changes}))
    result = here("train", "mnist", *words, "--json", "out.json", "--save", "m.npz")
    assert result.returncode == 130
    assert "Stopped after 1 of 3 networks, the last of them for 2 epochs" in result.stderr
    (kept,) = json.loads(Path("out.json").read_text())["runs"]
    assert kept["epochs"] == 2
    assert len(kept["train_loss"]) == 3
    assert pg.Model.load("m.npz").network.outputs


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mnist", "--device", "quantum"), "The device 'quantum' cannot be used"),
        (("mnist", "--device", "cuda:77"), "PyTorch has cpu"),
        (("mnist", "--dtype", "float16"), "--dtype must be one of"),
        (("mnist", "--method", "paper"), "--method has no effect on mnist"),
        (("mnist", "--vowels", "a,i"), "--vowels is for the task vowels. Leave it out for mnist."),
        (("mnist", "--evaluate-every", "2"), "--evaluate-every has no effect on mnist"),
        (("mnist", "--gradient", "finite_difference"), "for mnist. Got 'finite_difference'"),
        (("mnist", "--gradient", "adjoint", "--beta", "0.1"), "--beta has no effect with --gradient adjoint"),
        (("mnist",), "no folder is named"),
        (("mnist", "--data", "nowhere"), "There is no train-images-idx3-ubyte"),
        (("iris", "--device", "cpu"), "--device is for the tasks mnist, fashion_mnist, cifar10. Leave it out for iris"),
        (("vowels", "--data", "x"), "--data is for the tasks mnist"),
        (("xor", "--dtype", "float64"), "--dtype is for the tasks mnist"),
    ],
)
def test_wrong_words_are_refused(small_images, here, words, said):
    result = here("train", *words)
    assert result.returncode == 2
    assert said in " ".join(result.stderr.split())


def test_damaged_files_and_missing_pytorch_are_sentences(small_images, here, monkeypatch):
    place = small_images / "t10k-images-idx3-ubyte"
    place.write_bytes(place.read_bytes()[:-1] + b"\0")
    result = here("train", "mnist", "--data", str(small_images))
    assert result.returncode == 2
    assert "The test part in" in result.stderr
    monkeypatch.setattr("phasegrad._validation.find_spec", lambda name: None)
    result = here("train", "mnist", "--data", str(small_images))
    assert result.returncode == 2
    assert "phasegrad train mnist needs torch, which is not installed" in " ".join(result.stderr.split())


def test_memory_that_runs_out_is_a_sentence(small_images, here, monkeypatch):
    from phasegrad.training._torch import Trainer

    def full(*_):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(Trainer, "score", full)
    result = here("train", "mnist", "--data", str(small_images), "--device", "cpu")
    assert result.returncode == 2
    assert "The memory of cpu does not hold this training." in result.stderr


def test_reproduce_asks_for_images_by_name(here, tmp_path, monkeypatch):
    monkeypatch.delenv("PHASEGRAD_DATA", raising=False)
    for words, said in (
        (("sweep", "--device", "cpu"), "--device is for the study images"),
        (("--data", "x"), "--data is for the study images"),
        (("images", "--device", "quantum"), "The device 'quantum' cannot be used"),
    ):
        result = here("reproduce", *words, "--out", str(tmp_path / "out"))
        assert result.returncode == 2
        assert said in " ".join(result.stderr.split())
    assert "only on request: phasegrad reproduce images" in " ".join(here("studies").stdout.split())
    assert "images" in here("reproduce", "--help").stdout


def test_reproduce_computes_the_runs_as_pieces(here, tmp_path, monkeypatch, measured):
    few = {name: measured[1][name] for name in ("mnist-mlp", "which-all-couplings")}
    few = {name: dataclasses.replace(each, seeds=1) for name, each in few.items()}
    monkeypatch.setattr("phasegrad_paper.studies.images.claims.EXPERIMENTS", {**measured[1], **few})
    ours = dataclasses.replace(
        STUDY, checks=(), tables=lambda _: [],
        plan=lambda seeds: {k: v for k, v in images_study("cpu").plan(seeds).items() if k.rsplit("_")[0] in few},
    )  # fmt: skip
    monkeypatch.setattr("phasegrad_paper.studies.images_study", lambda *_: ours)
    result = here("reproduce", "images", "--device", "cpu", "--out", str(tmp_path / "out"))
    assert result.returncode == 0, result.stderr
    assert "images-couplings" in result.stdout
    found = json.loads((tmp_path / "out" / "results.json").read_text())["studies"]["images"]
    assert found["data"]["mnist-mlp_0"]["epochs"] == 1
    assert found["claims"][0]["verdict"] == "not reproduced"


def test_a_file_without_the_pixels_is_told_in_a_sentence(tmp_path):
    file = tmp_path / "samples.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="no column 'p0_0'") as found:
        read_samples(file, [f"p{row}_{column}" for row in range(28) for column in range(28)])
    assert len(str(found.value)) < 600
    assert str(found.value).endswith("...; the file has a, b.")
