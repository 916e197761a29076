"""Values worked out when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class lazy_property(Generic[Value]):  # noqa: N801 - it stands where a property stands
    """A property that is worked out once per object and then kept in it.

    Up to Python 3.11 `functools.cached_property` takes one lock for all objects of a class: threads wait for each
    other, and in a process forked meanwhile the lock is never given back. Here two threads may do the same work twice.
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self.function, self.__doc__ = function, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> lazy_property[Value]: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> lazy_property[Value] | Value:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self.name, self.function(instance))
