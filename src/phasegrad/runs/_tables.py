"""Tables of one's own: CSV files to samples, and whatever is wrong in them said by line and column.

A column of numbers is one feature. A column of words is one feature of 0 and 1 for each word, named ``column=word``, so
that a model file remembers the words and `read_samples` finds them again. Rows are read one at a time into arrays, so
that a table takes about the memory of its numbers.
"""

from __future__ import annotations

import csv
import difflib
import io
import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO

import numpy as np

from phasegrad._files import printable, write_bytes
from phasegrad._validation import FloatArray, IntArray, counted
from phasegrad.datasets import Dataset

# Characters of a line of a table, and of the names that an error lists.
_LONGEST_LINE, _LONGEST_LIST = 2**22, 200
_SEPARATORS = ",;\t"
#: What stands for a value that is not there.
_MISSING = frozenset(("", "?", "-", "na", "n/a", "nan", "null", "none", "nil", "missing"))
#: Numbers that differ more often than this are a quantity; words of one column, and classes, that would be too many.
_FEW_NUMBERS, _MOST_WORDS, _MOST_CLASSES = 20, 50, 1000
#: Rows whose values say whether a column holds numbers or words.
_LOOKED_AT = 20
#: Columns that answers add to a table; what stands before them there is the table.
_PREDICTED, _STABLE = "predicted", "stable"
#: Of all rows the share held back to test, and the least number of rows from which to learn a quantity.
_TEST_SHARE, _FEWEST_ROWS = 0.2, 10


@dataclass(frozen=True, eq=False)
class Quantities:
    """A training part and a test part of samples whose answer is a number."""

    name: str
    x_train: FloatArray
    y_train: FloatArray
    x_test: FloatArray
    y_test: FloatArray
    features: tuple[str, ...]
    target: str


@dataclass(frozen=True, eq=False)
class Table:
    """A table of samples: features (n, d), and class numbers (n,) with names of the classes, or numbers without."""

    name: str
    features: tuple[str, ...]
    x: FloatArray
    target: str
    y: FloatArray | IntArray
    classes: tuple[str, ...]
    remarks: tuple[str, ...] = ()

    def parts(self, seed: int, test: Table | None = None) -> Dataset | Quantities:
        """Return what to learn from and what to test on: another table, or a fifth of this one, drawn by the seed."""
        if test is None:
            held_back = self._drawn(np.random.default_rng(seed))
            x_test, y_test = self.x[held_back], self.y[held_back]
            x, y = self.x[~held_back], self.y[~held_back]
        else:
            x, y, x_test, y_test = self.x, self.y, test.x, test.y
        if not self.classes:
            return Quantities(self.name, x, y.astype(float), x_test, y_test.astype(float), self.features, self.target)
        return Dataset(self.name, x, y.astype(np.int64), x_test, y_test.astype(np.int64), self.classes, self.features)

    def _drawn(self, stream: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which rows are held back: a fifth, of every class alike and at least one."""
        held_back = np.zeros(len(self.y), dtype=bool)
        groups = [np.flatnonzero(self.y == k) for k in range(len(self.classes))] or [np.arange(len(self.y))]
        for rows in groups:
            held_back[stream.permutation(rows)[: max(1, round(_TEST_SHARE * rows.size))]] = True
        return held_back


@dataclass(frozen=True, eq=False)
class Samples:
    """The features of samples (n, d), how many rows were left out, and the file they are of: its header and rows."""

    x: FloatArray
    dropped: int
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def read_table(
    path: Path, target: str | None, *, regress: bool = False, ignore: Sequence[str] = (), drop_missing: bool = False
) -> Table:
    """Return a CSV file as a table of samples: all columns but those to ignore are features, one is the target.

    With ``drop_missing`` rows in which a value is missing are left out; without it they are refused.
    """
    with _opened(path) as sheet:
        sheet.check_names()
        answers = _answers(sheet, target, regress, ignore)
        left_out = {answers.name, *ignore, ""}
        columns = [_feature(sheet, name) for name in sheet.header if name not in left_out]
        if not columns:
            raise ValueError(f"{sheet.place} has no column left to learn from beside {answers.name!r:.80}.")
        dropped = len(_fill(sheet, [*columns, answers], drop_missing).dropped)
    count = len(answers.values)
    features = {name: values for column in columns for name, values in column.features().items()}
    if len(features) < sum(len(column.features()) for column in columns):
        raise ValueError(f"{sheet.place} has a column that is called as a word of another would be. Rename it.")
    remarks = [remark for column in columns if (remark := column.remark)]
    if dropped:
        remarks.append(_left_out(sheet.place, dropped))
    if unnamed := sheet.header.count(""):
        remarks.append(f"Left out: {counted(unnamed, 'column')} without a name.")
    if regress and count < _FEWEST_ROWS:
        raise ValueError(f"{sheet.place} has {counted(count, 'row')}. A quantity takes at least {_FEWEST_ROWS}.")
    classes, y = ((), answers.numbers) if isinstance(answers, _Numbers) else _classes(sheet.place, answers)
    x = np.column_stack(list(features.values()))
    return Table(path.stem, tuple(features), x, answers.name, y, classes, tuple(remarks))


def read_more(path: Path, table: Table, *, drop_missing: bool = False) -> Table:
    """Return another CSV file with the features and the target of a table, whose classes it cannot add to."""
    with _opened(path) as sheet:
        answers = _answers(sheet, table.target, not table.classes, ())
        if isinstance(answers, _Words):
            answers.close(table.classes)
        columns = _known_columns(sheet, table.features, "The training file has")
        dropped = _fill(sheet, [*columns, answers], drop_missing).dropped
    x = _stacked(columns, table.features)
    remarks = (_left_out(sheet.place, len(dropped)),) if dropped else ()
    return Table(path.stem, table.features, x, table.target, answers.numbers, table.classes, remarks)


def read_samples(path: Path, features: Sequence[str], *, drop_missing: bool = False, keep: bool = False) -> Samples:
    """Return the feature columns of a CSV file; other columns are ignored. With ``keep`` all are kept as written."""
    with _opened(path) as sheet:
        if keep and (taken := {_PREDICTED, _STABLE} & set(sheet.header)):
            raise ValueError(f"{sheet.place} has a column {min(taken)!r} already, which --out adds. Rename it first.")
        columns = _known_columns(sheet, features, "The model needs")
        filled = _fill(sheet, columns, drop_missing, keep=keep)
    return Samples(_stacked(columns, features), len(filled.dropped), tuple(sheet.header), tuple(filled.kept))


def write_answers(
    path: Path, samples: Samples, answers: Mapping[str, Sequence[object]], stable: Sequence[bool]
) -> None:
    """Write the rows of samples with what was predicted of them behind them, as CSV.

    Parameters
    ----------
    path : Path
    samples : Samples
        Read with ``keep``.
    answers : mapping from str to a sequence
        What was predicted, by the names of the outputs; a single one is written as ``predicted``.
    stable : sequence of bool
        Whether the equilibrium behind an answer is stable.
    """
    names = [_PREDICTED if len(answers) == 1 else f"{_PREDICTED} {name}" for name in answers]
    content = io.StringIO(newline="")
    sheet = csv.writer(content, lineterminator="\n")
    sheet.writerow((*samples.header, *names, _STABLE))
    for row, *given, sure in zip(samples.rows, *answers.values(), stable, strict=True):
        sheet.writerow((*row, *given, "yes" if sure else "no"))
    write_bytes(path, content.getvalue().encode("utf-8"))


def holds_answers(path: Path) -> bool:
    """Whether a file is a table that `write_answers` wrote, by its header."""
    try:
        with _opened(path) as sheet:
            *_, predicted, stable = sheet.header
            return stable == _STABLE and predicted.startswith(_PREDICTED)
    except ValueError:
        return False


@dataclass(frozen=True)
class _Sheet:
    """A file while it is read: what to call it, the names of its columns, and its rows, each with its line."""

    place: str
    line: int
    header: list[str]
    first: list[list[str]]
    rows: Iterator[tuple[int, list[str]]]

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

    def __init__(self, sheet: _Sheet, name: str) -> None:
        self.name, self.place, self.file, self.values = name, sheet.header.index(name), sheet.place, array("d")

    @property
    def numbers(self) -> FloatArray:
        """The values so far, or the numbers of the words."""
        return np.array(self.values)

    def wrong(self, line: int, words: str) -> ValueError:
        """Return an error about the value in a line."""
        return ValueError(f"{self.file}, line {line}: {printable(self.name)} {words}")


class _Numbers(_Column):
    """A column of numbers, which is one feature."""

    @property
    def remark(self) -> str:
        """What the column looks like, where that is no feature."""
        values = self.numbers
        whole = values.size >= _FEWEST_ROWS and bool(np.all(values == np.round(values)))
        if not whole or np.unique(values).size < values.size:
            return ""
        return (
            f"{self.name} holds a whole number of its own in every row: it looks like an id. --ignore it if it is one."
        )

    def take(self, line: int, text: str) -> None:
        """Take one more value, which is not missing."""
        if not _is_number(text):
            point = " Write decimals with a point." if _is_number(text.replace(",", ".")) else ""
            raise self.wrong(line, f"is {text!r:.60}, not a number.{point}")
        number = float(text)
        if not math.isfinite(number):
            raise self.wrong(line, f"is {text!r:.60}, not a finite number.")
        self.values.append(number)

    def features(self) -> dict[str, FloatArray]:
        """Return the feature that this column is, by its name."""
        return {self.name: self.numbers}


class _Words(_Column):
    """A column of words, which is a feature of 0 and 1 for each of them; ``most`` of them, with advice beyond."""

    def __init__(self, sheet: _Sheet, name: str, most: int, advice: str, *, numbers_too: bool = False) -> None:
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
                raise self.wrong(line, f"is {text!r:.60}. It must be one of {_listed(list(self.words))}.")
            if not self.numbers_too and _is_number(text):
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
        words = _listed(sorted(self.words))
        return f"{self.name} holds words: {counted(len(self.words), 'feature')} of 0 and 1 ({words})."


def _feature(sheet: _Sheet, name: str) -> _Numbers | _Words:
    """Return a column to learn from: of numbers or of words, as its first value says."""
    place = sheet.header.index(name)
    values = (row[place].strip() for row in sheet.first if len(row) == len(sheet.header))
    first = next((value for value in values if value.lower() not in _MISSING), "0")
    if _is_number(first.replace(",", ".")):  # a decimal comma is refused there, too
        return _Numbers(sheet, name)
    return _Words(sheet, name, _MOST_WORDS, f"Mend the column, or leave it out with --ignore {name!r:.80}.")


def _answers(sheet: _Sheet, target: str | None, regress: bool, ignore: Sequence[str]) -> _Numbers | _Words:
    """Return the column of the target; refuse names that no column has."""
    named = [name for name in sheet.header if name]
    columns = f"Its columns are {_listed(named)}."
    if target is None:
        raise ValueError(f"--target must name the column of {sheet.place} to predict. {columns}")
    for option, name in (("--target", target), *(("--ignore", each) for each in ignore)):
        if name not in named:
            raise ValueError(f"{option}: {sheet.place} has no column {name!r:.80}.{sheet.nearest(name)} {columns}")
    if target in ignore:
        raise ValueError(f"--ignore names the target {target!r:.80}, which is no feature. Leave it out there.")
    if regress:
        return _Numbers(sheet, target)
    advice = "Add --regress if they are a quantity; else name a column of classes with --target."
    return _Words(sheet, target, _MOST_CLASSES, advice, numbers_too=True)


def _classes(place: str, answers: _Words) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of the classes, in order, and the class of every row; refuse what a classifier cannot learn."""
    words, column = list(answers.words), f"The column {answers.name!r:.80} of {place}"
    numeric = all(map(_is_number, words))
    if len(words) < 2:
        raise ValueError(f"{column} holds one class only, {words[0]!r:.60}. It takes two to tell apart.")
    if numeric and len(words) > _FEW_NUMBERS:
        raise ValueError(
            f"{column} holds {len(words)} different numbers, which looks like a quantity. Add --regress to predict it; "
            "if they are classes, write them as words, such as class7."
        )
    if numeric and len(set(map(float, words))) < len(words):
        raise ValueError(f"{column} writes one number in two ways, among {_listed(words)}. Write it in one.")
    names = sorted(words, key=float) if numeric else sorted(words)
    numbers = np.argsort([words.index(name) for name in names])[answers.numbers.astype(np.int64)]
    counts = np.bincount(numbers)
    if counts.min() < 2:
        raise ValueError(
            f"{column} has one row of the class {names[int(counts.argmin())]!r:.60}. Give at least two of every class, "
            "one to learn from and one to test, or leave that row out."
        )
    return tuple(names), numbers


def _known_columns(sheet: _Sheet, features: Sequence[str], needs: str) -> list[_Numbers | _Words]:
    """Return the columns to read for features of a model or another table: of their names, or of their words."""
    columns: dict[str, _Numbers | _Words] = {}
    known: dict[str, list[str]] = {}
    for name in features:
        column, sign, word = name.partition("=")
        if name.strip() in sheet.header:
            columns[name] = _Numbers(sheet, name.strip())
        elif sign and column in sheet.header:
            known.setdefault(column, []).append(word)
        else:
            meant, found = column if sign else name, _listed([each for each in sheet.header if each])
            raise ValueError(
                f"{sheet.place} has no column {meant!r:.80}.{sheet.nearest(meant, features)} {needs} "
                f"{_listed(features)}; the file has {found or 'no columns'}."
            )
    for column, words in known.items():
        columns[column] = made = _Words(sheet, column, len(words), "")
        made.close(words)
    sheet.check_names()
    return list(columns.values())


def _stacked(columns: Sequence[_Numbers | _Words], features: Sequence[str]) -> FloatArray:
    """Return features (n, d) in their order from columns that were read."""
    found_in = {name: values for column in columns for name, values in column.features().items()}
    return np.column_stack([found_in[name if name in found_in else name.strip()] for name in features])


@dataclass(frozen=True)
class _Filled:
    """What became of the rows besides: those kept as they are written, and the lines of those left out."""

    kept: list[tuple[str, ...]]
    dropped: list[int]


def _fill(
    sheet: _Sheet, columns: Sequence[_Numbers | _Words], drop_missing: bool = False, *, keep: bool = False
) -> _Filled:
    """Read all rows into columns; where values are missing leave the row out, or refuse the table."""
    filled, places = _Filled([], []), [column.place for column in columns]
    takes = [(column.place, column.take) for column in columns]
    for line, row in sheet.rows:
        if len(row) != len(sheet.header):
            raise ValueError(
                f"{sheet.place}, line {line}: columns in this line {len(row)}, in the header {len(sheet.header)}."
            )
        if any(_is_missing(row[place]) for place in places):
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


def _is_missing(text: str) -> bool:
    return text.strip().lower() in _MISSING


def _missing(sheet: _Sheet, line: int, row: list[str], columns: Sequence[_Numbers | _Words]) -> ValueError:
    """Return an error about the first missing value, in this row; it counts those in the rest of the table."""
    places = [column.place for column in columns]
    cells = [sum(_is_missing(each[k]) for k in places if k < len(each)) for _, each in chain([(line, row)], sheet.rows)]
    first = next(column for column in columns if _is_missing(row[column.place]))
    text, rows = row[first.place].strip(), sum(map(bool, cells))
    words = f"is {text!r}, which stands for a missing value" if text else "is empty"
    if sum(cells) == 1:
        return first.wrong(line, f"{words}. Fill it in, or add --drop-missing to leave the row out.")
    count = f"In all {sum(cells)} values are missing, in {counted(rows, 'row')}."
    them = "that row" if rows == 1 else "those rows"
    return first.wrong(line, f"{words}. {count} Fill them in, or add --drop-missing to leave {them} out.")


def _left_out(place: str, count: int) -> str:
    return f"Left out: {counted(count, 'row')} of {place} with missing values."


@contextmanager
def _opened(path: Path) -> Iterator[_Sheet]:
    """Open a table and read its header; say in words why a file cannot be read."""
    place = printable(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = _rows(place, file)
            line, header = next(rows, (1, []))
            if not header:
                raise ValueError(f"{place} is empty. Give a table with a header and a row for each sample.")
            first = list(islice(rows, _LOOKED_AT))
            names = [name.strip() for name in header]
            yield _Sheet(place, line, names, [row for _, row in first], chain(first, rows))
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {place}.") from None
    except IsADirectoryError:
        raise ValueError(f"{place} is a folder. Name a file.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{place} is not a text file in UTF-8. Save it as CSV in that encoding.") from None
    except OSError as error:
        raise OSError(f"Could not read {place}: {error.strerror}. Name another file.") from error


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


def _listed(names: Sequence[str]) -> str:
    """Return names in a row, the first of them where there are many."""
    listed = printable(", ".join(names))
    return listed[:_LONGEST_LIST] + (" ..." if len(listed) > _LONGEST_LIST else "")


def _is_number(text: str) -> bool:
    """Whether a text is a number as it is written everywhere, not as Python also takes it (5_1); infinite ones too."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text
