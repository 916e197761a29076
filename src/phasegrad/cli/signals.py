"""Ctrl-C and SIGTERM: both stop a command, what is finished is kept, and the exit status says which it was."""

from __future__ import annotations

import atexit
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

#: What a command ends with when it was stopped; `main` makes it 128 and the number of the signal.
STOPPED = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stops:
    """Which signal stopped the command that runs now, None if none did."""

    def __init__(self) -> None:
        self.received: int | None = None
        self.over = False

    @property
    def status(self) -> int:
        """The exit status of a command that was stopped."""
        return 128 + (self.received or signal.SIGINT)

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, whichever signal it was, unless the command is over."""
        del frame
        if not self.over:
            self.received = number
            raise KeyboardInterrupt

    def once_more(self, lost: Any) -> None:
        """Repeat a signal whose exception Python dropped because it met a destructor or a callback."""
        if lost.exc_type is not None and issubclass(lost.exc_type, KeyboardInterrupt):
            again = threading.Timer(0.01, signal.raise_signal, (self.received or signal.SIGINT,))
            again.daemon = True
            again.start()
        else:
            sys.__unraisablehook__(lost)


@contextmanager
def heeding_signals() -> Iterator[Stops]:
    """Let SIGTERM stop a command as Ctrl-C does. What is ignored, as by nohup and in the background, stays ignored."""
    stops = Stops()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    hook = sys.unraisablehook
    sys.unraisablehook = stops.once_more
    try:
        for number, handler in before.items():
            if handler != signal.SIG_IGN:
                signal.signal(number, stops.stop)
        yield stops
    finally:
        stops.over = True
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_in_peace() -> None:
    """Let no signal that comes while the interpreter ends change the status of a command that is over."""
    atexit.unregister(_ignore)
    atexit.register(_ignore)


def _ignore() -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
