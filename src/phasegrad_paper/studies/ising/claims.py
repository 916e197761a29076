"""The study of Ising machines: cuts beside optima and simulated annealing, and learning with injection."""

from __future__ import annotations

from typing import Any

import numpy as np

from phasegrad_paper.studies.ising import work
from phasegrad_paper.studies.measures import Quantity, Results, Unit, average
from phasegrad_paper.studies.piece import Piece
from phasegrad_paper.studies.rules import at_least, at_most, every
from phasegrad_paper.studies.study import Study, Table, check

GRAPHS, RUNS = 20, 100
NODES, EDGES, LARGE, SPAN = 800, 19_176, 3, 400.0
XOR_SEEDS, XOR_EPOCHS, XOR_INJECTION = 5, 150, 0.2
HIDDEN, EPOCHS, SEEDS = 100, 40, 3
#: Injection into hidden oscillators, in units of the bias fields that they begin with, and whether it learns.
ARMS = {
    "without": (0.0, False),
    "weak": (0.1, True),
    "with": (0.2, True),
    "weak held": (0.1, False),
    "held": (0.2, False),
}
_BASELINE, _ALLOWED, _STILL_ON = 0.96, 0.02, 0.05


def _plan(seeds: int | None) -> dict[str, Piece]:
    graphs, large = min(seeds or GRAPHS, GRAPHS), min(seeds or LARGE, LARGE)
    options: dict[str, Any] = {"size": 20, "degree": 3, "graphs": graphs, "runs": RUNS}
    pieces = {"regular": Piece("ising, 3-regular graphs", work.regular_cuts, options, 5.0)}
    for seed in range(large):
        options = {"size": NODES, "edges": EDGES, "seed": seed, "runs": RUNS, "span": SPAN}
        pieces[f"large {seed}"] = Piece(f"ising, 800 nodes, graph {seed}", work.large_cut, options, 30.0)
    learners = {"injection": XOR_INJECTION, "seeds": min(seeds or XOR_SEEDS, XOR_SEEDS), "epochs": XOR_EPOCHS}
    pieces["xor"] = Piece("ising, XOR with injection", work.xor, learners, 40.0)
    for name, (injection, learns) in ARMS.items():
        for seed in range(min(seeds or SEEDS, SEEDS)):
            arm = {"injection": injection, "learns": learns, "hidden": HIDDEN, "epochs": EPOCHS, "seed": seed}
            pieces[f"digits {name} {seed}"] = Piece(f"ising, digits {name}, seed {seed}", work.digits, arm, 35.0)
    return pieces


def _large(results: Results, name: str) -> np.ndarray:
    return np.array([results[f"large {seed}"][name] for seed in range(LARGE) if f"large {seed}" in results])


def _short(results: Results) -> list[float]:
    """Return by which share the machine's cuts are smaller than those of simulated annealing."""
    return list(1 - _large(results, "cut") / _large(results, "annealed"))


def _digits(results: Results, arm: str, name: str = "accuracy") -> list[float]:
    """Return a figure of all seeds of one arm."""
    return [results[key][name] for seed in range(SEEDS) if (key := f"digits {arm} {seed}") in results]


def _lost(results: Results) -> list[float]:
    """Return by how much injection lowers the mean accuracy, arm by arm."""
    means = {arm: average(_digits(results, arm)) for arm in ARMS}
    return [means["without"] - means[arm] for arm in ARMS if arm != "without"]


def _left(results: Results) -> list[float]:
    """Return the injection that is left in networks where it learned."""
    return [left for arm, (_, learns) in ARMS.items() if learns for left in _digits(results, arm, "left")]


def _tables(results: Results) -> list[Table]:
    found = []
    if "regular" in results:
        each = results["regular"]
        rows = [
            [seed, int(cut), int(optimum), hits, "yes" if stable else "no"]
            for seed, (cut, optimum, hits, stable) in enumerate(
                zip(*(each[name] for name in ("cut", "optimum", "hits", "stable")), strict=True)
            )
        ]
        heads = ("graph", "best cut", "optimum", f"runs of {each['runs']} that found it", "stable")
        found.append(Table("ising-regular", "3-regular graphs of 20 nodes", heads, rows))
    names = [f"large {seed}" for seed in range(LARGE) if f"large {seed}" in results]
    rows = [
        [
            piece["seed"], int(piece["cut"]), f"{piece['mean']:.1f}", f"{piece['seconds']:.1f}",
            int(piece["annealed"]), f"{piece['annealed_mean']:.1f}", f"{piece['annealed_seconds']:.1f}",
            f"{100 * (1 - piece['cut'] / piece['annealed']):.2f} %",
        ]
        for piece in (results[name] for name in names)
    ]  # fmt: skip
    columns = (
        "graph", "machine, best", "machine, mean", "seconds", "annealing, best", "annealing, mean", "seconds",
        "machine below annealing",
    )  # fmt: skip
    note = f"{RUNS} runs of each; seconds are processor time."
    found.append(Table("ising-large", f"Random graphs of {NODES} nodes and {EDGES} edges", columns, rows, note))
    found.append(_learning(results))
    return found


def _learning(results: Results) -> Table:
    rows: list[list[Any]] = []
    if "xor" in results:
        xor = results["xor"]
        for arm, words in (("without", "none"), ("with", "learned"), ("held", "held")):
            solved = f"{np.sum(np.array(xor[arm]) == 1)} of {len(xor[arm])} solved"
            first = 0.0 if arm == "without" else xor["injection"]
            last = average(xor["left"]) if arm == "with" else first
            rows.append(["XOR, 2-4-2", words, f"{first:g}", f"{last:.2f}", solved, "", ""])
    for arm, (injection, learns) in ARMS.items():
        scores = _digits(results, arm)
        if scores:
            words = "learned" if learns else "held" if injection else "none"
            left, seconds = (average(_digits(results, arm, name)) for name in ("left", "seconds"))
            each = ", ".join(f"{100 * score:.1f}" for score in scores)
            figures = [f"{injection:g}", f"{left:.2f}", f"{100 * average(scores):.1f} %", each, f"{seconds:.0f}"]
            rows.append([f"digits, 64-{HIDDEN}-10, {EPOCHS} epochs", words, *figures])
    columns = ("task", "injection", "at first", "in the end", "test accuracy", "seeds", "seconds")
    note = (
        "Injection into hidden oscillators in units of the bias fields they begin with, in the end the mean of its "
        "absolute value; seconds are processor time of one training."
    )
    return Table("ising-learning", "Learning with injection", columns, rows, note)


STUDY = Study(
    name="ising",
    title="Oscillator Ising machines",
    question="Does a machine of oscillators find the largest cuts of graphs, and do networks learn with injection on?",
    protocol="Best of 100 runs on 3-regular graphs of 20 nodes, beside enumeration, and on random graphs of 800 nodes, "
    "beside simulated annealing in the same processor time; XOR and digits without second-harmonic injection, with one "
    "that learns and with one that is held, by settings chosen on a fifth of the training images.",
    claims=(),
    checks=(
        check(
            "ising-regular", "The machine finds the largest cut of 3-regular graphs of 20 nodes.",
            every(Quantity.count(
                "number of graphs whose optimum is found",
                lambda results: np.array(results["regular"]["cut"]) == np.array(results["regular"]["optimum"]),
            )),
        ),
        check(
            "ising-large", "On 800 nodes it comes within half a percent of simulated annealing.",
            at_most(Quantity.largest("largest share below simulated annealing", _short, Unit.PERCENT), 0.005),
        ),
        check(
            "ising-xor", "Networks learn XOR with injection on.",
            at_least(Quantity.count(
                "number of networks that solve XOR", lambda results: np.array(results["xor"]["with"]) == 1.0
            ), 0.8),
        ),
        check(
            "ising-baseline", "Without injection the network learns the digits.",
            at_least(Quantity.mean("mean accuracy without injection", lambda results: _digits(results, "without")),
                     _BASELINE),
        ),
        check(
            "ising-on", "Learning leaves the injection on.",
            at_least(Quantity.smallest("smallest mean injection after learning", _left, Unit.NUMBER), _STILL_ON),
        ),
        check(
            "ising-digits", "Digits are learned with injection as without it, held or learned.",
            at_most(Quantity.largest("largest mean loss of accuracy by injection", _lost, Unit.POINTS), _ALLOWED),
        ),
    ),
    plan=_plan,
    tables=_tables,
)  # fmt: skip
