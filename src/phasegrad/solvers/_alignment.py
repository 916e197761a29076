r"""Field alignment: from anywhere to near a stable state of a network with few colours.

With all others fixed, the energy of an oscillator with sine coupling is lowest where it points along its local field X
+ i Y, turned by asin(omega / field) if it is driven. Oscillators of one colour are not coupled to each other and turn
together, and the energy never rises. An oscillator whose drive exceeds its local field turns a quarter away from it, as
far as it can. Where it has a field of its own that is no sine, such as a second harmonic, it starts where it is or
along its local field, whichever is lower, and some Newton steps turn it toward where both balance. Every sample goes on
until it has come to rest, whatever the others do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from phasegrad._validation import Array, FloatArray, IntArray, whole_number
from phasegrad.dynamics import System
from phasegrad.linearised import LocalTerms, PhasorLaplacian, Phasors, chunks
from phasegrad.solvers._contract import Solution
from phasegrad.solvers._fallback import Fallback
from phasegrad.solvers._newton import Newton
from phasegrad.terms import cosines

#: Newton for a batch of one network, where plain steps nearly always do.
BATCHED = Newton(max_steps=20, algebra=PhasorLaplacian, indefinite="stop", polish=False)
# Times that samples which Newton left astray are aligned and tried again.
_ROUNDS = 3

# Radians, about: a sample whose oscillators all turn by less in a sweep is near enough for Newton.
_RESTS = 0.02
# Newton steps of one oscillator in its local field and others of its own, the most that it turns in one, and the least
# stiffness, as a share of its local field, that it is taken to have. The kernel has the same.
_OWN_STEPS, _OWN_TURN, _OWN_STIFFNESS = 3, 0.5, 0.2


class _Fields(Protocol):
    """Local fields of a batch: groups of columns, and the field of all but themselves on one of them."""

    groups: tuple[slice, ...]

    def take(self, rows: Array) -> Any:
        """Return some of the samples."""

    def on(self, group: slice, cos: FloatArray, sin: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return X and Y on a group, (B, size)."""

    def drive(self, group: slice) -> FloatArray | None:
        """Return what drives a group, (B, size)."""

    def own(self, group: slice) -> LocalTerms:
        """Return the fields on a group that are no sines."""


def align(phasors: Phasors, moving: FloatArray, sweeps: int) -> FloatArray:
    """Return phases (B, n) of a batch of one network after at most so many sweeps."""
    if phasors.eliminates:
        return phasors.elimination.align(phasors.surroundings, moving, sweeps, _RESTS)
    return _swept(_OfPhasors(phasors), moving, sweeps)


def align_system(system: System, phases: FloatArray, sweeps: int) -> FloatArray:
    """Return phases (B, N) after at most so many sweeps, edge by edge, of a system that `can_align`."""
    order = system.graph.blocks.order
    aligned = phases.copy()
    aligned[:, order] = _swept(_OfEdges(system), np.take(phases, order, axis=1), sweeps)
    return aligned


def can_align(system: System) -> bool:
    """Whether alignment knows a system: sine coupling, fields of any kind, few colours, no nudge."""
    known = all(term.phasor or term.local for term in system.terms)
    known = known and system.has_energy and system.pull is None
    return known and system.graph.has_blocks and system.graph.blocks.coloured


@dataclass(frozen=True)
class AlignedNewton:
    """Newton's method by products of matrices, from where field alignment leads.

    Alignment brings signed, layered networks near a stable state from anywhere. Any other system goes to plain Newton
    as it is.

    Parameters
    ----------
    newton : Newton
        What follows alignment.
    sweeps : int
        Most sweeps of alignment before Newton, for networks of few colours.
    """

    name: ClassVar[str] = "aligned newton"
    newton: Newton = BATCHED
    sweeps: int = 30

    def __post_init__(self) -> None:
        whole_number("sweeps", self.sweeps, 0, "AlignedNewton")

    def solve(self, system: System, start: Array, tolerance: FloatArray) -> Solution:
        """Return phases near ``start`` whose residual is at most ``tolerance``, or the best found."""
        if not PhasorLaplacian.fits(system) or system.batch == 0:
            if not self.sweeps or not can_align(system):
                return self.newton.solve(system, start, tolerance)
            first = align_system(system, start, self.sweeps)
            # With fields that are no sines alignment may end where the Laplacian is not positive definite.
            downhill = () if all(term.phasor for term in system.terms) else (Newton(polish=False),)
            return Fallback((self.newton, *downhill)).solve(system, first, tolerance)
        phases, left = start.copy(), np.zeros(system.batch)
        steps = np.zeros(system.batch, dtype=np.int64)
        for part in chunks(system.batch, PhasorLaplacian.entries(system)):
            rows = np.arange(part.start, part.stop)
            state = PhasorLaplacian.of(system.take(rows), start[rows])
            moving, left[rows], steps[rows] = self.settle(state, tolerance[rows])
            phases[rows[:, None], state.nodes] = moving
        return Solution(phases, left, steps)

    def settle(
        self, state: PhasorLaplacian, tolerance: FloatArray, *, near: bool = False
    ) -> tuple[Array, Array, Array]:
        """Return phases (B, n) of the oscillators that move, their residuals (B,) and the steps taken (B,).

        With ``near`` the state is nearly an equilibrium already: alignment comes only after Newton has failed.
        """
        aligns = self.sweeps > 0 and state.phasors.pull is None and can_align(state.phasors.base)
        phases, left = np.array(state.moving), np.full(state.moving.shape[0], np.inf)
        steps, active = np.zeros(left.size, dtype=np.int64), np.arange(left.size)
        part, first = state, state.moving
        for turn in range(_ROUNDS + near if aligns else 1):
            if turn:
                part, first = state.take(active), phases[active]
            easily = aligns and near and turn == 0
            if aligns and not easily:
                first = align(part.phasors, first, self.sweeps)
            found, residual, taken = self.newton.iterate(part.at(first), tolerance[active], easily=easily)
            done = residual <= tolerance[active]
            if turn == 0 and done.all():
                return found, residual, taken
            # What Newton left astray goes on from where alignment had brought it, always downhill.
            phases[active] = np.where(done[:, None], found, first)
            left[active], steps[active] = residual, steps[active] + taken
            active = active[~done]
            if active.size == 0:
                break
        return phases, left, steps


def _swept(fields: _Fields, moving: FloatArray, sweeps: int) -> FloatArray:
    result, rows = moving.copy(), np.arange(moving.shape[0])
    cos, sin = cosines(moving)
    for _ in range(sweeps):
        turned = np.zeros(rows.size)
        for group in fields.groups:
            x, y = fields.on(group, cos, sin)
            length = np.maximum(np.sqrt(x * x + y * y), 1e-300)
            x, y = x / length, y / length
            drive = fields.drive(group)
            if drive is not None:
                lead = np.clip(drive / length, -1.0, 1.0)
                along = np.sqrt(1.0 - lead * lead)
                x, y = x * along - y * lead, y * along + x * lead
            if own := fields.own(group):
                x, y = _balanced(own, x, y, length, np.arctan2(sin[:, group], cos[:, group]))
            change = np.abs(x - cos[:, group]) + np.abs(y - sin[:, group])
            turned = np.maximum(turned, np.max(change, axis=1, initial=0.0))
            cos[:, group], sin[:, group] = x, y
        rests = turned <= _RESTS
        if np.any(rests):
            result[rows[rests]] = np.arctan2(sin[rests], cos[rests])
            rows, fields, cos, sin = rows[~rests], fields.take(~rests), cos[~rests], sin[~rests]
            if rows.size == 0:
                return result
    result[rows] = np.arctan2(sin, cos)
    return result


def _balanced(
    own: LocalTerms, x: FloatArray, y: FloatArray, length: FloatArray, here: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return where oscillators at phases ``here`` go, of local fields along x + i y and others of their own."""
    along = np.arctan2(y, x)

    def energy(phases: FloatArray) -> FloatArray:
        return own.energies(phases) - length * np.cos(along - phases)

    phases = np.where(energy(here) < energy(along), here, along)
    for _ in range(_OWN_STEPS):
        force, stiffness = length * np.sin(along - phases), length * np.cos(along - phases)
        force, stiffness = force + own.force(phases), stiffness + own.stiffness(phases)
        turn = force / np.maximum(np.abs(stiffness), _OWN_STIFFNESS * length)
        phases += np.clip(turn, -_OWN_TURN, _OWN_TURN)
    return cosines(phases)


class _OfPhasors:
    """Local fields by products of matrices."""

    def __init__(self, phasors: Phasors) -> None:
        self.phasors = phasors
        self.groups = phasors.base.graph.blocks.groups

    def take(self, rows: Array) -> _OfPhasors:
        return _OfPhasors(self.phasors.take(rows))

    def on(self, group: slice, cos: FloatArray, sin: FloatArray) -> tuple[FloatArray, FloatArray]:
        phasors = self.phasors
        x, y = (phasors.couplings.onto(group, part) for part in (cos, sin))
        if x is None or y is None:
            return phasors.x[:, group], phasors.y[:, group]
        return phasors.x[:, group] + x, phasors.y[:, group] + y

    def drive(self, group: slice) -> FloatArray | None:
        return None if self.phasors.drive is None else self.phasors.drive[:, group]

    def own(self, group: slice) -> LocalTerms:
        return LocalTerms.of(self.phasors.base, self.phasors.nodes[group])


class _OfEdges:
    """Local fields edge by edge, where every sample has couplings of its own."""

    def __init__(self, system: System) -> None:
        self.system, self.groups = system, system.graph.blocks.groups
        self.order: IntArray = system.graph.blocks.order
        self.strength = np.sum([k for t in system.terms if (k := t.phasor_edges(system.values)) is not None], axis=0)
        outer = [field for term in system.terms if (field := term.phasor_field(system.values)) is not None]
        self.outer = [np.sum([field[part] for field in outer], axis=0) if outer else None for part in (0, 1)]
        self.held = cosines(system.held_phases)
        self.driven = np.take(system.drive, self.order, axis=1) if np.any(system.drive) else None

    def take(self, rows: Array) -> _OfEdges:
        return _OfEdges(self.system.take(rows))

    def on(self, group: slice, cos: FloatArray, sin: FloatArray) -> tuple[FloatArray, FloatArray]:
        graph, nodes = self.system.graph, self.order[group]
        fields = []
        for part, held, outer in zip((cos, sin), self.held, self.outer, strict=True):
            whole = np.empty((part.shape[0], graph.size))
            whole[:, graph.held], whole[:, self.order] = held, part
            first, second = (self.strength * np.take(whole, ends, axis=1) for ends in (graph.second, graph.first))
            field = graph.at_ends(first, second)
            fields.append(np.take(field if outer is None else field + outer, nodes, axis=1))
        return fields[0], fields[1]

    def drive(self, group: slice) -> FloatArray | None:
        return None if self.driven is None else self.driven[:, group]

    def own(self, group: slice) -> LocalTerms:
        return LocalTerms.of(self.system, self.order[group])
