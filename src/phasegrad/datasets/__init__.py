"""Data sets to learn: vowels, FM signals, XOR, small classics and a user's own arrays; and power grids."""

from phasegrad.datasets import grids
from phasegrad.datasets.arrays import from_arrays
from phasegrad.datasets.classics import CLASSICS, classic, digits
from phasegrad.datasets.dataset import Dataset, Scaling
from phasegrad.datasets.fm import fm
from phasegrad.datasets.grids import Grid
from phasegrad.datasets.vowels import load_vowel_table, vowels
from phasegrad.datasets.xor import xor

__all__ = [
    "CLASSICS",
    "Dataset",
    "Grid",
    "Scaling",
    "classic",
    "digits",
    "fm",
    "from_arrays",
    "grids",
    "load_vowel_table",
    "vowels",
    "xor",
]
