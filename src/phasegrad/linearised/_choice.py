"""Which algebra a system gets, from facts about it: its size, its edges, its terms, and whether it has an energy."""

from __future__ import annotations

import numpy as np

from phasegrad._validation import Array, FloatArray, IntArray
from phasegrad.dynamics import System
from phasegrad.graphs import Graph, refuse_dense
from phasegrad.linearised._dense import DenseLaplacian
from phasegrad.linearised._factors import MOST_NUMBERS, chunks, is_positive_definite
from phasegrad.linearised._linearised import Linearised, Stability
from phasegrad.linearised._phasor import PhasorLaplacian
from phasegrad.linearised._preconditioning import kind_of, preconditioner
from phasegrad.linearised._proofs import Form
from phasegrad.linearised._sparse import DENSE_CERTIFICATE, SparseLaplacian

_EPS = float(np.finfo(float).eps)


def linearise(
    system: System, phases: Array, *, algebra: type[Linearised] | None = None, preconditioner: str = "auto"
) -> Linearised:
    """Return the linearised system at phases (B, N) of all oscillators.

    Parameters
    ----------
    system : System
    phases : ndarray, shape (B, N)
    algebra : type of Linearised, optional
        Left out: sparse for a large network with few edges and an energy, else dense.
    preconditioner : {"auto", "gauss-seidel", "jacobi", "multigrid"}
        Of the sparse algebra.
    """
    return (algebra or algebra_of(system)).of(system, phases, preconditioner)


def algebra_of(system: System, what: str = "A dense solve") -> type[Linearised]:
    """Return the algebra of a system; refuse a dense one that would not fit, for who asks for ``what``."""
    if SparseLaplacian.fits(system):
        return SparseLaplacian
    refuse_dense_solve(system.graph, what, reciprocal=system.reciprocal)
    return DenseLaplacian


def parts(system: System) -> list[IntArray]:
    """Return the samples in parts, each of which keeps its Laplacians or their factors within the memory bound."""
    return [np.arange(part.start, part.stop) for part in chunks(system.batch, 2 * algebra_of(system).entries(system))]


def refuse_dense_solve(graph: Graph, what: str, *, reciprocal: bool = True) -> None:
    """Raise ValueError where a solver or gradient would have to make a dense matrix that is too large.

    It has a row for every oscillator that moves: inputs whose phases are clamped do not count.
    """
    if reciprocal:
        advice = "The sparse way has no such limit: solver='auto', and the gradients adjoint, two_phase and centred."
    else:
        advice = "The sparse way is for reciprocal coupling only: use a smaller network."
    refuse_dense(graph.free.size, what, advice)


def linearise_to_certify(system: System, phases: Array, *, eigenvalue: bool = False) -> Linearised:
    """Return the linearised system at real phases (B, N) by the algebra whose proofs of stability cost least.

    Many samples of one sine-coupled network are judged by products of matrices, unless their smallest ``eigenvalue`` is
    asked for. Compiled code takes half a second to load: not for a few small matrices.
    """
    many = system.batch * DenseLaplacian.entries(system) > MOST_NUMBERS
    sparse = SparseLaplacian.fits(system) and system.graph.free.size > DENSE_CERTIFICATE
    by_products = many and not sparse and not eigenvalue and PhasorLaplacian.fits(system)
    algebra = PhasorLaplacian if by_products else SparseLaplacian if sparse else DenseLaplacian
    return algebra.of(system, phases)


def stability(system: System, phases: Array, *, eigenvalue: bool = False, explain: bool = False) -> Stability:
    """Certify real states ``phases`` (B, N); see `Linearised.certificate`."""
    state = linearise_to_certify(system, phases, eigenvalue=eigenvalue)
    return state.certificate(eigenvalue=eigenvalue, explain=explain)


def is_positive_with(system: System, weights: FloatArray, diagonal: FloatArray, sums: FloatArray) -> bool:
    """Return whether a Laplacian with other weights (E,), of sums too, and diagonal (N,) is proved positive definite.

    The system says which preconditioner suits its graph, and nothing else.
    """
    form = Form.between(system.graph, *(np.stack([each, each]) for each in (weights, diagonal, sums)))
    if SparseLaplacian.fits(system) and form.size > DENSE_CERTIFICATE:
        mesh = kind_of(system) == "multigrid"
        return form.examine(lambda matrix: preconditioner(system, matrix), mesh=mesh).proved
    rounding = 8 * form.size * _EPS * form.norm
    return bool(is_positive_definite(form.lower.toarray()[None], rounding)[0])
