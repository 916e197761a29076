r"""Anisotropic coupling: the XY model with two unlike axes, or the sine of a sum of phases, after Winfree.

    E = sum over edges of K [V(theta_j - theta_i) - q V(theta_i + theta_j)],    V' = H
    F_i = sum_j K_ij [H(theta_j - theta_i) + q_ij H(theta_i + theta_j)]

For the sine that is E = -sum K [(1 - q) cos theta_i cos theta_j + (1 + q) sin theta_i sin theta_j]: couplings K (1 - q)
along one axis and K (1 + q) along the other. At q = 0 the network may turn as a whole, at q = 1 it is a Hopfield
network of activities sin theta. The sum ties the phases to the frame, and puts -K q H'(theta_i + theta_j) times
(x_i + x_j)^2 into the quadratic form of the Laplacian.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray
from phasegrad.graphs import Graph
from phasegrad.terms._coupling import Coupling
from phasegrad.terms._engine import LocalField
from phasegrad.terms._parameter import Parameter, Values
from phasegrad.terms._stiffness import Stiffness


@dataclass(frozen=True)
class Anisotropy(Coupling):
    """Coupling along the edges with an ``anisotropy`` q, the same in both directions.

    Examples
    --------
    Two oscillators that the sum of their phases turns toward a quarter turn, both the one way or both the other:

    >>> import numpy as np, phasegrad as pg
    >>> states = pg.find_equilibria(pg.Network([[0, 1]], 1.0, [0.0, 0.0], anisotropy=0.5))
    >>> np.round(np.sort(states.phases[:, 0]) / np.pi, 6).tolist(), np.round(states.energy, 6).tolist()
    ([-0.5, 0.5], [-1.5, -1.5])
    """

    every = (Coupling.every[0], Parameter("anisotropy", "edges"))
    fixes_gauge = True
    phasor = False

    @classmethod
    def of(cls, names: Sequence[str], interaction: Any) -> Self | None:
        """Return the coupling of a network that was given an anisotropy."""
        return super().of(names, interaction) if cls.every[-1].name in names else None

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The strength and the anisotropy."""
        return self.every

    def force(self, graph: Graph, values: Values, phases: Array) -> Array:
        """Return sum_j K [H(theta_j - theta_i) + q H(theta_i + theta_j)]."""
        strength, share = self._of(values)
        across, along = (self.interaction.value(each) for each in _differences_and_sums(graph, phases))
        return graph.at_ends(strength * (share * along + across), strength * (share * along - across))

    def energy(self, graph: Graph, values: Values, phases: Array) -> Array:
        """Return the sum of K [V(theta_j - theta_i) - q V(theta_i + theta_j)]."""
        return np.sum(self._of(values)[0] * self.energy_slopes(graph, values, phases)[self.every[0].name], axis=1)

    def stiffness(self, graph: Graph, values: Values, phases: Array) -> Stiffness:
        """Return K H'(theta_j - theta_i) of differences and -K q H'(theta_i + theta_j) of sums."""
        strength, share = self._of(values)
        across, along = (self.interaction.derivative(each) for each in _differences_and_sums(graph, phases))
        return Stiffness(strength * across, strength * across, sums=-strength * share * along)

    def stiffest(self, graph: Graph, values: Values) -> Stiffness:
        """Return |K| and |K q| times the largest |H'|."""
        strength, share = (np.abs(each) for each in self._of(values))
        most = self.interaction.steepness * strength
        return Stiffness(most, most, sums=most * share)

    def capacity(self, graph: Graph, values: Values) -> FloatArray | None:
        """Return the sum of |K| (1 + |q|) times the largest |H|."""
        strength, share = (np.abs(each) for each in self._of(values))
        most = strength * (1.0 + share)
        return self.interaction.bound * graph.at_ends(most, most)

    def energy_slopes(self, graph: Graph, values: Values, phases: Array) -> dict[str, Array]:
        """Return V(theta_j - theta_i) - q V(theta_i + theta_j) by strength and -K V(theta_i + theta_j) by q."""
        strength, share = self._of(values)
        across, along = (self.interaction.potential(each) for each in _differences_and_sums(graph, phases))
        return self._named(across - share * along, -strength * along)

    def force_slopes(self, graph: Graph, values: Values, phases: Array, response: Array) -> dict[str, Array]:
        """Return (lambda_i + lambda_j) q H(sum) - (lambda_j - lambda_i) H(difference) by strength, and by q."""
        strength, share = self._of(values)
        across, along = (self.interaction.value(each) for each in _differences_and_sums(graph, phases))
        apart, together = _differences_and_sums(graph, response)
        return self._named(together * share * along - apart * across, strength * together * along)

    def torch_force(self, graph: Graph, values: Mapping[str, Any], phases: Any) -> Any:
        """Return sum_j K [H(theta_j - theta_i) + q H(theta_i + theta_j)], summed edge by edge."""
        import torch

        i, j = torch.tensor(graph.edges.copy()).T
        (strength, share), value = self._of(values), self.interaction.torch_value
        across, along = value(phases[j] - phases[i]), share * value(phases[i] + phases[j])
        force = torch.zeros_like(phases).index_add(0, i, strength * (along + across))
        return force.index_add(0, j, strength * (along - across))

    def check(self, graph: Graph, values: Values, *, signed: bool) -> None:
        """Refuse an anisotropy that is nowhere."""
        super().check(graph, values, signed=signed)
        strength, share = self._of(values)
        if not np.any(strength * share):
            raise ValueError("The 'anisotropy' parameter of Network is zero everywhere. Leave it out instead.")

    def grounded(self, graph: Graph, values: Values) -> BoolArray | None:
        """Return the ends of edges whose strength and anisotropy are not zero: neither difference nor sum is free."""
        strength, share = self._of(values)
        tied = np.zeros(graph.size, dtype=bool)
        tied[graph.edges[strength * share != 0]] = True
        return tied

    def local_field(self, values: Values) -> LocalField | None:
        """Return K, and K q of the mirrored phasors, in both directions."""
        strength, share = self._of(values)
        mirrored = strength * share
        return LocalField(np.stack([strength, strength]), mirrored=np.stack([mirrored, mirrored]))

    def describe(self) -> str:
        """Say that there is one."""
        return "anisotropic coupling"


def _differences_and_sums(graph: Graph, phases: Array) -> tuple[Array, Array]:
    """Return theta_j - theta_i and theta_i + theta_j of every edge, (B, E) each."""
    first, second = (np.take(phases, ends, axis=1) for ends in (graph.first, graph.second))
    return second - first, first + second
