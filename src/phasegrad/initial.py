r"""Initial frequencies: where training starts.

Inputs are always left at zero, because data sets their frequency; every pattern is scaled so that no learnable
frequency exceeds ``scale`` (the paper: 0.3). The paper's spectral seed (`spectral_frequencies`), a sum over
eigenvectors v_i of the reduced Laplacian weighted by output separation over eigenvalue, is one linear solve in
disguise:

    sum_i v_i (v_i[o1] - v_i[o2]) / lambda_i = L^-1 (e_o1 - e_o2)

Its sign is a convention that the paper fixes without discussion; both are offered everywhere. `STARTS` has all of them
by name.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import FloatArray, choice, last_axis_array, positive_float, random_stream, whole_number
from phasegrad.dynamics import build_system
from phasegrad.equilibria import find_equilibrium
from phasegrad.linearised import linearise
from phasegrad.networks import Network

__all__ = ["multi_start_frequencies", "output_frequencies", "random_frequencies", "spectral_frequencies"]


def random_frequencies(network: Network, *, seed: int | None = 0, scale: float = 0.3) -> Network:
    """Return the network with learnable frequencies drawn from U(-scale, scale).

    See Also
    --------
    spectral_frequencies : Frequencies along the Laplacian's slowest mode.
    multi_start_frequencies : The best of several draws.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.initial.random_frequencies(pg.layered(2, 5, 2, seed=0), seed=3)
    >>> network.omega.round(2)
    array([ 0.  ,  0.  , -0.25, -0.16,  0.18,  0.05, -0.24, -0.04, -0.01])
    """
    scale = positive_float("scale", scale, "random_frequencies")
    return network.replace(omega=_draw(network, random_stream(seed, "random_frequencies"), scale))


def spectral_frequencies(network: Network, *, sign: int = 1, scale: float = 0.3) -> Network:
    """Return the network with the frequencies of the paper's spectral seed, by one solve with the Laplacian at rest.

    Two outputs get opposite frequencies, the first positive for ``sign=1``. With M outputs the right-hand side is M
    evenly spaced numbers from 1 to -1, one per output: the same pattern for two, and the one that spreads the outputs
    apart in order, evenly, for more.

    Parameters
    ----------
    network : Network
        Pinned, with at least two outputs.
    sign : {1, -1}
        1 is the paper's; -1 exchanges the roles of the outputs.
    scale : float
        The largest frequency.

    See Also
    --------
    random_frequencies : Frequencies drawn from an interval.
    output_frequencies : Frequencies on the outputs alone.
    multi_start_frequencies : The best of several draws.

    Examples
    --------
    >>> import phasegrad as pg
    >>> seeded = pg.initial.spectral_frequencies(pg.layered(2, 5, 2, seed=0))
    >>> seeded.omega.round(2).tolist()[-2:]
    [0.3, -0.28]
    """
    sign = _checked_sign(sign, "spectral_frequencies")
    scale = positive_float("scale", scale, "spectral_frequencies")
    contrast = _contrast(network, "spectral_frequencies")
    still = network.untied()
    still = still.replace(inputs=()) if network.clamps_inputs else still
    system, _ = build_system(still, None)
    answer, _ = linearise(system, np.zeros((1, network.size))).solve(contrast[None, still.free])
    omega = np.zeros(network.size)
    omega[still.free] = answer[0]
    omega[list(network.inputs)] = 0.0
    omega = _shared(network, omega)
    return network.replace(omega=sign * scale * omega / np.max(np.abs(omega)))


def output_frequencies(
    network: Network, *, sign: int = 1, seed: int | None = 0, scale: float = 0.3, noise: float = 0.05
) -> Network:
    """Return the network with frequencies on the outputs alone, and small noise U(-noise, noise) on the hidden nodes.

    ``sign=1`` gives the first output +scale and the last -scale, like `spectral_frequencies`. The paper tried only the
    opposite, ``sign=-1``.

    See Also
    --------
    spectral_frequencies : Frequencies along the Laplacian's slowest mode.
    random_frequencies : Frequencies drawn from an interval.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.initial.output_frequencies(pg.layered(2, 5, 2, seed=0), sign=-1)
    >>> network.omega[list(network.outputs)]
    array([-0.3,  0.3])
    """
    sign = _checked_sign(sign, "output_frequencies")
    scale = positive_float("scale", scale, "output_frequencies")
    contrast = _contrast(network, "output_frequencies")
    omega = sign * scale * contrast
    hidden = np.setdiff1d(network.learnable, network.outputs)
    omega[hidden] = random_stream(seed, "output_frequencies").uniform(-noise, noise, hidden.size)
    return network.replace(omega=_shared(network, omega))


def multi_start_frequencies(
    network: Network, inputs: ArrayLike, *, by: str = "absolute", starts: int = 10, seed: int | None = 0,
    scale: float = 0.3,
) -> Network:  # fmt: skip
    """Return the network with the best of several draws of frequencies, judged by how far it separates its outputs.

    Parameters
    ----------
    network : Network
    inputs : array_like, shape (n, n_in)
        Samples on which the separation, first output phase minus last, is averaged.
    by : {"absolute", "signed"}
        Whether the mean of its absolute value counts (the paper) or the mean itself.
    starts : int
        How many are drawn.
    seed : int or None
    scale : float

    See Also
    --------
    random_frequencies : Frequencies drawn from an interval.
    spectral_frequencies : Frequencies along the Laplacian's slowest mode.

    Examples
    --------
    >>> import phasegrad as pg
    >>> samples = pg.datasets.vowels("a,i").x_train[:20]
    >>> network = pg.initial.multi_start_frequencies(pg.layered(2, 5, 2, seed=0), samples, starts=5)
    >>> phases = pg.find_equilibrium(network, samples).phases[:, network.outputs]
    >>> print(f"{abs(phases[:, 0] - phases[:, -1]).mean():.2f}")
    0.05
    """
    choice("by", by, ("absolute", "signed"), "multi_start_frequencies")
    starts = whole_number("starts", starts, 1, "multi_start_frequencies")
    scale = positive_float("scale", scale, "multi_start_frequencies")
    _contrast(network, "multi_start_frequencies")
    stream = random_stream(seed, "multi_start_frequencies")
    width = len(network.inputs)
    samples = np.atleast_2d(
        last_axis_array("inputs", inputs, width, "the inputs of the network", "multi_start_frequencies")
    )
    candidates = [_draw(network, stream, scale) for _ in range(starts)]
    separation = _separations(network, np.array(candidates), samples)
    scores = np.mean(np.abs(separation) if by == "absolute" else separation, axis=1)
    return network.replace(omega=candidates[int(np.argmax(scores))])


def _separations(network: Network, candidates: FloatArray, samples: FloatArray) -> FloatArray:
    """Return the separation of the outputs by every candidate for every sample, (starts, n).

    All of them are samples of one network whose every frequency is an input, so that they are solved in one batch.
    """
    if network.clamps_inputs:
        phases = np.array([find_equilibrium(network.replace(omega=omega), samples).phases for omega in candidates])
    else:
        every = network.graph.sharing.spread("nodes", candidates)
        omega = np.repeat(every[:, None], len(samples), axis=1)
        omega[:, :, list(network.inputs)] = network.input_scale * samples
        turned = network.untied().replace(inputs=tuple(range(network.size)), input_scale=1.0)
        phases = find_equilibrium(turned, omega).phases
    separation: FloatArray = phases[..., network.outputs[0]] - phases[..., network.outputs[-1]]
    return separation


def _draw(network: Network, stream: np.random.Generator, scale: float) -> FloatArray:
    learnable = np.flatnonzero(network.term_of("omega")[1].learnable(network.graph))
    omega = np.zeros(network.omega.size)
    omega[learnable] = stream.uniform(-scale, scale, learnable.size)
    return omega


def _shared(network: Network, omega: FloatArray) -> FloatArray:
    """Return frequencies of all oscillators (N,) as values of the network: the mean where some share one."""
    sharing = network.graph.sharing
    mean: FloatArray = sharing.collect("nodes", omega) / sharing.counts("nodes")
    return mean


def _contrast(network: Network, owner: str) -> FloatArray:
    if len(network.outputs) < 2:
        raise ValueError(f"{owner} separates outputs and needs at least two. This network has {len(network.outputs)}.")
    contrast = np.zeros(network.size)
    contrast[list(network.outputs)] = np.linspace(1.0, -1.0, len(network.outputs))
    return contrast


def _checked_sign(sign: int, owner: str) -> int:
    if sign not in (1, -1):
        raise ValueError(f"The 'sign' parameter of {owner} must be 1 or -1. Got {sign!r} instead.")
    return int(sign)


#: The paper draws a start from stream seed + 10000, where seed is that of the network.
STREAM = 10_000

#: Starts by name, from (network, some samples, the network's seed). The sign is that of the first output's frequency:
#: the paper's spectral seed is positive there, its output-only start negative.
STARTS: dict[str, Callable[[Network, ArrayLike, int], Network]] = {
    "random": lambda network, _samples, _seed: network,
    "zero": lambda network, _samples, _seed: network.replace(omega=np.zeros(network.omega.size)),
    "spectral": lambda network, _samples, _seed: spectral_frequencies(network),
    "anti-spectral": lambda network, _samples, _seed: spectral_frequencies(network, sign=-1),
    "outputs-positive": lambda network, _samples, seed: output_frequencies(network, sign=1, seed=seed + STREAM),
    "outputs-negative": lambda network, _samples, seed: output_frequencies(network, sign=-1, seed=seed + STREAM),
    "multi-start": lambda network, samples, seed: multi_start_frequencies(network, samples, seed=seed + STREAM),
    "multi-start-signed": lambda network, samples, seed: multi_start_frequencies(
        network, samples, by="signed", seed=seed + STREAM
    ),
}
