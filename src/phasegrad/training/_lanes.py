"""The fast engine: lays networks and samples out in lanes and runs the compiled kernel over them.

Networks are cut into groups that are trained in lock-step, one network per lane; no result depends on the width of a
group, on the company in it or on the threads. The kernel knows phasor terms (frequencies, sine coupling, sine field)
and distances to target phases, and learns sample by sample by plain descent; `LaneEngine.refuses` says what it cannot
do.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.gradients import METHODS, TRAINING_STEP
from phasegrad.graphs import Graph
from phasegrad.kernels import COMPILES
from phasegrad.networks import Network
from phasegrad.objectives import ClassObjective, PaperPair, formula_of
from phasegrad.terms import Coupling, Field, Frequencies
from phasegrad.training._descent import bounds_of
from phasegrad.training._engine import Problem, Progress, Tallies
from phasegrad.training._optimizers import Momentum
from phasegrad.training._samples import Samples

Parameters = Mapping[str, Array]

# What one update of a group costs, in units of the narrower: wide groups share the walk through the tables. Where
# vectors have 512 bits a group of 32 costs 4 % less than two of 16, and one of 4 a fifth less than one of 8: not worth
# the time to compile them.
WIDTHS = {8: 1.0, 16: 1.5}
#: Moving oscillators beyond which walking the elimination program lane by lane does not pay.
_LARGEST = 64
_TERMS = (Frequencies, Coupling, Field)
# In the order of the numbers that the kernel gives them.
_COSTS = ("quadratic", "periodic")
_STARTS = ("epoch", "run", "none")


@dataclass(frozen=True)
class _Group:
    """Networks ``first`` to ``first + count`` and their memory; lanes left over repeat the last one."""

    first: int
    count: int
    rows: Any

    @property
    def networks(self) -> IntArray:
        """The network in each lane."""
        return self.first + np.minimum(np.arange(self.rows.width), self.count - 1)


class LaneEngine:
    """Trains many networks of one topology; see `phasegrad.kernels._lanes` for the mathematics."""

    def __init__(self, problem: Problem) -> None:
        # Numba is imported only where something is trained: it takes longer to load than the rest of the package.
        from phasegrad.kernels import Rows, lanes, program

        plan, network = problem.plan, problem.networks[0]
        self.kernel, self.at, self.make_rows = lanes, program, Rows
        self.plan, self.network = plan, network
        formula = formula_of(plan.objective)
        self.formula = "" if formula is None else formula.kind
        self.threads = processors() if problem.threads is None else problem.threads
        self.given, self.memory = problem.begin.parameters, problem.begin.memory
        self.count = len(problem.networks)
        rates = {name: rate * problem.masks[name] for name, rate in plan.rates.items()}
        fields = _field_nodes(network.graph, self.given, rates)
        self.places = _places(network.graph, fields, self.given)
        self.program = program.elimination_program(network.graph, fields)
        self.table = np.zeros((0, 0))
        if isinstance(plan.objective, ClassObjective):
            self.table = np.array(plan.objective.table(len(network.outputs)))
        self.weights = {name: part.count for name, part in problem.parts.items()}
        self.records = {name: _records(part, network) for name, part in problem.parts.items()}
        rate = self._joined({name: rates.get(name, np.zeros(each.shape)) for name, each in self.given.items()})
        self.learned = np.flatnonzero(np.any(rate > 0, axis=0))
        # The raw slope of a frequency needs those of all others.
        raw = plan.frequencies == "raw" and network.pinned and np.any(self.learned < network.size)
        self.turned = np.union1d(np.arange(network.size), self.learned) if raw else self.learned
        self.bounds = np.array([[-np.inf], [np.inf]]) * np.ones(rate.shape[1])
        for name, sides in bounds_of(network, plan).items():
            columns, here = self.places[name]
            self.bounds[:, here] = [side[columns] for side in sides]
        self.groups = self._make_groups(rate, problem.begin.phases)

    @staticmethod
    def refuses(problem: Problem) -> str:
        """Return what the lanes cannot do of this, in a sentence; empty if they can."""
        network, plan, cost = problem.networks[0], problem.plan, problem.plan.objective
        strange = [str(term) for term in network.terms if not (type(term) in _TERMS and term.phasor)]
        formula = formula_of(cost)
        known = [name for name, method in METHODS.items() if method.lane is not None]
        reasons = [
            (not COMPILES, "are compiled code, and Numba is not installed"),
            (network.graph.layout is not None, "know no parameters that several edges or oscillators share"),
            (strange, f"train reciprocal sine coupling, frequencies and bias fields, not {', '.join(strange)}"),
            (formula is None or formula.kind not in _COSTS, "know costs that are distances to target phases"),
            (tuple(cost.nodes(network)) != network.outputs, "nudge the outputs of a network, and nothing else"),
            (plan.batch_size != 1 or plan.optimizer != Momentum(0.0), "learn sample by sample, by plain descent"),
            (plan.weight_decay > 0 or plan.input_noise > 0 or plan.lock_floor is not None or plan.patience is not None,
             "have no weight decay, input noise, lock guard or patience"),
            (plan.gradient not in known or plan.gradient_options, f"have the gradients {', '.join(known)}"),
            (plan.augmentation is not None, "take samples as they are, without augmentation"),
            (plan.fan_in is not None or plan.balance, "let all couplings learn alike"),
            (plan.coupling_norm is not None, "bound couplings one by one, not their norm"),
            (any(np.any(part.weights != 1) for part in problem.parts.values()), "count every sample alike"),
            (network.free.size > _LARGEST, f"are for at most {_LARGEST} oscillators that move"),
        ]  # fmt: skip
        return next((f"The lanes {words}." for cannot, words in reasons if cannot), "")

    @property
    def progress(self) -> Progress:
        """Where it stands."""
        joined = self._read(self.at.OMEGA, self.at.PARAMETERS)
        now = {name: values.copy() for name, values in self.given.items()}
        for name, (columns, here) in self.places.items():
            now[name][:, columns] = joined[:, here]
        return Progress(now, self.memory, self._read(self.at.PHASES, self.at.NODES))

    def train(self, orders: Array, factors: FloatArray, streams: Sequence[np.random.Generator]) -> Tallies:
        """Train for one epoch per column of ``orders`` (R, epochs, n)."""
        del streams
        orders = np.ascontiguousarray(orders, dtype=np.uint32)
        tallies = self._run("train", self._rule(learns=True), orders, np.asarray(factors, dtype=float), self.at.PHASES)
        updates = self.weights["train"] - tallies.skipped
        return tallies._replace(updates=updates if self.learned.size else 0 * updates)

    def score(self, part: str) -> Tallies:
        """Return the sums over a part, (R, 1)."""
        order = np.arange(self.records[part].shape[1], dtype=np.uint32)
        return self._run(part, self._rule(learns=False), order[None, None], np.ones(1), self.at.NUDGED)

    def stop(self, chosen: BoolArray) -> None:
        """Do nothing: the lanes have no patience."""

    def _rule(self, *, learns: bool) -> Any:
        """Return the plan as the kernel takes it: numbers only, those of training or those of an evaluation."""
        kernel, plan = self.kernel, self.plan
        decision = kernel.NONE
        if isinstance(plan.objective, ClassObjective):
            decision = kernel.COSINE if type(plan.objective) is PaperPair else kernel.NEAREST
        start = _STARTS.index(plan.warm_start)
        return kernel.Rule(
            learns=learns and self.learned.size > 0,
            beta=float(plan.beta),
            clip=np.inf if plan.clip is None else float(plan.clip),
            limit=0.0 if plan.accept is None else float(plan.accept[0 if learns else 1]),
            difference_step=TRAINING_STEP,
            gradient=plan.propagation.record.lane,
            raw=plan.frequencies == "raw",
            cost=_COSTS.index(self.formula),
            decision=decision,
            # An evaluation goes from sample to sample where training does, and begins at zero.
            start=start if learns or plan.warm_start == "none" else kernel.CHAIN,
        )

    def _joined(self, values: Parameters) -> FloatArray:
        """Return the parameters of every network side by side in the kernel's order, (R, P)."""
        return np.concatenate([values[name][:, columns] for name, (columns, _) in self.places.items()], axis=1)

    def _make_groups(self, rate: FloatArray, phases: FloatArray) -> list[_Group]:
        program, parameters = self.program, self._joined(self.given)
        first, groups = 0, []
        for width in widths(self.count, self.threads):
            group = _Group(first, min(width, self.count - first), self.make_rows(int(program[self.at.ROWS]), width))
            for place, values in ((self.at.OMEGA, parameters), (self.at.RATE, rate), (self.at.PHASES, phases)):
                group.rows.floats[program[place] :][: values.shape[1]] = values[group.networks].T
            groups.append(group)
            first += width
        return groups

    def _read(self, first: int, count: int) -> FloatArray:
        """Return numbers of every network, (R, how many), from the row and of the length the program names."""
        start, size = self.program[[first, count]]
        return np.concatenate([group.rows.floats[start : start + size, : group.count].T for group in self.groups])

    def _run(self, part: str, rule: Any, orders: Array, paces: FloatArray, phases: int) -> Tallies:
        """Run the kernel over every group, on as many threads as there are; compiled code lets go of the lock."""
        kernel, records, groups = self.kernel, self.records[part], self.groups
        sums = [self.make_rows(paces.size * kernel.TALLIES, group.rows.width) for group in groups]

        def run_one(group: _Group, tallies: Any) -> None:
            networks = group.networks
            samples = kernel.Samples(records, networks % len(records), orders, networks % len(orders))
            kernel.run_group(
                group.rows, self.program, rule, self.table, self.bounds, self.learned, self.turned, samples, paces,
                int(self.program[phases]), tallies,
            )  # fmt: skip

        if min(self.threads, len(groups)) == 1:
            for group, tallies in zip(groups, sums, strict=True):
                run_one(group, tallies)
        else:
            with ThreadPoolExecutor(min(self.threads, len(groups))) as pool:
                list(pool.map(run_one, groups, sums))
        joined = np.concatenate([each.floats[:, : group.count].T for group, each in zip(groups, sums, strict=True)])
        counts = np.moveaxis(joined.reshape(self.count, paces.size, kernel.TALLIES), 2, 0)
        nothing = np.zeros((self.count, paces.size))
        correct = counts[kernel.CORRECT] if rule.decision != kernel.NONE else np.full(nothing.shape, np.nan)
        return Tallies(
            weight=nothing + self.weights[part],
            settled=counts[kernel.COUNTED],
            cost=counts[kernel.LOSS],
            correct=correct,
            separation=counts[kernel.SEPARATION],
            common=counts[kernel.COMMON],
            unsettled=counts[kernel.UNSETTLED],
            unstable=counts[kernel.UNSTABLE],
            skipped=counts[kernel.SKIPPED],
            shortened=nothing,
            updates=nothing,
        )


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def widths(count: int, threads: int) -> list[int]:
    """Return the widths of the groups that train ``count`` networks soonest, the widest first.

    For every largest width the cheapest cover is found; of these the one whose busiest thread is done first is taken.
    """
    covers = [_cheapest_cover(count, [width for width in WIDTHS if width <= most]) for most in WIDTHS]

    def duration(cover: list[int]) -> tuple[float, float]:
        busy = [0.0] * threads
        for width in cover:
            busy[busy.index(min(busy))] += WIDTHS[width]
        return max(busy), sum(busy)

    return min(covers, key=duration)


def _cheapest_cover(count: int, allowed: Sequence[int]) -> list[int]:
    """Return widths that add up to ``count`` or more at the least cost."""
    widest = max(allowed)
    whole = max(0, count // widest - 1)
    best: list[tuple[float, list[int]]] = [(0.0, [])]
    for left in range(1, count - whole * widest + 1):
        options = [(best[max(0, left - width)], width) for width in allowed]
        best.append(min((cost + WIDTHS[width], [*cover, width]) for (cost, cover), width in options))
    return [widest] * whole + sorted(best[-1][1], reverse=True)


def _field_nodes(graph: Graph, parameters: Parameters, rates: Parameters) -> list[int]:
    """Return the nodes that move and on which a field acts in some network, or may come to act."""
    strength = Field.every[0].name
    if strength not in parameters:
        return []
    acts = np.any(parameters[strength] != 0, axis=0)
    if strength in rates:
        acts |= np.any(rates[strength] > 0, axis=0)
    return np.setdiff1d(np.flatnonzero(acts), graph.held).tolist()


def _places(graph: Graph, fields: list[int], parameters: Parameters) -> dict[str, tuple[IntArray, IntArray]]:
    """Return for every parameter, in the kernel's order, which of its columns the kernel holds, and where."""
    frequency, strength, (field_strength, field_phase) = Frequencies.every[0], Coupling.every[0], Field.every
    columns = {
        frequency.name: np.arange(graph.size),
        strength.name: np.arange(graph.n_edges),
        field_strength.name: np.array(fields, dtype=np.int64),
        field_phase.name: np.array(fields, dtype=np.int64),
    }
    starts = np.cumsum([0, *(each.size for each in columns.values())])
    return {
        name: (each, start + np.arange(each.size))
        for (name, each), start in zip(columns.items(), starts[:-1].tolist(), strict=True)
        if name in parameters
    }


def _records(part: Samples, network: Network) -> FloatArray:
    """Return inputs, targets and class of every sample side by side, (R or 1, n, d + M + 1)."""
    labels = np.zeros(part.weights.shape) if part.labels is None else part.labels
    scaled = np.multiply(network.input_scale, part.inputs, dtype=np.float64)
    sides = [network.input_phase + scaled, part.targets, labels[..., None]]
    # Samples that all networks share have no stride along the networks, and are kept once.
    shared = part.inputs.strides[0] == part.targets.strides[0] == 0
    return np.concatenate([side[:1] if shared else side for side in sides], axis=-1, dtype=np.float64)
