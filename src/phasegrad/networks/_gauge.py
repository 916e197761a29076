"""The gauge: whether all oscillators are tied to the frame or the reference, so that the Laplacian has an inverse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from phasegrad._validation import BoolArray, FloatArray, IntArray
from phasegrad.graphs import Graph, Layout
from phasegrad.terms import Term

Parameters = Mapping[str, FloatArray]


def check_grounded(graph: Graph, terms: Sequence[Term], parameters: Parameters) -> None:
    """Refuse a graph with a part that nothing ties to the gauge: its Laplacian would be singular."""
    grounded = _tied(graph, terms, parameters)
    if np.all(grounded) or any(term.joins_all(parameters) for term in terms):
        return
    acting = _acting(graph, terms, parameters)
    if graph.layout is not None and all(_tied_layers(graph.layout, grounded, acting)):
        return
    acts = [graph.sharing.spread("edges", each) for each in acting]
    # Values of parameters change all the time and seldom vanish: the graph is then searched only once.
    everywhere, reciprocal = bool(np.all(acts)), all(term.symmetric for term in terms)
    if everywhere or reciprocal:
        part = graph.components if everywhere else graph.components_of(acts[0])
        loose = ~(np.bincount(part, grounded) > 0)[part]
    else:
        if graph.pinned and not graph.grounded:
            # It turns at a frequency of its own: any one oscillator that all others listen to will do.
            grounded = _leads(graph, acts[0], acts[1])
        loose = ~_influenced(graph, acts[0], acts[1], grounded)
        part = loose.astype(np.int64)
    if not np.any(loose):
        return
    if not graph.pinned:
        part = loose.astype(np.int64)
    what = "the reference" if reciprocal or graph.grounded else "any one oscillator"
    what = what if graph.pinned else "a field or a clamped input"
    raise ValueError(
        f"The graph is disconnected: it falls into {_name_parts(part)}, and not every part is reached from {what}. "
        "Join the parts with an edge, or build one network for each."
    )


def _tied(graph: Graph, terms: Sequence[Term], parameters: Parameters) -> BoolArray:
    """Return the oscillators that are held, or that a term ties to the frame, (N,)."""
    tied = np.zeros(graph.size, dtype=bool)
    tied[graph.held] = True
    for term in terms:
        if term.fixes_gauge:
            own = {p.name: graph.sharing.spread(p.on, parameters[p.name]) for p in term.parameters}
            some = term.grounded(graph, own)
            tied |= False if some is None else some
    return tied


def _acting(graph: Graph, terms: Sequence[Term], parameters: Parameters) -> list[BoolArray]:
    """Return which couplings act on the first and on the second end of their edges, (E,) each."""
    acts = [np.zeros(graph.sharing.width("edges"), dtype=bool) for _ in range(2)]
    for term in terms:
        for all_, some in zip(acts, term.links(parameters) or (), strict=False):
            all_ |= some
    return acts


def _tied_layers(layout: Layout, grounded: BoolArray, acts: Sequence[BoolArray]) -> list[bool]:
    """Return which layers are tied to the gauge as a whole, as far as links without a zero coupling show it.

    Every node of a layer is reached from the layer before; all of two layers from any one node where a link is dense.
    """
    whole = [bool(np.all(grounded[nodes])) for nodes in layout.nodes]
    some = [bool(np.any(grounded[nodes])) for nodes in layout.nodes]
    ways = []
    for link, part in zip(layout.links, layout.couplings, strict=True):
        back, forth = (bool(np.all(each[part])) for each in acts)
        if forth:
            ways.append((link.first, link.second, some if link.kernel is None else whole))
        if back and link.kernel is None:
            ways.append((link.second, link.first, some))
    for _ in layout.shapes:
        for source, sink, enough in ways:
            if enough[source]:
                whole[sink] = some[sink] = True
    return whole


def _leads(graph: Graph, forward: BoolArray, backward: BoolArray) -> BoolArray:
    """Return the mask of one node that nothing acts on but those that it acts on itself."""
    source = np.concatenate([graph.second[forward], graph.first[backward]])
    sink = np.concatenate([graph.first[forward], graph.second[backward]])
    influence = sparse.csr_array((np.ones(source.size), (source, sink)), shape=(graph.size, graph.size))
    number, part = csgraph.connected_components(influence, directed=True, connection="strong")
    listens = np.zeros(number, dtype=bool)
    listens[part[sink[part[source] != part[sink]]]] = True
    mask = np.zeros(graph.size, dtype=bool)
    mask[np.argmax(~listens[part])] = True
    return mask


def _influenced(graph: Graph, forward: BoolArray, backward: BoolArray, grounded: BoolArray) -> BoolArray:
    """Return the nodes that a path of influence reaches from the grounded ones."""
    size, roots = graph.size, np.flatnonzero(grounded)
    source = np.concatenate([graph.second[forward], graph.first[backward], np.full(roots.size, size)])
    sink = np.concatenate([graph.first[forward], graph.second[backward], roots])
    influence = sparse.csr_array((np.ones(source.size), (source, sink)), shape=(size + 1, size + 1))
    reached = csgraph.breadth_first_order(influence, size, directed=True, return_predecessors=False)
    mask = np.zeros(size + 1, dtype=bool)
    mask[reached] = True
    return mask[:size]


def _name_parts(part: IntArray) -> str:
    """Return the parts of a graph in words: the four largest by their nodes, the others by their sizes."""
    sizes = np.bincount(part)
    shown = np.sort(np.argsort(-sizes, kind="stable")[:4])
    named = " and ".join(_name_nodes(np.flatnonzero(part == k)) for k in shown)
    others = np.delete(sizes, shown)
    if others.size == 0:
        return f"the {sizes.size} parts {named}"
    nodes, times = np.unique(others, return_counts=True)
    said = [f"{many} of {size}" for size, many in zip(nodes[::-1].tolist(), times[::-1].tolist(), strict=True)]
    rest = ", ".join(said[:6]) + (", ..." if len(said) > 6 else "") + " nodes"
    return f"the {sizes.size} parts {named} and {others.size} more ({rest})"


def _name_nodes(nodes: IntArray) -> str:
    shown = ", ".join(str(int(node)) for node in nodes[:6])
    return "{" + shown + (f", ... ({nodes.size} nodes)" if nodes.size > 6 else "") + "}"
