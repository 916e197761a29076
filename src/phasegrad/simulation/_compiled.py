"""The same steps compiled, a sample at a time, where terms say how phasors act; and the choice between both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from phasegrad._validation import FloatArray, IntArray, random_stream
from phasegrad.graphs import lazy_property
from phasegrad.simulation._motion import Motion
from phasegrad.simulation._steps import DRAWN, ROUNDING, Adaptive, FixedSteps, Steps, not_finite, too_short
from phasegrad.terms import LocalField

# Oscillators and edges looked at in one call of compiled code, which nothing can interrupt.
_LOOKED = 2**24
# The first of adaptive steps, as a share of the fastest time scale.
_FIRST = 0.1


def adaptive_steps(motion: Motion, tolerance: float, moments: FloatArray, fastest: FloatArray) -> Steps:
    """Return steps whose length follows from their error, for a run through these times.

    ``fastest`` (B,) is how fast any oscillator of a sample can change.
    """
    if motion.uncompiled:
        return Adaptive(motion, tolerance, float(moments[-1]))
    return CompiledAdaptive(motion, tolerance, moments, _FIRST / np.maximum(fastest, 1e-300))


def fixed_steps(motion: Motion, lengths: FloatArray, method: str, noise: FloatArray | None, seed: int | None) -> Groups:
    """Return steps whose lengths (B,) are those of every sample.

    Noise has one stream per sample: the k-th child of the seed for the k-th sample of the flat batch.
    """
    streams = random_stream(seed, "simulate").spawn(0 if noise is None else motion.rows.size)
    kind = FixedSteps if motion.uncompiled else CompiledSteps
    groups = []
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        own = tuple(streams[row] for row in rows) if streams else ()
        groups.append((rows, kind(motion.take(rows), float(length), method, noise, own)))
    return Groups(groups)


@dataclass(frozen=True, eq=False)
class Groups:
    """Samples, by their numbers, with the steps of each group."""

    groups: Sequence[tuple[IntArray, FixedSteps]]

    def between(self, state: FloatArray, start: float, end: float) -> FloatArray:
        """Return the states at ``end``."""
        after = np.empty_like(state)
        for rows, steps in self.groups:
            after[rows] = steps.between(state[rows], start, end)
        return after

    def rates(self, time: float, state: FloatArray) -> FloatArray:
        """Return the rates of change of states."""
        found = np.empty_like(state)
        for rows, steps in self.groups:
            found[rows] = steps.rates(time, state[rows])
        return found

    @property
    def taken(self) -> IntArray:
        """How many steps every sample took, (B,)."""
        found = np.zeros(sum(rows.size for rows, _ in self.groups), dtype=np.int64)
        for rows, steps in self.groups:
            found[rows] = steps.taken
        return found


@dataclass(frozen=True, eq=False)
class Compiled:
    """A motion as compiled code takes it."""

    motion: Motion

    def acting(self, row: int) -> tuple[Any, ...]:
        """Return all that acts on one sample, and memory for its phasors."""
        drive, own, mean, weight, maps = (each[min(row, len(each) - 1)] for each in self._forces)
        indptr, indices, every = self._rows
        return *self._memory, (drive, own, float(mean)), (indptr, indices, weight, every, maps), self._bodies

    @property
    def everything(self) -> tuple[Any, ...]:
        """Memory for phasors, and all that acts on all samples."""
        return self._memory, self._forces, self._rows, self._bodies

    def rates(self, state: FloatArray) -> FloatArray:
        """Return the rates of change of states (B, width)."""
        from phasegrad.kernels import motion as loops

        found = np.empty_like(state)
        loops.slopes_of(state, found, *self.everything)
        return found

    def most(self, looks: int) -> int:
        """Return the most steps for one call, where each of them looks so many times at all oscillators and edges."""
        width = self.motion.size * (1 if self.motion.inertia is None else 2)
        return max(1, _LOOKED // (looks * (width + self._places[1].size)))

    @property
    def _rows(self) -> tuple[IntArray, Any, int]:
        """Where rows begin, neighbours, and what to mask places with: all where one coupling stands for all."""
        return *self._places[:2], 0 if self._forces[3].shape[1] == 1 else -1

    @lazy_property
    def _memory(self) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
        from phasegrad.kernels import motion as loops

        return np.empty(2 * self.motion.size), (np.empty(loops.BLOCK), np.empty(loops.BLOCK))

    @lazy_property
    def _bodies(self) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
        """Who moves, by how much a force moves them, damping, and whether there is inertia."""
        motion = self.motion
        moving = np.ones(motion.size)
        moving[motion.held] = 0.0
        resists = motion.damping if motion.inertia is None else motion.inertia
        return moving, moving / resists, motion.damping, motion.inertia is not None

    @lazy_property
    def _forces(self) -> tuple[FloatArray, ...]:
        """Of every sample, or of all: drive (b, N), both parts of the fields (b, 2N), strength of the mean field (b,).

        And the couplings in compressed rows: weights (b, 2E), or (b, 1) where all are alike and (b, 0) where neighbours
        act by maps of their phasors, (b, 8E), else (b, 0).
        """
        motion, system = self.motion, self.motion.first.system
        shift, values = motion.shift(motion.first), system.values
        drive = np.ascontiguousarray(system.drive if shift is None else system.drive + shift)
        own, mean = np.zeros((1, motion.size, 2)), np.zeros((1, 1))
        for term in system.terms:
            field, strength = term.phasor_field(values), term.mean_strength(system.graph, values)
            if field is not None:
                own = own + np.stack(np.broadcast_arrays(*field), axis=-1)
            if strength is not None:
                mean = mean + strength
        couplings = [coupling for term in system.terms if (coupling := term.local_field(values)) is not None]
        return drive, own.reshape(len(own), -1), mean[:, 0], *self._couplings(couplings)

    def _couplings(self, fields: Sequence[LocalField]) -> tuple[FloatArray, FloatArray]:
        """Return weights and maps of neighbours."""
        none, where = np.zeros((1, 0)), self._places[2]

        def in_rows(parts: Sequence[FloatArray | None]) -> FloatArray:
            both = sum(np.concatenate(part, axis=-1) for part in parts if part is not None)
            return np.take(both, where, axis=-1) if np.ndim(both) else np.zeros((1, where.size))

        along = in_rows([field.along for field in fields])
        if all(field.across is None and field.mirrored is None for field in fields):
            alike = along.size > 0 and bool(np.all(along == along[:, :1]))
            return np.ascontiguousarray(along[:, :1]) if alike else along, none
        across, mirrored = in_rows([field.across for field in fields]), in_rows([field.mirrored for field in fields])
        # What multiplies (cos, sin) in both parts of the field, and what multiplies (sin, cos).
        parts = np.broadcast_arrays(along - mirrored, along + mirrored, across, -across)
        return none, np.stack(parts, axis=-1).reshape(len(parts[0]), -1)

    @lazy_property
    def _places(self) -> tuple[IntArray, Any, IntArray]:
        """Both directions of all edges in compressed rows: where rows begin, neighbours, and the number of each.

        What acts on first ends comes before what acts on second ones. What is clamped acts like any other, at its
        phase.
        """
        graph = self.motion.drive.network.graph
        numbers = np.arange(2 * graph.n_edges, dtype=np.int64)
        ends = np.concatenate([graph.first, graph.second]), np.concatenate([graph.second, graph.first])
        matrix = csr_array((numbers, ends), shape=(graph.size, graph.size))
        return matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32), matrix.data


@dataclass(frozen=True, eq=False)
class CompiledSteps(FixedSteps):
    """Steps of one length."""

    def between(self, state: FloatArray, start: float, end: float) -> FloatArray:
        """Return the states at ``end``."""
        from phasegrad.kernels import motion as loops

        width = state.shape[1]
        after, work = state.copy(), tuple(np.empty((3, width)))
        most = self._compiled.most(1)
        self.taken[:] += self._count(start, end)
        if self.method == "heun":
            most = min(most, DRAWN // width)
        for row, one in enumerate(after):
            acting = self._compiled.acting(row)
            for first, length, number in self._strides(start, end, most):
                if self.method == "rk4":
                    taken = loops.runge_kutta(one, number, length, work, acting)
                else:
                    taken = loops.heun(one, self._kicks(row, number, length, width), length, work, acting)
                if taken < number:
                    raise self._broken(row, one[None], first + taken * length, length)
        return after

    def rates(self, time: float, state: FloatArray) -> FloatArray:
        """Return the rates of change of states, the same at all times."""
        del time
        return self._compiled.rates(state)

    @lazy_property
    def _compiled(self) -> Compiled:
        return Compiled(self.motion)


def _coefficients() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return those of all stages, of the errors of orders five and three, and of the polynomial.

    The state after the step is that of the stage behind the last of the step itself.
    """
    from scipy.integrate import DOP853

    steps, extra = np.vstack([DOP853.A, DOP853.B]), DOP853.A_EXTRA
    matrix = np.zeros((len(steps) + len(extra), extra.shape[1]))
    matrix[: len(steps), : steps.shape[1]], matrix[len(steps) :] = steps, extra
    return matrix, np.stack([DOP853.E5, DOP853.E3]), np.ascontiguousarray(DOP853.D)


class CompiledAdaptive:
    """The method of DOP853, every sample for itself, carried from one time to the next."""

    def __init__(self, motion: Motion, tolerance: float, moments: FloatArray, lengths: FloatArray) -> None:
        from phasegrad.kernels import adaptive as loops

        self.motion, self.tolerance, self.moments = motion, tolerance, moments
        self._compiled, self._tableau = Compiled(motion), _coefficients()
        self._clocks = np.zeros((motion.rows.size, 6))
        self._clocks[:, loops.STEP] = lengths
        width = motion.size * (1 if motion.inertia is None else 2)
        # Where each sample is, and the polynomial of its last step where it went past a time; memory until it is used.
        self._states: FloatArray | None = None
        self._bends = np.empty((motion.rows.size, 8, width))
        self._work = np.empty((loops.STAGES, width)), np.empty(width)

    def between(self, state: FloatArray, start: float, end: float) -> FloatArray:
        """Return the states at ``end``."""
        from phasegrad.kernels import adaptive as loops

        if self._states is None:
            self._states = state.copy()
            self._clocks[:, loops.TIME] = start
        after = np.empty_like(state)
        following = int(np.searchsorted(self.moments, end, side="right"))
        moments = *np.append(self.moments, np.inf)[[following - 1, following]].tolist(), float(self.moments[-1])
        how = moments, self._compiled.most(loops.STAGES), (self.tolerance, ROUNDING), self._tableau, self._work
        row, said = 0, loops.UNDER_WAY
        while said == loops.UNDER_WAY:
            row, said = loops.advance(
                self._clocks, self._states, self._bends, after, row, *how, *self._compiled.everything
            )
        if said != loops.THERE:
            time = float(self._clocks[row, loops.TIME])
            raise self._broken(row, self._states[row], time, said == loops.TOO_SHORT)
        return after

    def rates(self, time: float, state: FloatArray) -> FloatArray:
        """Return the rates of change of states, the same at all times."""
        del time
        return self._compiled.rates(state)

    @property
    def taken(self) -> IntArray:
        """How many steps every sample took, (B,)."""
        from phasegrad.kernels import adaptive as loops

        return self._clocks[:, loops.TAKEN].astype(np.int64)

    def _broken(self, row: int, state: FloatArray, time: float, short: bool) -> ValueError:
        """Return the error of a sample from whose state no step leads on."""
        with np.errstate(all="ignore"):
            rates = self.motion.take(np.array([row])).rates(time, state[None])[0]
        if short:
            return too_short(self.motion, row, time, rates)
        return not_finite(self.motion, row, time, rates, "The adaptive steps cannot go on from there.")
