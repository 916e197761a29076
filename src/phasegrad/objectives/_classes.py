"""What every objective for classes is: a cost of the outputs, and the decision that belongs to it.

The network has one output per class. A target is the number of a class; what the cost sees of it is that class's row of
`ClassObjective.table`. ``consistent`` promises that outputs whose cost is as low as it can be are given the right
class, and ``invariances`` names the changes of the output phases that alter neither cost nor decision:

- ``"common rotation"``: all outputs turn by the same angle, so nothing depends on where phase zero is;
- ``"full turns"``: single outputs turn by multiples of 2 pi;
- ``"theta -> -theta"`` and ``"theta -> pi - theta"``: single outputs are mirrored about the real or imaginary axis.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import Array
from phasegrad.networks import Network
from phasegrad.objectives._cost import Cost


class ClassObjective(Cost):
    """A cost of output phases for every class, and the rule that picks a class.

    Subclasses are frozen dataclasses of their own parameters and write table, log-odds and cost; force and Hessian too
    where they know better than differences do.

    See Also
    --------
    Cost : The base of every cost of output phases.
    CosineCrossEntropy : Cross-entropy on the cosines of the outputs.
    NearestTarget : The paper's cost with the decision it asks for.

    Examples
    --------
    >>> import phasegrad as pg
    >>> nearest = pg.objectives.NearestTarget()
    >>> isinstance(nearest, pg.objectives.ClassObjective), nearest.table(2).tolist()
    (True, [[-0.2, 0.2], [0.2, -0.2]])
    >>> pg.objectives.NearestTarget().decide([[-0.2, 0.2], [0.3, 0.0]])
    array([0, 1])
    """

    #: Whether the lowest cost implies the right decision.
    consistent: ClassVar[bool] = True
    #: Changes of the outputs that alter neither cost nor decision.
    invariances: ClassVar[tuple[str, ...]] = ()
    #: The common phase of the outputs at which no class is preferred and the force is not zero: where to start.
    undecided: ClassVar[float] = 0.0

    @abstractmethod
    def table(self, n_outputs: int) -> Array:
        """Return what the cost is given for each class, shape (M, M): a row per class, an entry per output."""

    @abstractmethod
    def log_odds(self, phases: ArrayLike) -> Array:
        """Return the logarithm of every class's probability up to a common constant, shape (..., M)."""

    def check_target(self, target: ArrayLike, network: Network) -> Array:
        """Return the rows (..., M) of class numbers (...), or raise ValueError."""
        labels = np.asarray(target)
        width = len(self.nodes(network))
        if labels.dtype.kind not in "iu" or np.any((labels < 0) | (labels >= width)):
            raise ValueError(
                f"The targets of {type(self).__name__} must be class numbers from 0 to {width - 1}, one per output of "
                f"the network. Got {np.unique(labels)[:8].tolist()}."
            )
        return np.asarray(self.table(width)[labels])

    def decide(self, phases: ArrayLike) -> Array:
        """Return class numbers (...) for output phases (..., M); ties go to the lower number."""
        return np.argmax(self.log_odds(phases), axis=-1)

    def probabilities(self, phases: ArrayLike) -> Array:
        """Return the probability of every class, shape (..., M); they sum to 1."""
        return softmax(self.log_odds(phases))

    def class_costs(self, phases: ArrayLike) -> Array:
        """Return what the cost would be if each class were the right one, shape (..., M)."""
        outputs = np.asarray(phases)
        return self.cost(outputs[..., None, :], self.table(outputs.shape[-1]))


def softmax(values: Array) -> Array:
    """Return exp(values) over their sum along the last axis; complex values are shifted by their real part."""
    weights = np.exp(values - np.max(np.real(values), axis=-1, keepdims=True))
    return np.asarray(weights / np.sum(weights, axis=-1, keepdims=True))
