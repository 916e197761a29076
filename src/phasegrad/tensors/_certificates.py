r"""Certificates: whether the state of each sample is stable, proved where that is said.

- One group eliminated: the Cholesky factor of the Schur complement, lowered by its rounding error.
- Few oscillators: a Cholesky factor of the whole Laplacian, in double precision.
- All others: powers of a random vector. With the stiffness D and the couplings B, N = D^-1/2 B D^-1/2, the
  Laplacian D - B is positive definite if N has no eigenvalue as large as 1 in size. If it had one, with eigenvector u,
  then |N^m x| >= |u . x| for a unit vector x, and for one drawn at random |u . x| is below t with a probability below
  t sqrt(2 n / pi). So once |N^m x| has fallen to 1e-9 sqrt(pi / 2 n) the statement is wrong with a probability
  below 1e-9, whatever the network. A vector for which the form is negative refutes stability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from phasegrad.solvers import Verdict
from phasegrad.tensors._algebra import Schur
from phasegrad.tensors._batches import Batch
from phasegrad.tensors._settling import Settled

_WRONG = 1e-9
_POWERS = 400
# Oscillators up to which the whole Laplacian is factored, and entries of such matrices at once.
_DENSE, _ENTRIES = 256, 2**25


def verdicts(batch: Batch, settled: Settled, floor: float = 0.0) -> Tensor:
    """Return the number of every sample's `phasegrad.solvers.Verdict`, (B,), on whether all eigenvalues exceed a floor.

    The states must have converged.
    """
    states, stiffness = settled.states, batch.stiffness(settled.states, settled.fields)
    stiffness = [stiffness[0]] + [each - floor for each in stiffness[1:]]
    least = torch.stack([each.reshape(batch.size, -1).amin(1) for each in stiffness[1:] if each.numel()]).amin(0)
    if batch.structure.hidden is not None:
        rounding = 64 * torch.finfo(least.dtype).eps * batch.structure.groups[batch.structure.hidden[0]].size ** 0.5
        proved = ~Schur(batch, states, stiffness, rounding).failed
        refuted = Schur(batch, states, stiffness, -rounding).failed
    elif sum(group.size for group in batch.structure.groups[1:]) <= _DENSE:
        proved, refuted = _factored(batch, states, stiffness)
    else:
        proved, refuted = _powers(batch, states, stiffness)
    answer = torch.full((batch.size,), int(Verdict.UNPROVED), device=least.device)
    answer[proved & (least > 0)] = int(Verdict.STABLE)
    answer[refuted | (least <= 0)] = int(Verdict.UNSTABLE)
    return answer


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
            moved = [states[0]] + [states[j] * unit[j] for j in batch.structure.moving]
            for j in batch.structure.moving:
                entry = stiffness[j] * unit[j] - (states[j] * batch.field_on(j, moved, None)).sum(0)
                matrix[:, starts[j - 1] : starts[j], starts[k - 1] + column] = entry.reshape(batch.size, -1)
    return matrix


def _factored(batch: Batch, states: Sequence[Tensor], stiffness: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    size = sum(group.size for group in batch.structure.groups[1:])
    proved, refuted = [], []
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


def _powers(batch: Batch, states: Sequence[Tensor], stiffness: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    moving, size, device = batch.structure.moving, batch.size, batch.held.device
    count = sum(group.size for group in batch.structure.groups[1:])
    # A seed of the system's own: nobody can choose a network for it, and the caller's random numbers stay as they are.
    stream = torch.Generator()
    stream.seed()
    scale = [stiffness[0]] + [each.clamp_min(1e-30).rsqrt() for each in stiffness[1:]]
    scaled = [states[0]] + [states[k] * scale[k] for k in moving]
    vector = [stiffness[0]]
    for k in moving:
        drawn = torch.randn(scale[k].shape, generator=stream, dtype=torch.float32)
        vector.append(drawn.to(device=device, dtype=batch.held.dtype))
    vector = _over(vector, _norm(vector, size))
    # A power may shrink less than it seems by the rounding of one product.
    slack = -math.log1p(-64 * torch.finfo(batch.held.dtype).eps * count**0.5)
    goal = math.log(_WRONG * math.sqrt(math.pi / (2 * count)))
    fallen, refuted = torch.zeros((2, size), device=device, dtype=torch.float64)
    refuted = refuted.bool()
    for power in range(_POWERS):
        after = [vector[0]]
        for k in moving:
            field = batch.field_on(k, [states[0]] + [scaled[j] * vector[j] for j in moving], None)
            after.append((scaled[k] * field).sum(0))
        quotient = torch.stack([(a * b).reshape(size, -1).sum(1) for a, b in zip(vector[1:], after[1:], strict=True)])
        refuted |= quotient.sum(0) > math.exp(slack)
        length = _norm(after, size)
        fallen += torch.log(length.double()) + slack
        vector = _over(after, length)
        if power % 8 == 7 and bool(((fallen <= goal) | refuted).all()):
            break
    return (fallen <= goal) & ~refuted, refuted


def _norm(parts: Sequence[Tensor], size: int) -> Tensor:
    total = torch.stack([(each * each).reshape(size, -1).sum(1) for each in parts[1:]]).sum(0)
    return total.sqrt().clamp_min(torch.finfo(total.dtype).tiny ** 0.5)


def _over(parts: Sequence[Tensor], length: Tensor) -> list[Tensor]:
    return [parts[0]] + [each / length.reshape(-1, *(1,) * (each.dim() - 1)) for each in parts[1:]]
