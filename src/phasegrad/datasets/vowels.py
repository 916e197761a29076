"""Vowels of American English: the measurements of Hillenbrand et al. (1995), and classification tasks from them.

The measurements lie beside this file in ``hillenbrand1995.csv``; ``hillenbrand1995.md`` has the citation.
"""

from __future__ import annotations

import csv
import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phasegrad._validation import FloatArray, IntArray, choice, float_between, frozen_array, random_stream
from phasegrad.datasets.dataset import Dataset, split_and_scale

_LETTERS = {"a": "ah", "e": "eh", "i": "iy", "o": "oa", "u": "uw"}
_CODES = (*_LETTERS.values(), "ae", "aw", "ei", "er", "ih", "oo", "uh")
_VOWELS = (*_LETTERS, *_CODES)
_GROUPS = ("m", "w", "b", "g")
_FEATURES = ("duration_ms", "f0_hz", "f1_hz", "f2_hz", "f3_hz")


@dataclass(frozen=True, eq=False)
class VowelTable:
    """The measurements, one entry for each utterance in the order of the file; all arrays are read-only.

    Parameters
    ----------
    group : str array of shape (n,)
        ``"m"`` men, ``"w"`` women, ``"b"`` boys, ``"g"`` girls.
    talker : int array of shape (n,)
        Number of the talker inside the group.
    vowel : str array of shape (n,)
        Two-letter code.
    duration_ms, f0_hz, f1_hz, f2_hz, f3_hz : array of shape (n,)
        Duration, fundamental frequency and first three formants; 0 where not measurable.
    """

    group: NDArray[np.str_]
    talker: IntArray
    vowel: NDArray[np.str_]
    duration_ms: FloatArray
    f0_hz: FloatArray
    f1_hz: FloatArray
    f2_hz: FloatArray
    f3_hz: FloatArray

    def __len__(self) -> int:
        return len(self.vowel)

    def __repr__(self) -> str:
        return f"VowelTable({len(self)} utterances of {len(set(self.vowel))} vowels)"


@cache
def load_vowel_table() -> VowelTable:
    """Return the measurements of all 1668 utterances; the file is read once.

    See Also
    --------
    datasets.vowels : The vowels of Hillenbrand and others.

    Examples
    --------
    >>> from phasegrad.datasets import load_vowel_table
    >>> table = load_vowel_table()
    >>> table
    VowelTable(1668 utterances of 12 vowels)
    >>> men = (table.vowel == "iy") & (table.group == "m")
    >>> float(table.f1_hz[men].mean().round())
    343.0
    """
    text = resources.files("phasegrad.datasets").joinpath("hillenbrand1995.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    kinds = {"group": np.str_, "talker": np.int64, "vowel": np.str_} | dict.fromkeys(_FEATURES, np.float64)
    columns: dict[str, NDArray[Any]] = {
        name: np.array([row[name] for row in rows]).astype(kind) for name, kind in kinds.items()
    }
    return VowelTable(**{name: frozen_array(column) for name, column in columns.items()})


def vowels(
    vowels: str | Sequence[str] = ("a", "i"),
    *,
    seed: int | None = 0,
    train_fraction: float = 0.8,
    scale_by: str = "train",
    features: str | Sequence[str] = ("f1_hz", "f2_hz"),
    groups: str | Sequence[str] | None = None,
) -> Dataset:
    """Return a task of telling vowels apart, split at random and scaled to [-1, 1].

    Utterances in which one of the features could not be measured are left out. Before the split, the rows are
    ordered by vowel (ah, eh, iy, oa, uw, then ae, aw, ei, er, ih, oo, uh) and inside a vowel as in the file; the
    order of ``vowels`` only numbers the classes. ``train_rows`` and ``test_rows`` are positions in these rows.

    Parameters
    ----------
    vowels : sequence of str, or str with commas
        Two or more different vowels: the letters a, e, i, o, u (for ah, eh, iy, oa, uw) or two-letter codes.
    seed : int or None
        Seed of the split.
    train_fraction : float
        Share of the rows that are for training.
    scale_by : {"train", "all"}
        Whether the range of each feature is that of the training part or, as in some historical results, of all
        selected rows, which lets the training part know something about the test part.
    features : sequence of str, or str with commas
        Any of duration_ms, f0_hz, f1_hz, f2_hz, f3_hz.
    groups : sequence of str, or str with commas, optional
        Keep only these talkers: any of m (men), w (women), b (boys), g (girls).

    See Also
    --------
    datasets.fm : Frequency-modulated signals.
    datasets.xor : The four corners of XOR.

    Examples
    --------
    >>> from phasegrad.datasets import vowels
    >>> vowels(("a", "i"), seed=3)
    vowels a, i: 220 training and 55 test samples, 2 features, 2 classes
    >>> vowels("er, uh, oo", features="f1_hz, f2_hz, f3_hz", groups="m, w")
    vowels er, uh, oo of groups m, w: 212 training and 54 test samples, 3 features, 3 classes
    """
    names = _known_names("vowels", vowels, _VOWELS, minimum=2)
    columns = _known_names("features", features, _FEATURES)
    talkers = _GROUPS if groups is None else _known_names("groups", groups, _GROUPS)
    train_fraction = float_between("train_fraction", train_fraction, 0, 1, "vowels")
    scale_by = choice("scale_by", scale_by, ("train", "all"), "vowels")
    rng = random_stream(seed, "vowels")
    table = load_vowel_table()
    codes = [_LETTERS.get(name, name) for name in names]
    x = np.stack([getattr(table, column) for column in columns], axis=1)
    kept = np.isin(table.group, talkers) & np.all(x > 0, axis=1)
    rows = np.concatenate([np.flatnonzero(kept & (table.vowel == code)) for code in _CODES if code in codes])
    data = split_and_scale(
        f"vowels {', '.join(names)}" + ("" if groups is None else f" of groups {', '.join(talkers)}"),
        x[rows],
        [codes.index(code) for code in table.vowel[rows]],
        names,
        columns,
        seed=rng,
        train_fraction=train_fraction,
        scale_by=scale_by,
    )
    data.require_all_classes()
    return data


def _known_names(parameter: str, value: Any, known: Sequence[str], minimum: int = 1) -> tuple[str, ...]:
    """Return ``value``, a list or a string with commas, as a tuple of different names out of ``known``."""
    parts = value.split(",") if isinstance(value, str) else value
    names = tuple(str(part).strip() for part in (parts if isinstance(parts, Iterable) else [parts]))
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"The '{parameter}' parameter of vowels must be out of {', '.join(known)}. Got {name!r}.{hint}"
            )
    if len(names) < minimum:
        least = "two vowels" if minimum == 2 else "one of " + ", ".join(known)
        raise ValueError(f"The '{parameter}' parameter of vowels must name at least {least}. Got {value!r}.")
    name, times = Counter(_LETTERS.get(name, name) for name in names).most_common(1)[0]
    if times > 1:
        raise ValueError(f"The '{parameter}' parameter of vowels has {name!r} twice. Got {value!r}.")
    return names
