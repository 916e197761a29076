"""Training many small networks: the plain way, the generic engine, the lanes."""

from __future__ import annotations

from typing import Any

import numpy as np

from phasegrad import datasets
from phasegrad.benchmarks.plain import PlainTraining
from phasegrad.benchmarks.timing import in_turn
from phasegrad.network import Network
from phasegrad.seeding import learnable_nodes
from phasegrad.topologies import layered
from phasegrad.training import Protocol, train_many
from phasegrad.training.engine import Rates
from phasegrad.training.generic import GenericEngine
from phasegrad.training.lanes import LaneEngine

NETWORKS = 100
EPOCHS = 200
PLAIN_UPDATES = 220
GENERIC_UPDATES = 220
KERNEL_EPOCHS = 20
KERNEL_NETWORKS = 96


def small(rounds: int = 3) -> dict[str, Any]:
    """Return microseconds of CPU time per update, and how many times faster than the plain way the lanes are.

    ``ratio_kernel`` compares updates alone, of 96 networks that fill their lanes, on one thread; ``ratio_end_to_end``
    the whole experiment of 100 networks and 200 epochs with data, training, evaluation and history, on all processors,
    against the plain way's updates alone, which flatters the plain way.
    """
    networks = [layered(2, 5, 2, seed=seed) for seed in range(NETWORKS)]
    data = [datasets.vowels(("a", "i"), seed=seed) for seed in range(NETWORKS)]
    size = len(data[0].y_train)
    plan = Protocol(epochs=EPOCHS)
    full, full_data = networks[:KERNEL_NETWORKS], data[:KERNEL_NETWORKS]
    lane_engine = LaneEngine(full, full_data, plan, _rates(full), np.zeros((KERNEL_NETWORKS, 9)), threads=1)
    generic_engine = GenericEngine(networks[:1], data[:1], plan, _rates(networks[:1]), np.zeros((1, 9)))
    stream = np.random.default_rng(0)
    orders = np.stack([[stream.permutation(size) for _ in range(KERNEL_EPOCHS)] for _ in range(KERNEL_NETWORKS)])
    lane_engine.train(orders[:, :1])

    def plain() -> None:
        PlainTraining(networks[0], data[0].x_train, data[0].y_train, 0).run(EPOCHS, 20, limit=PLAIN_UPDATES)

    def generic() -> None:
        generic_engine.train(orders[:1, :1])

    def lanes() -> None:
        lane_engine.train(orders)

    def experiment() -> None:
        train_many(
            [layered(2, 5, 2, seed=seed) for seed in range(NETWORKS)],
            [datasets.vowels(("a", "i"), seed=seed) for seed in range(NETWORKS)],
            epochs=EPOCHS,
        )

    seconds = in_turn(plain, generic, lanes, experiment, rounds=rounds)
    plain_us = seconds[0] / PLAIN_UPDATES * 1e6
    lanes_us = seconds[2] / (KERNEL_NETWORKS * size * KERNEL_EPOCHS) * 1e6
    whole_us = seconds[3] / (NETWORKS * size * EPOCHS) * 1e6
    return {
        "plain_us": plain_us,
        "generic_us": seconds[1] / GENERIC_UPDATES * 1e6,
        "lanes_us": lanes_us,
        "end_to_end_us": whole_us,
        "experiment_cpu_s": seconds[3],
        "ratio_generic": plain_us / (seconds[1] / GENERIC_UPDATES * 1e6),
        "ratio_kernel": plain_us / lanes_us,
        "ratio_end_to_end": plain_us / whole_us,
    }


def _rates(networks: list[Network]) -> Rates:
    omega = np.zeros((len(networks), networks[0].size))
    omega[:, learnable_nodes(networks[0])] = 0.001
    return Rates(omega, np.zeros((len(networks), networks[0].n_edges)))
