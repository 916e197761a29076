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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._process import on_one_blas_thread
from phasegrad._validation import Array, BoolArray, FloatArray, IntArray, positive_float
from phasegrad.dynamics import System, assemble
from phasegrad.equilibria import Equilibrium, tolerance_of
from phasegrad.gradients._accuracy import checked
from phasegrad.gradients._exact import force_rounding
from phasegrad.gradients._gradient import Gradient
from phasegrad.gradients._method import Method
from phasegrad.gradients._problem import INPUTS, Problem, pose
from phasegrad.networks import Network
from phasegrad.objectives import Cost
from phasegrad.solvers import branch_solver
from phasegrad.terms import Term

_ENTRIES_AT_ONCE = 2**22
_EPS = float(np.finfo(float).eps)
#: The step of training, which tries no other.
TRAINING_STEP = 1e-5
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
    >>> print(f"{pg.gradients.cosine(pg.gradients.finite_difference(*question), pg.adjoint(*question)):.8f}")
    1.00000000
    """
    if step is not None:
        step = positive_float("step", step, "finite_difference")
    problem = pose("finite_difference", network, equilibrium, objective, target, wrt, frequencies, turned=True)
    samples, ok = problem.solvable, np.ones(problem.system.batch, dtype=bool)
    part, values, errors = problem.take(samples), {}, {}
    costs, done = _Noise.of(part), 0
    total = sum(part.system.batch * problem.width(name) for name in problem.wrt)

    def tell(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, total)

    for name in problem.wrt:
        slopes, error, found = _slopes(part, name, step, costs, tell)
        values[name], errors[name] = np.zeros((2, ok.size, slopes.shape[1]))
        values[name][samples], errors[name][samples], ok[samples] = slopes, error, ok[samples] & found
    return checked(problem, problem.answer(values, errors, ok=ok), lambda: _ADVICE)


def _training_slopes(problem: Problem, _beta: float, _stream: Any) -> tuple[dict[str, Array], BoolArray]:
    """Return the central differences of a flat batch at the one step of training, and where all states were found."""
    values, found = {}, np.ones(problem.system.batch, dtype=bool)
    for name in problem.wrt:
        rows, which = _entries(problem, name)
        turns = _Turns.of(problem, name)
        slopes, settled = np.zeros(rows.size), np.ones(rows.size, dtype=bool)
        for some in turns.parts(rows.size):
            each = turns.difference(rows[some], which[some], np.full(rows[some].size, TRAINING_STEP))
            slopes[some], settled[some] = each.slope, each.settled
        shape = (problem.system.batch, problem.width(name))
        values[name] = slopes.reshape(shape)
        found &= np.all(settled.reshape(shape), axis=1)
    return values, found


def _entries(problem: Problem, name: str) -> tuple[IntArray, IntArray]:
    """Return the sample and the entry of every turn by one name, (K,) each."""
    batch, width = problem.system.batch, problem.width(name)
    return np.repeat(np.arange(batch), width), np.tile(np.arange(width), batch)


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

    def first_steps(self, problem: Problem) -> FloatArray:
        """Return the step of every entry to begin with, (B, width)."""
        system, own = problem.system, problem.network.parameters
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

    def first_steps(self, problem: Problem) -> FloatArray:
        """Return the step of every entry to begin with, (B, n_in)."""
        scale = self.network.input_scale
        if self.network.clamps_inputs:
            return np.full(self.inputs.shape, _STEP / scale)
        return _STEP * np.maximum(np.abs(self.inputs), _forces(problem.system) / scale)


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

    @classmethod
    def of(cls, problem: Problem, name: str) -> _Turns:
        """Return the turns of one name of a problem."""
        cost, what = problem.objective, _turnable(problem, name)
        return cls(problem.system, problem.phases, cost, problem.nodes, problem.target, what)

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
    def of(cls, problem: Problem) -> _Noise:
        """Return the noise of the samples of a problem; the cost feels forces as the adjoint response says."""
        free, slope = problem.network.graph.free, problem.slope(problem.phases)
        response = np.zeros((problem.system.batch, free.size))
        for rows, part in problem.parts:
            response[rows] = np.abs(part.linearised.solve(slope[rows][:, free], transposed=True)[0])
        feels = np.sum(response * force_rounding(problem)[:, free], axis=1)
        cost = np.abs(problem.objective.cost(problem.outputs, problem.target))
        rounding = _EPS * (cost + np.sum(np.abs(slope * problem.phases), axis=1))
        return cls(feels + 4 * rounding, np.sum(response, axis=1))


def _slopes(
    problem: Problem, name: str, step: float | None, noise: _Noise, tell: Callable[[int], object]
) -> tuple[Array, Array, BoolArray]:
    """Return slopes by one name and their errors, (B, width), and where all states were found, (B,).

    ``tell`` is told how many more entries have been turned for the first time.
    """
    turns, shape = _Turns.of(problem, name), (problem.system.batch, problem.width(name))
    rows, which = _entries(problem, name)
    steps = np.full(rows.size, step) if step else turns.what.first_steps(problem)[rows, which]
    best, error = np.zeros(rows.size), np.full(rows.size, np.inf)
    found, trying = np.zeros(rows.size, dtype=bool), np.arange(rows.size if problem.network.graph.free.size else 0)
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
        largest = np.max(np.abs(best).reshape(shape), axis=1, initial=0.0)[rows[trying]]
        steps[trying] *= _factors(twice, noisy, steps[trying])
        trying = trying[error[trying] > _GOOD * largest]
    return best.reshape(shape), error.reshape(shape), np.all(found.reshape(shape), axis=1)


def _factors(twice: _Twice, noisy: FloatArray, steps: FloatArray) -> FloatArray:
    """Return by what to multiply steps h for (n / 2a)^(1/3); where they left the beginning they are far too long."""
    curvature = twice.bent / steps**2
    best = np.cbrt(noisy / np.where(curvature > 0, 2 * curvature, 1.0)) / steps
    best = np.clip(np.where(curvature > 0, best, _CHANGE), 1 / _CHANGE, _CHANGE)
    lost = ~twice.settled | (~twice.straight & (twice.bent * steps > 4 * noisy))
    return np.where(lost, _SHORTER, best)


def _turnable(problem: Problem, name: str) -> _OfParameter | _OfData:
    """Return what one name of a problem stands for."""
    if name == INPUTS:
        assert problem.inputs is not None  # `pose` refuses to derive by data that is not there
        return _OfData(problem.network, problem.inputs)
    return _OfParameter(problem.network.term_of(name)[0], name, problem.frequencies == "raw")


METHOD = Method(finite_difference, slopes=_training_slopes, perturbs=True, compared=True, lane=3)
