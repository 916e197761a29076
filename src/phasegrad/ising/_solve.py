"""Many runs of an oscillator Ising machine in one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from phasegrad._validation import FloatArray, finite_array, frozen_array, positive_float, whole_number
from phasegrad.ising._machine import anneal, largest_rate
from phasegrad.ising._problem import Problem
from phasegrad.ising._solutions import Solutions

#: A number, a pair from beginning to end, or a function of the share of time that has passed, from 0 to 1.
Schedule = float | tuple[float, float] | Callable[[float], float]

_OWNER = "ising.solve"
# The longest step, and the largest product of a step and an eigenvalue: beyond 2 Euler's method is unstable.
_STEP, _STIFF = 0.15, 1.8
_MOST_STEPS = 10_000_000


def solve(
    problem: Problem, *, runs: int = 100, time: float = 200.0, coupling: Schedule = 1.0,
    injection: Schedule = (0.0, 0.6), noise: Schedule = (0.3, 0.0), step: float | None = None, seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Solutions:  # fmt: skip
    """Let an oscillator Ising machine search for states of low energy, many runs side by side.

    Phases begin at random and follow

        dtheta_i = [K (sum_j J_ij sin(theta_j - theta_i) - h_i sin theta_i) / J_0 - S sin 2 theta_i] dt + sqrt(2 D) dW_i

    by the method of Euler and Maruyama, with J_0 the problem's ``scale``: coupling K, second-harmonic injection S and
    noise D may change on the way. At the end the sign of cos theta is the spin.

    Parameters
    ----------
    problem : Problem
    runs : int
        How many, each from phases and with noise of its own.
    time : float
        Length of a run, in units of 1 / K.
    coupling, injection, noise : float, pair of float, or callable
        Schedules of K, S and D: a number, a pair that leads in a straight line from beginning to end, or a function of
        the share of time that has passed, from 0 to 1. None may be negative, and the coupling must end above 0.
    step : float, optional
        Length of a step; left out, 0.15, and less where the machine would not be stable at that.
    seed : int
        Of phases and noise.
    progress : callable, optional
        Called with the steps taken and the number of all.

    Returns
    -------
    Solutions

    See Also
    --------
    ising.Problem : Couplings and fields, from a matrix, a graph or a file.
    simulate : The same machine, ``problem.network(K, S)``, in time and in double precision.

    References
    ----------
    T. Wang and J. Roychowdhury, OIM: Oscillator-based Ising machines for solving combinatorial optimisation problems,
    2019, doi:10.1007/978-3-030-19311-9_19.

    Examples
    --------
    >>> import phasegrad as pg
    >>> ring = pg.ising.Problem.max_cut([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    >>> found = pg.ising.solve(ring, runs=10)
    >>> found.best_cut, found.best_energy, bool(found.stable[found.best])
    (4.0, -4.0, True)
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"{_OWNER} takes a Problem, which Problem.from_matrix makes. Got {type(problem).__name__}.")
    runs = whole_number("runs", runs, 1, _OWNER)
    time = positive_float("time", time, _OWNER)
    whole_number("seed", seed, 0, _OWNER)
    ends = [_values(name, each, 101) for name, each in _named(coupling, injection, noise)]
    if ends[0][-1] <= 0:
        raise ValueError(f"The 'coupling' parameter of {_OWNER} must end above 0. Got 0 at the end.")
    longest = min(_STEP, _STIFF / largest_rate(problem, float(ends[0].max()), float(ends[1].max())))
    length = longest if step is None else positive_float("step", step, _OWNER)
    count = int(np.ceil(time / length))
    if count > _MOST_STEPS:
        raise ValueError(
            f"A time of {time:g} takes {count:.3g} steps, more than {_MOST_STEPS:.0e}. Give a shorter one."
        )
    schedule = tuple(_values(name, each, count) for name, each in _named(coupling, injection, noise))
    machine = problem.network(float(schedule[0][-1]), float(schedule[1][-1]))
    streams = [np.random.default_rng([seed, k]) for k in range(runs)]
    told = None if progress is None else lambda taken: progress(taken, count)
    with np.errstate(over="ignore", invalid="ignore"):
        phases = anneal(problem, streams, time / count, (schedule[0], schedule[1], schedule[2]), told)
    if not np.all(np.isfinite(phases)):
        raise ValueError(
            f"Phases of {_OWNER} left the range of single precision. Give less noise, or a shorter 'step' than "
            f"{length:g}."
        )
    spins = np.where(np.cos(phases) >= 0, 1, -1)
    kept = frozen_array(phases.astype(float)), frozen_array(spins), frozen_array(problem.energy(spins))
    return Solutions(problem, *kept, machine)


def _named(coupling: Schedule, injection: Schedule, noise: Schedule) -> list[tuple[str, Schedule]]:
    return [("coupling", coupling), ("injection", injection), ("noise", noise)]


def _values(name: str, given: Schedule, count: int) -> FloatArray:
    """Return the values of a schedule at every one of its steps, the last at the end of time."""
    shares = np.linspace(0.0, 1.0, count) if count > 1 else np.ones(1)
    if callable(given):
        values: Any = [given(float(share)) for share in shares]
    else:
        ends = finite_array(name, given, _OWNER, largest=np.inf)
        if ends.shape not in ((), (2,)):
            raise ValueError(
                f"The '{name}' parameter of {_OWNER} must be a number, a pair of them, or a function. "
                f"Got shape {ends.shape}."
            )
        first, last = np.broadcast_to(ends, 2)
        values = first + (last - first) * shares
    found = finite_array(name, values, _OWNER, largest=np.inf)
    if found.shape != (count,) or np.any(found < 0):
        raise ValueError(f"The '{name}' parameter of {_OWNER} must be numbers of at least 0 all the time.")
    return found
