r"""A batch of one network whose Laplacian nearly falls apart: the compiled way of `PhasorLaplacian`.

Oscillators of one colour are not coupled to each other. Where one colour holds nearly all of a network (the hidden
layer of a layered one), what is left after it is a small Schur complement per sample. See `phasegrad.kernels._layers`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.dynamics import Pull
from phasegrad.objectives import formula_of

Blocks = Sequence[tuple[slice, slice, FloatArray]]

_NOWHERE, _NO_STRENGTH = np.zeros(0, dtype=np.int64), np.zeros(0)
_NOTHING, _NO_BEND = np.zeros((0, 0)), np.zeros((0, 0, 0))


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The field of all that is held on every oscillator that moves, (B, n) each, and what drives them, if anything."""

    x: FloatArray
    y: FloatArray
    drive: FloatArray | None

    def arrays(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return them as compiled code takes them."""
        return _flat(self.x), _flat(self.y), _NOTHING if self.drive is None else _flat(self.drive)


class Elimination:
    """The couplings of one network as the kernel takes them: ``first`` oscillators to eliminate, ``rest`` others.

    ``harmonics`` (m, 2, n) are coefficients of what each feels by its own phase alone; see `LocalTerms.harmonics`.
    Every thread has memory of its own.
    """

    def __init__(self, blocks: Blocks, harmonics: FloatArray, first: int, rest: int) -> None:
        from phasegrad.kernels import Rows, layers, nudges, tile

        self.kernel, self.nudges, self.first, self.rest = layers, nudges, first, rest
        self.cross = np.zeros((tile.filled(first), rest))
        inner = np.zeros((rest, rest))
        for rows, columns, block in blocks:
            a, b = (slice(part.start - first, part.stop - first) for part in (rows, columns))
            if rows.stop <= first:
                self.cross[rows, b] = block
            else:
                inner[a, b], inner[b, a] = block, block.T
        self.inner = inner if np.any(inner) else _NOTHING
        self.local = np.zeros((len(harmonics), 2, self.cross.shape[0] + rest))
        self.local[:, :, :first], self.local[:, :, self.cross.shape[0] :] = np.split(harmonics, [first], axis=2)
        self.make_rows: Callable[[], Any] = lambda: Rows(tile.memory(first, rest), tile.WIDTH)
        self.own = threading.local()

    @property
    def rows(self) -> Any:
        """Memory for a tile, of this thread alone."""
        if not hasattr(self.own, "rows"):
            self.own.rows = self.make_rows()
        return self.own.rows

    def align(self, batch: Surroundings, moving: FloatArray, sweeps: int, rests: float) -> FloatArray:
        """Return phases (B, n) after at most so many sweeps of alignment, fewer where a sample comes to rest."""
        aligned = np.array(moving, order="C")
        self.kernel.align(
            self.rows,
            self.cross,
            self.inner,
            self.local,
            *batch.arrays(),
            aligned,
            self.first,
            self.rest,
            sweeps,
            rests,
        )
        return aligned

    def exceeds(self, batch: Surroundings, pull: Pull | None, moving: FloatArray, floor: FloatArray) -> BoolArray:
        """Return where the smallest eigenvalue of the Laplacian is above ``floor``, (B,)."""
        answer = np.zeros(moving.shape[0], dtype=bool)
        self.kernel.exceeds(
            self.rows, self.cross, self.inner, self.local, *batch.arrays(), self._nudge(pull, moving), _flat(moving),
            _flat(floor), answer, self.first, self.rest,
        )  # fmt: skip
        return answer

    def solve(
        self, batch: Surroundings, pull: Pull | None, moving: FloatArray, right: FloatArray
    ) -> tuple[FloatArray, BoolArray]:
        """Solve L v = right, (B, n); the mask says where L is positive definite."""
        solution, definite = np.empty_like(moving, order="C"), np.zeros(moving.shape[0], dtype=bool)
        self.kernel.solve(
            self.rows, self.cross, self.inner, self.local, *batch.arrays(), self._nudge(pull, moving), _flat(moving),
            _flat(right), solution, definite, self.first, self.rest,
        )  # fmt: skip
        return solution, definite

    def stride(
        self, batch: Surroundings, pull: Pull | None, moving: FloatArray, tolerance: FloatArray, count: int,
        max_turn: float, share: float,
    ) -> tuple[FloatArray, FloatArray, IntArray]:  # fmt: skip
        """Take up to ``count`` full Newton steps while each leaves at most ``share`` of the squared force.

        Return the phases (B, n) that were accepted last, the residuals there, and the steps taken.
        """
        moving, last = np.array(moving, order="C"), np.array(moving, order="C")
        square, left = np.full((2, moving.shape[0]), np.inf)
        fate, steps = np.zeros((2, moving.shape[0]))
        nudge, arrays = self._nudge(pull, moving), batch.arrays()
        # A force that only Python knows is asked for after every step.
        at_once = 1 if nudge.kind == self.nudges.GIVEN else count + 1
        for taken in range(0, count + 1, at_once):
            if taken:
                nudge = self._nudge(pull, moving)
            self.kernel.stride(
                self.rows, self.cross, self.inner, self.local, *arrays, nudge, moving, last, square, left, fate, steps,
                _flat(tolerance), max_turn, share, at_once, self.first, self.rest,
            )  # fmt: skip
            if (fate != self.kernel.GOES_ON).all():
                break
        return last, left, steps.astype(np.int64)

    def _nudge(self, pull: Pull | None, moving: FloatArray) -> Any:
        """Return a nudge as compiled code takes it, at phases (B, n)."""
        kinds = self.nudges
        if pull is None:
            return kinds.Nudge(kinds.FREE, 0.0, _NOWHERE, _NO_STRENGTH, _NOTHING, _NOTHING, _NO_BEND)
        places, formula = pull.nodes - self.first, formula_of(pull.cost)
        if formula is not None:
            kind = {"quadratic": kinds.QUADRATIC, "periodic": kinds.PERIODIC, "entropy": kinds.ENTROPY}[formula.kind]
            beta, target = _flat(pull.beta[:, 0]), _flat(pull.target)
            return kinds.Nudge(kind, formula.sharpness, places, beta, target, _NOTHING, _NO_BEND)
        force = np.zeros((moving.shape[0], self.rest))
        hessian = np.zeros((moving.shape[0], self.rest, self.rest))
        force[:, places] = pull.force(moving)
        hessian[:, places[:, None], places[None, :]] = pull.hessian(moving)
        return kinds.Nudge(kinds.GIVEN, 0.0, places, _NO_STRENGTH, _NOTHING, force, hessian)


def _flat(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)
