r"""Initial frequencies: where training starts.

Inputs are always left at zero, because data sets their frequency; every pattern is scaled so that no learnable
frequency exceeds ``scale`` (the paper: 0.3). The paper's spectral seed, a sum over eigenvectors v_i of the reduced
Laplacian weighted by output separation over eigenvalue, is one linear solve in disguise:

    sum_i v_i (v_i[o1] - v_i[o2]) / lambda_i = L^-1 (e_o1 - e_o2)

Its sign is a convention that the paper fixes without discussion; both are offered everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from phasegrad.dynamics import build_system
from phasegrad.equilibrium import find_equilibrium
from phasegrad.network import Network
from phasegrad.solvers.response import respond
from phasegrad.validation import FloatArray, IntArray, choice, positive_float, random_stream, whole_number


def learnable_nodes(network: Network) -> IntArray:
    """Return the nodes whose frequency may be learned: all but the inputs."""
    return np.setdiff1d(np.arange(network.size), network.inputs)


def random_seed(network: Network, *, seed: int | None = 0, scale: float = 0.3) -> Network:
    """Return the network with learnable frequencies drawn from U(-scale, scale)."""
    scale = positive_float("scale", scale, "random_seed")
    return network.replace(omega=_draw(network, random_stream(seed, "random_seed"), scale))


def spectral_seed(network: Network, *, sign: int = 1, scale: float = 0.3) -> Network:
    """Return the network with the paper's spectral seed, by one solve with the Laplacian at phase zero.

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

    Examples
    --------
    >>> import phasegrad as pg
    >>> seeded = pg.spectral_seed(pg.layered(2, 5, 2, seed=0))
    >>> seeded.omega.round(2).tolist()[-2:]
    [0.3, -0.28]
    """
    sign = _checked_sign(sign, "spectral_seed")
    scale = positive_float("scale", scale, "spectral_seed")
    contrast = _contrast(network, "spectral_seed")
    still = network.replace(inputs=()) if network.clamps_inputs else network
    system, _ = build_system(still, None, None)
    answer, _ = respond(system, np.zeros((1, network.size)), contrast[None, still.free])
    omega = np.zeros(network.size)
    omega[still.free] = answer[0]
    omega[list(network.inputs)] = 0.0
    return network.replace(omega=sign * scale * omega / np.max(np.abs(omega)))


def output_seed(
    network: Network, *, sign: int = 1, seed: int | None = 0, scale: float = 0.3, noise: float = 0.05
) -> Network:
    """Return the network with frequencies on the outputs alone, and small noise U(-noise, noise) on the hidden nodes.

    ``sign=1`` gives the first output +scale and the last -scale, like the spectral seed. The paper tried only the
    opposite, ``sign=-1``.
    """
    sign = _checked_sign(sign, "output_seed")
    scale = positive_float("scale", scale, "output_seed")
    contrast = _contrast(network, "output_seed")
    omega = sign * scale * contrast
    hidden = np.setdiff1d(learnable_nodes(network), network.outputs)
    omega[hidden] = random_stream(seed, "output_seed").uniform(-noise, noise, hidden.size)
    return network.replace(omega=omega)


def multi_start_seed(
    network: Network,
    inputs: ArrayLike,
    *,
    by: str = "absolute",
    starts: int = 10,
    seed: int | None = 0,
    scale: float = 0.3,
) -> Network:
    """Return the network with the best of several random seeds, judged by how far it separates its outputs.

    Parameters
    ----------
    network : Network
    inputs : array_like, shape (n, n_in)
        Samples on which the separation, first output phase minus last, is averaged.
    by : {"absolute", "signed"}
        Whether the mean of its absolute value counts (the paper) or the mean itself.
    starts : int
        How many seeds are drawn.
    seed : int or None
    scale : float
    """
    choice("by", by, ("absolute", "signed"), "multi_start_seed")
    starts = whole_number("starts", starts, 1, "multi_start_seed")
    scale = positive_float("scale", scale, "multi_start_seed")
    _contrast(network, "multi_start_seed")
    stream = random_stream(seed, "multi_start_seed")
    candidates = [network.replace(omega=_draw(network, stream, scale)) for _ in range(starts)]
    scores = []
    for candidate in candidates:
        phases = find_equilibrium(candidate, inputs).phases
        separation = phases[..., network.outputs[0]] - phases[..., network.outputs[-1]]
        scores.append(float(np.mean(np.abs(separation) if by == "absolute" else separation)))
    return candidates[int(np.argmax(scores))]


def _draw(network: Network, stream: np.random.Generator, scale: float) -> FloatArray:
    nodes = learnable_nodes(network)
    omega = np.zeros(network.size)
    omega[nodes] = stream.uniform(-scale, scale, nodes.size)
    return omega


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
