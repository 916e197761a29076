"""The samples of a training: data sets and arrays as inputs, targets, labels and weights of every network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import Array, FloatArray, IntArray, check_last_axis, finite_features, last_axis_array
from phasegrad.datasets import Dataset
from phasegrad.networks import Network
from phasegrad.objectives import ClassObjective, Cost


@dataclass(frozen=True, eq=False)
class Samples:
    """n samples of every one of R networks: inputs (R, n, d), targets (R, n, M), weights (R, n), labels (R, n) or None.

    Where all networks have the same samples the first axis takes no memory. Inputs given in single precision stay so,
    and engines take them as double a batch at a time.
    """

    inputs: Array
    targets: Array
    weights: FloatArray
    labels: IntArray | None

    @property
    def count(self) -> int:
        """How many samples each network has."""
        return int(self.inputs.shape[1])

    def rows(self, chosen: IntArray) -> Samples:
        """Return some samples of every network, numbers (R, k)."""
        networks = np.arange(chosen.shape[0])[:, None]
        return Samples(
            self.inputs[networks, chosen],
            self.targets[networks, chosen],
            self.weights[networks, chosen],
            None if self.labels is None else self.labels[networks, chosen],
        )

    def without(self, held_back: IntArray) -> Samples:
        """Return all samples but some of every network, numbers (R, k)."""
        if held_back.shape[1] == 0:
            return self
        every = np.arange(self.count)
        return self.rows(np.stack([np.setdiff1d(every, some) for some in held_back]))


def gather(
    networks: Sequence[Network], data: Any, objective: Cost, sample_weight: ArrayLike | None
) -> tuple[Samples, Samples | None]:
    """Return the training part, and the test part if there is one, of R networks."""
    sets = list(data) if _is_list(data) else [data]
    if len(sets) not in (1, len(networks)):
        raise ValueError(
            f"Give one data set for all networks or one for each. Got {len(networks)} networks and {len(sets)} data "
            "sets."
        )
    for each in sets:
        outputs = len(networks[0].outputs)
        if isinstance(each, Dataset) and isinstance(objective, ClassObjective) and each.n_classes != outputs:
            raise ValueError(
                f"The data set {each.name!r} has {each.n_classes} classes, but the networks have {outputs} outputs. An "
                "objective for classes needs one output per class."
            )
    parts = [_arrays(each) for each in sets]
    train = _stacked([part[0] for part in parts], networks, objective, sample_weight, "training")
    if any(part[1] is None for part in parts):
        return train, None
    return train, _stacked([part[1] for part in parts], networks, objective, None, "test")


def check_augmentation(augmentation: Any, inputs: Array) -> None:
    """Raise ValueError where an augmentation does not return what training needs, tried on some inputs (n, d)."""
    name = type(augmentation).__name__
    draws = np.asarray(augmentation.draw(np.random.default_rng(0), len(inputs)))
    if draws.shape[:1] != (len(inputs),):
        raise ValueError(f"{name}.draw must return one row per sample, here {len(inputs)}. Got shape {draws.shape}.")
    changed = finite_features(f"result of {name}.apply", augmentation.apply(inputs.copy(), draws), "train")
    if changed.shape != inputs.shape:
        raise ValueError(
            f"{name}.apply must return inputs of the shape that it is given, here {inputs.shape}. Got {changed.shape}."
        )


def validation_rows(samples: Samples, fraction: float, streams: Sequence[np.random.Generator]) -> IntArray:
    """Return the samples held back of every network, (R, k): of classes the same share, at least one, never all."""
    if fraction == 0:
        return np.zeros((len(streams), 0), dtype=np.int64)
    chosen = []
    for r, stream in enumerate(streams):
        labels = np.zeros(samples.count, dtype=np.int64) if samples.labels is None else samples.labels[r]
        groups = [stream.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]
        parts = [rows[: min(max(1, round(fraction * rows.size)), rows.size - 1)] for rows in groups]
        chosen.append(np.sort(np.concatenate(parts)))
    if len({rows.size for rows in chosen}) > 1:
        raise ValueError(
            "The classes of these data sets are not equally frequent, so that their validation parts differ in size. "
            "Train the networks in separate calls."
        )
    return np.stack(chosen)


def _is_list(data: Any) -> bool:
    """Whether data is one entry per network rather than one data set or one tuple of arrays."""
    if isinstance(data, Dataset) or not isinstance(data, Sequence):
        return False
    # A tuple of tuples is (x, y) whose arrays are written as tuples; a list of tuples is one (x, y) per network.
    kinds = Dataset if isinstance(data, tuple) else Dataset | tuple
    return bool(data) and all(isinstance(each, kinds) for each in data)


def _arrays(data: Any) -> tuple[Any, Any]:
    """Return inputs and targets of the training part and, if there is one, of the test part."""
    if isinstance(data, Dataset):
        train, test = (x.reshape(len(x), len(data.features)) for x in (data.x_train, data.x_test))
        return (train, data.y_train), (test, data.y_test) if len(data.y_test) else None
    if isinstance(data, tuple | list) and len(data) in (2, 4):
        return (data[0], data[1]), (data[2], data[3]) if len(data) == 4 else None
    raise TypeError(
        "The 'data' of train must be a Dataset, (x, y) or (x, y, x_test, y_test); or a list of these, one per network. "
        f"Got {type(data).__name__}."
    )


def _stacked(
    parts: list[tuple[Any, Any]], networks: Sequence[Network], objective: Cost, weights: ArrayLike | None, word: str
) -> Samples:
    network, count = networks[0], len(networks)
    if not network.inputs:
        raise ValueError("Training needs a network with input oscillators. This one has none.")
    checked = [_checked(part, network, objective, word) for part in parts]
    shapes = {inputs.shape for inputs, _, _ in checked}
    if len(shapes) > 1:
        raise ValueError(
            f"The {word} parts of the data sets differ in size: {sorted(shapes)}. Train them in separate calls."
        )
    inputs, targets, labels = (
        _spread(_one_array(column), count) if column[0] is not None else None for column in zip(*checked, strict=True)
    )
    assert inputs is not None
    assert targets is not None
    return Samples(inputs, targets, _weights(weights, count, inputs.shape[1]), labels)


def _checked(
    part: tuple[Any, Any], network: Network, objective: Cost, word: str
) -> tuple[Array, Array, IntArray | None]:
    name = f"{word} inputs"
    inputs = finite_features(name, part[0], "train")
    check_last_axis(name, inputs, len(network.inputs), "one value per input", "train")
    given = np.asarray(part[1])
    if inputs.ndim != 2 or given.shape[:1] != inputs.shape[:1] or not given.size:
        raise ValueError(
            f"train takes a {word} part of shape (n, {len(network.inputs)}), at least one sample, and one target for "
            f"each. Got shapes {inputs.shape} and {given.shape}."
        )
    if isinstance(objective, ClassObjective):
        return inputs, objective.check_target(given, network), given.astype(np.int64)
    width = len(objective.nodes(network))
    targets = objective.check_target(given[:, None] if given.ndim == 1 and width == 1 else given, network)
    return inputs, targets, None


def _one_array(column: Sequence[Any]) -> Array:
    # A single part is large where it is images: it is not copied.
    return np.asarray(column[0])[None] if len(column) == 1 else np.stack(column)


def _spread(stacked: Array, count: int) -> Array:
    return np.broadcast_to(stacked, (count, *stacked.shape[1:])) if stacked.shape[0] == 1 else stacked


def _weights(given: ArrayLike | None, networks: int, count: int) -> FloatArray:
    if given is None:
        return np.broadcast_to(1.0, (networks, count))
    weights = last_axis_array("sample_weight", given, count, "one weight per sample", "train")
    if weights.ndim > 2 or np.any(weights < 0) or not np.all(np.any(weights, axis=-1)):
        raise ValueError("The 'sample_weight' of train must be one number per sample, none negative, not all zero.")
    return np.broadcast_to(weights, (networks, count))
