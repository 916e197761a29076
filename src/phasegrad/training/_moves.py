"""Steps of an optimiser on a device: all learnable parameters as one flat vector, moved by a handful of operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from phasegrad.networks import Network
from phasegrad.tensors import Coupled, Structure, weight_of
from phasegrad.training._engine import Problem
from phasegrad.training._learner import bounds_of, on_edges, step_scales
from phasegrad.training._norms import FIRST_STEPS, first_vector, followed, inner_links
from phasegrad.training._optimizers import Adam, Momentum


class Moves:
    """The parameters of one network on a device and the optimiser's memory of them.

    Attributes
    ----------
    names : tuple of str
        What learns.
    values : tensor
        All of it, one after the other; ``parameters`` are views of it, and constants for what does not learn.
    """

    def __init__(self, problem: Problem, number: int, device: torch.device, dtype: torch.dtype) -> None:
        plan, network, begin = problem.plan, problem.networks[number], problem.begin
        self.plan, self.names = plan, tuple(plan.rates)
        every = {name: each[number] for name, each in begin.parameters.items()}

        def flat(parts: Mapping[str, Any], kind: torch.dtype = dtype) -> Tensor:
            joined = np.concatenate([np.zeros(0), *(np.ravel(parts[name]) for name in self.names)])
            return torch.as_tensor(joined, dtype=kind).to(device)

        self.values = flat(every)
        self.places, start = {}, 0
        for name in self.names:
            self.places[name] = slice(start, start + every[name].size)
            start += every[name].size
        self.parameters = {
            name: self.values[self.places[name]]
            if name in self.places
            else torch.as_tensor(np.array(values), dtype=dtype).to(device)
            for name, values in every.items()
        }
        self.kept = {name: values for name, values in every.items() if name not in self.places}
        scales = step_scales(network, plan)
        ones = {name: np.ones(every[name].size) for name in self.names}
        masks = {name: problem.masks[name][number].astype(float) for name in self.names}
        self.rates = flat({name: plan.rates[name] * scales.get(name, 1.0) * masks[name] for name in self.names})
        self.mask = flat(masks)
        decays = {name: network.term_of(name)[1].decays * plan.weight_decay for name in self.names}
        self.decay = flat({name: ones[name] * decays[name] for name in self.names}) if plan.weight_decay else None
        bounds = bounds_of(network, plan)
        self.low, self.high = (
            flat({name: ones[name] * bounds.get(name, (-np.inf, np.inf))[k] for name in self.names}) for k in (0, 1)
        )
        self.bounded = any(name in bounds for name in self.names)
        self.network = network
        self.balanced = [self.places[name] for name in on_edges(network, plan) if plan.balance]
        most = plan.coupling_norm
        self.norms = None if most is None or "coupling" not in self.names else _Norms(network, most, self.values)
        memory = begin.memory
        self.count = torch.tensor(float(memory.steps[number]), dtype=torch.float64, device=device)
        zeros = torch.zeros_like(self.values)
        self.first = flat({k: v[number] for k, v in memory.first.items()}) if memory.first else zeros
        self.second = flat({k: v[number] for k, v in memory.second.items()}) if memory.second else zeros.clone()
        self.has_first, self.has_second = bool(memory.first), bool(memory.second)
        self.slope, self.step = torch.zeros_like(self.values), torch.zeros_like(self.values)
        self.later = (torch.zeros_like(self.values), torch.zeros_like(self.values))
        self.active = torch.ones((), dtype=torch.bool, device=device)

    @property
    def buffers(self) -> tuple[Tensor, ...]:
        """Everything that an update changes."""
        vectors = () if self.norms is None else tuple(self.norms.vectors.values())
        return (self.values, self.first, self.second, self.count, *vectors)

    def begin(self) -> None:
        """Begin an epoch."""
        if self.norms is not None:
            self.norms.begin(self.values[self.places["coupling"]])

    def propose(self, slopes: Mapping[str, Tensor], factor: Tensor) -> None:
        """Compute the step and the memory after it."""
        for name in self.names:
            self.slope[self.places[name]] = slopes[name]
        slope = self.slope
        if self.plan.clip is not None:
            slope = slope.clamp(-self.plan.clip, self.plan.clip)
        slope = slope * self.mask
        rate = factor.to(self.values.dtype)
        optimizer = self.plan.optimizer
        if isinstance(optimizer, Adam):
            step = self._adam(optimizer, slope, rate)
        else:
            step = self._momentum(optimizer, slope, rate)
        if self.decay is not None:
            step = step - rate * self.rates * self.decay * self.values
        self.step.copy_(step)

    def take(self, moves: Tensor, share: float) -> None:
        """Take a share of the step, where there is one to take; without a lock guard, remember it too."""
        after = self.values + torch.where(moves, self.step, 0.0) * share
        for where in self.balanced:
            layout = self.network.graph.layout
            assert layout is not None
            parts = layout.balanced(after[where], clamped=self.network.clamps_inputs)
            after[where] = torch.where(moves, torch.cat(parts), self.values[where])
        if self.norms is not None:
            where = self.places["coupling"]
            after[where] = torch.where(moves, self.norms.bounded(after[where]), self.values[where])
        if self.bounded:
            after = torch.where(moves, after.clamp(self.low, self.high), self.values)
        self.values.copy_(after)
        if self.plan.lock_floor is None:
            self.remember(moves)

    def remember(self, moves: Tensor) -> None:
        """Keep the memory of the step."""
        if self.has_first:
            self.first.copy_(torch.where(moves, self.later[0], self.first))
        if self.has_second:
            self.second.copy_(torch.where(moves, self.later[1], self.second))
        if self.norms is not None:
            self.norms.keep(moves)
        self.count += moves

    def progress(self) -> tuple[dict[str, Any], int, dict[str, Any], dict[str, Any]]:
        """Return parameters, steps taken and both moments as arrays by name."""
        values, first, second = (each.double().cpu().numpy() for each in (self.values, self.first, self.second))
        parameters = {name: np.array(each) for name, each in self.kept.items()}
        parameters |= {name: values[where] for name, where in self.places.items()}
        moments = [
            {name: flat[where] for name, where in self.places.items()} if there else {}
            for flat, there in ((first, self.has_first), (second, self.has_second))
        ]
        return parameters, int(self.count.item()), moments[0], moments[1]

    def _adam(self, optimizer: Adam, slope: Tensor, rate: Tensor) -> Tensor:
        count = self.count + 1
        spread = torch.sqrt(1 - optimizer.second**count)
        scale = (spread / (1 - optimizer.first**count)).to(slope.dtype)
        mean, square = self.later
        torch.lerp(self.first, slope, 1 - optimizer.first, out=mean)
        torch.mul(self.second, optimizer.second, out=square)
        square.addcmul_(slope, slope, value=1 - optimizer.second)
        below = square.sqrt() + (optimizer.epsilon * spread).to(slope.dtype)
        return -(mean / below) * self.rates * (rate * scale)

    def _momentum(self, optimizer: Momentum, slope: Tensor, rate: Tensor) -> Tensor:
        step = -slope * self.rates * rate
        if not self.has_first:
            return step
        torch.add(step, self.first, alpha=optimizer.momentum, out=self.later[0])
        return self.later[0]


class _Norms:
    """The norms of one network's couplings as tensors; see `phasegrad.training._norms.Norms`."""

    def __init__(self, network: Network, most: float, like: Tensor) -> None:
        self.most, self.structure = most, Structure.of(network)
        groups, links = self.structure.groups, self.structure.links
        self.first = {
            k: torch.as_tensor(first_vector(network, k)).to(like).reshape(1, 1, *groups[links[k].second].shape)
            for k in inner_links(network)
        }
        self.vectors = {k: each.clone() for k, each in self.first.items()}
        self.ahead = dict(self.vectors)

    def begin(self, couplings: Tensor) -> None:
        for k, vector in self.first.items():
            self.vectors[k].copy_(self._followed(couplings, k, vector, FIRST_STEPS)[1])

    def bounded(self, couplings: Tensor) -> Tensor:
        after = couplings.clone()
        for k, vector in self.vectors.items():
            norm, self.ahead[k] = self._followed(couplings, k, vector)
            after[self.structure.links[k].couplings.run] *= (self.most / norm).clamp_max(1.0)
        return after

    def keep(self, moves: Tensor) -> None:
        for k, vector in self.vectors.items():
            vector.copy_(torch.where(moves, self.ahead[k], vector))

    def _followed(self, couplings: Tensor, link: int, vector: Tensor, steps: int = 1) -> tuple[Tensor, Tensor]:
        chosen = self.structure.links[link]
        coupled = Coupled(chosen, self.structure.groups, weight_of(chosen, couplings))
        return followed(vector, coupled.forward, coupled.backward, steps)
