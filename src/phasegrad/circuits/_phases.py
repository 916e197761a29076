"""Phases read off waveforms: the fundamental of every node at the frequency that they share.

A window of some cycles is fitted by cosines and sines at the frequency and its harmonics, by least squares, so that the
steps in time may be of any size. Phases are those of a cosine. Locked oscillators keep their differences from window to
window; what is left of their differences' motion is the error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phasegrad._validation import FloatArray, positive_float, whole_number
from phasegrad.circuits._ngspice import Waveforms

#: Of the simulated cycles, the share at the end that is fitted, and in how many windows.
_SHARE, _WINDOWS = 0.2, 5
_LEAST_CYCLES = 2
_HARMONICS = 5
# A frequency that all share is found by correcting it with the motion of the phases, so often.
_CORRECTIONS = 6
#: Radians by which a phase may move between the first window and the last, and share of the largest amplitude.
DRIFT, _DEAD = 0.02, 0.1


@dataclass(frozen=True)
class Locked:
    """What waveforms show of their oscillators.

    Parameters
    ----------
    phases : ndarray, shape (N,)
        At time zero of a cosine at ``frequency``; only their differences mean something unless sources set the phase.
    errors : ndarray, shape (N,)
        By how much each moved against the middle of all between windows, in radians: the largest distance from the
        mean over windows.
    amplitudes : ndarray, shape (N,)
        Of the fundamental, in volt.
    frequency : float
        Shared, in hertz.
    frequencies : ndarray, shape (N,)
        Of each.
    drifting, silent : tuple of int
        The oscillators that are not locked to the others, and those that hardly oscillate.

    See Also
    --------
    circuits.lock : Phases at the end of waveforms.
    circuits.Circuit : A network as a circuit, and a device.

    Examples
    --------
    >>> import numpy as np
    >>> import phasegrad as pg
    >>> times = np.linspace(0, 60e-6, 6001)
    >>> voltages = np.cos(2 * np.pi * 1e6 * times[:, None] + [0.0, 0.5])
    >>> found = pg.circuits.lock(pg.circuits.Waveforms(times, voltages), 1e6)
    >>> found.drifting, found.silent, found.amplitudes.round(3)
    ((), (), array([1., 1.]))
    """

    phases: FloatArray
    errors: FloatArray
    amplitudes: FloatArray
    frequency: float
    frequencies: FloatArray
    drifting: tuple[int, ...] = ()
    silent: tuple[int, ...] = ()

    @property
    def locked(self) -> bool:
        """Whether all oscillate at one frequency."""
        return not self.drifting and not self.silent

    @property
    def words(self) -> str:
        """What it came to, in a sentence."""
        if self.silent:
            return (
                f"The oscillators {_named(self.silent)} do not oscillate: their couplings take away more than the "
                "negative conductance gives. Choose a smaller eps or a larger gain."
            )
        if self.drifting:
            return (
                f"The oscillators {_named(self.drifting)} drift: they are not locked to the others. Simulate more "
                "cycles, or choose stronger couplings or natural frequencies that differ less."
            )
        return f"Locked at {self.frequency:.6g} Hz, phases within {np.max(self.errors):.1g} rad."


def lock(waveforms: Waveforms, frequency: float, *, driven: bool = False) -> Locked:
    """Return phases, amplitudes and the shared frequency at the end of waveforms.

    Parameters
    ----------
    waveforms : Waveforms
    frequency : float
        Roughly that of the oscillators, in hertz; exactly where ``driven``.
    driven : bool
        Whether sources set the frequency, so that it is not to be found.

    See Also
    --------
    circuits.phase_history : Phases window by window.

    Examples
    --------
    >>> import numpy as np
    >>> import phasegrad as pg
    >>> times = np.linspace(0, 60e-6, 6001)
    >>> voltages = np.cos(2 * np.pi * 1e6 * times[:, None] + [0.0, 0.5])
    >>> found = pg.circuits.lock(pg.circuits.Waveforms(times, voltages), 1e6)
    >>> print(f"{found.phases[1] - found.phases[0]:.3f} rad at {found.frequency:.4g} Hz")
    0.500 rad at 1e+06 Hz
    """
    frequency = positive_float("frequency", frequency, "lock")
    cycles = (waveforms.times[-1] - waveforms.times[0]) * frequency
    if cycles * _SHARE < _WINDOWS * _LEAST_CYCLES:
        raise ValueError(
            f"Phases are read from the last fifth of the cycles, {_WINDOWS * _LEAST_CYCLES} or more of them. "
            f"Got {cycles:.0f} cycles in all: simulate more."
        )
    span = cycles * _SHARE / _WINDOWS
    ends = waveforms.times[-1] - np.arange(_WINDOWS - 1, -1, -1) * span / frequency
    for _ in range(1 if driven else _CORRECTIONS):
        fits = _fits(waveforms, frequency, ends, span)
        moved = _motion(fits)
        rates = _slopes(moved) * frequency / span / (2 * np.pi)
        if not driven:
            frequency += float(np.median(rates))
    steady = moved - (0 if driven else np.median(moved, axis=1, keepdims=True))
    steady = steady - steady.mean(axis=0)
    errors = np.max(np.abs(steady), axis=0)
    amplitudes = np.abs(fits).mean(axis=0)
    silent = amplitudes < _DEAD * amplitudes.max()
    drifting = (np.abs(steady[-1] - steady[0]) > DRIFT) & ~silent
    phases = np.angle(fits[-1])
    if not driven:
        phases = phases - phases[0]
    return Locked(
        phases, errors, amplitudes, frequency, np.asarray(frequency + rates - (0 if driven else np.median(rates))),
        _numbers(drifting), _numbers(silent),
    )  # fmt: skip


def crossing_frequency(waveforms: Waveforms) -> float:
    """Return roughly the frequency of waveforms, in hertz: by how often they rise through their means.

    See Also
    --------
    circuits.lock : Phases at the end of waveforms.

    Examples
    --------
    >>> import numpy as np
    >>> import phasegrad as pg
    >>> times = np.linspace(0, 60e-6, 6001)
    >>> voltages = np.cos(2 * np.pi * 1e6 * times[:, None] + [0.0, 0.5])
    >>> print(f"{pg.circuits.crossing_frequency(pg.circuits.Waveforms(times, voltages)):.3g} Hz")
    1e+06 Hz
    """
    half = len(waveforms.times) // 2
    times, rates = waveforms.times[half:], []
    for voltage in waveforms.voltages[half:].T:
        above = voltage > (voltage.max() + voltage.min()) / 2
        rises = times[1:][above[1:] & ~above[:-1]]
        if len(rises) > 1:
            rates.append((len(rises) - 1) / (rises[-1] - rises[0]))
    if not rates:
        raise ValueError("These waveforms do not oscillate: none of them rises through its mean twice.")
    return float(np.median(rates))


def settling_cycles(waveforms: Waveforms, frequency: float, *, within: float = 0.01, window: int = 2) -> float:
    """Return after how many cycles all phase differences stay within so many radians of their last values.

    Parameters
    ----------
    waveforms : Waveforms
        From the beginning, of oscillators that end up locked.
    frequency : float
        Shared, in hertz, as `lock` found it.
    within : float
    window : int
        Cycles that one phase is fitted to.

    See Also
    --------
    circuits.phase_history : Phases window by window.
    circuits.lock : Phases at the end of waveforms.

    Examples
    --------
    >>> import numpy as np
    >>> import phasegrad as pg
    >>> times = np.linspace(0, 40e-6, 4001)
    >>> late = 0.5 * np.exp(-times / 4e-6)
    >>> voltages = np.cos(2 * np.pi * 1e6 * times[:, None] + np.column_stack([0 * times, late]))
    >>> pg.circuits.settling_cycles(pg.circuits.Waveforms(times, voltages), 1e6)
    18.0
    """
    within = positive_float("within", within, "settling_cycles")
    cycles, phases = phase_history(waveforms, frequency, window=window)
    differences = phases - phases[:, :1]
    far = np.max(np.abs(differences - differences[-1]), axis=1) > within
    return float(cycles[min(np.flatnonzero(far)[-1] + 1, len(cycles) - 1)]) if np.any(far) else float(cycles[0])


def phase_history(waveforms: Waveforms, frequency: float, *, window: int = 2) -> tuple[FloatArray, FloatArray]:
    """Return after how many cycles each window ends, (W,), and the phases of all oscillators in it, (W, N).

    Parameters
    ----------
    waveforms : Waveforms
    frequency : float
        That they are counted from, in hertz.
    window : int
        Cycles that one phase is fitted to.

    See Also
    --------
    circuits.lock : Phases at the end of waveforms.

    Examples
    --------
    >>> import numpy as np
    >>> import phasegrad as pg
    >>> times = np.linspace(0, 60e-6, 6001)
    >>> voltages = np.cos(2 * np.pi * 1e6 * times[:, None] + [0.0, 0.5])
    >>> cycles, phases = pg.circuits.phase_history(pg.circuits.Waveforms(times, voltages), 1e6)
    >>> cycles[:3], (phases[:3, 1] - phases[:3, 0]).round(3)
    (array([2., 4., 6.]), array([0.5, 0.5, 0.5]))
    """
    frequency = positive_float("frequency", frequency, "phase_history")
    window = whole_number("window", window, 1, "phase_history")
    count = int((waveforms.times[-1] - waveforms.times[0]) * frequency / window)
    if count < 1:
        raise ValueError(f"These waveforms are shorter than {window} cycles. Simulate more, or take a shorter window.")
    cycles = window * np.arange(1.0, count + 1)
    return cycles, _motion(_fits(waveforms, frequency, waveforms.times[0] + cycles / frequency, window))


def _fits(waveforms: Waveforms, frequency: float, ends: FloatArray, span: float) -> np.ndarray:
    """Return the fundamentals, complex (W, N), of windows of ``span`` cycles that end at some times."""
    edges = np.searchsorted(waveforms.times, np.stack([ends - span / frequency, ends]), side="right")
    return np.stack([
        _fundamental(waveforms.times[first:last], waveforms.voltages[first:last], frequency)
        for first, last in edges.T.tolist()
    ])  # fmt: skip


def _fundamental(times: FloatArray, voltages: FloatArray, frequency: float) -> np.ndarray:
    angles = 2 * np.pi * frequency * times[:, None] * np.arange(1, _HARMONICS + 1)
    basis = np.concatenate([np.ones((times.size, 1)), np.cos(angles), np.sin(angles)], axis=1)
    found = np.linalg.lstsq(basis, voltages, rcond=None)[0]
    return np.asarray(found[1] - 1j * found[1 + _HARMONICS])


def _motion(fits: np.ndarray) -> FloatArray:
    """Return the phases of all windows without jumps of full turns, (W, N)."""
    return np.asarray(np.unwrap(np.angle(fits), axis=0))


def _slopes(phases: FloatArray) -> FloatArray:
    """Return by how much each phase moves from window to window, (N,)."""
    return np.asarray((phases[-1] - phases[0]) / max(len(phases) - 1, 1))


def _numbers(mask: np.ndarray) -> tuple[int, ...]:
    return tuple(np.flatnonzero(mask).tolist())


def _named(nodes: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, nodes[:8]))
    return shown + (f" and {len(nodes) - 8} more" if len(nodes) > 8 else "")
