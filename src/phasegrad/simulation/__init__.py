"""Simulation: the dynamics of a network in time, what a trajectory shows, and the transition to synchrony."""

from phasegrad.simulation._amplitudes import AmplitudeTrajectory, simulate_amplitudes
from phasegrad.simulation._simulate import FRAMES, METHODS, simulate
from phasegrad.simulation._steps import runge_kutta_step
from phasegrad.simulation._trajectory import Trajectory
from phasegrad.simulation._transition import DISTRIBUTIONS, Transition, transition

__all__ = [
    "DISTRIBUTIONS",
    "FRAMES",
    "METHODS",
    "AmplitudeTrajectory",
    "Trajectory",
    "Transition",
    "runge_kutta_step",
    "simulate",
    "simulate_amplitudes",
    "transition",
]
