"""What a history follows on request, at every evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from phasegrad._validation import FloatArray
from phasegrad.dynamics import laplacian
from phasegrad.gradients import adjoint, centred, cosine, finite_difference, two_phase, unwarned
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
    samples, names = parts["train"], tuple(plan.rates)
    if not names:
        return float("nan")
    equilibrium = plan.settling.equilibrium(network, samples.inputs[r, :_PROBED])
    target = samples.targets if samples.labels is None else samples.labels
    question: Any = (network, equilibrium, plan.objective, target[r, :_PROBED])
    options: dict[str, Any] = {"wrt": names, "frequencies": plan.frequencies}
    with unwarned():
        exact = adjoint(*question, **options)
        if plan.gradient in ("two_phase", "centred"):
            method = two_phase if plan.gradient == "two_phase" else centred
            used = method(*question, beta=plan.beta, **options)
        else:
            used = finite_difference(*question, **options) if plan.gradient == "finite_difference" else exact
    means = [np.concatenate([np.nansum(each[name], axis=0) for name in names]) for each in (used, exact)]
    return cosine(*means)


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
