"""The random-sign gradient: from the free state and one nudge whose sign is drawn for every sample."""

from __future__ import annotations

from collections.abc import Iterable

from numpy.typing import ArrayLike

from phasegrad._validation import random_stream
from phasegrad.equilibria import Equilibrium
from phasegrad.gradients._gradient import Gradient
from phasegrad.gradients._method import Method
from phasegrad.gradients._nudged import drawn_signs, nudged_gradient
from phasegrad.gradients._problem import pose
from phasegrad.gradients._schemes import ONE_SIDED
from phasegrad.networks import Network
from phasegrad.objectives import Cost


def random_sign(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *, beta: float | None = None,
    correction: str = "none", nudge: str = "following", seed: int | None = 0, error: bool = True,
    wrt: str | Iterable[str] = "omega", frequencies: str = "relative",
) -> Gradient:  # fmt: skip
    r"""Return the gradient from the free state and one nudge whose sign is drawn for every sample.

    With a sign s = 1 or -1 of a sample, the gradient from 0 and s beta is

        [g(s beta) - g(0)] / (s beta) = dC/dp + s beta b + beta^2 c + ...

    The error of a sample is of order beta, as that of `two_phase`; the term in s beta averages out over samples and
    updates, and beta^2 is left. So a mean over many costs two equilibria for each, where `centred` needs three.

    Parameters
    ----------
    network, equilibrium, objective, target, wrt, frequencies
        As for `adjoint`.
    beta : float, optional
        Strength of the nudge, chosen as for `two_phase` if left out.
    correction, nudge
        As for `two_phase`.
    seed : int or None
        Of the signs; None draws others each time.
    error : bool
        Whether to state the error, as for `two_phase`.

    See Also
    --------
    two_phase : The same sign for all samples.
    centred : Both signs for every sample.

    Examples
    --------
    The mean over the same sample a thousand times is as good as a centred gradient:

    >>> import numpy as np, phasegrad as pg
    >>> network = pg.networks.random_network(10, seed=0)
    >>> question = (network, pg.find_equilibrium(network), pg.PhaseTargets())
    >>> many = pg.gradients.random_sign(*question, np.tile([-0.2, 0.2], (1000, 1)), beta=0.1)
    >>> exact, one = pg.adjoint(*question, [-0.2, 0.2]), pg.two_phase(*question, [-0.2, 0.2], beta=0.1)
    >>> off = [abs(each - exact.omega).max() for each in (many.omega.mean(axis=0), one.omega)]
    >>> bool(off[0] < 0.2 * off[1])
    True

    References
    ----------
    Laborieux et al., arXiv:2006.03824; Scellier et al., arXiv:2312.15103; Kerjan, Hoier and Scellier,
    arXiv:2606.03584, who find it nearly as good as centred nudges.
    """
    problem = pose("random_sign", network, equilibrium, objective, target, wrt, frequencies, correction=correction)
    signs = drawn_signs(problem.system.batch, random_stream(seed, "random_sign"))
    return nudged_gradient(problem, ONE_SIDED, beta, error=error, nudge=nudge, signs=signs)


METHOD = Method(random_sign, lambda: ONE_SIDED, correctable=True, draws=True)
