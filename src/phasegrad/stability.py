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

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, lobpcg

from phasegrad.dynamics import System, wrapped
from phasegrad.solvers.dense import DenseSystem
from phasegrad.solvers.krylov import conjugate_gradients
from phasegrad.solvers.linear import chunks, is_positive_definite, smallest_real_part
from phasegrad.solvers.preconditioning import Preconditioner, preconditioner
from phasegrad.solvers.regime import is_sparse
from phasegrad.validation import BoolArray, FloatArray

Array = NDArray[Any]

#: Oscillators up to which a sparse network too is certified by a dense factorisation.
DENSE_CERTIFICATE = 1000
_FEW_OUTPUTS = 16
_BLOCK, _ITERATIONS = 4, 40
_SURE = 0.03  # the cosine of an angle of 88 degrees
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Stability:
    """Whether each sample is stable, (B,), and its smallest eigenvalue with a bound on its error where computed."""

    stable: BoolArray
    smallest: FloatArray
    error: FloatArray


def stability(
    system: System, phases: Array, *, angles: FloatArray | None = None, eigenvalue: bool = False
) -> Stability:
    """Certify the states ``phases`` (B, N), real; smallest eigenvalues are NaN where they were not needed.

    ``angles`` (B,) are the `largest_angles`, where the caller has them already.
    """
    batch = system.batch
    result = Stability(np.zeros(batch, dtype=bool), np.full(batch, np.nan), np.full(batch, np.nan))
    sparsely = is_sparse(system) and system.network.free.size > DENSE_CERTIFICATE
    if not sparsely and not eigenvalue:
        result.stable[:] = surely_stable(system, phases, angles)
    left = np.flatnonzero(~result.stable)
    parts = [slice(b, b + 1) for b in range(left.size)] if sparsely else chunks(left.size, system.network.free.size)
    for part in parts:
        rows = left[part]
        judge = _judge_sparse if sparsely else _judge_dense
        result.stable[rows], result.smallest[rows], result.error[rows] = judge(
            system.take(rows), phases[rows], eigenvalue
        )
    return result


def meets_angle_condition(system: System, phases: Array) -> BoolArray:
    """Return where every weight of the Laplacian is positive beyond rounding, the nudge left aside, (B,)."""
    interaction = system.network.interaction
    coupled = system.coupling != 0
    margin = 8 * _EPS * interaction.steepness
    positive = np.all(~coupled | (system.edge_weights(phases) > margin * np.abs(system.coupling)), axis=1)
    if system.field_strength is not None:
        assert system.field_phase is not None
        bias = system.field_strength * interaction.derivative(system.field_phase - phases)
        positive &= np.all((system.field_strength == 0) | (bias > margin * np.abs(system.field_strength)), axis=1)
    return np.asarray(positive, dtype=bool)


def largest_angles(system: System, phases: Array) -> FloatArray:
    """Return the largest angle across an edge of every sample, (B,)."""
    angles = np.abs(system.angles(phases))
    if np.max(angles, initial=0.0) > np.pi:
        angles = np.abs(wrapped(angles))
    return np.asarray(np.max(angles, axis=1, initial=0.0))


def surely_stable(system: System, phases: Array, angles: FloatArray | None = None) -> BoolArray:
    """Return samples that a bound proves stable, (B,), without a factorisation of their own.

    With couplings and fields of one sign and every angle below a < pi/2, each weight K cos(angle) is at least cos(a) K.
    So the Laplacian is at least cos(a) times the one at rest, and one Cholesky factorisation of that settles all
    samples whose nudge does not bend the other way.
    """
    network = system.network
    none = np.zeros(system.batch, dtype=bool)
    strengths = [system.coupling] if system.field_strength is None else [system.coupling, system.field_strength]
    if not DenseSystem.fits(system) or system.batch < 2 or any(np.any(values < 0) for values in strengths):
        return none
    widest = largest_angles(system, phases) if angles is None else angles
    if system.field_strength is not None:
        assert system.field_phase is not None
        widest = np.maximum(widest, np.max(np.abs(wrapped(system.field_phase - phases)), axis=1, initial=0.0))
    sure = np.cos(widest) > _SURE
    if system.pull is not None:
        bend = system.pull.hessian(phases)
        own = np.diagonal(bend, axis1=1, axis2=2)
        worst = np.min(own - (np.sum(np.abs(bend), axis=2) - np.abs(own)), axis=1)
        sure &= worst >= -system.eigenvalue_rounding
    at_rest = np.zeros((1, network.size))
    quiet = system.take(np.zeros(1, dtype=np.int64)).replace(pull=None)
    if system.field_strength is not None:
        quiet = quiet.replace(field_phase=np.zeros((1, network.size)))
    lowest = quiet.laplacian(at_rest)
    proven = is_positive_definite(lowest, 2 * system.eigenvalue_rounding / _SURE)[0]
    return sure if proven else none


def _judge_dense(system: System, phases: Array, eigenvalue: bool) -> tuple[Any, Any, Any]:
    if not eigenvalue and system.batch > 1 and DenseSystem.fits(system):
        dense = DenseSystem.of(system)
        if dense.eliminates_cheaply:
            state = dense.state(np.take(phases, system.network.free, axis=1))
            return dense.exceeds(state, system.eigenvalue_rounding), np.nan, system.eigenvalue_rounding
    matrices = system.laplacian(phases)
    symmetric = system.network.reciprocal
    smallest: Any = np.nan
    rounding = system.eigenvalue_rounding
    if eigenvalue or not symmetric:
        smallest = smallest_real_part(matrices, symmetric=symmetric)
    if symmetric:
        return is_positive_definite(matrices, rounding), smallest, rounding
    return smallest > rounding, smallest, rounding


def _judge_sparse(system: System, phases: Array, eigenvalue: bool) -> tuple[bool, float, float]:
    proven = bool(meets_angle_condition(system, phases)[0])
    if proven and system.pull is not None:
        proven = _survives_nudge(system, phases)
    if proven and not eigenvalue:
        return True, np.nan, np.nan
    matrix = system.sparse_laplacian(phases)
    inverse = preconditioner(system, phases, matrix)
    smallest, error = smallest_eigenvalue(matrix, inverse)
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
    inverse = preconditioner(system, phases, matrix)
    where = system.network.position[system.pull.nodes]
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
    with warnings.catch_warnings():
        # The bound below says how far it came; a warning beside it would say less.
        warnings.simplefilter("ignore")
        values, vectors = lobpcg(matrix, start, M=operator, largest=False, tol=1e-13 * scale, maxiter=_ITERATIONS)
    first = int(np.argmin(values))
    vector = vectors[:, first] / np.linalg.norm(vectors[:, first])
    image = matrix @ vector
    value = float(vector @ image)
    error = float(np.linalg.norm(image - value * vector)) + 8 * _EPS * scale
    return value, error
