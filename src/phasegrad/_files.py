"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

#: What to do about an error, where it is not merely to choose another place.
_ADVICE = {
    errno.ENOENT: "Make its folder first, or choose another place.",
    errno.ENOSPC: "Choose another place or make room there.",
    errno.EDQUOT: "Choose another place or make room there.",
    errno.EISDIR: "Name a file.",
}
_UNFINISHED = re.compile(r"\..+\.[a-z0-9_]{8}\.part")


def write_whole(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Let ``write`` fill a file beside ``path`` and move it there when it is complete.

    Raises OSError with a sentence that names the path; what was there before is then still there.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "Choose another place.")
        raise OSError(f"Could not write {path}: {error.strerror}. {advice}") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, data: Any) -> None:
    """Write ``data`` as JSON, whole or not at all."""
    write_bytes(path, (json.dumps(data, indent=1) + "\n").encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content``, whole or not at all."""
    write_whole(path, lambda file: file.write(content))


def is_unfinished(path: Path) -> bool:
    """Whether this is what `write_whole` leaves behind when its process is killed in the middle."""
    return _UNFINISHED.fullmatch(path.name) is not None
