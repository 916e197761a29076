"""A nudge: a weak pull of the outputs down the slope of a cost, as people give it and laid flat over a batch."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import Array, IntArray
from phasegrad.objectives import Cost


@dataclass(frozen=True)
class Nudge:
    """A weak pull of the outputs down the slope of a cost: the force -beta dC/dtheta.

    Parameters
    ----------
    objective : Cost
        For example `PhaseTargets`.
    target : array_like
        What the objective aims at; its leading shape is broadcast against the inputs.
    beta : float or complex
        Strength. Positive pulls toward the target, negative pushes away, complex serves the holomorphic gradient.

    See Also
    --------
    two_phase : One nudged equilibrium; error of order beta.
    find_equilibrium : One certified equilibrium per sample.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.networks.ring(4, omega=[0.3, 0.0, -0.3, 0.0], outputs=[2])
    >>> free = pg.find_equilibrium(network)
    >>> nudged = pg.find_equilibrium(network, nudge=pg.Nudge(pg.PhaseTargets(), [0.0], beta=0.1))
    >>> (nudged.phases - free.phases).round(4)
    array([0.    , 0.0138, 0.0276, 0.0138])
    """

    objective: Cost
    target: ArrayLike
    beta: complex


@dataclass(frozen=True)
class Pull:
    """A nudge laid flat over a batch: on which nodes, toward what (B, M), how strong (B, 1)."""

    cost: Cost
    nodes: IntArray
    target: Array
    beta: Array

    def take(self, rows: Array) -> Pull:
        """Return the pull on some of the samples."""
        return dataclasses.replace(self, target=self.target[rows], beta=self.beta[rows])

    def force(self, phases: Array) -> Array:
        """Return the force on the nudged nodes, (B, M)."""
        return self.beta * self.cost.force(self._outputs(phases), self.target)

    def energy(self, phases: Array) -> Array:
        """Return the energy of the nudge, (B,)."""
        return self.beta[:, 0] * self.cost.cost(self._outputs(phases), self.target)

    def hessian(self, phases: Array) -> Array:
        """Return the second derivative of that energy, (B, M, M)."""
        return self.beta[:, :, None] * self.cost.hessian(self._outputs(phases), self.target)

    def _outputs(self, phases: Array) -> Array:
        return np.take(phases, self.nodes, axis=1)
