r"""The second harmonic: every oscillator is pulled toward one of two phases half a turn apart.

    E = -sum_i (h_i / 2) cos 2(psi_i - theta_i),   F_i = h_i sin 2(psi_i - theta_i)

Injection at twice the frequency (SHIL) does it: oscillators become bits, as Ising machines made of them need.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from phasegrad.terms._fields import NodeField
from phasegrad.terms._interactions import Interaction, OddSeries
from phasegrad.terms._parameter import Parameter


@dataclass(frozen=True)
class SecondHarmonic(NodeField):
    """A pull ``second_strength`` sin 2(``second_phase`` - theta) on every oscillator, whatever the network's own H."""

    every = (Parameter("second_strength", least=0.0), Parameter("second_phase", default=0.0))
    word = "second harmonic"

    interaction: Interaction = field(default_factory=lambda: OddSeries((0.0, 1.0)))
