"""Networks with a state on the edge of stability: the smallest eigenvalue of the Laplacian is zero, none is negative.

Folds where a stable branch ends, edges and fields at a quarter turn, which hold nothing, symmetric states with a family
of others around them, and pitchforks.
"""

import dense_networks as dense
import numpy as np

import phasegrad as pg

QUARTER = np.pi / 2


def pair_at_its_limit() -> tuple[pg.Network, np.ndarray]:
    """Two oscillators, as far apart in frequency as their coupling can hold."""
    return pg.Network([[0, 1]], 1.0, [-1.0, 1.0]), np.array([0.0, QUARTER])


def chain_with_an_edge_at_a_quarter_turn() -> tuple[pg.Network, np.ndarray]:
    """The edge in the middle is at its limit; the two on its sides are not."""
    return pg.Network([[0, 1], [1, 2], [2, 3]], 1.0, [-0.5, -0.5, 0.5, 0.5]), np.cumsum(
        [0, np.pi / 6, QUARTER, np.pi / 6]
    )


def twisted_ring_of_four() -> tuple[pg.Network, np.ndarray]:
    """Every edge at a quarter turn: the Laplacian is zero."""
    return pg.networks.ring(4), QUARTER * np.arange(4.0)


def repelling_four() -> tuple[pg.Network, np.ndarray]:
    """All repel each other, and any state without a mean field has the least energy: a family of them."""
    return pg.networks.complete(4, coupling=-1.0, signed=True), np.array([0.0, 0.7, np.pi, np.pi + 0.7])


def field_at_its_limit() -> tuple[pg.Network, np.ndarray]:
    """A pair that turns together, driven as fast as its fields can hold."""
    return pg.Network([[0, 1]], 1.0, [0.5, 0.5], field_strength=[0.5, 0.5]), np.array([QUARTER, QUARTER])


def field_against_second_harmonic() -> tuple[pg.Network, np.ndarray]:
    """Half a turn from the field, where the second harmonic makes up for it exactly: a pitchfork."""
    network = pg.Network([[0, 1]], 1.0, [0.0, 0.0], field_strength=[0.8, 0.8], second_strength=[0.4, 0.4])
    return network, np.array([np.pi, np.pi])


def clamped_at_its_limit() -> tuple[pg.Network, np.ndarray]:
    """One oscillator, between two that are clamped half a turn apart, which hold it nowhere and everywhere."""
    network = pg.Network([[0, 2], [1, 2]], 1.0, np.zeros(3), inputs=(0, 1), input_mode="phase", input_scale=np.pi)
    return network, np.array([0.0, np.pi, 0.4])


def _fold(seed: int):
    def fold() -> tuple[pg.Network, np.ndarray]:
        rng = np.random.default_rng(seed)
        return dense.at_the_fold(rng, int(rng.integers(3, 25)))

    fold.__name__ = f"fold_{seed}"
    return fold


#: What makes a network and its state, phases (N,).
MARGINAL = (
    pair_at_its_limit, chain_with_an_edge_at_a_quarter_turn, twisted_ring_of_four, repelling_four, field_at_its_limit,
    field_against_second_harmonic, clamped_at_its_limit, *(_fold(seed) for seed in range(25)),
)  # fmt: skip


def marginal_case(make) -> tuple[dense.Case, np.ndarray]:
    """Return a network as a case with its inputs, and its state."""
    network, state = make()
    inputs = state[list(network.inputs)] / network.input_scale if network.inputs else None
    return dense.Case(make.__name__, network, inputs), state
