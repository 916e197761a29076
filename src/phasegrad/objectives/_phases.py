"""Target phases: every output has a phase to be at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import Array, node_tuple
from phasegrad.networks import Network
from phasegrad.objectives._cost import Cost


class Squares(Cost):
    """Half the squared distance of the output phases to target phases."""

    def cost(self, phases: ArrayLike, target: ArrayLike) -> Array:
        """Return the cost, shape (...), of output phases (..., M)."""
        return np.asarray(0.5 * np.sum((np.asarray(phases) - np.asarray(target)) ** 2, axis=-1))

    def force(self, phases: ArrayLike, target: ArrayLike) -> Array:
        """Return the pull toward the target, shape (..., M)."""
        return np.asarray(target) - np.asarray(phases)

    def hessian(self, phases: ArrayLike, target: ArrayLike) -> Array:
        """Return the identity, shape (..., M, M)."""
        del target
        shape = np.shape(phases)
        return np.broadcast_to(np.eye(shape[-1]), (*shape, shape[-1]))

    def torch_cost(self, phases: Any, target: Any) -> Any:
        """Return the cost of one sample as tensors."""
        return 0.5 * ((phases - target) ** 2).sum()


@dataclass(frozen=True)
class PhaseTargets(Squares):
    """Half the squared distance of the output phases to target phases: C = 1/2 sum (theta - target)^2.

    Not periodic: a phase that is a full turn away from its target is far from it.

    Parameters
    ----------
    outputs : sequence of int, optional
        The nodes that have targets; the network's outputs if left out.

    See Also
    --------
    Cost : The base of every cost of output phases.
    PeriodicDistance : 1 - cos of the distance from the target.
    NearestTarget : The paper's cost with the decision it asks for.

    Examples
    --------
    >>> import phasegrad as pg
    >>> float(pg.PhaseTargets().cost([0.1, -0.1], [0.3, -0.1]).round(12))
    0.02
    """

    outputs: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.outputs is None:
            return
        given: Any = self.outputs
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise TypeError(f"The 'outputs' parameter of PhaseTargets must be a list of node numbers. Got {given!r}.")
        object.__setattr__(self, "outputs", tuple(given))

    def nodes(self, network: Network) -> tuple[int, ...]:
        """Nodes whose phases the cost reads."""
        if self.outputs is None:
            return super().nodes(network)
        nodes = node_tuple("outputs", self.outputs, network.size, "PhaseTargets")
        held = set(nodes) & set(network.held.tolist())
        if held or not nodes:
            raise ValueError(
                f"The outputs {nodes} of PhaseTargets must be oscillators that move, at least one. "
                f"Nodes {network.held.tolist()} are held."
            )
        return nodes
