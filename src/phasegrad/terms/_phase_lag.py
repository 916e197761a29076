r"""Phase lag: coupling that arrives late, after Sakaguchi and Kuramoto.

    F_i = sum_j K_ij H(theta_j - theta_i - alpha_ij),     alpha_ij = alpha_ji

A signal that takes the time tau at the common frequency Omega lags by Omega tau. Both ends of an edge then lag behind
each other, action is not minus reaction, and there is no energy. The network locks at a common frequency of its own:
oscillators in phase slow each other down by K H(alpha) for every neighbour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from phasegrad._validation import Array
from phasegrad.graphs import Graph
from phasegrad.terms._coupling import Coupling
from phasegrad.terms._engine import LocalField
from phasegrad.terms._parameter import Parameter, Values
from phasegrad.terms._stiffness import Stiffness


@dataclass(frozen=True)
class PhaseLag(Coupling):
    """Coupling along the edges that lags by ``lag``, in radians, in both directions alike.

    Examples
    --------
    A ring in phase, each oscillator slowed down by two neighbours:

    >>> import math, phasegrad as pg
    >>> network = pg.networks.ring(5, lag=0.3)
    >>> equilibrium = pg.find_equilibrium(network, eigenvalue=True)
    >>> bool(equilibrium.stable), round(float(equilibrium.drift), 6), round(-2 * math.sin(0.3), 6)
    (True, -0.59104, -0.59104)
    """

    every = (*Coupling.every, Parameter("lag", "edges"))
    symmetric = False
    phasor = False

    @classmethod
    def of(cls, names: Sequence[str], interaction: Any) -> Self | None:
        """Return the coupling of a network that was given a lag."""
        return super().of(names, interaction) if cls.every[-1].name in names else None

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The strength, of each direction where they differ, and the lag."""
        return (*super().parameters, self.every[-1])

    def force(self, graph: Graph, values: Values, phases: Array) -> Array:
        """Return sum_j K_ij H(theta_j - theta_i - alpha)."""
        (forward, backward), (ahead, behind) = self._directions(values), self._late(graph, values, phases)
        return graph.at_ends(forward * self.interaction.value(ahead), -backward * self.interaction.value(behind))

    def stiffness(self, graph: Graph, values: Values, phases: Array) -> Stiffness:
        """Return K H'(theta_j - theta_i - alpha) on the first end, K H'(theta_j - theta_i + alpha) on the second."""
        slopes = (self.interaction.derivative(angle) for angle in self._late(graph, values, phases))
        return Stiffness(*(strength * slope for strength, slope in zip(self._directions(values), slopes, strict=True)))

    def force_slopes(self, graph: Graph, values: Values, phases: Array, response: Array) -> dict[str, Array]:
        """Return lambda_i H(ahead) - lambda_j H(behind) by strength, minus lambda . stiffness by lag."""
        first, second = (np.take(response, end, axis=1) for end in (graph.first, graph.second))
        ahead, behind = (self.interaction.value(angle) for angle in self._late(graph, values, phases))
        strengths = [first * ahead - second * behind] if self.reciprocal else [first * ahead, -second * behind]
        forward, backward, *_ = self.stiffness(graph, values, phases)
        return self._named(*strengths, -(first * forward + second * backward))

    def torch_force(self, graph: Graph, values: Mapping[str, Any], phases: Any) -> Any:
        """Return sum_j K_ij H(theta_j - theta_i - alpha), summed edge by edge."""
        import torch

        i, j = torch.tensor(graph.edges.copy()).T
        (forward, backward), lag, value = self._directions(values), self._of(values)[-1], self.interaction.torch_value
        across = phases[j] - phases[i]
        on_first, on_second = forward * value(across - lag), backward * value(-across - lag)
        return torch.zeros_like(phases).index_add(0, i, on_first).index_add(0, j, on_second)

    def local_field(self, values: Values) -> LocalField | None:
        """Return K cos(alpha) and K sin(alpha) of each direction."""
        strength, lag = np.stack(np.broadcast_arrays(*self._directions(values))), self._of(values)[-1]
        return LocalField(strength * np.cos(lag), strength * np.sin(lag))

    def describe(self) -> str:
        """Say that it lags, and where the two directions differ."""
        return ", ".join(word for word in (super().describe(), "phase lag") if word)

    def _late(self, graph: Graph, values: Values, phases: Array) -> tuple[Array, Array]:
        """Return theta_j - theta_i as the first end sees it, the lag behind, and as the second, the lag ahead."""
        across, lag = graph.angles(phases), self._of(values)[-1]
        return across - lag, across + lag
