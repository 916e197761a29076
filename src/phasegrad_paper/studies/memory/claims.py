"""The study of associative memory: recall by rule and pattern set, spurious states, capacity."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from phasegrad._validation import FloatArray
from phasegrad.memory import capacity, corrupt, hebbian, learn, letters, pseudo_inverse
from phasegrad_paper.studies.measures import Measure, Quantity, Results, Unit
from phasegrad_paper.studies.piece import Piece
from phasegrad_paper.studies.rules import at_least
from phasegrad_paper.studies.study import Study, Table, check

RULES = {"hebbian": hebbian, "pseudo-inverse": pseudo_inverse, "learned": learn}
LETTERS = ("CTX", "JCA", "ACE")
RANDOM = ("random 0", "random 1", "random 2")
FLIPS = (0.1, 0.2, 0.3)
SIZE, NUMBERS = 64, (2, 4, 6, 8, 10, 12, 16, 24, 32)
_COPIES, _STARTS = 50, 20


def patterns_of(name: str) -> FloatArray:
    """Return three patterns of 8 by 8 pixels by their name: letters, or random ones of a seed."""
    if name in LETTERS:
        return letters(name)
    return np.random.default_rng(int(name.split()[1])).choice([-1.0, 1.0], (3, 8, 8))


def recall(name: str, rule: str, flips: Sequence[float], copies: int, starts: int) -> dict[str, Any]:
    """Return the share of cues that a rule recalls exactly, by flipped pixels, and how many states are spurious."""
    patterns = patterns_of(name)
    begin = time.process_time()
    memory = RULES[rule](patterns)
    seconds = time.process_time() - begin
    rows = patterns.reshape(len(patterns), -1)
    between = rows @ rows.T / rows.shape[1]
    states = memory.states(starts)
    return {
        "flips": list(flips),
        "score": [memory.score(share, copies=copies, seed=1) for share in flips],
        "cues": copies * len(patterns),
        "largest_overlap": float(np.max(np.abs(between - np.eye(len(patterns))))),
        "states": len(states.equilibria),
        "spurious": states.spurious,
        "spurious_share": states.spurious_share,
        "cpu_seconds": seconds,
    }


def nearest(name: str, flips: Sequence[float], copies: int) -> dict[str, Any]:
    """Return the share of the same cues that are nearer to their own pattern than to every other one."""
    patterns = patterns_of(name)
    rows, own = patterns.reshape(len(patterns), -1), np.eye(len(patterns), dtype=bool)
    scores = []
    for share in flips:
        overlap = corrupt(rows, share, copies=copies, seed=1) @ rows.T
        others = np.max(np.where(own, -np.inf, overlap), axis=-1)
        scores.append(float(np.mean(np.diagonal(overlap, axis1=-2, axis2=-1) > others)))
    return {"score": scores}


def capacities(rule: str, size: int, numbers: Sequence[int], sets: int) -> dict[str, Any]:
    """Return the share of random patterns that are recalled, by their number."""
    found = capacity(size, list(numbers), rule=RULES[rule], sets=sets, copies=1)
    columns = {"patterns": found.patterns, "recalled": found.recalled, "error": found.error, "pixels": found.pixels}
    return {name: each.tolist() for name, each in columns.items()}


def _plan(seeds: int | None) -> dict[str, Piece]:
    del seeds
    pieces = {}
    for name in (*LETTERS, *RANDOM):
        for rule in RULES:
            options = {"name": name, "rule": rule, "flips": list(FLIPS), "copies": _COPIES, "starts": _STARTS}
            seconds = 15.0 if rule == "learned" else 6.0
            pieces[f"{name}, {rule}"] = Piece(f"memory, {name}, {rule}", recall, options, seconds)
        options = {"name": name, "flips": list(FLIPS), "copies": _COPIES}
        pieces[f"{name}, nearest"] = Piece(f"memory, {name}, nearest pattern", nearest, options, 1.0)
    for rule in ("hebbian", "pseudo-inverse"):
        options = {"rule": rule, "size": SIZE, "numbers": list(NUMBERS), "sets": 3}
        pieces[f"capacity, {rule}"] = Piece(f"memory, capacity, {rule}", capacities, options, 60.0)
    return pieces


def _mean(names: Sequence[str], rule: str) -> Quantity:
    """Return the share of cues with a fifth of the pixels flipped that a rule recalls, over sets of patterns."""

    def measured(results: Results) -> Measure:
        return Measure(float(np.mean([results[f"{name}, {rule}"]["score"][FLIPS.index(0.2)] for name in names])))

    kind = "random patterns" if names == RANDOM else " and ".join(names)
    return Quantity(f"share recalled with 20 % flipped, {rule}, {kind}", measured, Unit.NUMBER)


def _tables(results: Results) -> list[Table]:
    rows = []
    for name in (*LETTERS, *RANDOM):
        for rule in RULES:
            each = results.get(f"{name}, {rule}")
            if each is not None:
                shares = [f"{100 * share:.1f} %" for share in each["score"]]
                spurious = f"{each['spurious']} of {each['states']} ({100 * each['spurious_share']:.0f} %)"
                rows.append([name, f"{each['largest_overlap']:.2f}", rule, *shares, spurious])
        if f"{name}, nearest" in results:
            shares = [f"{100 * share:.1f} %" for share in results[f"{name}, nearest"]["score"]]
            rows.append([name, "", "nearest pattern", *shares, ""])
    heads = ("patterns", "largest overlap", "rule", *(f"{100 * share:.0f} % flipped" for share in FLIPS))
    note = (
        f"{3 * _COPIES} cues for each figure. Spurious states of those that {_STARTS} random starts met, and their "
        "share of the starts. The last row of a set counts cues that are nearer to their pattern than to the others."
    )
    found = [
        Table(
            "memory-recall", "Cues recalled with every pixel right", (*heads, "spurious"), rows, note
        )
    ]  # fmt: skip
    both = [results[key] for key in ("capacity, hebbian", "capacity, pseudo-inverse") if key in results]
    if len(both) == 2:
        lines = zip(both[0]["patterns"], *(each[key] for each in both for key in ("recalled", "pixels")), strict=True)
        cells = [[str(line[0]), *(f"{100 * share:.0f} %" for share in line[1:])] for line in lines]
        ways = ("patterns", "Hebbian", "pixels right", "pseudo-inverse", "pixels right")
        title = f"Random patterns in {SIZE} oscillators, 10 % of the pixels flipped"
        found.append(Table("memory-capacity", title, ways, cells))
    return found


STUDY = Study(
    name="memory",
    title="Associative memory",
    question="Do oscillators keep patterns and recall them from cues in which a fifth of the pixels is wrong?",
    protocol="Three patterns of 8 by 8 pixels in 64 oscillators, letters and random ones, by Hebb's rule, the "
    "pseudo-inverse and equilibrium propagation; a cue is a torque that is taken away before the state is read.",
    claims=(),
    checks=(
        check(
            "memory-hebbian", "Hebb's rule recalls random patterns.", at_least(_mean(RANDOM, "hebbian"), 0.9),
        ),
        check(
            "memory-learned", "Learned patterns are recalled, random ones.", at_least(_mean(RANDOM, "learned"), 0.99),
        ),
        check(
            "memory-correlated", "Learned patterns are recalled, correlated ones.",
            at_least(_mean(("JCA",), "learned"), 0.99),
        ),
    ),
    plan=_plan,
    tables=_tables,
)  # fmt: skip
