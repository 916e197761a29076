"""What can be learned on the page: data, networks to start from, and recipes, as plain data."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from phasegrad import datasets
from phasegrad.datasets import Dataset
from phasegrad.initial import STARTS
from phasegrad.laboratory._scene import scene
from phasegrad.models import Model
from phasegrad.networks import Network, layered, signed_layers
from phasegrad.objectives import NearestTarget
from phasegrad.training import Plan

SEED = 0
_STARTS = {
    "spectral": "d > 0: the spectral seed",
    "anti-spectral": "d < 0: its sign reversed",
    "outputs-positive": "d > 0: outputs only",
    "outputs-negative": "d < 0: outputs only",
}
_RANDOM_SEEDS = range(6)
MATCHED = Plan.paper({"omega": 0.01, "coupling": 0.5}, objective=NearestTarget())
PAPER = Plan.paper()
XOR = Plan.paper(
    ("coupling", "field_strength", "field_phase"), objective=NearestTarget(0.5), learning_rate=0.05, epochs=300,
    gradient="centred", beta=0.05, bounds={}, clip=None, warm_start="none",
)  # fmt: skip


@cache
def tasks() -> dict[str, Any]:
    """Return the tasks of the page by name."""
    return {"vowels": _vowels(), "xor": _xor()}


def _vowels() -> dict[str, Any]:
    data, network = datasets.vowels(("a", "i"), seed=SEED), layered(2, 5, 2, seed=SEED)
    starts = {f"random, seed {seed}": layered(2, 5, 2, seed=seed) for seed in _RANDOM_SEEDS}
    named = {words: STARTS[name](network, data.x_train, SEED) for name, words in _STARTS.items()}
    recipes = {
        "matched": _recipe("nearest target: the decision that the cost asks for", MATCHED),
        "paper": _recipe("the paper’s pair: largest cosine", PAPER),
    }
    return _task("Two vowels, /a/ and /i/", data, PAPER.objective, named | starts, recipes)


def _xor() -> dict[str, Any]:
    starts = {
        f"random, seed {seed}": signed_layers(2, 3, 2, skip=True, seed=seed, input_scale=math.pi / 2)
        for seed in _RANDOM_SEEDS
    }
    recipes = {"matched": _recipe("nearest target: the decision that the cost asks for", XOR)}
    return _task("XOR: same or different", datasets.xor(), NearestTarget(0.5), starts, recipes)


def _task(
    title: str, data: Dataset, objective: Any, starts: dict[str, Network], recipes: dict[str, Any]
) -> dict[str, Any]:
    model = Model(next(iter(starts.values())), objective, data.classes, data.features, data.scaling)
    return {
        "title": title,
        "scene": scene(model) | {"title": title},
        "train": [_raw(data, data.x_train), data.y_train.tolist()],
        "test": [_raw(data, data.x_test), data.y_test.tolist()],
        "starts": {name: _values(network) for name, network in starts.items()},
        "recipes": recipes,
    }


def _values(network: Network) -> dict[str, list[float]]:
    return {name: each.tolist() for name, each in network.parameters.items()}


def _raw(data: Dataset, x: Any) -> list[list[float]]:
    """Return samples before scaling; formants are whole numbers of hertz."""
    raw = x if data.scaling is None else data.scaling.invert(x)
    rounded = np.round(raw)
    return [[int(value) for value in row] for row in rounded]


def _recipe(title: str, plan: Plan) -> dict[str, Any]:
    return {
        "title": title,
        "objective": {"kind": type(plan.objective).__name__, **vars(plan.objective)},
        "rates": plan.rates,
        "epochs": plan.epochs,
        "beta": plan.beta,
        "centred": plan.gradient == "centred",
        "clip": plan.clip,
        "bounds": plan.limits,
        "warm": plan.warm_start == "epoch",
    }
