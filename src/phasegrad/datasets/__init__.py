"""Data sets to learn: vowels, FM signals, XOR, small classics, images and a user's own arrays."""

from phasegrad.datasets.arrays import from_arrays
from phasegrad.datasets.augmentation import Shifts
from phasegrad.datasets.classics import CLASSICS as CLASSICS, classic, digits
from phasegrad.datasets.dataset import Dataset, Scaling
from phasegrad.datasets.fm import fm
from phasegrad.datasets.images import IMAGES as IMAGES, cifar10, fashion_mnist, mnist
from phasegrad.datasets.vowels import load_vowel_table as load_vowel_table, vowels
from phasegrad.datasets.xor import xor

__all__ = [
    "Dataset",
    "Scaling",
    "Shifts",
    "cifar10",
    "classic",
    "digits",
    "fashion_mnist",
    "fm",
    "from_arrays",
    "mnist",
    "vowels",
    "xor",
]
