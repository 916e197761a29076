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

from phasegrad._files import (
    MOST_JSON,
    check_place,
    is_unfinished,
    printable,
    read_json,
    write_bytes,
    write_json,
)
from phasegrad_paper.reproduction.execution import Answer
from phasegrad_paper.reproduction.identity import Identity
from phasegrad_paper.studies import Piece

RUN = "run.json"
RESULTS = "results.json"
_MARK = "phasegrad"
_PIECE = re.compile(r".+-([0-9a-f]{12})\.json")
# What --fresh deletes: in the subfolders first, run.json last, so that the folder stays ours until the end.
_OWN = {"pieces": _PIECE, "tables": re.compile(r".+\.csv"), "figures": re.compile(r".+\.(svg|png)")}
# Differences that are said, and characters of each.
_MOST_SAID, _LONGEST_SAID = 8, 80
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
        # A measurement that has no answer is NaN, and stays so: null would be another result.
        content = (json.dumps({"checksum": _checksum(plain), **plain}, indent=1) + "\n").encode("utf-8")
        if len(content) > MOST_JSON:
            raise ValueError(f"The result of {piece.title!r} is larger than {MOST_JSON >> 20} MB. Let it return less.")
        write_bytes(self.path / "pieces" / f"{piece.key}.json", content)
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
        if _is_there(path / RUN):
            _check_identity(path / RUN, identity)
        else:
            write_json(path / RUN, {_MARK: "reproduction", **identity.as_dict()})
        _make(path / "pieces")
        _check_places(path)
        yield ResultsFolder(path, {record["identity"]: record["result"] for record in _records(path / "pieces")})


def _make(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise ValueError(f"{printable(path)} is a file. Name a folder.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"Could not make the folder {printable(path)}: {error.strerror}. Choose another place."
        ) from error


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


def _check_places(path: Path) -> None:
    """Refuse, before anything is computed, a folder in which a file of the reproduction could not be written."""
    for name in _OWN:
        if os.path.lexists(path / name) and not (path / name).is_dir():
            raise ValueError(f"{printable(path / name)} is a file. Remove it, or name another folder with --out.")
    for place in ("pieces/new.json", *_OWN_FILES):
        check_place(path / place)


def _check_ownership(path: Path) -> None:
    """Refuse a folder with files that no reproduction wrote; one killed while it wrote its first file is empty."""
    empty = all(is_unfinished(entry) and entry.name.startswith(f".{RUN}.") for entry in path.iterdir())
    try:
        ours = _MARK in read_json(path / RUN) if _is_there(path / RUN) else empty
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
        there = Identity.from_dict(read_json(path))
    except ValueError:
        raise _damaged(path) from None
    if differences := identity.differences(there):
        raise ValueError(
            f"{printable(path.parent)} holds a reproduction made with {_in_short(differences)}. "
            "Keep it and name another folder with --out, or delete it and start anew with --fresh."
        )


def _records(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what is kept of every finished piece; a damaged one is an error, not a piece to compute again."""
    if not folder.is_dir():
        raise _damaged(folder)
    for path in sorted(folder.iterdir()):
        name = _PIECE.fullmatch(path.name)
        if name is None:
            continue
        try:
            record = read_json(path)
            checksum = record.pop("checksum")
            sound = record["identity"] == name[1] and checksum == _checksum(record) and "result" in record
            sound = sound and float(record["seconds"]["cpu"]) >= 0
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            sound = False
        if not sound:
            raise _damaged(path)
        yield record


def _is_there(path: Path) -> bool:
    """Whether there is anything of this name, a link to nothing or to itself too."""
    return os.path.lexists(path)


def _in_short(differences: list[str]) -> str:
    more = f"; and {len(differences) - _MOST_SAID} more" if len(differences) > _MOST_SAID else ""
    return "; ".join(printable(" ".join(each[:_LONGEST_SAID].split())) for each in differences[:_MOST_SAID]) + more


def _checksum(record: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _damaged(path: Path) -> ValueError:
    return ValueError(
        f"{printable(path)} is damaged: it is not what phasegrad wrote. "
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
