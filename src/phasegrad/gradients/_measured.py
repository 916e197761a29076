"""Phases that were measured, wherever they come from, as a gradient."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import Array, FloatArray, choice, last_axis_array, positive_float
from phasegrad.dynamics import build_system
from phasegrad.networks import Network
from phasegrad.terms import Term

FREQUENCIES = ("relative", "raw")


def gradient_from_phases(
    network: Network, free: ArrayLike, nudged: ArrayLike, beta: float, *, opposite: ArrayLike | None = None,
    inputs: ArrayLike | None = None, wrt: str | Iterable[str] = "omega", frequencies: str = "relative",
) -> dict[str, FloatArray]:  # fmt: skip
    """Return the gradient that phases show, those of a simulation, a circuit or a laboratory alike.

    Nothing is solved: every entry is a difference of what its own node or edge has in two states, over the nudge. How
    good the phases are is for the caller to know.

    Parameters
    ----------
    network : Network
        What the phases belong to, with reciprocal coupling; of its parameters only those are used that a slope needs.
    free, nudged : array_like, shape (..., N)
        Phases of all oscillators without a nudge, and under one of strength ``beta``. Full turns do not matter, nor
        does a common phase where nothing holds one.
    beta : float
        The strength of the nudge.
    opposite : array_like, shape (..., N), optional
        Phases under -beta; if given, the gradient is centred.
    inputs : array_like, shape (..., n_in), optional
        The data, where there were any.
    wrt, frequencies
        As for `adjoint`; not by the data.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network, target = pg.layered(2, 5, 2, seed=0), [-0.2, 0.2]
    >>> free = pg.find_equilibrium(network, [0.5, -0.5])
    >>> nudged = pg.find_equilibrium(network, [0.5, -0.5], nudge=pg.Nudge(pg.PhaseTargets(), target, 0.001))
    >>> slope = pg.gradient_from_phases(network, free.phases, nudged.phases, 0.001, inputs=[0.5, -0.5])
    >>> round(pg.cosine(slope["omega"], pg.adjoint(network, free, pg.PhaseTargets(), target).omega), 6)
    1.0
    """
    owner = "gradient_from_phases"
    if not isinstance(network, Network):
        raise TypeError(f"{owner} takes a Network first. Got {type(network).__name__}.")
    if not network.reciprocal:
        raise ValueError(
            f"{owner} needs reciprocal coupling: without it the shift of the phases is not the gradient. Use adjoint."
        )
    beta = positive_float("beta", beta, owner)
    choice("frequencies", frequencies, FREQUENCIES, owner)
    names = (wrt,) if isinstance(wrt, str) or not isinstance(wrt, Iterable) else tuple(wrt)
    for name in names:
        choice("wrt", name, list(network.parameters), f"{owner} for this network")
    base, ahead = (_phases(network, each, word) for each, word in ((free, "free"), (nudged, "nudged")))
    behind = base if opposite is None else _phases(network, opposite, "opposite")
    shape = np.broadcast_shapes(base.shape, ahead.shape, behind.shape)
    base, ahead, behind = (np.broadcast_to(each, shape).reshape(-1, network.size) for each in (base, ahead, behind))
    # A shift is the same on every turn of the circle.
    first, second = (base + _wrapped(each - base) for each in (ahead, behind))
    span = beta if opposite is None else 2 * beta
    system, own = build_system(network, inputs)
    if own not in ((), shape[:-1]):
        raise ValueError(f"{owner} was given inputs for samples of shape {own}, and phases of shape {shape[:-1]}.")
    values = system.values
    answer = {}
    for term in network.terms:
        wanted = [each.name for each in term.parameters if each.name in names]
        if wanted:
            up, down = (term.energy_slopes(network.graph, values, each) for each in (first, second))
            for name in wanted:
                answer[name] = _collected(network, term, name, (up[name] - down[name]) / span, frequencies)
    return {name: answer[name].reshape((*shape[:-1], -1)) for name in names}


def _collected(network: Network, term: Term, name: str, slope: Array, frequencies: str) -> Array:
    """Return slopes of all nodes or edges as those by the parameters, which some of them may share."""
    slope = network.graph.sharing.collect(network.term_of(name)[1].on, slope)
    return term.raw_slope(network.graph, name, slope) if frequencies == "raw" else slope


def _phases(network: Network, given: ArrayLike, name: str) -> FloatArray:
    phases = last_axis_array(name, given, network.size, "one per oscillator", "gradient_from_phases")
    placed = np.array(phases, dtype=np.float64)
    if network.pinned:
        placed = placed - placed[..., [network.reference]]
    return placed


def _wrapped(angles: FloatArray) -> FloatArray:
    return np.asarray(np.mod(angles + np.pi, 2 * np.pi) - np.pi)
