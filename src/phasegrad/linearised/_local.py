r"""Local terms: what acts on every oscillator by its own phase alone, such as a second harmonic.

    F_i = f_i(theta_i),   L_ii = -f_i'(theta_i)

Matrix products know phasors; these are added to force, energy and diagonal by the terms' own formulas.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phasegrad._validation import Array, FloatArray, IntArray
from phasegrad.dynamics import System
from phasegrad.graphs import Graph
from phasegrad.terms import Term, Values

# Compiled code finds multiples of an angle one after the other, with an error that grows with each.
_FEW_HARMONICS = 8


@dataclass(frozen=True, eq=False)
class LocalTerms:
    """The local terms of a system that are no phasors, each with its values on some oscillators."""

    graph: Graph
    terms: tuple[tuple[Term, Values], ...]

    @classmethod
    def of(cls, system: System, nodes: IntArray) -> LocalTerms:
        """Return those of a system, on the oscillators ``nodes``."""
        terms = [term for term in system.terms if term.local and not term.phasor]
        values = [{each.name: system.values[each.name][:, nodes] for each in term.parameters} for term in terms]
        return cls(system.graph, tuple(zip(terms, values, strict=True)))

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.terms)

    def force(self, phases: Array) -> Array:
        """Return their force, (B, n)."""
        return np.asarray(sum(term.force(self.graph, values, phases) for term, values in self.terms))

    def energy(self, phases: Array) -> Array:
        """Return their energy, (B,)."""
        return np.asarray(sum(term.energy(self.graph, values, phases) for term, values in self.terms))

    def energies(self, phases: Array) -> Array:
        """Return the energy of every oscillator, (B, n)."""
        total = np.zeros(phases.shape)
        for term, values in self.terms:
            columns = {name: np.broadcast_to(each, phases.shape).reshape(-1, 1) for name, each in values.items()}
            total += term.energy(self.graph, columns, phases.reshape(-1, 1)).reshape(phases.shape)
        return total

    def stiffness(self, phases: Array) -> Array:
        """Return what they add to the diagonal of the Laplacian, (B, n)."""
        parts = (term.stiffness(self.graph, values, phases).diagonal for term, values in self.terms)
        return np.asarray(sum(part for part in parts if part is not None))

    def stiffest(self) -> Array:
        """Return a bound on its absolute value, (b, n)."""
        parts = (term.stiffest(self.graph, values).diagonal for term, values in self.terms)
        return np.asarray(sum(part for part in parts if part is not None))

    def harmonics(self) -> FloatArray | None:
        """Return x_k and y_k, (m, 2, n), of a force sum_k y_k cos(k theta) - x_k sin(k theta) of all samples.

        None where the force is no such sum, or one that is too long for compiled code.
        """
        found = [term.harmonics(values) for term, values in self.terms]
        series = [np.stack(each, axis=1) for each in found if each is not None]
        count = max((each.shape[0] for each in series), default=0)
        if len(series) < len(found) or count > _FEW_HARMONICS or any(each.shape[2] != 1 for each in series):
            return None
        return np.sum([np.pad(each[:, :, 0], ((0, count - each.shape[0]), (0, 0), (0, 0))) for each in series], axis=0)
