"""Tables of the runs on images, beside the figures of others, and the page that shows them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phasegrad_paper.studies.images.experiments import ALL_COUPLINGS, EXPERIMENTS, GRADIENTS, WHICH
from phasegrad_paper.studies.images.results import Results, Run
from phasegrad_paper.studies.pages import fill_page, filled, markdown
from phasegrad_paper.studies.study import Table

NOTHING = "not measured"
_TRAINED = tuple(name for name in EXPERIMENTS if name not in (ALL_COUPLINGS, *WHICH, GRADIENTS))


@dataclass(frozen=True)
class Peer:
    """What others reached: the task, their network, the accuracy in words, the source, and the row to put beside it."""

    task: str
    network: str
    accuracy: str
    source: str
    ours: str


RAGEAU = 0.9777
GOWER, GOWER_FASHION = 0.972, 0.880
_RAGEAU = "Rageau and Grollier (2025), arXiv:2504.11884"
_GOWER = "Gower (2025), arXiv:2505.02103"
_SCELLIER = "Scellier (2024), arXiv:2402.11674"
_HOPFIELD = "Scellier and others (2023), arXiv:2312.15103"
_DEEPER = "Laborieux and others (2021), arXiv:2006.03824; Vinayak and Srinivasan (2025), arXiv:2509.26003"
PEERS = (
    Peer("MNIST", "phase oscillators, couplings learn", f"{RAGEAU:.2%}", _RAGEAU, ALL_COUPLINGS),
    Peer("MNIST", "oscillator Ising machine", f"{GOWER:.1%}", _GOWER, "mnist-mlp"),
    Peer("MNIST", "resistors and diodes, 2 h 36 min", "98.43%", _SCELLIER, "mnist-mlp-shifts"),
    Peer("MNIST", "convolutional, oscillators", "none known", "", "mnist-conv"),
    Peer("MNIST", "convolutional, Hopfield", "99.6%", _HOPFIELD, "mnist-conv"),
    Peer("Fashion-MNIST", "oscillator Ising machine", f"{GOWER_FASHION:.1%}", _GOWER, "fashion-mlp"),
    Peer("Fashion-MNIST", "resistors and diodes", "89.7%", _SCELLIER, "fashion-mlp"),
    Peer("Fashion-MNIST", "convolutional, oscillators", "none known", "", "fashion-conv"),
    Peer("CIFAR-10", "convolutional, oscillators", "none known", "", "cifar-conv"),
    Peer("CIFAR-10", "convolutional, Hopfield", "88 to 94%", _DEEPER, "cifar-conv"),
)


def tables(results: Results) -> list[Table]:
    """Return all tables; what there is no run of is not measured."""
    return [_trained(results), _which(results), _gradients(results), _peers(results)]


def images_tables(path: Path) -> dict[str, str]:
    """Return the tables of a file of results as Markdown, by name."""
    return {table.name: markdown(table) for table in tables(Results.read(path))}


def write_page(path: Path, results: Results) -> None:
    """Write the tables of a page anew; everything outside its markers stays."""
    fill_page(path, tables(results))


def with_tables(text: str, results: Results) -> str:
    """Return the text of a page with the tables between its markers written anew."""
    return filled(text, tables(results))


def _trained(results: Results) -> Table:
    columns = (
        "experiment", "network", "seeds", "test images, %", "worst, %", "in training, %", "unsettled", "unproved",
        "parameters", "epochs", "s an epoch", "s a run", "numbers", "device",
    )  # fmt: skip
    rows = []
    for name in _TRAINED:
        runs = results.of(EXPERIMENTS[name])
        figures = (
            _spread(runs), _percent(min, runs, "accuracy"), _percent(statistics.fmean, runs, "train_accuracy"),
            _total(runs, "unsettled"), _total(runs, "unproved"), _one(runs, "parameters"), _one(runs, "epochs"),
            _number(runs, "seconds_per_epoch", 2), _number(runs, "seconds", 0), _one(runs, "dtype"),
            _one(runs, "device"),
        )  # fmt: skip
        rows.append([name, EXPERIMENTS[name].title, len(runs), *figures])
    note = (
        "Test images: mean and standard deviation over the seeds, after the last epoch; one without a proved state is "
        "wrong. Unsettled and unproved: of the test images of all seeds. Training: while the parameters moved."
    )
    return Table("images", "Images", columns, rows, note)


def _which(results: Results) -> Table:
    rows = []
    for name in (ALL_COUPLINGS, *WHICH):
        runs = results.of(EXPERIMENTS[name])
        figures = _spread(runs), _percent(min, runs, "accuracy"), _percent(statistics.fmean, runs, "untrained_accuracy")
        rows.append([EXPERIMENTS[name].title, _one(runs, "parameters"), len(runs), *figures])
    columns = ("what learns", "parameters", "seeds", "test images, %", "worst, %", "untrained, %")
    note = (
        "MNIST, 784-1000-10: all begin at the same networks; where as many learn, one for each oscillator that moves."
    )
    return Table("images-which", "Which parameter learns images", columns, rows, note)


def _gradients(results: Results) -> Table:
    runs = results.of(EXPERIMENTS[GRADIENTS])
    layers = list(runs[0]["cosines"]["before"]) if runs else ["all"]
    rows = [
        [layer, *(_cosine([each["cosines"][when][layer] for each in runs]) for when in ("before", "after"))]
        for layer in layers
    ]
    columns = ("couplings into", "before training", "after training")
    note = (
        f"{EXPERIMENTS[GRADIENTS].title}: the least cosine over {len(runs)} seeds of the centred gradient and the "
        "exact one, on 64 training images, in double precision; all: with the fields."
    )
    return Table("images-gradients", "The nudged gradient and the exact one", columns, rows, note)


def _peers(results: Results) -> Table:
    rows = [
        [peer.task, peer.network, peer.accuracy, _spread(results.of(EXPERIMENTS[peer.ours])), peer.ours, peer.source]
        for peer in PEERS
    ]
    columns = ("task", "others' network", "others", "here, %", "experiment here", "source")
    return Table("images-peers", "What others reached by equilibrium propagation", columns, rows)


def _spread(runs: Sequence[Run]) -> str:
    """Return mean and standard deviation of the accuracy, in per cent."""
    values = [100 * each["accuracy"] for each in runs]
    if not values:
        return NOTHING
    mean = f"{statistics.fmean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.2f}"


def _percent(of: Callable[[list[float]], float], runs: Sequence[Run], figure: str) -> str:
    return f"{100 * of([each[figure] for each in runs]):.2f}" if runs else NOTHING


def _number(runs: Sequence[Run], figure: str, digits: int) -> str:
    return f"{statistics.fmean(each[figure] for each in runs):.{digits}f}" if runs else NOTHING


def _total(runs: Sequence[Run], figure: str) -> str:
    return str(sum(each[figure] for each in runs)) if runs else NOTHING


def _one(runs: Sequence[Mapping[str, Any]], figure: str) -> str:
    return ", ".join(dict.fromkeys(str(each[figure]) for each in runs)) or NOTHING


def _cosine(values: Sequence[float]) -> str:
    return f"{min(values):.6f}" if values else NOTHING
