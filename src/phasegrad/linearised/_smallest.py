"""The smallest eigenvalue of a large sparse Laplacian, with an interval that holds it.

The quotient x^T L x / x^T x of any vector is an upper end, and a proof that L minus the lower end is positive definite
is one for that: by the pivots of a factorisation where one is cheap, by a positive vector where no weight is negative,
else by what is known anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh, lobpcg

from phasegrad._process import unwarned
from phasegrad._validation import FloatArray
from phasegrad.linearised._krylov import conjugate_gradients, solve_accurately
from phasegrad.linearised._proofs import Evidence, Factors, Form, Precondition

_BLOCK, _ITERATIONS, _ROUGHLY = 4, 40, 200
_STEPS, _SLACKS = 12, (1e-3, 0.1)
_INVERSE_STEPS, _RESTARTS = 3, 30
_EPS = float(np.finfo(float).eps)


def smallest_eigenvalue(
    form: Form, evidence: Evidence, precondition: Precondition, *, mesh: bool
) -> tuple[float, float]:
    """Return a number that the smallest eigenvalue does not exceed, and by how much it is smaller at most."""
    if form.size == 0:
        return np.inf, 0.0
    if form.factors_quickly(mesh=mesh):
        vector, lower = _sliced(form, evidence)
    else:
        vector = _iterated(form, evidence, precondition)
        lower = _from_below(form, vector, precondition)
    value = form.quotient(vector)
    lower = max(lower, form.bottom, 0.0 if evidence.proved else -np.inf)
    return value, max(value - lower, 0.0)


def lowest_quotient(
    form: Form, vectors: Sequence[FloatArray | None], enough: float, precondition: Precondition, *, mesh: bool
) -> float:
    """Return a number that the smallest eigenvalue does not exceed, the lowest of some vectors.

    Where none of them is at most ``enough``, another one is looked for: by inverse iteration where a factorisation is
    quick, else by LOBPCG.
    """
    known = [vector for vector in vectors if vector is not None]
    least = min((form.quotient(vector) for vector in known), default=np.inf)
    if least <= enough:
        return least
    if form.factors_quickly(mesh=mesh):
        vector = _inverse_iterated(form, -abs(enough), known)
    else:
        vector = _iterated(form, Evidence(False, known[0] if known else None), precondition)
    return min(least, form.quotient(vector))


def _inverse_iterated(form: Form, shift: float, known: Sequence[FloatArray]) -> FloatArray:
    """Return a vector near the eigenvector whose eigenvalue is nearest to a shift."""
    vector = known[0] if known else np.random.default_rng(0).standard_normal(form.size)
    factors = Factors.of(form.lower, shift)
    if factors is None:
        return vector
    for _ in range(_INVERSE_STEPS):
        answer = factors.solve(vector / np.linalg.norm(vector))
        if not np.all(np.isfinite(answer)) or not np.any(answer):
            break
        vector = answer
    return vector


def _sliced(form: Form, evidence: Evidence) -> tuple[FloatArray, float]:
    """Return the eigenvector, and a lower bound: no pivot of the matrix lowered by it is negative.

    Every factorisation that has a negative pivot also gives a vector whose quotient is below its shift.
    """
    matrix = form.lower
    vector = _start(form, evidence)[:, 0]
    value = form.quotient(vector)
    step = 0.1 * abs(value) + 64 * _EPS * form.norm
    shift = 0.0 if evidence.proved else value - step
    for _ in range(_STEPS):
        factors = Factors.of(matrix, shift)
        if factors is not None and np.all(factors.pivots > 0):
            vector = _nearest(matrix, factors, shift, vector)
            break
        if factors is not None:
            descent = factors.descent()
            if form.quotient(descent) < value:
                vector, value = descent, form.quotient(descent)
        step = max(4 * step, shift - value)
        shift = max(shift - step, form.bottom - 64 * _EPS * form.norm)
    else:
        return vector, -np.inf
    lower, value = shift - factors.rounding, form.quotient(vector)
    for slack in (1e-9, 1e-6, 1e-3):
        closer = value - slack * abs(value) - 4 * factors.rounding
        again = Factors.of(matrix, closer) if closer > lower else None
        if again is not None and np.all(again.pivots > 0):
            return vector, closer - again.rounding
    return vector, lower


def _nearest(matrix: sparse.csr_array, factors: Factors, shift: float, start: FloatArray) -> FloatArray:
    """Return the eigenvector of the smallest eigenvalue, above a shift below which there is none."""
    operator = LinearOperator(matrix.shape, matvec=factors.solve, dtype=np.float64)
    try:
        _, vectors = eigsh(matrix, k=1, sigma=shift, which="LM", OPinv=operator, v0=start, maxiter=_RESTARTS)
    except ArpackNoConvergence:
        return start
    return np.asarray(vectors[:, 0])


def _iterated(form: Form, evidence: Evidence, precondition: Precondition) -> FloatArray:
    """Return the best vector of a block that LOBPCG improves, with rough solves in a positive metric to guide it."""
    matrix, metric = form.lower, form.stand_in
    inverse = precondition(metric)

    def approximate_inverse(left: FloatArray) -> FloatArray:
        right = np.ascontiguousarray(left.ravel())
        return conjugate_gradients(metric, right, inverse, tolerance=1e-2, max_iterations=_ROUGHLY).solution

    operator = LinearOperator(matrix.shape, matvec=approximate_inverse, dtype=np.float64)
    # The interval says how far it came; a warning beside it would say less.
    with unwarned(), np.errstate(all="ignore"):
        start = _start(form, evidence)
        try:
            _, vectors = lobpcg(matrix, start, M=operator, largest=False, tol=1e-13 * form.norm, maxiter=_ITERATIONS)
        except (ValueError, np.linalg.LinAlgError):
            vectors = start
    candidates = [*vectors.T, start[:, 0]]
    return np.asarray(min(candidates, key=form.quotient))


def _start(form: Form, evidence: Evidence) -> FloatArray:
    start = np.random.default_rng(0).standard_normal((form.size, _BLOCK))
    start[:, 0] = 1.0 if evidence.witness is None else evidence.witness
    return start


def _from_below(form: Form, vector: FloatArray, precondition: Precondition) -> float:
    """Return a lower bound: from a positive vector where no weight is negative, else by a proof about L minus it."""
    if not form.bent_edges.size and not form.bent_nodes.size:
        smooth = solve_accurately(form.lower, np.abs(vector), precondition(form.lower)).solution
        return form.below(form.lower, smooth) or -np.inf
    value = form.quotient(vector)
    for slack in _SLACKS:
        lower = value - slack * abs(value)
        if form.lifted(-lower).examine(precondition, mesh=False).proved:
            return lower
    return -np.inf
