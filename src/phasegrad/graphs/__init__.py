"""Graphs: who is joined to whom, edge by edge or layer by layer, and everything that follows from it; random ones."""

from phasegrad.graphs._graph import Blocks, Graph, ordered_edges
from phasegrad.graphs._layout import Layout, Link, checked_shape
from phasegrad.graphs._lazy import lazy_property
from phasegrad.graphs._random import (
    joined,
    ordered_pairs,
    regular_pairs,
    small_world_pairs,
    uniform_pairs,
    until_connected,
)
from phasegrad.graphs._sharing import Sharing
from phasegrad.graphs._sparsity import DENSE_LIMIT, Pattern, refuse_dense

__all__ = [
    "DENSE_LIMIT",
    "Blocks",
    "Graph",
    "Layout",
    "Link",
    "Pattern",
    "Sharing",
    "checked_shape",
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
