"""The scikit-learn face: estimators whose model is a network of oscillators trained by nudging its outputs.

Importing this module imports scikit-learn; ``phasegrad.OscillatorClassifier`` does so when it is first used.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from phasegrad._validation import FloatArray, choice, positive_float, whole_number
from phasegrad.datasets import Scaling
from phasegrad.equilibria import Equilibrium
from phasegrad.graphs import DENSE_LIMIT
from phasegrad.models import Model
from phasegrad.networks import Network, signed_layers
from phasegrad.objectives import ClassObjective, Cost, PhaseTargets
from phasegrad.training import (
    Constant,
    History,
    Interrupted,
    Optimizer,
    Plan,
    Report,
    Schedule,
    Training,
    TrainingState,
    train_whole,
)

#: Where scaled features are cut off.
_BEYOND = 1.5
_NOISE = 0.0375
_DEFAULT = Plan.classifier()
_LEARN = tuple(_DEFAULT.rates)
#: Floating-point numbers are taken for classes if there are no more than so many, or so many samples of each.
_FEW_CLASSES, _ENOUGH_SAMPLES = 20, 5


Arguments = ParamSpec("Arguments")
Estimator = TypeVar("Estimator", bound="_Oscillators")


def _stoppable(
    method: Callable[Concatenate[Estimator, Arguments], Estimator],
) -> Callable[Concatenate[Estimator, Arguments], Estimator]:
    """Decorate `fit`: stopped before anything was trained, it leaves the estimator as it was."""

    @wraps(method)
    def fit(self: Estimator, /, *args: Arguments.args, **options: Arguments.kwargs) -> Estimator:
        before = dict(vars(self))
        try:
            return method(self, *args, **options)
        except Interrupted:
            raise KeyboardInterrupt from None
        except KeyboardInterrupt:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return fit


class _Oscillators(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: features as clamped phases, layers that settle, training in mini-batches."""

    network_: Network
    history_: History
    training_: Training
    scaling_: Scaling
    objective_: Any
    #: The objective where none is given, and what one may be.
    _objectives: tuple[Cost, str]

    def settle(self, X: ArrayLike) -> Equilibrium:
        """Return the equilibria of samples, each with its certificate."""
        check_is_fitted(self)
        data = validate_data(self, X, dtype=np.float64, reset=False)
        return self.training_.plan.settling.equilibrium(self.network_, self.scaling_.apply(data))

    def to_model(self, names: Sequence[str] | None = None, features: Sequence[str] | None = None) -> Model:
        """Return the trained network with all that prediction needs, ready for `Model.save`.

        Parameters
        ----------
        names : sequence of str, optional
            Of the classes; where there are none, of the outputs. Those of ``classes_``, or y0, y1, ..., if left out.
        features : sequence of str, optional
            Those of the training data if left out, or x0, x1, ... if these had no names.
        """
        check_is_fitted(self)
        if names is None:
            names = [str(answer) for answer in self._answers]
        if features is None:
            features = getattr(self, "feature_names_in_", _numbered("x", self.n_features_in_))
        return Model(
            self.network_, self.objective_, tuple(names), tuple(features), self.scaling_,
            self.training_.plan.settling, getattr(self, "targets_", None),
        )  # fmt: skip

    def _keep(self, given: Mapping[str, Any]) -> None:
        """Keep every parameter of the constructor under its own name, as scikit-learn asks."""
        for name in self._get_param_names():
            setattr(self, name, given[name])

    def _begin(self, data: FloatArray, stream: np.random.RandomState, answers: list[Any]) -> None:
        """Fix the range of the features and draw the network that learns."""
        owner = type(self).__name__
        self.scaling_ = Scaling(data.min(axis=0), data.max(axis=0), _BEYOND)
        self._answers, self._seed = answers, int(stream.randint(2**31 - 1))
        self.network_ = signed_layers(
            self.n_features_in_, self.hidden, len(answers), rest=getattr(self._objective(), "undecided", 0.0),
            gain=positive_float("gain", self.gain, owner), skip=bool(self.skip), seed=self._seed,
            input_scale=positive_float("input_scale", self.input_scale, owner),
        )  # fmt: skip
        moving = self.network_.graph.free.size
        if moving > DENSE_LIMIT:
            raise ValueError(
                f"The 'hidden' parameter of {owner} must be at most {DENSE_LIMIT} oscillators, all layers and the "
                f"outputs together. Got {moving}."
            )

    def _plan(self) -> Plan:
        if not isinstance(self.verbose, bool):
            whole_number("verbose", self.verbose, 0, type(self).__name__)
        noise = self.input_noise
        if isinstance(noise, str):
            choice("input_noise", noise, ("auto",), type(self).__name__)
            noise = _NOISE * min(float(np.sqrt(self.n_features_in_)), 8.0)
        same = ("learn", "epochs", "batch_size", "learning_rate", "optimizer", "schedule", "gradient", "beta")
        return Plan.classifier(
            objective=self._objective(),
            input_noise=noise,
            weight_decay=self.weight_decay,
            validation_fraction=self.validation_fraction if self.early_stopping else 0.0,
            patience=self.n_iter_no_change if self.early_stopping else None,
            **{name: getattr(self, name) for name in same},
        )

    def _objective(self) -> Cost:
        default, kind = self._objectives
        objective = default if self.objective is None else self.objective
        if isinstance(objective, ClassObjective) != isinstance(default, ClassObjective):
            raise TypeError(f"The 'objective' of {type(self).__name__} must be {kind}. Got {objective!r}.")
        return objective

    @property
    def _goes_on(self) -> bool:
        """Whether `fit` goes on with the network there is."""
        return bool(self.warm_start) and hasattr(self, "training_")

    def _check_answers(self, answers: list[Any]) -> None:
        """Refuse to go on with a network for other classes or another number of outputs."""
        if self._goes_on and answers != self._answers:
            raise ValueError(
                f"warm_start goes on with a network for {self._answers}. Got {answers}: set warm_start=False to begin "
                "anew."
            )

    def _fit(
        self, data: FloatArray, targets: NDArray[Any], weights: FloatArray, answers: list[Any], progress: Report | None
    ) -> Self:
        """Train new networks, or go on with the one there is, and keep the one of lowest cost."""
        stream, goes_on = check_random_state(self.random_state), self._goes_on
        best: dict[str, Any] = {}
        try:
            for _ in range(whole_number("restarts", self.restarts, 1, type(self).__name__)):
                if not goes_on:
                    self._begin(data[weights > 0], stream, answers)
                self._train(data, targets, weights, self._plan(), None, progress)
                best = self._better(best)
                if goes_on or self.history_.train_accuracy[-1] == 1:
                    break
        except Interrupted:
            best = self._better(best)
            raise
        except KeyboardInterrupt:
            # It came between two trainings, or before the first epoch of one.
            if best:
                raise Interrupted from None
            raise
        finally:
            self.__dict__.update(best)
        return self

    def _better(self, best: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes of the network of lower cost: the one trained last, or the best so far.

        Where no sample settled there is no cost: such a network is kept only as long as there is no other.
        """
        now = self.history_.train_loss[-1]
        if best and (np.isnan(now) or best["history_"].train_loss[-1] <= now):
            return best
        return dict(vars(self))

    def _train(
        self, data: FloatArray, targets: NDArray[Any], weights: FloatArray, plan: Plan, state: TrainingState | None,
        progress: Report | None = None,
    ) -> None:  # fmt: skip
        inputs, goals, total = _distinct(self.scaling_.apply(data), targets, weights)
        if isinstance(plan.objective, ClassObjective):
            goals = goals[:, 0].astype(np.int64)
        try:
            result = train_whole(
                self.network_, (inputs, goals), plan, sample_weight=total, seed=self._seed, state=state,
                progress=self._reports(progress), **self._where(),
            )  # fmt: skip
        except Interrupted as stop:
            self._learned(stop.training)
            raise
        self._learned(result)

    def _learned(self, training: Training) -> None:
        """Keep a training and what follows from it."""
        self.training_, self.network_, self.history_ = training, training.network, _of_one(training.history)
        self.objective_, self.n_iter_ = training.plan.objective, training.state.epoch

    def _where(self) -> dict[str, Any]:
        """Return where training works, for `train`: on a device if one is named."""
        if self.device is None:
            if self.dtype is not None:
                owner = type(self).__name__
                raise ValueError(f"The 'dtype' of {owner} is for a device: name one, such as device='cpu'.")
            return {}
        return {"engine": "torch", "device": self.device, "dtype": self.dtype}

    def _reports(self, progress: Report | None) -> Report:
        """Return what is told of every epoch: what `fit` was given, and lines that are printed."""
        before = os.getppid()

        def report(epoch: int, history: History) -> None:
            _end_if_orphaned(before)
            if self.verbose:
                self._print(epoch, history)
            if progress is not None:
                progress(epoch, history)

        return report

    def _print(self, epoch: int, history: History) -> None:
        if epoch % int(self.verbose) == 0:
            text = f"epoch {epoch}: loss {history.train_loss[0, -1]:.4f}"
            if np.isfinite(history.train_accuracy[0, -1]):
                text += f", accuracy {history.train_accuracy[0, -1]:.1%}"
            if np.isfinite(history.validation_loss[0, -1]):
                text += f", validation loss {history.validation_loss[0, -1]:.4f}"
            print(text)

    def _read(self, X: ArrayLike) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return the output phases of samples, and which have a stable state; warn where some have none."""
        check_is_fitted(self)
        data = validate_data(self, X, dtype=np.float64, reset=False)
        outputs, stable = self.training_.plan.settling.outputs(self.network_, self.scaling_.apply(data))
        lost = int(np.sum(~stable))
        if lost:
            warnings.warn(
                f"Samples without a stable locked state: {lost} of {stable.size}. They are answered by the last state "
                "the network reached, and a classifier's score counts them as wrong.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return outputs, stable


class OscillatorClassifier(ClassifierMixin, _Oscillators):  # type: ignore[misc]
    """A classifier that lets a layered network of oscillators settle and reads the class off its output phases.

    Features become clamped phases of input oscillators, hidden layers and one output per class settle, and the
    objective decides. Couplings and bias fields learn by equilibrium propagation: the outputs are nudged, and the
    change of the equilibrium is the gradient.

    Every feature is brought to [-1, 1] by its range in the training data (one that never changes, to 0) and cut at 1.5
    times that range, so that data need no scaling of their own; scaling them first does no harm.

    Parameters
    ----------
    hidden : int or tuple of int, default=50
        Oscillators of the hidden layer, or of several; 0 couples inputs and outputs directly.
    objective : ClassObjective, default=None
        Cost and decision; ``CosineCrossEntropy(sharpness=16)`` if left out.
    learn : str, sequence of str or mapping, default=("coupling", "field_strength", "field_phase")
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
        Decay of the couplings, decoupled from the optimiser.
    class_weight : dict, "balanced" or None, default=None
        How much samples of each class count; "balanced" makes all classes count alike.
    early_stopping : bool, default=False
        Whether to hold back a part of the training data and stop once its cost falls no more.
    validation_fraction : float, default=0.1
        Share of the training data held back for that.
    n_iter_no_change : int, default=10
        Epochs without a lower validation cost after which it stops.
    warm_start : bool, default=False
        Whether `fit` goes on with the network of the fit before it.
    skip : bool, default=False
        Whether inputs also act on the outputs directly.
    restarts : int, default=1
        Networks drawn and trained until one has no training error left; the one of lowest cost is kept. Networks of a
        handful of oscillators have bad minima, large ones hardly.
    random_state : int, RandomState instance or None, default=None
        Drives the initial network, the order of samples and the noise.
    verbose : int, default=0
        Print a line every so many epochs.
    device : str or None, default=None
        Where PyTorch trains: "cpu", "cuda" and so on. None trains without PyTorch. Predictions never need it.
    dtype : {"float32", "float64", "tf32"} or None, default=None
        The numbers of that; single precision if left out.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    network_ : Network
        The trained network; its inputs are scaled features.
    history_ : History
        Every epoch's scores, the untrained network's first.
    training_ : Training
        All that training left behind, with the state to go on from. After Ctrl-C in `fit`, what was trained until the
        last full epoch, with ``training_.interrupted``.
    n_iter_ : int
        Epochs trained.
    objective_ : ClassObjective
        Cost and decision in use.
    scaling_ : Scaling
        How features become inputs.

    See Also
    --------
    OscillatorRegressor : A scikit-learn regressor.
    Plan : How networks are trained.
    Model : A trained network with all that prediction needs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from phasegrad import OscillatorClassifier
    >>> x, y = load_iris(return_X_y=True)
    >>> classifier = OscillatorClassifier(hidden=10, epochs=20, random_state=0).fit(x, y)
    >>> bool(classifier.score(x, y) > 0.9)
    True
    """

    _objectives = (_DEFAULT.objective, "an objective for classes, such as NearestTarget()")

    def __init__(
        self, hidden: int | Sequence[int] = 50, *, objective: ClassObjective | None = None, learn: Any = _LEARN,
        epochs: int = 100, batch_size: int = 32, learning_rate: float = _DEFAULT.learning_rate,
        optimizer: str | Optimizer = "adam", schedule: str | Schedule = "cosine", gradient: str = "centred",
        beta: float = _DEFAULT.beta, input_scale: float = 0.8, input_noise: float | str = "auto", gain: float = 0.3,
        weight_decay: float = 0.0, class_weight: Any = None, early_stopping: bool = False,
        validation_fraction: float = 0.1, n_iter_no_change: int = 10, warm_start: bool = False, skip: bool = False,
        restarts: int = 1, random_state: Any = None, verbose: int = 0, device: str | None = None,
        dtype: str | None = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    @_stoppable
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, progress: Report | None = None
    ) -> Self:
        """Train a network on samples (n_samples, n_features) and labels (n_samples,) of any kind, two at least.

        ``progress`` is called with the epoch and the history so far after every epoch. Ctrl-C raises
        KeyboardInterrupt, so that cross-validation and searches stop too; the estimator keeps the network of the last
        full epoch, of several ``restarts`` the best one, and ``training_.interrupted`` says so.
        """
        data, labels = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2, reset=not self._goes_on)
        check_classification_targets(labels)
        classes = unique_labels(labels)
        if len(classes) < 2:
            raise ValueError(
                "OscillatorClassifier needs samples of at least two classes to tell apart. "
                f"Got one class: {classes.tolist()[0]!r}."
            )
        if labels.dtype.kind == "f" and len(classes) > max(_FEW_CLASSES, labels.size / _ENOUGH_SAMPLES):
            raise ValueError(
                f"OscillatorClassifier got {len(classes)} different numbers as labels of {labels.size} samples, which "
                "looks like a quantity. Use OscillatorRegressor; if they are classes, give whole numbers or strings."
            )
        self._check_answers(classes.tolist())
        self.classes_ = classes
        return self._fit(data, *self._numbered_and_weighted(data, labels, sample_weight), classes.tolist(), progress)

    @_stoppable
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train for one more epoch on some data, at a constant learning rate.

        The first call fixes the range of the features and needs every class, in ``classes`` or in ``y``.
        """
        first = not hasattr(self, "training_")
        data, labels = validate_data(self, X, y, dtype=np.float64, reset=first)
        check_classification_targets(labels)
        if first:
            self.classes_ = unique_labels(labels if classes is None else classes)
            if len(self.classes_) < 2:
                raise ValueError(
                    "The first partial_fit needs at least two classes. Name all of them in the 'classes' parameter."
                )
        unknown = np.setdiff1d(labels, self.classes_)
        if unknown.size:
            raise ValueError(
                f"partial_fit met the label {unknown.tolist()[0]!r}, which is not among the classes it started with."
            )
        numbers, weights = self._numbered_and_weighted(data, labels, sample_weight)
        if first:
            self._begin(data[weights > 0], check_random_state(self.random_state), self.classes_.tolist())
        plan = self._plan().replace(
            schedule=Constant(), validation_fraction=0.0, patience=None, epochs=getattr(self, "n_iter_", 0) + 1
        )
        self._train(data, numbers, weights, plan, None if first else self._state_for(plan))
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of every sample."""
        outputs, _ = self._read(X)
        return self.classes_[self.objective_.decide(outputs)]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the probability of every class, shape (n_samples, n_classes)."""
        outputs, _ = self._read(X)
        return self.objective_.probabilities(outputs)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return log-odds: of the second class for two classes, else of every class up to a common constant."""
        outputs, _ = self._read(X)
        odds = self.objective_.log_odds(outputs)
        return odds[:, 1] - odds[:, 0] if len(self.classes_) == 2 else odds

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of samples that are given their class; one without a stable state is wrong."""
        outputs, stable = self._read(X)
        labels = column_or_1d(y)
        check_consistent_length(outputs, labels)
        right = stable & (self.classes_[self.objective_.decide(outputs)] == labels)
        return float(np.average(right, weights=_check_sample_weight(sample_weight, outputs)))

    def _numbered_and_weighted(
        self, data: FloatArray, labels: NDArray[Any], sample_weight: ArrayLike | None
    ) -> tuple[NDArray[np.int64], FloatArray]:
        """Return the class number of every sample, (n, 1), and how much it counts."""
        weights = _check_sample_weight(sample_weight, data, dtype=np.float64, ensure_non_negative=True)
        counted, balanced = weights > 0, self.class_weight == "balanced"
        present = np.unique(labels[counted])
        factors = np.ones(len(self.classes_))
        factors[np.searchsorted(self.classes_, present)] = compute_class_weight(
            self.class_weight, classes=present, y=labels[counted], sample_weight=weights[counted] if balanced else None
        )
        if not factors.min() >= 0 or not factors[np.searchsorted(self.classes_, present)].any():
            raise ValueError(
                "The 'class_weight' parameter of OscillatorClassifier must give weights of at least 0, not all of them "
                f"0, to the classes there are. Got {self.class_weight!r}."
            )
        numbers = np.searchsorted(self.classes_, labels)
        return numbers[:, None], factors[numbers] * weights

    def _state_for(self, plan: Plan) -> TrainingState:
        """Return the state from which one more epoch on other samples begins; the optimiser goes on where it can."""
        before, state = self.training_.plan, self.training_.state
        state = state.replace(**{name: values[None] for name, values in self.network_.parameters.items()})
        fresh = state.begin(plan)
        same = before.optimizer == plan.optimizer and before.rates.keys() == plan.rates.keys()
        return dataclasses.replace(fresh, epoch=state.epoch, progress=state.progress if same else fresh.progress)


class OscillatorRegressor(RegressorMixin, _Oscillators):  # type: ignore[misc]
    """A regressor that lets a layered network of oscillators settle and reads numbers off its output phases.

    As `OscillatorClassifier`, with one output per number to predict: the range of each in the training data is spread
    over output phases from -1 to 1 radian, and the cost is their distance to the phases that stand for the truth.

    Parameters
    ----------
    epochs : int, default=200
    learning_rate : float, default=0.01
    gain : float, default=1.0
    objective : Cost, default=None
        Of output phases and target phases; `PhaseTargets`, half the squared distance, if left out.
    hidden, learn, batch_size, optimizer, schedule, gradient, beta, input_scale, input_noise, weight_decay, \
    early_stopping, validation_fraction, n_iter_no_change, warm_start, skip, restarts, random_state, verbose, device, \
    dtype
        As for `OscillatorClassifier`; without classes, `restarts` are all made.

    Attributes
    ----------
    targets_ : Scaling
        How numbers become output phases.
    n_features_in_, network_, history_, training_, n_iter_, objective_, scaling_
        As for `OscillatorClassifier`.

    See Also
    --------
    OscillatorClassifier : A scikit-learn classifier.
    Model : A trained network with all that prediction needs.

    Examples
    --------
    >>> import numpy as np
    >>> from phasegrad import OscillatorRegressor
    >>> x = np.linspace(-1, 1, 60)[:, None]
    >>> y = np.sin(3 * x[:, 0])
    >>> regressor = OscillatorRegressor(random_state=0).fit(x, y)
    >>> bool(regressor.score(x, y) > 0.99)
    True
    """

    _objectives = (PhaseTargets(), "a cost of output and target phases, such as PhaseTargets()")

    def __init__(
        self, hidden: int | Sequence[int] = 50, *, objective: Cost | None = None, learn: Any = _LEARN,
        epochs: int = 200, batch_size: int = 32, learning_rate: float = 0.01, optimizer: str | Optimizer = "adam",
        schedule: str | Schedule = "cosine", gradient: str = "centred", beta: float = _DEFAULT.beta,
        input_scale: float = 0.8, input_noise: float | str = "auto", gain: float = 1.0, weight_decay: float = 0.0,
        early_stopping: bool = False, validation_fraction: float = 0.1, n_iter_no_change: int = 10,
        warm_start: bool = False, skip: bool = False, restarts: int = 1, random_state: Any = None, verbose: int = 0,
        device: str | None = None, dtype: str | None = None,
    ) -> None:  # fmt: skip
        self._keep(locals())

    @_stoppable
    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, *, progress: Report | None = None
    ) -> Self:
        """Train a network on samples (n_samples, n_features) and numbers (n_samples,) or (n_samples, n_outputs).

        ``progress`` is called with the epoch and the history so far after every epoch. Ctrl-C is answered as by
        `OscillatorClassifier.fit`.
        """
        if any(isinstance(each, str) for each in np.ravel(np.asarray(y, dtype=object))):
            raise ValueError(
                "The 'y' parameter of OscillatorRegressor must be numbers. Got text; OscillatorClassifier takes names."
            )
        data, given = validate_data(
            self, X, y, dtype=np.float64, ensure_min_samples=2, multi_output=True, y_numeric=True,
            reset=not self._goes_on,
        )  # fmt: skip
        goals = np.asarray(given, dtype=np.float64).reshape(len(data), -1)
        weights = _check_sample_weight(sample_weight, data, dtype=np.float64, ensure_non_negative=True)
        answers = _numbered("y", goals.shape[1])
        self._check_answers(answers)
        if not self._goes_on:
            kept = goals[weights > 0]
            self.targets_ = Scaling(kept.min(axis=0), kept.max(axis=0))
        self._single = np.ndim(given) == 1
        return self._fit(data, self.targets_.apply(goals), weights, answers, progress)

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return the numbers predicted for every sample, shape (n_samples,) or (n_samples, n_outputs)."""
        outputs, _ = self._read(X)
        values = self.targets_.invert(outputs)
        return values[:, 0] if self._single else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _end_if_orphaned(before: int) -> None:
    """End this process where it is a worker, as those of ``n_jobs=2``, and the process that waits for it is gone.

    joblib's workers do not notice when SIGTERM ends the search that started them, and would train to the end. They are
    ended by the same signal. ``before`` is what `os.getppid` said when training began.
    """
    parent = multiprocessing.parent_process()
    if parent is None or parent.pid is None or os.name != "posix":
        return
    gone = os.getppid() != before
    try:
        os.kill(parent.pid, 0)  # sends nothing, and fails where there is no such process
    except ProcessLookupError:
        gone = True
    except PermissionError:
        pass
    if gone:
        signal.raise_signal(signal.SIGTERM)


def _numbered(letter: str, count: int) -> list[str]:
    return [f"{letter}{k}" for k in range(count)]


def _of_one(history: History) -> History:
    """Return the history of a single network without the axis of networks."""
    given = {item.name: getattr(history, item.name) for item in dataclasses.fields(history) if item.name != "records"}
    flat = {name: values[0] if values.ndim == 2 else values for name, values in given.items()}
    return History(**flat, records={name: values[0] for name, values in history.records.items()})


def _distinct(
    inputs: FloatArray, targets: NDArray[Any], weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the distinct samples of positive weight, in a fixed order, with the weights of equal ones added up.

    So training depends on the weighted set of samples alone: not on the order of the rows, and a sample of weight 2
    is the same as the sample given twice. Rows are told apart by a number made of their bits, and compared.
    """
    kept = weights > 0
    table = np.column_stack([inputs[kept], targets[kept]]) + 0.0
    factors = np.random.default_rng(0).integers(1, 2**63, table.shape[1], dtype=np.uint64) | np.uint64(1)
    bits = np.ascontiguousarray(table).view(np.uint64)
    mixed = (bits ^ (bits >> np.uint64(29))) * factors
    keys = np.bitwise_xor.reduce(mixed ^ (mixed >> np.uint64(32)), axis=1)
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    if not np.array_equal(table, table[first][place]):
        _, first, place = np.unique(table, axis=0, return_index=True, return_inverse=True)
    rows = table[first]
    width = inputs.shape[1]
    return rows[:, :width], rows[:, width:], np.bincount(place.ravel(), weights[kept]).astype(np.float64)
