"""Section 4.3: the error of a nudge as strong as the one used in training, beta = 0.1.

Protocol: `random_network(15)`, seeds 0 to 19, two outputs with targets -0.2 and +0.2; two-phase against adjoint.
"""

from __future__ import annotations

import numpy as np

from phasegrad.equilibrium import find_equilibrium
from phasegrad.gradients import adjoint, two_phase
from phasegrad.gradients.compare import cosine
from phasegrad.objectives import PhaseTargets
from phasegrad.studies.finding import Check, Finding, published
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
