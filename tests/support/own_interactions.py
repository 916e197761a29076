"""Interactions that a user might write."""

import numpy as np

import phasegrad as pg


class Wrapped(pg.terms.Interaction):
    """A user's own: the sine of a sine, odd and periodic but no finite series; V by fine summation."""

    def value(self, phi):
        return np.sin(np.sin(phi))

    def derivative(self, phi):
        return np.cos(np.sin(phi)) * np.cos(phi)

    def potential(self, phi):
        nodes, weights = np.polynomial.legendre.leggauss(40)
        half = np.asarray(phi)[..., None] / 2
        return np.sum(weights * self.value(half * (nodes + 1)) * half, axis=-1)


class Strong(pg.terms.Sine):
    """Twice the sine, by its own formulas."""

    def value(self, phi):
        return 2 * np.sin(phi)

    def derivative(self, phi):
        return 2 * np.cos(phi)

    def potential(self, phi):
        return -2 * np.cos(phi)
