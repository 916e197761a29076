"""Section 4.3: the error of a nudge as strong as the one used in training, and how it falls with the nudge."""

from __future__ import annotations

import numpy as np

from phasegrad_paper.studies.agreement import FINITE_BETA, FINITE_SIZE, ORDERS, beta_error, finite_beta
from phasegrad_paper.studies.measures import Measure, Pairs, Quantity, Results, Unit, published
from phasegrad_paper.studies.piece import Piece
from phasegrad_paper.studies.rules import above, all_of, at_most, every, within
from phasegrad_paper.studies.study import Claim, Figure, Study, Table, check

SEEDS = 20


def _plan(seeds: int | None) -> dict[str, Piece]:
    return {
        "finite_beta": Piece("beta = 0.1, 20 networks", finite_beta, {"seeds": min(seeds or SEEDS, SEEDS)}, 0.1),
        "orders": Piece("error against beta", beta_error, {}, 0.5),
    }


def _order(method: str) -> Quantity:
    words = f"fitted order of {method.replace('_', ' ')}"
    return Quantity(words, lambda results: Measure(results["orders"]["slopes"][method]))


def _pairs(results: Results) -> Pairs:
    return [(results["finite_beta"][key], published("finite_beta")[key]) for key in ("cosines", "scales")]


_COSINE = Quantity.smallest("smallest cosine", lambda r: r["finite_beta"]["cosines"], Unit.DIGITS)
_MET = Quantity.met("number of stored cosines and lengths met to 1e-9", _pairs, 1e-9)
_LENGTH = Quantity.mean(
    "mean error of the length, in per cent",
    lambda results: 100 * np.abs(np.subtract(results["finite_beta"]["scales"], 1)),
    Unit.NUMBER,
)
_EXACT = Quantity.largest(
    "largest relative error of one complex step of 1e-8", lambda results: results["orders"]["complex_step_at_1e-8"]
)


def _tables(results: Results) -> list[Table]:
    cosines, orders, known = results["finite_beta"]["cosines"], results["orders"], published("finite_beta")
    here = (float(np.mean(cosines)), min(cosines), _LENGTH.of(results).value)
    stored = (known[key] for key in ("mean_cosine", "min_cosine", "mean_scale_error_pct"))
    title = f"Two-phase at beta = {FINITE_BETA:g} against adjoint, N = {FINITE_SIZE}"
    columns = ("", "networks", "mean cosine", "smallest cosine", "mean error of the length, %")
    rows = [["published", len(known["cosines"]), *stored], ["here", len(cosines), *here]]
    betas = ("method", *(f"beta {beta:.0e}" for beta in orders["betas"]), "fitted order")
    errors = [[name, *values, orders["slopes"][name]] for name, values in orders["median_relative_error"].items()]
    return [
        Table("finite-beta", title, columns, rows),
        Table("beta-error", "Error against beta: median relative error against the adjoint gradient", betas, errors),
    ]


STUDY = Study(
    name="finite-beta",
    title="Finite nudges",
    question="How far off is the gradient at the nudge that training uses?",
    protocol="Random networks of 15 oscillators, seeds 0 to 19, two outputs with targets -0.2 and +0.2, nudge 0.1, "
    "against the adjoint gradient; order of the error on 2+5+2 networks with nudges from 0.1 to 1e-8.",
    claims=(
        Claim(
            "finite-beta-direction", "Section 4.3", "cosine > 0.999; mean scale error 0.3 %, 20 networks",
            "At the training nudge of 0.1 the two-phase gradient points the right way, with a scale error of 0.3 %.",
            all_of(above(_COSINE, 0.999), every(_MET)), beside=(_LENGTH,),
        ),
        Claim(
            "finite-beta-order", "Section 4.3", "O(beta)",
            "The error of the two-phase gradient is of first order in the nudge.",
            within(_order("two_phase"), 0.1, of=1),
        ),
    ),
    checks=(
        *(
            check(
                f"finite-beta-{method.replace('_', '-')}",
                f"The error of {method.replace('_', ' ')} is of order {ORDERS[method][0]} in the nudge.",
                within(_order(method), 0.1, of=ORDERS[method][0]),
            )
            for method in ("centred", "complex_step", "circle_4")
        ),
        check("finite-beta-exact", "One complex step of 1e-8 is exact to rounding.", at_most(_EXACT, 1e-13)),
    ),
    plan=_plan,
    tables=_tables,
    figures=lambda results: [
        Figure(
            "beta-error",
            "Error of a nudged gradient against the nudge: order 1 one-sided, 2 centred, 4 on a circle of four points.",
            "Log-log lines of relative error against nudge strength for four methods, with slopes 1, 2, 2 and 4.",
            results["orders"],
        ),
    ],
)  # fmt: skip
