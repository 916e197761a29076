"""A user's own arrays as a data set, with labels of any kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import IntArray
from phasegrad.datasets.dataset import Dataset, Scaling, column_names, distinct_names, plain_array


def from_arrays(
    x_train: ArrayLike,
    y_train: ArrayLike,
    x_test: ArrayLike,
    y_test: ArrayLike,
    *,
    classes: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    scale: bool = False,
) -> Dataset:
    """Make a data set of your own arrays.

    Parameters
    ----------
    x_train, x_test : array of shape (n, d)
    y_train, y_test : array of shape (n,)
        Labels: whole numbers, names or other values that can be sorted.
    classes : sequence of str, optional
        Names of the classes in order. Labels must then be these names, or else whole numbers that are positions
        in this list. Without it, the classes are the sorted labels of both parts.
    features : sequence of str, optional
        Names of the columns; x0, x1, ... unless given.
    scale : bool
        Whether to scale every feature to [-1, 1] on the training part. Otherwise features are taken as they are;
        networks expect numbers of about that size.

    See Also
    --------
    datasets.Dataset : Samples of a training and a test part.
    datasets.Scaling : How features are scaled to inputs.
    train : Train one network or many.

    Examples
    --------
    >>> from phasegrad.datasets import from_arrays
    >>> data = from_arrays([[0.0], [1.0], [0.9]], ["no", "yes", "yes"], [[0.2]], ["no"])
    >>> data
    arrays: 3 training and 1 test samples, 1 feature, 2 classes
    >>> data.classes, data.y_train.tolist()
    (('no', 'yes'), [0, 1, 1])
    """
    tables = [plain_array(name, x, "from_arrays") for name, x in (("x_train", x_train), ("x_test", x_test))]
    train, test = _label_list("y_train", y_train), _label_list("y_test", y_test)
    if classes is None:
        known = _sorted_labels(train + test)
        names = tuple(str(label) for label in known)
    else:
        names = distinct_names("classes", classes, "from_arrays")
        known = list(range(len(names))) if all(map(_is_whole, train + test)) else list(names)
    columns = distinct_names("features", column_names(tables[0]) if features is None else features, "from_arrays")
    plain = Dataset(
        name="arrays",
        x_train=tables[0],
        y_train=_class_numbers("y_train", train, known),
        x_test=tables[1],
        y_test=_class_numbers("y_test", test, known),
        classes=names,
        features=columns,
    )
    if not scale:
        return plain
    scaling = Scaling.fit(plain.x_train, columns)
    return dataclasses.replace(
        plain, x_train=scaling.apply(plain.x_train), x_test=scaling.apply(plain.x_test), scaling=scaling
    )


def _label_list(name: str, value: ArrayLike) -> list[Any]:
    # As objects, the entries of a list keep their kind: NumPy would turn [1, "a"] into two strings.
    labels = np.asarray(value, dtype=object) if isinstance(value, list | tuple) else np.asarray(value)
    if labels.ndim != 1:
        raise ValueError(
            f"The '{name}' parameter of from_arrays must have one label for each sample. Got shape {labels.shape}."
        )
    entries: list[Any] = labels.tolist()
    if any(label != label for label in entries):
        raise ValueError(f"The '{name}' parameter of from_arrays has a label that is NaN. Leave such samples out.")
    return entries


def _sorted_labels(labels: list[Any]) -> list[Any]:
    try:
        return sorted(set(labels))
    except TypeError:
        kinds = ", ".join(sorted({type(label).__name__ for label in labels}))
        raise ValueError(
            f"from_arrays needs labels of one kind that can be sorted, such as names. Got labels of kind {kinds}."
        ) from None


def _is_whole(label: Any) -> bool:
    return isinstance(label, int | np.integer) and not isinstance(label, bool)


def _class_numbers(name: str, labels: list[Any], known: list[Any]) -> IntArray:
    position = {label: k for k, label in enumerate(known)}
    for label in labels:
        if label not in position:
            listed = ", ".join(repr(option) for option in known)
            raise ValueError(
                f"The '{name}' parameter of from_arrays has the label {label!r}, but with these classes it must be one "
                f"of {listed}. Add a class or leave the sample out."
            )
    return np.array([position[label] for label in labels], dtype=np.int64)
