"""Dense or sparse: which linear algebra a network gets, and what is refused because of it."""

from __future__ import annotations

from phasegrad.dynamics import System
from phasegrad.network import Network
from phasegrad.sparsity import DENSE_LIMIT, refuse_dense

#: Oscillators from which a network with few edges is solved sparsely.
SPARSE_FROM = 300
#: Share of all pairs that may be coupled in a network that counts as sparse.
SPARSE_DENSITY = 0.1


def is_sparse(system: System) -> bool:
    """Return whether the sparse solvers take a system: large, few edges, and a real symmetric Laplacian."""
    network = system.network
    if not network.reciprocal or system.is_complex or network.size < SPARSE_FROM:
        return False
    return network.size > DENSE_LIMIT or 2 * network.n_edges <= SPARSE_DENSITY * network.size**2


def refuse_dense_solve(network: Network, what: str) -> None:
    """Raise ValueError where a solver or gradient would have to make a dense matrix that is too large."""
    if network.reciprocal:
        advice = "The sparse way has no such limit: solver='auto', and the gradients adjoint, two_phase and centred."
    else:
        advice = "The sparse way is for reciprocal coupling only: use a smaller network."
    refuse_dense(network.size, what, advice)
