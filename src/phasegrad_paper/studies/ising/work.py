"""What the pieces of the study compute."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from phasegrad import datasets
from phasegrad.ising import Problem, simulated_annealing, solve
from phasegrad.networks import Network, random_regular, signed_layers
from phasegrad.objectives import CosineCrossEntropy
from phasegrad.training import Plan, train_whole

_LEARN = ("coupling", "field_strength", "field_phase")
# States that enumeration looks at in one go.
_AT_ONCE = 1 << 16


def regular_cuts(size: int, degree: int, graphs: int, runs: int) -> dict[str, Any]:
    """Return the best cut of every random regular graph beside its optimum, by enumeration."""
    found: dict[str, list[Any]] = {"cut": [], "optimum": [], "hits": [], "stable": []}
    for seed in range(graphs):
        edges = random_regular(size, degree, seed=seed).edges
        problem = Problem(edges, -np.ones(len(edges)), np.zeros(size))
        solutions, optimum = solve(problem, runs=runs, seed=seed), largest_cut(problem)
        found["cut"].append(solutions.best_cut)
        found["optimum"].append(optimum)
        found["hits"].append(int(np.sum(solutions.cuts == optimum)))
        found["stable"].append(bool(solutions.stable[solutions.best]))
    return {**found, "runs": runs}


def largest_cut(problem: Problem) -> float:
    """Return the largest cut of a small graph by enumeration; one spin stays, as turning all changes no cut."""
    best = -np.inf
    for first in range(0, 1 << (problem.size - 1), _AT_ONCE):
        codes = np.arange(first, min(first + _AT_ONCE, 1 << (problem.size - 1)))
        sides = [np.ones(codes.size, dtype=np.int8), *((codes >> k & 1).astype(np.int8) for k in range(problem.size))]
        cuts = np.zeros(codes.size)
        for (i, j), coupling in zip(problem.edges, problem.couplings, strict=True):
            cuts -= coupling * (sides[i] != sides[j])
        best = max(best, float(cuts.max()))
    return best


def random_graph(size: int, edges: int, seed: int) -> Problem:
    """Return the problem of the largest cut of a random graph with so many edges of weight 1, as G-set's G1 to G5."""
    stream = np.random.default_rng(seed)
    first, second = np.triu_indices(size, k=1)
    chosen = np.sort(stream.choice(first.size, edges, replace=False))
    return Problem(np.stack([first[chosen], second[chosen]], axis=1), -np.ones(edges), np.zeros(size))


def large_cut(size: int, edges: int, seed: int, runs: int, span: float) -> dict[str, Any]:
    """Return the best cut of the machine and that of simulated annealing in the same processor time."""
    problem = random_graph(size, edges, seed)
    solve(problem, runs=1, time=1.0)
    begin = time.process_time()
    machine = solve(problem, runs=runs, time=span, seed=seed)
    seconds = time.process_time() - begin
    simulated_annealing(problem, runs=1, sweeps=10)
    begin = time.process_time()
    simulated_annealing(problem, runs=1, sweeps=2000, seed=seed)
    per_sweep = (time.process_time() - begin) / 2000
    sweeps = max(1, round(seconds / runs / per_sweep))
    begin = time.process_time()
    annealed = simulated_annealing(problem, runs=runs, sweeps=sweeps, seed=seed)
    return {
        "seed": seed, "runs": runs, "cut": machine.best_cut, "mean": float(machine.cuts.mean()),
        "stable": bool(machine.stable[machine.best]), "seconds": seconds,
        "annealed": annealed.best_cut, "annealed_mean": float(annealed.cuts.mean()), "sweeps": sweeps,
        "annealed_seconds": time.process_time() - begin,
    }  # fmt: skip


def xor(injection: float, seeds: int, epochs: int) -> dict[str, Any]:
    """Return accuracies on XOR without injection, with one that learns too and with one that is held.

    ``left`` is the injection that learning leaves in the hidden oscillators, the mean of its absolute value.
    """
    corners, undecided = datasets.xor(), CosineCrossEntropy.undecided
    found: dict[str, list[float]] = {"without": [], "with": [], "held": [], "left": []}
    for seed in range(seeds):
        plain = signed_layers(2, 4, 2, rest=undecided, gain=2.0, skip=True, input_scale=np.pi / 2, seed=seed)
        pumped = injected(plain, injection, injection)
        for name, network, learns in (("without", plain, False), ("with", pumped, True), ("held", pumped, False)):
            plan = _plan(learns, epochs=epochs, learning_rate=0.05)
            result = train_whole(network, corners, plan, seed=seed)
            found[name].append(float(result.history.test_accuracy[0, -1]))
            if learns:
                found["left"].append(_strength(result.network))
    return {**found, "injection": injection}


def digits(injection: float, learns: bool, hidden: int, epochs: int, seed: int) -> dict[str, Any]:
    """Return the accuracy on digits of one network without injection (0), with one that learns too, or with one held.

    The settings are those of `OscillatorClassifier`, and the training images are moved by one pixel too. ``left`` is
    the injection of the hidden oscillators in the end, the mean of its absolute value.
    """
    data = datasets.digits(shifts=True)
    network = signed_layers(
        64, hidden, 10, rest=CosineCrossEntropy.undecided, gain=0.3, input_scale=0.8, seed=seed
    )  # fmt: skip
    if injection:
        network = injected(network, injection, injection / 5)
    begin = time.process_time()
    result = train_whole(network, data, _plan(learns, epochs=epochs, input_noise=0.3), seed=seed)
    return {
        "accuracy": float(result.history.test_accuracy[0, -1]), "left": _strength(result.network),
        "unsettled": int(result.history.test_unsettled[0, -1]), "seconds": time.process_time() - begin,
        "epochs": epochs, "injection": injection, "learns": learns, "seed": seed,
    }  # fmt: skip


def injected(network: Network, hidden: float, outputs: float) -> Network:
    """Return a network with second-harmonic injection into all oscillators but its inputs."""
    strength = np.full(network.size, hidden)
    strength[list(network.outputs)], strength[list(network.inputs)] = outputs, 0.0
    return network.replace(second_strength=strength)


def _plan(learns: bool, *, epochs: int, **changes: Any) -> Plan:
    """Return a plan by which couplings and fields learn, and the injection if it ``learns``."""
    learn = (*_LEARN, "second_strength") if learns else _LEARN
    return Plan.classifier(learn=learn, epochs=epochs, evaluate_every=epochs, **changes)


def _strength(network: Network) -> float:
    """Return the mean absolute injection into hidden oscillators."""
    if network.second_strength is None:
        return 0.0
    outer = [*network.inputs, *network.outputs]
    return float(np.mean(np.abs(np.delete(network.second_strength, outer))))
