r"""The gradient from two coupled copies of a network: dyadic equilibrium propagation.

Two copies of all oscillators, at theta_+ and theta_-, with midpoint m = (theta_+ + theta_-) / 2 and difference
d = theta_+ - theta_-, have the joint function

    A(theta_+, theta_-) = -d . F(m) + beta / 2 [ C(theta_+) + C(theta_-) ]

whatever F is: a sum of forces needs no energy to have one. One copy descends it and the other one climbs it, which is
stable where the network is. At rest

    F(m) = beta / 4 [ c(theta_+) - c(theta_-) ],      L(m)^T d = -beta / 2 [ c(theta_+) + c(theta_-) ]

so that m is the free state up to beta^2, and -d / beta the adjoint response L^-T c up to beta^2. The gradient is
dA/dp / beta = -(d / beta) . dF/dp at m: one joint equilibrium, no free one before it, and an error of order beta^2.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._process import on_one_blas_thread
from phasegrad._validation import Array, BoolArray
from phasegrad.equilibria import Equilibrium, tolerance_of
from phasegrad.gradients._gradient import Gradient
from phasegrad.gradients._local import local_products
from phasegrad.gradients._method import Method
from phasegrad.gradients._nudged import judged
from phasegrad.gradients._problem import Problem, pose
from phasegrad.gradients._reading import Reading
from phasegrad.gradients._schemes import Scheme, symmetric
from phasegrad.linearised import linearise
from phasegrad.networks import Network
from phasegrad.objectives import Cost

# Rounds of Newton's method for the midpoint and the difference in turn.
_ROUNDS = 60


def dyadic(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *, beta: float | None = None,
    error: bool = True, wrt: str | Iterable[str] = "omega", frequencies: str = "relative",
) -> Gradient:  # fmt: skip
    r"""Return the gradient from the joint equilibrium of two coupled copies; the error is of order beta^2.

    The copies, at theta_+ and theta_-, act on each other through their midpoint m, and both are nudged by beta / 2. The
    midpoint rests where the network does, and their difference d is the response of the transposed network,

        dC/dp = -(d / beta) . dF/dp,      L(m)^T d = -beta / 2 [ c(theta_+) + c(theta_-) ]

    Right for coupling of any kind; it takes twice the oscillators and no free phase.

    Parameters
    ----------
    network, equilibrium, objective, target, wrt, frequencies
        As for `adjoint`. The copies start at the equilibrium.
    beta : float, optional
        Strength of the nudge, shared by both copies; chosen if left out.
    error : bool
        Whether to state the error, as for `two_phase`.

    See Also
    --------
    centred : With ``correction="asymmetric"`` one network does, settled three times.

    Examples
    --------
    >>> import numpy as np, phasegrad as pg
    >>> network = pg.networks.random_network(10, seed=0)
    >>> matrix = np.tril(pg.networks.to_matrix(network)) + 0.2 * np.triu(pg.networks.to_matrix(network))
    >>> directed = pg.networks.from_matrix(matrix, omega=network.omega, outputs=network.outputs)
    >>> question = (directed, pg.find_equilibrium(directed), pg.PhaseTargets(), [-0.2, 0.2])
    >>> 1 - pg.gradients.cosine(pg.gradients.dyadic(*question), pg.adjoint(*question)) < 1e-9
    True

    References
    ----------
    Scurria, Vanden Abeele, Mognetti and Massar, Equilibrium propagation for non-conservative systems, arXiv:2602.03670.
    """
    problem = pose("dyadic", network, equilibrium, objective, target, wrt, frequencies)

    def read(strength: float) -> Reading:
        return Reading(strength, *_slopes(problem, strength, None))

    return judged(problem, _scheme(), beta, read, error=error)


def _scheme() -> Scheme:
    """Return the nudges of both copies; the network is at their midpoint."""
    return symmetric(2, "fit", "dyadic")


@on_one_blas_thread
def _slopes(problem: Problem, beta: float, _stream: Any) -> tuple[dict[str, Array], BoolArray]:
    """Return the slopes (B, width) of a flat batch, and where the copies have come to rest, (B,)."""
    values = {name: np.zeros((problem.system.batch, problem.width(name))) for name in problem.wrt}
    found = np.zeros(problem.system.batch, dtype=bool)
    for rows, some in problem.parts:
        middle, apart, found[rows] = _at_rest(some, beta)
        slopes = local_products(some.network, some.system, some.wrt, middle, -apart / beta)
        for name, slope in some.collected(slopes).items():
            values[name][rows] = slope
    return values, found


def _at_rest(problem: Problem, beta: float) -> tuple[Array, Array, BoolArray]:
    """Return midpoints and differences (B, N) of the copies, and where they rest.

    Each takes Newton's step while the other one stays: what one does to the other is of order beta, or weaker.
    """
    system, graph = problem.system, problem.network.graph
    middle, apart = system.place(problem.phases), np.zeros_like(problem.phases)
    limits = tolerance_of(system, 1e-12, middle) + 1e-14 * beta
    found = np.zeros(system.batch, dtype=bool)
    for _ in range(_ROUNDS):
        ahead, behind = (_slope(problem, middle + sign * apart / 2) for sign in (1.0, -1.0))
        force = system.force(middle)[:, graph.free] - beta / 4 * system.reacting((ahead - behind)[:, graph.free])
        solver = linearise(system, middle)
        step, regular = solver.solve(force)
        response, _ = solver.solve((ahead + behind)[:, graph.free], transposed=True)
        before, apart = apart, system.spread(-beta / 2 * response)
        settled = np.max(np.abs(apart - before), axis=1) <= 1e-12 * np.max(np.abs(apart), axis=1)
        found = regular & settled & (np.max(np.abs(force), axis=1, initial=0.0) <= limits)
        middle[:, graph.free] += np.where(np.isfinite(step), step, 0.0)
        if np.all(found | ~regular):
            break
    return middle, apart, found


def _slope(problem: Problem, phases: Array) -> Array:
    """Return c = dC/dtheta (B, N), with the phases counted as those of the network are."""
    drifts, reference = problem.system.drifts, problem.network.reference
    return problem.slope(phases - phases[:, [reference]] if drifts else phases)


METHOD = Method(dyadic, _scheme, _slopes)
