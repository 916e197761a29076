"""Every gradient method against every other."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import FloatArray, choice
from phasegrad.equilibria import Equilibrium
from phasegrad.gradients._drawing import plot_table
from phasegrad.gradients._gradient import Gradient
from phasegrad.gradients.methods import METHODS
from phasegrad.networks import Network
from phasegrad.objectives import Cost

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class GradientTable:
    """Agreement of gradient methods, for each parameter.

    Attributes
    ----------
    methods : tuple of str
    missing : tuple of str
        Methods left out because an optional package is not installed.
    gradients : dict of str to Gradient
        The gradients themselves.
    cosine : dict of str to ndarray, shape (M, M)
        Cosine between methods, over all samples with a gradient.
    relative_error : dict of str to ndarray, shape (M, M)
        |row - column| / |column|.
    stated_error : dict of str to ndarray, shape (M,)
        What each gradient says of itself: its largest `Gradient.error` over its largest entry, of the worst sample.

    See Also
    --------
    check_gradients : Several methods in one table.
    Gradient : A gradient per sample, with its stated error.
    cosine : How well two gradients agree.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.layered(2, 5, 2, seed=0)
    >>> question = (network, pg.find_equilibrium(network, [0.8, -0.6]), pg.PhaseTargets(), [-0.2, 0.2])
    >>> table = pg.check_gradients(*question, wrt="omega", methods=["adjoint", "two_phase"])
    >>> bool(table.cosine["omega"][0, 1] > 0.999), bool(table.relative_error["omega"][1, 0] < 1e-3)
    (True, True)
    """

    methods: tuple[str, ...]
    missing: tuple[str, ...]
    gradients: dict[str, Gradient]
    cosine: dict[str, FloatArray]
    relative_error: dict[str, FloatArray]
    stated_error: dict[str, FloatArray]

    def plot(self, ax: Axes | None = None, *, parameter: str | None = None) -> Axes:
        """Draw the agreement of all methods by one parameter, the first if left out, as shades. Needs matplotlib.

        Stated errors lie on the diagonal, relative errors below, 1 - cosine above; white is rounding, the darkest blue
        an error as large as the gradient. Draws on ``ax``, or on new axes if it is left out, and returns them.
        """
        return plot_table(self, ax, parameter)

    def __str__(self) -> str:
        width = max(len(name) for name in self.methods) + 2
        lines = []
        for parameter in self.cosine:
            lines.append(
                f"gradient by {parameter}: stated error (diagonal), relative error (below), 1 - cosine (above)"
            )
            lines.append(" " * width + "".join(f"{name:>{width}}" for name in self.methods))
            for name, row in zip(self.methods, self.agreement(parameter), strict=True):
                lines.append(f"{name:<{width}}" + "".join(f"{number:>{width}.1e}" for number in row))
        lines += [f"not compared: {name} (its package is not installed)" for name in self.missing]
        return "\n".join(lines)

    def agreement(self, parameter: str) -> FloatArray:
        """Return, (M, M), stated errors on the diagonal, relative errors below it and 1 - cosine above."""
        below, above = np.tril(self.relative_error[parameter], -1), np.triu(1 - self.cosine[parameter], 1)
        return below + above + np.diag(self.stated_error[parameter])


def check_gradients(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *,
    wrt: str | Iterable[str] | None = None, methods: Iterable[str] | None = None, frequencies: str = "relative",
    beta: float = 1e-4, correction: str = "none", step: float | None = None, rate: float = 1e-6,
    temperature: float = 1e-6, progress: Callable[[str], object] | None = None,
) -> GradientTable:  # fmt: skip
    """Compare every gradient method with every other.

    Parameters
    ----------
    network, equilibrium, objective, target, frequencies
        As for `adjoint`.
    wrt : str or sequence of str, optional
        Parameters to differentiate with respect to, or "inputs"; all parameters that the network has if left out.
    methods : sequence of str, optional
        Adjoint, two_phase, centred, holomorphic, finite_difference and autograd if left out; by name also dyadic,
        random_sign, continuous and stochastic. Autograd is left out, and named so, where PyTorch is not installed.
    beta : float
        Nudge of all methods that have one but `holomorphic`, whose nudge is chosen.
    correction : {"none", "asymmetric"}
        Of `two_phase`, `centred`, `holomorphic` and `random_sign`.
    step : float, optional
        Step of `finite_difference`, chosen by it if left out.
    rate, temperature : float
        Of `continuous` and of `stochastic`.
    progress : callable, optional
        Called with the name of each method before it begins.

    See Also
    --------
    cosine : How well two gradients agree.
    adjoint : One transposed linear solve; exact.
    two_phase : One nudged equilibrium; error of order beta.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.networks.random_network(10, seed=1)
    >>> equilibrium = pg.find_equilibrium(network)
    >>> methods = ["adjoint", "holomorphic"]
    >>> table = pg.check_gradients(network, equilibrium, pg.PhaseTargets(), [-0.2, 0.2], methods=methods)
    >>> bool(table.relative_error["omega"].max() < 1e-13)
    True
    """
    if wrt is None:
        wrt = tuple(network.parameters)
    missing: tuple[str, ...] = ()
    if methods is None:
        compared = [each for each in METHODS.values() if each.compared]
        methods = [each.name for each in compared]
        missing = tuple(
            each.name for each in compared if each.package and importlib.util.find_spec(each.package) is None
        )
    wanted = (methods,) if isinstance(methods, str) else tuple(methods)
    if not wanted:
        raise ValueError("The 'methods' parameter of check_gradients must name at least one method.")
    for name in wanted:
        choice("methods", name, METHODS, "check_gradients")
    used = tuple(name for name in wanted if name not in missing)
    parameters = (wrt,) if isinstance(wrt, str) else tuple(wrt)
    settings = {"beta": beta, "correction": correction, "step": step, "rate": rate, "temperature": temperature}
    gradients = {}
    for name in used:
        if progress is not None:
            progress(name)
        method = METHODS[name]
        options = {option: value for option, value in settings.items() if method.takes(option)}
        if method.usual is not None and np.iscomplexobj(method.usual.strengths):
            # Complex nudges lose no digits by being weak, and choose their own.
            del options["beta"]
        gradients[name] = method.function(
            network, equilibrium, objective, target, wrt=parameters, frequencies=frequencies, **options
        )
    cosines, errors, stated = {}, {}, {}
    for parameter in parameters:
        flat = [gradients[name][parameter].ravel() for name in used]
        cosines[parameter] = np.array([[cosine(a, b) for b in flat] for a in flat])
        errors[parameter] = np.array([[relative_error(a, b) for b in flat] for a in flat])
        worst = [gradients[name].relative_error(parameter) for name in used]
        stated[parameter] = np.array([np.max(each[~np.isnan(each)], initial=0.0) for each in worst])
    return GradientTable(used, missing, gradients, cosines, errors, stated)


def cosine(a: ArrayLike | Gradient, b: ArrayLike | Gradient) -> float:
    """Return the cosine of the angle between two gradients, or arrays, over the entries that both have.

    Of gradients, all parameters that both were taken by count together. NaN if one vanishes. Taken from the chord
    between the unit vectors, which keeps the digits of 1 - cosine that a dot product loses.

    See Also
    --------
    check_gradients : Several methods in one table.
    Gradient : A gradient per sample, with its stated error.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.networks.random_network(10, seed=1)
    >>> question = (network, pg.find_equilibrium(network), pg.PhaseTargets(), [-0.2, 0.2])
    >>> pg.gradients.cosine(pg.two_phase(*question), pg.adjoint(*question)) > 0.999999
    True
    """
    a, b = _shared(*_flat(a, b))
    length_a, length_b = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    if length_a == 0 or length_b == 0:
        return float("nan")
    return 1.0 - 0.5 * float(np.sum((a / length_a - b / length_b) ** 2))


def relative_error(a: FloatArray, b: FloatArray) -> float:
    """Return |a - b| / |b| over the entries that both have; 0 where both vanish."""
    a, b = _shared(a, b)
    difference, scale = float(np.linalg.norm(a - b)), float(np.linalg.norm(b))
    return difference / scale if scale > 0 else (0.0 if difference == 0 else float("inf"))


def _flat(a: Any, b: Any) -> tuple[FloatArray, FloatArray]:
    """Return two gradients as vectors of the parameters that both have."""
    if isinstance(a, Gradient) and isinstance(b, Gradient):
        both = [name for name in a.values if name in b.values]
        if not both:
            raise ValueError("The two gradients were not taken by the same parameters.")
        return np.concatenate([a[name].ravel() for name in both]), np.concatenate([b[name].ravel() for name in both])
    first, second = np.asarray(a, dtype=float).ravel(), np.asarray(b, dtype=float).ravel()
    if first.shape != second.shape:
        raise ValueError(f"A cosine is of two arrays of one size. Got {first.size} and {second.size} entries.")
    return first, second


def _shared(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    both = np.isfinite(a) & np.isfinite(b)
    return a[both], b[both]
