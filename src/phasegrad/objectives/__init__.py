"""Objectives: what the outputs should do, as a cost with its force, its Hessian and its decision.

An objective sees only the phases of the outputs. Its force, minus the derivative of the cost, is what a nudge
applies to them. Where outputs stand for classes, the rule that turns phases into a class lives in the same object as
the cost, because the two must agree.
"""

from phasegrad.objectives.classes import ClassObjective
from phasegrad.objectives.distances import (
    ClassTargets,
    NearestTarget,
    OneHotPhases,
    OutputDifferences,
    PaperPair,
    PeriodicDistance,
)
from phasegrad.objectives.entropy import CosineCrossEntropy
from phasegrad.objectives.phases import PhaseTargets

#: Every objective for classes, by name; the paper's pair is the only one that is not consistent.
CLASS_OBJECTIVES: dict[str, type[ClassObjective]] = {
    kind.__name__: kind
    for kind in (PaperPair, NearestTarget, OutputDifferences, PeriodicDistance, OneHotPhases, CosineCrossEntropy)
}

__all__ = [
    "CLASS_OBJECTIVES",
    "ClassObjective",
    "ClassTargets",
    "CosineCrossEntropy",
    "NearestTarget",
    "OneHotPhases",
    "OutputDifferences",
    "PaperPair",
    "PeriodicDistance",
    "PhaseTargets",
]
