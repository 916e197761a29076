r"""The machine: oscillators that become bits while injection at twice their frequency rises and noise falls.

    dtheta_i = [K(t) / J_0 (sum_j J_ij sin(theta_j - theta_i) - h_i sin theta_i) - S(t) sin 2 theta_i] dt
               + sqrt(2 D(t)) dW_i

with J_0 the problem's `scale`. With cosines c and sines s of all phases the first sum is c (J s) - s (J c): products of
one matrix with all runs side by side, dense or compressed rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from phasegrad._validation import Array, FloatArray
from phasegrad.ising._problem import Problem

# A matrix with a larger share of entries than this is multiplied as a dense one.
_DENSE = 0.3
# Numbers of noise that are drawn in one go.
_DRAWN = 4_000_000


def anneal(
    problem: Problem, streams: list[np.random.Generator], step: float,
    schedule: tuple[FloatArray, FloatArray, FloatArray], progress: Callable[[int], object] | None,
) -> Array:  # fmt: skip
    """Return the phases (runs, N) at the end of a schedule: coupling, injection and noise of every step.

    Phases are in single precision, of which only signs of cosines are read. Every run has a stream of its own, so that
    how many run side by side changes none of them but by rounding.
    """
    couplings, injections, noises = schedule
    matrix, fields = _scaled(problem)
    runs, size, steps = len(streams), problem.size, couplings.size
    phases = np.stack([stream.uniform(-np.pi, np.pi, size) for stream in streams], axis=1).astype(np.float32)
    waves = np.empty((size, 2 * runs), dtype=np.float32)
    cos, sin = waves[:, :runs], waves[:, runs:]
    block = max(1, _DRAWN // (runs * size))
    kicks = np.empty((block, size, runs), dtype=np.float32)
    for begin in range(0, steps, block):
        count = min(block, steps - begin)
        # A step without noise draws none, whichever block it falls into.
        noisy = np.flatnonzero(noises[begin : begin + count])
        for k, stream in enumerate(streams if noisy.size else ()):
            kicks[noisy, :, k] = stream.standard_normal((noisy.size, size), dtype=np.float32)
        for taken in range(count):
            now = begin + taken
            np.cos(phases, out=cos)
            np.sin(phases, out=sin)
            local = matrix @ waves
            pull = cos * local[:, runs:]
            pull -= sin * (local[:, :runs] + fields)
            pull *= np.float32(step * couplings[now])
            pull -= np.float32(2 * step * injections[now]) * (sin * cos)
            phases += pull
            if noises[now]:
                phases += np.float32(np.sqrt(2 * step * noises[now])) * kicks[taken]
        if progress is not None:
            progress(begin + count)
    return phases.T


def _scaled(problem: Problem) -> tuple[Any, Array]:
    """Return couplings, dense or sparse, and fields (N, 1) in units of the problem's scale."""
    matrix = problem.matrix
    # Not times one over the scale, which may be beyond all numbers.
    matrix.data /= problem.scale
    matrix = matrix.astype(np.float32)
    dense = matrix.nnz > _DENSE * problem.size**2
    fields = (problem.fields / problem.scale).astype(np.float32)[:, None]
    return (matrix.toarray() if dense else matrix), fields


def largest_rate(problem: Problem, coupling: float, injection: float) -> float:
    """Return a bound on the eigenvalues of the machine's Laplacian, by Gershgorin's circles."""
    rows = np.zeros(problem.size)
    for end in problem.edges.T:
        np.add.at(rows, end, np.abs(problem.couplings))
    return float(coupling * np.max(2 * rows + np.abs(problem.fields)) / problem.scale + 2 * injection)
