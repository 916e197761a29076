"""Compiled code: nothing here knows networks, only arrays. Numba is loaded with the first of its parts that is used.

`lanes` trains many small networks in lock-step, one per lane of a vector; `layers` settles a mini-batch of one network,
one sample per lane; `edgewise` settles small networks with any interaction, which `interaction` compiles; `sparse` and
`edges` are the loops of conjugate gradients; `fill` foresees what a sparse factorisation costs; `motion` and `adaptive`
take steps in time; `flips` anneals spins.
Where there is no Numba (in a browser, say), ``COMPILES`` is False and only `sparse`, `edges`, `fill` and `flips` are
there, as plain Python.
"""

from importlib import import_module
from typing import Any

from phasegrad.kernels._entrance import COMPILES

_PARTS = {
    "adaptive": "_adaptive",
    "edges": "_edges",
    "edgewise": "_edgewise",
    "fill": "_fill",
    "flips": "_flips",
    "interaction": "_interaction",
    "lanes": "_lanes",
    "layers": "_layers",
    "motion": "_motion",
    "nudges": "_nudge",
    "program": "_program",
    "sparse": "_sparse",
    "tile": "_tile",
}

__all__ = ["COMPILES", "Rows", *_PARTS]


def __getattr__(name: str) -> Any:
    """Import a part when it is first asked for."""
    if name == "Rows":
        part = import_module("phasegrad.kernels._vector").Rows
    elif name in _PARTS:
        part = import_module(f"phasegrad.kernels.{_PARTS[name]}")
    else:
        raise AttributeError(f"module 'phasegrad.kernels' has no attribute {name!r}")
    globals()[name] = part
    return part
