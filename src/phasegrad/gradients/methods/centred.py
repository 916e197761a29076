"""The centred gradient: from states nudged both ways, with an error of order beta^2, or of M nudges beta^M."""

from __future__ import annotations

from collections.abc import Iterable

from numpy.typing import ArrayLike

from phasegrad._validation import random_stream
from phasegrad.equilibria import Equilibrium
from phasegrad.gradients._gradient import Gradient
from phasegrad.gradients._meter import Meter
from phasegrad.gradients._method import Method
from phasegrad.gradients._nudged import nudged_gradient
from phasegrad.gradients._problem import pose
from phasegrad.gradients._schemes import Scheme, symmetric
from phasegrad.networks import Network
from phasegrad.objectives import Cost


def centred(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *, beta: float | None = None,
    points: int = 2, pattern: str = "fit", correction: str = "none", nudge: str = "following",
    readout: Meter | None = None, seed: int | None = 0, error: bool = True, wrt: str | Iterable[str] = "omega",
    frequencies: str = "relative",
) -> Gradient:  # fmt: skip
    """Return the gradient from equilibria nudged both ways: by +beta and -beta, the error is of order beta^2.

    Parameters
    ----------
    network, equilibrium, objective, target, wrt, frequencies
        As for `adjoint`.
    beta : float, optional
        Strength of the nudges; `suggest_beta` chooses it if left out.
    points : int
        How many nudges.
    pattern : {"fit", "lock-in"}
        "fit" takes the slope at zero of the polynomial through an even number of nudges, at beta times the real parts
        of points on a circle; its error is of order beta^points. That is Richardson's extrapolation: of centred
        gradients g(b_k) at several strengths it takes the combination whose terms in b^2, b^4, ... cancel. "lock-in"
        nudges by a slow sine of amplitude beta, settled at ``points`` instants of one turn, and takes the first
        harmonic of what the oscillators show; its error is of order beta^2, and every instant averages the noise of a
        meter.
    correction, nudge, readout, seed, error
        As for `two_phase`.

    See Also
    --------
    two_phase : One nudged equilibrium; error of order beta.
    holomorphic : Complex nudges; exact to rounding.
    adjoint : One transposed linear solve; exact.
    check_gradients : Several methods in one table.
    plan_measurement : Which nudge and how many readings.

    Examples
    --------
    Four nudges up to 0.1, and an error of order 1e-4 where two would leave one of 1e-2:

    >>> import phasegrad as pg
    >>> network = pg.networks.random_network(10, seed=0)
    >>> question = (network, pg.find_equilibrium(network), pg.PhaseTargets(), [-0.2, 0.2])
    >>> two, four = (pg.centred(*question, beta=0.1, points=points) for points in (2, 4))
    >>> bool(four.relative_error("omega") < 0.1 * two.relative_error("omega"))
    True

    One reading of each state, off by a picosecond at 3 GHz:

    >>> measured = pg.centred(*question, nudge="held", readout=pg.measurement.Readout.from_time(1e-12, 3e9))
    >>> pg.gradients.cosine(measured, pg.adjoint(*question)) > 0.99
    True

    References
    ----------
    Laborieux et al., Scaling equilibrium propagation to deep convnets, Front. Neurosci. 15 (2021), arXiv:2006.03824.
    """
    problem = pose("centred", network, equilibrium, objective, target, wrt, frequencies, correction=correction)
    scheme, stream = _scheme(points, pattern), random_stream(seed, "centred")
    return nudged_gradient(problem, scheme, beta, error=error, nudge=nudge, readout=readout, stream=stream)


def _scheme(points: int = 2, pattern: str = "fit") -> Scheme:
    return symmetric(points, pattern, "centred")


METHOD = Method(centred, _scheme, correctable=True, readable=True, compared=True, lane=1)
