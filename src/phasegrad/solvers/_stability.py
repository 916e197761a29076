r"""Certificates of stability: whether the reduced Laplacian of a state is positive definite.

"Stable" is a proof, whatever the size:

- Where every weight K H'(theta_j - theta_i) is positive (for the sine: every angle across an edge below pi / 2), and
  every weight of a sum of phases too, the Laplacian of a connected grounded graph is positive definite, and without
  reciprocity all its eigenvalues have positive real parts.
- Dense networks get a Cholesky factorisation, lowered by its own rounding error, where one bound for the whole batch
  (`surely_stable`) does not settle the matter before; without reciprocity eigenvalues, whose own sensitivity counts.
- Large sparse networks get a proof about their quadratic form, by the pivots of a factorisation or by the compliance
  across the few negative weights (`phasegrad.solvers._forms`).

"Unstable" is proved too, by a direction of negative curvature. Between them lies what is marginal, zero to within a
share of 1e-10 of the largest that one can be, and what is neither proved nor refuted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.dynamics import System, wrapped
from phasegrad.solvers._choice import is_sparse
from phasegrad.solvers._eigenvalues import lowest_quotient, smallest_eigenvalue
from phasegrad.solvers._forms import Form, rounding_units
from phasegrad.solvers._linear import chunks, condition_bound, is_positive_definite, smallest_eigenvalues
from phasegrad.solvers._local import LocalTerms
from phasegrad.solvers._low_rank import Lowered
from phasegrad.solvers._preconditioning import kind_of, preconditioner
from phasegrad.solvers._products import Products

#: Oscillators up to which a sparse network too is certified by a dense factorisation.
DENSE_CERTIFICATE = 1000
#: Oscillators up to which all eigenvalues tell what a sparse network is that was neither proved stable nor refuted.
DENSE_EXPLANATION = 2000
#: Share of the largest that an eigenvalue can be within which the smallest one counts as zero.
MARGINAL = 1e-10
_MANY_ENTRIES = 2**22
_SURE = 0.03  # the cosine of an angle of 88 degrees
_EPS = float(np.finfo(float).eps)


class Verdict(IntEnum):
    """What is known about the stability of a state."""

    UNPROVED = 0
    UNSTABLE = 1
    MARGINAL = 2
    STABLE = 3


@dataclass(frozen=True, eq=False)
class Stability:
    """The verdict on each sample, (B,), and its smallest eigenvalue with a bound on its error where computed.

    Samples that are not stable are marginal, unstable or open only where that was asked for, else unproved.
    """

    verdict: IntArray
    smallest: FloatArray
    error: FloatArray

    @property
    def stable(self) -> BoolArray:
        """Where a proof of stability was found, (B,)."""
        return np.asarray(self.verdict == Verdict.STABLE)


def stability(system: System, phases: Array, *, eigenvalue: bool = False, explain: bool = False) -> Stability:
    """Certify the states ``phases`` (B, N), real, a part of the batch at a time.

    Smallest eigenvalues are NaN where they were not needed. With ``explain`` what is not stable is told apart.
    """
    batch = system.batch
    result = Stability(np.zeros(batch, dtype=np.int64), np.full(batch, np.nan), np.full(batch, np.nan))
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
        result.verdict[rows], result.smallest[rows], result.error[rows] = judge(
            system.take(rows), phases[rows], eigenvalue, explain
        )
    return result


def is_positive_with(system: System, weights: FloatArray, diagonal: FloatArray, sums: FloatArray) -> bool:
    """Return whether a Laplacian with other weights (E,), of sums too, and diagonal (N,) is proved positive definite.

    The system says which preconditioner suits its graph, and nothing else.
    """
    form = Form.between(system.graph, *(np.stack([each, each]) for each in (weights, diagonal, sums)))
    if is_sparse(system) and form.size > DENSE_CERTIFICATE:
        mesh = kind_of(system) == "multigrid"
        return form.examine(lambda matrix: preconditioner(system, matrix), mesh=mesh).proved
    rounding = 8 * form.size * _EPS * form.norm
    return bool(is_positive_definite(form.lower.toarray()[None], rounding)[0])


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
    units = rounding_units(phases)[:, None]
    for term in system.terms:
        stiffness = term.stiffness(system.graph, system.values, phases)
        if stiffness.outer is not None:
            return np.zeros_like(positive)
        for weight, bound in stiffness.beside(term.stiffest(system.graph, system.values)):
            if weight is not None:
                positive &= np.all((bound == 0) | (weight > units * bound), axis=1)
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
    local = LocalTerms.of(system, system.graph.free)
    if local:
        # Their weights may be negative: at least the same share of the most that they can be is asked for.
        sure &= np.all(local.stiffness(phases[:, system.graph.free]) >= _SURE * local.stiffest(), axis=1)
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


def _judge_products(system: System, phases: Array, eigenvalue: bool, explain: bool) -> tuple[Any, Any, Any]:
    del eigenvalue
    products = Products.of(system)
    rounding = system.eigenvalue_rounding
    stable = exceeds(products, np.take(phases, products.nodes, axis=1), rounding)
    return _explained(system, phases, stable) if explain else np.where(stable, Verdict.STABLE, 0), np.nan, rounding


def _judge_dense(system: System, phases: Array, eigenvalue: bool, explain: bool) -> tuple[Any, Any, Any]:
    if not system.reciprocal:
        return _judge_one_way(system, phases, eigenvalue)
    matrices = system.laplacian(phases)
    rounding = system.eigenvalue_rounding
    smallest: Any = smallest_eigenvalues(matrices) if eigenvalue else np.nan
    stable = is_positive_definite(matrices, rounding)
    return _explained(system, phases, stable) if explain else np.where(stable, Verdict.STABLE, 0), smallest, rounding


def _explained(system: System, phases: Array, stable: BoolArray) -> IntArray:
    """Return the verdicts on dense matrices: those that are not stable are told apart by their eigenvalues."""
    verdict = np.where(stable, Verdict.STABLE, Verdict.UNSTABLE).astype(np.int64)
    nearly = _nearly_zero(system)
    for row in np.flatnonzero(~stable):
        values = np.linalg.eigvalsh(system.take(np.array([row])).laplacian(phases[row : row + 1])[0])
        if values[0] >= -nearly[row]:
            verdict[row] = Verdict.MARGINAL
    return verdict


def _nearly_zero(system: System) -> FloatArray:
    """Return what an eigenvalue of each sample must exceed to be told from zero, (B,)."""
    return np.broadcast_to(MARGINAL * system.scales[1], (system.batch,))


def _judge_one_way(system: System, phases: Array, eigenvalue: bool) -> tuple[Any, Any, Any]:
    """Judge coupling that is not reciprocal: by the angle condition, else by eigenvalues and how uncertain they are.

    By Bauer and Fike an eigenvalue is off by at most the norm of the error of the matrix times the condition of the
    eigenvectors. Eigenvectors cost ten times the eigenvalues of a symmetric matrix, a Cholesky factorisation a fifth of
    them: where G L + L^T G is positive definite in a metric G, every eigenvalue has a positive real part (Lyapunov).
    """
    verdict = np.zeros(system.batch, dtype=np.int64)
    smallest, error = np.full((2, system.batch), np.nan)
    proven = meets_angle_condition(system, phases) & (system.pull is None and system.correction is None)
    verdict[proven] = Verdict.STABLE
    nearly = _nearly_zero(system)
    for row in np.flatnonzero(~proven | eigenvalue):
        matrix = system.take(np.array([row])).laplacian(phases[row : row + 1])[0]
        if matrix.size == 0:
            verdict[row], smallest[row], error[row] = Verdict.STABLE, np.inf, 0.0
            continue
        norm = float(np.linalg.norm(matrix))
        # Where every weight nearly vanishes, they are rounded as large as they can be, and not as they are.
        rounding = max(4 * matrix.shape[0] * _EPS * norm, float(system.eigenvalue_rounding[row]))
        if not proven[row] and _attracts_in_a_metric(system, matrix, rounding):
            proven[row], verdict[row] = True, Verdict.STABLE
        if proven[row] and not eigenvalue:
            continue
        values, vectors = np.linalg.eig(matrix)
        smallest[row] = np.min(values.real)
        error[row] = min(rounding * condition_bound(values, vectors), max(2 * norm, rounding))
        if proven[row]:
            # The eigenvalues of a matrix that is far from normal say less than the condition does.
            error[row] = max(error[row], -smallest[row])
        elif smallest[row] > error[row]:
            verdict[row] = Verdict.STABLE
        elif smallest[row] < -max(error[row], nearly[row]):
            verdict[row] = Verdict.UNSTABLE
        elif error[row] <= nearly[row]:
            verdict[row] = Verdict.MARGINAL
    return verdict, smallest, error


def _attracts_in_a_metric(system: System, matrix: Array, rounding: float) -> bool:
    """Return whether G L + L^T G is proved positive definite, the Laplacian being off by as much as ``rounding``.

    The metric G is that of phases counted from their mean where the network turns, in which reciprocal coupling is
    symmetric, else the identity.
    """
    measured = matrix - np.sum(matrix, axis=0) / system.graph.size if system.drifts else matrix
    return bool(is_positive_definite(((measured + measured.T) / 2)[None], 2 * rounding)[0])


def _judge_sparse(system: System, phases: Array, eigenvalue: bool, explain: bool) -> tuple[int, float, float]:
    proven = bool(meets_angle_condition(system, phases)[0]) and _bends_upward(system, phases)
    if proven and not eigenvalue:
        return Verdict.STABLE, np.nan, np.nan
    form = Form.of(system, phases)
    mesh = kind_of(system) == "multigrid"

    def precondition(matrix: Any) -> Any:
        return preconditioner(system, matrix)

    if system.low_rank:
        lowered = Lowered.of(system, phases, form, precondition, mesh=mesh)
        return _judge_lowered(system, phases, lowered, eigenvalue, explain)
    evidence = form.examine(precondition, mesh=mesh)
    verdict = Verdict.STABLE if proven or evidence.proved else Verdict.UNPROVED
    smallest = error = np.nan
    open_, nearly = explain and verdict is not Verdict.STABLE, float(_nearly_zero(system)[0])
    if open_ and evidence.witness is not None and form.quotient(evidence.witness) < -nearly:
        verdict, open_ = Verdict.UNSTABLE, False
    if open_ and form.size <= DENSE_EXPLANATION:
        return _judged_densely(system, phases, eigenvalue)
    if eigenvalue:
        smallest, error = smallest_eigenvalue(form, evidence, precondition, mesh=mesh)
    if open_:
        lifted = form.lifted(nearly).examine(precondition, mesh=mesh)
        vectors, enough = (evidence.witness, lifted.witness), nearly if lifted.proved else -nearly
        least = lowest_quotient(form, vectors, enough, precondition, mesh=mesh)
        verdict = _told_apart(np.fmin(least, smallest), nearly, lifted.proved or smallest - error >= -nearly)
    return verdict, smallest, error


def _judge_lowered(
    system: System, phases: Array, form: Lowered, eigenvalue: bool, explain: bool
) -> tuple[int, float, float]:
    """Judge one large network with a mean field."""
    evidence, nearly = form.examine(), float(_nearly_zero(system)[0])
    verdict = Verdict.STABLE if evidence.proved else Verdict.UNPROVED
    smallest = error = np.nan
    open_ = explain and not evidence.proved
    if open_ and evidence.witness is not None and form.quotient(evidence.witness) < -nearly:
        verdict, open_ = Verdict.UNSTABLE, False
    if open_ and form.form.size <= DENSE_EXPLANATION:
        return _judged_densely(system, phases, eigenvalue)
    if eigenvalue:
        smallest, error = form.smallest_eigenvalue(evidence)
    if open_:
        lifted = form.lifted(nearly).examine()
        enough = nearly if lifted.proved else -nearly
        least = form.lowest_quotient((evidence.witness, lifted.witness), enough, lifted)
        verdict = _told_apart(np.fmin(least, smallest), nearly, lifted.proved or smallest - error >= -nearly)
    return verdict, smallest, error


def _judged_densely(system: System, phases: Array, eigenvalue: bool) -> tuple[int, float, float]:
    """Judge one sparse network of which the quick ways left open what it is, by all its eigenvalues."""
    verdict, smallest, error = _judge_dense(system, phases, eigenvalue, True)
    return int(verdict[0]), float(np.max(smallest)), float(error[0]) if eigenvalue else np.nan


def _bends_upward(system: System, phases: Array) -> bool:
    """Return whether the nudge of one sample, if there is one, only adds to its stiffness."""
    if system.pull is None:
        return True
    return float(np.min(np.linalg.eigvalsh(system.pull.hessian(phases)[0]), initial=0.0)) >= 0


def _told_apart(smallest: float, nearly: float, bounded: bool) -> Verdict:
    """Return the verdict on a form that is not proved positive.

    Its smallest eigenvalue is at most ``smallest``; ``bounded`` says whether it is proved to be at least ``-nearly``.
    """
    if smallest < -nearly:
        return Verdict.UNSTABLE
    if smallest <= nearly and bounded:
        return Verdict.MARGINAL
    return Verdict.UNSTABLE if smallest < 0 else Verdict.UNPROVED
