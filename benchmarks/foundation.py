"""How much faster equilibria and gradients are than the plain way, as ratios of CPU time within one run.

Run with `make bench`; `--json FILE` also writes the figures.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import plain

import phasegrad as pg

ROUNDS = 5


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def compare(ours: Callable[[], object], theirs: Callable[[], object], repeat: int) -> dict[str, float]:
    """Interleave both, so that whatever else the machine does falls on both alike; medians of the rounds."""
    ours()
    fast, slow = [], []
    for _ in range(ROUNDS):
        slow.append(cpu_seconds(theirs))
        fast.append(cpu_seconds(lambda: [ours() for _ in range(repeat)]) / repeat)
    return {
        "plain_s": statistics.median(slow),
        "phasegrad_s": statistics.median(fast),
        "ratio": statistics.median(slow) / statistics.median(fast),
    }


def batch_of_samples() -> dict[str, float]:
    network = pg.layered(2, 5, 2, seed=0)
    inputs = np.random.default_rng(0).uniform(-1, 1, (220, 2))
    matrix = plain.coupling_matrix(network)

    def one_by_one() -> list[np.ndarray]:
        phases, theta = [], np.zeros(network.size)
        for sample in inputs:
            omega = network.omega.copy()
            omega[:2] = 1.5 * sample
            theta = plain.settle(matrix, omega - omega.mean(), theta)
            phases.append(theta)
        return phases

    np.testing.assert_allclose(one_by_one(), pg.find_equilibrium(network, inputs).phases, atol=1e-7)
    return compare(lambda: pg.find_equilibrium(network, inputs), one_by_one, repeat=20)


def gradient(n: int) -> tuple[Callable[[], object], Callable[[], object]]:
    network = pg.random_network(n, seed=42, n_outputs=max(2, n // 4))
    equilibrium = pg.find_equilibrium(network)
    target = equilibrium.phases[list(network.outputs)] + 0.1
    question = (network, equilibrium, pg.PhaseTargets(), target)
    difference = plain.finite_difference(network, target) - pg.finite_difference(*question).omega
    assert np.max(np.abs(difference)) < 1e-6
    return lambda: pg.finite_difference(*question), lambda: plain.finite_difference(network, target)


def import_seconds() -> float:
    """Median CPU seconds of `import phasegrad` over those of an interpreter that does nothing."""
    code = "import time; s = time.process_time(); import phasegrad; print(time.process_time() - s)"
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(ROUNDS)
    ]
    return statistics.median(runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    place = parser.parse_args().json
    rows = {"equilibria of 220 samples, 2+5+2": batch_of_samples()}
    for n in (10, 30):
        rows[f"finite-difference gradient, N={n}"] = compare(*gradient(n), repeat=20)
        network = pg.random_network(n, seed=42)
        equilibrium = pg.find_equilibrium(network)
        question = (network, equilibrium, pg.PhaseTargets(), [0.1, 0.1])
        target = np.array([0.1, 0.1])
        rows[f"adjoint gradient, N={n}"] = compare(
            lambda question=question: pg.adjoint(*question),
            lambda network=network, target=target: plain.finite_difference(network, target),
            repeat=50,
        )
    figures = {"foundation": rows, "import_s": import_seconds()}
    print(f"{'CPU seconds, medians of ' + str(ROUNDS) + ' rounds':<40}{'plain':>12}{'phasegrad':>12}{'ratio':>9}")
    for name, row in rows.items():
        print(f"{name:<40}{row['plain_s']:>12.5f}{row['phasegrad_s']:>12.6f}{row['ratio']:>8.0f}x")
    print(f"import phasegrad: {figures['import_s']:.2f} s")
    if place is not None:
        place.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
