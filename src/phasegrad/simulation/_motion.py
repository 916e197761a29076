r"""Equations of motion: what moves a flat batch of samples at a time.

    m_i d^2 theta_i / dt^2 + d_i d theta_i / dt = F_i(theta, t) + sqrt(2 D_i) xi_i(t)

All oscillators move but clamped inputs and a reference that is grounded. Where nothing else fixes the frame that of
every network turns uniformly with its Omega = sum omega_i / sum d_i, the common frequency of a locked network with
reciprocal coupling, as it is at the first time. There F_i = omega_i - d_i Omega + ..., which for equal damping is what
`force` states. A nudge is counted from the reference, on which its reaction acts, so that it can rest where
`find_equilibrium` finds it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import Array, FloatArray, IntArray, joint_shape
from phasegrad.dynamics import (
    Nudge,
    Shape,
    System,
    checked_inputs,
    checked_target,
    input_frequencies,
    laid_flat,
    pull_of,
    with_inputs,
    without_inputs,
)
from phasegrad.graphs import lazy_property
from phasegrad.kernels import COMPILES
from phasegrad.networks import Network

Inputs = ArrayLike | Callable[[float], ArrayLike] | None
Nudges = Nudge | Callable[[float], Nudge | None] | None


class Outside(NamedTuple):
    """What acts from outside at a time, checked: inputs (..., n_in), a nudge and its target (..., M)."""

    inputs: FloatArray | None
    nudge: Nudge | None
    target: Array | None

    def take(self, shape: Shape, rows: IntArray) -> Outside:
        """Return what acts on some of the samples of a batch shape, flat; inputs (1, n_in) where all have the same."""
        inputs, target = self.inputs, self.target
        if inputs is not None:
            inputs = inputs[None] if inputs.ndim == 1 else laid_flat(inputs, shape)[rows]
        if target is not None:
            target = laid_flat(target, shape)[rows]
        return Outside(inputs, self.nudge, target)


class Acting(NamedTuple):
    """What acts on a flat batch of B samples at a time.

    The mean of all frequencies, (b,), is what the frame turns with; zero where something else fixes it.
    """

    system: System
    mean: FloatArray

    def take(self, rows: IntArray) -> Acting:
        """Return what acts on some of the samples; rows may repeat."""
        return Acting(self.system.take(rows), self.mean if len(self.mean) == 1 else self.mean[rows])


@dataclass(frozen=True, eq=False)
class Drive:
    """Networks that differ in parameters alone, and what acts on them: inputs and a nudge, or functions of time.

    Several networks are one axis, (G,), against which the leading axes of inputs and targets broadcast; ``batched``
    says whether there is such an axis.
    """

    networks: tuple[Network, ...]
    inputs: Inputs = None
    nudge: Nudges = None
    batched: bool = False

    @property
    def network(self) -> Network:
        """The first of the networks, which has the graph, the roles and the terms of all."""
        return self.networks[0]

    @property
    def changes(self) -> bool:
        """Whether inputs or nudge are a function of time."""
        return callable(self.inputs) or callable(self.nudge)

    @lazy_property
    def parameters(self) -> dict[str, FloatArray]:
        """Of several networks what data may drive, and every other parameter in which they differ, (G, width) each."""
        if not self.batched:
            return {}
        driven = {each.name for term in self.network.terms if term.drives for each in term.parameters}
        every = {name: np.stack([each.parameters[name] for each in self.networks]) for name in self.network.parameters}
        return {name: values for name, values in every.items() if name in driven or np.any(values != values[0])}

    def at(self, time: float) -> Outside:
        """Return what acts from outside at a time."""
        data: Any = self.inputs(time) if callable(self.inputs) else self.inputs
        nudge: Any = self.nudge(time) if callable(self.nudge) else self.nudge
        try:
            target = checked_target(self.network, nudge)
            inputs = checked_inputs(self.network, data, "simulate")
        except (ValueError, TypeError) as error:
            if self.changes:
                raise type(error)(f"What acts from outside at time {time:g} makes no sense. {error}") from None
            raise
        if nudge is not None and np.iscomplexobj(nudge.beta):
            raise ValueError(f"A nudge in time must have a real strength. Got {nudge.beta!r}.")
        return Outside(inputs, nudge, target)

    def shape(self, outside: Outside) -> Shape:
        """Return the batch shape of the networks with what acts on them from outside."""
        shape: Shape = () if outside.inputs is None else outside.inputs.shape[:-1]
        if self.batched:
            shape = joint_shape(shape, (len(self.networks),), ("Inputs", "networks"))
        if outside.target is None:
            return shape
        advice = "Give one target per input row, or one for all."
        return joint_shape(shape, outside.target.shape[:-1], ("Inputs", "targets"), advice)


@dataclass(frozen=True, eq=False)
class Motion:
    """The equations of motion of a flat batch of B samples.

    Attributes
    ----------
    drive : Drive
        The networks, and what acts from outside.
    shape : tuple of int
        The batch shape of all samples.
    rows : ndarray of int, shape (B,)
        Which of them these are.
    bare : System
        What acts on them whatever the time, as `without_inputs` returns it.
    first : Acting
        What acts at the first time.
    turning : ndarray, shape (B,)
        How fast the frame turns.
    damping : ndarray, shape (N,)
    inertia : ndarray, shape (N,), or None
    """

    drive: Drive
    shape: Shape
    rows: IntArray
    bare: System
    first: Acting
    turning: FloatArray
    damping: FloatArray
    inertia: FloatArray | None

    @classmethod
    def of(
        cls, drive: Drive, time: float, batch: Shape, damping: FloatArray, inertia: FloatArray | None
    ) -> Motion:  # fmt: skip
        """Return the motion of samples with starts of a batch shape."""
        outside = drive.at(time)
        what = "The networks, with what acts from outside," if drive.batched else "What acts from outside"
        shape = joint_shape(drive.shape(outside), batch, (what, "a start"))
        rows = np.arange(int(np.prod(shape, dtype=np.int64)))
        parameters = {name: laid_flat(values, shape) for name, values in drive.parameters.items()}
        bare = without_inputs(drive.network, rows.size, parameters)
        first = _acting(drive.network, bare, outside.take(shape, rows))
        # Without damping nothing holds a frequency, and no frame turns with it.
        turning = np.broadcast_to(first.mean / damping.mean() if damping.any() else 0.0, rows.shape)
        return cls(drive, shape, rows, bare, first, turning, damping, inertia)

    @property
    def size(self) -> int:
        """Number of oscillators N."""
        return self.drive.network.size

    @lazy_property
    def held(self) -> IntArray:
        """The oscillators that do not move by themselves: clamped inputs, or a reference that is grounded."""
        network = self.drive.network
        stands = network.clamps_inputs or (network.pinned and network.grounded and not network.reciprocal)
        return network.held if stands else network.held[:0]

    def take(self, rows: IntArray) -> Motion:
        """Return the motion of some of the samples."""
        bare, first, turning = self.bare.take(rows), self.first.take(rows), self.turning[rows]
        return replace(self, rows=self.rows[rows], bare=bare, first=first, turning=turning)

    def name(self, row: int) -> str:
        """Return in words which sample this is: its number, or its place in a batch of several axes."""
        number = int(self.rows[row])
        return str(number if len(self.shape) < 2 else tuple(map(int, np.unravel_index(number, self.shape))))

    def at(self, time: float) -> Acting:
        """Return what acts at a time."""
        if not self.drive.changes:
            return self.first
        outside = self.drive.at(time)
        try:
            mine = outside.take(self.shape, self.rows)
        except ValueError:
            own = [str(each.shape[:-1]) for each in (outside.inputs, outside.target) if each is not None]
            raise ValueError(
                "Functions of time must return one shape at all times. The samples have batch shape "
                f"{self.shape} at the first time, and what acts from outside has {' and '.join(own)} at time {time:g}."
            ) from None
        return _acting(self.drive.network, self.bare, mine)

    def shift(self, acting: Acting) -> FloatArray | None:
        """Return what the uniform turning of the frame adds to the forces, (B, N); None where that is nothing."""
        return None if self._turning is None else acting.mean[:, None] - self._turning

    @lazy_property
    def _turning(self) -> FloatArray | None:
        """What damping makes of the turning of the frame, (B, N); None where it is the mean of all frequencies."""
        uniform = bool(np.all(self.damping == self.damping[0])) and self.damping[0] > 0
        if not self.drive.network.pinned or (uniform and not self.drive.changes):
            return None
        return np.asarray(self.damping * self.turning[:, None])

    def force(self, acting: Acting, phases: FloatArray) -> FloatArray:
        """Return the force on every oscillator, (B, N), in this frame."""
        system, graph = acting.system, self.drive.network.graph
        total = system.own_force(phases)
        shift = self.shift(acting)
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
        acting = self.at(time)
        force = self.force(acting, self.placed(acting, state[:, : self.size]))
        if self.inertia is None:
            rates = force / self.damping
        else:
            speed = state[:, self.size :]
            rates = np.concatenate([speed, (force - self.damping * speed) / self.inertia], axis=1)
        for block in range(0, state.shape[1], self.size):
            rates[:, block + self.held] = 0.0
        return rates

    def placed(self, acting: Acting, phases: FloatArray) -> FloatArray:
        """Return phases with those that are clamped where they are."""
        if not self.drive.network.clamps_inputs:
            return phases
        placed = phases.copy()
        placed[:, self.held] = acting.system.held_phases
        return placed

    def paces(self, times: FloatArray) -> FloatArray:
        """Return how fast every oscillator can change at these times, (b, N), b = 1 where all samples are alike.

        Of relaxation, of oscillation, of turning.
        """
        moments = times.tolist() if self.drive.changes else times[:1].tolist()
        return np.asarray(reduce(np.maximum, (self._paces(self.at(moment).system) for moment in moments)))

    def _paces(self, system: System) -> FloatArray:
        stiff, drive = system.stiffest, np.abs(system.drive)
        if self.inertia is None:
            return np.asarray((stiff + drive) / self.damping)
        # How fast an oscillator that nothing holds would turn, where damping limits it.
        turns = np.divide(drive, self.damping, out=np.zeros_like(drive), where=self.damping > 0)
        return np.asarray(np.sqrt(stiff / self.inertia) + self.damping / self.inertia + turns)

    @lazy_property
    def uncompiled(self) -> str:
        """Why compiled code cannot take the steps; empty where it can."""
        if not COMPILES:
            return "Numba is not installed."
        system = self.first.system
        unknown = [type(term).__name__ for term in system.terms if not term.has_local_field]
        if unknown:
            return f"The term {unknown[0]} does not say how phasors act: has_local_field is False."
        if self.drive.changes:
            return "Inputs or nudge are functions of time."
        return "" if system.pull is None else "A nudge is an arbitrary function of the phases."


def _acting(network: Network, bare: System, outside: Outside) -> Acting:
    """Return what acts on a flat batch: what does at all times, and what does from outside."""
    system = with_inputs(network, bare, outside.inputs)
    if outside.nudge is not None and outside.target is not None:
        system = system.replace(pull=pull_of(network, outside.nudge, outside.target))
    frequencies, mean = input_frequencies(network, outside.inputs), np.zeros(1)
    for term in bare.terms:
        own = term.frame_frequency(bare.graph, bare.values, frequencies)
        if own is not None:
            mean = mean + own
    return Acting(system, mean)
