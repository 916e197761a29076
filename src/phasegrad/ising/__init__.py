"""Oscillator Ising machines: injection at twice the frequency makes oscillators bits, and annealing finds low energies.

`Problem` is what to solve, `solve` lets a machine search, `Solutions` are what it found, with certificates;
`simulated_annealing` is what to hold a machine against.
"""

from phasegrad.ising._annealing import simulated_annealing
from phasegrad.ising._problem import Problem
from phasegrad.ising._solutions import Solutions as Solutions
from phasegrad.ising._solve import solve

__all__ = [
    "Problem",
    "simulated_annealing",
    "solve",
]
