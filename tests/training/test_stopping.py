"""Ctrl-C and SIGTERM where training runs: everything around a training stops with it, and what was trained is kept.

Most signals are raised by the training itself, in this process; the long tests stop processes from outside.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import stopping_places
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from stopping_places import COMMANDS, LIBRARY

import phasegrad as pg
from phasegrad.hardware import _learning
from phasegrad.training import Interrupted
from phasegrad.training._batch import BatchEngine
from phasegrad.training._lanes import LaneEngine

pytestmark = pytest.mark.process

STOPS = (signal.SIGINT, signal.SIGTERM)
X, Y = load_iris(return_X_y=True)


@pytest.fixture
def stop_at(monkeypatch):
    """Return a function that lets the n-th call of a method raise a signal, and counts its calls."""

    def arrange(owner, name, call, number=signal.SIGINT):
        method, calls = getattr(owner, name), []

        def counted(*given):
            calls.append(given)
            if len(calls) == call:
                signal.raise_signal(number)
            return method(*given)

        monkeypatch.setattr(owner, name, counted)
        return calls

    return arrange


def classifier(**options):
    return pg.OscillatorClassifier(hidden=3, epochs=4, random_state=0, **options)


class TestFit:
    @pytest.mark.parametrize("kind", [pg.OscillatorClassifier, pg.OscillatorRegressor])
    def test_raises_and_keeps_the_last_full_epoch(self, kind, stop_at):
        estimator = kind(hidden=3, epochs=4, random_state=0)
        calls = stop_at(BatchEngine, "train", 3)
        with pytest.raises(KeyboardInterrupt) as stop:
            estimator.fit(X, Y)
        assert stop.type is KeyboardInterrupt
        assert estimator.training_.interrupted
        assert estimator.n_iter_ == 2
        assert estimator.history_.train_loss.size == 3
        assert estimator.predict(X).shape == Y.shape
        whole = kind(hidden=3, epochs=4, random_state=0).fit(X, Y)
        assert np.array_equal(estimator.history_.train_loss, whole.history_.train_loss[:3])
        (engine, *_) = calls[2]
        assert np.array_equal(estimator.network_.coupling, engine.progress.parameters["coupling"][0])

    def test_goes_on_by_warm_start(self, stop_at):
        estimator = classifier(warm_start=True)
        stop_at(BatchEngine, "train", 3)
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(X, Y)
        assert not estimator.fit(X, Y).training_.interrupted

    def test_before_the_first_epoch_leaves_the_estimator_as_it_was(self, stop_at):
        new, old = classifier(), classifier().fit(X[:100], Y[:100])
        before = dict(vars(old))
        for estimator in (new, old):
            stop_at(BatchEngine, "score", 1)
            with pytest.raises(KeyboardInterrupt):
                estimator.fit(X, Y)
        with pytest.raises(NotFittedError):
            new.predict(X)
        assert vars(old).keys() == before.keys()
        assert all(vars(old)[name] is value for name, value in before.items())

    def test_makes_no_more_restarts_and_keeps_the_best(self, stop_at):
        estimator = classifier(restarts=5)
        calls = stop_at(BatchEngine, "train", 6)
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(X, Y)
        assert len(calls) == 6
        assert estimator.n_iter_ == 4
        assert not estimator.training_.interrupted

    def test_one_epoch_more(self, stop_at):
        estimator = classifier().partial_fit(X, Y)
        stop_at(BatchEngine, "train", 1)
        with pytest.raises(KeyboardInterrupt):
            estimator.partial_fit(X, Y)
        assert estimator.n_iter_ == 1
        assert estimator.partial_fit(X, Y).n_iter_ == 2


class TestLoops:
    """Whoever trains more than once stops at the first training that is stopped."""

    @pytest.mark.parametrize(
        "search",
        [lambda: cross_val_score(classifier(), X, Y, cv=3), lambda: GridSearchCV(classifier(), {}, cv=3).fit(X, Y)],
        ids=["cross_val_score", "GridSearchCV"],
    )
    def test_of_scikit_learn(self, search, stop_at):
        calls = stop_at(BatchEngine, "train", 2)
        with pytest.raises(KeyboardInterrupt):
            search()
        assert len(calls) == 2

    def test_of_an_error_budget_which_reports_what_is_finished(self, stop_at):
        work, entries = pg.hardware.task("vowels", 1), []
        plan = work.plan.replace(epochs=1)
        updates = stop_at(_learning._Trainer, "update", 10)  # seven for each kind
        with pytest.raises(KeyboardInterrupt):
            pg.hardware.error_budget(
                work.networks, work.data, pg.hardware.preset("lc-board"), plan, report=entries.append
            )
        assert [entry.fault for entry in entries] == ["none"]
        assert len(updates) == 10

    def test_of_a_memory_that_learns(self, stop_at):
        stop_at(BatchEngine, "train", 1)
        with pytest.raises(KeyboardInterrupt):
            pg.memory.learn(np.random.default_rng(3).choice([-1, 1], (2, 8)), epochs=2)

    def test_of_the_package_call_nothing_that_goes_on(self):
        """`train` returns when it is stopped: inside the package only those may call it who look at the result."""
        package = Path(pg.__file__).parent
        imported = re.compile(r"from phasegrad\.training import(?:[^(\n]*|\s*\([^)]*)\btrain\b|phasegrad\.train\(")
        callers = [path for path in package.rglob("*.py") if imported.search(path.read_text())]
        assert callers == [package / "__init__.py"]


def test_what_a_stopped_training_raises_can_be_sent_to_another_process():
    import pickle

    result = pg.train(pg.layered(2, 3, 2), pg.datasets.vowels(["a", "i"]), pg.Plan.paper(epochs=0))
    again = pickle.loads(pickle.dumps(Interrupted.after(result)))
    assert again.training.state.epoch == 0


def test_compiled_code_is_left_often_enough_to_be_stopped(monkeypatch):
    calls, train = [], LaneEngine.train

    def noted(self, orders, *given):
        calls.append(orders.shape[1] * orders.shape[2])
        return train(self, orders, *given)

    monkeypatch.setattr(LaneEngine, "train", noted)
    monkeypatch.setattr("phasegrad.training._train._UPDATES_AT_ONCE", 1000)
    data = pg.datasets.vowels(["a", "i"])
    plan = pg.Plan.paper(epochs=10, evaluate_every=10)
    many = pg.train(pg.layered(2, 3, 2), data, plan)
    assert len(calls) > 1
    assert max(calls) <= 1000
    monkeypatch.setattr("phasegrad.training._train._UPDATES_AT_ONCE", 10**9)
    assert np.array_equal(many.network.omega, pg.train(pg.layered(2, 3, 2), data, plan).network.omega)
    assert max(calls) > 1000


@pytest.mark.parametrize("number", STOPS)
class TestCommands:
    @pytest.fixture(autouse=True)
    def elsewhere(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)

    def test_train(self, number, here, stop_at):
        stop_at(LaneEngine, "train", 3, number)
        words = ("--epochs", "40", "--evaluate-every", "5", "--json", "out.json", "--seeds", "0:2")
        result = here("train", "vowels", *words)
        assert result.returncode == 128 + number
        assert "Stopped after epoch 5 of 40" in result.stderr
        assert json.loads(Path("out.json").read_text())["interrupted"] is True

    def test_train_an_estimator_seed_after_seed(self, number, here, stop_at):
        # One epoch without training for the scores before, and then four for every seed.
        calls = stop_at(BatchEngine, "train", 7, number)
        result = here(
            "train", "vowels", "--method", "classifier", "--epochs", "4", "--seeds", "0:5", "--json", "out.json"
        )
        assert result.returncode == 128 + number
        assert "Stopped after 2 of 5 classifiers, the last of them for 2 epochs" in result.stderr
        assert len(json.loads(Path("out.json").read_text())["runs"]) == 2
        assert len(calls) == 7

    def test_chip(self, number, here, stop_at):
        stop_at(_learning._Trainer, "update", 10, number)
        result = here("chip", "vowels", "--chips", "1", "--epochs", "1", "--json", "out.json")
        assert result.returncode == 128 + number
        assert "faults: none: mean accuracy" in result.stderr
        assert "Stopped after 1 of 7 trainings; all above is of these." in result.stderr
        assert "none" in result.stdout
        assert "all together" not in result.stdout
        found = json.loads(Path("out.json").read_text())
        assert found["interrupted"] is True
        assert [each["fault"] for each in found["faults"]] == ["none"]

    def test_bench(self, number, here, stop_at, monkeypatch):
        """The third training of the lanes is the experiment, of which a ratio is made."""
        for name, value in {"NETWORKS": 4, "KERNEL_NETWORKS": 4, "PLAIN_UPDATES": 5, "KERNEL_EPOCHS": 1}.items():
            monkeypatch.setattr(f"phasegrad_bench._small.{name}", value)
        calls = stop_at(LaneEngine, "train", 3, number)
        result = here("bench", "--rounds", "2", "--json", "out.json")
        assert result.returncode == 128 + number
        assert result.stdout == ""
        assert "no figures are shown" in result.stderr
        assert not Path("out.json").exists()
        assert len(calls) == 3

    def test_reproduce(self, number, here, stop_at):
        calls = stop_at(LaneEngine, "train", 2, number)
        result = here("reproduce", "ablation", "--seeds", "1", "--workers", "1", "--out", "out")
        assert result.returncode == 128 + number
        assert "Stopped. 0 of " in result.stderr
        assert not list(Path("out/pieces").glob("*.json"))
        assert len(calls) == 2


@pytest.mark.slow
@pytest.mark.parametrize("number", STOPS)
@pytest.mark.parametrize("place", [*LIBRARY, *COMMANDS])
def test_processes_stop_with_all_that_they_started(place, number, tmp_path):
    """A library call answers SIGTERM as Python does, by ending; a command answers both signals alike."""
    command = [sys.executable, stopping_places.__file__, place]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "NO_COLOR": "1", "TERM": "dumb"},
    ) as process:  # fmt: skip
        while not (tmp_path / "training").exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        time.sleep(0.5)
        started = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        said, errors = process.communicate(timeout=60)
    assert not psutil.wait_procs(started, 60)[1]
    if place in COMMANDS:
        assert process.returncode == 128 + number
        assert "Stopped" in errors
        assert "Traceback" not in errors
    elif number == signal.SIGTERM:
        assert process.returncode == -signal.SIGTERM
    elif place == "train":
        assert (process.returncode, said) == (0, "interrupted\n")
    else:
        assert process.returncode == -signal.SIGINT
        assert "KeyboardInterrupt" in errors
        assert said == ("interrupted\n" if place == "fit" else "")
