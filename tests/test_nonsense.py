"""Nonsense on the command line: every command and option with words that mean nothing, or nothing there.

Whatever is typed, a command ends with a status of its own and a sentence, never with a traceback, and no option is
passed over in silence. The lines are drawn from the commands as they are, so a new option is tried without more ado.
"""

import random
from itertools import product

import pytest
from test_cli import here, run  # noqa: F401
from typer.main import get_command

import phasegrad as pg
from phasegrad.cli import app

COMMANDS = get_command(app).commands
LINES = 500
#: A short valid line of every command, in every mode that it has.
VALID = {
    "train": [
        ("xor", "--epochs", "1"),
        ("vowels", "--epochs", "0"),
        ("iris", "--hidden", "2", "--epochs", "0"),
        ("xor", "--method", "classifier", "--hidden", "2", "--epochs", "1"),
    ],
    "predict": [("model.npz", "samples.csv")],
    "grid": [("case9",)],
    "draw": [("picture.svg",)],
    "studies": [()],
    "reproduce": [("finite-beta", "--seeds", "1", "--workers", "1", "--out", "out")],
    "verify": [("--sizes", "6", "--seeds", "1")],
    "bench": [("--rounds", "1")],
}
#: Words that no option but a path can mean anything by.
NEVER = ("nan", "inf", "-inf", "1e400", "½", "two words ∞", "x" * 5000, "\N{PILE OF POO}", "--", "-", "=", ";", "None")
#: Words that some option may mean something by.
MAYBE = ("", " ", ",", "-1", "0", "1e-320", "1.5", "99999999999", "9" * 400, "1,2", "0:20000000000", "5:1", ":", "0:",
         "1:2:3", "a,,b", "omega=", "omega=nan", "omega=-1", "omega=1e-320", "=1", "omega,omega", "a,a", "1-1", "0x10",
         "１２", "1_0", "true", "all")  # fmt: skip
PATHS = ("json", "save", "plot", "out", "folder")
PLACES = ("", ".", "no/such/folder/file.json", "x" * 300 + ".svg", "/dev/null/file.png", "picture.gif", "/proc/x.svg")
#: Numbers that mean what they say, and take hours.
LONG = {("train", "--epochs", "99999999999"), ("bench", "--rounds", "99999999999"), ("bench", "--largest", "99999999999"),
        ("train", "--seeds", "0:20000000000"), ("bench", "--rounds", "１２")}  # fmt: skip


def options_of(command: str) -> list:
    return [each for each in COMMANDS[command].params if each.opts[0].startswith("--")]


def words_for(command: str, option) -> list[str]:
    words = PLACES if option.name in PATHS else NEVER + MAYBE
    return [word for word in words if (command, option.opts[0], word) not in LONG]


def spelled(option, word: str) -> tuple[str, ...]:
    return (option.opts[0],) if option.is_flag else (option.opts[0], word)


def all_lines() -> list[tuple[str, ...]]:
    """Draw lines of one wrong word, of two options at once, of options given twice or not there, and of no sense."""
    stream, lines = random.Random(0), []
    for command, modes in VALID.items():
        options = options_of(command)
        for mode, option in product(modes, options):
            base = without(mode, option.opts[0])
            lines += [(command, *base, *spelled(option, word)) for word in words_for(command, option)]
            lines.append((command, *base, *spelled(option, "1"), *spelled(option, "2")))
            lines.append((command, *base, option.opts[0] + "=" if not option.is_flag else option.opts[0] + "=1"))
            other = stream.choice(options)
            pair = [spelled(each, stream.choice(words_for(command, each))) for each in (option, other)]
            lines.append((command, *base, *pair[0], *pair[1]))
        for mode in modes:
            strange = {each.opts[0] for name in VALID for each in options_of(name)} - {o.opts[0] for o in options}
            lines += [(command, *mode, word, "1") for word in sorted(strange)]
            lines += [(command, *mode, word) for word in ("--nonsense", "-x", "extra", "∞", "")]
    return [line for line in lines if not any((line[0], *pair) in LONG for pair in zip(line, line[1:], strict=False))]


def without(line: tuple[str, ...], option: str) -> tuple[str, ...]:
    if option not in line:
        return line
    place = line.index(option)
    return line[:place] + line[place + 2 :]


def chosen(count: int) -> list[tuple[str, ...]]:
    """Return so many lines, as many of every command as it has, none more than two fifths."""
    stream, lines = random.Random(1), sorted(set(all_lines()))
    stream.shuffle(lines)
    of_train = [line for line in lines if line[0] == "train"]
    others = [line for line in lines if line[0] != "train"]
    return others[: count - 2 * count // 5] + of_train[: 2 * count // 5]
