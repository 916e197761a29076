"""The same steps compiled, a sample at a time, where the forces are sines; and the choice between both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from phasegrad._validation import FloatArray, IntArray, random_stream
from phasegrad.graphs import lazy_property
from phasegrad.kernels import COMPILES
from phasegrad.simulation._motion import Motion
from phasegrad.simulation._steps import DRAWN, ROUNDING, Adaptive, FixedSteps, Steps, not_finite, too_short

# Oscillators and edges looked at in one call of compiled code, which nothing can interrupt.
_LOOKED = 2**24
# The first of adaptive steps, as a share of the fastest time scale.
_FIRST = 0.1
# How often an attempt to take a step looks at every oscillator.
_STAGES = 13


def compiles(motion: Motion) -> bool:
    """Whether there is compiled code for a motion."""
    return COMPILES and motion.compiles


def adaptive_steps(motion: Motion, tolerance: float, moments: FloatArray) -> Steps:
    """Return steps whose length follows from their error, for a run through these times."""
    if compiles(motion):
        return CompiledAdaptive(motion, tolerance, _FIRST / np.maximum(motion.fastest(moments), 1e-300))
    return Adaptive(motion, tolerance, float(moments[-1]))


def fixed_steps(motion: Motion, lengths: FloatArray, method: str, noise: FloatArray | None, seed: int | None) -> Groups:
    """Return steps whose lengths (B,) are those of every sample.

    Noise has one stream per sample: the k-th child of the seed for the k-th sample of the flat batch.
    """
    streams = random_stream(seed, "simulate").spawn(0 if noise is None else motion.rows.size)
    kind = CompiledSteps if compiles(motion) else FixedSteps
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


@dataclass(frozen=True, eq=False)
class Arrays:
    """What compiled code is given of a motion."""

    motion: Motion

    def of(self, row: int) -> tuple[Any, Any, Any]:
        """Return the forces on one sample, its couplings in compressed rows, and what moves: damping and inertia."""
        drive, along, across, mean, weight = (each[min(row, len(each) - 1)] for each in self._forces)
        return (drive, along, across, float(mean)), (*self._places[:2], weight), self._bodies

    def steps(self, looks: int) -> int:
        """Return the most steps for one call, where each of them looks so many times at all oscillators and edges."""
        width = self.motion.size * (1 if self.motion.inertia is None else 2)
        return max(1, _LOOKED // (looks * (width + self._places[1].size)))

    @lazy_property
    def _bodies(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Who moves, damping, and inertia, none where there is none."""
        moving = np.ones(self.motion.size)
        moving[self.motion.held] = 0.0
        return moving, self.motion.damping, np.zeros(0) if self.motion.inertia is None else self.motion.inertia

    @lazy_property
    def _forces(self) -> tuple[FloatArray, ...]:
        """Of every sample, or of all: drive (b, N), both parts of the fields, the mean field's strength over N (b,).

        And the couplings in compressed rows, (b, 2E).
        """
        motion, system = self.motion, self.motion.first.system
        shift, values = motion.shift(motion.first), system.values
        drive = np.ascontiguousarray(system.drive if shift is None else system.drive + shift)
        along, across = np.zeros((2, 1, motion.size))
        strength = np.zeros((1, motion.drive.network.n_edges))
        for term in system.terms:
            field, edges = term.phasor_field(values), term.phasor_edges(values)
            if field is not None:
                along, across = along + field[0], across + field[1]
            if edges is not None:
                strength = strength + edges
        mean = values.get("global_coupling", np.zeros((1, 1)))[:, 0] / motion.size
        return drive, along, across, mean, np.take(strength, self._places[2], axis=1)

    @lazy_property
    def _places(self) -> tuple[IntArray, IntArray, IntArray]:
        """Both directions of all edges in compressed rows: where rows begin, neighbours, and the number of the edge.

        What is clamped acts like any other, at its phase.
        """
        graph = self.motion.drive.network.graph
        numbers = np.arange(graph.n_edges, dtype=np.int64)
        ends = np.concatenate([graph.first, graph.second]), np.concatenate([graph.second, graph.first])
        matrix = csr_array((np.concatenate([numbers, numbers]), ends), shape=(graph.size, graph.size))
        return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data


@dataclass(frozen=True, eq=False)
class CompiledSteps(FixedSteps):
    """Steps of one length."""

    def between(self, state: FloatArray, start: float, end: float) -> FloatArray:
        """Return the states at ``end``."""
        from phasegrad.kernels import motion as loops

        motion, width = self.motion, state.shape[1]
        after, work = state.copy(), tuple(np.empty(width) for _ in range(5))
        work += tuple(np.empty(motion.size) for _ in range(2))
        most = self._arrays.steps(1)
        if self.method == "heun":
            most = min(most, DRAWN // width)
        for row, one in enumerate(after):
            acting = *self._arrays.of(row), work
            for first, length, number in self._strides(start, end, most):
                if self.method == "rk4":
                    taken = loops.runge_kutta(one, number, length, *acting)
                else:
                    taken = loops.heun(one, self._kicks(row, number, length, width), length, *acting)
                if taken < number:
                    raise self._broken(row, one[None], first + taken * length, length)
        return after

    @lazy_property
    def _arrays(self) -> Arrays:
        return Arrays(self.motion)


def _coefficients() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return those of the stages with the weights as the last row, and of the errors of orders five and three."""
    from scipy.integrate import DOP853

    return np.vstack([DOP853.A, DOP853.B]), DOP853.E5.copy(), DOP853.E3.copy()


@dataclass(frozen=True, eq=False)
class CompiledAdaptive:
    """The method of DOP853, every sample for itself, with steps that end at the times asked for.

    ``lengths`` (B,) are those that the next step of each sample may have.
    """

    motion: Motion
    tolerance: float
    lengths: FloatArray
    _tableau: tuple[FloatArray, FloatArray, FloatArray] = field(default_factory=_coefficients)

    def between(self, state: FloatArray, start: float, end: float) -> FloatArray:
        """Return the states at ``end``."""
        from phasegrad.kernels import adaptive as loops

        after, size = state.copy(), self.motion.size
        work = np.empty((_STAGES, state.shape[1])), np.empty(state.shape[1])
        waves = np.empty(size), np.empty(size)
        how = self._arrays.steps(_STAGES), (self.tolerance, ROUNDING), self._tableau, work
        for row, one in enumerate(after):
            clock, acting = np.array([start, self.lengths[row], 0.0]), (*waves, *self._arrays.of(row))
            said = loops.UNDER_WAY
            while said == loops.UNDER_WAY:
                said = loops.advance(clock, one, end, *how, acting)
            if said != loops.THERE:
                raise self._broken(row, one, float(clock[loops.TIME]), said == loops.TOO_SHORT)
            self.lengths[row] = clock[loops.STEP]
        return after

    def _broken(self, row: int, state: FloatArray, time: float, short: bool) -> ValueError:
        """Return the error of a sample from whose state no step leads on."""
        with np.errstate(all="ignore"):
            rates = self.motion.take(np.array([row])).rates(time, state[None])[0]
        if short:
            return too_short(self.motion, row, time, rates)
        return not_finite(self.motion, row, time, rates, "The adaptive steps cannot go on from there.")

    @lazy_property
    def _arrays(self) -> Arrays:
        return Arrays(self.motion)
