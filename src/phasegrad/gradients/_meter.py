"""What gradients ask of a phase meter; `phasegrad.measurement.Readout` is one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from phasegrad._validation import Array, FloatArray
from phasegrad.gradients._nudging import NudgedStates
from phasegrad.gradients._problem import Problem
from phasegrad.gradients._schemes import Scheme


class Meter(ABC):
    """A meter that stands between the phases of nudged states and the gradient."""

    @property
    @abstractmethod
    def deviation(self) -> float:
        """How far what it shows is from the phase, in the root mean square."""

    @abstractmethod
    def read(self, phases: Array, stream: np.random.Generator) -> FloatArray:
        """Return what it shows of phases of any shape."""

    @abstractmethod
    def best_beta(self, problem: Problem, scheme: Scheme, nudge: str) -> float:
        """Return the nudge whose gradient, read with this meter, is expected to be nearest to the exact one."""

    @abstractmethod
    def deviations(self, problem: Problem, states: NudgedStates, nudge: str) -> dict[str, FloatArray]:
        """Return the standard deviation of every entry of a gradient read with this meter, (B, width) by name."""


def checked_meter(readout: Any, owner: str) -> Meter:
    """Return a readout that is one."""
    if not isinstance(readout, Meter):
        kind = "the class: call it" if isinstance(readout, type) else type(readout).__name__
        raise TypeError(f"The 'readout' parameter of {owner} must be a Readout, such as Readout(0.01). Got {kind}.")
    return readout
