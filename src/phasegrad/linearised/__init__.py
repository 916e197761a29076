"""The linearised system: the Laplacian of a network at a state, as one object to solve with and to prove things of."""

from phasegrad.linearised._bounds import largest_angles
from phasegrad.linearised._choice import (
    algebra_of,
    is_positive_with,
    linearise,
    linearise_to_certify,
    parts,
    refuse_dense_solve,
    stability,
)
from phasegrad.linearised._dense import DenseLaplacian
from phasegrad.linearised._edgewise import Edgewise, EdgewiseLaplacian
from phasegrad.linearised._elimination import Elimination, Surroundings
from phasegrad.linearised._factors import chunks, is_positive_definite
from phasegrad.linearised._linearised import AT_REST, Linearised, Stability, Verdict
from phasegrad.linearised._local import LocalTerms
from phasegrad.linearised._phasor import PhasorLaplacian, Phasors
from phasegrad.linearised._preconditioning import KINDS
from phasegrad.linearised._sparse import SparseLaplacian

__all__ = [
    "AT_REST",
    "KINDS",
    "DenseLaplacian",
    "Edgewise",
    "EdgewiseLaplacian",
    "Elimination",
    "Linearised",
    "LocalTerms",
    "PhasorLaplacian",
    "Phasors",
    "SparseLaplacian",
    "Stability",
    "Surroundings",
    "Verdict",
    "algebra_of",
    "chunks",
    "is_positive_definite",
    "is_positive_with",
    "largest_angles",
    "linearise",
    "linearise_to_certify",
    "parts",
    "refuse_dense_solve",
    "stability",
]
