"""The plain way, to compare with: scipy's fsolve per sample, a numerical Jacobian, loops over matrix entries.

Written straight from the equations of the paper and sharing nothing with the package but the network's numbers.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import fsolve

import phasegrad as pg


def coupling_matrix(network: pg.Network) -> np.ndarray:
    """Return K as a dense symmetric matrix."""
    matrix = np.zeros((network.size, network.size))
    for (i, j), strength in zip(network.edges, network.coupling, strict=True):
        matrix[i, j] = matrix[j, i] = strength
    return matrix


def settle(matrix: np.ndarray, omega: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the equilibrium with node 0 at phase zero, for centred frequencies ``omega``."""
    size = len(omega)

    def balance(moving: np.ndarray) -> list[float]:
        theta = [0.0, *moving]
        forces = []
        for i in range(1, size):
            total = omega[i]
            for j in range(size):
                if matrix[i, j] != 0.0:
                    total += matrix[i, j] * math.sin(theta[j] - theta[i])
            forces.append(total)
        return forces

    return np.concatenate([[0.0], fsolve(balance, start[1:])])


def finite_difference(network: pg.Network, target: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Return the gradient by centred frequencies, two equilibria per oscillator."""
    matrix = coupling_matrix(network)
    omega = network.omega - network.omega.mean()
    free = settle(matrix, omega, np.zeros(network.size))
    outputs = list(network.outputs)

    def cost(frequencies: np.ndarray) -> float:
        theta = settle(matrix, frequencies, free)
        return 0.5 * float(np.sum((theta[outputs] - target) ** 2))

    gradient = np.zeros(network.size)
    for k in range(1, network.size):
        unit = step * np.eye(network.size)[k]
        gradient[k] = (cost(omega + unit) - cost(omega - unit)) / (2 * step)
    return gradient
