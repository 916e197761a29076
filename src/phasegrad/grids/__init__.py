"""Power grids: a lossless grid as an oscillator network, its stressed lines, its margin and the relief of a line."""

from phasegrad.grids._analysis import GridAnalysis as GridAnalysis, analyse
from phasegrad.grids._grid import CASES as CASES, Grid, from_case, load

__all__ = ["Grid", "analyse", "from_case", "load"]
