"""A circuit as a device: programmed by its components, run by ngspice, read by its phases."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import FloatArray, last_axis_array, positive_float
from phasegrad.circuits._averaging import LARGE_SHIFT, finer_components, largest_shift
from phasegrad.circuits._components import Components, usual_gain
from phasegrad.circuits._netlist import Bridge, Injection, Netlist, check_network, write_netlist
from phasegrad.circuits._ngspice import LIMIT, ngspice
from phasegrad.circuits._phases import Locked, lock
from phasegrad.networks import Network


class CircuitWarning(UserWarning):
    """A circuit did something that one should know of, such as not locking.

    See Also
    --------
    circuits.Circuit : A network as a circuit, and a device.
    circuits.lock : Phases at the end of waveforms.

    Examples
    --------
    >>> import warnings
    >>> import phasegrad as pg
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", pg.circuits.CircuitWarning)  # a circuit that does not lock raises here
    """


class Circuit:
    """Tanks and resistors that behave as a network does, simulated by ngspice: a `Device`.

    Parameters
    ----------
    network : Network
        With reciprocal sine coupling; negative couplings become crossed resistors.
    frequency, impedance, eps, gain, amplitude
        As of `Components`: in hertz, ohm, shares and volt. The gain is 2 sqrt(eps) if left out.
    cycles, steps : int, optional
        As of `write_netlist`.
    limit : float
        Seconds that one run may take.

    Attributes
    ----------
    components : Components
    readings : tuple of Locked
        Of the last run, one per sample: phases with their errors, amplitudes, frequencies.

    See Also
    --------
    circuits.write_netlist : A network as a netlist.
    circuits.Components : Frequency, impedance and coupling of the tanks.
    hardware.Device : The three calls of a chip.

    Examples
    --------
    >>> import phasegrad as pg
    >>> circuit = pg.circuits.Circuit(pg.networks.complete(2, omega=[0.2, -0.2]), frequency=1e9, impedance=50.0)
    >>> circuit.netlist().text.splitlines()[4]
    'L1 n1 0 7.957747154595e-09 ic=0.000000000000e+00'
    """

    def __init__(
        self, network: Network, *, frequency: float = 1e6, impedance: float = 1e3, eps: float = 0.01,
        gain: float | None = None, amplitude: float = 1.0, cycles: int | None = None, steps: int | None = None,
        limit: float = LIMIT,
    ) -> None:  # fmt: skip
        check_network(network)
        share = positive_float("eps", eps, "Circuit")
        self._own_gain = gain is not None
        gain = usual_gain(share) if gain is None else gain
        self.components = Components(frequency, impedance, share, gain, amplitude)
        self.readings: tuple[Locked, ...] = ()
        self._network, self._cycles, self._steps = network, cycles, steps
        self._limit = positive_float("limit", limit, "Circuit")

    @property
    def network(self) -> Network:
        """What is programmed."""
        return self._network

    def program(self, parameters: Mapping[str, FloatArray]) -> None:
        """Set parameters by name; those left out stay as they are."""
        network = self._network.replace(**parameters)
        check_network(network)
        self._network = network

    def netlist(
        self, inputs: ArrayLike | None = None, torques: ArrayLike | None = None,
        nudges: Iterable[Bridge | Injection] = (),
    ) -> Netlist:  # fmt: skip
        """Return the netlist of one sample."""
        return write_netlist(
            self._network, self.components, inputs, torques=torques, nudges=nudges, cycles=self._cycles,
            steps=self._steps,
        )  # fmt: skip

    def run(
        self, inputs: ArrayLike, torques: ArrayLike | None = None, *, nudges: Sequence[Bridge | Injection] = (),
        progress: Callable[[int, int], object] | None = None,
    ) -> None:  # fmt: skip
        """Simulate every row of inputs (B, n_in), from phase zero, under torques (B, M) and other nudges.

        Where a sample does not lock a `CircuitWarning` names the oscillators that drift, and its phases are NaN. Where
        `averaging_shift` predicts phases more than 0.1 radians from the phase model, another one says so before
        anything is simulated. ``progress`` is called with the number of samples that are done and the number of all.
        """
        self.readings = ()
        rows = last_axis_array("inputs", inputs, len(self._network.inputs), "one per input", "Circuit.run")
        pulls: Sequence[FloatArray | None] = [None] * len(rows)
        if rows.ndim != 2:
            raise ValueError(f"Circuit.run takes inputs of shape (B, n_in). Got shape {rows.shape}.")
        if torques is not None:
            given = last_axis_array("torques", torques, len(self._network.outputs), "one per output", "Circuit.run")
            pulls = list(np.broadcast_to(given, (len(rows), given.shape[-1])))
        self._check_shifts(rows, pulls)
        readings = []
        for number, (row, pull) in enumerate(zip(rows, pulls, strict=True)):
            netlist = self.netlist(row if row.size else None, pull, nudges)
            waveforms = ngspice(netlist, limit=self._limit)
            reading = lock(waveforms, netlist.frequency, driven=netlist.driven)
            if waveforms.loosened:
                warnings.warn(
                    f"Sample {number} took looser tolerances: ngspice found the step in time too small.",
                    CircuitWarning, stacklevel=2,
                )  # fmt: skip
            if not reading.locked:
                warnings.warn(f"Sample {number} did not lock. {reading.words}", CircuitWarning, stacklevel=2)
            readings.append(reading)
            if progress is not None:
                progress(number + 1, len(rows))
        self.readings = tuple(readings)

    def _check_shifts(self, rows: FloatArray, pulls: Sequence[FloatArray | None]) -> None:
        """Warn where this circuit would settle far from the phase model, and say which eps would do."""
        samples = [(row if row.size else None, pull) for row, pull in zip(rows, pulls, strict=True)]
        shifts = [largest_shift(self._network, self.components, *sample) for sample in samples]
        if not shifts or max(shifts) <= LARGE_SHIFT:
            return
        worst = int(np.argmax(shifts))
        finer, shift = finer_components(
            self.components, lambda parts: largest_shift(self._network, parts, *samples[worst])
        )
        scales = f"eps={finer.eps:.2g}{' and no gain of your own' if self._own_gain else ''}"
        if shift <= LARGE_SHIFT:
            times = self.components.eps / finer.eps
            advice = (
                f"With {scales} it would stay below {LARGE_SHIFT:g}, and settle in {times:.2g} times as many cycles."
            )
        else:
            still = "" if finer is self.components else f", and with {scales} it would still be {_radians(shift)}"
            advice = (
                f"No eps within reach will do{still}. Subtract circuits.averaging_shift from what is read, or choose "
                "couplings that keep the phases closer together."
            )
        warnings.warn(
            f"The phases of sample {worst} are predicted to differ from the phase model by {_radians(shifts[worst])}. "
            f"{advice}", CircuitWarning, stacklevel=3,
        )  # fmt: skip

    def read(self) -> FloatArray:
        """Return the phases of all oscillators after the last run, (B, N), NaN where a sample did not lock."""
        if not self.readings:
            raise ValueError("This circuit has not run yet: call run first.")
        phases = np.stack([reading.phases for reading in self.readings])
        if self._network.pinned:
            phases = phases - phases[:, [self._network.reference]]
        phases[[not reading.locked for reading in self.readings]] = np.nan
        return np.asarray(np.mod(phases + np.pi, 2 * np.pi) - np.pi)


def _radians(shift: float) -> str:
    return f"{shift:.2g} radians" if math.isfinite(shift) else "more than the first order in eps can tell"
