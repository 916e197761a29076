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
from phasegrad.graphs import Layout
from phasegrad.networks import Network

# Steps of power iteration when an epoch begins: enough to tell the largest singular value from the next ones.
_FIRST_STEPS = 20
# So small a number that it only keeps a quotient of zeros from being none.
_TINY = 1e-30
#: Takes a vector over one layer of a link to the other one.
Map = Callable[[Any], Any]
#: From the couplings (n,) of a network and the number of a link, its matrix as maps from either layer to the other.
Maps = Callable[[Any, int], tuple[Map, Map]]


class Norms:
    """The norms of several networks that learn in lock-step, from their couplings (R, n).

    Parameters
    ----------
    layout : Layout
    most : float
        The bound.
    maps : callable
        The couplings of a link as maps between its layers.
    first : mapping of int to vector
        What the iteration of every link begins with, over its second layer.
    """

    def __init__(self, layout: Layout, most: float, maps: Maps, first: Mapping[int, Any]) -> None:
        self.layout, self.most, self.maps, self.first = layout, most, maps, first
        # By network and link. A recorded graph reads and writes these vectors: they are changed in place.
        self.vectors: dict[tuple[int, int], Any] = {}
        self.ahead: dict[tuple[int, int], Any] = {}

    def begin(self, couplings: Any) -> None:
        """Look at the couplings anew."""
        for r in range(len(couplings)):
            for k, first in self.first.items():
                vector = self.vectors.setdefault((r, k), first * 1.0)
                vector[...] = self._followed(couplings[r], k, first, _FIRST_STEPS)[1]

    def bound(self, couplings: Any) -> None:
        """Scale the couplings of every link that exceed the bound down, in place; `keep` makes it the last step."""
        for (r, k), vector in self.vectors.items():
            norm, self.ahead[r, k] = self._followed(couplings[r], k, vector, 1)
            couplings[r, self.layout.couplings[k]] *= (self.most / (norm + _TINY)).clip(max=1.0)

    def keep(self) -> None:
        """Go on from the couplings that were looked at last."""
        for key, vector in self.vectors.items():
            vector[...] = self.ahead[key]

    def _followed(self, couplings: Any, link: int, vector: Any, steps: int) -> tuple[Any, Any]:
        """Return the largest singular value, as far as so many steps of power iteration show it, and the vector."""
        forward, back = self.maps(couplings, link)
        length = None
        for _ in range(steps):
            other = back(vector)
            vector = forward(other / ((other * other).sum() ** 0.5 + _TINY))
            length = (vector * vector).sum() ** 0.5
            vector = vector / (length + _TINY)
        return length, vector


def first_vectors(network: Network) -> dict[int, FloatArray]:
    """Return the first vector of every link of a network of layers whose ends both move, by its number."""
    layout = network.graph.layout
    assert layout is not None
    moving = [k for k, link in enumerate(layout.links) if link.first or not network.clamps_inputs]
    return {k: np.random.default_rng(k).standard_normal(layout.sizes[layout.links[k].second]) for k in moving}


def norms_of(network: Network, most: float) -> Norms:
    """Return the norms of networks whose couplings are arrays."""
    layout = network.graph.layout
    assert layout is not None

    def maps(couplings: FloatArray, link: int) -> tuple[Map, Map]:
        matrix = _matrix(layout, couplings, link)
        return lambda v: v @ matrix, lambda u: matrix @ u

    return Norms(layout, most, maps, first_vectors(network))


def _matrix(layout: Layout, couplings: FloatArray, number: int) -> Any:
    link = layout.links[number]
    if link.kernel is None:
        return couplings[layout.couplings[number]].reshape(layout.weight_shape(link))
    first, second, entry = layout.listed(number)
    ends = (first - layout.starts[link.first], second - layout.starts[link.second])
    return sparse.csr_array((couplings[entry], ends), shape=(layout.sizes[link.first], layout.sizes[link.second]))
