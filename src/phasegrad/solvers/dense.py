r"""The force balance of one sine-coupled network and a batch of samples, by matrix products.

Only the n oscillators that move appear. Held neighbours and the bias field act on oscillator i together as one field
x_i + i y_i of the sample, and with c = cos theta, s = sin theta and the dense symmetric coupling K,

    X = x + K c,   Y = y + K s           the local field of every oscillator
    F = omega + c Y - s X                the force: two matrix products instead of n x n sines
    D = c X + s Y                        how far it lies along its local field, the diagonal of the Laplacian
    L v = D v - c K(c v) - s K(s v)      the Laplacian, applied without being built
    E = -omega.theta - (c.(X + x) + s.(Y + y)) / 2

each plus the nudge. Rounding of a matrix product depends on the size of the batch: results agree between batches to
the tolerance, not bit by bit.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from phasegrad.dynamics import Pull, System
from phasegrad.interactions import Sine
from phasegrad.network import Network
from phasegrad.solvers.linear import is_positive_definite, solve_positive
from phasegrad.validation import BoolArray, FloatArray

Array = NDArray[Any]


class State(NamedTuple):
    """Phases (B, n) with their cosine and sine and the local field they cause."""

    phases: FloatArray
    cos: FloatArray
    sin: FloatArray
    field_x: FloatArray
    field_y: FloatArray


@dataclass(frozen=True)
class DenseSystem:
    """B samples of one network: coupling (n, n), frequencies (B, n) and the outer field (B, n) in two components."""

    coupling: FloatArray
    omega: FloatArray
    field_x: FloatArray
    field_y: FloatArray
    network: Network
    pull: Pull | None

    @staticmethod
    def fits(system: System) -> bool:
        """Whether matrix products can stand in for a system: reciprocal sine coupling, real, one network for all."""
        parameters = (system.coupling, system.field_strength, system.field_phase)
        shared = all(values is None or values.shape[0] == 1 for values in parameters)
        return shared and type(system.network.interaction) is Sine and system.has_energy

    @classmethod
    def of(cls, system: System) -> DenseSystem:
        """Return a system as matrices; see `fits`."""
        network, free = system.network, system.network.free
        matrix = np.zeros((network.size, network.size))
        i, j = network.edges.T
        matrix[i, j] = matrix[j, i] = system.coupling[0]
        moving = np.ix_(free, free) if free.size < network.size else np.s_[:, :]
        field_x, field_y = np.zeros((2, system.batch, free.size))
        if network.held.size:
            outer = matrix[np.ix_(network.held, free)]
            field_x, field_y = np.cos(system.held_phases) @ outer, np.sin(system.held_phases) @ outer
        if system.field_strength is not None:
            assert system.field_phase is not None
            field_x = field_x + (system.field_strength * np.cos(system.field_phase))[:, free]
            field_y = field_y + (system.field_strength * np.sin(system.field_phase))[:, free]
        pull = system.pull
        if pull is not None:
            pull = dataclasses.replace(pull, nodes=network.position[pull.nodes])
        omega = np.take(system.omega, free, axis=1)
        return cls(np.ascontiguousarray(matrix[moving]), omega, field_x, field_y, network, pull)

    @property
    def batch(self) -> int:
        """Number of samples B."""
        return int(self.omega.shape[0])

    def take(self, rows: Array) -> DenseSystem:
        """Return the system of some of the samples."""
        return dataclasses.replace(
            self,
            omega=self.omega[rows],
            field_x=self.field_x[rows],
            field_y=self.field_y[rows],
            pull=None if self.pull is None else self.pull.take(rows),
        )

    def state(self, phases: FloatArray) -> State:
        """Return phases with their local field: the two matrix products everything else is made of."""
        cos, sin = np.cos(phases), np.sin(phases)
        return State(phases, cos, sin, self.field_x + cos @ self.coupling, self.field_y + sin @ self.coupling)

    def force(self, state: State) -> FloatArray:
        """Return the force on every oscillator, (B, n)."""
        total = self.omega + state.cos * state.field_y - state.sin * state.field_x
        if self.pull is not None:
            total[:, self.pull.nodes] += self.pull.force(state.phases)
        return total

    def energy(self, state: State) -> FloatArray:
        """Return the energy of every sample, (B,)."""
        bonds = state.cos * (state.field_x + self.field_x) + state.sin * (state.field_y + self.field_y)
        total = -np.sum(self.omega * state.phases, axis=1) - 0.5 * np.sum(bonds, axis=1)
        return total if self.pull is None else total + self.pull.energy(state.phases)

    def diagonal(self, state: State) -> FloatArray:
        """Return the diagonal of the Laplacian without the nudge, (B, n)."""
        return state.cos * state.field_x + state.sin * state.field_y

    def product(self, state: State, diagonal: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return the Laplacian of every sample times its vector, (B, n)."""
        along = state.cos * ((state.cos * vectors) @ self.coupling)
        along += state.sin * ((state.sin * vectors) @ self.coupling)
        result = diagonal * vectors - along
        if self.pull is not None:
            chosen = vectors[:, self.pull.nodes]
            result[:, self.pull.nodes] += np.einsum("bij,bj->bi", self.pull.hessian(state.phases), chosen)
        return result

    def mean_laplacian(self, state: State) -> FloatArray:
        """Return the mean of the samples' Laplacians, (n, n), without the nudge: one more product of matrices."""
        weights = self.coupling * ((state.cos.T @ state.cos + state.sin.T @ state.sin) / self.batch)
        return np.diag(np.mean(self.diagonal(state), axis=0)) - weights

    @property
    def eliminates_cheaply(self) -> bool:
        """Whether exact elimination of that group leaves so little that it beats conjugate gradients."""
        first, rest = (group.size for group in self.network.eliminated)
        inside = self.pull is None or set(self.pull.nodes.tolist()) <= set(self.network.eliminated[1].tolist())
        return inside and first * rest**2 + rest**3 / 3 <= 20 * (first + rest) ** 2

    def solve(self, state: State, right: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Solve L v = right for every sample by elimination; the mask says where L is positive definite.

        The oscillators of one colour are coupled only to the others, so their block is diagonal: what is left after
        them is the Schur complement S = A - W^T D^-1 W, one small matrix per sample.
        """
        first, rest = self.network.eliminated
        schur, ratio, diagonal = self._schur(state, 0.0)
        head = np.take(right, first, axis=1)
        folded = np.matmul(head[:, None, :], ratio)[:, 0]
        tail, definite = solve_positive(schur, np.take(right, rest, axis=1) + folded)
        solution = np.empty_like(right)
        solution[:, rest] = tail
        solution[:, first] = head / _where_positive(diagonal) + np.matmul(ratio, tail[:, :, None])[:, :, 0]
        return solution, np.all(diagonal > 0, axis=1) & definite

    def exceeds(self, state: State, floor: float) -> BoolArray:
        """Return where the smallest eigenvalue of the Laplacian is above ``floor``, (B,), by elimination."""
        schur, _, diagonal = self._schur(state, floor)
        return np.all(diagonal > 0, axis=1) & is_positive_definite(schur, 0.0)

    def _schur(self, state: State, shift: float) -> tuple[Array, Array, Array]:
        """Return the Schur complement (B, r, r), D^-1 W (B, e, r) and D (B, e) of the Laplacian minus ``shift``."""
        first, rest = self.network.eliminated
        diagonal = self.diagonal(state) - shift
        weights = self._weights(state, first, rest)
        own = np.take(diagonal, first, axis=1)
        ratio = weights / _where_positive(own)[:, :, None]
        schur = np.matmul(weights.transpose(0, 2, 1), -ratio)
        if np.any(self.coupling[np.ix_(rest, rest)]):
            schur -= self._weights(state, rest, rest)
        each = np.arange(rest.size)
        schur[:, each, each] += np.take(diagonal, rest, axis=1)
        if self.pull is not None:
            where = np.searchsorted(rest, self.pull.nodes)
            schur[:, where[:, None], where[None, :]] += self.pull.hessian(state.phases)
        return schur, ratio, own

    def _weights(self, state: State, rows: Array, columns: Array) -> Array:
        """Return K cos(theta_i - theta_j) of a block of pairs, (B, rows, columns)."""
        of_rows = np.stack([np.take(state.cos, rows, axis=1), np.take(state.sin, rows, axis=1)], axis=2)
        of_columns = np.stack([np.take(state.cos, columns, axis=1), np.take(state.sin, columns, axis=1)], axis=1)
        weights = np.matmul(of_rows, of_columns)
        weights *= self.coupling[np.ix_(rows, columns)]
        return weights


def _where_positive(values: FloatArray) -> FloatArray:
    return np.where(values > 0, values, 1.0)
