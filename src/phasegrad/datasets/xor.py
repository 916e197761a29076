"""Exclusive or: the smallest problem that no linear readout solves."""

from __future__ import annotations

import numpy as np

from phasegrad.datasets.dataset import Dataset


def xor() -> Dataset:
    """Return the four points (±1, ±1), labelled by whether their signs are the same or different.

    There is nothing to hold back, so the training part and the test part are the same four points.

    See Also
    --------
    datasets.vowels : The vowels of Hillenbrand and others.
    signed_layers : Layers with couplings of both signs, fields and clamped inputs.

    Examples
    --------
    >>> from phasegrad.datasets import xor
    >>> data = xor()
    >>> data
    xor: 4 training and 4 test samples, 2 features, 2 classes
    >>> for point, label in zip(data.x_train.tolist(), data.y_train, strict=True):
    ...     print(point, data.classes[label])
    [-1.0, -1.0] same
    [-1.0, 1.0] different
    [1.0, -1.0] different
    [1.0, 1.0] same
    """
    x = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    y = np.array([0, 1, 1, 0])
    rows = np.arange(4)
    return Dataset("xor", x, y, x, y, ("same", "different"), ("a", "b"), train_rows=rows, test_rows=rows)
