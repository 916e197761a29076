r"""The adjoint gradient: exact, by one transposed solve with the Laplacian.

With c = dC/dtheta at the equilibrium and L the reduced Laplacian, the implicit function theorem gives

    L^T lambda = c,      dC/dp = lambda . dF/dp

for every parameter p at once; each term knows its dF/dp (`Term.force_slopes`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import Array
from phasegrad.equilibria import Equilibrium
from phasegrad.gradients._question import Gradient, Question, ask
from phasegrad.networks import Network
from phasegrad.objectives import Cost
from phasegrad.solvers import on_one_blas_thread, respond


@on_one_blas_thread
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
        Names of the network's parameters, such as "omega", "coupling", "field_phase".
    frequencies : {"relative", "raw"}
        Whether the gradient by omega is by the frequencies relative to their mean, or by the raw ones.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.random_network(15, seed=42)
    >>> equilibrium = pg.find_equilibrium(network)
    >>> pg.adjoint(network, equilibrium, pg.PhaseTargets(), [-0.2, 0.2]).omega.shape
    (15,)
    """
    question = ask("adjoint", network, equilibrium, objective, target, wrt, frequencies)
    slope = np.zeros_like(question.phases)
    slope[:, question.nodes] = -objective.force(question.outputs, question.target)
    response, regular = respond(question.system, question.phases, slope[:, network.free], transposed=True)
    return question.answer(local_products(question, question.system.spread(response)), ok=regular)


def local_products(question: Question, response: Array) -> dict[str, Array]:
    """Return lambda . dF/dp for every parameter asked for, each from quantities at one node or edge."""
    graph, values = question.network.graph, question.system.values
    slopes: dict[str, Array] = {}
    for term in question.terms:
        slopes |= term.force_slopes(graph, values, question.phases, response)
    return slopes
