"""Table 1: the phase-gradient identity on random networks of 6 to 200 oscillators, and on ten seeds at N = 10.

Protocol: `random_network` with seed 42 and max(2, N // 4) outputs; targets are the free phases plus
U(-0.3, 0.3) from a fresh stream with the same seed; nudge 1e-4; finite differences with step 1e-5.
The same table with another odd interaction is the universality claim of section 7, tested.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from phasegrad.equilibrium import Equilibrium, find_equilibrium
from phasegrad.gradients import adjoint, autograd, finite_difference, two_phase
from phasegrad.gradients.compare import cosine
from phasegrad.interactions import Interaction, OddSeries, Sine
from phasegrad.network import Network
from phasegrad.objectives import PhaseTargets
from phasegrad.studies.finding import Check, Finding
from phasegrad.topologies import random_network
from phasegrad.validation import FloatArray

SIZES = (6, 10, 15, 20, 30, 50, 100, 200)
SERIES = ((1.0, 0.3, 0.15), (1.0, 0.0, -0.2))
BETA = 1e-4
SMALLEST = 3

has_torch = importlib.util.find_spec("torch") is not None


def table1_row(n: int) -> Finding:
    """Return one row of Table 1."""
    return _row(f"Table 1, N={n}", n, 42, Sine())


def universality_row(n: int, coefficients: Sequence[float]) -> Finding:
    """Return the row of one size for an odd series in place of the sine."""
    finding = _row(f"universality {tuple(coefficients)}, N={n}", n, 42, OddSeries(tuple(coefficients)))
    return Finding([{"coefficients": list(coefficients), **finding.data[0]}], finding.checks)


def multi_seed(seeds: int) -> Finding:
    """Return one row per seed at N = 10; the paper states that all cosines exceed 0.999999."""
    findings = [_row(f"N=10, seed {seed}", 10, seed, Sine()) for seed in range(seeds)]
    rows = [{"seed": seed, **finding.data[0]} for seed, finding in enumerate(findings)]
    return Finding(rows, tuple(check for finding in findings for check in finding.checks))


def perturbed_target(network: Network, equilibrium: Equilibrium, seed: int) -> FloatArray:
    """Return the free output phases plus U(-0.3, 0.3) from a fresh stream."""
    outputs = list(network.outputs)
    return equilibrium.phases[outputs] + np.random.default_rng(seed).uniform(-0.3, 0.3, len(outputs))


def _row(name: str, n: int, seed: int, interaction: Interaction) -> Finding:
    network = random_network(n, seed=seed, n_outputs=max(2, n // 4), interaction=interaction)
    equilibrium = find_equilibrium(network, eigenvalue=True)
    question = (network, equilibrium, PhaseTargets(), perturbed_target(network, equilibrium, seed))
    nudged = two_phase(*question, beta=BETA).get("omega")
    exact = adjoint(*question).get("omega")
    differences = finite_difference(*question).get("omega")
    assert equilibrium.smallest_eigenvalue is not None
    row: dict[str, Any] = {
        "N": n,
        "freq_params": n - 1,
        "cos_two_phase_fd": cosine(nudged, differences),
        "cos_autograd_two_phase": None,
        "cos_adjoint_fd": cosine(exact, differences),
        "cos_autograd_adjoint": None,
        "residual": float(equilibrium.residual),
        "stable": bool(equilibrium.stable),
        "smallest_eigenvalue": float(equilibrium.smallest_eigenvalue),
    }
    checks = [
        Check(f"{name}: cosine two-phase, finite difference", row["cos_two_phase_fd"], ">=", 1 - 1e-9),
        Check(f"{name}: cosine adjoint, finite difference", row["cos_adjoint_fd"], ">=", 1 - 1e-12),
        Check(f"{name}: residual", row["residual"], "<=", 1e-12),
        Check(f"{name}: certified stable", float(row["stable"]), ">=", 1.0),
    ]
    if has_torch:
        derived = autograd(*question).get("omega")
        row["cos_autograd_two_phase"] = cosine(derived, nudged)
        row["cos_autograd_adjoint"] = cosine(derived, exact)
        checks += [
            Check(f"{name}: cosine autograd, two-phase", row["cos_autograd_two_phase"], ">=", 1 - 1e-9),
            Check(f"{name}: cosine autograd, adjoint", row["cos_autograd_adjoint"], ">=", 1 - 1e-12),
        ]
    return Finding([row], tuple(checks))
