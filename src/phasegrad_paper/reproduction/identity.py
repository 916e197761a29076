"""What a reproduction's figures depend on: the code, the packages and the number of seeds."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import phasegrad
import phasegrad_paper

FORMAT = 3
_PACKAGES = ("phasegrad", "numpy", "scipy", "numba", "scikit-learn", "statsmodels", "torch")
# Rooms that only show results, and files that are neither code nor data.
_WITHOUT_EFFECT = ("pictures", "report", "cli")
_ENDINGS = (".py", ".json", ".csv")


def versions() -> dict[str, str]:
    """Return the versions of everything the figures depend on."""
    return {"python": platform.python_version()} | {name: _version(name) for name in _PACKAGES}


@cache
def fingerprint() -> str:
    """Return a digest of all code and data, of the library and of this package, that a figure can depend on."""
    roots = (Path(str(package.__file__)).parent for package in (phasegrad, phasegrad_paper))
    return hashlib.sha256("".join(digest_of_sources(root) for root in roots).encode()).hexdigest()


def digest_of_sources(root: Path) -> str:
    """Return a digest of names and contents of the sources in a folder, less those that only show results."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*"), key=lambda path: path.relative_to(root).as_posix()):
        name = path.relative_to(root)
        if path.suffix in _ENDINGS and name.parts[0] not in _WITHOUT_EFFECT:
            content = path.read_bytes()
            digest.update(f"{name.as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


@dataclass(frozen=True)
class Identity:
    """What must be the same for results to belong together."""

    versions: dict[str, str]  # of Python and the packages
    sources: str  # digest of the package's own code and data
    seeds: int | None  # the number of seeds every study is held to; None for all, as published
    format: int = FORMAT  # of the files

    @classmethod
    def here(cls, seeds: int | None = None) -> Identity:
        """Return the identity of what is running now."""
        return cls(versions(), fingerprint(), seeds)

    @classmethod
    def from_dict(cls, data: Any) -> Identity:
        """Return the identity that `as_dict` described; ValueError for anything else."""
        kinds = {"versions": dict, "sources": str, "seeds": int | None, "format": int}
        if not isinstance(data, dict) or any(
            key not in data or not isinstance(data[key], kind) for key, kind in kinds.items()
        ):
            raise ValueError("This does not describe a reproduction.")
        return cls(**{key: data[key] for key in kinds})

    def as_dict(self) -> dict[str, Any]:
        """Return the identity as plain data."""
        return asdict(self)

    def differences(self, other: Identity) -> list[str]:
        """Return what differs, in words: the other's first, then one's own."""
        found = []
        if other.format != self.format:
            found.append(f"format {other.format} instead of {self.format}")
        if other.seeds != self.seeds:
            found.append(f"{_seeds(other.seeds)} instead of {_seeds(self.seeds)}")
        for name in sorted({*self.versions, *other.versions}):
            before, now = other.versions.get(name, "not installed"), self.versions.get(name, "not installed")
            if before != now:
                found.append(f"{name} {before} instead of {now}")
        if other.sources != self.sources:
            found.append(f"other sources of phasegrad ({other.sources[:8]} instead of {self.sources[:8]})")
        return found


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _seeds(number: int | None) -> str:
    return "all seeds" if number is None else f"{number} {'seed' if number == 1 else 'seeds'}"
