"""The nudge for a given error, or for a given meter."""

from __future__ import annotations

from collections.abc import Iterable

from numpy.typing import ArrayLike

from phasegrad._validation import choice, positive_float
from phasegrad.equilibria import Equilibrium
from phasegrad.gradients._beta import beta_for
from phasegrad.gradients._meter import Meter, checked_meter
from phasegrad.gradients._nudging import NUDGES
from phasegrad.gradients._problem import pose
from phasegrad.gradients.methods import METHODS
from phasegrad.networks import Network
from phasegrad.objectives import Cost


def suggest_beta(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *, error: float = 1e-3,
    method: str = "two_phase", readout: Meter | None = None, nudge: str = "following",
    wrt: str | Iterable[str] = "omega", frequencies: str = "relative",
) -> float:  # fmt: skip
    """Return the nudge whose gradient is expected to be within a relative ``error`` of the exact one.

    The equilibrium under a nudge is theta + beta a + beta^2 b + ...; a and b follow from two solves with the
    Laplacian. The rate r = max(|b| / |a|, largest compliance of the outputs) is how much beta bends the response, so
    that the error of a method of order m is about (beta r)^m. Of a batch, the most sensitive sample decides.

    With a readout it is the nudge whose gradient, as that meter reads it, is expected to have the largest cosine with
    the exact one; see `plan_measurement`.

    Parameters
    ----------
    network, equilibrium, objective, target
        As for `adjoint`.
    error : float
        Relative error that is allowed, where there is no readout.
    method : str
        The nudged method whose error is meant, with its usual options: "two_phase", "centred", or another one that
        needs no option. With a readout, "two_phase" or "centred".
    readout : Readout, optional
        The meter.
    nudge, wrt, frequencies
        As for `centred`; they matter with a readout.

    See Also
    --------
    two_phase : One nudged equilibrium; error of order beta.
    centred : Nudges of +beta and -beta; error of order beta squared.
    plan_measurement : Which nudge and how many readings.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.layered(2, 5, 2, seed=0)
    >>> question = (network, pg.find_equilibrium(network, [0.8, -0.6]), pg.PhaseTargets(), [-0.2, 0.2])
    >>> one_sided = pg.gradients.suggest_beta(*question)
    >>> both_sides = pg.gradients.suggest_beta(*question, method="centred")
    >>> print(f"{one_sided:.1e}, {both_sides:.1e}")
    3.4e-03, 1.1e-01
    """
    owner = "suggest_beta"
    error = positive_float("error", error, owner)
    read = readout is not None
    schemes = {each.name: each.usual for each in METHODS.values() if each.usual and (each.readable or not read)}
    scheme = schemes[choice("method", method, schemes, owner)]
    choice("nudge", nudge, NUDGES, owner)
    problem = pose(owner, network, equilibrium, objective, target, wrt, frequencies)
    if readout is None:
        return beta_for(problem, error, scheme.order)
    return checked_meter(readout, owner).best_beta(problem, scheme, nudge)
