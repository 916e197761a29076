"""The dynamics in time: from a network, times and a start to a trajectory."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import FloatArray, choice, finite_array, last_axis_array, positive_float, shaped_array
from phasegrad.equilibria import Equilibrium, random_phases
from phasegrad.networks import Network
from phasegrad.simulation._motion import Drive, Inputs, Motion, Nudges
from phasegrad.simulation._steps import Adaptive, FixedSteps, Steps
from phasegrad.simulation._trajectory import Trajectory

METHODS = ("auto", "adaptive", "rk4", "heun")
FRAMES = ("rotating", "laboratory")
#: Oscillators in all samples beyond which "auto" takes steps of one length.
_MANY = 10_000
# Share of the fastest time scale that a step with noise is.
_NOISY_STEP = 0.02
# The longest step with which a method is stable, in units of the fastest rate.
_STABLE = {"rk4": 2.78, "heun": 2.0}


def simulate(
    network: Network, times: ArrayLike, *, start: Any = None, inputs: Inputs = None, nudge: Nudges = None,
    noise: ArrayLike = 0.0, inertia: ArrayLike | None = None, damping: ArrayLike = 1.0, method: str = "auto",
    step: float | None = None, tolerance: float = 1e-9, frame: str = "rotating", seed: int | None = 0,
    progress: Callable[[float], object] | None = None,
) -> Trajectory:  # fmt: skip
    r"""Follow the oscillators in time.

    ``m_i d^2 theta_i / dt^2 + d_i d theta_i / dt = F_i(theta, t) + sqrt(2 D_i) xi_i(t)``, with F as `force` has it. All
    oscillators move but clamped inputs (and the reference of a grounded network without reciprocity). It works for
    every network and term, also where there is no equilibrium: a `Trajectory` says which oscillators are locked.

    Parameters
    ----------
    network : Network
    times : array_like, shape (T,)
        Increasing; the start is the state at the first one.
    start : array_like of shape (..., N), "zero", "random", Equilibrium or Trajectory, optional
        Where to begin: at phase zero (default), at given phases, at uniformly random ones, at an equilibrium, or where
        a trajectory ended, velocities included. Leading axes are a batch of starts.
    inputs : array_like of shape (..., n_in), or function of time, optional
        As in `find_equilibrium`; a function returns them at a time, always of one shape.
    nudge : Nudge, or function of time, optional
        A pull on the outputs, counted from the reference where nothing else fixes the frame, and of a real strength.
    noise : float or array_like, shape (N,)
        D: white noise of strength ``sqrt(2 D)`` acts on every oscillator that moves; alone, an oscillator of damping 1
        diffuses by ``2 D t``.
    inertia : float or array_like of shape (N,), optional
        m, positive: the swing equation. Velocities are zero at first, in the rotating frame.
    damping : float or array_like, shape (N,)
        d, positive; with inertia it may be zero.
    method : {"auto", "adaptive", "rk4", "heun"}
        "adaptive" is SciPy's DOP853, every sample for itself; "rk4" are Runge-Kutta steps of one length, compiled where
        the forces are sines; "heun" is Heun's method, of order one path by path and two in the mean with noise, which
        needs it. "auto" takes "heun" with noise, "rk4" beyond 10,000 oscillators in all samples, else "adaptive".
    step : float, optional
        The longest step of "rk4" and "heun". Left out, it follows from the fastest rate of change and, without noise,
        from the tolerance.
    tolerance : float
        Of the adaptive steps, absolute and relative.
    frame : {"rotating", "laboratory"}
        "rotating" turns uniformly with the sum of all frequencies over the sum of the damping, as they are at the first
        time, where no field and no clamped input fixes the frame: a locked network with reciprocal coupling comes to
        rest. "laboratory" does not turn. At the first time both agree.
    seed : int or None
        Of a random start and of the noise. Every sample has its own stream.
    progress : callable, optional
        Called with every time that was reached.

    Returns
    -------
    Trajectory

    See Also
    --------
    Trajectory : The phases of a network in time.
    force : The force on every oscillator.
    find_equilibrium : One certified equilibrium per sample.
    simulate_amplitudes : Oscillators with amplitudes.

    Examples
    --------
    >>> import numpy as np, phasegrad as pg
    >>> run = pg.simulate(pg.ring(5, omega=[-0.2, 0.1, 0.0, 0.3, -0.2]), np.linspace(0, 60, 121))
    >>> run.phases.shape, bool(run.locked.all()), round(float(run.order_parameter()[-1]), 4)
    ((121, 5), True, 0.9943)
    """
    owner = "simulate"
    if not isinstance(network, Network):
        raise TypeError(f"Expected a Network. Got {type(network).__name__}.")
    moments = _checked_times(times)
    choice("frame", frame, FRAMES, owner)
    size = network.size
    strength = _not_negative("noise", shaped_array("noise", noise, (size,), owner))
    mass, drag = _checked_bodies(inertia, damping, size)
    begun, speeds = _checked_start(start, network)
    motion = Motion.of(Drive(network, inputs, nudge), float(moments[0]), begun.shape[:-1], drag, mass)
    state = _first_state(motion, float(moments[0]), begun, speeds, start, seed)
    steps = _steps(motion, strength, method, step, tolerance, seed, float(moments[-1]))
    phases, velocities = _followed(motion, steps, state, moments, progress)
    if frame == "laboratory":
        turned = motion.turning[None, :, None]
        phases, velocities = phases + turned * (moments - moments[0])[:, None, None], velocities + turned
    shape = (moments.size, *motion.shape, size)
    return Trajectory(moments, phases.reshape(shape), velocities.reshape(shape), network, frame)


def _followed(
    motion: Motion, steps: Steps, state: FloatArray, moments: FloatArray, progress: Callable[[float], object] | None
) -> tuple[FloatArray, FloatArray]:
    """Return phases and velocities (T, B, N) at the times asked for."""
    phases, velocities = np.empty((2, moments.size, state.shape[0], motion.size))
    for k, moment in enumerate(moments.tolist()):
        if k:
            state = steps.between(state, float(moments[k - 1]), moment)
        phases[k] = motion.placed(moment, state[:, : motion.size])
        velocities[k] = motion.velocities(moment, state)
        if progress is not None:
            progress(moment)
    return phases, velocities


def _steps(
    motion: Motion, noise: FloatArray, method: str, step: float | None, tolerance: float, seed: int | None, last: float
) -> Steps:
    """Return what integrates: the method of a word, or the one that suits."""
    owner, noisy = "simulate", bool(np.any(noise))
    choice("method", method, METHODS, owner)
    tolerance = positive_float("tolerance", tolerance, owner)
    if method == "auto":
        many = motion.rows.size * motion.size > _MANY or step is not None
        method = "heun" if noisy else "rk4" if many else "adaptive"
    if noisy and method != "heun":
        raise ValueError(f"Noise needs method='heun': {method!r} steps assume smooth forces. Or leave the noise out.")
    if method == "adaptive":
        if step is not None:
            raise ValueError("The 'step' parameter of simulate is for 'rk4' and 'heun'. Adaptive steps need none.")
        return Adaptive(motion, tolerance, last)
    fastest = max(motion.fastest, 1e-300)
    if step is None:
        # The error of a Runge-Kutta step h at rate s is (h s)^5 / 120.
        share = _NOISY_STEP if noisy else min(1.0, (120 * tolerance) ** 0.25 if method == "rk4" else tolerance**0.5)
        length = share / fastest
    else:
        length = positive_float("step", step, owner)
        relaxes = fastest if motion.inertia is not None else float(np.max(motion.first.stiffest / motion.damping))
        if length * relaxes > _STABLE[method]:
            warnings.warn(
                f"Steps of {length:g} are longer than {method!r} can be trusted with here. Give a 'step' of "
                f"{_STABLE[method] / relaxes:.2g} at most.",
                stacklevel=3,
            )
    return FixedSteps.of(motion, length, method, noise if noisy else None, seed)


def _first_state(
    motion: Motion, time: float, begun: FloatArray, speeds: FloatArray | None, start: Any, seed: int | None
) -> FloatArray:
    """Return the flat states (B, N) or, with inertia, (B, 2N) to begin with."""
    size, batch = motion.size, motion.rows.size
    random = isinstance(start, str) and start == "random"
    phases = motion.placed(time, random_phases(batch, size, seed) if random else _flat(begun, motion))
    if motion.inertia is None:
        return phases
    return np.concatenate([phases, np.zeros_like(phases) if speeds is None else _flat(speeds, motion)], axis=1)


def _flat(values: FloatArray, motion: Motion) -> FloatArray:
    return np.broadcast_to(values, (*motion.shape, motion.size)).reshape(-1, motion.size).copy()


def _checked_times(times: ArrayLike) -> FloatArray:
    moments = finite_array("times", times, "simulate")
    if moments.ndim != 1 or moments.size < 1:
        raise ValueError(f"The 'times' parameter of simulate must be a list of times. Got shape {moments.shape}.")
    back = np.flatnonzero(np.diff(moments) <= 0)
    if back.size:
        before, after = moments[back[0] : back[0] + 2]
        raise ValueError(
            f"The 'times' parameter of simulate must increase from one to the next. Got {after:g} after {before:g}."
        )
    return moments


def _checked_start(start: Any, network: Network) -> tuple[FloatArray, FloatArray | None]:
    """Return phases (..., N) to begin with, and velocities where a trajectory has them."""
    if start is None or isinstance(start, str):
        choice("start", start or "zero", ("zero", "random"), "simulate")
        return np.zeros(network.size), None
    if isinstance(start, Trajectory):
        turned = start.frame == "laboratory" and network.pinned
        if turned:
            raise ValueError("A trajectory to go on from must be in the rotating frame. Simulate it in that one first.")
        begun, speeds = start.phases[-1], start.velocities[-1]
        return last_axis_array("start", begun, network.size, "one phase per oscillator", "simulate"), speeds
    begun = start.phases if isinstance(start, Equilibrium) else start
    if np.iscomplexobj(begun):
        raise ValueError("The 'start' parameter of simulate must be a real state, not one under a complex nudge.")
    return last_axis_array("start", begun, network.size, "one phase per oscillator", "simulate"), None


def _checked_bodies(inertia: ArrayLike | None, damping: ArrayLike, size: int) -> tuple[FloatArray | None, FloatArray]:
    drag = _not_negative("damping", shaped_array("damping", damping, (size,), "simulate"))
    if inertia is None:
        if np.any(drag == 0):
            raise ValueError(
                f"Oscillator {int(np.argmin(drag))} has no damping and no inertia, so that no force can move it. Give "
                "damping above 0, or inertia."
            )
        return None, drag
    mass = _not_negative("inertia", shaped_array("inertia", inertia, (size,), "simulate"))
    if np.any(mass == 0):
        some = f"Oscillator {int(np.argmin(mass))} has none"
        raise ValueError(
            f"The 'inertia' parameter of simulate must be positive for every oscillator. {some}: leave 'inertia' out, "
            "or give it a small one."
        )
    return mass, drag


def _not_negative(name: str, values: FloatArray) -> FloatArray:
    if np.any(values < 0):
        node = int(np.argmax(values < 0))
        raise ValueError(f"The '{name}' parameter of simulate must not be negative. Got {values[node]:g} at [{node}].")
    return values
