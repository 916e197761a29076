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
from phasegrad.graphs import lazy_property
from phasegrad.linearised import (
    DenseLaplacian,
    Edgewise,
    EdgewiseLaplacian,
    Linearised,
    PhasorLaplacian,
    Phasors,
    Verdict,
    stability,
)
from phasegrad.solvers import (
    BATCHED,
    FOLLOWING,
    AlignedNewton,
    Newton,
    Solver,
    can_align,
    persistent_solver,
    solver_of,
)
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
_NEWTON = Newton(algebra=DenseLaplacian, polish=False)
# Words for solvers that begin with Newton steps.
_BY_NEWTON = ("auto", "newton", "batch")


@dataclass(frozen=True, eq=False)
class Settled:
    """Free states of a batch: R networks times b samples, flat.

    ``limits`` are the residuals that count as zero, ``settled`` says which samples count, ``unstable`` which converged
    to an unstable state; ``state`` is the same system by products of matrices or by compiled steps, where it is used.
    """

    system: System
    phases: FloatArray
    limits: FloatArray
    settled: BoolArray
    unstable: BoolArray
    state: PhasorLaplacian | EdgewiseLaplacian | None


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
    def uncompiled(self) -> str:
        """Why these networks are not settled by compiled Newton steps, in a sentence; empty if they can be."""
        return self.groups[0].edgewise.reason

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
        #: Names of all parameters but those that drive the networks.
        self.undriven = [each.name for term in self.network.terms if not term.drives for each in term.parameters]
        self.threaded = problem.plan.batch_size * self.network.n_edges >= _THREADED

    @lazy_property
    def edgewise(self) -> Edgewise:
        """The network's terms as compiled code takes them, if it can; loaded when they are first asked for."""
        return Edgewise(self.network.graph, self.network.terms)

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
        every = settled.settled.all()
        if start is not None:
            kept = settled.phases if every else np.where(settled.settled[:, None], settled.phases, 0.0)
            progress = self.progress = progress._replace(phases=kept)
        weights = some.weights
        if not every:
            weights = np.where(settled.settled.reshape(weights.shape), weights, 0.0)
        if not self.learn or not weights.any():
            return tallies._replace(skipped=tallies.skipped + missing(settled.settled, some))
        share = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
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
        moves = used.reshape(weights.shape).any(axis=1) & self.active
        short = self._step(settled, inputs, gradient, factor, moves)
        return tallies._replace(
            skipped=tallies.skipped + missing(used, some), shortened=short.astype(float), updates=moves.astype(float)
        )

    def _step(
        self, settled: Settled, inputs: FloatArray, gradient: Arrays, factor: float, moves: BoolArray
    ) -> BoolArray:
        """Take the step after which every sample that was locked stays so; return where it was shortened."""
        before = self.progress.parameters
        tried: tuple[Arrays | None, Workspace] = (None, Workspace())

        def locked(trial: Arrays, asked: BoolArray) -> BoolArray:
            nonlocal tried
            tried = trial, self._workspace_of(before, trial)
            return self._still_locked(settled, trial, tried[1], inputs, asked)

        short = self.step(gradient, factor, moves, locked)
        after = self.progress.parameters
        self.workspace = tried[1] if tried[0] is after else self._workspace_of(before, after)
        return short

    def _workspace_of(self, before: Arrays, after: Arrays) -> Workspace:
        """Return the workspace of other parameters: the same one where only what drives the networks is another."""
        same = all(np.array_equal(after[name], before[name]) for name in self.undriven)
        return self.workspace if same else Workspace()

    def _tally(self, settled: Settled, some: Samples) -> Tallies:
        shape = some.weights.shape
        outputs = settled.phases.take(self.nodes, axis=1).reshape(*shape, -1)
        return tally(self.cost, outputs, settled.settled.reshape(shape), settled.unstable.reshape(shape), some)

    def _settle(self, inputs: FloatArray, start: FloatArray | None, *, training: bool = True) -> Settled:
        """Let all samples (r, b, d) settle, from phase zero or from ``start`` (r, N), and certify every state."""
        system = self._system(self.progress.parameters, self.workspace, inputs)
        phases = system.place(np.zeros((system.batch, system.graph.size)) if start is None else start)
        limits = tolerance_of(system, self.plan.settling.tolerance, phases)
        possible = ~system.locked_out()
        persistent = not training and start is None and self.plan.accept is None
        state = self._state(system, phases, cold=start is None)
        if state is not None:
            state, left = self._settle_together(state, phases, limits, possible, persistent=persistent)
            converged = left <= limits
            stable = (state.definite() == int(Verdict.STABLE)) & converged
        else:
            rows = np.flatnonzero(possible)
            part = system if rows.size == system.batch else system.take(rows)
            solution = self._solver(part, persistent=persistent).solve(part, phases[rows], limits[rows])
            left = np.full(system.batch, np.inf)
            phases[rows], left[rows] = solution.phases, solution.residual
            converged = left <= limits
            rows = np.flatnonzero(converged)
            part = system if rows.size == system.batch else system.take(rows)
            stable = np.zeros(system.batch, dtype=bool)
            stable[rows] = stability(part, phases[rows]).stable
        accept = None if self.plan.accept is None else self.plan.accept[0 if training else 1]
        counts = stable if accept is None else left < accept
        return Settled(system, phases, limits, counts, converged & ~stable, state)

    def _state(self, system: System, phases: Array, *, cold: bool) -> PhasorLaplacian | EdgewiseLaplacian | None:
        """Return the samples as products of matrices or compiled steps take them; None where neither does."""
        solver = self.plan.settling.solver
        if solver == "batch" and cold and PhasorLaplacian.fits(system):
            return PhasorLaplacian.of(system, phases)
        if self.plan.accept is not None or solver not in _BY_NEWTON or (solver == "batch" and can_align(system)):
            return None
        if self.edgewise.reason:
            return None
        return EdgewiseLaplacian(system, phases.take(system.graph.free, axis=1), self.edgewise)

    def _solver(self, system: System, *, persistent: bool) -> Solver:
        """Return the solver of a plan; a ``persistent`` one tries all that a prediction would."""
        if self.plan.accept is not None:
            # Who accepts states of any kind wants those that plain Newton finds.
            return FOLLOWING
        if persistent:
            return persistent_solver(self.plan.settling.solver, system, "train")
        return solver_of(self.plan.settling.solver, system, "train", polish=False)

    def _settle_together(
        self, first: PhasorLaplacian | EdgewiseLaplacian, phases: Array, limits: FloatArray, possible: BoolArray, *,
        persistent: bool,
    ) -> tuple[PhasorLaplacian | EdgewiseLaplacian, FloatArray]:  # fmt: skip
        """Settle all samples at once, and what is lost one by one; return the states that were reached, and residuals.

        The phases (B, N) are changed to what was found.
        """
        if possible.all():
            moving, left = self._moved_together(first, limits)
            if (left <= limits).all():
                phases[:, first.nodes] = moving
                return first.at(moving), left
            rows = np.arange(left.size)
        else:
            rows = np.flatnonzero(possible)
            left = np.full(possible.size, np.inf)
            moving, left[rows] = self._moved_together(first.take(rows), limits[rows])
        lost = rows[~(left[rows] <= limits[rows])]
        start = phases[lost]
        phases[rows[:, None], first.nodes] = moving
        if lost.size and (persistent or self.plan.settling.solver == "batch"):
            some = first.system.take(lost)
            solver = self._solver(some, persistent=True) if persistent else _NEWTON
            again = solver.solve(some, start, limits[lost])
            phases[lost], left[lost] = again.phases, again.residual
        return first.at(phases.take(first.nodes, axis=1)), left

    def _moved_together(
        self, state: PhasorLaplacian | EdgewiseLaplacian, limits: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return phases (B, n) of the oscillators that move after they have settled, and residuals (B,)."""
        if isinstance(state, PhasorLaplacian):
            return _ALIGNED.settle(state, limits)[:2]
        newton = BATCHED if self.plan.settling.solver == "batch" else _NEWTON
        return newton.iterate(state, limits)[:2]

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
        if isinstance(settled.state, EdgewiseLaplacian) and not can_align(part):
            compiled = EdgewiseLaplacian(part, phases.take(part.graph.free, axis=1), self.edgewise)
            moving, left, _ = BATCHED.iterate(compiled, limits)
            ended: Linearised = compiled.at(moving)
        elif isinstance(settled.state, PhasorLaplacian):
            phasors = Phasors.of(system, settled.state.phasors.held)
            some = phasors if rows.size == system.batch else phasors.take(rows)
            state = PhasorLaplacian(some, phases.take(phasors.nodes, axis=1))
            moving, left, _ = _ALIGNED.settle(state, limits, near=True)
            ended = state.at(moving)
        else:
            solution = _ALIGNED.solve(part, phases, limits)
            left, ended = solution.residual, DenseLaplacian.of(part, solution.phases)
        kept[rows] = (left <= limits) & (ended.definite(floor) == Verdict.STABLE)
        return np.all(kept.reshape(inputs.shape[:2]), axis=1)
