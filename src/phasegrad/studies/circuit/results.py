"""The file of what was measured in ngspice: every piece of the study by its name, with the netlists and the version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from phasegrad._files import printable, read_json, write_json
from phasegrad.studies.circuit.claims import STUDY
from phasegrad.studies.pages import fill_page, filled
from phasegrad.studies.study import Judgement, Table

FORMAT = 1
_NAME = "phasegrad circuit"


@dataclass(frozen=True)
class CircuitResults:
    """Results of pieces, by the names they have in the study."""

    pieces: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> CircuitResults:
        """Return what a file holds; ValueError if it is not one of these."""
        try:
            data = read_json(path)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"There is no file {printable(path)}. Name a file of results on circuits."
            ) from None
        except ValueError as error:
            raise _unsound(path, str(error)) from None
        if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("kind") != _NAME:
            raise _unsound(path, "it does not say that it is one")
        pieces = data.get("pieces")
        if not isinstance(pieces, dict) or not all(isinstance(each, dict) for each in pieces.values()):
            raise _unsound(path, "it has no pieces by name")
        return cls(pieces)

    def write(self, path: Path) -> None:
        """Write the file, whole."""
        write_json(path, {"kind": _NAME, "format": FORMAT, "pieces": self.pieces})

    def judged(self) -> list[Judgement]:
        """Return the judgements of claims and checks, of which pieces may be missing."""
        missing = [name for name in STUDY.plan(None) if name not in self.pieces]
        return [claim.judge(self.pieces, missing) for claim in (*STUDY.claims, *STUDY.checks)]

    def tables(self) -> list[Table]:
        """Return the tables of the page, that of verdicts first."""
        rows = [[each.claim.sentence, each.measured, each.controlled, each.verdict.value] for each in self.judged()]
        columns = ("claim or check", "measured", "control", "verdict")
        return [Table("circuit-verdicts", "Verdicts", columns, rows), *STUDY.tables(self.pieces)]

    def with_tables(self, text: str) -> str:
        """Return the text of a page with its tables written anew."""
        return filled(text, self.tables())

    def write_page(self, path: Path) -> None:
        """Write the tables of a page anew; everything outside its markers stays."""
        fill_page(path, self.tables())


def compute(path: Path, say: Callable[[str], None] = lambda _line: None) -> CircuitResults:
    """Run the pieces that a file does not hold yet, one after the other, and write the file after each."""
    results = CircuitResults.read(path) if path.exists() else CircuitResults()
    for name, piece in STUDY.plan(None).items():
        if name in results.pieces:
            say(f"{name}: there already")
            continue
        results = CircuitResults({**results.pieces, name: piece.run()})
        results.write(path)
        say(f"{name}: done")
    return results


def _unsound(path: Path, reason: str) -> ValueError:
    return ValueError(
        f"{printable(path)} is not a file of results on circuits: {printable(reason)}. Name another file."
    )
