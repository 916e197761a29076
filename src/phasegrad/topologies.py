"""Builders of networks: the paper's two, the usual graphs, NetworkX and matrices.

`layered` and `random_network` make their random draws one by one in a fixed, documented order, so that a seed
gives the same network as in the published protocol.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from phasegrad.network import Network
from phasegrad.random_graphs import (
    joined,
    ordered_pairs,
    regular_pairs,
    small_world_pairs,
    uniform_pairs,
    until_connected,
)
from phasegrad.validation import (
    finite_array,
    float_between,
    positive_float,
    random_stream,
    shaped_array,
    whole_number,
)

if TYPE_CHECKING:
    import networkx as nx

_GRAPH_FIELDS = ("inputs", "outputs", "reference", "input_mode", "input_scale", "interaction", "signed")
_NODE_FIELDS = ("omega", "field_strength", "field_phase")


def layered(
    n_in: int,
    n_hidden: int,
    n_out: int,
    *,
    coupling_scale: float = 2.0,
    seed: int | None = 0,
    **options: Any,
) -> Network:
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
    rng = random_stream(seed, "layered")
    size = n_in + n_hidden + n_out
    hidden = range(n_in, n_in + n_hidden)
    outputs = range(n_in + n_hidden, size)
    omega = np.zeros(size)
    for node in range(n_in, size):
        omega[node] = rng.uniform(-0.3, 0.3)
    pairs = [(i, h) for i in range(n_in) for h in hidden] + [(h, o) for h in hidden for o in outputs]
    coupling = [coupling_scale * rng.uniform(0.5, 1.5) for _ in pairs]
    chain = [(h, h + 1) for h in hidden[:-1]]
    coupling += [coupling_scale * rng.uniform(0.5, 1.0) for _ in chain]
    options = {"inputs": tuple(range(n_in)), "outputs": tuple(outputs), **options}
    return Network(np.array(pairs + chain), np.array(coupling), omega, **options)


def signed_layers(
    n_in: int,
    n_hidden: int,
    n_out: int,
    *,
    rest: float = 0.0,
    gain: float = 1.0,
    skip: bool = False,
    seed: int | None = 0,
    **options: Any,
) -> Network:
    """Build a layered network for learning: clamped input phases, couplings of both signs, bias fields.

    Couplings are drawn from N(0, gain^2 / m) for a layer fed by m oscillators, so that the pull of a layer on the next
    does not depend on its width, and bias fields of strength 1 keep every oscillator locked however the
    couplings cancel. Hidden fields point at random phases U(-pi, pi), so that hidden oscillators respond
    differently to the same data. Output fields point at ``rest``, with a tenth of the pull of their neighbours: all
    outputs start near one phase and none is preferred, however many there are.

    Parameters
    ----------
    n_in, n_hidden, n_out : int
        Layer sizes; nodes are numbered in this order. Without hidden oscillators inputs act on the outputs.
    rest : float
        The phase at which outputs start; an objective names a good one as ``undecided``.
    gain : float
        Scale of the couplings.
    skip : bool
        Whether inputs act on the outputs directly, beside the hidden layer.
    seed : int or None
        Seed of the random stream.
    **options
        Passed on to `Network`, for example ``input_scale=1.0``.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.signed_layers(4, 10, 3)
    >>> network.size, network.n_edges, network.input_mode
    (17, 70, 'phase')
    """
    n_in = whole_number("n_in", n_in, 1, "signed_layers")
    n_hidden = whole_number("n_hidden", n_hidden, 0, "signed_layers")
    n_out = whole_number("n_out", n_out, 1, "signed_layers")
    gain = positive_float("gain", gain, "signed_layers")
    rng = random_stream(seed, "signed_layers")
    size = n_in + n_hidden + n_out
    inputs, hidden, outputs = np.split(np.arange(size), [n_in, n_in + n_hidden])
    blocks = [(inputs, hidden, gain), (hidden, outputs, 0.1 * gain)]
    if skip or not n_hidden:
        blocks.append((inputs, outputs, 0.1 * gain))
    pairs, couplings = [], []
    for first, second, scale in blocks:
        pairs.append(np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2))
        couplings.append(scale / math.sqrt(max(first.size, 1)) * rng.standard_normal(first.size * second.size))
    phase = np.zeros(size)
    phase[hidden], phase[outputs] = rng.uniform(-np.pi, np.pi, n_hidden), rest
    strength = np.ones(size)
    strength[inputs] = 0.0
    settings = {
        "inputs": inputs,
        "outputs": outputs,
        "field_strength": strength,
        "field_phase": phase,
        "input_mode": "phase",
        "signed": True,
    }
    return Network(np.concatenate(pairs), np.concatenate(couplings), np.zeros(size), **{**settings, **options})


def random_network(
    n: int,
    *,
    mean_coupling: float = 5.0,
    spread: float = 0.3,
    p: float = 0.6,
    n_outputs: int | None = None,
    seed: int | None = 0,
    **options: Any,
) -> Network:
    """Build the paper's random network: an Erdos-Renyi graph with normal frequencies.

    Draws from ``numpy.random.default_rng(seed)``: n standard normals times ``spread``, centred; then for every
    pair i < j in row-major order one uniform number and, where it is below ``p``, one U(0.5, 1.5) that times
    ``mean_coupling`` is the coupling. The last ``n_outputs`` nodes are the outputs, two unless told otherwise.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.random_network(15, seed=42).n_edges
    68
    """
    n = whole_number("n", n, 1, "random_network")
    n_outputs = min(2, n - 1) if n_outputs is None else whole_number("n_outputs", n_outputs, 0, "random_network")
    if n_outputs > n:
        raise ValueError(f"random_network cannot make {n_outputs} outputs out of {n} oscillators.")
    mean_coupling = positive_float("mean_coupling", mean_coupling, "random_network")
    spread = float_between("spread", spread, 0, math.inf, "random_network")
    p = float_between("p", p, 0, 1, "random_network")
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
    """Couple every oscillator to every other."""
    n = whole_number("n", n, 1, "complete")
    return _from_pairs(np.stack(np.triu_indices(n, k=1), axis=1), n, coupling, omega, options)


def ring(n: int, *, coupling: ArrayLike = 1.0, omega: ArrayLike | None = None, **options: Any) -> Network:
    """Couple each oscillator to the next, and the last to the first."""
    n = whole_number("n", n, 3, "ring")
    node = np.arange(n)
    return _from_pairs(np.stack([node, (node + 1) % n], axis=1), n, coupling, omega, options)


def grid(
    rows: int,
    columns: int,
    *,
    periodic: bool = False,
    coupling: ArrayLike = 1.0,
    omega: ArrayLike | None = None,
    **options: Any,
) -> Network:
    """Couple nearest neighbours on a square lattice, node ``r * columns + c`` at row r, column c."""
    rows = whole_number("rows", rows, 3 if periodic else 1, "grid")
    columns = whole_number("columns", columns, 3 if periodic else 1, "grid")
    node = np.arange(rows * columns).reshape(rows, columns)
    pairs = [
        np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], axis=1),
        np.stack([node[:-1].ravel(), node[1:].ravel()], axis=1),
    ]
    if periodic:
        pairs += [np.stack([node[:, -1], node[:, 0]], axis=1), np.stack([node[-1], node[0]], axis=1)]
    return _from_pairs(np.concatenate(pairs), rows * columns, coupling, omega, options)


def small_world(
    n: int,
    k: int = 4,
    p: float = 0.1,
    *,
    coupling: ArrayLike = 1.0,
    omega: ArrayLike | None = None,
    seed: int | None = 0,
    **options: Any,
) -> Network:
    """Build a connected Watts-Strogatz graph: a ring of k nearest neighbours, each edge rewired with probability p."""
    n = whole_number("n", n, 3, "small_world")
    k = whole_number("k", k, 2, "small_world")
    p = float_between("p", p, 0, 1, "small_world")
    if k >= n:
        raise ValueError(f"small_world needs k < n. Got n={n}, k={k}.")
    rng = random_stream(seed, "small_world")
    pairs = until_connected(lambda: small_world_pairs(n, k, p, rng), n)
    return _from_pairs(pairs, n, coupling, omega, options)


def random_regular(
    n: int,
    degree: int = 3,
    *,
    coupling: ArrayLike = 1.0,
    omega: ArrayLike | None = None,
    seed: int | None = 0,
    **options: Any,
) -> Network:
    """Build a random graph in which every oscillator has ``degree`` neighbours, drawn anew until it is connected."""
    n = whole_number("n", n, 2, "random_regular")
    degree = whole_number("degree", degree, 1, "random_regular")
    if degree >= n or (n * degree) % 2:
        raise ValueError(f"random_regular needs degree < n and n * degree even. Got n={n}, degree={degree}.")
    rng = random_stream(seed, "random_regular")
    pairs = until_connected(lambda: regular_pairs(n, degree, rng), n)
    return _from_pairs(pairs, n, coupling, omega, options)


def erdos_renyi(
    n: int,
    mean_degree: float,
    *,
    coupling: ArrayLike = 1.0,
    omega: ArrayLike | None = None,
    seed: int | None = 0,
    **options: Any,
) -> Network:
    """Build an Erdos-Renyi graph in which an oscillator has ``mean_degree`` neighbours on average.

    Every pair is coupled with the same probability, in time of the order of the edges. A large graph almost always
    leaves some oscillators alone; each part but the largest is tied to a random oscillator of the largest by one edge.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.erdos_renyi(10_000, 10, seed=0)
    Network(10000 oscillators, 50279 edges, Sine(), node 0 held at phase 0)
    """
    n = whole_number("n", n, 2, "erdos_renyi")
    mean_degree = float_between("mean_degree", mean_degree, 0, n - 1, "erdos_renyi")
    rng = random_stream(seed, "erdos_renyi")
    pairs = joined(uniform_pairs(n, mean_degree / (n - 1), rng), n, rng)
    return _from_pairs(pairs, n, coupling, omega, options)


def from_matrix(matrix: Any, omega: ArrayLike | None = None, **options: Any) -> Network:
    """Build a network from a coupling matrix, dense or scipy.sparse.

    Parameters
    ----------
    matrix : array_like or scipy.sparse array, shape (N, N)
        ``matrix[i, j]`` is the strength K_ij with which j acts on i. An exactly symmetric matrix gives
        reciprocal coupling, any other a non-reciprocal network. The diagonal must be zero.
    omega : array_like of float, shape (N,), optional
        Natural frequencies, zero if left out.
    **options
        Passed on to `Network`.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.from_matrix([[0, 2, 0], [2, 0, 1], [0, 1, 0]], omega=[0.1, 0, -0.1]).coupling.tolist()
    [2.0, 1.0]
    """
    given: Any = matrix if sparse.issparse(matrix) else finite_array("matrix", matrix, "from_matrix")
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise ValueError(f"The 'matrix' parameter of from_matrix must be square. Got shape {given.shape}.")
    if sparse.issparse(matrix):
        finite_array("matrix", given.tocoo().data, "from_matrix")
    values = sparse.csr_array(given, dtype=np.float64)
    values.sum_duplicates()
    diagonal = values.diagonal()
    if np.any(diagonal):
        node = int(np.argmax(diagonal != 0))
        raise ValueError(
            f"Oscillator {node} is coupled to itself (matrix[{node}, {node}] = {diagonal[node]:g}). "
            "Self-loops exert no force: set the diagonal to zero."
        )
    size = values.shape[0]
    values.eliminate_zeros()
    entries = values.tocoo()
    i, j = ordered_pairs(np.stack([entries.row, entries.col], axis=1).astype(np.int64), size).T
    forward, backward = _entries(values, i, j), _entries(values, j, i)
    reverse = None if np.array_equal(forward, backward) else backward
    frequencies = np.zeros(size) if omega is None else omega
    return Network(np.stack([i, j], axis=1), forward, frequencies, coupling_reverse=reverse, **options)


def from_networkx(graph: nx.Graph, *, weight: str = "weight", **options: Any) -> Network:
    """Build a network from a NetworkX graph, keeping names, weights and attributes.

    An undirected graph gives reciprocal coupling. In a directed graph an edge u -> v means that u acts on v.
    Edges without a weight have strength 1. Node attributes ``omega``, ``field_strength`` and ``field_phase``
    become the network's (0 where missing); all other node attributes are carried along. Graph attributes
    named like fields of `Network` (``inputs``, ``outputs``, ``reference``, ...) are used; ``options`` override them.
    Both name nodes as the graph does.

    Examples
    --------
    >>> import networkx as nx, phasegrad as pg
    >>> pg.from_networkx(nx.path_graph(3), outputs=[2])
    Network(3 oscillators, 2 edges, 1 output, Sine(), node 0 held at phase 0)
    """
    if not callable(getattr(graph, "is_multigraph", None)):
        raise TypeError(f"from_networkx takes a NetworkX Graph or DiGraph. Got {type(graph).__name__}.")
    if graph.is_multigraph():
        raise ValueError("from_networkx takes a Graph or DiGraph. Got a multigraph: merge its parallel edges first.")
    names = list(graph.nodes)
    number = {name: k for k, name in enumerate(names)}
    triples = [(number[u], number[v], strength) for u, v, strength in graph.edges(data=weight, default=1.0)]
    source, sink = (np.array([triple[end] for triple in triples], dtype=np.int64) for end in (0, 1))
    strengths = finite_array(weight, [triple[2] for triple in triples], "from_networkx")
    if graph.is_directed():
        pairs = ordered_pairs(np.stack([source, sink], axis=1), len(names))
        table = sparse.csr_array((strengths, (sink, source)), shape=(len(names), len(names)))
        coupling, reverse = _entries(table, pairs[:, 0], pairs[:, 1]), _entries(table, pairs[:, 1], pairs[:, 0])
    else:
        pairs, coupling, reverse = np.stack([source, sink], axis=1), strengths, None

    settings = {key: graph.graph[key] for key in _GRAPH_FIELDS if key in graph.graph} | options
    for key in ("inputs", "outputs", "reference"):
        if key in settings:
            settings[key] = _numbers_of(settings[key], number, key)
    for key in _NODE_FIELDS:
        if key not in options and any(key in graph.nodes[name] for name in names):
            values = [graph.nodes[name].get(key, 0.0) for name in names]
            settings[key] = finite_array(key, values, "from_networkx")
    others = [{k: v for k, v in graph.nodes[name].items() if k not in _NODE_FIELDS} for name in names]
    settings.setdefault("node_attributes", others if any(others) else None)
    settings.setdefault("labels", None if names == list(range(len(names))) else names)
    settings = {"omega": np.zeros(len(names)), **settings}
    return Network(pairs, coupling, settings.pop("omega"), coupling_reverse=reverse, **settings)


def to_networkx(network: Network) -> nx.Graph:
    """Return the network as a NetworkX graph from which `from_networkx` makes the same network again.

    Reciprocal networks become a Graph; others a DiGraph with an edge u -> v where u acts on v.
    """
    import networkx as nx

    names = list(range(network.size)) if network.labels is None else list(network.labels)
    graph: Any = nx.Graph() if network.reciprocal else nx.DiGraph()
    for key in _GRAPH_FIELDS:
        graph.graph[key] = getattr(network, key)
    for key in ("inputs", "outputs"):
        graph.graph[key] = tuple(names[k] for k in getattr(network, key))
    graph.graph["reference"] = names[network.reference]
    for k, name in enumerate(names):
        attributes = {} if network.node_attributes is None else dict(network.node_attributes[k])
        for key in _NODE_FIELDS:
            values = getattr(network, key)
            if values is not None:
                attributes[key] = float(values[k])
        graph.add_node(name, **attributes)
    for e, (i, j) in enumerate(network.edges):
        if network.coupling_reverse is None:
            graph.add_edge(names[i], names[j], weight=float(network.coupling[e]))
        else:
            graph.add_edge(names[j], names[i], weight=float(network.coupling[e]))
            graph.add_edge(names[i], names[j], weight=float(network.coupling_reverse[e]))
    return graph


def _numbers_of(given: Any, number: dict[Any, int], key: str) -> Any:
    """Return node names of a graph attribute as node numbers."""
    try:
        return number[given] if key == "reference" else tuple(number[name] for name in given)
    except (KeyError, TypeError):
        raise ValueError(f"The '{key}' of the network are {given!r}, which does not name nodes of the graph.") from None


def _from_pairs(pairs: Any, n: int, coupling: ArrayLike, omega: ArrayLike | None, options: dict[str, Any]) -> Network:
    """Put the pairs into stored order first, so that an array of couplings means ``network.edges``."""
    pairs = ordered_pairs(pairs, n)
    frequencies = shaped_array("omega", 0.0 if omega is None else omega, (n,), f"a network of {n} oscillators")
    return Network(pairs, coupling, frequencies, **options)


def _entries(matrix: Any, rows: Any, columns: Any) -> Any:
    if rows.size == 0:
        return np.zeros(0)
    picked = matrix[rows, columns]
    return np.asarray(picked.todense() if sparse.issparse(picked) else picked).ravel()
