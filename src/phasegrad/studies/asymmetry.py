"""Table 2: how the two-phase gradient degrades when coupling is not reciprocal.

Protocol: `random_network(15)` with two outputs; every coupling K_ij is multiplied by 1 + U(-a, a) on its own, an
N x N matrix of draws from stream seed + 1000; targets are the free phases plus U(-0.3, 0.3) from stream
seed + 2000; nudge 1e-3 against finite differences with step 1e-5.
"""

from __future__ import annotations

import numpy as np

from phasegrad.equilibrium import find_equilibrium
from phasegrad.gradients import finite_difference, two_phase
from phasegrad.gradients.compare import cosine
from phasegrad.network import Network
from phasegrad.objectives import PhaseTargets
from phasegrad.studies.finding import Check, Finding, published
from phasegrad.studies.identity import perturbed_target
from phasegrad.topologies import from_matrix, random_network

LEVELS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
SEEDS = 10
SIZE = 15
BETA = 1e-3


def level(asymmetry: float, seeds: int = SEEDS) -> Finding:
    """Return the row of one level of asymmetry: mean, population standard deviation and every seed's cosine."""
    values = [_cosine(asymmetry, seed) for seed in range(seeds)]
    row = {
        "asymmetry": asymmetry,
        "mean_cos": float(np.mean(values)),
        "std_cos": float(np.std(values)),
        "worst_cos": float(np.min(values)),
        "n": seeds,
        "values": values,
    }
    known = next((row for row in published("asymmetry")["rows"] if row["asymmetry"] == asymmetry), None)
    if known is None:
        return Finding([row])
    shared = min(seeds, len(known["values"]))
    per_seed = np.abs(np.subtract(values[:shared], known["values"][:shared]))
    name = f"asymmetry {asymmetry:.0%}"
    checks = [Check(f"{name}: largest difference from a published seed", float(per_seed.max()), "<=", 5e-7)]
    if seeds == len(known["values"]):
        for key, word in (("mean_cos", "mean"), ("std_cos", "standard deviation")):
            difference = abs(row[key] - known[key])
            checks.append(Check(f"{name}: {word} from published", difference, "<=", 5e-7))
    return Finding([row], tuple(checks))


def asymmetric_network(asymmetry: float, seed: int) -> Network:
    """Return the random network of one seed with every direction of every coupling scaled on its own."""
    network = random_network(SIZE, seed=seed)
    i, j = network.edges.T
    matrix = np.zeros((SIZE, SIZE))
    matrix[i, j] = matrix[j, i] = network.coupling
    draws = np.random.default_rng(seed + 1000).uniform(-asymmetry, asymmetry, (SIZE, SIZE))
    matrix = np.maximum(matrix + draws * np.abs(matrix), 0.0)
    return from_matrix(matrix, omega=network.omega, outputs=network.outputs)


def _cosine(asymmetry: float, seed: int) -> float:
    network = asymmetric_network(asymmetry, seed)
    equilibrium = find_equilibrium(network)
    question = (network, equilibrium, PhaseTargets(), perturbed_target(network, equilibrium, seed + 2000))
    return cosine(two_phase(*question, beta=BETA).get("omega"), finite_difference(*question).get("omega"))
