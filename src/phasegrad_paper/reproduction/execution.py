"""Running pieces: in this process, or side by side in processes of this machine.

Every way gives the same answers: a piece runs on one thread, and its result passes through JSON.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any, TypeAlias

import threadpoolctl

from phasegrad_paper.studies import Piece

_STOPS = (signal.SIGINT, signal.SIGTERM)
_THREAD_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Answer:
    """What came back from a piece."""

    text: str = ""  # its result as JSON; empty if it failed
    wall: float = 0.0  # seconds it took
    cpu: float = 0.0
    warnings: tuple[str, ...] = ()  # what it warned of
    error: str = ""  # if it failed, the last line of its traceback
    trace: str = ""  # and all of it


Runner: TypeAlias = Callable[[Sequence[Piece]], Generator[tuple[Piece, Answer]]]


def compute(piece: Piece) -> Answer:
    """Run a piece on one thread; an exception in it is an answer too, so that other pieces go on."""
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        with threadpoolctl.threadpool_limits(limits=1), warnings.catch_warnings(record=True) as noted:
            text = json.dumps(piece.run())
    except Exception as error:
        return failure(error)
    words = tuple(dict.fromkeys(str(warning.message) for warning in noted))
    return Answer(text, time.perf_counter() - wall, time.process_time() - cpu, words)


def failure(error: BaseException) -> Answer:
    """Return the answer of a piece that raised this."""
    last = traceback.format_exception_only(error)[-1].strip()
    return Answer(error=last, trace="".join(traceback.format_exception(error)))


def longest_first(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces in the order that leaves no long one for the end."""
    return sorted(pieces, key=lambda piece: -piece.weight)


def run_here(pieces: Sequence[Piece], workers: int) -> Generator[tuple[Piece, Answer]]:
    """Yield every piece with its answer as it arrives, from so many processes side by side; with 1 from this one."""
    ordered = longest_first(pieces)
    workers = min(workers, len(ordered))
    return _in_processes(ordered, workers) if workers > 1 else _in_this_process(ordered)


def _in_this_process(pieces: Sequence[Piece]) -> Generator[tuple[Piece, Answer]]:
    for piece in pieces:
        with _heeding_interrupts():
            answer = compute(piece)
        yield piece, answer


@contextmanager
def _heeding_interrupts(*, at_once: bool = True) -> Iterator[None]:
    """Raise KeyboardInterrupt at the end if there was a Ctrl-C, whatever became of it inside.

    Training answers Ctrl-C with what it has so far, which is not the result of the piece. With ``at_once`` False
    nothing inside notices it. SIGTERM is heeded likewise where the process has an answer to it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Callable[[int, FrameType | None], Any]]
    before = {number: handler for number in _STOPS if callable(handler := signal.getsignal(number))}
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        if at_once:
            before[number](number, frame)

    for number in before:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if noted:
            before[noted[0]](noted[0], None)
            raise KeyboardInterrupt


def _in_processes(pieces: Sequence[Piece], workers: int) -> Generator[tuple[Piece, Answer]]:
    """Run pieces in a pool whose processes end at once when this one lets go of a pipe, on purpose or by dying."""
    context = get_context("spawn")
    far_end, near_end = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_prepare_worker, initargs=(far_end,))
    try:
        with _holding_interrupts():
            futures = {pool.submit(compute, piece): piece for piece in pieces}
        for future in as_completed(futures):
            yield futures[future], _answer_of(future)
    except BaseException:
        near_end.close()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        near_end.close()
        far_end.close()


@contextmanager
def _holding_interrupts() -> Iterator[None]:
    """Put signals to stop off until the end. Processes started inside never see them: they inherit the blocking."""
    with _heeding_interrupts(at_once=False):
        if not hasattr(signal, "pthread_sigmask"):
            yield
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _answer_of(future: Future[Answer]) -> Answer:
    try:
        return future.result()
    except BrokenProcessPool:
        raise ChildProcessError(
            "A worker process ended before its piece did: it was killed, perhaps for lack of memory. "
            "Finished pieces are kept and the same command goes on; --workers 1 needs the least memory."
        ) from None
    except Exception as error:  # the piece or its answer could not be sent
        return failure(error)


def _prepare_worker(pipe: Connection) -> None:
    """Leave signals to stop to the parent, use one thread, and end when the parent closes the pipe or dies."""
    for number in _STOPS:
        signal.signal(number, signal.SIG_IGN)
    os.environ.update(dict.fromkeys(_THREAD_COUNTS, "1"))  # for libraries that are loaded later
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()


def _end_with(pipe: Connection) -> None:
    try:
        pipe.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)
