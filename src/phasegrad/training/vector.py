"""Thirty-two numbers as one value: the SIMD type in which the training kernel computes.

A vector holds the same quantity of thirty-two networks that are trained in lock-step, one network per lane. Inside
compiled code it has the arithmetic of a float, with any float meaning thirty-two copies of it. Arrays of vectors are
float64 arrays of shape (rows, 32); `load` and `store` move rows. LLVM splits each operation into the instructions of
the machine at hand: four where vectors have 512 bits, which also hides the latency of each behind the others.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

WIDTH = 32

_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, WIDTH)
_FLAGS = ("contract",)


class VectorType(types.Type):
    """Numba's name for a row of float64 lanes."""

    def __init__(self) -> None:
        super().__init__(name=f"Vector{WIDTH}")


vector_type = VectorType()


@register_model(VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, frontend: Any) -> None:
        super().__init__(manager, frontend, _VECTOR)


def _copies(builder: Any, scalar: Any) -> Any:
    """Return a vector with the scalar in every lane."""
    first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
    return builder.shuffle_vector(first, ir.Constant(_VECTOR, ir.Undefined), mask)


def _define(function: Callable[..., Any], instruction: str) -> None:
    """Give an arithmetic operator a meaning for vectors, and for a vector and a float."""
    pairs = [(vector_type, vector_type), (vector_type, types.float64), (types.float64, vector_type)]

    @infer_global(function)
    class _Typing(ConcreteTemplate):  # type: ignore[misc]
        cases = [signature(vector_type, *pair) for pair in pairs]  # noqa: RUF012

    def lower(_context: Any, builder: Any, sig: Any, args: Any) -> Any:
        sides = [
            value if kind is vector_type else _copies(builder, value)
            for kind, value in zip(sig.args, args, strict=True)
        ]
        return getattr(builder, instruction)(*sides, flags=_FLAGS)

    for pair in pairs:
        lower_builtin(function, *pair)(lower)


for _function, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _define(_function, _instruction)


@infer_global(operator.neg)
class _NegativeTyping(ConcreteTemplate):  # type: ignore[misc]
    cases = [signature(vector_type, vector_type)]  # noqa: RUF012


@lower_builtin(operator.neg, vector_type)
def _lower_negative(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
    return builder.fneg(args[0])


def _row_pointer(context: Any, builder: Any, kind: Any, array: Any, row: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    offset = builder.mul(row, ir.Constant(row.type, WIDTH))
    return builder.bitcast(builder.gep(data, [offset]), _VECTOR.as_pointer())


@intrinsic
def load(_typing: Any, array: Any, row: Any) -> Any:
    """Return row ``row`` of a float64 array of shape (rows, 32)."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value = builder.load(_row_pointer(context, builder, sig.args[0], *args))
        value.align = 8
        return value

    return vector_type(array, types.intp), generate


@intrinsic
def store(_typing: Any, array: Any, row: Any, value: Any) -> Any:
    """Write a vector to row ``row`` of a float64 array of shape (rows, 32)."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _row_pointer(context, builder, sig.args[0], args[0], args[1])
        builder.store(args[2], pointer, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, vector_type), generate


@intrinsic
def copies(_typing: Any, scalar: Any) -> Any:
    """Return a vector with the float in every lane."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return _copies(builder, args[0])

    return vector_type(types.float64), generate


@intrinsic
def where_less(_typing: Any, a: Any, b: Any, yes: Any, no: Any) -> Any:
    """Return, lane by lane, ``yes`` where a < b, else ``no`` (also where a or b is not a number)."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[2], args[3])

    return vector_type(vector_type, vector_type, vector_type, vector_type), generate


@intrinsic
def any_less(_typing: Any, a: Any, b: Any) -> Any:
    """Return whether a < b in any lane."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        lanes = builder.fcmp_ordered("<", args[0], args[1])
        bits = builder.bitcast(lanes, ir.IntType(WIDTH))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(WIDTH), 0))

    return types.boolean(vector_type, vector_type), generate


def _unary(name: str, documentation: str) -> Any:
    def make(_typing: Any, value: Any) -> Any:
        def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            kind = ir.FunctionType(_VECTOR, [_VECTOR])
            function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{WIDTH}f64")
            return builder.call(function, args)

        return vector_type(value), generate

    make.__doc__ = documentation
    return intrinsic(make)


floor = _unary("floor", "Return the largest whole number not above each lane.")
magnitude = _unary("fabs", "Return the absolute value of each lane.")
