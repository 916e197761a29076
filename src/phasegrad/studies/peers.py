"""The tasks of earlier work on oscillators, with a matched objective: XOR in small networks, and handwritten digits.

Wang, Wanjura and Marquardt (2024) trained XY oscillators with couplings and bias phases on XOR and on 8 x 8 digits. The
networks here are of that kind: inputs as clamped phases, couplings of both signs, bias fields, and no frequencies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from phasegrad import datasets
from phasegrad.studies import statistics, summary
from phasegrad.studies.piece import Piece
from phasegrad.studies.study import Claim, Judgement, Outcome, Study, Table, Verdict

SIZES = (4, 5, 10, 20, 50)
SMALL = 5  # the size whose success is asked of every seed
XOR_SEEDS = {size: 100 if size == SMALL else 20 for size in SIZES}
DIGIT_SEEDS = 5
HIDDEN = 100
WANG = 0.941


def xor(size: int, seeds: int) -> dict[str, Any]:
    """Train networks of ``size`` oscillators on the four corners of XOR and return how well each seed does."""
    from phasegrad.estimators import OscillatorClassifier

    data = datasets.xor()
    scores, before = [], []
    for seed in range(seeds):
        classifier = OscillatorClassifier(
            size - 4, skip=True, gain=2.0, input_scale=math.pi / 2, input_noise=0.0, restarts=5, learning_rate=0.1,
            epochs=60, random_state=seed,
        )  # fmt: skip
        classifier.fit(data.x_train, data.y_train)
        scores.append(float(classifier.score(data.x_train, data.y_train)))
        before.append(float(classifier.history_.train_accuracy[0]))
    return {"test": scores, "untrained": before}


def digits(seed: int) -> dict[str, Any]:
    """Train one classifier on Wang's split of the digits and return its scores."""
    from sklearn.linear_model import LogisticRegression

    from phasegrad.estimators import OscillatorClassifier

    data = datasets.digits()
    classifier = OscillatorClassifier(HIDDEN, learning_rate=0.003, batch_size=50, epochs=60, random_state=seed)
    untrained = OscillatorClassifier(HIDDEN, epochs=0, random_state=seed)
    regression = LogisticRegression(max_iter=1000).fit(data.x_train, data.y_train)
    classifier.fit(data.x_train, data.y_train)
    return {
        "test": float(classifier.score(data.x_test, data.y_test)),
        "untrained": float(untrained.fit(data.x_train, data.y_train).score(data.x_test, data.y_test)),
        "logistic": float(regression.score(data.x_test, data.y_test)),
        "unstable": int(np.sum(~classifier.settle(data.x_test).stable)),
        "skipped": int(classifier.history_.skipped[1:].sum()),
    }


def _plan(seeds: int | None) -> dict[str, Piece]:
    pieces = {}
    for size, most in XOR_SEEDS.items():
        count = min(seeds or most, most)
        pieces[f"xor_{size}"] = Piece(f"XOR, N = {size}", xor, {"size": size, "seeds": count}, 0.2 + 0.2 * count)
    for seed in range(min(seeds or DIGIT_SEEDS, DIGIT_SEEDS)):
        pieces[f"digits_{seed}"] = Piece(f"digits, seed {seed}", digits, {"seed": seed}, 12.0)
    return pieces


def _assess(results: Mapping[str, Any]) -> Outcome:
    runs = [results[name] for name in results if name.startswith("digits_")]
    scores, before, logistic = ([run[name] for run in runs] for name in ("test", "untrained", "logistic"))
    solved = {size: int(np.sum(np.array(results[f"xor_{size}"]["test"]) == 1.0)) for size in SIZES}
    counts = {size: len(results[f"xor_{size}"]["test"]) for size in SIZES}
    interval = statistics.mean(scores)
    words = ", ".join(f"{solved[size]} of {counts[size]} at N = {size}" for size in SIZES)
    dense, logic = CLAIMS
    judgements = [
        Judgement(
            dense,
            Verdict.REPRODUCED if interval.estimate >= WANG - 0.01 else Verdict.NOT_REPRODUCED,
            f"64-{HIDDEN}-10, the same split, {len(scores)} seeds: {summary.percent(interval.estimate)} "
            f"({', '.join(summary.percent(score) for score in scores)})",
            f"Couplings and fields alone reach {summary.percent(interval.estimate)} on the split of that work.",
            interval.estimate,
            f"Untrained {summary.percent(summary.mean(before))}; logistic regression "
            f"{summary.percent(summary.mean(logistic))}; {sum(run['unstable'] for run in runs)} test samples without a "
            "stable state.",
        ),
        Judgement(
            logic,
            Verdict.REPRODUCED if solved[SMALL] == counts[SMALL] else Verdict.NOT_REPRODUCED,
            f"XOR solved: {words}",
            f"{solved[SMALL]} of {counts[SMALL]} networks of {SMALL} oscillators solve XOR.",
            float(solved[SMALL]),
            f"Untrained, N = {SMALL}: {summary.percent(summary.mean(results[f'xor_{SMALL}']['untrained']))}. Up to "
            "five starts per seed, chosen by training cost.",
        ),
    ]
    rows = [
        _row(f"XOR, N = {size}", run["test"], run["untrained"], solved=solved[size])
        for size in SIZES
        for run in [results[f"xor_{size}"]]
    ]
    rows.append(_row(f"digits, 64-{HIDDEN}-10", scores, before, wang=WANG, logistic=summary.mean(logistic)))
    columns = ("task", "seeds", "solved", "accuracy, %", "Wang et al., %", "worst seed, %", "untrained, %")
    table = Table(
        "peers",
        "Tasks of earlier work",
        (*columns, "logistic regression, %"),
        rows,
        "XOR is scored on its four corners, which are all there is. One output per class makes four oscillators the "
        "smallest network. Digits: the first 100 images of each to train, the next 70 to test.",
    )
    return Outcome(judgements, [table], [], dict(results))


def _row(
    task: str,
    scores: list[float],
    untrained: list[float],
    *,
    solved: int | None = None,
    wang: float = math.nan,
    logistic: float = math.nan,
) -> list[Any]:
    shares = (summary.mean(scores), wang, min(scores), summary.mean(untrained), logistic)
    return [task, len(scores), solved, *(summary.cell(share) for share in shares)]


CLAIMS = (
    Claim(
        "peers-dense",
        "Learning couplings alone reaches 94.1 % on 8 x 8 digits (Wang and others).",
        "Sections 2 and 6.3",
        "94.1 %, 64-200-10",
        "Reproduced if the mean over all seeds of a network no larger is at least 93.1 %.",
    ),
    Claim(
        "peers-xor",
        "Small networks of oscillators learn XOR by equilibrium propagation (Wang and others).",
        "Section 2",
        "stated",
        "Reproduced if every seed of a network of five oscillators solves all four corners.",
    ),
)
STUDY = Study(
    "peers",
    "Tasks of earlier work",
    "Do networks with a matched objective learn what earlier oscillator networks learned?",
    "Inputs as clamped phases, signed couplings and bias fields, cross-entropy on the cosines of the outputs, centred "
    "nudges, Adam. XOR: one layer of hidden oscillators and direct couplings, 60 epochs at 0.1. Digits: 64-100-10, 60 "
    "epochs at 0.003 in batches of 50, settings chosen on a validation part of the training digits.",
    CLAIMS,
    _plan,
    _assess,
)
