"""Frequency-modulated signals: tell slow from fast modulation by ten features of a noisy signal.

A signal is sin(2 pi carrier t + depth sin(2 pi modulation t) + phase) plus noise, at 500 times from 0 to 0.1 s.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import FloatArray, IntArray, last_axis_array, random_stream, whole_number
from phasegrad.datasets.dataset import Dataset

_SAMPLES = 500
_TIME = np.linspace(0.0, 0.1, _SAMPLES)
_MODULATION_HZ = ((30.0, 80.0), (150.0, 300.0))
_NOISE = 0.15

# The published rule is geomspace(1, 125, 8) cut to whole numbers, or linspace where that gives fewer than eight
# different lags. It gives seven (1 comes twice), so the rule always ends in linspace.
_LAGS = tuple(int(lag) for lag in np.linspace(1, 125, 8))


def fm(seed: int | None = 0, n_train: int = 200, n_test: int = 80) -> Dataset:
    """Return signals with slow (30 to 80 Hz) and fast (150 to 300 Hz) frequency modulation as ten features each.

    Draws from one ``numpy.random.default_rng(seed)``, signal after signal, in this order: the class
    ``integers(2)``; the modulation frequency, U(30, 80) for class 0 and U(150, 300) for class 1; the carrier,
    500 (1 + U(-0.05, 0.05)) Hz; the depth, 3 (1 + U(-0.3, 0.3)); the phase, U(0, 2 pi); and 500 standard normals
    that times 0.15 are the noise. The first ``n_train`` signals are the training part, the next ``n_test`` the
    test part. `fm_features` makes the features; they are not scaled any further.

    Parameters
    ----------
    seed : int or None
        Seed of the random stream.
    n_train, n_test : int
        Number of signals in each part.

    See Also
    --------
    datasets.vowels : The vowels of Hillenbrand and others.
    datasets.xor : The four corners of XOR.

    Examples
    --------
    >>> from phasegrad.datasets import fm
    >>> data = fm(seed=0)
    >>> data
    fm: 200 training and 80 test samples, 10 features, 2 classes
    >>> data.classes
    ('slow', 'fast')
    """
    n_train = whole_number("n_train", n_train, 1, "fm")
    n_test = whole_number("n_test", n_test, 1, "fm")
    signals, labels = _draw_signals(random_stream(seed, "fm"), n_train + n_test)
    x = fm_features(signals)
    rows = np.arange(n_train + n_test)
    return Dataset(
        name="fm",
        x_train=x[:n_train],
        y_train=labels[:n_train],
        x_test=x[n_train:],
        y_test=labels[n_train:],
        classes=("slow", "fast"),
        features=(*(f"autocorrelation_{lag}" for lag in _LAGS), "zero_crossing_rate", "energy_variability"),
        train_rows=rows[:n_train],
        test_rows=rows[n_train:],
    )


def fm_features(signal: ArrayLike) -> FloatArray:
    """Return the ten features of a signal, or of each of many.

    With s_t the 500 samples, the features are, in this order:

    - the autocorrelation sum_t s_t s_(t+k) / sum_t s_t^2, the mean not subtracted, at the lags k = 1, 18, 36, 54, 71,
      89, 107, 125;
    - the zero-crossing rate: how many of the 499 neighbouring pairs differ in sign, 0 counting as positive, over 500;
    - the energy variability: the standard deviation of s_t^2 over the first 250 samples, divided by the mean of s_t^2
      over all 500 plus 1e-10.

    These ten are divided by the largest of their absolute values and rounded to single precision: bitwise the features
    behind the published scores.

    Parameters
    ----------
    signal : array of shape (..., 500)

    Returns
    -------
    array of shape (..., 10)

    Examples
    --------
    >>> import numpy as np
    >>> from phasegrad.datasets.fm import fm_features
    >>> fm_features(np.arange(500) % 2).round(3).tolist()
    [0.0, 0.964, 0.928, 0.892, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    """
    signal = last_axis_array("signal", signal, _SAMPLES, "the samples of a signal", "fm_features")
    energy = signal**2
    power = energy.sum(axis=-1)
    if not np.all(power > 0):
        raise ValueError(
            "fm_features got a signal that is zero everywhere, which has no autocorrelation. Leave it out."
        )
    correlations = [(signal[..., :-lag] * signal[..., lag:]).sum(axis=-1) / power for lag in _LAGS]
    crossings = np.diff(signal >= 0, axis=-1).sum(axis=-1) / _SAMPLES
    variability = energy[..., : _SAMPLES // 2].std(axis=-1) / (energy.mean(axis=-1) + 1e-10)
    features = np.stack([*correlations, crossings, variability], axis=-1)
    features /= np.abs(features).max(axis=-1, keepdims=True)
    return features.astype(np.float32).astype(np.float64)


def _draw_signals(rng: np.random.Generator, count: int) -> tuple[FloatArray, IntArray]:
    labels = np.empty(count, dtype=np.int64)
    modulation, carrier, depth, phase = np.empty((4, count, 1))
    noise = np.empty((count, _SAMPLES))
    for k in range(count):
        labels[k] = rng.integers(2)
        modulation[k] = rng.uniform(*_MODULATION_HZ[labels[k]])
        carrier[k] = 500 * (1 + rng.uniform(-0.05, 0.05))
        depth[k] = 3 * (1 + rng.uniform(-0.3, 0.3))
        phase[k] = rng.uniform(0, 2 * np.pi)
        noise[k] = rng.standard_normal(_SAMPLES) * _NOISE
    swing = depth * np.sin(2 * np.pi * modulation * _TIME)
    return np.sin(2 * np.pi * carrier * _TIME + swing + phase) + noise, labels
