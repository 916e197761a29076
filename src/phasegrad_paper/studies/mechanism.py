"""Why half of the seeds fail: the order of the two outputs, and the contradiction between cost and decision.

Let d be the phase of the first output minus that of the second, and c their mean. The class moves c, hardly d. The
decision takes the output nearer to phase zero: for c < 0 the larger phase, for c > 0 the smaller. So d > 0 labels
both classes right and d < 0 labels both wrong, while the cost, at its optimum, fixes the mean of d by the class counts
alone: d* = 2 margin (n_i - n_a) / n_train.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from phasegrad._validation import BoolArray, FloatArray
from phasegrad.runs import SUCCESS
from phasegrad_paper.studies import generalisation, statistics
from phasegrad_paper.studies.arms import MARGIN, Arm
from phasegrad_paper.studies.conditions import Condition, Conditions, cell, cells, failed, scores, succeeded
from phasegrad_paper.studies.measures import Measure, Quantity, Results, Unit, average
from phasegrad_paper.studies.rules import all_of, at_least, at_most, below, every
from phasegrad_paper.studies.study import Claim, Figure, Study, Table

FEW = 24
RATES = (0.001, 0.01, 0.1, 0.3, 0.5)
LONG = ((80, 0.01), (300, 0.01), (600, 0.01))
STARTS = ("random", "spectral", "anti-spectral")
_FM = {"task": "fm", "hidden": 10, "rate": 0.01, "evaluate_every": 10, "seeds": 20}
#: The settings that go through the same controls; FM as in its study.
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "ai": ("/a i/, frequencies, 2+5+2", {"evaluate_every": 200}),
    **{key: (name, {**options, "evaluate_every": 200}) for key, (name, options) in generalisation.SETTINGS.items()},
    "fm": ("FM, frequencies at 0.01, 10+10+2", _FM),
}
TRIVIAL_LOSS = MARGIN**2  # both outputs at phase zero
_CHANGES: dict[str, dict[str, Any]] = {
    **{start: {"start": start} for start in STARTS},
    "exchanged": {"exchanged": True},
    "reference": {"reference": 1},
}


def _conditions() -> Iterator[tuple[str, Condition]]:
    for key, (name, options) in SETTINGS.items():
        for change, more in _CHANGES.items():
            yield f"{key}_{change}", Condition(f"{name}, {change}", Arm(**options, **more))
    for start in STARTS:
        yield f"long_{start}", Condition(f"long training, {start}", Arm(start=start, stages=LONG, seeds=FEW))
    for rate in RATES:
        arm = Arm(start="spectral", learn="coupling", rate=rate, seeds=FEW)
        yield f"rate_{rate:g}", Condition(f"couplings at {rate:g}", arm)
    for learn in ("omega", "coupling"):
        arm = Arm(start="spectral", learn=learn, seeds=FEW, detail=True)
        yield f"offset_{learn}", Condition(f"one constant offset, {learn}", arm)


ARMS = Conditions(_conditions())


def _stages(results: Results, figure: str, stage: int = -1) -> FloatArray:
    """Return a figure of a stage of the long trainings, (starts, seeds)."""
    return np.array([np.array(results[f"long_{start}"]["stages"][figure])[:, stage] for start in STARTS])


def _long_count(words: str, start: str, stage: int = -1, more: int = 0) -> Quantity:
    """Return the successes of a long training, of all splits or of those with more /i/ (1) or more /a/ (-1)."""

    def won(results: Results) -> BoolArray:
        stages = results[f"long_{start}"]["stages"]
        chosen = np.sign(stages["surplus"]) == more if more else slice(None)
        return np.asarray((np.array(stages["accuracy"])[:, stage] > SUCCESS)[chosen])

    return Quantity.count(f"number of successes {words} ({start} start)", won)


def _distance(results: Results) -> FloatArray:
    return np.abs(_stages(results, "separation") - np.array(results["long_random"]["stages"]["optimum"]))


def _exchanges(words: str, arm: str) -> Quantity:
    words = f"number of seeds in which {words} exchanges success and failure"
    return Quantity.count(words, lambda results: succeeded(results[arm]) != succeeded(results["ai_random"]))


def _of_rates(results: Results, figure: str) -> list[float]:
    return [average(results[f"rate_{rate:g}"][figure]) for rate in RATES]


def _lowest(results: Results) -> int:
    return int(np.argmin(_of_rates(results, "train_loss")))


def _lowest_loss(results: Results) -> Measure:
    return Measure.mean(results[f"rate_{RATES[_lowest(results)]:g}"]["train_loss"])


def _accuracy_change(results: Results) -> Measure:
    accuracy = _of_rates(results, "test")
    return Measure(accuracy[_lowest(results)] - accuracy[0], len(results["rate_0.001"]["test"]))


def _offset(words: str, arm: str, figure: str) -> Quantity:
    return Quantity.mean(f"mean of {words} after taking one constant off both outputs", lambda r: r[arm][figure])


def _settings_table(results: Results) -> Table:
    rows = []
    for key, (name, _) in SETTINGS.items():
        run, logistic = results[f"{key}_random"], results[f"logistic_{ARMS[f'{key}_random'].arm.task}"]
        shares = (
            scores(run, failed), (np.array(run["separation"]) > 0) == succeeded(run),
            np.maximum(run["test"], results[f"{key}_exchanged"]["test"]), statistics.oriented(run["test"]),
            *(run[control] for control in ("untrained", "nearest", "majority")), logistic[: len(run["test"])],
        )  # fmt: skip
        won = [int(succeeded(results[f"{key}_{arm}"]).sum()) for arm in _CHANGES]
        rows.append([name, len(run["test"]), *won, *cells(shares)])
    return Table(
        "mechanism",
        "The same controls in every setting",
        (
            "setting", "seeds", "successes, random", "spectral", "spectral reversed", "outputs exchanged",
            "input 1 held", "failed seeds, %", "sign of d agrees with success, %", "better of both orders, %",
            "max(a, 1 - a), %", "untrained, %", "nearest target, %", "majority class, %", "logistic regression, %",
        ),
        rows,
        "As described, final epoch. d is the phase of the first output minus that of the second, averaged over the "
        "test part. Percentages are of the random start.",
    )  # fmt: skip


def _long_table(results: Results) -> Table:
    rows = []
    for start in STARTS:
        stages = results[f"long_{start}"]["stages"]
        accuracy, loss = np.array(stages["accuracy"]), np.array(stages["loss"])
        gap = np.abs(np.array(stages["separation"]) - np.array(stages["optimum"])[:, None])
        for k, epochs in enumerate(stages["epochs"][1:], 1):
            won = int(np.sum(accuracy[:, k] > SUCCESS))
            ends = [round(float(values[:, k - 1].mean()), 6) for values in (loss, gap)]
            rows.append([start, epochs, won, len(accuracy), cell(accuracy[:, k].mean()), *ends])
    columns = ("start", "epochs", "successes", "seeds", "mean accuracy, %", "mean cost", "mean |d - d*|, rad")
    note = "200 epochs at 0.001, then at 0.01; frequencies only, /a i/, as described."
    return Table("long-training", "Longer training from three starts", columns, rows, note)


def _rates_table(results: Results) -> Table:
    rows = []
    for rate in RATES:
        run = results[f"rate_{rate:g}"]
        shares = cells(run[score] for score in ("test", "nearest"))
        figures = [round(average(run["train_loss"]), 5), round(average(run["moved"]), 3), int(np.sum(run["skipped"]))]
        rows.append([rate, len(run["test"]), *shares, *figures])
    columns = ("rate", "seeds", "accuracy, %", "nearest target, %", "cost", "mean change of a coupling", "skipped")
    note = "Couplings only, spectral start, 200 epochs, /a i/, as described."
    return Table("coupling-rates", "Couplings at larger rates", columns, rows, note)


def _offset_table(results: Results) -> Table:
    omega, coupling = results["offset_omega"], results["offset_coupling"]
    rows = []
    for name, run, prefix, score in (
        ("untrained", omega, "untrained_", "untrained"),
        ("frequencies trained", omega, "", "test"),
        ("couplings trained", coupling, "", "test"),
    ):
        shares = cells(run[figure] for figure in (score, f"{prefix}offset_test"))
        phases = (average(np.abs(run[f"{prefix}offset"])), average(run[f"{prefix}separation"]))
        rows.append([name, *shares, *(round(phase, 4) for phase in phases)])
    columns = ("state", "test accuracy, %", "after subtracting m from both outputs, %", "mean |m|, rad", "mean d, rad")
    note = "m: midpoint of the classes' mean output phase on the training part. Spectral starts, /a i/."
    return Table("offset", "One constant phase offset", columns, rows, note)


_TABLES = (_settings_table, _long_table, _rates_table, _offset_table)


def _figures(results: Results) -> list[Figure]:
    panels = []
    for key, (name, _) in SETTINGS.items():
        run = results[f"{key}_random"]
        won = succeeded(run).tolist()
        panels.append({"title": name, "separation": run["separation"], "accuracy": run["test"], "success": won})
    rates: dict[str, Any] = {
        "rates": list(RATES),
        "accuracy": _of_rates(results, "test"),
        "loss": _of_rates(results, "train_loss"),
    }
    rates |= {"omega_loss": average(results["ai_random"]["train_loss"]), "trivial_loss": TRIVIAL_LOSS}
    starts = {}
    for start in STARTS:
        stages = results[f"long_{start}"]["stages"]
        starts[start] = {
            "epochs": stages["epochs"][1:],
            "success": (np.array(stages["accuracy"])[:, 1:] > SUCCESS).sum(axis=0).tolist(),
            "n": len(stages["accuracy"]),
            "separation": stages["separation"],
        }
    return [
        Figure(
            "mechanism",
            "Test accuracy against the phase difference d of the two outputs, one point per seed, random starts. Right "
            "of zero seeds succeed, left of zero the same network labels both classes wrong.",
            "Scatter plots, one per setting: points with positive difference have high accuracy, points with negative "
            "difference low accuracy.",
            {"panels": panels},
        ),
        Figure(
            "collapse",
            "Longer training from three starts: successes of the spectral seed are lost, those of its reverse return, "
            "and the output difference reaches the same optimum d* from everywhere.",
            "Left: number of successes against epochs, three lines that meet. Right: distance of the output difference "
            "from its optimum shrinking to zero for all three starts.",
            {"starts": starts, "optimum": results["long_random"]["stages"]["optimum"]},
        ),
        Figure(
            "coupling-rates",
            "Couplings only, at larger learning rates: the cost falls below that of doing nothing, the accuracy by the "
            "paper's decision falls with it.",
            "Two panels over the learning rate: accuracy falling and cost falling below the dashed line of the trivial "
            "solution.",
            rates,
        ),
    ]


_COSTS = Quantity.largest(
    "largest difference of a seed between the final costs from three starts",
    lambda results: np.ptp(_stages(results, "loss"), axis=0),
)
_FALL = Quantity.mean(
    "mean change of the cost by training frequencies",
    lambda r: np.subtract(r["ai_random"]["train_loss"], r["ai_random"]["untrained_loss"]),
    Unit.NUMBER,
)
_COST = Quantity.mean("mean cost after training frequencies", lambda r: r["ai_random"]["train_loss"], Unit.NUMBER)
_LOWEST = Quantity("lowest mean cost that couplings reach at any rate", _lowest_loss)
_ACCURACY = Quantity("change of accuracy from the smallest rate to that one", _accuracy_change, Unit.POINTS)
STUDY = Study(
    name="mechanism",
    title="The mechanism: why half of the seeds fail",
    question="What decides whether a seed succeeds?",
    protocol="As described, final epoch. Controls: sign of the output difference; spectral seed with its sign "
    "reversed; outputs exchanged; input 1 held instead of input 0; training on to 1180 epochs from three starts (24 "
    "seeds); couplings at rates up to 0.5; one constant phase offset; and the same for /o u/, couplings, 2+8+2 and FM.",
    claims=(
        Claim(
            "mechanism-landscape", "Abstract, sections 6.4 and 7.4", "a loss-landscape property, not a gradient error",
            "The failure of half of the random starts is a property of the loss landscape.",
            at_most(ARMS.order_agrees("ai_random"), 0.9, "else success is an orientation"),
            beside=(ARMS.order_agrees("ai_random", "untrained_separation"), ARMS.mean("ai_random", failed)),
            controls=(
                _exchanges("exchanging the two outputs", "ai_exchanged"),
                _exchanges("holding input 1 at phase zero instead of input 0", "ai_reference"),
                ARMS.count("ai_anti-spectral"),
            ),
            note="Chance is 50 %. Both inputs are data: cost and decision depend on which one is the reference.",
        ),
        Claim(
            "mechanism-basin", "Introduction, section 6.4", "find the right basin, not fix the gradient",
            "Failure is consistent with multistability: the start must be in the right basin.",
            at_least(_COSTS, 1e-4, "as basins of different cost have"),
            beside=(Quantity.largest("largest distance of d from its optimum d* in rad", _distance),),
            note="The optimum d* = 2 margin (n_i - n_a) / n_train follows from the class counts of the split alone.",
        ),
        Claim(
            "mechanism-lasting", "Abstract, conclusion", "100 of 100 after 200 epochs",
            "Spectral seeding eliminates the failure mode.",
            every(_long_count("after 200 epochs", "spectral", 1)),
            control=below(_long_count("after 1180 epochs", "spectral"), 1.0),
            controls=(
                _long_count("after 1180 epochs", "random"),
                _long_count("after 1180 epochs", "anti-spectral"),
                _long_count("with more /i/ than /a/ in the training part", "spectral", more=1),
                _long_count("with more /a/ than /i/ in the training part", "spectral", more=-1),
            ),
        ),
        Claim(
            "mechanism-descent", "Sections 6.1 and 8", "targets -0.2 and +0.2, decision by the largest cosine",
            "Nudged phases shift by exactly what is needed to descend the loss, so that the task is learned.",
            below(_FALL, 0),
            control=all_of(below(_LOWEST, TRIVIAL_LOSS, "the cost of both outputs at phase zero"), below(_ACCURACY, 0)),
            beside=(_COST,),
            controls=(
                ARMS.mean("ai_random", score="nearest"),
                _offset("untrained networks", "offset_omega", "untrained_offset_test"),
                _offset("trained frequencies", "offset_omega", "offset_test"),
                _offset("trained couplings", "offset_coupling", "offset_test"),
            ),
            note="The constant is the midpoint of the two classes' mean output phase on the training part.",
        ),
    ),
    plan=ARMS.plan,
    tables=lambda results: [table(results) for table in _TABLES],
    figures=_figures,
)  # fmt: skip
