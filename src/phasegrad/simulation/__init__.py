"""Simulation: the dynamics of a network in time, what a trajectory shows, and the transition to synchrony."""

from phasegrad.simulation._amplitudes import AmplitudeTrajectory as AmplitudeTrajectory, simulate_amplitudes
from phasegrad.simulation._simulate import FRAMES as FRAMES, METHODS as METHODS, simulate
from phasegrad.simulation._steps import runge_kutta_step as runge_kutta_step
from phasegrad.simulation._trajectory import Trajectory
from phasegrad.simulation._transition import DISTRIBUTIONS as DISTRIBUTIONS, Transition as Transition, transition

__all__ = [
    "Trajectory",
    "simulate",
    "simulate_amplitudes",
    "transition",
]
