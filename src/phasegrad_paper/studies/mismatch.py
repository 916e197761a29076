"""Section 7.3: learning on chips whose oscillators, couplings, meters and times are not ideal."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from phasegrad.hardware import TOGETHER, Hardware, error_budget, learn_with, task
from phasegrad.measurement import Readout
from phasegrad.training import TrainingWarning
from phasegrad_paper.studies.measures import Measure, Quantity, Results, Unit
from phasegrad_paper.studies.piece import Piece
from phasegrad_paper.studies.rules import all_of, at_least, at_most
from phasegrad_paper.studies.study import Study, Table, check

CHIPS = 100
SWEPT = 6
#: One per cent of mismatch, five levels, a picosecond at 3 GHz.
FAULTS: dict[str, Any] = {"frequency_mismatch": 0.01, "coupling_mismatch": 0.01, "coupling_levels": 5}
SWEEPS: dict[str, tuple[Any, ...]] = {
    "frequency_mismatch": (0.003, 0.02),
    "coupling_mismatch": (0.03, 0.1),
    "coupling_levels": (2, 3),
    "frequency_bits": (2, 4),
    "reading_bits": (4, 6),
    "settling_time": (0.1, 0.3),
}
_WORDS = {
    "frequency_mismatch": "frequency mismatch", "coupling_mismatch": "coupling mismatch",
    "coupling_levels": "coupling levels", "frequency_bits": "bits of frequencies", "reading_bits": "bits of readings",
    "settling_time": "settling time",
}  # fmt: skip


def together() -> Hardware:
    """Return the hardware with all faults of this study."""
    return Hardware(**FAULTS, readout=Readout.from_time(1e-12, 3e9))


@contextmanager
def _counting_shortened_updates() -> Iterator[None]:
    """Ignore the warning that a nudge unlocks samples: the tables of this study count such updates."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "A nudge of .* unlocked", TrainingWarning)
        yield


def learned(chips: int) -> dict[str, Any]:
    """Let chips learn vowels with all faults; return their scores."""
    chosen = task("vowels", chips)
    with _counting_shortened_updates():
        entry, _ = learn_with(chosen.fitted(together()), chosen.networks, chosen.data, chosen.plan)
    return entry.as_dict()


def budget(chips: int) -> dict[str, Any]:
    """Let chips learn vowels with no fault, each alone and all together; return their scores."""
    chosen = task("vowels", chips)
    with _counting_shortened_updates():
        return error_budget(chosen.networks, chosen.data, chosen.fitted(together()), chosen.plan).as_dict()


def swept(name: str, value: Any, chips: int) -> dict[str, Any]:
    """Let chips learn vowels with one fault of some size; return their scores."""
    chosen = task("vowels", chips)
    changes = {"readout": Readout(bits=value)} if name == "reading_bits" else {name: value}
    kind = chosen.fitted(Hardware(**changes))
    with _counting_shortened_updates():
        entry, _ = learn_with(kind, chosen.networks, chosen.data, chosen.plan, name)
    return {"value": value, **entry.as_dict()}


def _plan(seeds: int | None) -> dict[str, Piece]:
    chips, few = (min(seeds or most, most) for most in (CHIPS, SWEPT))
    pieces = {
        "together": Piece("chips with all faults learn vowels", learned, {"chips": chips}, 0.25 * chips),
        "budget": Piece("chips, each fault alone", budget, {"chips": few}, 1.5 * few),
    }
    for name, values in SWEEPS.items():
        for value in values:
            options = {"name": name, "value": value, "chips": few}
            pieces[f"{name}_{value}"] = Piece(f"chips, {_WORDS[name]} {value}", swept, options, 0.3 * few)
    return pieces


def _accuracies(results: Results) -> list[float]:
    return list(results["together"]["accuracies"])


def _cost(results: Results) -> Measure:
    """Return what the faults cost chips that learn, against none."""
    first, *_, last = results["budget"]["faults"]
    return Measure(first["mean_accuracy"] - last["mean_accuracy"], len(last["accuracies"]))


def _cosine(results: Results) -> Measure:
    return Measure(float(results["together"]["mean_cosine"]), len(results["together"]["accuracies"]))


_MEAN = Quantity.mean("mean test accuracy of chips with all faults that learned", _accuracies)
_WORST = Quantity.smallest("accuracy of the worst of them", _accuracies)
_DEPLOYED = Quantity.mean(
    "mean test accuracy of such chips given what ideal networks had learned", lambda r: r["budget"]["deployed"]
)
_COST = Quantity("mean accuracy that the faults cost", _cost, Unit.POINTS)
_GRADIENT = Quantity("mean cosine of their first gradient and the exact one", _cosine, Unit.DIGITS)


def _tables(results: Results) -> list[Table]:
    columns = (
        "chips", "faults", "mean accuracy, %", "worst chip, %", "mean cosine of the first gradient", "samples skipped",
        "updates shortened",
    )  # fmt: skip
    entries = [results["together"], *results["budget"]["faults"]]
    rows: list[list[Any]] = [[len(each["accuracies"]), each["fault"], *_figures(each)] for each in entries]
    programmed = results["budget"]["deployed"]
    scores = 100 * float(np.mean(programmed)), 100 * min(programmed)
    rows.append([len(programmed), f"{TOGETHER}, learned ideally", *scores, None, None, None])
    pairs = [(name, value) for name, values in SWEEPS.items() for value in values]
    swept_rows = [[_WORDS[name], value, *_figures(results[f"{name}_{value}"])] for name, value in pairs]
    return [
        Table("mismatch", "Chips that learn /a/ and /i/: faults alone and together", columns, rows),
        Table("mismatch-sweeps", "One fault of some size", ("fault", "value", *columns[2:]), swept_rows),
    ]


def _figures(entry: dict[str, Any]) -> list[Any]:
    return [
        100 * entry["mean_accuracy"], 100 * entry["worst_accuracy"], entry["mean_cosine"], entry["skipped"],
        entry["shortened"],
    ]  # fmt: skip


STUDY = Study(
    name="mismatch",
    title="Chips with faults",
    question="Which mismatch, how few levels, how coarse a meter and how short a run can learning on a chip bear?",
    protocol="/a/ and /i/ by 2+5+2 networks whose inputs act fivefold, chip r with network and split of seed r; "
    "frequencies and couplings learn from differences of the outputs by Adam at 0.2, batches of 32, 10 epochs, centred "
    "frozen nudges of 5, one reading per state, couplings from 1 to 5. Mismatch of frequencies is a share of the "
    "operating frequency, with ten periods to a unit of time: 1 % is 0.63 in omega. All together: 1 % of both, five "
    "levels, 1 ps at 3 GHz.",
    claims=(),
    checks=(
        check(
            "mismatch-learned", "Chips with all faults learn vowels, every one of them.",
            all_of(at_least(_MEAN, 0.97), at_least(_WORST, 0.9)),
        ),
        check("mismatch-cost", "On chips that learn the faults cost little.", at_most(_COST, 0.02)),
        check(
            "mismatch-deployed", "Without learning on the chip the same faults cost much more.",
            at_most(_DEPLOYED, 0.9),
        ),
        check("mismatch-gradient", "The gradient that a chip measures points the right way.", at_least(_GRADIENT, 0.7)),
    ),
    plan=_plan,
    tables=_tables,
    remarks=(
        "The cosine of a gradient is with the one that the same chip has, as a perfect meter would find it.",
        "An update is shortened where the nudge unlocked a sample and was halved there.",
    ),
)  # fmt: skip
