"""Every gradient method against every other."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from phasegrad.dynamics import Cost
from phasegrad.equilibrium import Equilibrium
from phasegrad.gradients.differences import finite_difference
from phasegrad.gradients.implicit import adjoint
from phasegrad.gradients.nudged import centred, holomorphic, two_phase
from phasegrad.gradients.result import PARAMETERS, Gradient
from phasegrad.gradients.torch_autograd import autograd
from phasegrad.network import Network
from phasegrad.validation import FloatArray, choice

METHODS = ("adjoint", "two_phase", "centred", "holomorphic", "finite_difference", "autograd")


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
    """

    methods: tuple[str, ...]
    missing: tuple[str, ...]
    gradients: dict[str, Gradient]
    cosine: dict[str, FloatArray]
    relative_error: dict[str, FloatArray]

    def __str__(self) -> str:
        width = max(len(name) for name in self.methods) + 2
        lines = []
        for parameter in self.cosine:
            lines.append(f"gradient by {parameter}: relative error (below diagonal), 1 - cosine (above)")
            lines.append(" " * width + "".join(f"{name:>{width}}" for name in self.methods))
            for row, name in enumerate(self.methods):
                cells = [f"{self._cell(parameter, row, column):>{width}}" for column in range(len(self.methods))]
                lines.append(f"{name:<{width}}" + "".join(cells))
        lines += [f"not compared: {name} (its package is not installed)" for name in self.missing]
        return "\n".join(lines)

    def _cell(self, parameter: str, row: int, column: int) -> str:
        if row == column:
            return "."
        if row < column:
            return f"{1 - self.cosine[parameter][row, column]:.1e}"
        return f"{self.relative_error[parameter][row, column]:.1e}"


def check_gradients(
    network: Network,
    equilibrium: Equilibrium,
    objective: Cost,
    target: ArrayLike,
    *,
    wrt: str | Iterable[str] | None = None,
    methods: Iterable[str] | None = None,
    frequencies: str = "centred",
    beta: float = 1e-4,
) -> GradientTable:
    """Compare every gradient method with every other.

    Parameters
    ----------
    network, equilibrium, objective, target, frequencies
        As for `adjoint`.
    wrt : str or sequence of str, optional
        Parameters to derive by; all that the network has if left out.
    methods : sequence of str, optional
        All six if left out; autograd is left out, and named so, where PyTorch is not installed.
    beta : float
        Nudge of `two_phase` and `centred`.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.random_network(10, seed=1)
    >>> equilibrium = pg.find_equilibrium(network)
    >>> methods = ["adjoint", "holomorphic"]
    >>> table = pg.check_gradients(network, equilibrium, pg.PhaseTargets(), [-0.2, 0.2], methods=methods)
    >>> bool(table.relative_error["omega"].max() < 1e-13)
    True
    """
    if wrt is None:
        wrt = PARAMETERS if network.field_strength is not None else PARAMETERS[:2]
    wanted = METHODS if methods is None else (methods,) if isinstance(methods, str) else tuple(methods)
    if not wanted:
        raise ValueError("The 'methods' parameter of check_gradients must name at least one method.")
    for name in wanted:
        choice("methods", name, METHODS, "check_gradients")
    missing: tuple[str, ...] = ()
    if methods is None and importlib.util.find_spec("torch") is None:
        missing = ("autograd",)
    used = tuple(name for name in wanted if name not in missing)
    shared = (network, equilibrium, objective, target)
    functions = {
        "adjoint": adjoint,
        "two_phase": lambda *args, **options: two_phase(*args, beta=beta, **options),
        "centred": lambda *args, **options: centred(*args, beta=beta, **options),
        "holomorphic": holomorphic,
        "finite_difference": finite_difference,
        "autograd": autograd,
    }
    parameters = (wrt,) if isinstance(wrt, str) else tuple(wrt)
    gradients = {name: functions[name](*shared, wrt=parameters, frequencies=frequencies) for name in used}
    cosines, errors = {}, {}
    for parameter in parameters:
        flat = [gradients[name].get(parameter).ravel() for name in used]
        cosines[parameter] = np.array([[cosine(a, b) for b in flat] for a in flat])
        errors[parameter] = np.array([[relative_error(a, b) for b in flat] for a in flat])
    return GradientTable(used, missing, gradients, cosines, errors)


def cosine(a: FloatArray, b: FloatArray) -> float:
    """Return the cosine of the angle between two vectors over the entries that both have; NaN if one vanishes.

    Taken from the chord between the unit vectors, which keeps the digits of 1 - cosine that a dot product loses.
    """
    a, b = _shared(a, b)
    length_a, length_b = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    if length_a == 0 or length_b == 0:
        return float("nan")
    return 1.0 - 0.5 * float(np.sum((a / length_a - b / length_b) ** 2))


def relative_error(a: FloatArray, b: FloatArray) -> float:
    """Return |a - b| / |b| over the entries that both have; 0 where both vanish."""
    a, b = _shared(a, b)
    difference, scale = float(np.linalg.norm(a - b)), float(np.linalg.norm(b))
    return difference / scale if scale > 0 else (0.0 if difference == 0 else float("inf"))


def _shared(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    both = np.isfinite(a) & np.isfinite(b)
    return a[both], b[both]
