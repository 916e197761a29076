"""Reproduction: runs the pieces of studies here or on a cluster and keeps what is finished; verifies in one go."""

from phasegrad_paper.reproduction.folder import cpu_seconds_of
from phasegrad_paper.reproduction.identity import fingerprint, versions
from phasegrad_paper.reproduction.result import Reproduction
from phasegrad_paper.reproduction.run import PieceError, Tally, reproduce
from phasegrad_paper.reproduction.verification import Verification, verify

__all__ = [
    "PieceError",
    "Reproduction",
    "Tally",
    "Verification",
    "cpu_seconds_of",
    "fingerprint",
    "reproduce",
    "verify",
    "versions",
]
