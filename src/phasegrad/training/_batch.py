r"""The batch engine: any network, any cost, in batches of any size.

Networks of one topology learn in lock-step: the samples of all of them are one flat batch. A single network with sine
coupling is settled by products of matrices instead (`PhasorLaplacian`), where held neighbours and fields act on an
oscillator as one field and only what moves is computed. One update of a network is: settle the samples of a batch, sum
the gradient over those that have a stable state, step, and under the lock guard settle the same samples again and halve
the step until all that were locked still are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.dynamics import System, Workspace, assemble
from phasegrad.equilibria import tolerance_of
from phasegrad.gradients import MeanGradient
from phasegrad.linearised import DenseLaplacian, Linearised, PhasorLaplacian, Phasors, Verdict, stability
from phasegrad.solvers import FOLLOWING, AlignedNewton, Newton, Solver, persistent_solver, solver_of
from phasegrad.training._engine import Problem, Progress, Tallies, tally
from phasegrad.training._learner import Learner, missing
from phasegrad.training._optimizers import Arrays
from phasegrad.training._samples import Samples

_SCORED_AT_ONCE = 512
#: Moving oscillators from which networks are settled one by one, by products of matrices.
_LARGE = 16
# Multiplications in one product of matrices from which a second BLAS thread pays.
_THREADED = 5e7
_ALIGNED = AlignedNewton()
# The stream of networks that have nothing to draw for: nothing of it is used.
_NOBODY = np.random.default_rng(0)


@dataclass(frozen=True, eq=False)
class Settled:
    """Free states of a batch: R networks times b samples, flat.

    ``limits`` are the residuals that count as zero, ``settled`` says which samples count, ``unstable`` which converged
    to an unstable state; ``state`` is the same system by products of matrices, where it is used.
    """

    system: System
    phases: FloatArray
    limits: FloatArray
    settled: BoolArray
    unstable: BoolArray
    state: PhasorLaplacian | None


class BatchEngine:
    """Trains networks in batches; see `phasegrad.training._engine.Engine`."""

    def __init__(self, problem: Problem) -> None:
        graph = problem.networks[0].graph
        alone = len(problem.networks) > 1 and graph.free.size >= _LARGE
        rows = [np.array([r]) for r in range(len(problem.networks))] if alone else [np.arange(len(problem.networks))]
        self.groups = [_Group(problem, chosen) for chosen in rows]

    @staticmethod
    def refuses(problem: Problem) -> str:
        """Return nothing: it takes every network and every plan."""
        del problem
        return ""

    @property
    def progress(self) -> Progress:
        """Where it stands."""
        return Progress.joined([group.progress for group in self.groups])

    def train(self, orders: Array, factors: FloatArray, streams: Sequence[np.random.Generator]) -> Tallies:
        """Train for one epoch per column of ``orders`` (R, epochs, n)."""
        return Tallies.joined([group.train(orders, factors, streams) for group in self.groups])

    def score(self, part: str) -> Tallies:
        """Return the sums over a part, (R, 1)."""
        return Tallies.joined([group.score(part) for group in self.groups])

    def stop(self, chosen: BoolArray) -> None:
        """Let some of the networks learn no more."""
        for group in self.groups:
            group.active &= ~chosen[group.rows]


class _Group(Learner):
    """Networks that learn in lock-step."""

    def __init__(self, problem: Problem, rows: IntArray) -> None:
        super().__init__(problem, rows)
        self.workspace = Workspace()
        self.threaded = problem.plan.batch_size * self.network.n_edges >= _THREADED

    def score(self, part: str) -> Tallies:
        """Return the sums over a part, (r, 1)."""
        samples, count = self.parts[part], self.parts[part].count
        total = Tallies.zeros(self.rows.size)
        chained = self.plan.warm_start != "none"
        at_once = 1 if chained else max(1, _SCORED_AT_ONCE // self.rows.size)
        phases = np.zeros((self.rows.size, self.network.size))
        for first in range(0, count, at_once):
            numbers = np.arange(first, min(first + at_once, count))
            some = self.samples_of(samples, np.broadcast_to(numbers, (self.rows.size, numbers.size)))
            settled = self._settle(some.inputs, phases if chained else None, training=False)
            if chained:
                phases = np.where(settled.settled[:, None], settled.phases, 0.0)
            total += self._tally(settled, some)
        return Tallies.epochs([total])

    def update(self, some: Samples, inputs: FloatArray, factor: float) -> Tallies:
        """Settle, nudge, step and guard one batch of every network; return its sums."""
        plan, progress = self.plan, self.progress
        start = progress.phases if plan.warm_start != "none" else None
        settled = self._settle(inputs, start)
        tallies = self._tally(settled, some)
        if start is not None:
            kept = settled.settled[:, None]
            progress = self.progress = progress._replace(phases=np.where(kept, settled.phases, 0.0))
        weights = np.where(settled.settled.reshape(some.weights.shape), some.weights, 0.0)
        if not self.learn or not weights.any():
            return tallies._replace(skipped=tallies.skipped + missing(settled.settled, some))
        share = weights / np.maximum(np.sum(weights, axis=1, keepdims=True), 1e-300)
        mean = MeanGradient(
            self.network, settled.system, settled.phases, self.cost, self.nodes, some.targets.reshape(weights.size, -1),
            limits=settled.limits, strict=plan.accept is None, state=settled.state,
        )  # fmt: skip
        # A network without a settled sample draws nothing, as it would alone.
        settles: list[bool] = np.any(weights, axis=1).tolist()
        streams = [own if any_settled else _NOBODY for own, any_settled in zip(self.streams, settles, strict=True)]
        gradient, used = mean.take(
            share, self.learn, by=plan.propagation, frequencies=plan.frequencies, streams=streams
        )
        moves = np.any(used.reshape(weights.shape), axis=1) & self.active
        short = self._step(settled, inputs, gradient, factor, moves)
        return tallies._replace(
            skipped=tallies.skipped + missing(used, some), shortened=short.astype(float), updates=moves.astype(float)
        )

    def _step(
        self, settled: Settled, inputs: FloatArray, gradient: Arrays, factor: float, moves: BoolArray
    ) -> BoolArray:
        """Take the step after which every sample that was locked stays so; return where it was shortened."""
        tried: tuple[Arrays | None, Workspace] = (None, Workspace())

        def locked(trial: Arrays, asked: BoolArray) -> BoolArray:
            nonlocal tried
            tried = trial, Workspace()
            return self._still_locked(settled, trial, tried[1], inputs, asked)

        short = self.step(gradient, factor, moves, locked)
        self.workspace = tried[1] if tried[0] is self.progress.parameters else Workspace()
        return short

    def _tally(self, settled: Settled, some: Samples) -> Tallies:
        shape = some.weights.shape
        outputs = np.take(settled.phases, self.nodes, axis=1).reshape(*shape, -1)
        return tally(self.cost, outputs, settled.settled.reshape(shape), settled.unstable.reshape(shape), some)

    def _settle(self, inputs: FloatArray, start: FloatArray | None, *, training: bool = True) -> Settled:
        """Let all samples (r, b, d) settle, from phase zero or from ``start`` (r, N), and certify every state."""
        system = self._system(self.progress.parameters, self.workspace, inputs)
        phases = system.place(np.zeros((system.batch, system.graph.size)) if start is None else start)
        limits = tolerance_of(system, self.plan.settling.tolerance, phases)
        possible = ~system.locked_out()
        left = np.full(system.batch, np.inf)
        state, stable = None, np.zeros(system.batch, dtype=bool)
        if start is None and self.plan.settling.solver == "batch" and PhasorLaplacian.fits(system):
            first = PhasorLaplacian.of(system, phases)
            state = self._settle_products(first, phases, limits, left, possible, training=training)
            converged = left <= limits
            stable = (state.definite() == Verdict.STABLE) & converged
        else:
            rows = np.flatnonzero(possible)
            part = system if rows.size == system.batch else system.take(rows)
            solver = self._solver(part, persistent=not training and start is None)
            solution = solver.solve(part, phases[rows], limits[rows])
            phases[rows], left[rows] = solution.phases, solution.residual
            converged = left <= limits
            rows = np.flatnonzero(converged)
            part = system if rows.size == system.batch else system.take(rows)
            stable[rows] = stability(part, phases[rows]).stable
        accept = None if self.plan.accept is None else self.plan.accept[0 if training else 1]
        counts = stable if accept is None else left < accept
        return Settled(system, phases, limits, counts, converged & ~stable, state)

    def _solver(self, system: System, *, persistent: bool) -> Solver:
        """Return the solver of a plan; a ``persistent`` one tries all that a prediction would."""
        if self.plan.accept is not None:
            # Who accepts states of any kind wants those that plain Newton finds.
            return FOLLOWING
        if persistent:
            return persistent_solver(self.plan.settling.solver, system, "train")
        return solver_of(self.plan.settling.solver, system, "train", polish=False)

    def _settle_products(
        self, first: PhasorLaplacian, phases: Array, limits: FloatArray, left: FloatArray, possible: BoolArray, *,
        training: bool,
    ) -> PhasorLaplacian:  # fmt: skip
        """Settle by products of matrices, and what they leave one by one; return the states that were reached."""
        rows = np.flatnonzero(possible)
        part = first if rows.size == possible.size else first.take(rows)
        moving, left[rows], _ = _ALIGNED.settle(part, limits[rows])
        lost = rows[~(left[rows] <= limits[rows])]
        start = phases[lost]
        phases[rows[:, None], part.nodes] = moving
        if lost.size:
            some = first.system.take(lost)
            alone = Newton(algebra=DenseLaplacian, polish=False)
            solver = alone if training else self._solver(some, persistent=True)
            again = solver.solve(some, start, limits[lost])
            phases[lost], left[lost] = again.phases, again.residual
        return first.at(phases.take(first.nodes, axis=1))

    def _system(self, parameters: Mapping[str, Array], workspace: Workspace, inputs: FloatArray) -> System:
        networks, samples, width = inputs.shape
        values = parameters
        if networks > 1:
            values = {name: np.repeat(each, samples, axis=0) for name, each in parameters.items()}
        return assemble(self.network, inputs.reshape(-1, width), networks * samples, values, workspace)

    def _still_locked(
        self, settled: Settled, parameters: Arrays, workspace: Workspace, inputs: FloatArray, asked: BoolArray
    ) -> BoolArray:
        """Return which of some networks keep all their settled samples in stable states, led on from where they are."""
        assert self.plan.lock_floor is not None
        system = self._system(parameters, workspace, inputs)
        chosen = settled.settled & np.repeat(asked, inputs.shape[1])
        rows, kept = np.flatnonzero(chosen), ~chosen
        phases, floor = settled.phases[rows], np.full(rows.size, self.plan.lock_floor)
        part = system if rows.size == system.batch else system.take(rows)
        limits = tolerance_of(part, self.plan.settling.tolerance, phases)
        if settled.state is not None:
            phasors = Phasors.of(system, settled.state.phasors.held)
            some = phasors if rows.size == system.batch else phasors.take(rows)
            state = PhasorLaplacian(some, phases.take(phasors.nodes, axis=1))
            moving, left, _ = _ALIGNED.settle(state, limits, near=True)
            ended: Linearised = state.at(moving)
        else:
            solution = _ALIGNED.solve(part, phases, limits)
            left, ended = solution.residual, DenseLaplacian.of(part, solution.phases)
        kept[rows] = (left <= limits) & (ended.definite(floor) == Verdict.STABLE)
        return np.all(kept.reshape(inputs.shape[:2]), axis=1)
