"""The public `train` and `train_many`: what learns, in what order, scored when."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad.datasets import Dataset
from phasegrad.dynamics import laplacian
from phasegrad.equilibrium import find_equilibrium
from phasegrad.network import Network
from phasegrad.seeding import learnable_nodes
from phasegrad.training.engine import Engine, Rates, Tallies
from phasegrad.training.generic import GenericEngine
from phasegrad.training.history import History, TrainingResult, TrainingState
from phasegrad.training.lanes import LaneEngine, fits_lanes
from phasegrad.training.protocol import Protocol
from phasegrad.validation import choice, random_stream, whole_number

Array = NDArray[Any]
Progress = Callable[[int, History], None]

_ORDERS_AT_ONCE = 2**22


def train(
    network: Network,
    data: Dataset,
    protocol: Protocol | None = None,
    *,
    seed: int | None = 0,
    learn_omega: ArrayLike | None = None,
    learn_coupling: ArrayLike | None = None,
    until: int | None = None,
    state: TrainingState | None = None,
    engine: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
    condition: bool = False,
    **changes: Any,
) -> TrainingResult:
    """Train one network on one data set.

    Parameters
    ----------
    network : Network
    data : Dataset
    protocol : Protocol, optional
        The paper's if left out; ``changes`` replace single fields of it: ``train(network, data, learn="both")``.
    seed : int or None
        Seed of the stream that shuffles the samples.
    learn_omega, learn_coupling : array_like of bool, shape (N,) and (E,), optional
        Which frequencies and couplings learn, among those that ``learn`` names; all of them if left out.
    until : int, optional
        Stop after this epoch, the plan of evaluations being that of ``protocol.epochs``.
    state : TrainingState, optional
        Go on from here, exactly as if training had not stopped; ``network`` and ``seed`` are then not used.
    engine : {"auto", "lanes", "generic"}
        "lanes" is the compiled kernel for sine-coupled, pinned networks; "generic" takes any network, slowly.
    threads : int, optional
        Threads of the lanes, as many as processors if left out. The result does not depend on it.
    progress : callable, optional
        Called with the epoch and the history so far after every evaluation.
    condition : bool
        Whether to follow the condition number of the Laplacian at the first training sample.
    **changes
        Fields of `Protocol`.

    Examples
    --------
    >>> import phasegrad as pg
    >>> data = pg.datasets.vowels(["a", "i"], seed=0)
    >>> result = pg.train(pg.spectral_seed(pg.layered(2, 5, 2, seed=0)), data, epochs=20)
    >>> float(result.history.test_accuracy[0, -1].round(2))
    0.93
    """
    masks = [None if mask is None else np.asarray(mask)[None] for mask in (learn_omega, learn_coupling)]
    return train_many(
        [network],
        [data],
        protocol,
        seeds=[seed],
        learn_omega=masks[0],
        learn_coupling=masks[1],
        until=until,
        state=state,
        engine=engine,
        threads=threads,
        progress=progress,
        condition=condition,
        **changes,
    )


def train_many(
    networks: Sequence[Network],
    datasets: Sequence[Dataset] | Dataset,
    protocol: Protocol | None = None,
    *,
    seeds: Sequence[int | None] | None = None,
    learn_omega: ArrayLike | None = None,
    learn_coupling: ArrayLike | None = None,
    until: int | None = None,
    state: TrainingState | None = None,
    engine: str = "auto",
    threads: int | None = None,
    progress: Progress | None = None,
    condition: bool = False,
    **changes: Any,
) -> TrainingResult:
    """Train many networks of one topology in lock-step; no result depends on which others are trained with it.

    Parameters
    ----------
    networks : sequence of Network
        All of one topology: the same edges, inputs, outputs, reference and interaction.
    datasets : Dataset or sequence of Dataset
        One for all networks, or one for each, of the same numbers of samples.
    protocol, until, state, engine, threads, progress, condition, **changes
        As for `train`.
    seeds : sequence of int, optional
        Seed of each network's shuffling stream; 0, 1, 2, ... if left out.
    learn_omega, learn_coupling : array_like of bool, optional
        Of shape (N,) or (R, N), and (E,) or (R, E).

    Returns
    -------
    TrainingResult
        Trained ``networks``, their ``history`` and the ``state`` to go on from. Ctrl-C stops between two evaluations
        and returns what was trained until then, marked as ``interrupted``.

    Examples
    --------
    >>> import phasegrad as pg
    >>> networks = [pg.layered(2, 5, 2, seed=seed) for seed in range(3)]
    >>> result = pg.train_many(networks, pg.datasets.vowels("a,i"), epochs=1)
    >>> result.history.test_accuracy.shape          # three networks, before and after
    (3, 2)
    """
    known = [item.name for item in dataclasses.fields(Protocol)]
    for name in changes:
        if name not in known:
            raise TypeError(f"train has no option {name!r}. Options of the protocol are {', '.join(known)}.")
    plan = dataclasses.replace(protocol or Protocol(), **changes)
    nets = _list_of(Network, networks if state is None else state.networks, "networks")
    sets = [datasets] * len(nets) if isinstance(datasets, Dataset) else _list_of(Dataset, datasets, "datasets")
    _check_together(nets, sets)
    if plan.edge_leak and state is None:
        nets = [leaked(network) for network in nets]
    count = len(nets)
    last = plan.epochs if until is None else until
    first = 0 if state is None else state.epoch
    if not first <= last <= plan.epochs:
        raise ValueError(f"Training stands at epoch {first} of {plan.epochs} and cannot stop at {last}.")
    rates = _rates(nets, plan, learn_omega, learn_coupling)
    phases = np.zeros((count, nets[0].size)) if state is None else state.phases
    streams = _streams(count, seeds, state)
    if threads is not None:
        whole_number("threads", threads, 1, "train_many")
    runner = _engine(engine, nets, plan)(nets, sets, plan, rates, phases, threads)
    return _run(runner, nets, sets, plan, streams, (first, last), progress, condition)


def leaked(network: Network) -> Network:
    """Return the network on the complete graph, pairs that were not coupled having strength 0.

    The historical variant behind several published files; see `Protocol`.
    """
    i, j = np.triu_indices(network.size, k=1)
    strength = {(int(a), int(b)): k for (a, b), k in zip(network.edges, network.coupling, strict=True)}
    coupling = np.array([strength.get((int(a), int(b)), 0.0) for a, b in zip(i, j, strict=True)])
    return network.replace(edges=np.stack([i, j], axis=1), coupling=coupling, signed=True)


def _run(
    runner: Engine,
    nets: list[Network],
    sets: list[Dataset],
    plan: Protocol,
    streams: list[np.random.Generator],
    span: tuple[int, int],
    progress: Progress | None,
    condition: bool,
) -> TrainingResult:
    size = len(sets[0].y_train)
    epoch, last = span
    interrupted = False

    def score(tallies: Tallies, before: dict[str, Any] | None) -> dict[str, Any]:
        row = _row(epoch, size, len(sets[0].y_test), tallies, runner.evaluate("test"), before)
        if condition:
            row["condition"] = _condition_numbers(_current(nets, runner), sets)
        return row

    rows = [score(runner.evaluate("train"), None)]
    snapshot = runner.parameters(), [stream.bit_generator.state for stream in streams], epoch
    try:
        while epoch < last:
            block = _block(plan, epoch, last, len(nets) * size)
            orders = np.empty((len(streams), block, size), dtype=np.uint32)
            for r, stream in enumerate(streams):
                for k in range(block):
                    orders[r, k] = stream.permutation(size)
            tallies = runner.train(orders)
            epoch += block
            if plan.evaluates_after(epoch) or epoch == last:
                rows.append(score(tallies, rows[-1]))
                if plan.evaluates_after(epoch) and plan.draws_spot_check:
                    for stream in streams:
                        stream.integers(size)
                if progress is not None:
                    progress(epoch, _history(rows))
            else:
                rows[-1]["pending"] = rows[-1].get("pending", 0) + np.stack([tallies.skipped, tallies.unstable]).sum(-1)
            snapshot = runner.parameters(), [stream.bit_generator.state for stream in streams], epoch
    except KeyboardInterrupt:
        interrupted = True
    (omega, coupling, phases), states, epoch = snapshot
    rows = [row for row in rows if row["epoch"] <= epoch]
    trained = tuple(network.replace(omega=w, coupling=k) for network, w, k in zip(nets, omega, coupling, strict=True))
    state = TrainingState(epoch, trained, tuple(dict(each) for each in states), phases)
    return TrainingResult(trained, _history(rows), state, plan, interrupted)


def _current(nets: list[Network], runner: Engine) -> list[Network]:
    omega, coupling, _ = runner.parameters()
    return [network.replace(omega=w, coupling=k) for network, w, k in zip(nets, omega, coupling, strict=True)]


def _condition_numbers(nets: list[Network], sets: list[Dataset]) -> Array:
    """Return the condition number of each network's reduced Laplacian at its first training sample, (R,)."""
    numbers = []
    for network, data in zip(nets, sets, strict=True):
        sample = data.x_train[0]
        equilibrium = find_equilibrium(network, sample)
        settled = bool(equilibrium.converged)
        numbers.append(np.linalg.cond(laplacian(network, equilibrium.phases, sample)) if settled else np.nan)
    return np.array(numbers)


def _block(plan: Protocol, epoch: int, last: int, samples: int) -> int:
    """Return how many epochs to train at once: up to the next evaluation, as far as their orders fit in memory."""
    fit = max(1, _ORDERS_AT_ONCE // max(samples, 1))
    block = 1
    while block < fit and epoch + block < last and not plan.evaluates_after(epoch + block):
        block += 1
    return block


def _row(
    epoch: int, n_train: int, n_test: int, train: Tallies, test: Tallies, before: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the scores of one evaluation; ``train`` holds the sums of the epochs since the last one."""
    waiting = 0 if before is None else before.pop("pending", 0)
    since = np.stack([train.skipped, train.unstable]).sum(axis=-1) + waiting
    at_start = before is None
    settled = n_train - train.skipped[:, -1]
    tested = n_test - test.skipped[:, -1]
    return {
        "epoch": epoch,
        "train_accuracy": train.correct[:, -1] / n_train,
        "train_loss": train.loss[:, -1] / np.maximum(settled, 1),
        "test_accuracy": test.correct[:, -1] / n_test,
        "test_loss": test.loss[:, -1] / np.maximum(tested, 1),
        "skipped": np.zeros_like(settled) if at_start else since[0],
        "unstable": np.zeros_like(settled) if at_start else since[1],
        "test_skipped": test.skipped[:, -1],
        "separation": test.separation[:, -1] / np.maximum(tested, 1),
        "common_phase": test.common[:, -1] / np.maximum(tested, 1),
    }


def _history(rows: list[dict[str, Any]]) -> History:
    counts = ("skipped", "unstable", "test_skipped")
    columns = {
        name: np.stack([row[name] for row in rows], axis=1) for name in rows[0] if name not in ("epoch", "pending")
    }
    columns.update({name: columns[name].astype(np.int64) for name in counts})
    return History(epoch=np.array([row["epoch"] for row in rows]), **columns)


def _rates(nets: list[Network], plan: Protocol, omega: ArrayLike | None, coupling: ArrayLike | None) -> Rates:
    count, size, edges = len(nets), nets[0].size, nets[0].n_edges
    may_learn = np.zeros((count, size), dtype=bool)
    may_learn[:, learnable_nodes(nets[0])] = True
    omega_mask = may_learn & _mask("learn_omega", omega, count, size)
    coupling_mask = _mask("learn_coupling", coupling, count, edges)
    fast = plan.learning_rate if plan.coupling_rate is None else plan.coupling_rate
    return Rates(
        omega=np.where(omega_mask, plan.learning_rate if plan.learn != "coupling" else 0.0, 0.0),
        coupling=np.where(coupling_mask, fast if plan.learn != "omega" else 0.0, 0.0),
    )


def _mask(name: str, value: ArrayLike | None, count: int, width: int) -> Array:
    if value is None:
        return np.ones((count, width), dtype=bool)
    mask = np.asarray(value)
    if mask.dtype != bool or mask.shape not in ((width,), (count, width), (1, width)):
        raise ValueError(
            f"The '{name}' parameter of train must be an array of True and False of shape ({width},), one per parameter"
            f"{f', or ({count}, {width})' if count > 1 else ''}. Got shape {mask.shape} of {mask.dtype}."
        )
    return np.broadcast_to(mask, (count, width))


def _streams(count: int, seeds: Sequence[int | None] | None, state: TrainingState | None) -> list[np.random.Generator]:
    if state is None:
        chosen = list(range(count)) if seeds is None else list(seeds)
        if len(chosen) != count:
            raise ValueError(
                f"The 'seeds' parameter of train_many must name one seed per network, {count}. Got {len(chosen)}."
            )
        return [random_stream(seed, "train") for seed in chosen]
    streams = [np.random.default_rng() for _ in range(count)]
    for stream, saved in zip(streams, state.streams, strict=True):
        stream.bit_generator.state = saved
    return streams


def _engine(name: str, nets: list[Network], plan: Protocol) -> type[LaneEngine] | type[GenericEngine]:
    choice("engine", name, ("auto", "lanes", "generic"), "train")
    fits = fits_lanes(nets[0], plan.objective)
    if name == "lanes" and not fits:
        raise ValueError(
            "The lanes train reciprocal, sine-coupled networks with a pinned reference and inputs as frequencies, "
            "for PaperPair and NearestTarget. Use engine='generic' for this one."
        )
    return LaneEngine if fits and name != "generic" else GenericEngine


def _list_of(kind: type[Any], values: Any, name: str) -> list[Any]:
    if isinstance(values, Iterable):
        items = list(values)
        if all(isinstance(item, kind) for item in items):
            return items
    raise TypeError(f"The '{name}' parameter of train_many must be a list of {kind.__name__}. Got {values!r:.80}.")


def _check_together(nets: list[Network], sets: list[Dataset]) -> None:
    if not nets or len(nets) != len(sets):
        raise ValueError(
            f"train_many needs one data set per network. Got {len(nets)} networks and {len(sets)} data sets."
        )
    first, data = nets[0], sets[0]
    roles = ("inputs", "outputs", "reference", "input_mode", "input_scale", "interaction")
    for k, network in enumerate(nets):
        same = np.array_equal(network.edges, first.edges) and network.size == first.size
        if not same or any(getattr(network, role) != getattr(first, role) for role in roles):
            raise ValueError(
                f"Network {k} has another topology than network 0 (edges, inputs, outputs, reference or interaction). "
                "Train networks of different topology in separate calls."
            )
    for k, each in enumerate(sets):
        if each.x_train.shape[1] != len(first.inputs):
            raise ValueError(
                f"Data set {k} has {each.x_train.shape[1]} features, but the networks have {len(first.inputs)} inputs."
            )
        if each.n_classes != len(first.outputs) or each.n_classes < 2:
            raise ValueError(
                f"Data set {k} has {each.n_classes} classes, but the networks have {len(first.outputs)} outputs. "
                "Training needs one output per class, and at least two classes."
            )
        if each.x_train.shape != data.x_train.shape or each.x_test.shape != data.x_test.shape:
            raise ValueError(
                f"Data set {k} has another number of samples than data set 0. Train it in a separate call."
            )
