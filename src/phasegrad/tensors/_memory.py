"""How many samples fit into the memory of a device, and a sentence where they did not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from phasegrad.tensors._structure import Structure

# Copies of states, fields and what is made of them on the way, where a batch needs most at once; and for every nudge.
_FREE, _NUDGED = 20, 20
# Share of the memory of a device to plan with, and bytes of one without a limit of its own.
_SHARE, _HOST = 0.8, 2**31


def bytes_per_sample(structure: Structure, itemsize: int, nudges: int) -> int:
    """Return about how much memory a sample takes, with so many nudged states beside the free one."""
    moving = sum(group.size for group in structure.groups[1:])
    few = 0 if structure.hidden is None else structure.groups[structure.hidden[1]].size
    copies = _FREE + (8 if nudges == 0 else _NUDGED * nudges)
    return itemsize * (10 * structure.groups[0].size + copies * moving + 12 * few * few)


def samples_that_fit(structure: Structure, itemsize: int, nudges: int, device: torch.device) -> int:
    """Return about how many samples fit into the memory that a device can still give, one at least."""
    return max(1, int(_SHARE * free_bytes(device) / bytes_per_sample(structure, itemsize, nudges)))


def free_bytes(device: torch.device) -> int:
    """Return how much memory a device can still give, what PyTorch keeps for later included."""
    if device.type != "cuda":
        return _HOST
    free, _ = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


@contextmanager
def fitting(structure: Structure, size: int, itemsize: int, nudges: int, device: torch.device) -> Iterator[None]:
    """Say in words which batch would fit where one of so many samples runs out of memory."""
    try:
        yield
    except torch.cuda.OutOfMemoryError:
        fits = min(samples_that_fit(structure, itemsize, nudges, device), max(1, size // 2))
        advice = f"About {fits} would fit: give fewer at once." if size > 1 else "One sample alone is too much."
        raise torch.cuda.OutOfMemoryError(
            f"A batch of {size} samples of this network does not fit into the memory of {device}. {advice}"
        ) from None
