r"""The gradient of a network whose phases are noisy: equilibrium propagation at a temperature.

Phase noise of strength T, d theta = F dt + sqrt(2 T) dW, makes states of an energy E + beta C appear with
probabilities proportional to exp(-(E + beta C) / T). Means over them have the same identity that states at rest have,

    d<C>/dp = d/dbeta <dE/dp> at beta = 0

with no approximation in T: it is the gradient of the *mean* cost. Around a state at rest, with E_2 = L the Laplacian
and E_3, g_2 third and second derivatives,

    <g> = g + T ( g' a + g_2 : L^-1 / 2 ) + O(T^2),      a = -L^-1 (E_3 : L^-1) / 2

so that it is off the gradient without noise by order T. A network that frequencies drive stays near one state only as
long as the noise does not carry it over a barrier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._process import on_one_blas_thread
from phasegrad._validation import (
    Array,
    BoolArray,
    choice,
    positive_float,
    random_stream,
    whole_number,
)
from phasegrad.dynamics import System
from phasegrad.equilibria import Equilibrium
from phasegrad.gradients._accuracy import GIVEN_NUDGE_LIMIT
from phasegrad.gradients._gradient import Gradient
from phasegrad.gradients._local import energy_slopes, local_products
from phasegrad.gradients._method import Method
from phasegrad.gradients._nudged import LOUD, judged
from phasegrad.gradients._nudging import Nudging, settle_nudged
from phasegrad.gradients._problem import INPUTS, Problem, pose
from phasegrad.gradients._reading import Reading
from phasegrad.gradients._schemes import Scheme, symmetric
from phasegrad.linearised import DenseLaplacian, Verdict, chunks, refuse_dense_solve
from phasegrad.networks import Network
from phasegrad.objectives import Cost

AVERAGES = ("expansion", "langevin")
# The relative error that a nudge aims at where means are over noisy paths.
_NOISY_AIM = 1e-2
# Radians of a second difference; steps of time per shortest time constant; share of the steps before means are taken,
# and how many steps later the next one is.
_PROBE, _STEPS_PER_TIME, _BEFORE, _APART = 3e-3, 10, 0.2, 5


@dataclass(frozen=True)
class Bath:
    """The noise: its temperature, and how means over it are taken."""

    temperature: float
    averages: str = "expansion"
    walkers: int = 64
    steps: int = 2000

    def __post_init__(self) -> None:
        positive_float("temperature", self.temperature, "stochastic")
        choice("averages", self.averages, AVERAGES, "stochastic")
        whole_number("walkers", self.walkers, 2, "stochastic")
        whole_number("steps", self.steps, 10, "stochastic")

    @property
    def scheme(self) -> Scheme:
        """The two nudges; means over paths are noisy, and aim at less."""
        scheme = symmetric(2, "fit", "stochastic")
        return replace(scheme, error=_NOISY_AIM) if self.averages == "langevin" else scheme


def stochastic(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *, temperature: float,
    beta: float | None = None, averages: str = "expansion", walkers: int = 64, steps: int = 2000,
    seed: int | None = 0, error: bool = True, wrt: str | Iterable[str] = "omega", frequencies: str = "relative",
) -> Gradient:  # fmt: skip
    r"""Return the gradient of the mean cost under phase noise, from means under nudges +beta and -beta.

    With d theta = F dt + sqrt(2 T) dW, d<C>/dp = d/dbeta <dE/dp> holds for means over the noise at any temperature T.
    It differs from the gradient without noise by order T, and what is returned from it by order beta^2; means over
    paths add noise of their own, of order sqrt(T / (walkers time)) / beta.

    Parameters
    ----------
    network, equilibrium, objective, target, frequencies
        As for `adjoint`; coupling must be reciprocal.
    temperature : float
        The strength T of the noise: the variance of a free phase grows by 2 T per unit of time.
    beta : float, optional
        Strength of the nudges, chosen if left out.
    averages : {"expansion", "langevin"}
        "expansion" has the means to first order in T, in closed form. "langevin" takes them over simulated paths, as an
        experiment does, each nudge with noise of its own: it knows all orders in T, and how uncertain it is.
    walkers, steps : int
        Of "langevin": paths per sample and nudge, and steps of each, a tenth of the shortest time constant long, by
        Heun's method. They start in the Gaussian state, and the first fifth is left out.
    seed : int or None
        Of the paths; None draws others each time.
    error : bool
        Whether to state the error, as for `two_phase`.
    wrt : str or sequence of str
        The parameters to differentiate with respect to.

    See Also
    --------
    centred : The same nudges without noise, or with that of a meter (``readout``).

    Examples
    --------
    Cooled to a tenth, its distance from the gradient without noise is a tenth:

    >>> import phasegrad as pg
    >>> network = pg.networks.random_network(10, seed=0)
    >>> question = (network, pg.find_equilibrium(network), pg.PhaseTargets(), [-0.2, 0.2])
    >>> hot, cold = (pg.gradients.stochastic(*question, temperature=t, beta=1e-3) for t in (1e-2, 1e-3))
    >>> round(float(hot.relative_error("omega") / cold.relative_error("omega")))
    10

    References
    ----------
    Scellier and Bengio, arXiv:1602.05179; Massar and Mognetti, Equilibrium propagation: the quantum and the thermal
    cases (2025); finite nudges of Gibbs states: arXiv:2511.22024.
    """
    problem = pose("stochastic", network, equilibrium, objective, target, wrt, frequencies)
    METHOD.check_network(network, "stochastic")
    if INPUTS in problem.wrt:
        raise ValueError("stochastic has no gradient by 'inputs': name parameters, or use centred or adjoint.")
    bath, stream = Bath(temperature, averages, walkers, steps), random_stream(seed, "stochastic")

    def read(strength: float) -> Reading:
        return _read(problem, strength, bath, stream)

    def advice(_reading: Reading, _off: float) -> str:
        return (
            f"At temperature={temperature:g} the mean cost has another gradient than the cost of the state at rest, "
            f"and with averages={averages!r} means have an error of their own: cool it, or take more walkers and steps."
        )

    return judged(
        problem, bath.scheme, beta, read, error=error, weakens=False, advice=advice,
        limit=LOUD if averages == "langevin" else GIVEN_NUDGE_LIMIT,
        reason=f"At temperature={temperature:g} a sample did not stay near a stable state: give a lower one.",
    )  # fmt: skip


def _scheme(temperature: float, averages: str = "expansion", walkers: int = 64, steps: int = 2000) -> Scheme:
    """Return the two nudges, with the options checked."""
    return Bath(temperature, averages, walkers, steps).scheme


def _slopes(
    problem: Problem, beta: float, stream: np.random.Generator | None, **options: Any
) -> tuple[Mapping[str, Array], BoolArray]:
    """Return slopes (B, width) of a flat batch, and where they were found."""
    reading = _read(problem, beta, Bath(**options), np.random.default_rng() if stream is None else stream)
    return reading.values, reading.found


@on_one_blas_thread
def _read(problem: Problem, beta: float, bath: Bath, stream: np.random.Generator) -> Reading:
    """Return slopes (B, width) of a flat batch with their standard deviations, from means under both nudges."""
    refuse_dense_solve(problem.network.graph, problem.owner)
    nudging = Nudging.of(problem, "following", problem.phases)
    states = settle_nudged(problem, bath.scheme, beta, nudging)
    means, found = [], np.ones(problem.system.batch, dtype=bool)
    for strength, state in zip(states.strengths, states.nudged, strict=True):
        nudged = nudging.on(problem.system, problem.nodes, np.real(strength))
        found &= state.converged & (DenseLaplacian.of(nudged, state.phases).definite() == Verdict.STABLE)
        means.append(_Means(problem, nudged, state.phases, bath))
    rows, part_means = np.flatnonzero(found), []
    for each in means:
        slopes, near = each.of(rows, stream)
        part_means.append(slopes)
        found[rows] &= near
    values, deviation = {}, {}
    for name in problem.wrt:
        # One column per path, or a single one where the mean is known.
        paths = np.sum([np.real(w) * part[name] for w, part in zip(states.weights, part_means, strict=True)], axis=0)
        values[name], deviation[name] = np.zeros((2, problem.system.batch, paths.shape[2]))
        values[name][rows] = np.mean(paths, axis=1)
        flat = paths.reshape(paths.shape[0] * paths.shape[1], paths.shape[2])
        turned = problem.in_units(name, flat).reshape(paths.shape)
        if paths.shape[1] > 1:
            deviation[name][rows] = np.std(turned, axis=1, ddof=1) / np.sqrt(paths.shape[1])
    return Reading(beta, values, found, deviation=deviation)


@dataclass(frozen=True)
class _Means:
    """Means of slopes over the noise, around states (B, N) at rest under a nudge."""

    problem: Problem
    nudged: System
    phases: Array
    bath: Bath

    def of(self, rows: Array, stream: np.random.Generator) -> tuple[dict[str, Array], BoolArray]:
        """Return the means (b, paths, width) of some of the samples, and which of these stayed near the state, (b,)."""
        langevin = self.bath.averages == "langevin"
        graph = self.problem.network.graph
        entries = (self.bath.walkers if langevin else 1) * (graph.size + graph.n_edges) + graph.free.size**2
        parts = [self._part(rows[part], stream, langevin) for part in chunks(rows.size, entries)]
        if not parts:
            return {name: np.zeros((0, 1, self.problem.width(name))) for name in self.problem.wrt}, np.ones(0, bool)
        names = self.problem.wrt
        return {name: np.concatenate([part[0][name] for part in parts]) for name in names}, np.concatenate(
            [part[1] for part in parts]
        )

    def _part(self, rows: Array, stream: np.random.Generator, langevin: bool) -> tuple[dict[str, Array], BoolArray]:
        problem, nudged, phases = self.problem.take(rows), self.nudged.take(rows), self.phases[rows]
        lower = np.linalg.cholesky(nudged.laplacian(phases))
        if langevin:
            return _walked(problem, nudged, phases, lower, self.bath, stream)
        means = _expanded(problem, nudged, phases, lower, self.bath.temperature)
        return {name: each[:, None] for name, each in means.items()}, np.ones(rows.size, dtype=bool)


def _at(problem: Problem, phases: Array) -> dict[str, Array]:
    return energy_slopes(problem.network, problem.system, problem.wrt, phases)


def _expanded(problem: Problem, nudged: System, phases: Array, lower: Array, temperature: float) -> dict[str, Array]:
    """Return the means of slopes to first order in the temperature; ``lower`` is the Laplacian's Cholesky factor."""
    free, here = problem.network.graph.free, _at(problem, phases)
    bent_force = np.zeros_like(phases)
    bent = {name: np.zeros_like(slope) for name, slope in here.items()}
    for direction, scale in _directions(phases, free, lower):
        both = [phases + sign * direction for sign in (1.0, -1.0)]
        bent_force += scale * (nudged.force(both[0]) + nudged.force(both[1]) - 2 * nudged.force(phases))
        for name in problem.wrt:
            ahead, behind = (_at(problem, each)[name] for each in both)
            bent[name] += scale * (ahead + behind - 2 * here[name])
    moved = np.zeros_like(phases)
    half = np.linalg.solve(lower, 0.5 * bent_force[:, free, None])
    moved[:, free] = np.linalg.solve(np.swapaxes(lower, 1, 2), half)[:, :, 0]
    along = local_products(problem.network, problem.system, problem.wrt, phases, moved)
    means = {name: here[name] + temperature * (0.5 * bent[name] - along[name]) for name in problem.wrt}
    return problem.collected(means)


def _directions(phases: Array, free: Array, lower: Array) -> Iterator[tuple[Array, Array]]:
    """Yield short vectors (B, N), and factors (B, 1) with which their squares sum to the inverse of the Laplacian."""
    size = free.size
    columns = np.linalg.solve(np.swapaxes(lower, 1, 2), np.broadcast_to(np.eye(size), lower.shape))
    for k in range(size):
        direction = np.zeros_like(phases)
        direction[:, free] = columns[:, :, k]
        short = _PROBE / np.max(np.abs(direction), axis=1, keepdims=True)
        yield short * direction, 1.0 / short**2


def _walked(
    problem: Problem, nudged: System, phases: Array, lower: Array, bath: Bath, stream: np.random.Generator
) -> tuple[dict[str, Array], BoolArray]:
    """Return the means of slopes over simulated paths, (b, paths, width), and where no path left the state, (b,)."""
    graph, batch = problem.network.graph, phases.shape[0]
    rows = np.repeat(np.arange(batch), bath.walkers)
    many, system, middle = problem.take(rows), nudged.take(rows), phases[rows]
    noise = stream.standard_normal((batch, graph.free.size, bath.walkers))
    spread = np.swapaxes(np.linalg.solve(np.swapaxes(lower, 1, 2), noise), 1, 2).reshape(rows.size, -1)
    walking = middle.copy()
    walking[:, graph.free] += np.sqrt(bath.temperature) * spread
    stiffest = float(np.max(np.linalg.norm(lower, ord=2, axis=(1, 2)))) ** 2
    step = 1.0 / (_STEPS_PER_TIME * stiffest)
    counted_steps = range(round(_BEFORE * bath.steps), bath.steps, _APART)
    totals = {name: np.zeros((rows.size, problem.width(name))) for name in problem.wrt}
    for taken in range(bath.steps):
        kick = np.zeros_like(walking)
        kick[:, graph.free] = np.sqrt(2 * bath.temperature * step) * stream.standard_normal(
            (rows.size, graph.free.size)
        )
        walking = _heun(system, walking, step, kick)
        if taken in counted_steps:
            for name, slope in many.collected(_at(many, walking)).items():
                totals[name] += slope
    slipped = np.max(np.abs(graph.angles(walking - middle)), axis=1, initial=0.0) > np.pi
    slipped |= np.max(np.abs(walking - middle), axis=1) > np.pi
    shape = (batch, bath.walkers)
    means = {name: (each / len(counted_steps)).reshape(*shape, each.shape[1]) for name, each in totals.items()}
    return means, ~np.any(slipped.reshape(batch, bath.walkers), axis=1)


def _heun(system: System, phases: Array, step: float, kick: Array) -> Array:
    """Return the phases after a step of Heun's method, held oscillators where they are held."""
    free, first = system.graph.free, system.force(phases)
    guess = phases + kick
    guess[:, free] += step * first[:, free]
    after = phases + kick
    after[:, free] += 0.5 * step * (first + system.force(guess))[:, free]
    return after


METHOD = Method(
    stochastic,
    _scheme,
    _slopes,
    needs_energy=(
        "noise brings a network without an energy to no Gibbs state, of which the identity is one",
        "centred with correction='asymmetric' and a readout, whose noise is averaged",
    ),
    draws=True,
)
