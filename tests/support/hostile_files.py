"""Hostile files: sound ones changed in every way that a slip, a bad disk or malice changes them, and what comes of it.

As a script it tries a number of them in this process, under a limit on its memory, and prints what came of them::

    python hostile_files.py {model,state,folder,csv} COUNT FOLDER
"""

import binascii
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import struct
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import phasegrad as pg
from phasegrad._files import archive_digest

#: What a process may use above what it needs for a sound file.
MEMORY = 300 * 2**20
#: Seconds after which reading a file counts as hanging, on a busy machine too.
PATIENCE = 60
FEATURES = ("f1_hz", "f2_hz")
RAW = "raw JSON: "
#: Values that no setting is meant to have; text after `RAW` goes into the JSON as it is.
VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 2**31, 2**63, 2**127, -(2**80), 1.5, -0.0, 1e-320, 1e308, "", "omega", "\x1b[31mred",
    "[red]red[/red]", "two\nlines", "x" * 100_000, [], {}, [[]], [None], [1, "a"], {"kind": {}}, [0] * 1000,
    RAW + "1e400", RAW + "-1e400", RAW + "NaN", RAW + "Infinity", RAW + "9" * 400, RAW + "9" * 5000,
    RAW + "[" * 900 + "]" * 900, RAW + "[" * 100_000, RAW + '{"a":' * 100_000, RAW + '"\\ud800"',
]  # fmt: skip
SHAPES = [
    "()", "(3,)", "(0,)", "(-1,)", "(1000000000000,)", "(9223372036854775808,)", "(4, 4611686018427387904)",
    "(2147483648, 2147483648)", "(" + "1, " * 200 + ")", "((((", "(3.5,)", "('a',)", "(3L,)", "(10**10,)", "3",
]  # fmt: skip
DTYPES = ["<f4", "<i4", "<u8", ">f8", "<c16", "|O", "|V8", "<U3", "|S8", "<M8[ns]", "|b1", "|u1", "<U999999999", "x"]


class Member:
    """A member of an archive, every field of its two headers open to change."""

    def __init__(self, name: str, content: bytes, method: int = 0) -> None:
        self.name, self.content, self.method = name.encode("utf-8", "surrogatepass"), content, method
        self.flags = 0 if name.isascii() else 0x800
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        self.stored = packer.compress(content) + packer.flush() if method == 8 else content
        self.crc, self.size = binascii.crc32(content), len(content)


def archive(members: list[Member]) -> bytes:
    """Return the members as a zip file."""
    body, directory = b"", b""
    for each in members:
        sizes = struct.pack("<III", each.crc, len(each.stored), each.size & 0xFFFFFFFF)
        common = struct.pack("<HHHHH", 20, each.flags, each.method, 0, 0x21) + sizes
        place, name = len(body), struct.pack("<H", len(each.name))
        body += b"PK\x03\x04" + common + name + b"\0\0" + each.name + each.stored
        directory += b"PK\x01\x02\x14\x03" + common + name + bytes(12) + struct.pack("<I", place) + each.name
    end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + end


def members_of(content: bytes) -> list[Member]:
    """Return the members of a sound archive."""
    import io
    import zipfile

    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return [Member(info.filename, file.read(info)) for info in file.infolist()]


def signed(content: bytes) -> bytes:
    """Return an archive with a digest that fits what was changed in it, if it can be read at all."""
    import io

    try:
        with np.load(io.BytesIO(content)) as file:
            arrays = {name: file[name] for name in file.files if name != "digest"}
        members = [each for each in members_of(content) if each.name != b"digest.npy"]
        digest = archive_digest(arrays)
    except Exception:
        return content
    return archive([*members, Member("digest.npy", npy("<U64", "()", digest.encode("utf-32-le")))])


def npy(descr: str, shape: str, data: bytes, order: str = "False") -> bytes:
    """Return an array as a file, whatever its header says."""
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}".encode("latin-1")
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) & 0xFFFF) + text + data


def zeros(size: int) -> tuple[bytes, int]:
    """Return a deflated member that inflates to so many zeros (a multiple of 2**20), and its checksum."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block, crc = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH), 0
    for _ in range(size >> 20):
        crc = binascii.crc32(_ZEROS, crc)
    return block * (size >> 20) + packer.flush(), crc


_ZEROS = bytes(2**20)


def bomb(name: str, size: int, shape: str) -> Member:
    """Return a member of a few kilobytes that inflates to an array of so many zeros."""
    member = Member(name, b"")
    head = npy("<f8", shape, b"")
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    rest, _ = zeros(size)
    crc = binascii.crc32(head)
    for _ in range(size >> 20):
        crc = binascii.crc32(_ZEROS, crc)
    member.method, member.stored, member.crc, member.size = 8, first + rest, crc, len(head) + size
    return member


# Changes of whole files


def flipped(content: bytes, stream: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(stream.choice((1, 1, 2, 8, 40))):
        changed[stream.randrange(len(changed))] ^= 1 << stream.randrange(8)
    return bytes(changed)


def cut(content: bytes, stream: random.Random) -> bytes:
    return content[: stream.randrange(len(content))]


def spliced(content: bytes, stream: random.Random) -> bytes:
    first, last = sorted(stream.randrange(len(content)) for _ in range(2))
    piece = stream.choice((content[first:last], stream.randbytes(stream.randrange(1, 300)), bytes(50), b""))
    place = stream.randrange(len(content) + 1)
    return content[:place] + piece + content[place + stream.choice((0, len(piece))) :]


# Changes of archives


def wrong_array(content: bytes, stream: random.Random) -> bytes:
    members = members_of(content)
    chosen = stream.choice(members)
    start = 10 + struct.unpack("<H", chosen.content[8:10])[0]
    data, text = chosen.content[start:], chosen.content[10:start].decode("latin-1")
    descr, order, shape = (text.split(mark)[1].split(end)[0] for mark, end in
                           (("'descr': '", "'"), ("order': ", ","), ("'shape': ", "), }")))  # fmt: skip
    kind = stream.randrange(7)
    if kind == 0:
        shape = stream.choice(SHAPES)
    elif kind == 1:
        descr, shape = stream.choice(DTYPES), shape + ")"
    elif kind == 2:
        order, shape = stream.choice(("True", "1", "None", "'x'", "")), shape + ")"
    elif kind == 3:
        shape, data = f"({stream.randrange(40)}, {stream.randrange(5)})", data
    elif kind == 4 and descr == "<f8" and data:
        values = np.frombuffer(data).copy()
        values[stream.randrange(values.size)] = stream.choice((np.nan, np.inf, -np.inf, 1e308, -1.0, 0.0, 5e-324))
        shape, data = shape + ")", values.tobytes()
    elif kind == 5 and descr == "<i8" and data:
        numbers = np.frombuffer(data, "<i8").copy()
        numbers[stream.randrange(numbers.size)] = stream.choice((-1, 0, 1, 7, 10**6, 2**40, 2**62, -(2**63)))
        shape, data = shape + ")", numbers.tobytes()
    else:
        shape, data = shape + ")", stream.choice((data[: stream.randrange(len(data) + 1)], data * 3, b"", data + b"\0"))
    array = npy(descr, shape, data, order)
    if stream.random() < 0.15:
        array = flipped(array[: stream.choice((len(array), 30, 128))], stream)
    replaced = Member(chosen.name.decode(), array, stream.choice((0, 0, 8)))
    return archive([replaced if each is chosen else each for each in members])


def wrong_header(content: bytes, stream: random.Random) -> bytes:
    members = members_of(content)
    (place,) = (k for k, each in enumerate(members) if each.name == b"header.npy")
    start = 10 + struct.unpack("<H", members[place].content[8:10])[0]
    text = members[place].content[start:].decode("utf-32-le")
    changed = wrong_json(text.encode(), stream).decode("utf-8", "replace")
    size = f"<U{len(changed)}"
    members[place] = Member("header.npy", npy(size, "()", changed.encode("utf-32-le", "surrogatepass")))
    return archive(members)


def wrong_names(content: bytes, stream: random.Random) -> bytes:
    members = members_of(content)
    chosen = stream.randrange(len(members))
    kind = stream.randrange(6)
    if kind == 0:
        del members[chosen]
    elif kind == 1:
        members.insert(stream.randrange(len(members)), stream.choice(members))
    elif kind == 2:
        other = stream.randrange(len(members))
        members[chosen].name, members[other].name = members[other].name, members[chosen].name
    elif kind == 3:
        names = ("../edges.npy", "parameter.\x1b[31m.npy", "x" * 60_000, "", "parameter..npy", "header", "ü.npy", "/")
        members[chosen].name = stream.choice(names).encode()
    elif kind == 4:
        extra = stream.choice(("extra", "parameter.extra", "parameters.extra", "first.extra", "best.extra", "a/b"))
        members.append(Member(f"{extra}.npy", stream.choice(members).content))
    else:
        members[chosen].name, members[chosen].flags = b"\xff\xfe\x00.npy", stream.choice((0, 0x800))
    return archive(members)


def wrong_packing(content: bytes, stream: random.Random) -> bytes:
    members = members_of(content)
    chosen = stream.randrange(len(members))
    each = members[chosen]
    kind = stream.randrange(7)
    if kind == 0:
        each.flags |= 1
    elif kind == 1:
        each.method = stream.choice((1, 6, 9, 12, 14, 19, 93, 95, 97, 98, 99, 65535))
    elif kind == 2:
        each.method, each.stored = 8, stream.randbytes(len(each.stored))
    elif kind == 3:
        each = members[chosen] = Member(each.name.decode(), each.content, 8)
        each.stored = flipped(each.stored, stream)
    elif kind == 4:
        each.size = stream.choice((0, 1, len(each.content) + 1, 2**31, 2**32 - 1))
    elif kind == 5:
        each = members[chosen] = Member(each.name.decode(), each.content, 8)
        each.size = stream.choice((len(each.content) - 1, len(each.content) + 1, 2**30))
    else:
        members = [Member(other.name.decode(), other.content, 8) for other in members]  # sound, but deflated
    return archive(members)


def bombs(content: bytes, stream: random.Random) -> bytes:
    members = members_of(content)
    size = 2**30 if stream.random() < 0.1 else 400 * 2**20
    asked = stream.choice(members).name.decode() if stream.random() < 0.6 else "extra.npy"
    shape = stream.choice((f"({size // 8},)", f"({size // 16}, 2)", "(1,)"))
    return archive([*(each for each in members if each.name.decode() != asked), bomb(asked, size, shape)])


def no_archive(content: bytes, stream: random.Random) -> bytes:
    single = npy("<f8", "(3,)", bytes(24))
    kinds = (
        b"",
        b"PK",
        b"PK\x05\x06" + bytes(18),
        single,
        npy("|O", "(1,)", b"\x80\x04N."),
        b"\x80\x04N.",
        bytes(1000),
    )
    return stream.choice((*kinds, content + bytes(30), b"#!/bin/sh\n" + content, content + content))


# Changes of JSON and of tables


def places_of(data: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where every value of plain data lies."""
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [place, *(found for key, value in inside for found in places_of(value, (*place, key)))]


def wrong_json(content: bytes, stream: random.Random) -> bytes:
    data = json.loads(content)
    for _ in range(stream.choice((1, 1, 1, 3))):
        *way, last = stream.choice(places_of(data)[1:] or [(0,)])
        inner = data
        for key in way:
            inner = inner[key]
        with contextlib.suppress(IndexError, KeyError, TypeError):
            if stream.random() < 0.15:
                del inner[last]
            else:
                inner[last] = stream.choice(VALUES)
    text = json.dumps(data)
    for value in VALUES:
        if isinstance(value, str) and value.startswith(RAW):
            text = text.replace(json.dumps(value), value.removeprefix(RAW))
    return text.encode("utf-8", "surrogatepass")


def wrong_table(content: bytes, stream: random.Random) -> bytes:
    lines = content.decode().split("\n")
    fields = ("5_1", "1e400", "nan", "-inf", "", " ", "٣", "0x10", "1,2", '"', '"1\n2"', "1\0", "x" * 140_000,
              "\x1b[31m", "[red]", "1;2", "5_1", "1.5.2", "9" * 400, "1" * 100_000, "\ufeff1", "1e", "+-1")  # fmt: skip
    kind, line = stream.randrange(9), stream.randrange(len(lines) - 1)
    cells = lines[line].split(",")
    if kind <= 2:
        cells[stream.randrange(len(cells))] = stream.choice(fields)
    elif kind == 3:
        cells.append(stream.choice(fields))
    elif kind == 4:
        del cells[stream.randrange(len(cells))]
    elif kind == 5:
        lines.insert(line, stream.choice(("", "", " ", ",,", "\r", "#")))
    lines[line] = ",".join(cells) if kind < 5 else lines[line]
    text = "\n".join(lines)
    if kind == 6:
        return text.encode(stream.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp500")))
    if kind == 7:
        starts = (text[:0], lines[0], lines[0] + "\n\n\n", "\n\n" + text, "x" * 20_000_000, "\0" * 1000, "," * 300_000)
        return stream.choice(starts).encode()
    if kind == 8:
        head = stream.choice(
            ("f1_hz,f2_hz,f1_hz", "f1_hz,f1_hz,f2_hz", "f2_hz", "F1_hz,F2_hz,word", "f1_hz;f2_hz;word")
        )
        return "\n".join([head, *lines[1:]]).encode()
    return text.encode()


# What is tried


Change = Callable[[bytes, random.Random], bytes]
ARCHIVE: list[Change] = [
    flipped, cut, spliced, wrong_array, wrong_array, wrong_header, wrong_header, wrong_names, wrong_packing, no_archive,
]  # fmt: skip
CHANGES: dict[str, list[Change]] = {
    "model": ARCHIVE,
    "state": ARCHIVE,
    "folder": [flipped, cut, spliced, wrong_json, wrong_json],
    "csv": [flipped, cut, spliced, wrong_table, wrong_table, wrong_table],
}
#: Bombs take a second to make, so that only few of the archives are.
BOMBS = {"model": 0.02, "state": 0.02}


def hostile(kind: str, content: bytes, number: int) -> tuple[str, bytes]:
    """Return the name of a change and what it makes of sound content; the same for the same number."""
    stream = random.Random(f"{kind} {number}")
    change = bombs if stream.random() < BOMBS.get(kind, 0) else CHANGES[kind][number % len(CHANGES[kind])]
    changed = change(content, stream)
    # With a digest that fits, what was changed is looked at; without one it is refused as such.
    return change.__name__, signed(changed) if kind in BOMBS and stream.random() < 0.7 else changed


class _OneFile:
    """What is one file."""

    content: bytes

    def content_of(self, number: int) -> bytes:
        """Return the sound content of the file that is changed."""
        return self.content


class Models(_OneFile):
    """Model files."""

    def __init__(self, folder: Path) -> None:
        self.place = folder / "model.npz"
        named = pg.layered(2, 5, 2, field_strength=0.1, labels=[f"node {k}" for k in range(9)])
        shared = pg.layers((2, 1, 1), pg.Convolution(3, 1), pg.Dense(2), field=0.0)
        scaling = pg.datasets.Scaling([300.0, 800.0], [900.0, 2600.0], 3.0)
        self.contents = []
        for network in (named, shared):
            pg.Model(network, pg.objectives.PaperPair(), ("a", "i"), FEATURES, scaling).save(self.place)
            self.contents.append(self.place.read_bytes())

    def content_of(self, number: int) -> bytes:
        """Return that of the network with edges or of the one with layers, in turn for every kind of change."""
        return self.contents[number // len(CHANGES["model"]) % 2]

    def attempt(self, content: bytes, number: int) -> None:
        """Load it; what loads must be whole and able to answer."""
        self.place.write_bytes(content)
        model = pg.Model.load(self.place)
        assert all(np.all(np.isfinite(values)) for values in model.network.parameters.values())
        assert all(isinstance(name, str) for name in (*model.classes, *model.features))
        assert len(model.classes) == len(model.network.outputs)
        assert len(model.features) == len(model.network.inputs)
        with contextlib.suppress(ValueError):  # settings that can be, but under which nothing settles, are said too
            answer = model.predict(np.full((2, len(model.features)), 700.0))
            assert answer.equilibrium.phases.shape == (2, model.network.size)
        model.save(self.place)
        assert pg.Model.load(self.place).network == model.network


class States(_OneFile):
    """Files of training states."""

    def __init__(self, folder: Path) -> None:
        self.place, self.network = folder / "state.npz", pg.networks.signed_layers(2, 3, 2)
        generator = np.random.default_rng(0)
        x = generator.uniform(-1, 1, (12, 2))
        self.data = (x, (x[:, 0] > 0).astype(int))
        self.plan = pg.Plan.classifier(
            epochs=4, batch_size=4, validation_fraction=0.25, patience=3, learn=("coupling", "field_strength")
        )
        state = pg.train(self.network, self.data, self.plan, until=2).state
        state.save(self.place)
        self.content = self.place.read_bytes()

    def attempt(self, content: bytes, number: int) -> None:
        """Load it and go on from it."""
        self.place.write_bytes(content)
        state = pg.training.TrainingState.load(self.place)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pg.training.TrainingWarning)
            result = pg.train(self.network, self.data, self.plan, state=state, until=max(state.epoch, 2))
        assert all(np.all(np.isfinite(values)) for values in result.state.parameters.values())


class Folders:
    """Folders of reproductions: one of their files is changed, or is something else than a file."""

    def __init__(self, folder: Path) -> None:
        import piece_functions as functions

        from phasegrad_paper.reproduction import reproduce

        self.place, self.study = folder / "folder", functions.drawing_study(3)
        reproduce([self.study], self.place, workers=1)
        self.files = [self.place / "run.json", *sorted((self.place / "pieces").iterdir())]
        self.contents = [path.read_bytes() for path in self.files]

    def content_of(self, number: int) -> bytes:
        """Return the sound content of the file that is changed."""
        return self.contents[self.which(number)]

    def which(self, number: int) -> int:
        """Return which of the files is changed."""
        return number // len(CHANGES["folder"]) % len(self.files)

    def attempt(self, content: bytes, number: int) -> None:
        """Open the folder; what it then holds must be what was kept in it."""
        from phasegrad_paper.reproduction.folder import open_folder
        from phasegrad_paper.reproduction.identity import Identity

        which = self.which(number)
        path = self.files[which]
        try:
            path.write_bytes(content)
            if number % 25 == 24:
                path.unlink()
                kind = number // 25 % 4
                path.mkdir() if kind == 0 else path.symlink_to(path) if kind == 1 else os.mkfifo(path)
                if kind == 3:
                    path.unlink()
                    path.symlink_to("/dev/zero")
            with open_folder(self.place, Identity.here()) as found:
                for record in (json.loads(each) for each in self.contents[1:]):
                    held = found.results.get(record["identity"], record["result"])
                    assert json.dumps(held) == json.dumps(record["result"])
        finally:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
            path.write_bytes(self.contents[which])


class Tables(_OneFile):
    """CSV files of samples."""

    def __init__(self, folder: Path) -> None:
        self.place = folder / "samples.csv"
        rows = [f"{300 + 7 * k}.5,{900 + 31 * k},word {k}" for k in range(12)]
        self.content = "\n".join(["f1_hz,f2_hz,word", *rows, ""]).encode()
        self.attempt(self.content, 0)

    def attempt(self, content: bytes, number: int) -> None:
        """Read the columns that are asked for."""
        from phasegrad.runs import read_samples

        self.place.write_bytes(content)
        samples = read_samples(self.place, FEATURES).x
        assert samples.ndim == 2
        assert samples.shape[1] == 2
        assert len(samples) > 0
        assert np.all(np.isfinite(samples))


KINDS: dict[str, Any] = {"model": Models, "state": States, "folder": Folders, "csv": Tables}


def fault(error: BaseException | None) -> str:
    """Return what is wrong with how a file was refused; nothing if it is one clear sentence."""
    if error is None:
        return ""
    words = str(error)
    if type(error) not in (ValueError, OSError, FileNotFoundError):
        return f"{type(error).__name__}: {words[:200]}"
    if not words.isprintable() or len(words) > 700 or not words.endswith((".", "?")) or "  " in words:
        return f"not a sentence: {words[:300]!r}"
    return "memory ran out" if "memory" in words else ""


def give_up(*_: object) -> None:
    """End what hangs."""
    raise AssertionError("This file is read without end.")


def limit_memory() -> None:
    """Let this process have `MEMORY` more than it has now."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, resource.RLIM_INFINITY))


def campaign(kind: str, count: int, folder: Path) -> dict[str, Any]:
    """Try so many hostile files of a kind and return what came of them."""
    tried = KINDS[kind](folder)
    limit_memory()
    signal.signal(signal.SIGALRM, give_up)
    loaded, failures = 0, []
    for number in range(count):
        change, content = hostile(kind, tried.content_of(number), number)
        error: BaseException | None = None
        signal.alarm(PATIENCE)
        try:
            tried.attempt(content, number)
            loaded += 1
        except Exception as caught:
            error = caught
        signal.alarm(0)
        if words := fault(error):
            failures.append(f"{number} {change}: {words}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kinds = dict(Counter(each.split(":")[1].strip() for each in failures))
    return {"tried": count, "loaded": loaded, "peak": peak, "failures": failures, "kinds": kinds}


if __name__ == "__main__":
    warnings.simplefilter("error")
    print(json.dumps(campaign(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))))
