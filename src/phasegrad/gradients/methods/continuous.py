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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._process import on_one_blas_thread
from phasegrad._validation import Array, BoolArray, positive_float
from phasegrad.dynamics import System
from phasegrad.equilibria import Equilibrium
from phasegrad.gradients._accuracy import GIVEN_NUDGE_LIMIT
from phasegrad.gradients._gradient import Gradient
from phasegrad.gradients._local import energy_slopes
from phasegrad.gradients._method import Method
from phasegrad.gradients._nudged import judged
from phasegrad.gradients._nudging import Nudging, settle_near
from phasegrad.gradients._problem import INPUTS, Problem, pose
from phasegrad.gradients._reading import Reading
from phasegrad.gradients._schemes import ONE_SIDED, Scheme
from phasegrad.networks import Network
from phasegrad.objectives import Cost

# How far a parameter moves per change of its slope if no rate is given.
_RATE = 1e-3
# Rounds in which parameters and phases follow each other, the share of their way that may be left, and rounds without
# shorter steps after which parameters run away.
_ROUNDS, _LEFT, _PATIENCE = 300, 1e-9, 5


def continuous(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *, rate: float = _RATE,
    beta: float | None = None, error: bool = True, wrt: str | Iterable[str] = "omega",
    frequencies: str = "relative",
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
    error : bool
        Whether to state the error, as for `two_phase`.

    See Also
    --------
    two_phase : Parameters that wait until the network has settled.

    Examples
    --------
    Half the rate, half the error:

    >>> import phasegrad as pg
    >>> network = pg.networks.random_network(10, seed=0)
    >>> question = (network, pg.find_equilibrium(network), pg.PhaseTargets(), [-0.2, 0.2])
    >>> slow, fast = (pg.gradients.continuous(*question, rate=rate, beta=1e-6) for rate in (0.005, 0.01))
    >>> round(float(fast.relative_error("omega") / slow.relative_error("omega")), 1)
    2.0

    References
    ----------
    Ernoult, Grollier, Querlioz, Bengio and Scellier, Equilibrium propagation with continual weight updates,
    arXiv:2005.04168; Scellier, Mishra, Bengio and Ollivier, Agnostic physics-driven deep learning, arXiv:2205.15021.
    """
    problem = pose("continuous", network, equilibrium, objective, target, wrt, frequencies)
    METHOD.check_network(network, "continuous")
    if INPUTS in problem.wrt:
        raise ValueError(
            "continuous has no gradient by 'inputs': parameters move during the nudge, data does not. Use two_phase, "
            "centred or adjoint."
        )
    scheme = _scheme(rate)

    def read(strength: float) -> Reading:
        return Reading(strength, *_slopes(problem, strength, None, rate=rate))

    def advice(reading: Reading, _off: float) -> str:
        return (
            f"Its parameters move at rate={rate:g}, and the error falls with that and with beta={reading.beta:g}: "
            "lower them."
        )

    return judged(
        problem, scheme, beta, read, error=error, weakens=False, limit=GIVEN_NUDGE_LIMIT, advice=advice,
        reason=f"With rate={rate:g} parameters found no rest: they move faster than the network can hold them. Give a "
        "smaller rate.",
    )  # fmt: skip


def _scheme(rate: float = _RATE) -> Scheme:
    """Return the nudge, with the rate checked."""
    positive_float("rate", rate, "continuous")
    return ONE_SIDED


@on_one_blas_thread
def _slopes(problem: Problem, beta: float, _stream: Any, *, rate: float = _RATE) -> tuple[dict[str, Array], BoolArray]:
    """Return the slopes (B, width) of a flat batch, and where network and parameters have come to rest, (B,)."""
    batch = problem.system.batch
    free, phases = _at(problem, problem.phases), problem.phases.copy()
    moved = {name: np.zeros_like(slope) for name, slope in free.items()}
    rows, found = np.arange(batch), np.zeros(batch, dtype=bool)
    shortest, stale = np.full(batch, np.inf), np.zeros(batch, dtype=np.int64)
    for _ in range(_ROUNDS):
        part = problem.take(rows)
        shifted = _shifted(part, {name: each[rows] for name, each in moved.items()})
        nudged = Nudging.of(part, "following", part.phases).on(shifted, part.nodes, beta)
        state = settle_near(nudged, phases[rows])
        now = _at(part, state.phases)
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


def _at(problem: Problem, phases: Array) -> dict[str, Array]:
    """Return dE/dp by the parameters asked for, (B, width), at their values before they move."""
    return problem.collected(energy_slopes(problem.network, problem.system, problem.wrt, phases))


def _shifted(problem: Problem, moved: dict[str, Array]) -> System:
    """Return the system with its parameters moved, (B, width) by name; what belongs to the data stays."""
    network, changes = problem.network, {}
    for name, by in moved.items():
        term, parameter = network.term_of(name)
        turned = np.where(parameter.learnable(network.graph), problem.in_units(name, by), 0.0)
        shift = network.graph.sharing.spread(parameter.on, turned)
        if term.drives and network.pinned and problem.frequencies == "raw":
            # Raw frequencies are moved, and the frame goes with the mean over all oscillators.
            shift = shift - np.mean(shift, axis=1, keepdims=True)
        changes[name] = problem.system.values[name] + shift
    return problem.system.with_values(changes)


METHOD = Method(
    continuous,
    _scheme,
    _slopes,
    needs_energy=(
        "without it no slope of an energy says where a parameter should go",
        "centred with correction='asymmetric'",
    ),
)
