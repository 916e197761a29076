"""Terms: what the energy of a network is made of, one file each.

A term brings its parameters and every formula that knows them. The rest of the package loops over terms; `TERMS` is the
one list of those that a `Network` takes by the names of their parameters.
"""

from phasegrad.terms._anisotropy import Anisotropy
from phasegrad.terms._checks import check_term
from phasegrad.terms._coupling import Coupling
from phasegrad.terms._engine import EngineInterface, LocalField, States
from phasegrad.terms._fields import Field, NodeField
from phasegrad.terms._frequencies import Frequencies
from phasegrad.terms._interactions import Interaction, OddSeries, Sine, cosines
from phasegrad.terms._mean_field import MeanField
from phasegrad.terms._parameter import Parameter, Values
from phasegrad.terms._phase_lag import PhaseLag
from phasegrad.terms._second_harmonic import SecondHarmonic
from phasegrad.terms._stiffness import Stiffness
from phasegrad.terms._term import Term

#: Every term a `Network` knows by the names of its parameters, in the order of the equation of motion.
#: One whose parameters are all those of another and more stands in its place.
TERMS: tuple[type[Term], ...] = (
    Frequencies, Coupling, PhaseLag, Anisotropy, MeanField, Field, SecondHarmonic,
)  # fmt: skip

__all__ = [
    "TERMS",
    "Anisotropy",
    "Coupling",
    "EngineInterface",
    "Field",
    "Frequencies",
    "Interaction",
    "LocalField",
    "MeanField",
    "NodeField",
    "OddSeries",
    "Parameter",
    "PhaseLag",
    "SecondHarmonic",
    "Sine",
    "States",
    "Stiffness",
    "Term",
    "Values",
    "check_term",
    "cosines",
]
