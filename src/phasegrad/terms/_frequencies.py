r"""Natural frequencies: E = -sum_i omega_i theta_i, F_i = omega_i.

Where nothing else fixes the gauge the frame turns with the mean frequency, and what acts is omega minus its mean over
all oscillators, inputs included. A gradient by these relative frequencies, each taken as independent, is the paper's
identity; what one turns are the raw ones, and their gradient is the same minus its own mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from phasegrad._validation import Array
from phasegrad.graphs import Graph
from phasegrad.terms._parameter import Parameter, Values
from phasegrad.terms._term import Term


@dataclass(frozen=True)
class Frequencies(Term):
    """Natural frequencies omega, one per oscillator."""

    every = (Parameter("omega"),)
    drives = True
    phasor = True

    def force(self, graph: Graph, values: Values, phases: Array) -> Array:
        """Return omega."""
        (omega,) = self._of(values)
        return omega if omega.shape == phases.shape else np.broadcast_to(omega, phases.shape)

    def energy(self, graph: Graph, values: Values, phases: Array) -> Array:
        """Return minus omega . theta."""
        return -np.sum(self._of(values)[0] * phases, axis=1)

    def energy_slopes(self, graph: Graph, values: Values, phases: Array) -> dict[str, Array]:
        """Return minus theta."""
        return self._named(-phases)

    def force_slopes(self, graph: Graph, values: Values, phases: Array, response: Array) -> dict[str, Array]:
        """Return the response itself."""
        return self._named(response)

    def torch_force(self, graph: Graph, values: Mapping[str, Any], phases: Any) -> Any:
        """Return omega."""
        return self._of(values)[0]

    def in_frame(self, graph: Graph, values: Values, frequencies: Array | None) -> dict[str, Array]:
        """Return omega with the inputs at their frequencies, counted from the mean where the frame turns with it."""
        omega = self._driven(graph, values, frequencies)
        return self._named(omega - omega.mean(axis=1, keepdims=True) if graph.pinned else omega)

    def frame_frequency(self, graph: Graph, values: Values, frequencies: Array | None) -> Array | None:
        """Return the mean of omega with the inputs at their frequencies."""
        return self._driven(graph, values, frequencies).mean(axis=1) if graph.pinned else None

    def _driven(self, graph: Graph, values: Values, frequencies: Array | None) -> Array:
        """Return omega with the inputs at their frequencies."""
        (omega,) = self._of(values)
        if frequencies is None:
            return omega
        driven = np.empty((len(frequencies) if len(omega) == 1 else len(omega), graph.size))
        driven[:] = omega
        driven[:, list(graph.inputs)] = frequencies
        return driven

    def input_slope(self, graph: Graph, name: str, slope: Array) -> Array:
        """Return the raw gradient at the inputs: the frequency of an input moves the mean with it."""
        raw = slope - slope.mean(axis=-1, keepdims=True) if graph.pinned else slope
        return np.take(raw, graph.inputs, axis=-1)

    def torch_in_frame(self, graph: Graph, values: Mapping[str, Any], frequencies: Any) -> dict[str, Any]:
        """Return omega with the inputs at their frequencies, less its mean where the frame turns with it."""
        import torch

        omega = self._of(values)[0].index_put((torch.tensor(graph.inputs),), frequencies)
        return self._named(omega - omega.mean() if graph.pinned else omega)

    def drive(self, graph: Graph, values: Values) -> Array | None:
        """Return omega."""
        return self._of(values)[0]

    def raw_slope(self, graph: Graph, name: str, slope: Array) -> Array:
        """Return the gradient minus its mean where the frame turns with the mean frequency."""
        if not graph.pinned:
            return slope
        mean = slope.sum(axis=-1, keepdims=True) / graph.size
        return slope - graph.sharing.counts("nodes") * mean

    def turned(self, graph: Graph, name: str, values: Array, which: Array, by: Array, *, raw: bool) -> Array:
        """Return omega with one entry turned; a raw one moves the mean with it."""
        turned = super().turned(graph, name, values, which, by, raw=raw)
        if not (raw and graph.pinned):
            return turned
        moved = by * graph.sharing.counts("nodes")[which]
        return turned - moved[:, None] / graph.size
