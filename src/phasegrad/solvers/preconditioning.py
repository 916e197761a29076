"""What makes conjugate gradients quick: Gauss-Seidel on expander-like graphs, multigrid on mesh-like ones.

Information travels few edges per iteration, so a graph that a search from one oscillator crosses in few steps needs few
iterations with a local preconditioner, while multigrid would fill up there. A mesh, a ring or a chain is deep, a local
one would need thousands of iterations, and multigrid needs about twenty. The depth is the probe.
"""

from __future__ import annotations

import importlib.util
import warnings
import weakref
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from phasegrad.dynamics import System
from phasegrad.network import Network
from phasegrad.solvers.newton import FLOOR
from phasegrad.validation import FloatArray, choice

KINDS = ("auto", "gauss-seidel", "jacobi", "multigrid")

#: Steps from one oscillator to the farthest beyond which a graph counts as a mesh.
DEEP = 60
#: Oscillators below which a local preconditioner is quick enough on every graph.
SMALL = 2000


class Preconditioner(Protocol):
    """An approximate inverse of the Laplacian, symmetric and positive definite."""

    @property
    def name(self) -> str:
        """Which kind it is."""

    def apply(self, left: FloatArray, image: FloatArray) -> float:
        """Set image = M left and return left . image."""


@dataclass(frozen=True, eq=False)
class Jacobi:
    """The inverse of the diagonal."""

    inverse: FloatArray
    name: str = "jacobi"

    @classmethod
    def of(cls, matrix: sparse.csr_array) -> Jacobi:
        """Return the preconditioner of a matrix; entries that are not positive count by their size."""
        diagonal = np.abs(matrix.diagonal())
        return cls(1.0 / np.where(diagonal > 0, diagonal, 1.0))

    def apply(self, left: FloatArray, image: FloatArray) -> float:
        """Set image = D^-1 left and return left . image."""
        from phasegrad.solvers.kernels import precondition

        return precondition(self.inverse, left, image)


@dataclass(frozen=True, eq=False)
class GaussSeidel:
    """One symmetric Gauss-Seidel sweep, (D + L) D^-1 (D + L)^T in place of A = L + D + L^T.

    `conjugate_gradients` does not apply it as it stands but transforms the system (Eisenstat), which makes it free.
    """

    matrix: sparse.csr_array
    diagonal: FloatArray
    inverse: FloatArray
    name: str = "gauss-seidel"

    @classmethod
    def of(cls, matrix: sparse.csr_array) -> GaussSeidel | Jacobi:
        """Return the preconditioner of a matrix; the diagonal alone where one of its entries is not positive."""
        diagonal = matrix.diagonal()
        if not np.all(diagonal > 0):
            return Jacobi.of(matrix)
        return cls(matrix, diagonal, 1.0 / diagonal)

    def apply(self, left: FloatArray, image: FloatArray) -> float:
        """Set image = M^-1 left by a forward and a backward sweep and return left . image."""
        from phasegrad.solvers.kernels import lower_solve, upper_solve

        rows = (self.matrix.indptr, self.matrix.indices, self.matrix.data)
        lower_solve(*rows, self.inverse, left, image)
        upper_solve(*rows, self.inverse, self.diagonal * image, image)
        return float(left @ image)


@dataclass(frozen=True, eq=False)
class Multigrid:
    """One V-cycle of smoothed-aggregation multigrid, by pyamg."""

    cycle: Any
    name: str = "multigrid"

    @classmethod
    def of(cls, matrix: sparse.csr_array) -> Multigrid:
        """Build the hierarchy of a matrix."""
        try:
            import pyamg
        except ImportError:
            raise ImportError(
                "The multigrid preconditioner needs pyamg, which is not installed. Install it with "
                "'pip install phasegrad[sparse]', or say preconditioner='gauss-seidel'."
            ) from None
        hierarchy = pyamg.smoothed_aggregation_solver(
            sparse.csr_matrix(matrix), symmetry="symmetric", strength=("symmetric", {"theta": 0.0})
        )
        return cls(hierarchy.aspreconditioner(cycle="V"))

    def apply(self, left: FloatArray, image: FloatArray) -> float:
        """Set image to the result of one V-cycle and return left . image."""
        image[:] = self.cycle.matvec(left)
        return float(left @ image)


def preconditioner(
    system: System, phases: FloatArray, matrix: sparse.csr_array, kind: str = "auto", *, renew: bool = False
) -> Preconditioner:
    """Return the preconditioner for the Laplacian ``matrix`` of one sample at ``phases`` (1, N).

    A hierarchy is built at the first state that needs one, from the positive stand-in of its Laplacian, and serves all
    later ones of the same network (under a nudge, at another state, for an adjoint solve) until ``renew`` asks for a
    new one.
    """
    choice("preconditioner", kind, KINDS, "SparseNewton")
    known = _known(system.network)
    if kind == "auto":
        if known.kind is None:
            known.kind = probe(matrix)
        kind = known.kind
    if kind != "multigrid":
        return Jacobi.of(matrix) if kind == "jacobi" else GaussSeidel.of(matrix)
    if known.hierarchy is None or renew:
        known.hierarchy = Multigrid.of(system.sparse_laplacian(phases, floor=FLOOR))
    return known.hierarchy


def probe(matrix: sparse.csr_array) -> str:
    """Return which preconditioner suits the graph of a matrix: "gauss-seidel" or "multigrid".

    Where the graph is deep but pyamg is missing, a warning says so and Gauss-Seidel is used, which is slow but right.
    """
    if matrix.shape[0] <= SMALL or depth(matrix) <= DEEP:
        return "gauss-seidel"
    if importlib.util.find_spec("pyamg") is None:
        warnings.warn(
            "This graph is mesh-like, where multigrid is many times faster, but pyamg is not installed. Install it "
            "with 'pip install phasegrad[sparse]'.",
            stacklevel=2,
        )
        return "gauss-seidel"
    return "multigrid"


def depth(matrix: sparse.csr_array) -> int:
    """Return how many steps lie between the node in the middle of the numbering and the farthest it reaches."""
    from phasegrad.solvers.kernels import tree_depth

    order, predecessors = csgraph.breadth_first_order(matrix, matrix.shape[0] // 2, directed=True)
    return int(tree_depth(order, predecessors))


@dataclass
class _Known:
    """What was found out about the graph of a network and is worth keeping as long as the network lives."""

    kind: str | None = None
    hierarchy: Multigrid | None = None


_networks: dict[int, _Known] = {}


def _known(network: Network) -> _Known:
    # By identity: a network is not hashable, and comparing two of a million oscillators would cost more than it saves.
    known = _networks.get(id(network))
    if known is None:
        known = _networks[id(network)] = _Known()
        weakref.finalize(network, _networks.pop, id(network), None)
    return known
