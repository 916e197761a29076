r"""Coupling: E = sum over edges of K V(theta_j - theta_i), F_i = sum_j K_ij H(theta_j - theta_i), V' = H.

With the edge weights w = K H'(theta_j - theta_i) it adds the graph Laplacian of w to L. Where the two directions of an
edge differ there is no energy; the formulas for the force stay.

For the sine, H = sin, sums over many samples b are products of matrices,

    sum_b w_b cos(theta_i - theta_j) = (C^T W C + S^T W S)_ij,     C = cos theta, S = sin theta, W = diag w

so that no array of samples times edges is made where a graph falls into dense blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray
from phasegrad.graphs import Graph
from phasegrad.terms._checks import check_strongest
from phasegrad.terms._engine import LocalField, States
from phasegrad.terms._interactions import Interaction, Sine, cosines
from phasegrad.terms._parameter import Parameter, Values
from phasegrad.terms._stiffness import Stiffness
from phasegrad.terms._term import Term


@dataclass(frozen=True)
class Coupling(Term):
    """Coupling along the edges.

    Parameters
    ----------
    interaction : Interaction
        The odd coupling function H.
    reciprocal : bool
        Whether both directions of an edge have the same strength; else ``coupling`` acts on the first end and
        ``coupling_reverse`` on the second.
    """

    every = tuple(Parameter(name, "edges", least=1e-6, decays=True) for name in ("coupling", "coupling_reverse"))

    interaction: Interaction = field(default_factory=Sine)
    reciprocal: bool = True

    @classmethod
    def of(cls, names: Sequence[str], interaction: Any) -> Self | None:
        """Return the coupling of a network."""
        return cls(interaction, Coupling.every[1].name not in names)

    @property
    def strengths(self) -> tuple[Parameter, ...]:
        """The strength, of each direction where they differ."""
        return self.every[:1] if self.reciprocal else self.every[:2]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The strengths."""
        return self.strengths

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether there is an energy."""
        return self.reciprocal

    @property
    def phasor(self) -> bool:  # type: ignore[override]
        """Whether it is the sine in both directions alike."""
        return self.reciprocal and type(self.interaction) is Sine

    def force(self, graph: Graph, values: Values, phases: Array) -> Array:
        """Return sum_j K_ij H(theta_j - theta_i)."""
        pull, (strength, reverse) = self.interaction.value(graph.angles(phases)), self._directions(values)
        forward = strength * pull
        return graph.at_ends(forward, -forward if self.reciprocal else -reverse * pull)

    def energy(self, graph: Graph, values: Values, phases: Array) -> Array:
        """Return the sum of K V(theta_j - theta_i)."""
        return np.sum(self._directions(values)[0] * self.interaction.potential(graph.angles(phases)), axis=1)

    def stiffness(self, graph: Graph, values: Values, phases: Array) -> Stiffness:
        """Return K H'(theta_j - theta_i)."""
        slope, (strength, reverse) = self.interaction.derivative(graph.angles(phases)), self._directions(values)
        forward = strength * slope
        return Stiffness(forward, forward if self.reciprocal else reverse * slope)

    def stiffest(self, graph: Graph, values: Values) -> Stiffness:
        """Return |K| times the largest |H'|."""
        forward, backward = self._strengths(values)
        steep = self.interaction.steepness
        return Stiffness(steep * forward, steep * backward)

    def capacity(self, graph: Graph, values: Values) -> FloatArray | None:
        """Return the sum of |K| times the largest |H|."""
        return self.interaction.bound * graph.at_ends(*self._strengths(values))

    def energy_slopes(self, graph: Graph, values: Values, phases: Array) -> dict[str, Array]:
        """Return V(theta_j - theta_i)."""
        return self._named(self.interaction.potential(graph.angles(phases)))

    def force_slopes(self, graph: Graph, values: Values, phases: Array, response: Array) -> dict[str, Array]:
        """Return (lambda_i - lambda_j) H(theta_j - theta_i), or each direction's part of it."""
        pull = self.interaction.value(graph.angles(phases))
        if self.reciprocal:
            return self._named(-graph.angles(response) * pull)
        first, second = (np.take(response, end, axis=1) for end in (graph.first, graph.second))
        return self._named(first * pull, -second * pull)

    def torch_force(self, graph: Graph, values: Mapping[str, Any], phases: Any) -> Any:
        """Return the row sums of the dense matrix K H(theta_j - theta_i)."""
        import torch

        i, j = torch.tensor(graph.edges.copy()).T
        strength, reverse = self._directions(values)
        matrix = torch.zeros((graph.size, graph.size), dtype=phases.dtype)
        matrix = matrix.index_put((i, j), strength).index_put((j, i), reverse)
        return (matrix * self.interaction.torch_value(phases[None, :] - phases[:, None])).sum(dim=1)

    def check(self, graph: Graph, values: Values, *, signed: bool) -> None:
        """Refuse couplings that are all next to nothing, or not positive unless the network is signed."""
        for each in self.strengths:
            check_strongest(each.name, values[each.name])
        if signed:
            return
        forward, backward = self._directions(values)
        bad = (np.minimum(forward, backward) < 0) | (np.maximum(forward, backward) == 0)
        if np.any(bad):
            k = int(np.argmax(bad))
            place = graph.sharing.name("edges", k)
            given = ", ".join(f"{values[each.name][k]:g}" for each in self.strengths)
            raise ValueError(
                f"The coupling of {place} must be positive. Got {given}. Leave absent edges out; for negative "
                "couplings say signed=True."
            )

    def turn_edges(self, values: dict[str, Array], turned: BoolArray) -> None:
        """Exchange the directions of the edges that were given the other way around."""
        if not self.reciprocal:
            forward, backward = self._directions(values)
            forward[turned], backward[turned] = backward[turned], forward[turned]

    def phasor_edges(self, values: Values) -> Array | None:
        """Return K."""
        return self._directions(values)[0]

    @property
    def has_local_field(self) -> bool:
        """Whether H is the sine."""
        return type(self.interaction) is Sine

    def local_field(self, values: Values) -> LocalField | None:
        """Return the strength of each direction."""
        return LocalField(np.stack(np.broadcast_arrays(*self._directions(values))))

    def links(self, values: Values) -> tuple[BoolArray, BoolArray] | None:
        """Return where each direction is not zero."""
        forward, backward = self._strengths(values)
        return forward != 0, backward != 0

    def summed_contrast(
        self, graph: Graph, values: Values, plus: States, minus: States, share: Array
    ) -> dict[str, FloatArray]:
        """Return the difference of summed slopes, by products of matrices where the graph falls into blocks."""
        if not (self.phasor and share.shape[0] == 1 and graph.has_blocks):
            return super().summed_contrast(graph, values, plus, minus, share)
        blocks, total = graph.blocks, np.zeros(graph.n_edges)
        weight = share[0][:, None]
        for first, second, fixed in zip(plus.moving, minus.moving, plus.held, strict=True):
            weighed = weight * second, weight * first
            for block in blocks.outer:
                block.collect(fixed.T @ (weighed[0] - weighed[1])[:, block.columns], total)
            for block in blocks.inner:
                matrix = weighed[0][:, block.rows].T @ second[:, block.columns]
                matrix -= weighed[1][:, block.rows].T @ first[:, block.columns]
                block.collect(matrix, total)
        return self._named(total[None])

    def summed_products(
        self, graph: Graph, values: Values, phases: Array, response: Array, share: Array
    ) -> dict[str, FloatArray]:
        """Return the sum of (lambda_i - lambda_j) sin(theta_j - theta_i), by products of matrices."""
        if not (self.phasor and share.shape[0] == 1 and graph.has_blocks):
            return super().summed_products(graph, values, phases, response, share)
        blocks, total = graph.blocks, np.zeros(graph.n_edges)
        for nodes, group in ((blocks.order, blocks.inner), (graph.held, blocks.outer)):
            for block in group:
                rows, columns = nodes[block.rows], blocks.order[block.columns]
                cos_i, sin_i = cosines(np.take(phases, rows, axis=1))
                cos_j, sin_j = cosines(np.take(phases, columns, axis=1))
                push, pull = (share[0][:, None] * np.take(response, ends, axis=1) for ends in (rows, columns))
                # sum_b (lambda_i - lambda_j) (sin_j cos_i - cos_j sin_i), i in the rows and j in the columns
                matrix = (push * cos_i).T @ sin_j - (push * sin_i).T @ cos_j
                matrix -= cos_i.T @ (pull * sin_j) - sin_i.T @ (pull * cos_j)
                block.collect(matrix, total)
        return self._named(total[None])

    def describe(self) -> str:
        """Say where the two directions differ."""
        return "" if self.reciprocal else "non-reciprocal coupling"

    def _directions(self, values: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return the strengths with which the second end acts on the first, and the first on the second."""
        return values[self.strengths[0].name], values[self.strengths[-1].name]

    def _strengths(self, values: Values) -> tuple[Array, Array]:
        forward, backward = self._directions(values)
        return np.abs(forward), np.abs(backward)
