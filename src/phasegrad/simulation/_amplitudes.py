r"""Amplitudes: oscillators that have a size as well as a phase (Stuart-Landau), coupled as the phase model's are.

    dz_i / dt = [a (1 - |z_i|^2) + i omega_i] z_i + sum_j K_ij [exp(-i alpha_ij) z_j - z_i - q_ij conj(z_j)]
                + h_i exp(i psi_i)

Every oscillator is attracted to the unit circle at the rate a. With z = r exp(i theta) its phase obeys

    d theta_i / dt = omega_i + sum_j K_ij (r_j / r_i) [sin(theta_j - theta_i - alpha_ij) + q_ij sin(theta_i + theta_j)]
                     + (h_i / r_i) sin(psi_i - theta_i)

and all amplitudes differ from 1 by terms of order (K + h) / a: strong attraction makes it the phase model. Weak
attraction lets oscillators that pull each other apart die.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import (
    Array,
    FloatArray,
    finite_array,
    frozen_array,
    joint_shape,
    positive_float,
)
from phasegrad.dynamics import System, build_system
from phasegrad.networks import Network
from phasegrad.terms import Sine

_OWNER = "simulate_amplitudes"
_KNOWN = ("omega", "coupling", "coupling_reverse", "lag", "anisotropy", "field_strength", "field_phase")


@dataclass(frozen=True, eq=False)
class AmplitudeTrajectory:
    """What oscillators with amplitudes did.

    Attributes
    ----------
    times : ndarray, shape (T,)
    states : ndarray of complex, shape (T, ..., N)
        z = r exp(i theta), in the frame of the phase model: it turns with the mean frequency where nothing fixes it.

    See Also
    --------
    simulate_amplitudes : Stuart-Landau oscillators in time.
    Trajectory : The phases of a network in time.

    Examples
    --------
    >>> import phasegrad as pg
    >>> run = pg.simulation.simulate_amplitudes(pg.networks.ring(4), [0.0, 1.0])
    >>> run.amplitudes[-1].round(6).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    times: FloatArray
    states: Array

    @property
    def amplitudes(self) -> FloatArray:
        """R = |z|, shape (T, ..., N)."""
        return frozen_array(np.abs(self.states))

    @property
    def phases(self) -> FloatArray:
        """Theta, shape (T, ..., N), followed over full turns from one time to the next."""
        return frozen_array(np.unwrap(np.angle(self.states), axis=0))


def simulate_amplitudes(
    network: Network, times: ArrayLike, *, attraction: float = 1.0, start: ArrayLike | None = None,
    inputs: ArrayLike | None = None, tolerance: float = 1e-9,
) -> AmplitudeTrajectory:  # fmt: skip
    """Follow oscillators that have amplitudes, too, in time, every sample for itself.

    Parameters
    ----------
    network : Network
        With sine coupling: frequencies, couplings, lag, anisotropy and bias fields mean what they do for phases.
    times : array_like, shape (T,)
        Increasing; the first is where it starts.
    attraction : float
        The rate a at which amplitudes relax to 1, or rather 2 a near it. The phase model is its limit.
    start : array_like of complex, shape (..., N), optional
        z at the first time; real numbers are phases on the unit circle. All at phase zero if left out.
    inputs : array_like, shape (..., n_in), optional
        Frequencies, or phases at which inputs are clamped on the unit circle.
    tolerance : float
        Relative error of a step.

    See Also
    --------
    simulate : The phase model in time.

    Examples
    --------
    Two oscillators whose frequencies are far apart quench each other:

    >>> import phasegrad as pg
    >>> network = pg.Network([[0, 1]], 1.5, [-3.0, 3.0])
    >>> bool(pg.simulation.simulate_amplitudes(network, [0, 50], start=[0.0, 1.0]).amplitudes[-1].max() < 1e-6)
    True
    """
    attraction = positive_float("attraction", attraction, _OWNER)
    tolerance = positive_float("tolerance", tolerance, _OWNER)
    moments = finite_array("times", times, _OWNER)
    if moments.ndim != 1 or moments.size < 1 or np.any(np.diff(moments) <= 0):
        raise ValueError(f"The 'times' parameter of {_OWNER} must be numbers that increase, shape (T,). Got {times!r}.")
    system, own = build_system(network, inputs)
    _refuse_others(network)
    first = _begun(network, start)
    shape = joint_shape(own, first.shape[:-1], ("Inputs", "a start"))
    rows = np.broadcast_to(np.arange(system.batch).reshape(own), shape).ravel()
    system = system.take(rows)
    state = np.array(np.broadcast_to(first, (*shape, network.size)).reshape(-1, network.size))
    if network.clamps_inputs:
        state[:, network.held] = np.exp(1j * system.held_phases)

    states = np.empty((moments.size, *state.shape), dtype=complex)
    for row, one in enumerate(state):
        states[:, row] = _followed(network, system.take(np.array([row])), attraction, one, moments, tolerance)
    return AmplitudeTrajectory(
        frozen_array(moments), frozen_array(states.reshape((moments.size, *shape, network.size)))
    )


def _followed(
    network: Network, system: System, attraction: float, state: Array, moments: FloatArray, tolerance: float
) -> Array:
    """Return the states (T, N) of one sample, whose steps follow from its own error alone."""
    if moments.size == 1:
        return state[None]
    from scipy.integrate import solve_ivp

    def rate(_: float, flat: Array) -> Array:
        return _rates(network, system, attraction, flat[None])[0]

    span = moments[0], moments[-1]
    run = solve_ivp(rate, span, state, "DOP853", moments, rtol=tolerance, atol=tolerance * 1e-3)
    if not run.success:
        raise ArithmeticError(f"The integration stopped at time {run.t[-1]:g}: {run.message}")
    return np.asarray(run.y.T)


def _rates(network: Network, system: System, attraction: float, state: Array) -> Array:
    """Return dz / dt of states (B, N)."""
    graph, values = network.graph, system.values
    forward = values["coupling"]
    backward = values.get("coupling_reverse", forward)
    late, share = np.exp(-1j * values.get("lag", np.zeros((1, 1)))), values.get("anisotropy", np.zeros((1, 1)))
    first, second = (np.take(state, ends, axis=1) for ends in (graph.first, graph.second))
    on_first = forward * (late * second - first - share * np.conj(second))
    on_second = backward * (late * first - second - share * np.conj(first))
    rates = (attraction * (1 - np.abs(state) ** 2) + 1j * values["omega"]) * state + graph.at_ends(on_first, on_second)
    if "field_strength" in values:
        rates = rates + values["field_strength"] * np.exp(1j * values["field_phase"])
    if network.clamps_inputs:
        rates[:, network.held] = 0.0
    return rates


def _begun(network: Network, start: ArrayLike | None) -> Array:
    """Return z (..., N) at the first time."""
    if start is None:
        return np.ones(network.size, dtype=complex)
    given = np.asarray(start)
    parts = [finite_array("start", part, _OWNER) for part in (given.real, given.imag)]
    if given.ndim == 0 or given.shape[-1] != network.size:
        raise ValueError(
            f"The 'start' parameter of {_OWNER} must have a last axis of length {network.size}, one number "
            f"per oscillator. Got shape {given.shape}."
        )
    return parts[0] + 1j * parts[1] if np.iscomplexobj(given) else np.exp(1j * parts[0])


def _refuse_others(network: Network) -> None:
    others = [name for name in network.parameters if name not in _KNOWN]
    if others:
        raise ValueError(
            f"The amplitude model has frequencies, couplings and bias fields, and this network has {others[0]!r}. "
            "Follow its phases by simulate."
        )
    if type(network.interaction) is not Sine:
        raise ValueError(
            f"Amplitudes are coupled linearly, which is Sine() for phases. Got the interaction {network.interaction!r}."
        )
