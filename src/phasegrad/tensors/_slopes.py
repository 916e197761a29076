r"""Gradients of a batch: slopes of the energy by every parameter, between two states or along a direction.

Equilibrium propagation reads the gradient off two nudged states z+ and z-. With their mean m and half their difference
d, the slope by a coupling contrasts as

    z+_i . z+_j - z-_i . z-_j = 2 (m_i . d_j + d_i . m_j)

exactly, so that differences are taken before products. The implicit gradient is the same expression with m the free
states and d along the response, M lambda = dC/dtheta.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from phasegrad.tensors._algebra import Schur, conjugate
from phasegrad.tensors._batches import Batch, crossed, kept, scattered
from phasegrad.tensors._compiled import Eliminated, compiles
from phasegrad.tensors._links import States, collect
from phasegrad.tensors._settling import Settled
from phasegrad.tensors._structure import Index


class Contrast:
    """Two states of a batch, or one and a direction.

    Parameters
    ----------
    batch : Batch
    middle : list of tensor
        Mean of both states, (2, B, ...).
    rates : list of tensor
        Their difference over what lies between them, (2, B, ...).
    turns : list of tensor
        The same of the phases, (B, ...); the held group's is not used.
    """

    def __init__(self, batch: Batch, middle: States, rates: States, turns: Sequence[Tensor]) -> None:
        self.batch, self.middle, self.rates, self.turns = batch, middle, rates, turns

    @classmethod
    def between(cls, batch: Batch, free: States, plus: States, minus: States | None, span: float) -> Contrast:
        """Return the contrast of states shifted by ``plus`` and ``minus`` from free ones, None being the free ones."""
        middle, rates, turns = [free[0]], [torch.zeros_like(free[0])], [free[0].new_zeros(())]
        for k in batch.structure.moving:
            first = plus[k]
            second = torch.zeros_like(first) if minus is None else minus[k]
            mean, half = free[k] + (first + second) / 2, (first - second) / 2
            middle.append(mean)
            rates.append(half * (2 / span))
            turns.append(2 / span * torch.atan2(crossed(mean, half), (mean * mean).sum(0)))
        return cls(batch, middle, rates, turns)

    @classmethod
    def along(cls, batch: Batch, states: States, response: Sequence[Tensor]) -> Contrast:
        """Return the contrast along minus the response of the phases, (B, ...) each."""
        moving = batch.structure.moving
        turns = [response[0]] + [-response[k] for k in moving]
        rates = [torch.zeros_like(states[0])]
        rates += [torch.stack((-states[k][1] * turns[k], states[k][0] * turns[k])) for k in moving]
        return cls(batch, list(states), rates, turns)

    @classmethod
    def exact(cls, batch: Batch, free: Settled, slope: Tensor) -> tuple[Contrast, Tensor]:
        """Return the contrast along the exact response to a slope by the outputs, (B, M), and where it was found."""
        structure, states = batch.structure, free.states
        stiffness = batch.stiffness(states, free.fields)
        right = [batch.held.new_zeros(())]
        right += [scattered(structure.outputs, slope, k, states[k][0]) for k in structure.moving]
        if compiles(batch):
            response, found = Eliminated.around(batch, free).respond(states, right)
        elif structure.hidden is not None:
            schur = Schur(batch, states, stiffness)
            response, found = schur.solve(right), ~schur.failed
        else:
            response, found, _, _ = conjugate(batch, states, stiffness, right)
        return cls.along(batch, states, kept(found, response, 0)), found

    @classmethod
    def nudged(cls, batch: Batch, free: Settled, shifts: States, found: Tensor, beta: float) -> Contrast:
        """Return that of states shifted by a nudge of beta, or by one of beta and then one of -beta, where found."""
        times = shifts[-1].shape[1] // batch.size
        sides = list(zip(*(each.chunk(times, dim=1) for each in shifts), strict=True))
        plus, *minus = [kept(found, side, 1) for side in sides]
        return cls.between(batch, free.states, plus, minus[0] if minus else None, beta * times)

    def slopes(self, names: Iterable[str], share: Tensor) -> dict[str, Tensor]:
        """Return the gradient by every parameter named, each sample counted by its share (B,)."""
        rates = [each * share.reshape(1, -1, *(1,) * (each.dim() - 2)) for each in self.rates]
        parameters = self.batch.weights.parameters
        found = {}
        for name in names:
            if name == "coupling":
                found[name] = self._by_coupling(rates, parameters[name])
            elif name == "omega":
                found[name] = self._by_omega(share, parameters[name])
            else:
                found[name] = self._by_field(name, rates)
        return found

    def by_inputs(self) -> Tensor:
        """Return the gradient by the inputs of every sample, (B, n_in)."""
        structure, network = self.batch.structure, self.batch.structure.network
        if not structure.clamped:
            turns = [self.batch.held.new_zeros(self.batch.held.shape[1:]), *self.turns[1:]]
            mean = sum(each.flatten(1).sum(1, keepdim=True) for each in turns) / network.size if network.pinned else 0.0
            parts = [places.take(turns[k].flatten(1)) for k, places in structure.inputs]
            return -network.input_scale * (torch.cat(parts, dim=1) - mean)
        field = None
        for coupled in self.batch.weights.links:
            if coupled.link.first == 0:
                field = coupled.backward(self.rates[coupled.link.second], field)
        held = self.batch.held
        if field is None:
            return held[0].flatten(1) * 0
        return -network.input_scale * crossed(held, field).flatten(1)

    def _by_coupling(self, rates: States, coupling: Tensor) -> Tensor:
        total = torch.zeros_like(coupling)
        for coupled in self.batch.weights.links:
            first, second = coupled.link.first, coupled.link.second
            if first == 0:
                slope = coupled.correlation(self.middle[0], rates[second])
            else:
                ends = (self.middle[first], rates[first]), (rates[second], self.middle[second])
                slope = coupled.correlation(*(torch.cat(pair, dim=1) for pair in ends))
            collect(coupled.link, -slope, total)
        return total

    def _by_omega(self, share: Tensor, omega: Tensor) -> Tensor:
        structure = self.batch.structure
        total = torch.zeros_like(omega)
        for k in structure.moving:
            turned = (self.turns[k] * share.reshape(-1, *(1,) * (self.turns[k].dim() - 1))).sum(0)
            _collect_values(structure.groups[k].values, -turned, total)
        if structure.network.pinned:
            total = total - total.sum() / structure.network.size
        return total

    def _by_field(self, name: str, rates: States) -> Tensor:
        parameters = self.batch.weights.parameters
        strength, phase = parameters["field_strength"], parameters["field_phase"]
        x, y = torch.zeros_like(strength), torch.zeros_like(strength)
        for k in self.batch.structure.moving:
            sums = rates[k].sum(1)
            _collect_values(self.batch.structure.groups[k].values, sums[0], x)
            _collect_values(self.batch.structure.groups[k].values, sums[1], y)
        cos, sin = torch.cos(phase), torch.sin(phase)
        return -(cos * x + sin * y) if name == "field_strength" else strength * (sin * x - cos * y)


def _collect_values(values: Index, sums: Tensor, total: Tensor) -> None:
    """Put sums over a group's oscillators where its values are; those of a channel are added up."""
    values.put(total, sums if sums.dim() == 1 else sums.flatten(1).sum(1))
