"""Builders of networks: the paper's two, and the usual graphs.

`layered` and `random_network` make their random draws one by one in a fixed, documented order, so that a seed
gives the same network as in the published protocol.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import float_between, positive_float, random_stream, shaped_array, whole_number
from phasegrad.graphs import (
    joined,
    ordered_pairs,
    regular_pairs,
    small_world_pairs,
    uniform_pairs,
    until_connected,
)
from phasegrad.networks._network import Network


def layered(
    n_in: int, n_hidden: int, n_out: int, *, coupling_scale: float = 2.0, seed: int | None = 0, **options: Any,
) -> Network:  # fmt: skip
    """Build the paper's layered network: inputs, hidden nodes and outputs, layer to layer, with a hidden chain.

    Draws from ``numpy.random.default_rng(seed)``, one scalar at a time: frequencies U(-0.3, 0.3) of the hidden
    nodes, then of the outputs (inputs have 0); couplings ``coupling_scale * U(0.5, 1.5)`` from each input to
    each hidden node, then from each hidden node to each output; ``coupling_scale * U(0.5, 1)`` along the chain.

    Parameters
    ----------
    n_in, n_hidden, n_out : int
        Layer sizes; nodes are numbered in this order.
    coupling_scale : float
        Overall coupling strength.
    seed : int or None
        Seed of the random stream.
    **options
        Passed on to `Network`, for example ``input_mode="phase"``.

    See Also
    --------
    signed_layers : Layers with couplings of both signs, fields and clamped inputs.
    layers : Dense and convolutional layers with shared parameters.
    random_network : The paper's random networks, by seed.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.layered(2, 5, 2, seed=0)
    Network(9 oscillators, 24 edges, 2 inputs as frequencies, 2 outputs, Sine(), node 0 held at phase 0)
    """
    n_in = whole_number("n_in", n_in, 1, "layered")
    n_hidden = whole_number("n_hidden", n_hidden, 1, "layered")
    n_out = whole_number("n_out", n_out, 1, "layered")
    coupling_scale = positive_float("coupling_scale", coupling_scale, "layered")
    refuse_drawn(options, "layered")
    rng = random_stream(seed, "layered")
    size = n_in + n_hidden + n_out
    hidden = range(n_in, n_in + n_hidden)
    outputs = range(n_in + n_hidden, size)
    omega = np.concatenate([np.zeros(n_in), rng.uniform(-0.3, 0.3, size - n_in)])
    pairs = [(i, h) for i in range(n_in) for h in hidden] + [(h, o) for h in hidden for o in outputs]
    chain = [(h, h + 1) for h in hidden[:-1]]
    coupling = coupling_scale * np.concatenate([rng.uniform(0.5, 1.5, len(pairs)), rng.uniform(0.5, 1.0, len(chain))])
    options = {"inputs": tuple(range(n_in)), "outputs": tuple(outputs), **options}
    return Network(np.array(pairs + chain), coupling, omega, **options)


def signed_layers(
    n_in: int, hidden: int | Sequence[int], n_out: int, *, rest: float = 0.0, gain: float = 1.0, skip: bool = False,
    seed: int | None = 0, **options: Any,
) -> Network:  # fmt: skip
    """Build a layered network for learning: clamped input phases, couplings of both signs, bias fields.

    Couplings between hidden layers, and from the inputs to the first of them, are drawn from N(0, gain^2 / m) for a
    layer fed by m oscillators, so that the pull of a layer on the next does not depend on its width; those that act on
    the outputs have a tenth of this standard deviation. Bias fields of strength 1 keep every oscillator locked however
    the couplings cancel. Hidden fields point at random phases U(-pi, pi), so that hidden oscillators respond
    differently to the same data. Output fields point at ``rest``, and the neighbours of an output pull it about a tenth
    as strongly as its field (times ``gain``): all outputs start near one phase and none is preferred, however many
    there are.

    Parameters
    ----------
    n_in, n_out : int
        Sizes of the first and the last layer; nodes are numbered layer by layer.
    hidden : int or sequence of int
        Size of the hidden layer, or sizes of several. With 0 or none, inputs act on the outputs.
    rest : float
        The phase at which outputs start; an objective names a good one as ``undecided``.
    gain : float
        Scale of the couplings.
    skip : bool
        Whether inputs act on the outputs directly, beside the hidden layers.
    seed : int or None
        Seed of the random stream.
    **options
        Passed on to `Network`, for example ``input_scale=1.0``.

    See Also
    --------
    layered : The paper's sparse layers, positive couplings, data as frequencies.
    layers : Dense and convolutional layers with shared parameters.
    OscillatorClassifier : A scikit-learn classifier.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.networks.signed_layers(4, 10, 3)
    >>> network.size, network.n_edges, network.input_mode
    (17, 70, 'phase')
    >>> pg.networks.signed_layers(4, (10, 6), 3).n_edges
    118
    """
    n_in = whole_number("n_in", n_in, 1, "signed_layers")
    n_out = whole_number("n_out", n_out, 1, "signed_layers")
    gain = positive_float("gain", gain, "signed_layers")
    widths = _layer_sizes(hidden)
    refuse_drawn(options, "signed_layers")
    rng = random_stream(seed, "signed_layers")
    size = n_in + sum(widths) + n_out
    layers = np.split(np.arange(size), np.cumsum([n_in, *widths]))
    blocks = [(first, second, gain) for first, second in pairwise(layers[:-1])]
    blocks.append((layers[-2], layers[-1], 0.1 * gain))
    if skip and widths:
        blocks.append((layers[0], layers[-1], 0.1 * gain))
    pairs, couplings = [], []
    for first, second, scale in blocks:
        pairs.append(np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2))
        couplings.append(scale / math.sqrt(first.size) * rng.standard_normal(first.size * second.size))
    phase = np.full(size, rest)
    phase[: size - n_out] = 0.0
    phase[n_in : size - n_out] = rng.uniform(-np.pi, np.pi, sum(widths))
    settings = {"inputs": layers[0], "outputs": layers[-1], "input_mode": "phase", "signed": True, **options}
    strength = settings.pop("field_strength", (np.arange(size) >= n_in).astype(float))
    phase = settings.pop("field_phase", phase)
    edges, coupling = np.concatenate(pairs), np.concatenate(couplings)
    return Network(edges, coupling, np.zeros(size), field_strength=strength, field_phase=phase, **settings)


def _layer_sizes(hidden: Any) -> tuple[int, ...]:
    """Return the sizes of hidden layers: none of 0, one of a number, or several."""
    given = tuple(hidden) if isinstance(hidden, Iterable) and not isinstance(hidden, str) else (hidden,)
    if given == (0,):
        return ()
    least = 0 if len(given) == 1 and not isinstance(hidden, Iterable) else 1
    return tuple(whole_number("hidden", width, least, "signed_layers") for width in given)


def random_network(
    n: int, *, mean_coupling: float = 5.0, spread: float = 0.3, p: float = 0.6, n_outputs: int | None = None,
    seed: int | None = 0, **options: Any,
) -> Network:  # fmt: skip
    """Build the paper's random network: an Erdos-Renyi graph with normal frequencies.

    Draws from ``numpy.random.default_rng(seed)``: n standard normals times ``spread``, centred; then for every
    pair i < j in row-major order one uniform number and, where it is below ``p``, one U(0.5, 1.5) that times
    ``mean_coupling`` is the coupling. The last ``n_outputs`` nodes are the outputs, two unless told otherwise.

    See Also
    --------
    layered : The paper's sparse layers, positive couplings, data as frequencies.
    erdos_renyi : A random graph of independent edges.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.networks.random_network(15, seed=42).n_edges
    68
    """
    n = whole_number("n", n, 1, "random_network")
    n_outputs = min(2, n - 1) if n_outputs is None else whole_number("n_outputs", n_outputs, 0, "random_network")
    if n_outputs > n:
        raise ValueError(f"random_network cannot make {n_outputs} outputs out of {n} oscillators.")
    mean_coupling = positive_float("mean_coupling", mean_coupling, "random_network")
    spread = float_between("spread", spread, 0, math.inf, "random_network")
    p = float_between("p", p, 0, 1, "random_network")
    refuse_drawn(options, "random_network")
    rng = random_stream(seed, "random_network")
    omega = rng.standard_normal(n) * spread
    omega = omega - omega.mean()
    edges, coupling = [], []
    for i in range(n):
        for j in range(i + 1, n):
            if rng.random() < p:
                edges.append((i, j))
                coupling.append(mean_coupling * rng.uniform(0.5, 1.5))
    options = {"outputs": tuple(range(n - n_outputs, n)), **options}
    return Network(np.array(edges, dtype=np.int64), np.array(coupling), omega, **options)


def complete(n: int, *, coupling: ArrayLike = 1.0, omega: ArrayLike | None = None, **options: Any) -> Network:
    """Couple every oscillator to every other.

    See Also
    --------
    ring : Each oscillator coupled to the next.
    erdos_renyi : A random graph of independent edges.
    Network : A graph, the terms of its energy, and how data enters.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.networks.complete(5).n_edges
    10
    """
    n = whole_number("n", n, 1, "complete")
    return _from_pairs(np.stack(np.triu_indices(n, k=1), axis=1), n, coupling, omega, options)


def mean_field(n: int, coupling: float = 1.0, *, omega: ArrayLike | None = None, **options: Any) -> Network:
    """Couple every oscillator to every other through their mean field: (K / n) sum_j sin(theta_j - theta_i).

    The same forces as ``complete(n, coupling=K / n)``, without edges: time and memory grow with n, not with its square.
    K is the parameter ``global_coupling``, one number.

    See Also
    --------
    complete : The same coupling edge by edge.
    transition : The order parameter by coupling.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.networks.mean_field(100_000, 2.0)
    Network(100000 oscillators, 0 edges, mean field, Sine(), node 0 held at phase 0)
    """
    n = whole_number("n", n, 1, "mean_field")
    return _from_pairs(np.empty((0, 2), dtype=np.int64), n, 1.0, omega, {"global_coupling": coupling, **options})


def ring(n: int, *, coupling: ArrayLike = 1.0, omega: ArrayLike | None = None, **options: Any) -> Network:
    """Couple each oscillator to the next, and the last to the first.

    See Also
    --------
    complete : Every oscillator coupled to every other.
    lattice : Nearest neighbours on a square lattice.
    find_equilibria : All stable states met from random starts.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.networks.ring(4, omega=[0.3, 0.0, -0.3, 0.0])
    >>> network.edges.tolist()
    [[0, 1], [0, 3], [1, 2], [2, 3]]
    >>> pg.find_equilibrium(network).phases.round(3)
    array([ 0.   , -0.151, -0.301, -0.151])
    """
    n = whole_number("n", n, 3, "ring")
    node = np.arange(n)
    return _from_pairs(np.stack([node, (node + 1) % n], axis=1), n, coupling, omega, options)


def cycle_chain(
    cycles: int, length: int, *, coupling: ArrayLike = 1.0, omega: ArrayLike | None = None, **options: Any,
) -> Network:  # fmt: skip
    """Chain cycles of oscillators: each shares one node with the next, half-way around.

    The first cycle has the nodes 0 to ``length - 1``; cycle c leads from node ``(c - 1) * (length - 1) + length // 2``
    of the one before through ``length - 1`` nodes of its own, ``c * (length - 1) + 1`` and on, and back. A single
    shared node carries no torque from one cycle to another, so that every cycle winds as if it were alone: without
    frequencies, m cycles of n oscillators with equal couplings have exactly (2 ceil(n / 4) - 1)^m stable states. Cycles
    that share an edge are not independent: of two pentagons that both wind by +1 the shared edge is at rest, and the
    four others of each are left at a quarter turn, where stability ends.

    Parameters
    ----------
    cycles : int
        How many, m.
    length : int
        Oscillators of each, n; shared ones count in both cycles. The network has m (n - 1) + 1.
    coupling, omega : array_like, optional
        Of the edges and of the nodes.
    **options
        Passed on to `Network`.

    References
    ----------
    Ogranovich, Guo, Venkatakrishnan, Shapiro, Bullo and Pasqualetti 2026, arXiv:2604.01469.

    See Also
    --------
    ring : One cycle.
    find_equilibria : All stable states.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.networks.cycle_chain(2, 6)
    >>> network
    Network(11 oscillators, 12 edges, Sine(), node 0 held at phase 0)
    >>> len(pg.find_equilibria(network)), 3**2
    (9, 9)
    """
    cycles = whole_number("cycles", cycles, 1, "cycle_chain")
    length = whole_number("length", length, 3, "cycle_chain")
    own, pairs, shared = np.arange(1, length), [], 0
    for cycle in range(cycles):
        around = np.concatenate([[shared], cycle * (length - 1) + own])
        pairs.append(np.stack([around, np.roll(around, -1)], axis=1))
        shared = int(around[length // 2])
    return _from_pairs(np.concatenate(pairs), cycles * (length - 1) + 1, coupling, omega, options)


def lattice(
    rows: int, columns: int, *, periodic: bool = False, coupling: ArrayLike = 1.0, omega: ArrayLike | None = None,
    **options: Any,
) -> Network:  # fmt: skip
    """Couple nearest neighbours on a square lattice, node ``r * columns + c`` at row r, column c.

    See Also
    --------
    ring : Each oscillator coupled to the next.
    small_world : A ring with some edges rewired.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.networks.lattice(2, 3).edges.tolist()
    [[0, 1], [0, 3], [1, 2], [1, 4], [2, 5], [3, 4], [4, 5]]
    >>> pg.networks.lattice(3, 3, periodic=True).n_edges
    18
    """
    rows = whole_number("rows", rows, 3 if periodic else 1, "lattice")
    columns = whole_number("columns", columns, 3 if periodic else 1, "lattice")
    node = np.arange(rows * columns).reshape(rows, columns)
    pairs = [
        np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], axis=1),
        np.stack([node[:-1].ravel(), node[1:].ravel()], axis=1),
    ]
    if periodic:
        pairs += [np.stack([node[:, -1], node[:, 0]], axis=1), np.stack([node[-1], node[0]], axis=1)]
    return _from_pairs(np.concatenate(pairs), rows * columns, coupling, omega, options)


def small_world(
    n: int, k: int = 4, p: float = 0.1, *, coupling: ArrayLike = 1.0, omega: ArrayLike | None = None,
    seed: int | None = 0, **options: Any,
) -> Network:  # fmt: skip
    """Build a connected Watts-Strogatz graph: a ring of k nearest neighbours, each edge rewired with probability p.

    See Also
    --------
    ring : Each oscillator coupled to the next.
    random_regular : A random graph of equal degrees.
    erdos_renyi : A random graph of independent edges.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.networks.small_world(20, 4, 0.1, seed=0)
    >>> network.size, network.n_edges
    (20, 40)
    """
    n = whole_number("n", n, 3, "small_world")
    k = whole_number("k", k, 2, "small_world")
    p = float_between("p", p, 0, 1, "small_world")
    if k >= n or k % 2:
        raise ValueError(f"small_world needs k < n and k even, half of them on each side. Got n={n}, k={k}.")
    rng = random_stream(seed, "small_world")
    pairs = until_connected(lambda: small_world_pairs(n, k, p, rng), n)
    return _from_pairs(pairs, n, coupling, omega, options)


def random_regular(
    n: int, degree: int = 3, *, coupling: ArrayLike = 1.0, omega: ArrayLike | None = None, seed: int | None = 0,
    **options: Any,
) -> Network:  # fmt: skip
    """Build a random graph in which every oscillator has ``degree`` neighbours, drawn anew until it is connected.

    See Also
    --------
    erdos_renyi : A random graph of independent edges.
    small_world : A ring with some edges rewired.

    Examples
    --------
    >>> import numpy as np
    >>> import phasegrad as pg
    >>> network = pg.networks.random_regular(10, 3, seed=0)
    >>> np.bincount(network.edges.ravel()).tolist()
    [3, 3, 3, 3, 3, 3, 3, 3, 3, 3]
    """
    n = whole_number("n", n, 2, "random_regular")
    degree = whole_number("degree", degree, 1, "random_regular")
    if degree >= n or (n * degree) % 2:
        raise ValueError(f"random_regular needs degree < n and n * degree even. Got n={n}, degree={degree}.")
    rng = random_stream(seed, "random_regular")
    pairs = until_connected(lambda: regular_pairs(n, degree, rng), n)
    return _from_pairs(pairs, n, coupling, omega, options)


def erdos_renyi(
    n: int, mean_degree: float, *, coupling: ArrayLike = 1.0, omega: ArrayLike | None = None, seed: int | None = 0,
    **options: Any,
) -> Network:  # fmt: skip
    """Build an Erdos-Renyi graph in which an oscillator has ``mean_degree`` neighbours on average.

    Every pair is coupled with the same probability p, in time of the order of the edges; ``mean_degree`` is p (n - 1),
    at least 1. A large graph almost always leaves some oscillators alone; each part but the largest is tied to a random
    oscillator of the largest by one edge.

    See Also
    --------
    random_regular : A random graph of equal degrees.
    small_world : A ring with some edges rewired.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.networks.erdos_renyi(10_000, 10, seed=0)
    Network(10000 oscillators, 50279 edges, Sine(), node 0 held at phase 0)
    """
    n = whole_number("n", n, 2, "erdos_renyi")
    mean_degree = float_between("mean_degree", mean_degree, 0, n - 1, "erdos_renyi")
    if mean_degree < 1:
        raise ValueError(
            "The 'mean_degree' parameter of erdos_renyi must be at least 1: it is the mean number of neighbours, not a "
            f"probability. Got {mean_degree:g}. For a probability p of every edge give p * (n - 1), which would be "
            f"{mean_degree * (n - 1):g} here."
        )
    rng = random_stream(seed, "erdos_renyi")
    pairs = joined(uniform_pairs(n, mean_degree / (n - 1), rng), n, rng)
    return _from_pairs(pairs, n, coupling, omega, options)


def refuse_drawn(options: dict[str, Any], owner: str) -> None:
    """Refuse what a builder draws itself."""
    for name in ("coupling", "omega"):
        if name in options:
            raise TypeError(f"{owner} sets '{name}' itself. To change it, use network.replace({name}=...) afterwards.")


def _from_pairs(pairs: Any, n: int, coupling: ArrayLike, omega: ArrayLike | None, options: dict[str, Any]) -> Network:
    """Put the pairs into stored order first, so that an array of couplings means ``network.edges``."""
    pairs = ordered_pairs(pairs, n)
    frequencies = shaped_array("omega", 0.0 if omega is None else omega, (n,), f"a network of {n} oscillators")
    return Network(pairs, coupling, frequencies, **options)
