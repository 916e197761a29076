"""Cheap proofs of stability, that need no factorisation of a sample's own.

Where every weight K H'(theta_j - theta_i) is positive (for the sine: every angle across an edge below pi / 2), and
every weight of a sum of phases too, the Laplacian of a connected grounded graph is positive definite, and without
reciprocity all its eigenvalues have positive real parts.
"""

from __future__ import annotations

import numpy as np

from phasegrad._validation import Array, BoolArray, FloatArray
from phasegrad.dynamics import System, wrapped
from phasegrad.linearised._factors import Cholesky, chunks
from phasegrad.linearised._local import LocalTerms
from phasegrad.linearised._proofs import rounding_units

#: Share of the largest that an eigenvalue can be within which the smallest one counts as zero.
MARGINAL = 1e-10
# The cosine of 88 degrees: wider angles leave too little of the weights for one bound to settle a whole batch.
_SURE = 0.03


def nearly_zero(system: System) -> FloatArray:
    """Return what an eigenvalue of each sample must exceed to be told from zero, (B,)."""
    return np.broadcast_to(MARGINAL * system.scales[1], (system.batch,))


def meets_angle_condition(system: System, phases: Array) -> BoolArray:
    """Return where every weight of the Laplacian is positive beyond rounding, the nudge left aside, (B,)."""
    positive = np.ones(phases.shape[0], dtype=bool)
    units = rounding_units(phases)[:, None]
    for term in system.terms:
        stiffness = term.stiffness(system.graph, system.values, phases)
        if stiffness.outer is not None:
            return np.zeros_like(positive)
        for weight, bound in stiffness.beside(term.stiffest(system.graph, system.values)):
            if weight is not None:
                positive &= np.all((bound == 0) | (weight > units * bound), axis=1)
    return positive


def largest_angles(system: System, phases: Array) -> FloatArray:
    """Return the largest angle across an edge of every sample, (B,), a part of the batch at a time."""
    largest = np.zeros(phases.shape[0])
    for part in chunks(phases.shape[0], system.graph.n_edges):
        angles = np.abs(system.graph.angles(phases[part]))
        if np.max(angles, initial=0.0) > np.pi:
            angles = np.abs(wrapped(angles))
        largest[part] = np.max(angles, axis=1, initial=0.0)
    return largest


def surely_stable(system: System, phases: Array) -> BoolArray:
    """Return samples of one sine-coupled network that a bound proves stable, (B,).

    With couplings and fields of one sign and every angle below a < pi/2, each weight K cos(angle) is at least cos(a) K.
    So the Laplacian is at least cos(a) times the one at rest, and one Cholesky factorisation of that settles all
    samples whose nudge does not bend the other way.
    """
    none = np.zeros(system.batch, dtype=bool)
    if system.batch < 2:
        return none
    couplings = [k for term in system.terms if (k := term.phasor_edges(system.values)) is not None]
    if any(np.any(coupling < 0) for coupling in couplings):
        return none
    # No angle across an edge is wider than all phases are apart.
    widest = np.ptp(phases, axis=1)
    wide = np.flatnonzero(widest >= np.pi / 2)
    if wide.size:
        widest[wide] = largest_angles(system, phases[wide])
    sure = np.cos(widest) > _SURE
    for field in (found for term in system.terms if (found := term.phasor_field(system.values)) is not None):
        along = field[0] * np.cos(phases) + field[1] * np.sin(phases)
        sure &= np.all(along >= _SURE * np.hypot(*field), axis=1)
    local = LocalTerms.of(system, system.graph.free)
    if local:
        # Their weights may be negative: at least the same share of the most that they can be is asked for.
        sure &= np.all(local.stiffness(phases[:, system.graph.free]) >= _SURE * local.stiffest(), axis=1)
    rounding = system.eigenvalue_rounding
    if system.pull is not None:
        sure &= _bends_little(system, phases, rounding)
    if not np.any(sure):
        return none
    return sure if Cholesky.of(system.stiffest_laplacian(), 2 * float(rounding[0]) / _SURE) is not None else none


def _bends_little(system: System, phases: Array, rounding: FloatArray) -> BoolArray:
    """Return where no eigenvalue of a nudge's curvature is below minus the rounding error (Gershgorin), (B,)."""
    assert system.pull is not None
    bend = system.pull.hessian(phases)
    own = np.diagonal(bend, axis1=1, axis2=2)
    worst = np.min(own - (np.sum(np.abs(bend), axis=2) - np.abs(own)), axis=1)
    return np.asarray(worst >= -rounding)
