"""Running ngspice: a netlist goes into a folder of its own, voltages come out, and nothing is left behind."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from phasegrad._files import printable
from phasegrad._validation import FloatArray, positive_float
from phasegrad.circuits._netlist import Netlist

PROGRAM = "ngspice"
#: Seconds that a run may take.
LIMIT = 300.0
_MISSING = (
    "There is no ngspice here, which simulates circuits. Install it (Debian: apt-get install ngspice; conda-forge and "
    "Homebrew have it too), or use stored results."
)
# Relative and absolute tolerances, the latter as shares of what is typical of a circuit; then looser ones.
_TOLERANCES = ((1e-6, 1e-9, "trap"), (1e-3, 1e-5, "gear"))
# Steps are those that the netlist asks for: chosen by an estimate of the error, they would differ between a free and a
# nudged run, and so would the error, of which a gradient is to see the difference.
_LAX = 1000
_SMALL_STEP = "timestep too small"
_LONGEST = 300
# Lines that describe a circuit and its simulation. Others run commands of the shell, or read files that do.
_DESCRIBING = re.compile(r"\.(ends?|func|global|ic|model|nodeset|options?|param|save|subckt|temp|tran)", re.IGNORECASE)
_COMMANDS = re.compile(r"\*(#|ng_script)|a", re.IGNORECASE)  # an element of the letter A may be a process


class NgspiceError(OSError):
    """ngspice is missing, failed, or took too long; the sentence says which, and what to do.

    See Also
    --------
    circuits.ngspice : Run a netlist.
    circuits.has_ngspice : Whether ngspice can be run.

    Examples
    --------
    >>> import phasegrad as pg
    >>> issubclass(pg.circuits.NgspiceError, OSError)
    True
    """


@dataclass(frozen=True)
class Waveforms:
    """Voltages over time.

    Parameters
    ----------
    times : ndarray, shape (T,)
        In seconds, at steps that differ.
    voltages : ndarray, shape (T, N)
        One column per oscillator.
    loosened : bool
        Whether it took looser tolerances than usual.

    See Also
    --------
    circuits.ngspice : Run a netlist.
    circuits.lock : Phases at the end of waveforms.

    Examples
    --------
    >>> import numpy as np
    >>> import phasegrad as pg
    >>> times = np.linspace(0, 60e-6, 6001)
    >>> voltages = np.cos(2 * np.pi * 1e6 * times[:, None] + [0.0, 0.5])
    >>> pg.circuits.Waveforms(times, voltages).voltages.shape
    (6001, 2)
    """

    times: FloatArray
    voltages: FloatArray
    loosened: bool = False


def has_ngspice() -> bool:
    """Whether ngspice can be run here.

    See Also
    --------
    circuits.ngspice : Run a netlist.

    Examples
    --------
    >>> import shutil
    >>> import phasegrad as pg
    >>> pg.circuits.has_ngspice() == (shutil.which("ngspice") is not None)
    True
    """
    return shutil.which(PROGRAM) is not None


def ngspice_version() -> str:
    """Return the version of ngspice, such as "39"; `NgspiceError` where there is none.

    See Also
    --------
    circuits.has_ngspice : Whether ngspice can be run.
    circuits.ngspice : Run a netlist.

    Examples
    --------
    >>> import phasegrad as pg
    >>> if pg.circuits.has_ngspice():
    ...     assert float(pg.circuits.ngspice_version()) > 30
    """
    done = subprocess.run([_program(), "--version"], capture_output=True, text=True, check=False, timeout=60)
    found = re.search(r"ngspice-(\S+)", done.stdout)
    return found[1] if found else "unknown"


def ngspice(netlist: Netlist, *, limit: float = LIMIT, trusted: bool = False) -> Waveforms:
    """Return the voltages of a circuit over time.

    Where a step in time becomes too small, it is tried once more with looser tolerances, and the result says so.

    A ``.control`` section, a file that the text includes or a code model can run any program. Text with a line that
    does not describe a circuit raises ValueError, unless it is trusted.

    Parameters
    ----------
    netlist : Netlist
    limit : float
        Seconds after which it is ended.
    trusted : bool
        Whether the text may run commands.

    See Also
    --------
    circuits.has_ngspice : Whether ngspice can be run.

    Examples
    --------
    >>> import phasegrad as pg
    >>> ring = pg.networks.ring(3, omega=[0.1, 0.0, -0.1])
    >>> netlist = pg.circuits.write_netlist(ring, pg.circuits.Components(), cycles=20)
    >>> if pg.circuits.has_ngspice():
    ...     assert pg.circuits.ngspice(netlist).voltages.shape[1] == 3
    """
    if not isinstance(netlist, Netlist):
        raise TypeError(f"ngspice takes a Netlist. Got {type(netlist).__name__}.")
    if not trusted:
        _check_lines(netlist.text)
    program, limit = _program(), positive_float("limit", limit, "ngspice")
    complaint = ""
    for attempt, tolerances in enumerate(_TOLERANCES):
        found = _attempt(program, netlist, tolerances, limit)
        if isinstance(found, Waveforms):
            return Waveforms(found.times, found.voltages, attempt > 0)
        complaint = found
        if _SMALL_STEP not in complaint.lower():
            raise NgspiceError(f"ngspice could not simulate this circuit: {complaint}. Look at the netlist.")
    raise NgspiceError(
        f"ngspice could not follow this circuit, with looser tolerances neither: {complaint}. Take more steps in a "
        "cycle, or components that differ less."
    )


def _check_lines(text: str) -> None:
    """Refuse lines that could do more than describe a circuit."""
    for number, line in enumerate(text.splitlines(), 1):
        word = line.split(maxsplit=1)[0] if line.strip() else ""
        element = number > 1 or word.startswith("*")  # the first line is a title
        if (word.startswith(".") and not _DESCRIBING.fullmatch(word)) or (element and _COMMANDS.match(word)):
            raise ValueError(
                f"Line {number} of this netlist, {printable(word)!r:.40}, can run commands or read files. Take the "
                "line out, or give trusted=True if you know who wrote it."
            )


def _attempt(program: str, netlist: Netlist, tolerances: tuple[float, float, str], limit: float) -> Waveforms | str:
    """Return the voltages, or what ngspice complains of."""
    with tempfile.TemporaryDirectory(prefix="phasegrad-") as place:
        folder = Path(place)
        (folder / "circuit.cir").write_text(_with_tolerances(netlist, *tolerances), encoding="ascii")
        # -n leaves the user's own start file out, which could change anything.
        command = [program, "-n", "-b", "-r", "out.raw", "circuit.cir"]
        try:
            done = subprocess.run(
                command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=limit
            )
        except subprocess.TimeoutExpired:
            raise NgspiceError(
                f"ngspice took longer than {limit:g} s and was ended. Allow more time with 'limit', simulate fewer "
                "cycles, or raise eps."
            ) from None
        except OSError as error:
            raise NgspiceError(f"ngspice could not be started: {error}.") from None
        words = (done.stderr + done.stdout).decode("utf-8", "replace")
        raw = folder / "out.raw"
        if done.returncode or _SMALL_STEP in words.lower() or not raw.exists():
            return _complaint(words, done.returncode)
        return _read(raw.read_bytes(), netlist)


def _with_tolerances(netlist: Netlist, relative: float, absolute: float, method: str) -> str:
    volt, ampere, farad = netlist.scales
    options = (
        f".options reltol={relative:g} vntol={absolute * volt:.6e} abstol={absolute * ampere:.6e} "
        f"chgtol={absolute * farad * volt:.6e} trtol={_LAX} method={method}"
    )
    first, _, rest = netlist.text.partition("\n")
    return f"{first}\n{options}\n{rest}"


def _read(raw: bytes, netlist: Netlist) -> Waveforms:
    """Return what a binary raw file holds: a header of lines, then doubles, point by point."""
    header, mark, body = raw.partition(b"Binary:\n")
    lines = header.decode("ascii", "replace")
    sizes = [re.search(rf"No\. {word}: *(\d+)", lines) for word in ("Variables", "Points")]
    names = re.findall(r"^\s+\d+\s+(\S+)\s+\S+", lines, flags=re.MULTILINE)
    if not mark or sizes[0] is None or sizes[1] is None:
        raise NgspiceError("ngspice wrote a file of voltages that cannot be read. Is its version 34 or newer?")
    width, length = int(sizes[0][1]), int(sizes[1][1])
    wanted = [f"v({node})" for node in netlist.nodes]
    if len(body) < 8 * width * length or length < 2 or not set(wanted) <= set(names):
        raise NgspiceError("ngspice wrote fewer voltages than the netlist asks for. Is there room on the disk?")
    table = np.frombuffer(body, dtype=np.float64, count=width * length).reshape(length, width)
    voltages = table[:, [names.index(each) for each in wanted]].copy()
    if not np.all(np.isfinite(voltages)):
        raise NgspiceError("The voltages of this circuit grow without bound. Look at the netlist.")
    return Waveforms(table[:, 0].copy(), voltages)


def _complaint(words: str, status: int) -> str:
    """Return the lines that say what went wrong."""
    lines = [line.strip() for line in words.splitlines()]
    telling = [each for each in lines if re.search(r"error|too small|singular|fatal|abort|interrupted", each, re.I)]
    first = sorted(dict.fromkeys(telling), key=lambda each: _SMALL_STEP not in each.lower())
    return printable("; ".join(first) or f"it ended with status {status} and no word").rstrip(".")[:_LONGEST]


def _program() -> str:
    program = shutil.which(PROGRAM)
    if program is None:
        raise NgspiceError(_MISSING)
    return program
