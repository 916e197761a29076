r"""Certificates of stability: whether the reduced Laplacian of a state is positive definite.

Dense networks get a proof by Cholesky factorisation, lowered by its own rounding error, where one bound for the whole
batch (`surely_stable`) does not settle the matter before. Sparse ones get, in this order:

- **The angle condition.** If every weight K H'(theta_j - theta_i) is positive (for the sine: every angle across an edge
  below pi / 2), the Laplacian of a connected grounded graph is positive definite, whatever its size. This is a proof.
- **A nudge on top of it.** A pull of curvature H on outputs with compliance S = E^T L^-1 E keeps L + E H E^T positive
  definite exactly as long as all eigenvalues of 1 + H S are positive.
- **The smallest eigenvalue** by LOBPCG with an approximate inverse as preconditioner. A negative Rayleigh quotient
  proves instability. A positive one, with residual r, means an eigenvalue within r of it; that it is the smallest
  rests on the convergence of the method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, lobpcg

from phasegrad._validation import Array, BoolArray, FloatArray
from phasegrad.dynamics import System, wrapped
from phasegrad.solvers._choice import is_sparse
from phasegrad.solvers._krylov import conjugate_gradients
from phasegrad.solvers._linear import chunks, is_positive_definite, smallest_real_part
from phasegrad.solvers._preconditioning import Preconditioner, preconditioner
from phasegrad.solvers._process import unwarned
from phasegrad.solvers._products import Products

#: Oscillators up to which a sparse network too is certified by a dense factorisation.
DENSE_CERTIFICATE = 1000
_FEW_OUTPUTS = 16
_MANY_ENTRIES = 2**22
_BLOCK, _ITERATIONS = 4, 40
_SURE = 0.03  # the cosine of an angle of 88 degrees
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Stability:
    """Whether each sample is stable, (B,), and its smallest eigenvalue with a bound on its error where computed."""

    stable: BoolArray
    smallest: FloatArray
    error: FloatArray


def stability(system: System, phases: Array, *, eigenvalue: bool = False) -> Stability:
    """Certify the states ``phases`` (B, N), real, a part of the batch at a time.

    Smallest eigenvalues are NaN where they were not needed.
    """
    batch = system.batch
    result = Stability(np.zeros(batch, dtype=bool), np.full(batch, np.nan), np.full(batch, np.nan))
    sparsely = is_sparse(system) and system.graph.free.size > DENSE_CERTIFICATE
    if sparsely:
        parts, judge = [slice(b, b + 1) for b in range(batch)], _judge_sparse
    else:
        size, edges = system.graph.free.size, system.graph.n_edges
        # Compiled code takes half a second to load: not for a few small matrices.
        products = not eigenvalue and batch * size**2 > _MANY_ENTRIES and Products.fits(system)
        judge = _judge_products if products else _judge_dense
        few = products and Products.of(system.take(np.arange(0))).eliminates
        parts = chunks(batch, 32 * size if few else size * size + edges)
    for part in parts:
        rows = np.arange(part.start, part.stop)
        result.stable[rows], result.smallest[rows], result.error[rows] = judge(
            system.take(rows), phases[rows], eigenvalue
        )
    return result


def exceeds(products: Products, moving: FloatArray, floor: FloatArray) -> BoolArray:
    """Return where the smallest eigenvalue of the Laplacian is above ``floor`` (B,), at phases (B, n) of a batch."""
    if products.eliminates:
        return products.exceeds(moving, floor)
    system = products.system
    phases = np.empty((system.batch, system.graph.size))
    phases[:, system.graph.held], phases[:, products.nodes] = system.held_phases, moving
    found = surely_stable(system, phases) & (floor <= system.eigenvalue_rounding)
    left = np.flatnonzero(~found)
    for part in chunks(left.size, system.graph.free.size**2):
        rows = left[part]
        found[rows] = is_positive_definite(system.take(rows).laplacian(phases[rows]), floor[rows])
    return found


def meets_angle_condition(system: System, phases: Array) -> BoolArray:
    """Return where every weight of the Laplacian is positive beyond rounding, the nudge left aside, (B,)."""
    positive = np.ones(phases.shape[0], dtype=bool)
    for term in system.terms:
        stiffness = term.stiffness(system.graph, system.values, phases)
        for weight, bound in stiffness.beside(term.stiffest(system.graph, system.values)):
            if weight is not None:
                positive &= np.all((bound == 0) | (weight > 8 * _EPS * bound), axis=1)
    return positive


def largest_angles(system: System, phases: Array) -> FloatArray:
    """Return the largest angle across an edge of every sample, (B,), a part of the batch at a time."""
    largest = np.zeros(phases.shape[0])
    for part in chunks(phases.shape[0], system.graph.n_edges):
        angles = np.abs(system.graph.angles(phases[part]))
        if np.max(angles, initial=0.0) > np.pi:
            angles = np.abs(wrapped(angles))
        largest[part] = np.max(angles, axis=1, initial=0.0)
    return largest


def surely_stable(system: System, phases: Array) -> BoolArray:
    """Return samples that a bound proves stable, (B,), without a factorisation of their own.

    With couplings and fields of one sign and every angle below a < pi/2, each weight K cos(angle) is at least cos(a) K.
    So the Laplacian is at least cos(a) times the one at rest, and one Cholesky factorisation of that settles all
    samples whose nudge does not bend the other way.
    """
    none = np.zeros(system.batch, dtype=bool)
    if not Products.fits(system) or system.batch < 2:
        return none
    couplings = [k for term in system.terms if (k := term.phasor_edges(system.values)) is not None]
    if any(np.any(coupling < 0) for coupling in couplings):
        return none
    # No angle across an edge is wider than all phases are apart.
    widest = np.ptp(phases, axis=1)
    wide = np.flatnonzero(widest >= np.pi / 2)
    if wide.size:
        widest[wide] = largest_angles(system, phases[wide])
    sure = np.cos(widest) > _SURE
    for field in (found for term in system.terms if (found := term.phasor_field(system.values)) is not None):
        along = field[0] * np.cos(phases) + field[1] * np.sin(phases)
        sure &= np.all(along >= _SURE * np.hypot(*field), axis=1)
    rounding = system.eigenvalue_rounding
    if system.pull is not None:
        bend = system.pull.hessian(phases)
        own = np.diagonal(bend, axis1=1, axis2=2)
        worst = np.min(own - (np.sum(np.abs(bend), axis=2) - np.abs(own)), axis=1)
        sure &= worst >= -rounding
    if not np.any(sure):
        return none
    lowest = _at_rest(system)
    return sure if is_positive_definite(lowest, 2 * rounding[:1] / _SURE)[0] else none


def _at_rest(system: System) -> Array:
    """Return the reduced Laplacian (1, n, n) of one network whose every weight is as large as it can be."""
    parts = [term.stiffest(system.graph, system.values) for term in system.terms]
    edges = np.sum([part.forward for part in parts if part.forward is not None], axis=0)
    places, chosen = system.graph.dense_places
    size = system.graph.free.size
    matrix = np.zeros((1, size * size))
    matrix[:, places] = np.concatenate([-edges, -edges, system.stiffest], axis=1)[:, chosen]
    return matrix.reshape(1, size, size)


def _judge_products(system: System, phases: Array, eigenvalue: bool) -> tuple[Any, Any, Any]:
    del eigenvalue
    products = Products.of(system)
    rounding = system.eigenvalue_rounding
    return exceeds(products, np.take(phases, products.nodes, axis=1), rounding), np.nan, rounding


def _judge_dense(system: System, phases: Array, eigenvalue: bool) -> tuple[Any, Any, Any]:
    matrices = system.laplacian(phases)
    rounding = system.eigenvalue_rounding
    smallest: Any = np.nan
    if eigenvalue or not system.reciprocal:
        smallest = smallest_real_part(matrices, symmetric=system.reciprocal)
    if system.reciprocal:
        return is_positive_definite(matrices, rounding), smallest, rounding
    return smallest > rounding, smallest, rounding


def _judge_sparse(system: System, phases: Array, eigenvalue: bool) -> tuple[bool, float, float]:
    proven = bool(meets_angle_condition(system, phases)[0])
    if proven and system.pull is not None:
        proven = _survives_nudge(system, phases)
    if proven and not eigenvalue:
        return True, np.nan, np.nan
    matrix = system.sparse_laplacian(phases)
    smallest, error = smallest_eigenvalue(matrix, preconditioner(system, matrix))
    return proven or smallest > error, smallest, error


def _survives_nudge(system: System, phases: Array) -> bool:
    """Return whether a state whose own Laplacian is positive definite is so under its nudge too."""
    assert system.pull is not None
    curvature = system.pull.hessian(phases)[0]
    if float(np.min(np.linalg.eigvalsh(curvature), initial=0.0)) >= 0:
        return True
    if curvature.shape[0] > _FEW_OUTPUTS:
        return False
    matrix = system.replace(pull=None).sparse_laplacian(phases)
    inverse = preconditioner(system, matrix)
    where = system.graph.position[system.pull.nodes]
    compliance = np.empty_like(curvature)
    for k, node in enumerate(where):
        unit = np.zeros(matrix.shape[0])
        unit[node] = 1.0
        compliance[:, k] = conjugate_gradients(matrix, unit, inverse, tolerance=1e-3).solution[where]
    # Half of the way to instability is left as a margin for the loose solves.
    return float(np.min(np.linalg.eigvals(curvature @ compliance).real)) > -0.5


def smallest_eigenvalue(matrix: sparse.csr_array, inverse: Preconditioner) -> tuple[float, float]:
    """Return the smallest eigenvalue of a symmetric sparse matrix and a bound on its distance to the spectrum."""
    size = matrix.shape[0]

    def approximate_inverse(left: FloatArray) -> FloatArray:
        return conjugate_gradients(matrix, np.ascontiguousarray(left.ravel()), inverse, tolerance=1e-2).solution

    start = np.random.default_rng(0).standard_normal((size, _BLOCK))
    start[:, 0] = 1.0
    operator = LinearOperator(matrix.shape, matvec=approximate_inverse, dtype=np.float64)
    scale = float(np.max(np.abs(matrix.diagonal())))
    # The bound below says how far it came; a warning beside it would say less.
    with unwarned(), np.errstate(all="ignore"):
        values, vectors = lobpcg(matrix, start, M=operator, largest=False, tol=1e-13 * scale, maxiter=_ITERATIONS)
    first = int(np.argmin(values))
    vector = vectors[:, first] / np.linalg.norm(vectors[:, first])
    image = matrix @ vector
    value = float(vector @ image)
    error = float(np.linalg.norm(image - value * vector)) + 8 * _EPS * scale
    return value, error
