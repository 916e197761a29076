"""Objectives: what the outputs should do, as a cost with its force, its Hessian and its decision.

An objective sees only the phases of the outputs. Its force, minus the derivative of the cost, is what a nudge
applies to them. Where outputs stand for classes, the rule that turns phases into a class lives in the same object as
the cost, because the two must agree.
"""

from phasegrad.objectives._classes import ClassObjective
from phasegrad.objectives._cost import Cost, check_cost as check_cost
from phasegrad.objectives._distances import (
    NearestTarget,
    OneHotPhases,
    OutputDifferences,
    PaperPair,
    PeriodicDistance,
)
from phasegrad.objectives._entropy import CosineCrossEntropy
from phasegrad.objectives._formulas import Formula as Formula, formula_of as formula_of
from phasegrad.objectives._phases import PhaseTargets
from phasegrad.objectives._torques import Torques as Torques

__all__ = [
    "ClassObjective",
    "CosineCrossEntropy",
    "Cost",
    "NearestTarget",
    "OneHotPhases",
    "OutputDifferences",
    "PaperPair",
    "PeriodicDistance",
    "PhaseTargets",
]

CLASS_OBJECTIVES: dict[str, type[ClassObjective]] = {
    kind.__name__: kind
    for kind in (PaperPair, NearestTarget, OutputDifferences, PeriodicDistance, OneHotPhases, CosineCrossEntropy)
}
