"""Measurement: phase meters, and how to measure a gradient with one: which nudge, how many readings, at what cost."""

from phasegrad.measurement._planning import Measurement as Measurement, plan_measurement
from phasegrad.measurement._readouts import Readout

__all__ = [
    "Readout",
    "plan_measurement",
]
