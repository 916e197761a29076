"""How values that nodes or edges share spread over them, and how what was found for each of them is collected again.

Without a layout every node and every edge has a value of its own, and arrays pass through as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phasegrad._validation import Array, FloatArray, IntArray
from phasegrad.graphs._layout import Layout


@dataclass(frozen=True, eq=False)
class Sharing:
    """Which value every node and every edge of a graph has; ``on`` is "nodes", "edges" or "network" everywhere."""

    pairs: IntArray | Layout
    size: int

    def width(self, on: str) -> int:
        """Return how many values there are."""
        if on == "network":
            return 1
        if isinstance(self.pairs, Layout):
            return self.pairs.n_node_values if on == "nodes" else self.pairs.n_couplings
        return self.size if on == "nodes" else len(self.pairs)

    def index(self, on: str) -> IntArray | None:
        """Return the number of the value that every node or edge has; None where each has its own."""
        if isinstance(self.pairs, Layout) and on != "network":
            return self.pairs.value_of if on == "nodes" else self.pairs.coupling_of
        return None

    def spread(self, on: str, values: Array) -> Array:
        """Return values (..., width) as those of every node or edge, (..., N or E)."""
        index = self.index(on)
        return values if index is None else np.take(values, index, axis=-1)

    def collect(self, on: str, slopes: Array) -> Array:
        """Return sums over the nodes or edges that share a value, (..., width), of slopes (..., N or E).

        Counted sample by sample in one order, so that a sample's sums round alike in every batch.
        """
        index = self.index(on)
        if index is None:
            return slopes
        width, rows = self.width(on), slopes.reshape(-1, slopes.shape[-1])
        sums = np.empty((rows.shape[0], width))
        for row, slope in zip(sums, rows, strict=True):
            row[:] = np.bincount(index, slope, width)
        return sums.reshape(*slopes.shape[:-1], width)

    def counts(self, on: str) -> FloatArray:
        """Return how many nodes or edges have each value, (width,)."""
        index = self.index(on)
        return np.ones(self.width(on)) if index is None else np.bincount(index, minlength=self.width(on)).astype(float)

    def turned(self, on: str, values: Array, which: IntArray, by: Array) -> Array:
        """Return values (B, N or E) of nodes or edges, those that share value ``which`` (B,) turned by ``by`` (B,)."""
        index = self.index(on)
        if index is not None:
            return values + by[:, None] * (index == which[:, None])
        values = values.copy()
        values[np.arange(values.shape[0]), which] += by
        return values

    def name(self, on: str, number: int) -> str:
        """Return in words which value this is."""
        if on == "network":
            return "the network"
        layout = self.pairs
        if not isinstance(layout, Layout):
            return f"node {number}" if on == "nodes" else f"edge ({layout[number, 0]}, {layout[number, 1]})"
        parts = layout.node_values if on == "nodes" else layout.couplings
        k = next(k for k, part in enumerate(parts) if number < part.stop)
        place = number - parts[k].start
        if on == "nodes":
            return f"{'node' if len(layout.shapes[k]) == 1 else 'channel'} {place} of layer {k}"
        link = layout.links[k]
        entry = np.unravel_index(place, layout.weight_shape(link))
        return f"weight {tuple(map(int, entry))} of the link from layer {link.first} to {link.second}"
