"""`verify`: a view of the reproduction. The studies of sections 3 to 5 and 7, at chosen sizes, with nothing kept.

Pieces, claims and rules are those of `phasegrad reproduce`, so a figure here is the figure there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from phasegrad._validation import whole_number
from phasegrad_paper.reproduction.execution import compute
from phasegrad_paper.reproduction.result import Reproduction
from phasegrad_paper.reproduction.run import PieceError
from phasegrad_paper.studies import SIZES, Judgement, Piece, verification_studies


@dataclass(frozen=True)
class Verification:
    """Everything `phasegrad verify` found."""

    reproduction: Reproduction

    @property
    def tested(self) -> list[Judgement]:
        """Claims and checks of ours that what was computed here decides, not the paper's own data."""
        outcomes = self.reproduction.outcomes.values()
        every = [each for outcome in outcomes for each in (*outcome.judgements, *outcome.checks)]
        return [each for each in every if each.rule and each.claim.own is None]

    @property
    def missed(self) -> list[Judgement]:
        """Those that missed their rule."""
        return [each for each in self.tested if each.kept is False]

    @property
    def unmeasured(self) -> list[Judgement]:
        """Those that could not be measured."""
        return [each for each in self.tested if each.kept is None]

    def as_dict(self) -> dict[str, Any]:
        """Return every figure as plain data, in the form of ``results.json``."""
        return self.reproduction.as_dict() | {"passed": not self.missed}


def verify(
    sizes: Sequence[int] = SIZES,
    seeds: int | None = None,
    progress: Callable[[Piece], object] | None = None,
) -> Verification:
    """Run the verification in this process.

    Parameters
    ----------
    sizes : sequence of int
        Network sizes of Table 1 and of the universality table.
    seeds : int, optional
        Use only this many seeds wherever a study runs over seeds; as published if left out.
    progress : callable, optional
        Called with every piece before it runs.

    Examples
    --------
    >>> from phasegrad_paper.reproduction import verify
    >>> verify(sizes=[6], seeds=2).missed
    []
    """
    chosen = verification_studies(sizes)
    if seeds is not None:
        whole_number("seeds", seeds, 1, "verify")
    outcomes = {}
    for study in chosen:
        results = {}
        for name, piece in study.plan(seeds).items():
            if progress is not None:
                progress(piece)
            answer = compute(piece)
            if answer.error:
                error = PieceError(f"The piece {piece.title!r} failed: {answer.error}.")
                error.add_note(f"{piece.title}: {answer.trace}")
                raise error
            results[name] = json.loads(answer.text)
        outcomes[study.name] = study.assess(results, seeds)
    return Verification(Reproduction(chosen, outcomes, seeds))
