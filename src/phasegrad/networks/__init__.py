"""Networks: the value itself, its builders, and the ways from and to matrices and NetworkX."""

from phasegrad.networks._builders import (
    complete,
    erdos_renyi,
    lattice,
    layered,
    random_network,
    random_regular,
    ring,
    signed_layers,
    small_world,
)
from phasegrad.networks._interchange import from_matrix, from_networkx, to_matrix, to_networkx
from phasegrad.networks._network import Network

__all__ = [
    "Network",
    "complete",
    "erdos_renyi",
    "from_matrix",
    "from_networkx",
    "lattice",
    "layered",
    "random_network",
    "random_regular",
    "ring",
    "signed_layers",
    "small_world",
    "to_matrix",
    "to_networkx",
]
