"""The learning protocol: every number of it, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field

from phasegrad.objectives import ClassObjective, PaperPair
from phasegrad.validation import choice, positive_float, whole_number

LEARN = ("omega", "coupling", "both")
LOOPS = ("main", "matched")
GRADIENTS = ("two_phase", "adjoint", "finite_difference")
FREQUENCIES = ("centred", "raw")


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How networks are trained: online gradient descent, one sample at a time, without momentum.

    The defaults are the paper's.

    Parameters
    ----------
    learn : {"omega", "coupling", "both"}
        What changes: natural frequencies (of all nodes but the inputs), couplings, or both.
    epochs : int
        Length of the training.
    learning_rate, coupling_rate : float
        Step per gradient, of frequencies and of couplings (the same if left out).
    beta : float
        The nudge.
    objective : ClassObjective
        Cost and decision: `PaperPair`, `NearestTarget` or another objective for classes.
    clip : float
        Largest gradient of one parameter.
    omega_bounds, coupling_bounds : (float, float)
        Where learnable frequencies and all couplings are kept after every update.
    gradient : {"two_phase", "adjoint", "finite_difference"}
        How each gradient is found; finite differences take steps of 1e-5.
    frequencies : {"centred", "raw"}
        Whether frequencies descend along the gradient by centred frequencies (the paper) or by raw ones.
    loop : {"main", "matched"}
        The paper's two training loops. "main" starts every epoch from phase zero and draws one number from the
        shuffling stream after every evaluation. "matched" (the parameter-matched control, the architecture sweep)
        carries the phases over, draws nothing, and leaves a sample whose nudged state fails out of the running
        training score.
    spot_check : bool or None
        Whether that number is drawn; as the loop says if None. (The finite-difference arm of the paper draws none.)
    evaluate_every : int
        The test part is scored before training, after epoch 1, after multiples of this, and after the last epoch.
    edge_leak : bool
        Historical variant: all pairs are coupled, absent edges with 0, and the bounds lift those to the lower bound
        after the first update.
    """

    learn: str = "omega"
    epochs: int = 200
    learning_rate: float = 0.001
    coupling_rate: float | None = None
    beta: float = 0.1
    objective: ClassObjective = field(default_factory=PaperPair)
    clip: float = 2.0
    omega_bounds: tuple[float, float] = (-3.0, 3.0)
    coupling_bounds: tuple[float, float] = (0.01, 8.0)
    gradient: str = "two_phase"
    frequencies: str = "centred"
    loop: str = "main"
    spot_check: bool | None = None
    evaluate_every: int = 20
    edge_leak: bool = False

    def __post_init__(self) -> None:
        owner = "the training protocol"
        choice("learn", self.learn, LEARN, owner)
        choice("gradient", self.gradient, GRADIENTS, owner)
        choice("frequencies", self.frequencies, FREQUENCIES, owner)
        choice("loop", self.loop, LOOPS, owner)
        whole_number("epochs", self.epochs, 0, owner)
        whole_number("evaluate_every", self.evaluate_every, 1, owner)
        for name in ("learning_rate", "beta", "clip"):
            positive_float(name, getattr(self, name), owner)
        if self.coupling_rate is not None:
            positive_float("coupling_rate", self.coupling_rate, owner)
        if not isinstance(self.objective, ClassObjective):
            raise TypeError(
                f"The 'objective' of {owner} must be an objective for classes, such as NearestTarget(). "
                f"Got {self.objective!r}."
            )
        for name in ("omega_bounds", "coupling_bounds"):
            low, high = getattr(self, name)
            if not low < high:
                raise ValueError(f"The '{name}' of {owner} must be a lower and a higher number. Got {(low, high)}.")

    def evaluates_after(self, epoch: int) -> bool:
        """Whether the test part is scored after this epoch."""
        return epoch in (0, 1, self.epochs) or epoch % self.evaluate_every == 0

    @property
    def draws_spot_check(self) -> bool:
        """Whether one number is drawn from the shuffling stream after an evaluation."""
        return self.loop == "main" if self.spot_check is None else self.spot_check
