"""Studies whose results are kept in a file of their own, beside the page that is made from it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from phasegrad._files import printable, read_json, write_json
from phasegrad_paper.studies.pages import fill_page, filled
from phasegrad_paper.studies.study import Judgement, Study, Table

FORMAT = 1
_STOPPED = 130


@dataclass(frozen=True)
class StoredResults:
    """Results of pieces, by the names they have in a study; a subclass says of which."""

    study: ClassVar[Study]
    #: What the file is about, in words: "circuits".
    about: ClassVar[str]

    pieces: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return what a file holds; ValueError if it is not one of these."""
        try:
            data = read_json(path)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"There is no file {printable(path)}. Name a file of results on {cls.about}."
            ) from None
        except ValueError as error:
            raise cls._unsound(path, str(error)) from None
        if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("kind") != cls._kind():
            raise cls._unsound(path, "it does not say that it is one")
        pieces = data.get("pieces")
        if not isinstance(pieces, dict) or not all(isinstance(each, dict) for each in pieces.values()):
            raise cls._unsound(path, "it has no pieces by name")
        return cls(pieces)

    @classmethod
    def compute(cls, path: Path, say: Callable[[str], None] = lambda _line: None) -> Self:
        """Run the pieces that a file does not hold yet, one after the other, and write the file after each."""
        results = cls.read(path) if path.exists() else cls()
        for name, piece in cls.study.plan(None).items():
            if name in results.pieces:
                say(f"{name}: there already")
                continue
            results = cls({**results.pieces, name: piece.run()})
            results.write(path)
            say(f"{name}: done")
        return results

    def write(self, path: Path) -> None:
        """Write the file, whole."""
        write_json(path, {"kind": self._kind(), "format": FORMAT, "pieces": self.pieces})

    def judged(self) -> list[Judgement]:
        """Return the judgements of claims and checks, of which pieces may be missing."""
        missing = [name for name in self.study.plan(None) if name not in self.pieces]
        return [claim.judge(self.pieces, missing) for claim in (*self.study.claims, *self.study.checks)]

    def tables(self) -> list[Table]:
        """Return the tables of the page, that of verdicts first."""
        rows = [[each.claim.sentence, each.measured, each.controlled, each.verdict.value] for each in self.judged()]
        columns = ("claim or check", "measured", "control", "verdict")
        return [Table(f"{self.study.name}-verdicts", "Verdicts", columns, rows), *self.study.tables(self.pieces)]

    def with_tables(self, text: str) -> str:
        """Return the text of a page with its tables written anew."""
        return filled(text, self.tables())

    def write_page(self, path: Path) -> None:
        """Write the tables of a page anew; everything outside its markers stays."""
        fill_page(path, self.tables())

    @classmethod
    def main(cls, description: str, words: Sequence[str] | None = None) -> int:
        """Compute what is missing, or only read it, as the words of a command line say; return the exit status."""
        options = _parser(cls.study.name, description).parse_args(words)
        try:
            if options.stored:
                results = cls.read(options.out)
            else:
                results = cls.compute(options.out, lambda line: print(line, flush=True))
            if options.page is not None:
                results.write_page(options.page)
        except KeyboardInterrupt:
            print("Stopped; finished pieces are kept, and the same command goes on from there.", file=sys.stderr)
            return _STOPPED
        except (ValueError, OSError) as error:
            print(f"Error: {error}", file=sys.stderr)
            return 2
        return 0

    @classmethod
    def _kind(cls) -> str:
        return f"phasegrad {cls.study.name}"

    @classmethod
    def _unsound(cls, path: Path, reason: str) -> ValueError:
        return ValueError(
            f"{printable(path)} is not a file of results on {cls.about}: {printable(reason)}. Name another file."
        )


def _parser(name: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m phasegrad_paper.studies.{name}", description=description)
    parser.add_argument("out", type=Path, help="file of results; pieces that it holds are not computed again")
    parser.add_argument("--stored", action="store_true", help="compute nothing: make the page from what is there")
    parser.add_argument("--page", type=Path, help="a Markdown page whose tables are written anew from the results")
    return parser
