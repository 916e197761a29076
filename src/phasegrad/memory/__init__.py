"""Associative memory: patterns kept as stable states, and recalled from cues in which some pixels are wrong."""

from phasegrad.memory._capacity import Capacity as Capacity, capacity
from phasegrad.memory._learning import Flips as Flips, learn
from phasegrad.memory._memory import Memory, Recall as Recall, States as States
from phasegrad.memory._patterns import corrupt, letters
from phasegrad.memory._rules import hebbian, pseudo_inverse

__all__ = [
    "Memory",
    "capacity",
    "corrupt",
    "hebbian",
    "learn",
    "letters",
    "pseudo_inverse",
]
