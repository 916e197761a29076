r"""Components of an oscillator: what farads, henries and ohms a network's numbers become.

An oscillator is a tank of an inductor L and a capacitor C beside a conductance -g1 v + g3 v^3 (van der Pol's); a
coupling is a resistor R between two tanks. With omega0 = 1 / sqrt(L C), Z = sqrt(L / C) and gain mu = g1 Z, averaging
over a cycle leaves

    d theta_i / dt = omega_i' + sum_j (1 / (2 R_ij C)) (A_j / A_i) sin(theta_j - theta_i),

so a coupling K is R = Z / (2 eps K), and a frequency omega is C / (1 + eps omega)^2, where one unit of the network's
rates is the share ``eps`` of omega0. Amplitudes are equal up to terms of order eps / mu, and each tank oscillates at
omega0 (1 - mu^2 / 16 + 17 mu^4 / 3072).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import FloatArray, positive_float


@dataclass(frozen=True)
class Components:
    """Scales that turn a network into components.

    Parameters
    ----------
    frequency : float
        Of a tank, in hertz.
    impedance : float
        sqrt(L / C) of a tank, in ohm.
    eps : float
        One unit of the network's couplings and frequencies, as a share of the angular frequency. The phase model is
        the limit of small eps; settling takes a number of cycles that grows as 1 / eps.
    gain : float
        The negative conductance times the impedance, at most 1. It must stay well above what the couplings take away,
        which is of order eps; but harmonics pull the frequency by its square. About 2 sqrt(eps) is a good choice.
    amplitude : float
        Of an oscillator on its own, in volt.

    See Also
    --------
    circuits.Circuit : A network as a circuit, and a device.
    circuits.write_netlist : A network as a netlist.

    Examples
    --------
    >>> from phasegrad.circuits import Components
    >>> parts = Components(frequency=1e9, impedance=50.0)
    >>> f"{parts.inductance:.3g} H, {parts.capacitance:.3g} F, {float(parts.resistors(1.0)):.0f} ohm"
    '7.96e-09 H, 3.18e-12 F, 2500 ohm'
    """

    frequency: float = 1e6
    impedance: float = 1e3
    eps: float = 0.01
    gain: float = 0.2
    amplitude: float = 1.0

    def __post_init__(self) -> None:
        for name in ("frequency", "impedance", "eps", "gain", "amplitude"):
            object.__setattr__(self, name, positive_float(name, getattr(self, name), "Components"))
        for name in ("eps", "gain"):
            if getattr(self, name) > 1:
                raise ValueError(
                    f"The '{name}' parameter of Components must be at most 1: beyond that a tank is no oscillator with "
                    f"a phase. Got {getattr(self, name):g}."
                )

    @property
    def inductance(self) -> float:
        """Of every tank, in henry."""
        return self.impedance / (2 * math.pi * self.frequency)

    @property
    def capacitance(self) -> float:
        """Of a tank of frequency zero in the network, in farad."""
        return 1 / (2 * math.pi * self.frequency * self.impedance)

    @property
    def conductance(self) -> float:
        """The slope g1 of the negative conductance, in siemens."""
        return self.gain / self.impedance

    @property
    def cubic(self) -> float:
        """The factor g3 of the cube, in siemens per square volt."""
        return 4 * self.conductance / (3 * self.amplitude**2)

    @property
    def own_frequency(self) -> float:
        """At which a tank of frequency zero in the network oscillates, pulled by its harmonics, in hertz."""
        return self.frequency * (1 - self.gain**2 / 16 + 17 * self.gain**4 / 3072)

    def capacitors(self, omega: ArrayLike) -> FloatArray:
        """Return the capacitances in farad of natural frequencies omega, shape (N,); none may stop a tank."""
        ratio = 1 + self.eps * np.asarray(omega, dtype=np.float64)
        if np.any(ratio <= 0):
            node = int(np.argmin(ratio))
            raise ValueError(
                f"Oscillator {node} would need a frequency of {ratio[node] * self.frequency:.3g} Hz, and no capacitor "
                f"gives one that is not positive. Choose an eps below {self.eps:g}, or smaller natural frequencies."
            )
        return np.asarray(self.capacitance / ratio**2)

    def resistors(self, coupling: ArrayLike) -> FloatArray:
        """Return the resistances in ohm of couplings, shape (E,), each of them positive."""
        strengths = np.asarray(coupling, dtype=np.float64)
        if not np.all(strengths > 0):
            raise ValueError(
                "A resistor stands for a coupling greater than 0. "
                f"Got {np.min(strengths):g}; leave a coupling of 0 out, and cross the wires for a negative one."
            )
        return np.asarray(self.impedance / (2 * self.eps * strengths))


def usual_gain(eps: float) -> float:
    """Return a gain well above what couplings take away, whose harmonics pull the frequency little."""
    return min(1.0, 2 * math.sqrt(eps))
