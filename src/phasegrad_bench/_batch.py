"""A batch of 256 samples on one 64+100+10 network, free and nudged: the plain way, LAPACK per sample, the batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from phasegrad._validation import FloatArray
from phasegrad.dynamics import Nudge
from phasegrad.equilibria import Equilibrium, find_equilibrium
from phasegrad.networks import layered
from phasegrad.objectives import NearestTarget
from phasegrad_bench import _plain as plain
from phasegrad_bench._timing import cpu_seconds, in_turn

SAMPLES = 256
PLAIN_SAMPLES = 8
BETA = 0.1


def batch(rounds: int = 3) -> dict[str, Any]:
    """Return CPU seconds for 256 samples and how many times faster the batch engine is, certificates included.

    The plain way, with its forces as one NumPy expression, takes a minute or more: it is timed on some samples and
    scaled up.
    """
    network = layered(64, 100, 10, seed=0)
    stream = np.random.default_rng(0)
    inputs, labels = stream.uniform(-1, 1, (SAMPLES, 64)), stream.integers(10, size=SAMPLES)
    objective = NearestTarget()
    matrix = plain.coupling_matrix(network)
    goals, outputs = objective.table(10), list(network.outputs)

    def by_hand(sample: int) -> tuple[FloatArray, FloatArray]:
        omega = network.omega.copy()
        omega[:64] = network.input_scale * inputs[sample]
        omega = omega - omega.mean()
        pull, target = np.zeros((2, network.size))
        free = plain.settle_arrays(matrix, omega, np.zeros(network.size), pull, target)
        pull[outputs], target[outputs] = BETA, goals[labels[sample]]
        return free, plain.settle_arrays(matrix, omega, free, pull, target)

    def both(solver: str) -> tuple[Equilibrium, Equilibrium]:
        free = find_equilibrium(network, inputs, solver=solver)
        nudge = Nudge(objective, labels, BETA)
        return free, find_equilibrium(network, inputs, nudge=nudge, start=free.phases, solver=solver)

    states: list[tuple[FloatArray, FloatArray]] = []
    plain_s = cpu_seconds(lambda: states.extend(by_hand(k) for k in range(PLAIN_SAMPLES))) / PLAIN_SAMPLES * SAMPLES
    found = both("batch")
    for k, pair in enumerate(states):
        for mine, theirs in zip(found, pair, strict=True):
            if np.max(np.abs(mine.phases[k] - theirs)) > 1e-6:
                raise AssertionError("the plain way and the batch engine disagree, so their times cannot be compared")
    lapack_s, batch_s = in_turn(lambda: both("newton"), lambda: both("batch"), rounds=rounds)
    return {
        "plain_s": plain_s,
        "lapack_s": lapack_s,
        "batch_s": batch_s,
        "ratio_plain": plain_s / batch_s,
        "ratio_lapack": lapack_s / batch_s,
    }
