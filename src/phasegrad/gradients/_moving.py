r"""The gradient from parameters that move while the network is nudged: continuous equilibrium propagation.

Every parameter follows its own slope as that changes under the nudge,

    p(t) = p_0 - rate [ g(theta(t)) - g(theta_0) ],      g = dE/dp

and is read when the network and its parameters have come to rest together: dC/dp = (p_0 - p) / (rate beta). No state
has to be remembered. Parameters that move pull the network further along, though. With B = dF/dp and the Laplacian L,

    (p_0 - p) / (rate beta) = (1 - rate S)^-1 dC/dp + O(beta),      S = B^T L^-1 B

so that the relative error is ``rate`` times the largest eigenvalue of S at most, to first order, and at a rate of one
over that eigenvalue the parameters run away.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._process import on_one_blas_thread
from phasegrad._validation import Array, BoolArray, positive_float
from phasegrad.dynamics import Pull, System
from phasegrad.equilibria import Equilibrium, settle
from phasegrad.gradients._accuracy import GIVEN_NUDGE_LIMIT, checked
from phasegrad.gradients._bending import beta_for
from phasegrad.gradients._exact import distances, exact_slopes
from phasegrad.gradients._local import energy_slopes
from phasegrad.gradients._question import INPUTS, Gradient, Question, ask, refuse_one_way
from phasegrad.networks import Network
from phasegrad.objectives import Cost
from phasegrad.solvers import branch_solver

#: How far a parameter moves per change of its slope if nothing else is said, and the relative error a nudge aims at.
RATE, AIM = 1e-3, 5e-4
#: Why it needs an energy, and what to use without one.
ONE_WAY = ("without it no slope of an energy says where a parameter should go", "centred with correction='asymmetric'")
# Rounds in which parameters and phases follow each other, the share of their way that may be left, and rounds without
# shorter steps after which parameters run away.
_ROUNDS, _LEFT, _PATIENCE = 300, 1e-9, 5


def continuous(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *, rate: float = RATE,
    beta: float | None = None, wrt: str | Iterable[str] = "omega", frequencies: str = "relative",
) -> Gradient:  # fmt: skip
    r"""Return the gradient that parameters show which move during the nudge; its error is of order rate + beta.

    Every parameter that is asked for follows its own slope, p = p_0 - rate [ g(theta) - g(theta_0) ] with g = dE/dp,
    from the free state until the nudged network and its parameters rest together. What a parameter has moved, over
    rate and beta, is the gradient: each needs its own slope and nothing of the past.

    Parameters
    ----------
    network, equilibrium, objective, target, frequencies
        As for `adjoint`; coupling must be reciprocal.
    rate : float
        How far a parameter moves per change of its slope. The relative error is ``rate`` times the largest eigenvalue
        of B^T L^-1 B, with B = dF/dp and L the Laplacian, to first order; parameters that move so fast that they run
        away leave a sample without a gradient.
    beta : float, optional
        Strength of the nudge, chosen so that it adds less than a thousandth if left out.
    wrt : str or sequence of str
        The parameters that move, all of them together. Data does not.

    Examples
    --------
    Half the rate, half the error:

    >>> import phasegrad as pg
    >>> network = pg.random_network(10, seed=0)
    >>> question = (network, pg.find_equilibrium(network), pg.PhaseTargets(), [-0.2, 0.2])
    >>> slow, fast = (pg.continuous(*question, rate=rate, beta=1e-6) for rate in (0.005, 0.01))
    >>> round(float(fast.relative_error("omega") / slow.relative_error("omega")), 1)
    2.0

    See Also
    --------
    two_phase : parameters that wait until the network has settled.

    References
    ----------
    Ernoult, Grollier, Querlioz, Bengio and Scellier, Equilibrium propagation with continual weight updates,
    arXiv:2005.04168; Scellier, Mishra, Bengio and Ollivier, Agnostic physics-driven deep learning, arXiv:2205.15021.
    """
    question = ask("continuous", network, equilibrium, objective, target, wrt, frequencies)
    refuse_one_way("continuous", network, *ONE_WAY)
    if INPUTS in question.wrt:
        raise ValueError(
            "continuous has no gradient by 'inputs': parameters move during the nudge, data does not. Use two_phase, "
            "centred or adjoint."
        )
    rate = positive_float("rate", rate, "continuous")
    beta = beta_for(question, AIM, 1) if beta is None else positive_float("beta", beta, "continuous")
    values, found = moving_slopes(question, beta, rate)
    reason = (
        f"With rate={rate:g} and beta={beta:g} parameters found no rest: they move faster than the network can hold "
        "them. Give a smaller rate."
    )
    errors = distances(question, values, exact_slopes(question))
    gradient = question.answer(values, errors, ok=found, beta=beta, reason=reason)
    advice = f"Its parameters move at rate={rate:g}, and the error falls with that and with beta={beta:g}: lower them."
    return checked(question, gradient, lambda: advice, GIVEN_NUDGE_LIMIT)


@on_one_blas_thread
def moving_slopes(question: Question, beta: float, rate: float) -> tuple[dict[str, Array], BoolArray]:
    """Return the slopes (B, width) of a flat batch, and where network and parameters have come to rest, (B,)."""
    batch = question.system.batch
    free, phases = _slopes(question, question.phases), question.phases.copy()
    moved = {name: np.zeros_like(slope) for name, slope in free.items()}
    rows, found = np.arange(batch), np.zeros(batch, dtype=bool)
    shortest, stale = np.full(batch, np.inf), np.zeros(batch, dtype=np.int64)
    pull = Pull(question.objective, question.nodes, question.target, np.full((batch, 1), beta))
    for _ in range(_ROUNDS):
        part = question.take(rows)
        nudged = _shifted(part, {name: each[rows] for name, each in moved.items()})
        nudged = nudged.replace(pull=pull.take(rows))
        state = settle(nudged, (rows.size,), phases[rows], branch_solver(nudged))
        now = _slopes(part, state.phases)
        change, size = np.zeros((2, rows.size))
        for name, slope in now.items():
            new = -rate * (slope - free[name][rows])
            change = np.maximum(change, np.max(np.abs(new - moved[name][rows]), axis=1, initial=0.0))
            size = np.maximum(size, np.max(np.abs(new), axis=1, initial=0.0))
            moved[name][rows] = new
        phases[rows] = state.phases
        found[rows] = state.converged & (change <= _LEFT * size)
        stale[rows] = np.where(change < shortest[rows], 0, stale[rows] + 1)
        shortest[rows] = np.minimum(change, shortest[rows])
        rows = rows[state.converged & ~found[rows] & (stale[rows] < _PATIENCE)]
        if not rows.size:
            break
    return {name: -each / (rate * beta) for name, each in moved.items()}, found


def _slopes(question: Question, phases: Array) -> dict[str, Array]:
    """Return dE/dp by the parameters asked for, (B, width), at their values before they move."""
    return question.collected(energy_slopes(question.network, question.system, question.wrt, phases))


def _shifted(question: Question, moved: dict[str, Array]) -> System:
    """Return the system with its parameters moved, (B, width) by name; what belongs to the data stays."""
    network, changes = question.network, {}
    for name, by in moved.items():
        term, parameter = network.term_of(name)
        turned = np.where(parameter.learnable(network.graph), question.in_units(name, by), 0.0)
        shift = network.graph.sharing.spread(parameter.on, turned)
        if term.drives and network.pinned and question.frequencies == "raw":
            # Raw frequencies are turned, and the frame goes with their mean.
            shift = shift - np.mean(shift, axis=1, keepdims=True)
        changes[name] = question.system.values[name] + shift
    return question.system.with_values(changes)
