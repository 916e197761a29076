"""Names of topologies: what an operator, which takes tensors and plain data alone, is told about a network.

A name is a digest of everything but the values of the parameters. It says the same in every process, after a copy,
a pickle and a compilation, and networks that differ in values alone share a structure. Structures live as long as a
module, or a graph that is to be differentiated, holds them.
"""

from __future__ import annotations

import hashlib
import json
from weakref import WeakValueDictionary

import numpy as np

from phasegrad.graphs import Layout
from phasegrad.networks import Network
from phasegrad.tensors import Structure

_ROLES = ("size", "inputs", "outputs", "reference", "input_mode", "input_scale", "input_phase")
_STRUCTURES: WeakValueDictionary[str, Structure] = WeakValueDictionary()


def registered(network: Network) -> tuple[str, Structure]:
    """Return the name of a network's topology and its structure, for the caller to hold on to."""
    name = _name(network)
    structure = _STRUCTURES.get(name)
    return name, _STRUCTURES.setdefault(name, Structure.of(network)) if structure is None else structure


def structure_of(name: str) -> Structure:
    """Return the structure that was registered under a name."""
    structure = _STRUCTURES.get(name)
    if structure is None:
        raise RuntimeError(
            "The PhaseNetwork that this operator belongs to is no longer there. Keep the module as long as it is used."
        )
    return structure


def _name(network: Network) -> str:
    plain = {role: getattr(network, role) for role in _ROLES} | {"parameters": sorted(network.parameters)}
    pairs = network.graph.pairs
    if isinstance(pairs, Layout):
        plain["layout"] = pairs.as_dict()
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode())
    if not isinstance(pairs, Layout):
        digest.update(np.ascontiguousarray(pairs, dtype=np.int64).tobytes())
    return digest.hexdigest()
