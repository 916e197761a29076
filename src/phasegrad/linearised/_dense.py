r"""The linearised system of any network, every sample's Laplacian factored by LAPACK.

A step of Newton's method takes a Cholesky factor where the Laplacian is symmetric, else an LU factor. The certificate
is a Cholesky factor too, of the Laplacian lowered by its own rounding error,

    L - t = R R^T,      t a bound on the rounding of L and of the factorisation

which exists only if L is positive definite. The same factor then solves with L: one step of refinement takes back what
t changed, as long as the smallest eigenvalue is well above t.

Without reciprocity eigenvalues decide. By Bauer and Fike one of them is off by at most the norm of the error of the
matrix times the condition of the eigenvectors. Eigenvectors cost ten times the eigenvalues of a symmetric matrix, a
Cholesky factorisation a fifth of them: where G L + L^T G is positive definite in a metric G, every eigenvalue has a
positive real part (Lyapunov), and that is tried first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.dynamics import System
from phasegrad.graphs import lazy_property
from phasegrad.linearised._bounds import meets_angle_condition, nearly_zero
from phasegrad.linearised._factors import (
    LU,
    Cholesky,
    chunks,
    condition_bound,
    is_positive_definite,
    largest_row,
    smallest_eigenvalues,
)
from phasegrad.linearised._linearised import AT_REST, Linearised, Strides, Verdict, verdicts

#: Share of the most it can be below which no weight of the positive stand-in of a Laplacian falls.
FLOOR = 0.1
#: Share of the largest eigenvalue below which none is taken where a saddle is left.
LEAST = 1e-4
# The smallest eigenvalue over the rounding error from which a factor of the lowered Laplacian solves with it: one step
# of refinement then leaves less than a millionth of what the other one would change, a part in 1e18 of the solution.
_WELL_ABOVE = 1e3
_EPS = float(np.finfo(float).eps)


class DenseLaplacian(Linearised):
    """Any system; see `phasegrad.linearised._dense`."""

    name = "dense"

    def __init__(self, system: System, moving: Array, before: list[Cholesky | LU | None] | None = None) -> None:
        super().__init__(system, moving)
        # Factors of the states before, and of the steps from here, where they were made.
        self._before = before
        self._steps: list[Cholesky | LU | None] | None = None
        self._kept: list[_Factored] | None = None

    @staticmethod
    def fits(system: System) -> bool:
        """Return True: it takes every system that is small enough, and refuses others with a reason."""
        del system
        return True

    @staticmethod
    def entries(system: System) -> int:
        """Return the entries of a Laplacian."""
        return int(system.graph.free.size) ** 2

    def at(self, moving: Array) -> DenseLaplacian:
        """Return the same samples at other phases (B, n)."""
        return DenseLaplacian(self.system, moving, self._steps)

    def take(self, rows: Array) -> DenseLaplacian:
        """Return some of the samples."""
        part = DenseLaplacian(self.system.take(rows), self.moving[rows])
        self._share(part, rows)
        chosen = np.arange(self.system.batch)[rows].tolist()
        if self._before is not None:
            part._before = [self._before[row] for row in chosen]
        if self._kept is not None:
            part._kept = [self._kept[row] for row in chosen]
        return part

    @lazy_property
    def matrices(self) -> Array:
        """The Laplacian of every sample, (B, n, n)."""
        return self.system.laplacian(self.phases)

    def newton(self, accuracy: FloatArray, rests: BoolArray) -> tuple[Array, BoolArray]:
        """Solve L d = F; see `Linearised.newton`."""
        del accuracy
        step = np.zeros_like(self.force)
        if self.system.has_energy and (self._before is None or not rests.any()):
            self._steps = list(Cholesky.solved(self.matrices, self.force, step))
            return step, np.array([factor is not None for factor in self._steps], dtype=bool)
        factors: list[Cholesky | LU | None] = [None] * self.system.batch
        if self._before is not None:
            factors = [old if rest else None for old, rest in zip(self._before, rests.tolist(), strict=True)]
        missing = [row for row, factor in enumerate(factors) if factor is None]
        if len(missing) == len(factors):
            matrices = self.matrices
        elif missing:
            matrices = self.system.take(np.array(missing)).laplacian(self.phases[missing])
        made = self._stepping(matrices) if missing else []
        for row, factor in zip(missing, made, strict=True):
            factors[row] = factor
        self._steps = factors
        for row, (factor, force) in enumerate(zip(factors, self.force, strict=True)):
            if factor is not None:
                step[row] = factor.solve(force)
        return step, np.array([factor is not None for factor in factors], dtype=bool)

    def stride(
        self, tolerance: FloatArray, count: int, max_turn: float, share: float, *, polish: bool
    ) -> Strides | None:
        """Take full Newton steps of a single sample with an energy; see `Linearised.stride`.

        The same arithmetic as step by step, without the masks that a batch needs.
        """
        if self.system.batch != 1 or not self.system.has_energy or self.moving.size == 0:
            return None
        state, factor, taken, limit = self, None, 0, float(tolerance[0])
        left = float(np.abs(state.force).max())
        while taken < count:
            near = left <= limit
            if near and not polish:
                break
            if factor is None or not left <= AT_REST * limit:
                factor = Cholesky.of(state.matrices[0])
            step = None if factor is None else factor.solve(state.force[0])
            if step is None or not np.abs(step).max() <= max_turn:
                left = np.inf if near else left
                break
            after = DenseLaplacian(self.system, state.moving + step)
            smaller = float((after.force * after.force).sum()) <= share * float((state.force * state.force).sum())
            reached = float(np.abs(after.force).max())
            if not (reached < left if near else smaller):
                break
            state, left, taken = after, reached, taken + 1
            if near:
                break
        return Strides(state.moving, np.array([left]), np.array([taken], dtype=np.int64))

    def _stepping(self, matrices: Array) -> Sequence[Cholesky | LU | None]:
        """Return the factors of Laplacians that Newton steps take; None where there is none."""
        if self.system.has_energy:
            return Cholesky.each(matrices)
        factors = [LU.of(matrix) for matrix in matrices]
        both = zip(factors, matrices, strict=True)
        return [factor if factor.floor(largest_row(matrix)) > 0.0 else None for factor, matrix in both]

    def follow(self, rows: IntArray) -> tuple[Array, BoolArray]:
        """Solve L d = F of some samples by LU."""
        step, regular = np.zeros((rows.size, self.force.shape[1]), self.force.dtype), np.zeros(rows.size, dtype=bool)
        for place, row in enumerate(rows.tolist()):
            factor = LU.of(self.matrices[row])
            regular[place] = factor.floor(largest_row(self.matrices[row])) > 0.0
            if regular[place]:
                step[place] = factor.solve(self.force[row])
        return step, regular

    def descend(self, rows: IntArray) -> tuple[Array, BoolArray]:
        """Solve with the positive stand-in of some samples' Laplacians."""
        step, usable = np.zeros((rows.size, self.force.shape[1])), np.zeros(rows.size, dtype=bool)
        stand_ins = self.system.take(rows).laplacian(self.phases[rows], floor=FLOOR)
        for place, row in enumerate(rows.tolist()):
            factor = Cholesky.of(stand_ins[place])
            if factor is not None:
                step[place], usable[place] = factor.solve(self.force[row]), True
        return step, usable

    def leave(self, rows: IntArray) -> Array:
        """Return steps by the Laplacians of some samples with all eigenvalues made positive: away from saddles."""
        values, vectors = np.linalg.eigh(self.matrices[rows])
        stiffness = np.maximum(np.abs(values), LEAST * np.max(np.abs(values), axis=1, keepdims=True))
        along = np.einsum("bij,bi->bj", vectors, self.force[rows])
        return np.einsum("bij,bj->bi", vectors, along / stiffness)

    def _solve(self, right: Array, *, transposed: bool, accuracy: float) -> tuple[Array, BoolArray]:
        """Solve L x = b (or L^T x = b); see `Linearised.solve`."""
        del accuracy
        solution, regular = np.zeros(right.shape, right.dtype), np.ones(right.shape[0], dtype=bool)
        if right.shape[1] == 0:
            return solution, regular
        for row, one in enumerate(self._each):
            solution[row], regular[row] = one.solve(right[row], transposed=transposed)
        return solution, regular

    def matvec(self, vectors: Array) -> Array:
        """Return L v of vectors (B, n)."""
        return np.asarray((self.matrices @ vectors[:, :, None])[:, :, 0])

    def definite(self, floor: FloatArray | None = None, *, explain: bool = False) -> IntArray:
        """Return the verdict on every sample; see `Linearised.definite`."""
        if not self.system.reciprocal:
            if floor is not None:
                return self._above(floor)
            return self._judged[0] if "_judged" in self.__dict__ else self._one_way()[0]
        if floor is None:
            stable = np.fromiter((one.proved for one in self._each), dtype=bool, count=self.system.batch)
        else:
            stable = np.ones(self.system.batch, dtype=bool)
            for rows, matrices in self._parts():
                stable[rows] = is_positive_definite(matrices, floor[rows])
        verdict = verdicts(stable)
        if explain and not stable.all():
            left = np.flatnonzero(~stable)
            verdict[left] = self.take(left).explained()
        return verdict

    def explained(self) -> IntArray:
        """Return which of samples that are not stable are marginal and which unstable, (B,), by their eigenvalues."""
        smallest, _ = self.smallest()
        return np.where(smallest >= -nearly_zero(self.system), Verdict.MARGINAL, Verdict.UNSTABLE).astype(np.int64)

    def smallest(self) -> tuple[FloatArray, FloatArray]:
        """Return the smallest eigenvalue of every sample and a bound on its error, (B,) each."""
        if not self.system.reciprocal:
            return self._judged[1:]
        smallest = np.empty(self.system.batch)
        for rows, matrices in self._parts():
            smallest[rows] = smallest_eigenvalues(matrices)
        return smallest, self.system.eigenvalue_rounding

    def _parts(self) -> Iterator[tuple[IntArray, Array]]:
        """Yield samples and their Laplacians, all at once where they are kept, else a part at a time."""
        if self.fits_in_memory:
            yield np.arange(self.system.batch), self.matrices
            return
        for part in chunks(self.system.batch, self.entries(self.system)):
            rows = np.arange(part.start, part.stop)
            yield rows, self.system.take(rows).laplacian(self.phases[rows])

    @property
    def _each(self) -> Iterator[_Factored]:
        """Every sample's Laplacian with its factors, kept where they may be."""
        if self._kept is None and self.fits_in_memory:
            self._kept = list(self._made())
        return iter(self._kept) if self._kept is not None else self._made()

    def _made(self) -> Iterator[_Factored]:
        for rows, matrices in self._parts():
            margins = self.system.eigenvalue_rounding[rows]
            lowered: Sequence[Cholesky | None] = [None] * len(rows)
            if self.system.has_energy:
                lowered = Cholesky.each(matrices, margins)
            for each in zip(matrices, margins.tolist(), lowered, strict=True):
                yield _Factored(*each)

    def _above(self, floor: FloatArray) -> IntArray:
        """Return the verdicts against a floor without reciprocity, by eigenvalues as they are computed."""
        values = np.empty(self.system.batch)
        for rows, matrices in self._parts():
            values[rows] = np.linalg.eigvals(matrices).real.min(axis=1, initial=np.inf)
        return verdicts(values > floor)

    @lazy_property
    def _judged(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Verdicts, smallest eigenvalues and their errors without reciprocity, of all samples."""
        return self._one_way(every=True)

    def _one_way(self, *, every: bool = False) -> tuple[IntArray, FloatArray, FloatArray]:
        """Judge coupling that is not reciprocal: by the angle condition, a metric, else eigenvalues and their errors.

        Eigenvalues are NaN where nothing depends on them, unless ``every`` one is wanted.
        """
        system = self.system
        proven = meets_angle_condition(system, self.phases) & (system.pull is None and system.correction is None)
        verdict = verdicts(proven)
        smallest, error = np.full((2, system.batch), np.nan)
        nearly = nearly_zero(system)
        for row in np.flatnonzero(~proven | every):
            matrix = system.take(np.array([row])).laplacian(self.phases[row : row + 1])[0]
            if matrix.size == 0:
                verdict[row], smallest[row], error[row] = Verdict.STABLE, np.inf, 0.0
                continue
            norm = float(np.linalg.norm(matrix))
            # Where every weight nearly vanishes, they are rounded as large as they can be, and not as they are.
            rounding = max(4 * matrix.shape[0] * _EPS * norm, float(system.eigenvalue_rounding[row]))
            if not proven[row] and _attracts_in_a_metric(system, matrix, rounding):
                proven[row], verdict[row] = True, Verdict.STABLE
            if proven[row] and not every:
                continue
            values, vectors = np.linalg.eig(matrix)
            smallest[row] = np.min(values.real)
            error[row] = min(rounding * condition_bound(values, vectors), max(2 * norm, rounding))
            if proven[row]:
                # The eigenvalues of a matrix that is far from normal say less than the condition does.
                error[row] = max(error[row], -smallest[row])
            else:
                verdict[row] = _told_apart(smallest[row], error[row], nearly[row])
        return verdict, smallest, error


class _Factored:
    """One Laplacian with the factors that its solves share; an LU factor is made when it is first needed."""

    def __init__(self, matrix: Array, margin: float, lowered: Cholesky | None) -> None:
        self.matrix, self.margin, self.lowered = matrix, margin, lowered
        self.proved = lowered is not None or matrix.size == 0

    @lazy_property
    def norm(self) -> float:
        """The largest sum of absolute values in a row."""
        return largest_row(self.matrix)

    @lazy_property
    def solves_symmetric(self) -> bool:
        """Whether the factor of the lowered Laplacian solves with the Laplacian."""
        return self.lowered is not None and self.lowered.floor(self.norm) > _WELL_ABOVE * self.margin

    @lazy_property
    def general(self) -> tuple[LU, bool]:
        """Factors with pivots, and whether the smallest singular value is above the rounding error."""
        factor = LU.of(self.matrix)
        return factor, factor.floor(self.norm) > self.margin

    def solve(self, right: Array, *, transposed: bool) -> tuple[Array, bool]:
        """Return L^-1 b or L^-T b, zero where L is singular, and whether it is regular."""
        if self.solves_symmetric:
            assert self.lowered is not None
            solution = self.lowered.solve(right)
            return solution + self.lowered.solve(right - self.matrix @ solution), True
        factor, regular = self.general
        if not regular:
            return np.zeros_like(right), False
        return factor.solve(right, transposed=transposed), True


def _told_apart(smallest: float, error: float, nearly: float) -> Verdict:
    """Return the verdict on a Laplacian whose smallest eigenvalue is known to within an error."""
    if smallest > error:
        return Verdict.STABLE
    if smallest < -max(error, nearly):
        return Verdict.UNSTABLE
    return Verdict.MARGINAL if error <= nearly else Verdict.UNPROVED


def _attracts_in_a_metric(system: System, matrix: Array, rounding: float) -> bool:
    """Return whether G L + L^T G is proved positive definite, the Laplacian being off by as much as ``rounding``.

    The metric G is that of phases counted from their mean where the network turns, in which reciprocal coupling is
    symmetric, else the identity.
    """
    measured = matrix - np.sum(matrix, axis=0) / system.graph.size if system.drifts else matrix
    return Cholesky.of((measured + measured.T) / 2, 2 * rounding) is not None
