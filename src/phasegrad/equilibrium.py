"""Equilibria with certificates: the public `find_equilibrium`.

Every sample of a batch gets its own verdict. A state that did not converge, or that is unstable, keeps its
place in the result and says so; nothing drops out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad.dynamics import Nudge, Shape, System, build_system, wrapped
from phasegrad.network import Network
from phasegrad.solvers import BatchNewton, GradientFlow, GuardedNewton, Progress, Solution, Solver, SparseNewton
from phasegrad.solvers.contract import residual
from phasegrad.solvers.linear import on_one_blas_thread
from phasegrad.solvers.regime import is_sparse, refuse_dense_solve
from phasegrad.stability import largest_angles, stability
from phasegrad.validation import (
    BoolArray,
    FloatArray,
    IntArray,
    choice,
    frozen_array,
    joint_shape,
    last_axis_array,
    positive_float,
    random_stream,
)

Array = NDArray[Any]

_SOLVERS = ("auto", "newton", "sparse", "flow", "batch")
_ROUNDING = 8 * float(np.finfo(float).eps)


class Status(Enum):
    """What became of a sample, in words."""

    STABLE = "Converged and stable: every eigenvalue of the reduced Laplacian is positive, disturbances die out."
    UNSTABLE = (
        "Converged but unstable: not every eigenvalue of the reduced Laplacian is positive, "
        "so noise would drive the state away. Start somewhere else."
    )
    UNCONVERGED = (
        "Did not converge: no state with a small enough force was found. The network may have no locked state; "
        "otherwise try another start, solver='flow' or more steps."
    )
    CANNOT_LOCK = (
        "Cannot lock: an oscillator's |omega - mean| exceeds its total coupling, so no equilibrium exists. "
        "Strengthen its coupling or bring its frequency nearer to the mean."
    )


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """Equilibrium phases of a batch and the certificate of every sample.

    Attributes
    ----------
    phases : ndarray, shape (..., N)
        In radians; held oscillators included. Complex under a complex nudge.
    status : ndarray of `Status`, shape (...)
        ``status.item()`` for a single sample.
    residual : ndarray, shape (...)
        The largest |force| on an oscillator that moves.
    stable : ndarray of bool, shape (...)
        Whether the sample converged to a state whose reduced Laplacian is positive definite.
    largest_angle : ndarray, shape (...)
        The largest phase difference across an edge, wrapped to [0, pi].
    steps : ndarray of int, shape (...)
        Steps the solver took.
    blocking : ndarray of int, shape (...)
        The oscillator that cannot lock, -1 where there is none.
    reference_torque : ndarray, shape (...)
        The largest torque needed to hold the oscillators that are held. It vanishes for a free, reciprocal network.
    smallest_eigenvalue : ndarray, shape (...), or None
        Of the reduced Laplacian (real part where coupling is not reciprocal), if it was asked for.
    inputs : ndarray, shape (..., n_in), or None
        The inputs it belongs to.
    eigenvalue_error : ndarray, shape (...), or None
        A bound on the distance from ``smallest_eigenvalue`` to an eigenvalue: rounding, or on a large sparse network
        what the iteration left.
    """

    phases: Array
    status: NDArray[np.object_]
    residual: FloatArray
    stable: BoolArray
    largest_angle: FloatArray
    steps: IntArray
    blocking: IntArray
    reference_torque: FloatArray
    smallest_eigenvalue: FloatArray | None
    inputs: FloatArray | None
    eigenvalue_error: FloatArray | None = None

    @property
    def shape(self) -> Shape:
        """The batch shape."""
        return self.residual.shape

    @property
    def converged(self) -> BoolArray:
        """Where the force vanishes, stable or not, shape (...)."""
        return np.asarray((self.status == Status.STABLE) | (self.status == Status.UNSTABLE), dtype=bool)

    @property
    def counts(self) -> dict[Status, int]:
        """How many samples have each status; all statuses are listed."""
        seen = Counter(self.status.ravel().tolist())
        return {status: seen.get(status, 0) for status in Status}

    def __str__(self) -> str:
        total = int(self.residual.size)
        lines = [f"Equilibrium of {total} sample{'' if total == 1 else 's'}"]
        lines += [f"  {count:>6}  {status.value}" for status, count in self.counts.items() if count]
        named = sorted({int(node) for node in self.blocking.ravel() if node >= 0})
        if named:
            shown = ", ".join(str(node) for node in named[:8]) + (", ..." if len(named) > 8 else "")
            lines.append(f"          oscillators that cannot lock: {shown}")
        if np.any(self.converged):
            lines.append(
                f"  largest residual {np.max(self.residual[self.converged]):.1e}, "
                f"largest angle across an edge {np.max(self.largest_angle[self.converged]):.3f} rad"
            )
        if self.smallest_eigenvalue is not None and np.any(self.converged):
            lines.append(f"  smallest eigenvalue {np.min(self.smallest_eigenvalue[self.converged]):.4g}")
        return "\n".join(lines)


@on_one_blas_thread
def find_equilibrium(
    network: Network,
    inputs: ArrayLike | None = None,
    *,
    nudge: Nudge | None = None,
    start: ArrayLike | str | None = None,
    solver: str | Solver = "auto",
    tolerance: float = 1e-12,
    eigenvalue: bool = False,
    seed: int | None = 0,
    progress: Callable[[Progress], object] | None = None,
) -> Equilibrium:
    """Let a network settle and certify where it came to rest.

    Parameters
    ----------
    network : Network
    inputs : array_like, shape (..., n_in), optional
        One row per sample, any leading batch shape. Left out, the inputs keep their own frequencies.
    nudge : Nudge, optional
        A weak pull on the outputs.
    start : array_like of shape (..., N), "zero" or "random", optional
        Where to begin: at zero (default), at given phases (a warm start), or at uniformly random ones.
    solver : {"auto", "newton", "sparse", "flow", "batch"} or Solver
        "newton" is guarded Newton with dense matrices, "sparse" the same on compressed sparse rows (`SparseNewton`);
        "flow" follows the physical dynamics and finishes with Newton. "auto" takes Newton, the sparse one for a large
        reciprocal network with few edges and, without an energy to descend, follows the dynamics where Newton found
        nothing stable. "batch" settles all samples of a sine-coupled network by matrix products: much faster for many
        samples, and equal to the others to the tolerance, not bit by bit.
    tolerance : float
        The residual to reach: absolute, or relative to the forces where all of them are weaker than 1. It is raised
        to the rounding error of the forces where that is larger.
    eigenvalue : bool
        Whether to compute the smallest eigenvalue of the reduced Laplacian, the distance to instability.
    seed : int or None
        Seed of the random start.
    progress : callable, optional
        Called with a `Progress` after every step of the sparse solver, so that a long solve can show how far it is.

    Returns
    -------
    Equilibrium

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.layered(2, 5, 2, seed=0)
    >>> equilibrium = pg.find_equilibrium(network, [[0.5, -0.5], [0.1, 0.9]], eigenvalue=True)
    >>> equilibrium.stable.tolist(), equilibrium.phases.shape
    ([True, True], (2, 9))
    """
    tolerance = positive_float("tolerance", tolerance, "find_equilibrium")
    system, shape = build_system(network, inputs, nudge)
    if not is_sparse(system):
        refuse_dense_solve(network, "find_equilibrium")
    system, shape, first = _with_start(system, shape, start, seed)
    chosen = _choose(solver, system, progress)
    data = None if inputs is None else np.broadcast_to(np.asarray(inputs, float), (*shape, len(network.inputs)))
    unwind = isinstance(start, str) and start == "random"
    return settle(system, shape, first, chosen, tolerance=tolerance, eigenvalue=eigenvalue, unwind=unwind, inputs=data)


def settle(
    system: System,
    shape: Shape,
    first: Array,
    solver: Solver,
    *,
    tolerance: float = 1e-12,
    eigenvalue: bool = False,
    unwind: bool = False,
    inputs: FloatArray | None = None,
) -> Equilibrium:
    """Solve a flat system from phases ``first`` (B, N) and certify the result, shaped as ``shape``.

    ``unwind`` removes full turns from the phases on the way: after a random start they mean nothing and cost digits.
    """
    phases = system.place(first)
    limits = tolerance_of(system, tolerance, phases)
    excess = system.locking_excess()
    locked_out = np.any(excess > 0, axis=1)
    solved = np.flatnonzero(~locked_out)
    steps = np.zeros(system.batch, dtype=np.int64)
    left = np.zeros(system.batch)
    if np.any(locked_out):
        left[locked_out] = residual(system, system.take(np.flatnonzero(locked_out)).force(phases[locked_out]))
    if solved.size:
        part = system.take(solved)
        solution = solver.solve(part, phases[solved], limits[solved])
        if unwind:
            again = solver.solve(part, part.place(wrapped(solution.phases)), limits[solved])
            solution = Solution(again.phases, again.residual, solution.steps + again.steps)
        phases[solved], left[solved], steps[solved] = solution.phases, solution.residual, solution.steps
    blocking = np.where(locked_out, np.argmax(excess, axis=1), -1)
    return _certify(system, shape, Solution(phases, left, steps), limits, blocking, eigenvalue, inputs)


def tolerance_of(system: System, tolerance: float, phases: Array) -> FloatArray:
    """Return the residual that counts as zero near ``phases``, (B,).

    That is the tolerance, taken relative to the forces where all of them are weaker than 1, or the rounding error of
    the forces if that is larger: of their terms, and of the phases they are computed from.
    """
    interaction = system.network.interaction
    strongest = float(np.max(system.network.total_coupling, initial=0.0))
    forces = strongest * interaction.bound + np.max(np.abs(system.omega), axis=1, initial=0.0)
    rounded = forces + strongest * interaction.steepness * np.max(np.abs(phases), axis=1, initial=0.0)
    if system.pull is not None:
        rounded = rounded + np.max(np.abs(system.pull.force(phases)), axis=1, initial=0.0)
    return np.maximum(tolerance * np.minimum(1.0, forces), _ROUNDING * rounded)


def _certify(
    system: System,
    shape: Shape,
    solution: Solution,
    limits: FloatArray,
    blocking: IntArray,
    eigenvalue: bool,
    inputs: FloatArray | None,
) -> Equilibrium:
    phases = solution.phases
    converged = (solution.residual <= limits) & (blocking < 0)
    # Stability is a property of real dynamics: a complex state is judged at its real part, without the nudge.
    judged = system.replace(pull=None) if system.is_complex else system
    angles = largest_angles(system, phases.real)
    rows = np.flatnonzero(converged) if is_sparse(judged) else np.arange(system.batch)
    part = judged if rows.size == system.batch else judged.take(rows)
    certificate = stability(part, phases[rows].real, angles=angles[rows], eigenvalue=eigenvalue)
    stable = np.zeros(system.batch, dtype=bool)
    smallest, error = np.full((2, system.batch), np.nan)
    stable[rows], smallest[rows], error[rows] = certificate.stable, certificate.smallest, certificate.error
    status = np.full(system.batch, Status.UNCONVERGED, dtype=object)
    status[converged] = Status.UNSTABLE
    status[converged & stable] = Status.STABLE
    status[blocking >= 0] = Status.CANNOT_LOCK
    torque = np.abs(system.torque(phases))

    def shaped(values: Array) -> Array:
        return frozen_array(values.reshape((*shape, *values.shape[1:])))

    return Equilibrium(
        phases=shaped(phases),
        status=shaped(status),
        residual=shaped(solution.residual),
        stable=shaped(converged & stable),
        largest_angle=shaped(angles),
        steps=shaped(solution.steps),
        blocking=shaped(blocking),
        reference_torque=shaped(np.max(torque, axis=1, initial=0.0)),
        smallest_eigenvalue=shaped(smallest) if eigenvalue else None,
        inputs=inputs if inputs is None else frozen_array(inputs),
        eigenvalue_error=shaped(error) if eigenvalue else None,
    )


def _with_start(
    system: System, shape: Shape, start: ArrayLike | str | None, seed: int | None
) -> tuple[System, Shape, Array]:
    size = system.network.size
    if start is None or isinstance(start, str):
        kind = choice("start", start or "zero", ("zero", "random"), "find_equilibrium")
        batch = system.batch
        return system, shape, np.zeros((batch, size)) if kind == "zero" else random_phases(batch, size, seed)
    first = last_axis_array("start", start, size, "one phase per oscillator", "find_equilibrium")
    joint = joint_shape(shape, first.shape[:-1], ("Inputs", "a start"))
    samples = np.broadcast_to(np.arange(system.batch).reshape(shape), joint).ravel()
    return system.take(samples), joint, np.broadcast_to(first, (*joint, size)).reshape(-1, size)


def random_phases(batch: int, size: int, seed: int | None) -> FloatArray:
    """Return uniformly random phases, (B, N); a row depends on its number alone, not on how many there are."""
    return random_stream(seed, "find_equilibrium").uniform(-np.pi, np.pi, (batch, size))


def _choose(solver: str | Solver, system: System, progress: Callable[[Progress], object] | None) -> Solver:
    if not isinstance(solver, str):
        if isinstance(solver, type) or not callable(getattr(solver, "solve", None)):
            raise TypeError(
                "The 'solver' parameter of find_equilibrium must be a name or an object with a solve method, such as "
                f"GuardedNewton(). Got {solver!r}."
            )
        return solver
    choice("solver", solver, _SOLVERS, "find_equilibrium")
    sparsely = is_sparse(system)
    if solver == "sparse" or (solver == "auto" and sparsely):
        return SparseNewton(progress=progress)
    if solver == "flow":
        return GradientFlow(finish=SparseNewton(progress=progress)) if sparsely else GradientFlow()
    refuse_dense_solve(system.network, f"solver={solver!r}")
    if solver == "batch":
        return BatchNewton(follow=system.pull is not None)
    if solver == "auto" and not system.has_energy and not system.is_complex:
        return _NewtonThenFlow()
    return GuardedNewton()


class _NewtonThenFlow:
    """Newton on the norm of the force knows no descent: what it leaves unstable, the dynamics may settle."""

    def solve(self, system: System, start: Array, tolerance: FloatArray) -> Solution:
        found = GuardedNewton(max_steps=50).solve(system, start, tolerance)
        rows = np.flatnonzero(~self._settled(system, found, tolerance))
        if rows.size:
            part, limits = system.take(rows), tolerance[rows]
            flowed = GradientFlow().solve(part, start[rows], limits)
            better = self._settled(part, flowed, limits) | (found.residual[rows] > limits)
            found.phases[rows[better]] = flowed.phases[better]
            found.residual[rows[better]] = flowed.residual[better]
            found.steps[rows] += flowed.steps
        return found

    @staticmethod
    def _settled(system: System, solution: Solution, tolerance: FloatArray) -> BoolArray:
        return (solution.residual <= tolerance) & stability(system, solution.phases).stable
