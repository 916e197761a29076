r"""The finite-difference gradient: turn every parameter up and down, let the network settle, compare the costs.

A central difference D(h) with step h is off by a h^2 + n / h: by the third derivative, which is read off half the step,

    D(h) - D(h / 2) = (3 / 4) a h^2

and by the noise n of the costs: what the settled states leave of the force, as the cost feels it, and rounding. The
best step is (n / 2a)^(1/3). Where the first one is not good enough, the next is taken from there: close to the loss of
locking a state answers so strongly that only small steps stay on its branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._process import on_one_blas_thread
from phasegrad._validation import Array, BoolArray, FloatArray, IntArray, positive_float
from phasegrad.dynamics import System, assemble
from phasegrad.equilibria import Equilibrium, tolerance_of
from phasegrad.gradients._accuracy import checked
from phasegrad.gradients._exact import force_rounding
from phasegrad.gradients._question import INPUTS, Gradient, Question, ask
from phasegrad.linearised import linearise
from phasegrad.networks import Network
from phasegrad.objectives import Cost
from phasegrad.solvers import branch_solver
from phasegrad.terms import Parameter, Term

_ENTRIES_AT_ONCE = 2**22
_EPS = float(np.finfo(float).eps)
# The first step, as a share of the parameter or of the forces; the relative error that is good enough; further steps.
_STEP, _GOOD, _TRIES = 1e-5, 1e-7, 4
# How much a step may change from one try to the next, and by what it is shortened where it was far too long.
_CHANGE, _SHORTER = 1e4, 1e-3
# By which share of its way a state may miss half of it at half the step.
_BOWED = 0.1
_ADVICE = (
    "Its equilibrium is nearly unstable, or strengths span too many decades: a step small enough to stay on the branch "
    "is lost in rounding. Give another step, or use adjoint, which needs none."
)


@on_one_blas_thread
def finite_difference(
    network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike, *,
    wrt: str | Iterable[str] = "omega", frequencies: str = "relative", step: float | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Gradient:  # fmt: skip
    """Return the gradient by central differences of the cost, every parameter turned both ways.

    A relative frequency is turned alone, without taking the mean again; a raw one moves the mean with it, and so does
    an entry of the data that is a frequency. Every entry is taken with half the step too, which tells its error; that
    makes four equilibria per parameter.

    Parameters
    ----------
    network, equilibrium, objective, target, wrt, frequencies
        As for `adjoint`.
    step : float, optional
        How far each parameter is turned. Left out, it is 1e-5 of the parameter, or of the strongest force up to 1 if
        that is more, and for an entry that this leaves in error the step at which its error is least; of data that
        clamps phases, what turns them by 1e-5.
    progress : callable, optional
        Called with the entries that have been turned, over all samples, and the number of all.

    See Also
    --------
    adjoint : One transposed linear solve; exact.
    autograd : PyTorch's automatic differentiation.
    check_gradients : Several methods in one table.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.layered(2, 5, 2, seed=0)
    >>> question = (network, pg.find_equilibrium(network, [0.8, -0.6]), pg.PhaseTargets(), [-0.2, 0.2])
    >>> print(f"{pg.cosine(pg.finite_difference(*question), pg.adjoint(*question)):.8f}")
    1.00000000
    """
    if step is not None:
        step = positive_float("step", step, "finite_difference")
    question = ask("finite_difference", network, equilibrium, objective, target, wrt, frequencies, turned=True)
    samples, ok = question.solvable, np.ones(question.system.batch, dtype=bool)
    part, values, errors = question.take(samples), {}, {}
    costs, done = _Noise.of(part), 0
    total = sum(part.system.batch * question.width(name) for name in question.wrt)

    def tell(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, total)

    for name in question.wrt:
        slopes, error, found = _slopes(part, name, step, costs, tell)
        values[name], errors[name] = np.zeros((2, ok.size, slopes.shape[1]))
        values[name][samples], errors[name][samples], ok[samples] = slopes, error, ok[samples] & found
    return checked(question, question.answer(values, errors, ok=ok), lambda: _ADVICE)


def difference_slopes(
    system: System, phases: Array, cost: Cost, nodes: IntArray, target: Array, term: Term,
    parameter: Parameter, *, step: float, raw: bool,
) -> tuple[FloatArray, BoolArray]:  # fmt: skip
    """Return the central differences of the cost by one array of parameters, (B, P), and where all states were found.

    ``phases`` (B, N) are the equilibria of the samples; a turned one is looked for near its own.
    """
    batch, width = system.batch, parameter.width(system.graph)
    rows, which = np.repeat(np.arange(batch), width), np.tile(np.arange(width), batch)
    turns = _Turns(system, phases, cost, nodes, target, _OfParameter(term, parameter.name, raw))
    slopes, settled = np.zeros(rows.size), np.ones(rows.size, dtype=bool)
    for some in turns.parts(rows.size):
        found = turns.difference(rows[some], which[some], np.full(rows[some].size, step))
        slopes[some], settled[some] = found.slope, found.settled
    return slopes.reshape(batch, width), np.all(settled.reshape(batch, width), axis=1)


@dataclass(frozen=True)
class _OfParameter:
    """An array of parameters, one entry of which is turned."""

    term: Term
    name: str
    raw: bool

    def turned(self, part: System, rows: IntArray, which: IntArray, by: FloatArray) -> System:
        """Return the system of samples ``rows`` with entry ``which`` of each turned by ``by``, all (K,)."""
        values = np.broadcast_to(part.values[self.name], (rows.size, part.values[self.name].shape[1]))
        return part.with_values({self.name: self.term.turned(part.graph, self.name, values, which, by, raw=self.raw)})

    def first_steps(self, question: Question) -> FloatArray:
        """Return the step of every entry to begin with, (B, width)."""
        system, own = question.system, question.network.parameters
        values = np.abs(system.values[self.name] if system.graph.layout is None else own[self.name][None])
        steps = _STEP * np.maximum(values, _forces(system))
        return np.broadcast_to(steps, (system.batch, values.shape[1]))


@dataclass(frozen=True)
class _OfData:
    """The data (B, n_in), one entry of which is turned: the system is put together anew."""

    network: Network
    inputs: FloatArray

    def turned(self, part: System, rows: IntArray, which: IntArray, by: FloatArray) -> System:
        """Return the system of samples ``rows`` with entry ``which`` of each turned by ``by``, all (K,)."""
        data = self.inputs[rows]
        data[np.arange(rows.size), which] += by
        return assemble(self.network, data, rows.size, workspace=part.workspace)

    def first_steps(self, question: Question) -> FloatArray:
        """Return the step of every entry to begin with, (B, n_in)."""
        scale = self.network.input_scale
        if self.network.clamps_inputs:
            return np.full(self.inputs.shape, _STEP / scale)
        return _STEP * np.maximum(np.abs(self.inputs), _forces(question.system) / scale)


def _forces(system: System) -> FloatArray:
    """Return the strongest force up to 1 of every sample, 1 where there is none, (b, 1)."""
    forces = np.minimum(1.0, system.scales[0])[:, None]
    return np.where(forces > 0, forces, 1.0)


class _Difference(NamedTuple):
    """Central differences of the cost, (K,), from states whose oscillators that move differ by ``span`` (K, n).

    ``left`` is what the worse of the two states leaves of the force, ``settled`` whether that counts as zero.
    """

    slope: FloatArray
    span: Array
    left: FloatArray
    settled: BoolArray


@dataclass(frozen=True)
class _Turns:
    """What is turned, an entry at a time, and all that the cost depends on."""

    system: System
    phases: Array
    cost: Cost
    nodes: IntArray
    target: Array
    what: _OfParameter | _OfData

    def parts(self, count: int) -> Iterator[slice]:
        """Yield so many turns in parts that fit into memory."""
        width = max(self.system.graph.n_edges, self.system.graph.size)
        at_once = max(1, _ENTRIES_AT_ONCE // (2 * width))
        return (slice(first, first + at_once) for first in range(0, count, at_once))

    def difference(self, rows: IntArray, which: IntArray, steps: FloatArray) -> _Difference:
        """Return the central differences of samples ``rows`` by entries ``which``, each with its own step, all (K,)."""
        part = self.system.take(rows)
        costs, phases, left, settled = [], [], np.zeros(rows.size), np.ones(rows.size, dtype=bool)
        for by in (steps, -steps):
            turned = self.what.turned(part, rows, which, by)
            first = turned.place(self.phases[rows])
            limits = tolerance_of(turned, 1e-12, first)
            solution = branch_solver(turned).solve(turned, first, limits)
            left, settled = np.maximum(left, solution.residual), settled & (solution.residual <= limits)
            phases.append(np.take(solution.phases, part.graph.free, axis=1))
            costs.append(self.cost.cost(np.take(solution.phases, self.nodes, axis=1), self.target[rows]))
        return _Difference((costs[0] - costs[1]) / (2 * steps), phases[0] - phases[1], left, settled)

    def twice(
        self, rows: IntArray, which: IntArray, steps: FloatArray, tell: Callable[[int], object] | None = None
    ) -> _Twice:
        """Return the differences at a step and at half of it; ``tell`` is told how many more are done."""
        found = []
        for some in self.parts(rows.size):
            whole, half = (self.difference(rows[some], which[some], h * steps[some]) for h in (1.0, 0.5))
            bow, span = (np.max(np.abs(each), axis=1) for each in (whole.span - 2 * half.span, whole.span))
            left, settled = np.maximum(whole.left, half.left), whole.settled & half.settled
            found.append((whole.slope, 4 / 3 * np.abs(whole.slope - half.slope), left, settled, bow <= _BOWED * span))
            if tell is not None:
                tell(bow.size)
        return _Twice(*(np.concatenate(column) for column in zip(*found, strict=True)))


class _Twice(NamedTuple):
    """Central differences (K,), what half the step says they are off, and whether to believe it.

    ``straight`` says that half the step moved the state half as far: else the difference is no beginning of a slope.
    """

    slope: FloatArray
    bent: FloatArray
    left: FloatArray
    settled: BoolArray
    straight: BoolArray


@dataclass(frozen=True)
class _Noise:
    """By how much costs of settled states are wrong, (B,): plainly, and per residual of the force."""

    plain: FloatArray
    per_residual: FloatArray

    @classmethod
    def of(cls, question: Question) -> _Noise:
        """Return the noise of the samples of a question; the cost feels forces as the adjoint response says."""
        free, slope = question.network.graph.free, question.slope(question.phases)
        response = np.abs(linearise(question.system, question.phases).solve(slope[:, free], transposed=True)[0])
        feels = np.sum(response * force_rounding(question)[:, free], axis=1)
        cost = np.abs(question.objective.cost(question.outputs, question.target))
        rounding = _EPS * (cost + np.sum(np.abs(slope * question.phases), axis=1))
        return cls(feels + 4 * rounding, np.sum(response, axis=1))


def _slopes(
    question: Question, name: str, step: float | None, noise: _Noise, tell: Callable[[int], object]
) -> tuple[Array, Array, BoolArray]:
    """Return slopes by one name and their errors, (B, width), and where all states were found, (B,).

    ``tell`` is told how many more entries have been turned for the first time.
    """
    system, what = question.system, _turnable(question, name)
    turns = _Turns(system, question.phases, question.objective, question.nodes, question.target, what)
    batch, width = system.batch, question.width(name)
    rows, which = np.repeat(np.arange(batch), width), np.tile(np.arange(width), batch)
    steps = np.full(rows.size, step) if step else what.first_steps(question)[rows, which]
    best, error = np.zeros(rows.size), np.full(rows.size, np.inf)
    found, trying = np.zeros(rows.size, dtype=bool), np.arange(rows.size if question.network.graph.free.size else 0)
    for attempt in range(1 if step else 1 + _TRIES):
        if not trying.size:
            break
        twice = turns.twice(rows[trying], which[trying], steps[trying], None if attempt else tell)
        noisy = noise.plain[rows[trying]] + noise.per_residual[rows[trying]] * twice.left
        off = np.where(twice.settled & twice.straight, 1.5 * twice.bent + noisy / steps[trying], np.inf)
        better = off < error[trying]
        better |= twice.settled & ~found[trying]
        best[trying[better]], error[trying[better]] = twice.slope[better], off[better]
        found[trying] |= twice.settled
        largest = np.max(np.abs(best).reshape(batch, width), axis=1, initial=0.0)[rows[trying]]
        steps[trying] *= _factors(twice, noisy, steps[trying])
        trying = trying[error[trying] > _GOOD * largest]
    shape = (batch, width)
    return best.reshape(shape), error.reshape(shape), np.all(found.reshape(shape), axis=1)


def _factors(twice: _Twice, noisy: FloatArray, steps: FloatArray) -> FloatArray:
    """Return by what to multiply steps h for (n / 2a)^(1/3); where they left the beginning they are far too long."""
    curvature = twice.bent / steps**2
    best = np.cbrt(noisy / np.where(curvature > 0, 2 * curvature, 1.0)) / steps
    best = np.clip(np.where(curvature > 0, best, _CHANGE), 1 / _CHANGE, _CHANGE)
    lost = ~twice.settled | (~twice.straight & (twice.bent * steps > 4 * noisy))
    return np.where(lost, _SHORTER, best)


def _turnable(question: Question, name: str) -> _OfParameter | _OfData:
    """Return what one name of a question stands for."""
    if name == INPUTS:
        assert question.inputs is not None  # `ask` refuses to derive by data that is not there
        return _OfData(question.network, question.inputs)
    return _OfParameter(question.network.term_of(name)[0], name, question.frequencies == "raw")
