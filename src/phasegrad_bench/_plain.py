"""The plain way, to compare with: scipy's fsolve per sample, a numerical Jacobian, loops over matrix entries.

For one large sparse network it is what a good user of SciPy would write: Newton's method with conjugate gradients.
Written straight from the equations of the paper and sharing nothing with the package but the network's numbers.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve
from scipy.sparse.linalg import cg

from phasegrad._validation import FloatArray, IntArray
from phasegrad.networks import Network


def coupling_matrix(network: Network) -> FloatArray:
    """Return K as a dense symmetric matrix."""
    matrix = np.zeros((network.size, network.size))
    for (i, j), strength in zip(network.edges, network.coupling, strict=True):
        matrix[i, j] = matrix[j, i] = strength
    return matrix


def settle(
    matrix: FloatArray, omega: FloatArray, start: FloatArray, targets: dict[int, float] | None = None, beta: float = 0.0
) -> FloatArray:
    """Return the equilibrium with node 0 at phase zero, for centred frequencies ``omega``, nudged to ``targets``."""
    size, nudged = len(omega), targets or {}

    def balance(moving: FloatArray) -> list[float]:
        theta = [0.0, *moving]
        forces = []
        for i in range(1, size):
            total = omega[i]
            for j in range(size):
                if matrix[i, j] != 0.0:
                    total += matrix[i, j] * math.sin(theta[j] - theta[i])
            if i in nudged:
                total += beta * (nudged[i] - theta[i])
            forces.append(total)
        return forces

    return np.concatenate([[0.0], fsolve(balance, start[1:])])


def follow(network: Network, start: FloatArray, time: float, tolerance: float) -> FloatArray:
    """Return the phases after a time, in the frame of the mean frequency, by SciPy's `solve_ivp`."""
    own = network.omega - network.omega.mean()
    if network.n_edges:
        matrix = coupling_matrix(network)

        def rates(_time: float, theta: FloatArray) -> FloatArray:
            return own + np.sum(matrix * np.sin(theta - theta[:, None]), axis=1)

    else:
        strength = float(network.parameters["global_coupling"][0])

        def rates(_time: float, theta: FloatArray) -> FloatArray:
            return own + strength * np.imag(np.mean(np.exp(1j * theta)) * np.exp(-1j * theta))

    run = solve_ivp(rates, (0.0, time), start, method="DOP853", rtol=tolerance, atol=tolerance)
    return np.asarray(run.y[:, -1])


def settle_arrays(
    matrix: FloatArray,
    omega: FloatArray,
    start: FloatArray,
    pull: FloatArray,
    target: FloatArray,
    *,
    tolerance: float = 1.49012e-8,
) -> FloatArray:
    """Return the same equilibrium as `settle` with the forces as one NumPy expression, fairer to larger networks.

    ``pull`` and ``target`` (N,) are the strength of the nudge on every oscillator and where it pulls.
    """

    def balance(moving: FloatArray) -> FloatArray:
        theta = np.concatenate([[0.0], moving])
        forces = omega + np.sum(matrix * np.sin(theta[None, :] - theta[:, None]), axis=1) + pull * (target - theta)
        return np.asarray(forces[1:])

    return np.concatenate([[0.0], fsolve(balance, start[1:], xtol=tolerance)])


def settle_sparse(network: Network, tolerance: float = 1e-12) -> FloatArray:
    """Return the equilibrium of a large sparse network by inexact Newton with SciPy's conjugate gradients.

    The pattern of the Laplacian is laid out once. No oscillator is held: the singular system has a solution, since the
    forces sum to zero, and takes conjugate gradients fewer iterations than one in which an oscillator is held.
    """
    size, (i, j), each = network.size, network.edges.T.astype(np.int32), np.arange(network.size, dtype=np.int32)
    ends = np.concatenate([i, j, each]), np.concatenate([j, i, each])
    pattern = sparse.coo_array((np.arange(ends[0].size, dtype=np.int32), ends), shape=(size, size)).tocsr()
    drive, theta = network.omega - network.omega.mean(), np.zeros(size)
    while True:
        angle = theta[j] - theta[i]
        pull = network.coupling * np.sin(angle)
        force = drive + np.bincount(i, pull, size) - np.bincount(j, pull, size)
        left = float(np.max(np.abs(force)))
        if left <= tolerance:
            return theta
        weight = network.coupling * np.cos(angle)
        diagonal = np.bincount(i, weight, size) + np.bincount(j, weight, size)
        entries = np.concatenate([-weight, -weight, diagonal])[pattern.data]
        matrix = sparse.csr_array((entries, pattern.indices, pattern.indptr), shape=(size, size))
        accuracy = max(min(1e-2, left), 0.1 * tolerance / left)
        step, _ = cg(matrix, force, M=sparse.diags_array(1 / diagonal), rtol=accuracy)
        theta += step - step[0]


def finite_difference(network: Network, target: FloatArray, step: float = 1e-5) -> FloatArray:
    """Return the gradient by centred frequencies, two equilibria per oscillator."""
    matrix = coupling_matrix(network)
    omega = network.omega - network.omega.mean()
    free = settle(matrix, omega, np.zeros(network.size))
    outputs = list(network.outputs)

    def cost(frequencies: FloatArray) -> float:
        theta = settle(matrix, frequencies, free)
        return 0.5 * float(np.sum((theta[outputs] - target) ** 2))

    gradient = np.zeros(network.size)
    for k in range(1, network.size):
        unit = step * np.eye(network.size)[k]
        gradient[k] = (cost(omega + unit) - cost(omega - unit)) / (2 * step)
    return gradient


class PlainTraining:
    """The paper's learning protocol on one network, frequencies only, one sample at a time."""

    def __init__(self, network: Network, x: FloatArray, y: IntArray, seed: int) -> None:
        self.matrix = coupling_matrix(network)
        self.omega = network.omega.copy()
        self.learned = [k for k in range(network.size) if k not in network.inputs]
        self.outputs = list(network.outputs)
        self.x, self.y = x, y
        self.stream = np.random.default_rng(seed)

    def run(self, epochs: int, evaluate_every: int, limit: int | None = None) -> FloatArray:
        """Train, stopping after ``limit`` updates if given, and return the frequencies."""
        done = 0
        for epoch in range(1, epochs + 1):
            theta = np.zeros(len(self.omega))
            for row in self.stream.permutation(len(self.y)):
                theta = self.update(int(row), theta)
                done += 1
                if done == limit:
                    return self.omega
            if epoch in (1, epochs) or epoch % evaluate_every == 0:
                self.stream.integers(len(self.y))
        return self.omega

    def update(self, row: int, start: FloatArray) -> FloatArray:
        """Settle free and nudged, change the frequencies, and return the free phases."""
        self.omega[: self.x.shape[1]] = 1.5 * self.x[row]
        centred = self.omega - self.omega.mean()
        target = [-0.2 if k == self.y[row] else 0.2 for k in range(len(self.outputs))]
        free = settle(self.matrix, centred, start)
        nudged = settle(self.matrix, centred, free, dict(zip(self.outputs, target, strict=True)), 0.1)
        for k in self.learned:
            slope = min(2.0, max(-2.0, -(nudged[k] - free[k]) / 0.1))
            self.omega[k] = min(3.0, max(-3.0, self.omega[k] - 0.001 * slope))
        return free

    def accuracy(self, x: FloatArray, y: IntArray) -> float:
        """Return the share of samples whose right output has the largest cosine."""
        theta, right = np.zeros(len(self.omega)), 0
        omega = self.omega.copy()
        for sample, label in zip(x, y, strict=True):
            omega[: x.shape[1]] = 1.5 * sample
            theta = settle(self.matrix, omega - omega.mean(), theta)
            right += int(np.argmax(np.cos(theta[self.outputs])) == label)
        return right / len(y)
