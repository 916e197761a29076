"""The two-phase gradient: from the free state and one under a nudge, with an error of order beta."""

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
from phasegrad.gradients._schemes import ONE_SIDED
from phasegrad.networks import Network
from phasegrad.objectives import Cost


def two_phase(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *, beta: float | None = None,
    correction: str = "none", nudge: str = "following", readout: Meter | None = None, seed: int | None = 0,
    error: bool = True, wrt: str | Iterable[str] = "omega", frequencies: str = "relative",
) -> Gradient:  # fmt: skip
    """Return the gradient from the free and one nudged equilibrium, as the paper does; the error is of order beta.

    Parameters
    ----------
    network, equilibrium, objective, target, wrt, frequencies
        As for `adjoint`.
    beta : float, optional
        Strength of the nudge; if left out it is chosen so that the gradient is within a thousandth, and with a readout
        so that the cosine expected with the exact one is largest. The error is measured, see `Gradient`, and a warning
        says when a nudge was too strong, or so weak that rounding shows.
    correction : {"none", "asymmetric"}
        What the network is given while it is nudged. "asymmetric" adds -2 J_A (theta - theta_0), with J_A the
        antisymmetric part of the Jacobian at the free state theta_0, taken from that state as it is: where coupling is
        not reciprocal the shift then is the adjoint response, and the gradient exact up to the nudge. Reciprocal
        coupling has no such part, and nothing changes.
    nudge : {"following", "frozen", "held"}
        Whether the pull follows the outputs, as the paper's does, or stays what it is at the free state, a constant
        torque (`Torques`): "frozen" is the error as the readout shows it, "held" the error as a circuit holds it,
        which no meter touches; without a readout they are the same. Where such a nudge leaves the locked state it is
        halved, and a warning says so.
    readout : Readout, optional
        The meter between the equilibria and the gradient: the free and the nudged phases are what it shows. With one a
        following nudge that leaves the locked state is halved, too, and a warning comes where the noise is louder than
        the gradient.
    seed : int or None
        Of the meter's noise; None draws other noise each time.
    error : bool
        Whether to state the error. False gives the physics alone, without the exact gradient beside it:
        `Gradient.error` is then empty, no warning tells of a large error, and a beta that is left out is not checked
        again.

    See Also
    --------
    centred : Nudges of +beta and -beta; error of order beta squared.
    random_sign : One nudge whose sign is drawn.
    dyadic : Two coupled copies, for coupling of any kind.
    holomorphic : Complex nudges; exact to rounding.
    adjoint : One transposed linear solve; exact.
    check_gradients : Several methods in one table.
    suggest_beta : The nudge for a given error.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.layered(2, 5, 2, seed=0)
    >>> equilibrium = pg.find_equilibrium(network, [0.5, -0.5])
    >>> gradient = pg.two_phase(network, equilibrium, pg.PhaseTargets(), [-0.2, 0.2], beta=0.1)
    >>> exact = pg.adjoint(network, equilibrium, pg.PhaseTargets(), [-0.2, 0.2])
    >>> bool(abs(gradient.omega - exact.omega).max() < 0.05 * abs(exact.omega).max())
    True

    Couplings a fifth as strong in one direction, and a correction that makes up for it:

    >>> import numpy as np
    >>> network = pg.networks.random_network(10, seed=0)
    >>> matrix = np.tril(pg.networks.to_matrix(network)) + 0.2 * np.triu(pg.networks.to_matrix(network))
    >>> directed = pg.networks.from_matrix(matrix, omega=network.omega, outputs=network.outputs)
    >>> question = (directed, pg.find_equilibrium(directed), pg.PhaseTargets(), [-0.2, 0.2])
    >>> 1 - pg.gradients.cosine(pg.two_phase(*question, correction="asymmetric"), pg.adjoint(*question)) < 1e-6
    True

    References
    ----------
    Scellier and Bengio, Equilibrium propagation, Front. Comput. Neurosci. 11 (2017), arXiv:1602.05179. The correction:
    Scurria, Vanden Abeele, Mognetti and Massar, Equilibrium propagation for non-conservative systems, arXiv:2602.03670.
    """
    problem = pose("two_phase", network, equilibrium, objective, target, wrt, frequencies, correction=correction)
    stream = random_stream(seed, "two_phase")
    return nudged_gradient(problem, ONE_SIDED, beta, error=error, nudge=nudge, readout=readout, stream=stream)


METHOD = Method(two_phase, lambda: ONE_SIDED, correctable=True, readable=True, compared=True, lane=0)
