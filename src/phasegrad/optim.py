"""Optimisers and learning-rate schedules for `Plan(optimizer=..., schedule=...)`."""

from phasegrad.training import Adam, Constant, Cosine, Momentum, Staircase

__all__ = ["Adam", "Constant", "Cosine", "Momentum", "Staircase"]
