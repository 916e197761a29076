"""The norm of the couplings between layers that move, kept below a bound.

Where fields D hold the oscillators of two layers and couplings W join them, states settle and stay stable while the
largest singular value of W is well below the fields: a disturbance comes back from the other layer as |W|^2 / D^2 of
itself at most. That value is followed by power iteration, one step with every update and some more, from a vector that
is always the same, when an epoch begins: training that stops there goes on as if it had not. Arrays and tensors alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from phasegrad._validation import FloatArray
from phasegrad.networks import Network

#: Steps of power iteration when an epoch begins.
FIRST_STEPS = 20
# So small a number that it only keeps a quotient of zeros from being none.
_TINY = 1e-30
#: Takes a vector over one layer of a link to the other one.
Map = Callable[[Any], Any]


def inner_links(network: Network) -> list[int]:
    """Return the numbers of the links of a network of layers whose ends both move."""
    layout = network.graph.layout
    assert layout is not None
    return [k for k, link in enumerate(layout.links) if link.first or not network.clamps_inputs]


def first_vector(network: Network, link: int) -> FloatArray:
    """Return what the iteration of a link begins with, over its second layer."""
    layout = network.graph.layout
    assert layout is not None
    return np.random.default_rng(link).standard_normal(layout.sizes[layout.links[link].second])


def followed(vector: Any, forward: Map, back: Map, steps: int = 1) -> tuple[Any, Any]:
    """Return the largest singular value, as far as so many steps of power iteration show it, and the vector then."""
    length = None
    for _ in range(steps):
        other = back(vector)
        vector = forward(other / ((other * other).sum() ** 0.5 + _TINY))
        length = (vector * vector).sum() ** 0.5
        vector = vector / (length + _TINY)
    return length, vector


class Norms:
    """The norms of several networks that learn in lock-step, from their couplings (r, n) as arrays."""

    def __init__(self, network: Network, most: float) -> None:
        self.network, self.most, self.links = network, most, inner_links(network)
        layout = network.graph.layout
        assert layout is not None
        self.layout = layout
        self.vectors: Mapping[tuple[int, int], FloatArray] = {}
        self.ahead: Mapping[tuple[int, int], FloatArray] = {}

    def begin(self, couplings: FloatArray) -> None:
        """Look at the couplings anew."""
        first = {(r, k): first_vector(self.network, k) for r in range(len(couplings)) for k in self.links}
        self.vectors = {(r, k): self._followed(couplings[r], k, first[r, k], FIRST_STEPS)[1] for r, k in first}

    def bounded(self, couplings: FloatArray) -> FloatArray:
        """Return couplings, those of a link scaled down where they exceed the bound; `keep` makes it the last step."""
        after, self.ahead = couplings.copy(), {}
        for (r, k), vector in self.vectors.items():
            norm, self.ahead[r, k] = self._followed(couplings[r], k, vector)
            after[r, self.layout.couplings[k]] *= min(1.0, self.most / (norm + _TINY))
        return after

    def keep(self) -> None:
        """Go on from the couplings that were looked at last."""
        self.vectors = self.ahead

    def _followed(self, couplings: FloatArray, link: int, vector: FloatArray, steps: int = 1) -> tuple[Any, Any]:
        matrix = self._matrix(couplings, link)
        return followed(vector, lambda v: v @ matrix, lambda u: matrix @ u, steps)

    def _matrix(self, couplings: FloatArray, link: int) -> Any:
        chosen = self.layout.links[link]
        if chosen.kernel is None:
            return couplings[self.layout.couplings[link]].reshape(self.layout.weight_shape(chosen))
        first, second, number = self.layout.listed(link)
        ends = (first - self.layout.starts[chosen.first], second - self.layout.starts[chosen.second])
        shape = (self.layout.sizes[chosen.first], self.layout.sizes[chosen.second])
        return sparse.csr_array((couplings[number], ends), shape=shape)
