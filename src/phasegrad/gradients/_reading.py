"""The one place where phases become a gradient: of every sample, or summed over a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import Array, BoolArray, FloatArray, joint_shape, last_axis_array, positive_float
from phasegrad.dynamics import System, build_system, wrapped
from phasegrad.equilibria import Equilibrium
from phasegrad.gradients._local import energy_slopes, local_products
from phasegrad.gradients._problem import asked_names, collected, in_units
from phasegrad.networks import Network

#: States that a gradient is made of: the weight of each, one for all samples or (B, 1), and its phases (B, N).
Weighted: TypeAlias = Sequence[tuple[complex | Array, Array]]


@dataclass(frozen=True)
class Reading:
    """Slopes (B, width) by name that a method read off its states under a nudge.

    ``found`` (B,) are the samples whose states were found, ``nudged`` the equilibria whose status counts. Where there
    is noise, ``deviation`` is its standard deviation, (B, width), in the units asked for.
    """

    beta: float
    values: Mapping[str, Array]
    found: BoolArray
    nudged: Sequence[Equilibrium] = ()
    deviation: Mapping[str, FloatArray] | None = None


def gradient_from_phases(
    network: Network, free: ArrayLike, nudged: ArrayLike, beta: float, *, opposite: ArrayLike | None = None,
    inputs: ArrayLike | None = None, wrt: str | Iterable[str] = "omega", frequencies: str = "relative",
) -> dict[str, FloatArray]:  # fmt: skip
    """Return the gradient that phases show, those of a simulation, a circuit or a laboratory alike.

    Nothing is solved: every entry is a difference of what its own node or edge has in two states, over the nudge. How
    good the phases are is for the caller to know. Where nothing holds a common phase, phases are counted from the
    reference: what a meter adds to that one is in every entry by relative frequencies, and in none by raw ones, which
    have their mean taken away.

    Parameters
    ----------
    network : Network
        What the phases belong to, with reciprocal coupling; of its parameters only those are used that a slope needs.
    free, nudged : array_like, shape (..., N)
        Phases of all oscillators without a nudge, and under one of strength ``beta``. Full turns do not matter, nor
        does a common phase where nothing holds one.
    beta : float
        The strength of the nudge.
    opposite : array_like, shape (..., N), optional
        Phases under -beta; if given, the gradient is centred.
    inputs : array_like, shape (..., n_in), optional
        The data, where there were any.
    wrt, frequencies
        As for `adjoint`.

    See Also
    --------
    plan_measurement : Which nudge and how many readings.
    Readout : A phase meter: noise, averaging, bits.
    centred : Nudges of +beta and -beta; error of order beta squared.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network, target = pg.layered(2, 5, 2, seed=0), [-0.2, 0.2]
    >>> free = pg.find_equilibrium(network, [0.5, -0.5])
    >>> nudged = pg.find_equilibrium(network, [0.5, -0.5], nudge=pg.Nudge(pg.PhaseTargets(), target, 0.001))
    >>> slope = pg.gradients.gradient_from_phases(network, free.phases, nudged.phases, 0.001, inputs=[0.5, -0.5])
    >>> round(pg.gradients.cosine(slope["omega"], pg.adjoint(network, free, pg.PhaseTargets(), target).omega), 6)
    1.0
    """
    owner = "gradient_from_phases"
    if not isinstance(network, Network):
        raise TypeError(f"{owner} takes a Network first. Got {type(network).__name__}.")
    if not network.reciprocal:
        raise ValueError(
            f"{owner} needs reciprocal coupling: without it the shift of the phases is not the gradient. Use adjoint."
        )
    beta = positive_float("beta", beta, owner)
    names = asked_names(owner, network, wrt, frequencies, data=inputs is not None)
    given = {"free": free, "nudged": nudged} | ({} if opposite is None else {"opposite": opposite})
    read = {
        name: last_axis_array(name, each, network.size, "one per oscillator", owner) for name, each in given.items()
    }
    system, own = build_system(network, inputs)
    shape = own
    for name, each in read.items():
        shape = joint_shape(shape, each.shape[:-1], ("Samples", f"'{name}' phases"), "Give the same number of each.")
    system = system.take(np.broadcast_to(np.arange(system.batch).reshape(own), shape).ravel())
    flat = [np.broadcast_to(each, (*shape, network.size)).reshape(-1, network.size) for each in read.values()]
    base, states = brought_together(network, flat[0], flat[1:] if opposite is not None else [flat[1], flat[0]])
    span = beta if opposite is None else 2 * beta
    values = combined(network, system, names, base, [(1 / span, states[0]), (-1 / span, states[1])])
    units = {name: in_units(network, name, slope, frequencies) for name, slope in values.items()}
    return {name: slope.reshape((*shape, slope.shape[-1])) for name, slope in units.items()}


def brought_together(network: Network, free: Array, others: Sequence[Array]) -> tuple[FloatArray, list[FloatArray]]:
    """Return phases (B, N) that were read, in one gauge and without full turns between a state and the free one."""
    placed = [each - each[:, [network.reference]] if network.pinned else each for each in (free, *others)]
    base = np.asarray(placed[0])
    # A shift is the same on every turn of the circle.
    return base, [base + wrapped(each - base) for each in placed[1:]]


def combined(network: Network, system: System, wrt: Sequence[str], free: Array, states: Weighted) -> dict[str, Array]:
    """Return the real part of the sum of weight * dE/dp over states, for every parameter asked for.

    Without an energy the shift of the phases stands in for the response, at the ``free`` phases (B, N).
    """
    if not network.reciprocal:
        shift = np.sum([weight * phases for weight, phases in states], axis=0)
        shift = -system.gauged(np.real(shift))
        return collected(network, wrt, local_products(network, system, wrt, free, shift))
    slopes = [(weight, energy_slopes(network, system, wrt, phases)) for weight, phases in states]
    total = {name: np.real(np.sum([weight * slope[name] for weight, slope in slopes], axis=0)) for name in wrt}
    return collected(network, wrt, total)
