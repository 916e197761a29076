r"""Certificates of large networks with a mean field: a sparse Laplacian minus a matrix of low rank.

    L = A - M,   A sparse or diagonal, M = P Q^T symmetric with few columns

The eigenvalues of M that are not zero are those of a small matrix. Its positive part U U^T is what can make L
indefinite, its negative part only adds: A - U U^T positive definite proves that L is. That holds if and only if A and
the capacitance matrix 1 - U^T A^-1 U are positive definite (Schur complement); where the latter has a negative
eigenvalue with the vector y, x = A^-1 U y is a direction in which L may bend down. Subtracting a number from A first
tells on which side of it the smallest eigenvalue lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from phasegrad._validation import Array, FloatArray
from phasegrad.dynamics import System
from phasegrad.graphs import lazy_property
from phasegrad.linearised._krylov import outer_of, product, solve_accurately
from phasegrad.linearised._proofs import Evidence, Form, Inverse, Precondition

_EPS = float(np.finfo(float).eps)
_SLACKS = (1e-9, 1e-6, 1e-3)
_INVERSE_STEPS, _RESTARTS = 3, 30


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
    def size(self) -> int:
        """Number of oscillators that move."""
        return self.form.size

    @lazy_property
    def taken(self) -> FloatArray:
        """The factor U (n, k) of the positive part of what is taken away; no column where there is none."""
        basis, triangle = np.linalg.qr(self.right)
        small = (basis.T @ self.left) @ triangle.T
        values, vectors = np.linalg.eigh((small + small.T) / 2)
        positive = values > 0
        return np.asarray(basis @ (vectors[:, positive] * np.sqrt(values[positive])))

    def lifted(self, by: float) -> Lowered:
        """Return the form of L + by."""
        return replace(self, form=self.form.lifted(by))

    def examine(self) -> Evidence:
        """Return what can be proved of L."""
        # Cosines and sines are rounded, and so are the sums over all oscillators behind the positive part: what is
        # taken away may be larger by a share of its norm.
        units = 16 + 4 * np.sqrt(self.form.size)
        rounding = units * _EPS * float(np.linalg.norm(self.left) * np.linalg.norm(self.right))
        form = self.form.lifted(-rounding)
        evidence = form.examine(self.precondition, mesh=self.mesh)
        if not evidence.proved or self.taken.shape[1] == 0:
            return evidence
        columns = np.ascontiguousarray(self.taken.T)
        answers, error = self._solved(form, evidence, columns)
        compliance = columns @ answers.T
        matrix = np.eye(len(columns)) - (compliance + compliance.T) / 2
        values, vectors = np.linalg.eigh(matrix)
        error += 64 * _EPS * float(np.max(np.abs(compliance), initial=1.0))
        if values[0] > error:
            return Evidence(True, None, evidence.inverse)
        return Evidence(False, answers.T @ vectors[:, 0])

    def _solved(self, form: Form, evidence: Evidence, columns: FloatArray) -> tuple[FloatArray, float]:
        """Return A^-1 U, a row per column of U, and the error of the capacitance matrix that follows from theirs."""
        inverse = evidence.inverse
        if inverse is not None:
            answers = np.array([inverse.solve(column) for column in columns])
            # |error of y^T A^-1 r| <= |y|_{A^-1} |r|_{A^-1}; a dot product is rounded by at most n units.
            reach = np.array([inverse.energy_norm(*each) for each in zip(columns, answers, strict=True)])
            own = reach + np.sqrt(reach**2 + np.maximum(np.sum(columns * answers, axis=1), 0.0))
            products = np.abs(columns) @ np.abs(answers).T
            rounding = form.size * _EPS * float(np.linalg.norm(products))
            return answers, float(np.linalg.norm(np.outer(own, reach))) + rounding
        preconditioner = self.precondition(form.lower)
        answers = np.array([solve_accurately(form.lower, column, preconditioner).solution for column in columns])
        left = columns - np.array([form.lower @ answer for answer in answers])
        # |error of y^T A^-1 r| <= |A^-1 y| |r|; sums of n positive products are rounded by at most log2 n units.
        rounding = form.size * _EPS * float(np.linalg.norm(np.abs(columns) @ np.abs(answers).T))
        return answers, 4 * float(np.linalg.norm(answers) * np.linalg.norm(left)) + rounding

    def quotient(self, vector: FloatArray) -> float:
        """Return a number that x^T L x / x^T x surely does not exceed."""
        square = float(vector @ vector)
        taken = float((vector @ self.left) @ (vector @ self.right)) / square
        size = float(np.linalg.norm(self.left) * np.linalg.norm(self.right))
        return self.form.quotient(vector) - taken + 64 * _EPS * size

    def lowest_quotient(self, vectors: Sequence[FloatArray | None], enough: float, proof: Evidence) -> float:
        """Return a number that the smallest eigenvalue does not exceed: of some vectors, or of better ones.

        ``proof`` is what is known of the form lifted by ``abs(enough)``.
        """
        known = [vector for vector in vectors if vector is not None]
        least = min((self.quotient(vector) for vector in known), default=np.inf)
        if least <= enough:
            return least
        vector = known[0] if known else np.random.default_rng(0).standard_normal(self.form.size)
        if proof.proved and proof.inverse is not None:
            solver = self._solver(proof.inverse)
            for _ in range(_INVERSE_STEPS):
                vector = solver.matvec(vector / np.linalg.norm(vector))
            return min(least, self.quotient(vector))
        return min(least, self.smallest_eigenvalue(Evidence(False, vector))[0])

    def smallest_eigenvalue(self, evidence: Evidence) -> tuple[float, float]:
        """Return a number that the smallest eigenvalue does not exceed, and by how much it is smaller at most."""
        matrix, outer = self.form.lower, (self.left, self.right)
        start = evidence.witness if evidence.witness is not None else np.ones(self.form.size)

        def image(vector: Any) -> FloatArray:
            return product(matrix, np.ravel(vector), outer)

        operator = LinearOperator(matrix.shape, matvec=image, dtype=np.float64)
        if evidence.proved:
            options: dict[str, Any] = {"sigma": 0.0, "OPinv": self._solver(evidence.inverse)}
        else:
            options = {"which": "SA"}
        try:
            _, vectors = eigsh(operator, k=1, v0=start, maxiter=_RESTARTS, **options)
        except ArpackNoConvergence:
            vectors = start[:, None]
        value = min(self.quotient(vectors[:, 0]), self.quotient(start))
        for slack in _SLACKS:
            lower = value - slack * abs(value)
            if self.lifted(-lower).examine().proved:
                return value, value - lower
        return value, value if evidence.proved else np.inf

    def _solver(self, inverse: Inverse | None) -> LinearOperator:
        """Return L^-1: by the factors that proved A positive definite, else by conjugate gradients."""
        matrix = self.form.lower
        if inverse is not None:
            across = np.array([inverse.solve(np.ascontiguousarray(column)) for column in self.left.T]).T
            small = np.eye(across.shape[1]) - self.right.T @ across

            def solve(right: Any) -> FloatArray:
                answer = inverse.solve(np.ravel(right))
                return np.asarray(answer + across @ np.linalg.solve(small, self.right.T @ answer))
        else:
            preconditioner = self.precondition(matrix)

            def solve(right: Any) -> FloatArray:
                right = np.ascontiguousarray(np.ravel(right))
                return solve_accurately(matrix, right, preconditioner, outer=(self.left, self.right)).solution

        return LinearOperator(matrix.shape, matvec=solve, dtype=np.float64)
