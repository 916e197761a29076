"""Objectives: what the outputs should do, as a cost with its force, its Hessian and its decision.

An objective sees only the phases of the outputs. Its force, minus the derivative of the cost, is what a nudge
applies to them. Where outputs stand for classes, the rule that turns phases into a class lives in the same object as
the cost, because the two must agree.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad.network import Network
from phasegrad.validation import last_axis_array, node_tuple, positive_float

Array = NDArray[Any]


@dataclass(frozen=True)
class PhaseTargets:
    """Half the squared distance of the output phases to target phases: C = 1/2 sum (theta - target)^2.

    Not periodic: a phase that is a full turn away from its target is far from it.

    Parameters
    ----------
    outputs : sequence of int, optional
        The nodes that have targets; the network's outputs if left out.

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
            if not network.outputs:
                raise ValueError(
                    "This network has no outputs. Name them in the Network, or as PhaseTargets(outputs=[...])."
                )
            return network.outputs
        nodes = node_tuple("outputs", self.outputs, network.size, "PhaseTargets")
        held = set(nodes) & set(network.held.tolist())
        if held or not nodes:
            raise ValueError(
                f"The outputs {nodes} of PhaseTargets must be oscillators that move, at least one. "
                f"Nodes {network.held.tolist()} are held."
            )
        return nodes

    def check_target(self, target: ArrayLike, network: Network) -> Array:
        """Return the target phases, shape (..., M), or raise ValueError."""
        width = len(self.nodes(network))
        return last_axis_array("target", target, width, "one phase per output", "PhaseTargets")

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


@dataclass(frozen=True)
class ClassTargets:
    """Phase targets by class: output c at -margin and all others at +margin for class c, with a rule to decide.

    The cost is that of `PhaseTargets`; a target is the number of a class. Subclasses add the decision.

    Parameters
    ----------
    margin : float
        Half the phase difference between the right and the wrong outputs.
    """

    margin: float = 0.2

    #: Whether zero cost implies the right decision.
    consistent: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive_float("margin", self.margin, type(self).__name__)

    def nodes(self, network: Network) -> tuple[int, ...]:
        """Nodes whose phases the cost reads: the network's outputs."""
        return PhaseTargets().nodes(network)

    def table(self, n_outputs: int) -> Array:
        """Return the target phases of every class, shape (M, M)."""
        return np.where(np.eye(n_outputs, dtype=bool), -self.margin, self.margin)

    def check_target(self, target: ArrayLike, network: Network) -> Array:
        """Return the target phases (..., M) of class numbers (...), or raise ValueError."""
        labels = np.asarray(target)
        width = len(self.nodes(network))
        if labels.dtype.kind not in "iu" or np.any((labels < 0) | (labels >= width)):
            raise ValueError(
                f"The targets of {type(self).__name__} must be class numbers from 0 to {width - 1}, one per output of "
                f"the network. Got {np.unique(labels)[:8].tolist()}."
            )
        return self.table(width)[labels]

    def cost(self, phases: ArrayLike, target: ArrayLike) -> Array:
        """Return the cost, shape (...), of output phases (..., M)."""
        return PhaseTargets().cost(phases, target)

    def force(self, phases: ArrayLike, target: ArrayLike) -> Array:
        """Return the pull toward the target, shape (..., M)."""
        return PhaseTargets().force(phases, target)

    def hessian(self, phases: ArrayLike, target: ArrayLike) -> Array:
        """Return the identity, shape (..., M, M)."""
        return PhaseTargets().hessian(phases, target)

    def decide(self, phases: ArrayLike) -> Array:
        """Return class numbers (...) for output phases (..., M)."""
        raise NotImplementedError


@dataclass(frozen=True)
class PaperPair(ClassTargets):
    """The paper's pair of cost and decision, which contradict each other.

    The cost draws the right output to -margin and the others to +margin; the decision picks the output of largest
    cosine, the one nearest phase zero. At zero cost all cosines are equal: a perfect fit is a tie. Kept under its own
    name for reproduction; `NearestTarget` has the same cost with the decision it asks for.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.PaperPair().decide([[0.0, 0.1], [0.2, 0.1]]).tolist()
    [0, 1]
    """

    consistent: ClassVar[bool] = False

    def decide(self, phases: ArrayLike) -> Array:
        """Return the output of largest cosine; ties go to the lower number."""
        return np.argmax(np.cos(phases), axis=-1)


@dataclass(frozen=True)
class NearestTarget(ClassTargets):
    """The paper's cost with the decision that belongs to it: the class whose targets are nearest.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.NearestTarget().decide([[0.0, 0.1], [0.2, 0.1]]).tolist()
    [0, 1]
    >>> pg.NearestTarget().decide([-0.4, -0.3]).item()      # largest cosine would say 1
    0
    """

    def decide(self, phases: ArrayLike) -> Array:
        """Return the class whose target phases are nearest; ties go to the lower number."""
        outputs = np.asarray(phases)
        table = self.table(outputs.shape[-1])
        return np.argmin(np.sum((outputs[..., None, :] - table) ** 2, axis=-1), axis=-1)
