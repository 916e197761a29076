r"""The equations: force, energy and Laplacian of a batch of phases, with or without a nudge.

For a network whose terms have forces F_t and energies E_t, nudged with strength beta toward lower cost C of the
outputs,

    F = sum_t F_t - beta dC/dtheta,      E = sum_t E_t + beta C,      F = -dE/dtheta where coupling is reciprocal

The Laplacian is minus the Jacobian, L = -dF/dtheta, over the oscillators that move: the reduced Laplacian of
a graph with the terms' edge weights, plus what terms and nudge put on the diagonal.

Without reciprocity the forces do not sum to zero, and a locked network turns at a common frequency of its own, F_i =
Omega for every i. Where nothing ties it to the frame that frequency is an unknown; counting every force from that on
the reference eliminates it,

    F_i - F_r = 0,      L_ij - L_rj,      i, j other than the reference r

and what comes out does not depend on which oscillator is the reference. The reaction of a nudge, whose cost is one of
phases counted from the reference, acts on the reference.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray, joint_shape, last_axis_array
from phasegrad.graphs import Graph, lazy_property, refuse_dense
from phasegrad.networks import Network
from phasegrad.objectives import Cost
from phasegrad.terms import Term, Values

Shape = tuple[int, ...]

_EPS = float(np.finfo(float).eps)


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


class Workspace:
    """What solvers keep between calls about one network, each under a name of its own.

    It holds nothing but functions of the network's graph and parameters, so that no result depends on what was asked
    before.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Any] = {}

    def __reduce__(self) -> tuple[type[Workspace], tuple[()]]:
        """Leave it behind where a system is copied or written: it can be made again."""
        return Workspace, ()

    def keep(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what is kept under a name, made when it is first asked for."""
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]


@dataclass(frozen=True, eq=False)
class System:
    """The force balance of a flat batch of B samples, ready for a solver.

    Values of parameters have shape (1, width), shared by all samples, or (B, width). Held oscillators sit at
    ``held_phases`` (B, held).
    """

    graph: Graph
    terms: tuple[Term, ...]
    values: Values
    held_phases: FloatArray
    pull: Pull | None = None
    workspace: Workspace = field(default_factory=Workspace, repr=False)

    @property
    def batch(self) -> int:
        """Number of samples B."""
        return int(self.held_phases.shape[0])

    @property
    def reciprocal(self) -> bool:
        """Whether the Laplacian is symmetric."""
        return all(term.symmetric for term in self.terms)

    @property
    def drifts(self) -> bool:
        """Whether the network turns at a common frequency of its own, which is part of the solution."""
        return self.graph.pinned and not self.graph.grounded and not self.reciprocal

    @property
    def has_energy(self) -> bool:
        """Whether the force is minus the gradient of a real energy."""
        return self.reciprocal and not self.is_complex

    @property
    def is_complex(self) -> bool:
        """Whether the nudge, and so the equilibrium, is complex."""
        return self.pull is not None and np.iscomplexobj(self.pull.beta)

    @lazy_property
    def shared(self) -> bool:
        """Whether all samples have the same parameters, but for what drives them."""
        return all(self.values[p.name].shape[0] == 1 for term in self.terms for p in term.parameters if not term.drives)

    @lazy_property
    def capacity(self) -> FloatArray:
        """The most that all terms together can pull each oscillator, (b, N)."""
        return self._kept("capacity", self._make_capacity)

    def _make_capacity(self) -> FloatArray:
        held = [most for term in self.terms if (most := term.capacity(self.graph, self.values)) is not None]
        return np.zeros((1, self.graph.size)) if not held else np.asarray(sum(held))

    @lazy_property
    def drive(self) -> FloatArray:
        """The force that does not depend on phases, (b, N)."""
        driven = [force for term in self.terms if (force := term.drive(self.graph, self.values)) is not None]
        return np.zeros((1, self.graph.size)) if not driven else np.asarray(sum(driven))

    @lazy_property
    def stiffest(self) -> FloatArray:
        """The most that the diagonal of the Laplacian can be, (b, N), the nudge left aside."""
        return self._kept("stiffest", self._make_stiffest)

    def _kept(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what follows from parameters that all samples share, once; what does not, anew."""
        return self.workspace.keep(name, make) if self.shared else make()

    def _make_stiffest(self) -> FloatArray:
        if all(term.phasor for term in self.terms):
            # A sine is as steep as it is high.
            return self.capacity
        forward, backward, diagonal = self._summed([term.stiffest(self.graph, self.values) for term in self.terms])
        return np.asarray(self.graph.at_ends(forward, backward) + diagonal)

    @property
    def eigenvalue_rounding(self) -> FloatArray:
        """Eigenvalues of the Laplacian below this may be rounding, of its weights and of any factorisation, (B,).

        Twice the largest diagonal entry bounds the norm of the Laplacian.
        """
        return np.broadcast_to(4 * self.graph.free.size * _EPS * 2 * self.scales[1], (self.batch,))

    @property
    def scales(self) -> tuple[FloatArray, FloatArray]:
        """The largest capacity and the largest stiffness of an oscillator, (b,) each."""
        return self._kept(
            "scales", lambda: tuple(np.max(each, axis=1, initial=0.0) for each in (self.capacity, self.stiffest))
        )

    def replace(self, **changes: Any) -> System:
        """Return a copy with some fields changed."""
        return dataclasses.replace(self, **changes)

    def with_values(self, changes: Mapping[str, Array]) -> System:
        """Return a copy with some parameters changed, and a workspace of its own."""
        return dataclasses.replace(self, values={**self.values, **changes}, workspace=Workspace())

    def driven(self, factor: float) -> System:
        """Return a copy with everything that does not depend on phases multiplied by a factor."""
        scaled = {p.name: factor * self.values[p.name] for term in self.terms if term.drives for p in term.parameters}
        return dataclasses.replace(self, values={**self.values, **scaled})

    def take(self, rows: Array) -> System:
        """Return the system of some of the samples; rows may repeat."""
        return self.replace(
            values={name: each if each.shape[0] == 1 else each[rows] for name, each in self.values.items()},
            # What is kept belongs to one network: a sample with parameters of its own is another one.
            workspace=self.workspace if self.shared else Workspace(),
            held_phases=self.held_phases[rows],
            pull=None if self.pull is None else self.pull.take(rows),
        )

    def place(self, phases: Array) -> Array:
        """Return phases (B, N) turned into this system's gauge: held oscillators where they are held."""
        placed = phases.astype(np.complex128 if self.is_complex else np.float64)
        if self.graph.pinned:
            placed = placed - placed[:, [self.graph.reference]]
        placed[:, self.graph.held] = self.held_phases
        return placed

    def whole(self, moving: Array) -> Array:
        """Return phases of all oscillators, (B, N), from those that move, (B, n)."""
        phases = np.empty((self.batch, self.graph.size), dtype=moving.dtype)
        phases[:, self.graph.held] = self.held_phases
        phases[:, self.graph.free] = moving
        return phases

    def force(self, phases: Array) -> Array:
        """Return the force on every oscillator, (B, N); on a held one it is what the holder must balance.

        Where the network drifts forces are counted from that on the reference, as in the frame that turns with it.
        """
        total = np.asarray(sum(term.force(self.graph, self.values, phases) for term in self.terms))
        if self.pull is not None:
            total = np.array(total, dtype=phases.dtype)
            pull = self.pull.force(phases)
            total[:, self.pull.nodes] += pull
            if self.drifts:
                total[:, self.graph.reference] -= np.sum(pull, axis=1)
        return total - total[:, [self.graph.reference]] if self.drifts else total

    def drift(self, phases: Array) -> Array:
        """Return the common frequency, (B,), at which the reference turns in the frame of the mean frequency."""
        if not self.drifts:
            return np.zeros(phases.shape[0])
        total = np.asarray(sum(term.force(self.graph, self.values, phases) for term in self.terms))
        return np.asarray(total[:, self.graph.reference])

    def reacting(self, pulls: Array) -> Array:
        """Return small forces on the oscillators that move, (B, n) or (B, n, k), with their reaction counted in."""
        return pulls + np.sum(pulls, axis=1, keepdims=True) if self.drifts else pulls

    def spread(self, response: Array) -> Array:
        """Return an adjoint response (B, n) over all oscillators, (B, N).

        Held ones have none; a reference that runs free has minus the sum of all others.
        """
        whole = np.zeros((response.shape[0], self.graph.size), dtype=response.dtype)
        whole[:, self.graph.free] = response
        if self.drifts:
            whole[:, self.graph.reference] = -np.sum(response, axis=1)
        return whole

    def energy(self, phases: Array) -> Array:
        """Return the energy of every sample, (B,). Reciprocal coupling only."""
        total = sum(term.energy(self.graph, self.values, phases) for term in self.terms)
        return np.asarray(total if self.pull is None else total + self.pull.energy(phases))

    def gauged(self, shift: Array) -> Array:
        """Return a phase shift (B, N) in the gauge that stands in for an adjoint response; see `spread`.

        Where the network drifts that one sums to zero, since a constant added to all frequencies changes no phase.
        """
        return shift - np.mean(shift, axis=1, keepdims=True) if self.drifts else shift

    def laplacian(self, phases: Array, *, floor: float | None = None) -> Array:
        """Return the reduced Laplacian of every sample, (B, n, n), over the n oscillators that move.

        With ``floor``, every weight is replaced by its absolute value, at least ``floor`` times the most it can
        be: a positive definite stand-in whose solve is a descent direction where the true one is not.
        """
        forward, backward, diagonal = self._weights(phases, floor)
        places, chosen = self.graph.dense_places
        size, batch = self.graph.free.size, phases.shape[0]
        flat = np.zeros((batch, size * size), dtype=phases.dtype)
        flat[:, places] = np.concatenate([-forward, -backward, diagonal], axis=1)[:, chosen]
        matrix = flat.reshape(batch, size, size)
        if self.pull is not None:
            where = self.graph.position[self.pull.nodes]
            curvature = self.pull.hessian(phases)
            if floor is None:
                matrix[:, where[:, None], where[None, :]] += curvature
            else:
                matrix[:, where, where] += np.sum(np.abs(curvature), axis=-1)
        if self.drifts:
            neighbours, acting = self.graph.reference_places
            on_reference = np.zeros((batch, size), dtype=phases.dtype)
            on_reference[:, neighbours] = -np.concatenate([forward, backward], axis=1)[:, acting]
            if self.pull is not None:
                on_reference[:, where] -= np.sum(curvature, axis=1)
            matrix -= on_reference[:, None, :]
        return matrix

    def sparse_laplacian(self, phases: Array, *, floor: float | None = None) -> sparse.csr_array:
        """Return the reduced Laplacian of a batch of one sample in compressed rows; reciprocal coupling only."""
        weights, _, diagonal = self._weights(phases, floor)
        matrix = self.graph.pattern.fill(weights[0], diagonal[0])
        if self.pull is None:
            return matrix
        refuse_dense(
            self.pull.nodes.size, "The curvature of a cost", "Nudge fewer outputs, or use the adjoint gradient."
        )
        curvature = self.pull.hessian(phases)[0]
        if floor is not None:
            curvature = np.diag(np.sum(np.abs(curvature), axis=-1))
        row, column = np.nonzero(curvature)
        where = self.graph.position[self.pull.nodes].astype(np.int32)
        nudge = sparse.coo_array((curvature[row, column], (where[row], where[column])), shape=matrix.shape)
        return (matrix + nudge).tocsr()

    def locked_out(self) -> BoolArray:
        """Return which samples provably have no equilibrium, (B,); see `locking_excess`."""
        if not self.drifts and not (np.abs(self.drive) > self.capacity).any():
            return np.zeros(self.batch, dtype=bool)
        return np.any(self.locking_excess() > 0, axis=1)

    def locking_excess(self) -> FloatArray:
        """Return how far each oscillator's drive exceeds the most that all others can pull it, (B, N).

        A positive entry proves that there is no equilibrium. Oscillators for which the test says nothing (held
        ones without a force balance of their own, nudged ones) have minus infinity. Where the network drifts the
        common frequency must be within the reach of all of them: the excess is the gap to the farthest.
        """
        drive, reach = np.broadcast_arrays(self.drive, self.capacity)
        silent = np.zeros(self.graph.size, dtype=bool)
        if self.pull is not None:
            silent[self.pull.nodes] = True
        if self.graph.clamped or self.graph.grounded or self.pull is not None:
            silent[self.graph.held] = True
        reach = np.where(silent, np.inf, reach)
        if self.drifts:
            lowest, highest = drive - reach, drive + reach
            above = lowest - np.min(highest, axis=1, keepdims=True)
            excess = np.maximum(above, np.max(lowest, axis=1, keepdims=True) - highest)
        else:
            excess = np.abs(drive) - reach
        rounding = 1e-12 * (self.capacity + np.max(np.abs(drive), axis=1, keepdims=True, initial=0.0))
        excess = np.where(excess > rounding, excess, -np.inf)
        return np.broadcast_to(excess, (self.batch, self.graph.size))

    def _weights(self, phases: Array, floor: float | None) -> tuple[Array, Array, Array]:
        """Return the weights of the edges in both directions, (B, E), and the diagonal of the Laplacian, (B, N)."""
        stiffness = [term.stiffness(self.graph, self.values, phases) for term in self.terms]
        if floor is not None:
            most = [term.stiffest(self.graph, self.values) for term in self.terms]
            stiffness = [mine.lifted(bound, floor) for mine, bound in zip(stiffness, most, strict=True)]
        forward, backward, diagonal = self._summed(stiffness, phases.shape[0])
        return forward, backward, self.graph.at_ends(forward, backward) + diagonal

    def _summed(self, parts: list[Any], batch: int = 1) -> tuple[Array, Array, Array]:
        """Return the sums of what several terms add to the Laplacian; zeros where none adds anything."""
        sums = []
        for name, width in zip(parts[0]._fields, (self.graph.n_edges,) * 2 + (self.graph.size,), strict=True):
            there = [getattr(part, name) for part in parts if getattr(part, name) is not None]
            sums.append(sum(there) if there else np.zeros((batch, width)))
        return sums[0], sums[1], sums[2]


def assemble(
    network: Network,
    rows: FloatArray | None,
    batch: int,
    parameters: Mapping[str, Array] | None = None,
    workspace: Workspace | None = None,
) -> System:
    """Return the system of a batch of inputs (B, n_in), under the network's own or other parameters (b, width)."""
    graph = network.graph
    values = {name: each[None] for name, each in network.parameters.items()}
    values.update(parameters or {})
    held_phases = np.zeros((batch, graph.held.size))
    scaled = None if rows is None else network.input_scale * rows
    if scaled is not None and graph.clamped:
        held_phases, scaled = scaled, None
    for term in network.terms:
        values.update(term.in_frame(graph, values, scaled))
    return System(graph, network.terms, values, held_phases, workspace=workspace or Workspace())


def build_system(
    network: Network, inputs: ArrayLike | None, nudge: Nudge | None = None, workspace: Workspace | None = None
) -> tuple[System, Shape]:
    """Return the flat system of a batch of inputs and targets, and the batch shape they broadcast to."""
    if not isinstance(network, Network):
        raise TypeError(f"Expected a Network. Got {type(network).__name__}.")
    if nudge is not None and not (isinstance(nudge, Nudge) and isinstance(nudge.objective, Cost)):
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
    rows = None if data is None else np.broadcast_to(data, (*shape, data.shape[-1])).reshape(batch, data.shape[-1])
    system = assemble(network, rows, batch, workspace=workspace)
    if nudge is not None and target is not None:
        beta = np.asarray(nudge.beta)
        if beta.ndim or beta.dtype.kind not in "iufc" or not np.isfinite(beta) or beta == 0:
            raise ValueError(f"The 'beta' parameter of Nudge must be a finite number other than 0. Got {nudge.beta!r}.")
        nodes = np.asarray(nudge.objective.nodes(network), dtype=np.int64)
        goals = np.broadcast_to(target, (*shape, target.shape[-1])).reshape(batch, target.shape[-1])
        system = system.replace(pull=Pull(nudge.objective, nodes, goals, np.broadcast_to(beta, (batch, 1))))
    return system, shape


def force(network: Network, phases: ArrayLike, inputs: ArrayLike | None = None) -> FloatArray:
    """Return the force on every oscillator, shape (..., N), of phases (..., N).

    In the frame in which an equilibrium is at rest: it turns with the mean frequency where nothing else fixes it.
    """
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
    >>> pg.laplacian(pg.lattice(100, 100), np.zeros(10_000), compressed=True).nnz
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
