r"""Certificates: whether the state of each sample is stable, proved where that is said.

- One group eliminated: the Cholesky factor of the Schur complement, lowered by its rounding error.
- Few oscillators: a Cholesky factor of the whole Laplacian, in double precision.
- All others: a polynomial of a random vector. With the stiffness D and the couplings B, N = D^-1/2 B D^-1/2, the
  Laplacian D - B is positive definite if no eigenvalue of N is as large as 1. If one were, with eigenvector u, then
  |T_m(N / a) x| >= T_m(1 / a) |u . x| for a unit vector x and Chebyshev's polynomial T_m, and for a direction drawn
  at random |u . x| is below t with a probability below t sqrt(2 n / pi). T_m grows fast beyond 1 and nowhere exceeds
  1 before, so that if the eigenvalues lie within a < 1, some tens of products bring the probability of a
  wrong statement below 1e-9, whatever the network. A vector for which the form is negative refutes stability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from phasegrad.linearised import Verdict
from phasegrad.tensors._algebra import Schur, applied, complement
from phasegrad.tensors._batches import Batch
from phasegrad.tensors._settling import Settled

_WRONG = 1e-9
# Where eigenvalues are first taken to lie, the narrower first, and products beyond those that this needs.
_REACHES, _MORE = (0.5, 0.8, 0.95, 0.99, 0.998), 4
# Oscillators up to which the whole Laplacian is factored, and entries of such matrices at once.
_DENSE, _ENTRIES = 256, 2**25


def verdicts(batch: Batch, settled: Settled, floor: float = 0.0) -> Tensor:
    """Return every sample's `phasegrad.linearised.Verdict` as a number, (B,): whether all eigenvalues exceed a floor.

    The states must have converged.
    """
    states, stiffness = settled.states, batch.stiffness(settled.states, settled.fields)
    stiffness = [stiffness[0]] + [each - floor for each in stiffness[1:]]
    least = torch.stack([each.reshape(batch.size, -1).amin(1) for each in stiffness[1:] if each.numel()]).amin(0)
    if batch.structure.hidden is not None:
        proved, refuted = _eliminated(batch, states, stiffness)
    elif sum(group.size for group in batch.structure.groups[1:]) <= _DENSE:
        proved, refuted = _factored(batch, states, stiffness)
    else:
        proved, refuted = _random_vector(batch, states, stiffness)
    answer = torch.full((batch.size,), int(Verdict.UNPROVED), device=least.device)
    answer[proved & (least > 0)] = int(Verdict.STABLE)
    answer[refuted | (least <= 0)] = int(Verdict.UNSTABLE)
    return answer


def standing(batch: Batch, settled: Settled, schur: Schur | None = None) -> Tensor:
    """Return where no oscillator stands where it would fall alone, (B,); given a factor, nor all of them together."""
    if schur is not None:
        return ~schur.failed
    stiffness = batch.stiffness(settled.states, settled.fields)[1:]
    return torch.stack([each.reshape(batch.size, -1).amin(1) > 0 for each in stiffness]).all(0)


def _eliminated(batch: Batch, states: Sequence[Tensor], stiffness: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Return where Cholesky's factor of the Schur complement proves stability, and where it refutes it."""
    assert batch.structure.hidden is not None
    diagonal, taken = complement(batch, states, stiffness)
    rounding = 64 * torch.finfo(taken.dtype).eps * batch.structure.groups[batch.structure.hidden[0]].size ** 0.5
    lower, higher = (
        torch.linalg.cholesky_ex(torch.diag_embed(diagonal * factor) - taken)[1] == 0
        for factor in (1 - rounding, 1 + rounding)
    )
    return lower, ~higher


def laplacians(batch: Batch, states: Sequence[Tensor], stiffness: Sequence[Tensor]) -> Tensor:
    """Return the Laplacian of every sample over the oscillators that move, group by group, (B, n, n)."""
    sizes = [group.size for group in batch.structure.groups[1:]]
    total = sum(sizes)
    matrix = torch.zeros(batch.size, total, total, dtype=batch.held.dtype, device=batch.held.device)
    starts = [0, *torch.tensor(sizes).cumsum(0).tolist()]
    for k in batch.structure.moving:
        for column in range(sizes[k - 1]):
            unit = [torch.zeros_like(each) for each in stiffness]
            unit[k].reshape(batch.size, -1)[:, column] = 1.0
            product = applied(batch, states, stiffness, unit)[1:]
            matrix[:, :, starts[k - 1] + column] = torch.cat([each.reshape(batch.size, -1) for each in product], dim=1)
    return matrix


def _factored(batch: Batch, states: Sequence[Tensor], stiffness: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    size = sum(group.size for group in batch.structure.groups[1:])
    proved: list[Tensor] = []
    refuted: list[Tensor] = []
    rows = torch.arange(batch.size, device=batch.held.device)
    for some in rows.split(max(1, _ENTRIES // max(size * size, 1))):
        part, stiff = batch.take(some), [stiffness[0]] + [each[some] for each in stiffness[1:]]
        matrix = laplacians(part, [each[:, some] for each in states], stiff).double()
        norm = matrix.diagonal(dim1=1, dim2=2).amax(1) * 2
        rounding = 4 * size * torch.finfo(batch.held.dtype).eps * norm
        unit = torch.eye(size, dtype=matrix.dtype, device=matrix.device)
        for shift, into in ((-rounding, proved), (rounding, refuted)):
            into.append(torch.linalg.cholesky_ex(matrix + shift[:, None, None] * unit)[1] == 0)
    return torch.cat(proved), ~torch.cat(refuted)


def _random_vector(batch: Batch, states: Sequence[Tensor], stiffness: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Return which samples a polynomial of a random vector proves stable, and which it refutes."""
    proved = torch.zeros(batch.size, dtype=torch.bool, device=batch.held.device)
    refuted = torch.zeros_like(proved)
    rows = torch.arange(batch.size, device=batch.held.device)
    for reach in _REACHES:
        if not rows.numel():
            break
        part, stiff = batch.take(rows), [stiffness[0]] + [each[rows] for each in stiffness[1:]]
        sure, against = _chebyshev(part, [each[:, rows] for each in states], stiff, reach)
        proved[rows], refuted[rows] = sure & ~against, against
        rows = rows[~sure & ~against]
    return proved, refuted


def _chebyshev(
    batch: Batch, states: Sequence[Tensor], stiffness: Sequence[Tensor], reach: float
) -> tuple[Tensor, Tensor]:
    """Return the same by T_m(N / reach)."""
    moving, size = batch.structure.moving, batch.size
    count = sum(group.size for group in batch.structure.groups[1:])
    scale = [stiffness[0]] + [each.clamp_min(1e-30).rsqrt() for each in stiffness[1:]]
    # Rounding may make the couplings seem weaker than they are, or stronger where that refutes.
    slack = 1 + 64 * torch.finfo(batch.held.dtype).eps * count**0.5
    scaled = [states[0]] + [states[k] * scale[k] for k in moving]

    def product(vector: Sequence[Tensor]) -> list[Tensor]:
        moved = [states[0]] + [scaled[k] * vector[k] for k in moving]
        return [vector[0]] + [slack * (scaled[k] * batch.field_on(k, moved, None)).sum(0) for k in moving]

    before = _drawn(batch, scale)
    now = product(before)
    refuted = _inner(before, now, size) > slack**2
    now = [now[0]] + [each / reach for each in now[1:]]
    goal = _WRONG / len(_REACHES) * math.sqrt(math.pi / (2 * count))
    powers = math.ceil(math.acosh(1 / goal) / math.acosh(1 / reach)) + _MORE
    for power in range(2, powers + 1):
        after = product(now)
        refuted |= _inner(now, after, size) > slack**2 * _inner(now, now, size)
        now, before = [after[0]] + [2 / reach * a - b for a, b in zip(after[1:], before[1:], strict=True)], now
        length = _inner(now, now, size).sqrt().double()
        if power == powers or (power % 8 == 0 and bool((length > 1e8).all())):
            break
    return length <= goal * math.cosh(power * math.acosh(1 / reach)), refuted


def _drawn(batch: Batch, like: Sequence[Tensor]) -> list[Tensor]:
    """Return a unit vector for every sample, of a random direction."""
    # A seed of the system's own: nobody can choose a network for it, and the caller's random numbers stay as they are.
    stream = torch.Generator(device=batch.held.device)
    stream.seed()
    drawn = (torch.empty_like(each).normal_(generator=stream) for each in like[1:])
    vector = [like[0], *drawn]
    length = _inner(vector, vector, batch.size).sqrt()
    return [vector[0]] + [each / length.reshape(-1, *(1,) * (each.dim() - 1)) for each in vector[1:]]


def _inner(first: Sequence[Tensor], second: Sequence[Tensor], size: int) -> Tensor:
    return torch.stack([(a * b).reshape(size, -1).sum(1) for a, b in zip(first[1:], second[1:], strict=True)]).sum(0)
