"""Reproduction: runs the pieces of studies here or on a cluster, and keeps what is finished."""

from phasegrad.reproduction.result import Reproduction
from phasegrad.reproduction.run import PieceError, Tally, reproduce

__all__ = ["PieceError", "Reproduction", "Tally", "reproduce"]
