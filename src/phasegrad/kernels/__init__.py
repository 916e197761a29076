"""Compiled code: nothing here knows networks, only arrays; importing it loads Numba, so do that where it is used.

`_lanes` trains many small networks in lock-step, one per lane of a vector; `_layers` settles a mini-batch of one
network, one sample per lane; `_sparse` are the loops of conjugate gradients; `_motion` are steps in time.
"""

from phasegrad.kernels import _lanes as lanes
from phasegrad.kernels import _layers as layers
from phasegrad.kernels import _motion as motion
from phasegrad.kernels import _nudge as nudges
from phasegrad.kernels import _program as program
from phasegrad.kernels import _sparse as sparse
from phasegrad.kernels import _tile as tile
from phasegrad.kernels._vector import Rows

__all__ = ["Rows", "lanes", "layers", "motion", "nudges", "program", "sparse", "tile"]
