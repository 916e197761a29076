r"""Fields: every oscillator is pulled toward a phase of its own.

    E = sum_i h_i V(psi_i - theta_i),   F_i = h_i H(psi_i - theta_i),   V' = H

A field is a clamped neighbour: it fixes the gauge, and adds h_i H'(psi_i - theta_i) to the diagonal of the Laplacian.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray
from phasegrad.graphs import Graph
from phasegrad.terms._engine import States
from phasegrad.terms._interactions import Interaction, Sine
from phasegrad.terms._parameter import Parameter, Values
from phasegrad.terms._stiffness import Stiffness
from phasegrad.terms._term import Term


class NodeField(Term):
    """A pull h_i H(psi_i - theta_i) of every oscillator toward a phase of its own.

    Subclasses name their two parameters, strength and phase, in ``every``, and their ``interaction`` H, the sine if
    left out.

    See Also
    --------
    Term : The base of every term of the energy.
    Parameter : A name, where it lives, its default and bounds.
    Network : A graph, the terms of its energy, and how data enters.

    Examples
    --------
    A pull at the third harmonic, and a gradient by its strength:

    >>> import numpy as np, phasegrad as pg
    >>> class Third(pg.terms.NodeField):
    ...     every = (pg.terms.Parameter("third_strength", least=0.0), pg.terms.Parameter("third_phase", default=0.0))
    ...     word = "third harmonic"
    ...     interaction = pg.terms.OddSeries((0, 0, 1))
    >>> network = pg.networks.ring(4, omega=[0.2, -0.1, 0.0, -0.1], outputs=[2], terms=[Third()], third_strength=0.3)
    >>> network
    Network(4 oscillators, 4 edges, 1 output, third harmonic, Sine(), gauge fixed from outside)
    >>> equilibrium = pg.find_equilibrium(network)
    >>> gradient = pg.adjoint(network, equilibrium, pg.PhaseTargets(), [0.1], wrt="third_strength")
    >>> np.round(gradient.third_strength, 3).tolist()
    [0.003, -0.002, -0.002, -0.002]
    """

    fixes_gauge = True
    local = True

    #: What it is called in words; the name of the class if left out.
    word: ClassVar[str] = ""
    interaction: Interaction = Sine()

    @property
    def phasor(self) -> bool:  # type: ignore[override]
        """Whether H is the sine."""
        return type(self.interaction) is Sine

    def force(self, graph: Graph, values: Values, phases: Array) -> Array:
        """Return h H(psi - theta)."""
        strength, phase = self._of(values)
        return strength * self.interaction.value(phase - phases)

    def energy(self, graph: Graph, values: Values, phases: Array) -> Array:
        """Return the sum of h V(psi - theta)."""
        strength, phase = self._of(values)
        return np.sum(strength * self.interaction.potential(phase - phases), axis=1)

    def stiffness(self, graph: Graph, values: Values, phases: Array) -> Stiffness:
        """Return h H'(psi - theta) on the diagonal."""
        strength, phase = self._of(values)
        return Stiffness(diagonal=strength * self.interaction.derivative(phase - phases))

    def stiffest(self, graph: Graph, values: Values) -> Stiffness:
        """Return |h| times the largest |H'|."""
        return Stiffness(diagonal=self.interaction.steepness * np.abs(self._of(values)[0]))

    def capacity(self, graph: Graph, values: Values) -> FloatArray | None:
        """Return |h| times the largest |H|."""
        return self.interaction.bound * np.abs(self._of(values)[0])

    def energy_slopes(self, graph: Graph, values: Values, phases: Array) -> dict[str, Array]:
        """Return V(psi - theta) by strength and h H(psi - theta) by phase."""
        strength, phase = self._of(values)
        angle = phase - phases
        return self._named(self.interaction.potential(angle), strength * self.interaction.value(angle))

    def force_slopes(self, graph: Graph, values: Values, phases: Array, response: Array) -> dict[str, Array]:
        """Return lambda H(psi - theta) by strength and lambda h H'(psi - theta) by phase."""
        strength, phase = self._of(values)
        angle = phase - phases
        slope = strength * self.interaction.derivative(angle)
        return self._named(response * self.interaction.value(angle), response * slope)

    def torch_force(self, graph: Graph, values: Mapping[str, Any], phases: Any) -> Any:
        """Return h H(psi - theta)."""
        strength, phase = self._of(values)
        return strength * self.interaction.torch_value(phase - phases)

    def check(self, graph: Graph, values: Values, *, signed: bool) -> None:
        """Refuse a field that is nowhere, and negative strengths unless the network is signed."""
        if len(self.parameters) != 2:
            raise ValueError(f"{type(self).__name__} must name two parameters in 'every', a strength and a phase.")
        strength, name = self._of(values)[0], self.every[0].name
        if not np.any(strength):
            raise ValueError(f"The '{name}' parameter of Network is zero everywhere. Leave it out instead.")
        if not signed and np.any(strength < 0):
            node = int(np.argmax(strength < 0))
            place = graph.sharing.name("nodes", node)
            raise ValueError(
                f"The {self.describe()} at {place} has strength {strength[node]}, but negative strengths need "
                "signed=True."
            )

    def phasor_field(self, values: Values) -> tuple[Array, Array] | None:
        """Return h cos(psi) and h sin(psi); None where H is not the sine."""
        if not self.phasor:
            return None
        strength, phase = self._of(values)
        return strength * np.cos(phase), strength * np.sin(phase)

    def harmonics(self, values: Values) -> tuple[Array, Array] | None:
        """Return h a_k cos(k psi) and h a_k sin(k psi); None where H is no finite series."""
        series = self.interaction.series
        if series is None:
            return None
        strength, phase = self._of(values)
        angles = np.stack([k * phase for k in range(1, len(series) + 1)])
        weights = np.reshape(series, (-1, 1, 1)) * strength
        return weights * np.cos(angles), weights * np.sin(angles)

    def summed_contrast(
        self, graph: Graph, values: Values, plus: States, minus: States, share: Array
    ) -> dict[str, FloatArray]:
        """Return the difference of summed slopes; of a finite series by sums of cosines and sines alone."""
        series = self.interaction.series
        if series is None or not (share.shape[0] == 1 and graph.has_blocks):
            return super().summed_contrast(graph, values, plus, minus, share)
        strength, phase = self._of(values)
        along, across = np.zeros((2, *phase.shape))
        for k, weight in enumerate(series, 1):
            if weight == 0:
                continue
            cos, sin = np.zeros((2, 1, graph.size))
            for total, first, second in zip((cos, sin), plus.multiple(k), minus.multiple(k), strict=True):
                total[0, graph.blocks.order] = share[0] @ (first - second)
            x, y = np.cos(k * phase), np.sin(k * phase)
            along -= weight / k * (x * cos + y * sin)
            across += weight * (y * cos - x * sin)
        return self._named(along, strength * across)

    def grounded(self, graph: Graph, values: Values) -> BoolArray | None:
        """Return where the strength is not zero."""
        return np.asarray(self._of(values)[0] != 0)

    def describe(self) -> str:
        """Say that there is one."""
        return self.word or type(self).__name__


@dataclass(frozen=True)
class Field(NodeField):
    """The bias field: a pull through the network's own interaction."""

    every = (Parameter("field_strength", least=0.0), Parameter("field_phase", default=0.0))
    word = "bias field"

    interaction: Interaction = field(default_factory=Sine)

    @classmethod
    def of(cls, names: Sequence[str], interaction: Any) -> Self | None:
        """Return the field of a network that was given one."""
        return cls(interaction) if any(parameter.name in names for parameter in cls.every) else None
