"""Graphs: who is joined to whom, everything that follows from it, and random ones as arrays of edges."""

from phasegrad.graphs._graph import Blocks, Graph, ordered_edges
from phasegrad.graphs._lazy import lazy_property
from phasegrad.graphs._random import (
    joined,
    ordered_pairs,
    regular_pairs,
    small_world_pairs,
    uniform_pairs,
    until_connected,
)
from phasegrad.graphs._sparsity import DENSE_LIMIT, Pattern, refuse_dense

__all__ = [
    "DENSE_LIMIT",
    "Blocks",
    "Graph",
    "Pattern",
    "joined",
    "lazy_property",
    "ordered_edges",
    "ordered_pairs",
    "refuse_dense",
    "regular_pairs",
    "small_world_pairs",
    "uniform_pairs",
    "until_connected",
]
