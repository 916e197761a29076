"""The folder of a reproduction: finished pieces, each a file of its own, and what was made of them.

Layout: ``run.json`` says whose the folder is; ``pieces/`` holds the results of the finished pieces; ``results.json``,
``tables/``, ``figures/``, ``claims.md`` and ``index.html`` are made from them. Every file is written whole,
``run.json`` first, so a process can be killed at any moment and the next one goes on.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phasegrad._files import is_unfinished, write_json
from phasegrad.reproduction.execution import Answer
from phasegrad.reproduction.identity import Identity
from phasegrad.studies import Piece

RUN = "run.json"
RESULTS = "results.json"
_MARK = "phasegrad"
_PIECE = re.compile(r".+-([0-9a-f]{12})\.json")
# What --fresh deletes: in the subfolders first, run.json last, so that the folder stays ours until the end.
_OWN = {"pieces": _PIECE, "tables": re.compile(r".+\.csv"), "figures": re.compile(r".+\.(svg|png)")}
_OWN_FILES = ("index.html", "claims.md", RESULTS, RUN)


@dataclass(frozen=True)
class ResultsFolder:
    """Results of one identity. Made by `open_folder`, which holds a lock on it."""

    path: Path
    results: dict[str, Any]  # what the finished pieces returned, by `Piece.identity`

    def keep(self, piece: Piece, answer: Answer) -> None:
        """Write the answer of a finished piece, whole, and remember its result."""
        record = {
            "title": piece.title,
            "function": f"{piece.function.__module__}.{piece.function.__qualname__}",
            "arguments": dict(piece.arguments),
            "identity": piece.identity,
            "seconds": {"wall": answer.wall, "cpu": answer.cpu},
            "result": json.loads(answer.text),
        }
        plain = json.loads(json.dumps(record))  # as it will be read, so that its checksum is the same
        write_json(self.path / "pieces" / f"{piece.key}.json", {"checksum": _checksum(plain), **plain})
        self.results[piece.identity] = record["result"]

    def write_results(self, data: dict[str, Any]) -> None:
        """Write ``results.json``."""
        write_json(self.path / RESULTS, data)


def cpu_seconds_of(path: Path) -> float | None:
    """Return the processor time that all pieces of a finished reproduction took; None if there is none."""
    if not (path / RESULTS).exists():
        return None
    return sum(float(record["seconds"]["cpu"]) for record in _records(path / "pieces"))


@contextmanager
def open_folder(path: Path, identity: Identity, *, fresh: bool = False) -> Iterator[ResultsFolder]:
    """Open the folder of a reproduction, or make it, and hold it until the end.

    It must be new, empty, or of a reproduction of the same identity, which goes on; ``fresh`` deletes the files of an
    earlier one, whatever its identity or state, and no others. ValueError says that the folder belongs to something
    else, to another identity or to a running process, or is damaged; OSError that it cannot be made, read or written.
    """
    _make(path)
    with _only_one(path):
        _check_ownership(path)
        _remove_unfinished(path)
        if fresh:
            _delete_own(path)
        if (path / RUN).exists():
            _check_identity(path / RUN, identity)
        else:
            write_json(path / RUN, {_MARK: "reproduction", **identity.as_dict()})
        _make(path / "pieces")
        yield ResultsFolder(path, {record["identity"]: record["result"] for record in _records(path / "pieces")})


def _make(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise ValueError(f"{path} is a file. Name a folder.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"Could not make the folder {path}: {error.strerror}. Choose another place.") from error


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Refuse a folder that another process is working in; the system lets go of the lock when a process ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on Windows
        yield
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"Another reproduction is at work in {path}. Wait for it to end, or name another folder with --out."
            ) from None
        except OSError:  # a file system without locks: two runs at once are then the caller's to avoid
            pass
        yield
    finally:
        os.close(handle)


def _check_ownership(path: Path) -> None:
    """Refuse a folder with files that no reproduction wrote; one killed while it wrote its first file is empty."""
    empty = all(is_unfinished(entry) and entry.name.startswith(f".{RUN}.") for entry in path.iterdir())
    try:
        ours = _MARK in json.loads(_read(path / RUN)) if (path / RUN).exists() else empty
    except (ValueError, TypeError):
        ours = True  # damaged: nothing is deleted unless asked for
    if not ours:
        raise ValueError(
            f"{path} holds files that are not of a reproduction; nothing there was touched. "
            "Name an empty or a new folder with --out."
        )


def _check_identity(path: Path, identity: Identity) -> None:
    """Refuse to go on with the results of another version, or with a file that does not say whose they are."""
    try:
        there = Identity.from_dict(json.loads(_read(path)))
    except ValueError:
        raise _damaged(path) from None
    if differences := identity.differences(there):
        raise ValueError(
            f"{path.parent} holds a reproduction made with {'; '.join(differences)}. "
            "Keep it and name another folder with --out, or delete it and start anew with --fresh."
        )


def _records(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what is kept of every finished piece; a damaged one is an error, not a piece to compute again."""
    for path in sorted(folder.iterdir()):
        name = _PIECE.fullmatch(path.name)
        if name is None:
            continue
        try:
            record = json.loads(_read(path))
            checksum = record.pop("checksum")
            sound = record["identity"] == name[1] and checksum == _checksum(record)
        except (ValueError, KeyError, TypeError, AttributeError):
            sound = False
        if not sound:
            raise _damaged(path)
        yield record


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise OSError(f"Could not read {path}: {error.strerror}. Name another folder with --out.") from error


def _checksum(record: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _damaged(path: Path) -> ValueError:
    return ValueError(
        f"{path} is damaged: it is not what phasegrad wrote. "
        "Delete the whole reproduction and start anew with --fresh, or name another folder with --out."
    )


def _remove_unfinished(path: Path) -> None:
    """Remove what killed processes left half written, here and in the subfolders that are ours."""
    for place in (path, *(path / name for name in _OWN)):
        if place.is_dir():
            for entry in place.iterdir():
                if is_unfinished(entry):
                    entry.unlink(missing_ok=True)


def _delete_own(path: Path) -> None:
    """Delete the files of a reproduction and nothing else."""
    try:
        for name, pattern in _OWN.items():
            place = path / name
            if place.is_dir() and not place.is_symlink():
                for entry in place.iterdir():
                    if pattern.fullmatch(entry.name) and not entry.is_dir():
                        entry.unlink()
                if not any(place.iterdir()):
                    place.rmdir()
        for name in _OWN_FILES:
            (path / name).unlink(missing_ok=True)
    except OSError as error:
        raise OSError(f"Could not empty {path}: {error.strerror}. Name another folder with --out.") from error
