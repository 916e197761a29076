"""What every gradient method is asked, checked and laid flat, and how its values become an answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray, choice, frozen_array, joint_shape
from phasegrad.dynamics import Shape, System, build_system
from phasegrad.equilibria import Equilibrium, Status, tolerance_of
from phasegrad.gradients._gradient import Gradient, warn
from phasegrad.graphs import lazy_property
from phasegrad.linearised import Linearised, linearise, parts
from phasegrad.networks import Network
from phasegrad.objectives import Cost, check_cost
from phasegrad.solvers import residual
from phasegrad.terms import Term

FREQUENCIES = ("relative", "raw")
#: What a nudged network may be given so that its shift is the adjoint response; see `System.corrected`.
CORRECTIONS = ("none", "asymmetric")
#: The name of the data in ``wrt``, beside the names of parameters; no parameter may be called so.
INPUTS = "inputs"
# What became of a sample, from good to bad; from `_LOST` on there is no equilibrium.
_SEVERITIES = {
    Status.STABLE: 0,
    Status.MARGINAL: 1,
    Status.UNPROVED: 2,
    Status.UNSTABLE: 3,
    Status.UNCONVERGED: 4,
    Status.CANNOT_LOCK: 5,
}
_LOST = _SEVERITIES[Status.UNCONVERGED]
_BY_SEVERITY = {severity: status for status, severity in _SEVERITIES.items()}


@dataclass(frozen=True)
class Problem:
    """A checked request for a gradient: the flat system, its free phases and targets, and the names of parameters.

    ``inputs`` (B, n_in) are the data, None where the equilibrium was found without any. ``turned`` is True for a method
    that perturbs raw frequencies itself. ``correction`` is what the network is given while it is nudged. ``known`` is
    what the equilibrium carries of its Laplacians.
    """

    owner: str
    network: Network
    objective: Cost
    shape: Shape
    system: System
    phases: Array
    nodes: IntArray
    target: Array
    inputs: FloatArray | None
    status: NDArray[np.object_]
    wrt: tuple[str, ...]
    frequencies: str
    turned: bool = False
    correction: str = "none"
    known: Linearised | None = None

    @lazy_property
    def responding(self) -> System:
        """The system as a nudge meets it: with its correction, where one was asked for."""
        return self.system if self.correction == "none" else self.system.corrected(self.phases)

    @lazy_property
    def linearised(self) -> Linearised:
        """The Laplacian at the free equilibria, factored once. All samples are kept in memory: see `parts`."""
        return linearise(self.system, self.phases) if self.known is None else self.known

    @lazy_property
    def response(self) -> Linearised:
        """The Laplacian at the free equilibria as a nudge meets it; see `responding`."""
        return self.linearised if self.correction == "none" else linearise(self.responding, self.phases)

    @property
    def parts(self) -> list[tuple[IntArray, Problem]]:
        """Rows, and the problem of these rows, a part of the batch at a time: its Laplacians fit into memory."""
        rows = parts(self.system)
        if len(rows) < 2:
            return [(np.arange(self.system.batch), self)]
        return [(some, self.take(some)) for some in rows]

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

    def take(self, rows: IntArray) -> Problem:
        """Return the problem of some of the samples, flat."""
        return dataclasses.replace(
            self, shape=(rows.size,), system=self.system.take(rows), phases=self.phases[rows], target=self.target[rows],
            inputs=None if self.inputs is None else self.inputs[rows], status=self.status[rows],
            known=None if self.known is None else self.known.take(rows),
        )  # fmt: skip

    def slope(self, phases: Array) -> Array:
        """Return the derivative of the cost by the phases of all oscillators, (B, N), at any phases (B, N)."""
        slope = np.zeros_like(phases)
        slope[:, self.nodes] = -self.objective.force(np.take(phases, self.nodes, axis=1), self.target)
        return slope

    def in_units(self, name: str, slope: Array) -> Array:
        """Return slopes (B, width) by what the force is given, turned into those that were asked for."""
        return slope if self.turned else in_units(self.network, name, slope, self.frequencies)

    def collected(self, slopes: Mapping[str, Array]) -> dict[str, Array]:
        """Return slopes of every node or edge as those of the parameters asked for; see `collected`."""
        return collected(self.network, self.wrt, slopes)

    def answer(
        self,
        values: Mapping[str, Array],
        errors: Mapping[str, Array],
        *,
        others: Iterable[Equilibrium] = (),
        ok: BoolArray | None = None,
        beta: float | None = None,
        reason: str = "",
    ) -> Gradient:
        """Return the gradient made of flat per-sample ``values``, NaN where an equilibrium is missing.

        ``errors`` are in the units that were asked for; empty, the gradient states no error. ``reason`` says why a
        sample that is not ``ok`` may be missing.
        """
        severity = np.max([_severity(each) for each in (self.status, *(other.status for other in others))], axis=0)
        if ok is not None:
            severity[~ok] = np.maximum(severity[~ok], _LOST)
        missing = severity >= _LOST
        lost, shaky = int(np.sum(missing)), int(np.sum((severity > 0) & ~missing))
        if lost or shaky:
            warn(
                f"{self.owner}: of {severity.size} samples {lost} have no gradient because an equilibrium was not "
                f"found, and {shaky} have one at an equilibrium that is not stable. Rows without a gradient are NaN: "
                "leave them out of sums, gradient.omega[gradient.valid]; gradient.status says what became of each."
                + (f" {reason}" if lost and reason else "")
            )

        def shaped(flat: Array) -> Array:
            filled = np.where(missing[:, None], np.nan, flat)
            return frozen_array(filled.reshape((*self.shape, flat.shape[1])))

        parts = MappingProxyType({name: shaped(self.in_units(name, values[name])) for name in self.wrt})
        stated = MappingProxyType({name: shaped(each) for name, each in errors.items()})
        cost = np.where(missing, np.nan, self.objective.cost(self.outputs, self.target))
        status = np.array([_BY_SEVERITY[rank] for rank in severity], dtype=object)
        cost, status = (frozen_array(each.reshape(self.shape)) for each in (cost, status))
        return Gradient(self.owner, self.frequencies, parts, stated, cost, status, beta)

    def width(self, name: str) -> int:
        """Return how many entries the gradient of this name has."""
        return len(self.network.inputs) if name == INPUTS else int(self.network.parameters[name].size)


def asked_terms(network: Network, wrt: Sequence[str]) -> list[Term]:
    """Return the terms whose parameters are asked for, or through which data enters where that is asked for."""
    driven = INPUTS in wrt and not network.clamps_inputs
    return [
        term for term in network.terms if (driven and term.drives) or any(each.name in wrt for each in term.parameters)
    ]


def collected(network: Network, wrt: Sequence[str], slopes: Mapping[str, Array]) -> dict[str, Array]:
    """Return slopes of every node or edge as those of the parameters asked for, which some of them may share.

    Those by the data, of which nothing is shared, stay as they are.
    """
    sharing, term_of = network.graph.sharing, network.term_of
    return {
        name: slopes[name] if name == INPUTS else sharing.collect(term_of(name)[1].on, slopes[name]) for name in wrt
    }


def in_units(network: Network, name: str, slope: Array, frequencies: str) -> Array:
    """Return slopes (B, width) by what the force is given, turned into those by raw frequencies where these are meant.

    Those by the data are by what one turns as they are.
    """
    if frequencies == "raw" and name != INPUTS:
        return network.term_of(name)[0].raw_slope(network.graph, name, slope)
    return slope


def pose(
    owner: str, network: Network, equilibrium: Equilibrium, objective: Cost, target: ArrayLike,
    wrt: str | Iterable[str], frequencies: str, *, turned: bool = False, correction: str = "none",
) -> Problem:  # fmt: skip
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
    names = asked_names(owner, network, wrt, frequencies, data=equilibrium.inputs is not None)
    choice("correction", correction, CORRECTIONS, owner)
    goal = objective.check_target(target, network)
    words = ("An equilibrium", "targets")
    shape = joint_shape(equilibrium.shape, goal.shape[:-1], words, "Give one target per sample, or one for all.")
    phases, nodes = _flat(equilibrium.phases, shape), np.asarray(objective.nodes(network), dtype=np.int64)
    system, known = _flat_system(owner, network, equilibrium, shape, phases)
    target, status = _flat(goal, shape), np.broadcast_to(equilibrium.status, shape).ravel()
    check_cost(objective, np.take(phases.real, nodes, axis=1), target, owner)
    data = None if equilibrium.inputs is None else _flat(equilibrium.inputs, shape)
    return Problem(
        owner, network, objective, shape, system, phases, nodes, target, data, status, names, frequencies, turned,
        correction, known,
    )  # fmt: skip


def _flat_system(
    owner: str, network: Network, equilibrium: Equilibrium, shape: Shape, phases: Array
) -> tuple[System, Linearised | None]:
    """Return the system of a flat batch, and the Laplacians that the equilibrium carries where they are this network's.

    Of another network than the one it was found for the phases are refused where they are no equilibrium.
    """
    known = equilibrium.certified_for(network)
    if known is not None and known.system.pull is None:
        if shape == equilibrium.shape:
            return known.system, known
        rows = np.broadcast_to(np.arange(known.system.batch).reshape(equilibrium.shape), shape).ravel()
        return known.system.take(rows), known.take(rows)
    system, own = build_system(network, equilibrium.inputs, workspace=equilibrium.workspace_of(network))
    system = system.take(np.broadcast_to(np.arange(system.batch).reshape(own), shape).ravel())
    _refuse_stale(owner, system, phases, equilibrium, shape)
    return system, None


def asked_names(
    owner: str, network: Network, wrt: str | Iterable[str], frequencies: str, *, data: bool
) -> tuple[str, ...]:
    """Return the checked names of ``wrt``; ``data`` says whether the phases were found for data."""
    names = (wrt,) if isinstance(wrt, str) or not isinstance(wrt, Iterable) else tuple(wrt)
    for name in names:
        if isinstance(name, str) and name == INPUTS:
            _check_inputs(owner, network, data)
        else:
            allowed = [*network.parameters, *[INPUTS] * bool(network.inputs)]
            choice("wrt", name, allowed, f"{owner} for this network")
    choice("frequencies", frequencies, FREQUENCIES, owner)
    return names


def _check_inputs(owner: str, network: Network, data: bool) -> None:
    """Refuse a gradient with respect to data that the network does not take, or that the equilibrium was not given."""
    if not network.inputs:
        raise ValueError(
            f"{owner} was asked for the gradient by 'inputs', but this network has none. Name them in the Network: "
            "Network(..., inputs=[...])."
        )
    if not data:
        raise ValueError(
            f"{owner} was asked for the gradient by 'inputs', but the equilibrium was found without any, at the "
            "network's own frequencies. Give them: find_equilibrium(network, inputs); or ask for wrt='omega'."
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


def _severity(status: NDArray[np.object_]) -> IntArray:
    return np.array([_SEVERITIES[each] for each in status.ravel()], dtype=np.int64)


def _flat(values: Array, shape: Shape) -> Array:
    width = values.shape[-1]
    return np.broadcast_to(values, (*shape, width)).reshape(int(np.prod(shape, dtype=np.int64)), width)
