"""Training many small networks: the plain way, the engine for any network, the lanes."""

from __future__ import annotations

from typing import Any

import numpy as np

from phasegrad import datasets
from phasegrad.networks import layered
from phasegrad.terms import Interaction, OddSeries
from phasegrad.training import Plan, prepare, train_whole
from phasegrad_bench._plain import PlainTraining
from phasegrad_bench._timing import in_turn

NETWORKS = 100
EPOCHS = 200
PLAIN_UPDATES = 220
KERNEL_EPOCHS = 20
KERNEL_NETWORKS = 96


class ThirdHarmonic(Interaction):
    """An interaction as users write one, with the values of an odd series."""

    share = 0.05

    def value(self, phi: Any) -> Any:
        """Sin phi and a share of sin 3 phi."""
        return np.sin(phi) + self.share * np.sin(3 * phi)

    def derivative(self, phi: Any) -> Any:
        """Its derivative."""
        return np.cos(phi) + 3 * self.share * np.cos(3 * phi)

    def potential(self, phi: Any) -> Any:
        """Its integral."""
        return -np.cos(phi) - self.share / 3 * np.cos(3 * phi)


def small(rounds: int = 3) -> dict[str, Any]:
    """Return microseconds of CPU time per update, and how many times faster than the plain way the engines are.

    ``ratio_kernel`` compares updates alone, of 96 networks that fill their lanes, on one thread; ``ratio_end_to_end``
    the whole experiment of 100 networks and 200 epochs with data, training, evaluation and history, on all processors,
    against the plain way's updates alone, which flatters the plain way. ``generic`` is the engine for any network, on
    the same networks with an odd series in place of the sine, which no lane knows: 100 of them in lock-step, and one;
    and one with an interaction that is written as users write theirs (``single_own_us``).
    """
    networks = [layered(2, 5, 2, seed=seed) for seed in range(NETWORKS)]
    others = [network.replace(interaction=OddSeries((1.0, 0.0, 0.05))) for network in networks]
    data = [datasets.vowels(("a", "i"), seed=seed) for seed in range(NETWORKS)]
    size, plan = len(data[0].y_train), Plan.paper(epochs=EPOCHS)
    full = prepare(networks[:KERNEL_NETWORKS], data[:KERNEL_NETWORKS], plan, engine="lanes", threads=1)
    many, one = (prepare(others[:count], data[:count], plan, engine="batch") for count in (NETWORKS, 1))
    own = prepare([networks[0].replace(interaction=ThirdHarmonic())], data[:1], plan, engine="batch")
    streams = [np.random.default_rng(seed) for seed in range(NETWORKS)]
    orders = np.stack([[stream.permutation(size) for _ in range(KERNEL_EPOCHS)] for stream in streams])
    paces = np.ones(KERNEL_EPOCHS)
    full.train(orders[:KERNEL_NETWORKS, :1], paces[:1], streams)
    for engine in (one, own):
        engine.train(orders[:1, :1], paces[:1], streams)

    def plain() -> None:
        PlainTraining(networks[0], data[0].x_train, data[0].y_train, 0).run(EPOCHS, 20, limit=PLAIN_UPDATES)

    def experiment() -> None:
        train_whole(
            [layered(2, 5, 2, seed=seed) for seed in range(NETWORKS)],
            [datasets.vowels(("a", "i"), seed=seed) for seed in range(NETWORKS)],
            plan,
        )

    seconds = in_turn(
        plain,
        lambda: many.train(orders[:, :1], paces[:1], streams),
        lambda: one.train(orders[:1, :1], paces[:1], streams),
        lambda: own.train(orders[:1, :1], paces[:1], streams),
        lambda: full.train(orders[:KERNEL_NETWORKS], paces, streams),
        experiment,
        rounds=rounds,
    )
    lane_updates, all_updates = KERNEL_NETWORKS * size * KERNEL_EPOCHS, NETWORKS * size * EPOCHS
    updates = (PLAIN_UPDATES, NETWORKS * size, size, size, lane_updates, all_updates)
    plain_us, many_us, one_us, own_us, lanes_us, whole_us = (
        second / count * 1e6 for second, count in zip(seconds, updates, strict=True)
    )
    return {
        "plain_us": plain_us,
        "lanes_us": lanes_us,
        "end_to_end_us": whole_us,
        "experiment_cpu_s": seconds[5],
        "ratio_kernel": plain_us / lanes_us,
        "ratio_end_to_end": plain_us / whole_us,
        "generic": {
            "us": many_us,
            "single_us": one_us,
            "single_own_us": own_us,
            "ratio_plain": plain_us / many_us,
            "ratio_plain_single": plain_us / one_us,
            "ratio_plain_single_own": plain_us / own_us,
        },
    }
