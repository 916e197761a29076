"""Sheets: a CSV file read row by row into columns of numbers or of words, whatever is wrong said by line and column.

Rows are read one at a time into arrays, so that a sheet takes about the memory of its numbers.
"""

from __future__ import annotations

import csv
import difflib
import math
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np

from phasegrad._files import TEXT_ENCODING, printable
from phasegrad._validation import FloatArray, counted, parse_float

# Characters of a line of a table, and of the names that an error lists.
_LONGEST_LINE, _LONGEST_LIST = 2**22, 200
_SEPARATORS = ",;\t"
#: What stands for a value that is not there.
_MISSING = frozenset(("", "?", "-", "na", "n/a", "nan", "null", "none", "nil", "missing"))
#: Rows whose values say whether a column holds numbers or words.
_LOOKED_AT = 20
#: Rows from which on whole numbers that are all different look like an id.
_ID_FROM = 10


@contextmanager
def opened(path: Path) -> Iterator[Sheet]:
    """Open a table and read its header; say in words why a file cannot be read."""
    place = printable(path)
    try:
        with path.open(newline="", encoding=TEXT_ENCODING) as file:
            rows = _rows(place, file)
            line, header = next(rows, (1, []))
            if not header:
                raise ValueError(f"{place} is empty. Give a table with a header and a row for each sample.")
            first = list(islice(rows, _LOOKED_AT))
            names = [name.strip() for name in header]
            yield Sheet(place, line, names, [row for _, row in first], chain(first, rows))
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {place}.") from None
    except IsADirectoryError:
        raise ValueError(f"{place} is a folder. Name a file.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{place} is not a text file in UTF-8. Save it as CSV in that encoding.") from None
    except OSError as error:
        raise OSError(f"Could not read {place}: {error.strerror}. Name another file.") from error


@dataclass(frozen=True)
class Sheet:
    """A file while it is read: what to call it, the names of its columns, and its rows, each with its line."""

    place: str
    line: int
    header: list[str]
    first: list[list[str]]
    rows: Iterator[tuple[int, list[str]]]

    @cached_property
    def places(self) -> dict[str, int]:
        """The first place of every name."""
        return {name: place for place, name in reversed(list(enumerate(self.header)))}

    def check_names(self) -> None:
        """Refuse columns of one name."""
        twice = [name for name, times in Counter(self.header).items() if name and times > 1]
        if twice:
            raise ValueError(
                f"{self.place}, line {self.line} names the column {twice[0]!r:.80} twice. Every column needs a name of "
                "its own."
            )

    def nearest(self, name: str, others: Sequence[str] = ()) -> str:
        """Return the question whether a column was meant that looks like this name and is none of the others."""
        lower = {each.lower(): each for each in self.header if each and each not in others}
        found = difflib.get_close_matches(name.lower(), lower, 1)
        return f" Did you mean {lower[found[0]]!r:.80}?" if found else ""


class _Column:
    """A column while it is read."""

    def __init__(self, sheet: Sheet, name: str) -> None:
        self.name, self.place, self.file, self.values = name, sheet.places[name], sheet.place, array("d")

    @property
    def numbers(self) -> FloatArray:
        """The values so far, or the numbers of the words."""
        return np.array(self.values)

    def wrong(self, line: int, words: str) -> ValueError:
        """Return an error about the value in a line."""
        return ValueError(f"{self.file}, line {line}: {printable(self.name)} {words}")


class Numbers(_Column):
    """A column of numbers, which is one feature."""

    @property
    def remark(self) -> str:
        """What the column looks like, where that is no feature."""
        values = self.numbers
        whole = values.size >= _ID_FROM and bool(np.all(values == np.round(values)))
        if not whole or np.unique(values).size < values.size:
            return ""
        return (
            f"{self.name} holds a whole number of its own in every row: it looks like an id. --ignore it if it is one."
        )

    def take(self, line: int, text: str) -> None:
        """Take one more value, which is not missing."""
        try:
            number = parse_float(text)
        except ValueError:
            point = " Write decimals with a point." if is_number(text.replace(",", ".")) else ""
            raise self.wrong(line, f"is {text!r:.60}, not a number.{point}") from None
        if not math.isfinite(number):
            raise self.wrong(line, f"is {text!r:.60}, not a finite number.")
        self.values.append(number)

    def features(self) -> dict[str, FloatArray]:
        """Return the feature that this column is, by its name."""
        return {self.name: self.numbers}


class Words(_Column):
    """A column of words, which is a feature of 0 and 1 for each of them; ``most`` of them, with advice beyond."""

    def __init__(self, sheet: Sheet, name: str, most: int, advice: str, *, numbers_too: bool = False) -> None:
        super().__init__(sheet, name)
        self.most, self.advice, self.numbers_too = most, advice, numbers_too
        self.words: dict[str, int] = {}
        self.closed = False

    def close(self, words: Sequence[str]) -> None:
        """Let there be these words and no others."""
        self.words, self.closed = {word: k for k, word in enumerate(words)}, True

    def take(self, line: int, text: str) -> None:
        """Take one more value, which is not missing."""
        if text not in self.words:
            if self.closed:
                raise self.wrong(line, f"is {text!r:.60}. It must be one of {listed(list(self.words))}.")
            if not self.numbers_too and is_number(text):
                above = next(iter(self.words))
                raise self.wrong(line, f"is {text!r:.60}, a number among words such as {above!r:.60}. {self.advice}")
            if len(self.words) == self.most:
                raise self.wrong(line, f"is one of more than {self.most} different values. {self.advice}")
            self.words[text] = len(self.words)
        self.values.append(self.words[text])

    def features(self) -> dict[str, FloatArray]:
        """Return the features that this column is, by name."""
        numbers = self.numbers
        return {f"{self.name}={word}": (numbers == k).astype(float) for word, k in sorted(self.words.items())}

    @property
    def remark(self) -> str:
        """What became of the column."""
        words = listed(sorted(self.words))
        return f"{self.name} holds words: {counted(len(self.words), 'feature')} of 0 and 1 ({words})."


@dataclass(frozen=True)
class Filled:
    """What became of the rows besides: those kept as they are written, and the lines of those left out."""

    kept: list[tuple[str, ...]]
    dropped: list[int]


def fill(sheet: Sheet, columns: Sequence[Numbers | Words], drop_missing: bool = False, *, keep: bool = False) -> Filled:
    """Read all rows into columns; where values are missing leave the row out, or refuse the table."""
    filled, places = Filled([], []), [column.place for column in columns]
    takes = [(column.place, column.take) for column in columns]
    for line, row in sheet.rows:
        if len(row) != len(sheet.header):
            raise ValueError(
                f"{sheet.place}, line {line}: columns in this line {len(row)}, in the header {len(sheet.header)}."
            )
        if any(is_missing(row[place]) for place in places):
            if not drop_missing:
                raise _missing(sheet, line, row, columns)
            filled.dropped.append(line)
            continue
        for place, take in takes:
            take(line, row[place].strip())
        if keep:
            filled.kept.append(tuple(row))
    if not columns[0].values:
        if filled.dropped:
            raise ValueError(f"{sheet.place}: a value is missing in every row. Fill them in, or leave columns out.")
        raise ValueError(f"{sheet.place} has a header and no rows under it. Give at least one sample.")
    return filled


def is_missing(text: str) -> bool:
    return text.strip().lower() in _MISSING


def _missing(sheet: Sheet, line: int, row: list[str], columns: Sequence[Numbers | Words]) -> ValueError:
    """Return an error about the first missing value, in this row; it counts those in the rest of the table."""
    places = [column.place for column in columns]
    cells = [sum(is_missing(each[k]) for k in places if k < len(each)) for _, each in chain([(line, row)], sheet.rows)]
    first = next(column for column in columns if is_missing(row[column.place]))
    text, rows = row[first.place].strip(), sum(map(bool, cells))
    words = f"is {text!r}, which stands for a missing value" if text else "is empty"
    if sum(cells) == 1:
        return first.wrong(line, f"{words}. Fill it in, or add --drop-missing to leave the row out.")
    count = f"In all {sum(cells)} values are missing, in {counted(rows, 'row')}."
    them = "that row" if rows == 1 else "those rows"
    return first.wrong(line, f"{words}. {count} Fill them in, or add --drop-missing to leave {them} out.")


def _rows(place: str, file: IO[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a table that are not blank, each with the line of the file it begins in.

    The separator is the one of comma, semicolon and tab that the first line has most of.
    """
    lines = _lines(place, file)
    start = list(islice(lines, 1))
    separator = max(_SEPARATORS, key="".join(start).count)
    table = csv.reader(chain(start, lines), strict=True, delimiter=separator)
    while True:
        line = table.line_num + 1
        try:
            row = next(table, None)
        except csv.Error as error:
            reason = str(error)
            if "limit" in reason:
                reason = f"a field has more than {csv.field_size_limit()} characters"
            raise ValueError(f"{place}, line {line} cannot be read as CSV: {reason}.") from None
        if row is None:
            return
        if row:
            yield line, row


def _lines(place: str, file: IO[str]) -> Iterator[str]:
    """Yield the lines of a text, none of them without end."""
    number = 0
    while line := file.readline(_LONGEST_LINE + 1):
        number += 1
        if len(line) > _LONGEST_LINE:
            raise ValueError(f"{place}, line {number} has more than {_LONGEST_LINE} characters. Give shorter lines.")
        if "\0" in line:
            raise ValueError(
                f"{place}, line {number} holds a character of code 0, so it is not a text file in UTF-8. "
                "Save it as CSV in that encoding."
            )
        yield line


def listed(names: Sequence[str]) -> str:
    """Return names in a row, the first of them where there are many."""
    listed = printable(", ".join(names))
    return listed[:_LONGEST_LIST] + (" ..." if len(listed) > _LONGEST_LIST else "")


def is_number(text: str) -> bool:
    """Whether a text is a number, infinite ones too."""
    try:
        parse_float(text)
    except ValueError:
        return False
    return True
