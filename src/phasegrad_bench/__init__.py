"""Benchmarks: speed as ratios against the plain way, CPU time, medians, interleaved within one run."""

from phasegrad_bench._all import measure
from phasegrad_bench._plain import PlainTraining
from phasegrad_bench._sparse import SIZES

__all__ = ["SIZES", "PlainTraining", "measure"]
