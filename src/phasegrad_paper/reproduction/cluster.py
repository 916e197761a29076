"""Running pieces on a dask.distributed cluster whose workers have the same code and packages as this process."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from phasegrad._validation import require
from phasegrad_paper.reproduction.execution import Answer, Runner, compute, failure, longest_first
from phasegrad_paper.reproduction.identity import Identity
from phasegrad_paper.studies import Piece

SECONDS_TO_CONNECT = 5


@contextmanager
def cluster_runner(address: str) -> Iterator[Runner]:
    """Connect to a scheduler, such as ``tcp://127.0.0.1:8786``, check its workers, and yield what runs pieces there.

    ImportError says that dask.distributed is not installed, OSError that nothing answers, ValueError that it is no
    address of a scheduler with workers that all have the code and packages of this process.
    """
    require(("distributed",), "cluster", "Running on a cluster")
    client = _connect(address)
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)  # what it reports with tracebacks is raised here, as sentences
    try:
        here = Identity.here()
        _check_workers(client, address, here)
        yield lambda pieces: _run(client, address, here, pieces)
    finally:
        client.close()
        log.setLevel(level)


def _connect(address: str) -> Any:
    from distributed import Client

    # In a thread of its own: the caller, a notebook perhaps, may have a running event loop.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, _knock(address)).result()
    return Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)


async def _knock(address: str) -> None:
    """Shake hands with a scheduler; a client that never got through to one would linger instead."""
    from distributed.comm.core import connect

    try:
        comm = await connect(address, timeout=SECONDS_TO_CONNECT)
        await comm.close()
    except OSError:
        raise OSError(
            f"No dask scheduler answered at {address} within {SECONDS_TO_CONNECT} seconds. "
            "Start one with 'dask scheduler' and workers with 'dask worker ADDRESS', or leave --cluster out."
        ) from None
    except Exception:  # no address at all, or an answer that only something else would give
        raise ValueError(
            f"--cluster must be the address of a dask scheduler, such as tcp://127.0.0.1:8786. Got {address!r}."
        ) from None


def _check_workers(client: Any, address: str, here: Identity) -> None:
    """Refuse a cluster whose workers would compute something else."""
    found = client.run(_identity, on_error="return")
    if not found:
        raise ValueError(f"The scheduler at {address} has no workers. Start some with 'dask worker {address}'.")
    for worker, answer in found.items():
        if isinstance(answer, BaseException):
            raise ValueError(
                f"The worker {worker} cannot run phasegrad: {answer}. Install the same phasegrad there as here."
            )
        if differences := here.differences(Identity.from_dict(answer)):
            raise ValueError(f"The worker {worker} has {'; '.join(differences)}. Install there what is installed here.")


def _identity() -> dict[str, Any]:
    return Identity.here().as_dict()


def _compute(piece: Piece, expected: Identity) -> Answer:
    """Run a piece on a worker, which may have joined after the others were checked."""
    if differences := Identity.here().differences(expected):
        return failure(ValueError(f"this worker should have {'; '.join(differences)}"))
    return compute(piece)


def _run(client: Any, address: str, here: Identity, pieces: Sequence[Piece]) -> Generator[tuple[Piece, Answer]]:
    """Submit everything, longest first; dask gives the pieces of a worker that dies to another one."""
    from distributed import as_completed

    run = uuid.uuid4().hex[:8]
    ordered = longest_first(pieces)
    futures = {
        client.submit(_compute, piece, here, key=f"{piece.key}-{run}", priority=-place): piece
        for place, piece in enumerate(ordered)
    }
    try:
        for future in as_completed(list(futures), loop=client.loop):
            yield futures[future], _answer_of(future, address)
    finally:
        client.cancel(list(futures))


def _answer_of(future: Any, address: str) -> Answer:
    if future.status in ("cancelled", "lost"):
        raise ConnectionError(
            f"The cluster at {address} went away. Finished pieces are kept and the same command goes on."
        )
    error = future.exception()
    answer: Answer = failure(error) if error is not None else future.result()
    return answer
