"""Equilibria with certificates: the public `find_equilibrium`.

Every sample of a batch gets its own verdict. A state that did not converge, or that is unstable, keeps its
place in the result and says so; nothing drops out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phasegrad._process import on_one_blas_thread
from phasegrad._validation import (
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    choice,
    counted,
    frozen_array,
    joint_shape,
    last_axis_array,
    positive_float,
    random_stream,
)
from phasegrad.dynamics import Nudge, Shape, System, Workspace, build_system
from phasegrad.equilibria._drawing import plot_equilibrium
from phasegrad.graphs import lazy_property
from phasegrad.linearised import (
    Linearised,
    SparseLaplacian,
    Verdict,
    algebra_of,
    largest_angles,
    linearise,
    linearise_to_certify,
)
from phasegrad.networks import Network
from phasegrad.objectives import check_cost
from phasegrad.solvers import Progress, Solution, Solver, persistent_solver, residual

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROUNDING = 8 * float(np.finfo(float).eps)


class Status(Enum):
    """What became of a sample, in words.

    See Also
    --------
    Equilibrium : Phases with the certificate of every sample.
    find_equilibrium : One certified equilibrium per sample.

    Examples
    --------
    >>> import phasegrad as pg
    >>> state = pg.find_equilibrium(pg.networks.ring(5, omega=[0, 0, 9, 0, 0]))
    >>> state.status.item() is pg.Status.CANNOT_LOCK, int(state.blocking)
    (True, 2)
    >>> [status.name for status in pg.Status]
    ['STABLE', 'MARGINAL', 'UNPROVED', 'UNSTABLE', 'UNCONVERGED', 'CANNOT_LOCK']
    """

    STABLE = "Converged and stable: every eigenvalue of the reduced Laplacian is positive, disturbances die out."
    MARGINAL = (
        "Converged but marginal: the smallest eigenvalue of the reduced Laplacian is zero to within 1e-10 of the "
        "largest, so that terms of higher order decide. Change a parameter a little, or start somewhere else."
    )
    UNPROVED = (
        "Converged, but neither proved stable nor refuted: the network is too large for a proof, and no direction of "
        "negative curvature was found. Disturb it with simulated noise, or take a smaller network."
    )
    UNSTABLE = (
        "Converged but unstable: not every eigenvalue of the reduced Laplacian is positive, "
        "so noise would drive the state away. Start somewhere else."
    )
    UNCONVERGED = (
        "Did not converge: no state with a small enough force was found. The network may have no locked state; "
        "otherwise try another start, solver='flow' or more steps."
    )
    CANNOT_LOCK = (
        "Cannot lock: an oscillator's frequency is farther from the common one than all its coupling can pull it, so "
        "no equilibrium exists. "
        "Strengthen its coupling or bring its frequency nearer to the mean."
    )


_CONVERGED = frozenset({Status.STABLE, Status.MARGINAL, Status.UNPROVED, Status.UNSTABLE})
_VERDICTS = {verdict: Status[verdict.name] for verdict in Verdict}


def settled(status: NDArray[np.object_]) -> BoolArray:
    """Return where the forces vanish, stable or not."""
    return np.array([each in _CONVERGED for each in status.ravel().tolist()], dtype=bool).reshape(status.shape)


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
    steps : ndarray of int, shape (...)
        Steps the solver took.
    solver : ndarray of str, shape (...)
        The solver that found the state, such as "newton (dense)"; "none" where no equilibrium can exist.
    blocking : ndarray of int, shape (...)
        The oscillator that cannot lock, -1 where there is none.
    smallest_eigenvalue : ndarray, shape (...), or None
        Of the reduced Laplacian (real part where coupling is not reciprocal), if it was asked for.
    inputs : ndarray, shape (..., n_in), or None
        The inputs it belongs to.
    eigenvalue_error : ndarray, shape (...), or None
        How far the true one may be from it: rounding where it was computed densely; on a large sparse network
        ``smallest_eigenvalue`` is an upper end, and less this a lower end, of an interval that holds the true one.
    network : Network or None
        The network it was found for.

    See Also
    --------
    find_equilibrium : One certified equilibrium per sample.
    Status : What became of a sample, in words.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.layered(2, 5, 2, seed=0)
    >>> equilibrium = pg.find_equilibrium(network, [[0.8, -0.6], [-0.2, 0.5]])
    >>> equilibrium.stable, equilibrium.status[0].name
    (array([ True,  True]), 'STABLE')
    >>> equilibrium.phases[:, list(network.outputs)].round(3)
    array([[-0.08 , -0.102],
           [ 0.059,  0.041]])
    """

    phases: Array
    status: NDArray[np.object_]
    residual: FloatArray
    stable: BoolArray
    steps: IntArray
    solver: NDArray[np.object_]
    blocking: IntArray
    smallest_eigenvalue: FloatArray | None
    inputs: FloatArray | None
    eigenvalue_error: FloatArray | None = None
    system: System | None = field(default=None, repr=False)
    network: Network | None = field(default=None, repr=False)

    @property
    def shape(self) -> Shape:
        """The batch shape."""
        return self.residual.shape

    @property
    def linearised(self) -> Linearised:
        """The network linearised at these states, as one flat batch of B samples.

        Its Laplacian can be solved with (`solve`) and tested for positive definiteness (`definite`). It keeps its
        factors up to 32 MiB; beyond, every call factors it again.
        """
        kept = self.__dict__.get("_linearised")
        if kept is not None:
            return kept
        assert self.system is not None
        made = linearise(self.system, self._flat)
        if made.fits_in_memory:
            self.__dict__["_linearised"] = made
        return made

    def certified_for(self, network: Network) -> Linearised | None:
        """Return what certified these states where that was kept, for the very network they were found for.

        None for any other network, and for a copy with other phases or inputs.
        """
        return self.__dict__.get("_linearised") if self.network is network else None

    def __getstate__(self) -> dict[str, Any]:
        # Factors are many times as large as the phases, and can be made again.
        return {name: value for name, value in self.__dict__.items() if name != "_linearised"}

    def workspace_of(self, network: Network) -> Workspace | None:
        """Return what solvers kept about a network, so that gradients need not find it out again.

        None for another network than that of the equilibrium, or with other parameters, frequencies aside.
        """
        system = self.system
        if system is None or system.graph is not network.graph or system.terms != network.terms:
            return None
        kept = [parameter for term in system.terms if not term.drives for parameter in term.parameters]
        spread, own = network.graph.sharing.spread, network.parameters
        same = all(np.array_equal(system.values[p.name], spread(p.on, own[p.name])[None]) for p in kept)
        return system.workspace if same else None

    def plot(self, ax: Axes | None = None, *, kind: str = "circle") -> Axes:
        """Draw the phases of all samples on circles, or the angle across every edge. Needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new ones if left out.
        kind : {"circle", "stress"}
            "circle": one circle per oscillator, or per role (input, hidden, output) beyond 16 of them, and a point per
            sample, hollow where the state is not stable. "stress": the largest angle across every edge over all samples
            that converged, the largest first. `Network.plot` draws one state on the network itself.

        Returns
        -------
        matplotlib Axes
        """
        return plot_equilibrium(self, ax, kind)

    @property
    def converged(self) -> BoolArray:
        """Where the force vanishes, stable or not, shape (...)."""
        return settled(self.status)

    @property
    def counts(self) -> dict[Status, int]:
        """How many samples have each status; all statuses are listed."""
        seen = Counter(self.status.ravel().tolist())
        return {status: seen.get(status, 0) for status in Status}

    @lazy_property
    def largest_angle(self) -> FloatArray:
        """The largest phase difference across an edge, wrapped to [0, pi], shape (...)."""
        assert self.system is not None
        return frozen_array(largest_angles(self.system, self._flat.real).reshape(self.shape))

    @lazy_property
    def reference_torque(self) -> FloatArray:
        """The largest torque that holds a held oscillator, shape (...); zero where nothing is held by force.

        It takes one under a nudge, at clamped inputs, and in a grounded network whose coupling is not reciprocal.
        """
        assert self.system is not None
        torque = np.abs(self.system.force(self._flat)[:, self.system.graph.held])
        return frozen_array(np.max(torque, axis=1, initial=0.0).reshape(self.shape))

    @lazy_property
    def drift(self) -> FloatArray:
        """The common frequency of the locked network beyond the mean of its natural frequencies, shape (...).

        It is zero where coupling is reciprocal, where a field or clamped phases fix the frame, and in a grounded
        network.
        """
        assert self.system is not None
        return frozen_array(self.system.drift(self._flat).real.reshape(self.shape))

    @property
    def _flat(self) -> Array:
        return self.phases.reshape(-1, self.phases.shape[-1])

    def __str__(self) -> str:
        total = int(self.residual.size)
        lines = [f"Equilibrium of {counted(total, 'sample')}"]
        lines += [f"  {count:>6}  {status.value}" for status, count in self.counts.items() if count]
        named = sorted({int(node) for node in self.blocking.ravel() if node >= 0})
        if named:
            shown = ", ".join(str(node) for node in named[:8]) + (", ..." if len(named) > 8 else "")
            lines.append(f"          {'oscillator' if len(named) == 1 else 'oscillators'} {shown} cannot lock")
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
    network: Network, inputs: ArrayLike | None = None, *, nudge: Nudge | None = None,
    start: ArrayLike | str | None = None, solver: str | Solver = "auto", tolerance: float = 1e-12,
    eigenvalue: bool = False, seed: int | None = 0, progress: Callable[[Progress], object] | None = None,
) -> Equilibrium:  # fmt: skip
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
        "newton" is guarded Newton with dense matrices, "sparse" the same with conjugate gradients; "flow" follows the
        physical dynamics and finishes with Newton. "auto" takes Newton, the sparse one for a large reciprocal network
        with few edges and, without an energy to descend, follows the dynamics where Newton found nothing stable.
        "batch" settles all samples of a sine-coupled network by matrix products, from where field alignment leads: much
        faster for many samples, and equal to the others to the tolerance where there is one state to find; of several
        it may find another one. Where a solver given by name does not converge, a network of up to 300 oscillators
        follows its dynamics from the same start until it rests or drifts; if it drifts, the solver begins again at
        phase zero, but not under a nudge and not for "flow", whose states belong to their starts.
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

    See Also
    --------
    find_equilibria : All stable states met from random starts.
    critical_scale : How much faster all may run before locking is lost.
    Equilibrium : Phases with the certificate of every sample.
    Settling : Solver and tolerance in one value.

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
    algebra_of(system, "find_equilibrium")
    system, shape, first = _with_start(system, shape, start, seed)
    if system.pull is not None:
        pull = system.pull
        check_cost(pull.cost, np.take(system.place(first).real, pull.nodes, axis=1), pull.target, "find_equilibrium")
    unwinds = isinstance(start, str) and start == "random"
    chosen = persistent_solver(solver, system, "find_equilibrium", progress, unwinds=unwinds)
    data = None if inputs is None else np.broadcast_to(np.asarray(inputs, float), (*shape, len(network.inputs)))
    return settle(
        system, shape, first, chosen, tolerance=tolerance, eigenvalue=eigenvalue, inputs=data, network=network
    )


def settle(
    system: System, shape: Shape, first: Array, solver: Solver, *, tolerance: float = 1e-12,
    eigenvalue: bool = False, inputs: FloatArray | None = None, network: Network | None = None,
) -> Equilibrium:  # fmt: skip
    """Solve a flat system from phases ``first`` (B, N) and certify the result, shaped as ``shape``."""
    phases = system.place(first)
    limits = tolerance_of(system, tolerance, phases)
    locked_out = system.locked_out()
    blocking = np.full(system.batch, -1)
    left, steps = np.zeros(system.batch), np.zeros(system.batch, dtype=np.int64)
    names = np.full(system.batch, "none", dtype=object)
    solved, part = np.arange(system.batch), system
    if locked_out.any():
        out, solved = np.flatnonzero(locked_out), np.flatnonzero(~locked_out)
        blocking[out] = np.argmax(system.locking_excess()[out], axis=1)
        left[out] = residual(system, system.take(out).force(phases[out]))
        part = system.take(solved)
    if solved.size:
        solution = solver.solve(part, phases[solved], limits[solved])
        phases[solved], left[solved], steps[solved] = solution.phases, solution.residual, solution.steps
        names[solved] = solution.names(solver)
    return _certify(system, shape, Solution(phases, left, steps), names, limits, blocking, eigenvalue, inputs, network)


def tolerance_of(system: System, tolerance: float, phases: Array) -> FloatArray:
    """Return the residual that counts as zero near ``phases``, (B,).

    That is the tolerance, taken relative to the forces where all of them are weaker than 1, or the rounding error of
    the forces if that is larger: of their terms, and of the phases they are computed from.
    """
    strongest, stiffest = system.scales
    forces = strongest + np.abs(system.drive).max(axis=1, initial=0.0)
    rounded = forces + stiffest * np.abs(phases).max(axis=1, initial=0.0)
    if system.pull is not None:
        rounded = rounded + np.max(np.abs(system.pull.force(phases)), axis=1, initial=0.0)
    return np.maximum(tolerance * np.minimum(1.0, forces), _ROUNDING * rounded)


def _certify(
    system: System, shape: Shape, solution: Solution, names: NDArray[np.object_], limits: FloatArray,
    blocking: IntArray, eigenvalue: bool, inputs: FloatArray | None, network: Network | None,
) -> Equilibrium:  # fmt: skip
    phases = solution.phases
    converged = (solution.residual <= limits) & (blocking < 0)
    # Stability is a property of real dynamics: a complex state is judged at its real part, without the nudge.
    judged = system.replace(pull=None) if system.is_complex else system
    rows = np.flatnonzero(converged) if SparseLaplacian.fits(judged) else np.arange(system.batch)
    part = judged if rows.size == system.batch else judged.take(rows)
    state = linearise_to_certify(part, phases[rows].real, eigenvalue=eigenvalue)
    certificate = state.certificate(eigenvalue=eigenvalue, explain=True)
    status = np.full(system.batch, Status.UNCONVERGED, dtype=object)
    smallest, error = np.full((2, system.batch), np.nan)
    status[rows] = [_VERDICTS[verdict] for verdict in certificate.verdict.tolist()]
    smallest[rows], error[rows] = certificate.smallest, certificate.error
    status[~converged] = Status.UNCONVERGED
    status[blocking >= 0] = Status.CANNOT_LOCK

    def shaped(values: Array) -> Array:
        return frozen_array(values.reshape((*shape, *values.shape[1:])))

    equilibrium = Equilibrium(
        phases=shaped(phases),
        status=shaped(status),
        residual=shaped(solution.residual),
        stable=shaped(np.asarray(status == Status.STABLE, dtype=bool)),
        steps=shaped(solution.steps),
        solver=shaped(names),
        blocking=shaped(blocking),
        smallest_eigenvalue=shaped(smallest) if eigenvalue else None,
        inputs=inputs if inputs is None else frozen_array(inputs),
        eigenvalue_error=shaped(error) if eigenvalue else None,
        system=system,
        network=network,
    )
    if part is system and isinstance(state, algebra_of(system)) and state.fits_in_memory:
        # What the certificate factored, gradients solve with.
        equilibrium.__dict__["_linearised"] = state
    return equilibrium


def _with_start(
    system: System, shape: Shape, start: ArrayLike | str | None, seed: int | None
) -> tuple[System, Shape, Array]:
    size = system.graph.size
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
