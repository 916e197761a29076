r"""The interaction H of a circuit, measured: two oscillators, detuned, lock at a phase difference and a frequency.

With rates counted in the angular frequency of the first oscillator, the second at 1 + d, and phi = theta_2 - theta_1,

    Omega = 1 + H(phi) = (1 + d)(1 + H(-phi)),

so that every locked pair shows H at phi and at -phi: its odd part, which sets the phase, and its even part, which moves
the frequency alone. H is fitted by sum_k a_k sin(k phi) + b_k (cos(k phi) - 1): equal phases exert no pull.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import FloatArray, finite_array, shaped_array, whole_number
from phasegrad.terms import OddSeries

_GRID = 721


@dataclass(frozen=True)
class MeasuredInteraction:
    """A coupling function with an odd and an even part, in units of the oscillators' angular frequency.

    Parameters
    ----------
    sines, cosines : tuple of float
        a_k and b_k of the sum of a_k sin(k phi) + b_k (cos(k phi) - 1), k = 1, 2, ...

    See Also
    --------
    circuits.fit_interaction : The interaction that locked pairs show.
    OddSeries : A sine series as the interaction.

    Examples
    --------
    >>> import phasegrad as pg
    >>> measured = pg.circuits.MeasuredInteraction((0.02, 0.0, 0.001), (0.008, 0.0, 0.0))
    >>> measured.odd
    OddSeries(coefficients=(0.02, 0.0, 0.001))
    """

    sines: tuple[float, ...]
    cosines: tuple[float, ...]

    def value(self, phi: ArrayLike) -> FloatArray:
        """H, elementwise."""
        angles = np.asarray(phi, dtype=np.float64)
        return self.odd.value(angles) + self.even(angles)

    def derivative(self, phi: ArrayLike) -> FloatArray:
        """H', elementwise."""
        angles = np.asarray(phi, dtype=np.float64)
        slopes = (-k * b * np.sin(k * angles) for k, b in enumerate(self.cosines, 1))
        return np.asarray(self.odd.derivative(angles) + sum(slopes))

    def even(self, phi: ArrayLike) -> FloatArray:
        """Return the even part, elementwise."""
        angles = np.asarray(phi, dtype=np.float64)
        return np.asarray(sum(b * (np.cos(k * angles) - 1) for k, b in enumerate(self.cosines, 1)))

    @property
    def odd(self) -> OddSeries:
        """The odd part: what a network's energy can hold."""
        return OddSeries(self.sines)

    @property
    def evenness(self) -> float:
        """The largest slope of the even part over that of the odd part at phase zero: 0 for an odd H."""
        angles = np.linspace(0, np.pi / 2, _GRID)
        steepest = np.max(np.abs(self.derivative(angles) - self.derivative(-angles))) / 2
        return float(steepest / self.odd.derivative(np.zeros(1))[0])

    def locked_phase(self, detuning: float) -> float:
        """Return the stable phase difference of a detuned pair that lies nearest zero; NaN beyond the locking range."""
        from scipy.optimize import brentq

        def pull(phi: float) -> float:
            ahead, behind = self.value(phi), self.value(-phi)
            return float((1 + detuning) * (1 + behind) - 1 - ahead)

        grid = np.linspace(0, np.pi, _GRID) * (1 if detuning >= 0 else -1)
        signs = np.sign([pull(phi) for phi in grid])
        if signs[0] == 0:
            return 0.0
        turns = np.flatnonzero(signs != signs[0])
        return float(brentq(pull, grid[turns[0] - 1], grid[turns[0]])) if turns.size else float("nan")


def fit_interaction(
    detunings: ArrayLike, phases: ArrayLike, frequencies: ArrayLike, *, harmonics: int = 3
) -> MeasuredInteraction:
    """Return the H that locked pairs show, by least squares.

    Parameters
    ----------
    detunings : array_like, shape (P,)
        Of the second oscillator of each pair, as shares.
    phases : array_like, shape (P,)
        Of the second minus that of the first.
    frequencies : array_like, shape (P,)
        Of the locked pair, as multiples of that of the first alone.
    harmonics : int
        How many are fitted, at most as many as there are pairs.

    See Also
    --------
    circuits.MeasuredInteraction : A coupling function with an even part.
    circuits.Rings : Rings of inverters in place of tanks.

    Examples
    --------
    >>> import numpy as np
    >>> import phasegrad as pg
    >>> phases = np.linspace(-0.8, 0.8, 9)
    >>> pull = 0.02 * np.sin(phases)  # an H that is the sine
    >>> fitted = pg.circuits.fit_interaction((1 + pull) / (1 - pull) - 1, phases, 1 + pull, harmonics=1)
    >>> print(f"{fitted.sines[0]:.6f}, evenness {fitted.evenness:.4f}")
    0.020000, evenness 0.0000
    """
    shares = finite_array("detunings", detunings, "fit_interaction")
    angles, ratios = (
        shaped_array(name, given, shares.shape, "fit_interaction")
        for name, given in (("phases", phases), ("frequencies", frequencies))
    )
    harmonics = whole_number("harmonics", harmonics, 1, "fit_interaction")
    if shares.ndim != 1 or shares.size < harmonics:
        raise ValueError(f"{harmonics} harmonics need as many pairs or more. Got {shares.size}.")
    points = np.concatenate([angles, -angles])
    pulls = np.concatenate([ratios - 1, ratios / (1 + shares) - 1])
    turns = points[:, None] * np.arange(1, harmonics + 1)
    basis = np.concatenate([np.sin(turns), np.cos(turns) - 1], axis=1)
    found = np.linalg.lstsq(basis, pulls, rcond=None)[0].tolist()
    return MeasuredInteraction(tuple(found[:harmonics]), tuple(found[harmonics:]))
