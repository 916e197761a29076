r"""The adjoint gradient: exact, by one transposed solve with the Laplacian.

With c = dC/dtheta at the equilibrium and L the reduced Laplacian, the implicit function theorem gives

    L^T lambda = c,      dC/dp = lambda . dF/dp

for every parameter p at once: lambda itself for centred frequencies, (lambda_i - lambda_j) H(theta_j - theta_i)
for a reciprocal coupling, lambda_i H(psi_i - theta_i) and lambda_i h_i H'(psi_i - theta_i) for a field.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad.dynamics import Cost
from phasegrad.equilibrium import Equilibrium
from phasegrad.gradients.result import Gradient, Question, ask
from phasegrad.network import Network
from phasegrad.solvers.linear import on_one_blas_thread
from phasegrad.solvers.response import respond

Array = NDArray[Any]


@on_one_blas_thread
def adjoint(
    network: Network,
    equilibrium: Equilibrium,
    objective: Cost,
    target: ArrayLike,
    *,
    wrt: str | Iterable[str] = "omega",
    frequencies: str = "centred",
) -> Gradient:
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
        Any of "omega", "coupling", "field_strength", "field_phase".
    frequencies : {"centred", "raw"}
        Whether the gradient by omega is by the centred or by the raw frequencies.

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
    response = np.zeros_like(question.phases)
    response[:, network.free], regular = respond(
        question.system, question.phases, slope[:, network.free], transposed=True
    )
    return question.answer(local_products(question, response), ok=regular)


def local_products(question: Question, response: Array) -> dict[str, Array]:
    """Return lambda . dF/dp for every parameter asked for, each from quantities at one node or edge."""
    system, phases = question.system, question.phases
    interaction = question.network.interaction
    values: dict[str, Array] = {}
    if "omega" in question.wrt:
        values["omega"] = question.gauge(response)
    if "coupling" in question.wrt:
        i, j = question.network.edges.T
        pull = interaction.value(system.angles(phases))
        if question.network.reciprocal:
            values["coupling"] = (response[:, i] - response[:, j]) * pull
        else:
            values["coupling"], values["coupling_reverse"] = response[:, i] * pull, -response[:, j] * pull
    if "field_strength" in question.wrt:
        values["field_strength"] = response * interaction.value(system.field_phase - phases)
    if "field_phase" in question.wrt:
        slope = system.field_strength * interaction.derivative(system.field_phase - phases)
        values["field_phase"] = response * slope
    return values
