r"""Linear algebra with the Laplacian of a batch: its solves, for Newton's steps and exact gradients.

The Laplacian M has the stiffness D of every oscillator on its diagonal, and -K cos(theta_i - theta_j) elsewhere, so
that with states z and any v over the oscillators that move

    (M v)_i = D_i v_i - z_i . h_i,      h the field that the states z v make

Where all but a few oscillators are one group, that group is eliminated: what is left of M is a small matrix per sample,
the Schur complement S, whose Cholesky factor solves, and proves M positive definite if D and S are. Everything else is
solved by conjugate gradients with D as preconditioner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from phasegrad.tensors._batches import Batch

Parts = list[Tensor]
# Share of a right-hand side that conjugate gradients may leave, as a multiple of the rounding error of the type.
_LEFT = 4.0
# Steps of the iterated inverse, which square what is left each time, and what may be left.
_DOUBLINGS, _INVERTED = 7, 1e-3


def applied(batch: Batch, states: Sequence[Tensor], stiffness: Sequence[Tensor], vector: Sequence[Tensor]) -> Parts:
    """Return M v of a vector over the groups that move, (B, ...) each."""
    product = [vector[0]]
    moved = [states[0]] + [states[k] * vector[k] for k in batch.structure.moving]
    for k in batch.structure.moving:
        field = batch.field_on(k, moved, None)
        product.append(stiffness[k] * vector[k] - (states[k] * field).sum(0))
    return product


def complement(batch: Batch, states: Sequence[Tensor], stiffness: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Return the Schur complement of every sample as its stiffness (B, m), and what is taken off that, (B, m, m)."""
    assert batch.structure.hidden is not None
    large, few = batch.structure.hidden
    matrix, inverse = between(batch, large, few), 1 / stiffness[large].flatten(1)
    (cos, sin), (x, y) = states[large].flatten(2), states[few].flatten(2)
    pairs = (matrix[:, :, None] * matrix[:, None, :]).flatten(1)
    sums = torch.stack((cos * cos * inverse, cos * sin * inverse, sin * sin * inverse)).flatten(0, 1) @ pairs
    sums = sums.unflatten(1, (matrix.shape[1],) * 2).unflatten(0, (3, -1))
    mixed = x[:, :, None] * y[:, None, :]
    taken = (x[:, :, None] * x[:, None, :]) * sums[0] + (mixed + mixed.mT) * sums[1]
    return stiffness[few].flatten(1), taken + (y[:, :, None] * y[:, None, :]) * sums[2]


class Schur:
    """The Laplacian of a batch with its larger group eliminated, ready to solve.

    Attributes
    ----------
    failed : tensor of bool, shape (B,)
        Where no solve was found to hold: the Laplacian is not positive definite there, or on CUDA nearly so.
    """

    def __init__(self, batch: Batch, states: Sequence[Tensor], stiffness: Sequence[Tensor]) -> None:
        assert batch.structure.hidden is not None
        self.large, self.few = batch.structure.hidden
        self.states = [states[self.large].flatten(2), states[self.few].flatten(2)]
        self.matrix = between(batch, self.large, self.few)
        self.inverse = 1 / stiffness[self.large].flatten(1)
        diagonal, taken = complement(batch, states, stiffness)
        self.complement, found = _inverted(torch.diag_embed(diagonal) - taken, diagonal)
        self.failed = ~found | (stiffness[self.large].flatten(1).amin(1) <= 0)

    def solve(self, right: Sequence[Tensor]) -> Parts:
        """Return M^-1 of a right-hand side over the groups that move; rows may repeat the samples several times."""
        times = right[self.few].shape[0] // self.inverse.shape[0]
        inverse, complement, (large, few) = self.inverse, self.complement, self.states
        if times > 1:
            inverse, complement = inverse.repeat(times, 1), complement.repeat(times, 1, 1)
            large, few = large.repeat(1, times, 1), few.repeat(1, times, 1)
        reduced = inverse * right[self.large].flatten(1)
        pulled = (few * ((large * reduced).flatten(0, 1) @ self.matrix).unflatten(0, (2, -1))).sum(0)
        below = (complement @ (right[self.few].flatten(1) + pulled)[:, :, None])[:, :, 0]
        back = (large * ((few * below).flatten(0, 1) @ self.matrix.T).unflatten(0, (2, -1))).sum(0)
        answer = [right[0], right[0], right[0]]
        answer[self.few] = below.reshape(right[self.few].shape)
        answer[self.large] = (reduced + inverse * back).reshape(right[self.large].shape)
        return answer


def _inverted(matrix: Tensor, diagonal: Tensor) -> tuple[Tensor, Tensor]:
    """Return the inverses of small symmetric matrices (B, m, m), and where they hold, (B,): of positive definite ones.

    On a CPU by Cholesky's factors. Their solves cannot be recorded in a CUDA graph; there the inverse X is iterated, X
    (2 - S X), from that of the diagonal D. S is D minus a positive semidefinite matrix, so that this converges only if
    S is positive definite, and within a few steps unless it is nearly singular.
    """
    unit = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    if matrix.device.type == "cpu":
        factor, info = torch.linalg.cholesky_ex(matrix)
        # A factor that was not found may be singular, which would be an error for the whole batch.
        return torch.cholesky_inverse(chosen(info == 0, factor, unit)), info == 0
    inverse = torch.diag_embed(1 / diagonal)
    rest = unit - matrix @ inverse
    for _ in range(_DOUBLINGS):
        inverse = torch.baddbmm(inverse, inverse, rest)
        rest = torch.baddbmm(unit.expand_as(matrix), matrix, inverse, alpha=-1)
    return inverse, (rest.abs().amax((1, 2)) < _INVERTED) & (diagonal.amin(1) > 0)


class Solved(NamedTuple):
    """M^-1 of a right-hand side, and where it was found, (B,).

    ``falls`` (B,) says where M turned out not to be positive definite: there v . M v <= 0 for the direction v.
    """

    answer: Parts
    found: Tensor
    falls: Tensor
    direction: Parts


def conjugate(
    batch: Batch, states: Sequence[Tensor], stiffness: Sequence[Tensor], right: Sequence[Tensor], *, most: int = 1000,
    left: float | None = None,
) -> Solved:  # fmt: skip
    """Return M^-1 of a right-hand side up to a share ``left`` of it, by default that of rounding."""
    moving = batch.structure.moving
    diagonal = [stiffness[0]] + [each.clamp_min(torch.finfo(each.dtype).tiny) for each in stiffness[1:]]
    answer = [torch.zeros_like(each) for each in right]
    rest = list(right)
    ahead = [each / d for each, d in zip(rest, diagonal, strict=True)]
    size = batch.size
    gained = _dot(rest, ahead, moving, size)
    left = _LEFT * torch.finfo(right[-1].dtype).eps if left is None else left
    goal = left**2 * _dot(right, right, moving, size)
    found = _dot(rest, rest, moving, size) <= goal
    broken = torch.zeros_like(found)
    for step in range(most):
        # The device is asked now and then, not in every step.
        if step % 8 == 0 and bool((found | broken).all()):
            break
        product = applied(batch, states, stiffness, ahead)
        curvature = _dot(ahead, product, moving, size)
        broken = broken | (~found & ~(curvature > 0))
        share = torch.where(found | broken, 0.0, gained / curvature)
        answer = _combined(answer, ahead, share, moving)
        rest = _combined(rest, product, -share, moving)
        found = _dot(rest, rest, moving, size) <= goal
        prepared = [each / d for each, d in zip(rest, diagonal, strict=True)]
        later = _dot(rest, prepared, moving, size)
        after = _combined(prepared, ahead, torch.where(found | broken, 0.0, later / gained), moving)
        ahead = [ahead[0], *(chosen(broken, ahead[k], after[k]) for k in moving)]
        gained = later
    return Solved(answer, found & ~broken, broken, ahead)


def chosen(rows: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Return the first (B, ...) where ``rows`` (B,) says so, else the second."""
    return torch.where(rows.reshape(-1, *(1,) * (first.dim() - 1)), first, second)


def between(batch: Batch, large: int, few: int) -> Tensor:
    """Return the matrix (large, few) of the couplings between two groups; zeros where they have none."""
    for _, link in batch.structure.links_of(large):
        if few in (link.first, link.second):
            weight = batch.weights.links[batch.structure.links.index(link)].weight
            return weight if link.first == large else weight.T
    groups = batch.structure.groups
    return batch.held.new_zeros(groups[large].size, groups[few].size)


def _dot(first: Sequence[Tensor], second: Sequence[Tensor], moving: range, size: int) -> Tensor:
    return torch.stack([(first[k] * second[k]).reshape(size, -1).sum(1) for k in moving]).sum(0)


def _combined(first: Sequence[Tensor], second: Sequence[Tensor], share: Tensor, moving: range) -> Parts:
    """Return first plus share (B,) times second."""
    shares = [share.reshape(-1, *(1,) * (second[k].dim() - 1)) for k in moving]
    return [first[0], *(torch.addcmul(first[k], second[k], each) for k, each in zip(moving, shares, strict=True))]
