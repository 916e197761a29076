"""Table 5: five network sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from phasegrad_paper.studies import statistics
from phasegrad_paper.studies.arms import Arm
from phasegrad_paper.studies.conditions import LEARN, Condition, Conditions, cell, converged, scores
from phasegrad_paper.studies.measures import Measure, Pairs, Quantity, Results, Unit, average, published
from phasegrad_paper.studies.rules import Rule, above, all_of, within
from phasegrad_paper.studies.study import Claim, Study, Table

HIDDEN = (3, 5, 7, 10, 15)
_PAIR = ("omega", "coupling")


def _condition(learn: str, hidden: int) -> Condition:
    arm = Arm(hidden=hidden, learn=learn, loop="matched", seeds=50)
    return Condition(f"{LEARN[learn]} at N = {hidden + 4}", arm, by="train")


ARMS = Conditions({f"{learn}_{hidden}": _condition(learn, hidden) for hidden in HIDDEN for learn in _PAIR})


def _means(results: Results, learn: str) -> list[float]:
    return [average(scores(results[f"{learn}_{hidden}"], converged)) for hidden in HIDDEN]


def _pairs(results: Results) -> Pairs:
    known = published("sweep")["rows"]
    return [(_means(results, learn), [row[f"{learn}_converged_mean"] for row in known]) for learn in _PAIR]


def _gap(hidden: int) -> Quantity:
    """Return the difference of the means of converged seeds, as Table 5 has it."""

    def of(results: Results) -> Measure:
        omega, coupling = (_means(results, learn)[HIDDEN.index(hidden)] for learn in _PAIR)
        return Measure(omega - coupling)

    return Quantity(f"gap between the means of converged seeds at N = {hidden + 4}", of, Unit.POINTS)


def _published_gap(hidden: int) -> Quantity:
    """Return the same difference of the published Table 5."""
    row = published("sweep")["rows"][HIDDEN.index(hidden)]
    gap = row["omega_converged_mean"] - row["coupling_converged_mean"]
    return Quantity(f"gap at N = {hidden + 4} in the published Table 5", lambda _: Measure(gap), Unit.POINTS)


def _narrowing(gap: Callable[[int], Quantity]) -> Rule:
    return all_of(within(gap(3), 0.005, of=0.131), within(gap(15), 0.005, of=0.017))


def _tables(results: Results) -> list[Table]:
    rows = []
    means = {learn: _means(results, learn) for learn in _PAIR}
    for k, stored in enumerate(published("sweep")["rows"]):
        line: list[Any] = [stored["N"], stored["omega_params"], stored["coupling_params"]]
        for learn in _PAIR:
            line += [cell(stored[f"{learn}_converged_mean"]), cell(means[learn][k])]
        line.append(round(100 * (stored["omega_converged_mean"] - stored["coupling_converged_mean"]), 1))
        line.append(cell(means["omega"][k] - means["coupling"][k]))
        runs = [results[f"{learn}_{HIDDEN[k]}"] for learn in _PAIR]
        for learn, run in zip(_PAIR, runs, strict=True):
            line += [cell(stored[f"{learn}_converged_rate"]), cell(average(converged(run)))]
        test = statistics.welch(*(scores(run, converged) for run in runs))
        rows.append([*line, statistics.plain(test.p)])
    columns = ["N", "frequencies", "couplings"]
    for name in ("omega, %", "K, %", "gap", "omega rate, %", "K rate, %"):
        columns += [f"{name}, published", f"{name}, measured"]
    title = "Converged accuracy by network size, 50 seeds"
    note = "As described; the stored table is of that graph too."
    return [
        Table("sweep", title, (*columns, "Welch p"), rows, note),
        ARMS.table(results, "sweep-controls", "The same runs with controls"),
    ]


def _smallest_lead(results: Results) -> Measure:
    """Return the lead whose interval reaches lowest; of a size without an interval, that one."""
    leads = [ARMS.lead(f"omega_{hidden}", f"coupling_{hidden}", converged).of(results) for hidden in HIDDEN]
    return min(leads, key=lambda lead: lead.low if lead.has_interval else -math.inf)


_LEAD = Quantity(
    "smallest lead of frequencies over couplings at any size (converged seeds of both)",
    _smallest_lead,
    Unit.POINTS,
    interval=True,
)
STUDY = Study(
    name="sweep",
    title="The architecture sweep",
    question="Does the difference depend on the size of the network?",
    protocol="2+3+2 to 2+15+2 networks, /a/ against /i/, 50 seeds, 200 epochs at 0.001, phases carried over epochs; "
    "success: running training accuracy above 60 %.",
    claims=(
        Claim(
            "sweep-every-size", "Table 5, section 6.3", "+9.7, +13.7, +7.1, +7.6, +1.5 points for N = 7, 9, 11, 14, 19",
            "Frequencies are more accurate than couplings among converged seeds at every network size.",
            above(_LEAD, 0), control=above(ARMS.still(*(f"coupling_{hidden}" for hidden in HIDDEN)), 0.5),
            beside=(Quantity.met("number of means of the table met to 0.01 points", _pairs, 1e-4),),
            controls=tuple(ARMS.mean(f"coupling_{hidden}", converged, "untrained") for hidden in HIDDEN),
        ),
        Claim(
            "sweep-narrowing", "Section 6.3", "13.1 points at N = 7, 1.7 at N = 19",
            "The advantage is largest in the sparsest network, 13.1 points at N = 7, and narrows to 1.7 at N = 19.",
            _narrowing(_gap), own=_narrowing(_published_gap), beside=tuple(_gap(hidden) for hidden in HIDDEN[1:-1]),
        ),
    ),
    plan=ARMS.plan,
    tables=_tables,
)  # fmt: skip
