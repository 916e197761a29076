r"""Gradients from nudged equilibria: the physics of equilibrium propagation.

Under a nudge of strength beta the equilibrium moves along theta(beta). For an energy E(theta; p),

    dC/dp = d/dbeta [ dE/dp at theta(beta) ] at beta = 0

and dE/dp is local: each term knows its own (`phasegrad.gradients._local`). The methods differ only in how they
take the derivative by beta (`phasegrad.gradients._schemes`): from 0 and beta (error of order beta), from 0 and beta or
-beta by lot (order beta, but beta^2 in the mean), from -beta and beta (beta^2; M points, beta^M), or from complex
nudges, where one step along the imaginary axis has no cancellation and M points on a circle have an error of order
beta^M.

The pull of a *following* nudge is that of the cost wherever the outputs are; a *frozen* or *held* one stays what it
was at the free state, a constant torque. It has no curvature, so that both signs are stable at any strength that the
network can hold, and strong nudges are what lifts a gradient above the noise of a meter.

Without an energy (non-reciprocal coupling) the shift d theta / d beta is used in place of the adjoint
response. That is right only for a symmetric Laplacian, and biased otherwise: the shift is -L^-1 c where the gradient
needs L^-T c. An asymmetric *correction* of the nudged dynamics, -2 J_A (theta - theta_0), makes it -L^-T c
(`phasegrad.dynamics._correction`): the same error laws then hold without reciprocity.

How far off a gradient is, by its nudge, by a meter or by that bias, one transposed solve tells
(`phasegrad.gradients._exact`). A nudge that was left to be chosen is made weaker where it shows too much.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import Array, BoolArray, FloatArray, choice, positive_float, random_stream, whole_number
from phasegrad.equilibria import Equilibrium
from phasegrad.gradients._accuracy import GIVEN_NUDGE_LIMIT, LIMIT, NEARLY_SINGULAR, checked
from phasegrad.gradients._bending import beta_for
from phasegrad.gradients._exact import Exact, distances, exact_slopes
from phasegrad.gradients._measured import brought_together, combined
from phasegrad.gradients._noise import deviations
from phasegrad.gradients._planning import best_outlook, checked_readout
from phasegrad.gradients._pulled import NUDGES, Pulled, Pulling, held, pulled
from phasegrad.gradients._question import Gradient, Question, ask
from phasegrad.gradients._schemes import COMPLEX_STEP, ONE_SIDED, Scheme, circle, symmetric
from phasegrad.gradients._strength import shortfall, weakened
from phasegrad.networks import Network
from phasegrad.objectives import Cost
from phasegrad.readouts import Readout

# Radians below which a difference of phases is mostly rounding.
_ROUNDED_SHIFT = 1e-13
# Standard deviations of a meter's noise that a stated error counts, and the share of the largest entry from where on
# the noise is louder than the gradient.
_DEVIATIONS, _LOUD = 2.0, 1.0


def two_phase(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *, beta: float | None = None,
    correction: str = "none", nudge: str = "following", readout: Readout | None = None, seed: int | None = 0,
    wrt: str | Iterable[str] = "omega", frequencies: str = "relative",
) -> Gradient:  # fmt: skip
    r"""Return the gradient from the free and one nudged equilibrium, as the paper does; the error is of order beta.

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

    See Also
    --------
    centred : Nudges of +beta and -beta; error of order beta squared.
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
    >>> network = pg.random_network(10, seed=0)
    >>> matrix = np.tril(pg.to_matrix(network)) + 0.2 * np.triu(pg.to_matrix(network))
    >>> directed = pg.from_matrix(matrix, omega=network.omega, outputs=network.outputs)
    >>> question = (directed, pg.find_equilibrium(directed), pg.PhaseTargets(), [-0.2, 0.2])
    >>> 1 - pg.cosine(pg.two_phase(*question, correction="asymmetric"), pg.adjoint(*question)) < 1e-6
    True

    See Also
    --------
    centred : nudges of both signs, with an error of order beta^2.
    random_sign : one nudge whose sign is drawn, with an error of order beta^2 in the mean.
    dyadic : two copies of the network, for coupling of any kind.

    References
    ----------
    Scellier and Bengio, Equilibrium propagation, Front. Comput. Neurosci. 11 (2017), arXiv:1602.05179. The correction:
    Scurria, Vanden Abeele, Mognetti and Massar, Equilibrium propagation for non-conservative systems, arXiv:2602.03670.
    """
    question = ask("two_phase", network, equilibrium, objective, target, wrt, frequencies, correction=correction)
    return _answer(question, beta, ONE_SIDED, _Meter.of("two_phase", nudge, readout, seed))


def centred(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *, beta: float | None = None,
    points: int = 2, pattern: str = "fit", correction: str = "none", nudge: str = "following",
    readout: Readout | None = None, seed: int | None = 0, wrt: str | Iterable[str] = "omega",
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
    correction, nudge, readout, seed
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
    >>> network = pg.random_network(10, seed=0)
    >>> question = (network, pg.find_equilibrium(network), pg.PhaseTargets(), [-0.2, 0.2])
    >>> two, four = (pg.centred(*question, beta=0.1, points=points) for points in (2, 4))
    >>> bool(four.relative_error("omega") < 0.1 * two.relative_error("omega"))
    True

    One reading of each state, off by a picosecond at 3 GHz:

    >>> measured = pg.centred(*question, nudge="held", readout=pg.Readout.from_time(1e-12, 3e9))
    >>> pg.cosine(measured, pg.adjoint(*question)) > 0.99
    True

    See Also
    --------
    two_phase : the free state and one nudge.
    holomorphic : complex nudges, exact to rounding.

    References
    ----------
    Laborieux et al., Scaling equilibrium propagation to deep convnets, Front. Neurosci. 15 (2021), arXiv:2006.03824.
    """
    question = ask("centred", network, equilibrium, objective, target, wrt, frequencies, correction=correction)
    scheme = symmetric(points, pattern, "centred")
    return _answer(question, beta, scheme, _Meter.of("centred", nudge, readout, seed))


def random_sign(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *, beta: float | None = None,
    correction: str = "none", nudge: str = "following", seed: int | None = 0, wrt: str | Iterable[str] = "omega",
    frequencies: str = "relative",
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

    Examples
    --------
    The mean over the same sample a thousand times is as good as a centred gradient:

    >>> import numpy as np, phasegrad as pg
    >>> network = pg.random_network(10, seed=0)
    >>> question = (network, pg.find_equilibrium(network), pg.PhaseTargets())
    >>> many = pg.random_sign(*question, np.tile([-0.2, 0.2], (1000, 1)), beta=0.1)
    >>> exact, one = pg.adjoint(*question, [-0.2, 0.2]), pg.two_phase(*question, [-0.2, 0.2], beta=0.1)
    >>> off = [abs(each - exact.omega).max() for each in (many.omega.mean(axis=0), one.omega)]
    >>> bool(off[0] < 0.2 * off[1])
    True

    See Also
    --------
    two_phase : the same sign for all samples.
    centred : both signs for every sample.

    References
    ----------
    Laborieux et al., arXiv:2006.03824; Scellier et al., arXiv:2312.15103; Kerjan, Hoier and Scellier,
    arXiv:2606.03584, who find it nearly as good as centred nudges.
    """
    question = ask("random_sign", network, equilibrium, objective, target, wrt, frequencies, correction=correction)
    meter = _Meter.of("random_sign", nudge, None, seed)
    return _answer(question, beta, ONE_SIDED, replace(meter, signs=drawn_signs(question.system.batch, meter.stream)))


def drawn_signs(count: int, stream: np.random.Generator | None) -> FloatArray:
    """Return signs (count, 1) drawn from a stream."""
    stream = np.random.default_rng() if stream is None else stream
    return stream.choice([-1.0, 1.0], (count, 1))


def holomorphic(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *, beta: float | None = None,
    points: int = 1, correction: str = "none", wrt: str | Iterable[str] = "omega", frequencies: str = "relative",
) -> Gradient:  # fmt: skip
    """Return the gradient from complex nudges, exact to rounding.

    Interaction and objective must be analytic functions that accept complex phases.

    Parameters
    ----------
    network, equilibrium, objective, target, wrt, frequencies
        As for `adjoint`.
    beta : float, optional
        Size of the nudges; `suggest_beta` chooses it if left out, near 1e-8 for one point.
    points : int
        1 takes a single step along the imaginary axis, i beta, which needs no difference and so loses no digits.
        M >= 2 spreads M nudges over the circle of radius beta.
    correction : {"none", "asymmetric"}
        As for `two_phase`. It is linear in the phases, and so analytic.

    See Also
    --------
    two_phase : One nudged equilibrium; error of order beta.
    centred : Nudges of +beta and -beta; error of order beta squared.
    adjoint : One transposed linear solve; exact.
    check_gradients : Several methods in one table.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.layered(2, 5, 2, seed=0)
    >>> question = (network, pg.find_equilibrium(network, [0.8, -0.6]), pg.PhaseTargets(), [-0.2, 0.2])
    >>> bool(pg.holomorphic(*question).relative_error("omega") < 1e-12)
    True

    References
    ----------
    Laborieux and Zenke, Holomorphic equilibrium propagation computes exact gradients through finite size oscillations,
    NeurIPS 2022, arXiv:2209.00530.
    """
    question = ask("holomorphic", network, equilibrium, objective, target, wrt, frequencies, correction=correction)
    return _answer(question, beta, complex_scheme(points), _Meter())


def complex_scheme(points: int) -> Scheme:
    """Return the scheme of so many complex nudges."""
    points = whole_number("points", points, 1, "holomorphic")
    return COMPLEX_STEP if points == 1 else circle(points)


@dataclass(frozen=True)
class _Meter:
    """How a network is nudged, by which signs (B, 1), and what stands between its equilibria and the gradient."""

    nudge: str = "following"
    readout: Readout | None = None
    stream: np.random.Generator | None = None
    signs: FloatArray | float = 1.0

    @classmethod
    def of(cls, owner: str, nudge: str, readout: Readout | None, seed: Any) -> _Meter:
        choice("nudge", nudge, NUDGES, owner)
        stream = random_stream(seed, owner)
        return cls(nudge, None if readout is None else checked_readout(readout, owner), stream)

    @property
    def frozen(self) -> bool:
        return self.nudge == "frozen"

    @property
    def halves(self) -> bool:
        """Whether a nudge that a network cannot hold is halved."""
        return self.nudge != "following" or self.readout is not None

    def shown(self, phases: Array) -> Array:
        """Return what is read of phases."""
        if self.readout is None or self.stream is None:
            return phases
        return self.readout.read(phases, self.stream)


def _answer(question: Question, beta: float | None, scheme: Scheme, meter: _Meter) -> Gradient:
    """Return the gradient from equilibria under the nudges of a scheme, all of them set by ``beta``.

    Left out, beta is chosen for the scheme's relative error, and again where twice that is exceeded; with a readout,
    for the largest cosine to be expected.
    """
    given, order = beta is not None, scheme.order
    beta = _chosen(question, scheme, meter) if beta is None else positive_float("beta", beta, question.owner)
    exact = exact_slopes(question)
    measured = _measured(question, scheme, beta, exact, meter)
    if not given and meter.readout is None and not _is_biased(question):
        measured = weakened(measured, lambda b: _measured(question, scheme, b, exact, meter), scheme.error, order)
    errors = distances(question, measured.values, exact)
    if meter.readout is not None:
        noise = deviations(question, measured.states, meter.readout.deviation, frozen=meter.frozen)
        errors = {name: np.maximum(each, _DEVIATIONS * noise[name]) for name, each in errors.items()}
    gradient = question.answer(measured.values, errors, others=measured.states.nudged, beta=measured.beta)

    def advice() -> str:
        return _advice(question, measured, order) if meter.readout is None else _noise_advice(measured, meter.readout)

    limit = _LOUD if meter.readout is not None else GIVEN_NUDGE_LIMIT if given else LIMIT
    return checked(question, gradient, advice, limit)


def _chosen(question: Question, scheme: Scheme, meter: _Meter) -> float:
    if meter.readout is None:
        return beta_for(question, scheme.error, scheme.order)
    return best_outlook(question, scheme, meter.nudge, meter.readout).beta


@dataclass(frozen=True)
class _Measured:
    """Slopes from nudged equilibria, those equilibria, and how far off the worst sample is by its nudge."""

    values: dict[str, Array]
    states: Pulled
    off: float

    @property
    def beta(self) -> float:
        return self.states.beta


def _measured(question: Question, scheme: Scheme, beta: float, exact: Exact, meter: _Meter) -> _Measured:
    free = meter.shown(question.phases)
    pulling = Pulling.of(question, meter.nudge, free, meter.signs)
    states = (held if meter.halves else pulled)(question, scheme, beta, pulling)
    phases = states.phases(free)
    if meter.readout is not None:
        phases = [free if other is None else meter.shown(other.phases) for other in states.others]
        free, phases = brought_together(question.network, free, phases)
    terms = list(zip(states.weights, phases, strict=True))
    values = combined(question.network, question.system, question.wrt, free, terms)
    found = np.all([other.converged for other in states.nudged], axis=0)
    return _Measured(values, states, shortfall(question, values, exact, found))


def _is_biased(question: Question) -> bool:
    """Return whether nudged equilibria do not show the gradient."""
    return not question.network.reciprocal and question.correction == "none"


def nudged_slopes(
    question: Question, scheme: Scheme, beta: float, signs: FloatArray | float = 1.0
) -> tuple[dict[str, Array], BoolArray]:
    """Return the slopes (B, width) of a flat batch under the nudges of a scheme, and where all were found, (B,)."""
    states = pulled(question, scheme, beta, Pulling.of(question, "following", question.phases, signs))
    terms = list(zip(states.weights, states.phases(question.phases), strict=True))
    values = combined(question.network, question.system, question.wrt, question.phases, terms)
    return values, np.all([other.converged for other in states.nudged], axis=0)


def _advice(question: Question, measured: _Measured, order: int) -> str:
    """Say why a nudged gradient is off, and what to do."""
    if _is_biased(question):
        return (
            "The coupling is not reciprocal: a nudge shows the response of the network, where the gradient needs that "
            "of the transposed one. Use correction='asymmetric', or dyadic, adjoint, finite_difference or autograd, "
            "which are right there."
        )
    if not measured.off > LIMIT:
        return NEARLY_SINGULAR
    beta, others = measured.beta, measured.states.nudged
    converged = np.all([other.converged for other in others], axis=0)
    shift = np.max(np.abs(others[0].phases - question.phases), axis=1)[converged]
    if float(np.min(shift, initial=np.inf)) < _ROUNDED_SHIFT:
        return (
            f"The nudge beta={beta:g} moved no oscillator of some sample by more than rounding. Use a larger beta, or "
            "method holomorphic."
        )
    weaker = beta * (LIMIT / measured.off) ** (1 / order)
    return f"The nudge beta={beta:g} is too strong. Try beta={weaker:.1g}, or leave beta out to have it chosen."


def _noise_advice(measured: _Measured, readout: Readout) -> str:
    """Say that a meter shows its own noise, and what to do."""
    return (
        f"The meter's error of {readout.deviation:.2g} rad is louder than what beta={measured.beta:g} moves. "
        "plan_measurement says which nudge and how many readings it takes; a frozen nudge can be stronger."
    )
