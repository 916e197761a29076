r"""The equations: force, energy and Laplacian of a batch of phases, with or without a nudge.

For oscillator i of a network with couplings K, interaction H and bias field (h, psi), nudged with strength
beta toward lower cost C of the outputs,

    F_i = omega_i + sum_j K_ij H(theta_j - theta_i) + h_i H(psi_i - theta_i) - beta dC/dtheta_i

For reciprocal coupling F = -dE/dtheta with the energy

    E = -sum_i omega_i theta_i + sum_edges K V(theta_j - theta_i) + sum_i h_i V(psi_i - theta_i) + beta C

The Laplacian is minus the Jacobian, L = -dF/dtheta, over the oscillators that move: the reduced Laplacian of
a graph with edge weights K_ij H'(theta_j - theta_i), plus field and nudge on the diagonal. Where neither
field nor clamped phase fixes the frame, omega is centred: the frame turns with the mean frequency.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from phasegrad.network import Network
from phasegrad.sparsity import refuse_dense
from phasegrad.validation import FloatArray, IntArray, joint_shape, last_axis_array

Array = NDArray[Any]
Shape = tuple[int, ...]

# Above this size sums at nodes are counted sample by sample, without the two incidence matrices in memory.
_COUNTED_FROM = 300


class Cost(Protocol):
    """What a nudge needs to know of an objective: its cost, force and Hessian on the phases of the outputs."""

    def nodes(self, network: Network) -> tuple[int, ...]:
        """Nodes whose phases the cost reads."""

    def cost(self, phases: Array, target: Array) -> Array:
        """Cost, shape (...), of output phases (..., M)."""

    def force(self, phases: Array, target: Array) -> Array:
        """Minus the derivative of the cost, shape (..., M)."""

    def hessian(self, phases: Array, target: Array) -> Array:
        """Second derivative of the cost, shape (..., M, M)."""

    def check_target(self, target: ArrayLike, network: Network) -> Array:
        """Return the target as an array with its batch shape in front, or raise ValueError."""


@dataclass(frozen=True)
class Nudge:
    """A weak pull of the outputs down the slope of a cost: the force -beta dC/dtheta.

    Parameters
    ----------
    objective : Cost
        For example `PhaseTargets`.
    target : array_like
        What the objective aims at; its leading shape is broadcast against the inputs.
    beta : float or complex
        Strength. Positive pulls toward the target, negative pushes away, complex serves the holomorphic gradient.
    """

    objective: Cost
    target: ArrayLike
    beta: complex


@dataclass(frozen=True)
class Pull:
    """A nudge laid flat over a batch: on which nodes, toward what (B, M), how strong (B, 1)."""

    cost: Cost
    nodes: IntArray
    target: Array
    beta: Array

    def take(self, rows: Array) -> Pull:
        """Return the pull on some of the samples."""
        return dataclasses.replace(self, target=self.target[rows], beta=self.beta[rows])

    def force(self, phases: Array) -> Array:
        """Return the force on the nudged nodes, (B, M)."""
        return self.beta * self.cost.force(self._outputs(phases), self.target)

    def energy(self, phases: Array) -> Array:
        """Return the energy of the nudge, (B,)."""
        return self.beta[:, 0] * self.cost.cost(self._outputs(phases), self.target)

    def hessian(self, phases: Array) -> Array:
        """Return the second derivative of that energy, (B, M, M)."""
        return self.beta[:, :, None] * self.cost.hessian(self._outputs(phases), self.target)

    def _outputs(self, phases: Array) -> Array:
        return np.take(phases, self.nodes, axis=1)


@dataclass(frozen=True)
class System:
    """The force balance of a flat batch of B samples, ready for a solver.

    Arrays whose first axis is 1 are shared by all samples. Held oscillators sit at ``held_phases``.
    """

    network: Network
    omega: FloatArray
    coupling: FloatArray
    coupling_reverse: FloatArray | None
    field_strength: FloatArray | None
    field_phase: FloatArray | None
    held_phases: FloatArray
    pull: Pull | None = None

    @property
    def batch(self) -> int:
        """Number of samples B."""
        return int(self.omega.shape[0])

    @property
    def has_energy(self) -> bool:
        """Whether the force is minus the gradient of a real energy."""
        return self.network.reciprocal and not self.is_complex

    @property
    def is_complex(self) -> bool:
        """Whether the nudge, and so the equilibrium, is complex."""
        return self.pull is not None and np.iscomplexobj(self.pull.beta)

    @property
    def eigenvalue_rounding(self) -> float:
        """Eigenvalues of the Laplacian below this may be rounding: of its weights, and of any factorisation.

        Twice the largest total coupling, times the slope of the interaction, bounds the norm of the Laplacian.
        """
        strongest = float(np.max(self.network.total_coupling, initial=0.0)) * self.network.interaction.steepness
        return 4 * self.network.free.size * float(np.finfo(float).eps) * 2 * strongest

    def replace(self, **changes: Any) -> System:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def take(self, rows: Array) -> System:
        """Return the system of some of the samples; rows may repeat."""

        def shared(values: Array | None) -> Array | None:
            return values if values is None or values.shape[0] == 1 else values[rows]

        return self.replace(
            omega=self.omega[rows],
            coupling=shared(self.coupling),
            coupling_reverse=shared(self.coupling_reverse),
            field_strength=shared(self.field_strength),
            field_phase=shared(self.field_phase),
            held_phases=self.held_phases[rows],
            pull=None if self.pull is None else self.pull.take(rows),
        )

    def place(self, phases: Array) -> Array:
        """Return phases (B, N) turned into this system's gauge: held oscillators where they are held."""
        placed = phases.astype(np.complex128 if self.is_complex else np.float64)
        if self.network.pinned:
            placed = placed - placed[:, [self.network.reference]]
        placed[:, self.network.held] = self.held_phases
        return placed

    def angles(self, phases: Array) -> Array:
        """Return theta_j - theta_i of every edge, (B, E)."""
        # np.take keeps each sample's row contiguous, so that sums over it round alike in every batch.
        i, j = self.network.edges.T
        return np.take(phases, j, axis=1) - np.take(phases, i, axis=1)

    def force(self, phases: Array) -> Array:
        """Return the force on every oscillator, (B, N); on a held one it is what the holder must balance."""
        pull = self.network.interaction.value(self.angles(phases))
        forward = self.coupling * pull
        backward = forward if self.coupling_reverse is None else self._reverse * pull
        total = self.omega + self._at_ends(forward, -backward)
        if self.field_strength is not None:
            assert self.field_phase is not None
            total = total + self.field_strength * self.network.interaction.value(self.field_phase - phases)
        if self.pull is not None:
            total = total.astype(phases.dtype, copy=True)
            total[:, self.pull.nodes] += self.pull.force(phases)
        return total

    def torque(self, phases: Array) -> Array:
        """Return the force on the oscillators that are held, (B, held): what their holder must balance."""
        network = self.network
        held, outer = network.held, network.outer_edges
        i, j = network.edges[outer].T
        pull = network.interaction.value(np.take(phases, j, axis=1) - np.take(phases, i, axis=1))
        first, second = (matrix[held][:, outer] for matrix in network.incidence)
        total = first @ (self.coupling[:, outer] * pull).T - second @ (self._reverse[:, outer] * pull).T
        torque = np.take(self.omega, held, axis=1) + total.T
        if self.field_strength is not None:
            assert self.field_phase is not None
            bias = self.field_strength * network.interaction.value(self.field_phase - phases)
            torque = torque + np.take(bias, held, axis=1)
        return torque

    def energy(self, phases: Array) -> Array:
        """Return the energy of every sample, (B,). Reciprocal coupling only."""
        bonds = self.coupling * self.network.interaction.potential(self.angles(phases))
        total = np.sum(bonds, axis=1) - np.sum(self.omega * phases, axis=1)
        if self.field_strength is not None:
            assert self.field_phase is not None
            bias = self.field_strength * self.network.interaction.potential(self.field_phase - phases)
            total = total + np.sum(bias, axis=1)
        if self.pull is not None:
            total = total + self.pull.energy(phases)
        return total

    def laplacian(self, phases: Array, *, floor: float | None = None) -> Array:
        """Return the reduced Laplacian of every sample, (B, n, n), over the n oscillators that move.

        With ``floor``, every weight is replaced by its absolute value, at least ``floor`` times the most it can
        be: a positive definite stand-in whose solve is a descent direction where the true one is not.
        """
        forward, backward, diagonal = self._weights(phases, floor)
        inner = self.network.inner_edges
        row, column = self.network.position[self.network.edges[inner]].T
        size = self.network.free.size
        matrix = np.zeros((phases.shape[0], size, size), dtype=phases.dtype)
        matrix[:, row, column] = -forward[:, inner]
        matrix[:, column, row] = -backward[:, inner]
        each = np.arange(size)
        matrix[:, each, each] = diagonal[:, self.network.free]
        if self.pull is not None:
            where = self.network.position[self.pull.nodes]
            curvature = self.pull.hessian(phases)
            if floor is None:
                matrix[:, where[:, None], where[None, :]] += curvature
            else:
                matrix[:, where, where] += np.sum(np.abs(curvature), axis=-1)
        return matrix

    def sparse_laplacian(self, phases: Array, *, floor: float | None = None) -> sparse.csr_array:
        """Return the reduced Laplacian of a batch of one sample in compressed rows; reciprocal coupling only."""
        weights, _, diagonal = self._weights(phases, floor)
        matrix = self.network.pattern.fill(weights[0], diagonal[0])
        if self.pull is None:
            return matrix
        refuse_dense(
            self.pull.nodes.size, "The curvature of a cost", "Nudge fewer outputs, or use the adjoint gradient."
        )
        curvature = self.pull.hessian(phases)[0]
        if floor is not None:
            curvature = np.diag(np.sum(np.abs(curvature), axis=-1))
        row, column = np.nonzero(curvature)
        where = self.network.position[self.pull.nodes].astype(np.int32)
        nudge = sparse.coo_array((curvature[row, column], (where[row], where[column])), shape=matrix.shape)
        return (matrix + nudge).tocsr()

    def edge_weights(self, phases: Array) -> FloatArray:
        """Return K H'(theta_j - theta_i) of every edge, (B, E); reciprocal coupling only."""
        return self.coupling * self.network.interaction.derivative(self.angles(phases))

    def locking_excess(self) -> FloatArray:
        """Return how far each oscillator's |omega| exceeds the most its neighbours can pull, (B, N).

        A positive entry proves that there is no equilibrium. Oscillators for which the test says nothing (held
        ones without a force balance of their own, nudged ones) have minus infinity.
        """
        network = self.network
        strongest = np.abs(self.coupling), np.abs(self._reverse)
        capacity = self._at_ends(*strongest)
        if self.field_strength is not None:
            capacity = capacity + np.abs(self.field_strength)
        capacity = network.interaction.bound * capacity
        excess = np.abs(self.omega) - capacity
        rounding = 1e-12 * (capacity + np.max(np.abs(self.omega), axis=1, keepdims=True, initial=0.0))
        excess = np.where(excess > rounding, excess, -np.inf)
        if self.pull is not None:
            excess[:, self.pull.nodes] = -np.inf
        if network.clamps_inputs or not network.reciprocal or self.pull is not None:
            excess[:, network.held] = -np.inf
        return excess

    @property
    def _reverse(self) -> FloatArray:
        return self.coupling if self.coupling_reverse is None else self.coupling_reverse

    def _weights(self, phases: Array, floor: float | None) -> tuple[Array, Array, Array]:
        """Return the weights of the edges in both directions, (B, E), and the diagonal they and the field make, (B, N).

        With ``floor`` they are replaced as `laplacian` says.
        """
        interaction = self.network.interaction
        slope = interaction.derivative(self.angles(phases))
        forward = self.coupling * slope
        backward = forward if self.coupling_reverse is None else self._reverse * slope
        if floor is not None:
            least = floor * interaction.steepness
            forward = np.maximum(np.abs(forward), least * np.abs(self.coupling))
            backward = np.maximum(np.abs(backward), least * np.abs(self._reverse))
        diagonal = self._at_ends(forward, backward)
        if self.field_strength is not None:
            assert self.field_phase is not None
            bias = self.field_strength * interaction.derivative(self.field_phase - phases)
            if floor is not None:
                bias = np.maximum(np.abs(bias), least * np.abs(self.field_strength))
            diagonal = diagonal + bias
        return forward, backward, diagonal

    def _at_ends(self, on_first: Array, on_second: Array) -> Array:
        """Sum per-edge values (B, E) into the nodes they act on, (B, N)."""
        if self.network.size > _COUNTED_FROM and not np.iscomplexobj(on_first):
            total = np.empty((on_first.shape[0], self.network.size))
            i, j = self.network.edges.T
            for row, first, second in zip(total, on_first, on_second, strict=True):
                row[:] = np.bincount(i, first, row.size)
                row += np.bincount(j, second, row.size)
            return total
        at_first, at_second = self.network.incidence
        return np.ascontiguousarray((at_first @ on_first.T + at_second @ on_second.T).T)


def build_system(network: Network, inputs: ArrayLike | None, nudge: Nudge | None) -> tuple[System, Shape]:
    """Return the flat system of a batch of inputs and targets, and the batch shape they broadcast to."""
    if not isinstance(network, Network):
        raise TypeError(f"Expected a Network. Got {type(network).__name__}.")
    if nudge is not None and not (isinstance(nudge, Nudge) and callable(getattr(nudge.objective, "force", None))):
        raise TypeError(f"The 'nudge' parameter must be a Nudge(objective, target, beta). Got {nudge!r}.")
    data = _checked_inputs(network, inputs)
    shape: Shape = () if data is None else data.shape[:-1]
    target = None
    if nudge is not None:
        target = nudge.objective.check_target(nudge.target, network)
        target_shape = target.shape[: target.ndim - 1]
        shape = joint_shape(
            shape, target_shape, ("Inputs", "targets"), "Give one target per input row, or one for all."
        )
    batch = int(np.prod(shape, dtype=np.int64))

    omega = np.broadcast_to(network.omega, (batch, network.size)).copy()
    rows = None if data is None else np.broadcast_to(data, (*shape, data.shape[-1])).reshape(batch, data.shape[-1])
    held_phases = np.zeros((batch, network.held.size))
    if rows is not None and network.clamps_inputs:
        held_phases = network.input_scale * rows
    elif rows is not None:
        omega[:, list(network.inputs)] = network.input_scale * rows
    if network.pinned:
        omega -= omega.mean(axis=1, keepdims=True)
    system = System(
        network,
        omega,
        network.coupling[None],
        None if network.coupling_reverse is None else network.coupling_reverse[None],
        None if network.field_strength is None else network.field_strength[None],
        None if network.field_phase is None else network.field_phase[None],
        held_phases,
    )
    if nudge is not None and target is not None:
        beta = np.asarray(nudge.beta)
        if beta.ndim or beta.dtype.kind not in "iufc" or not np.isfinite(beta) or beta == 0:
            raise ValueError(f"The 'beta' parameter of Nudge must be a finite number other than 0. Got {nudge.beta!r}.")
        nodes = np.asarray(nudge.objective.nodes(network), dtype=np.int64)
        goals = np.broadcast_to(target, (*shape, target.shape[-1])).reshape(batch, target.shape[-1])
        system = system.replace(pull=Pull(nudge.objective, nodes, goals, np.broadcast_to(beta, (batch, 1))))
    return system, shape


def force(network: Network, phases: ArrayLike, inputs: ArrayLike | None = None) -> FloatArray:
    """Return the force on every oscillator, shape (..., N), of phases (..., N)."""
    system, rows, shape = _at_phases(network, phases, inputs, "force")
    return system.force(rows).reshape((*shape, network.size))


def energy(network: Network, phases: ArrayLike, inputs: ArrayLike | None = None) -> FloatArray:
    """Return the energy, shape (...), of phases (..., N); reciprocal coupling only.

    Examples
    --------
    >>> import phasegrad as pg
    >>> float(pg.energy(pg.ring(4), [0, 0, 0, 0]))
    -4.0
    """
    if not network.reciprocal:
        raise ValueError(
            "This network has no energy: its coupling is not reciprocal. Use the residual of the force instead."
        )
    system, rows, shape = _at_phases(network, phases, inputs, "energy")
    return system.energy(rows).reshape(shape)


def laplacian(network: Network, phases: ArrayLike, inputs: ArrayLike | None = None, *, compressed: bool = False) -> Any:
    """Return the reduced Laplacian over the oscillators ``network.free`` that move.

    Parameters
    ----------
    network : Network
    phases : array_like, shape (..., N)
    inputs : array_like, shape (..., n_in), optional
    compressed : bool
        False gives dense matrices, shape (..., n, n), up to 12,000 oscillators. True gives a `scipy.sparse.csr_array`
        of shape (n, n), for a single sample and reciprocal coupling.

    Examples
    --------
    >>> import numpy as np, phasegrad as pg
    >>> pg.laplacian(pg.ring(4), np.zeros(4)).tolist()
    [[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]]
    >>> pg.laplacian(pg.grid(100, 100), np.zeros(10_000), compressed=True).nnz
    49595
    """
    if not compressed:
        refuse_dense(network.size, "laplacian", "Ask for laplacian(..., compressed=True) instead.")
    system, rows, shape = _at_phases(network, phases, inputs, "laplacian")
    if compressed:
        if shape or not network.reciprocal:
            raise ValueError("laplacian(compressed=True) is for a single sample and reciprocal coupling.")
        return system.sparse_laplacian(rows)
    size = network.free.size
    return system.laplacian(rows).reshape((*shape, size, size))


def wrapped(angle: Array) -> Array:
    """Return angles in [-pi, pi)."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def _checked_inputs(network: Network, inputs: ArrayLike | None) -> FloatArray | None:
    if inputs is None:
        if network.clamps_inputs:
            raise ValueError(
                f"This network clamps the phases of its {len(network.inputs)} inputs: give 'inputs' with a last axis "
                "of that length."
            )
        return None
    if not network.inputs:
        raise ValueError("Inputs were given, but this network has no input oscillators.")
    return last_axis_array("inputs", inputs, len(network.inputs), "the network's inputs", "find_equilibrium")


def _at_phases(
    network: Network, phases: ArrayLike, inputs: ArrayLike | None, owner: str
) -> tuple[System, FloatArray, Shape]:
    array = last_axis_array("phases", phases, network.size, "one phase per oscillator", owner)
    system, own = build_system(network, inputs, None)
    shape = joint_shape(own, array.shape[:-1], ("Inputs", "phases"))
    rows = np.broadcast_to(array, (*shape, network.size)).reshape(-1, network.size)
    samples = np.broadcast_to(np.arange(system.batch).reshape(own), shape).ravel()
    return system.take(samples), rows, shape
