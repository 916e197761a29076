"""Networks from and to what others use: matrices and NetworkX graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from phasegrad._validation import finite_array
from phasegrad.graphs import ordered_pairs, refuse_dense
from phasegrad.networks._network import ROLES, Network
from phasegrad.terms import TERMS, Coupling

if TYPE_CHECKING:
    import networkx as nx

#: Parameters of edges that a NetworkX graph carries by their names, beside the strengths.
_CARRIED = tuple(
    dict.fromkeys(
        each.name for kind in TERMS for each in kind.every if each.on == "edges" and each not in Coupling.every
    )
)


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

    See Also
    --------
    to_matrix : The matrix of couplings.
    from_networkx : A network from a NetworkX graph.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.networks.from_matrix([[0, 2, 0], [2, 0, 1], [0, 1, 0]], omega=[0.1, 0, -0.1]).coupling.tolist()
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


def to_matrix(network: Network, *, compressed: bool = False) -> Any:
    """Return the coupling matrix, from which `from_matrix` makes the same couplings again.

    Parameters
    ----------
    network : Network
    compressed : bool
        False gives a dense array (N, N), up to 12,000 oscillators; True a `scipy.sparse.csr_array`.

    See Also
    --------
    from_matrix : A network from a matrix of couplings.
    to_networkx : A NetworkX graph of the network.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.networks.to_matrix(pg.networks.ring(3, coupling=[1.0, 2.0, 3.0])).tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]]
    """
    if not compressed:
        refuse_dense(network.size, "to_matrix", "Ask for to_matrix(network, compressed=True) instead.")
    network = network.untied()
    i, j = network.edges.T
    reverse = network.coupling if network.coupling_reverse is None else network.coupling_reverse
    entries = (np.concatenate([network.coupling, reverse]), (np.concatenate([i, j]), np.concatenate([j, i])))
    matrix = sparse.csr_array(entries, shape=(network.size, network.size))
    return matrix if compressed else matrix.toarray()


def from_networkx(graph: nx.Graph, *, weight: str | None = None, **options: Any) -> Network:
    """Build a network from a NetworkX graph, keeping names, weights and attributes.

    An undirected graph gives reciprocal coupling. In a directed graph an edge u -> v means that u acts on v.
    Node attributes named like parameters (``omega``, ``field_strength``, ...) become the network's (0 where missing),
    and so do edge attributes (``lag``, ``anisotropy``); all other node attributes are carried along. Graph attributes
    named like fields of `Network` (``inputs``, ``outputs``, ``reference``, ...) are used; ``options`` override them.
    Both name nodes as the graph does.

    Parameters
    ----------
    graph : networkx.Graph or networkx.DiGraph
    weight : str, optional
        The edge attribute that holds the strength, which every edge must then have. Left out, it is "weight", and an
        edge without one has strength 1.
    **options
        Passed on to `Network`.

    See Also
    --------
    to_networkx : A NetworkX graph of the network.
    from_matrix : A network from a matrix of couplings.

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
    if not names:
        raise ValueError("from_networkx takes a graph with at least one node. Got one that has no nodes.")
    number = {name: k for k, name in enumerate(names)}
    pairs, coupling, reverse = _weighted_pairs(graph, number, weight)
    settings = {key: graph.graph[key] for key in (*ROLES, "terms") if key in graph.graph} | options
    kinds = (*TERMS, *settings.get("terms", ()))
    whole = [parameter.name for kind in kinds for parameter in kind.every if parameter.on == "network"]
    settings = {key: graph.graph[key] for key in whole if key in graph.graph} | settings
    for key in ("inputs", "outputs", "reference"):
        if key in settings:
            settings[key] = _numbers_of(settings[key], number, key)
    known = [parameter.name for kind in kinds for parameter in kind.every if parameter.on == "nodes"]
    for key in known:
        if key not in options and any(key in graph.nodes[name] for name in names):
            values = [graph.nodes[name].get(key, 0.0) for name in names]
            settings[key] = finite_array(key, values, "from_networkx")
    for key in _CARRIED:
        if key not in options and any(key in given for *_, given in graph.edges(data=True)):
            settings[key] = finite_array(key, _carried(graph, key, names, pairs), "from_networkx")
    others = [{k: v for k, v in graph.nodes[name].items() if k not in known} for name in names]
    settings.setdefault("node_attributes", others if any(others) else None)
    settings.setdefault("labels", None if names == list(range(len(names))) else names)
    settings = {"omega": np.zeros(len(names)), **settings}
    return Network(pairs, coupling, settings.pop("omega"), coupling_reverse=reverse, **settings)


def to_networkx(network: Network) -> nx.Graph:
    """Return the network as a NetworkX graph from which `from_networkx` makes the same network again.

    Networks become a Graph; where the two directions of an edge have strengths of their own a DiGraph, with an edge
    u -> v where u acts on v. Of a network with a
    layout the graph holds what each oscillator and each edge has, and no longer which of them share it.

    See Also
    --------
    from_networkx : A network from a NetworkX graph.
    to_matrix : The matrix of couplings.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.networks.ring(4, coupling=2.0, omega=[0.1, 0.0, -0.1, 0.0])
    >>> graph = pg.networks.to_networkx(network)
    >>> graph.edges[0, 1]
    {'weight': 2.0}
    >>> pg.from_networkx(graph) == network
    True
    """
    import networkx as nx

    network = network.untied()
    names = list(range(network.size)) if network.labels is None else list(network.labels)
    graph: Any = nx.Graph() if network.coupling_reverse is None else nx.DiGraph()
    for key in ROLES:
        graph.graph[key] = getattr(network, key)
    own = [term for term in network.terms if type(term) not in TERMS]
    if own:
        graph.graph["terms"] = own
    for parameter in (each for term in network.terms for each in term.parameters if each.on == "network"):
        graph.graph[parameter.name] = float(network.parameters[parameter.name][0])
    lost = [parameter.name for term in own for parameter in term.parameters if parameter.on == "edges"]
    if lost:
        raise ValueError(f"A NetworkX graph from to_networkx carries couplings on its edges, not {lost[0]!r}.")
    for key in ("inputs", "outputs"):
        graph.graph[key] = tuple(names[k] for k in getattr(network, key))
    graph.graph["reference"] = names[network.reference]
    on_nodes = [parameter.name for term in network.terms for parameter in term.parameters if parameter.on == "nodes"]
    for k, name in enumerate(names):
        attributes = {} if network.node_attributes is None else dict(network.node_attributes[k])
        attributes |= {key: float(network.parameters[key][k]) for key in on_nodes}
        graph.add_node(name, **attributes)
    carried = [key for key in _CARRIED if key in network.parameters]
    # The first strength is that with which j acts on i.
    for strengths, turned in ((network.coupling, True), (network.coupling_reverse, False)):
        for k, (i, j) in enumerate(network.edges.tolist() if strengths is not None else ()):
            source, sink = (names[j], names[i]) if turned else (names[i], names[j])
            attributes = {key: float(network.parameters[key][k]) for key in carried}
            graph.add_edge(source, sink, weight=float(strengths[k]), **attributes)
    return graph


def _carried(graph: Any, key: str, names: list[Any], pairs: Any) -> list[float]:
    """Return an attribute of every edge, whichever direction has it, 0 where none has."""
    values = []
    for i, j in pairs.tolist():
        u, v = names[i], names[j]
        given = {
            graph.edges[pair][key] for pair in ((u, v), (v, u)) if graph.has_edge(*pair) and key in graph.edges[pair]
        }
        if len(given) > 1:
            raise ValueError(
                f"The two directions of the edge ({u!r}, {v!r}) of the graph have different values of {key!r}. Give "
                "both the same."
            )
        values.append(given.pop() if given else 0.0)
    return values


def _weighted_pairs(graph: Any, number: dict[Any, int], weight: str | None) -> tuple[Any, Any, Any]:
    """Return the edges of a NetworkX graph by node number, and their strengths in each direction."""
    name = "weight" if weight is None else weight
    triples = [(u, v, given.get(name)) for u, v, given in graph.edges(data=True)]
    for u, v, strength in triples:
        if strength is None and weight is not None:
            raise ValueError(
                f"The edge ({u!r}, {v!r}) of the graph has no attribute {weight!r}. Name an attribute that every edge "
                "has, or leave 'weight' out."
            )
    source, sink = (np.array([number[triple[end]] for triple in triples], dtype=np.int64) for end in (0, 1))
    given = [1.0 if strength is None else strength for *_, strength in triples]
    strengths = finite_array(name, given, "from_networkx")
    if not graph.is_directed():
        return np.stack([source, sink], axis=1), strengths, None
    pairs = ordered_pairs(np.stack([source, sink], axis=1), len(number))
    table = sparse.csr_array((strengths, (sink, source)), shape=(len(number), len(number)))
    return pairs, _entries(table, pairs[:, 0], pairs[:, 1]), _entries(table, pairs[:, 1], pairs[:, 0])


def _numbers_of(given: Any, number: dict[Any, int], key: str) -> Any:
    """Return node names of a graph attribute as node numbers."""
    try:
        return number[given] if key == "reference" else tuple(number[name] for name in given)
    except (KeyError, TypeError):
        raise ValueError(f"The '{key}' of the network are {given!r}, which does not name nodes of the graph.") from None


def _entries(matrix: Any, rows: Any, columns: Any) -> Any:
    if rows.size == 0:
        return np.zeros(0)
    picked = matrix[rows, columns]
    return np.asarray(picked.todense() if sparse.issparse(picked) else picked).ravel()
