"""Parameters of terms: their names, where they live, their defaults and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from phasegrad._validation import Array, BoolArray
from phasegrad.graphs import Graph

#: Values of parameters by name: (1, width), shared by all samples, or (B, width).
Values = Mapping[str, Array]


@dataclass(frozen=True)
class Parameter:
    """One array of parameters.

    Parameters
    ----------
    name : str
        What people write: ``network.omega``, ``wrt="omega"``.
    on : {"nodes", "edges", "network"}
        Whether there is one per node, one per edge, or a single one.
    default : float or None
        The value if it is left out while its term is there; None if it must be given.
    least : float
        Where training keeps it in a network that is not signed.
    decays : bool
        Whether weight decay acts on it.

    See Also
    --------
    Term : The base of every term of the energy.
    NodeField : A term that pulls every oscillator on its own.
    Plan : How networks are trained.

    Examples
    --------
    >>> import phasegrad as pg
    >>> pg.terms.Parameter("depth", default=0.0, least=0.0)
    Parameter(name='depth', on='nodes', default=0.0, least=0.0, decays=False)
    """

    name: str
    on: str = "nodes"
    default: float | None = None
    least: float = -np.inf
    decays: bool = False

    def width(self, graph: Graph) -> int:
        """Return how many there are: one for each node or edge, or for each group of them that shares one, or one."""
        return graph.sharing.width(self.on)

    def learnable(self, graph: Graph) -> BoolArray:
        """Return which of them may learn: all but those of the inputs, which belong to the data."""
        mask = np.ones(self.width(graph), dtype=bool)
        if self.on == "nodes":
            mask[list(graph.inputs) if graph.layout is None else graph.layout.node_values[0]] = False
        return mask
