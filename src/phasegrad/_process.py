"""Settings of the whole process that hold while a solver works, and are afterwards as they were.

The number of BLAS threads and the filters of warnings belong to the process, not to a thread: what one thread changes
and puts back in the middle of another's work would be put back wrongly. So a change is shared by all who are inside at
the same time; the first makes it, the last undoes it, also after an exception or Ctrl-C at any point. A forked child
inherits it only for the thread that it goes on with.
"""

from __future__ import annotations

import itertools
import os
import re
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Shared(ABC):
    """A change to the process that holds as long as anybody, on any thread, is inside ``with shared.hold():``."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        # Reentrant, since a signal handler or a finaliser may come back here on the same thread.
        self._lock = threading.RLock()
        self._inside: dict[int, int] = {}
        self._noted = False
        os.register_at_fork(
            before=lambda: self._lock.acquire(),
            after_in_parent=lambda: self._lock.release(),
            after_in_child=self._begin_in_child,
        )

    @abstractmethod
    def note(self) -> None:
        """Note what is there before anybody changes it."""

    @abstractmethod
    def change(self) -> None:
        """Make the change, or make it again for a thread that comes in later."""

    @abstractmethod
    def undo(self, last: bool) -> None:
        """Put back what was noted: what is each thread's own now, what all threads share when the last one leaves."""

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep the change in force inside ``with``."""
        number = next(self._numbers)
        try:
            try:
                self.enter(number)
                yield
            finally:
                self.leave(number)
        finally:
            # Ctrl-C may have come in the way of leaving.
            self.leave(number)

    def enter(self, number: int) -> None:
        """Let one in, and make the change."""
        with self._lock:
            self._inside[number] = threading.get_ident()
            if not self._noted:
                self.note()
                self._noted = True
            self.change()

    def leave(self, number: int) -> None:
        """Let one out, and undo the change if its thread is not inside any more; a second time changes nothing."""
        with self._lock:
            self._inside.pop(number, None)
            if self._noted and threading.get_ident() not in self._inside.values():
                self.undo(not self._inside)
                self._noted = bool(self._inside)

    def _begin_in_child(self) -> None:
        """Go on in a forked child, where only the thread that forked is left."""
        self._lock = threading.RLock()
        here = threading.get_ident()
        self._inside = {number: thread for number, thread in self._inside.items() if thread == here}
        self.leave(-1)


class _OneBlasThread(Shared):
    def note(self) -> None:
        self.before = [(library, library.num_threads) for library in _blas()]

    def change(self) -> None:
        for library, _ in self.before:
            _set_threads(library, 1)

    def undo(self, last: bool) -> None:
        for library, threads in self.before:
            if last or getattr(library, "threading_layer", "") == "openmp":
                _set_threads(library, threads)


def _set_threads(library: Any, threads: int) -> None:
    # The public method does nothing on any thread but the first that used it; here all threads inside agree already.
    getattr(library, "_real_set_num_threads", library.set_num_threads)(threads)


class _Unwarned(Shared):
    """Keeps quiet what SciPy warns of where a solver called it."""

    entry: Any = ("ignore", None, UserWarning, re.compile(r"phasegrad\.linearised\."), 0)

    def note(self) -> None:
        self.filters: Any = warnings.filters

    def change(self) -> None:
        if self.entry not in self.filters:
            self.filters.insert(0, self.entry)

    def undo(self, last: bool) -> None:
        if not last:
            return
        # Somebody else may have put another list in its place meanwhile, with or without the entry.
        now: Any = warnings.filters
        for filters in (self.filters, now):
            with suppress(ValueError):
                filters.remove(self.entry)


@cache
def _blas() -> list[Any]:
    import threadpoolctl  # where there is only NumPy and PyTorch, what needs neither solver nor this still works

    return list(threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers)


_one_blas_thread = _OneBlasThread()
_unwarned = _Unwarned()


class _OneTorchThread(Shared):
    """How many threads PyTorch has: a number of each thread's own, with which the last one set begins a new thread."""

    def note(self) -> None:
        import torch

        self.before = torch.get_num_threads()

    def change(self) -> None:
        import torch

        torch.set_num_threads(1)

    def undo(self, last: bool) -> None:
        import torch

        del last
        torch.set_num_threads(self.before)


_one_torch_thread = _OneTorchThread()


def one_torch_thread() -> AbstractContextManager[None]:
    """Hold PyTorch inside ``with one_torch_thread():`` to one thread; it must be installed."""
    return _one_torch_thread.hold()


def one_blas_thread() -> AbstractContextManager[None]:
    """Hold the linear algebra inside ``with one_blas_thread():`` to one thread."""
    return _one_blas_thread.hold()


def unwarned() -> AbstractContextManager[None]:
    """Keep quiet what SciPy warns of when a solver calls it inside ``with unwarned():``."""
    return _unwarned.hold()


def on_one_blas_thread(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorate a function so that the linear algebra inside it runs on one thread."""

    @wraps(function)
    def limited(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        with one_blas_thread():
            return function(*args, **options)

    return limited
