"""The study of Ising machines: cuts beside optima and simulated annealing, and learning with injection."""

from __future__ import annotations

from typing import Any

import numpy as np

from phasegrad.studies.ising import work
from phasegrad.studies.measures import Measure, Quantity, Results, Unit
from phasegrad.studies.piece import Piece
from phasegrad.studies.rules import at_least, at_most, every
from phasegrad.studies.study import Study, Table, check

GRAPHS, RUNS = 20, 100
NODES, EDGES, LARGE, SPAN = 800, 19_176, 3, 400.0
XOR_SEEDS, XOR_EPOCHS, XOR_INJECTION = 5, 150, 0.2
HIDDEN, EPOCHS, INJECTIONS = 100, 10, {"without": 0.0, "weak": 0.1, "with": 0.2}
_ARMS = ("without", "with")


def _plan(seeds: int | None) -> dict[str, Piece]:
    graphs, large = min(seeds or GRAPHS, GRAPHS), min(seeds or LARGE, LARGE)
    options: dict[str, Any] = {"size": 20, "degree": 3, "graphs": graphs, "runs": RUNS}
    pieces = {"regular": Piece("ising, 3-regular graphs", work.regular_cuts, options, 5.0)}
    for seed in range(large):
        options = {"size": NODES, "edges": EDGES, "seed": seed, "runs": RUNS, "span": SPAN}
        pieces[f"large {seed}"] = Piece(f"ising, 800 nodes, graph {seed}", work.large_cut, options, 30.0)
    learners = {"injection": XOR_INJECTION, "seeds": min(seeds or XOR_SEEDS, XOR_SEEDS), "epochs": XOR_EPOCHS}
    pieces["xor"] = Piece("ising, XOR with injection", work.xor, learners, 40.0)
    for name, injection in INJECTIONS.items():
        arm = {"injection": injection, "hidden": HIDDEN, "epochs": EPOCHS, "seed": 0}
        pieces[f"digits {name}"] = Piece(f"ising, digits {name} injection", work.digits, arm, 100.0)
    return pieces


def _large(results: Results, name: str) -> np.ndarray:
    return np.array([results[f"large {seed}"][name] for seed in range(LARGE) if f"large {seed}" in results])


def _short(results: Results) -> list[float]:
    """Return by which share the machine's cuts are smaller than those of simulated annealing."""
    return list(1 - _large(results, "cut") / _large(results, "annealed"))


def _lost(results: Results) -> Measure:
    return Measure(results["digits without"]["accuracy"] - results["digits with"]["accuracy"])


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
    rows = []
    if "xor" in results:
        solved = [f"{np.sum(np.array(results['xor'][arm]) == 1)} of {len(results['xor'][arm])} solved" for arm in _ARMS]
        rows.append([f"XOR, 2-4-2, {results['xor']['injection']:g}", *solved])
    for name in ("weak", "with"):
        if f"digits {name}" in results:
            arms = [results[f"digits {arm}"] for arm in ("without", name)]
            words = [f"{100 * arm['accuracy']:.1f} % in {arm['seconds']:.0f} s" for arm in arms]
            rows.append([f"digits, 64-{HIDDEN}-10, {arms[0]['epochs']} epochs, {arms[1]['injection']:g}", *words])
    found.append(
        Table(
            "ising-learning", "Learning with injection", ("task, injection at first", "without", "with injection"), rows
        )
    )
    return found


STUDY = Study(
    name="ising",
    title="Oscillator Ising machines",
    question="Does a machine of oscillators find the largest cuts of graphs, and do networks learn with injection on?",
    protocol="Best of 100 runs on 3-regular graphs of 20 nodes, beside enumeration, and on random graphs of 800 nodes, "
    "beside simulated annealing in the same processor time; XOR and digits with second-harmonic injection that learns.",
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
            "ising-digits", "Digits are learned with injection as without it.",
            at_most(Quantity("loss of accuracy by injection", _lost, Unit.POINTS), 0.02),
        ),
    ),
    plan=_plan,
    tables=_tables,
)  # fmt: skip
