r"""Cross-entropy: the cosines of the outputs, times a sharpness, are the log-odds of the classes.

    p_c = exp(s cos theta_c) / sum_k exp(s cos theta_k),      C = -log p_label

The force s sin(theta) (p - onehot) is bounded, and fades where the network is already sure of the right class: what is
learned goes into the samples that need it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import Array, positive_float
from phasegrad.objectives._classes import ClassObjective, softmax


@dataclass(frozen=True)
class CosineCrossEntropy(ClassObjective):
    """Cross-entropy on the cosines of the outputs; the decision is the largest cosine.

    The cost is lowest with the right output at phase 0 and the others at pi. It never reaches zero: the lowest it
    can be for M classes is log(1 + (M - 1) exp(-2 sharpness)).

    Parameters
    ----------
    sharpness : float
        The log-odds of an output at phase 0 against one at phase pi/2.

    See Also
    --------
    NearestTarget : The paper's cost with the decision it asks for.
    OneHotPhases : The right output at +pi/2, all others at -pi/2.
    OscillatorClassifier : A scikit-learn classifier.

    Examples
    --------
    >>> import phasegrad as pg
    >>> objective = pg.CosineCrossEntropy(sharpness=2.0)
    >>> objective.probabilities([0.0, 3.14159, 1.5708]).round(3).tolist()
    [0.867, 0.016, 0.117]
    """

    sharpness: float = 4.0

    invariances: ClassVar[tuple[str, ...]] = ("full turns", "theta -> -theta")
    undecided: ClassVar[float] = np.pi / 2

    def __post_init__(self) -> None:
        positive_float("sharpness", self.sharpness, "CosineCrossEntropy")

    def table(self, n_outputs: int) -> Array:
        """Return the rows of the identity: a probability of 1 for the right class."""
        return np.eye(n_outputs)

    def log_odds(self, phases: ArrayLike) -> Array:
        """Return sharpness times cosine, shape (..., M)."""
        return np.asarray(self.sharpness * np.cos(phases))

    def cost(self, phases: ArrayLike, target: ArrayLike) -> Array:
        """Return minus the log-probability of the right class, shape (...)."""
        odds = self.log_odds(phases)
        highest = np.max(np.real(odds), axis=-1, keepdims=True)
        total = np.log(np.sum(np.exp(odds - highest), axis=-1)) + highest[..., 0]
        return np.asarray(total - np.sum(odds * np.asarray(target), axis=-1))

    def force(self, phases: ArrayLike, target: ArrayLike) -> Array:
        """Return sharpness sin(theta) (p - onehot), shape (..., M)."""
        excess = softmax(self.log_odds(phases)) - np.asarray(target)
        return np.asarray(self.sharpness * np.sin(phases) * excess)

    def hessian(self, phases: ArrayLike, target: ArrayLike) -> Array:
        """Return the second derivative, shape (..., M, M)."""
        share = softmax(self.log_odds(phases))
        slope = -self.sharpness * np.sin(phases)
        spread = share[..., None] * np.eye(share.shape[-1]) - share[..., :, None] * share[..., None, :]
        bend = -self.sharpness * np.cos(phases) * (share - np.asarray(target))
        return np.asarray(
            slope[..., :, None] * spread * slope[..., None, :] + bend[..., None] * np.eye(share.shape[-1])
        )

    def torch_cost(self, phases: Any, target: Any) -> Any:
        """Return the cost of one sample as tensors."""
        return -(target * (self.sharpness * phases.cos()).log_softmax(dim=-1)).sum()

    def torch_force(self, phases: Any, target: Any) -> Any:
        """Return sharpness sin(theta) (p - onehot) of tensors (B, M)."""
        share = (self.sharpness * phases.cos()).softmax(dim=-1)
        return self.sharpness * phases.sin() * (share - target)
