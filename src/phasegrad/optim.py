"""Optimisers and learning-rate schedules for `Plan(optimizer=..., schedule=...)`."""

from phasegrad.training import Adam, Constant, CosineDecay, Momentum, Staircase

__all__ = ["Adam", "Constant", "CosineDecay", "Momentum", "Staircase"]
