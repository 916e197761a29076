r"""Gradients from nudged states: choose the nudge, read, judge by the exact gradient, weaken the nudge, warn.

Under a nudge of strength beta the equilibrium moves along theta(beta). For an energy E(theta; p),

    dC/dp = d/dbeta [ dE/dp at theta(beta) ] at beta = 0

and dE/dp is local: each term knows its own (`phasegrad.gradients._local`). Methods that nudge one network differ only
in how they take the derivative with respect to beta (`phasegrad.gradients._schemes`).

The pull of a *following* nudge is that of the cost wherever the outputs are; a *frozen* or *held* one stays what it
was at the free state, a constant torque. It has no curvature, so that both signs are stable at any strength that the
network can hold, and strong nudges are what lifts a gradient above the noise of a meter.

Without an energy (non-reciprocal coupling) the shift d theta / d beta is used in place of the adjoint
response. That is right only for a symmetric Laplacian, and biased otherwise: the shift is -L^-1 c where the gradient
needs L^-T c. An asymmetric *correction* of the nudged dynamics, -2 J_A (theta - theta_0), makes it -L^-T c
(`phasegrad.dynamics._correction`): the same error laws then hold without reciprocity.

One transposed solve (`phasegrad.gradients._exact`) tells how far off a gradient is by its nudge, by a meter or by that
bias. With ``error=False`` it is left out, and only the physics is computed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phasegrad._process import on_one_blas_thread
from phasegrad._validation import FloatArray, choice, positive_float
from phasegrad.gradients._accuracy import GIVEN_NUDGE_LIMIT, LIMIT, NEARLY_SINGULAR, checked
from phasegrad.gradients._beta import beta_for, shortfall, weakened
from phasegrad.gradients._exact import distances, exact_slopes
from phasegrad.gradients._gradient import Gradient
from phasegrad.gradients._meter import Meter, checked_meter
from phasegrad.gradients._nudging import NUDGES, Nudging, settle_held, settle_nudged
from phasegrad.gradients._problem import Problem
from phasegrad.gradients._reading import Reading, brought_together, combined
from phasegrad.gradients._schemes import Scheme

#: Share of the largest entry from where on noise is louder than the gradient.
LOUD = 1.0
# Standard deviations of noise that a stated error counts.
_DEVIATIONS = 2.0
# Radians below which a difference of phases is mostly rounding.
_ROUNDED_SHIFT = 1e-13


@on_one_blas_thread
def judged(
    problem: Problem,
    scheme: Scheme,
    beta: float | None,
    read: Callable[[float], Reading],
    *,
    error: bool,
    weakens: bool = True,
    limit: float | None = None,
    reason: str = "",
    advice: Callable[[Reading, float], str] | None = None,
) -> Gradient:
    """Return the gradient that ``read`` finds under a nudge, with its error and a warning where that is large.

    Parameters
    ----------
    scheme : Scheme
        The order of the error and the relative error aimed at.
    beta : float or None
        The nudge. Left out, it is chosen for the relative error aimed at; where ``weakens`` is True, and again where
        twice that is exceeded.
    error : bool
        Whether the exact gradient is computed beside it; without it nothing is judged.
    limit : float, optional
        The share of the largest entry that the error may be before a warning.
    reason : str
        Why a sample may have no gradient.
    advice : callable, optional
        Returns what to do about a large error, from the reading and its distance from the exact gradient as a share.
    """
    given = beta is not None
    beta = (
        beta_for(problem, scheme.error, scheme.order) if beta is None else positive_float("beta", beta, problem.owner)
    )
    reading = read(beta)
    if not error:
        return problem.answer(
            reading.values, {}, others=reading.nudged, ok=reading.found, beta=reading.beta, reason=reason
        )
    exact = exact_slopes(problem)
    if weakens and not given:
        reading = weakened(problem, scheme, exact, reading, read)
    errors = distances(problem, reading.values, exact)
    if reading.deviation is not None:
        noise = reading.deviation
        errors = {name: np.maximum(each, _DEVIATIONS * noise[name]) for name, each in errors.items()}
    gradient = problem.answer(
        reading.values, errors, others=reading.nudged, ok=reading.found, beta=reading.beta, reason=reason
    )
    if limit is None:
        limit = GIVEN_NUDGE_LIMIT if given else LIMIT

    def words() -> str:
        off = shortfall(problem, reading, exact)
        return too_strong(reading, off, scheme) if advice is None else advice(reading, off)

    return checked(problem, gradient, words, limit)


def too_strong(reading: Reading, off: float, scheme: Scheme) -> str:
    """Return what to do about a gradient that is off by this share because of its nudge."""
    if not off > LIMIT:
        return NEARLY_SINGULAR
    weaker = reading.beta * (LIMIT / off) ** (1 / scheme.order)
    return f"The nudge beta={reading.beta:g} is too strong. Try beta={weaker:.1g}, or leave beta out to have it chosen."


def nudged_gradient(
    problem: Problem,
    scheme: Scheme,
    beta: float | None,
    *,
    error: bool,
    nudge: str = "following",
    readout: Meter | None = None,
    stream: np.random.Generator | None = None,
    signs: FloatArray | float = 1.0,
) -> Gradient:
    """Return the gradient from equilibria of one network under the nudges of a scheme.

    With a ``readout``, whose noise is drawn from ``stream``, a beta that is left out is that of the largest cosine to
    be expected. ``signs`` of the nudges are one for all samples or (B, 1).
    """
    owner = problem.owner
    choice("nudge", nudge, NUDGES, owner)
    biased = not problem.network.reciprocal and problem.correction == "none"

    def read(strength: float) -> Reading:
        return read_nudged(problem, scheme, strength, nudge=nudge, meter=meter, stream=stream, signs=signs, noise=error)

    if readout is None:
        meter = None

        def advice(reading: Reading, off: float) -> str:
            return _advice(problem, scheme, reading, off, biased)

        return judged(problem, scheme, beta, read, error=error, weakens=not biased, advice=advice)
    meter = checked_meter(readout, owner)
    if beta is None:
        if not error:
            raise ValueError(
                f"The 'beta' parameter of {owner} must be given with a readout and error=False: choosing it takes the "
                "exact gradient."
            )
        beta = meter.best_beta(problem, scheme, nudge)

    def noise_advice(reading: Reading, off: float) -> str:
        del off
        return (
            f"The meter's error of {readout.deviation:.2g} rad is louder than what beta={reading.beta:g} moves. "
            "plan_measurement says which nudge and how many readings it takes; a frozen nudge can be stronger."
        )

    return judged(problem, scheme, beta, read, error=error, limit=LOUD, advice=noise_advice)


def read_nudged(
    problem: Problem,
    scheme: Scheme,
    beta: float,
    *,
    nudge: str = "following",
    meter: Meter | None = None,
    stream: np.random.Generator | None = None,
    signs: FloatArray | float = 1.0,
    noise: bool = False,
) -> Reading:
    """Return the slopes of a flat batch under the nudges of a scheme.

    A nudge that is constant or read by a meter is halved where a sample leaves the locked state. ``noise`` asks for the
    deviation that a meter makes.
    """
    free = problem.phases if meter is None else _shown(meter, problem.phases, stream)
    nudging = Nudging.of(problem, nudge, free, signs)
    halves = nudge != "following" or meter is not None
    states = (settle_held if halves else settle_nudged)(problem, scheme, beta, nudging)
    phases, deviation = states.phases(free), None
    if meter is not None:
        phases = [free if other is None else _shown(meter, other.phases, stream) for other in states.others]
        free, phases = brought_together(problem.network, free, phases)
        deviation = meter.deviations(problem, states, nudge) if noise else None
    terms = list(zip(states.weights, phases, strict=True))
    values = combined(problem.network, problem.system, problem.wrt, free, terms)
    found = np.all([other.converged for other in states.nudged], axis=0)
    return Reading(states.beta, values, found, states.nudged, deviation)


def drawn_signs(count: int, stream: np.random.Generator | None) -> FloatArray:
    """Return signs (count, 1) drawn from a stream."""
    stream = np.random.default_rng() if stream is None else stream
    return stream.choice([-1.0, 1.0], (count, 1))


def _shown(meter: Meter, phases: FloatArray, stream: np.random.Generator | None) -> FloatArray:
    return meter.read(phases, np.random.default_rng() if stream is None else stream)


def _advice(problem: Problem, scheme: Scheme, reading: Reading, off: float, biased: bool) -> str:
    """Return why a nudged gradient is off, and what to do."""
    if biased:
        return (
            "The coupling is not reciprocal: a nudge shows the response of the network, where the gradient needs that "
            "of the transposed one. Use correction='asymmetric', or dyadic, adjoint, finite_difference or autograd, "
            "which are right there."
        )
    if off > LIMIT:
        shift = np.max(np.abs(reading.nudged[0].phases - problem.phases), axis=1)[reading.found]
        if float(np.min(shift, initial=np.inf)) < _ROUNDED_SHIFT:
            return (
                f"The nudge beta={reading.beta:g} moved no oscillator of some sample by more than rounding. Use a "
                "larger beta, or method holomorphic."
            )
    return too_strong(reading, off, scheme)
