"""The generic engine: the same protocol by the library's own equilibria and gradients, for any kind of network.

Slower by orders of magnitude than the lanes, and the yardstick they are tested against.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phasegrad.datasets import Dataset
from phasegrad.equilibrium import find_equilibrium
from phasegrad.gradients import Gradient, GradientWarning, adjoint, finite_difference, two_phase
from phasegrad.network import Network
from phasegrad.training.engine import Rates, Tallies
from phasegrad.training.protocol import Protocol
from phasegrad.validation import FloatArray

Array = NDArray[Any]


class GenericEngine:
    """Trains networks one after the other, sample by sample."""

    def __init__(
        self,
        networks: Sequence[Network],
        datasets: Sequence[Dataset],
        protocol: Protocol,
        rates: Rates,
        phases: Array,
        threads: int | None = None,
    ) -> None:
        del threads  # one sample at a time has nothing to share out
        self.networks = list(networks)
        self.datasets = datasets
        self.protocol = protocol
        self.rates = rates
        self.phases = phases.copy()

    def train(self, orders: Array) -> Tallies:
        """Train for one epoch per row of ``orders`` (R, epochs, n)."""
        sums = np.zeros((len(Tallies._fields), len(self.networks), orders.shape[1]))
        for r, of_network in enumerate(orders):
            for epoch, order in enumerate(of_network):
                if self.protocol.loop == "main":
                    self.phases[r] = 0.0
                for row in order:
                    sums[:, r, epoch] += self._update(r, int(row))
        return Tallies(*sums)

    def evaluate(self, part: str) -> Tallies:
        """Return the sums over the "train" or "test" part, (R, 1)."""
        sums = np.zeros((len(Tallies._fields), len(self.networks), 1))
        for r, (network, data) in enumerate(zip(self.networks, self.datasets, strict=True)):
            x, y = (data.x_train, data.y_train) if part == "train" else (data.x_test, data.y_test)
            phases = np.zeros(network.size)
            for sample, label in zip(x, y, strict=True):
                found = find_equilibrium(network, sample, start=phases)
                phases = found.phases if found.converged else np.zeros(network.size)
                sums[:, r, 0] += self._tally(
                    network, found.phases, int(label), bool(found.converged), bool(found.stable)
                )
        return Tallies(*sums)

    def parameters(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return frequencies (R, N), couplings (R, E) and phases (R, N) as they are now."""
        omega = np.stack([network.omega for network in self.networks])
        return omega, np.stack([network.coupling for network in self.networks]), self.phases.copy()

    def _update(self, r: int, row: int) -> Array:
        network, data, protocol = self.networks[r], self.datasets[r], self.protocol
        label = int(data.y_train[row])
        free = find_equilibrium(network, data.x_train[row], start=self.phases[r])
        if not free.converged:
            self.phases[r] = 0.0
            return self._tally(network, free.phases, label, False, False)
        self.phases[r] = free.phases
        gradient = self._gradient(network, free, label)
        usable = bool(gradient.valid)
        sums = self._tally(network, free.phases, label, usable or protocol.loop == "main", bool(free.stable))
        sums[Tallies._fields.index("skipped")] = not usable
        if usable:
            self.networks[r] = self._changed(r, gradient)
        return sums

    def _gradient(self, network: Network, free: Any, label: int) -> Gradient:
        options: dict[str, Any] = {"wrt": ("omega", "coupling"), "frequencies": self.protocol.frequencies}
        question = (network, free, self.protocol.objective, label)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GradientWarning)
            if self.protocol.gradient == "two_phase":
                return two_phase(*question, beta=self.protocol.beta, **options)
            return (adjoint if self.protocol.gradient == "adjoint" else finite_difference)(*question, **options)

    def _changed(self, r: int, gradient: Gradient) -> Network:
        network, protocol = self.networks[r], self.protocol
        rates = Rates(self.rates.omega[r], self.rates.coupling[r])
        slope = np.clip(gradient.get("omega"), -protocol.clip, protocol.clip)
        learned = rates.omega > 0
        omega = network.omega - rates.omega * slope
        omega[learned] = np.clip(omega[learned], *protocol.omega_bounds)
        if not network.reciprocal:
            return network.replace(omega=omega)
        assert gradient.coupling is not None
        slope = np.clip(gradient.coupling, -protocol.clip, protocol.clip)
        coupling = np.clip(network.coupling - rates.coupling * slope, *protocol.coupling_bounds)
        return network.replace(omega=omega, coupling=coupling)

    def _tally(self, network: Network, phases: Array, label: int, counted: bool, stable: bool) -> Array:
        if not counted:
            return np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
        objective = self.protocol.objective
        outputs = phases[list(network.outputs)]
        loss = float(objective.cost(outputs, objective.check_target(label, network)))
        correct = float(objective.decide(outputs) == label)
        return np.array([loss, correct, 0.0, float(not stable), outputs[0] - outputs[-1], outputs.mean()])
