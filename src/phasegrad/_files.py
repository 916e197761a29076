"""Files: written so that a reader never sees half of one, and read as if a stranger had written them.

An archive is one ``.npz``: arrays, a JSON header with everything else, and a digest of both, so that no change or loss
goes unnoticed. It is read by its headers first, without pickle and without evaluating anything, and only what is asked
for.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import re
import secrets
import stat
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

#: What to do about an error, where it is not merely to choose another place.
_ADVICE = {
    errno.ENOENT: "Make its folder first, or choose another place.",
    errno.ENOSPC: "Choose another place or make room there.",
    errno.EDQUOT: "Choose another place or make room there.",
    errno.EISDIR: "Name a file.",
}
_UNFINISHED = re.compile(r"\..+\.[a-z0-9_]{8}\.part")
# Characters of a name that the name of its unfinished file repeats: no file system takes more than 255 bytes.
_NAME_KEPT = 60
#: Bytes that a JSON file may have. Lists of lists take some twenty times as much memory.
MOST_JSON = 2**23
# Bytes that the arrays of an archive may have where the archive itself is smaller, because they are compressed.
_MOST_INFLATED = 2**24
_MOST_DIRECTORY = 2**20
# Digits of a whole number: the states of random streams have 128 bits.
_MOST_DIGITS = 40
_LONGEST_REASON = 300
#: The header of an array as NumPy writes it, of the kinds that archives here hold.
_ARRAY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>](?:f8|i8|U\d{1,8}))', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18}, )*(?:\d{1,18},?)?)\), \} *\n",
    re.DOTALL,
)
#: The encoding of text files that users give: a byte order mark, as spreadsheets write it, is skipped.
TEXT_ENCODING = "utf-8-sig"
_STORED, _DEFLATED = 0, 8
_HEADER, _DIGEST = "header", "digest"
#: The version of archives. Version 2, which phasegrad 0.2 to 0.7 wrote, had no digest.
ARCHIVE_VERSION = 3
_UNDIGESTED = 2
_UNREADABLE = (
    zipfile.BadZipFile, zlib.error, struct.error, ValueError, EOFError, OSError, AttributeError, KeyError, IndexError,
    OverflowError, RuntimeError, NotImplementedError, MemoryError,
)  # fmt: skip
_UNFIT = (
    KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError, MemoryError,
)  # fmt: skip


# Writing


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Let ``write`` fill a file beside ``path`` and move it there when it is complete.

    A file that is there keeps its permissions, and a symbolic link stays: its target is replaced. Devices and pipes are
    written to. Raises OSError with a sentence that names the path; what was there before is then still there.
    """
    with _writing(path):
        there = _writable(path)
        if there is not None and _is_stream(there):
            content = io.BytesIO()
            write(content)
            _write_through(path, there, content.getbuffer())
        else:
            _replace(Path(os.path.realpath(path)), there, write)


def check_place(path: Path) -> None:
    """Raise the OSError that writing there would, before there is anything to write; nothing there is changed."""
    with _writing(path):
        there = _writable(path)
        if there is None or not _is_stream(there):
            temporary = _beside(Path(os.path.realpath(path)))
            try:
                temporary.open("xb").close()
            finally:
                temporary.unlink(missing_ok=True)


def write_json(path: Path, data: Any) -> None:
    """Write ``data`` as JSON, whole or not at all."""
    write_bytes(path, json_text(data).encode("utf-8"))


def json_text(data: Any) -> str:
    """Return ``data`` as the text of a JSON file; numbers that JSON does not have, such as NaN, become null."""
    return json.dumps(_without_nan(data), indent=1, allow_nan=False) + "\n"


def _without_nan(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _without_nan(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_without_nan(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content``, whole or not at all."""
    write_whole(path, lambda file: file.write(content))


def write_archive(path: Path, kind: str, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a header and arrays by name as one ``.npz``, whole or not at all; `read_archive` knows it by its kind."""
    full = {"format": f"phasegrad {kind}", "version": ARCHIVE_VERSION, **header}
    text = json.dumps(full, default=lambda each: np.asarray(each).tolist())
    content: dict[str, Any] = {_HEADER: np.array(text), **{name: np.asarray(each) for name, each in arrays.items()}}
    content[_DIGEST] = np.array(archive_digest(content))
    write_whole(path, lambda file: np.savez(file, **content))


def archive_digest(content: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of arrays with their names, kinds and shapes, whatever the byte order of the machine."""
    found = hashlib.sha256()
    for name in sorted(content):
        array = np.asarray(content[name])
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        found.update(f"{name!r} {plain.dtype.str} {array.shape}\n".encode("utf-8", "surrogatepass"))
        found.update(plain.tobytes())
    return found.hexdigest()


def is_unfinished(path: Path) -> bool:
    """Whether this is what `write_whole` leaves behind when its process is killed in the middle."""
    return _UNFINISHED.fullmatch(path.name) is not None


def is_standard_output(path: Path) -> bool:
    """Whether this is the file, pipe or device that standard output goes to."""
    with suppress(OSError):
        return os.path.samestat(path.stat(), os.fstat(1))
    return False


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "Choose another place.")
        raise OSError(f"Could not write {printable(path)}: {error.strerror or error}. {advice}") from error


def _writable(path: Path) -> os.stat_result | None:
    """Return what is there, None if nothing is; OSError if it must not be written to."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(there.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    # Nobody may write to a file without a single such permission, the superuser neither.
    if not os.access(path, os.W_OK) or not there.st_mode & 0o222:
        raise PermissionError(errno.EACCES, "It is read-only")
    return there


def _is_stream(there: os.stat_result) -> bool:
    """Whether this is to be written to rather than replaced: no plain file, or one that is our standard output."""
    return not stat.S_ISREG(there.st_mode) or _own_stream(there) is not None


def _own_stream(there: os.stat_result) -> int | None:
    for number in (1, 2):
        with suppress(OSError):
            if os.path.samestat(there, os.fstat(number)):
                return number
    return None


def _write_through(path: Path, there: os.stat_result, content: memoryview) -> None:
    own = _own_stream(there)
    if own is not None:
        (sys.stdout if own == 1 else sys.stderr).flush()
    with path.open("wb") if own is None else os.fdopen(os.dup(own), "wb") as file:
        file.write(content)


def _replace(path: Path, there: os.stat_result | None, write: Callable[[IO[bytes]], object]) -> None:
    mode = 0o666 if there is None else stat.S_IMODE(there.st_mode)
    temporary = _beside(path)
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            write(file)
            file.flush()
            if there is not None:
                _keep_owner_and_mode(temporary, there)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _keep_owner_and_mode(path: Path, there: os.stat_result) -> None:
    if hasattr(os, "chown"):
        with suppress(PermissionError):  # only the superuser may give files away
            os.chown(path, there.st_uid, there.st_gid)
    path.chmod(stat.S_IMODE(there.st_mode))


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name[:_NAME_KEPT]}.{secrets.token_hex(4)}.part")


# Reading


def printable(words: object) -> str:
    """Return text in which control characters, which could take hold of a terminal, are written out."""
    return "".join(
        each if each.isprintable() or category(each) == "Zs" else each.encode("unicode_escape").decode("ascii")
        for each in str(words)
    )


def read_json(path: Path) -> Any:
    """Return what a JSON file holds. ValueError if it is no such file, too large or nested too deeply, or no file."""
    with open_plain(path) as (file, size):
        if size > MOST_JSON:
            raise ValueError(f"{printable(path)} is larger than {MOST_JSON >> 20} MB. Name another file.")
        text = file.read(MOST_JSON + 1).decode("utf-8")
    return parse_json(text)


def parse_json(text: str, *, finite: bool = False) -> Any:
    """Return what a JSON text stands for; ValueError where it is none, or holds what no file of this package does."""
    options: dict[str, Any] = {"parse_float": _finite_float, "parse_constant": _finite_float} if finite else {}
    try:
        return json.loads(text, parse_int=_bounded_int, **options)
    except RecursionError:
        raise ValueError("lists in its JSON are nested too deeply") from None


def read_archive(
    path: Path, kind: str, wanted: Callable[[str], bool]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header of an archive and the arrays whose names are wanted.

    However much a small file promises, at most 16 MB are read of it. Everything that can be wrong with it is one
    ValueError, a change since it was written too; FileNotFoundError and OSError if it is not there or cannot be read.
    An archive of the version before has no digest: whoever makes something of it checks that it is complete.

    Parameters
    ----------
    path : Path
    kind : str
        What it should be, such as "model": its header says "phasegrad model".
    wanted : callable
        Whether an array of this name is read; together they must be all that were written.
    """
    header, content = _opened(path, kind, wanted)
    if header["version"] == _UNDIGESTED:
        content.pop(_DIGEST, None)
    else:
        _check_digest(path, kind, content)
    del content[_HEADER]
    return header, content


def check_archive(path: Path, kind: str) -> None:
    """Raise ValueError if a file does not say of itself that it is an archive of this kind; its arrays are not read."""
    _opened(path, kind, lambda _: False)


def _check_digest(path: Path, kind: str, content: dict[str, NDArray[Any]]) -> None:
    """Take the digest out of the content of an archive and refuse what it does not belong to."""
    digest = content.pop(_DIGEST, None)
    if digest is None:
        raise ValueError(f"{printable(path)} is a damaged {kind} file: it has no digest.")
    if str(digest) != archive_digest(content):
        raise ValueError(
            f"{printable(path)} is a damaged {kind} file: something in it was changed or lost after it was written, "
            "for its digest does not fit. Take a copy that was not changed, or train it again."
        )


def _opened(path: Path, kind: str, wanted: Callable[[str], bool]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header of an archive, and the arrays in it that are wanted, the header and the digest among them."""
    place = printable(path)
    with open_plain(path) as (file, size):
        try:
            arrays = _arrays(file, size, lambda name: name in (_HEADER, _DIGEST) or wanted(name))
        except _UNREADABLE as error:
            raise ValueError(
                f"{place} is not a {kind} file, is damaged, or holds Python objects, which are never loaded: "
                f"{_reason(error)}."
            ) from None
    try:
        header = parse_json(str(arrays[_HEADER]), finite=True)
        ours = header["format"] == f"phasegrad {kind}"
    except (KeyError, TypeError, json.JSONDecodeError):
        ours = False
    except (ValueError, MemoryError) as error:
        raise ValueError(f"{place} is a damaged {kind} file: {_reason(error)}.") from None
    if not ours:
        raise ValueError(f"{place} is an .npz file, but not a phasegrad {kind}.")
    found = header.get("version")
    if found not in (_UNDIGESTED, ARCHIVE_VERSION) or isinstance(found, bool):
        raise ValueError(
            f"{place} has {kind} format {found if isinstance(found, int) else 'unknown'}; this version of phasegrad "
            f"reads formats {_UNDIGESTED} and {ARCHIVE_VERSION}. Read it with the version that wrote it, or train it "
            "again."
        )
    return header, arrays


@contextmanager
def made_from(path: Path, kind: str) -> Iterator[None]:
    """Say in one sentence that names the file whatever goes wrong while something is made of its content."""
    try:
        yield
    except _UNFIT as error:
        raise ValueError(f"{printable(path)} is a damaged {kind} file: {_reason(error)}.") from None


@contextmanager
def open_plain(path: Path) -> Iterator[tuple[IO[bytes], int]]:
    """Open a file to read, with its size; a pipe or a device, whose end may never come, is refused."""
    place = printable(path)
    try:
        kind = path.stat().st_mode
        if stat.S_ISDIR(kind):
            raise ValueError(f"{place} is a folder. Name a file.")
        if not stat.S_ISREG(kind):
            raise ValueError(f"{place} is a device or a pipe. Name a file.")
        file = path.open("rb")
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {place}.") from None
    except OSError as error:
        raise OSError(f"Could not read {place}: {error.strerror}. Name another file.") from error
    with file:
        yield file, os.fstat(file.fileno()).st_size


def _arrays(file: IO[bytes], size: int, wanted: Callable[[str], bool]) -> dict[str, NDArray[Any]]:
    _check_directory(file, size)
    with zipfile.ZipFile(file) as archive:
        members: dict[str, zipfile.ZipInfo] = {}
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if wanted(name):
                if name in members:
                    raise ValueError(f"it holds {name!r:.40} twice")
                members[name] = info
        if sum(info.file_size for info in members.values()) > max(size, _MOST_INFLATED):
            raise ValueError(f"what it holds is larger than {max(size, _MOST_INFLATED) >> 20} MB")
        return {name: _array(archive, name, info) for name, info in members.items()}


def _check_directory(file: IO[bytes], size: int) -> None:
    """Refuse what is no archive, and directories with room for more members than any archive of this package has."""
    start = file.read(6)
    if start.startswith(b"\x93NUMPY"):
        raise ValueError("it is a single array (.npy)")
    if size < 22:
        raise ValueError("it is too short")
    file.seek(-min(size, 42), os.SEEK_END)
    end = file.read()
    length = struct.unpack("<I", end[-10:-6])[0]
    # Where nothing lies beyond 2 GB a directory in the long form can only be there to mislead.
    long_form = end.startswith(b"PK\x06\x07") and size < 2**31
    if end[-22:-18] != b"PK\x05\x06" or long_form or length > _MOST_DIRECTORY:
        raise ValueError("it does not end as an .npz file does")
    file.seek(0)


def _array(archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> NDArray[Any]:
    if info.flag_bits & 1:
        raise ValueError(f"{name!r:.40} is encrypted")
    if info.compress_type not in (_STORED, _DEFLATED):
        raise ValueError(f"{name!r:.40} is compressed by a method that is not known")
    with archive.open(info) as member:
        content = member.read(info.file_size + 1)
    head = _ARRAY.match(content)
    if head is None or head.end() != 10 + struct.unpack("<H", content[8:10])[0]:
        raise ValueError(f"{name!r:.40} is no array of numbers or of text")
    kind, shape = np.dtype(head[1].decode()), tuple(int(each) for each in head[3].replace(b",", b" ").split())
    if len(content) - head.end() != kind.itemsize * math.prod(shape):
        raise ValueError(f"{name!r:.40} has another size than it says")
    array = np.frombuffer(content, kind, offset=head.end()).reshape(shape, order="F" if head[2] == b"True" else "C")
    return array.astype(kind.newbyteorder("="), copy=False)


def _reason(error: BaseException) -> str:
    """Return what an error says as the end of a sentence."""
    if isinstance(error, MemoryError):
        return "it needs more memory than there is"
    if isinstance(error, RecursionError):
        return "its values are nested too deeply"
    words = f"it has no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
    words = printable(" ".join(words.split())).rstrip(".")
    return words if len(words) <= _LONGEST_REASON else f"{words[:_LONGEST_REASON].rstrip()} ..."


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:40]} in its JSON is not finite")
    return number


def _bounded_int(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"the number {text[:_MOST_DIGITS]}... in its JSON is too large")
    return int(text)
