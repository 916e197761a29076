"""Benchmarks: speed as ratios against the plain way, CPU time, medians, interleaved within one run."""
