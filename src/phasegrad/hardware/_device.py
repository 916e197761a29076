"""What a device is: three calls, which a simulated chip, a circuit and a laboratory instrument implement alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from phasegrad._validation import FloatArray


@runtime_checkable
class Device(Protocol):
    """A network of oscillators that can be programmed, run and read.

    The digital side knows what it programmed and what it read, and nothing else.

    See Also
    --------
    hardware.Chip : A simulated chip with faults of its own.
    hardware.OnDevice : The engine that trains on devices.
    circuits.Circuit : A network as a circuit, and a device.

    Examples
    --------
    >>> import phasegrad as pg
    >>> chip = pg.hardware.Hardware().sample(pg.layered(2, 5, 2, seed=0), seed=1)
    >>> isinstance(chip, pg.hardware.Device)
    True
    """

    def program(self, parameters: Mapping[str, FloatArray]) -> None:
        """Set parameters by name, such as "omega" (N,) and "coupling" (E,); those left out stay as they are."""

    def run(self, inputs: FloatArray, torques: FloatArray | None = None) -> None:
        """Let the oscillators settle for every row of inputs (B, n_in).

        ``torques`` (B, M) pull the outputs, as shifts of their natural frequencies do; where phases are counted from a
        reference, minus their sum pulls that.
        """

    def read(self) -> FloatArray:
        """Return the phases of all oscillators after the last run, (B, N), NaN where a sample did not settle.

        In radians, counted from the reference of the network, whole turns taken off.
        """
