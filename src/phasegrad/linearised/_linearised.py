r"""The linearised system: a batch of states, the force on them, and the Laplacian there as something to solve with.

    F(theta + d) = F(theta) - L d + ...,      L = -dF/dtheta over the oscillators that move

Newton's method solves with L, a certificate asks for its sign, the adjoint gradient solves with its transpose, the
strength of a nudge is measured against it. All of them ask the same object. It works out what it is asked for once:
the first call that needs a factorisation makes it, and later ones use it.

What a system is decides the algebra (`phasegrad.linearised.linearise`): `DenseLaplacian` factors every sample by
LAPACK, `SparseLaplacian` iterates on edges or compressed rows, `PhasorLaplacian` shares products of matrices between
all samples of one sine-coupled network; `EdgewiseLaplacian` takes the Newton steps of small networks with any
interaction in compiled code, for training. Another algebra is one more file with the same verbs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import Array, BoolArray, FloatArray, IntArray
from phasegrad.dynamics import System
from phasegrad.graphs import lazy_property
from phasegrad.linearised._factors import MOST_NUMBERS


class Verdict(IntEnum):
    """What is known about the sign of a Laplacian, and so about the stability of a state."""

    UNPROVED = 0
    UNSTABLE = 1
    MARGINAL = 2
    STABLE = 3


#: Share of the tolerance below which a force is rounding: a step then moves nothing that another Laplacian would show.
AT_REST = 1e-3


class Strides(NamedTuple):
    """Where plain Newton steps ended: phases (B, n), residuals (B,) and the steps taken (B,)."""

    moving: FloatArray
    left: FloatArray
    steps: IntArray


@dataclass(frozen=True, eq=False)
class Stability:
    """The verdict on each sample, (B,), and its smallest eigenvalue with a bound on its error, NaN if not asked for.

    Samples that are not stable are marginal, unstable or open only where that was asked for, else unproved.
    """

    verdict: IntArray
    smallest: FloatArray
    error: FloatArray

    @property
    def stable(self) -> BoolArray:
        """Where a proof of stability was found, (B,)."""
        return np.asarray(self.verdict == Verdict.STABLE)


def verdicts(stable: Array) -> IntArray:
    """Return the verdict on every sample, (B,), of which only some are proved stable."""
    return np.where(stable, int(Verdict.STABLE), int(Verdict.UNPROVED))


class Linearised(ABC):
    """B states of a system and its Laplacian at each of them.

    Parameters
    ----------
    system : System
        The force balance, of B samples.
    moving : ndarray, shape (B, n)
        Phases of the oscillators ``nodes`` that move; `of` takes the phases of all.
    """

    #: What it is called in results.
    name: ClassVar[str]
    #: Whether linear systems are solved by iterations, so that a solution is only as accurate as was asked for.
    iterates: ClassVar[bool] = False
    #: Whether it can follow or descend where the Laplacian is not positive definite.
    descends: ClassVar[bool] = True

    def __init__(self, system: System, moving: Array) -> None:
        self.system, self.moving = system, moving

    @classmethod
    def of(cls, system: System, phases: Array, preconditioner: str = "auto") -> Self:
        """Return the linearised system at phases (B, N) of all oscillators."""
        del preconditioner
        found = cls(system, phases.take(system.graph.free, axis=1))
        found.__dict__["phases"] = phases
        return found

    @staticmethod
    @abstractmethod
    def fits(system: System) -> bool:
        """Return whether this algebra takes a system."""

    @staticmethod
    @abstractmethod
    def entries(system: System) -> int:
        """Return how many numbers a sample takes at most."""

    def _share(self, part: Linearised, rows: Array) -> None:
        """Hand what is known of some samples to a part that holds them."""
        for name in ("force", "phases"):
            if name in self.__dict__:
                part.__dict__[name] = self.__dict__[name][rows]

    @property
    def fits_in_memory(self) -> bool:
        """Whether the Laplacians of all samples and their factors are within the bound on what is kept."""
        return 2 * self.system.batch * self.entries(self.system) <= MOST_NUMBERS

    @property
    def nodes(self) -> IntArray:
        """The oscillators that move, in the order of the columns."""
        return self.system.graph.free

    @lazy_property
    def phases(self) -> Array:
        """The phases of all oscillators, (B, N)."""
        return self.system.whole(self.moving)

    @lazy_property
    def force(self) -> Array:
        """The force on the oscillators that move, (B, n)."""
        return self.system.force(self.phases).take(self.nodes, axis=1)

    @lazy_property
    def energy(self) -> Array:
        """The energy of every sample, (B,), up to a constant; reciprocal coupling only."""
        return self.system.energy(self.phases)

    @abstractmethod
    def at(self, moving: Array) -> Self:
        """Return the same samples at other phases (B, n)."""

    @abstractmethod
    def take(self, rows: Array) -> Self:
        """Return some of the samples."""

    @abstractmethod
    def newton(self, accuracy: FloatArray, rests: BoolArray) -> tuple[Array, BoolArray]:
        """Solve L d = F to a share ``accuracy`` (B,) of F.

        Samples that are at rest up to rounding may be solved with the Laplacian of the state before. The mask says
        where L is positive definite, or just regular where it is not symmetric.
        """

    def solve(self, right: ArrayLike, *, transposed: bool = False, accuracy: float = 1e-12) -> tuple[Array, BoolArray]:
        """Solve L x = b or L^T x = b.

        Parameters
        ----------
        right : array_like, shape (B, n) or (B, n, k)
            One right-hand side, or k of them, for each of the B samples; columns are the oscillators ``nodes``.
        transposed : bool
            Whether to solve with the transpose. They are equal where coupling is reciprocal.
        accuracy : float
            What may be left of the right-hand side, as a share of it, where linear systems are solved by iterations.

        Returns
        -------
        solution : ndarray, of the shape of ``right``
        regular : ndarray of bool, shape (B,)
            Where L is regular; the solution is zero elsewhere.
        """
        given = np.asarray(right)
        given = given if given.dtype.kind in "fc" else given.astype(np.float64)
        if given.ndim not in (2, 3) or given.shape[:2] != self.moving.shape:
            raise ValueError(
                f"The 'right' parameter of solve must have shape {self.moving.shape}, or that and one more axis: a row "
                f"per sample, a column per oscillator that moves. Got {given.shape}."
            )
        if np.iscomplexobj(given) and not np.iscomplexobj(self.moving):
            raise ValueError(
                "The 'right' parameter of solve must be real: the Laplacian is. Solve for both parts apart."
            )
        return self._solve(given, transposed=transposed, accuracy=accuracy)

    @abstractmethod
    def _solve(self, right: Array, *, transposed: bool, accuracy: float) -> tuple[Array, BoolArray]:
        """Solve L x = b (or L^T x = b) for right-hand sides that have been checked; see `solve`."""

    @abstractmethod
    def matvec(self, vectors: Array) -> Array:
        """Return L v of vectors (B, n)."""

    @abstractmethod
    def definite(self, floor: FloatArray | None = None, *, explain: bool = False) -> IntArray:
        """Return the `Verdict` on every sample, (B,): STABLE where all eigenvalues are proved to be above ``floor``.

        It is about the Laplacian at these phases, whether they are an equilibrium or not; `Equilibrium.stable` says
        both. Without a floor (B,) that is zero, and the proof counts rounding. With ``explain`` samples that are not
        proved are told apart; else they are UNPROVED.
        """

    @abstractmethod
    def smallest(self) -> tuple[FloatArray, FloatArray]:
        """Return the smallest eigenvalue, (B,), real parts where L is not symmetric, and a bound on its error."""

    def certificate(self, *, eigenvalue: bool = False, explain: bool = False) -> Stability:
        """Return verdicts and, if asked for, smallest eigenvalues of all samples."""
        unknown = np.full(self.system.batch, np.nan)
        smallest, error = self.smallest() if eigenvalue else (unknown, unknown)
        return Stability(self.definite(explain=explain), smallest, error)

    def turn(self, step: Array) -> FloatArray:
        """Return how far a step (B, n) turns a sample, (B,), in radians."""
        return np.asarray(np.abs(step).max(axis=1, initial=0.0))

    def follow(self, rows: IntArray) -> tuple[Array, BoolArray]:
        """Solve L d = F of some samples whose L is not positive definite; the mask says where it is regular."""
        raise NotImplementedError

    def descend(self, rows: IntArray) -> tuple[Array, BoolArray]:
        """Return descent directions of some samples, in a positive definite stand-in metric."""
        raise NotImplementedError

    def leave(self, rows: IntArray) -> Array | None:
        """Return steps of some samples away from a saddle; None where the algebra has none."""
        del rows
        return None

    def stride(
        self, tolerance: FloatArray, count: int, max_turn: float, share: float, *, polish: bool
    ) -> Strides | None:
        """Take full Newton steps while each leaves at most ``share`` of the squared force; None where none are taken.

        A sample whose Laplacian is not positive definite, or that would turn by more than ``max_turn``, is left where
        it is. With ``polish`` one that has converged takes one more step, kept if it helps; where none could be tried
        its residual is infinite, so that somebody else tries.
        """
        del tolerance, count, max_turn, share, polish
        return None

    def report(self, row: int) -> tuple[int, str] | None:
        """Return the linear iterations of a sample so far and their preconditioner; None where nothing iterates."""
        del row
        return None
