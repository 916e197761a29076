"""Pieces: the units that work is cut into, so that it can stop, go on, and run elsewhere."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Piece:
    """One call whose result is plain data: a function of this package and arguments that JSON can hold.

    Two pieces with the same function and arguments are the same piece, whatever they are called; it is computed once.
    """

    title: str  # what a person sees while it runs
    function: Callable[..., Any]  # at the top of a module, so that another process can import it
    arguments: Mapping[str, Any] = field(default_factory=dict)
    weight: float = 1.0  # how long it takes, relative to other pieces

    @property
    def key(self) -> str:
        """A name for files: readable first, then a digest of the function and all arguments."""
        call = [self.function.__module__, self.function.__qualname__, self.arguments]
        digest = hashlib.sha256(json.dumps(call, sort_keys=True).encode()).hexdigest()[:12]
        readable = re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")
        return f"{readable[:60]}-{digest}"

    @property
    def identity(self) -> str:
        """The digest alone: what makes two pieces the same."""
        return self.key.rsplit("-", 1)[1]

    def run(self) -> Any:
        """Return what the function returns."""
        return self.function(**self.arguments)
