"""The holomorphic gradient: from complex nudges, exact to rounding."""

from __future__ import annotations

from collections.abc import Iterable

from numpy.typing import ArrayLike

from phasegrad._validation import whole_number
from phasegrad.equilibria import Equilibrium
from phasegrad.gradients._gradient import Gradient
from phasegrad.gradients._method import Method
from phasegrad.gradients._nudged import nudged_gradient
from phasegrad.gradients._problem import pose
from phasegrad.gradients._schemes import COMPLEX_STEP, Scheme, circle
from phasegrad.networks import Network
from phasegrad.objectives import Cost


def holomorphic(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *, beta: float | None = None,
    points: int = 1, correction: str = "none", error: bool = True, wrt: str | Iterable[str] = "omega",
    frequencies: str = "relative",
) -> Gradient:  # fmt: skip
    """Return the gradient from complex nudges, exact to rounding.

    Interaction and objective must be analytic functions that accept complex phases.

    Parameters
    ----------
    network, equilibrium, objective, target, wrt, frequencies
        As for `adjoint`.
    beta : float, optional
        Size of the nudges; `suggest_beta` chooses it if left out, near 1e-8 for one point.
    points : int
        1 takes a single step along the imaginary axis, i beta, which needs no difference and so loses no digits.
        M >= 2 spreads M nudges over the circle of radius beta.
    correction : {"none", "asymmetric"}
        As for `two_phase`. It is linear in the phases, and so analytic.
    error : bool
        Whether to state the error, as for `two_phase`.

    See Also
    --------
    two_phase : One nudged equilibrium; error of order beta.
    centred : Nudges of +beta and -beta; error of order beta squared.
    adjoint : One transposed linear solve; exact.
    check_gradients : Several methods in one table.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.layered(2, 5, 2, seed=0)
    >>> question = (network, pg.find_equilibrium(network, [0.8, -0.6]), pg.PhaseTargets(), [-0.2, 0.2])
    >>> bool(pg.gradients.holomorphic(*question).relative_error("omega") < 1e-12)
    True

    References
    ----------
    Laborieux and Zenke, Holomorphic equilibrium propagation computes exact gradients through finite size oscillations,
    NeurIPS 2022, arXiv:2209.00530.
    """
    problem = pose("holomorphic", network, equilibrium, objective, target, wrt, frequencies, correction=correction)
    return nudged_gradient(problem, _scheme(points), beta, error=error)


def _scheme(points: int = 1) -> Scheme:
    points = whole_number("points", points, 1, "holomorphic")
    return COMPLEX_STEP if points == 1 else circle(points)


METHOD = Method(holomorphic, _scheme, correctable=True, compared=True)
