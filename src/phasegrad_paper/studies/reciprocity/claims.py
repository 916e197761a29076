"""The study of reciprocity: Table 2 of the paper with a correction, and networks that learn without reciprocity."""

from __future__ import annotations

from typing import Any

import numpy as np

from phasegrad_paper.studies.measures import Quantity, Results, Unit
from phasegrad_paper.studies.piece import Piece
from phasegrad_paper.studies.reciprocity import work
from phasegrad_paper.studies.rules import at_least, at_most, every
from phasegrad_paper.studies.study import Claim, Study, Table, check

LEVELS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
FRAMES = {"held": True, "turning": False}
NETWORKS, LEARNERS, AT_ONCE = 50, 100, 10
TRAINED_AT, EPOCHS = 0.5, 20
#: Trainings by name: correction, and the first of 100 seeds. The number of epochs was chosen on the first hundred.
RUNS = {"plain": ("none", 0), "corrected": ("asymmetric", 0), "corrected, other seeds": ("asymmetric", LEARNERS)}
_GOOD, _AIM, _WELL = 1e-6, 1e-8, 0.95
_NAMES = {
    "plain": "one nudge of 1e-3", "corrected": "the same, corrected", "centred": "centred, corrected",
    "dyadic": "dyadic",
}  # fmt: skip


def _plan(seeds: int | None) -> dict[str, Piece]:
    pieces: dict[str, Piece] = {}
    options: dict[str, Any]
    for level in LEVELS:
        for frame, grounded in FRAMES.items():
            options = {"asymmetry": level, "seeds": min(seeds or NETWORKS, NETWORKS), "grounded": grounded}
            title = f"reciprocity, gradients at {level:g}, reference {frame}"
            pieces[f"gradients {level:g} {frame}"] = Piece(title, work.gradients, options, 10.0)
    learners = min(seeds or LEARNERS, LEARNERS)
    for name, (correction, begin) in RUNS.items():
        for first in range(begin, begin + learners, AT_ONCE):
            count = min(AT_ONCE, begin + learners - first)
            options = {"correction": correction, "asymmetry": TRAINED_AT, "epochs": EPOCHS}
            options |= {"first": first, "count": count}
            title = f"reciprocity, training, {name}, seeds {first} to {first + count - 1}"
            pieces[_training(name, first)] = Piece(title, work.training, options, 60.0)
    return pieces


def _off(results: Results, way: str, levels: tuple[float, ...] = LEVELS) -> list[float]:
    """Return 1 - cosine of all networks at some levels, in both frames, by frequencies and by couplings."""
    names = [f"gradients {level:g} {frame}" for level in levels for frame in FRAMES]
    return [value for name in names if name in results for by in work.BY for value in results[name][way][by]]


def _training(name: str, first: int) -> str:
    """Return the name of the piece of a training whose seeds begin at ``first``."""
    return f"training {name.partition(',')[0]} {first}"


def _trained(results: Results, name: str, figure: str = "trained") -> list[float]:
    begin = RUNS[name][1]
    pieces = [_training(name, first) for first in range(begin, begin + LEARNERS, AT_ONCE)]
    return [value for piece in pieces if piece in results for value in results[piece][figure]]


def _worst(way: str) -> Quantity:
    return Quantity.largest(
        f"largest 1 - cosine with the adjoint gradient at 5 to 100 % asymmetry ({_NAMES[way]})",
        lambda results: _off(results, way, LEVELS[1:]),
    )


def _well(name: str) -> Quantity:
    return Quantity.count(
        f"number of networks above {100 * _WELL:g} % on the test part ({name})",
        lambda results: np.array(_trained(results, name)) > _WELL,
    )


def _tables(results: Results) -> list[Table]:
    rows = []
    for level in LEVELS:
        cells: list[object] = [round(100 * level)]
        plain = _off(results, "plain", (level,))
        cells += [round(1 - each, 4) if plain else "" for each in (np.mean(plain or [0]), max(plain, default=0))]
        cells += [f"{max(_off(results, way, (level,)), default=np.nan):.1e}" for way in work.WAYS[1:]]
        rows.append([*cells, len(plain)])
    columns = (
        "asymmetry, %", "plain, mean cosine", "plain, worst cosine", "corrected, worst 1 - cosine",
        "centred and corrected, worst 1 - cosine", "dyadic, worst 1 - cosine", "gradients",
    )  # fmt: skip
    learned = []
    for name in RUNS:
        each = np.array(_trained(results, name))
        before = np.array(_trained(results, name, "untrained"))
        means = (before.mean(), each.mean(), each.min()) if each.size else ()
        figures: list[Any] = [round(100 * float(mean), 1) for mean in means]
        figures = figures or [""] * 3
        learned.append([name, *figures, f"{int(np.sum(each > _WELL))} of {each.size}"])
    return [
        Table("reciprocity-gradients", "Gradients without reciprocity", columns, rows,
              "By frequencies and by couplings, with the reference held and turning, all together."),
        Table("reciprocity-training", "Learning without reciprocity",
              ("gradient", "untrained, %", "trained, mean %", "trained, worst %", "above 95 %"), learned),
    ]  # fmt: skip


STUDY = Study(
    name="reciprocity",
    title="Corrected for coupling that is not reciprocal",
    question="Does an asymmetric correction give the exact gradient, and do networks learn by it?",
    protocol="Random networks of 15 oscillators, every direction of every coupling scaled by 1 + U(-a, a), the "
    "reference held or turning; gradients by frequencies and couplings against the adjoint one. 2+5+2 networks at "
    "a = 0.5 learn /a i/, frequencies and couplings of both directions, 20 epochs, 100 seeds and 100 others.",
    claims=(
        Claim(
            "reciprocity-table", "Table 2", "0.999766, 0.999026, 0.995767, 0.965372 at 5, 10, 20, 50 %",
            "The two-phase gradient degrades with the asymmetry of the coupling.",
            at_least(Quantity.mean("mean cosine of the plain gradient at 20 % asymmetry",
                                   lambda results: [1 - each for each in _off(results, "plain", (0.2,))], Unit.DIGITS),
                     0.98),
            control=at_most(_worst("corrected"), _GOOD),
            note="Corrected, it does not.",
        ),
    ),
    checks=(
        check("reciprocity-centred", "Centred nudges with the correction have the exact gradient at any asymmetry.",
              at_most(_worst("centred"), _AIM)),
        check("reciprocity-dyadic", "Two copies have the exact gradient at any asymmetry.",
              at_most(_worst("dyadic"), _AIM)),
        check("reciprocity-training", "Networks of 50 % asymmetry learn by the corrected gradient.",
              every(_well("corrected"))),
        check("reciprocity-others", "So do those of seeds on which nothing was chosen.",
              every(_well("corrected, other seeds"))),
    ),
    plan=_plan,
    tables=_tables,
)  # fmt: skip
