"""The public `train`: one run that owns streams, epochs, evaluation, patience and interruption."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import BoolArray, choice, random_stream, whole_number
from phasegrad.gradients import LIMIT, GradientWarning
from phasegrad.networks import Network
from phasegrad.objectives import check_cost
from phasegrad.terms import Field
from phasegrad.training._batch import BatchEngine
from phasegrad.training._engine import Engine, Problem, Progress, Tallies
from phasegrad.training._history import (
    DeviceError,
    History,
    Training,
    TrainingState,
    TrainingWarning,
    evaluation,
    origin_of,
)
from phasegrad.training._lanes import LaneEngine
from phasegrad.training._optimizers import Arrays
from phasegrad.training._plan import Plan, default_plan
from phasegrad.training._records import nudged_error, record
from phasegrad.training._samples import Samples, check_augmentation, gather, validation_rows
from phasegrad.training._tensors import DTYPES, TorchEngine

Report = Callable[[int, History], None]

#: The engines, the one that "auto" tries first before the others.
ENGINES: dict[str, type[Any]] = {"lanes": LaneEngine, "batch": BatchEngine, "torch": TorchEngine}
_ORDERS_AT_ONCE = 2**22
# Updates of one network between two looks at Ctrl-C: no signal is heeded inside compiled code. A quarter of a second
# with the largest networks of the lanes.
_UPDATES_AT_ONCE = 2**14
# Training samples on whose targets the objective is tried before training begins.
_CHECKED = 8
# Share of its force where outputs are undecided below which a cost is said not to act on them. `layered(2, 5, 2)`
# starts at 5 to 10 %; after 100 epochs on two vowels it was right less often than by chance, with a third of the
# samples skipped.
_FEEBLE = 0.2


class Interrupted(KeyboardInterrupt):
    """Somebody stopped a training; ``training`` is what was trained until the last full epoch."""

    training: Training

    @classmethod
    def after(cls, training: Training) -> Interrupted:
        """Return the exception that carries a training."""
        made = cls()
        made.training = training
        return made


class Where(NamedTuple):
    """Which engine trains, on what, in which numbers."""

    engine: Any = "auto"
    threads: int | None = None
    device: str | None = None
    dtype: str | None = None


def train(
    network: Network | Sequence[Network],
    data: Any,
    plan: Plan | None = None,
    *,
    seed: int | Sequence[int | None] | None = 0,
    sample_weight: ArrayLike | None = None,
    mask: Mapping[str, ArrayLike] | None = None,
    until: int | None = None,
    state: TrainingState | None = None,
    engine: Any = "auto",
    threads: int | None = None,
    device: str | None = None,
    dtype: str | None = None,
    progress: Report | None = None,
    **changes: Any,
) -> Training:
    """Train a network, or many of one topology.

    No result depends on which others are trained with it: in lanes not by a bit, in the batch engine to rounding.

    Parameters
    ----------
    network : Network or sequence of Network
        With one input per feature. Several must have the same edges, roles and terms.
    data : Dataset, (x, y), (x, y, x_test, y_test), or a list of these
        Samples of shape (n, n_in) with class numbers, or whatever targets the plan's objective takes; one data set for
        all networks, or one for each, of the same size.
    plan : Plan, optional
        If left out, the plan suits the network. With bias fields (`signed_layers`, `layers`) it is `Plan.classifier`.
        Without them (`layered`, `lattice` and others) outputs start near phase zero, where the force of its cost
        vanishes: frequencies and couplings then learn on `OutputDifferences` instead. ``changes`` replace single fields
        of the plan: ``train(network, data, epochs=20)``.
    seed : int, None, or a sequence of them
        Seed of the stream that shuffles the samples. Of many networks network r has ``seed + r``, or its own of a
        sequence; the result says which were used.
    sample_weight : array_like, shape (n,) or (R, n), optional
        How much each training sample counts; 1 if left out.
    mask : mapping of str to array_like of bool, optional
        By name, which entries of a parameter learn, of shape (width,) or (R, width); all if left out.
    until : int, optional
        Stop after this epoch, the schedule and the evaluations being those of ``plan.epochs``.
    state : TrainingState, optional
        Go on from here, exactly as if training had not stopped; the values of the networks' parameters and ``seed`` are
        then not used. The state of another topology or plan, or of other samples, is refused.
    engine : {"auto", "lanes", "batch", "torch"} or an engine
        "lanes" is the compiled kernel for small sine-coupled networks that learn sample by sample; "batch" takes every
        network and every plan; "torch" is for layered and convolutional networks on tensors, and needs PyTorch. "auto"
        takes the lanes where they can, and the tensors where a device is named. An engine is an object such as
        `hardware.OnDevice`, which trains on chips.
    threads : int, optional
        Threads of the lanes, as many as processors if left out. The result does not depend on it.
    device : str, optional
        Where the torch engine works: "cpu" (default), "cuda", "cuda:1" and so on.
    dtype : {"float32", "float64"}, optional
        The numbers of the torch engine; single precision if left out. In double precision it agrees with the batch
        engine.
    progress : callable, optional
        Called with the epoch and the history so far after every evaluation, and in between wherever training pauses
        between two epochs: the history then ends with the last evaluation.
    **changes
        Fields of `Plan`.

    Returns
    -------
    Training
        Trained ``networks``, their ``history`` with the untrained scores in front, and the ``state`` to go on from.
        Ctrl-C stops it, with a `TrainingWarning`: what is returned was trained until the last full epoch and has
        ``interrupted`` set, which a loop over trainings must look at. Before the first epoch Ctrl-C raises
        KeyboardInterrupt. SIGTERM ends the process, as in any Python program without a handler for it. Where coupling
        is not reciprocal and the gradient comes from nudges without a correction, a `GradientWarning` says how far off
        that is. A `TrainingWarning` reports a `CosineCrossEntropy` that has no force on the outputs of a network
        without fields.

    See Also
    --------
    Plan : How networks are trained.
    Training : Trained networks, history and state.

    Examples
    --------
    >>> import phasegrad as pg
    >>> data = pg.datasets.vowels(["a", "i"], seed=0)
    >>> start = pg.initial.spectral_frequencies(pg.layered(2, 5, 2, seed=0))
    >>> result = pg.train(start, data, pg.Plan.paper(epochs=20))
    >>> float(result.history.test_accuracy[0, -1].round(2))
    0.93

    Any cost trains, here the distance to target phases:

    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> network = pg.networks.signed_layers(1, 8, 1)
    >>> fit = pg.train(network, (x, np.sin(2 * x)), objective=pg.PhaseTargets(), epochs=50, learning_rate=0.03)
    >>> bool(fit.history.train_loss[0, -1] < 0.1 * fit.history.train_loss[0, 0])
    True
    """
    result = _trained(
        network, data, plan, Where(engine, threads, device, dtype), seed=seed, sample_weight=sample_weight, mask=mask,
        until=until, state=state, progress=progress, **changes,
    )  # fmt: skip
    if result.interrupted:
        warnings.warn(
            f"Training was interrupted; the result is that of epoch {result.state.epoch} of {result.plan.epochs}.",
            TrainingWarning,
            stacklevel=2,
        )
    return result


def train_whole(network: Network | Sequence[Network], data: Any, plan: Plan | None = None, **options: Any) -> Training:
    """Train as `train` does, for a caller who has more to do afterwards: Ctrl-C raises `Interrupted`."""
    where = Where(**{name: options.pop(name) for name in Where._fields if name in options})
    result = _trained(network, data, plan, where, **options)
    if result.interrupted:
        raise Interrupted.after(result)
    return result


def _trained(
    network: Any, data: Any, plan: Plan | None, where: Where, *, seed: Any = 0, sample_weight: ArrayLike | None = None,
    mask: Mapping[str, ArrayLike] | None = None, until: int | None = None, state: TrainingState | None = None,
    progress: Report | None = None, **changes: Any,
) -> Training:  # fmt: skip
    """Set a run up and let it go; one that is interrupted says so in its result."""
    run = _set_up(network, data, plan, changes, seed, sample_weight, mask, state, where)
    epochs = run.plan.epochs
    last = epochs if until is None else whole_number("until", until, 0, "train")
    if not run.epoch <= last <= epochs:
        raise ValueError(f"Training stands at epoch {run.epoch} of {epochs} and cannot stop at {last}.")
    return run.go(last, progress)


def prepare(
    network: Network | Sequence[Network],
    data: Any,
    plan: Plan | None = None,
    *,
    mask: Mapping[str, ArrayLike] | None = None,
    engine: Any = "auto",
    threads: int | None = None,
    device: str | None = None,
    dtype: str | None = None,
    **changes: Any,
) -> Engine:
    """Return the engine that `train` would run, before its first epoch; the arguments are those of `train`."""
    where = Where(engine, threads, device, dtype)
    return _set_up(network, data, plan, changes, 0, None, mask, None, where).engine


def check_device(device: str) -> None:
    """Raise ValueError, in words, where PyTorch cannot use a device; ImportError where there is no PyTorch."""
    from phasegrad.training._torch import checked_device

    checked_device(device)


def _set_up(
    network: Any, data: Any, plan: Any, changes: dict[str, Any], seed: Any, sample_weight: ArrayLike | None,
    mask: Mapping[str, ArrayLike] | None, state: TrainingState | None, where: Where,
) -> _Run:  # fmt: skip
    """Check everything, gather the samples and build the engine."""
    networks = _checked_networks(network)
    if isinstance(where.engine, str) or not _is_engine(where.engine):
        choice("engine", where.engine, ("auto", *ENGINES), "train")
    if where.threads is not None:
        whole_number("threads", where.threads, 1, "train")
    if where.dtype is not None:
        choice("dtype", where.dtype, DTYPES, "train")
    for name in ("device", "dtype"):
        if getattr(where, name) is not None and where.engine not in ("auto", "torch"):
            raise ValueError(
                f"The '{name}' of train is for engine='torch', and engine={where.engine!r} was asked for. Leave one "
                "of them out."
            )
    if plan is not None and not isinstance(plan, Plan):
        words = " (a function: call it)" if callable(plan) else ""
        raise TypeError(f"The 'plan' of train must be a Plan, such as Plan.paper() makes. Got {plan!r:.60}{words}.")
    chosen = (default_plan(networks[0]) if plan is None else plan).replace(**changes)
    chosen.check_network(networks[0])
    train_part, test_part = gather(networks, data, chosen.objective, sample_weight)
    some = train_part.targets[0, :_CHECKED]
    check_cost(chosen.objective, np.full((some.shape[0], len(chosen.objective.nodes(networks[0]))), 0.1), some, "train")
    if chosen.augmentation is not None:
        check_augmentation(chosen.augmentation, train_part.inputs[0, :_CHECKED])
    run = _Run(networks, chosen, train_part, test_part, _seeds(seed, len(networks)), state)
    run.start(where, _masks(networks, chosen, mask))
    return run


class _Run:
    """A training under way: streams, epochs, scores."""

    engine: Engine
    engine_name: str

    def __init__(
        self,
        networks: list[Network],
        plan: Plan,
        train_part: Samples,
        test_part: Samples | None,
        seeds: list[int | None],
        state: TrainingState | None,
    ) -> None:
        self.networks, self.plan = networks, plan
        self.origin = origin_of(networks, plan, train_part, test_part)
        count = len(networks)
        if state is None:
            self.seeds = tuple(seeds)
            self.streams = [random_stream(seed, "train") for seed in seeds]
            self.held_back = validation_rows(train_part, plan.validation_fraction, self.streams)
            self.epoch, self.best = 0, None
            self.waited = np.zeros(count, dtype=np.int64)
            self.begin = self._fresh()
        else:
            self._check_state(state, train_part)
            self.seeds = ()
            self.streams = [np.random.default_rng() for _ in range(count)]
            for stream, saved in zip(self.streams, state.streams, strict=True):
                stream.bit_generator.state = saved
            self.held_back, self.epoch, self.waited = state.held_back, state.epoch, state.waited.copy()
            if not state.origin:
                self.held_back = validation_rows(train_part, plan.validation_fraction, self.streams)
            self.best = state.best
            self.begin = state.progress
        if plan.validation_fraction and not self.held_back.size:
            raise ValueError(
                "A validation part needs a class of at least two samples, one to hold back and one to learn from. Give "
                "more samples, or train without validation_fraction."
            )
        self.parts = {"train": train_part.without(self.held_back)}
        if self.held_back.shape[1]:
            self.parts["validation"] = train_part.rows(self.held_back)
        if test_part is not None:
            self.parts["test"] = test_part

    def start(self, where: Where, masks: dict[str, BoolArray]) -> None:
        """Build the engine."""
        problem = Problem(
            self.networks, self.plan, self.parts, masks, self.begin, where.threads, where.device, where.dtype
        )
        self.engine_name, engine = _engine(where.engine, problem)
        self.engine = engine(problem)

    def go(self, last: int, report: Report | None) -> Training:
        """Train up to an epoch."""
        snapshot = self._snapshot()
        try:
            rows = [self._untrained()]
        except DeviceError as error:
            error.state = snapshot
            raise
        self._warn_of_no_force()
        warned = self.epoch >= last or self._warn_of_bias("Before training")
        snapshot, ended = self._snapshot(), "patience" if self._all_stopped() else "finished"
        since = Tallies.zeros(len(self.networks))
        try:
            while self.epoch < last and ended == "finished":
                tallies, factor = self._train_block(last)
                since += tallies.over_epochs()
                if not np.all(np.isfinite(tallies.cost)):
                    ended = "not finite"
                    break
                self.epoch += tallies.cost.shape[1]
                due = self.plan.evaluates_after(self.epoch)
                if due or self.epoch == last:
                    rows.append(self._row(factor, tallies.at(-1), since))
                    since = Tallies.zeros(len(self.networks))
                    if due and self._patience_ran_out(rows[-1]):
                        ended = "patience"
                self._after_epoch(due)
                snapshot = self._snapshot()
                if report is not None:
                    report(self.epoch, History.of(rows))
        except KeyboardInterrupt:
            ended = "interrupted"
        except DeviceError as error:
            error.state, error.training = snapshot, self._result(rows, snapshot, "failed")
            raise
        if ended == "finished" and self.epoch < self.plan.epochs:
            ended = "until"
        if not warned and ended != "interrupted":
            self._warn_of_bias("At the end of training")
        return self._result(rows, snapshot, ended)

    def _train_block(self, last: int) -> tuple[Tallies, float]:
        """Train for one epoch; in lanes up to the next evaluation, as far as orders fit in memory and nobody waits."""
        plan, size = self.plan, self.parts["train"].count
        fit = 1
        if isinstance(self.engine, LaneEngine):
            # The lanes alone draw nothing from the streams. Every other engine may (noise, augmentation, signs of
            # nudges), after the order of an epoch and before that of the next, wherever training stops in between.
            fit = max(1, min(_ORDERS_AT_ONCE // max(size * len(self.networks), 1), _UPDATES_AT_ONCE // max(size, 1)))
        block = 1
        while block < fit and self.epoch + block < last and not plan.evaluates_after(self.epoch + block):
            block += 1
        orders = np.empty((len(self.streams), block, size), dtype=np.uint32)
        factors = np.array([plan.schedule.factor((self.epoch + k) / max(plan.epochs, 1)) for k in range(block)])
        for r, stream in enumerate(self.streams):
            for k in range(block):
                orders[r, k] = plan.shuffle.order(stream, size, self.epoch + k + 1)
        return self.engine.train(orders, factors, self.streams), float(factors[-1])

    def _after_epoch(self, evaluated: bool) -> None:
        for stream in self.streams:
            self.plan.shuffle.after(stream, self.parts["train"].count, self.epoch, evaluated=evaluated)

    def _untrained(self) -> dict[str, Any]:
        train = self._scored("train")
        assert train is not None
        return self._row(0.0, train, train._replace(skipped=train.skipped * 0))

    def _row(self, factor: float, train: Tallies, since: Tallies) -> dict[str, Any]:
        row = evaluation(self.epoch, factor, train, since, self._scored("test"), self._scored("validation"))
        if self.plan.record:
            row |= record(self.plan, self._current(self.engine.progress.parameters), self.parts)
        return row

    def _scored(self, part: str) -> Tallies | None:
        if part not in self.parts:
            return None
        return self.engine.score(part).at(0)

    def _patience_ran_out(self, row: Mapping[str, Any]) -> bool:
        """Keep the parameters of lowest validation cost, and say whether no network has patience left."""
        if self.plan.patience is None:
            return False
        loss, now = np.asarray(row["validation_loss"]), self.engine.progress.parameters
        if self.best is None:
            self.best = np.full(loss.shape, np.inf), now
        going = self.waited < self.plan.patience
        better = going & (loss < self.best[0])
        kept = {name: np.where(better[:, None], values, self.best[1][name]) for name, values in now.items()}
        self.best = np.where(better, loss, self.best[0]), kept
        self.waited = np.where(better, 0, self.waited + going)
        return self._all_stopped()

    def _all_stopped(self) -> bool:
        """Let the networks without patience learn no more, and say whether these are all."""
        if self.plan.patience is None:
            return False
        self.engine.stop(self.waited >= self.plan.patience)
        return bool(np.all(self.waited >= self.plan.patience))

    def _fresh(self) -> Progress:
        parameters = {
            name: np.stack([network.parameters[name] for network in self.networks])
            for name in self.networks[0].parameters
        }
        learns = {name: values for name, values in parameters.items() if name in self.plan.rates}
        memory = self.plan.optimizer.start(learns)
        if not learns:
            memory = type(memory)(np.zeros(len(self.networks), dtype=np.int64), {}, {})
        return Progress(parameters, memory, np.zeros((len(self.networks), self.networks[0].size)))

    def _snapshot(self) -> TrainingState:
        streams = tuple(dict(stream.bit_generator.state) for stream in self.streams)
        return TrainingState(
            self.epoch, self.engine.progress, streams, self.held_back, self.best, self.waited.copy(), self.origin
        )

    def _result(self, rows: list[dict[str, Any]], state: TrainingState, ended: str) -> Training:
        if ended == "not finite":
            warnings.warn(
                "Training met a cost that is not finite; the result is that of epoch "
                f"{state.epoch} of {self.plan.epochs}.",
                TrainingWarning,
                stacklevel=5,
            )
        rows = [row for row in rows if row["epoch"] <= state.epoch]
        if ended not in ("interrupted", "failed"):
            self._warn_of_idleness(rows)
        chosen = state.parameters if state.best is None else state.best[1]
        networks = tuple(self._current(chosen))
        return Training(networks, History.of(rows), state, self.plan, self.seeds, ended, self.engine_name)

    def _warn_of_idleness(self, rows: list[dict[str, Any]]) -> None:
        """Warn where most samples had no part in the last updates: whatever the scores say, little was learned."""
        if len(rows) < 2 or not self.plan.rates:
            return
        asked = self.parts["train"].count * (rows[-1]["epoch"] - rows[-2]["epoch"])
        idle = np.flatnonzero(rows[-1]["skipped"] > asked / 2)
        if idle.size:
            share = float(np.mean(rows[-1]["skipped"][idle])) / asked
            of = f" in {idle.size} of {len(self.networks)} networks" if len(self.networks) > 1 else ""
            warnings.warn(
                f"At the end {share:.0%} of the training samples had no part in an update{of}: they had no stable "
                "state, free or nudged. Lower the learning rate or beta, or the scale of the inputs.",
                TrainingWarning,
                stacklevel=6,
            )

    def _warn_of_no_force(self) -> None:
        """Warn where outputs start at phases on which the cost hardly acts, and no field can turn them elsewhere."""
        plan, network, samples = self.plan, self.networks[0], self.parts["train"]
        best = getattr(plan.objective, "undecided", 0.0)
        if not best or self.epoch or not plan.rates or Field.every[1].name in network.parameters:
            return
        outputs, _ = plan.settling.outputs(network, samples.inputs[0, :_CHECKED])
        targets = samples.targets[0, :_CHECKED]
        there = np.mean(np.abs(plan.objective.force(outputs, targets)))
        most = np.mean(np.abs(plan.objective.force(np.full_like(outputs, best), targets)))
        if there < _FEEBLE * most:
            warnings.warn(
                f"The outputs of this network start near phase {np.mean(outputs):.2f}, where the force of "
                f"{plan.objective!r} is {there / most:.0%} of that at {best:.2f}, and it has no fields to turn them "
                "there. Train it with objective=OutputDifferences(), or take a network with fields: signed_layers(..., "
                f"rest={type(plan.objective).__name__}.undecided), or layers(...).",
                TrainingWarning,
                stacklevel=5,
            )

    def _warn_of_bias(self, when: str) -> bool:
        """Warn where nudged equilibria do not show the gradient because coupling is not reciprocal; say whether."""
        if self.networks[0].reciprocal or not self.plan.propagation.biased or not self.plan.rates:
            return False
        networks = self._current(self.engine.progress.parameters)
        share, name = max(nudged_error(self.plan, each, self.parts, r) for r, each in enumerate(networks))
        if share <= LIMIT:
            return False
        warnings.warn(
            f"{when} the gradient by {name} was off by up to {100 * share:.0f} % of its largest entry, on the first "
            f"training samples: the coupling is not reciprocal, and gradient={self.plan.gradient!r} is biased there. "
            "Train with correction='asymmetric', or gradient='dyadic' or 'adjoint', which are right there.",
            GradientWarning,
            stacklevel=5,
        )
        return True

    def _current(self, parameters: Arrays) -> list[Network]:
        return [
            network.replace(**{name: values[r] for name, values in parameters.items()})
            for r, network in enumerate(self.networks)
        ]

    def _check_state(self, state: TrainingState, samples: Samples) -> None:
        if not isinstance(state, TrainingState):
            raise TypeError(f"The 'state' of train must be a TrainingState. Got {type(state).__name__}.")
        others = state.origin not in ("", self.origin) or _kinds(state.progress) != _kinds(self._fresh())
        if others or len(state.streams) != len(self.networks):
            raise ValueError(
                "This state belongs to another training: another topology, plan, number of networks, or other samples. "
                "To begin another plan or go on with other samples, use state.begin(plan)."
            )
        held_back, best = state.held_back, state.parameters if state.best is None else state.best[1]
        rows = [np.unique(row) for row in held_back]
        sound = held_back.shape[:1] == state.waited.shape == (len(self.networks),) and all(
            row.size == held_back.shape[1] < samples.count and np.all((row >= 0) & (row < samples.count))
            for row in rows
        )
        expected = bool(self.plan.validation_fraction) == bool(held_back.size) or not state.origin
        if not (sound and expected and _shapes(best) == _shapes(state.parameters)):
            raise ValueError(
                "This state is damaged: the samples that it holds back, or the best parameters so far, are not those "
                "of this training. Begin anew, or with state.begin(plan)."
            )
        self._current(state.parameters)
        self._current(best)


def _kinds(progress: Progress) -> list[Any]:
    """Return names, shapes and kinds of all arrays of a progress."""
    memory = progress.memory
    groups = (progress.parameters, memory.first, memory.second, {"steps": memory.steps, "phases": progress.phases})
    return [{name: (values.shape, values.dtype) for name, values in group.items()} for group in groups]


def _shapes(arrays: Arrays) -> dict[str, tuple[int, ...]]:
    return {name: values.shape for name, values in arrays.items()}


def _checked_networks(given: Any) -> list[Network]:
    networks = [given] if isinstance(given, Network) else list(given) if isinstance(given, Iterable) else []
    if not networks or not all(isinstance(each, Network) for each in networks):
        raise TypeError(f"train takes a Network or a list of them, at least one. Got {given!r:.80}.")
    first = networks[0]
    for k, each in enumerate(networks):
        if not each.alike(first):
            raise ValueError(
                f"Network {k} has another topology than network 0 (edges, roles, terms or scale of the inputs). Train "
                "networks of different topology in separate calls."
            )
    return networks


def _seeds(given: Any, count: int) -> list[int | None]:
    if given is None:
        return [None] * count
    if isinstance(given, Iterable):
        seeds = list(given)
        if len(seeds) != count:
            raise ValueError(f"The 'seed' of train must name one seed per network, {count}. Got {len(seeds)}.")
        return seeds
    return [whole_number("seed", given, 0, "train") + r for r in range(count)]


def _masks(networks: list[Network], plan: Plan, given: Mapping[str, ArrayLike] | None) -> dict[str, BoolArray]:
    """Return which entries of every parameter that learns do, (R, width)."""
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"The 'mask' of train must be a mapping such as {{'omega': [...]}}. Got {given!r:.60}.")
    unknown = set(given or {}) - set(plan.rates)
    if unknown:
        raise ValueError(f"The 'mask' of train names {sorted(unknown)[0]!r}, which does not learn in this plan.")
    masks = {}
    for name in plan.rates:
        _, parameter = networks[0].term_of(name)
        learnable = parameter.learnable(networks[0].graph)
        shape = (len(networks), learnable.size)
        mask = np.asarray(True if given is None or name not in given else given[name])
        if mask.dtype != bool or mask.shape not in ((), shape[1:], shape):
            raise ValueError(
                f"The 'mask' of train for {name!r} must be an array of True and False of shape {shape[1:]}, one per "
                f"entry{f', or {shape}' if shape[0] > 1 else ''}. Got shape {mask.shape} of {mask.dtype}."
            )
        masks[name] = np.broadcast_to(mask & learnable, shape)
    return masks


def _is_engine(given: Any) -> bool:
    """Whether it makes an engine of a problem."""
    return callable(given) and callable(getattr(given, "refuses", None))


def _engine(given: Any, problem: Problem) -> tuple[str, Any]:
    """Return the name of the engine that trains, and what makes it of a problem."""
    if not isinstance(given, str):
        if refusal := given.refuses(problem):
            raise ValueError(refusal)
        return type(given).__name__, given
    if given == "auto" and problem.device is not None:
        given = "torch"
    if given == "auto":
        return next((name, engine) for name, engine in ENGINES.items() if not engine.refuses(problem))
    refusal = ENGINES[given].refuses(problem)
    if refusal:
        raise ValueError(f"{refusal} Use engine='batch' for this one.")
    return given, ENGINES[given]
