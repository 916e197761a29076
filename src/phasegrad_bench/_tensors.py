"""Tensors: the layer for PyTorch against the engine beneath it, and that engine against the one of NumPy."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from phasegrad.networks import Dense, Network, layers
from phasegrad.training import Plan, train_whole
from phasegrad_bench._timing import cpu_seconds, in_turn

PIXELS, HIDDEN, CLASSES, BATCH = 784, 500, 10, 256
IMAGES = 2048


def tensors(rounds: int = 3, images: int = IMAGES, hidden: int = HIDDEN) -> dict[str, float] | None:
    """Return ratios of CPU time on 784-500-10, in single precision and batches of 256; None without PyTorch.

    ``layer_over_bare`` is forward and backward of a `PhaseNetwork` over the same settling and slopes by functions of
    the engine alone, with the exact gradient, ``centred_over_bare`` with nudges. ``batch_over_torch`` is an epoch by
    the batch engine over one by the torch engine.
    """
    if importlib.util.find_spec("torch") is None:
        return None
    network = layers(PIXELS, Dense(hidden), Dense(CLASSES))
    stream = np.random.default_rng(0)
    x, y = stream.uniform(-1, 1, (images, PIXELS)), stream.integers(CLASSES, size=images)
    layer, bare = _steps(network, x[:BATCH], y[:BATCH])
    found = {}
    for name, gradient in (("layer_over_bare", "implicit"), ("centred_over_bare", "centred")):
        works = partial(layer, gradient), partial(bare, gradient)
        for mine, theirs in zip(*(work() for work in works), strict=True):
            if float((mine - theirs).norm()) > 2e-3 * float(theirs.norm()):
                raise AssertionError("the layer and the engine disagree, so their times cannot be compared")
        first, second = in_turn(*works, rounds=5 * rounds)
        found[name] = first / second
    plan = Plan.classifier(epochs=1, batch_size=BATCH, lock_floor=None)
    # The untrained score is part of a training, not of an epoch.
    seconds = {}
    for engine in ("batch", "torch"):
        whole, scored = (
            cpu_seconds(partial(train_whole, network, (x, y), plan.replace(epochs=epochs), engine=engine))
            for epochs in (2, 1)
        )
        seconds[engine] = whole - scored
    return {**found, "batch_over_torch": seconds["batch"] / seconds["torch"]}


def _steps(network: Network, x: Any, y: Any) -> tuple[Callable[[str], Any], Callable[[str], Any]]:
    """Return one step of each, which takes the gradient of the cross-entropy of four times the negative cosines."""
    import torch

    from phasegrad.tensors import (
        Batch,
        Contrast,
        Structure,
        Weights,
        gathered,
        nudge_steps,
        scattered,
        sweeps_and_steps,
    )
    from phasegrad.torch import PhaseNetwork

    inputs, labels = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    modules = {gradient: PhaseNetwork(network, gradient=gradient) for gradient in ("implicit", "centred")}
    names = ("coupling", "field_strength", "field_phase")
    parameters = {name: getattr(modules["implicit"], name).detach() for name in (*names, "omega")}
    structure = Structure.of(network)

    def cost(phases: Any) -> Any:
        return torch.nn.functional.cross_entropy(-4 * phases.cos(), labels)

    def layer(gradient: str) -> list[Any]:
        module = modules[gradient]
        return list(torch.autograd.grad(cost(module(inputs)), [getattr(module, name) for name in names]))

    def bare(gradient: str) -> list[Any]:
        batch = Batch.of(Weights(structure, parameters, turning=False), inputs)
        free, schur = sweeps_and_steps(batch, 4, 2)
        assert schur is not None
        cosine, sine = gathered(structure.outputs, free.states)
        phases = torch.atan2(sine, cosine).requires_grad_()
        slope = torch.autograd.grad(cost(phases), phases)[0]
        scale = slope.abs().amax(1)
        unit = slope / scale[:, None]
        if gradient == "implicit":
            right = [scale[0], *(scattered(structure.outputs, unit, k, free.states[k][0]) for k in (1, 2))]
            contrast = Contrast.along(batch, free.states, schur.solve(right))
        else:
            shifts = nudge_steps(batch, free, schur, lambda _: torch.cat((-0.01 * unit, 0.01 * unit)), 2, 3).shifts
            plus, minus = zip(*(each.chunk(2, dim=1) for each in shifts), strict=True)
            contrast = Contrast.between(batch, free.states, list(plus), list(minus), 0.02)
        slopes = contrast.slopes(names, scale)
        return [slopes[name] for name in names]

    return layer, bare
