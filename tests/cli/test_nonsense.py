"""Nonsense on the command line: every command and option with words that mean nothing, or nothing there.

Whatever is typed, a command ends with a status of its own and a sentence, never with a traceback, and no option is
passed over in silence. The lines are drawn from the commands as they are, so a new option is tried without more ado.
"""

import random
import re
import warnings
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest
from command_line import run

import phasegrad as pg
import phasegrad_bench
from phasegrad.cli import words
from phasegrad.cli.application import commands

COMMANDS = commands()
LINES = 500
#: A short valid line of every command, in every mode that it has.
VALID = {
    "train": [
        ("xor", "--epochs", "1"),
        ("vowels", "--epochs", "0"),
        ("iris", "--hidden", "2", "--epochs", "0"),
        ("xor", "--method", "classifier", "--hidden", "2", "--epochs", "1"),
        ("table.csv", "--target", "kind", "--hidden", "2", "--epochs", "1"),
    ],
    "predict": [("model.npz", "samples.csv")],
    "grid": [("case9",)],
    "chip": [("vowels", "--chips", "1", "--epochs", "0")],
    "simulate": [("ring", "--time", "1")],
    "ising": [("graph.txt", "--runs", "2", "--time", "1")],
    "lab": [("model.npz", "--no-open", "--out", "lab.html")],
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


class Line(NamedTuple):
    """What is typed: a command, words that are in order, and the nonsense."""

    command: str
    valid: tuple[str, ...]
    nonsense: tuple[str, ...]

    @property
    def hopeless(self) -> bool:
        """Whether there is nothing it could mean."""
        option, word = (self.nonsense * 2)[:2]
        return len(self.nonsense) == 2 and word in NEVER and option.removeprefix("--") not in PATHS


def options_of(command: str) -> list:
    return [each for each in COMMANDS[command].params if each.opts[0].startswith("--")]


def spelled(option, word: str) -> tuple[str, ...]:
    return (option.opts[0],) if option.is_flag else (option.opts[0], word)


def words_for(option) -> tuple[str, ...]:
    return PLACES if option.name in PATHS else NEVER + MAYBE


def without(line: tuple[str, ...], option: str) -> tuple[str, ...]:
    if option not in line:
        return line
    place = line.index(option)
    return line[:place] + line[place + 2 :]


def all_lines() -> list[Line]:
    """Draw lines of one wrong word, of two options at once, of options given twice or not there, and of no sense."""
    stream, lines = random.Random(0), []
    for command, modes in VALID.items():
        options = options_of(command)
        strange = {each.opts[0] for name in VALID for each in options_of(name)} - {each.opts[0] for each in options}
        for mode, option in product(modes, options):
            base, name = without(mode, option.opts[0]), option.opts[0]
            lines += [Line(command, base, spelled(option, word)) for word in words_for(option)]
            lines.append(Line(command, base, (*spelled(option, "1"), *spelled(option, "2"))))
            lines.append(Line(command, base, (f"{name}=1" if option.is_flag else f"{name}=",)))
            other = stream.choice([each for each in options if each.opts[0] not in base])
            pair = [spelled(each, stream.choice(words_for(each))) for each in (option, other)]
            lines.append(Line(command, base, (*pair[0], *pair[1])))
        for mode in modes:
            lines += [Line(command, mode, (name, "1")) for name in sorted(strange)]
            lines += [Line(command, mode, (word,)) for word in ("--nonsense", "-x", "extra", "∞", "")]
    return sorted(set(lines))


def chosen(count: int) -> list[Line]:
    """Return so many lines; `train` has the most options, and gets two fifths."""
    lines = all_lines()
    random.Random(1).shuffle(lines)
    of_train = [line for line in lines if line.command == "train"]
    others = [line for line in lines if line.command != "train"]
    return others[: count - 2 * count // 5] + of_train[: 2 * count // 5]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a model and samples; what `bench` would measure for minutes is not."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(phasegrad_bench, "measure", lambda *given: pytest.fail("measured"))
    pg.Model(pg.layered(2, 5, 2), pg.objectives.PaperPair(), ("a", "i"), ("f1_hz", "f2_hz")).save("model.npz")
    Path("samples.csv").write_text("f1_hz,f2_hz\n850,1300\n")
    Path("graph.txt").write_text("3 2\n1 2 1\n2 3 1\n")
    rows = [f"{k % 5},{k % 3},{k % 2},{k // 15}\n" for k in range(30)]
    for name, some in (("table.csv", rows), ("more.csv", rows[:7])):
        Path(name).write_text("width,height,kind,side\n" + "".join(some))
    return tmp_path


def complaints(line: Line, place: Path, here) -> list[str]:
    """Return what is wrong with the answer to a line."""
    before = set(place.iterdir())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            result = here(line.command, *line.valid, *line.nonsense)
    except pytest.fail.Exception:
        return []  # `bench` would have measured
    except Exception as error:
        return [f"raised {error!r:.200}"]
    said = " ".join(re.sub("[│╭╮╰╯─]", " ", result.stderr).split())
    # Of an option that is given a value with "=", the answer may name the option alone.
    typed = [(word.partition("=")[0] or word)[:9] for word in line.nonsense if word.strip()]
    found = []
    if "Traceback" in said:
        found.append("showed a traceback")
    if result.returncode not in (0, 1, 2):
        found.append(f"ended with {result.returncode}")
    if line.hopeless and result.returncode != 2:
        found.append("was taken")
    if result.returncode == 2 and typed and not any(word in said for word in typed):
        found.append(f"did not say what it was about: {said:.300}")
    if result.returncode == 2 and set(place.iterdir()) != before:
        found.append("left something behind")
    return found


def answers(lines: list[Line], place: Path, here) -> dict[Line, list[str]]:
    return {line: found for line in lines if (found := complaints(line, place, here))}


def test_nonsense_gets_a_sentence(place, here):
    assert answers(chosen(LINES // 10), place, here) == {}


@pytest.mark.slow
def test_much_nonsense_gets_a_sentence(place, here):
    lines = chosen(LINES)
    assert len(lines) == LINES
    assert answers(lines, place, here) == {}


#: Words for every option of which one changes what a command does by the valid lines.
MEANINGFUL = {
    "vowels": "o,u", "seeds": "2", "method": "paper classifier", "hidden": "3", "learn": "coupling", "init": "zero",
    "epochs": "3", "learning_rate": "0.02", "beta": "0.002", "margin": "0.3", "decision": "nearest",
    "gradient": "adjoint", "evaluate_every": "1", "scale_by": "all", "shifts": "yes", "scale": "1.5", "relieve": "8-9",
    "seed": "3", "sizes": "7", "target": "side", "regress": "yes", "test": "more.csv", "ignore": "height",
    "size": "7", "coupling": "0.5", "spread": "0.1", "inputs": "0.5", "time": "2", "times": "11", "start": "zero",
    "noise": "0.01", "inertia": "1", "damping": "2",
}  # fmt: skip
#: Files that are asked for, and settings of how a command goes about its work, tested elsewhere.
OTHERS = {
    "json",
    "save",
    "plot",
    "out",
    "drop_missing",
    "folder",
    "workers",
    "cluster",
    "fresh",
    "show",
    "rounds",
    "largest",
    "device",
    "data",
    "dtype",
    "preset",
    "chips",
    "runs",
    "injection",
}
MODES = [
    ("train", "xor", "--epochs", "2"),
    ("train", "vowels", "--epochs", "2", "--seeds", "1"),  # of this seed the test part holds the largest value
    ("train", "iris", "--hidden", "2", "--epochs", "2"),
    ("train", "xor", "--method", "classifier", "--hidden", "2", "--epochs", "2"),
    ("train", "table.csv", "--target", "kind", "--hidden", "2", "--epochs", "2"),
    ("grid", "case9"),
    ("draw", "picture.svg"),
    ("simulate", "ring", "--time", "1"),
]


def test_every_option_is_known_here():
    known = {each.name for command in VALID for each in options_of(command)}
    assert known == {*MEANINGFUL, *OTHERS}
    assert set(VALID) == set(COMMANDS)


@pytest.mark.parametrize(
    "mode",
    [*MODES, *(pytest.param((command, *more), marks=pytest.mark.slow) for command, more in (
        ("train", ("digits", "--hidden", "2", "--epochs", "2")),
        ("train", ("vowels", "--method", "classifier", "--hidden", "2", "--epochs", "1")),
        ("verify", ("--sizes", "6", "--seeds", "1")),
    ))],
    ids=" ".join,
)  # fmt: skip
def test_no_option_is_passed_over(mode, place, here):
    """Each either changes what comes out or is refused by name."""
    command, *valid = mode
    out = () if command == "draw" else ("--json", "out.json")

    def outcome(line: tuple[str, ...], name: str = "") -> str:
        result = here(command, *line, *out)
        if result.returncode == 2:
            assert name, result.stderr
            assert name in result.stderr
            return result.stderr
        return Path("picture.svg" if command == "draw" else "out.json").read_text()

    plain = outcome(tuple(valid))
    assert outcome(tuple(valid)) == plain
    for option in options_of(command):
        if option.name in MEANINGFUL:
            name = option.opts[0]
            base = without(tuple(valid), name)
            found = [outcome((*base, *spelled(option, word)), name) for word in MEANINGFUL[option.name].split()]
            assert any(each != plain for each in found), name


@pytest.mark.parametrize("width", ["0", "-1", "1", "7", "²", "99999999999", "wide", ""])
def test_any_width_of_the_terminal_shows_something(width, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setenv("LINES", width)
    result = here("grid", "case9")
    assert result.returncode == 0
    assert "Convergedandstable" in "".join(result.stdout.split())
    refused = here("grid", "case9", "--scale", "-1")
    assert refused.returncode == 2
    assert "--scalemustbeafloat" in "".join(refused.stderr.split())


def test_errors_speak_of_options():
    params = COMMANDS["train"].params
    for said, meant in (
        ("The 'learning_rate' parameter of Plan must be a number. Got 1.", "--learning-rate must be a number. Got 1."),
        ("The 'learn' of Plan must be names of parameters.", "--learn must be names of parameters."),
        ("The 'learn['omega']' parameter of Plan must be a number.", "--learn must be a number."),
        ("The 'task' parameter of phasegrad train must be one of 'xor'.", "TASK must be one of 'xor'."),
        (
            "The 'tolerance' parameter of Settling must be small.",
            "The 'tolerance' parameter of Settling must be small.",
        ),
        ("The plan names 'mass'. There is none.", "--learn names 'mass'. There is none."),
        ("The graph is disconnected.", "The graph is disconnected."),
    ):
        assert words.with_words_of(params, said) == meant


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (("train", "xor", "--seeds", "0:20000000000"), "--seeds must be at most 100000 seeds. Train a part of"),
        (("train", "xor", "--hidden", "99999999999"), "--hidden must be at most 100000 oscillators in a layer."),
        (("train", "xor", "--epochs", "1", "--epochs", "2"), "--epochs was given twice. Give it once."),
        (("train", "xor", "--hidden", " "), "--hidden has no value. Give one, or leave it out."),
        (("train", "xor", "--learn", "omega=1,omega=2"), "--learn names a parameter twice."),
        (("train", "xor", "--gradient", "adjoint", "--beta", "0.1"), "--beta has no effect with --gradient adjoint"),
        (("verify", "--sizes", "99999999999"), "--sizes must be different numbers, 2000 at most. Got 99999999999."),
        (("verify", "--sizes", "6,6"), "--sizes must be different numbers, 2000 at most. Got 6, 6."),
        (("grid", "case9", "--scale", "1e-320"), "--scale must be a float from 1e-06 to 1e+06. Got 1e-320 instead."),
        (("reproduce", "--workers", "99999"), "--workers must be at most 4 for each processor"),
        (("reproduce", "--workers", "1", "--cluster", "tcp://x:1"), "--workers has no effect with --cluster"),
        (("bench", "--folder", "."), "--folder must be the folder of a finished reproduction."),
    ],
)  # fmt: skip
def test_numbers_without_measure_are_refused(line, message, here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    result = here(*line)
    assert result.returncode == 2
    assert message in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_every_option_of_numbers_says_so():
    """Its metavar decides that it goes through the rule for numbers."""
    bounded = [each for name in VALID for each in options_of(name) if each.min is not None or each.max is not None]
    assert len(bounded) > 20
    assert {each.metavar for each in bounded} == {"N", "X"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (("reproduce", "finite-beta", "--seeds", "1_0", "--out", "out"), "--seeds cannot be '1_0'. It must be a whole"),
        (("train", "xor", "--epochs", "1_0"), "--epochs cannot be '1_0'. It must be a whole number."),
        (("train", "xor", "--learning-rate", "1_0"), "--learning-rate cannot be '1_0'. It must be a number."),
        (("train", "xor", "--seeds", "1_0"), "--seeds must be a seed (3), a list (0,2,5) or a range (0:100)"),
        (("train", "xor", "--seeds", "0:1_0"), "--seeds must be a seed (3), a list (0,2,5) or a range (0:100)"),
        (("train", "xor", "--learn", "omega=1_0"), "--learn must be names of parameters"),
        (("verify", "--sizes", "1_0"), "--sizes must be whole numbers separated by commas"),
        (("simulate", "layered", "--inputs", "1_0,2"), "--inputs must be 2 numbers separated by commas"),
    ],
)
def test_an_underscore_makes_no_number(line, said, here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    result = here(*line)
    assert result.returncode == 2
    assert said in " ".join(result.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_a_piece_that_fails_is_named(here, monkeypatch):
    from phasegrad_paper.studies import agreement

    monkeypatch.setattr(agreement, "seed_rows", lambda seeds: 1 / 0)
    result = here("verify", "--sizes", "6", "--seeds", "1")
    assert result.returncode == 1
    assert "Error: The piece 'seeds at N = 10' failed: ZeroDivisionError: division by zero." in result.stderr


@pytest.mark.parametrize("kind", [MemoryError, OverflowError])
def test_too_much_is_said_in_a_sentence(kind, here, monkeypatch):
    def fill(*_):
        raise kind("Unable to allocate 8 TiB")

    monkeypatch.setattr(pg.grids, "load", fill)
    result = here("grid", "case9")
    assert result.returncode == 2
    assert "This is too large: Unable to allocate 8 TiB. Give smaller numbers." in " ".join(result.stderr.split())


def test_a_line_of_nonsense_in_a_process_of_its_own():
    """As typed: what lies between the interpreter and the command is tried too."""
    for line in chosen(LINES)[::250]:
        result = run(line.command, *line.valid, *line.nonsense)
        assert "Traceback" not in result.stderr
        assert result.returncode in (0, 1, 2)
