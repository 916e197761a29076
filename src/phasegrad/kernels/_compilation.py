"""How kernels are compiled: on the first call, and kept on disk where there is a place to write to."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from numba import config, njit
from numba.core.caching import FunctionCache

from phasegrad.kernels._vector import DIGEST

if config.DISABLE_JIT:
    raise ImportError("NUMBA_DISABLE_JIT is set, but the kernels of phasegrad run only as compiled code. Unset it.")


class CompilationWarning(UserWarning):
    """Compiled code could not be kept."""


class _Kept(FunctionCache):
    """Numba's files of a function; without them, or where they are damaged, it is compiled again.

    So it is where any file of the kernels changed: Numba itself looks at the function's own file alone.
    """

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), DIGEST)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever reading half a file leads to
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:
            _warn()


def kept(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, to run without its lock, and keep the code on disk.

    Where nothing can be written, neither beside the sources nor at home, it is compiled in memory.
    """
    compiled = njit(error_model="numpy", nogil=True)(function)
    try:
        compiled._cache = _Kept(function)
    except (RuntimeError, OSError):
        _warn()
    return compiled


@cache
def _warn() -> None:
    """Say once that code is not kept."""
    warnings.warn(
        "Compiled code cannot be kept on disk, so every process compiles it anew. Set NUMBA_CACHE_DIR to a folder that "
        "can be written to.",
        CompilationWarning,
        stacklevel=3,
    )
