"""What makes conjugate gradients quick: Gauss-Seidel on expander-like graphs, multigrid on mesh-like ones.

Information travels few edges per iteration, so a graph that a search from one oscillator crosses in few steps needs few
iterations with a local preconditioner, while multigrid would fill up there. A mesh, a ring or a chain is deep, a local
one would need thousands of iterations, and multigrid needs about twenty. The depth is the probe.
"""

from __future__ import annotations

import importlib.util
import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from phasegrad._validation import FloatArray, how_to_install
from phasegrad.dynamics import System
from phasegrad.graphs import Graph, lazy_property
from phasegrad.linearised._edge_matrix import EdgeMatrix

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
        from phasegrad.kernels import sparse as loops

        return loops.precondition(self.inverse, left, image)


@dataclass(frozen=True, eq=False)
class GaussSeidel:
    """One symmetric Gauss-Seidel sweep, (D - W^T) D^-1 (D - W) in place of A = D - W - W^T.

    `conjugate_gradients` does not apply it as it stands but transforms the system (Eisenstat), which makes it free.
    """

    matrix: EdgeMatrix
    name: str = "gauss-seidel"

    @classmethod
    def of(cls, matrix: sparse.csr_array) -> GaussSeidel | Jacobi:
        """Return the preconditioner of a matrix; the diagonal alone where one of its entries is not positive."""
        return cls(EdgeMatrix.of(matrix)) if np.all(matrix.diagonal() > 0) else Jacobi.of(matrix)

    def apply(self, left: FloatArray, image: FloatArray) -> float:
        """Set image = M^-1 left by a forward and a backward sweep and return left . image."""
        from phasegrad.kernels import edges as loops

        factor, weights = self._scaled
        edges = (*self.matrix.ends, weights)
        whole = factor * self.matrix.spread(left)
        loops.forward(*edges, whole)
        loops.backward(*edges, whole)
        image[:] = self.matrix.gathered(factor * whole)
        return float(left @ image)

    @lazy_property
    def _scaled(self) -> tuple[FloatArray, NDArray[Any]]:
        return self.matrix.scaled(np.float64)


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
                f"The multigrid preconditioner needs pyamg, which is not installed. {how_to_install('sparse')} Or say "
                "preconditioner='gauss-seidel'."
            ) from None
        # Local weights come from the row sums. A spectral radius would be estimated from a random vector, and pyamg
        # draws that from NumPy's global stream.
        hierarchy = pyamg.smoothed_aggregation_solver(
            sparse.csr_matrix(matrix),
            symmetry="symmetric",
            strength=("symmetric", {"theta": 0.0}),
            smooth=("jacobi", {"weighting": "local"}),
        )
        for level in hierarchy.levels:
            # pyamg leaves blocks of one entry, with which a cycle was measured to take nearly twice as long.
            level.A = sparse.csr_matrix(level.A)
        for level in hierarchy.levels[:-1]:
            level.P, level.R = sparse.csr_matrix(level.P), sparse.csr_matrix(level.R)
        return cls(hierarchy.aspreconditioner(cycle="V"))

    def apply(self, left: FloatArray, image: FloatArray) -> float:
        """Set image to the result of one V-cycle and return left . image."""
        image[:] = self.cycle.matvec(left)
        return float(left @ image)


def preconditioner(system: System, matrix: sparse.csr_array, kind: str = "auto") -> Preconditioner:
    """Return the preconditioner for the Laplacian ``matrix`` of one sample of a system.

    A hierarchy is that of the Laplacian at rest, at its stiffest: it serves every state of the network, under a nudge
    and for adjoint solves too, and depends on none of them.
    """
    workspace = system.workspace
    if kind == "auto":
        kind = kind_of(system)
    if kind != "multigrid":
        return Jacobi.of(matrix) if kind == "jacobi" else GaussSeidel.of(matrix)
    if not system.shared:
        return Multigrid.of(at_rest(system))
    hierarchy: Multigrid = workspace.keep("hierarchy", lambda: Multigrid.of(at_rest(system)))
    return hierarchy


def kind_of(system: System) -> str:
    """Return which preconditioner suits the graph of a system, found out once."""
    kind: str = system.workspace.keep("kind", lambda: probe(system.graph))
    return kind


def at_rest(system: System) -> sparse.csr_array:
    """Return the Laplacian of a system whose every weight is as large as it can be."""
    return system.graph.pattern.fill(system.stiffest_edges[0], system.stiffest[0])


def probe(graph: Graph) -> str:
    """Return which preconditioner suits a graph: "gauss-seidel" or "multigrid".

    Where the graph is deep but pyamg is missing, a warning says so and Gauss-Seidel is used, which is slow but right.
    """
    if graph.size <= SMALL or not is_deep(graph):
        return "gauss-seidel"
    if importlib.util.find_spec("pyamg") is None:
        warnings.warn(
            "This graph is mesh-like, where multigrid is many times faster, but pyamg is not installed. "
            f"{how_to_install('sparse')}",
            stacklevel=2,
        )
        return "gauss-seidel"
    return "multigrid"


def is_deep(graph: Graph) -> bool:
    """Return whether the node in the middle of the numbering reaches another one only in more than `DEEP` steps."""
    from phasegrad.kernels import edges as loops

    depths = np.full(graph.size, graph.size, dtype=np.int32)
    depths[graph.size // 2] = 0
    return bool(loops.is_deep(*graph.narrow_ends, depths, DEEP))
