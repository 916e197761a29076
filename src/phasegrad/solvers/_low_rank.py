r"""Certificates of large networks with a mean field: a sparse Laplacian minus a matrix of low rank.

    L = A - U U^T,   A sparse or diagonal, U (n, k) with few columns

L is positive definite if and only if A is and the capacitance matrix 1 - U^T A^-1 U is (Schur complement); where that
has a negative eigenvalue with the vector y, x = A^-1 U y is a direction of negative curvature. Subtracting a number
from A first tells on which side of it the smallest eigenvalue lies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from phasegrad._validation import Array, FloatArray
from phasegrad.dynamics import System
from phasegrad.solvers._forms import Evidence, Form, Precondition
from phasegrad.solvers._krylov import outer_of, product, solve_accurately

_EPS = float(np.finfo(float).eps)
_SLACKS = (1e-9, 1e-6, 1e-3)


@dataclass(frozen=True, eq=False)
class Lowered:
    """The form of A and the factors of what is taken away, for one state."""

    form: Form
    left: FloatArray
    right: FloatArray
    precondition: Precondition
    mesh: bool

    @classmethod
    def of(cls, system: System, phases: Array, form: Form, precondition: Precondition, *, mesh: bool) -> Lowered:
        """Return the form of the Laplacian of one sample that has a low-rank part."""
        outer = outer_of(system, phases)
        assert outer is not None
        return cls(form, outer[0], outer[1], precondition, mesh)

    @property
    def attracts(self) -> bool:
        """Whether what is taken away is positive semidefinite: the two factors are equal but for positive scales."""
        return bool(np.all(np.sum(self.left * self.right, axis=0) >= 0))

    def lifted(self, by: float) -> Lowered:
        """Return the form of L + by."""
        return replace(self, form=self.form.lifted(by))

    def examine(self) -> Evidence:
        """Return what can be proved of L."""
        # Cosines and sines are rounded: what is taken away may be larger by a share of its norm.
        rounding = 16 * _EPS * float(np.linalg.norm(self.left) * np.linalg.norm(self.right))
        form = self.form.lifted(-rounding)
        evidence = form.examine(self.precondition, mesh=self.mesh)
        if not evidence.proved or not self.attracts:
            return evidence
        inverse, columns = self.precondition(form.lower), self.right.T
        answers = np.array([solve_accurately(form.lower, np.ascontiguousarray(u), inverse).solution for u in columns])
        left = columns - np.array([form.lower @ answer for answer in answers])
        # With a scale s per column U = s B: 1 - U^T A^-1 U is symmetric where B^T A^-1 B is.
        scale = np.sqrt(np.sum(self.left * self.right, axis=0) / np.maximum(np.sum(self.right**2, axis=0), 1e-300))
        compliance = scale[:, None] * (columns @ answers.T) * scale[None, :]
        matrix = np.eye(scale.size) - (compliance + compliance.T) / 2
        values, vectors = np.linalg.eigh(matrix)
        # |error of y^T A^-1 r| <= |A^-1 y| |r|; sums of n positive products are rounded by at most log2 n units.
        reach = np.linalg.norm(scale[:, None] * answers) * np.linalg.norm(scale[:, None] * left)
        error = 4 * float(reach) + 64 * _EPS * float(np.max(np.abs(compliance), initial=1.0))
        witness = answers.T @ (scale * vectors[:, 0])
        return Evidence(bool(values[0] > error), None if values[0] > error else witness)

    def quotient(self, vector: FloatArray) -> float:
        """Return a number that x^T L x / x^T x surely does not exceed."""
        square = float(vector @ vector)
        taken = float((vector @ self.left) @ (vector @ self.right)) / square
        size = float(np.linalg.norm(self.left) * np.linalg.norm(self.right))
        return self.form.quotient(vector) - taken + 64 * _EPS * size

    def smallest_eigenvalue(self, evidence: Evidence) -> tuple[float, float]:
        """Return a number that the smallest eigenvalue does not exceed, and by how much it is smaller at most."""
        matrix, outer = self.form.lower, (self.left, self.right)
        start = evidence.witness if evidence.witness is not None else np.ones(self.form.size)

        def image(vector: Any) -> FloatArray:
            return product(matrix, np.ravel(vector), outer)

        operator = LinearOperator(matrix.shape, matvec=image, dtype=np.float64)
        if evidence.proved:
            inverse = self.precondition(matrix)

            def solved(vector: Any) -> FloatArray:
                return solve_accurately(matrix, np.ascontiguousarray(np.ravel(vector)), inverse, outer=outer).solution

            solve = LinearOperator(matrix.shape, matvec=solved, dtype=np.float64)
            _, vectors = eigsh(operator, k=1, sigma=0.0, OPinv=solve, v0=start)
        else:
            _, vectors = eigsh(operator, k=1, which="SA", v0=start)
        value = min(self.quotient(vectors[:, 0]), self.quotient(start))
        for slack in _SLACKS:
            lower = value - slack * abs(value)
            if self.lifted(-lower).examine().proved:
                return value, value - lower
        return value, value if evidence.proved else np.inf
