"""Functions that Python calls: compiled where there is Numba, as they stand elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

#: Whether there is Numba to compile with.
COMPILES = find_spec("numba") is not None


def entrance(function: Callable[..., Any]) -> Any:
    """Return a function compiled and kept on disk, or as it is where nothing can be compiled."""
    if not COMPILES:
        return function
    from phasegrad.kernels._compilation import kept

    return kept(function)
