"""Equilibria, gradients and runs in time against the plain way."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from phasegrad._validation import FloatArray
from phasegrad.equilibria import find_equilibrium
from phasegrad.gradients import adjoint, finite_difference
from phasegrad.networks import Network, layered, mean_field, random_network
from phasegrad.objectives import PhaseTargets
from phasegrad.simulation import simulate
from phasegrad_bench import _plain as plain
from phasegrad_bench._timing import ROUNDS, in_turn

# The tolerance of runs in time.
_PRECISE = 1e-8


def foundation(sizes: tuple[int, ...] = (10, 30), starts: int = 20, many: int = 20_000) -> dict[str, Any]:
    """Return CPU seconds of the plain way and of the package, per task, and the time `import phasegrad` takes."""
    rows = {"equilibria of 220 samples, 2+5+2": _equilibria()}
    for n in sizes:
        network = random_network(n, seed=42)
        target = np.array([0.1, 0.1])
        question = (network, find_equilibrium(network), PhaseTargets(), target)
        difference = plain.finite_difference(network, target) - finite_difference(*question, step=1e-5).omega
        if np.max(np.abs(difference)) > 1e-6:
            raise AssertionError("the plain way and the package disagree, so their times cannot be compared")
        theirs = partial(plain.finite_difference, network, target)
        rows[f"finite-difference gradient, N={n}"] = _compare(
            theirs, partial(finite_difference, *question, step=1e-5), 20
        )
        rows[f"adjoint against finite difference, N={n}"] = _compare(theirs, partial(adjoint, *question), 50)
    rows[f"{starts} starts of 2+5+2 in time, to t = 100"] = _runs(layered(2, 5, 2, seed=0), starts, 100.0)
    everyone = mean_field(many, 1.0, omega=np.random.default_rng(0).normal(0.0, 0.5, many))
    rows[f"{many:,} oscillators all to all in time, to t = 20"] = _runs(everyone, 1, 20.0)
    return {"rows": rows, "import_s": _import_seconds()}


def _compare(theirs: Callable[[], object], ours: Callable[[], object], repeat: int) -> dict[str, float]:
    ours()
    slow, fast = in_turn(theirs, lambda: [ours() for _ in range(repeat)])
    return {"plain_s": slow, "phasegrad_s": fast / repeat, "ratio": slow * repeat / fast}


def _equilibria() -> dict[str, float]:
    network = layered(2, 5, 2, seed=0)
    inputs = np.random.default_rng(0).uniform(-1, 1, (220, 2))
    matrix = plain.coupling_matrix(network)

    def one_by_one() -> None:
        theta = np.zeros(network.size)
        for sample in inputs:
            omega = network.omega.copy()
            omega[:2] = 1.5 * sample
            theta = plain.settle(matrix, omega - omega.mean(), theta)

    return _compare(one_by_one, lambda: find_equilibrium(network, inputs), 20)


def _runs(network: Network, starts: int, time: float) -> dict[str, float]:
    """Return CPU seconds of runs from random phases, by SciPy and by the package."""
    phases = np.random.default_rng(1).uniform(-np.pi, np.pi, (starts, network.size))

    def one_by_one() -> FloatArray:
        return np.array([plain.follow(network, start, time, _PRECISE) for start in phases])

    def side_by_side() -> FloatArray:
        return simulate(network, [0.0, time], start=phases, tolerance=_PRECISE).phases[-1]

    if np.max(np.abs(one_by_one() - side_by_side())) > 1e-5:
        raise AssertionError("the plain way and the package disagree, so their times cannot be compared")
    return _compare(one_by_one, side_by_side, 1)


def _import_seconds() -> float:
    code = "import time; s = time.process_time(); import phasegrad; print(time.process_time() - s)"
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(ROUNDS)
    ]
    return statistics.median(runs)
