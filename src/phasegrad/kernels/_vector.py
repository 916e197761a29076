"""Numbers of several networks as one value: the SIMD type in which the kernels compute.

A vector holds the same quantity of networks that are trained in lock-step, one network per lane. Inside compiled code
it has the arithmetic of a float; a float beside it means as many copies of it as there are lanes. Memory is made of
`Rows`, each as long as a vector; `load` and `store` move whole rows, `put` sets a single lane.

The width, a power of two, is a property of the type, so that one source is compiled once for every width in use. LLVM
splits each operation into the instructions of the machine at hand. No two operations are ever fused behind our back:
a product that is added without being rounded in between is written `multiply_add`. So a lane's result depends neither
on the width nor on what the compiler inlines or unrolls.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import NativeValue, intrinsic, lower_builtin, models, register_model, typeof_impl, unbox

# Numba looks only at a function's own file to decide whether its cached machine code is still good. This digest of all
# files of the room is part of the name of every type in them, and so of the key of the cache.
_SOURCES = sorted(
    (path for path in files(__package__).iterdir() if path.name.endswith(".py")), key=lambda path: path.name
)
DIGEST = hashlib.sha256(b"\0".join(path.read_bytes() for path in _SOURCES)).hexdigest()[:16]

_CACHE_LINE = 64


class Rows:
    """Memory of one group of networks: ``count`` rows of one float64 per lane, all zero at first.

    Compiled code gets its address, and its width as a type. An array of records would carry a width as well, but Numba
    names compiled functions after the number a record type happens to have in this process, so that two widths from
    the cache can be mistaken for each other.

    Attributes
    ----------
    floats : ndarray, shape (count, width)
        The rows; the first starts on a cache line.
    """

    def __init__(self, count: int, width: int) -> None:
        size = count * width
        raw = np.zeros(size + _CACHE_LINE // 8)
        first = (-raw.ctypes.data % _CACHE_LINE) // 8
        self.floats = raw[first : first + size].reshape(count, width)
        self.width = width
        self.address = self.floats.ctypes.data


class RowsType(types.Type):
    """Numba's name for rows of a width."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"Rows{width}_{DIGEST}")


class VectorType(types.Type):
    """Numba's name for the content of one row."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"Vector{width}_{DIGEST}")

    @property
    def ir(self) -> ir.VectorType:
        """The type in LLVM."""
        return ir.VectorType(ir.DoubleType(), self.width)


@register_model(RowsType)
class _RowsModel(models.PrimitiveModel):
    def __init__(self, manager: Any, frontend: Any) -> None:
        super().__init__(manager, frontend, VectorType(frontend.width).ir.as_pointer())


@register_model(VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, frontend: Any) -> None:
        super().__init__(manager, frontend, frontend.ir)


_type_of_width = cache(RowsType)


@typeof_impl.register(Rows)
def _type_of_rows(value: Rows, _context: Any) -> RowsType:
    return _type_of_width(value.width)


@unbox(RowsType)
def _unbox_rows(kind: RowsType, obj: Any, context: Any) -> NativeValue:
    address = context.pyapi.object_getattr_string(obj, "address")
    number = context.unbox(types.uintp, address).value
    context.pyapi.decref(address)
    return NativeValue(context.builder.inttoptr(number, VectorType(kind.width).ir.as_pointer()))


def _vector_among(*kinds: Any) -> VectorType | None:
    """Return the vector type among the types of numbers, None if there is none or something else than numbers."""
    vectors = {kind for kind in kinds if isinstance(kind, VectorType)}
    known = all(isinstance(kind, VectorType) or kind is types.float64 for kind in kinds)
    return vectors.pop() if known and len(vectors) == 1 else None


def _copies(builder: Any, kind: VectorType, scalar: Any) -> Any:
    """Return a vector with the scalar in every lane."""
    undefined = ir.Constant(kind.ir, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), kind.width), [0] * kind.width)
    return builder.shuffle_vector(first, undefined, mask)


def _spread(builder: Any, kind: VectorType, given: Any, values: Any) -> list[Any]:
    """Return all values as vectors."""
    return [
        value if isinstance(each, VectorType) else _copies(builder, kind, value)
        for each, value in zip(given, values, strict=True)
    ]


def _call(builder: Any, name: str, kind: VectorType, values: list[Any]) -> Any:
    """Call an intrinsic function of LLVM on vectors of one kind."""
    prototype = ir.FunctionType(kind.ir, [kind.ir] * len(values))
    function = cgutils.get_or_insert_function(builder.module, prototype, f"llvm.{name}.v{kind.width}f64")
    return builder.call(function, values)


def _define(function: Callable[..., Any], instruction: str) -> None:
    """Give an arithmetic operator a meaning for vectors, and for a vector and a float."""

    @infer_global(function)
    class _Typing(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, kws: Any) -> Any:
            del kws
            kind = _vector_among(*args)
            return None if kind is None else signature(kind, *args)

    def lower(_context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return getattr(builder, instruction)(*_spread(builder, sig.return_type, sig.args, args))

    if instruction == "fneg":
        lower_builtin(function, VectorType)(lower)
        return
    for pair in ((VectorType, VectorType), (VectorType, types.float64), (types.float64, VectorType)):
        lower_builtin(function, *pair)(lower)


for _function, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
    (operator.neg, "fneg"),
):
    _define(_function, _instruction)


@intrinsic
def load(_typing: Any, rows: Any, row: Any) -> Any:
    """Return row number ``row``."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        value = builder.load(builder.gep(args[0], [args[1]]))
        value.align = 8
        return value

    return VectorType(rows.width)(rows, types.intp), generate


@intrinsic
def store(_typing: Any, rows: Any, row: Any, value: Any) -> Any:
    """Write a vector, or a float into every lane, to row number ``row``."""
    kind = VectorType(rows.width)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        vector = _spread(builder, kind, sig.args[2:], args[2:])[0]
        builder.store(vector, builder.gep(args[0], [args[1]]), align=8)
        return context.get_dummy_value()

    return types.void(rows, types.intp, value), generate


@intrinsic
def put(_typing: Any, rows: Any, row: Any, lane: Any, value: Any) -> Any:
    """Set one lane of row number ``row``."""

    def generate(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        first = builder.bitcast(builder.gep(args[0], [args[1]]), ir.DoubleType().as_pointer())
        builder.store(args[3], builder.gep(first, [args[2]]))
        return context.get_dummy_value()

    return types.void(rows, types.intp, types.intp, types.float64), generate


@intrinsic
def lane_of(_typing: Any, rows: Any, row: Any, lane: Any) -> Any:
    """Return one lane of row number ``row``."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        first = builder.bitcast(builder.gep(args[0], [args[1]]), ir.DoubleType().as_pointer())
        return builder.load(builder.gep(first, [args[2]]))

    return types.float64(rows, types.intp, types.intp), generate


@intrinsic
def entry(_typing: Any, table: Any, place: Any) -> Any:
    """Return an entry of an array that never changes while the kernel runs, laid flat; no bounds are checked."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        value = builder.load(builder.gep(data, [args[1]]))
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value

    return table.dtype(table, types.intp), generate


@intrinsic
def copies(_typing: Any, rows: Any, scalar: Any) -> Any:
    """Return a vector as wide as the rows with the float in every lane."""
    kind = VectorType(rows.width)

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return _copies(builder, kind, args[1])

    return kind(rows, types.float64), generate


@intrinsic
def pair(_typing: Any, table: Any, place: Any) -> Any:
    """Return pair number ``place`` of an array of float64, laid flat, as a vector; no bounds are checked."""
    kind = VectorType(2)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        value = builder.load(builder.gep(builder.bitcast(data, kind.ir.as_pointer()), [args[1]]))
        value.align = 8
        return value

    return kind(table, types.intp), generate


@intrinsic
def swapped(_typing: Any, vector: Any) -> Any:
    """Return a pair with its lanes exchanged."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        order = ir.Constant(ir.VectorType(ir.IntType(32), 2), [1, 0])
        return builder.shuffle_vector(args[0], args[0], order)

    return vector(vector), generate


@intrinsic
def lane(_typing: Any, vector: Any, place: Any) -> Any:
    """Return one lane of a vector."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.extract_element(args[0], args[1])

    return types.float64(vector, types.intp), generate


@intrinsic
def multiply_add(_typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a b + c, the product not rounded where the machine can do that at the price of one operation."""
    kind = _vector_among(a, b, c)

    def generate(_context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _call(builder, "fmuladd", kind, _spread(builder, kind, sig.args, args))

    return kind(a, b, c), generate


@intrinsic
def where_less(_typing: Any, a: Any, b: Any, yes: Any, no: Any) -> Any:
    """Return, lane by lane, ``yes`` where a < b, else ``no`` (also where a or b is not a number)."""
    kind = _vector_among(a, b, yes, no)

    def generate(_context: Any, builder: Any, sig: Any, args: Any) -> Any:
        left, right, then, other = _spread(builder, kind, sig.args, args)
        return builder.select(builder.fcmp_ordered("<", left, right), then, other)

    return kind(a, b, yes, no), generate


@intrinsic
def any_less(_typing: Any, a: Any, b: Any) -> Any:
    """Return whether a < b in any lane."""
    kind = _vector_among(a, b)

    def generate(_context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = builder.fcmp_ordered("<", *_spread(builder, kind, sig.args, args))
        bits = builder.bitcast(lanes, ir.IntType(kind.width))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(kind.width), 0))

    return types.boolean(a, b), generate


def _unary(name: str, documentation: str) -> Any:
    def make(_typing: Any, value: Any) -> Any:
        def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            return _call(builder, name, value, list(args))

        return value(value), generate

    make.__doc__ = documentation
    return intrinsic(make)


floor = _unary("floor", "Return the largest whole number not above each lane.")
magnitude = _unary("fabs", "Return the absolute value of each lane.")
root = _unary("sqrt", "Return the square root of each lane.")
