"""`phasegrad verify`: sections 3 to 5 of the paper and the universality claim of section 7, piece by piece."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

from phasegrad.studies import asymmetry, finite_beta, identity, parameters
from phasegrad.studies.beta_error import beta_error
from phasegrad.studies.finding import Check, Finding, merge_rows
from phasegrad.validation import whole_number

_ROWS = ("table1", "asymmetry", "universality")


@dataclass(frozen=True)
class Piece:
    """One unit of work: which section it belongs to, what it is called, how long it takes relative to others."""

    section: str
    title: str
    weight: float
    run: Callable[[], Finding]


@dataclass(frozen=True)
class Verification:
    """Everything `phasegrad verify` found."""

    sections: dict[str, Finding]

    @property
    def checks(self) -> tuple[Check, ...]:
        """All checks, in order."""
        return tuple(check for finding in self.sections.values() for check in finding.checks)

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """Return all figures as plain data, for JSON."""
        return {
            **{name: finding.data for name, finding in self.sections.items()},
            "checks": [check.as_dict() for check in self.checks],
            "not_compared": [] if identity.has_torch else ["autograd: PyTorch is not installed"],
            "versions": {name: version(name) for name in ("phasegrad", "numpy", "scipy")}
            | {"python": platform.python_version()},
            "passed": self.passed,
        }


def plan(sizes: Sequence[int] = identity.SIZES, seeds: int | None = None) -> list[Piece]:
    """Return the pieces of a verification.

    Parameters
    ----------
    sizes : sequence of int
        Network sizes of Table 1 and of the universality table, at least 3 each.
    seeds : int, optional
        Use only this many seeds wherever a study runs over seeds; as published if left out.
    """
    if not sizes:
        raise ValueError("The 'sizes' parameter of verify must name at least one network size.")
    for n in sizes:
        whole_number("sizes", n, identity.SMALLEST, "verify")
    if seeds is not None:
        whole_number("seeds", seeds, 1, "verify")
    return list(_pieces(sizes, seeds))


def assemble(pieces: Sequence[Piece], findings: Sequence[Finding]) -> Verification:
    """Return the verification made of the findings of all pieces, in the same order."""
    by_section: dict[str, list[Finding]] = {}
    for piece, finding in zip(pieces, findings, strict=True):
        by_section.setdefault(piece.section, []).append(finding)
    return Verification({name: merge_rows(group) if name in _ROWS else group[0] for name, group in by_section.items()})


def verify(sizes: Sequence[int] = identity.SIZES, seeds: int | None = None) -> Verification:
    """Run the whole verification.

    Examples
    --------
    >>> from phasegrad.studies.verification import verify
    >>> verify(sizes=[6], seeds=2).passed
    True
    """
    pieces = plan(sizes, seeds)
    return assemble(pieces, [piece.run() for piece in pieces])


def _pieces(sizes: Sequence[int], seeds: int | None) -> Iterator[Piece]:
    few = seeds or 10
    for n in sizes:
        yield Piece("table1", f"Table 1, N = {n}", _weight(n), partial(identity.table1_row, n))
    yield Piece("multi_seed", f"{few} seeds at N = 10", 0.2, partial(identity.multi_seed, few))
    for a in asymmetry.LEVELS:
        run = partial(asymmetry.level, a, seeds or asymmetry.SEEDS)
        yield Piece("asymmetry", f"asymmetry {a:.0%}", 0.1, run)
    yield Piece("finite_beta", "finite beta", 0.1, partial(finite_beta.finite_beta, seeds or finite_beta.SEEDS))
    yield Piece("parameters", "couplings and fields", 0.6, partial(parameters.parameters, min(few, 3)))
    yield Piece("raw_against_centred", "raw against centred", 0.1, partial(parameters.raw_against_centred, few))
    for series in identity.SERIES:
        for n in sizes:
            run = partial(identity.universality_row, n, series)
            yield Piece("universality", f"universality, N = {n}", _weight(n), run)
    yield Piece("beta_error", "error against beta", 0.5, beta_error)


def _weight(n: int) -> float:
    """Cost of one row relative to the others: finite differences make it cubic in n."""
    return 0.05 + (n / 200) ** 3
