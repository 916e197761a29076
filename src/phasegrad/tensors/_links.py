r"""Links: what the oscillators of one group do to those of another, as tensors.

A state of a group is the cosines and sines of its oscillators, (2, B, ...); the local field that a link makes of it has
the same form. A matrix W (n_first, n_second) takes states z forward as z W and back as z W^T; a kernel does so by a
convolution and its transpose. The slope of the energy by W is minus the correlation of both ends.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.grad import conv2d_weight

from phasegrad.tensors._structure import Group, Link

States = list[Tensor]


class Coupled:
    """A link with its weight on a device: the matrix or kernel, and the groups at its ends."""

    def __init__(self, link: Link, groups: tuple[Group, ...], weight: Tensor) -> None:
        self.link, self.weight = link, weight
        self.first, self.second = groups[link.first], groups[link.second]
        self.convolves, self.stride = link.stride is not None, link.stride or 1
        if self.convolves:
            if weight.is_cuda:
                # The layout that tensor cores take; what comes out of a convolution inherits it.
                self.weight = weight.contiguous(memory_format=torch.channels_last)
            # What the transpose must be told: rows that the stride left over.
            kernel, across = weight.shape[-1], self.second.shape[-2:]
            reach = [(size - 1) * self.stride - 2 * link.padding + kernel for size in across]
            self.over = [size - r for size, r in zip(self.first.shape[-2:], reach, strict=True)]

    def forward(self, states: Tensor, onto: Tensor | None = None) -> Tensor:
        """Return the field on the second group, (2, B, ...), added to ``onto``."""
        if not self.convolves:
            return _product(states, self.weight, self.second.shape, onto)
        field = functional.conv2d(states.flatten(0, 1), self.weight, stride=self.stride, padding=self.link.padding)
        return _added(field, states, onto)

    def backward(self, states: Tensor, onto: Tensor | None = None) -> Tensor:
        """Return the field on the first group, (2, B, ...), added to ``onto``."""
        if not self.convolves:
            return _product(states, self.weight.T, self.first.shape, onto)
        field = functional.conv_transpose2d(
            states.flatten(0, 1), self.weight, stride=self.stride, padding=self.link.padding,
            output_padding=self.over,
        )  # fmt: skip
        return _added(field, states, onto)

    def capacity(self, group: int) -> Tensor:
        """Return the most that the link can pull an oscillator of one of its groups."""
        sizes = self.weight.abs()
        if not self.convolves:
            return sizes.sum(0 if group == self.link.second else 1).amax()
        return sizes.sum((1, 2, 3)).amax() if group == self.link.second else sizes.sum((0, 2, 3)).amax()

    def correlation(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the sum over samples, cosines and sines of states of both ends, in the shape of the weight."""
        if not self.convolves:
            return first.flatten(2).flatten(0, 1).T @ second.flatten(2).flatten(0, 1)
        return conv2d_weight(
            first.flatten(0, 1), self.weight.shape, second.flatten(0, 1), stride=self.stride,
            padding=self.link.padding,
        )  # fmt: skip


def weight_of(link: Link, coupling: Tensor) -> Tensor:
    """Return the weight of a link, a view of the network's couplings where they lie in its order."""
    mine = link.couplings.take(coupling)
    if link.places is None:
        return mine.reshape(link.shape)
    whole = mine.new_zeros(link.shape[0] * link.shape[1])
    return whole.index_copy(0, link.places.on(mine.device), mine).reshape(link.shape)


def collect(link: Link, slope: Tensor, total: Tensor) -> None:
    """Put the slope by a link's weight where its couplings are among all."""
    flat = slope.reshape(-1)
    link.couplings.put(total, flat if link.places is None else link.places.take(flat))


def _product(states: Tensor, matrix: Tensor, shape: tuple[int, ...], onto: Tensor | None) -> Tensor:
    flat = states.flatten(2).flatten(0, 1)
    if onto is None:
        return (flat @ matrix).unflatten(0, states.shape[:2]).unflatten(2, shape)
    onto = onto.expand(*states.shape[:2], *shape).flatten(2).flatten(0, 1)
    return torch.addmm(onto, flat, matrix).unflatten(0, states.shape[:2]).unflatten(2, shape)


def _added(field: Tensor, states: Tensor, onto: Tensor | None) -> Tensor:
    field = field.unflatten(0, states.shape[:2])
    return field if onto is None else field + onto
