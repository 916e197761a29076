"""Terms: what the energy of a network is made of, one file each.

A term brings its parameters and every formula that knows them. The rest of the package loops over terms; `TERMS` is the
one list of those that a `Network` takes by the names of their parameters.
"""

from phasegrad.terms._anisotropy import Anisotropy as Anisotropy
from phasegrad.terms._checks import check_term as check_term
from phasegrad.terms._coupling import Coupling as Coupling
from phasegrad.terms._engine import EngineInterface as EngineInterface, LocalField as LocalField, States as States
from phasegrad.terms._fields import Field as Field, NodeField
from phasegrad.terms._frequencies import Frequencies as Frequencies
from phasegrad.terms._interactions import Interaction, OddSeries, Sine, cosines as cosines
from phasegrad.terms._mean_field import MeanField as MeanField
from phasegrad.terms._parameter import Parameter, Values as Values
from phasegrad.terms._phase_lag import PhaseLag as PhaseLag
from phasegrad.terms._second_harmonic import SecondHarmonic as SecondHarmonic
from phasegrad.terms._stiffness import Stiffness
from phasegrad.terms._term import Term

__all__ = [
    "Interaction",
    "NodeField",
    "OddSeries",
    "Parameter",
    "Sine",
    "Stiffness",
    "Term",
]

TERMS: tuple[type[Term], ...] = (
    Frequencies,
    Coupling,
    PhaseLag,
    Anisotropy,
    MeanField,
    Field,
    SecondHarmonic,
)
