"""Runs in time of one large sparse network against what one would write by hand: SciPy, Numba, NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.sparse import csr_array

from phasegrad._validation import FloatArray
from phasegrad.networks import Network, random_regular
from phasegrad.simulation import simulate
from phasegrad_bench._timing import in_turn

SIZES = (10_000, 300_000)
_DEGREE, _TIME, _TOLERANCE = 6, 10.0, 1e-6
_STEP, _LAG = 0.02, 0.3
# The most by which two ways may differ, as errors grow in time.
_APART = 1e-3

Rate = Callable[[float, FloatArray], FloatArray]


def motion(sizes: tuple[int, ...] = SIZES, steps: int = 200, rounds: int = 3) -> dict[str, Any]:
    """Return CPU seconds by hand and by the package: adaptive steps of these sizes, and Runge-Kutta steps."""
    rows: dict[str, dict[str, float]] = {}
    for size in sizes:
        rows |= _adaptive(size, rounds if size <= sizes[0] else 1)
    return {"rows": rows | _fixed(sizes[0], steps, rounds)}


def _case(size: int, **options: Any) -> tuple[Network, FloatArray, FloatArray, csr_array]:
    """Return a network, where to begin, its frequencies less their mean, and its couplings in compressed rows."""
    streams = np.random.default_rng(0), np.random.default_rng(1)
    network = random_regular(size, _DEGREE, omega=streams[0].normal(0.0, 0.3, size), seed=0, **options)
    (i, j), strength = network.edges.T, network.coupling
    both = np.concatenate([i, j]), np.concatenate([j, i])
    matrix = csr_array((np.concatenate([strength, strength]), both), shape=(size, size))
    return network, streams[1].uniform(-3, 3, size), network.omega - network.omega.mean(), matrix


def _adaptive(size: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return the rows of SciPy's methods, each with the faster of two ways to write the forces."""
    network, start, own, matrix = _case(size)
    loop, _ = _by_hand()

    def compiled(_time: float, theta: FloatArray) -> FloatArray:
        return np.asarray(loop(theta, own, matrix.indptr, matrix.indices, matrix.data))

    def products(_time: float, theta: FloatArray) -> FloatArray:
        cos, sin = np.cos(theta), np.sin(theta)
        return np.asarray(own + cos * (matrix @ sin) - sin * (matrix @ cos))

    def ours() -> FloatArray:
        return simulate(network, [0.0, _TIME], start=start, tolerance=_TOLERANCE).phases[-1]

    def theirs(method: str, rate: Rate) -> Callable[[], FloatArray]:
        def run() -> FloatArray:
            options = {"rtol": _TOLERANCE, "atol": _TOLERANCE, "t_eval": [_TIME]}
            return np.asarray(solve_ivp(rate, (0.0, _TIME), start, method, **options).y[:, -1])

        return run

    simulate(network, [0.0, 1e-3], start=start)
    compiled(0.0, start)
    rows = {}
    for method in ("DOP853", "RK45"):
        works = [theirs(method, rate) for rate in (compiled, products)]
        rows[f"SciPy's {method}, N = {size:,}"] = _compare(ours, works, rounds)
    return rows


def _fixed(size: int, steps: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return the rows of steps of one length: a compiled loop by hand, and arrays where coupling lags."""
    network, start, own, matrix = _case(size)
    _, run = _by_hand()
    arrays = own, matrix.indptr, matrix.indices, matrix.data
    late, _, _, _ = _case(size, lag=_LAG)

    def lagging(theta: FloatArray) -> FloatArray:
        behind = theta - _LAG
        return np.asarray(own + np.cos(theta) * (matrix @ np.sin(behind)) - np.sin(theta) * (matrix @ np.cos(behind)))

    def by_arrays() -> FloatArray:
        theta, h = start, _STEP
        for _ in range(steps):
            first = lagging(theta)
            second = lagging(theta + h / 2 * first)
            third = lagging(theta + h / 2 * second)
            theta = theta + h / 6 * (first + 2 * (second + third) + lagging(theta + h * third))
        return theta

    def ours(given: Network) -> Callable[[], FloatArray]:
        return lambda: simulate(given, [0.0, steps * _STEP], start=start, method="rk4", step=_STEP).phases[-1]

    run(start, 1, _STEP, *arrays)
    for given in (network, late):
        simulate(given, [0.0, _STEP], start=start, method="rk4", step=_STEP)
    name = f"{steps} Runge-Kutta steps, N = {size:,}"
    return {
        f"a loop by hand in Numba, {name}": _compare(
            ours(network), [lambda: run(start, steps, _STEP, *arrays)], rounds
        ),
        f"NumPy and SciPy's sparse products with a phase lag, {name}": _compare(ours(late), [by_arrays], rounds),
    }


def _compare(ours: Callable[[], FloatArray], theirs: list[Callable[[], FloatArray]], rounds: int) -> dict[str, float]:
    """Return CPU seconds of the fastest of other ways, and of the package."""
    found = ours()
    if any(np.max(np.abs(work() - found)) > _APART for work in theirs):
        raise AssertionError("what is written by hand and the package disagree, so their times cannot be compared")
    *others, mine = in_turn(*theirs, ours, rounds=rounds)
    return {"other_s": min(others), "phasegrad_s": mine, "ratio": min(others) / mine}


def _by_hand() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return forces and Runge-Kutta steps as one would write them: sines once per oscillator, loops over rows."""
    from numba import njit

    @njit(fastmath=True)
    def force(theta, own, indptr, indices, weight, cos, sin, out):  # type: ignore[no-untyped-def]
        for i in range(theta.size):
            cos[i], sin[i] = np.cos(theta[i]), np.sin(theta[i])
        for i in range(theta.size):
            x, y = 0.0, 0.0
            for entry in range(indptr[i], indptr[i + 1]):
                x += weight[entry] * cos[indices[entry]]
                y += weight[entry] * sin[indices[entry]]
            out[i] = own[i] + y * cos[i] - x * sin[i]

    @njit(fastmath=True)
    def rate(theta, own, indptr, indices, weight):  # type: ignore[no-untyped-def]
        out, cos, sin = np.empty_like(theta), np.empty_like(theta), np.empty_like(theta)
        force(theta, own, indptr, indices, weight, cos, sin, out)
        return out

    @njit(fastmath=True)
    def runge_kutta(start, steps, h, own, indptr, indices, weight):  # type: ignore[no-untyped-def]
        theta, there, cos, sin = start.copy(), np.empty_like(start), np.empty_like(start), np.empty_like(start)
        slopes = np.empty((4, start.size))
        for _ in range(steps):
            there[:] = theta
            for k in range(4):
                force(there, own, indptr, indices, weight, cos, sin, slopes[k])
                if k < 3:
                    there[:] = theta + (h if k == 2 else h / 2) * slopes[k]
            for i in range(theta.size):
                theta[i] += h / 6 * (slopes[0, i] + 2 * (slopes[1, i] + slopes[2, i]) + slopes[3, i])
        return theta

    return rate, runge_kutta
