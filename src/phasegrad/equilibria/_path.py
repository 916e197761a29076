r"""Whether the energy is convex all the way from one state to another.

Every weight of the Laplacian, K H'(theta_j - theta_i) of an edge or what a field puts on the diagonal, changes along
the straight way from a to b. The least that each becomes makes a Laplacian L_min with v.L_min v <= v.L(theta) v for
every theta on the way: if L_min is positive definite, all of them are. Where it is not, the two halves of the way are
looked at by themselves, so that weights which rise while others fall do not hide the answer.

Weights are sampled on the way, and bounded between two samples by the parabola through three. The higher the harmonics
of the interactions are, the closer are the samples. The harmonics of an interaction that is no finite series, and of a
term without one, are not known: the bound then holds where no weight has a wave shorter than about a radian.
"""

from __future__ import annotations

import numpy as np

from phasegrad._validation import FloatArray
from phasegrad.dynamics import System
from phasegrad.linearised import is_positive_with
from phasegrad.terms import Interaction

_HALVINGS = 4
# Radians of the highest harmonic between two looks at the weights; between them a weight is a parabola, up to the
# fourth power of this.
_SPACING = 0.05


def convex_between(system: System, first: FloatArray, last: FloatArray, halvings: int = _HALVINGS) -> bool:
    """Return whether the Laplacian is proved positive definite on the straight way between phases (1, N)."""
    if _least_is_positive(system, first, last):
        return True
    if halvings == 0:
        return False
    middle = 0.5 * (first + last)
    return convex_between(system, first, middle, halvings - 1) and convex_between(system, middle, last, halvings - 1)


def largest_change(system: System, change: FloatArray) -> float:
    """Return by how much a change of phases (1, N) turns an angle: across an edge or, where there is one, the frame."""
    largest = float(np.max(system.turns(change), initial=0.0))
    return largest if system.graph.pinned else max(largest, float(np.max(np.abs(change), initial=0.0)))


def _least_is_positive(system: System, first: FloatArray, last: FloatArray) -> bool:
    """Return whether the Laplacian of the least weights is proved positive definite."""
    return is_positive_with(system, *_least_weights(system, first, last))


def _least_weights(system: System, first: FloatArray, last: FloatArray) -> list[FloatArray]:
    """Return the least weight of every edge, (E,), diagonal entry, (N,), and sum of two phases, (E,), on the way."""
    waves = _highest_harmonic(system) * largest_change(system, last - first)
    pieces = max(2, int(np.ceil(waves / _SPACING)))
    before = now = least = _weights(system, first)
    bend = np.zeros_like(now)
    for k in range(1, pieces + 1):
        after = _weights(system, first + k / pieces * (last - first))
        if k > 1:
            bend = np.maximum(bend, np.abs(after - 2 * now + before))
        least = np.minimum(least, after)
        before, now = now, after
    # A parabola through three points falls below the lowest of them by an eighth of their second difference at most; a
    # seventh leaves room for the fourth power of the spacing.
    least = least - bend / 7
    edges, nodes = system.graph.n_edges, system.graph.size
    return np.split(least, [edges, edges + nodes])


def _highest_harmonic(system: System) -> int:
    """Return the number of the highest harmonic of all interactions that are finite series, at least 1."""
    interactions = (getattr(term, "interaction", None) for term in system.terms)
    series = (each.series for each in interactions if isinstance(each, Interaction))
    return max((int(np.flatnonzero(each)[-1]) + 1 for each in series if each is not None), default=1)


def _weights(system: System, phases: FloatArray) -> FloatArray:
    """Return the weights of the edges, what is on the diagonal besides, and the weights of sums, (E + N + E,)."""
    edges, nodes = system.graph.n_edges, system.graph.size
    parts = np.zeros(edges), np.zeros(nodes), np.zeros(edges)
    for term in system.terms:
        forward, _, diagonal, sums, _ = term.stiffness(system.graph, system.values, phases)
        for total, part in zip(parts, (forward, diagonal, sums), strict=True):
            if part is not None:
                total += part[0]
    return np.concatenate(parts)
