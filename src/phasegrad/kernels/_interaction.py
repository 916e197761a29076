"""An interaction as compiled code: H and H' of an array of angles, behind an address that compiled loops can call.

A network's interaction is a Python object. Its two methods are compiled with a tuple of the numbers they read in place
of ``self``. The loops that call them take the address alone, so that they are compiled once and kept on disk, whatever
the interaction is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, cfunc, njit, types
from numba.extending import intrinsic

_SIGNATURE = types.void(*[types.CPointer(types.float64)] * 3, types.intp)
_ANGLES = np.linspace(-7.0, 7.0, 65)
# Compiled and interpreted functions round differently; this share of the largest value is far above that.
_ROUNDING = 1e-10


class NotCompiledError(Exception):
    """Numba cannot compile an interaction; the message is the reason in a sentence."""


class Compiled:
    """H and H' behind the ``address`` of a function; the code lives as long as this object."""

    def __init__(self, function: Any) -> None:
        self.function, self.address = function, int(function.address)

    def __call__(self, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return H and H' of angles (n,)."""
        value, slope = np.empty((2, angles.size))
        pointers = (each.ctypes.data_as(self.function.ctypes.argtypes[0]) for each in (angles, value, slope))
        self.function.ctypes(*pointers, angles.size)
        return value, slope


def compile_interaction(
    value: Callable[..., Any], derivative: Callable[..., Any], numbers: Mapping[str, Any], expected: Callable[..., Any]
) -> Compiled:
    """Return methods ``value`` and ``derivative`` (self, angle) as one compiled function.

    Parameters
    ----------
    value, derivative : function
        The methods, as they stand in the class.
    numbers : mapping of str to float or tuple of float
        The attributes that they read.
    expected : callable
        Returns H and H' of an array of angles by Python. Compiled code keeps the values that global variables had when
        it was compiled: where it disagrees it is compiled again.

    Raises
    ------
    NotCompiledError
        Where Numba cannot compile the methods, or compiled ones give other values.
    """
    for made in (_made, _made.__wrapped__):
        try:
            compiled: Compiled = made(value, derivative, tuple(numbers.items()))
        except Exception as error:  # Numba fails in many ways on code that it does not know
            raise NotCompiledError(f"Numba cannot compile it: {_reason(error)}") from error
        if all(_agree(*pair) for pair in zip(compiled(_ANGLES), expected(_ANGLES), strict=True)):
            return compiled
    raise NotCompiledError("Compiled by Numba it has other values than in Python.")


@lru_cache(maxsize=64)
def _made(value: Callable[..., Any], derivative: Callable[..., Any], numbers: tuple[tuple[str, Any], ...]) -> Compiled:
    # Numba takes a tuple with these two attributes for a named one; names of its own may begin with an underscore.
    kind = type("own", (tuple,), {"_fields": tuple(name for name, _ in numbers), "_asdict": dict})
    own = kind(number for _, number in numbers)
    force, stiffness = njit(error_model="numpy")(value), njit(error_model="numpy")(derivative)

    def each(angles: Any, values: Any, slopes: Any, count: int) -> None:
        angle, pull, slope = carray(angles, count), carray(values, count), carray(slopes, count)
        for k in range(count):
            pull[k] = force(own, angle[k])
            slope[k] = stiffness(own, angle[k])

    return Compiled(cfunc(_SIGNATURE, error_model="numpy")(each))


def _reason(error: Exception) -> str:
    """Return the first line of an error that says more than that compiling failed."""
    lines = [re.sub(r"\x1b\[\d*m", "", line).strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and not line.startswith("Failed in")]
    return told[0] if told else repr(error)


def _agree(compiled: np.ndarray, expected: Any) -> bool:
    return bool(np.max(np.abs(compiled - expected)) <= _ROUNDING * max(1.0, float(np.max(np.abs(expected)))))


@intrinsic
def evaluate(_typing: Any, address: Any, angles: Any, values: Any, slopes: Any, count: Any) -> Any:
    """Set H and H' of so many angles by the function at an address; arrays are given by their addresses."""

    def generate(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        number, pointer = ir.IntType(64), ir.DoubleType().as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer] * 3 + [number])
        function = builder.inttoptr(args[0], kind.as_pointer())
        builder.call(function, [builder.inttoptr(each, pointer) for each in args[1:4]] + [args[4]])
        return context.get_dummy_value()

    return types.void(address, angles, values, slopes, count), generate
