r"""The equations: force, energy and Laplacian of a batch of phases, with or without a nudge.

For a network whose terms have forces F_t and energies E_t, nudged with strength beta toward lower cost C of the
outputs,

    F = sum_t F_t - beta dC/dtheta,      E = sum_t E_t + beta C,      F = -dE/dtheta where coupling is reciprocal

The Laplacian is minus the Jacobian, L = -dF/dtheta, over the oscillators that move: the reduced Laplacian of
a graph with the terms' edge weights, plus what terms and nudge put on the diagonal. Edges across which a sum of two
phases acts stand in it with the other sign off the diagonal.

Without reciprocity the forces do not sum to zero, and a locked network turns at a common frequency of its own, F_i =
Omega for every i. Where nothing ties it to the frame that frequency is an unknown; counting every force from that on
the reference eliminates it,

    F_i - F_r = 0,      L_ij - L_rj,      i, j other than the reference r

and what comes out does not depend on which oscillator is the reference. The reaction of a nudge, whose cost is one of
phases counted from the reference, acts on the reference.

Under a correction (`phasegrad.dynamics._correction`) the Laplacian at the free state is the transposed one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from phasegrad._validation import Array, BoolArray, FloatArray
from phasegrad.dynamics._correction import Correction
from phasegrad.dynamics._nudges import Pull
from phasegrad.graphs import Graph, lazy_property, refuse_dense
from phasegrad.terms import Stiffness, Term, Values

_EPS = float(np.finfo(float).eps)


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
    correction: Correction | None = None
    workspace: Workspace = field(default_factory=Workspace, repr=False)

    @property
    def batch(self) -> int:
        """Number of samples B."""
        return int(self.held_phases.shape[0])

    @lazy_property
    def reciprocal(self) -> bool:
        """Whether the Laplacian is symmetric."""
        return all(term.symmetric for term in self.terms)

    @lazy_property
    def drifts(self) -> bool:
        """Whether the network turns at a common frequency of its own, which is part of the solution."""
        return self.graph.pinned and not self.graph.grounded and not self.reciprocal

    @lazy_property
    def has_energy(self) -> bool:
        """Whether the force is minus the gradient of a real energy."""
        return self.reciprocal and not self.is_complex

    @lazy_property
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

    @property
    def stiffest_edges(self) -> FloatArray:
        """The most that the weight of every edge can be, (b, E); reciprocal coupling only."""
        parts = [term.stiffest(self.graph, self.values).forward for term in self.terms]
        return np.asarray(np.sum([part for part in parts if part is not None], axis=0))

    def _kept(self, name: str, make: Callable[[], Any]) -> Any:
        """Return what follows from parameters that all samples share, once; what does not, anew."""
        return self.workspace.keep(name, make) if self.shared else make()

    def _make_stiffest(self) -> FloatArray:
        if all(term.phasor for term in self.terms):
            # A sine is as steep as it is high.
            return self.capacity
        return self._weights([term.stiffest(self.graph, self.values) for term in self.terms])[2]

    @lazy_property
    def eigenvalue_rounding(self) -> FloatArray:
        """Eigenvalues of the Laplacian below this may be rounding, of its weights and of any factorisation, (B,).

        Twice the largest diagonal entry bounds the norm of the Laplacian.
        """
        rounding = 4 * self.graph.free.size * _EPS * 2 * self.scales[1]
        return rounding if rounding.size == self.batch else np.full(self.batch, rounding)

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
            correction=None if self.correction is None else self.correction.take(rows),
        )

    def corrected(self, phases: Array) -> System:
        """Return the system with the correction at free phases (B, N); itself where coupling is reciprocal."""
        if self.reciprocal:
            return self
        forward, backward, _ = self._weights(self._stiffness(phases, None), phases.shape[0])
        return self.replace(correction=Correction(phases, forward - backward, self.drifts))

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
        total = self.own_force(phases)
        if self.pull is not None:
            total = np.array(total, dtype=phases.dtype)
            pull = self.pull.force(phases)
            total[:, self.pull.nodes] += pull
            if self.drifts:
                total[:, self.graph.reference] -= np.sum(pull, axis=1)
        if self.correction is not None:
            total = total + self.correction.force(self.graph, phases)
        return total - total[:, [self.graph.reference]] if self.drifts else total

    def own_force(self, phases: Array) -> Array:
        """Return the force of all terms, (B, N), in the frame of the mean frequency, the nudge left aside."""
        return np.asarray(sum(term.force(self.graph, self.values, phases) for term in self.terms))

    def drift(self, phases: Array) -> Array:
        """Return the common frequency, (B,), at which the reference turns in the frame of the mean frequency."""
        if not self.drifts:
            return np.zeros(phases.shape[0])
        return np.asarray(self.own_force(phases)[:, self.graph.reference])

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
        stiffness = self._stiffness(phases, floor)
        forward, backward, diagonal = self._weights(stiffness, phases.shape[0])
        if self.correction is not None:
            forward, backward = forward - self.correction.skew, backward + self.correction.skew
        matrix = self._assembled(forward, backward, diagonal, phases.dtype)
        outer = self._summed_outer(stiffness)
        if outer is not None:
            left, right = (np.take(factor, self.graph.free, axis=1) for factor in outer)
            matrix = matrix - left @ right.swapaxes(1, 2)
        if self.pull is not None:
            where = self.graph.position[self.pull.nodes]
            curvature = self.pull.hessian(phases)
            if floor is None:
                matrix[:, where[:, None], where[None, :]] += curvature
            else:
                matrix[:, where, where] += np.sum(np.abs(curvature), axis=-1)
        if self.drifts:
            neighbours, acting = self.graph.reference_places
            on_reference = np.zeros(matrix.shape[:2], dtype=phases.dtype)
            on_reference[:, neighbours] = -np.concatenate([forward, backward], axis=1)[:, acting]
            if outer is not None:
                on_reference -= (right @ outer[0][:, self.graph.reference, :, None])[:, :, 0]
            if self.pull is not None:
                on_reference[:, where] -= np.sum(curvature, axis=1)
            matrix -= on_reference[:, None, :]
            if self.correction is not None:
                common = self.correction.common(self.graph)
                matrix += (common[:, self.graph.free] - common[:, [self.graph.reference]])[:, :, None]
        return matrix

    def stiffest_laplacian(self) -> FloatArray:
        """Return the reduced Laplacian (n, n) of samples that share their parameters, every weight at its largest."""
        edges = self.stiffest_edges
        return self._assembled(edges, edges, self.stiffest, np.dtype(np.float64))[0]

    def _assembled(self, forward: Array, backward: Array, diagonal: Array, dtype: np.dtype[Any]) -> Array:
        """Return matrices (b, n, n) of weights off the diagonal, in both directions, (b, E), and the diagonal."""
        places, chosen = self.graph.dense_places
        size, batch = self.graph.free.size, forward.shape[0]
        flat = np.zeros((batch, size * size), dtype=dtype)
        flat[:, places] = np.concatenate([-forward, -backward, diagonal], axis=1)[:, chosen]
        return flat.reshape(batch, size, size)

    def sparse_laplacian(self, phases: Array, *, floor: float | None = None) -> sparse.csr_array:
        """Return the reduced Laplacian of a batch of one sample in compressed rows; reciprocal coupling only.

        What terms add of low rank is not in it: see `outer`.
        """
        weights, _, diagonal = self._weights(self._stiffness(phases, floor), phases.shape[0])
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

    def edge_weights(self, phases: Array, *, floor: float | None = None) -> tuple[Array, Array, bool]:
        """Return minus the entries of the Laplacian off its diagonal, (B, E), the diagonal, (B, N), and one fact.

        That is whether the force follows from differences of phases across edges alone: then every row sums to zero
        where nothing is held. Reciprocal coupling only; nudge and low rank are left aside.
        """
        parts = self._stiffness(phases, floor)
        weights, _, diagonal = self._weights(parts, phases.shape[0])
        return weights, diagonal, all(part.diagonal is None and part.sums is None for part in parts)

    def outer(self, phases: Array, *, floor: float | None = None) -> tuple[Array, Array] | None:
        """Return factors A, B (B, N, k) of the low-rank part of the Laplacian, minus A B^T, or None."""
        return self._summed_outer(self._stiffness(phases, floor)) if self.low_rank else None

    @property
    def low_rank(self) -> bool:
        """Whether terms add a part of low rank to the Laplacian."""
        parts = (term.stiffest(self.graph, self.values).outer for term in self.terms)
        return bool(self._kept("low_rank", lambda: any(part is not None for part in parts)))

    @property
    def joins_all(self) -> bool:
        """Whether every oscillator is coupled to every other, without edges."""
        return any(term.joins_all(self.values) for term in self.terms)

    def turns(self, change: Array) -> FloatArray:
        """Return by how much a change of phases (B, N) turns an angle between two coupled oscillators at most, (B,)."""
        largest = np.max(np.abs(self.graph.angles(change)), axis=1, initial=0.0)
        return np.maximum(largest, np.ptp(change, axis=1)) if self.joins_all else np.asarray(largest)

    def locked_out(self) -> BoolArray:
        """Return which samples provably have no equilibrium, (B,); see `locking_excess`."""
        if not self.drifts and not (np.abs(self.drive) > self.capacity).any():
            return np.zeros(self.batch, dtype=bool)
        return np.any(self.locking_excess() > 0, axis=1)

    def locking_excess(self) -> FloatArray:
        """Return how far each oscillator's drive exceeds the most that all others can pull it, (B, N).

        A positive entry proves that there is no equilibrium. Oscillators for which the test says nothing (held
        ones without a force balance of their own, nudged or corrected ones) have minus infinity. Where the network
        drifts the common frequency must be within the reach of all of them: the excess is the gap to the farthest.
        """
        drive, reach = np.broadcast_arrays(self.drive, self.capacity)
        silent = np.zeros(self.graph.size, dtype=bool)
        if self.pull is not None:
            silent[self.pull.nodes] = True
        if self.correction is not None:
            silent[:] = True
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

    def _stiffness(self, phases: Array, floor: float | None) -> list[Stiffness]:
        """Return what each term adds to the Laplacian, or to its positive stand-in."""
        stiffness = [term.stiffness(self.graph, self.values, phases) for term in self.terms]
        if floor is None:
            return stiffness
        most = [term.stiffest(self.graph, self.values) for term in self.terms]
        return [mine.lifted(bound, floor) for mine, bound in zip(stiffness, most, strict=True)]

    @staticmethod
    def _summed_outer(stiffness: list[Stiffness]) -> tuple[Array, Array] | None:
        """Return the factors of the low-rank parts of all terms, side by side."""
        pairs = [part.outer for part in stiffness if part.outer is not None]
        if not pairs:
            return None
        left, right = (np.concatenate([pair[k] for pair in pairs], axis=2) for k in range(2))
        return left, right

    def _weights(self, parts: list[Stiffness], batch: int = 1) -> tuple[Array, Array, Array]:
        """Return minus what stands off the diagonal of the Laplacian, in both directions, (B, E), and it, (B, N).

        Zeros where no term adds anything; what terms add of low rank is left aside.
        """

        def summed(name: str, width: int) -> Array:
            there = [each for part in parts if (each := getattr(part, name)) is not None]
            return there[0] if len(there) == 1 else np.asarray(sum(there)) if there else np.zeros((batch, width))

        forward, backward = summed("forward", self.graph.n_edges), summed("backward", self.graph.n_edges)
        diagonal = self.graph.at_ends(forward, backward) + summed("diagonal", self.graph.size)
        if all(part.sums is None for part in parts):
            return forward, backward, diagonal
        sums = summed("sums", self.graph.n_edges)
        return forward - sums, backward - sums, diagonal + self.graph.at_ends(sums, sums)
