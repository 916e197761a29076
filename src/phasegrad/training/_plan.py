"""The plan of a training: every number of it, as one frozen value."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from phasegrad._validation import IntArray, choice, float_between, positive_float, whole_number
from phasegrad.equilibria import Settling
from phasegrad.gradients import Propagation
from phasegrad.networks import Network
from phasegrad.objectives import CosineCrossEntropy, Cost, OutputDifferences, PaperPair
from phasegrad.training._optimizers import OPTIMIZERS, SCHEDULES, Constant, Optimizer, Schedule

FREQUENCIES = ("raw", "relative")
WARM_STARTS = ("none", "epoch", "run")
RECORDS = ("condition", "gradient_cosine", "class_separation")
Learn = str | Sequence[str] | Mapping[str, float]
#: Where the paper keeps frequencies and couplings.
PAPER_BOUNDS: Mapping[str, tuple[float, float]] = MappingProxyType({"omega": (-3.0, 3.0), "coupling": (0.01, 8.0)})
#: What learns in a layered network with clamped inputs and bias fields.
LAYER_PARAMETERS = ("coupling", "field_strength", "field_phase")


@dataclass(frozen=True)
class Shuffle:
    """Where the orders of the samples come from: a new permutation of each network's stream in every epoch."""

    def order(self, stream: np.random.Generator, size: int, epoch: int) -> IntArray:
        """Return the order of the samples in an epoch, the first being 1."""
        del epoch
        return stream.permutation(size)

    def after(self, stream: np.random.Generator, size: int, epoch: int, *, evaluated: bool) -> None:
        """Do what else the stream is used for after an epoch: nothing."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How networks are trained: what learns and how, on which objective, scored when.

    Parameters
    ----------
    learn : str, sequence of str or mapping of str to float
        The parameters that change, by name; a mapping gives each its own rate. A rate of 0 means that it does not
        learn; with nothing to learn nothing does.
    learning_rate : float
        Step per gradient, before the schedule, of the parameters that have no rate of their own; with "adam" the size
        of a step itself.
    objective : Cost
        What the outputs should do: any cost. Accuracies are counted where it is one for classes.
    epochs, batch_size : int
        Length of the training, and samples per update.
    optimizer : {"adam", "momentum", "sgd"} or Optimizer
    schedule : {"cosine", "constant", "staircase"} or Schedule
    gradient : str
        From nudges +beta and -beta ("centred"), from one nudge ("two_phase"), from one whose sign is drawn for every
        sample ("random_sign"), from complex ones ("holomorphic"), from two copies ("dyadic"), from parameters that move
        during the nudge ("continuous"), from means over noise ("stochastic"), by one linear solve ("adjoint"), or by
        differences of step 1e-5 ("finite_difference"); see the functions of these names.
    beta : float
        The nudge.
    correction : {"none", "asymmetric"}
        What nudged networks are given where coupling is not reciprocal; see `two_phase`.
    gradient_options : mapping of str to value
        What else the gradient takes, by name: points and pattern of "centred", points of "holomorphic", rate of
        "continuous", temperature (which it needs), averages, walkers and steps of "stochastic".
    frequencies : {"raw", "relative"}
        Whether omega descends along the gradient by what is turned, or by frequencies relative to their mean.
    clip : float or None
        Largest gradient of one parameter.
    bounds : mapping of str to (float, float)
        Where parameters are kept after every update, also those that do not learn. Beyond that couplings and field
        strengths of a network that is not signed stay positive.
    weight_decay : float
        Share of every coupling that is lost per update, times the learning rate; decoupled from the optimiser (AdamW).
    balance : bool
        Whether couplings between layers that move are kept summing to zero into every oscillator, or channel. At rest
        all of a layer point the same way and pull as one, along the next layer's field or against it; without their
        sum deep networks settle faster while they learn. For networks of `layers`.
    coupling_norm : float or None
        Largest singular value that the couplings between two layers that move may have together; larger ones are scaled
        down after every update. Well below the fields it keeps deep networks where they settle in a few sweeps. It is
        followed by power iteration, a step with every update. For networks of `layers`; None sets no bound.
    fan_in : float or None
        Couplings into an oscillator with more couplings than this learn more slowly: the rate times ``fan_in`` over
        their number. None lets all learn alike.
    input_noise : float
        Standard deviation of noise added to the inputs of training samples, anew in every epoch.
    warm_start : {"none", "epoch", "run"}
        Where a sample starts: at phase zero, or at the state of the sample before it, the first one of an epoch or of
        the whole run at zero. Warm starts are for batches of one; evaluations then go from sample to sample too.
    settling : Settling
        Solver and tolerance of every equilibrium, in training and scoring.
    accept : (float, float) or None
        Residuals, in training and in evaluation, below which a state that did not converge is accepted all the same,
        stable or not. None accepts stable equilibria alone.
    lock_floor : float or None
        The lock guard: an update after which the reduced Laplacian of a sample of its batch has an eigenvalue below
        this is halved, up to six times, and refused if that does not help. Both are counted as shortened. A refused
        update counts as an update, and the optimiser remembers its gradient: otherwise momentum that points across the
        boundary would never turn. None takes every update as it is.
    validation_fraction : float
        Share of the training samples held back to score; 0 holds none back.
    patience : int or None
        Stop a network after so many evaluations without a lower validation cost, and return the best; None never stops.
    evaluate_every : int
        Networks are scored before training, after epoch 1, after multiples of this, and after the last epoch.
    record : sequence of str
        What else to follow at every evaluation: "condition" (condition number of the reduced Laplacian at the first
        training sample), "gradient_cosine" (cosine of the plan's gradient and the exact one on some training samples),
        "class_separation" (smallest distance between the mean output phases of two classes).
    shuffle : Shuffle
        Where the orders of the samples come from.
    augmentation : object with draw and apply, or None
        How training samples are changed anew in every epoch, such as ``datasets.Shifts(1)``: ``draw(stream, n)``
        returns an array with a row for each sample, and ``apply(inputs, rows)`` the inputs (b, d) after that. Scores of
        the validation and test parts are of the samples as they are, those of training of what was learned from.

    See Also
    --------
    train : Train one network or many.

    Examples
    --------
    >>> import phasegrad as pg
    >>> plan = pg.Plan(learn={"coupling": 0.01, "field_phase": 0.003}, epochs=20, optimizer=pg.optim.Momentum(0.9))
    >>> plan.rates
    {'coupling': 0.01, 'field_phase': 0.003}
    >>> plan.replace(epochs=50).epochs
    50
    """

    learn: Any = "coupling"
    learning_rate: float = 0.01
    objective: Cost = field(default_factory=CosineCrossEntropy)
    epochs: int = 100
    batch_size: int = 32
    optimizer: Any = "adam"
    schedule: Any = "cosine"
    gradient: str = "centred"
    beta: float = 0.001
    correction: str = "none"
    gradient_options: Any = ()
    frequencies: str = "raw"
    clip: float | None = None
    bounds: Any = ()
    weight_decay: float = 0.0
    balance: bool = False
    coupling_norm: float | None = None
    fan_in: float | None = None
    input_noise: float = 0.0
    warm_start: str = "none"
    settling: Settling = field(default_factory=lambda: Settling("batch", 1e-9))
    accept: tuple[float, float] | None = None
    lock_floor: float | None = 1e-4
    validation_fraction: float = 0.0
    patience: int | None = None
    evaluate_every: int = 1
    record: Any = ()
    shuffle: Shuffle = Shuffle()
    augmentation: Any = None

    def __post_init__(self) -> None:
        owner = "the plan"
        self._set("learn", _checked_learn(self.learn, owner))
        for name, known, kind in (("optimizer", OPTIMIZERS, Optimizer), ("schedule", SCHEDULES, Schedule)):
            if not isinstance(getattr(self, name), kind):
                self._set(name, known[choice(name, getattr(self, name), known, owner)])
        self._set("gradient_options", _checked_options(self.gradient_options, owner))
        # It is checked as it is made.
        _ = self.propagation
        choice("frequencies", self.frequencies, FREQUENCIES, owner)
        choice("warm_start", self.warm_start, WARM_STARTS, owner)
        several = isinstance(self.record, Iterable) and not isinstance(self.record, str)
        words = self.record if several else (self.record,)
        self._set("record", tuple(choice("record", word, RECORDS, owner) for word in words))
        self._check_numbers(owner)
        if not isinstance(self.objective, Cost):
            raise TypeError(
                f"The 'objective' of {owner} must be a cost, such as CosineCrossEntropy(), PhaseTargets() or a "
                f"subclass of Cost of your own. Got {self.objective!r}"
                f"{' (a class: call it)' if isinstance(self.objective, type) else ''}."
            )
        if not isinstance(self.balance, bool):
            raise TypeError(f"The 'balance' of {owner} must be True or False. Got {self.balance!r}.")
        if not isinstance(self.settling, Settling) or not isinstance(self.shuffle, Shuffle):
            raise TypeError(f"The 'settling' of {owner} must be a Settling, and its 'shuffle' a Shuffle.")
        if self.augmentation is not None:
            _check_augmentation(self.augmentation, owner)
        if self.warm_start != "none" and self.batch_size != 1:
            raise ValueError(f"The 'warm_start' of {owner} needs batches of one sample. Got {self.batch_size}.")
        if self.patience is not None and self.validation_fraction == 0:
            raise ValueError(f"The 'patience' of {owner} needs a validation_fraction above 0 to watch.")

    @classmethod
    def paper(cls, learn: Learn = "omega", **changes: Any) -> Plan:
        """Return the plan of the paper: plain descent, one sample at a time, in the order of its loops.

        200 epochs at a rate of 0.001, one nudge of 0.1, gradients by relative frequencies and clipped at 2,
        frequencies kept in [-3, 3] and couplings in [0.01, 8], each sample started from the state of the one before it,
        scored every 20 epochs, by the paper's pair of cost and decision.

        Parameters
        ----------
        learn : str, sequence of str or mapping of str to float
            The parameters that change: "omega", "coupling", or both.
        **changes
            Fields of `Plan` that are to be otherwise.

        See Also
        --------
        Plan : How networks are trained.
        train : Train one network or many.

        Examples
        --------
        >>> import phasegrad as pg
        >>> plan = pg.Plan.paper({"omega": 0.01, "coupling": 0.5}, objective=pg.objectives.NearestTarget())
        >>> plan.rates, plan.batch_size
        ({'omega': 0.01, 'coupling': 0.5}, 1)
        """
        paper = cls(
            learn=learn, learning_rate=0.001, objective=PaperPair(), epochs=200, batch_size=1, optimizer="sgd",
            schedule=Constant(), gradient="two_phase", beta=0.1, frequencies="relative", clip=2.0,
            bounds=PAPER_BOUNDS, warm_start="epoch", settling=Settling(), lock_floor=None, evaluate_every=20,
        )  # fmt: skip
        return paper.replace(**changes)

    @classmethod
    def classifier(cls, **changes: Any) -> Plan:
        """Return the plan of `OscillatorClassifier`: mini-batches, Adam, cross-entropy on the cosines of the outputs.

        Couplings and fields learn from centred nudges, and the lock guard keeps every sample in its stable state.

        Parameters
        ----------
        **changes
            Fields of `Plan` that are to be otherwise.

        See Also
        --------
        Plan : How networks are trained.
        OscillatorClassifier : A scikit-learn classifier.
        train : Train one network or many.

        Examples
        --------
        >>> import phasegrad as pg
        >>> pg.Plan.classifier(epochs=20).objective
        CosineCrossEntropy(sharpness=16.0)
        """
        return cls(learn=LAYER_PARAMETERS, learning_rate=0.005, objective=CosineCrossEntropy(sharpness=16.0)).replace(
            **changes
        )

    @classmethod
    def images(cls, **changes: Any) -> Plan:
        """Return the plan of layered networks that learn images: large mini-batches, weak nudges, steps by fan-in.

        Couplings and fields learn from centred nudges of 0.005 by Adam, at a rate of 0.005 that falls along a cosine
        over 30 epochs of batches of 256. Couplings into an oscillator that has more than 300 of them learn more slowly,
        and every update is taken as it is: what does not settle after it is counted. The network it is for begins
        undecided, with fields stronger than its couplings.

        Parameters
        ----------
        **changes
            Fields of `Plan` that are to be otherwise.

        See Also
        --------
        Plan : How networks are trained.
        layers : Dense and convolutional layers with shared parameters.
        train : Train one network or many.

        Examples
        --------
        >>> import phasegrad as pg
        >>> network = pg.layers(784, pg.Dense(1000), pg.Dense(10), gain=0.4, field=2.0)
        >>> plan = pg.Plan.images(epochs=2, augmentation=pg.datasets.Shifts(1))
        >>> plan.rates["coupling"], plan.batch_size, plan.objective
        (0.005, 256, CosineCrossEntropy(sharpness=8.0))

        With MNIST in the folder ``/data`` and a GPU::

            result = pg.train(network, pg.datasets.mnist("/data"), plan, device="cuda")
        """
        images = cls(
            learn=LAYER_PARAMETERS, learning_rate=0.005, objective=CosineCrossEntropy(sharpness=8.0), epochs=30,
            batch_size=256, optimizer="adam", schedule="cosine", gradient="centred", beta=0.005, fan_in=300.0,
            lock_floor=None, evaluate_every=1,
        )  # fmt: skip
        return images.replace(**changes)

    @property
    def propagation(self) -> Propagation:
        """The gradient with its nudge, correction and options."""
        return Propagation(self.gradient, self.beta, self.correction, self.gradient_options)

    @property
    def rates(self) -> dict[str, float]:
        """The learning rate of every parameter that learns."""
        chosen = {name: self.learning_rate if rate is None else rate for name, rate in self.learn}
        return {name: rate for name, rate in chosen.items() if rate > 0}

    @property
    def limits(self) -> dict[str, tuple[float, float]]:
        """The bounds by name."""
        return dict(self.bounds)

    def evaluates_after(self, epoch: int) -> bool:
        """Whether networks are scored after this epoch."""
        return epoch in (0, 1, self.epochs) or epoch % self.evaluate_every == 0

    def replace(self, **changes: Any) -> Plan:
        """Return a copy with some fields changed."""
        known = [item.name for item in dataclasses.fields(self)]
        for name in changes:
            if name not in known:
                raise TypeError(f"A plan has no field {name!r}. Its fields are {', '.join(known)}.")
        return dataclasses.replace(self, **changes)

    def check_network(self, network: Network) -> None:
        """Raise ValueError where the plan names what the network does not have, or needs what it is not."""
        self.propagation.check_network(network)
        if self.balance and network.graph.layout is None:
            raise ValueError("The plan keeps couplings balanced, which is for networks that pg.layers makes.")
        if self.coupling_norm is not None and network.graph.layout is None:
            raise ValueError("The plan bounds the norm of couplings, which is for networks that pg.layers makes.")
        for name in (*self.rates, *self.limits):
            try:
                network.term_of(name)
            except ValueError as error:
                raise ValueError(
                    f"The plan names {name!r}. {error} Leave the plan out to have one that suits the network, or say "
                    "what learns: learn=('omega', 'coupling')."
                ) from None

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _check_numbers(self, owner: str) -> None:
        whole_number("epochs", self.epochs, 0, owner)
        whole_number("batch_size", self.batch_size, 1, owner)
        whole_number("evaluate_every", self.evaluate_every, 1, owner)
        positive_float("beta", self.beta, owner)
        for name in ("learning_rate", "input_noise", "weight_decay"):
            float_between(name, getattr(self, name), 0, float("inf"), owner)
        for name in ("clip", "lock_floor", "fan_in", "coupling_norm"):
            if getattr(self, name) is not None:
                positive_float(name, getattr(self, name), owner)
        float_between("validation_fraction", self.validation_fraction, 0, 0.9, owner)
        if self.patience is not None:
            whole_number("patience", self.patience, 1, owner)
        if self.accept is not None:
            limits = tuple(self.accept) if isinstance(self.accept, Iterable) else ()
            if len(limits) != 2:
                raise ValueError(
                    f"The 'accept' of {owner} must be two numbers, residuals in training and in evaluation, or None. "
                    f"Got {self.accept!r}."
                )
            self._set("accept", tuple(positive_float("accept", limit, owner) for limit in limits))
        self._set("bounds", _checked_bounds(self.bounds, owner))


def default_plan(network: Network) -> Plan:
    """Return the plan of a network for which none is named.

    With fields it is `Plan.classifier`. Without them nothing turns the outputs to where cross-entropy acts on them, and
    a cost of phase differences takes its place.
    """
    if all(name in network.parameters for name in LAYER_PARAMETERS):
        return Plan.classifier()
    learn = [name for name in ("omega", "coupling") if name in network.parameters]
    return Plan(learn=learn, objective=OutputDifferences())


def _checked_options(given: Any, owner: str) -> tuple[tuple[str, Any], ...]:
    pairs = dict(given) if isinstance(given, Mapping) or given == () or isinstance(given, tuple) else None
    if pairs is None or not all(isinstance(name, str) for name in pairs):
        raise TypeError(
            f"The 'gradient_options' of {owner} must be a mapping of names to values, such as {{'points': 4}}. "
            f"Got {given!r:.80}."
        )
    return tuple(sorted(pairs.items()))


def _check_augmentation(given: Any, owner: str) -> None:
    able = all(callable(getattr(given, name, None)) for name in ("draw", "apply"))
    if not able or isinstance(given, type):
        raise TypeError(
            f"The 'augmentation' of {owner} must be None or have the methods draw and apply, as datasets.Shifts(1) "
            f"does. Got {given!r:.80}{' (a class: call it)' if isinstance(given, type) else ''}."
        )


def _checked_bounds(given: Any, owner: str) -> tuple[tuple[str, tuple[float, float]], ...]:
    try:
        pairs = dict(given).items()
    except (TypeError, ValueError):
        raise ValueError(
            f"The 'bounds' of {owner} must be a mapping such as {{'omega': (-3, 3)}}, empty for none. Got {given!r}."
        ) from None
    checked = []
    for name, pair in pairs:
        try:
            low, high = (float(limit) for limit in pair)
            if not low < high:
                raise ValueError
        except (TypeError, ValueError):
            raise ValueError(
                f"The 'bounds' of {owner} must be a lower and a higher number for {name!r}. Got {pair!r}."
            ) from None
        checked.append((str(name), (low, high)))
    return tuple(checked)


def _checked_learn(given: Any, owner: str) -> tuple[tuple[str, float | None], ...]:
    if isinstance(given, str):
        given = (given,)
    if isinstance(given, Mapping):
        pairs: list[tuple[Any, Any]] = list(given.items())
    elif isinstance(given, Iterable):
        pairs = [item if isinstance(item, tuple) else (item, None) for item in given]
    else:
        pairs = [(None, None)]
    if not all(len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
        raise ValueError(f"The 'learn' of {owner} must be names of parameters, such as 'omega'. Got {given!r}.")
    for name, rate in pairs:
        if rate is not None:
            float_between(f"learn[{name!r}]", rate, 0, float("inf"), owner)
    return tuple(dict(pairs).items())
