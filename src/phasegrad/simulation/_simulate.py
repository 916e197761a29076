"""The dynamics in time: from a network, times and a start to a trajectory."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from phasegrad._validation import (
    FloatArray,
    choice,
    finite_array,
    last_axis_array,
    positive_float,
    random_stream,
    shaped_array,
)
from phasegrad.equilibria import Equilibrium, random_phases
from phasegrad.networks import Network
from phasegrad.simulation._compiled import adaptive_steps, fixed_steps
from phasegrad.simulation._motion import Drive, Inputs, Motion, Nudges
from phasegrad.simulation._steps import Steps
from phasegrad.simulation._trajectory import Trajectory

METHODS = ("auto", "adaptive", "rk4", "heun")
FRAMES = ("rotating", "laboratory")
#: Oscillators in all samples beyond which "auto" takes steps of one length, if no steps are compiled.
_MANY = 10_000
# Share of the fastest time scale that a step with noise is.
_NOISY_STEP = 0.02
# Steps that follow from rates differ by whole powers of this, so that few lengths serve many samples.
_NOTCH = 2 ** (1 / 8)
# The longest step with which a method is stable, in units of the fastest rate, and its order.
_STABLE = {"rk4": 2.78, "heun": 2.0}
_ORDERS = {"rk4": 4, "heun": 2}
# About the share of the fastest time scale that an adaptive step is at the usual tolerances.
_ADAPTIVE_STEP = 2.0
# Oscillators and edges looked at, once per step, in a run that takes seconds; and how many times faster than the median
# an oscillator is that such a run is slow for.
_LONG = 5e7
_FAR = 20.0
#: Radians that an oscillator may turn: of more, not even four decimals of its phase are left.
_MOST_RADIANS = 1e12


def simulate(
    network: Network | Sequence[Network], times: ArrayLike, *, start: Any = None, inputs: Inputs = None,
    nudge: Nudges = None, noise: ArrayLike = 0.0, inertia: ArrayLike | None = None, damping: ArrayLike = 1.0,
    method: str = "auto", step: float | None = None, tolerance: float = 1e-9, frame: str = "rotating",
    seed: int | None = 0, progress: Callable[[float], object] | None = None,
) -> Trajectory:  # fmt: skip
    r"""Follow the oscillators in time.

    ``m_i d^2 theta_i / dt^2 + d_i d theta_i / dt = F_i(theta, t) + sqrt(2 D_i) xi_i(t)``, with F as `force` has it. All
    oscillators move but clamped inputs (and the reference of a grounded network without reciprocity). It works for
    every network and term, also where there is no equilibrium: a `Trajectory` says which oscillators are locked.

    Samples are what networks, starts and inputs broadcast to, and none depends on which others there are: not by a bit,
    as long as ``method`` is named.

    Parameters
    ----------
    network : Network or sequence of Network
        G networks with the same edges, roles and terms are one batch axis, (G,), which broadcasts with the leading axes
        of starts, inputs and targets: phases (T, G, N), and with starts of shape (S, 1, N) phases (T, S, G, N). Each
        has a rotating frame of its own.
    times : array_like, shape (T,)
        Increasing; the start is the state at the first one.
    start : array_like of shape (..., N), "zero", "random", Equilibrium or Trajectory, optional
        Where to begin: at phase zero (default), at given phases, at uniformly random ones, at an equilibrium, or where
        a trajectory ended, in whichever frame, velocities included. Leading axes are a batch of starts.
    inputs : array_like of shape (..., n_in), or function of time, optional
        As in `find_equilibrium`; a function returns them at a time, of one shape at all times.
    nudge : Nudge, or function of time, optional
        A pull on the outputs, counted from the reference where nothing else fixes the frame, and of a real strength. A
        function may return None where there is none.
    noise : float or array_like, shape (N,)
        D: white noise of strength ``sqrt(2 D)`` acts on every oscillator that moves; alone, an oscillator of damping 1
        diffuses by ``2 D t``.
    inertia : float or array_like of shape (N,), optional
        m, positive: the swing equation. Velocities are zero at first, in the rotating frame.
    damping : float or array_like, shape (N,)
        d, positive; with inertia it may be zero.
    method : {"auto", "adaptive", "rk4", "heun"}
        "adaptive" is the method of SciPy's DOP853, every sample for itself; "rk4" are Runge-Kutta steps of one length;
        "heun" is Heun's method, of order one path by path and two in the mean with noise, which needs it. "auto" takes
        "heun" with noise, "rk4" where a step is given, or what is not compiled has more than 10,000 oscillators in all
        samples, else "adaptive". All are compiled, one sample after the other, where every term, your own included,
        says how phasors act (``Term.has_local_field``), without a nudge and with inputs that are constant in time.
        Otherwise NumPy takes the steps, and ``Trajectory.uncompiled`` gives the reason.
    step : float, optional
        The longest step of "rk4" and "heun". Left out, it follows from the rates of change in a sample, at all
        ``times`` where something changes, and, without noise, from the tolerance.
    tolerance : float
        Error of one step, in radians, as root mean square over the oscillators; not relative to a phase, which is known
        no better after many turns than after none.
    frame : {"rotating", "laboratory"}
        "rotating" turns uniformly with the sum of all frequencies over the sum of the damping, as they are at the first
        time, where no field and no clamped input fixes the frame: a locked network with reciprocal coupling comes to
        rest. "laboratory" does not turn. At the first time both agree.
    seed : int or None
        Of a random start and of the noise. Every sample has its own stream: the k-th child of the seed for the k-th
        sample in the order of the flat batch, so that the first samples of a batch are those of a smaller one.
    progress : callable, optional
        Called with every time that was reached.

    Returns
    -------
    Trajectory

    Warns
    -----
    UserWarning
        Where a step that is given is longer than the method can be trusted with, or where a long run has far shorter
        steps than most of its oscillators need, with the number of the one that is to blame.

    See Also
    --------
    Trajectory : The phases of a network in time.
    force : The force on every oscillator.
    find_equilibrium : One certified equilibrium per sample.
    simulate_amplitudes : Oscillators with amplitudes.

    Examples
    --------
    >>> import numpy as np, phasegrad as pg
    >>> run = pg.simulate(pg.networks.ring(5, omega=[-0.2, 0.1, 0.0, 0.3, -0.2]), np.linspace(0, 60, 121))
    >>> run.phases.shape, bool(run.locked.all()), round(float(run.order_parameter()[-1]), 4)
    ((121, 5), True, 0.9943)
    >>> rings = [pg.networks.ring(5, omega=[-0.2, 0.1, 0.0, 0.3, -0.2], coupling=k) for k in (0.1, 1.0)]
    >>> pg.simulate(rings, np.linspace(0, 60, 121)).locked.all(axis=-1)
    array([False,  True])
    """
    owner = "simulate"
    networks = _checked_networks(network)
    moments = _checked_times(times)
    choice("frame", frame, FRAMES, owner)
    random_stream(seed, owner)  # a wrong seed is refused also where nothing is random
    size = networks[0].size
    strength = _not_negative("noise", shaped_array("noise", noise, (size,), owner))
    mass, drag = _checked_bodies(inertia, damping, size)
    begun, speeds = _checked_start(start, size)
    drive = Drive(networks, inputs, nudge, batched=not isinstance(network, Network))
    motion = Motion.of(drive, float(moments[0]), begun.shape[:-1], drag, mass)
    state = _first_state(motion, begun, speeds, start, seed)
    steps = _steps(motion, strength, method, step, tolerance, seed, moments)
    phases, velocities = _followed(motion, steps, state, moments, progress)
    turning = motion.turning
    if frame == "laboratory":
        phases += (moments - moments[0])[:, None, None] * turning[:, None]
        velocities += turning[:, None]
        turning = np.zeros_like(turning)
    shape = (moments.size, *motion.shape, size)
    turning = turning.reshape(motion.shape)
    states = phases.reshape(shape), velocities.reshape(shape)
    taken = steps.taken.reshape(motion.shape)
    noisy = bool(np.any(strength))
    return Trajectory(moments, *states, networks, frame, turning, noisy, taken, motion.uncompiled)


def _followed(
    motion: Motion, steps: Steps, state: FloatArray, moments: FloatArray, progress: Callable[[float], object] | None
) -> tuple[FloatArray, FloatArray]:
    """Return phases and velocities (T, B, N) at the times asked for."""
    phases, velocities = np.empty((2, moments.size, state.shape[0], motion.size))
    for k, moment in enumerate(moments.tolist()):
        if k:
            state = steps.between(state, float(moments[k - 1]), moment)
        phases[k] = motion.placed(motion.at(moment), state[:, : motion.size])
        velocities[k] = steps.rates(moment, state) if motion.inertia is None else state[:, motion.size :]
        if progress is not None:
            progress(moment)
    return phases, velocities


def _steps(
    motion: Motion, noise: FloatArray, method: str, step: float | None, tolerance: float, seed: int | None,
    moments: FloatArray,
) -> Steps:  # fmt: skip
    """Return what integrates: the method of a word, or the one that suits."""
    owner, noisy = "simulate", bool(np.any(noise))
    choice("method", method, METHODS, owner)
    tolerance = positive_float("tolerance", tolerance, owner)
    if method == "auto":
        many = motion.rows.size * motion.size > _MANY and bool(motion.uncompiled)
        method = "heun" if noisy else "rk4" if many or step is not None else "adaptive"
    if noisy and method != "heun":
        raise ValueError(f"Noise needs method='heun': {method!r} steps assume smooth forces. Or leave the noise out.")
    if method == "adaptive" and step is not None:
        raise ValueError("The 'step' parameter of simulate is for 'rk4' and 'heun'. Adaptive steps need none.")
    paces = motion.paces(moments)
    fastest = np.broadcast_to(paces.max(axis=1, initial=0.0), motion.rows.shape)
    _check_span(fastest, moments)
    if step is not None:
        lengths = np.full(motion.rows.size, positive_float("step", step, owner))
        _check_stable(motion, float(step), method, fastest)
    elif method == "adaptive":
        lengths = _ADAPTIVE_STEP / np.maximum(fastest, 1e-300)
    elif noisy:
        lengths = _NOISY_STEP / _notched(fastest)
    else:
        lengths = 1.0 / _notched(np.maximum(_precise_rate(paces, method, tolerance), fastest))
    if step is None:
        _tell_who_is_fast(motion, paces, (moments[-1] - moments[0]) / lengths)
    if method == "adaptive":
        return adaptive_steps(motion, tolerance, moments, fastest)
    return fixed_steps(motion, lengths, method, noise if noisy else None, seed)


def _precise_rate(paces: FloatArray, method: str, tolerance: float) -> FloatArray:
    """Return one over the length of steps that keep a tolerance, (b,), as root mean square over the oscillators.

    A step h of order p errs by (h s)^(p + 1) / (p + 1)! where an oscillator changes at rate s.
    """
    power = _ORDERS[method] + 1
    largest = np.maximum(paces.max(axis=1, keepdims=True, initial=0.0), 1e-300)
    means = np.mean((paces / largest) ** (2 * power), axis=1, keepdims=True) ** (0.5 / power)
    return np.asarray((largest * means)[:, 0] / (math.factorial(power) * tolerance) ** (1 / power))


def _tell_who_is_fast(motion: Motion, paces: FloatArray, numbers: FloatArray) -> None:
    """Warn of a long run whose steps, about so many of every sample, are short because of few fast oscillators."""
    network = motion.drive.network
    if numbers.sum() * (network.size + 2 * network.n_edges) < _LONG:
        return
    row = int(np.argmax(numbers))
    own = paces[min(row, len(paces) - 1)]
    fast, usual = int(np.argmax(own)), float(np.median(own))
    if own[fast] > _FAR * usual:
        where = f" in sample {motion.name(row)}" if motion.rows.size > 1 else ""
        warnings.warn(
            f"Oscillator {fast}{where} sets the step of all: it changes at a rate of {own[fast]:.3g}, the median one "
            f"at {usual:.3g}, and about {numbers[row]:,.0f} steps are needed. Bound the tail of the frequencies or, if "
            "fast oscillators need not be exact, give method='rk4' and a 'step' that suits the others.",
            stacklevel=4,
        )


def _notched(rates: FloatArray) -> FloatArray:
    """Return the next powers of `_NOTCH` that are not below rates."""
    return np.array([_NOTCH ** math.ceil(math.log(max(rate, 1e-300), _NOTCH) - 1e-9) for rate in rates.tolist()])


def _check_stable(motion: Motion, step: float, method: str, fastest: FloatArray) -> None:
    """Warn of steps that are longer than a method can be trusted with."""
    if motion.inertia is not None:
        relaxes = fastest.max(initial=0.0)
    else:
        relaxes = np.max(motion.first.system.stiffest / motion.damping, initial=0.0)
    if step * relaxes > _STABLE[method]:
        warnings.warn(
            f"Steps of {step:g} are longer than {method!r} can be trusted with here. Give a 'step' of "
            f"{_STABLE[method] / relaxes:.2g} at most.",
            stacklevel=4,
        )


def _check_span(fastest: FloatArray, moments: FloatArray) -> None:
    """Refuse times in which an oscillator turns so often that its phase would not be known, nor the end be seen."""
    turned = float(np.max(fastest, initial=0.0) * (moments[-1] - moments[0]))
    if turned > _MOST_RADIANS:
        raise ValueError(
            f"The fastest oscillator may turn {turned:.2g} radians between the first and the last of the 'times', more "
            f"than {_MOST_RADIANS:g}. Simulate a shorter time, or slower oscillators."
        )


def _first_state(
    motion: Motion, begun: FloatArray, speeds: FloatArray | None, start: Any, seed: int | None
) -> FloatArray:
    """Return the flat states (B, N) or, with inertia, (B, 2N) to begin with; speeds are those at rest."""
    size, batch = motion.size, motion.rows.size
    random = isinstance(start, str) and start == "random"
    phases = motion.placed(motion.first, random_phases(batch, size, seed) if random else _flat(begun, motion))
    if motion.inertia is None:
        return phases
    own = np.zeros_like(phases)
    if speeds is not None:
        own = _flat(speeds, motion) - motion.turning[:, None]
        own[:, motion.held] = 0.0
    return np.concatenate([phases, own], axis=1)


def _flat(values: FloatArray, motion: Motion) -> FloatArray:
    return np.broadcast_to(values, (*motion.shape, motion.size)).reshape(-1, motion.size).copy()


def _checked_networks(given: Any) -> tuple[Network, ...]:
    networks = (given,) if isinstance(given, Network) else tuple(given) if isinstance(given, Iterable) else ()
    wrong = [each for each in networks if not isinstance(each, Network)]
    if not networks or wrong:
        what = f"{wrong[0]!r:.80} among them" if wrong else f"{given!r:.80}"
        raise TypeError(f"simulate takes a Network or a list of them, at least one. Got {what}.")
    for k, each in enumerate(networks):
        if not each.alike(networks[0]):
            raise ValueError(
                f"Network {k} has another topology than network 0 (edges, roles, terms or scale of the inputs). "
                "Simulate networks of different topology in separate calls."
            )
    return networks


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


def _checked_start(start: Any, size: int) -> tuple[FloatArray, FloatArray | None]:
    """Return phases (..., N) to begin with, and velocities at rest where a trajectory has them."""
    owner, meaning = "simulate", "one phase per oscillator"
    if start is None or isinstance(start, str):
        choice("start", "zero" if start is None else start, ("zero", "random"), owner)
        return np.zeros(size), None
    if isinstance(start, Trajectory):
        speeds = start.velocities[-1] + start.turning[..., None]
        return last_axis_array("start", start.phases[-1], size, meaning, owner), speeds
    begun = start.phases if isinstance(start, Equilibrium) else start
    if np.iscomplexobj(begun):
        raise ValueError("The 'start' parameter of simulate must be a real state, not one under a complex nudge.")
    return last_axis_array("start", begun, size, meaning, owner), None


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
            f"The 'inertia' parameter of simulate must be positive for every oscillator. {some}: give it a small one, "
            "or leave the parameter out."
        )
    return mass, drag


def _not_negative(name: str, values: FloatArray) -> FloatArray:
    if np.any(values < 0):
        node = int(np.argmax(values < 0))
        raise ValueError(f"The '{name}' parameter of simulate must not be negative. Got {values[node]:g} at [{node}].")
    return values
