"""The study of images: the cited claim of couplings alone on MNIST, and checks of ours against what others reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phasegrad_paper.studies.images import work
from phasegrad_paper.studies.images.experiments import ALL_COUPLINGS, EXPERIMENTS, GRADIENTS
from phasegrad_paper.studies.images.results import Results
from phasegrad_paper.studies.images.tables import GOWER, GOWER_FASHION, RAGEAU, tables
from phasegrad_paper.studies.measures import Quantity, Results as Found
from phasegrad_paper.studies.piece import Piece
from phasegrad_paper.studies.rules import at_least, none
from phasegrad_paper.studies.study import Claim, Judgement, Study, Table, check

#: The published figure and what is asked for: a tenth of a point less, since it is given to a tenth.
CITED = 0.978
_ROUNDING = 0.001
_FAITHFUL = 0.99


def _seen(results: Found, name: str) -> list[Mapping[str, Any]]:
    places = (f"{name}_{seed}" for seed in range(EXPERIMENTS[name].seeds))
    return [results[place] for place in places if place in results]


def _accuracy(name: str, figure: str = "accuracy") -> Quantity:
    words = "mean untrained accuracy" if figure == "untrained_accuracy" else "mean accuracy on the test images"
    title = f"MNIST, {EXPERIMENTS[name].title}" if name.startswith("which") else EXPERIMENTS[name].title
    return Quantity.mean(f"{words} ({title})", lambda results: [each[figure] for each in _seen(results, name)])


def _lost(results: Found) -> list[bool]:
    """Return whether each run has test images that did not settle or are not proved to."""
    runs = [run for name in EXPERIMENTS for run in _seen(results, name)]
    return [run["unsettled"] + run["unproved"] > 0 for run in runs]


def _cosines(results: Found) -> list[float]:
    runs = _seen(results, GRADIENTS)
    return [value for run in runs for when in ("before", "after") for value in run["cosines"][when].values()]


_CLAIM = Claim(
    "images-couplings", "Section 2, section 6.3", f"{100 * CITED:.1f} %",
    "Learning couplings alone reaches 97.8 % on full MNIST in a dense network of oscillators.",
    at_least(_accuracy(ALL_COUPLINGS), CITED - _ROUNDING, "a tenth of a point less"),
    beside=tuple(_accuracy(name) for name in ("which-couplings", "which-frequencies", "which-field-phases")),
    controls=(_accuracy(ALL_COUPLINGS, "untrained_accuracy"),),
)  # fmt: skip
_CHECKS = (
    check(
        "images-peers", "Couplings and fields together reach on MNIST what others reached by couplings alone.",
        at_least(_accuracy("mnist-mlp"), RAGEAU, "Rageau and Grollier"),
    ),
    check(
        "images-ising", "They reach on MNIST what an oscillator Ising machine reached.",
        at_least(_accuracy("mnist-mlp"), GOWER, "Gower"),
    ),
    check(
        "images-fashion", "They reach on Fashion-MNIST what an oscillator Ising machine reached.",
        at_least(_accuracy("fashion-mlp"), GOWER_FASHION, "Gower"),
    ),
    check(
        "images-settled", "Every test image of every run has a state that is proved stable.",
        none(Quantity.count("number of runs with a test image without a proved state", _lost)),
    ),
    check(
        "images-gradients", "With two hidden layers the nudged gradient is the exact one, before and after training.",
        at_least(Quantity.smallest("least cosine of the two gradients", _cosines), _FAITHFUL),
    ),
)  # fmt: skip


def study(device: str = "cuda", folder: str | None = None) -> Study:
    """Return the study with its runs on a device, the images being in a folder."""

    def plan(seeds: int | None) -> dict[str, Piece]:
        pieces = {}
        for name, experiment in EXPERIMENTS.items():
            for seed in range(min(seeds or experiment.seeds, experiment.seeds)):
                options = {"settings": experiment.settings, "seed": seed, "device": device}
                if folder is not None:
                    options["folder"] = folder
                title = f"images, {name}, seed {seed}"
                pieces[f"{name}_{seed}"] = Piece(title, work.run, options, experiment.weight)
        return pieces

    return Study(
        name="images",
        title="Images on a GPU",
        question="How far do layered networks of oscillators get on MNIST, Fashion-MNIST and CIFAR-10?",
        protocol="Inputs as clamped phases in quadrature to the fields, couplings of both signs, centred nudges, "
        "cross-entropy on cosines, Adam with steps by fan-in; all settings in one table, five seeds each, accuracy on "
        "the test images after the last epoch.",
        claims=(_CLAIM,),
        checks=_CHECKS,
        plan=plan,
        tables=_tables,
    )


def judged(results: Results) -> list[Judgement]:
    """Return the judgements of claim and checks by a file of results, of which runs may be missing."""
    found = results.by_piece()
    missing = [name for name in STUDY.plan(None) if name not in found]
    return [claim.judge(found, missing) for claim in (*STUDY.claims, *STUDY.checks)]


def _tables(found: Found) -> list[Table]:
    names = ((name, seed) for name, each in EXPERIMENTS.items() for seed in range(each.seeds))
    runs = [
        {"experiment": name, "seed": seed, "settings": EXPERIMENTS[name].settings, **found[f"{name}_{seed}"]}
        for name, seed in names
        if f"{name}_{seed}" in found
    ]
    return tables(Results(tuple(runs)))


STUDY = study()
