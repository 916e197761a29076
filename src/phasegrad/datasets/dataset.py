"""What a data set is: two parts of samples with whole-number labels, and how they were split and scaled."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad._files import printable
from phasegrad._validation import (
    Array,
    FloatArray,
    IntArray,
    choice,
    finite_array,
    float_between,
    frozen_array,
    last_axis_array,
    positive_float,
    random_stream,
    whole_number,
)


@dataclass(frozen=True, eq=False)
class Scaling:
    """The linear map that takes ``low`` to -1 and ``high`` to 1: x -> 2 (x - low) / (high - low) - 1.

    Parameters
    ----------
    low, high : array of shape (d,)
        The values of each feature that become -1 and 1. A feature whose two are equal says nothing: all its values
        become 0.
    beyond : float, optional
        Where scaled values are cut off; nowhere if left out.

    See Also
    --------
    datasets.Dataset : Samples of a training and a test part.
    datasets.from_arrays : Your own arrays as a data set.

    Examples
    --------
    >>> from phasegrad.datasets import Scaling
    >>> scaling = Scaling.fit([[0.0, 10.0], [4.0, 30.0]])
    >>> scaling.apply([[1.0, 40.0]]).tolist()
    [[-0.5, 2.0]]
    """

    low: FloatArray
    high: FloatArray
    beyond: float | None = None

    def __post_init__(self) -> None:
        if self.beyond is not None:
            positive_float("beyond", self.beyond, "Scaling")
        low, high = (
            finite_array(name, getattr(self, name), "Scaling", largest=np.inf).copy() for name in ("low", "high")
        )
        if low.ndim != 1 or low.shape != high.shape:
            raise ValueError(
                "Scaling needs one low and one high value for each feature. "
                f"Got 'low' of shape {low.shape} and 'high' of shape {high.shape}."
            )
        if np.any(high < low):
            k = int(np.argmax(high < low))
            raise ValueError(
                f"Scaling needs high not below low for each feature. Got {low[k]} and {high[k]} at index [{k}]."
            )
        object.__setattr__(self, "low", frozen_array(low))
        object.__setattr__(self, "high", frozen_array(high))

    @classmethod
    def fit(cls, x: ArrayLike, features: Sequence[str] | None = None, *, part: str = "training part") -> Self:
        """Return the scaling that brings each column of ``x`` (n, d) to exactly [-1, 1].

        ``features`` names the columns and ``part`` the whole, for messages.
        """
        array = plain_array("x", x, "Scaling.fit")
        names = distinct_names("features", column_names(array) if features is None else features, "Scaling.fit")
        table = _feature_table("x", array, names, "Scaling.fit")
        if not len(table):
            raise ValueError("Scaling.fit needs at least one row to take the range from. Got none.")
        low, high = table.min(axis=0), table.max(axis=0)
        flat = np.flatnonzero(low == high)
        if flat.size:
            raise ValueError(
                f"Feature '{printable(names[flat[0]])}' has the same value everywhere in the {part} "
                f"({low[flat[0]]:g}), so it has no range to scale by. Leave the feature out or select more samples."
            )
        return cls(low, high)

    def apply(self, x: ArrayLike) -> FloatArray:
        """Return ``x`` of shape (..., d) scaled; values outside the fitted range go beyond -1 and 1."""
        table = last_axis_array("x", x, self.low.size, "one value for each feature", "Scaling.apply", largest=np.inf)
        # Ranges near the largest number there is would overflow if they were taken before halving.
        width = 0.5 * self.high - 0.5 * self.low
        flat = np.abs(width) < np.finfo(np.float64).tiny
        with np.errstate(over="ignore"):
            scaled = (table - self.low) / np.where(flat, 1.0, width) - 1
        if np.any(flat):
            scaled = np.where(flat, 0.0, scaled)
        return scaled if self.beyond is None else np.clip(scaled, -self.beyond, self.beyond)

    def invert(self, scaled: ArrayLike) -> FloatArray:
        """Return the values (..., d) that `apply` takes to ``scaled``, as if nothing were cut off."""
        table = last_axis_array("scaled", scaled, self.low.size, "one value for each feature", "Scaling.invert")
        return self.low + (table + 1) * (0.5 * self.high - 0.5 * self.low)


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A training part and a test part of labelled samples; all arrays are read-only.

    Parameters
    ----------
    name : str
        What the data are, in a few words.
    x_train, x_test : array of shape (n, d), or (n, *shape)
        Features; float32 where given so, else float64.
    y_train, y_test : int array of shape (n,)
        Labels: positions in ``classes``.
    classes, features : tuple of str
        Names of the classes and of the columns.
    scaling : Scaling or None
        The scaling that was applied to the features, if any.
    train_rows, test_rows : int array of shape (n,) or None
        Positions of the samples in the table before it was split.
    shape : tuple of int or None
        Of one sample where it has one, such as (channels, height, width) of an image; the features in C order.

    See Also
    --------
    datasets.from_arrays : Your own arrays as a data set.
    datasets.Scaling : How features are scaled to inputs.
    train : Train one network or many.

    Examples
    --------
    >>> from phasegrad.datasets import vowels
    >>> data = vowels("a,i", seed=0)
    >>> data
    vowels a, i: 220 training and 55 test samples, 2 features, 2 classes
    >>> data.x_train.shape, data.n_classes
    ((220, 2), 2)
    """

    name: str
    x_train: Array
    y_train: IntArray
    x_test: Array
    y_test: IntArray
    classes: tuple[str, ...]
    features: tuple[str, ...]
    scaling: Scaling | None = None
    train_rows: IntArray | None = None
    test_rows: IntArray | None = None
    shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", distinct_names("classes", self.classes, "Dataset"))
        object.__setattr__(self, "features", distinct_names("features", self.features, "Dataset"))
        if self.shape is not None:
            object.__setattr__(self, "shape", sample_shape(self.shape, len(self.features), "Dataset"))
        for part in ("train", "test"):
            x, y, rows = f"x_{part}", f"y_{part}", f"{part}_rows"
            table = _feature_table(x, getattr(self, x), self.features, "Dataset", self.shape)
            labels = _label_array(y, getattr(self, y), len(table), len(self.classes), "Dataset")
            object.__setattr__(self, x, frozen_array(table))
            object.__setattr__(self, y, frozen_array(labels))
            if getattr(self, rows) is not None:
                positions = _whole_number_array(rows, getattr(self, rows), len(table), "Dataset")
                object.__setattr__(self, rows, frozen_array(positions))
        if not len(self.x_train):
            raise ValueError("Dataset needs at least one training sample. Got none.")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    def require_all_classes(self) -> None:
        """Raise a ValueError that names a class without a sample in the training part or in the test part."""
        for part, labels in (("training", self.y_train), ("test", self.y_test)):
            missing = np.flatnonzero(np.bincount(labels, minlength=self.n_classes) == 0)
            if missing.size:
                raise ValueError(
                    f"Class '{printable(self.classes[missing[0]])}' has no sample in the {part} part, which has "
                    f"{_count(len(labels), 'sample')}. Change the split, its seed, or the selection of samples."
                )

    def __repr__(self) -> str:
        return (
            f"{self.name}: {len(self.x_train)} training and {len(self.x_test)} test samples, "
            f"{_count(len(self.features), 'feature')}, {_count(self.n_classes, 'class', 'classes')}"
        )


def split_and_scale(
    name: str,
    x: ArrayLike,
    y: ArrayLike,
    classes: Sequence[str],
    features: Sequence[str],
    *,
    seed: int | np.random.Generator | None,
    train_fraction: float = 0.8,
    scale_by: str = "train",
) -> Dataset:
    """Split a table at random and scale its features to [-1, 1].

    The rows are put in the order ``numpy.random.default_rng(seed).permutation(n)``; the first
    ``int(train_fraction * n)`` of them are the training part, the others the test part.

    Parameters
    ----------
    name, x, y, classes, features
        As for `Dataset`: features of shape (n, d), and labels of shape (n,) that are positions in ``classes``.
    seed : int, Generator or None
    train_fraction : float
        Share of the rows that are for training, from 0 to 1.
    scale_by : {"train", "all"}
        Where the range of each feature is taken from. By the training part, test values may lie outside [-1, 1]; by
        all rows, the training part knows something about the test part, as in some historical results.

    Examples
    --------
    >>> from phasegrad.datasets.dataset import split_and_scale
    >>> x = [[1.0], [2.0], [3.0], [4.0], [5.0]]
    >>> data = split_and_scale("steps", x, [0, 0, 0, 1, 1], ["low", "high"], ["height"], seed=3)
    >>> data
    steps: 4 training and 1 test samples, 1 feature, 2 classes
    >>> data.train_rows.tolist(), data.test_rows.tolist()
    ([4, 2, 1, 3], [0])
    >>> data.x_test.round(3).tolist()
    [[-1.667]]
    """
    owner = "split_and_scale"
    classes = distinct_names("classes", classes, owner)
    features = distinct_names("features", features, owner)
    table = _feature_table("x", x, features, owner)
    labels = _label_array("y", y, len(table), len(classes), owner)
    train_fraction = float_between("train_fraction", train_fraction, 0, 1, owner)
    scale_by = choice("scale_by", scale_by, ("train", "all"), owner)
    n_train = int(train_fraction * len(table))
    if n_train == 0:
        raise ValueError(
            f"A train_fraction of {train_fraction:g} leaves no training sample out of {_count(len(table), 'sample')}. "
            "Raise train_fraction or select more samples."
        )
    order = random_stream(seed, owner).permutation(len(table))
    train, test = order[:n_train], order[n_train:]
    if scale_by == "train":
        scaling = Scaling.fit(table[train], features)
    else:
        scaling = Scaling.fit(table, features, part="selected rows")
    x_train, x_test = scaling.apply(table[train]), scaling.apply(table[test])
    return Dataset(name, x_train, labels[train], x_test, labels[test], classes, features, scaling, train, test)


def column_names(table: NDArray[Any]) -> tuple[str, ...]:
    """Return the names x0, x1, ... for the columns of a table."""
    return tuple(f"x{k}" for k in range(table.shape[1] if table.ndim == 2 else 1))


def plain_array(name: str, value: Any, owner: str) -> NDArray[Any]:
    """Return ``value`` as an array of any kind, refusing rows of unequal length."""
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError(
            f"The '{name}' parameter of {owner} must be an array with rows of equal length. Got {value!r:.80} instead."
        ) from None


def distinct_names(name: str, value: Any, owner: str) -> tuple[str, ...]:
    """Return ``value`` as a tuple of one or more different names."""
    names = () if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if not names or not all(isinstance(item, str) for item in names):
        raise ValueError(
            f"The '{name}' parameter of {owner} must be a list of one or more names. Got {value!r} instead."
        )
    item, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise ValueError(f"The '{name}' parameter of {owner} has the name {item!r} twice. Got {names}.")
    return names


def sample_shape(value: Any, features: int, owner: str) -> tuple[int, ...]:
    """Return ``value`` as the shape of a sample with so many features."""
    given = tuple(value) if isinstance(value, Iterable) else (value,)
    shape = tuple(whole_number("shape", length, 1, owner) for length in given)
    if math.prod(shape) != features:
        raise ValueError(
            f"The 'shape' parameter of {owner} must be that of {_count(features, 'feature')}. Got {shape}, which is of "
            f"{math.prod(shape)}."
        )
    return shape


def _feature_table(
    name: str, value: Any, features: tuple[str, ...], owner: str, shape: tuple[int, ...] | None = None
) -> Array:
    table = plain_array(name, value, owner)
    shaped = shape is not None and table.shape[1:] == shape
    if not shaped and (table.ndim != 2 or table.shape[1] != len(features)):
        raise ValueError(
            f"The '{name}' parameter of {owner} must be a table of shape (samples, {len(features)}): a row for each "
            f"sample and a column for each feature. Got shape {table.shape}."
        )
    if table.dtype not in (np.float32, np.float64) or not np.all(np.isfinite(table)):
        columns = table.reshape(len(table), len(features))
        for k, feature in enumerate(features):
            finite_array(f"{name}[:, {k}] ({printable(feature)})", columns[:, k], owner, largest=np.inf)
    # What nobody can change any more need not be copied.
    shared = table.flags.writeable or table.base is not None
    return table.astype(np.float32 if table.dtype == np.float32 else np.float64, copy=shared)


def _label_array(name: str, value: Any, length: int, n_classes: int, owner: str) -> IntArray:
    labels = _whole_number_array(name, value, length, owner)
    outside = labels[(labels < 0) | (labels >= n_classes)]
    if outside.size:
        raise ValueError(
            f"The '{name}' parameter of {owner} has the label {outside[0]}, but labels must be from 0 to "
            f"{n_classes - 1}, the positions in the list of classes."
        )
    return labels


def _whole_number_array(name: str, value: Any, length: int, owner: str) -> IntArray:
    numbers = plain_array(name, value, owner)
    if numbers.shape != (length,):
        raise ValueError(
            f"The '{name}' parameter of {owner} must have one entry for each of {_count(length, 'sample')}. "
            f"Got shape {numbers.shape}."
        )
    if numbers.dtype.kind not in "iu" and length:
        raise ValueError(f"The '{name}' parameter of {owner} must hold whole numbers. Got {value!r:.80} instead.")
    return numbers.astype(np.int64)


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
