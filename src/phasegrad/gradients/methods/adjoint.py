"""The adjoint gradient: exact, by one transposed solve with the Laplacian (`phasegrad.gradients._exact`)."""

from __future__ import annotations

from collections.abc import Iterable

from numpy.typing import ArrayLike

from phasegrad.equilibria import Equilibrium
from phasegrad.gradients._accuracy import NEARLY_SINGULAR, checked
from phasegrad.gradients._exact import exact_slopes
from phasegrad.gradients._gradient import Gradient
from phasegrad.gradients._method import Method
from phasegrad.gradients._problem import pose
from phasegrad.networks import Network
from phasegrad.objectives import Cost


def adjoint(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *,
    wrt: str | Iterable[str] = "omega", frequencies: str = "relative",
) -> Gradient:  # fmt: skip
    """Return the exact gradient, by one linear solve per sample.

    Parameters
    ----------
    network : Network
    equilibrium : Equilibrium
        The free equilibrium of the network, any batch shape.
    objective : Cost
        For example `PhaseTargets`.
    target : array_like, shape (..., M)
        One target per sample, or one for all.
    wrt : str or sequence of str
        Names of the network's parameters, such as "omega", "coupling", "field_phase"; or "inputs", the data that the
        equilibrium was found for.
    frequencies : {"relative", "raw"}
        Whether the gradient of omega is with respect to frequencies relative to their mean, or to the raw ones. That
        of the inputs is with respect to the data as it was given, in both cases.

    See Also
    --------
    two_phase : One nudged equilibrium; error of order beta.
    centred : Nudges of +beta and -beta; error of order beta squared.
    finite_difference : Differences of the cost.
    check_gradients : Several methods in one table.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.networks.random_network(15, seed=42)
    >>> equilibrium = pg.find_equilibrium(network)
    >>> pg.adjoint(network, equilibrium, pg.PhaseTargets(), [-0.2, 0.2]).omega.shape
    (15,)

    By the data, one entry per input: how the cost answers a small change of x, whether x sets frequencies or phases.

    >>> network = pg.layered(2, 5, 2, seed=0)
    >>> equilibrium = pg.find_equilibrium(network, [[0.5, -0.5], [0.1, 0.9]])
    >>> gradient = pg.adjoint(network, equilibrium, pg.PhaseTargets(), [-0.2, 0.2], wrt=("coupling", "inputs"))
    >>> gradient.inputs.shape, gradient.coupling.shape
    ((2, 2), (2, 24))
    >>> near = pg.find_equilibrium(network, [0.5 + 1e-6, -0.5])
    >>> rise = pg.PhaseTargets().cost(near.phases[-2:], [-0.2, 0.2]) - gradient.cost[0]
    >>> bool(abs(rise / 1e-6 - gradient.inputs[0, 0]) < 1e-6)
    True
    """
    problem = pose("adjoint", network, equilibrium, objective, target, wrt, frequencies)
    exact = exact_slopes(problem)
    return checked(problem, problem.answer(exact.values, exact.errors, ok=exact.regular), lambda: NEARLY_SINGULAR)


METHOD = Method(adjoint, exact=True, compared=True, lane=2)
