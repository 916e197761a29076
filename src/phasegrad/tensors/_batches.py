r"""A batch of one network on a device: local fields, sweeps, residuals.

With all others fixed, the energy of an oscillator is lowest where it points along its local field h, turned by
asin(omega / |h|) if it is driven:

    z = (h / |h|) (sqrt(1 - s^2) + i s),      s = omega / |h|

The oscillators of a group are not coupled to each other and turn together, so that the energy never rises. Nothing here
waits for the device: how many sweeps are taken is decided outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from phasegrad.tensors._links import Coupled, States, weight_of
from phasegrad.tensors._structure import Places, Structure

# Units in the last place of the largest pull on an oscillator that its force may be off by.
_ROUNDING = 8.0


class Weights:
    """The parameters of a network as tensors in the shape of its groups and links.

    ``fields`` (2, 1, ...) are those of the groups that move, None without any; ``turning`` says whether an oscillator
    may have a frequency.
    """

    def __init__(self, structure: Structure, parameters: Mapping[str, Tensor], *, turning: bool) -> None:
        self.structure, self.parameters = structure, parameters
        coupling = parameters["coupling"]
        self.links = [Coupled(link, structure.groups, weight_of(link, coupling)) for link in structure.links]
        self.fields: list[Tensor | None] = [None for _ in structure.groups]
        if "field_strength" in parameters:
            strength, phase = parameters["field_strength"], parameters["field_phase"]
            pull = torch.stack((strength * torch.cos(phase), strength * torch.sin(phase)))
            self.fields = [self.values(pull, k) for k in range(len(structure.groups))]
        self.omegas: list[Tensor | None] = [None for _ in structure.groups]
        if turning:
            self.omegas = [self.values(parameters["omega"], k) for k in range(len(structure.groups))]

    def rounding(self, eps: float | None = None) -> Tensor:
        """Return the force that the rounding of products and sums alone may leave on an oscillator."""
        strongest = [self.parameters["coupling"].new_zeros(1)]
        for k in self.structure.moving:
            pulls = [coupled.capacity(k) for coupled in self.links if k in (coupled.link.first, coupled.link.second)]
            field = self.fields[k]
            if field is not None:
                pulls.append(torch.hypot(field[0], field[1]).amax())
            strongest.append(torch.stack([each.reshape(()) for each in pulls]).sum().reshape(1))
        return _ROUNDING * (eps or torch.finfo(strongest[0].dtype).eps) * torch.cat(strongest).amax()

    def values(self, parameter: Tensor, group: int) -> Tensor:
        """Return values (..., width) of a group's oscillators, (..., 1, *shape); one per channel, (..., 1, C, 1, 1)."""
        chosen = self.structure.groups[group]
        shape = chosen.shape if len(chosen.shape) == 1 else (chosen.shape[0], 1, 1)
        return chosen.values.take(parameter).unflatten(-1, (1, *shape))


class Batch:
    """Samples of one network.

    Parameters
    ----------
    weights : Weights
    base : list of tensor
        Of every group, the field (2, B, ...) that fields and held oscillators make; the first is not used.
    held : tensor
        State (2, B, ...) of the held group.
    omegas : list of tensor or None
        Frequencies (B or 1, ...) of every group.
    """

    def __init__(self, weights: Weights, base: list[Tensor], held: Tensor, omegas: list[Tensor | None]) -> None:
        self.weights, self.base, self.held, self.omegas = weights, base, held, omegas
        self.structure = weights.structure

    @classmethod
    def of(cls, weights: Weights, inputs: Tensor) -> Batch:
        """Return the batch of inputs (B, n_in)."""
        structure, count = weights.structure, inputs.shape[0]
        held = _held(structure, inputs)
        base = [held]
        for k in structure.moving:
            field, group = weights.fields[k], structure.groups[k]
            start = inputs.new_zeros(2, 1, *group.shape) if field is None else field
            start = start.expand(2, count, *group.shape)
            for coupled in weights.links:
                if coupled.link.first == 0 and coupled.link.second == k:
                    start = coupled.forward(held, start)
            base.append(start)
        return cls(weights, base, held, _frequencies(weights, inputs))

    @classmethod
    def around(cls, weights: Weights, inputs: Tensor, fields: Sequence[Tensor]) -> Batch:
        """Return the same for work around states whose local fields are known: those serve as its base."""
        held = _held(weights.structure, inputs)
        return cls(weights, [held, *fields[1:]], held, _frequencies(weights, inputs))

    def take(self, rows: Tensor) -> Batch:
        """Return some of the samples."""
        omegas = [each if each is None or each.shape[0] == 1 else each[rows] for each in self.omegas]
        return Batch(self.weights, [each[:, rows] for each in self.base], self.held[:, rows], omegas)

    @property
    def size(self) -> int:
        """How many samples there are."""
        return int(self.held.shape[1])

    def cold(self) -> States:
        """Return the states with all phases zero."""
        return [self.held] + [
            torch.stack((torch.ones_like(each[0]), torch.zeros_like(each[0]))) for each in self.base[1:]
        ]

    def field_on(self, group: int, states: Sequence[Tensor], onto: Tensor | None) -> Tensor:
        """Return the field that all moving groups make on one, added to ``onto``."""
        for k, link in self.structure.links_of(group):
            coupled = self.weights.links[k]
            if link.second == group:
                onto = coupled.forward(states[link.first], onto)
            else:
                onto = coupled.backward(states[link.second], onto)
        return torch.zeros_like(self.base[group]) if onto is None else onto

    def fields(self, states: Sequence[Tensor]) -> States:
        """Return the local fields of all groups; of the held one, nothing that counts."""
        return [self.held] + [self.field_on(k, states, self.base[k]) for k in self.structure.moving]

    def sweep(self, states: States, times: int = 1) -> None:
        """Turn every group to where its local field points, in place of the old states."""
        for _ in range(times):
            for k in self.structure.order:
                states[k] = aligned(self.field_on(k, states, self.base[k]), self.omegas[k])

    def forces(self, states: Sequence[Tensor], fields: Sequence[Tensor]) -> list[Tensor]:
        """Return the force on every oscillator, (B, ...), of the groups that move; the held one has none."""
        return [states[0].new_zeros(())] + [
            crossed(states[k], fields[k], self.omegas[k]) for k in self.structure.moving
        ]

    def residual(self, states: Sequence[Tensor], fields: Sequence[Tensor]) -> Tensor:
        """Return the largest force of every sample, (B,)."""
        return largest(self.forces(states, fields)[1:], self.size)

    def stiffness(self, states: Sequence[Tensor], fields: Sequence[Tensor]) -> list[Tensor]:
        """Return the diagonal of the Laplacian, (B, ...), of the groups that move."""
        return [states[0].new_zeros(())] + [(states[k] * fields[k]).sum(0) for k in self.structure.moving]


def aligned(field: Tensor, omega: Tensor | None) -> Tensor:
    """Return the states (2, B, ...) that fields point to, led by frequencies as far as they can hold them."""
    # A field that vanishes points nowhere: its oscillator is left without a state, and does not stand.
    length = torch.hypot(field[0], field[1]).clamp_min(torch.finfo(field.dtype).tiny)
    states = field / length
    if omega is None:
        return states
    lead = (omega / length).clamp(-1.0, 1.0)
    along = torch.sqrt(1 - lead * lead)
    return torch.stack((states[0] * along - states[1] * lead, states[1] * along + states[0] * lead))


def crossed(states: Tensor, fields: Tensor, omega: Tensor | None = None) -> Tensor:
    """Return the force of fields on states, (B, ...)."""
    force = states[0] * fields[1] - states[1] * fields[0]
    return force if omega is None else force + omega


def largest(parts: Sequence[Tensor], size: int) -> Tensor:
    """Return the largest absolute value of every sample over several groups, (B,); NaN where there is one."""
    each = [part.abs().reshape(size, -1).amax(1) for part in parts if part.numel()]
    return torch.stack(each).amax(0) if each else parts[0].new_zeros(size)


def turned(states: Tensor, by: Tensor) -> Tensor:
    """Return states turned by small angles (B, ...), to third order in them."""
    ahead = torch.stack((states[0] - states[1] * by, states[1] + states[0] * by))
    return ahead * torch.rsqrt(1 + by * by)


def _held(structure: Structure, inputs: Tensor) -> Tensor:
    """Return the states of the held group, (2, B, ...)."""
    network, shape = structure.network, structure.groups[0].shape
    if structure.clamped:
        phases = network.input_phase + network.input_scale * inputs
        return torch.stack((torch.cos(phases), torch.sin(phases))).unflatten(2, shape)
    none = inputs.new_zeros(inputs.shape[0], *shape)
    return torch.stack((none + 1, none))


def gathered(where: Places, states: Sequence[Tensor]) -> Tensor:
    """Return the states (2, B, M) of oscillators given as places in groups."""
    parts = [places.take(states[group].flatten(2)) for group, places in where]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)


def scattered(where: Places, values: Tensor, group: int, like: Tensor) -> Tensor:
    """Return values (B, M) of such oscillators in the places that one group has for them, (B, ...), zero elsewhere."""
    flat, done = torch.zeros_like(like).flatten(1), 0
    for k, places in where:
        mine, done = values[:, done : done + places.size], done + places.size
        if k == group and places.run == slice(0, flat.shape[1]):
            return mine.reshape(like.shape)
        if k == group:
            flat = flat.index_copy(1, places.on(flat.device), mine)
    return flat.reshape(like.shape)


def kept(found: Tensor, parts: Sequence[Tensor], axis: int) -> States:
    """Return parts (..., B, ...) of the groups that move, zero for samples that are not found, whatever these hold."""
    if found.device.type == "cpu" and bool(found.all()):
        return list(parts)
    whole = [parts[0]]
    for part in parts[1:]:
        shape = [1] * part.dim()
        shape[axis] = -1
        whole.append(torch.where(found.reshape(shape), part, 0.0))
    return whole


def _frequencies(weights: Weights, inputs: Tensor) -> list[Tensor | None]:
    """Return the frequencies of all groups, the inputs driven where data does that, counted in the network's frame."""
    structure, network = weights.structure, weights.structure.network
    if structure.clamped or (not network.inputs and not structure.network.pinned):
        return list(weights.omegas)
    whole = []
    for k, group in enumerate(structure.groups):
        own = weights.omegas[k]
        start = inputs.new_zeros(1, *group.shape) if own is None else own
        whole.append(start.expand(inputs.shape[0], *group.shape).flatten(1))
    done = 0
    for k, places in structure.inputs:
        driven = network.input_scale * inputs[:, done : done + places.size]
        whole[k], done = whole[k].index_copy(1, places.on(inputs.device), driven), done + places.size
    if network.pinned:
        mean = sum(each.sum(1, keepdim=True) for each in whole) / network.size
        whole = [each - mean for each in whole]
    return [each.unflatten(1, group.shape) for each, group in zip(whole, structure.groups, strict=True)]
