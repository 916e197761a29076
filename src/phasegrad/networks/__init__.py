"""Networks: the value itself, its builders, edge by edge or layer by layer, and the ways from and to matrices."""

from phasegrad.graphs import Layout, Link
from phasegrad.networks._builders import (
    complete,
    cycle_chain,
    erdos_renyi,
    lattice,
    layered,
    mean_field,
    random_network,
    random_regular,
    ring,
    signed_layers,
    small_world,
)
from phasegrad.networks._interchange import (
    from_matrix,
    from_networkx,
    to_matrix,
    to_networkx,
)
from phasegrad.networks._layers import Convolution, Dense, layers
from phasegrad.networks._network import Network

__all__ = [
    "Convolution",
    "Dense",
    "Layout",
    "Link",
    "Network",
    "complete",
    "cycle_chain",
    "erdos_renyi",
    "from_matrix",
    "from_networkx",
    "lattice",
    "layered",
    "layers",
    "mean_field",
    "random_network",
    "random_regular",
    "ring",
    "signed_layers",
    "small_world",
    "to_matrix",
    "to_networkx",
]
