r"""Coupling functions: how the phase difference of two oscillators becomes a force.

An oscillator at phase ``a`` feels its neighbour at phase ``b`` as ``K * H(b - a)``. The phase-gradient
identity needs only that H is odd, ``H(-phi) = -H(phi)``: then H' is even and, for reciprocal coupling, the
Jacobian of the network is symmetric and the force has an energy whose edge term is the potential V, V' = H.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phasegrad._validation import finite_array
from phasegrad.graphs import lazy_property

Angles = NDArray[Any]

_SAMPLES = 4096
# What a class writes about H, and what follows from it.
_FORMULAS = ("value", "derivative", "potential")
_CONSEQUENCES = ("torch_value", "bound", "steepness", "series")


class Interaction(ABC):
    """An odd, smooth, 2 pi-periodic coupling function.

    Subclass it with the three methods below, written with NumPy functions so that they work elementwise on
    real and, for the holomorphic gradient, complex arrays. `Network` calls `check` on every interaction
    it is given. `torch_value`, `bound`, `steepness` and `series` follow from these three; a class may write them again
    where it knows better. A subclass that overrides one of the three does not inherit them from the class whose
    formula it replaces.

    Training a small network compiles ``value`` and ``derivative`` with Numba where it can: where they call NumPy
    functions, and read from ``self`` nothing but numbers and tuples of floats. Any other interaction runs as Python,
    three times as slowly; ``phasegrad.training.prepare(..., engine="batch").uncompiled`` is the reason.

    See Also
    --------
    Sine : The Kuramoto interaction.
    OddSeries : A sine series as the interaction.
    Network : A graph, the terms of its energy, and how data enters.

    Examples
    --------
    >>> import numpy as np
    >>> import phasegrad as pg
    >>> class Steep(pg.terms.Interaction):
    ...     def value(self, phi):
    ...         return np.sin(phi) + np.sin(3 * phi) / 9
    ...
    ...     def derivative(self, phi):
    ...         return np.cos(phi) + np.cos(3 * phi) / 3
    ...
    ...     def potential(self, phi):
    ...         return -np.cos(phi) - np.cos(3 * phi) / 27
    >>> network = pg.networks.ring(4, interaction=Steep(), omega=[0.3, 0.0, -0.3, 0.0])
    >>> pg.find_equilibrium(network).phases.round(3)
    array([ 0.   , -0.113, -0.226, -0.113])
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Let what follows from H follow from the formulas of this class, where it has its own."""
        super().__init_subclass__(**options)

        def ancestor(name: str) -> int:
            return next(place for place, each in enumerate(cls.__mro__) if name in vars(each))

        formula = min(ancestor(name) for name in _FORMULAS)
        for name in _CONSEQUENCES:
            if ancestor(name) > formula:
                setattr(cls, name, vars(Interaction)[name])

    @abstractmethod
    def value(self, phi: Angles) -> Angles:
        """H(phi), elementwise."""

    @abstractmethod
    def derivative(self, phi: Angles) -> Angles:
        """H'(phi), elementwise."""

    @abstractmethod
    def potential(self, phi: Angles) -> Angles:
        """V(phi) with V' = H, elementwise."""

    def torch_value(self, angle: Any) -> Any:
        """H of a tensor: by PyTorch's own functions where a subclass writes it so, else through NumPy."""
        import torch

        value, derivative = self.value, self.derivative

        class Elementwise(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, given: Any) -> Any:
                ctx.slope = torch.tensor(derivative(given.detach().numpy()))
                return torch.tensor(value(given.detach().numpy()))

            @staticmethod
            def backward(ctx: Any, *slopes: Any) -> Any:
                return slopes[0] * ctx.slope

        return Elementwise.apply(angle)  # type: ignore[no-untyped-call]

    @lazy_property
    def bound(self) -> float:
        """An upper bound on ``|H|``: no neighbour can pull harder than K times this."""
        grid = _angle_grid()
        spacing = 2 * np.pi / _SAMPLES
        return float(np.max(np.abs(self.value(grid))) + spacing / 2 * np.max(np.abs(self.derivative(grid))))

    @lazy_property
    def steepness(self) -> float:
        """The largest ``|H'|`` on a fine grid."""
        return float(np.max(np.abs(self.derivative(_angle_grid()))))

    @property
    def series(self) -> tuple[float, ...] | None:
        """Coefficients a_1, a_2, ... where H is a finite sine series, sum of a_k sin(k phi); None where it is not."""
        return None

    def check(self) -> None:
        """Raise ValueError unless H is finite, odd and periodic, H' is its derivative and V its potential."""
        name = type(self).__name__
        phi = np.linspace(0.0, np.pi, 65)
        value, slope = np.asarray(self.value(phi)), np.asarray(self.derivative(phi))
        if value.shape != phi.shape or not np.all(np.isfinite(value)):
            raise ValueError(f"{name}.value must map an array of angles to finite values of the same shape.")
        scale = max(1.0, float(np.max(np.abs(value))))
        oddness = np.abs(value + self.value(-phi))
        if not np.max(oddness) <= 1e-9 * scale:
            worst = float(phi[np.argmax(oddness)])
            raise ValueError(
                f"{name} is not odd: H({worst:.3f}) + H(-{worst:.3f}) = {np.max(oddness):.3g}, it must be 0. "
                "The phase-gradient identity holds for odd coupling functions only."
            )
        if not np.max(np.abs(value - self.value(phi + 2 * np.pi))) <= 1e-8 * scale:
            raise ValueError(f"{name} is not 2 pi-periodic: H(phi + 2 pi) differs from H(phi).")
        step = 1e-5
        numeric = (self.value(phi + step) - self.value(phi - step)) / (2 * step)
        if not np.max(np.abs(numeric - slope)) <= 1e-5 * max(1.0, float(np.max(np.abs(slope)))):
            raise ValueError(f"{name}.derivative is not the derivative of {name}.value.")
        numeric = (self.potential(phi + step) - self.potential(phi - step)) / (2 * step)
        if not np.max(np.abs(numeric - value)) <= 1e-5 * scale:
            raise ValueError(f"{name}.potential must have {name}.value as its derivative.")


@dataclass(frozen=True)
class Sine(Interaction):
    r"""The Kuramoto interaction: H = sin phi, H' = cos phi, V = -cos phi.

    See Also
    --------
    OddSeries : A sine series as the interaction.
    Interaction : The base of coupling functions.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.networks.ring(3).interaction
    Sine()
    """

    def value(self, phi: Angles) -> Angles:
        """Sin phi."""
        return np.sin(phi)

    def derivative(self, phi: Angles) -> Angles:
        """Cos phi."""
        return np.cos(phi)

    def potential(self, phi: Angles) -> Angles:
        """Minus cos phi."""
        return -np.cos(phi)

    def torch_value(self, angle: Any) -> Any:
        """Sin phi."""
        return angle.sin()

    @property
    def series(self) -> tuple[float, ...] | None:
        """One sine."""
        return (1.0,)

    @property
    def bound(self) -> float:
        """The sine never exceeds 1."""
        return 1.0


@dataclass(frozen=True)
class OddSeries(Interaction):
    r"""A finite Fourier sine series: H = sum over k of a_k sin(k phi), V = -sum of (a_k / k) cos(k phi).

    Parameters
    ----------
    coefficients : sequence of float
        a_1, a_2, ...: ``OddSeries([1.0])`` is the sine, ``OddSeries([1.0, 0.0, -0.2])`` adds a third harmonic.

    See Also
    --------
    Sine : The Kuramoto interaction.
    Interaction : The base of coupling functions.
    circuits.MeasuredInteraction : A coupling function with an even part.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.networks.ring(4, interaction=pg.terms.OddSeries([1.0, 0.0, -0.2]), omega=[0.3, 0.0, -0.3, 0.0])
    >>> pg.find_equilibrium(network).phases.round(3)
    array([ 0.   , -0.319, -0.638, -0.319])
    """

    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        array = finite_array("coefficients", self.coefficients, "OddSeries")
        if array.ndim != 1 or array.size == 0 or not np.any(array):
            raise ValueError(
                "The 'coefficients' parameter of OddSeries must be a non-empty list of numbers, not all zero. "
                f"Got {self.coefficients!r}."
            )
        object.__setattr__(self, "coefficients", tuple(float(a) for a in array))

    def value(self, phi: Angles) -> Angles:
        """Sum of a_k sin(k phi)."""
        total = 0.0 * phi
        for k, a in enumerate(self.coefficients, 1):
            if a != 0:
                total = total + a * np.sin(k * phi)
        return total

    def derivative(self, phi: Angles) -> Angles:
        """Sum of k a_k cos(k phi)."""
        total = 0.0 * phi
        for k, a in enumerate(self.coefficients, 1):
            if a != 0:
                total = total + k * a * np.cos(k * phi)
        return total

    def potential(self, phi: Angles) -> Angles:
        """Minus the sum of (a_k / k) cos(k phi)."""
        total = 0.0 * phi
        for k, a in enumerate(self.coefficients, 1):
            if a != 0:
                total = total - a / k * np.cos(k * phi)
        return total

    def torch_value(self, angle: Any) -> Any:
        """Sum of a_k sin(k phi)."""
        return sum(a * (k * angle).sin() for k, a in enumerate(self.coefficients, 1))

    @property
    def series(self) -> tuple[float, ...] | None:
        """Its coefficients."""
        return self.coefficients

    @lazy_property
    def bound(self) -> float:
        """The largest sampled ``|H|`` plus the most a smooth function can rise between two samples."""
        curvature = sum(abs(a) * k**2 for k, a in enumerate(self.coefficients, 1))
        spacing = 2 * np.pi / _SAMPLES
        return float(np.max(np.abs(self.value(_angle_grid()))) + curvature * spacing**2 / 8)


def cosines(phases: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return cosine and sine by the tangent of half the angle: errors of a few units in the last place of 1.

    NumPy's tangent is vectorised where its sine and cosine are not; this takes a fifth of their time.
    """
    half = np.tan(0.5 * phases)
    square = half * half
    scale = 1.0 / (1.0 + square)
    return (1.0 - square) * scale, 2.0 * half * scale


def multiplied(
    cos: NDArray[np.float64], sin: NDArray[np.float64], k: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return cosine and sine of k times an angle, k from 1, of its cosine and sine."""
    c, s = cos, sin
    for _ in range(k - 1):
        c, s = c * cos - s * sin, s * cos + c * sin
    return c, s


def _angle_grid() -> NDArray[np.float64]:
    return np.linspace(-np.pi, np.pi, _SAMPLES, endpoint=False)
