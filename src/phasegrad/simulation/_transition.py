r"""The transition to synchrony of oscillators coupled all to all, beside what theory says of infinitely many.

A density g of frequencies, even with one peak, has the locked branch r = K r int cos^2 x g(K r sin x) dx (Kuramoto
1975), which begins at K_c = 2 / (pi g(0)):

- Lorentzian of half width w: r = sqrt(1 - K_c / K), K_c = 2 w;
- normal of standard deviation w: by quadrature, K_c = w sqrt(8 / pi);
- uniform from -w to w: r jumps from 0 to pi / 4 at K_c = 4 w / pi (Pazo 2005).

Two Lorentzians at +c and -c follow the equations of Ott and Antonsen for their two order parameters (Martens et al.
2009),

    dz_k / dt = (+-i c - w) z_k + (K / 2) (Z - conj(Z) z_k^2),   Z = (z_1 + z_2) / 2

which can be synchronous or not at one and the same K: what is found depends on where one comes from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import (
    FloatArray,
    choice,
    finite_array,
    float_between,
    frozen_array,
    positive_float,
    random_stream,
    whole_number,
)
from phasegrad.networks import mean_field
from phasegrad.simulation._simulate import simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DISTRIBUTIONS = ("lorentzian", "gaussian", "uniform", "bimodal")
_SWEEPS = ("down", "up", "both")
_DRAWS = ("quantiles", "random")
# Of one block of time, in units of 1 / width: its length, also where the order parameter may oscillate for ever, and
# the time from one look at it to the next.
_BLOCK, _LONG_BLOCK, _LOOK = 10.0, 40.0, 0.5
# A state has settled once the order parameter of a block differs by less than this from the one before.
_SETTLED, _LEAST, _MOST = 5e-4, 2, 40
# The order parameter that incoherent oscillators are given, to grow from, and the blocks that it may take to grow.
_SEED, _GROWTH = 0.02, 8
# The order parameter of N phases at random, in units of 1 / sqrt(N): below it nothing is left to settle.
_CHANCE = 1.5
# Steps in time, in units of 1 / coupling.
_STEP = 0.2


@dataclass(frozen=True, eq=False)
class Transition:
    """The order parameter r by coupling K.

    Attributes
    ----------
    couplings : ndarray, shape (K,)
        Increasing.
    down, up : ndarray, shape (K,), or None
        r as the coupling falls from the synchronous side, and as it rises from the incoherent one; None if not asked.
    theory, theory_up : ndarray, shape (K,), or None
        What theory says of infinitely many oscillators on the way down and up; None for frequencies of one's own.
    critical : float or None
        Where the incoherent state loses its stability.
    frequencies : str
        The distribution, "given" for frequencies of one's own.
    size : int
        Number of oscillators.

    See Also
    --------
    transition : The order parameter by coupling.
    mean_field : All-to-all coupling without edges.

    Examples
    --------
    >>> import phasegrad as pg
    >>> found = pg.simulation.transition("lorentzian", [3.0], size=500)
    >>> found.critical, found.theory.round(3).tolist()
    (1.0, [0.816])
    """

    couplings: FloatArray
    down: FloatArray | None
    up: FloatArray | None
    theory: FloatArray | None
    theory_up: FloatArray | None
    critical: float | None
    frequencies: str
    size: int

    @property
    def order(self) -> FloatArray:
        """The order parameter, shape (K,): on the way down if that was asked for."""
        order = self.up if self.down is None else self.down
        assert order is not None
        return order

    @property
    def hysteresis(self) -> FloatArray | None:
        """By how much r is larger on the way down, shape (K,); None unless both ways were asked for."""
        return None if self.down is None or self.up is None else frozen_array(self.down - self.up)

    @property
    def error(self) -> float:
        """The largest difference from theory, NaN without one."""
        pairs = ((self.down, self.theory), (self.up, self.theory_up))
        known = [np.max(np.abs(a - b)) for a, b in pairs if a is not None and b is not None]
        return float(max(known, default=np.nan))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw r by coupling beside theory and return the axes: new ones by pyplot where none are given."""
        from phasegrad.simulation._drawing import plot_transition

        return plot_transition(self, ax)

    def __str__(self) -> str:
        lines = [f"Order parameter of {self.size} oscillators, {self.frequencies} frequencies"]
        lines += [] if self.critical is None else [f"incoherence is unstable above K = {self.critical:.4g}"]
        columns = {"down": self.down, "up": self.up, "theory": self.theory, "theory up": self.theory_up}
        shown = {name: each for name, each in columns.items() if each is not None}
        lines.append("  ".join(f"{name:>9}" for name in ("K", *shown)))
        for k, coupling in enumerate(self.couplings):
            lines.append("  ".join(f"{value:9.4f}" for value in (coupling, *(each[k] for each in shown.values()))))
        return "\n".join(lines)


def transition(
    frequencies: str | ArrayLike = "lorentzian", couplings: ArrayLike | None = None, *, size: int = 100_000,
    width: float = 0.5, centre: float = 0.0, sweep: str = "down", draw: str = "quantiles", seed: int | None = 0,
    progress: Callable[[float, float], object] | None = None,
) -> Transition:  # fmt: skip
    """Follow the order parameter of oscillators that are coupled all to all through the transition to synchrony.

    Parameters
    ----------
    frequencies : {"lorentzian", "gaussian", "uniform", "bimodal"} or array_like of shape (N,)
        How natural frequencies are distributed; "bimodal" are two Lorentzians at plus and minus ``centre``.
    couplings : array_like, shape (K,), optional
        Increasing; left out, ten from 1.1 to 3 times the critical one.
    size : int
        Number of oscillators, where the frequencies are not given.
    width : float
        Half width, or standard deviation, of each peak.
    centre : float
        Where the two peaks of "bimodal" are.
    sweep : {"down", "up", "both"}
        Whether the coupling falls, from all phases alike, or rises, from phases all around, or both one after the
        other: each state is where the next one begins.
    draw : {"quantiles", "random"}
        Whether frequencies are the quantiles of their distribution, so that only the number of oscillators is finite,
        or drawn at random.
    seed : int or None
        Of random phases and frequencies.
    progress : callable, optional
        Called with each coupling that is done and the order parameter found there.

    See Also
    --------
    mean_field : All-to-all coupling without edges.
    simulate : The dynamics in time.

    Examples
    --------
    >>> import phasegrad as pg
    >>> found = pg.simulation.transition("lorentzian", [1.5, 2.0, 4.0], size=1000)
    >>> found.theory.round(3).tolist(), bool(found.error < 0.02)
    ([0.577, 0.707, 0.866], True)
    """
    owner = "transition"
    choice("sweep", sweep, _SWEEPS, owner)
    choice("draw", draw, _DRAWS, owner)
    width = positive_float("width", width, owner)
    stream = random_stream(seed, owner)
    named = isinstance(frequencies, str)
    if isinstance(frequencies, str):
        name = choice("frequencies", frequencies, DISTRIBUTIONS, owner)
        centre = float_between("centre", centre, 0.0, np.inf, owner)
        if (centre > 0) != (name == "bimodal"):
            raise ValueError(f"The 'centre' of transition is for 'bimodal' frequencies, and above 0. Got {centre:g}.")
        share = whole_number("size", size, 2, owner)
        chances = stream.random(share) if draw == "random" else (np.arange(share) + 0.5) / share
        omega = _quantiles(name, chances, width, centre)
    else:
        name, omega = "given", finite_array("frequencies", frequencies, owner)
        if omega.ndim != 1 or omega.size < 2:
            raise ValueError(f"The 'frequencies' of transition must have shape (N,). Got shape {omega.shape}.")
    critical = _critical(name, width, centre) if named else None
    strengths = _checked_couplings(couplings, critical)
    ways = [word for word in ("down", "up") if sweep in (word, "both")]
    times = np.arange(0.0, _BLOCK if named and name != "bimodal" else _LONG_BLOCK, _LOOK) / width
    found = {word: _swept(omega, strengths, word, times, stream, progress) for word in ways}
    theory = {word: _theory(name, strengths, width, centre, word) for word in ways} if named else {}
    kept = {word: frozen_array(each) for word, each in found.items()}
    return Transition(
        frozen_array(strengths), kept.get("down"), kept.get("up"), theory.get("down"), theory.get("up"),
        critical, name, int(omega.size),
    )  # fmt: skip


def _swept(
    omega: FloatArray, strengths: FloatArray, way: str, times: FloatArray, stream: np.random.Generator, progress: Any
) -> FloatArray:
    """Return the order parameter at every coupling, each state beginning where the one before ended."""
    order = np.empty(strengths.size)
    places = range(strengths.size) if way == "up" else range(strengths.size)[::-1]
    phases, last = np.zeros(omega.size), 1.0
    for k in places:
        if way == "up" and (k == 0 or last < _SEED):
            around = stream.uniform(-np.pi, np.pi, omega.size)
            phases = around - 2 * _SEED * np.sin(around)
        phases, last = _settled(omega, float(strengths[k]), phases, times, growing=way == "up")
        order[k] = last
        if progress is not None:
            progress(float(strengths[k]), last)
    return order


def _settled(
    omega: FloatArray, coupling: float, phases: FloatArray, times: FloatArray, *, growing: bool
) -> tuple[FloatArray, float]:
    """Return phases and the mean order parameter once it no longer changes, block of time by block."""
    network = mean_field(omega.size, coupling, omega=omega)
    before, chance = np.inf, _CHANCE / np.sqrt(omega.size)
    for block in range(1, _MOST + 1):
        run = simulate(network, times, start=phases, method="rk4", step=_STEP / coupling)
        # Full turns are removed, which fast oscillators would lose digits to.
        phases, order = np.remainder(run.phases[-1], 2 * np.pi), run.order_parameter()
        mean = float(order[order.size // 2 :].mean())
        incoherent = growing and mean < _SEED
        least = _GROWTH if growing and mean < 5 * _SEED else _LEAST
        close = chance if mean < chance else _SETTLED
        if block >= least and (incoherent or abs(mean - before) < close):
            break
        before = mean
    return phases, mean


def _quantiles(name: str, chances: FloatArray, width: float, centre: float) -> FloatArray:
    if name == "gaussian":
        from scipy.special import ndtri

        return np.asarray(width * ndtri(chances))
    if name == "uniform":
        return width * (2 * chances - 1)
    if name == "lorentzian":
        return width * np.tan(np.pi * (chances - 0.5))
    # Every second oscillator belongs to the upper peak.
    upper = np.arange(chances.size) % 2 == 1
    return width * np.tan(np.pi * (chances - 0.5)) + np.where(upper, centre, -centre)


def _critical(name: str, width: float, centre: float) -> float:
    """Return the coupling at which the incoherent state loses its stability."""
    if name == "bimodal":
        return 4 * width if centre > width else 2 * (width**2 + centre**2) / width
    return float(2 / (np.pi * _density(name, width)(0.0)))


def _density(name: str, width: float) -> Callable[[float], float]:
    if name == "gaussian":
        return lambda w: float(np.exp(-((w / width) ** 2) / 2) / (width * np.sqrt(2 * np.pi)))
    if name == "uniform":
        return lambda w: 0.5 / width if abs(w) <= width else 0.0
    return lambda w: width / (np.pi * (w**2 + width**2))


def _theory(name: str, strengths: FloatArray, width: float, centre: float, way: str) -> FloatArray:
    """Return the order parameter of infinitely many oscillators at every coupling."""
    if name == "bimodal":
        return frozen_array(_ott_antonsen(strengths, width, centre, way))
    critical, density = _critical(name, width, centre), _density(name, width)
    found = [_locked_branch(name, float(k), width, density) if k > critical else 0.0 for k in strengths]
    return frozen_array(np.array(found))


def _locked_branch(name: str, coupling: float, width: float, density: Callable[[float], float]) -> float:
    if name == "lorentzian":
        return float(np.sqrt(1 - 2 * width / coupling))

    from scipy.integrate import quad
    from scipy.optimize import brentq

    def balance(order: float) -> float:
        pull = coupling * order
        if name == "uniform":
            edge = min(1.0, width / pull)
            share = (np.sqrt(1 - edge**2) * edge + np.arcsin(edge)) * pull / (2 * width)
            return float(share - order)
        locked = quad(lambda x: np.cos(x) ** 2 * density(pull * np.sin(x)), -np.pi / 2, np.pi / 2, epsabs=1e-12)[0]
        return float(coupling * locked - 1)

    return float(brentq(balance, (np.pi / 4) * (1 - 1e-9) if name == "uniform" else 1e-9, 1.0, xtol=1e-12))


def _ott_antonsen(strengths: FloatArray, width: float, centre: float, way: str) -> FloatArray:
    """Return the order parameter of two Lorentzians, each state beginning where the one before ended."""
    own = 1j * np.array([centre, -centre]) - width
    places = range(strengths.size) if way == "up" else range(strengths.size)[::-1]
    state, order = np.full(2, 1.0 if way == "down" else _SEED, dtype=complex), np.empty(strengths.size)
    for k in places:
        coupling, length = float(strengths[k]), 0.05 / float(strengths[k])

        def rate(z: Any, coupling: float = coupling) -> Any:
            field = np.mean(z)
            return own * z + coupling / 2 * (field - np.conj(field) * z**2)

        if way == "up" and abs(np.mean(state)) < _SEED:
            state = np.full(2, _SEED, dtype=complex)
        count = int(_MOST * _BLOCK / width / length)
        seen = np.empty(count)
        for moment in range(count):
            first = rate(state)
            state = state + length * rate(state + length / 2 * first)
            seen[moment] = abs(np.mean(state))
        order[k] = seen[count // 2 :].mean()
    return order


def _checked_couplings(given: ArrayLike | None, critical: float | None) -> FloatArray:
    if given is None:
        if critical is None:
            raise ValueError("Frequencies of one's own have no critical coupling to go by: give 'couplings'.")
        return critical * np.linspace(1.1, 3.0, 10)
    strengths = finite_array("couplings", given, "transition")
    if strengths.ndim != 1 or not strengths.size or np.any(strengths <= 0) or np.any(np.diff(strengths) <= 0):
        raise ValueError(
            "The 'couplings' parameter of transition must be a list of positive numbers that increase. Got "
            f"{given!r:.80}."
        )
    return strengths
