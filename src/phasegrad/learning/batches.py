r"""One mini-batch: free equilibria, nudged equilibria, and the mean gradient they give, by matrix products.

For equilibrium propagation every gradient is a difference of local slopes of the energy between nudged states,
weighted and summed over the samples b. For couplings that sum is a product of matrices,

    sum_b w_b cos(theta_i - theta_j) = (C^T W C + S^T W S)_ij,      C = cos theta, S = sin theta, W = diag w

so no array of samples times edges is ever made. The adjoint gradient, sum_b w_b (lambda_i - lambda_j) sin(theta_j -
theta_i), is put together in the same way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phasegrad.dynamics import Pull, System, build_system
from phasegrad.interactions import Sine
from phasegrad.network import Network
from phasegrad.objectives import ClassObjective
from phasegrad.solvers import BatchNewton
from phasegrad.solvers.batch import solve_laplacian
from phasegrad.solvers.dense import DenseSystem
from phasegrad.solvers.linear import is_positive_definite
from phasegrad.stability import surely_stable
from phasegrad.validation import BoolArray, FloatArray

Array = NDArray[Any]

GRADIENTS = ("centred", "two_phase", "adjoint")
_TOLERANCE = 1e-7
_STRAGGLERS = 0.25
_FREE = BatchNewton(fallback=False)
_NUDGED = BatchNewton(follow=True, fallback=False)


@dataclass(frozen=True, eq=False)
class Settled:
    """Free equilibria of a mini-batch: the system, its dense form, phases (B, n) that move, and which are locked."""

    system: System
    dense: DenseSystem
    phases: FloatArray
    locked: BoolArray

    @property
    def full(self) -> FloatArray:
        """Phases of all oscillators, (B, N)."""
        return full_phases(self.system, self.phases)


def require_batches(network: Network) -> None:
    """Raise ValueError unless matrix products can stand for this network's forces."""
    if type(network.interaction) is not Sine or not network.reciprocal:
        raise ValueError(
            "Learning in mini-batches takes networks with reciprocal sine coupling. Train others with train_many."
        )


def parameters_of(network: Network, learn: tuple[str, ...]) -> dict[str, FloatArray]:
    """Return copies of the parameters that learn."""
    return {name: np.array(getattr(network, name)) for name in learn}


def batch_system(network: Network, parameters: Mapping[str, FloatArray], inputs: FloatArray) -> System:
    """Return the system of a batch of inputs under other parameters than the network's own.

    Made without building a new network, whose checks would cost more than the equilibria.
    """
    system, _ = build_system(network, inputs, None)
    changes: dict[str, Any] = {name: values[None] for name, values in parameters.items() if name != "omega"}
    if "omega" in parameters:
        moved = parameters["omega"] - network.omega
        if not network.clamps_inputs:
            moved[list(network.inputs)] = 0.0
        changes["omega"] = system.omega + (moved - moved.mean() if network.pinned else moved)
    return system.replace(**changes)


def settle_batch(system: System, floor: float, start: FloatArray | None = None) -> Settled:
    """Settle every sample from phase zero, or from ``start`` (B, n), and say which end up locked.

    Locked means: the force vanishes and every eigenvalue of the reduced Laplacian is above ``floor``. Single
    samples that the matrix products leave unsettled are not locked, and the caller counts them. Where from zero a
    quarter of a batch or more is left, as on lattices, the method and not the samples is at fault, and guarded Newton
    takes them one by one. A start is a state to stay with: the state of another branch would not do.
    """
    dense = DenseSystem.of(system)
    first = np.zeros_like(dense.omega) if start is None else start
    phases, left, _ = _FREE.settle(dense, first, np.full(dense.batch, _TOLERANCE))
    lost = np.flatnonzero(~(left <= _TOLERANCE))
    if lost.size > _STRAGGLERS * dense.batch and start is None:
        part = system.take(lost)
        again = _FREE.descend.solve(part, full_phases(part, first[lost]), np.full(lost.size, _TOLERANCE))
        phases[lost], left[lost] = np.take(again.phases, system.network.free, axis=1), again.residual
    locked = left <= _TOLERANCE
    locked[locked] = _margin_above(system, dense, phases, floor, np.flatnonzero(locked))
    return Settled(system, dense, phases, locked)


def nudge_batch(settled: Settled, objective: ClassObjective, target: Array, beta: Array) -> tuple[FloatArray, Array]:
    """Return phases (B, n) under a nudge of strength beta (B, 1) and whether each was found, from the free ones."""
    network = settled.system.network
    nodes = network.position[list(objective.nodes(network))]
    dense = dataclasses.replace(settled.dense, pull=Pull(objective, nodes, target, beta))
    phases, left, _ = _NUDGED.settle(dense, settled.phases, np.full(dense.batch, _TOLERANCE))
    return phases, left <= _TOLERANCE


def mean_gradient(
    settled: Settled,
    objective: ClassObjective,
    target: Array,
    weights: FloatArray,
    *,
    wrt: tuple[str, ...],
    method: str = "centred",
    beta: float = 0.1,
) -> tuple[dict[str, FloatArray], BoolArray]:
    """Return the gradient of the weighted mean cost by every parameter, and which samples took part.

    Parameters
    ----------
    settled : Settled
    objective : ClassObjective
    target : ndarray, shape (B, M)
        Rows of ``objective.table``.
    weights : ndarray, shape (B,)
        Samples that are not locked, or whose nudged states are not found, take no part; the others' weights are
        brought to a sum of 1.
    wrt : tuple of str
        Any of "omega" (raw frequencies), "coupling", "field_strength", "field_phase".
    method : {"centred", "two_phase", "adjoint"}
    beta : float
        The nudge.
    """
    rows = np.flatnonzero(settled.locked)
    part = Settled(settled.system.take(rows), settled.dense.take(rows), settled.phases[rows], settled.locked[rows])
    goal = target[rows]
    used = settled.locked.copy()
    if method == "adjoint":
        response, found = _adjoint_response(part, objective, goal)
    else:
        signs = (1.0, -1.0) if method == "centred" else (1.0,)
        stacked = np.tile(np.arange(rows.size), len(signs))
        strength = np.repeat(np.array(signs), rows.size)[:, None] * beta
        many = Settled(part.system, part.dense.take(stacked), part.phases[stacked], part.locked[stacked])
        nudged, each = nudge_batch(many, objective, goal[stacked], strength)
        found = np.all(each.reshape(len(signs), rows.size), axis=0)
    used[rows[~found]] = False
    share = np.where(found, weights[rows], 0.0)
    share = share / max(float(share.sum()), 1e-300)
    if method == "adjoint":
        return _local_products(part, response, share, wrt), used
    other = nudged[rows.size :] if method == "centred" else part.phases
    span = 2 * beta if method == "centred" else beta
    gradient = {
        name: (_energy_slope(part, nudged[: rows.size], share, name) - _energy_slope(part, other, share, name)) / span
        for name in wrt
    }
    return _in_gauge(part, gradient), used


def full_phases(system: System, moving: FloatArray) -> FloatArray:
    """Return phases of all oscillators, (B, N), from those that move, (B, n)."""
    phases = np.empty((system.batch, system.network.size))
    phases[:, system.network.held] = system.held_phases
    phases[:, system.network.free] = moving
    return phases


def _margin_above(system: System, dense: DenseSystem, phases: FloatArray, floor: float, rows: Array) -> BoolArray:
    part = dense.take(rows)
    if part.eliminates_cheaply:
        return part.exceeds(part.state(phases[rows]), floor)
    some = system.take(rows)
    whole = full_phases(some, phases[rows])
    if floor <= some.eigenvalue_rounding:
        sure = surely_stable(some, whole)
        if np.all(sure):
            return sure
    return is_positive_definite(some.laplacian(whole), floor)


def _energy_slope(settled: Settled, moving: FloatArray, share: FloatArray, name: str) -> FloatArray:
    """Return the weighted sum of dE/dp over the samples, for one array of parameters."""
    system = settled.system
    phases = full_phases(system, moving)
    if name == "omega":
        return -(share @ phases)
    if name == "coupling":
        i, j = system.network.edges.T
        cos, sin = np.cos(phases), np.sin(phases)
        return -((share[:, None] * cos).T @ cos + (share[:, None] * sin).T @ sin)[i, j]
    assert system.field_strength is not None
    assert system.field_phase is not None
    if name == "field_strength":
        return -(share @ np.cos(system.field_phase - phases))
    return np.asarray(share @ (system.field_strength * np.sin(system.field_phase - phases)))


def _adjoint_response(settled: Settled, objective: ClassObjective, target: Array) -> tuple[FloatArray, BoolArray]:
    """Return lambda = L^-1 dC/dtheta of every sample, (B, N)."""
    network = settled.system.network
    nodes = network.position[list(objective.nodes(network))]
    state = settled.dense.state(settled.phases)
    slope = np.zeros_like(settled.phases)
    slope[:, nodes] = -objective.force(settled.phases[:, nodes], target)
    moving, found = solve_laplacian(settled.dense, state, slope)
    response = np.zeros((settled.system.batch, network.size))
    response[:, network.free] = moving
    return response, found


def _local_products(
    settled: Settled, response: FloatArray, share: FloatArray, wrt: tuple[str, ...]
) -> dict[str, FloatArray]:
    """Return the weighted sum of lambda . dF/dp over the samples."""
    system, phases = settled.system, settled.full
    weighted = share[:, None] * response
    values: dict[str, FloatArray] = {}
    if "omega" in wrt:
        values["omega"] = weighted.sum(axis=0)
    if "coupling" in wrt:
        i, j = system.network.edges.T
        cos, sin = np.cos(phases), np.sin(phases)
        turned = (weighted * cos).T @ sin - (weighted * sin).T @ cos
        values["coupling"] = turned[i, j] + turned[j, i]
    for name in ("field_strength", "field_phase"):
        if name in wrt:
            assert system.field_strength is not None
            assert system.field_phase is not None
            angle = system.field_phase - phases
            slope = np.sin(angle) if name == "field_strength" else system.field_strength * np.cos(angle)
            values[name] = np.sum(weighted * slope, axis=0)
    return _in_gauge(settled, values)


def _in_gauge(settled: Settled, gradient: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Turn the gradient by centred frequencies into that by raw ones, which are what learns."""
    if "omega" in gradient and settled.system.network.pinned:
        gradient["omega"] = gradient["omega"] - gradient["omega"].mean()
    return gradient
