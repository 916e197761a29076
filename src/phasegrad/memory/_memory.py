r"""A memory: one oscillator per pixel, coupled all to all, with patterns among its stable states.

    F_i = sum_j K_ij sin(theta_j - theta_i) + h sin 2(pi/2 - theta_i) + c x_i

The second harmonic h ties every phase to +pi/2 or -pi/2, the two values of a pixel, half a turn apart; without it the
states of two patterns are joined by a valley along which the energy is constant, and no pattern is stable. A cue x acts
as a weak torque c on every oscillator, at rest at phase zero between the two values, and is then taken away.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import BoolArray, FloatArray, IntArray, counted, float_between, frozen_array, positive_float
from phasegrad.equilibria import Equilibria, Equilibrium, find_equilibria, find_equilibrium
from phasegrad.memory._drawing import plot_pictures
from phasegrad.memory._patterns import checked_patterns, checked_signs, corrupt
from phasegrad.networks import Network, complete

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The second harmonic and the torque of a cue, where a pattern that was stored alone has a local field of one.
PULL, CUE = 0.2, 0.1
# The residual that states reach.
TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Recall:
    """Where a memory went from cues.

    Attributes
    ----------
    phases : ndarray, shape (..., N)
        After the cue was taken away.
    overlap : ndarray, shape (..., P)
        Mean of pattern times sin(phase): 1 where the pattern is there, -1 where its inverse is.
    pattern : ndarray of int, shape (...)
        The pattern with the largest overlap.
    exact : ndarray of bool, shape (...)
        Whether the state is stable and every pixel is that of this pattern.
    settled, stable : ndarray of bool, shape (...)
        Certificates of the state.
    equilibrium : Equilibrium
        The state itself, as a batch.
    shape : tuple of int
        Of one pattern.

    See Also
    --------
    memory.Memory : Patterns kept by a network, recalled from cues.

    Examples
    --------
    >>> import phasegrad as pg
    >>> patterns = pg.memory.letters("CTX")
    >>> found = pg.memory.hebbian(patterns).recall(pg.memory.corrupt(patterns, 0.2)[0])
    >>> found.pattern.tolist(), found.exact.tolist()
    ([0, 1, 2], [True, True, True])
    """

    phases: FloatArray
    overlap: FloatArray
    pattern: IntArray
    exact: BoolArray
    settled: BoolArray
    stable: BoolArray
    equilibrium: Equilibrium
    shape: tuple[int, ...]

    @property
    def pixels(self) -> FloatArray:
        """The signs of the states, in the shape of the patterns."""
        signs = np.where(np.sin(self.phases) < 0, -1.0, 1.0)
        return frozen_array(signs.reshape(*self.pattern.shape, *self.shape))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw sin(phase) of every state as a picture and return the axes: new ones by pyplot where none are given."""
        titles = [f"{k}: {value:.2f}" for k, value in zip(self.pattern.ravel(), self._largest(), strict=True)]
        values = np.sin(self.phases).reshape(-1, *self.shape)
        return plot_pictures(values, titles, "Recall.plot", ax)

    def _largest(self) -> FloatArray:
        return np.max(self.overlap, axis=-1).ravel()

    def __str__(self) -> str:
        return (
            f"Recall({int(self.exact.sum())} of {counted(self.exact.size, 'cue')} exactly, {self.stable.sum()} stable)"
        )


@dataclass(frozen=True, eq=False)
class States:
    """The stable states of a memory without a cue, as random starts found them.

    Attributes
    ----------
    equilibria : Equilibria
        The states, the most often reached first, and their shares of the starts.
    pattern : ndarray of int, shape (S,)
        The pattern that a state is, or whose inverse; -1 for a spurious one.
    sign : ndarray, shape (S,)
        1 for a pattern, -1 for an inverse, 0 for a spurious state.

    See Also
    --------
    memory.Memory : Patterns kept by a network, recalled from cues.
    find_equilibria : All stable states met from random starts.

    Examples
    --------
    >>> import phasegrad as pg
    >>> states = pg.memory.pseudo_inverse(pg.memory.letters("CT")).states(starts=10)
    >>> states.spurious, sorted(set(states.pattern.tolist()))
    (0, [0, 1])
    """

    equilibria: Equilibria
    pattern: IntArray
    sign: FloatArray

    @property
    def spurious(self) -> int:
        """The number of states that are no pattern and no inverse of one."""
        return int(np.sum(self.sign == 0))

    @property
    def spurious_share(self) -> float:
        """The share of the random starts that ended in a spurious state."""
        return float(np.sum(self.equilibria.share[self.sign == 0]))

    def __str__(self) -> str:
        kept = np.unique(self.pattern[self.sign == 1]).size
        return (
            f"States({len(self.equilibria)} stable: {counted(kept, 'pattern')}, "
            f"{counted(int(np.sum(self.sign < 0)), 'inverse')}, {self.spurious} spurious with a share of "
            f"{self.spurious_share:.2f} of {counted(self.equilibria.starts, 'start')})"
        )


@dataclass(frozen=True, eq=False)
class Memory:
    """A network with patterns among its stable states.

    Parameters
    ----------
    network : Network
        One oscillator per pixel, each of them an input by frequency, with a second harmonic: as `memory.hebbian`
        and the other rules make it.
    patterns : array_like of +1 and -1, or of bool, shape (P, N) or (P, height, width)
        What it is to keep; rows in ``patterns``, ``shape`` is that of one.

    See Also
    --------
    memory.hebbian : Store patterns by Hebb's rule.
    memory.pseudo_inverse : Store correlated patterns by their projection.
    memory.learn : Learn patterns by equilibrium propagation.

    Examples
    --------
    >>> import phasegrad as pg
    >>> patterns = pg.memory.letters("JCA")
    >>> memory = pg.memory.pseudo_inverse(patterns)
    >>> again = pg.memory.Memory(memory.network, patterns)
    >>> again.score(0.2, copies=3), again.shape
    (1.0, (8, 8))
    """

    network: Network
    patterns: FloatArray
    shape: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        rows, shape = checked_patterns(self.patterns, "Memory")
        if not isinstance(self.network, Network):
            raise TypeError(f"The 'network' parameter of Memory must be a Network. Got {self.network!r:.80}.")
        if self.network.size != rows.shape[1]:
            raise ValueError(
                f"The network has {self.network.size} oscillators and the patterns {rows.shape[1]} pixels. A memory "
                "has one oscillator per pixel."
            )
        driven = self.network.input_mode == "frequency" and self.network.inputs == tuple(range(self.network.size))
        if not driven or "second_strength" not in self.network.parameters:
            raise ValueError(
                "The network of a Memory has all its oscillators in order as inputs by frequency, and a "
                "'second_strength' that makes two phases of every one. hebbian(patterns).network is such a one."
            )
        object.__setattr__(self, "patterns", frozen_array(rows))
        object.__setattr__(self, "shape", shape)

    def recall(self, corrupted: ArrayLike) -> Recall:
        """Let the network settle under cues, take them away, and let it settle again.

        Parameters
        ----------
        corrupted : array_like of +1 and -1, or of bool, shape (..., N) or (..., height, width)
            Any number of cues.

        Returns
        -------
        Recall
        """
        cues = self._checked_cues(corrupted)
        under = find_equilibrium(self.network, cues, solver="flow", tolerance=TOLERANCE)
        state = find_equilibrium(
            self.network, np.zeros_like(cues), start=under.phases, solver="flow", tolerance=TOLERANCE
        )
        values = np.sin(state.phases)
        overlap = values @ self.patterns.T / self.network.size
        pattern = np.argmax(overlap, axis=-1)
        exact = np.all(values * self.patterns[pattern] > 0, axis=-1) & state.stable
        return Recall(
            phases=state.phases,
            overlap=frozen_array(overlap),
            pattern=frozen_array(np.asarray(pattern)),
            exact=frozen_array(np.asarray(exact)),
            settled=frozen_array(np.asarray(state.converged)),
            stable=frozen_array(np.asarray(state.stable)),
            equilibrium=state,
            shape=self.shape,
        )

    def score(self, flips: float = 0.2, *, copies: int = 20, seed: int | None = 0) -> float:
        """Return the share of cues, with a share of their pixels flipped, from which their own pattern is recalled.

        Only where every pixel is right, and the state stable, does it count.
        """
        found = self.recall(corrupt(self.patterns, flips, copies=copies, seed=seed))
        return float(np.mean(found.exact & (found.pattern == np.arange(len(self.patterns)))))

    def states(self, starts: int = 100, *, seed: int | None = 0) -> States:
        """Find the stable states without a cue, from random starts, and say which of them are spurious."""
        free = np.zeros(self.network.size)
        found = find_equilibria(self.network, free, starts=starts, winding=0, seed=seed, tolerance=TOLERANCE)
        signs = np.sign(np.sin(found.phases))
        agreement = np.rint(signs @ self.patterns.T).astype(np.int64)
        which = np.argmax(np.abs(agreement), axis=-1)
        best = agreement[np.arange(len(which)), which]
        kept = np.abs(best) == self.network.size
        pattern = np.where(kept, which, -1).astype(np.int64)
        return States(found, frozen_array(pattern), frozen_array(np.where(kept, np.sign(best), 0.0)))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the patterns as pictures and return the axes: new ones by pyplot where none are given."""
        titles = [str(k) for k in range(len(self.patterns))]
        return plot_pictures(self.patterns.reshape(-1, *self.shape), titles, "Memory.plot", ax)

    def _checked_cues(self, given: ArrayLike) -> FloatArray:
        cues, size = checked_signs("corrupted", given, "recall"), self.network.size
        if len(self.shape) == 2 and cues.shape[-2:] == self.shape:
            cues = cues.reshape(*cues.shape[:-2], size)
        if cues.ndim == 0 or cues.shape[-1] != size:
            raise ValueError(
                f"The 'corrupted' parameter of recall must be cues of {size} pixels, shape (..., {size}) or "
                f"(..., {', '.join(map(str, self.shape))}). Got shape {cues.shape}."
            )
        return cues


def memory_of(couplings: FloatArray, patterns: ArrayLike, pull: float, cue: float, owner: str) -> Memory:
    """Return the memory whose couplings are a symmetric matrix (N, N); its diagonal is left out."""
    pull = positive_float("pull", pull, owner)
    cue = float_between("cue", cue, 0, np.inf, owner)
    if not 0 < cue < pull:
        raise ValueError(
            f"The 'cue' of {owner} must be above 0 and below the 'pull', or oscillators under it may turn for ever. "
            f"Got a cue of {cue:g} and a pull of {pull:g}."
        )
    size = len(couplings)
    bare = complete(size)
    network = bare.replace(
        coupling=couplings[bare.graph.first, bare.graph.second], omega=np.zeros(size), signed=True,
        inputs=range(size), outputs=range(size), input_mode="frequency", input_scale=cue,
        second_strength=pull, second_phase=np.pi / 2,
    )  # fmt: skip
    return Memory(network, np.asarray(patterns))
