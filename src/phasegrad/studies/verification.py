"""`phasegrad verify`: sections 3 to 5 of the paper and the universality claim of section 7, piece by piece."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from phasegrad.studies import asymmetry, finite_beta, identity, parameters
from phasegrad.studies.beta_error import beta_error
from phasegrad.studies.finding import Check, Finding, merge_rows
from phasegrad.studies.piece import Piece
from phasegrad.validation import whole_number

_ROWS = ("table1", "asymmetry", "universality")


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
    return assemble(pieces, [piece.function(**piece.arguments) for piece in pieces])


def _pieces(sizes: Sequence[int], seeds: int | None) -> Iterator[Piece]:
    few = seeds or 10
    for n in sizes:
        yield Piece(f"Table 1, N = {n}", identity.table1_row, {"n": n}, _weight(n), "table1")
    yield Piece(f"{few} seeds at N = 10", identity.multi_seed, {"seeds": few}, 0.2, "multi_seed")
    for a in asymmetry.LEVELS:
        options = {"asymmetry": a, "seeds": seeds or asymmetry.SEEDS}
        yield Piece(f"asymmetry {a:.0%}", asymmetry.level, options, 0.1, "asymmetry")
    networks = seeds or finite_beta.SEEDS
    yield Piece("finite beta", finite_beta.finite_beta, {"seeds": networks}, 0.1, "finite_beta")
    yield Piece("couplings and fields", parameters.parameters, {"seeds": min(few, 3)}, 0.6, "parameters")
    yield Piece("raw against centred", parameters.raw_against_centred, {"seeds": few}, 0.1, "raw_against_centred")
    for series in identity.SERIES:
        for n in sizes:
            row = {"n": n, "coefficients": series}
            yield Piece(f"universality, N = {n}", identity.universality_row, row, _weight(n), "universality")
    yield Piece("error against beta", beta_error, {}, 0.5, "beta_error")


def _weight(n: int) -> float:
    """Cost of one row relative to the others: finite differences make it cubic in n."""
    return 0.05 + (n / 200) ** 3
