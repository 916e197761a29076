r"""Certificates: whether the state of each sample is stable, proved where that is said.

A state is judged in double precision, whatever its type: its oscillators, those that data holds among them, are unit
vectors z along the given ones, and their local fields h = W z + b are summed anew. What is then known of the Laplacian
are its diagonal D = z . h and its couplings B up to delta = N eps H, with N oscillators and the strongest pull H on one
of them: of N products and sums each is rounded by at most eps times a partial sum of |W| and |b|. Where fields cancel,
D is far smaller than H, and a rounding of D that is counted relative to D would miss that. Proofs hold for every D, and
every B whose rows together are, within delta of those that were computed.

- One group eliminated: the Cholesky factor of the Schur complement, lowered by its rounding error.
- Few oscillators: a Cholesky factor of the whole Laplacian, lowered likewise.
- All others: a polynomial of a random vector. With the stiffness D and the couplings B, N = D^-1/2 B D^-1/2, the
  Laplacian D - B is positive definite if no eigenvalue of N is as large as 1. If one were, with eigenvector u, then
  |T_m(N / a) x| >= T_m(1 / a) |u . x| for a unit vector x and Chebyshev's polynomial T_m, and for a direction drawn
  at random |u . x| is below t with a probability below t sqrt(2 n / pi). T_m grows fast beyond 1 and nowhere exceeds
  1 before, so that if the eigenvalues lie within a < 1, some tens of products bring the probability of a
  wrong statement below 1e-9, whatever the network. A vector for which the form is negative refutes stability.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from phasegrad.linearised import Verdict
from phasegrad.tensors._algebra import Schur, applied, between, complement
from phasegrad.tensors._batches import Batch, Weights
from phasegrad.tensors._settling import Settled

_WRONG = 1e-9
# Where eigenvalues are first taken to lie, the narrower first, and products beyond those that this needs.
_REACHES, _MORE = (0.5, 0.8, 0.95, 0.99, 0.998), 4
# Oscillators up to which the whole Laplacian is factored, and numbers that are held at once.
_DENSE, _ENTRIES = 256, 2**25


def verdicts(batch: Batch, settled: Settled, floor: float = 0.0) -> Tensor:
    """Return every sample's `phasegrad.linearised.Verdict` as a number, (B,): whether all eigenvalues exceed a floor.

    The states must have converged.
    """
    rows = torch.arange(batch.size, device=batch.held.device)
    # A sample's states, fields and products take about eight numbers for every oscillator.
    at_once = max(1, _ENTRIES // (8 * batch.structure.network.size))
    found = [
        _judged(batch.take(some), [each[:, some] for each in settled.states], floor) for some in rows.split(at_once)
    ]
    return torch.cat(found)


def _judged(batch: Batch, states: Sequence[Tensor], floor: float) -> Tensor:
    """Return the verdicts on some of the samples."""
    batch, states, stiffness = _in_double(batch, states)
    stiffness = [stiffness[0]] + [each - floor for each in stiffness[1:]]
    least = torch.stack([each.reshape(batch.size, -1).amin(1) for each in stiffness[1:] if each.numel()]).amin(0)
    if batch.structure.hidden is not None:
        proved, refuted = _eliminated(batch, states, stiffness)
    elif sum(group.size for group in batch.structure.groups[1:]) <= _DENSE:
        proved, refuted = _factored(batch, states, stiffness)
    else:
        proved, refuted = _random_vector(batch, states, stiffness)
    answer = torch.full((batch.size,), int(Verdict.UNPROVED), device=least.device)
    doubt = _doubt(batch)
    answer[proved & (least > doubt)] = int(Verdict.STABLE)
    answer[refuted | (least <= -doubt)] = int(Verdict.UNSTABLE)
    return answer


def _in_double(batch: Batch, states: Sequence[Tensor]) -> tuple[Batch, list[Tensor], list[Tensor]]:
    """Return a batch, its states as unit vectors and the diagonal of its Laplacian, all in double precision."""
    parameters = {name: each.detach().double() for name, each in batch.weights.parameters.items()}
    weights = Weights(batch.structure, parameters, turning=False)
    tiny = torch.finfo(torch.float64).tiny
    units = [each.detach().double() for each in states]
    units = [each / torch.hypot(each[0], each[1]).clamp_min(tiny) for each in units]
    fields = [units[0]]
    for k in batch.structure.moving:
        own, shape = weights.fields[k], (2, batch.size, *batch.structure.groups[k].shape)
        field = torch.zeros(shape, dtype=torch.float64, device=batch.held.device) if own is None else own.expand(shape)
        for coupled in weights.links:
            if coupled.link.second == k:
                field = coupled.forward(units[coupled.link.first], field)
            elif coupled.link.first == k:
                field = coupled.backward(units[coupled.link.second], field)
        fields.append(field)
    exact = Batch(weights, fields, units[0], [None for _ in fields])
    return exact, units, exact.stiffness(units, fields)


def _doubt(batch: Batch) -> Tensor:
    """Return how far rounding may take an entry on the diagonal of the Laplacian, or a row of the others: delta."""
    return batch.weights.rounding() * max(1.0, batch.structure.network.size / 8)


def standing(batch: Batch, settled: Settled, schur: Schur | None = None) -> Tensor:
    """Return where no oscillator stands where it would fall alone, (B,); given a factor, nor all of them together."""
    if schur is not None:
        return ~schur.failed
    stiffness = batch.stiffness(settled.states, settled.fields)[1:]
    return torch.stack([each.reshape(batch.size, -1).amin(1) > 0 for each in stiffness]).all(0)


def _eliminated(batch: Batch, states: Sequence[Tensor], stiffness: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Return where Cholesky's factor of the Schur complement proves stability, and where it refutes it.

    Rounding takes D - B down or up by at most 2 delta: delta of D, and delta of B, whose change has no eigenvalue
    beyond its largest sum of a row. So the Schur complement lies between those of D - 2 delta and D + 2 delta. With the
    couplings W, every sum in B^T D^-1 B is at most P_jk = sum_i |W_ij W_ik| / D_i, and P_jk^2 <= P_jj P_kk, so that n
    roundings in each of m x m entries change the form x . S x by at most n eps m sum_j P_jj x_j^2. Cholesky's factor of
    a matrix with the diagonal s adds at most m^2 eps sum_j s_j x_j^2 to that (Higham, theorem 10.3).
    """
    assert batch.structure.hidden is not None
    large, few = batch.structure.hidden
    doubt, squares = _doubt(batch), between(batch, large, few) ** 2
    size, rest = squares.shape
    eps = 2 * rest * (size + rest + 16) * torch.finfo(squares.dtype).eps
    answers = []
    for sign in (-1, 1):
        moved = [stiffness[0]] + [each + 2 * sign * doubt for each in stiffness[1:]]
        diagonal, taken = complement(batch, states, moved)
        margin = eps * (diagonal.abs() + (1 / moved[large].flatten(1)) @ squares)
        matrix = torch.diag_embed(diagonal + sign * margin) - taken
        answers.append((torch.linalg.cholesky_ex(matrix)[1] == 0) & (moved[large].flatten(1).amin(1) > 0))
    return answers[0], ~answers[1]


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
    """Return where Cholesky's factor of the Laplacian, lowered by its rounding, proves stability, and where not."""
    size = sum(group.size for group in batch.structure.groups[1:])
    proved: list[Tensor] = []
    refuted: list[Tensor] = []
    rows = torch.arange(batch.size, device=batch.held.device)
    for some in rows.split(max(1, _ENTRIES // max(size * size, 1))):
        part, stiff = batch.take(some), [stiffness[0]] + [each[some] for each in stiffness[1:]]
        matrix = laplacians(part, [each[:, some] for each in states], stiff)
        largest = matrix.diagonal(dim1=1, dim2=2).abs().amax(1)
        rounding = 2 * _doubt(batch) + size * (size + 2) * torch.finfo(matrix.dtype).eps * largest
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
    """Return the same by T_m(N / reach).

    With q = delta over the least stiffness, rounding moves the eigenvalues of N by less than 2 q where they are near 1:
    N is taken 1 + 4 q times as large, which is more than 1 / (1 - 2 q) up to q = 1/4, and nothing is proved beyond.
    """
    moving, size = batch.structure.moving, batch.size
    count = sum(group.size for group in batch.structure.groups[1:])
    scale = [stiffness[0]] + [each.clamp_min(1e-30).rsqrt() for each in stiffness[1:]]
    least = torch.stack([each.reshape(size, -1).amin(1) for each in stiffness[1:]]).amin(0)
    doubt = _doubt(batch) / least.clamp_min(1e-30)
    # The recurrence rounds, too.
    slack = 1 + 4 * doubt + 64 * torch.finfo(batch.held.dtype).eps * count**0.5
    scaled = [states[0]] + [states[k] * scale[k] for k in moving]

    def product(vector: Sequence[Tensor]) -> list[Tensor]:
        moved = [states[0]] + [scaled[k] * vector[k] for k in moving]
        products = [(scaled[k] * batch.field_on(k, moved, None)).sum(0) for k in moving]
        return [vector[0]] + [slack.reshape(-1, *(1,) * (each.dim() - 1)) * each for each in products]

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
    return (length <= goal * math.cosh(power * math.acosh(1 / reach))) & (doubt <= 0.25), refuted


def _drawn(batch: Batch, like: Sequence[Tensor]) -> list[Tensor]:
    """Return a unit vector for every sample, of a random direction."""
    # Seeded by a digest of the parameters: equal networks have equal verdicts, and to find a network that suits its
    # direction takes as many trials as the probability says. The caller's random numbers stay as they are.
    digest = hashlib.sha256()
    for name in sorted(batch.weights.parameters):
        digest.update(batch.weights.parameters[name].detach().cpu().numpy().tobytes())
    stream = torch.Generator(device=batch.held.device)
    stream.manual_seed(int.from_bytes(digest.digest()[:7], "little"))
    drawn = (torch.empty_like(each).normal_(generator=stream) for each in like[1:])
    vector = [like[0], *drawn]
    length = _inner(vector, vector, batch.size).sqrt()
    return [vector[0]] + [each / length.reshape(-1, *(1,) * (each.dim() - 1)) for each in vector[1:]]


def _inner(first: Sequence[Tensor], second: Sequence[Tensor], size: int) -> Tensor:
    return torch.stack([(a * b).reshape(size, -1).sum(1) for a, b in zip(first[1:], second[1:], strict=True)]).sum(0)
