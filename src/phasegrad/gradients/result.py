"""What every gradient method takes and returns."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad.dynamics import Cost, Shape, System, build_system
from phasegrad.equilibrium import Equilibrium, Status, tolerance_of
from phasegrad.network import Network
from phasegrad.solvers.contract import residual
from phasegrad.validation import BoolArray, FloatArray, IntArray, choice, frozen_array, joint_shape

Array = NDArray[Any]

PARAMETERS = ("omega", "coupling", "field_strength", "field_phase")
FREQUENCIES = ("centred", "raw")
_SEVERITY = {Status.STABLE: 0, Status.UNSTABLE: 1, Status.UNCONVERGED: 2, Status.CANNOT_LOCK: 3}
_BY_SEVERITY = {rank: status for status, rank in _SEVERITY.items()}


class GradientWarning(UserWarning):
    """A gradient that is missing for some samples, or that its nudge has made inaccurate."""


@dataclass(frozen=True, eq=False)
class Gradient:
    """The derivative of the cost with respect to parameters, per sample.

    Parameters that were not asked for are None. A sample whose equilibria did not converge has NaN.

    Attributes
    ----------
    method : str
    frequencies : {"centred", "raw"}
        What ``omega`` is the derivative by: centred frequencies taken as independent (the paper's identity), or
        the raw ones. Where a field or clamped phases fix the frame, frequencies are not centred and the two agree.
    omega : ndarray, shape (..., N), or None
    coupling, coupling_reverse : ndarray, shape (..., E), or None
        By ``network.coupling``: both directions at once if coupling is reciprocal, else each its own.
    field_strength, field_phase : ndarray, shape (..., N), or None
    cost : ndarray, shape (...)
        Of the free equilibrium.
    status : ndarray of Status, shape (...)
        The worst of the equilibria it was made from.
    beta : float or None
        The nudge, where there was one.
    """

    method: str
    frequencies: str
    omega: FloatArray | None
    coupling: FloatArray | None
    coupling_reverse: FloatArray | None
    field_strength: FloatArray | None
    field_phase: FloatArray | None
    cost: FloatArray
    status: NDArray[np.object_]
    beta: float | None

    @property
    def valid(self) -> BoolArray:
        """Where there is a gradient, shape (...)."""
        return np.asarray((self.status == Status.STABLE) | (self.status == Status.UNSTABLE), dtype=bool)

    def get(self, parameter: str) -> FloatArray:
        """Return the gradient by one parameter; both directions of non-reciprocal couplings side by side."""
        choice("parameter", parameter, PARAMETERS, "Gradient.get")
        values: FloatArray | None = getattr(self, parameter)
        if values is None:
            raise ValueError(f"This gradient was not taken by {parameter!r}. Ask for it with wrt={parameter!r}.")
        if parameter == "coupling" and self.coupling_reverse is not None:
            return np.concatenate([values, self.coupling_reverse], axis=-1)
        return values


@dataclass(frozen=True)
class Question:
    """A checked request for a gradient: the flat system, its free phases and targets, and what to derive by."""

    owner: str
    network: Network
    objective: Cost
    shape: Shape
    system: System
    inputs: FloatArray | None
    phases: Array
    nodes: IntArray
    target: Array
    status: NDArray[np.object_]
    wrt: tuple[str, ...]
    frequencies: str

    @property
    def solvable(self) -> IntArray:
        """Rows of the samples that have a free equilibrium."""
        return np.flatnonzero([_SEVERITY[status] < _SEVERITY[Status.UNCONVERGED] for status in self.status])

    @property
    def outputs(self) -> Array:
        """Free phases of the outputs, (B, M)."""
        return np.take(self.phases, self.nodes, axis=1)

    def answer(
        self,
        values: Mapping[str, Array],
        *,
        others: Iterable[Equilibrium] = (),
        ok: BoolArray | None = None,
        beta: float | None = None,
    ) -> Gradient:
        """Return the gradient made of flat per-sample ``values``, NaN where an equilibrium is missing."""
        severity = np.array([_SEVERITY[status] for status in self.status.ravel()], dtype=np.int64)
        for other in others:
            theirs = [_SEVERITY[status] for status in other.status.ravel()]
            severity = np.maximum(severity, np.array(theirs, dtype=np.int64))
        if ok is not None:
            severity[~ok] = np.maximum(severity[~ok], _SEVERITY[Status.UNCONVERGED])
        missing = severity >= _SEVERITY[Status.UNCONVERGED]
        self._warn(severity)
        parts: dict[str, Array | None] = dict.fromkeys((*PARAMETERS, "coupling_reverse"))
        for name, flat in values.items():
            filled = np.where(missing[:, None], np.nan, flat)
            parts[name] = frozen_array(filled.reshape((*self.shape, flat.shape[1])))
        cost = np.where(missing, np.nan, self.objective.cost(self.outputs, self.target))
        status = np.array([_BY_SEVERITY[int(rank)] for rank in severity], dtype=object)
        return Gradient(
            method=self.owner,
            frequencies=self.frequencies,
            cost=frozen_array(cost.reshape(self.shape)),
            status=frozen_array(status.reshape(self.shape)),
            beta=beta,
            **parts,
        )

    def gauge(self, omega: Array) -> Array:
        """Return the gradient by centred frequencies turned into the one that was asked for."""
        if self.frequencies == "raw" and self.network.pinned:
            return omega - omega.mean(axis=1, keepdims=True)
        return omega

    def _warn(self, severity: IntArray) -> None:
        lost = int(np.sum(severity >= _SEVERITY[Status.UNCONVERGED]))
        shaky = int(np.sum(severity == _SEVERITY[Status.UNSTABLE]))
        if lost or shaky:
            warnings.warn(
                f"{self.owner}: of {severity.size} samples {lost} have no gradient because an equilibrium was not "
                f"found, and {shaky} have one at an unstable equilibrium. See the status of the result.",
                GradientWarning,
                stacklevel=4,
            )


def ask(
    owner: str,
    network: Network,
    equilibrium: Equilibrium,
    objective: Cost,
    target: ArrayLike,
    wrt: str | Iterable[str],
    frequencies: str,
) -> Question:
    """Check the arguments that every method shares and lay the batch flat."""
    if not isinstance(network, Network) or not isinstance(equilibrium, Equilibrium):
        raise TypeError(
            f"{owner} takes a Network, then an Equilibrium, then an objective. "
            f"Got {type(network).__name__}, {type(equilibrium).__name__}."
        )
    if equilibrium.phases.shape[-1] != network.size:
        raise ValueError(
            f"The equilibrium has {equilibrium.phases.shape[-1]} oscillators, the network {network.size}. "
            f"Give {owner} the network the equilibrium was found for."
        )
    names = (wrt,) if isinstance(wrt, str) or not isinstance(wrt, Iterable) else tuple(wrt)
    for name in names:
        choice("wrt", name, PARAMETERS, owner)
        if name.startswith("field") and network.field_strength is None:
            raise ValueError(f"{owner} was asked for the gradient by {name!r}, but this network has no field.")
    choice("frequencies", frequencies, FREQUENCIES, owner)
    goal = objective.check_target(target, network)
    own = equilibrium.shape
    words = ("An equilibrium", "targets")
    shape = joint_shape(own, goal.shape[:-1], words, "Give one target per sample, or one for all.")
    system, system_shape = build_system(network, equilibrium.inputs, None)
    samples = np.broadcast_to(np.arange(system.batch).reshape(system_shape), shape).ravel()
    _refuse_stale(owner, system.take(samples), _flat(equilibrium.phases, shape), equilibrium, shape)
    return Question(
        owner=owner,
        network=network,
        objective=objective,
        shape=shape,
        system=system.take(samples),
        inputs=None if equilibrium.inputs is None else _flat(equilibrium.inputs, shape),
        phases=_flat(equilibrium.phases, shape),
        nodes=np.asarray(objective.nodes(network), dtype=np.int64),
        target=_flat(goal, shape),
        status=np.broadcast_to(equilibrium.status, shape).ravel(),
        wrt=names,
        frequencies=frequencies,
    )


def _refuse_stale(owner: str, system: System, phases: Array, equilibrium: Equilibrium, shape: Shape) -> None:
    """Refuse phases that converged in some other network: their force does not vanish in this one."""
    claimed = np.broadcast_to(equilibrium.converged, shape).ravel()
    left = residual(system, system.force(phases))
    stale = claimed & (left > tolerance_of(system, 1e-7, phases))
    if np.any(stale):
        raise ValueError(
            f"{owner} was given phases that are not an equilibrium of this network: the largest force is "
            f"{np.max(left[stale]):.2g}. Call find_equilibrium again after changing a network."
        )


def _flat(values: Array, shape: Shape) -> Array:
    width = values.shape[-1]
    return np.broadcast_to(values, (*shape, width)).reshape(int(np.prod(shape, dtype=np.int64)), width)
