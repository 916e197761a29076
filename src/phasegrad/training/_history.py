"""What training leaves behind: a score per evaluation, the trained networks, and the state to go on from."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from phasegrad._validation import FloatArray, IntArray, choice, counted, require
from phasegrad.networks import Network
from phasegrad.training._drawing import plot_history
from phasegrad.training._engine import Progress, Tallies
from phasegrad.training._optimizers import Arrays, Constant
from phasegrad.training._plan import RECORDS, Plan
from phasegrad.training._samples import Samples

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_SCORES = ("final", "best")


class TrainingWarning(UserWarning):
    """A training that did not run to its end.

    See Also
    --------
    train : Train one network or many.
    Training : Trained networks, history and state.

    Examples
    --------
    >>> import warnings
    >>> import phasegrad as pg
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", pg.training.TrainingWarning)  # a training that ends early raises here
    ...     result = pg.train(pg.layered(2, 5, 2, seed=0), pg.datasets.vowels("a,i"), pg.Plan.paper(epochs=1))
    >>> result.ended
    'finished'
    """


@dataclass(frozen=True, eq=False)
class History:
    """Scores at every evaluation; R networks, T evaluations, the first of them before any training.

    A sample without a stable equilibrium is wrong in every accuracy and has no part in a mean loss. Parts that there
    are not, and accuracies of costs that are not for classes, are NaN.

    Attributes
    ----------
    epoch : ndarray of int, shape (T,)
    train_loss, train_accuracy : ndarray, shape (R, T)
        Running values over the epoch that ended there, taken while the parameters moved, as the paper does; at epoch 0
        those of the untrained network on the training part.
    test_loss, test_accuracy, validation_loss, validation_accuracy : ndarray, shape (R, T)
        On the test part, and on the part of the training samples that was held back.
    skipped : ndarray of int, shape (R, T)
        Training samples without a part in an update since the last evaluation: an equilibrium, free or nudged, was not
        found or not stable.
    train_unsettled, train_unstable : ndarray of int, shape (R, T)
        Training samples since the last evaluation (at epoch 0 of the whole part) without a free equilibrium, and with
        an unstable one.
    test_unsettled, test_unstable, validation_unsettled, validation_unstable : ndarray of int, shape (R, T)
        The same of the other parts.
    shortened, updates : ndarray of int, shape (R, T)
        Updates since the last evaluation that the lock guard shortened or refused, and all of them, the refused ones
        among them.
    learning_rate : ndarray, shape (T,)
        Factor of the learning rates in the epoch that ended there.
    separation, common_phase : ndarray, shape (R, T)
        First output phase minus last, and mean of the output phases, averaged over the test part, or the training part
        where there is none.
    records : mapping of str to ndarray, shape (R, T)
        What else was asked for: see ``Plan.record``; each is an attribute too.

    See Also
    --------
    Training : Trained networks, history and state.
    train : Train one network or many.
    Plan : How networks are trained.

    Examples
    --------
    >>> import phasegrad as pg
    >>> networks = [pg.layered(2, 5, 2, seed=seed) for seed in range(2)]
    >>> plan = pg.Plan.paper(epochs=2, evaluate_every=1)
    >>> history = pg.train(networks, pg.datasets.vowels("a,i"), plan).history
    >>> history.epoch, history.test_accuracy.shape, int(history.skipped.sum())
    (array([0, 1, 2]), (2, 3), 0)
    """

    epoch: IntArray
    train_loss: FloatArray
    train_accuracy: FloatArray
    test_loss: FloatArray
    test_accuracy: FloatArray
    validation_loss: FloatArray
    validation_accuracy: FloatArray
    skipped: IntArray
    train_unsettled: IntArray
    train_unstable: IntArray
    test_unsettled: IntArray
    test_unstable: IntArray
    validation_unsettled: IntArray
    validation_unstable: IntArray
    shortened: IntArray
    updates: IntArray
    learning_rate: FloatArray
    separation: FloatArray
    common_phase: FloatArray
    records: Mapping[str, FloatArray]

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> History:
        """Return the history of a list of evaluations."""
        columns: dict[str, Any] = {}
        names = [item.name for item in fields(cls) if item.name != "records"]
        for name in names:
            values = [np.asarray(row[name]) for row in rows]
            column = np.stack(values, axis=-1)
            counts = name in ("epoch", "skipped", "shortened", "updates") or name.endswith(("unsettled", "unstable"))
            columns[name] = column.astype(np.int64) if counts else column
        records = {name: np.stack([row[name] for row in rows], axis=-1) for name in rows[0] if name not in names}
        return cls(**columns, records=MappingProxyType(records))

    def __getattr__(self, name: str) -> Any:
        records = self.__dict__.get("records", {})
        if name in records:
            return records[name]
        words = f" Ask for it with record={name!r}." if name in RECORDS else ""
        raise AttributeError(f"This history has no {name!r}.{words}")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "records": dict(self.records)}

    def score(self, kind: str = "final") -> FloatArray:
        """Return one test accuracy per network, (R,): of the last epoch, or the best of all evaluations.

        "best" includes the untrained network and chooses on test data: it exists to match published files that did so.
        """
        choice("kind", kind, _SCORES, "History.score")
        return self.test_accuracy[..., -1] if kind == "final" else self.test_accuracy.max(axis=-1)

    def plot(self, ax: Axes | None = None, *, score: str | None = None) -> Axes:
        """Draw learning curves: a thin line for every network and a strong one for their mean. Needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new ones if left out. A twin of other axes shows both scores in one picture.
        score : {"accuracy", "loss"}, optional
            Accuracies in per cent, where the cost is for classes, if left out; else the mean cost. The training part is
            drawn solid, the validation part dotted, the test part dashed.

        Returns
        -------
        matplotlib Axes
        """
        return plot_history(self, ax, score)

    def join(self, later: History) -> History:
        """Return this history followed by one that went on from it; the later one's first row repeats our last."""
        parts = {
            item.name: np.concatenate([getattr(self, item.name), getattr(later, item.name)[..., 1:]], axis=-1)
            for item in fields(self)
            if item.name != "records"
        }
        records = {
            name: np.concatenate([each, later.records[name][..., 1:]], axis=-1) for name, each in self.records.items()
        }
        return History(**parts, records=records)

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per network and evaluation. Needs pandas."""
        require(["pandas"], "tables", "A table")
        import pandas as pd

        networks, evaluations = np.atleast_2d(self.train_loss).shape
        columns: dict[str, Any] = {
            "network": np.repeat(np.arange(networks), evaluations),
            "epoch": np.tile(self.epoch, networks),
            "learning_rate": np.tile(self.learning_rate, networks),
        }
        given = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "records"} | dict(
            self.records
        )
        columns |= {name: values.ravel() for name, values in given.items() if name not in columns}
        return pd.DataFrame(columns)


def evaluation(
    epoch: int, factor: float, train: Tallies, since: Tallies, test: Tallies | None, validation: Tallies | None
) -> dict[str, Any]:
    """Return the scores of one evaluation.

    ``train`` holds the sums of the last epoch, ``since`` those of all epochs since the last evaluation, (R,) each.
    """
    shown = train if test is None else test
    row: dict[str, Any] = {
        "epoch": epoch,
        "learning_rate": factor,
        **{name: getattr(since, name) for name in ("skipped", "shortened", "updates")},
        "separation": _over(shown.separation, shown.settled),
        "common_phase": _over(shown.common, shown.settled),
    }
    for word, sums, counts in (("train", train, since), ("test", test, test), ("validation", validation, validation)):
        if sums is None or counts is None:
            nothing = np.full(train.weight.shape, np.nan)
            row |= {f"{word}_loss": nothing, f"{word}_accuracy": nothing}
            row |= {f"{word}_unsettled": np.zeros(nothing.shape), f"{word}_unstable": np.zeros(nothing.shape)}
        else:
            row |= {
                f"{word}_loss": _over(sums.cost, sums.settled),
                f"{word}_accuracy": _over(sums.correct, sums.weight),
            }
            row |= {f"{word}_unsettled": counts.unsettled, f"{word}_unstable": counts.unstable}
    return row


def _over(total: FloatArray, weight: FloatArray) -> FloatArray:
    return np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), np.nan)


@dataclass(frozen=True, eq=False)
class TrainingState:
    """All that is needed to go on exactly where training stopped, between two epochs.

    Attributes
    ----------
    epoch : int
    progress : Progress
        Parameters of all networks by name, (R, width), the optimiser's memory, and warm starts.
    streams : tuple of dict
        States of the shuffling streams.
    held_back : ndarray of int, shape (R, k)
        Training samples that are the validation part.
    best : tuple of (ndarray, dict) or None
        With patience: the lowest validation cost so far, (R,), and the parameters that had it.
    waited : ndarray of int, shape (R,)
        Evaluations since then.
    origin : str
        What the state belongs to: a digest of topology, plan and samples. Of a custom cost or augmentation it holds
        the fields of a dataclass, otherwise the attributes whose names do not begin with an underscore.

    See Also
    --------
    train : Train one network or many.
    Training : Trained networks, history and state.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network, data, plan = pg.layered(2, 5, 2, seed=0), pg.datasets.vowels("a,i"), pg.Plan.paper(epochs=4)
    >>> half = pg.train(network, data, plan, until=2)
    >>> half.state.epoch
    2
    >>> pg.train(network, data, plan, state=half.state).network == pg.train(network, data, plan).network
    True
    """

    epoch: int
    progress: Progress
    streams: tuple[dict[str, Any], ...]
    held_back: IntArray
    best: tuple[FloatArray, Arrays] | None
    waited: IntArray
    origin: str

    @property
    def parameters(self) -> Arrays:
        """Parameters of all networks by name, (R, width)."""
        return self.progress.parameters

    def replace(self, **parameters: Any) -> TrainingState:
        """Return the state with some parameters changed, (R, width): how to intervene between two epochs."""
        changed = dict(self.parameters)
        for name, values in parameters.items():
            if name not in changed or np.shape(values) != changed[name].shape:
                raise ValueError(
                    f"A state takes new values of its parameters {', '.join(changed)}, each of its own shape. Got "
                    f"{name!r} of shape {np.shape(values)}."
                )
            changed[name] = np.array(values, dtype=float)
        return dataclasses.replace(self, progress=self.progress._replace(parameters=changed))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to one file, whole or not at all; `train` continues from it bit by bit.

        Examples
        --------
        >>> import os, tempfile, phasegrad as pg
        >>> data, network = pg.datasets.xor(), pg.networks.signed_layers(2, 3, 2)
        >>> half = pg.train(network, data, epochs=4, until=2)
        >>> place = os.path.join(tempfile.mkdtemp(), "half.npz")
        >>> half.state.save(place)
        >>> rest = pg.train(network, data, epochs=4, state=pg.training.TrainingState.load(place))
        >>> rest.network == pg.train(network, data, epochs=4).network
        True
        """
        from phasegrad.training._files import write_state

        write_state(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TrainingState:
        """Read a state that `TrainingState.save` wrote.

        Raises ValueError if anything in the file was changed or lost since. Files of phasegrad 0.2 to 0.7, which have
        no digest, load if they are complete.
        """
        from phasegrad.training._files import read_state

        return read_state(path)

    def begin(self, plan: Plan) -> TrainingState:
        """Return the state from which another plan begins: these parameters and streams, nothing else remembered."""
        learns = {name: values for name, values in self.parameters.items() if name in plan.rates}
        memory = plan.optimizer.start(learns)
        steps = np.zeros(len(self.streams), dtype=np.int64)
        progress = Progress(
            self.parameters, dataclasses.replace(memory, steps=steps), np.zeros_like(self.progress.phases)
        )
        nobody = np.zeros_like(self.waited)
        return dataclasses.replace(self, epoch=0, progress=progress, best=None, waited=nobody, origin="")


@dataclass(frozen=True, eq=False)
class Training:
    """Trained networks, their history and the state to go on from.

    Attributes
    ----------
    networks : tuple of Network
        Of the last epoch; with patience, each of the evaluation with its lowest validation cost.
    history : History
    state : TrainingState
    plan : Plan
    seeds : tuple of int
        Of the shuffling streams; empty where training went on from a state.
    ended : str
        Why it ended: "finished", "until" the epoch asked for, "patience" ran out, "interrupted", "not finite", or
        "failed" because a device did.
    engine : str
        The engine that trained: "lanes", "batch" or "torch"; the name of its class where you gave your own.

    See Also
    --------
    train : Train one network or many.
    TrainingState : All that is needed to go on.
    Model : A trained network with all that prediction needs.

    Examples
    --------
    >>> import phasegrad as pg
    >>> data = pg.datasets.xor()
    >>> network = pg.networks.signed_layers(2, 1, 2, rest=pg.CosineCrossEntropy.undecided, gain=2.0, skip=True)
    >>> result = pg.train(network, data, epochs=3)
    >>> result.ended, result.network.size, result.state.epoch, result.engine
    ('finished', 5, 3, 'batch')
    """

    networks: tuple[Network, ...]
    history: History
    state: TrainingState
    plan: Plan
    seeds: tuple[int | None, ...]
    ended: str
    engine: str

    @property
    def network(self) -> Network:
        """The trained network, if it is a single one."""
        if len(self.networks) != 1:
            raise ValueError(f"This result holds {len(self.networks)} networks: use 'networks'.")
        return self.networks[0]

    def plot(self, ax: Axes | None = None, *, score: str | None = None) -> Axes:
        """Draw the learning curves, as `History.plot` does."""
        return self.history.plot(ax, score=score)

    @property
    def interrupted(self) -> bool:
        """Whether somebody stopped it."""
        return self.ended == "interrupted"

    def __str__(self) -> str:
        history, count = self.history, len(self.networks)
        part = "train" if np.all(np.isnan(history.test_loss[:, -1])) else "test"
        scores, word, form = getattr(history, f"{part}_accuracy"), "accuracy", ".1%"
        if np.all(np.isnan(scores[:, -1])):
            scores, word, form = getattr(history, f"{part}_loss"), "loss", ".4g"
        first, last = scores[:, 0], scores[:, -1]
        running = " (running)" if part == "train" else ""
        begun = int(history.epoch[0])
        before = f"at epoch {begun}" if begun else "untrained"
        text = (
            f"{counted(count, 'network')}, {counted(self.state.epoch, 'epoch')}: {part} {word}{running} "
            f"{first.mean():{form}} {before}, {last.mean():{form}} trained"
        )
        if count > 1:
            low, high = (last.max(), last.min()) if word == "loss" else (last.min(), last.max())
            text += f" (worst {low:{form}}, best {high:{form}})"
        text += f", {counted(int(history.skipped[:, 1:].sum()), 'sample')} skipped"
        if self.plan.lock_floor is not None:
            text += f", {int(history.shortened.sum())} of {int(history.updates.sum())} updates shortened"
        if len(self.seeds) > 1:
            text += f"; shuffled by seeds {_named(self.seeds)}"
        return text if self.ended == "finished" else f"{text}; {_ENDS[self.ended]}"


class DeviceError(RuntimeError):
    """A device failed while it trained, as when a bus does not answer; nothing of a full epoch is lost.

    Attributes
    ----------
    state : TrainingState
        That of the last full epoch. ``train(..., state=error.state)`` goes on from there, exactly as if nothing had
        failed.
    training : Training or None
        All that was trained until then, its history among it; None where the device failed before the first epoch.

    See Also
    --------
    hardware.OnDevice : The engine that trains on devices.
    hardware.Device : The three calls of a chip.
    train : Train one network or many.

    Examples
    --------
    A chip that fails once is tried again:

    >>> import phasegrad as pg
    >>> class Shaky(pg.hardware.Chip):
    ...     calls = 0
    ...     def read(self):
    ...         self.calls += 1
    ...         if self.calls == 40:
    ...             raise TimeoutError("no answer")
    ...         return super().read()
    >>> work = pg.hardware.task("vowels", 1)
    >>> plan = work.plan.replace(epochs=4, beta=0.5)
    >>> engine = pg.hardware.OnDevice([Shaky(pg.hardware.Hardware(), work.networks[0], seed=0)])
    >>> state = None
    >>> for attempt in range(3):
    ...     try:
    ...         result = pg.train(work.networks, work.data, plan, engine=engine, state=state)
    ...         break
    ...     except pg.hardware.DeviceError as error:
    ...         state = error.state
    >>> attempt, result.state.epoch
    (1, 4)
    """

    state: TrainingState
    training: Training | None = None


_ENDS = {
    "until": "stopped at the epoch asked for",
    "patience": "stopped because the validation cost fell no more",
    "interrupted": "interrupted",
    "not finite": "stopped because a cost was not finite",
    "failed": "stopped because a device failed",
}


def _named(seeds: Sequence[Any]) -> str:
    numbers = [seed for seed in seeds if isinstance(seed, int | np.integer)]
    consecutive = len(numbers) == len(seeds) and all(b - a == 1 for a, b in pairwise(numbers))
    return f"{numbers[0]} to {numbers[-1]}" if consecutive else ", ".join(str(seed) for seed in seeds[:8])


def origin_of(networks: Sequence[Network], plan: Plan, *parts: Samples | None) -> str:
    """Return a digest of what a state belongs to: topology, plan and samples."""
    graph = networks[0].graph
    same = plan.replace(epochs=0, evaluate_every=1, record=()) if isinstance(plan.schedule, Constant) else plan
    settings = {item.name: _plain(getattr(same, item.name)) for item in fields(same)}
    # States are older than these.
    for name, before in (("augmentation", None), ("correction", "none"), ("gradient_options", ())):
        if getattr(same, name) == before:
            del settings[name]
    roles = [len(networks), graph.size, graph.inputs, graph.outputs, graph.reference, graph.clamped, graph.pinned]
    roles += [graph.grounded, networks[0].input_scale, networks[0].signed]
    # What older versions did not know is left out where it is not used: their states still belong to what they did.
    roles += [networks[0].input_phase] if networks[0].input_phase else []
    roles += [graph.layout.as_dict()] if graph.layout else []
    terms = [[type(term).__name__, _plain(term)] for term in networks[0].terms]
    digest = hashlib.sha256(json.dumps([roles, terms, settings], sort_keys=True, default=str).encode())
    arrays = [array for part in parts if part is not None for array in (part.inputs, part.targets, part.weights)]
    for array in (*([] if graph.layout else [graph.edges]), *arrays):
        # Samples that all networks share are there once, and spread by a stride of zero.
        digest.update(np.ascontiguousarray(array[0] if len(array) and array.strides[0] == 0 else array).data)
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """Return a setting as plain data: its class and what it was made with, or the attributes it shows."""
    if isinstance(value, str | int | float | bool | None | tuple | list):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return ["array", value.dtype.str, value.tolist()]
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if dataclasses.is_dataclass(value):
        names = [item.name for item in fields(value)]
    else:
        names = [name for name in getattr(value, "__dict__", {}) if not name.startswith("_")]
    return [type(value).__qualname__, {name: _plain(getattr(value, name)) for name in names}]
