"""Simulated annealing, which machines are held against."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phasegrad._validation import finite_array, frozen_array, whole_number
from phasegrad.ising._problem import Problem
from phasegrad.ising._solutions import Solutions

_OWNER = "ising.simulated_annealing"
# The injection of the machine that certificates speak of: where that of `solve` ends by default.
_INJECTION = 0.6


def simulated_annealing(
    problem: Problem, *, runs: int = 100, sweeps: int = 1000, temperature: tuple[float, float] = (1.0, 0.1),
    seed: int = 0, progress: Callable[[int, int], object] | None = None,
) -> Solutions:  # fmt: skip
    """Anneal spins by the rule of Metropolis, compiled, one run after the other.

    Parameters
    ----------
    problem : Problem
    runs : int
        How many, each from spins of its own.
    sweeps : int
        How often every spin of a run is asked whether it flips.
    temperature : pair of float
        Of the first and of the last sweep, in units of the problem's ``scale``; it falls in a straight line.
    seed : int
        Of spins and flips.
    progress : callable, optional
        Called with the runs that are done and the number of all.

    Returns
    -------
    Solutions
        Its phases are 0 and pi; its certificates say what the machine of `ising.solve` would hold.

    See Also
    --------
    ising.solve : The machine.

    Examples
    --------
    >>> import networkx as nx, phasegrad as pg
    >>> problem = pg.ising.Problem.from_networkx(nx.petersen_graph())
    >>> pg.ising.simulated_annealing(problem, runs=10, sweeps=100).best_cut
    12.0
    """
    from phasegrad.kernels import flips

    if not isinstance(problem, Problem):
        raise TypeError(f"{_OWNER} takes a Problem, which Problem.from_matrix makes. Got {type(problem).__name__}.")
    runs, sweeps = whole_number("runs", runs, 1, _OWNER), whole_number("sweeps", sweeps, 1, _OWNER)
    whole_number("seed", seed, 0, _OWNER)
    ends = finite_array("temperature", temperature, _OWNER)
    if ends.shape != (2,) or np.any(ends <= 0):
        raise ValueError(f"The 'temperature' parameter of {_OWNER} must be two numbers above 0. Got {temperature!r}.")
    temperatures = problem.scale * np.linspace(ends[0], ends[1], sweeps)
    matrix = problem.matrix
    rows = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data
    spins = np.empty((runs, problem.size))
    for k in range(runs):
        stream = np.random.default_rng([seed, k])
        spins[k] = stream.choice([-1.0, 1.0], problem.size)
        first = stream.integers(1, 2**63, dtype=np.uint64)
        flips.sweep(spins[k], problem.fields + matrix @ spins[k], rows, temperatures, first)
        if progress is not None:
            progress(k + 1, runs)
    kept = frozen_array(np.where(spins > 0, 0.0, np.pi)), frozen_array(spins.astype(int))
    return Solutions(problem, *kept, frozen_array(problem.energy(spins)), problem.network(1.0, _INJECTION))
