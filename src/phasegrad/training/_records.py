"""What a history follows on request, at every evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from phasegrad._validation import FloatArray
from phasegrad.dynamics import laplacian
from phasegrad.gradients import adjoint, cosine, unwarned
from phasegrad.networks import Network
from phasegrad.training._plan import Plan
from phasegrad.training._samples import Samples

# Training samples on which the gradient is compared with the exact one.
_PROBED = 32


def record(plan: Plan, networks: Sequence[Network], parts: Mapping[str, Samples]) -> dict[str, FloatArray]:
    """Return what the plan asks for, one number per network, (R,)."""
    functions = {"condition": _condition, "gradient_cosine": _gradient_cosine, "class_separation": _class_separation}
    return {
        word: np.array([functions[word](plan, network, parts, r) for r, network in enumerate(networks)])
        for word in plan.record
    }


def _condition(plan: Plan, network: Network, parts: Mapping[str, Samples], r: int) -> float:
    """Return the condition number of the reduced Laplacian at the first training sample."""
    sample = parts["train"].inputs[r, 0]
    equilibrium = plan.settling.equilibrium(network, sample)
    if not equilibrium.converged:
        return float("nan")
    return float(np.linalg.cond(laplacian(network, equilibrium.phases, sample)))


def _gradient_cosine(plan: Plan, network: Network, parts: Mapping[str, Samples], r: int) -> float:
    """Return the cosine of the plan's gradient and the exact one, summed over the first training samples."""
    names = tuple(plan.rates)
    if not names:
        return float("nan")
    question, options = _asked(plan, network, parts, r)
    with unwarned():
        exact = adjoint(*question, **options)
        used = exact if plan.propagation.exact else plan.propagation.gradient(*question, **options)
    means = [np.concatenate([np.nansum(each[name], axis=0) for name in names]) for each in (used, exact)]
    return cosine(*means)


def nudged_error(plan: Plan, network: Network, parts: Mapping[str, Samples], r: int) -> tuple[float, str]:
    """Return how far off the plan's nudged gradient is on the first training samples, and by which parameter.

    That is the largest error of the worst sample, as a share of its largest entry.
    """
    question, options = _asked(plan, network, parts, r)
    with unwarned():
        gradient = plan.propagation.gradient(*question, **options)
    each = {name: gradient.relative_error(name) for name in plan.rates}
    return max((float(np.max(error[np.isfinite(error)], initial=0.0)), name) for name, error in each.items())


def _asked(plan: Plan, network: Network, parts: Mapping[str, Samples], r: int) -> tuple[Any, dict[str, Any]]:
    """Return what a gradient method takes: the first training samples, and the plan's options."""
    samples = parts["train"]
    equilibrium = plan.settling.equilibrium(network, samples.inputs[r, :_PROBED])
    target = samples.targets if samples.labels is None else samples.labels
    question = (network, equilibrium, plan.objective, target[r, :_PROBED])
    return question, {"wrt": tuple(plan.rates), "frequencies": plan.frequencies}


def _class_separation(plan: Plan, network: Network, parts: Mapping[str, Samples], r: int) -> float:
    """Return the smallest distance between the mean output phases of two classes, over the test or training part."""
    samples = parts.get("test", parts["train"])
    if samples.labels is None:
        return float("nan")
    equilibrium = plan.settling.equilibrium(network, samples.inputs[r])
    outputs = equilibrium.phases[:, list(network.outputs)]
    labels = np.where(equilibrium.stable, samples.labels[r], -1)
    means = np.array([outputs[labels == label].mean(axis=0) for label in np.unique(labels[labels >= 0])])
    if len(means) < 2:
        return float("nan")
    distance = np.linalg.norm(means[:, None] - means[None], axis=-1)
    return float(np.min(distance[np.triu_indices(len(means), k=1)]))
