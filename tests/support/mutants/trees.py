"""Copies of the tree: one that stays as it is and keeps compiled code, and one per worker in which changes are made."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

from mutants.changes import Change

#: What tools make and is not part of the source, anywhere and at the top.
CACHES = {"__pycache__", ".hypothesis", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
TOP = {".git", ".venv", "build", "dist", "reproduction"}


def files_of(root: Path) -> list[str]:
    """Return the files of a tree, without what tools made, as paths relative to it."""
    found = []
    for folder, folders, names in os.walk(root):
        out = CACHES | TOP if Path(folder) == root else CACHES
        folders[:] = sorted(name for name in folders if name not in out and not name.endswith(".egg-info"))
        found += [(Path(folder) / name).relative_to(root).as_posix() for name in sorted(names)]
    return found


def digest(*contents: bytes) -> str:
    """Return a short name for some contents."""
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in contents)).hexdigest()[:16]


def renew_base(root: Path, base: Path) -> None:
    """Make the base a copy of the tree; files that are the same keep their time, and with it their compiled code."""
    wanted = files_of(root)
    for name in set(files_of(base)) - set(wanted):
        (base / name).unlink()
    for name in wanted:
        target = base / name
        if not target.exists() or target.read_bytes() != (root / name).read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target)
    for cache in root.glob("src/*/kernels/__pycache__"):
        target = base / cache.relative_to(root)
        if not target.exists():
            shutil.copytree(cache, target)


class Slot:
    """A worker's copy of the tree, in which one file at a time is changed."""

    def __init__(self, base: Path, place: Path) -> None:
        self.base, self.place = base, place
        # Times are kept: by them Python and Numba know that what they compiled is still good.
        shutil.copytree(base, place)
        self.changed: Path | None = None

    def change(self, change: Change | None) -> None:
        """Restore what was changed before and make this change."""
        if self.changed is not None:
            shutil.copy2(self.base / self.changed, self.place / self.changed)
        self.changed = None if change is None else Path(change.path)
        if change is not None:
            file = self.place / change.path
            before = file.stat()
            file.write_bytes(change.apply(file.read_text(encoding="utf-8")).encode())
            # Another time than that of the original, so that its compiled file cannot stand for the changed one.
            os.utime(file, (before.st_atime + 10, before.st_mtime + 10))


def enter(place: Path, *, writes: bool) -> None:
    """Let this process, a child, and all that it starts work in a copy of the tree, writing compiled files or not."""
    os.chdir(place)
    source = str(place / "src")
    own = {str(Path(__file__).parents[2]), str(Path(__file__).parents[3]), ""}
    sys.path[:] = [source, *(path for path in sys.path if path not in own)]
    os.environ["PYTHONPATH"] = source
    sys.dont_write_bytecode = not writes
    if not writes:
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
