r"""Small networks with any interaction H, settled by compiled Newton steps: a dense Laplacian for training.

    F_i = drive_i + sum_j K_ij H(theta_j - theta_i)

Coupling, frequencies, fields and nudges of known formula are compiled; what other terms and costs add is asked for
after every step. Compiled code takes half a second to load: only who takes thousands of steps gains by it.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Self, TypeGuard

import numpy as np

from phasegrad._validation import Array, FloatArray, IntArray
from phasegrad.dynamics import Pull, System
from phasegrad.graphs import Graph, lazy_property
from phasegrad.kernels import COMPILES
from phasegrad.linearised._dense import DenseLaplacian
from phasegrad.linearised._linearised import Strides, verdicts
from phasegrad.objectives import formula_of
from phasegrad.terms import Coupling, Frequencies, Interaction, NodeField, Stiffness, Term

#: Oscillators that move up to which a factorisation by plain loops is no slower than LAPACK's.
MOST_MOVING = 64
_NOWHERE, _NO_STRENGTH = np.zeros(0, dtype=np.int64), np.zeros(0)
_NO_TARGET, _NO_STIFFNESS = np.zeros((0, 0)), np.zeros((0, 0, 0))


class Edgewise:
    """A network's terms as compiled code takes them; ``reason`` says in a sentence why it cannot, else it is empty.

    Parameters
    ----------
    graph : Graph
    terms : sequence of Term
    """

    def __init__(self, graph: Graph, terms: tuple[Term, ...]) -> None:
        coupling = [term for term in terms if type(term) is Coupling]
        self.reason = _refusal(graph, terms, coupling)
        if self.reason:
            return
        try:
            from phasegrad.kernels import edgewise, nudges
        except ImportError as error:
            self.reason = str(error)
            return
        compiled = [_compiled(coupling[0].interaction)]
        if isinstance(compiled[0], str):
            self.reason = f"The interaction {type(coupling[0].interaction).__name__} runs as Python. {compiled[0]}"
            return
        self.kernel, self.nudges, self.graph = edgewise, nudges, graph
        #: Fields, each with an edge from every oscillator that moves to where it pulls it.
        self.fields: list[NodeField] = []
        for term in terms:
            if _is_plain_field(term) and not isinstance(found := _compiled(term.interaction), str):
                self.fields.append(term)
                compiled.append(found)
        #: Terms that only Python knows.
        self.frequencies = [term for term in terms if type(term) is Frequencies]
        known = [coupling[0], *self.fields, *self.frequencies]
        self.rest = tuple(term for term in terms if all(term is not each for each in known))
        # The code lives as long as the objects that are kept here.
        self.compiled, self.functions = compiled, np.array([each.address for each in compiled])
        many, moving, place = graph.free.size, np.arange(graph.free.size), np.empty(graph.size, dtype=np.int64)
        place[graph.free], place[graph.held] = moving, many + np.arange(graph.held.size)
        sources = [graph.held.size + many * (k + 1) + moving for k in range(len(self.fields))]
        self.first = np.concatenate([place[graph.first], *([moving] * len(sources))])
        self.second = np.concatenate([place[graph.second], *sources])
        self.starts = np.array([0, *(graph.n_edges + many * k for k in range(len(sources) + 1))])

    def arrays(self, system: System) -> Arrays:
        """Return what a system's parameters are in compiled code."""
        strength, outside = system.values[Coupling.every[0].name], system.held_phases
        for field in self.fields:
            pulls, toward = (system.values[each.name][:, self.graph.free] for each in field.parameters)
            strength = _side_by_side(strength, pulls)
            outside = _side_by_side(outside, toward)
        # A driving term that only Python knows is asked for its force, and does not count here.
        drive = np.zeros((1, self.graph.size))
        for term in self.frequencies:
            drive = drive + system.values[term.parameters[0].name]
        drive = drive.take(self.graph.free, axis=1)
        return Arrays(_plain(strength), _plain(outside), drive, _plain(system.eigenvalue_rounding))


@dataclass(frozen=True, eq=False)
class Arrays:
    """What compiled code takes of a system's parameters, one row per sample or one for all.

    ``strength`` is that of edges and fields, ``outside`` the phases of what is held, ``drive`` the force on the
    oscillators that move, ``margin`` (B,) the rounding of eigenvalues.
    """

    strength: FloatArray
    outside: FloatArray
    drive: FloatArray
    margin: FloatArray

    def take(self, rows: Array) -> Arrays:
        """Return some of the samples."""
        strength, outside, drive = (
            each if each.shape[0] == 1 else each[rows] for each in (self.strength, self.outside, self.drive)
        )
        return Arrays(strength, outside, drive, self.margin[rows])


class EdgewiseLaplacian(DenseLaplacian):
    """A dense Laplacian whose Newton steps and proofs are compiled; see `phasegrad.linearised._edgewise`.

    Parameters
    ----------
    system : System
    moving : ndarray, shape (B, n)
    rules : Edgewise
    arrays : Arrays, optional
        Those of the system, where they are known.
    """

    name = "edgewise"

    def __init__(self, system: System, moving: Array, rules: Edgewise, arrays: Arrays | None = None) -> None:
        super().__init__(system, moving)
        self.rules = rules
        self.arrays = rules.arrays(system) if arrays is None else arrays
        #: Where compiled steps ended, and whether the Laplacian was proved positive definite there.
        self._ended: tuple[Array, IntArray] | None = None

    @classmethod
    def of(cls, system: System, phases: Array, preconditioner: str = "auto") -> Self:
        """Return the linearised system at phases (B, N) of all oscillators."""
        del preconditioner
        return cls(system, phases.take(system.graph.free, axis=1), Edgewise(system.graph, system.terms))

    @staticmethod
    def fits(system: System) -> bool:
        """Return whether a system is small, real and reciprocal, with an interaction that can be compiled."""
        return system.has_energy and not Edgewise(system.graph, system.terms).reason

    def at(self, moving: Array) -> EdgewiseLaplacian:
        """Return the same samples at other phases (B, n)."""
        after = EdgewiseLaplacian(self.system, moving, self.rules, self.arrays)
        after._before = self._steps
        if self._ended is not None and self._ended[0] is moving:
            after._ended = self._ended
        return after

    def take(self, rows: Array) -> EdgewiseLaplacian:
        """Return some of the samples."""
        return EdgewiseLaplacian(self.system.take(rows), self.moving[rows], self.rules, self.arrays.take(rows))

    def nudged(self, pull: Pull) -> EdgewiseLaplacian:
        """Return the same states under a nudge."""
        return EdgewiseLaplacian(self.system.replace(pull=pull), self.moving, self.rules, self.arrays)

    def stride(
        self, tolerance: FloatArray, count: int, max_turn: float, share: float, *, polish: bool
    ) -> Strides | None:
        """Take full Newton steps of every sample; see `Linearised.stride`."""
        rules, arrays, batch = self.rules, self.arrays, self.moving.shape[0]
        limits, margin = _plain(tolerance), arrays.margin
        moving, last = self.moving.copy(), self.moving.copy()
        left, square = np.full(batch, np.inf), np.full(batch, np.inf)
        fate, steps, proved = np.zeros((3, batch), dtype=np.int64)
        nudge, (drive, given) = self._nudge[0], self._given(self.moving)
        asks = given.size > 0
        settings = (1 if asks else count + 1, count, max_turn, share, polish)
        while True:
            rules.kernel.stride(
                rules.functions, rules.starts, rules.first, rules.second, arrays.strength, drive, arrays.outside,
                given, nudge, settings, limits, margin, moving, last, left, square, fate, steps, proved,
            )  # fmt: skip
            if not asks or fate.all():
                break
            drive, given = self._given(moving)
        if (left <= tolerance).all():
            self._ended = last, proved
        return Strides(last, left, steps)

    def definite(self, floor: FloatArray | None = None, *, explain: bool = False) -> IntArray:
        """Return the verdict on every sample; see `Linearised.definite`."""
        if floor is None and self._ended is not None:
            stable = self._ended[1]
        else:
            rules, arrays, stable = self.rules, self.arrays, np.zeros(self.moving.shape[0], dtype=np.int64)
            nudge, (_, given) = self._nudge[0], self._given(self.moving)
            rules.kernel.definite(
                rules.functions, rules.starts, rules.first, rules.second, arrays.strength, arrays.outside, given,
                nudge, arrays.margin if floor is None else _plain(floor), _plain(self.moving), stable,
            )  # fmt: skip
        verdict = verdicts(stable)
        if explain and not stable.all():
            rows = np.flatnonzero(stable == 0)
            verdict[rows] = self.take(rows).explained()
        return verdict

    @lazy_property
    def _nudge(self) -> tuple[Any, Pull | None]:
        """The nudge as compiled code takes it, and the one that only Python knows."""
        pull, kinds = self.system.pull, self.rules.nudges
        free = (kinds.FREE, 0.0, _NOWHERE, _NO_STRENGTH, _NO_TARGET)
        formula = None if pull is None else formula_of(pull.cost)
        if pull is None or formula is None:
            return free, pull
        kind = {"quadratic": kinds.QUADRATIC, "periodic": kinds.PERIODIC, "entropy": kinds.ENTROPY}[formula.kind]
        places = self.system.graph.position[pull.nodes]
        return (kind, formula.sharpness, places, _plain(pull.beta[:, 0]), _plain(pull.target)), None

    def _given(self, moving: Array) -> tuple[FloatArray, FloatArray]:
        """Return the force (B, n) and the Laplacian (B, n, n) that only Python knows, at phases (B, n)."""
        system, rest, pull = self.system, self.rules.rest, self._nudge[1]
        if pull is None and not rest:
            return self.arrays.drive, _NO_STIFFNESS
        graph, values, phases = system.graph, system.values, system.whole(moving)
        force = np.empty_like(moving)
        force[:] = self.arrays.drive
        for term in rest:
            force += term.force(graph, values, phases).take(graph.free, axis=1)
        parts = [term.stiffness(graph, values, phases) for term in rest]
        if all(_is_diagonal(part) for part in parts):
            given = np.zeros((moving.shape[0], graph.free.size, graph.free.size))
            for part in parts:
                if part.diagonal is not None:
                    np.einsum("bii->bi", given)[:] += part.diagonal.take(graph.free, axis=1)
        else:
            given = system.replace(terms=rest, pull=None).laplacian(phases)
        if pull is not None:
            places = graph.position[pull.nodes]
            force[:, places] += pull.force(phases)
            given[:, places[:, None], places] += pull.hessian(phases)
        return force, given


def _refusal(graph: Graph, terms: tuple[Term, ...], coupling: list[Coupling]) -> str:
    """Return why compiled steps are not for a network, in a sentence; empty if they are."""
    if not COMPILES:
        return "Numba is not installed, so that nothing is compiled."
    if len(coupling) != 1 or not all(term.symmetric for term in terms):
        return "Compiled steps are for reciprocal coupling along edges."
    if not 0 < graph.free.size <= MOST_MOVING:
        return f"Compiled steps are for 1 to {MOST_MOVING} oscillators that move."
    return ""


def _is_diagonal(part: Stiffness) -> bool:
    return part.forward is None and part.backward is None and part.sums is None and part.outer is None


def _is_plain_field(term: Term) -> TypeGuard[NodeField]:
    """Return whether a term is a field whose force is that of its interaction."""
    kind = type(term)
    if not issubclass(kind, NodeField) or kind.drives:
        return False
    return kind.force is NodeField.force and kind.stiffness is NodeField.stiffness


def _compiled(interaction: Interaction) -> Any:
    """Return an interaction as compiled code, or why it cannot be compiled, in a sentence."""
    from phasegrad.kernels import interaction as kernel

    methods = type(interaction).value, type(interaction).derivative
    read = {name for method in methods if inspect.isfunction(method) for name in method.__code__.co_names}
    found = {name: getattr(interaction, name) for name in sorted(read) if hasattr(interaction, name)}
    numbers = {name: number for name, number in found.items() if _is_number(number)}
    try:
        return kernel.compile_interaction(
            *methods, numbers, lambda angles: (interaction.value(angles), interaction.derivative(angles))
        )
    except kernel.NotCompiledError as error:
        return str(error)


def _is_number(value: Any) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(isinstance(each, float) for each in value)
    return isinstance(value, int | float)


def _plain(array: Array) -> FloatArray:
    """Return an array as compiled code takes it: it is compiled anew for every order and for arrays to read only."""
    flags = array.flags
    if flags.c_contiguous and flags.writeable and array.dtype == np.float64:
        return array
    return np.array(array, dtype=np.float64, order="C")


def _side_by_side(first: Array, second: Array) -> Array:
    """Return arrays (b, ...) as the columns of one, rows that are shared repeated where others are not."""
    rows = max(first.shape[0], second.shape[0])
    return np.concatenate([np.broadcast_to(each, (rows, each.shape[1])) for each in (first, second)], axis=1)
