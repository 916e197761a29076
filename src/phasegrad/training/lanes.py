"""The fast engine: lays networks and data out in lanes and runs the compiled kernel over them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phasegrad.datasets import Dataset
from phasegrad.interactions import Sine
from phasegrad.network import Network
from phasegrad.objectives import ClassObjective, NearestTarget, PaperPair
from phasegrad.training.engine import Rates, Tallies
from phasegrad.training.protocol import GRADIENTS, Protocol
from phasegrad.validation import FloatArray

Array = NDArray[Any]


def fits_lanes(network: Network, objective: ClassObjective) -> bool:
    """Whether the kernel knows this kind: sine coupling, reciprocal, pinned, inputs as frequencies, quadratic cost."""
    known = type(network.interaction) is Sine and type(objective) in (PaperPair, NearestTarget)
    return known and network.reciprocal and network.pinned and len(network.outputs) > 0


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LaneEngine:
    """Trains many networks of one topology; see `phasegrad.training.kernel` for the mathematics."""

    def __init__(
        self,
        networks: Sequence[Network],
        datasets: Sequence[Dataset],
        protocol: Protocol,
        rates: Rates,
        phases: Array,
        threads: int | None = None,
    ) -> None:
        from phasegrad.training import kernel
        from phasegrad.training.program import elimination_program

        self.kernel = kernel
        self.threads = processors() if threads is None else threads
        self.count = len(networks)
        self.network = networks[0]
        self.protocol = protocol
        self.program = elimination_program(networks[0])
        self.targets = protocol.objective.table(len(networks[0].outputs))
        self.decision = kernel.COSINE if isinstance(protocol.objective, PaperPair) else kernel.NEAREST
        self.groups = -(-self.count // kernel.WIDTH)
        self.omega = self._lanes(np.stack([network.omega for network in networks]))
        self.coupling = self._lanes(np.stack([network.coupling for network in networks]))
        self.phases = self._lanes(phases)
        self.omega_rate, self.coupling_rate = self._lanes(rates.omega), self._lanes(rates.coupling)
        self.learn_nodes = np.any(rates.omega > 0, axis=0)
        self.learn_edges = np.any(rates.coupling > 0, axis=0)
        self.bounds = _bounds(networks[0], protocol)
        self.train_records = self._records([(data.x_train, data.y_train) for data in datasets])
        self.test_records = self._records([(data.x_test, data.y_test) for data in datasets])
        self.rule = kernel.Rule(
            beta=float(protocol.beta),
            clip=float(protocol.clip),
            free_limit=0.01,
            nudged_limit=0.01,
            difference_step=1e-5,
            gradient=GRADIENTS.index(protocol.gradient),
            raw=protocol.frequencies == "raw",
            decision=self.decision,
            reset_each_epoch=protocol.loop == "main",
            tally_needs_nudge=protocol.loop == "matched",
        )

    def train(self, orders: Array) -> Tallies:
        """Train for one epoch per row of ``orders`` (R, epochs, n) and return the sums of each epoch, (R, epochs)."""
        kernel = self.kernel
        lanes = self._lanes(orders.astype(np.uint32, copy=False))
        sums = np.zeros((self.groups, orders.shape[1], kernel.TALLIES, kernel.WIDTH))

        def train_one(g: int) -> None:
            kernel.train_group(
                self.program, self.rule, self.targets, self.bounds, self.learn_nodes, self.learn_edges, self.omega[g],
                self.coupling[g], self.phases[g], self.omega_rate[g], self.coupling_rate[g], self.train_records[g],
                lanes[g], sums[g],
            )  # fmt: skip

        self._side_by_side(train_one)
        return self._tallies(sums.transpose(1, 2, 0, 3))

    def evaluate(self, part: str) -> Tallies:
        """Return the sums over the "train" or "test" part, (R, 1)."""
        kernel = self.kernel
        records = self.train_records if part == "train" else self.test_records
        sums = np.zeros((self.groups, kernel.TALLIES, kernel.WIDTH))
        omega = self.omega.copy()

        def evaluate_one(g: int) -> None:
            kernel.evaluate_group(
                self.program, self.targets, self.decision, 0.1, omega[g], self.coupling[g], records[g], sums[g]
            )

        self._side_by_side(evaluate_one)
        return self._tallies(sums.transpose(1, 0, 2)[None])

    def parameters(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return frequencies (R, N), couplings (R, E) and phases (R, N) as they are now; inputs at frequency zero."""
        omega = self._rows(self.omega)
        omega[:, list(self.network.inputs)] = 0.0
        return omega, self._rows(self.coupling), self._rows(self.phases)

    def _side_by_side(self, work: Callable[[int], None]) -> None:
        """Do the work of every group, on as many threads as there are processors; compiled code lets go of the lock."""
        if self.groups == 1 or self.threads == 1:
            for g in range(self.groups):
                work(g)
            return
        with ThreadPoolExecutor(min(self.threads, self.groups)) as pool:
            list(pool.map(work, range(self.groups)))

    def _lanes(self, rows: Array) -> Array:
        """Turn (R, ..., k) into (groups, ..., k, lanes); the last network fills the lanes that are left over."""
        missing = self.groups * self.kernel.WIDTH - self.count
        padded = np.concatenate([rows, np.repeat(rows[-1:], missing, axis=0)])
        grouped = padded.reshape(self.groups, self.kernel.WIDTH, *rows.shape[1:])
        return np.ascontiguousarray(np.moveaxis(grouped, 1, -1))

    def _rows(self, lanes: Array) -> Array:
        """Undo `_lanes` for (groups, k, lanes)."""
        return lanes.transpose(0, 2, 1).reshape(-1, lanes.shape[1])[: self.count].copy()

    def _records(self, parts: list[tuple[FloatArray, Array]]) -> Array:
        """Return what a lane needs to know of each sample: input frequencies, targets, class; (groups, n, lanes, k)."""
        scale = self.network.input_scale
        rows = np.stack([np.column_stack([scale * x, self.targets[y], y]) for x, y in parts])
        return np.ascontiguousarray(np.moveaxis(self._lanes(rows), -1, 2))

    def _tallies(self, sums: Array) -> Tallies:
        """Turn (epochs, TALLIES, groups, lanes) into sums per network and epoch."""
        flat = sums.reshape(*sums.shape[:2], -1)[:, :, : self.count]
        return Tallies(*(flat[:, k].T for k in range(self.kernel.TALLIES)))


def _bounds(network: Network, protocol: Protocol) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return lower and upper bounds of every frequency and coupling; inputs have none."""
    low, high = np.full(network.size, protocol.omega_bounds[0]), np.full(network.size, protocol.omega_bounds[1])
    low[list(network.inputs)], high[list(network.inputs)] = -np.inf, np.inf
    edges = network.n_edges
    return low, high, np.full(edges, protocol.coupling_bounds[0]), np.full(edges, protocol.coupling_bounds[1])
