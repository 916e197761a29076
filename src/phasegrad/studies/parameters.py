"""Every parameter and both gauges: couplings, field strengths and phases, clamped inputs, raw against centred.

Not tabulated in the paper, which gives the coupling formula only. Each network is small, so that all six
methods can be compared on every one of its parameters; the adjoint gradient is the measure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from phasegrad.equilibrium import find_equilibrium
from phasegrad.gradients import adjoint, check_gradients, finite_difference
from phasegrad.gradients.compare import cosine, relative_error
from phasegrad.interactions import OddSeries
from phasegrad.network import Network
from phasegrad.objectives import PhaseTargets
from phasegrad.studies.finding import Check, Finding
from phasegrad.studies.identity import has_torch
from phasegrad.topologies import layered, random_network

# Bounds on 1 - cosine with the adjoint gradient. Truncation sets those of the nudged methods (angle of order beta
# = 1e-4, and beta^2), rounding over the step of 1e-5 that of finite differences.
_BOUNDS = {"two_phase": 1e-7, "centred": 1e-12, "holomorphic": 1e-13, "finite_difference": 1e-12, "autograd": 1e-12}
_TARGET = (-0.2, 0.2)


def parameters(seeds: int) -> Finding:
    """Return the worst agreement with the adjoint gradient, per network, parameter and method."""
    rows: list[dict[str, Any]] = []
    for name, seed, network, inputs in _networks(seeds):
        equilibrium = find_equilibrium(network, inputs)
        table = check_gradients(network, equilibrium, PhaseTargets(), _TARGET, methods=_methods())
        first = table.methods.index("adjoint")
        rows += [
            {
                "network": name,
                "seed": seed,
                "parameter": parameter,
                "method": method,
                "one_minus_cosine": float(1 - table.cosine[parameter][column, first]),
                "relative_error": float(table.relative_error[parameter][column, first]),
            }
            for parameter in table.cosine
            for column, method in enumerate(table.methods)
            if method != "adjoint"
        ]
    checks = [
        Check(
            f"all parameters: 1 - cosine of {method} and adjoint",
            max(row["one_minus_cosine"] for row in rows if row["method"] == method),
            "<=",
            _BOUNDS[method],
        )
        for method in _methods()[1:]
    ]
    worst = max(row["relative_error"] for row in rows if row["method"] == "holomorphic")
    checks.append(Check("all parameters: relative error of holomorphic, beta 1e-8", worst, "<=", 1e-13))
    return Finding(rows, tuple(checks))


def raw_against_centred(seeds: int) -> Finding:
    """Return, per seed, how well the centred gradient minus its mean predicts what turning a raw frequency does."""
    rows = []
    for seed in range(seeds):
        network = random_network(15, seed=seed)
        question = (network, find_equilibrium(network), PhaseTargets(), _TARGET)
        by_centred = adjoint(*question).get("omega")
        turned = finite_difference(*question, frequencies="raw").get("omega")
        rows.append(
            {
                "seed": seed,
                "error_of_centred_minus_mean": relative_error(by_centred - by_centred.mean(), turned),
                "cos_centred_raw": cosine(by_centred, turned),
            }
        )
    # Central differences of step 1e-5: truncation of order 1e-10, rounding of order 1e-16 / 1e-5.
    worst = max(row["error_of_centred_minus_mean"] for row in rows)
    return Finding(rows, (Check("raw = centred minus its mean, by finite difference", worst, "<=", 1e-8),))


def _methods() -> list[str]:
    every = ["adjoint", "two_phase", "centred", "holomorphic", "finite_difference"]
    return [*every, "autograd"] if has_torch else every


def _networks(seeds: int) -> Iterator[tuple[str, int, Network, Any]]:
    for seed in range(seeds):
        rng = np.random.default_rng(seed + 3000)
        field: dict[str, Any] = {"field_strength": rng.uniform(0.2, 1.0, 10), "field_phase": rng.uniform(-1.0, 1.0, 10)}
        data = rng.uniform(-1.0, 1.0, (3, 2))
        yield "random", seed, random_network(10, seed=seed), None
        yield "random, field", seed, random_network(10, seed=seed, **field), None
        series = OddSeries((1.0, 0.3, 0.15))
        yield "series, field", seed, random_network(10, seed=seed, interaction=series, **field), None
        yield "2+5+2", seed, layered(2, 5, 2, seed=seed), data
        yield "2+5+2, clamped", seed, layered(2, 5, 2, seed=seed, input_mode="phase"), data
