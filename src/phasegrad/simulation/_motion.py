r"""Equations of motion: what moves a flat batch of samples at a time.

    m_i d^2 theta_i / dt^2 + d_i d theta_i / dt = F_i(theta, t) + sqrt(2 D_i) xi_i(t)

All oscillators move but clamped inputs and a reference that is grounded. Where nothing else fixes the frame it turns
uniformly with Omega = sum omega_i / sum d_i, the common frequency of a locked network with reciprocal coupling, as
it is at the first time. There F_i = omega_i - d_i Omega + ..., which for equal damping is what `phasegrad.force`
states. A nudge is counted from the reference, on which its reaction acts, so that it can rest where
`find_equilibrium` finds it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import FloatArray, IntArray, joint_shape
from phasegrad.dynamics import Nudge, Shape, System, build_system
from phasegrad.networks import Network
from phasegrad.terms import MeanField

Inputs = ArrayLike | Callable[[float], ArrayLike] | None
Nudges = Nudge | Callable[[float], Nudge | None] | None


@dataclass(frozen=True, eq=False)
class Drive:
    """What acts from outside: inputs and a nudge, each a value or a function of time."""

    network: Network
    inputs: Inputs
    nudge: Nudges

    @property
    def changes(self) -> bool:
        """Whether one of them is a function of time."""
        return callable(self.inputs) or callable(self.nudge)

    def at(self, time: float) -> tuple[System, Shape]:
        """Return the system at a time, and its batch shape."""
        data: Any = self.inputs(time) if callable(self.inputs) else self.inputs
        nudge: Any = self.nudge(time) if callable(self.nudge) else self.nudge
        try:
            system, shape = build_system(self.network, data, nudge)
        except (ValueError, TypeError) as error:
            if self.changes:
                raise type(error)(f"What acts from outside at time {time:g} makes no sense. {error}") from None
            raise
        if system.is_complex:
            raise ValueError(f"A nudge in time must have a real strength. Got {nudge.beta!r}.")
        return system, shape

    def mean_frequency(self, time: float, batch: int) -> FloatArray:
        """Return the mean of all frequencies, (B,), where the frame turns with it; else zero."""
        network = self.network
        if not network.pinned:
            return np.zeros(batch)
        omega = network.graph.sharing.spread("nodes", network.omega)
        data: Any = self.inputs(time) if callable(self.inputs) else self.inputs
        if data is None:
            return np.full(batch, omega.mean())
        rows = network.input_scale * np.asarray(data, float).reshape(-1, len(network.inputs))
        every = np.broadcast_to(omega, (rows.shape[0], network.size)).copy()
        every[:, list(network.inputs)] = rows
        return np.broadcast_to(every.mean(axis=1), (batch,)) if rows.shape[0] == 1 else every.mean(axis=1)


@dataclass(frozen=True, eq=False)
class Motion:
    """The equations of motion of a flat batch of B samples.

    Attributes
    ----------
    drive : Drive
        What acts from outside.
    own, shape : tuple of int
        The batch shape of what acts from outside, and that of the samples.
    rows : ndarray of int, shape (B,)
        Which sample of the former each of the latter is.
    first : System
        The system at the first time.
    turning : ndarray, shape (B,)
        How fast the frame turns.
    damping : ndarray, shape (N,)
    inertia : ndarray, shape (N,), or None
    """

    drive: Drive
    own: Shape
    shape: Shape
    rows: IntArray
    first: System
    turning: FloatArray
    damping: FloatArray
    inertia: FloatArray | None

    @classmethod
    def of(
        cls, drive: Drive, time: float, batch: Shape, damping: FloatArray, inertia: FloatArray | None
    ) -> Motion:  # fmt: skip
        """Return the motion of samples with starts of a batch shape."""
        system, own = drive.at(time)
        shape = joint_shape(own, batch, ("What acts from outside", "a start"))
        rows = np.broadcast_to(np.arange(system.batch).reshape(own), shape).ravel()
        # Without damping nothing holds a frequency, and no frame turns with it.
        mean = drive.mean_frequency(time, system.batch)
        turning = (mean / damping.mean() if damping.any() else np.zeros_like(mean))[rows]
        return cls(drive, own, shape, rows, system.take(rows), turning, damping, inertia)

    @property
    def size(self) -> int:
        """Number of oscillators N."""
        return self.drive.network.size

    @property
    def held(self) -> IntArray:
        """The oscillators that do not move by themselves: clamped inputs, or a reference that is grounded."""
        network = self.drive.network
        stands = network.clamps_inputs or (network.pinned and network.grounded and not network.reciprocal)
        return network.held if stands else network.held[:0]

    def take(self, rows: IntArray) -> Motion:
        """Return the motion of some of the samples."""
        return replace(
            self, rows=self.rows[rows], first=self.first.take(rows), turning=self.turning[rows], shape=(rows.size,)
        )

    def system(self, time: float) -> System:
        """Return the system at a time."""
        if not self.drive.changes:
            return self.first
        system, own = self.drive.at(time)
        if own != self.own:
            raise ValueError(
                "Functions of time must return one shape at all times. What acts from outside has batch shape "
                f"{self.own} at the first time and {own} at time {time:g}."
            )
        return system.take(self.rows)

    def shift(self, time: float) -> FloatArray | None:
        """Return what the uniform turning of the frame adds to the forces, (B, N); None where that is nothing."""
        uniform = bool(np.all(self.damping == self.damping[0])) and self.damping[0] > 0
        if not self.drive.network.pinned or (uniform and not self.drive.changes):
            return None
        number = int(np.prod(self.own, dtype=np.int64))
        mean = self.drive.mean_frequency(time, number)[self.rows]
        return mean[:, None] - self.damping * self.turning[:, None]

    def force(self, time: float, phases: FloatArray) -> FloatArray:
        """Return the force on every oscillator, (B, N), in this frame."""
        system, graph = self.system(time), self.drive.network.graph
        total = system.own_force(phases)
        shift = self.shift(time)
        if shift is not None:
            total = total + shift
        if system.pull is not None:
            total = np.array(total)
            pull = system.pull.force(phases - phases[:, [graph.reference]] if graph.pinned else phases)
            total[:, system.pull.nodes] += pull
            if graph.pinned:
                total[:, graph.reference] -= np.sum(pull, axis=1)
        return total

    def rates(self, time: float, state: FloatArray) -> FloatArray:
        """Return the rates of change of a state: phases (B, N) or, with inertia, phases and velocities (B, 2N)."""
        phases = self.placed(time, state[:, : self.size])
        force = self.force(time, phases)
        if self.inertia is None:
            rates = force / self.damping
        else:
            speed = state[:, self.size :]
            rates = np.concatenate([speed, (force - self.damping * speed) / self.inertia], axis=1)
        for block in range(0, state.shape[1], self.size):
            rates[:, block + self.held] = 0.0
        return rates

    def placed(self, time: float, phases: FloatArray) -> FloatArray:
        """Return phases with those that are clamped where they are at a time."""
        if not self.drive.network.clamps_inputs:
            return phases
        placed = phases.copy()
        placed[:, self.held] = self.system(time).held_phases
        return placed

    def velocities(self, time: float, state: FloatArray) -> FloatArray:
        """Return the velocity of every oscillator, (B, N), without noise."""
        if self.inertia is not None:
            return state[:, self.size :]
        return self.rates(time, state)[:, : self.size]

    @property
    def fastest(self) -> float:
        """The fastest rate of change that there can be: of relaxation, of oscillation, of turning."""
        stiff, drive = self.first.stiffest.max(initial=0.0), np.abs(self.first.drive).max(initial=0.0)
        if self.inertia is None:
            return float((stiff + drive) / self.damping.min())
        return float(np.sqrt(stiff / self.inertia.min()) + np.max(self.damping / self.inertia) + self._turns(drive))

    def _turns(self, drive: float) -> float:
        """Return how fast an oscillator that nothing holds would turn."""
        least = float(self.damping.min())
        return drive / least if least > 0 else 0.0

    @property
    def compiles(self) -> bool:
        """Whether compiled code knows the forces: sines alone, and nothing that changes in time."""
        known = all(term.phasor or isinstance(term, MeanField) for term in self.first.terms)
        return known and not self.drive.changes and self.first.pull is None
