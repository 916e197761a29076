r"""The first-order correction of averaging: how far a circuit of finite eps settles from the phase model.

At the equilibrium theta of the phase model the couplings take from oscillator i the share

    l_i = 2 eps sum_j K_ij (1 - cos(theta_j - theta_i)),     A_i^2 = 1 - l_i / mu

of its gain, which leaves it the amplitude A_i. To first order in eps the force differs from that of the model by

    sum_j K_ij (A_j / A_i - 1) sin(theta_j - theta_i)          unequal amplitudes
    - mu^2 (A_i^4 - 1) / (16 eps)                              the third harmonic pulls the frequency
    + 2 eps omega_i sum_j K_ij sin(theta_j - theta_i)          unequal capacitors
    + eps omega_i^2 / 2                                        a tank's reactance is not linear in frequency

and the phases by the Laplacian's inverse of that. Left out are the
squares of these, such as (eps / mu)^2, and -mu^2 omega_i / 16, the pull of the harmonics on what capacitors do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import FloatArray, IntArray
from phasegrad.circuits._components import Components, usual_gain
from phasegrad.circuits._netlist import check_network, shifts
from phasegrad.dynamics import Nudge, build_system, laplacian
from phasegrad.equilibria import find_equilibrium
from phasegrad.networks import Network
from phasegrad.objectives import Torques

_Pull = tuple[IntArray, IntArray, FloatArray, FloatArray]
#: Radians between a circuit and the phase model that a user is warned of.
LARGE_SHIFT = 0.1
# The smallest eps that is within reach: settling takes 6 / eps cycles, each of 60 steps or more.
_LEAST_EPS = 1e-3
_FINER = 0.8


class GainError(ValueError):
    """The couplings would take all gain from an oscillator."""


def averaging_shift(
    network: Network, components: Components, inputs: ArrayLike | None = None, *, torques: ArrayLike | None = None
) -> FloatArray:
    """Return by how much the phases of a circuit differ from the phase model to first order in eps, shape (N,).

    It is computed from the phase model alone; nothing that was measured enters. Subtract it from what a circuit shows.
    Raises ValueError where the phase model has no stable equilibrium.

    See Also
    --------
    circuits.Circuit : A network as a circuit, and a device.
    circuits.Components : Frequency, impedance and coupling of the tanks.

    Examples
    --------
    >>> import phasegrad as pg
    >>> network = pg.networks.ring(3, omega=[0.3, 0.0, -0.3])
    >>> shift = pg.circuits.averaging_shift(network, pg.circuits.Components(eps=0.01))
    >>> shift.shape, bool(abs(shift).max() < 0.01)
    ((3,), True)
    """
    check_network(network)
    pull = None if torques is None else Nudge(Torques(), torques, 1.0)
    state = find_equilibrium(network, inputs, nudge=pull)
    if not np.all(state.stable):
        raise ValueError(
            "The phase model of this circuit has no stable equilibrium, from which a shift could be counted."
        )
    phases = state.phases
    system, _ = build_system(network, inputs)
    values = {name: each[0] for name, each in system.values.items()}
    omega = values["omega"] + shifts(network, torques)
    pulls = _pulls(network, values, phases)
    eps, gain = components.eps, components.gain
    loads = [_at(network, sink, np.abs(k) - k * np.cos(d)) for sink, _, k, d in pulls]
    share = 1 - 2 * eps / gain * np.sum(loads, axis=0)
    if np.any(share[network.free] <= 0):
        raise GainError("The couplings would take all gain from an oscillator. Choose a smaller eps or a larger gain.")
    if network.clamps_inputs:
        share[network.held] = 1.0
    amplitude = np.append(np.sqrt(share), 1.0)
    sines = np.sum([_at(network, sink, k * np.sin(d)) for sink, _, k, d in pulls], axis=0)
    unequal = [
        _at(network, sink, k * (amplitude[source] / amplitude[sink] - 1) * np.sin(d)) for sink, source, k, d in pulls
    ]
    extra = (
        np.sum(unequal, axis=0) - gain**2 * (share**2 - 1) / (16 * eps) + 2 * eps * omega * sines + eps * omega**2 / 2
    )
    if network.pinned:
        extra = extra - extra.mean()
    shift = np.zeros(network.size)
    shift[network.free] = np.linalg.solve(laplacian(network, phases, inputs), extra[network.free])
    return shift


def largest_shift(
    network: Network, components: Components, inputs: ArrayLike | None, torques: ArrayLike | None
) -> float:
    """Return the largest predicted shift in radians: infinite beyond the first order, 0 where nothing is predicted."""
    try:
        return float(np.max(np.abs(averaging_shift(network, components, inputs, torques=torques))))
    except GainError:
        return math.inf
    except ValueError:
        return 0.0


def finer_components(components: Components, shift_of: Callable[[Components], float]) -> tuple[Components, float]:
    """Return components of the largest eps whose shift is not large, or of the smallest within reach, and the shift.

    The gain falls with eps: at a constant gain the pull of the third harmonic would stay.
    """
    finer, shift = components, shift_of(components)
    while shift > LARGE_SHIFT and finer.eps > _LEAST_EPS:
        eps = max(_FINER * finer.eps, _LEAST_EPS)
        finer = replace(components, eps=eps, gain=usual_gain(eps))
        shift = shift_of(finer)
    return finer, shift


def _pulls(network: Network, values: Mapping[str, FloatArray], phases: FloatArray) -> list[_Pull]:
    """Return who is pulled by whom, how strongly, over which difference; a field's source has the number N."""
    first, second = network.edges.T
    across = phases[second] - phases[first]
    found = [(first, second, values["coupling"], across), (second, first, values["coupling"], -across)]
    if "field_strength" in values:
        nodes = np.arange(network.size)
        toward = values["field_phase"] - phases
        found.append((nodes, np.full(network.size, network.size), values["field_strength"], toward))
    return found


def _at(network: Network, nodes: IntArray, each: FloatArray) -> FloatArray:
    return np.asarray(np.bincount(nodes, each, minlength=network.size), dtype=np.float64)
