"""What one run on images computes: a network trained, scored and timed; and how good its nudged gradient is."""

from __future__ import annotations

import dataclasses
import platform
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

import phasegrad
from phasegrad import datasets
from phasegrad._validation import BoolArray, whole_number
from phasegrad.datasets import Dataset
from phasegrad.networks import Network
from phasegrad.objectives import Cost
from phasegrad.training import History, Plan, Training, train_whole
from phasegrad_paper.studies.images.experiments import Experiment

#: Called after a score, from the second on, with epochs done, epochs in all, and the seconds that the rest will take.
Watch = Callable[[int, int, float], None]
#: Training images on which gradients are compared.
COMPARED = 64
_TOLERANCE = 1e-11
_SWEEPS = 200


def run(
    settings: Mapping[str, Any], seed: int, device: str = "cuda", folder: str | None = None, watch: Watch | None = None
) -> dict[str, Any]:
    """Train a network by the settings of an `Experiment` and return its figures as plain data.

    Parameters
    ----------
    settings : mapping
        Those of an experiment.
    seed : int
        Of the network, of what learns where that is drawn, and of the order of the images.
    device : str
        Where: "cuda", "cpu" and so on.
    folder : str, optional
        Where the images are; the environment variable PHASEGRAD_DATA names it if left out.
    watch : callable, optional
        Told how far it is; what it raises ends the run.
    """
    experiment, seed = Experiment.of(settings), whole_number("seed", seed, 0, "a run on images")
    data = load(experiment.task, folder)
    shape = data.shape or (len(data.features),)
    network, plan = experiment.build(shape, seed), experiment.made_plan()
    masks = drawn_masks(network, plan, seed) if experiment.matched else None
    before = _cosines(network, plan, data, device) if experiment.gradients else None
    times: list[tuple[int, float]] = []
    start = time.perf_counter()

    def note(epoch: int, _history: History) -> None:
        times.append((epoch, time.perf_counter() - start))
        if watch is not None and len(times) > 1:
            # The first epoch holds all that is done once: it says nothing of the others.
            (first, began), (last, now) = times[0], times[-1]
            watch(epoch, plan.epochs, (plan.epochs - epoch) * (now - began) / (last - first))

    result = train_whole(
        network, data, plan, seed=seed, mask=masks, device=device, dtype=experiment.dtype, progress=note
    )
    seconds = time.perf_counter() - start
    figures = _figures(result, masks) | {"seconds": seconds, "seconds_per_epoch": _per_epoch(times)}
    if before is not None:
        figures["cosines"] = {"before": before, "after": _cosines(result.network, plan, data, device)}
    return figures | {"dtype": experiment.dtype} | _machine(device)


@lru_cache(maxsize=1)
def load(task: str, folder: str | None) -> Dataset:
    """Return the images of a task; the last ones are kept, for runs that follow each other."""
    if task == "digits":
        return dataclasses.replace(datasets.digits(), shape=(1, 8, 8))
    function: Callable[..., Dataset] = getattr(datasets, task)
    return function(folder)


def drawn_masks(network: Network, plan: Plan, seed: int) -> dict[str, BoolArray]:
    """Return which entries learn: as many of all that could as there are values of oscillators that move."""
    able = {name: network.term_of(name)[1].learnable(network.graph) for name in plan.rates}
    count = int(np.sum(network.term_of("omega")[1].learnable(network.graph)))
    places = np.flatnonzero(np.concatenate(list(able.values())))
    taken = np.zeros(sum(each.size for each in able.values()), dtype=bool)
    stream = np.random.default_rng([seed, count])
    taken[stream.choice(places, size=min(count, places.size), replace=False)] = True
    ends = np.cumsum([each.size for each in able.values()])[:-1]
    return dict(zip(able, np.split(taken, ends), strict=True))


def _figures(result: Training, masks: Mapping[str, BoolArray] | None) -> dict[str, Any]:
    history, network = result.history, result.network
    learn = list(result.plan.rates)
    if masks is None:
        able = (network.term_of(name)[1].learnable(network.graph) for name in learn)
        count = sum(int(np.sum(each)) for each in able)
    else:
        count = sum(int(np.sum(each)) for each in masks.values())
    return {
        "accuracy": float(history.test_accuracy[0, -1]),
        "train_accuracy": float(history.train_accuracy[0, -1]),
        "untrained_accuracy": float(history.test_accuracy[0, 0]),
        "unsettled": int(history.test_unsettled[0, -1]),
        "unproved": int(history.test_unstable[0, -1]),
        "skipped": int(history.skipped[0, 1:].sum()),
        "epochs": int(result.state.epoch),
        "ended": result.ended,
        "parameters": count,
        "oscillators": network.size - len(network.inputs),
        "curve": [round(float(each), 6) for each in history.test_accuracy[0]],
        "plan": {name: _words(value) for name, value in vars(result.plan).items()},
    }


def _words(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_words(each) for each in value]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def _per_epoch(times: list[tuple[int, float]]) -> float:
    """Return the median time of an epoch, with its share of the next score, between two scores; of one all it took."""
    if len(times) < 2:
        return times[0][1] / max(times[0][0], 1) if times else 0.0
    return float(np.median([(t - s) / (e - d) for (d, s), (e, t) in pairwise(times)]))


def _machine(device: str) -> dict[str, Any]:
    import torch

    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else platform.machine()
    versions = {"torch": torch.__version__, "numpy": np.__version__, "phasegrad": phasegrad.__version__}
    return {"device": name, **versions}


def _cosines(network: Network, plan: Plan, data: Dataset, device: str) -> dict[str, float]:
    x = data.x_train[:COMPARED].reshape(-1, len(data.features))
    return gradient_cosines(network, plan.objective, x, data.y_train[:COMPARED], plan.beta, device)


def gradient_cosines(
    network: Network, objective: Cost, x: Any, y: Any, beta: float, device: str = "cpu"
) -> dict[str, float]:
    """Return the cosines of the centred gradient and the exact one, layer by layer and of everything, in double.

    Parameters
    ----------
    network : Network
        Of layers, with fields.
    objective : Cost
    x, y : array
        Samples (n, n_in), and targets.
    beta : float
        The nudges are +beta and -beta.
    device : str
    """
    import torch

    from phasegrad.tensors import (
        Batch,
        Contrast,
        Structure,
        Weights,
        gathered,
        nudge_sweeps,
        settle,
    )

    def tensor(values: Any) -> Any:
        return torch.tensor(np.ascontiguousarray(values), dtype=torch.float64, device=device)

    structure = Structure.of(network)
    parameters = {name: tensor(values) for name, values in network.parameters.items()}
    batch = Batch.of(Weights(structure, parameters, turning=bool(np.any(network.omega))), tensor(x))
    goals = tensor(objective.check_target(np.asarray(y), network))

    def pull(states: Any, strength: Any = 1.0, times: int = 1) -> Any:
        phases = torch.atan2(states[1], states[0])
        return strength * objective.torch_force(phases, goals.repeat(times, 1))

    free = settle(batch, torch.full((batch.size,), _TOLERANCE, dtype=torch.float64, device=device))
    signs = torch.cat([torch.full_like(goals[:, :1], beta), torch.full_like(goals[:, :1], -beta)])
    nudged = nudge_sweeps(batch, free, lambda states: pull(states, signs, 2), 2, _SWEEPS)
    found = torch.ones(batch.size, dtype=torch.bool, device=device)
    centred = Contrast.nudged(batch, free, nudged.shifts, found, beta)
    exact, _ = Contrast.exact(batch, free, -pull(gathered(structure.outputs, free.states)))
    names = [name for name in parameters if name != "omega"]
    share = torch.full((batch.size,), 1 / batch.size, dtype=torch.float64, device=device)
    both = [{k: v.cpu().numpy() for k, v in each.slopes(names, share).items()} for each in (centred, exact)]
    return _by_layer(network, *both)


def _by_layer(network: Network, first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, float]:
    layout = network.graph.layout
    assert layout is not None
    found = {}
    for link, part in zip(layout.links, layout.couplings, strict=True):
        found[f"layer {link.second}"] = _cosine(first["coupling"][part], second["coupling"][part])
    found["all"] = _cosine(*(np.concatenate([each[name] for name in first]) for each in (first, second)))
    return found


def _cosine(first: Any, second: Any) -> float:
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))
