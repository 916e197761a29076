"""What the pieces of the study compute."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from phasegrad import datasets
from phasegrad.ising import Problem, simulated_annealing, solve
from phasegrad.networks import Network, random_regular, signed_layers
from phasegrad.objectives import CosineCrossEntropy
from phasegrad.training import classifier_plan, train

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
    """Return accuracies on XOR of networks with and without injection, couplings, fields and injection learning."""
    corners, undecided = datasets.xor(), CosineCrossEntropy.undecided
    found: dict[str, list[float]] = {"without": [], "with": []}
    for seed in range(seeds):
        plain = signed_layers(2, 4, 2, rest=undecided, gain=2.0, skip=True, input_scale=np.pi / 2, seed=seed)
        for name, network in (("without", plain), ("with", injected(plain, injection, injection))):
            found[name].append(_accuracy(network, corners, epochs, 0.05))
    return {**found, "injection": injection}


def digits(injection: float, hidden: int, epochs: int, seed: int) -> dict[str, Any]:
    """Return the accuracy on digits of one network with or without injection (0), and the processor time."""
    network = signed_layers(64, hidden, 10, rest=CosineCrossEntropy.undecided, seed=seed)
    begin = time.process_time()
    if injection:
        network = injected(network, injection, injection / 5)
    accuracy = _accuracy(network, datasets.digits(), epochs, 0.005)
    return {"accuracy": accuracy, "seconds": time.process_time() - begin, "epochs": epochs, "injection": injection}


def injected(network: Network, hidden: float, outputs: float) -> Network:
    """Return a network with second-harmonic injection into all oscillators but its inputs."""
    strength = np.full(network.size, hidden)
    strength[list(network.outputs)], strength[list(network.inputs)] = outputs, 0.0
    return network.replace(second_strength=strength)


def _accuracy(network: Network, data: Any, epochs: int, rate: float) -> float:
    """Train everything that a network has but frequencies, and return its accuracy on the test part."""
    learn = (*_LEARN, "second_strength") if "second_strength" in network.parameters else _LEARN
    plan = classifier_plan(learn=learn, epochs=epochs, learning_rate=rate, evaluate_every=epochs)
    return float(train(network, data, plan).history.test_accuracy[0, -1])
