"""Small classics that scikit-learn ships: handwritten digits, iris, wine, breast cancer."""

from __future__ import annotations

from typing import Any

import numpy as np

from phasegrad._validation import FloatArray, IntArray, choice
from phasegrad.datasets.dataset import Dataset, Scaling, split_and_scale

CLASSICS = ("iris", "wine", "breast_cancer")
"""Names of the small data sets that `datasets.classic` takes.

See Also
--------
datasets.classic : Iris, wine and breast cancer.

Examples
--------
>>> import phasegrad as pg
>>> pg.datasets.CLASSICS
('iris', 'wine', 'breast_cancer')
"""

_TRAIN_EACH, _TEST_EACH = 100, 70
_BRIGHTEST = 16.0


def digits(*, shifts: bool = False) -> Dataset:
    """Return handwritten digits, 8 x 8 pixels, in the split of Wang, Wanjura and Marquardt (2024).

    Of every digit the first 100 images are for training and the next 70 for testing. Pixels from 0 to 16 become -1
    to 1.

    Parameters
    ----------
    shifts : bool
        Whether the training part also holds every image moved by one pixel up, down, left and right, so that it is five
        times as large.

    See Also
    --------
    datasets.classic : Iris, wine and breast cancer.
    datasets.mnist : MNIST from your files.

    Examples
    --------
    >>> from phasegrad.datasets import digits
    >>> digits()
    digits: 1000 training and 700 test samples, 64 features, 10 classes
    """
    from sklearn.datasets import load_digits

    bunch = load_digits()
    x, y = np.asarray(bunch.data, dtype=np.float64), np.asarray(bunch.target, dtype=np.int64)
    of_digit = [np.flatnonzero(y == digit) for digit in range(10)]
    train = np.concatenate([rows[:_TRAIN_EACH] for rows in of_digit])
    test = np.concatenate([rows[_TRAIN_EACH : _TRAIN_EACH + _TEST_EACH] for rows in of_digit])
    scaling = Scaling(np.zeros(64), np.full(64, _BRIGHTEST))
    x_train, y_train, kept = x[train], y[train], train
    if shifts:
        x_train, copies = shifted_images(x_train)
        y_train, kept = np.tile(y_train, copies), np.tile(train, copies)
    return Dataset(
        name="digits",
        x_train=scaling.apply(x_train),
        y_train=y_train,
        x_test=scaling.apply(x[test]),
        y_test=y[test],
        classes=tuple(str(digit) for digit in range(10)),
        features=tuple(f"pixel_{row}_{column}" for row in range(8) for column in range(8)),
        scaling=scaling,
        train_rows=kept,
        test_rows=test,
    )


def classic(name: str, *, seed: int | None = 0, train_fraction: float = 0.8) -> Dataset:
    """Return iris, wine or breast_cancer, split at random and scaled to [-1, 1].

    Parameters
    ----------
    name : {"iris", "wine", "breast_cancer"}
    seed : int or None
        Seed of the split.
    train_fraction : float
        Share of the rows that are for training.

    See Also
    --------
    datasets.digits : 8 x 8 images of digits.

    Examples
    --------
    >>> from phasegrad.datasets import classic
    >>> classic("wine", seed=1)
    wine: 142 training and 36 test samples, 13 features, 3 classes
    """
    from sklearn import datasets

    choice("name", name, CLASSICS, "classic")
    bunch: Any = getattr(datasets, f"load_{name}")()
    classes, features = [str(word) for word in bunch.target_names], [str(word) for word in bunch.feature_names]
    labels: IntArray = np.asarray(bunch.target, dtype=np.int64)
    data = split_and_scale(name, bunch.data, labels, classes, features, seed=seed, train_fraction=train_fraction)
    data.require_all_classes()
    return data


def shifted_images(images: FloatArray) -> tuple[FloatArray, int]:
    """Return 8 x 8 images (n, 64) followed by the same moved by one pixel each way, and how many copies that makes."""
    square = images.reshape(-1, 8, 8)
    padded = np.pad(square, ((0, 0), (1, 1), (1, 1)))
    moves = ((1, 1), (0, 1), (2, 1), (1, 0), (1, 2))
    copies = [padded[:, row : row + 8, column : column + 8] for row, column in moves]
    return np.concatenate(copies).reshape(-1, 64), len(moves)
