"""How arguments, and optional packages, are checked: one form of error for every wrong value.

Every message says what was given, what is allowed and, where it is not obvious, what to do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
#: Beyond these, products of a few numbers leave the range of floats. No unit that anyone uses comes near them.
SMALLEST, LARGEST = 1e-50, 1e50
_LARGEST_FLOAT = float(np.finfo(np.float64).max)


def frozen_array(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of ``array``."""
    view = array.view()
    view.flags.writeable = False
    return view


def finite_array(name: str, value: ArrayLike, owner: str, *, largest: float = LARGEST) -> FloatArray:
    """Return ``value`` as a float64 array, refusing NaN, infinity, what is not numeric or larger than ``largest``.

    Data that is scaled before anything is computed with it may be of any size.
    """
    try:
        given = np.asarray(value)
        if given.dtype.kind not in "biufO":
            raise TypeError
        array = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        instead = f"{type(value).__name__}: give its .phases" if hasattr(value, "phases") else f"{value!r:.80} instead"
        raise ValueError(
            f"The '{name}' parameter of {owner} must be an array of real numbers. Got {instead}."
        ) from None
    allowed = np.abs(array) <= min(largest, _LARGEST_FLOAT)
    if not np.all(allowed):
        where = np.argwhere(~np.atleast_1d(allowed))[0]
        bad = np.atleast_1d(array)[tuple(where)]
        place = ", ".join(str(int(k)) for k in where)
        rule = f"at most {largest:g} in magnitude" if np.isfinite(bad) else "finite"
        raise ValueError(f"The '{name}' parameter of {owner} must be {rule}. Got {bad} at index [{place}].")
    return array


def finite_features(name: str, value: ArrayLike, owner: str) -> Array:
    """Return ``value`` as a finite array: one of float32 as it is, which is half the memory of images, else float64."""
    single = isinstance(value, np.ndarray) and value.dtype == np.float32
    if single and np.all(np.isfinite(value)):
        return np.asarray(value)
    return finite_array(name, value, owner)


def shaped_array(
    name: str, value: ArrayLike, shape: tuple[int, ...], owner: str, *, largest: float = LARGEST
) -> FloatArray:
    """Return ``value`` as a finite array of exactly ``shape``; a scalar is spread over it."""
    array = finite_array(name, value, owner, largest=largest)
    if array.ndim == 0:
        return np.full(shape, float(array))
    if array.shape != shape:
        raise ValueError(
            f"The '{name}' parameter of {owner} must have shape {shape}, or be one number. Got shape {array.shape}."
        )
    return array.copy()


def last_axis_array(
    name: str, value: ArrayLike, width: int, meaning: str, owner: str, *, largest: float = LARGEST
) -> FloatArray:
    """Return ``value`` as a finite array whose last axis has ``width`` entries."""
    return check_last_axis(name, finite_array(name, value, owner, largest=largest), width, meaning, owner)


def check_last_axis(name: str, array: Array, width: int, meaning: str, owner: str) -> Array:
    """Return ``array`` if its last axis has ``width`` entries."""
    if array.ndim == 0 or array.shape[-1] != width:
        raise ValueError(
            f"The '{name}' parameter of {owner} must have a last axis of length {width} ({meaning}). "
            f"Got shape {array.shape}."
        )
    return array


def joint_shape(first: tuple[int, ...], second: tuple[int, ...], words: tuple[str, str], advice: str = "") -> Any:
    """Return the batch shape that two batch shapes broadcast to; ``words`` name what has them."""
    try:
        return np.broadcast_shapes(first, second)
    except ValueError:
        clash = f"{words[0]} of batch shape {first} and {words[1]} of batch shape {second} do not go together."
        raise ValueError(f"{clash} {advice}".strip()) from None


def positive_float(name: str, value: Any, owner: str) -> float:
    """Return ``value`` as a float greater than zero, and not so small or large that computing with it fails."""
    number = _as_float(value)
    if not SMALLEST <= number <= LARGEST:
        range_of = f", from {SMALLEST:g} to {LARGEST:g}" if 0 < number < math.inf else ""
        raise _wrong(name, owner, f"a float greater than 0{range_of}", value)
    return number


def float_between(name: str, value: Any, low: float, high: float, owner: str) -> float:
    """Return ``value`` as a finite float from ``low`` to ``high``."""
    number = _as_float(value)
    if not (math.isfinite(number) and low <= number <= min(high, LARGEST)):
        without_end = high == math.inf and not number > LARGEST
        allowed = f"a number, {low:g} or more" if without_end else f"a float from {low:g} to {min(high, LARGEST):g}"
        raise _wrong(name, owner, allowed, value)
    return number


def random_stream(seed: Any, owner: str) -> np.random.Generator:
    """Return the random stream of a seed."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise _wrong("seed", owner, "a whole number of at least 0, or None", seed) from None


def whole_number(name: str, value: Any, minimum: int, owner: str) -> int:
    """Return ``value`` as an int of at least ``minimum``."""
    is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not is_whole or value < minimum:
        raise _wrong(name, owner, f"a whole number of at least {minimum}", value)
    return int(value)


def parse_float(text: str) -> float:
    """Return the number that a text is, infinite ones too; ValueError for what only Python takes for one (5_1, ٣)."""
    if not text.isascii() or "_" in text:
        raise ValueError(f"{text!r:.60} is not a number")
    return float(text)


def parse_int(text: str) -> int:
    """Return the whole number that a text is; ValueError for what only Python takes for one (5_1, ٣)."""
    if not text.isascii() or "_" in text:
        raise ValueError(f"{text!r:.60} is not a whole number")
    return int(text)


def counted(number: int, word: str) -> str:
    """Return a number of things in words."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def choice(name: str, value: Any, allowed: Iterable[str], owner: str) -> str:
    """Return ``value`` if it is one of ``allowed``."""
    options = list(allowed)
    if not isinstance(value, str) or value not in options:
        raise _wrong(name, owner, f"one of {', '.join(map(repr, options))}", value)
    return str(value)


def how_to_install(extra: str) -> str:
    """Return the sentence that says how to install the packages of an extra."""
    return f"Install what is missing from a clone of the repository: pip install '.[{extra}]'."


def require(packages: Iterable[str], extra: str, purpose: str) -> None:
    """Raise ImportError if one of the packages is not installed; ``purpose`` is the beginning of its sentence."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise ImportError(f"{purpose} needs {', '.join(missing)}, which {verb} not installed. {how_to_install(extra)}")


def node_numbers(value: Any) -> NDArray[Any]:
    """Return ``value`` as an array; one of objects, for the caller to refuse, where it is ragged."""
    try:
        return np.asarray(value)
    except ValueError:
        return np.empty((), dtype=object)


def node_tuple(name: str, value: Any, size: int, owner: str) -> tuple[int, ...]:
    """Return ``value`` as a tuple of distinct node numbers below ``size``."""
    array = node_numbers(value)
    if array.size == 0 and array.ndim == 1:
        return ()
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise _wrong(name, owner, "a list of node numbers", value)
    nodes = tuple(int(node) for node in array)
    outside = [node for node in nodes if not 0 <= node < size]
    if outside:
        raise ValueError(
            f"The '{name}' parameter of {owner} names node {outside[0]}, but the network has nodes 0 to {size - 1}."
        )
    if len(set(nodes)) != len(nodes):
        raise ValueError(f"The '{name}' parameter of {owner} names a node twice. Got {nodes}.")
    return nodes


def _wrong(name: str, owner: str, allowed: str, given: Any) -> ValueError:
    return ValueError(f"The '{name}' parameter of {owner} must be {allowed}. Got {given!r} instead.")


def _as_float(value: Any) -> float:
    if isinstance(value, (str, bytes)):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
