r"""Patterns learned by equilibrium propagation, from cues with flipped pixels.

A free state under a cue, and one whose oscillators are all nudged toward the pattern strongly enough to get there
(beta = 1): the difference of cos(theta_j - theta_i) over beta is the update of a coupling. It is Hebb's rule for the
pattern and its reverse for what the network made of the cue, and vanishes where these are one. An infinitesimal nudge
would not do: near +-pi/2 the sines of all differences vanish, and a state that is wrong does not feel where it should
be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import Array, FloatArray, float_between, whole_number
from phasegrad.equilibria import Settling
from phasegrad.memory._memory import CUE, PULL, TOLERANCE, Memory, memory_of
from phasegrad.memory._patterns import checked_patterns, flipped_pixels
from phasegrad.networks import Network
from phasegrad.objectives import PhaseTargets
from phasegrad.training import Plan, Report, train_whole

# Rate times the number of oscillators: what one update of a batch may do to a local field.
_RATE = 0.64


@dataclass(frozen=True)
class Flips:
    """Flip a share of the pixels of every training sample, others in every epoch: an augmentation of a `Plan`.

    Parameters
    ----------
    size : int
        Number of pixels.
    share : float
        Of those that are flipped, rounded to a whole number of pixels.

    See Also
    --------
    memory.learn : Learn patterns by equilibrium propagation.
    Plan : How networks are trained.

    Examples
    --------
    >>> import numpy as np, phasegrad as pg
    >>> flips = pg.memory.Flips(8, 0.25)
    >>> marks = flips.draw(np.random.default_rng(0), 2)
    >>> flips.apply(np.ones((2, 8)), marks).sum(axis=1).tolist()
    [4.0, 4.0]
    """

    size: int
    share: float = 0.25

    def __post_init__(self) -> None:
        whole_number("size", self.size, 1, "Flips")
        float_between("share", self.share, 0, 1, "Flips")

    def draw(self, stream: np.random.Generator, samples: int) -> Array:
        """Return which pixels of every sample are flipped, (n, size) of bool."""
        return flipped_pixels(stream, samples, self.size, self.share)

    def apply(self, inputs: Array, rows: Array) -> Array:
        """Return the samples (b, size) with these pixels flipped."""
        return np.where(rows, -np.asarray(inputs), inputs)


def learn(
    patterns: ArrayLike, plan: Plan | None = None, *, pull: float = PULL, cue: float = CUE, flips: float = 0.25,
    copies: int = 20, seed: int = 0, progress: Report | None = None, **changes: Any,
) -> Memory:  # fmt: skip
    """Learn patterns by equilibrium propagation, from couplings that are zero.

    Every sample is a pattern with some pixels flipped, others in every epoch; all oscillators are outputs, the phases
    of the whole pattern their targets. Correlated patterns are told apart, by updates that are as local as Hebb's. What
    is learned is the ratios of the couplings: in the end they are scaled so that the local fields of the patterns have
    a mean of one, as Hebb's rule gives a single pattern.

    Parameters
    ----------
    patterns : array_like of +1 and -1, or of bool, shape (P, N) or (P, height, width)
    plan : Plan, optional
        If left out: 6 epochs of plain descent, a rate of 0.64 / N, batches of 20, one nudge of 1. Unless it has another
        augmentation, pixels are flipped by `memory.Flips`.
    pull, cue : float
        As in `memory.hebbian`.
    flips : float
        Share of the pixels that are flipped while it learns; somewhat more than a cue has makes basins wide.
    copies : int
        Samples per pattern in an epoch.
    seed : int
        Of the flips, and of the order of the samples.
    progress : callable, optional
        As in `train`: called with the epoch and the history so far. Ctrl-C raises KeyboardInterrupt.
    **changes
        Fields of the plan that are to be otherwise, such as ``epochs=20``.

    See Also
    --------
    memory.hebbian : Store patterns by Hebb's rule.
    memory.pseudo_inverse : Store correlated patterns by their projection.
    train : Train one network or many.

    Examples
    --------
    >>> import numpy as np, phasegrad as pg
    >>> patterns = np.random.default_rng(3).choice([-1, 1], (2, 12))
    >>> pg.memory.learn(patterns, flips=0.1, epochs=4).score(0.1)
    1.0
    """
    rows = checked_patterns(patterns, "learn")[0]
    size = rows.shape[1]
    float_between("flips", flips, 0, 0.5, "learn")
    blank = memory_of(np.zeros((size, size)), patterns, pull, cue, "learn")
    samples = np.tile(rows, (whole_number("copies", copies, 1, "learn"), 1))
    if plan is not None and not isinstance(plan, Plan):
        raise TypeError(f"The 'plan' parameter of learn must be a Plan. Got {plan!r:.80}.")
    chosen = (_plan(size) if plan is None else plan).replace(**changes)
    if chosen.augmentation is None:
        chosen = chosen.replace(augmentation=Flips(size, flips))
    result = train_whole(blank.network, (samples, np.pi / 2 * samples), chosen, seed=seed, progress=progress)
    return Memory(_scaled(result.networks[0], rows), np.asarray(patterns))


def _scaled(network: Network, rows: FloatArray) -> Network:
    """Return the network with couplings scaled so that patterns have a mean local field of one, if it is positive."""
    first, second = network.graph.first, network.graph.second
    aligned = np.mean(rows[:, first] * rows[:, second], axis=0)
    field = 2 * float(network.coupling @ aligned) / network.size
    return network.replace(coupling=network.coupling / field) if field > 0 else network


def _plan(size: int) -> Plan:
    return Plan(
        learn="coupling", learning_rate=_RATE / size, objective=PhaseTargets(), epochs=6, batch_size=20,
        optimizer="sgd", gradient="two_phase", beta=1.0, settling=Settling("flow", TOLERANCE), lock_floor=None,
        evaluate_every=1_000_000,
    )  # fmt: skip
