"""What every gradient method takes and returns."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray, choice, counted, frozen_array, joint_shape
from phasegrad.dynamics import Shape, System, build_system
from phasegrad.equilibria import Equilibrium, Status, tolerance_of
from phasegrad.networks import Network
from phasegrad.objectives import Cost, check_cost
from phasegrad.solvers import residual
from phasegrad.terms import Term

FREQUENCIES = ("relative", "raw")
# From good to bad; from here on there is no equilibrium.
_STATUSES = list(Status)
_LOST = _STATUSES.index(Status.UNCONVERGED)
_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)


class GradientWarning(UserWarning):
    """A gradient that is missing for some samples, or that its nudge has made inaccurate."""


@dataclass(frozen=True, eq=False)
class Gradient:
    """The derivative of the cost with respect to parameters, per sample.

    A sample whose equilibria did not converge has NaN.

    Attributes
    ----------
    method : str
    frequencies : {"relative", "raw"}
        What ``omega`` is the derivative by: frequencies relative to their mean, each taken as independent (the paper's
        identity), or the raw ones. Where a field or clamped phases fix the frame the two agree.
    values : mapping of str to ndarray, shape (..., width)
        The gradient by every parameter that was asked for; each is an attribute too: ``gradient.omega``.
    cost : ndarray, shape (...)
        Of the free equilibrium.
    status : ndarray of Status, shape (...)
        The worst of the equilibria it was made from.
    beta : float or None
        The nudge, where there was one.
    """

    method: str
    frequencies: str
    values: Mapping[str, FloatArray]
    cost: FloatArray
    status: NDArray[np.object_]
    beta: float | None

    @property
    def valid(self) -> BoolArray:
        """Where there is a gradient, shape (...)."""
        return np.asarray((self.status == Status.STABLE) | (self.status == Status.UNSTABLE), dtype=bool)

    def __getitem__(self, parameter: str) -> FloatArray:
        """Return the gradient by one parameter."""
        if parameter not in self.values:
            raise KeyError(f"This gradient was not taken by {parameter!r}. Ask for it with wrt={parameter!r}.")
        return self.values[parameter]

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("values", {})
        if name in values:
            return values[name]
        raise AttributeError(f"This gradient was not taken by {name!r}. Ask for it with wrt={name!r}.")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "values": dict(self.values)}

    def __str__(self) -> str:
        lines = [f"gradient by {self.method} of {counted(self.cost.size, 'sample')}"]
        for name, slope in self.values.items():
            lines.append(f"  {name:<16} shape {slope.shape}, largest {np.nanmax(np.abs(slope), initial=0.0):.3g}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Question:
    """A checked request for a gradient: the flat system, its free phases and targets, and what to derive by.

    ``turned`` says that the method turns raw frequencies itself.
    """

    owner: str
    network: Network
    objective: Cost
    shape: Shape
    system: System
    phases: Array
    nodes: IntArray
    target: Array
    status: NDArray[np.object_]
    wrt: tuple[str, ...]
    frequencies: str
    turned: bool = False

    @property
    def solvable(self) -> IntArray:
        """Rows of the samples that have a free equilibrium."""
        return np.flatnonzero(_severity(self.status) < _LOST)

    @property
    def places(self) -> IntArray:
        """Where the outputs stand among the oscillators that move, (M,)."""
        return self.network.graph.position[self.nodes]

    @property
    def outputs(self) -> Array:
        """Free phases of the outputs, (B, M)."""
        return np.take(self.phases, self.nodes, axis=1)

    def answer(
        self, values: Mapping[str, Array], *, others: Iterable[Equilibrium] = (), ok: BoolArray | None = None,
        beta: float | None = None,
    ) -> Gradient:  # fmt: skip
        """Return the gradient made of flat per-sample ``values``, NaN where an equilibrium is missing."""
        severity = np.max([_severity(each) for each in (self.status, *(other.status for other in others))], axis=0)
        if ok is not None:
            severity[~ok] = np.maximum(severity[~ok], _LOST)
        missing = severity >= _LOST
        lost, shaky = int(np.sum(missing)), int(np.sum(severity == _STATUSES.index(Status.UNSTABLE)))
        if lost or shaky:
            warn(
                f"{self.owner}: of {severity.size} samples {lost} have no gradient because an equilibrium was not "
                f"found, and {shaky} have one at an unstable equilibrium. Rows without a gradient are NaN: leave them "
                "out of sums, gradient.omega[gradient.valid]; gradient.status says what became of each."
            )
        parts = {}
        for name in self.wrt:
            slope = values[name]
            if self.frequencies == "raw" and not self.turned:
                slope = self.network.term_of(name)[0].raw_slope(self.network.graph, name, slope)
            filled = np.where(missing[:, None], np.nan, slope)
            parts[name] = frozen_array(filled.reshape((*self.shape, slope.shape[1])))
        cost = np.where(missing, np.nan, self.objective.cost(self.outputs, self.target))
        status = np.array([_STATUSES[rank] for rank in severity], dtype=object)
        cost, status = (frozen_array(each.reshape(self.shape)) for each in (cost, status))
        return Gradient(self.owner, self.frequencies, MappingProxyType(parts), cost, status, beta)

    @property
    def terms(self) -> list[Term]:
        """The terms whose parameters are asked for."""
        return [term for term in self.network.terms if any(each.name in self.wrt for each in term.parameters)]


@contextmanager
def unwarned() -> Iterator[None]:
    """Keep quiet the warnings of gradients asked for inside, on this thread alone."""
    before = _QUIET.set(True)
    try:
        yield
    finally:
        _QUIET.reset(before)


def warn(message: str) -> None:
    """Warn where the package was called, so that every caller hears it."""
    if _QUIET.get():
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("phasegrad."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, GradientWarning, stacklevel=level)


def ask(
    owner: str, network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike,
    wrt: str | Iterable[str], frequencies: str, *, turned: bool = False,
) -> Question:  # fmt: skip
    """Check the arguments that every method shares and lay the batch flat."""
    given = network, equilibrium, objective
    if not all(isinstance(each, kind) for each, kind in zip(given, (Network, Equilibrium, Cost), strict=True)):
        kinds = ", ".join(each.__name__ if isinstance(each, type) else type(each).__name__ for each in given)
        raise TypeError(
            f"{owner} takes a Network, then an Equilibrium, then an objective such as PhaseTargets() or a subclass of "
            f"Cost of your own. Got {kinds}{' (a class: call it)' if isinstance(objective, type) else ''}."
        )
    if equilibrium.phases.shape[-1] != network.size:
        raise ValueError(
            f"The equilibrium has {equilibrium.phases.shape[-1]} oscillators, the network {network.size}. "
            f"Give {owner} the network the equilibrium was found for."
        )
    names = (wrt,) if isinstance(wrt, str) or not isinstance(wrt, Iterable) else tuple(wrt)
    for name in names:
        choice("wrt", name, network.parameters, f"{owner} for this network")
    choice("frequencies", frequencies, FREQUENCIES, owner)
    goal = objective.check_target(target, network)
    words = ("An equilibrium", "targets")
    shape = joint_shape(equilibrium.shape, goal.shape[:-1], words, "Give one target per sample, or one for all.")
    system, own = build_system(network, equilibrium.inputs, workspace=equilibrium.workspace_of(network))
    system = system.take(np.broadcast_to(np.arange(system.batch).reshape(own), shape).ravel())
    phases, nodes = _flat(equilibrium.phases, shape), np.asarray(objective.nodes(network), dtype=np.int64)
    _refuse_stale(owner, system, phases, equilibrium, shape)
    target, status = _flat(goal, shape), np.broadcast_to(equilibrium.status, shape).ravel()
    check_cost(objective, np.take(phases.real, nodes, axis=1), target, owner)
    return Question(owner, network, objective, shape, system, phases, nodes, target, status, names, frequencies, turned)


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


def _severity(status: NDArray[np.object_]) -> IntArray:
    return np.array([_STATUSES.index(each) for each in status.ravel()], dtype=np.int64)


def _flat(values: Array, shape: Shape) -> Array:
    width = values.shape[-1]
    return np.broadcast_to(values, (*shape, width)).reshape(int(np.prod(shape, dtype=np.int64)), width)
