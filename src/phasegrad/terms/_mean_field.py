r"""The mean field: every oscillator is coupled to every other with one strength, through their mean phasor.

    E = -(K / N) sum_{i<j} cos(theta_j - theta_i),   F_i = (K / N) sum_j sin(theta_j - theta_i)

With C = sum_j cos theta_j and S = sum_j sin theta_j the force is (K / N) (S cos theta_i - C sin theta_i), N operations
for a sum over all pairs. The Laplacian is a diagonal less a matrix of rank two,

    L = diag((K / N) (C cos theta_i + S sin theta_i)) - (K / N) (cos theta cos theta^T + sin theta sin theta^T)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from phasegrad._validation import Array, FloatArray
from phasegrad.graphs import Graph
from phasegrad.terms._checks import check_strongest
from phasegrad.terms._parameter import Parameter, Values
from phasegrad.terms._stiffness import Stiffness
from phasegrad.terms._term import Term


@dataclass(frozen=True)
class MeanField(Term):
    """Coupling of all to all through their mean field, of the strength ``global_coupling`` over the size, by sines."""

    every = (Parameter("global_coupling", "network", least=1e-6, decays=True),)
    has_local_field = True

    def force(self, graph: Graph, values: Values, phases: Array) -> Array:
        """Return (K / N) (S cos theta - C sin theta)."""
        cos, sin, along, across = _phasors(phases)
        return self._share(graph, values) * (across * cos - along * sin)

    def energy(self, graph: Graph, values: Values, phases: Array) -> Array:
        """Return -(K / 2N) (C^2 + S^2 - N)."""
        return (self._of(values)[0] * self.energy_slopes(graph, values, phases)["global_coupling"])[:, 0]

    def stiffness(self, graph: Graph, values: Values, phases: Array) -> Stiffness:
        """Return the diagonal and the part of rank two."""
        cos, sin, along, across = _phasors(phases)
        share, both = self._share(graph, values), np.stack([cos, sin], axis=2)
        return Stiffness(diagonal=share * (along * cos + across * sin), outer=(share[:, :, None] * both, both))

    def stiffest(self, graph: Graph, values: Values) -> Stiffness:
        """Return the same with all phases alike."""
        ones = np.ones((1, graph.size))
        share = np.abs(self._share(graph, values)) * ones
        return Stiffness(diagonal=graph.size * share, outer=(share[:, :, None], ones[:, :, None]))

    def capacity(self, graph: Graph, values: Values) -> FloatArray | None:
        """Return what all others can pull an oscillator together."""
        return (graph.size - 1) * np.abs(self._share(graph, values)) * np.ones((1, graph.size))

    def energy_slopes(self, graph: Graph, values: Values, phases: Array) -> dict[str, Array]:
        """Return -(C^2 + S^2 - N) / 2N."""
        _, _, along, across = _phasors(phases)
        return self._named(-(along**2 + across**2 - graph.size) / (2 * graph.size))

    def force_slopes(self, graph: Graph, values: Values, phases: Array, response: Array) -> dict[str, Array]:
        """Return sum_i lambda_i (S cos theta_i - C sin theta_i) / N."""
        cos, sin, along, across = _phasors(phases)
        pull = across * cos - along * sin
        return self._named(np.sum(response * pull, axis=1, keepdims=True) / graph.size)

    def torch_force(self, graph: Graph, values: Mapping[str, Any], phases: Any) -> Any:
        """Return (K / N) (S cos theta - C sin theta)."""
        cos, sin = phases.cos(), phases.sin()
        return self._of(values)[0] / graph.size * (sin.sum() * cos - cos.sum() * sin)

    def check(self, graph: Graph, values: Values, *, signed: bool) -> None:
        """Refuse a strength that is next to nothing, or not positive unless the network is signed."""
        check_strongest("global_coupling", self._of(values)[0])
        strength = float(self._of(values)[0][0])
        if strength <= 0 and not signed:
            raise ValueError(
                f"The 'global_coupling' parameter of Network must be positive. Got {strength:g}. For oscillators that "
                "repel each other say signed=True."
            )

    def mean_strength(self, graph: Graph, values: Values) -> Array | None:
        """Return K / N."""
        return self._share(graph, values)

    def joins_all(self, values: Values) -> bool:
        """Return whether the strength is not zero."""
        return bool(np.all(self._of(values)[0] != 0))

    def describe(self) -> str:
        """Say that there is one."""
        return "mean field"

    def _share(self, graph: Graph, values: Values) -> Array:
        """Return K / N, (b, 1)."""
        return self._of(values)[0] / graph.size


def _phasors(phases: Array) -> tuple[Array, Array, Array, Array]:
    """Return cosines and sines (B, N), and their sums (B, 1)."""
    cos, sin = np.cos(phases), np.sin(phases)
    return cos, sin, np.sum(cos, axis=1, keepdims=True), np.sum(sin, axis=1, keepdims=True)
