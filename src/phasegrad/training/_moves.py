"""The parameters of one network on a device: all that learn as one flat vector, moved by a handful of operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from phasegrad.networks import Network
from phasegrad.tensors import Coupled, Structure, weight_of
from phasegrad.training._descent import Couplings, Descent, bounds_of, decays_of, rates_of
from phasegrad.training._engine import Problem, Progress
from phasegrad.training._norms import Map, Norms, first_vectors
from phasegrad.training._optimizers import Memory

# The name under which descent meets the vector.
_ALL = "all"


class Moves:
    """The parameters of one network on a device and the optimiser's memory of them.

    Attributes
    ----------
    names : tuple of str
        What learns.
    places : dict of str to slice
        Where everything that may move lies in the vector: what learns, and what bounds alone move.
    values : tensor, shape (1, n)
        The vector; ``parameters`` are views of it, and constants for what does not move.
    """

    def __init__(self, problem: Problem, number: int, device: torch.device, dtype: torch.dtype) -> None:
        plan, network = problem.plan, problem.networks[number]
        self.begun = problem.begin.of([number])
        self.names, self.plan = tuple(plan.rates), plan
        bounds = bounds_of(network, plan) if self.names else {}
        every = {name: values[0] for name, values in self.begun.parameters.items()}
        self.places, start = {}, 0
        for name in dict.fromkeys((*self.names, *bounds)):
            self.places[name] = slice(start, start + every[name].size)
            start += every[name].size

        def flat(parts: Mapping[str, Any], otherwise: float = 0.0) -> Tensor:
            joined = np.full((1, start), otherwise)
            for name, part in parts.items():
                joined[:, self.places[name]] = part
            return torch.as_tensor(joined, dtype=dtype).to(device)

        self.values = flat({name: every[name] for name in self.places})
        self.parameters = {
            name: self.values[0, self.places[name]]
            if name in self.places
            else torch.as_tensor(np.array(values), dtype=dtype).to(device)
            for name, values in every.items()
        }
        masks = {name: problem.masks[name][number] for name in self.names}
        decays = decays_of(network, plan)
        low, high = ({name: pair[k] for name, pair in bounds.items()} for k in (0, 1))
        self.descent = Descent(
            plan,
            rates={_ALL: flat(rates_of(network, plan))},
            masks={} if all(np.all(mask) for mask in masks.values()) else {_ALL: flat(masks)},
            decays={_ALL: flat(decays)} if decays else {},
            bounds={_ALL: (flat(low, -np.inf), flat(high, np.inf))} if bounds else {},
            couplings=self._couplings(network),
        )
        memory = self.begun.memory
        first, second = ({_ALL: flat(part)} if part else {} for part in (memory.first, memory.second))
        self.memory = Memory(torch.tensor(memory.steps, dtype=torch.float64, device=device), first, second)  # type: ignore[arg-type]
        self.slope = torch.zeros_like(self.values)
        self.active = torch.ones(1, dtype=torch.bool, device=device)

    @property
    def buffers(self) -> tuple[Tensor, ...]:
        """Everything that an update changes."""
        norms = [couplings.norms for couplings in self.descent.couplings.values()]
        vectors = [vector for each in norms if each is not None for vector in each.vectors.values()]
        return (self.values, *self._memories(self.memory), *vectors)

    def begin(self) -> None:
        """Begin an epoch."""
        self.descent.begin({_ALL: self.values})

    def propose(self, slopes: Mapping[str, Tensor], factor: Tensor, moves: Tensor) -> None:
        """Compute the step and the memory after it."""
        for name in self.names:
            self.slope[0, self.places[name]] = slopes[name]
        rate = factor.to(self.values.dtype)
        self.before = self.values if self.plan.lock_floor is None else self.values.clone()
        self.steps, self.later = self.descent.propose({_ALL: self.before}, self.memory, {_ALL: self.slope}, rate, moves)

    def take(self, moves: Tensor, fraction: Tensor | None = None) -> None:
        """Take a fraction of the step, (1,), where there is one to take."""
        self.values.copy_(self.descent.moved({_ALL: self.before}, self.steps, fraction, moves)[_ALL])

    def remember(self, moves: Tensor) -> None:
        """Keep the memory of the step."""
        later = self.memory.merged(self.later, moves)  # type: ignore[arg-type]
        for mine, after in zip(self._memories(self.memory), self._memories(later), strict=True):
            mine.copy_(after)
        self.descent.conclude()

    def progress(self) -> Progress:
        """Return where the network stands, as arrays by name."""
        first, second = (
            {name: _array(part[_ALL])[:, self.places[name]] for name in self.names} if part else {}
            for part in (self.memory.first, self.memory.second)
        )
        steps = _array(self.memory.steps).astype(np.int64)
        values = _array(self.values)
        moved = {name: values[:, where] for name, where in self.places.items()}
        return Progress({**self.begun.parameters, **moved}, Memory(steps, first, second), self.begun.phases)

    @staticmethod
    def _memories(memory: Any) -> tuple[Tensor, ...]:
        return (memory.steps, *memory.first.values(), *memory.second.values())

    def _couplings(self, network: Network) -> dict[str, Couplings]:
        """Return what couplings are kept to."""
        norms = None
        if self.plan.coupling_norm is not None and "coupling" in self.names:
            norms = _norms(network, self.plan.coupling_norm, self.values)
        return {_ALL: Couplings(network, self.plan, norms, self.places)} if norms or self.plan.balance else {}


def _norms(network: Network, most: float, like: Tensor) -> Norms:
    """Return the norms of a network whose couplings are tensors."""
    structure, layout = Structure.of(network), network.graph.layout
    assert layout is not None

    def maps(couplings: Tensor, link: int) -> tuple[Map, Map]:
        chosen = structure.links[link]
        coupled = Coupled(chosen, structure.groups, weight_of(chosen, couplings))
        return coupled.forward, coupled.backward

    shapes = {k: (1, 1, *structure.groups[structure.links[k].second].shape) for k in first_vectors(network)}
    first = {k: torch.as_tensor(each).to(like).reshape(shapes[k]) for k, each in first_vectors(network).items()}
    return Norms(layout, most, maps, first)


def _array(values: Any) -> Any:
    """Return a tensor as an array of its own, which later steps do not change."""
    return values.to("cpu", torch.float64, copy=True).numpy()
