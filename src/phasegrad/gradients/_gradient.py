"""What every gradient method returns, and how it warns."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from phasegrad._validation import BoolArray, FloatArray, counted
from phasegrad.equilibria import settled
from phasegrad.gradients._drawing import plot_gradient

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)


class GradientWarning(UserWarning):
    """A gradient that is missing for some samples, or whose stated error is large.

    See Also
    --------
    Gradient : A gradient per sample, with its stated error.
    suggest_beta : The nudge for a given error.
    two_phase : One nudged equilibrium; error of order beta.

    Examples
    --------
    >>> import warnings
    >>> import phasegrad as pg
    >>> network = pg.layered(2, 5, 2, seed=0)
    >>> question = (network, pg.find_equilibrium(network, [0.8, -0.6]), pg.PhaseTargets(), [-0.2, 0.2])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     gradient = pg.two_phase(*question, beta=5.0)
    >>> caught[0].category.__name__
    'GradientWarning'
    """


@dataclass(frozen=True, eq=False)
class Gradient:
    """The derivative of the cost with respect to parameters, and to the data, per sample.

    A sample whose equilibria did not converge has NaN.

    Attributes
    ----------
    method : str
    frequencies : {"relative", "raw"}
        What ``omega`` is taken with respect to: frequencies relative to their mean, each independent (the paper's
        identity), or the raw ones. Where a field or clamped phases fix the frame the two agree. ``inputs`` is always
        the derivative with respect to the data itself.
    values : mapping of str to ndarray, shape (..., width)
        The gradient of every parameter that was asked for; each is an attribute too: ``gradient.omega``. Of the data
        it is ``gradient.inputs``, shape (..., n_in).
    error : mapping of str to ndarray, shape (..., width)
        How far each entry may be off, in the entry's own units. Of `adjoint` it is what rounding can do to the state
        and to its linear system; of nudged methods and `autograd` the measured distance from the adjoint gradient, plus
        the error of that; of `finite_difference` what half the step changes, plus rounding. With a readout it is that
        distance, or two standard deviations of the noise to be expected where these are more. A `GradientWarning` says
        when it exceeds a hundredth of the largest entry of a sample, a tenth where the nudge was given by hand, and the
        whole of it with a readout. Empty where a method was called with ``error=False``: nothing is then known about
        the error, and no warning is given about it.
    cost : ndarray, shape (...)
        Of the free equilibrium.
    status : ndarray of Status, shape (...)
        The worst of the equilibria it was made from.
    beta : float or None
        The nudge that was used, where there was one.

    See Also
    --------
    two_phase : One nudged equilibrium; error of order beta.
    adjoint : One transposed linear solve; exact.
    cosine : How well two gradients agree.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.networks.ring(4, omega=[0.3, 0.0, -0.3, 0.0], outputs=[2])
    >>> free = pg.find_equilibrium(network)
    >>> gradient = pg.adjoint(network, free, pg.PhaseTargets(), [0.0], wrt=["omega", "coupling"])
    >>> gradient.omega.round(4)
    array([ 0.    , -0.1523, -0.3046, -0.1523])
    >>> gradient.coupling.shape, bool(gradient.error["omega"].max() < 1e-12)
    ((4,), True)
    """

    method: str
    frequencies: str
    values: Mapping[str, FloatArray]
    error: Mapping[str, FloatArray]
    cost: FloatArray
    status: NDArray[np.object_]
    beta: float | None

    def relative_error(self, parameter: str) -> FloatArray:
        """Return the largest stated error by one parameter over the largest entry, of every sample, shape (...).

        Zero where both vanish, NaN where there is no gradient. A gradient taken with ``error=False`` has none.
        """
        if not self.error:
            raise ValueError(
                f"This gradient states no error: {self.method} was called with error=False. Leave that out, or compare "
                "the gradient with that of adjoint."
            )
        size, error = (np.max(np.abs(each), axis=-1, initial=0.0) for each in (self[parameter], self.error[parameter]))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((error == 0) & (size == 0), 0.0, error / size)

    def plot(self, ax: Axes | None = None, *, parameter: str | None = None, against: Gradient | None = None) -> Axes:
        """Draw the gradient as bars, one per entry, with the stated error of each. Needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new ones if left out.
        parameter : str, optional
            Which one; the first that was asked for if left out. Of a batch the mean over all samples that have a
            gradient is drawn.
        against : Gradient, optional
            Another one to compare with, drawn as diamonds.

        Returns
        -------
        matplotlib Axes
        """
        return plot_gradient(self, ax, parameter, against)

    @property
    def valid(self) -> BoolArray:
        """Where there is a gradient, shape (...)."""
        return settled(self.status)

    def __getitem__(self, parameter: str) -> FloatArray:
        """Return the gradient with respect to one parameter."""
        if parameter not in self.values:
            raise KeyError(f"This gradient was not taken by {parameter!r}. Ask for it with wrt={parameter!r}.")
        return self.values[parameter]

    def __getattr__(self, name: str) -> FloatArray:
        values = self.__dict__.get("values", {})
        if name in values:
            return values[name]
        raise AttributeError(f"This gradient was not taken by {name!r}. Ask for it with wrt={name!r}.")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "values": dict(self.values), "error": dict(self.error)}

    def __str__(self) -> str:
        lines = [f"gradient by {self.method} of {counted(self.cost.size, 'sample')}"]
        for name, slope in self.values.items():
            largest = np.nanmax(np.abs(slope), initial=0.0)
            known = f"at most {np.nanmax(self.error[name], initial=0.0):.1g}" if self.error else "not computed"
            lines.append(f"  {name:<16} shape {slope.shape}, largest {largest:.3g}, error {known}")
        return "\n".join(lines)


@contextmanager
def unwarned() -> Iterator[None]:
    """Keep quiet the warnings of gradients asked for inside, on this thread alone."""
    before = _QUIET.set(True)
    try:
        yield
    finally:
        _QUIET.reset(before)


def warn(message: str) -> None:
    """Warn where the package was called, so that every caller hears it."""
    if _QUIET.get():
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("phasegrad."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, GradientWarning, stacklevel=level)
