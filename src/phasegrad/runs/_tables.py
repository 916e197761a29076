"""Tables of one's own: CSV files to samples, and samples with their answers to CSV files.

A column of numbers is one feature. A column of words is one feature of 0 and 1 for each word, named ``column=word``, so
that a model file remembers the words and `read_samples` finds them again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from phasegrad._files import write_bytes
from phasegrad._validation import BoolArray, FloatArray, IntArray, counted
from phasegrad.datasets import Dataset
from phasegrad.runs._sheets import Numbers, Sheet, Words, fill, is_missing, is_number, listed, opened

#: Numbers that differ more often than this are a quantity; words of one column, and classes, that would be too many.
_FEW_NUMBERS, _MOST_WORDS, _MOST_CLASSES = 20, 50, 1000
#: Columns that answers add to a table; what stands before them there is the table.
_PREDICTED, _STABLE = "predicted", "stable"
#: Characters with which a cell begins that a spreadsheet takes for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
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

    def _drawn(self, stream: np.random.Generator) -> BoolArray:
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
    with opened(path) as sheet:
        sheet.check_names()
        answers = _answers(sheet, target, regress, ignore)
        left_out = {answers.name, *ignore, ""}
        columns = [_feature(sheet, name) for name in sheet.header if name not in left_out]
        if not columns:
            raise ValueError(f"{sheet.place} has no column left to learn from beside {answers.name!r:.80}.")
        dropped = len(fill(sheet, [*columns, answers], drop_missing).dropped)
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
    classes, y = ((), answers.numbers) if isinstance(answers, Numbers) else _classes(sheet.place, answers)
    x = np.column_stack(list(features.values()))
    return Table(path.stem, tuple(features), x, answers.name, y, classes, tuple(remarks))


def read_more(path: Path, table: Table, *, drop_missing: bool = False) -> Table:
    """Return another CSV file with the features and the target of a table, whose classes it cannot add to."""
    with opened(path) as sheet:
        answers = _answers(sheet, table.target, not table.classes, ())
        if isinstance(answers, Words):
            answers.close(table.classes)
        columns = _known_columns(sheet, table.features, "The training file has")
        dropped = fill(sheet, [*columns, answers], drop_missing).dropped
    x = _stacked(columns, table.features)
    remarks = (_left_out(sheet.place, len(dropped)),) if dropped else ()
    return Table(path.stem, table.features, x, table.target, answers.numbers, table.classes, remarks)


def read_samples(path: Path, features: Sequence[str], *, drop_missing: bool = False, keep: bool = False) -> Samples:
    """Return the feature columns of a CSV file; other columns are ignored. With ``keep`` all are kept as written."""
    with opened(path) as sheet:
        if keep and (taken := {_PREDICTED, _STABLE} & set(sheet.header)):
            raise ValueError(f"{sheet.place} has a column {min(taken)!r} already, which --out adds. Rename it first.")
        columns = _known_columns(sheet, features, "The model needs")
        filled = fill(sheet, columns, drop_missing, keep=keep)
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
        What was predicted, by the names of the outputs; a single one is written as ``predicted``. A word that a
        spreadsheet would take for a formula is written behind an apostrophe.
    stable : sequence of bool
        Whether the equilibrium behind an answer is stable.
    """
    names = [_PREDICTED if len(answers) == 1 else f"{_PREDICTED} {name}" for name in answers]
    lines = [_line(*samples.header, *names, _STABLE)]
    for row, *given, sure in zip(samples.rows, *answers.values(), stable, strict=True):
        lines.append(_line(*row, *map(_cell, given), "yes" if sure else "no"))
    write_bytes(path, "".join(lines).encode("utf-8"))


def _cell(answer: object) -> object:
    """Return what stands in a cell: numbers and other words as they are, formulas as text."""
    is_formula = isinstance(answer, str) and answer.startswith(_FORMULA) and not is_number(answer)
    return f"'{answer}" if is_formula else answer


def _line(*cells: object) -> str:
    """Return cells as a line of CSV; a carriage return in one is quoted only where lines end in one, too."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"


def holds_answers(path: Path) -> bool:
    """Whether a file is a table that `write_answers` wrote, by its header."""
    try:
        with opened(path) as sheet:
            *_, predicted, stable = sheet.header
            return stable == _STABLE and predicted.startswith(_PREDICTED)
    except ValueError:
        return False


def _feature(sheet: Sheet, name: str) -> Numbers | Words:
    """Return a column to learn from: of numbers or of words, as its first value says."""
    place = sheet.places[name]
    values = (row[place].strip() for row in sheet.first if len(row) == len(sheet.header))
    first = next((value for value in values if not is_missing(value)), "0")
    if is_number(first.replace(",", ".")):  # a decimal comma is refused there, too
        return Numbers(sheet, name)
    return Words(sheet, name, _MOST_WORDS, f"Mend the column, or leave it out with --ignore {name!r:.80}.")


def _answers(sheet: Sheet, target: str | None, regress: bool, ignore: Sequence[str]) -> Numbers | Words:
    """Return the column of the target; refuse names that no column has."""
    named = [name for name in sheet.header if name]
    columns = f"Its columns are {listed(named)}."
    if target is None:
        raise ValueError(f"--target must name the column of {sheet.place} to predict. {columns}")
    for option, name in (("--target", target), *(("--ignore", each) for each in ignore)):
        if name not in named:
            raise ValueError(f"{option}: {sheet.place} has no column {name!r:.80}.{sheet.nearest(name)} {columns}")
    if target in ignore:
        raise ValueError(f"--ignore names the target {target!r:.80}, which is no feature. Leave it out there.")
    if regress:
        return Numbers(sheet, target)
    advice = "Add --regress if they are a quantity; else name a column of classes with --target."
    return Words(sheet, target, _MOST_CLASSES, advice, numbers_too=True)


def _classes(place: str, answers: Words) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of the classes, in order, and the class of every row; refuse what a classifier cannot learn."""
    words, column = list(answers.words), f"The column {answers.name!r:.80} of {place}"
    numeric = all(map(is_number, words))
    if len(words) < 2:
        raise ValueError(f"{column} holds one class only, {words[0]!r:.60}. It takes two to tell apart.")
    if numeric and len(words) > _FEW_NUMBERS:
        raise ValueError(
            f"{column} holds {len(words)} different numbers, which looks like a quantity. Add --regress to predict it; "
            "if they are classes, write them as words, such as class7."
        )
    if numeric and len(set(map(float, words))) < len(words):
        raise ValueError(f"{column} writes one number in two ways, among {listed(words)}. Write it in one.")
    names = sorted(words, key=float) if numeric else sorted(words)
    numbers = np.argsort([words.index(name) for name in names])[answers.numbers.astype(np.int64)]
    counts = np.bincount(numbers)
    if counts.min() < 2:
        raise ValueError(
            f"{column} has one row of the class {names[int(counts.argmin())]!r:.60}. Give at least two of every class, "
            "one to learn from and one to test, or leave that row out."
        )
    return tuple(names), numbers


def _known_columns(sheet: Sheet, features: Sequence[str], needs: str) -> list[Numbers | Words]:
    """Return the columns to read for features of a model or another table: of their names, or of their words."""
    columns: dict[str, Numbers | Words] = {}
    known: dict[str, list[str]] = {}
    for name in features:
        column, sign, word = name.partition("=")
        if name.strip() in sheet.places:
            columns[name] = Numbers(sheet, name.strip())
        elif sign and column in sheet.places:
            known.setdefault(column, []).append(word)
        else:
            meant, found = column if sign else name, listed([each for each in sheet.header if each])
            raise ValueError(
                f"{sheet.place} has no column {meant!r:.80}.{sheet.nearest(meant, features)} {needs} "
                f"{listed(features)}; the file has {found or 'no columns'}."
            )
    for column, words in known.items():
        columns[column] = made = Words(sheet, column, len(words), "")
        made.close(words)
    sheet.check_names()
    return list(columns.values())


def _stacked(columns: Sequence[Numbers | Words], features: Sequence[str]) -> FloatArray:
    """Return features (n, d) in their order from columns that were read."""
    found_in = {name: values for column in columns for name, values in column.features().items()}
    return np.column_stack([found_in[name if name in found_in else name.strip()] for name in features])


def _left_out(place: str, count: int) -> str:
    return f"Left out: {counted(count, 'row')} of {place} with missing values."
