"""What one piece computes: gradients of random networks at one asymmetry, and trainings of non-reciprocal networks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from phasegrad import datasets
from phasegrad.equilibria import Equilibrium, find_equilibrium
from phasegrad.gradients import Gradient, GradientWarning, adjoint, centred, cosine, dyadic, two_phase, unwarned
from phasegrad.networks import Network, layered
from phasegrad.objectives import NearestTarget, PhaseTargets
from phasegrad.training import Plan, train_whole
from phasegrad_paper.studies.agreement import asymmetric_network, perturbed_target

BETA = 1e-3
BY = {"omega": ("omega",), "coupling": ("coupling", "coupling_reverse")}
WAYS = ("plain", "corrected", "centred", "dyadic")


def gradients(asymmetry: float, seeds: int, grounded: bool) -> dict[str, Any]:
    """Return per network 1 - cosine with the adjoint gradient, of every way and by frequencies and by couplings.

    Networks and targets are those of Table 2, the reference held by force or turning with the others. "plain" and
    "corrected" are one nudge of 1e-3; the nudges of the other two are chosen.
    """
    found: dict[str, Any] = {way: {by: [] for by in BY} for way in WAYS}
    found["unlocked"] = 0
    for seed in range(seeds):
        network = asymmetric_network(asymmetry, seed).replace(grounded=grounded)
        equilibrium = find_equilibrium(network)
        if not equilibrium.stable:
            found["unlocked"] += 1
            continue
        for by, wrt in BY.items():
            wanted = tuple(name for name in wrt if name in network.parameters)
            for way, value in _distances(network, equilibrium, seed, wanted).items():
                found[way][by].append(value)
    return found


def _distances(network: Network, equilibrium: Equilibrium, seed: int, wrt: tuple[str, ...]) -> dict[str, float]:
    question = (network, equilibrium, PhaseTargets(), perturbed_target(network, equilibrium, seed + 2000))
    with unwarned():
        exact = adjoint(*question, wrt=wrt)
        ways: dict[str, Gradient] = {
            "plain": two_phase(*question, beta=BETA, wrt=wrt),
            "corrected": two_phase(*question, beta=BETA, wrt=wrt, correction="asymmetric"),
            "centred": centred(*question, wrt=wrt, correction="asymmetric"),
            "dyadic": dyadic(*question, wrt=wrt),
        }
    return {way: 1.0 - cosine(each, exact) for way, each in ways.items()}


def training(correction: str, asymmetry: float, epochs: int, first: int, count: int) -> dict[str, Any]:
    """Return test accuracies of 2+5+2 networks that learned /a i/, and those before, seeds ``first`` and on.

    Frequencies and the couplings of both directions learn from centred nudges of 1e-3, by Adam at 0.05 that falls along
    a cosine over the epochs, in batches of 32, on the cost and decision of `NearestTarget`.
    """
    seeds = range(first, first + count)
    plan = Plan(
        learn=("omega", "coupling", "coupling_reverse"), learning_rate=0.05, objective=NearestTarget(), epochs=epochs,
        batch_size=32, gradient="centred", beta=BETA, correction=correction, evaluate_every=epochs,
    )  # fmt: skip
    with warnings.catch_warnings():
        # That the plain gradient is biased is what is measured here.
        warnings.simplefilter("ignore", GradientWarning)
        networks = [one_way_layers(asymmetry, seed) for seed in seeds]
        result = train_whole(
            networks, [datasets.vowels(["a", "i"], seed=seed) for seed in seeds], plan, seed=list(seeds)
        )
    accuracy = result.history.test_accuracy
    return {"untrained": accuracy[:, 0].tolist(), "trained": accuracy[:, -1].tolist()}


def one_way_layers(asymmetry: float, seed: int) -> Network:
    """Return a 2+5+2 network, each direction of every coupling multiplied by 1 + U(-a, a), from stream seed + 1000."""
    network = layered(2, 5, 2, seed=seed)
    draws = np.random.default_rng(seed + 1000).uniform(-asymmetry, asymmetry, (2, network.n_edges))
    ahead, back = network.coupling * (1 + draws)
    return Network(
        network.edges, ahead, network.omega, coupling_reverse=back, inputs=network.inputs, outputs=network.outputs,
        input_scale=network.input_scale,
    )  # fmt: skip
