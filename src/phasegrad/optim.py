"""Optimisers and learning-rate schedules for `Plan(optimizer=..., schedule=...)`."""

from phasegrad.training import Adam, Cosine, Momentum

__all__ = ["Adam", "Cosine", "Momentum"]
