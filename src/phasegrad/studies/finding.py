"""What a study returns: data as plain numbers, and checks that can fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any

_RELATIONS: dict[str, Callable[[float, float], bool]] = {
    ">=": lambda measured, bound: measured >= bound,
    "<=": lambda measured, bound: measured <= bound,
}


@dataclass(frozen=True)
class Check:
    """One figure against its bound. A figure that is not a number does not pass."""

    name: str
    measured: float
    relation: str
    bound: float

    @property
    def passed(self) -> bool:
        """Whether the figure keeps its bound."""
        return bool(_RELATIONS[self.relation](self.measured, self.bound))

    def as_dict(self) -> dict[str, Any]:
        """Return the check as plain data."""
        return {**asdict(self), "passed": self.passed}


@dataclass(frozen=True)
class Finding:
    """The rows or figures of one study and the checks made on them."""

    data: Any
    checks: tuple[Check, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return figures and checks as plain data."""
        return {"data": self.data, "checks": [check.as_dict() for check in self.checks]}


def merge_rows(findings: Sequence[Finding]) -> Finding:
    """Return the rows of several findings as one list, with all their checks."""
    rows = [row for finding in findings for row in finding.data]
    return Finding(rows, tuple(check for finding in findings for check in finding.checks))


def published(name: str) -> dict[str, Any]:
    """Return published figures that ship with the package."""
    text = resources.files("phasegrad.studies").joinpath("published", f"{name}.json").read_text(encoding="utf-8")
    figures: dict[str, Any] = json.loads(text)
    return figures
