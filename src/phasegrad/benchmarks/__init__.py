"""Benchmarks: speed as ratios against the plain way, CPU time, medians, interleaved within one run."""

from phasegrad.benchmarks._all import measure
from phasegrad.benchmarks._plain import PlainTraining
from phasegrad.benchmarks._sparse import SIZES

__all__ = ["SIZES", "PlainTraining", "measure"]
