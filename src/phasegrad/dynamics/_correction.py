r"""A correction of nudged dynamics where coupling is not reciprocal (asymmetric equilibrium propagation).

With J the Jacobian of the force at a free state theta_0 and J_A its antisymmetric part, the nudged network is given

    -2 J_A (theta - theta_0)

on top of its own forces. It vanishes at the free state and turns the Jacobian there into its transpose,
J - 2 J_A = J^T, so that a nudge shows the response of the transposed network. Of an edge it needs the difference of its
two weights alone: each end is pulled by how far the *other* one has moved, with opposite signs.

Where nothing holds a common phase, shifts are counted from their mean, which no oscillator is singled out by: the
corrected network then turns at the frequency of the free one to first order in the shift.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from phasegrad._validation import Array
from phasegrad.graphs import Graph


@dataclass(frozen=True)
class Correction:
    """The correction laid flat over a batch.

    ``origin`` (B, N) are the free phases, ``skew`` (B, E) the weight of every edge on its first end less that on its
    second; ``turning`` says that shifts are counted from their mean.
    """

    origin: Array
    skew: Array
    turning: bool

    def take(self, rows: Array) -> Correction:
        """Return the correction of some of the samples."""
        return dataclasses.replace(self, origin=self.origin[rows], skew=self.skew[rows])

    def force(self, graph: Graph, phases: Array) -> Array:
        """Return the force on every oscillator, (B, N)."""
        shift = phases - self.origin
        if self.turning:
            shift = shift - np.mean(shift, axis=1, keepdims=True)
        across = (np.take(shift, ends, axis=1) for ends in (graph.second, graph.first))
        return graph.at_ends(*(sign * self.skew * each for sign, each in zip((-1.0, 1.0), across, strict=True)))

    def common(self, graph: Graph) -> Array:
        """Return what the force on every oscillator has of the mean shift, per unit of one shift, (B, N)."""
        return graph.at_ends(-self.skew, self.skew) / graph.size
