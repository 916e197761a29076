"""Section 4.3: the error of a nudge as strong as the one used in training, beta = 0.1.

Protocol: `random_network(15)`, seeds 0 to 19, two outputs with targets -0.2 and +0.2; two-phase against adjoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from phasegrad.equilibrium import find_equilibrium
from phasegrad.gradients import adjoint, two_phase
from phasegrad.gradients.compare import cosine
from phasegrad.objectives import PhaseTargets
from phasegrad.studies.beta_error import beta_error
from phasegrad.studies.finding import Check, Finding, published
from phasegrad.studies.piece import Piece
from phasegrad.studies.study import Claim, Figure, Judgement, Outcome, Study, Table, Verdict
from phasegrad.topologies import random_network

SEEDS = 20
SIZE = 15
BETA = 0.1
TARGET = (-0.2, 0.2)


def finite_beta(seeds: int = SEEDS) -> Finding:
    """Return mean and minimum cosine and the mean error of the gradient's length, in per cent."""
    cosines, scales = [], []
    for seed in range(seeds):
        network = random_network(SIZE, seed=seed)
        equilibrium = find_equilibrium(network)
        question = (network, equilibrium, PhaseTargets(), TARGET)
        nudged = two_phase(*question, beta=BETA).get("omega")
        exact = adjoint(*question).get("omega")
        cosines.append(cosine(nudged, exact))
        scales.append(float(np.linalg.norm(nudged) / np.linalg.norm(exact)))
    data = {
        "beta": BETA,
        "N": SIZE,
        "n_networks": seeds,
        "mean_cosine": float(np.mean(cosines)),
        "min_cosine": float(np.min(cosines)),
        "mean_scale_error_pct": float(100 * np.mean(np.abs(np.subtract(scales, 1.0)))),
        "cosines": cosines,
        "scales": scales,
    }
    known = published("finite_beta")
    shared = min(seeds, len(known["cosines"]))
    checks = [
        Check(f"finite beta: largest difference of a published {word}", float(np.max(np.abs(difference))), "<=", 1e-9)
        for word, difference in (
            ("cosine", np.subtract(cosines[:shared], known["cosines"][:shared])),
            ("scale", np.subtract(scales[:shared], known["scales"][:shared])),
        )
    ]
    if seeds == len(known["cosines"]):
        checks += [
            Check(f"finite beta: {key} from published", abs(data[key] - known[key]), "<=", 1e-9)
            for key in ("mean_cosine", "min_cosine", "mean_scale_error_pct")
        ]
    return Finding(data, tuple(checks))


def _plan(seeds: int | None) -> dict[str, Piece]:
    return {
        "finite_beta": Piece("beta = 0.1, 20 networks", finite_beta, {"seeds": min(seeds or SEEDS, SEEDS)}, 0.1),
        "orders": Piece("error against beta", beta_error, {}, 0.5),
    }


def _assess(results: Mapping[str, Any]) -> Outcome:
    data = results["finite_beta"]["data"]
    orders = results["orders"]["data"]
    identical = all(check["passed"] for check in results["finite_beta"]["checks"])
    order = orders["slopes"]["two_phase"]
    measured = (
        f"mean cosine {data['mean_cosine']:.8f}, minimum {data['min_cosine']:.8f}, "
        f"mean scale error {data['mean_scale_error_pct']:.3f} % over {data['n_networks']} networks"
    )
    direction, slope = CLAIMS
    judgements = [
        Judgement(
            direction,
            Verdict.REPRODUCED if identical and data["min_cosine"] > 0.999 else Verdict.NOT_REPRODUCED,
            measured,
            f"Every network agrees with the stored values to 1e-9 and the worst cosine is {data['min_cosine']:.6f}.",
            data["min_cosine"],
        ),
        Judgement(
            slope,
            Verdict.REPRODUCED if abs(order - 1) <= 0.1 else Verdict.NOT_REPRODUCED,
            f"fitted order {order:.3f} on 2+5+2 networks; centred nudges {orders['slopes']['centred']:.3f}",
            f"The error falls with the nudge to the power {order:.3f}.",
            order,
            f"The centred nudge has order {orders['slopes']['centred']:.2f}, one complex step reaches "
            f"{orders['complex_step_worst_at_1e-8']:.0e}.",
        ),
    ]
    rows = [[name, *values, orders["slopes"][name]] for name, values in orders["median_relative_error"].items()]
    table = Table(
        "beta-error",
        "Median relative error against the adjoint gradient",
        ("method", *(f"beta {beta:.0e}" for beta in orders["betas"]), "fitted order"),
        rows,
    )
    figure = Figure(
        "beta-error",
        "Error of a nudged gradient against the nudge: order 1 one-sided, 2 centred, 4 on a circle of four points.",
        "Log-log lines of relative error against nudge strength for four methods, with slopes 1, 2, 2 and 4.",
        orders,
    )
    return Outcome(judgements, [table], [figure], {"finite_beta": data, "orders": orders})


CLAIMS = (
    Claim(
        "finite-beta-direction",
        "At the training nudge of 0.1 the two-phase gradient points the right way, with a scale error of 0.3 %.",
        "Section 4.3",
        "cosine > 0.999; mean scale error 0.3 %, 20 networks",
        "Reproduced if every cosine exceeds 0.999 and all stored values are met to 1e-9.",
    ),
    Claim(
        "finite-beta-order",
        "The error of the two-phase gradient is of first order in the nudge.",
        "Section 4.3",
        "O(beta)",
        "Reproduced if the fitted order is within 0.1 of 1.",
    ),
)
STUDY = Study(
    "finite-beta",
    "Finite nudges",
    "How far off is the gradient at the nudge that training uses?",
    "Random networks of 15 oscillators, seeds 0 to 19, two outputs with targets -0.2 and +0.2, nudge 0.1, against the "
    "adjoint gradient; order of the error on 2+5+2 networks with nudges from 0.1 to 1e-8.",
    CLAIMS,
    _plan,
    _assess,
)
