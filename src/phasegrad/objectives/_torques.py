"""Torques: a nudge that is the same wherever the outputs are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import Array
from phasegrad.objectives._cost import Cost


@dataclass(frozen=True)
class Torques(Cost):
    """A constant torque on every output, given as the target: C = -sum torque theta.

    A nudge by it is the error of a free state, frozen: ``Nudge(Torques(), objective.force(phases, target), beta)``. It
    has no curvature, so that it can pull either way at any strength that the network can hold.

    See Also
    --------
    Nudge : A weak pull of the outputs.
    Cost : The base of every cost of output phases.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.layered(2, 5, 2, seed=0)
    >>> pulled = pg.find_equilibrium(network, [0.5, -0.5], nudge=pg.Nudge(pg.objectives.Torques(), [0.3, -0.3], -2.0))
    >>> pulled.stable.item()
    True
    """

    def cost(self, phases: ArrayLike, target: ArrayLike) -> Array:
        """Return minus the work of the torques, shape (...), at output phases (..., M)."""
        return np.asarray(-np.sum(np.asarray(target) * np.asarray(phases), axis=-1))

    def force(self, phases: ArrayLike, target: ArrayLike) -> Array:
        """Return the torques, shape (..., M)."""
        return np.broadcast_to(np.asarray(target), np.shape(phases))

    def hessian(self, phases: ArrayLike, target: ArrayLike) -> Array:
        """Return zeros, shape (..., M, M)."""
        del target
        shape = np.shape(phases)
        return np.zeros((*shape, shape[-1]))

    def torch_cost(self, phases: Any, target: Any) -> Any:
        """Return the cost of one sample as tensors."""
        return -(phases * target).sum()
