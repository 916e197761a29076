"""The scikit-learn face: a classifier whose model is a network of oscillators trained by nudging its outputs.

Importing this module imports scikit-learn; ``phasegrad.OscillatorClassifier`` does so when it is first used.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from phasegrad.equilibrium import Equilibrium, find_equilibrium
from phasegrad.learning import Learned, LearningHistory, Recipe, learn
from phasegrad.learning.optimizers import Constant, Optimizer, Schedule
from phasegrad.objectives import ClassObjective, CosineCrossEntropy
from phasegrad.topologies import signed_layers
from phasegrad.validation import FloatArray, IntArray, choice, positive_float, whole_number

_BEYOND = 1.5
_NOISE = 0.0375


class OscillatorClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that lets a layered network of oscillators settle and reads the class off its output phases.

    Features become clamped phases of input oscillators, one hidden layer and one output per class settle, and the
    objective decides. Couplings and bias fields learn by equilibrium propagation: the outputs are nudged, and the
    change of the equilibrium is the gradient.

    Every feature is brought to [-1, 1] by its range in the training data (one that never changes, to 0) and cut at 1.5
    times that range, so that data need no scaling of their own; scaling them first does no harm.

    Parameters
    ----------
    hidden : int, default=50
        Hidden oscillators; 0 couples inputs and outputs directly.
    objective : ClassObjective, default=None
        Cost and decision; ``CosineCrossEntropy(sharpness=16)`` if left out.
    learn : tuple of str, default=("coupling", "field_strength", "field_phase")
        What learns; "omega" may be added. With an empty tuple nothing does.
    epochs : int, default=100
        Passes over the training data.
    batch_size : int, default=32
        Samples per update.
    learning_rate : float, default=0.005
        Step of the optimiser at the start.
    optimizer : {"adam", "momentum", "sgd"} or Optimizer, default="adam"
    schedule : {"cosine", "constant", "staircase"} or Schedule, default="cosine"
    gradient : {"centred", "two_phase", "adjoint"}, default="centred"
    beta : float, default=0.001
        The nudge.
    input_scale : float, default=0.8
        Phase, in radians, of an input at the end of its range.
    input_noise : float or "auto", default="auto"
        Standard deviation of the noise on scaled inputs while training, which keeps the network from learning single
        samples by heart. "auto" is 0.0375 times the square root of the number of features, at most 0.3: the more
        features, the further apart samples are.
    gain : float, default=0.3
        Scale of the initial couplings. Small ones start near a network without opinions.
    weight_decay : float, default=0.0
        Decay of the couplings.
    validation_fraction : float, default=0.0
        Share of the training data held back to watch.
    patience : int or None, default=None
        Stop after so many epochs without a lower validation cost.
    skip : bool, default=False
        Whether inputs also act on the outputs directly.
    restarts : int, default=1
        Networks drawn and trained until one has no training error left; the one of lowest cost is kept. Networks of a
        handful of oscillators have bad minima, large ones hardly.
    random_state : int, RandomState instance or None, default=None
        Drives the initial network, the order of samples and the noise.
    verbose : int, default=0
        Print a line every so many epochs.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    network_ : Network
        The trained network; its inputs are scaled features.
    history_ : LearningHistory
        Every epoch's scores, the untrained network's first.
    learned_ : Learned
        All that training left behind, with the state to go on from.
    equilibrium_report_ : Equilibrium
        Equilibria of the training data, each with its certificate.
    n_iter_ : int
        Epochs trained.
    objective_ : ClassObjective
        Cost and decision in use.
    input_range_ : tuple of two ndarrays of shape (n_features,)
        The values of each feature that become -1 and 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from phasegrad import OscillatorClassifier
    >>> x, y = load_iris(return_X_y=True)
    >>> classifier = OscillatorClassifier(hidden=10, epochs=20, random_state=0).fit(x, y)
    >>> bool(classifier.score(x, y) > 0.9)
    True
    """

    def __init__(
        self,
        hidden: int = 50,
        *,
        objective: ClassObjective | None = None,
        learn: Sequence[str] = ("coupling", "field_strength", "field_phase"),
        epochs: int = 100,
        batch_size: int = 32,
        learning_rate: float = 0.005,
        optimizer: str | Optimizer = "adam",
        schedule: str | Schedule = "cosine",
        gradient: str = "centred",
        beta: float = 0.001,
        input_scale: float = 0.8,
        input_noise: float | str = "auto",
        gain: float = 0.3,
        weight_decay: float = 0.0,
        validation_fraction: float = 0.0,
        patience: int | None = None,
        skip: bool = False,
        restarts: int = 1,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden = hidden
        self.objective = objective
        self.learn = learn
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.schedule = schedule
        self.gradient = gradient
        self.beta = beta
        self.input_scale = input_scale
        self.input_noise = input_noise
        self.gain = gain
        self.weight_decay = weight_decay
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.skip = skip
        self.restarts = restarts
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train a new network.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any kind, at least two different ones.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each sample counts.
        """
        data, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(labels)
        classes = unique_labels(labels)
        if len(classes) < 2:
            raise ValueError(
                "OscillatorClassifier needs samples of at least two classes to tell apart. "
                f"Got one class: {classes[0]!r}."
            )
        weights = _check_sample_weight(sample_weight, data, dtype=np.float64, ensure_non_negative=True)
        self.classes_ = classes
        stream = check_random_state(self.random_state)
        best: dict[str, Any] = {}
        for _ in range(whole_number("restarts", self.restarts, 1, "OscillatorClassifier")):
            self._start(data[weights > 0], stream)
            self._train(data, labels, weights, self._recipe(), None)
            if not best or self.history_.train_loss[-1] < best["history_"].train_loss[-1]:
                best = dict(vars(self))
            if self.history_.train_accuracy[-1] == 1 or (self.learned_ is not None and self.learned_.interrupted):
                break
        self.__dict__.update(best)
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train for one more epoch on some data, at a constant learning rate.

        The first call fixes the range of the features and needs every class, in ``classes`` or in ``y``.
        """
        first = not hasattr(self, "network_")
        data, labels = validate_data(self, X, y, dtype=np.float64, reset=first)
        check_classification_targets(labels)
        weights = _check_sample_weight(sample_weight, data, dtype=np.float64, ensure_non_negative=True)
        if first:
            known = unique_labels(labels) if classes is None else unique_labels(classes)
            if len(known) < 2:
                raise ValueError(
                    "The first partial_fit needs at least two classes. Name all of them in the 'classes' parameter."
                )
            self.classes_ = known
            self._start(data[weights > 0], check_random_state(self.random_state))
        unknown = np.setdiff1d(labels, self.classes_)
        if unknown.size:
            raise ValueError(
                f"partial_fit met the label {unknown.tolist()[0]!r}, which is not among the classes it started with."
            )
        done = 0 if first else self.learned_.state.epoch
        recipe = dataclasses.replace(
            self._recipe(), epochs=done + 1, schedule=Constant(), validation_fraction=0.0, patience=None
        )
        state = None
        if not first:
            state = dataclasses.replace(self.learned_.state, held_back=np.zeros(0, dtype=np.int64))
        self._train(data, labels, weights, recipe, state)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of every sample."""
        outputs = self._outputs(X)
        return self.classes_[self.objective_.decide(outputs)]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the probability of every class, shape (n_samples, n_classes)."""
        outputs = self._outputs(X)
        return self.objective_.probabilities(outputs)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return log-odds: of the second class for two classes, else of every class up to a common constant."""
        outputs = self._outputs(X)
        odds = self.objective_.log_odds(outputs)
        return odds[:, 1] - odds[:, 0] if len(self.classes_) == 2 else odds

    def settle(self, X: ArrayLike) -> Equilibrium:
        """Return the equilibria of samples, each with its certificate."""
        check_is_fitted(self)
        data = validate_data(self, X, dtype=np.float64, reset=False)
        return find_equilibrium(self.network_, self._scaled(data), solver="batch")

    def _objective(self) -> ClassObjective:
        return CosineCrossEntropy(sharpness=16.0) if self.objective is None else self.objective

    def _recipe(self) -> Recipe:
        return Recipe(
            learn=tuple(self.learn) if not isinstance(self.learn, str) else (self.learn,),
            objective=self._objective(),
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            optimizer=self.optimizer,
            schedule=self.schedule,
            gradient=self.gradient,
            beta=self.beta,
            input_noise=self._noise(),
            weight_decay=self.weight_decay,
            validation_fraction=self.validation_fraction,
            patience=self.patience,
        )

    def _noise(self) -> Any:
        if isinstance(self.input_noise, str):
            choice("input_noise", self.input_noise, ("auto",), "OscillatorClassifier")
            return _NOISE * min(float(np.sqrt(self.n_features_in_)), 8.0)
        return self.input_noise

    def _start(self, data: FloatArray, stream: np.random.RandomState) -> None:
        """Fix the range of the features and draw the network that learns."""
        hidden = whole_number("hidden", self.hidden, 0, "OscillatorClassifier")
        scale = positive_float("input_scale", self.input_scale, "OscillatorClassifier")
        low, high = data.min(axis=0), data.max(axis=0)
        # A feature that never changes says nothing: its range is so wide that every value is in the middle.
        widest = np.finfo(float).max / 8
        constant = high == low
        self.input_range_ = np.where(constant, -widest, low), np.where(constant, widest, high)
        self.objective_ = self._objective()
        self._seed = int(stream.randint(2**31 - 1))
        self.network_ = signed_layers(
            self.n_features_in_,
            hidden,
            len(self.classes_),
            rest=self.objective_.undecided,
            gain=self.gain,
            skip=bool(self.skip),
            seed=self._seed,
            input_scale=scale,
        )

    def _scaled(self, data: FloatArray) -> FloatArray:
        low, high = self.input_range_
        return np.clip(2 * ((data - low) / (high - low)) - 1, -_BEYOND, _BEYOND)

    def _train(self, data: FloatArray, labels: Any, sample_weight: FloatArray, recipe: Recipe, state: Any) -> None:
        scaled = self._scaled(data)
        inputs, numbers, weights = _distinct(scaled, np.searchsorted(self.classes_, labels), sample_weight)
        self.learned_: Learned = learn(
            self.network_, inputs, numbers, recipe, sample_weight=weights, seed=self._seed, state=state,
            progress=self._report if self.verbose else None,
        )  # fmt: skip
        self.network_, self.history_ = self.learned_.network, self.learned_.history
        self.n_iter_ = self.learned_.state.epoch
        self.equilibrium_report_ = find_equilibrium(self.network_, scaled, solver="batch")

    def _report(self, history: LearningHistory) -> None:
        epoch = int(history.epoch[-1])
        if epoch % int(self.verbose) == 0:
            text = f"epoch {epoch}: loss {history.train_loss[-1]:.4f}, accuracy {history.train_accuracy[-1]:.1%}"
            if np.isfinite(history.validation_loss[-1]):
                text += f", validation {history.validation_accuracy[-1]:.1%}"
            print(text)

    def _outputs(self, X: ArrayLike) -> FloatArray:
        found = self.settle(X)
        lost = int(np.sum(~found.stable))
        if lost:
            warnings.warn(
                f"{lost} of {found.stable.size} samples have no stable locked state; they are classified by the last "
                "state the network reached.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return found.phases[:, list(self.network_.outputs)]


def _distinct(inputs: FloatArray, numbers: IntArray, weights: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return the distinct samples of positive weight, in a fixed order, with the weights of equal ones added up.

    So training depends on the weighted set of samples alone: not on the order of the rows, and a sample of weight 2
    is the same as the sample given twice.
    """
    kept = weights > 0
    table = np.column_stack([inputs[kept], numbers[kept]])
    rows, place = np.unique(table, axis=0, return_inverse=True)
    total = np.zeros(len(rows))
    np.add.at(total, place.ravel(), weights[kept])
    return rows[:, :-1], rows[:, -1].astype(np.int64), total
