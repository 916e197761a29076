"""How the error of a nudged gradient falls with the nudge.

Order 1 one-sided, 2 centred, 4 on a circle of four points; one complex step can go down to rounding.

Protocol: `layered(2, 5, 2)`, seeds 0 to 19, one input U(-1, 1)^2 from stream seed + 4000, targets -0.2 and +0.2;
median over networks of the relative error against the adjoint gradient.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phasegrad.equilibrium import find_equilibrium
from phasegrad.gradients import Gradient, adjoint, centred, holomorphic, two_phase
from phasegrad.gradients.compare import relative_error
from phasegrad.objectives import PhaseTargets
from phasegrad.studies.finding import Check, Finding
from phasegrad.topologies import layered

BETAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-8)
NETWORKS = 20

_METHODS: dict[str, Callable[..., Gradient]] = {
    "two_phase": two_phase,
    "centred": centred,
    "complex_step": holomorphic,
    "circle_4": lambda *question, beta: holomorphic(*question, beta=beta, points=4),
}
# Order of each method, and the nudges over which truncation stands clear of rounding.
_SLOPES = {"two_phase": (1, 4), "centred": (2, 3), "complex_step": (2, 3), "circle_4": (4, 2)}


def beta_error() -> Finding:
    """Return the median error per method and nudge, and the fitted order of each method."""
    errors = {name: np.zeros((NETWORKS, len(BETAS))) for name in _METHODS}
    for seed in range(NETWORKS):
        network = layered(2, 5, 2, seed=seed)
        equilibrium = find_equilibrium(network, np.random.default_rng(seed + 4000).uniform(-1, 1, 2))
        question = (network, equilibrium, PhaseTargets(), (-0.2, 0.2))
        exact = adjoint(*question).get("omega")
        for name, method in _METHODS.items():
            for column, beta in enumerate(BETAS):
                errors[name][seed, column] = relative_error(method(*question, beta=beta).get("omega"), exact)
    median = {name: np.median(values, axis=0) for name, values in errors.items()}
    slopes, checks = {}, []
    for name, (order, count) in _SLOPES.items():
        slopes[name] = float(np.polyfit(np.log10(BETAS[:count]), np.log10(median[name][:count]), 1)[0])
        checks.append(Check(f"beta: order of {name} from {order}", abs(slopes[name] - order), "<=", 0.1))
    worst = float(errors["complex_step"][:, BETAS.index(1e-8)].max())
    checks.append(Check("beta: relative error of one complex step, beta 1e-8", worst, "<=", 1e-13))
    data = {
        "betas": list(BETAS),
        "median_relative_error": {name: values.tolist() for name, values in median.items()},
        "slopes": slopes,
        "complex_step_worst_at_1e-8": worst,
        "n_networks": NETWORKS,
    }
    return Finding(data, tuple(checks))
