r"""Gradients from nudged equilibria: the physics of equilibrium propagation.

Under a nudge of strength beta the equilibrium moves along theta(beta). For an energy E(theta; p),

    dC/dp = d/dbeta [ dE/dp at theta(beta) ] at beta = 0

and dE/dp is local: each term knows its own (`phasegrad.gradients._local`). The three methods differ only in how they
take the derivative by beta: from 0 and beta (error of order beta), from -beta and beta (beta^2), or from complex
nudges, where one step along the imaginary axis has no cancellation and M points on a circle have an error of order
beta^M.

Without an energy (non-reciprocal coupling) the shift d theta / d beta is used in place of the adjoint
response. That is right only for a symmetric Laplacian, and biased otherwise: the shift is L^-1 c where the gradient
needs L^-T c.

How far off a gradient is, by its nudge or by that bias, one transposed solve tells (`phasegrad.gradients._exact`). A
nudge that was left to be chosen is made weaker where it shows too much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import Array, FloatArray, choice, positive_float, whole_number
from phasegrad.dynamics import Pull
from phasegrad.equilibria import Equilibrium, settle
from phasegrad.gradients._accuracy import GIVEN_NUDGE_LIMIT, LIMIT, NEARLY_SINGULAR, checked
from phasegrad.gradients._exact import Exact, distances, exact_slopes
from phasegrad.gradients._local import energy_slopes, local_products
from phasegrad.gradients._question import Gradient, Question, ask
from phasegrad.graphs import refuse_dense
from phasegrad.networks import Network
from phasegrad.objectives import Cost
from phasegrad.solvers import branch_solver, on_one_blas_thread, respond

Weights = Callable[[float], Mapping[complex, complex]]

_ORDER = {"two_phase": 1, "centred": 2, "holomorphic": 2}
# Weaker nudges that are tried, how much weaker at most, and a relative error that none of them can go below.
_TRIES, _WEAKEST, _ROUNDED = 3, 1e-3, 1e-8
# How many times its own error a gradient must be for another one to be judged by it.
_CLEAR = 100.0
# Radians below which a difference of phases is mostly rounding.
_ROUNDED_SHIFT = 1e-13
_FEW_OUTPUTS, _POWER_STEPS, _ROUGHLY = 16, 8, 1e-4


def two_phase(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *, beta: float | None = None,
    wrt: str | Iterable[str] = "omega", frequencies: str = "relative",
) -> Gradient:  # fmt: skip
    """Return the gradient from the free and one nudged equilibrium, as the paper does.

    Parameters
    ----------
    network, equilibrium, objective, target, wrt, frequencies
        As for `adjoint`.
    beta : float, optional
        Strength of the nudge; if left out it is chosen so that the gradient is within a thousandth. The error is
        measured, see `Gradient`, and a warning says when a nudge was too strong, or so weak that rounding shows.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.layered(2, 5, 2, seed=0)
    >>> equilibrium = pg.find_equilibrium(network, [0.5, -0.5])
    >>> gradient = pg.two_phase(network, equilibrium, pg.PhaseTargets(), [-0.2, 0.2], beta=0.1)
    >>> exact = pg.adjoint(network, equilibrium, pg.PhaseTargets(), [-0.2, 0.2])
    >>> bool(abs(gradient.omega - exact.omega).max() < 0.05 * abs(exact.omega).max())
    True
    """
    question = ask("two_phase", network, equilibrium, objective, target, wrt, frequencies)
    return _answer(question, beta, 5e-4, lambda beta: {beta: 1 / beta, 0.0: -1 / beta})


def centred(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *, beta: float | None = None,
    wrt: str | Iterable[str] = "omega", frequencies: str = "relative",
) -> Gradient:  # fmt: skip
    """Return the gradient from two equilibria nudged by +beta and -beta; the error is of order beta^2.

    Parameters
    ----------
    network, equilibrium, objective, target, wrt, frequencies
        As for `adjoint`.
    beta : float, optional
        Strength of the nudges; `suggest_beta` chooses it if left out.
    """
    question = ask("centred", network, equilibrium, objective, target, wrt, frequencies)
    return _answer(question, beta, 1e-6, lambda beta: {beta: 0.5 / beta, -beta: -0.5 / beta})


def holomorphic(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *, beta: float | None = None,
    points: int = 1, wrt: str | Iterable[str] = "omega", frequencies: str = "relative",
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
    """
    points = whole_number("points", points, 1, "holomorphic")
    question = ask("holomorphic", network, equilibrium, objective, target, wrt, frequencies)
    if points == 1:
        return _answer(question, beta, 1e-16, lambda beta: {1j * beta: -1j / beta})
    turns = np.exp(2j * np.pi * np.arange(points) / points)
    return _answer(
        question, beta, 1e-12, lambda beta: {beta * turn: 1 / (points * beta * turn) for turn in turns}, order=points
    )


def suggest_beta(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *, error: float = 1e-3,
    method: str = "two_phase",
) -> float:  # fmt: skip
    """Return the nudge whose gradient is expected to be within a relative ``error`` of the exact one.

    The equilibrium under a nudge is theta + beta a + beta^2 b + ...; a and b follow from two solves with the
    Laplacian. The rate r = max(|b| / |a|, largest compliance of the outputs) is how much beta bends the response, so
    that the error of a method of order m is about (beta r)^m. Of a batch, the most sensitive sample decides.

    Parameters
    ----------
    network, equilibrium, objective, target
        As for `adjoint`.
    error : float
        Relative error that is allowed.
    method : {"two_phase", "centred", "holomorphic"}
        Whose error is meant; "holomorphic" is the single complex step.
    """
    error = positive_float("error", error, "suggest_beta")
    choice("method", method, _ORDER, "suggest_beta")
    question = ask("suggest_beta", network, equilibrium, objective, target, "omega", "relative")
    return _beta_for(question, error, _ORDER[method])


def _beta_for(question: Question, error: float, order: int) -> float:
    rate = _bending_rate(question)
    rate = rate[np.isfinite(rate)]
    fastest = float(np.max(rate, initial=0.0))
    return min(1.0, error ** (1 / order) / fastest) if fastest > 0 else 1.0


@on_one_blas_thread
def _bending_rate(question: Question) -> FloatArray:
    """Return per sample how fast the response to a nudge bends with its strength, (B,)."""
    system, phases = question.system, question.phases
    refuse_dense(question.nodes.size, "The curvature of a cost", "Nudge fewer outputs, or use the adjoint gradient.")
    free, where = question.network.graph.free, question.places
    pull = np.zeros((system.batch, free.size))
    pull[:, where] = question.objective.force(question.outputs, question.target)
    first, _ = respond(system, phases, system.reacting(pull), accuracy=_ROUGHLY)
    size = np.linalg.norm(first, axis=1)
    largest = np.max(np.abs(first), axis=1, initial=0.0)
    probe = 1e-3 / np.where(largest > 0, largest, 1.0)
    shift = np.zeros_like(phases)
    shift[:, free] = probe[:, None] * first
    bend = system.force(phases + shift) - 2 * system.force(phases) + system.force(phases - shift)
    hessian = question.objective.hessian(question.outputs, question.target)
    slack = np.zeros_like(pull)
    slack[:, where] = np.einsum("bij,bj->bi", hessian, first[:, where])
    second_force = bend[:, free] / (2 * probe**2)[:, None] - system.reacting(slack)
    second, _ = respond(system, phases, second_force, accuracy=_ROUGHLY)
    ratio = np.linalg.norm(second, axis=1) / np.where(size > 0, size, np.inf)
    return np.maximum(ratio, _compliance(question, hessian))


def _compliance(question: Question, hessian: Array) -> FloatArray:
    """Return the norm of the outputs' response to unit pulls on them, times the curvature of the cost, (B,)."""
    where, size = question.places, question.network.graph.free.size
    if where.size > _FEW_OUTPUTS:
        return _largest_compliance(question, hessian)
    unit = np.zeros((question.system.batch, size, where.size))
    unit[:, where, np.arange(where.size)] = 1.0
    reach, regular = respond(question.system, question.phases, question.system.reacting(unit), accuracy=_ROUGHLY)
    compliance = np.linalg.norm(reach[:, where] @ hessian, ord=2, axis=(1, 2))
    compliance[~regular] = np.inf
    return np.asarray(compliance)


def _largest_compliance(question: Question, hessian: Array) -> FloatArray:
    """Return the same for many outputs by a power iteration: a few solves instead of one per output."""
    where, batch = question.places, question.system.batch
    vector = np.ones((batch, where.size)) / np.sqrt(where.size)
    right, growth = np.zeros((batch, question.network.graph.free.size)), np.zeros(batch)
    for _ in range(_POWER_STEPS):
        right[:, where] = np.einsum("bij,bj->bi", hessian, vector)
        pulled = question.system.reacting(right)
        answer, regular = respond(question.system, question.phases, pulled, accuracy=_ROUGHLY)
        growth = np.linalg.norm(answer[:, where], axis=1)
        vector = answer[:, where] / np.where(growth > 0, growth, 1.0)[:, None]
        growth[~regular] = np.inf
    return growth


@on_one_blas_thread
def _nudged(question: Question, beta: complex) -> Equilibrium:
    """Return the flat batch of equilibria under a nudge, started at the free ones."""
    strength = np.full((question.system.batch, 1), beta)
    system = question.system.replace(pull=Pull(question.objective, question.nodes, question.target, strength))
    return settle(system, (system.batch,), question.phases, branch_solver(system))


def _answer(
    question: Question, beta: float | None, error: float, weights: Weights, *, order: int | None = None
) -> Gradient:
    """Return the gradient from equilibria under nudges, each with its weight, all of them set by ``beta``.

    Left out, beta is chosen for a relative ``error``, and again where twice that is exceeded.
    """
    given, order = beta is not None, order or _ORDER[question.owner]
    beta = _beta_for(question, error, order) if beta is None else positive_float("beta", beta, question.owner)
    exact = exact_slopes(question)
    measured = _measured(question, weights(beta), exact)
    for _ in range(0 if given or not question.network.reciprocal else _TRIES):
        if not measured.off > max(2 * error, _ROUNDED):
            break
        weaker = beta * max(0.5 * (error / measured.off) ** (1 / order), _WEAKEST)
        other = _measured(question, weights(weaker), exact)
        if not other.off < measured.off:
            break
        beta, measured = weaker, other
    gradient = question.answer(
        measured.values, distances(question, measured.values, exact), others=measured.others, beta=beta
    )

    def advice() -> str:
        return _advice(question, measured, beta, order)

    return checked(question, gradient, advice, GIVEN_NUDGE_LIMIT if given else LIMIT)


@dataclass(frozen=True)
class _Measured:
    """Slopes from nudged equilibria, those equilibria, and how far off the worst sample is by its nudge."""

    values: dict[str, Array]
    others: list[Equilibrium]
    off: float


def _measured(question: Question, weights: Mapping[complex, complex], exact: Exact) -> _Measured:
    others = [_nudged(question, nudge) for nudge in weights if nudge]
    states = {nudge: other.phases for nudge, other in zip((nudge for nudge in weights if nudge), others, strict=True)}
    terms = [(weight, states.get(nudge, question.phases)) for nudge, weight in weights.items()]
    values = _combine(question, terms)
    usable = exact.regular & np.all([other.converged for other in others], axis=0)
    off = 0.0
    for name in question.wrt:
        size = np.max(np.abs(exact.values[name]), axis=1, initial=0.0)
        known = usable & (size > _CLEAR * np.max(exact.errors[name], axis=1, initial=0.0))
        far = np.max(np.abs(values[name] - exact.values[name]), axis=1, initial=0.0)
        off = max(off, float(np.max(far[known] / size[known], initial=0.0)))
    return _Measured(values, others, off)


def _advice(question: Question, measured: _Measured, beta: float, order: int) -> str:
    """Say why a nudged gradient is off, and what to do."""
    if not question.network.reciprocal:
        return (
            "The coupling is not reciprocal: a nudge shows the response of the network, where the gradient needs that "
            "of the transposed one. Use adjoint, finite_difference or autograd, which are right there."
        )
    if not measured.off > LIMIT:
        return NEARLY_SINGULAR
    converged = np.all([other.converged for other in measured.others], axis=0)
    shift = np.max(np.abs(measured.others[0].phases - question.phases), axis=1)[converged]
    if float(np.min(shift, initial=np.inf)) < _ROUNDED_SHIFT:
        return (
            f"The nudge beta={beta:g} moved no oscillator of some sample by more than rounding. Use a larger beta, or "
            "method holomorphic."
        )
    weaker = beta * (LIMIT / measured.off) ** (1 / order)
    return f"The nudge beta={beta:g} is too strong. Try beta={weaker:.1g}, or leave beta out to have it chosen."


def _combine(question: Question, terms: list[tuple[complex, Array]]) -> dict[str, Array]:
    """Return the real part of sum of weight * dE/dp over equilibria, for every parameter asked for."""
    if not question.network.reciprocal:
        shift = np.sum([weight * phases for weight, phases in terms], axis=0)
        shift = -question.system.gauged(np.real(shift))
        return question.collected(local_products(question, question.phases, shift))
    slopes = [(weight, energy_slopes(question, phases)) for weight, phases in terms]
    return question.collected(
        {name: np.real(np.sum([weight * slope[name] for weight, slope in slopes], axis=0)) for name in question.wrt}
    )
