"""A circuit as a device: programmed by its components, run by ngspice, read by its phases."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import FloatArray, last_axis_array, positive_float
from phasegrad.circuits._components import Components
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
    >>> circuit = pg.circuits.Circuit(pg.complete(2, omega=[0.2, -0.2]), frequency=1e9, impedance=50.0)
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
        gain = min(1.0, 2 * math.sqrt(share)) if gain is None else gain
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

        Where a sample does not lock a `CircuitWarning` names the oscillators that drift, and its phases are NaN.
        ``progress`` is called with the samples that are done and the number of all.
        """
        self.readings = ()
        rows = last_axis_array("inputs", inputs, len(self._network.inputs), "one per input", "Circuit.run")
        pulls: Sequence[FloatArray | None] = [None] * len(rows)
        if rows.ndim != 2:
            raise ValueError(f"Circuit.run takes inputs of shape (B, n_in). Got shape {rows.shape}.")
        if torques is not None:
            given = last_axis_array("torques", torques, len(self._network.outputs), "one per output", "Circuit.run")
            pulls = list(np.broadcast_to(given, (len(rows), given.shape[-1])))
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

    def read(self) -> FloatArray:
        """Return the phases of all oscillators after the last run, (B, N), NaN where a sample did not lock."""
        if not self.readings:
            raise ValueError("This circuit has not run yet: call run first.")
        phases = np.stack([reading.phases for reading in self.readings])
        if self._network.pinned:
            phases = phases - phases[:, [self._network.reference]]
        phases[[not reading.locked for reading in self.readings]] = np.nan
        return np.asarray(np.mod(phases + np.pi, 2 * np.pi) - np.pi)
